//! What policies, and views with CHECK OPTION, ask of rows that are written, and partitions through which they are.

use crate::expression::{Environment, Expression};
use crate::table::TablePlan;
use std::sync::Arc;
use types::session_format::{SessionFormat, within_format};
use types::{SqlError, SqlState, Value};

/// A condition of policies, and the name of the restrictive policy that it is of; `None`: what all permissive ones say together.
pub type PolicyCondition = (Expression, Option<String>);

/// What rows that are written have to keep.
#[derive(Clone, Debug, Default)]
pub struct RowCheck {
    /// What policies ask, over the row, before it is written.
    pub conditions: Vec<PolicyCondition>,
    /// What the partitions have through which it is written, with their names.
    pub partitions: Vec<(Expression, String)>,
    /// They are those of rows that are there.
    is_of_existing: bool,
    /// What views ask, once it is written: the innermost first.
    pub views: Vec<ViewCheck>,
}

/// What a view with CHECK OPTION asks of a row that is written through it.
#[derive(Clone, Debug)]
pub struct ViewCheck {
    /// Its name, without the schema.
    pub view: String,
    /// Over the row of the table.
    pub conditions: Vec<Expression>,
}

impl RowCheck {
    /// WITH CHECK, of a row that is inserted or updated.
    pub fn of_written(conditions: Vec<PolicyCondition>) -> RowCheck {
        RowCheck { conditions, ..RowCheck::default() }
    }

    /// USING, of the row that ON CONFLICT has found.
    pub fn of_existing(conditions: Vec<PolicyCondition>) -> RowCheck {
        RowCheck { conditions, is_of_existing: true, ..RowCheck::default() }
    }

    /// The same, with what views ask besides.
    pub fn with_views(check: Option<Arc<RowCheck>>, views: Vec<ViewCheck>) -> Option<Arc<RowCheck>> {
        if views.is_empty() {
            return check;
        }
        let check = check.map(Arc::unwrap_or_clone).unwrap_or_default();
        Some(Arc::new(RowCheck { views, ..check }))
    }

    /// All conditions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let of_views = self.views.iter().flat_map(|view| &view.conditions);
        self.conditions.iter().map(|(condition, _)| condition).chain(of_views)
    }

    /// What policies ask of a row, if anything, and that partitions have it through which it is written.
    pub fn within(
        check: Option<Arc<RowCheck>>,
        partitions: &[(Expression, String)],
    ) -> Option<Arc<RowCheck>> {
        if partitions.is_empty() {
            return check;
        }
        let check = check.map(Arc::unwrap_or_clone).unwrap_or_default();
        Some(Arc::new(RowCheck { partitions: partitions.to_vec(), ..check }))
    }

    /// Holds a row against the partitions through which it is written.
    ///
    /// # Errors
    /// `23514`
    pub fn check_partitions(&self, table: &TablePlan, row: &[Value]) -> Result<(), SqlError> {
        let environment = Environment::new(row, &[], 0);
        for (condition, partition) in &self.partitions {
            if !within_format(SessionFormat::default(), || condition.is_true(&environment))? {
                return Err(table.partition_violation(partition, row));
            }
        }
        Ok(())
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
