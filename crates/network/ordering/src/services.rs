//! What a node needs of the network, in three traits: whoever needs one takes one.
//!
//! | trait | what it does | who gives it |
//! | --- | --- | --- |
//! | [`Ordering`] | bytes in, final blocks out | every service |
//! | [`CertifyOutcomes`] | puts into blocks what the members agree on beside their order | services whose members do not trust one another |
//! | [`ExchangeMessages`] | carries what the members' nodes say to one another | the same, as they have a network already |
//!
//! [`crate::bft`], [`crate::raft`], [`crate::kafka`] and [`crate::solo`] give all three. A service that orders only leaves the other two
//! to somebody else, and [`Services`] is put together of several parts where the node opens.

use crate::{CertificateError, Delivery, OrderingError, SubmitError};
use bytes::Bytes;
use crossbeam_channel::Receiver;
use std::ops::RangeInclusive;
use std::sync::Arc;
use types::{BlockHeader, Charters, CheckpointCertificate, OutcomeCertificate, TransactionId};

/// Bytes of a message between members' nodes: [`ExchangeMessages::broadcast`].
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// A service that puts transactions into an order that all nodes share.
pub trait Ordering: Send + Sync {
    /// Puts transactions into this node's mempool. A verdict per transaction, at once; a transaction that waits there
    /// already or was delivered a moment ago counts as accepted. Takes the time that verifying signatures takes, but
    /// never waits for room.
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>>;

    /// The same for transactions that say something of one another, so that each needs the others: they stand in one block, in this
    /// order. None is taken where they do not fit into one, or there is no room for all.
    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>>;

    /// Final blocks in height order, at least once. The channel is bounded; it disconnects when the service ends,
    /// whether stopped or failed.
    fn deliveries(&self) -> &Receiver<Delivery>;

    /// The node has made every block up to `height` durable; the service will not deliver those again after a
    /// restart. A service stops delivering when too many blocks are not acknowledged.
    fn acknowledge(&self, height: u64);

    /// The node has the state behind this block from elsewhere: blocks up to there, which it does not have, are neither
    /// fetched nor delivered. Nothing happens where ordering is beyond that already. Durable some time later: a node that
    /// starts says it again. The charters that hold there must be known: [`CertifyOutcomes::follow`].
    ///
    /// # Errors
    /// The certificate does not prove the block to be final, or only by a later one
    /// ([`CertificateVerifier::verify_own`](crate::CertificateVerifier::verify_own)).
    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError>;

    /// A final block that this node's ordering still stores, to heal a ledger that lost its tail. Reads from disk:
    /// call it from synchronous threads only. By default nothing is stored.
    fn read(&self, _height: u64) -> Option<Delivery> {
        None
    }

    /// The node's ledger has given up the payloads of the blocks below this height: they are durable, certified, and below
    /// checkpoints that members can join from. So the service need not store them either, and nobody gets them from this node
    /// any more. A service keeps some of the newest whatever it is told, and removes whole files only. It removes nothing
    /// where it was not started as that of a node that prunes. Returns at once; a node that starts says it again. By default
    /// nothing happens: nothing is stored.
    fn forget_below(&self, _height: u64) {}

    /// Final blocks that this node needs next and that no member that answers has given it for a while: who prunes has
    /// forgotten them. What makes up for them is a checkpoint behind them ([`Ordering::skip_to`]), or a member that is away and
    /// keeps all blocks. By default nothing is known of any.
    fn unobtainable(&self) -> Option<RangeInclusive<u64>> {
        None
    }

    /// How the service is doing.
    fn status(&self) -> OrderingStatus;

    /// What keeps the service from ordering now and may pass, in words for whoever runs the node. By default nothing does.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Why the service has ended by itself, where it knows more than its log. By default it does not.
    fn failure(&self) -> Option<OrderingError> {
        None
    }

    /// Positions in the charter of the other members that were heard from within the last seconds, over connections on which each
    /// has proved its node key. By default there are none.
    fn connected(&self) -> Vec<u16> {
        Vec::new()
    }

    /// The service's own metrics as Prometheus text. By default it has none.
    fn metrics(&self) -> String {
        String::new()
    }

    /// Ends the service in good order and waits for its threads. What waits in the mempool is forgotten.
    fn stop(&self);
}

/// Takes what the members have agreed on beside the order of transactions, and puts it into blocks: certificates of what
/// blocks came to, and the amended charters that these name.
pub trait CertifyOutcomes: Send + Sync {
    /// This node's next block carries the certificate, if no block before carries as new a one. The node has checked
    /// it.
    fn certify(&self, certificate: OutcomeCertificate);

    /// This node's next block carries the certificate, if no block before is known to. The node has checked it.
    fn certify_checkpoint(&self, certificate: CheckpointCertificate);

    /// What this node's state has decided on after the last block that it has executed, whether that is certified or not.
    /// Called before [`CertifyOutcomes::certify`] with a certificate that names more charters than before.
    fn decided(&self, charters: Charters);

    /// The charters that final blocks have named so far, or certificates: what holds at the heights to come.
    fn charters(&self) -> Charters;

    /// Takes charters that are proved otherwise than by blocks which this service has, if they are more than those that it
    /// knows: what came with a checkpoint.
    fn follow(&self, charters: &Charters);
}

/// Carries what the members' nodes say to one another. Every sender is authenticated; nothing is stored, and whatever finds
/// no room or nobody is lost: whoever needs an answer asks again.
pub trait ExchangeMessages: Send + Sync {
    /// Sends a message of at most [`MESSAGE_BYTES_MAX`] to the nodes of all other members. Never waits: what finds no
    /// room, and what somebody who is not connected should have heard, is lost.
    fn broadcast(&self, message: Bytes);

    /// What other members' nodes have broadcast, each with the position of its sender in the charter, who is
    /// authenticated. The channel is bounded; what finds no room is lost.
    fn messages(&self) -> &Receiver<(u16, Bytes)>;

    /// Sends a message of at most [`MESSAGE_BYTES_MAX`] to the node of one member, on a channel of its own. Never waits: what
    /// finds no room, and what somebody who is not connected should have heard, is lost.
    fn tell(&self, member: u16, message: Bytes);

    /// What other members' nodes have told this one with [`ExchangeMessages::tell`], as [`ExchangeMessages::messages`].
    fn told(&self) -> &Receiver<(u16, Bytes)>;
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

/// What a node is given of the network: of one service or of several.
#[derive(Clone)]
pub struct Services {
    /// Orders transactions.
    pub ordering: Arc<dyn Ordering>,
    /// Puts into blocks what members agree on.
    pub certifying: Arc<dyn CertifyOutcomes>,
    /// Carries messages between members' nodes.
    pub messages: Arc<dyn ExchangeMessages>,
}

impl Services {
    /// All three of one service.
    pub fn of<S: Ordering + CertifyOutcomes + ExchangeMessages + 'static>(service: Arc<S>) -> Services {
        Services { ordering: service.clone(), certifying: service.clone(), messages: service }
    }
}
