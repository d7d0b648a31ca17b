//! What `SELECT … FOR UPDATE` and its kind ask of the rows of a relation.

use types::RowLockMode;

/// What is to happen where another transaction block has locked a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WhenHeld {
    /// The first statement of a block waits; later whoever commits first goes on.
    GoOn,
    /// `SKIP LOCKED`: the row is left out.
    Skip,
    /// `NOWAIT`: the statement ends with `55P03`.
    Fail,
}

/// What a clause asks of the rows of a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowLocking {
    /// How strongly they are locked.
    pub mode: RowLockMode,
    /// Where one is locked by another block.
    pub when_held: WhenHeld,
}

impl RowLocking {
    /// What two clauses ask of the same rows.
    #[must_use]
    pub fn and(self, other: RowLocking) -> RowLocking {
        RowLocking { mode: self.mode.max(other.mode), when_held: self.when_held.max(other.when_held) }
    }
}
