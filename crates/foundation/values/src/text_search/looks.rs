//! How much one call may look at: what grows with the square of a text has an end also where nobody counts steps.

use crate::work;
use types::{SqlError, SqlState};

/// Words and places that one call looks at: less than a second.
const LOOKS_MAX: u64 = 1 << 26;

/// What a call has looked at.
#[derive(Default)]
pub(super) struct Looks(u64);

impl Looks {
    /// So many more words or places, each of which takes some units of work.
    ///
    /// # Errors
    /// `54000` where they are too many for one call, `57014` where they take more work than there is left.
    pub fn take(&mut self, count: u64, units: u64) -> Result<(), SqlError> {
        self.0 = self.0.saturating_add(count);
        if self.0 > LOOKS_MAX {
            let message = format!("a search would look at more than {LOOKS_MAX} places (LOOKS_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Search in shorter texts, or for fewer words."));
        }
        work::spend(count.saturating_mul(units))
    }
}
