//! What the parts of one member share.

use super::delivery::Tip;
use super::member::Request;
use super::window::Position;
use crate::certificates::Certificates;
use crate::cutting::Parent;
use crate::members::{Epochs, Messages};
use crate::mempool::{Clock, Mempool, Placing};
use crate::raft::config::CONNECTED;
use crate::{
    Admission, CertificateError, CertificateVerifier, CertifyOutcomes, Delivery, ExchangeMessages,
    MempoolLimits, Ordering, OrderingStatus, SubmitError,
};
use bytes::Bytes;
use crossbeam_channel::Receiver;
use crypto::{Digest, SecretKey};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use types::{BlockHeader, Charters, CheckpointCertificate, OutcomeCertificate, Place, TransactionId};

/// Requests that wait for the member.
const REQUESTS: usize = 16;

/// What judging, offering and the service share.
pub(crate) struct Shared {
    pub ledger: Digest,
    pub key: SecretKey,
    pub epochs: Epochs,
    pub mempool: Arc<Mempool>,
    pub admission: Arc<dyn Admission>,
    /// What the next block carries, if this node offers it.
    pub certificates: Certificates,
    pub messages: Arc<Messages>,
    pub exchange: Arc<Messages>,
    pub clock: Clock,
    /// How far this node is.
    pub(super) tip: watch::Sender<Tip>,
    /// Up to which height the node has made blocks durable.
    pub acknowledged: AtomicU64,
    /// Says that it has.
    pub acknowledgement: Notify,
    /// Blocks up to this one are not needed.
    pub(super) skip: Mutex<Option<Box<BlockHeader>>>,
    /// Entries that turned out to be no block, until the log has taken note.
    pub(super) dropped: Mutex<Vec<u64>>,
    /// Why nothing is judged any more.
    pub(super) failed: Mutex<Option<String>>,
    /// The group's term.
    pub term: AtomicU64,
    /// When members were heard last.
    pub heard: Mutex<BTreeMap<u16, Duration>>,
}

impl Shared {
    pub(crate) fn new(
        charters: Charters,
        key: &SecretKey,
        (limits, clock): (MempoolLimits, Clock),
        admission: Arc<dyn Admission>,
        last: Option<&BlockHeader>,
    ) -> Arc<Shared> {
        let parent = last.map_or_else(|| Parent::charter(charters.ledger()), Parent::block);
        Arc::new(Shared {
            ledger: charters.ledger(),
            key: key.clone(),
            epochs: Epochs::new(charters, key.clone()),
            mempool: Arc::new(Mempool::new(limits, clock.clone())),
            admission,
            certificates: Certificates::default(),
            messages: Arc::new(Messages::new()),
            exchange: Arc::new(Messages::new()),
            clock,
            tip: watch::Sender::new(Tip { parent, position: Position::default(), is_logged: false }),
            acknowledged: AtomicU64::new(parent.height),
            acknowledgement: Notify::new(),
            skip: Mutex::new(None),
            dropped: Mutex::default(),
            failed: Mutex::new(None),
            term: AtomicU64::new(0),
            heard: Mutex::default(),
        })
    }

    /// This node is so far.
    pub(super) fn publish(&self, tip: Tip) {
        self.tip.send_replace(tip);
    }

    pub(super) fn height(&self) -> u64 {
        self.tip.borrow().parent.height
    }

    pub(super) fn now(&self) -> Duration {
        (self.clock)()
    }

    pub(super) fn hear(&self, member: usize) {
        self.heard.lock().insert(member as u16, self.now());
    }

    /// Transactions for this node's mempool, where it is a member's.
    pub(super) fn put(
        &self,
        transactions: Vec<Bytes>,
        placing: Placing,
    ) -> Vec<Result<TransactionId, SubmitError>> {
        let height = self.height() + 1;
        if self.epochs.own_at(height).is_none() {
            return transactions.iter().map(|_| Err(SubmitError::NoMember { height })).collect();
        }
        let place = Place { charters: &self.epochs.charters(), height };
        self.mempool.submit(&*self.admission, place, (transactions, placing))
    }
}

/// A member as its node sees it, on whatever runtime it runs.
pub(crate) struct Handle {
    pub shared: Arc<Shared>,
    pub deliveries: Receiver<Delivery>,
    requests: mpsc::Sender<Request>,
}

impl Handle {
    /// With what the member takes its requests from.
    pub(crate) fn new(
        shared: Arc<Shared>,
        deliveries: Receiver<Delivery>,
    ) -> (Handle, mpsc::Receiver<Request>) {
        let (requests, taken) = mpsc::channel(REQUESTS);
        (Handle { shared, deliveries, requests }, taken)
    }

    /// A final block that this member's log has.
    pub(crate) async fn read(&self, height: u64) -> Option<Delivery> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Read { height, answer }).await.ok()?;
        answered.await.ok()?
    }
}

impl Ordering for Handle {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.put(transactions, Placing::Anywhere)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.put(transactions, Placing::InOneBlock)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, height: u64) {
        self.shared.acknowledged.fetch_max(height, Atomic::AcqRel);
        self.shared.acknowledgement.notify_waiters();
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        CertificateVerifier::new(self.shared.epochs.charters())?.verify_own(header, certificate)?;
        *self.shared.skip.lock() = Some(Box::new(header.clone()));
        self.acknowledge(header.height);
        tracing::info!(height = header.height, "blocks up to this height are not fetched");
        Ok(())
    }

    fn read(&self, height: u64) -> Option<Delivery> {
        futures::executor::block_on(Handle::read(self, height))
    }

    fn status(&self) -> OrderingStatus {
        let (level, now) = (self.shared.mempool.level(), self.shared.now());
        let heard = self.shared.heard.lock();
        OrderingStatus {
            pending_transactions: level.transactions,
            pending_bytes: level.bytes,
            final_height: self.shared.height(),
            view: self.shared.term.load(Atomic::Relaxed),
            connected_peers: heard.values().filter(|at| now.saturating_sub(**at) < CONNECTED).count(),
        }
    }

    fn stop(&self) {
        self.shared.mempool.close();
    }
}

impl CertifyOutcomes for Handle {
    fn certify(&self, certificate: OutcomeCertificate) {
        if let Some(decided) = self.shared.certificates.decided() {
            self.shared.epochs.certified(&decided, &certificate.statement.charters);
        }
        self.shared.certificates.certify(certificate);
    }

    fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        self.shared.certificates.certify_checkpoint(certificate);
    }

    fn decided(&self, charters: Charters) {
        self.shared.certificates.decide(charters);
    }

    fn charters(&self) -> Charters {
        self.shared.epochs.charters()
    }

    fn follow(&self, charters: &Charters) {
        self.shared.epochs.adopt(charters);
    }
}

impl ExchangeMessages for Handle {
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
}
