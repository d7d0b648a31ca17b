//! Transactions over schemas with members: each schema executes its parts by itself, and the chain decides those that have parts
//! in several.
//!
//! ```text
//!  block h ─┬─▶ Decisions: vote certificates, windows ──▶ what takes effect in h, the same at everybody
//!           └─▶ PartsExecutor of each schema, at its members alone:
//!                 1. decisions: write or drop what was prepared, release its locks
//!                 2. what waited, in the order of the ledger
//!                 3. the parts of h, in the order of the ledger ─▶ results, votes
//! ```
//!
//! A part of one schema takes effect at once, unless it meets a lock or a part before it that waits: then it waits, too. A part of
//! a transaction of several schemas waits behind locks, and behind such parts before it, unless it cannot meet them whatever they come
//! to (so nobody is overtaken for ever, and there is no deadlock). Else it is simulated, locks what it read and wrote until the decision, and is voted on.
//!
//! The rules are those of `oracle/shards/PROTOCOLS.md`, section 3, and the model is `schemas.py` beside it. That lets no part of several
//! schemas overtake another one; `tests/oracle/overtaking.py` is the model of those that may. All are serializable for the
//! reason that two-phase locking is: all locks are held when the decision takes effect.

mod decisions;
mod executor;
mod locks;
mod touching;

pub use decisions::{Decided, Decision, Decisions, DecisionsError, Vote};
pub use executor::{
    ExecutedParts, Moved, NewPart, PartOutcome, PartsBlock, PartsError, PartsExecutor, PartsRule,
};

/// Where a transaction stands in the ledger: parts are executed in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LedgerPosition {
    /// Height of its block.
    pub height: u64,
    /// Position in the block, from 0.
    pub index: u32,
}
