//! Whether transactions that were executed on snapshots can have taken effect one after the other, whatever the order of
//! their blocks: who looked at a row stands behind everybody whose change it saw, and in front of everybody whose change
//! it did not see.

use crate::workload::{Operation, Table};
use std::collections::BTreeMap;
use types::Outcome;

/// A transaction that took effect, or that its contract ended behind ordering.
#[derive(Clone, Debug)]
pub(crate) struct Committed<'a> {
    /// Of its block.
    pub(crate) height: u64,
    pub(crate) operation: &'a Operation,
    pub(crate) outcome: Outcome,
    /// The height of the state that it was endorsed on; `None`: it was not endorsed.
    pub(crate) snapshot: Option<u64>,
}

/// The tables after every block, in one order of all transactions that explains every outcome.
///
/// # Errors
/// There is no such order, or a state in the middle is none of it.
pub(crate) fn by_snapshots(
    blocks: &[(u64, Vec<Committed<'_>>)],
    commands: bool,
) -> Result<BTreeMap<u64, Table>, String> {
    let all: Vec<&Committed<'_>> = blocks.iter().flat_map(|(_, took_effect)| took_effect).collect();
    let order = order(&all, commands)?;
    let mut tables = BTreeMap::new();
    for (height, _) in blocks {
        // What came later nobody had seen, so that leaving it out changes nothing.
        let mut table = Table::default();
        for one in order.iter().map(|position| all[*position]).filter(|one| one.height <= *height) {
            let said = one.operation.apply(&mut table);
            if !one.operation.is(&one.outcome, &said) {
                return Err(format!(
                    "serializability: at height {height} {one:?} should have come to {said:?}, on {table:?} behind it"
                ));
            }
        }
        tables.insert(*height, table);
    }
    Ok(tables)
}

/// Positions in a serial order, those of earlier blocks first where there is a choice.
fn order(all: &[&Committed<'_>], commands: bool) -> Result<Vec<usize>, String> {
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut in_front: Vec<usize> = vec![0; all.len()];
    for (reader, one) in all.iter().enumerate() {
        let Some(snapshot) = one.snapshot else { continue };
        let rows = one.operation.looks_at(commands);
        for (writer, other) in all.iter().enumerate().filter(|(writer, _)| *writer != reader) {
            if other.operation.changes(&other.outcome).iter().any(|row| rows.contains(row)) {
                let (first, second) =
                    if other.height <= snapshot { (writer, reader) } else { (reader, writer) };
                behind[first].push(second);
                in_front[second] += 1;
            }
        }
    }
    let mut order = Vec::with_capacity(all.len());
    let mut placed = vec![false; all.len()];
    while order.len() < all.len() {
        let Some(next) = (0..all.len()).find(|one| !placed[*one] && in_front[*one] == 0) else {
            let stuck: Vec<&&Committed<'_>> =
                all.iter().zip(&placed).filter(|(_, placed)| !**placed).map(|(one, _)| one).collect();
            return Err(format!("serializability: there is a cycle among {stuck:?}"));
        };
        placed[next] = true;
        order.push(next);
        for other in &behind[next] {
            in_front[*other] -= 1;
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{BALANCE, SETUP};
    use types::{StatementResult, Value};

    fn committed(rows: &[&[i64]]) -> Outcome {
        let rows = rows.iter().map(|row| row.iter().copied().map(Value::BigInt).collect()).collect();
        Outcome::Committed(vec![StatementResult { rows, ..StatementResult::default() }])
    }

    fn everything(first: [i64; 3]) -> Outcome {
        let row = |row: i64| if row == first[0] { first } else { [row, 0, BALANCE] };
        let rows: Vec<[i64; 3]> = (0..crate::workload::ROWS).map(row).collect();
        committed(&rows.iter().map(<[i64; 3]>::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn who_has_not_seen_a_change_stands_before_it_and_a_cycle_is_found() {
        let setup = Operation::Setup(SETUP.len() - 1);
        let (increment, other, read) = (Operation::Increment(0), Operation::Increment(1), Operation::Read);
        let at = |height, operation, outcome, snapshot| Committed { height, operation, outcome, snapshot };
        let setup = (1, vec![at(1, &setup, committed(&[]), Some(0))]);
        let changed = (2, vec![at(2, &increment, committed(&[&[1, 21]]), Some(1))]);
        let stale = (3, vec![at(3, &read, everything([0, 0, BALANCE]), Some(1))]);
        let tables =
            by_snapshots(&[setup.clone(), changed.clone(), stale], false).expect("it stands in front");
        assert_eq!(tables[&3][&0], (1, 21));

        let wrong = (3, vec![at(3, &read, everything([0, 0, BALANCE]), Some(2))]);
        let error =
            by_snapshots(&[setup.clone(), changed.clone(), wrong], false).expect_err("it saw the change");
        assert!(error.contains("should have come to"), "{error}");

        // Two that both have not seen the other's change.
        let lost = (3, vec![at(3, &increment, committed(&[&[1, 21]]), Some(1))]);
        let error = by_snapshots(&[setup.clone(), changed.clone(), lost], false).expect_err("a lost update");
        assert!(error.contains("cycle"), "{error}");

        // A read that has seen the second change and not the first one, which the second has seen.
        let second = (3, vec![at(3, &other, committed(&[&[1, 21]]), Some(2))]);
        let half = (4, vec![at(4, &read, everything([1, 1, 21]), Some(1))]);
        let error = by_snapshots(&[setup, changed, second, half], false).expect_err("it is no state");
        assert!(error.contains("should have come to"), "{error}");
    }
}
