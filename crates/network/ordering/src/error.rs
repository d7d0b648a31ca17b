//! What can go wrong, in words for whoever has to act on it.

use crypto::{Digest, PublicKey};
use std::net::SocketAddr;
use std::path::PathBuf;
use types::RejectReason;

/// Why an ordering service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OrderingError {
    /// A network of one that has none.
    #[error("the charter has no members; `ordering = \"solo\"` needs one")]
    NoMembers,
    /// The node's key is not the one in the charter.
    #[error(
        "the charter names node key {expected} for organisation {organisation}, this node has {found}; use that organisation's key file"
    )]
    WrongKey {
        /// Whose key it should be.
        organisation: String,
        /// The key in the charter.
        expected: PublicKey,
        /// The key of this node.
        found: PublicKey,
    },
    /// The charter orders in another way.
    #[error("the charter says `ordering = \"{found}\"`, this service is for `{expected}`")]
    OtherService {
        /// What this service is.
        expected: &'static str,
        /// What the charter says.
        found: String,
    },
    /// A key or an address in the charter cannot be used.
    #[error("organisation {organisation} of the charter: {what}")]
    Member {
        /// Whose.
        organisation: String,
        /// What is wrong with it.
        what: String,
    },
    /// Another process listens there.
    #[error("port {} on {} is in use by another process; stop it or change this node's listen address", .0.port(), .0.ip())]
    PortBusy(SocketAddr),
    /// The address cannot be listened on for another reason.
    #[error("cannot listen on {address} for the other organisations: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        reason: String,
    },
    /// The folder cannot be used.
    #[error("cannot use {path} for the ordering service's votes and blocks: {reason}")]
    Storage {
        /// The folder.
        path: PathBuf,
        /// What the operating system says.
        reason: String,
    },
    /// The folder belongs to another network or member.
    #[error("{path} belongs to {found}, not to {expected}; give this node its own folder")]
    OtherNode {
        /// The folder.
        path: PathBuf,
        /// What this node is.
        expected: String,
        /// What the folder says.
        found: String,
    },
    /// The record of this node's votes is gone.
    #[error(
        "this node has voted before (its ledger stands at height {height}), but {path} has no record of its votes; without it the node could vote twice: restore the folder, or give the organisation a new node key"
    )]
    VotesLost {
        /// The folder.
        path: PathBuf,
        /// Height of the node's ledger.
        height: u64,
    },
    /// Somebody else has voted with this node's key.
    #[error(
        "somebody else votes with this node's key ({found}), or the folder of its votes was rolled back: the node does not vote. Find \
         and stop the other node, and give the organisation a new node key (`SELECT entente.replace_node_key(…)`); if no other node \
         has the key any more, remove {path} and start this one again"
    )]
    OtherVoter {
        /// The file that says so.
        path: PathBuf,
        /// What contradicts what.
        found: String,
    },
    /// The topic is not as it has to be, or not this ledger's.
    #[error("topic {topic}: expected {expected}, found {found}; {remedy}")]
    Topic {
        /// Its name.
        topic: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
        /// What to do.
        remedy: String,
    },
    /// The node's settings do not say where the brokers are, or something else that a topic needs.
    #[error("the charter says `ordering = \"kafka\"`: {0}")]
    Settings(String),
    /// The service's own threads ended.
    #[error("the ordering service ended while it started: {0}")]
    Ended(String),
}

/// Why a transaction did not get into the mempool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Too many transactions wait.
    #[error("the node is full: {pending} transactions wait, the limit is {limit}; submit again later")]
    Full {
        /// How many wait.
        pending: usize,
        /// How many may.
        limit: usize,
    },
    /// Too many bytes wait.
    #[error(
        "the node is full: transactions of {pending} bytes wait, the limit is {limit}; submit again later"
    )]
    FullBytes {
        /// How many bytes wait.
        pending: usize,
        /// How many may.
        limit: usize,
    },
    /// What must stand in one block does not fit into one.
    #[error(
        "{transactions} transactions of {bytes} bytes belong together, and a block takes {transactions_max} of {bytes_max} bytes \
         (block.transactions_max, block.bytes_max); submit fewer together"
    )]
    TooManyTogether {
        /// How many there are.
        transactions: usize,
        /// Their bytes in a block.
        bytes: usize,
        /// How many a block takes.
        transactions_max: u32,
        /// How many bytes a block takes.
        bytes_max: u32,
    },
    /// It is wrong for ever.
    #[error("the transaction is refused: {0:?}")]
    Rejected(RejectReason),
    /// Nobody would order it.
    #[error(
        "this node's key is that of no member at height {height}, so it orders nothing; submit through another node"
    )]
    NoMember {
        /// Height of the next block.
        height: u64,
    },
    /// The service has been stopped.
    #[error("the ordering service has stopped; submit through another node")]
    Stopped,
}

/// Why bytes do not prove that a block is final.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not the encoding of a certificate of this ledger's ordering service.
    #[error("expected the encoding of a certificate for `ordering = \"{ordering}\"`: {reason}")]
    Malformed {
        /// The ledger's ordering service.
        ordering: String,
        /// What does not decode.
        reason: String,
    },
    /// The block is one of another ledger.
    #[error("the block belongs to ledger {found}, the charter is that of {expected}")]
    OtherLedger {
        /// Digest of the charter.
        expected: Digest,
        /// Ledger in the header.
        found: Digest,
    },
    /// The certificate is for something else.
    #[error("the certificate is for block {found}, the header has digest {expected}")]
    OtherBlock {
        /// Digest of the header.
        expected: Digest,
        /// What the certificate is for.
        found: Digest,
    },
    /// Headers of the way from the block to the certified one do not chain.
    #[error("header {position} of the certificate does not chain to the one before it")]
    BrokenChain {
        /// Which one, counted from 0.
        position: usize,
    },
    /// Too few members signed, or a signature is wrong.
    #[error("the certificate is not signed by {quorum} of the charter's {members} organisations")]
    NoQuorum {
        /// How many must have signed.
        quorum: usize,
        /// How many there are.
        members: usize,
    },
    /// The member that is said to have offered the block has not signed it, or is none.
    #[error(
        "the block is not signed by organisation {proposer} of the charter, which is said to have ordered it"
    )]
    NotOffered {
        /// Its position in the charter.
        proposer: u16,
    },
    /// The records that a block is said to be made of do not make it.
    #[error("the block is not proved by records of the topic: {0}")]
    Records(String),
    /// A block carries charters that cannot follow the known ones.
    #[error("the block's amended charters: {0}")]
    Charters(String),
    /// A key in the charter cannot be used.
    #[error("organisation {0} of the charter has a node key that is no curve point")]
    Key(String),
}
