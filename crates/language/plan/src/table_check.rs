//! What is asked of a whole new row of a table.

use crate::expression::Environment;
use crate::table::TablePlan;
use types::{SqlError, Value};

impl TablePlan {
    /// Checks NOT NULL and CHECKs of a whole new row, in PostgreSQL's order.
    pub fn check_row(&self, row: &[Value]) -> Result<(), SqlError> {
        for (ordinal, column) in self.columns.iter().enumerate() {
            if column.not_null && row[ordinal].is_null() {
                return Err(self.null_violation(ordinal, row));
            }
        }
        let environment = Environment::new(row, &[], 0);
        for check in &self.checks {
            if check.is_violated(&environment)? {
                return Err(self.check_violation(check, row));
            }
        }
        Ok(())
    }
}
