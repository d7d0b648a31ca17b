//! For whom policies of rows count, and whether rows that are written keep them and what views ask.

use crate::context::Authority;
use crate::execution::Execution;
use crate::subqueries::Given;
use plan::row_check::RowCheck;
use plan::table::TablePlan;
use types::{SqlError, SqlState, Value};
use values::broken;

impl Execution<'_> {
    /// Whether policies count for who executes the statement. `forced`: also for administrators, and so for routines that run with their
    /// rights.
    pub(crate) fn is_bound_by_policies(&self, forced: bool) -> bool {
        forced || self.on.authority.is_some()
    }

    /// Whether who executes the statement is one of these, or a member of one. An administrator has the name of its organisation.
    ///
    /// # Errors
    /// None of what a binder has made.
    pub(crate) fn acts_as(&self, roles: &Value) -> Result<bool, SqlError> {
        let Value::Array(roles) = roles else { return Err(broken("a policy without roles")) };
        let names = |wanted: &str| {
            roles.values().iter().any(|role| matches!(role, Value::Text(name) if **name == *wanted))
        };
        Ok(match &self.on.authority {
            Some(Authority { role, .. }) => {
                let memberships = self.on.programs.catalog().roles.memberships(role);
                memberships.into_iter().any(names)
            }
            None => names(&self.administrator()),
        })
    }

    /// Holds a row that is written against policies.
    ///
    /// # Errors
    /// `42501`; what a policy ends with.
    pub(crate) fn hold_policies(
        &mut self,
        table: &TablePlan,
        check: Option<&RowCheck>,
        row: &[Value],
    ) -> Result<(), SqlError> {
        let Some(check) = check.filter(|check| !check.conditions.is_empty()) else { return Ok(()) };
        self.charge(1)?;
        let given = Given { frame: &[], arguments: &[], left: &[] };
        for (condition, policy) in &check.conditions {
            if !self.with_subqueries(row, given, |environment| condition.is_true(environment))? {
                return Err(check.violation(table, policy.as_deref()));
            }
        }
        self.see_newer();
        Ok(())
    }

    /// Holds a row that has been written against the views with CHECK OPTION that it came through.
    ///
    /// # Errors
    /// `44000`; what a condition ends with.
    pub(crate) fn hold_views(
        &mut self,
        table: &TablePlan,
        check: Option<&RowCheck>,
        row: &[Value],
    ) -> Result<(), SqlError> {
        let Some(check) = check.filter(|check| !check.views.is_empty()) else { return Ok(()) };
        self.charge(1)?;
        let given = Given { frame: &[], arguments: &[], left: &[] };
        for view in &check.views {
            for condition in &view.conditions {
                if !self.with_subqueries(row, given, |environment| condition.is_true(environment))? {
                    return Err(table.view_violation(&view.view, row));
                }
            }
        }
        self.see_newer();
        Ok(())
    }

    /// Refuses what gives or takes rows of a table without asking its policies, where these count.
    ///
    /// # Errors
    /// `0A000`
    pub(crate) fn refuse_row_security(
        &self,
        table: &TablePlan,
        refusal: fn() -> SqlError,
    ) -> Result<(), SqlError> {
        match &table.row_security {
            Some(security) if security.counts_for(self.on.authority.is_none()) => Err(refusal()),
            _ => Ok(()),
        }
    }
}

/// The error of COPY FROM.
pub(crate) fn no_copy() -> SqlError {
    let message = "COPY FROM not supported with row-level security";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("Use INSERT statements instead.")
}

/// The error of TRUNCATE.
pub(crate) fn no_truncate() -> SqlError {
    SqlError::unsupported("TRUNCATE of a table with row-level security")
        .hint("DELETE deletes the rows that policies let you delete.")
}

/// The error of `entente.history`.
pub(crate) fn no_history() -> SqlError {
    SqlError::unsupported("entente.history of a table with row-level security")
        .hint("Read the table AS OF HEIGHT.")
}
