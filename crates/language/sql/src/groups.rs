//! Groups of a query that somebody else makes than the row operators.

use execute::Execution;
use plan::logical::LogicalPlan;
use state::Snapshot;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use types::{MemoryPool, SqlError, Value};

/// Groups that a query needs, and what they are made with.
#[derive(Clone, Copy)]
pub struct WantedGroups<'a> {
    /// An `Aggregate` and what is below it (see [`plan::logical::Grouped`]).
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

/// Makes the groups of queries, faster than row by row.
pub trait MakeGroups: Send + Sync + fmt::Debug {
    /// The rows of the groups, in the order of their keys: the same as row by row. `None`: it cannot, or does not want to; then
    /// they are made row by row.
    fn groups(&self, wanted: &WantedGroups<'_>) -> Option<Vec<Vec<Value>>>;

    /// What would be read for them, or why they are made row by row; nothing is read for that.
    ///
    /// # Errors
    /// The reason.
    fn explain(&self, wanted: &WantedGroups<'_>) -> Result<String, String>;
}

/// Lines of EXPLAIN: how each of the groups of a query would be made.
pub(crate) fn explain(
    groups: &[(usize, LogicalPlan)],
    maker: &dyn MakeGroups,
    (interrupt, memory): (&Arc<AtomicBool>, Option<&Arc<MemoryPool>>),
    execution: &Execution<'_>,
    frame: &[Value],
) -> Vec<String> {
    let (now, snapshot) = (execution.now(), execution.snapshot());
    let line = |(_, plan): &(usize, LogicalPlan)| {
        let what = if matches!(plan, LogicalPlan::Aggregate { .. }) { "Groups" } else { "Rows" };
        match maker.explain(&WantedGroups { plan, frame, now, snapshot, interrupt, memory }) {
            Ok(read) => format!("{what}: from columns of {read}"),
            Err(reason) => format!("{what}: row by row: {reason}"),
        }
    };
    groups.iter().map(line).collect()
}

/// Has the groups of a query made, and gives them to the execution for what is left of the query. False: they are to be made row by
/// row.
///
/// # Errors
/// `53200`: too little memory for the groups.
pub(crate) fn give(
    groups: &[(usize, LogicalPlan)],
    maker: &dyn MakeGroups,
    (interrupt, memory): (&Arc<AtomicBool>, Option<&Arc<MemoryPool>>),
    execution: &mut Execution<'_>,
    frame: &[Value],
) -> Result<bool, SqlError> {
    let (now, snapshot) = (execution.now(), execution.snapshot());
    let mut made = Vec::with_capacity(groups.len());
    for (number, plan) in groups {
        match maker.groups(&WantedGroups { plan, frame, now, snapshot, interrupt, memory }) {
            Some(rows) => made.push((*number, rows)),
            None => return Ok(false),
        }
    }
    made.into_iter().try_for_each(|(number, rows)| execution.give_rows(number, rows))?;
    Ok(true)
}
