//! What policies ask of rows that are written.

use crate::expression::Expression;
use crate::table::TablePlan;
use types::{SqlError, SqlState};

/// A condition of policies, and the name of the restrictive policy that it is of; `None`: what all permissive ones say together.
pub type PolicyCondition = (Expression, Option<String>);

/// What rows that are written have to keep.
#[derive(Debug)]
pub struct RowCheck {
    /// Over the row.
    pub conditions: Vec<PolicyCondition>,
    /// They are those of rows that are there.
    is_of_existing: bool,
}

impl RowCheck {
    /// WITH CHECK, of a row that is inserted or updated.
    pub fn of_written(conditions: Vec<PolicyCondition>) -> RowCheck {
        RowCheck { conditions, is_of_existing: false }
    }

    /// USING, of the row that ON CONFLICT has found.
    pub fn of_existing(conditions: Vec<PolicyCondition>) -> RowCheck {
        RowCheck { conditions, is_of_existing: true }
    }

    /// The error of a row that does not keep what the policy of this name asks, or all permissive ones.
    #[cold]
    pub fn violation(&self, table: &TablePlan, policy: Option<&str>) -> SqlError {
        let policy = policy.map(|name| format!(" \"{name}\"")).unwrap_or_default();
        let using = if self.is_of_existing { " (USING expression)" } else { "" };
        let message =
            format!("new row violates row-level security policy{policy}{using} for table \"{}\"", table.name);
        SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
    }
}
