//! What the network gives to a simulated node.

use crate::bft::{self, Acknowledgements, Floor, Forgetting, MarshalMailbox, Shared};
use crate::mempool::{Placing, Source};
use crate::raft::Raft;
use crate::{CertificateError, Delivery, Ordering, OrderingStatus, SubmitError};
use bytes::Bytes;
use commonware_consensus::types::Height;
use crossbeam_channel::Receiver;
use parking_lot::Mutex;
use std::ops::RangeInclusive;
use std::sync::Arc;
use types::{BlockHeader, TransactionId};

/// One node's ordering as who runs the network sees it.
pub(super) enum SimulatedService {
    Bft(Arc<SimulatedBft>, MarshalMailbox),
    Raft(Arc<Raft>),
}

impl SimulatedService {
    pub(super) fn deliveries(&self) -> &Receiver<Delivery> {
        match self {
            SimulatedService::Bft(ordering, _) => ordering.deliveries(),
            SimulatedService::Raft(raft) => raft.deliveries(),
        }
    }

    /// Tells ordering of blocks that are not needed, and of those that are not needed any more.
    pub(super) fn skip(&self) {
        if let SimulatedService::Bft(ordering, marshal) = self
            && let Some(floor) = ordering.floor.lock().take()
        {
            marshal.set_floor(floor);
        }
        if let SimulatedService::Bft(ordering, marshal) = self
            && let Some(below) = ordering.forgotten.lock().take()
        {
            marshal.prune(below);
        }
    }

    /// A block of another time.
    pub(super) async fn read(&self, height: u64) -> Option<Delivery> {
        match self {
            SimulatedService::Bft(_, marshal) => bft::read(marshal, height).await,
            SimulatedService::Raft(raft) => raft.read_stored(height).await,
        }
    }
}

/// One node's BFT ordering. Blocks of other times are read by who runs the network, as reading takes simulated time.
pub(super) struct SimulatedBft {
    pub(super) shared: Arc<Shared>,
    pub(super) acknowledgements: Arc<Acknowledgements>,
    pub(super) deliveries: Receiver<Delivery>,
    /// Blocks up to there are not needed: who runs the network tells marshal.
    pub(super) floor: Mutex<Option<Floor>>,
    /// If the node prunes.
    pub(super) forgetting: Option<Arc<Forgetting>>,
    /// Blocks below are to be forgotten: the same.
    pub(super) forgotten: Mutex<Option<Height>>,
}

impl Ordering for SimulatedBft {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.submit(transactions, Placing::Anywhere, Source::Client)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.submit(transactions, Placing::InOneBlock, Source::Client)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, height: u64) {
        self.acknowledgements.durable(height);
        self.shared.lacking.pause((self.shared.clock)());
    }

    fn forget_below(&self, height: u64) {
        let forgetting = self.forgetting.as_ref();
        if let Some(below) = forgetting.and_then(|kept| kept.below(height, self.acknowledgements.height())) {
            *self.forgotten.lock() = Some(below);
        }
    }

    fn unobtainable(&self) -> Option<RangeInclusive<u64>> {
        self.shared.unobtainable(&self.acknowledgements)
    }

    fn trouble(&self) -> Option<String> {
        self.shared.trouble(&self.acknowledgements)
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        if let Some(floor) = self.shared.skip_to(&self.acknowledgements, header, certificate)? {
            *self.floor.lock() = Some(floor);
        }
        Ok(())
    }

    fn status(&self) -> OrderingStatus {
        self.shared.status()
    }

    fn stop(&self) {}
}
