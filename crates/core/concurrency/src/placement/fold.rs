//! Rows on which nothing can fail: their commands in one go.

use super::{QueuedCommand, Verdict};
use crate::execution::{Step, step};
use smallvec::SmallVec;
use state::Command;
use std::sync::Arc;
use types::{ColumnSet, Row, Value};

/// A sum of amounts on one column.
struct Sum {
    ordinal: usize,
    columns: ColumnSet,
    positive: i128,
    negative: i128,
    smallest: i128,
    largest: i128,
}

/// Whether no selection of these commands can fail or find a guard wrong on the row.
///
/// True for commands without guards that cannot fail, and for additions whose columns nothing else on the row writes
/// and whose sums stay in range.
pub(super) fn cannot_fail(row: Option<&Row>, queue: &[QueuedCommand<'_>]) -> bool {
    let mut sums: SmallVec<[Sum; 2]> = SmallVec::new();
    let mut others = ColumnSet::EMPTY;
    for QueuedCommand { command, .. } in queue {
        if command.unchecked_addition().is_some() {
            // Existence changes by inserts, which can fail, and by deletes, which write the added column.
            if command.guard.is_some_and(|seen| seen != row.is_some()) || !add_to(&mut sums, command) {
                return false;
            }
        } else if command.can_fail || command.guard.is_some() {
            return false;
        } else {
            others |= command.writes;
        }
    }
    sums.iter().all(|sum| !others.intersects(sum.columns) && row.is_none_or(|row| stays_in_range(row, sum)))
}

/// False where the amounts are too many to be added up.
fn add_to(sums: &mut SmallVec<[Sum; 2]>, command: &Command) -> bool {
    let Some(addition) = command.unchecked_addition() else { return false };
    let ordinal = usize::from(addition.ordinal());
    let amount = i128::from(addition.amount);
    let (smallest, largest) = (i128::from(addition.smallest), i128::from(addition.largest));
    let position = sums.iter().position(|sum| sum.ordinal == ordinal).unwrap_or_else(|| {
        let columns = ColumnSet::column(ordinal);
        sums.push(Sum { ordinal, columns, positive: 0, negative: 0, smallest, largest });
        sums.len() - 1
    });
    let sum = &mut sums[position];
    sum.smallest = sum.smallest.max(smallest);
    sum.largest = sum.largest.min(largest);
    let total = if amount > 0 { &mut sum.positive } else { &mut sum.negative };
    match total.checked_add(amount) {
        Some(added) => {
            *total = added;
            true
        }
        None => false,
    }
}

fn stays_in_range(row: &Row, sum: &Sum) -> bool {
    let Some(value) = row.get(sum.ordinal) else { return false };
    let (value, smallest, largest) = match value {
        Value::Null => return true,
        Value::Integer(value) => (i128::from(*value), i128::from(i32::MIN), i128::from(i32::MAX)),
        Value::BigInt(value) => (i128::from(*value), i128::from(i64::MIN), i128::from(i64::MAX)),
        _ => return false,
    };
    let (smallest, largest) = (smallest.max(sum.smallest), largest.min(sum.largest));
    value.checked_add(sum.negative).is_some_and(|low| low >= smallest)
        && value.checked_add(sum.positive).is_some_and(|high| high <= largest)
}

/// The row after those of the commands whose transactions applied; [`cannot_fail`] holds for all.
pub(super) fn fold(row: Option<Row>, queue: &[QueuedCommand<'_>], verdicts: &[Verdict]) -> Option<Row> {
    let mut row = row;
    let mut amounts: SmallVec<[(u16, i128); 2]> = SmallVec::new();
    for QueuedCommand { place, command } in queue {
        if verdicts[*place as usize] != Verdict::Applied {
            continue;
        }
        if let Some(addition) = command.unchecked_addition() {
            let (ordinal, amount) = (addition.ordinal(), i128::from(addition.amount));
            match amounts.iter_mut().find(|(of, _)| *of == ordinal) {
                Some((_, sum)) => *sum += amount,
                None => amounts.push((ordinal, amount)),
            }
            continue;
        }
        row = add(row, &mut amounts);
        match step(command, row.as_ref()) {
            Step::Changed(after) => row = after,
            Step::Unchanged => {}
            Step::Again | Step::Error(_) => debug_assert!(false, "{command:?} says that it cannot fail"),
        }
    }
    add(row, &mut amounts)
}

/// Adds the amounts to the row and forgets them.
fn add(row: Option<Row>, amounts: &mut SmallVec<[(u16, i128); 2]>) -> Option<Row> {
    let mut row = row?;
    if !amounts.is_empty() {
        let values = Arc::make_mut(&mut row);
        for (ordinal, amount) in amounts.drain(..) {
            match &mut values[usize::from(ordinal)] {
                Value::Integer(value) => *value = (i128::from(*value) + amount) as i32,
                Value::BigInt(value) => *value = (i128::from(*value) + amount) as i64,
                _ => {}
            }
        }
    }
    Some(row)
}
