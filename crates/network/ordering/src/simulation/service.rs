//! What the network gives to a simulated node.

use crate::bft::{self, Acknowledgements, Floor, MarshalMailbox, Shared};
use crate::mempool::{Placing, Source};
use crate::raft::Raft;
use crate::{CertificateError, Delivery, Ordering, OrderingStatus, SubmitError};
use bytes::Bytes;
use crossbeam_channel::Receiver;
use parking_lot::Mutex;
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

    /// Tells ordering of blocks that are not needed.
    pub(super) fn skip(&self) {
        if let SimulatedService::Bft(ordering, marshal) = self
            && let Some(floor) = ordering.floor.lock().take()
        {
            marshal.set_floor(floor);
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
