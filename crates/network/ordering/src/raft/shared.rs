//! What the parts of one member share.

use super::window::Position;
use crate::cutting::Parent;
use crate::lacking::Lacking;
use crate::members::{Heard, Members};
use crate::mempool::{Clock, Mempool, Placing, Source};
use crate::{Admission, MempoolLimits, SubmitError};
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use types::{BlockHeader, Charters, TransactionId};

/// How far this node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tip {
    /// The last block.
    pub parent: Parent,
    /// The last entry of the log that has been judged.
    pub position: Position,
    /// Whether the last block stands in this node's log, up to that entry.
    pub is_logged: bool,
    /// How many feeds it has taken.
    pub feeds: u64,
}

/// What judging, offering and the service share.
pub(crate) struct Shared {
    pub ledger: Digest,
    pub key: SecretKey,
    pub members: Members,
    pub mempool: Arc<Mempool>,
    pub admission: Arc<dyn Admission>,
    /// For waiting. It never goes back.
    pub clock: Clock,
    /// For the time of blocks, since 1970: the machine's.
    pub wall_clock: Clock,
    /// How far this node is.
    pub(super) tip: watch::Sender<Tip>,
    /// Up to which height the node has made blocks durable.
    pub acknowledged: AtomicU64,
    /// Says that it has.
    pub acknowledgement: Notify,
    /// The node's ledger has given up the payloads below this height.
    pub forget_below: AtomicU64,
    /// Final blocks that have not come.
    pub(super) lacking: Lacking,
    /// Blocks up to this one are not needed.
    pub(super) skip: Mutex<Option<Box<BlockHeader>>>,
    /// Entries that turned out to be no block, until the log has taken note.
    pub(super) dropped: Mutex<Vec<u64>>,
    /// Why nothing is judged any more.
    pub(super) failed: Mutex<Option<String>>,
    /// The group's term.
    pub term: AtomicU64,
    pub heard: Heard,
}

impl Shared {
    pub(crate) fn new(
        charters: Charters,
        key: &SecretKey,
        limits: MempoolLimits,
        [clock, wall_clock]: [Clock; 2],
        admission: Arc<dyn Admission>,
        last: Option<&BlockHeader>,
    ) -> Arc<Shared> {
        let parent = last.map_or_else(|| Parent::charter(charters.ledger()), Parent::block);
        Arc::new(Shared {
            ledger: charters.ledger(),
            key: key.clone(),
            members: Members::new(charters, key),
            mempool: Arc::new(Mempool::new(limits, clock.clone())),
            admission,
            clock,
            wall_clock,
            tip: watch::Sender::new(Tip {
                parent,
                position: Position::default(),
                is_logged: false,
                feeds: 0,
            }),
            acknowledged: AtomicU64::new(parent.height),
            acknowledgement: Notify::new(),
            forget_below: AtomicU64::new(0),
            lacking: Lacking::default(),
            skip: Mutex::new(None),
            dropped: Mutex::default(),
            failed: Mutex::new(None),
            term: AtomicU64::new(0),
            heard: Heard::default(),
        })
    }

    /// This node is so far.
    pub(super) fn publish(&self, tip: Tip) {
        self.lacking.have(tip.parent.height, self.now());
        self.tip.send_replace(tip);
    }

    pub(super) fn height(&self) -> u64 {
        self.tip.borrow().parent.height
    }

    pub(super) fn now(&self) -> Duration {
        (self.clock)()
    }

    pub(super) fn hear(&self, member: usize) {
        self.heard.hear(member, self.now());
    }

    /// Transactions for this node's mempool, where it is a member's.
    pub(super) fn put(
        &self,
        transactions: Vec<Bytes>,
        placing: Placing,
        source: Source,
    ) -> Vec<Result<TransactionId, SubmitError>> {
        let pool = (&*self.mempool, &*self.admission);
        self.members.submit(pool, self.height() + 1, (transactions, placing, source))
    }
}
