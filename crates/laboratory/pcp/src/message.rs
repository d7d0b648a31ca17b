//! What shards say to one another.

use crypto::Digest;

/// A shard, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShardId(pub u32);

/// A transaction, by its place in the ledger, from 0.
pub type Number = u64;

/// What only those know who wrote the proposals on both ends of a dependency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Secret(pub Digest);

/// "What do you believe of this transaction?"
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The calling shard.
    pub from: ShardId,
    /// The called one.
    pub to: ShardId,
    /// Which transaction.
    pub transaction: Number,
    /// The caller's round, from 1.
    pub round: u32,
    /// That of the dependency.
    pub secret: Secret,
}

/// "Commit" or "discard".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The called shard.
    pub from: ShardId,
    /// The calling one.
    pub to: ShardId,
    /// Which transaction.
    pub transaction: Number,
    /// That of the request.
    pub round: u32,
    /// Whether the shard believes that its part commits.
    pub belief: bool,
    /// It will not change.
    pub is_final: bool,
}

/// Either of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A request.
    Ask(Request),
    /// An answer.
    Say(Answer),
}
