//! A network of one: blocks straight from the mempool, stored nowhere. The node's ledger is the memory; on a restart
//! the service continues where that ends.

use crate::certificate::{Certificate, solo_message};
use crate::certificates::{Allowed, Certificates};
use crate::cutting::{Cut, Parent, assemble, when_to_cut};
use crate::mempool::{Clock, Mempool, Placing, Source, Survey};
use crate::{
    Admission, CertificateError, CertifyOutcomes, Delivery, ExchangeMessages, MempoolLimits, Ordering,
    OrderingError, OrderingStatus, SubmitError,
};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use crypto::SecretKey;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tracing::error;
use types::{
    BlockHeader, Charter, Charters, CheckpointCertificate, OutcomeCertificate, Place, TransactionId,
};

/// Blocks that wait for the consumer.
const DELIVERIES_MAX: usize = 4;

/// How often a thread that waits for the consumer looks whether it should stop.
const STOP_POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// What [`start`] needs.
pub struct SoloConfig {
    /// The ledger's charters, as far as its blocks name them.
    pub charters: Charters,
    /// Signs the certificates: the node key of the ledger's only organisation.
    pub node_key: SecretKey,
    /// Header of the last block in the node's ledger; `None` for an empty one.
    pub last: Option<BlockHeader>,
    /// How much may wait.
    pub mempool: MempoolLimits,
}

/// The running service.
pub struct Solo {
    admission: Arc<dyn Admission>,
    mempool: Arc<Mempool>,
    height: Arc<AtomicU64>,
    deliveries: Receiver<Delivery>,
    charters: Arc<Mutex<Charters>>,
    certificates: Arc<Certificates>,
    /// Nobody is there to send any.
    messages: Receiver<(u16, Bytes)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Starts the service; the first block it delivers follows `last`.
///
/// # Errors
/// [`OrderingError`] where charter or key do not fit.
pub fn start(config: SoloConfig, admission: Arc<dyn Admission>) -> Result<Arc<Solo>, OrderingError> {
    let SoloConfig { charters, node_key, last, mempool } = config;
    let parent = last.as_ref().map_or_else(|| Parent::charter(charters.ledger()), Parent::block);
    let charter = charters.at(parent.height + 1).charter.clone();
    if charter.ordering != "solo" {
        return Err(OrderingError::OtherService { expected: "solo", found: charter.ordering.clone() });
    }
    let (_, member) = charter.members().next().ok_or(OrderingError::NoMembers)?;
    if member.node_key != node_key.public_key() {
        return Err(OrderingError::WrongKey {
            organisation: member.name.clone(),
            expected: member.node_key,
            found: node_key.public_key(),
        });
    }
    let began = Instant::now();
    let clock: Clock = Arc::new(move || began.elapsed());
    let mempool = Arc::new(Mempool::new(mempool, clock.clone()));
    let height = Arc::new(AtomicU64::new(parent.height));
    let (sender, deliveries) = crossbeam_channel::bounded(DELIVERIES_MAX);
    let certificates = Arc::new(Certificates::default());
    let charters = Arc::new(Mutex::new(charters));
    let cutter = Cutter {
        certificates: certificates.clone(),
        admission: admission.clone(),
        charters: charters.clone(),
        node_key,
        mempool: mempool.clone(),
        clock,
        height: height.clone(),
        sender,
    };
    let thread = std::thread::Builder::new()
        .name("solo ordering".to_string())
        .spawn(move || cutter.run(parent))
        .map_err(|error| OrderingError::Ended(error.to_string()))?;
    let (thread, messages) = (Mutex::new(Some(thread)), crossbeam_channel::never());
    Ok(Arc::new(Solo { admission, mempool, height, deliveries, charters, certificates, messages, thread }))
}

struct Cutter {
    admission: Arc<dyn Admission>,
    /// What blocks have named.
    charters: Arc<Mutex<Charters>>,
    node_key: SecretKey,
    mempool: Arc<Mempool>,
    certificates: Arc<Certificates>,
    clock: Clock,
    height: Arc<AtomicU64>,
    sender: Sender<Delivery>,
}

impl Cutter {
    fn run(self, mut parent: Parent) {
        let ledger = self.charters.lock().ledger();
        let nothing = FxHashSet::default();
        loop {
            let charter = self.charters.lock().at(parent.height + 1).charter.clone();
            let (position, member) = charter.members().next().expect("a charter has members");
            if member.node_key != self.node_key.public_key() {
                let key = member.node_key;
                error!(height = parent.height, %key, "the charter names another node key from here on; start with that");
                return;
            }
            if !self.wait_for_work(&charter, &parent, &nothing) {
                return;
            }
            let attested = self.certificates.for_child_of(&parent);
            let (ids, transactions) = match self.certificates.allow(&parent, &charter) {
                Allowed::Transactions => self.mempool.take(&*self.admission, &charter.block, &nothing),
                Allowed::Empty | Allowed::Nothing => Default::default(),
            };
            let clock_ms =
                SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
            let block = assemble(ledger, &parent, position, clock_ms, attested, transactions);
            self.certificates.carried(&block.attested);
            if let Err(error) = self.charters.lock().follow(&block.attested) {
                error!(%error, "this node's state has amended charters that cannot follow the known ones");
                return;
            }
            parent = Parent::block(&block.header);
            let signature = self.node_key.sign(&solo_message(&parent.digest));
            let certificate = Certificate::Solo(signature).to_bytes();
            self.mempool.delivered(&ids);
            self.height.store(parent.height, Atomic::Relaxed);
            if !self.deliver(Delivery { block, certificate }) {
                return;
            }
        }
    }

