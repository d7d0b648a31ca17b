//! The serial run in the order that the graph allows.

use super::graph::seen;
use super::versions::Node;
use super::{Execution, Violation};
use crate::TransactionOutcome;
use crate::execution::{Step, step};
use state::{AfterImage, PlainState, RowId};
use types::{ColumnSet, Row};

/// Runs the nodes one after the other and compares what each of them saw and gave.
pub(super) fn replay(
    initial: &PlainState,
    nodes: &[Node<'_>],
    order: &[usize],
) -> Result<PlainState, Violation> {
    let mut state = initial.clone();
    for node in order {
        let node = &nodes[*node];
        let serial = Execution::run(node.transaction.unrecorded(), &state);
        let serial = serial.expect("what is in memory can be read");
        // Who is aborted at its place may have gone on, in its simulation, to see what it does not see in the serial
        // run; nobody learns of it.
        if node.execution.effects.result.is_ok() == serial.effects.result.is_ok() {
            compare(node, &serial, &state)?;
        }
        let outcome = apply(&serial, &mut state);
        if outcome != *node.outcome {
            let (expected, found) = (format!("{outcome:?}"), format!("{:?}", node.outcome));
            return Err(Violation::Outcome { position: node.position, expected, found });
        }
    }
    Ok(state)
}

/// Applies what the serial execution did.
fn apply(serial: &Execution, state: &mut PlainState) -> TransactionOutcome {
    let results = match &serial.effects.result {
        Ok(results) => results.clone(),
        Err(error) => return TransactionOutcome::Aborted(error.clone()),
    };
    let mut undo = Vec::new();
    for command in &serial.effects.commands {
        let before = state.get(command.row.table, &command.row.key);
        let failed = match step(command, before.as_ref()) {
            Step::Unchanged => continue,
            Step::Changed(value) => {
                undo.push(AfterImage { row: command.row.clone(), value: before });
                state.apply(&AfterImage { row: command.row.clone(), value });
                continue;
            }
            Step::Error(error) => TransactionOutcome::Aborted(error),
            Step::Again => TransactionOutcome::Conflict,
        };
        undo.iter().rev().for_each(|image| state.apply(image));
        return failed;
    }
    TransactionOutcome::Committed(results)
}

/// Compares what the transaction saw with the state at its place in the serial run.
fn compare(node: &Node<'_>, serial: &Execution, state: &PlainState) -> Result<(), Violation> {
    let position = node.position;
    let show = |row: &Option<Row>, columns| format!("{:?}", visible(row.as_ref(), columns));
    for (read, found) in node.execution.effects.reads.iter().zip(&node.execution.read) {
        let expected = state.get(read.row.table, &read.row.key);
        if visible(found.as_ref(), read.columns) != visible(expected.as_ref(), read.columns) {
            let (expected, found) = (show(&expected, read.columns), show(found, read.columns));
            return Err(Violation::Read { position, row: read.row.clone(), expected, found });
        }
    }
    let scans = |execution: &Execution| -> Vec<String> {
        let scans = execution.effects.scans.iter().zip(&execution.scanned);
        scans
            .map(|(scan, rows)| {
                let rows: Vec<_> = rows.iter().map(|row| visible(row.as_ref(), scan.columns)).collect();
                format!("{:?} {:?}: {:?} with {rows:?}", scan.table, scan.range, scan.result)
            })
            .collect()
    };
    let (expected, found) = (scans(serial), scans(&node.execution));
    for scan in 0..expected.len().max(found.len()) {
        if expected.get(scan) != found.get(scan) {
            let show = |scans: &[String]| scans.get(scan).cloned().unwrap_or_else(|| "no scan".to_string());
            return Err(Violation::Scan { position, scan, expected: show(&expected), found: show(&found) });
        }
    }
    Ok(())
}

/// What somebody sees who looks at these columns; existence is always seen.
fn visible(row: Option<&Row>, columns: ColumnSet) -> Option<Vec<(usize, types::Value)>> {
    row.map(|row| seen(row, columns))
}

/// The first row that differs.
pub(super) fn compare_states(serial: &PlainState, protocol: &PlainState) -> Result<(), Violation> {
    let rows = [serial, protocol].into_iter().flat_map(|state| {
        state
            .tables
            .iter()
            .flat_map(|(table, rows)| rows.keys().map(|key| RowId { table: *table, key: key.clone() }))
    });
    for row in rows {
        let (expected, found) = (serial.get(row.table, &row.key), protocol.get(row.table, &row.key));
        if expected != found {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Err(Violation::State { row, expected, found });
        }
    }
    Ok(())
}
