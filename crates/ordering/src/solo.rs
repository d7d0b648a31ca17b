//! A network of one: blocks straight from the mempool, stored nowhere. The node's ledger is the memory; on a restart
//! the service continues where that ends.

use crate::certificate::{Certificate, solo_message};
use crate::certificates::Certificates;
use crate::cutting::{Cut, Parent, assemble, when_to_cut};
use crate::mempool::{Clock, Mempool, Survey};
use crate::{Admission, Delivery, MempoolLimits, Ordering, OrderingError, OrderingStatus, SubmitError};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use crypto::SecretKey;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use types::{BlockHeader, Charter, CheckpointCertificate, OutcomeCertificate, TransactionId};

/// Blocks that wait for the consumer.
const DELIVERIES_MAX: usize = 4;

/// How often a thread that waits for the consumer looks whether it should stop.
const STOP_POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// What [`start`] needs.
pub struct SoloConfig {
    /// The ledger's charter.
    pub charter: Arc<Charter>,
    /// Signs the certificates: the node key of the charter's only organisation.
    pub node_key: SecretKey,
    /// Header of the last block in the node's ledger; `None` for an empty one.
    pub last: Option<BlockHeader>,
    /// How much may wait.
    pub mempool: MempoolLimits,
}

struct Solo {
    admission: Arc<dyn Admission>,
    mempool: Arc<Mempool>,
    height: Arc<AtomicU64>,
    deliveries: Receiver<Delivery>,
    certificates: Arc<Certificates>,
    /// Nobody is there to send any.
    messages: Receiver<(u16, Bytes)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Starts the service; the first block it delivers follows `last`.
///
/// # Errors
/// [`OrderingError`] where charter or key do not fit.
pub fn start(config: SoloConfig, admission: Arc<dyn Admission>) -> Result<Arc<dyn Ordering>, OrderingError> {
    let SoloConfig { charter, node_key, last, mempool } = config;
    if charter.ordering != "solo" {
        return Err(OrderingError::OtherService { expected: "solo", found: charter.ordering.clone() });
    }
    let no_member = OrderingError::NoSuchOrganisation { organisation: 0, members: 0 };
    let member = charter.organisations.first().ok_or(no_member)?;
    if member.node_key != node_key.public_key() {
        return Err(OrderingError::WrongKey {
            organisation: member.name.clone(),
            expected: member.node_key,
            found: node_key.public_key(),
        });
    }
    let parent = last.as_ref().map_or_else(|| Parent::charter(charter.ledger()), Parent::block);
    let began = Instant::now();
    let clock: Clock = Arc::new(move || began.elapsed());
    let mempool = Arc::new(Mempool::new(mempool, clock.clone()));
    let height = Arc::new(AtomicU64::new(parent.height));
    let (sender, deliveries) = crossbeam_channel::bounded(DELIVERIES_MAX);
    let certificates = Arc::new(Certificates::default());
    let cutter = Cutter {
        certificates: certificates.clone(),
        admission: admission.clone(),
        charter,
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
    Ok(Arc::new(Solo { admission, mempool, height, deliveries, certificates, messages, thread }))
}

struct Cutter {
    admission: Arc<dyn Admission>,
    charter: Arc<Charter>,
    node_key: SecretKey,
    mempool: Arc<Mempool>,
    certificates: Arc<Certificates>,
    clock: Clock,
    height: Arc<AtomicU64>,
    sender: Sender<Delivery>,
}

impl Cutter {
    fn run(self, mut parent: Parent) {
        let ledger = self.charter.ledger();
        let nothing = FxHashSet::default();
        while self.wait_for_work(&parent, &nothing) {
            let attested = self.certificates.for_child_of(&parent);
            let (ids, transactions) = match self.allows_transactions(&parent) {
                true => self.mempool.take(&*self.admission, &self.charter.block, &nothing),
                false => Default::default(),
            };
            let clock_ms =
                SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
            let block = assemble(ledger, &parent, 0, clock_ms, attested, transactions);
            self.certificates.carried(&block.attested);
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

    fn allows_transactions(&self, parent: &Parent) -> bool {
        self.certificates.allow_transactions(parent, self.charter.outcome_lag_blocks)
    }

    /// Waits until a block is due; `false` when the service stops.
    fn wait_for_work(&self, parent: &Parent, nothing: &FxHashSet<TransactionId>) -> bool {
        let began = (self.clock)();
        loop {
            if self.mempool.is_closed() {
                return false;
            }
            let mut survey = self.mempool.survey(&self.charter.block, nothing);
            if !self.allows_transactions(parent) {
                survey = Survey { arrivals: survey.arrivals, ..Survey::default() };
            }
            let now = (self.clock)();
            match when_to_cut(&survey, &self.charter.block, began, now, false) {
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

impl Ordering for Solo {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.mempool.submit(&*self.admission, transactions)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, _: u64) {}

    fn broadcast(&self, _: Bytes) {}

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        &self.messages
    }

    fn certify(&self, certificate: OutcomeCertificate) {
        self.certificates.certify(certificate);
        self.mempool.wake_thread();
    }

    fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        self.certificates.certify_checkpoint(certificate);
    }

    fn read(&self, _: u64) -> Option<Delivery> {
        None
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

    fn metrics(&self) -> String {
        String::new()
    }

    fn stop(&self) {
        self.mempool.close();
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the solo ordering service panicked");
        }
    }
}

impl Drop for Solo {
    fn drop(&mut self) {
        self.stop();
    }
}
