//! What is asked of a whole new row of a table.

use crate::expression::Environment;
use crate::partitions::CHECK_NAME;
use crate::row_check::RowCheck;
use crate::table::{CheckPlan, TablePlan};
use types::{SqlError, Value};

impl TablePlan {
    /// Checks NOT NULL and CHECKs of a whole new row, in PostgreSQL's order.
    pub fn check_row(&self, row: &[Value]) -> Result<(), SqlError> {
        self.check_partition(&Environment::new(row, &[], 0), row)?;
        self.check_constraints(row)
    }

    /// The same of a row that is inserted through a partition, which has to have it; errors name the partition.
    ///
    /// # Errors
    /// As [`TablePlan::check_row`]; `23514` for a row that the partition does not have.
    pub fn check_inserted(&self, check: Option<&RowCheck>, row: &[Value]) -> Result<(), SqlError> {
        let Some((_, partition)) = check.and_then(|check| check.partitions.last()) else {
            return self.check_row(row);
        };
        let named = |error: SqlError| {
            let (table, partition) = (&self.name, partition);
            let message = error.message.replacen(
                &format!("relation \"{table}\""),
                &format!("relation \"{partition}\""),
                1,
            );
            SqlError { message, ..error }
        };
        self.check_constraints(row).map_err(named)?;
        check.map_or(Ok(()), |check| check.check_partitions(self, row))?;
        self.check_partition(&Environment::new(row, &[], 0), row)
    }

    fn check_constraints(&self, row: &[Value]) -> Result<(), SqlError> {
        let environment = Environment::new(row, &[], 0);
        for (ordinal, column) in self.columns.iter().enumerate() {
            if column.not_null && row[ordinal].is_null() {
                return Err(self.null_violation(ordinal, row));
            }
        }
        for check in self.checks.iter().filter(|check| !self.is_of_partitions(check)) {
            if check.is_violated(&environment)? {
                return Err(self.check_violation(check, row));
            }
        }
        Ok(())
    }

    /// Whether a check says that some partition takes the row.
    pub fn is_of_partitions(&self, check: &CheckPlan) -> bool {
        self.partitions.is_some() && check.name == CHECK_NAME
    }

    /// Refuses a row that no partition takes, before anything else is asked of it.
    ///
    /// # Errors
    /// `23514`
    pub fn check_partition(&self, environment: &Environment<'_>, row: &[Value]) -> Result<(), SqlError> {
        if self.partitions.is_none() {
            return Ok(());
        }
        let checks = self.checks.iter().filter(|check| self.is_of_partitions(check));
        for check in checks {
            if check.is_violated(environment)? {
                return Err(self.check_violation(check, row));
            }
        }
        Ok(())
    }
}
