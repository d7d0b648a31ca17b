//! Effects that travel: what endorsers found on their snapshot, in forms that are applied without the contract
//! (execute–order–validate; `protocols.md`, section 3).
//!
//! A command becomes a [`types::RowWrite`]: the row's new values, or an addition that stays one. What a command used
//! is read, so that it can become stale. Whoever validates holds the write against the schema: types, keys, NOT NULL
//! and CHECK on the row as it stands at its place, whoever has signed it. The keys that it takes in unique indexes
//! are writes of their own. That a row and such a key fit together is what the endorsers sign for.

use crate::{
    Addition, Command, CommandKind, Effects, KeyRange, Read, RowChange, RowFunction, RowId, Scan, Snapshot,
    StoreError, apply_command,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{
    ColumnSet, EndorsedEffects, EndorsedRead, EndorsedScan, EndorsedWrite, Row, RowWrite, SqlError, SqlState,
    Value,
};

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

impl RowFunction for RowWrite {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let (ordinal, amount, row) = match (self, row) {
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
            (RowWrite::Add { ordinal, amount }, Some(row)) => (usize::from(*ordinal), *amount, row),
        };
        let value = match row.get(ordinal).ok_or_else(no_such_column)? {
            Value::Integer(value) => i64::from(*value)
                .checked_add(amount)
                .and_then(|sum| i32::try_from(sum).ok())
                .map(Value::Integer),
            Value::BigInt(value) => value.checked_add(amount).map(Value::BigInt),
            _ => return Err(no_such_column()),
        };
        let value = value.ok_or_else(out_of_range)?;
        let mut new: Row = row.iter().cloned().collect();
        Arc::get_mut(&mut new).expect("nobody else has the new row yet")[ordinal] = value;
        Ok(RowChange::Put(new))
    }
}

#[cold]
fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "the sum is out of the column's range")
}

#[cold]
fn no_such_column() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "endorsed effects name a column that the row does not have")
}

/// A plain write as a command that trusts it: nothing says which columns the table has. Additions are on bigint columns.
pub fn write_command(write: &EndorsedWrite) -> Command {
    let kind = match &write.write {
        RowWrite::Put(row) => CommandKind::Insert(row.clone()),
        RowWrite::Assign(values) => CommandKind::Update { known: values.clone() },
        RowWrite::Add { .. } => CommandKind::Update { known: Vec::new() },
        RowWrite::Delete => CommandKind::Delete,
    };
    let writes = write.write.columns();
    let (uses, addition) = match &write.write {
        RowWrite::Put(_) => (ColumnSet::EMPTY, None),
        RowWrite::Assign(_) | RowWrite::Delete => (ColumnSet::EXISTS, None),
        RowWrite::Add { ordinal, amount } => {
            (writes | ColumnSet::EXISTS, Some(Addition::new(*ordinal, *amount, i64::MIN, i64::MAX)))
        }
    };
    Command {
        row: RowId { table: write.table, key: write.key.clone() },
        function: Arc::new(write.write.clone()),
        kind,
        uses,
        writes,
        guard: write.guard,
        can_fail: addition.is_some(),
        addition,
    }
}

/// The effects of a simulation on `snapshot`, at the time `now_ms`, as endorsers sign them. Every command becomes a [`RowWrite`]; what it used
/// is read, unless it stays an addition.
///
/// Columns that share a bit of [`ColumnSet`] are written together, so who writes one of them reads them all: nobody
/// else's write of another is lost.
///
/// # Errors
/// What the simulation ended with: that is not endorsed. `58030` where the snapshot cannot be read.
pub fn endorsed_effects(
    effects: &Effects,
    snapshot: &dyn Snapshot,
    now_ms: u64,
    form: EndorsedForm,
) -> Result<EndorsedEffects, SqlError> {
    let read = |Read { row, columns }: &Read| EndorsedRead {
        table: row.table,
        key: row.key.clone(),
        columns: *columns,
    };
    let scan = |scan: &Scan| EndorsedScan {
        table: scan.table,
        start: scan.range.start.clone().into(),
        end: scan.range.end.clone().into(),
        columns: scan.columns,
        predicate_columns: scan.predicate_columns,
        result: scan.result.clone(),
    };
    let mut found = EndorsedEffects {
        reads: effects.reads.iter().map(read).collect(),
        scans: effects.scans.iter().map(scan).collect(),
        writes: Vec::new(),
        results: effects.result.clone()?,
        now_ms,
        oracles: Vec::new(),
    };
    for of_row in by_row(&effects.commands) {
        let additions: Option<Vec<EndorsedWrite>> = of_row.iter().map(|command| addition(command)).collect();
        match additions.filter(|_| form == EndorsedForm::Commands) {
            Some(additions) => found.writes.extend(additions),
            None => write(&of_row, snapshot, &mut found)?,
        }
    }
    Ok(found)
}

/// The commands on each row, the rows in the order of their first commands.
fn by_row(commands: &[Command]) -> Vec<Vec<&Command>> {
    let mut places = BTreeMap::new();
    let mut rows: Vec<Vec<&Command>> = Vec::new();
    for command in commands {
        let place = *places.entry(&command.row).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => row.push(command),
            None => rows.push(vec![command]),
        }
    }
    rows
}

fn addition(command: &Command) -> Option<EndorsedWrite> {
    let addition = command.addition?;
    let write = RowWrite::Add { ordinal: addition.ordinal(), amount: addition.amount };
    let RowId { table, key } = command.row.clone();
    Some(EndorsedWrite { table, key, guard: command.guard, write })
}

/// What commands on one row came to on the snapshot.
fn write(
    commands: &[&Command],
    snapshot: &dyn Snapshot,
    found: &mut EndorsedEffects,
) -> Result<(), StoreError> {
    let RowId { table, key } = commands[0].row.clone();
    let before = snapshot.get(table, &key)?;
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
    found.reads.push(EndorsedRead { table, key: key.clone(), columns: used | (written & shared) });
    let write = match (before, after) {
        _ if written.is_empty() => return Ok(()),
        (None, None) => return Ok(()),
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
    found.writes.push(EndorsedWrite { table, key, guard, write });
    Ok(())
}

/// Endorsed effects as validation works on them; `command` makes a write a command, and may refuse it.
///
/// # Errors
/// Those of `command`.
pub fn effects_of(
    endorsed: &EndorsedEffects,
    mut command: impl FnMut(&EndorsedWrite) -> Result<Command, SqlError>,
) -> Result<Effects, SqlError> {
    let read = |read: &EndorsedRead| Read {
        row: RowId { table: read.table, key: read.key.clone() },
        columns: read.columns | ColumnSet::EXISTS,
    };
    let scan = |scan: &EndorsedScan| Scan {
        table: scan.table,
        range: KeyRange { start: scan.start.clone().into(), end: scan.end.clone().into() },
        columns: scan.columns | ColumnSet::EXISTS,
        predicate_columns: scan.predicate_columns,
        predicate: None,
        result: scan.result.clone(),
    };
    Ok(Effects {
        reads: endorsed.reads.iter().map(read).collect(),
        scans: endorsed.scans.iter().map(scan).collect(),
        commands: endorsed.writes.iter().map(&mut command).collect::<Result<_, _>>()?,
        result: Ok(endorsed.results.clone()),
        steps: endorsed.steps(),
        catalog: None,
    })
}