    /// Waits until a block is due; `false` when the service stops.
    fn wait_for_work(&self, charter: &Charter, parent: &Parent, nothing: &FxHashSet<TransactionId>) -> bool {
        let began = (self.clock)();
        loop {
            if self.mempool.is_closed() {
                return false;
            }
            let mut survey = self.mempool.survey(&charter.block, nothing);
            match self.certificates.allow(parent, charter) {
                Allowed::Transactions => {}
                Allowed::Empty => survey = Survey { arrivals: survey.arrivals, ..Survey::default() },
                Allowed::Nothing => {
                    self.mempool.wait_on_thread(survey.arrivals, STOP_POLL);
                    continue;
                }
            }
            let now = (self.clock)();
            match when_to_cut(&survey, &charter.block, began, now, false) {
                Cut::Now => return true,
                Cut::At(time) => self.mempool.wait_on_thread(survey.arrivals, time - now),
            }
        }
    }

    fn deliver(&self, mut delivery: Delivery) -> bool {
        loop {
            match self.sender.send_timeout(delivery, STOP_POLL) {
                Ok(()) => return true,
                Err(crossbeam_channel::SendTimeoutError::Timeout(back)) if !self.mempool.is_closed() => {
                    delivery = back;
                }
                Err(_) => return false,
            }
        }
    }
}

impl Solo {
    fn put(&self, transactions: Vec<Bytes>, placing: Placing) -> Vec<Result<TransactionId, SubmitError>> {
        let charters = self.charters();
        let height = self.height.load(Atomic::Relaxed) + 1;
        let place = Place { charters: &charters, height };
        self.mempool.submit(&*self.admission, place, (transactions, placing, Source::Client))
    }
}

impl Ordering for Solo {
    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.put(transactions, Placing::InOneBlock)
    }

    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.put(transactions, Placing::Anywhere)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, _: u64) {}

    /// Nothing is stored here that could be left out.
    fn skip_to(&self, _: &BlockHeader, _: &[u8]) -> Result<(), CertificateError> {
        Ok(())
    }

    fn status(&self) -> OrderingStatus {
        let level = self.mempool.level();
        let height = self.height.load(Atomic::Relaxed);
        OrderingStatus {
            pending_transactions: level.transactions,
            pending_bytes: level.bytes,
            final_height: height,
            view: height,
            connected_peers: 0,
        }
    }

    fn stop(&self) {
        self.mempool.close();
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the solo ordering service panicked");
        }
    }
}

impl CertifyOutcomes for Solo {
    fn certify(&self, certificate: OutcomeCertificate) {
        self.certificates.certify(certificate);
        self.mempool.wake_thread();
    }

    fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        self.certificates.certify_checkpoint(certificate);
    }

    fn decided(&self, charters: Charters) {
        self.certificates.decide(charters);
    }

    fn charters(&self) -> Charters {
        self.charters.lock().clone()
    }

    fn follow(&self, charters: &Charters) {
        let mut known = self.charters.lock();
        if known.reigns().len() < charters.reigns().len() {
            *known = charters.clone();
        }
    }
}

impl ExchangeMessages for Solo {
    fn broadcast(&self, _: Bytes) {}

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        &self.messages
    }

    fn tell(&self, _: u16, _: Bytes) {}

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        // Nobody else is there.
        &self.messages
    }
}

impl Drop for Solo {
    fn drop(&mut self) {
        self.stop();
    }
}
