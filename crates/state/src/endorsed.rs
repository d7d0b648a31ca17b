//! Effects that travel: what endorsers found on their snapshot, in forms that are applied without the contract
//! (execute–order–validate; `protocols.md`, section 3).

use crate::{
    Addition, Command, CommandKind, Effects, Read, RowChange, RowFunction, RowId, Snapshot, apply_command,
};
use std::sync::Arc;
use types::{ColumnSet, Row, SqlError, SqlState, Value};

/// A simulation that others have made and signed.
#[derive(Clone, Debug)]
pub struct Endorsed {
    /// Height of the block after which it was made.
    pub snapshot: u64,
    /// What was found. Never an error: what ends with one is not endorsed.
    pub effects: Arc<Effects>,
    /// Whether the transaction may run again after ordering where what it read is stale (XOX).
    pub may_run_again: bool,
}

/// How endorsed effects say what is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndorsedForm {
    /// The values that rows came to: whatever a command used is read, and may become stale.
    Writes,
    /// Additions stay additions, so that transactions that meet in a hot row do not make one another stale.
    Commands,
}

/// A change of one row that is plain data.
#[derive(Clone, PartialEq, Debug)]
pub enum RowWrite {
    /// The row has these values, whether it was there or not.
    Put(Row),
    /// Columns have these values; ordinal and value, ascending. The row must be there.
    Assign(Vec<(u16, Value)>),
    /// An amount is added to a column. The row must be there.
    Add(Addition),
    /// The row is gone.
    Delete,
}

impl RowFunction for RowWrite {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let values = match (self, row) {
            (RowWrite::Put(row), _) => return Ok(RowChange::Put(row.clone())),
            (_, None) => return Ok(RowChange::Unmatched),
            (RowWrite::Delete, Some(_)) => return Ok(RowChange::Delete),
            (RowWrite::Assign(values), Some(row)) => {
                let mut new: Row = row.iter().cloned().collect();
                let new_values = Arc::get_mut(&mut new).expect("nobody else has the new row yet");
                for (ordinal, value) in values {
                    let place = new_values.get_mut(usize::from(*ordinal)).ok_or_else(no_such_column)?;
                    *place = value.clone();
                }
                return Ok(RowChange::Put(new));
            }
            (RowWrite::Add(addition), Some(row)) => (addition, row),
        };
        let (addition, row) = values;
        let ordinal = usize::from(addition.ordinal());
        let sum = |value: i64| {
            let sum = value.checked_add(addition.amount);
            sum.filter(|sum| (addition.smallest..=addition.largest).contains(sum)).ok_or_else(|| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "the sum is out of the column's range")
            })
        };
        let value = match row.get(ordinal).ok_or_else(no_such_column)? {
            Value::Integer(value) => {
                Value::Integer(i32::try_from(sum(i64::from(*value))?).map_err(|_| no_such_column())?)
            }
            Value::BigInt(value) => Value::BigInt(sum(*value)?),
            _ => return Err(no_such_column()),
        };
        let mut new: Row = row.iter().cloned().collect();
        Arc::get_mut(&mut new).expect("nobody else has the new row yet")[ordinal] = value;
        Ok(RowChange::Put(new))
    }
}

#[cold]
fn no_such_column() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "endorsed effects name a column that the row does not have")
}

impl RowWrite {
    /// As a command on a row. `writes`: the columns; `seen`: whether the row was there, where that matters.
    pub fn into_command(self, row: RowId, writes: ColumnSet, guard: Option<bool>) -> Command {
        let (kind, uses, addition) = match &self {
            RowWrite::Put(row) => (CommandKind::Insert(row.clone()), ColumnSet::EMPTY, None),
            RowWrite::Assign(values) => {
                (CommandKind::Update { known: values.clone() }, ColumnSet::EXISTS, None)
            }
            RowWrite::Add(addition) => {
                let column = ColumnSet::column(usize::from(addition.ordinal()));
                (CommandKind::Update { known: Vec::new() }, column | ColumnSet::EXISTS, Some(*addition))
            }
            RowWrite::Delete => (CommandKind::Delete, ColumnSet::EXISTS, None),
        };
        let can_fail = addition.is_some();
        Command { row, function: Arc::new(self), kind, uses, writes, guard, can_fail, addition }
    }
}

/// The effects of a simulation on `snapshot` as endorsers sign them. Every command becomes a [`RowWrite`]; what it used
/// is read, unless it stays an addition.
///
/// Columns that share a bit of [`ColumnSet`] are written together, so who writes one of them reads them all: nobody
/// else's write of another is lost.
pub fn endorsed_effects(effects: &Effects, snapshot: &dyn Snapshot, form: EndorsedForm) -> Effects {
    let mut found = Effects {
        reads: effects.reads.clone(),
        scans: effects.scans.clone(),
        commands: Vec::new(),
        result: effects.result.clone(),
        steps: effects.steps,
        catalog: None,
    };
    for (position, command) in effects.commands.iter().enumerate() {
        if effects.commands[..position].iter().any(|earlier| earlier.row == command.row) {
            continue;
        }
        let of_row: Vec<&Command> =
            effects.commands[position..].iter().filter(|other| other.row == command.row).collect();
        let additions = of_row.iter().all(|command| command.addition.is_some());
        if form == EndorsedForm::Commands && additions {
            found.commands.extend(of_row.into_iter().filter_map(addition));
        } else {
            write(&of_row, snapshot, &mut found);
        }
    }
    found
}

fn addition(command: &Command) -> Option<Command> {
    let write = RowWrite::Add(command.addition?);
    Some(write.into_command(command.row.clone(), command.writes, command.guard))
}

/// What commands on one row came to on the snapshot.
fn write(commands: &[&Command], snapshot: &dyn Snapshot, found: &mut Effects) {
    let row = &commands[0].row;
    let before = snapshot.get(row.table, &row.key);
    let (mut after, mut used, mut written) = (before.clone(), ColumnSet::EXISTS, ColumnSet::EMPTY);
    for command in commands {
        used |= command.uses;
        let Ok((next, matched)) = apply_command(after.clone(), command) else {
            debug_assert!(false, "{command:?} succeeds on the snapshot that it was simulated on");
            continue;
        };
        after = next;
        if matched {
            written |= command.writes;
        }
    }
    let shared = ColumnSet::column(usize::from(u16::MAX));
    found.reads.push(Read { row: row.clone(), columns: used | (written & shared) });
    let write = match (before, after) {
        _ if written.is_empty() => return,
        (None, None) => return,
        (Some(_), None) => RowWrite::Delete,
        (None, Some(row)) => RowWrite::Put(row),
        (Some(_), Some(row)) if written == ColumnSet::ALL => RowWrite::Put(row),
        (Some(_), Some(row)) => {
            let ordinals = (0u16..).zip(row.iter());
            let assigned =
                ordinals.filter(|(ordinal, _)| written.intersects(ColumnSet::column(usize::from(*ordinal))));
            RowWrite::Assign(assigned.map(|(ordinal, value)| (ordinal, value.clone())).collect())
        }
    };
    let guard = matches!(write, RowWrite::Assign(_) | RowWrite::Delete).then_some(true);
    found.commands.push(write.into_command(row.clone(), written, guard));
}
