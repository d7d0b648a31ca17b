//! Ordering: one trait, [`Ordering`], and two services behind it.
//!
//! ```text
//!   transactions ──submit──▶ mempool ─▶ proposer ─▶ block ─▶ agreement ─▶ deliveries ──▶ the node's pipeline
//!                                          ▲                     │            │                    │
//!                              admission ──┴── checks ───────────┘       certificate        acknowledge(height)
//! ```
//!
//! - [`solo`]: a network of one. Blocks straight from the mempool; nothing is stored, the node's ledger is the memory.
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
//! What blocks come to, the members' nodes agree on beside ordering, with messages that ordering carries for them
//! ([`Ordering::broadcast`]). The certificates of that ([`Ordering::certify`]) stand in later blocks, and ordering waits
//! for them: a block with transactions is at most `outcome_lag_blocks` above what is certified in it or before it.
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
mod cutting;
mod error;
mod mempool;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod solo;

pub use certificate::{CertificateVerifier, verify_certificate};
pub use certify::CertificateSigner;
pub use error::{CertificateError, OrderingError, SubmitError};
pub use mempool::MempoolLimits;

use bytes::Bytes;
use types::{
    Block, BlockHeader, Charters, CheckpointCertificate, OutcomeCertificate, Place, RejectReason,
    TransactionId,
};

/// Bytes of a message between members' nodes: [`Ordering::broadcast`].
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

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

/// How a service is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OrderingStatus {
    /// Transactions that wait in this node's mempool.
    pub pending_transactions: usize,
    /// Their bytes.
    pub pending_bytes: usize,
    /// The highest height known to be final; what is delivered may lag behind.
    pub final_height: u64,
    /// Round of the agreement in which that block became final (`solo`: the height).
    pub view: u64,
    /// Other members heard from within the last seconds.
    pub connected_peers: usize,
}

/// A service that puts transactions into an order that all nodes share.
pub trait Ordering: Send + Sync {
    /// Puts transactions into this node's mempool. A verdict per transaction, at once; a transaction that waits there
    /// already or was delivered a moment ago counts as accepted. Takes the time that verifying signatures takes, but
    /// never waits for room.
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>>;

    /// Final blocks in height order, at least once. The channel is bounded; it disconnects when the service ends,
    /// whether stopped or failed.
    fn deliveries(&self) -> &crossbeam_channel::Receiver<Delivery>;

    /// The node has made every block up to `height` durable; the service will not deliver those again after a
    /// restart. A service stops delivering when too many blocks are not acknowledged.
    fn acknowledge(&self, height: u64);

    /// Sends a message of at most [`MESSAGE_BYTES_MAX`] to the nodes of all other members. Never waits: what finds no
    /// room, and what somebody who is not connected should have heard, is lost.
    fn broadcast(&self, message: Bytes);

    /// What other members' nodes have broadcast, each with the position of its sender in the charter, who is
    /// authenticated. The channel is bounded; what finds no room is lost.
    fn messages(&self) -> &crossbeam_channel::Receiver<(u16, Bytes)>;

    /// Sends a message of at most [`MESSAGE_BYTES_MAX`] to the node of one member, on a channel of its own. Never waits: what
    /// finds no room, and what somebody who is not connected should have heard, is lost.
    fn tell(&self, member: u16, message: Bytes);

    /// What other members' nodes have told this one with [`Ordering::tell`], as [`Ordering::messages`].
    fn told(&self) -> &crossbeam_channel::Receiver<(u16, Bytes)>;

    /// The node has the state behind this block from elsewhere: blocks up to there, which it does not have, are neither
    /// fetched nor delivered. Nothing happens where ordering is beyond that already. Durable some time later: a node that
    /// starts says it again. The charters that hold there must be known: [`Ordering::follow`].
    ///
    /// # Errors
    /// The certificate does not prove the block to be final, or only by a later one ([`CertificateVerifier::verify_own`]).
    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError>;

    /// Takes charters that are proved otherwise than by blocks which this service has, if they are more than those that it
    /// knows: what came with a checkpoint.
    fn follow(&self, charters: &Charters);

    /// What this node's state has decided on after the last block that it has executed, whether that is certified or not.
    /// Called before [`Ordering::certify`] with a certificate that names more charters than before.
    fn decided(&self, charters: Charters);

    /// The charters that final blocks have named so far, or certificates: what holds at the heights to come.
    fn charters(&self) -> Charters;

    /// This node's next block carries the certificate, if no block before carries as new a one. The node has checked
    /// it.
    fn certify(&self, certificate: OutcomeCertificate);

    /// This node's next block carries the certificate, if no block before is known to. The node has checked it.
    fn certify_checkpoint(&self, certificate: CheckpointCertificate);

    /// A final block that this node's ordering still stores, to heal a ledger that lost its tail. Reads from disk:
    /// call it from synchronous threads only.
    fn read(&self, height: u64) -> Option<Delivery>;

    /// How the service is doing.
    fn status(&self) -> OrderingStatus;

    /// The service's own metrics as Prometheus text, empty if it has none.
    fn metrics(&self) -> String;

    /// Ends the service in good order and waits for its threads. What waits in the mempool is forgotten.
    fn stop(&self);
}
