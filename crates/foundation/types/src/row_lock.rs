//! How transaction blocks of one gateway lock rows: `SELECT … FOR UPDATE` and its kind.

use crate::{SqlError, SqlState};

/// How strongly a row is locked, as in PostgreSQL; the weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RowLockMode {
    /// `FOR KEY SHARE`
    KeyShare,
    /// `FOR SHARE`
    Share,
    /// `FOR NO KEY UPDATE`
    NoKeyUpdate,
    /// `FOR UPDATE`, and what has been written.
    Update,
}

impl RowLockMode {
    /// Whether two blocks cannot have a row at once, one in each of these modes (PostgreSQL's manual, 13.3.2).
    pub fn conflicts(self, other: RowLockMode) -> bool {
        self as u8 + other as u8 >= RowLockMode::Update as u8
    }
}

/// What the first statement of a block ends with that wants a row which another block of its gateway has: it runs again once the row is free.
/// No client is told so.
const HELD: &str = "a row is locked by another transaction block";

/// `55P03`: the first statement of a block waits for a row.
pub fn row_is_held() -> SqlError {
    SqlError::new(SqlState::LOCK_NOT_AVAILABLE, HELD)
}

/// Whether an error says that.
pub fn says_row_is_held(error: &SqlError) -> bool {
    error.state == SqlState::LOCK_NOT_AVAILABLE && error.message == HELD
}

#[cfg(test)]
mod tests {
    use super::*;
    use RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};

    #[test]
    fn modes_conflict_as_in_postgresql() {
        let compatible = [(KeyShare, KeyShare), (KeyShare, Share), (KeyShare, NoKeyUpdate), (Share, Share)];
        for one in [KeyShare, Share, NoKeyUpdate, Update] {
            for other in [KeyShare, Share, NoKeyUpdate, Update] {
                let known = compatible.contains(&(one, other)) || compatible.contains(&(other, one));
                assert_eq!(one.conflicts(other), !known, "{one:?} and {other:?}");
            }
        }
    }
}
