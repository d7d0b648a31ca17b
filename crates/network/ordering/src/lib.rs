//! Ordering: bytes in, final blocks out, and what the members' nodes need beside that, in three narrow traits: [`Ordering`],
//! [`CertifyOutcomes`] and [`ExchangeMessages`]. Four services give all of them.
//!
//! ```text
//!   transactions ──submit──▶ mempool ─▶ proposer ─▶ block ─▶ agreement ─▶ deliveries ──▶ the node's pipeline
//!                                          ▲                     │            │                    │
//!                              admission ──┴── checks ───────────┘       certificate        acknowledge(height)
//! ```
//!
//! - [`solo`]: a network of one. Blocks straight from the mempool; nothing is stored, the node's ledger is the memory.
//! - [`raft`]: members that trust whoever leads with the order, by the `raft` crate.
//! - [`kafka`]: members that trust whoever runs brokers with the order; every node cuts the same blocks from a topic.
//! - [`bft`]: n organisations of which ⌊(n − 1)/3⌋ may do anything, on the `commonware` crates, which nothing outside
//!   this crate sees.
//!
//! A transaction may enter at any node and is proposed when that node leads. What ordering must know about
//! transactions (who may submit what) the node tells it through [`Admission`]; it never looks into them itself.
//!
//! Blocks come out in height order, at least once, each with a certificate: bytes that prove to anybody who has the
//! charter that the block is final ([`verify_certificate`]). The consumer is a synchronous thread; it acknowledges a
//! height when it has made everything up to there durable.
//!
//! What blocks come to, the members' nodes agree on beside ordering, with messages that are carried for them
//! ([`ExchangeMessages::broadcast`]). The certificates of that ([`CertifyOutcomes::certify`]) stand in later blocks, and
//! ordering waits for them: a block with transactions is at most `outcome_lag_blocks` above what is certified in it or before it.
//!
//! Members, keys and parameters change while the network runs: a block carries the amended charters that are certified
//! before it, and from their heights on these hold ([`types::Charters`]). Every version of the charter has its own
//! consensus, in which the members of that version vote.
//!
//! With the feature `simulation`, four nodes run in one process from a seed, with crashes, loss, partitions and an
//! adversary: module `simulation`.

pub mod bft;
mod certificate;
mod certificates;
mod certify;
mod computation;
mod cutting;
mod error;
mod judging;
pub mod kafka;
mod lacking;
mod members;
mod mempool;
pub mod raft;
mod running;
mod services;
#[cfg(feature = "simulation")]
pub mod simulation;
mod sink;
pub mod solo;

pub use certificate::{CertificateVerifier, verify_certificate};
pub use certify::CertificateSigner;
pub use error::{CertificateError, OrderingError, SubmitError};
pub use members::folder::check_votes;
pub use members::proving::{Proving, prove_members};
pub use mempool::MempoolLimits;
pub use services::{
    CertifyOutcomes, ExchangeMessages, MESSAGE_BYTES_MAX, Ordering, OrderingStatus, Services,
};

use bytes::Bytes;
use types::{Block, Place, RejectReason, TransactionId};

/// What ordering must know about transactions. The node implements it; ordering calls it from its own threads.
///
/// The verdict must depend on nothing but the bytes and the charters up to the block's height: a node that refuses what
/// others accept cannot follow the network.
pub trait Admission: Send + Sync + 'static {
    /// A verdict per transaction that is to stand at a place, in their order: its id if it decodes, belongs to this ledger and
    /// carries the right signature and credential; else why it must not stand there.
    ///
    /// Implementations verify signatures in batches on all cores and remember positive verdicts: each transaction is
    /// asked about two or three times.
    fn check(&self, place: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>>;

    /// What this node, as proposer, makes of the transactions that are next, which all passed [`Admission::check`]. Nobody
    /// else has to find the same; whatever comes of it, the others judge the block as any other. By default all of them go
    /// in as they came.
    fn arrange(&self, transactions: &[Bytes]) -> Arrangement {
        Arrangement::all(transactions.len())
    }

    /// Whether [`Admission::arrange`] may drop transactions of this node's clients, who are told at once: then nobody else may
    /// have these, or one of them could take effect after all. By default it does not.
    fn may_drop(&self) -> bool {
        false
    }
}

/// A proposer's choice among the transactions that are next, by position. Those that it does not name wait on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arrangement {
    /// Which go into the block, in which order.
    pub order: Vec<u32>,
    /// Which leave the mempool without being ordered. The node has told their clients.
    pub dropped: Vec<u32>,
}

impl Arrangement {
    /// So many transactions as they came.
    pub fn all(transactions: usize) -> Arrangement {
        Arrangement { order: (0..transactions as u32).collect(), dropped: Vec::new() }
    }
}

/// A final block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The block.
    pub block: Block,
    /// Proves that it is final: [`verify_certificate`].
    pub certificate: Bytes,
}
