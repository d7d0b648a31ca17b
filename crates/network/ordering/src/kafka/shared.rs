//! What the parts of one node share.

use super::backfill::Asking;
use crate::cutting::Parent;
use crate::members::{Heard, Members};
use crate::mempool::{Clock, Mempool, Placing, Source};
use crate::{Admission, CertificateError, MempoolLimits, SubmitError};
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use parking_lot::{Condvar, Mutex};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Atomic};
use std::time::{Duration, Instant};
use types::{BlockHeader, Charters, TransactionId};

/// How far this node has read the topic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tip {
    /// The last block.
    pub parent: Parent,
    /// The offset of the next record.
    pub next: u64,
    /// Up to where outcomes are certified, with what the next block carries so far.
    pub certified: u64,
    /// Transactions that the next block has so far.
    pub drafted: usize,
    /// Whose record brought the first of them.
    pub first: Option<u16>,
    /// When the first and the last of them came here.
    pub drafted_since: [Duration; 2],
    /// When the last block was cut here.
    pub cut_at: Duration,
    /// Whether there was nothing more to read at some time.
    pub has_caught_up: bool,
}

/// What this node has offered and has not seen in a block.
#[derive(Default)]
pub(super) struct Offered {
    /// All transactions of these records, but for those that are to be offered again.
    pub ids: FxHashSet<TransactionId>,
    /// By what names a record's transactions.
    pub records: FxHashMap<Digest, Vec<TransactionId>>,
    /// Records that brokers have acknowledged, by offset.
    pub acknowledged: BTreeMap<u64, Digest>,
}

impl Offered {
    /// A record's transactions are to be offered again.
    pub(super) fn release(&mut self, content: &Digest) -> Vec<TransactionId> {
        let ids = self.records.remove(content).unwrap_or_default();
        for id in &ids {
            self.ids.remove(id);
        }
        ids
    }

    /// Records before this offset are judged: what of them is still here was not.
    pub(super) fn judged_up_to(&mut self, next: u64) {
        while let Some(first) = self.acknowledged.first_entry().filter(|first| *first.key() < next) {
            let content = first.remove();
            self.release(&content);
        }
    }
}

/// What reading, offering and the service share.
pub(super) struct Shared {
    pub ledger: Digest,
    pub key: SecretKey,
    pub members: Members,
    pub mempool: Arc<Mempool>,
    pub admission: Arc<dyn Admission>,
    pub clock: Clock,
    tip: Mutex<Tip>,
    pub offered: Mutex<Offered>,
    /// Up to which height the node has made blocks durable.
    acknowledged: Mutex<u64>,
    acknowledgement: Condvar,
    /// Blocks up to this one are not needed, and the next one begins at this offset.
    pub skip: Mutex<Option<(Box<BlockHeader>, super::Proof)>>,
    /// Asks other members for blocks.
    pub asking: Asking,
    /// What keeps this node from ordering now, in words.
    pub trouble: Mutex<Option<String>>,
    /// Records that are in no block, by reason.
    pub dropped: Mutex<BTreeMap<&'static str, u64>>,
    pub records_read: AtomicU64,
    pub records_offered: AtomicU64,
    pub heard: Heard,
    stopped: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        charters: Charters,
        key: &SecretKey,
        limits: MempoolLimits,
        admission: Arc<dyn Admission>,
        asking: Asking,
    ) -> Arc<Shared> {
        let began = Instant::now();
        let clock: Clock = Arc::new(move || began.elapsed());
        let parent = Parent::charter(charters.ledger());
        let tip = Tip {
            parent,
            next: 0,
            certified: 0,
            drafted: 0,
            first: None,
            drafted_since: [Duration::ZERO; 2],
            cut_at: Duration::ZERO,
            has_caught_up: false,
        };
        Arc::new(Shared {
            ledger: charters.ledger(),
            key: key.clone(),
            members: Members::new(charters, key),
            mempool: Arc::new(Mempool::new(limits, clock.clone())),
            admission,
            clock,
            tip: Mutex::new(tip),
            offered: Mutex::default(),
            acknowledged: Mutex::new(0),
            acknowledgement: Condvar::new(),
            skip: Mutex::new(None),
            asking,
            trouble: Mutex::new(None),
            dropped: Mutex::default(),
            records_read: AtomicU64::new(0),
            records_offered: AtomicU64::new(0),
            heard: Heard::default(),
            stopped: AtomicBool::new(false),
        })
    }

    pub(super) fn tip(&self) -> Tip {
        *self.tip.lock()
    }

    /// This node is so far.
    pub(super) fn publish(&self, change: impl FnOnce(&mut Tip)) {
        change(&mut self.tip.lock());
    }

    pub(super) fn now(&self) -> Duration {
        (self.clock)()
    }

    pub(super) fn height(&self) -> u64 {
        self.tip.lock().parent.height
    }

    pub(super) fn acknowledge(&self, height: u64) {
        let mut acknowledged = self.acknowledged.lock();
        *acknowledged = height.max(*acknowledged);
        self.acknowledgement.notify_all();
    }

    pub(super) fn acknowledged(&self) -> u64 {
        *self.acknowledged.lock()
    }

    /// Waits for the node to make more durable, for so long at most.
    pub(super) fn wait_for_acknowledgement(&self, wait: Duration) {
        self.acknowledgement.wait_for(&mut self.acknowledged.lock(), wait);
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Atomic::Release);
        self.mempool.close();
        self.acknowledgement.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Atomic::Acquire)
    }

    /// Says what keeps this node from ordering, once, or that nothing does.
    pub(super) fn say(&self, trouble: Option<String>) {
        let mut known = self.trouble.lock();
        match &trouble {
            Some(what) if known.as_ref() != Some(what) => tracing::warn!("{what}"),
            None if known.is_some() => tracing::info!("the topic is read and written again"),
            _ => {}
        }
        *known = trouble;
    }

    /// Transactions for this node's mempool, where it is a member's.
    pub(super) fn put(
        &self,
        transactions: Vec<Bytes>,
        placing: Placing,
    ) -> Vec<Result<TransactionId, SubmitError>> {
        let pool = (&*self.mempool, &*self.admission);
        self.members.submit(pool, self.height() + 1, (transactions, placing, Source::Client))
    }

    /// What a certificate that is checked says of the topic.
    pub(super) fn proof_of(certificate: &[u8]) -> Result<super::Proof, CertificateError> {
        match types::decode_exactly::<crate::certificate::Certificate>(certificate) {
            Ok(crate::certificate::Certificate::Kafka(proof)) => Ok(proof),
            _ => Err(CertificateError::Malformed {
                ordering: "kafka".to_string(),
                reason: "it says nothing of a topic".to_string(),
            }),
        }
    }
}
