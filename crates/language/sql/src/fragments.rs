//! Fragments of a query that somebody else runs than the row operators.

use execute::Execution;
use plan::logical::LogicalPlan;
use state::Snapshot;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use types::{MemoryPool, SqlError, Value};

/// A fragment of a query, and what it is run with.
#[derive(Clone, Copy)]
pub struct Fragment<'a> {
    /// What it asks for (see [`plan::logical::Split`]).
    pub plan: &'a LogicalPlan,
    /// The parameters.
    pub frame: &'a [Value],
    /// `now()`, in microseconds since 2000-01-01 00:00 UTC.
    pub now: i64,
    /// The state.
    pub snapshot: &'a dyn Snapshot,
    /// It ends soon after this is set.
    pub interrupt: &'a Arc<AtomicBool>,
    /// What all queries of the node have together.
    pub memory: Option<&'a Arc<MemoryPool>>,
}

/// Runs fragments of queries, faster than row by row.
pub trait RunFragments: Send + Sync + fmt::Debug {
    /// The rows of a fragment, in the order that [`plan::logical::Split`] says: the same as row by row. `None`: it cannot, or does
    /// not want to; then the whole query is run row by row.
    fn rows(&self, fragment: &Fragment<'_>) -> Option<Vec<Vec<Value>>>;

    /// What would be read for a fragment, or why it is run row by row; nothing is read for that.
    ///
    /// # Errors
    /// The reason.
    fn explain(&self, fragment: &Fragment<'_>) -> Result<String, String>;
}

/// Who runs fragments, and with what of the query that they belong to.
#[derive(Clone, Copy)]
pub(crate) struct Runner<'a> {
    pub(crate) fragments: &'a dyn RunFragments,
    pub(crate) interrupt: &'a Arc<AtomicBool>,
    pub(crate) memory: Option<&'a Arc<MemoryPool>>,
    pub(crate) frame: &'a [Value],
}

impl Runner<'_> {
    fn fragment<'f>(&'f self, plan: &'f LogicalPlan, execution: &'f Execution<'_>) -> Fragment<'f> {
        let Runner { interrupt, memory, frame, .. } = *self;
        Fragment { plan, frame, now: execution.now(), snapshot: execution.snapshot(), interrupt, memory }
    }

    /// Lines of EXPLAIN: how each fragment of a query would be run.
    pub(crate) fn explain(
        &self,
        fragments: &[(usize, LogicalPlan)],
        execution: &Execution<'_>,
    ) -> Vec<String> {
        let line = |(_, plan): &(usize, LogicalPlan)| {
            let what = if matches!(plan, LogicalPlan::Aggregate { .. }) { "Groups" } else { "Rows" };
            match self.fragments.explain(&self.fragment(plan, execution)) {
                Ok(read) => format!("{what}: from columns of {read}"),
                Err(reason) => format!("{what}: row by row: {reason}"),
            }
        };
        fragments.iter().map(line).collect()
    }

    /// Has the fragments of a query run, and gives their rows to the execution for what is left of the query. False: the query is to
    /// be run row by row.
    ///
    /// # Errors
    /// `53200`: too little memory for the rows.
    pub(crate) fn run(
        &self,
        fragments: &[(usize, LogicalPlan)],
        execution: &mut Execution<'_>,
    ) -> Result<bool, SqlError> {
        let mut found = Vec::with_capacity(fragments.len());
        for (number, plan) in fragments {
            match self.fragments.rows(&self.fragment(plan, execution)) {
                Some(rows) => found.push((*number, rows)),
                None => return Ok(false),
            }
        }
        execution.give_rows(found)
    }
}
