//! The plain definition of placement, and the versions of rows that it leaves.

use super::{CheckedBatch, Execution, Position, RecordingTransaction, Violation};
use crate::TransactionOutcome;
use crate::execution::{Step, differs, step};
use state::{AfterImage, Command, PlainState, RowId};
use std::collections::BTreeMap;
use types::{ColumnSet, Row};

/// A transaction that took effect. Nodes are numbered in the protocol's order.
pub(super) struct Node<'a> {
    pub(super) position: Position,
    /// Its execution ran on the state that the nodes below this number had left.
    pub(super) seen: usize,
    /// The execution that counts.
    pub(super) execution: Execution,
    pub(super) outcome: &'a TransactionOutcome,
    pub(super) transaction: &'a RecordingTransaction,
}

/// What one transaction did to one row at its place.
pub(super) struct Version {
    pub(super) node: usize,
    /// Columns that its commands used there.
    pub(super) uses: ColumnSet,
    /// Columns that its commands wrote; none if it was aborted at its place.
    pub(super) writes: ColumnSet,
    pub(super) before: Option<Row>,
    pub(super) after: Option<Row>,
}

/// By row, in order.
pub(super) type Versions = BTreeMap<RowId, Vec<Version>>;

/// Applies all commands, one transaction after the other, and compares with outcomes and changes. Also returns the
/// last state.
pub(super) fn apply(
    initial: &PlainState,
    batches: &[CheckedBatch<'_>],
    nodes: &[Node<'_>],
) -> Result<(Versions, PlainState), Violation> {
    let mut state = initial.clone();
    let mut versions = Versions::new();
    let mut next = 0;
    for (batch, checked) in batches.iter().enumerate() {
        let before = state.clone();
        while nodes.get(next).is_some_and(|node| node.position.batch == batch) {
            apply_one(next, &nodes[next], &mut state, &mut versions)?;
            next += 1;
        }
        let mut expected: Vec<AfterImage> = Vec::new();
        for (row, versions) in &versions {
            let touched = versions.last().is_some_and(|version| nodes[version.node].position.batch == batch);
            let (was, is) = (before.get(row.table, &row.key), state.get(row.table, &row.key));
            if touched && differs(was.as_ref(), is.as_ref()) {
                expected.push(AfterImage { row: row.clone(), value: is });
            }
        }
        let found = &checked.result.changes;
        if expected != *found {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Err(Violation::Changes { batch, expected, found });
        }
    }
    Ok((versions, state))
}

fn apply_one(
    number: usize,
    node: &Node<'_>,
    state: &mut PlainState,
    versions: &mut Versions,
) -> Result<(), Violation> {
    let effects = &node.execution.effects;
    let (expected, evaluated) = match &effects.result {
        Err(error) => (TransactionOutcome::Aborted(error.clone()), 0),
        Ok(results) => match evaluate(&effects.commands, state) {
            (None, evaluated) => (TransactionOutcome::Committed(results.clone()), evaluated),
            (Some(Step::Error(error)), evaluated) => (TransactionOutcome::Aborted(error), evaluated),
            (Some(_), _) => {
                let position = node.position;
                let (expected, found) =
                    ("a guard that does not hold".to_string(), format!("{:?}", node.outcome));
                return Err(Violation::Placement { position, expected, found });
            }
        },
    };
    if expected != *node.outcome {
        let (expected, found) = (format!("{expected:?}"), format!("{:?}", node.outcome));
        return Err(Violation::Placement { position: node.position, expected, found });
    }
    let committed = matches!(expected, TransactionOutcome::Committed(_));
    for command in &effects.commands[..evaluated] {
        let before = state.get(command.row.table, &command.row.key);
        if let (true, Step::Changed(value)) = (committed, step(command, before.as_ref())) {
            state.apply(&AfterImage { row: command.row.clone(), value });
        }
        let after = state.get(command.row.table, &command.row.key);
        let writes = if committed { command.writes } else { ColumnSet::EMPTY };
        let of_row = versions.entry(command.row.clone()).or_default();
        match of_row.last_mut().filter(|version| version.node == number) {
            Some(version) => {
                version.uses |= command.uses;
                version.writes |= writes;
                version.after = after;
            }
            None => of_row.push(Version { node: number, uses: command.uses, writes, before, after }),
        }
    }
    Ok(())
}

/// What stops these commands on this state, and how many were evaluated until then.
fn evaluate(commands: &[Command], state: &PlainState) -> (Option<Step>, usize) {
    let mut rows: BTreeMap<&RowId, Option<Row>> = BTreeMap::new();
    for (position, command) in commands.iter().enumerate() {
        let row = rows.entry(&command.row).or_insert_with(|| state.get(command.row.table, &command.row.key));
        match step(command, row.as_ref()) {
            Step::Unchanged => {}
            Step::Changed(after) => *row = after,
            failed => return (Some(failed), position + 1),
        }
    }
    (None, commands.len())
}
