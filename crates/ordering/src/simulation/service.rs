//! [`Ordering`] as a simulated node has it.

use crate::bft::{Acknowledgements, Shared};
use crate::{CertificateError, CertificateVerifier, Delivery, Ordering, OrderingStatus, SubmitError};
use bytes::Bytes;
use crossbeam_channel::Receiver;
use std::sync::Arc;
use types::{BlockHeader, Charters, CheckpointCertificate, OutcomeCertificate, TransactionId};

/// One node's ordering. Blocks of other times are read by who runs the network, as reading takes simulated time.
pub(super) struct SimulatedOrdering {
    pub(super) shared: Arc<Shared>,
    pub(super) acknowledgements: Arc<Acknowledgements>,
    pub(super) deliveries: Receiver<Delivery>,
}

impl Ordering for SimulatedOrdering {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.submit(transactions)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, height: u64) {
        self.acknowledgements.durable(height);
    }

    fn broadcast(&self, message: Bytes) {
        self.shared.messages.send(None, message);
    }

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        self.shared.messages.received()
    }

    fn tell(&self, member: u16, message: Bytes) {
        self.shared.exchange.send(Some(member), message);
    }

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        self.shared.exchange.received()
    }

    /// Blocks up to there are fetched all the same, and not delivered.
    fn follow(&self, charters: &Charters) {
        self.shared.epochs.adopt(charters);
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        let verifier = CertificateVerifier::new(self.shared.epochs.charters())?;
        verifier.verify_own(header, certificate)?;
        self.acknowledgements.durable(header.height);
        Ok(())
    }

    fn decided(&self, charters: Charters) {
        self.shared.certificates.decide(charters);
    }

    fn charters(&self) -> Charters {
        self.shared.epochs.charters()
    }

    fn certify(&self, certificate: OutcomeCertificate) {
        self.shared.certify(certificate);
    }

    fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        self.shared.certificates.certify_checkpoint(certificate);
    }

    fn read(&self, _: u64) -> Option<Delivery> {
        None
    }

    fn status(&self) -> OrderingStatus {
        self.shared.status()
    }

    fn metrics(&self) -> String {
        String::new()
    }

    fn stop(&self) {}
}
