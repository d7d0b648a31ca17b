//! Rows that transaction blocks of one gateway lock for one another: `SELECT … FOR UPDATE` and its kind.
//!
//! ```text
//!  SKIP LOCKED   a row that is held is left out while the table is read
//!  NOWAIT        … ends the statement
//!  otherwise     … is waited for by the first statement of a block, and no obstacle later: whoever commits first goes on
//!  all           what the query gives is held from then on
//! ```
//!
//! Which rows are held is known at the gateway alone. What the statement has been told of them stands in its step, and counts as held wherever the
//! step is run again.

use crate::execution::Execution;
use crate::select::TakeRow;
use crate::subqueries::Given;
use plan::expression::rows_space;
use plan::row_locking::{RowLocking, WhenHeld};
use plan::statement::{BoundSelect, Scanned};
use plan::table::TablePlan;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use types::{HeldRow, Key, RowLockMode, SqlError, SqlState, TableId, Value};
use values::broken;

/// What is known of locks on rows where an execution runs.
pub trait RowLocks: Debug {
    /// Whether another transaction block has the row in a mode that does not go with this one.
    fn is_held(&self, table: TableId, key: &Key, mode: RowLockMode) -> bool;

    /// The row is this block's, too. `alone`: only where [`RowLocks::is_held`] is false. Gives whether it is.
    fn hold(&self, table: TableId, key: &Key, mode: RowLockMode, alone: bool) -> bool;
}

/// Rows that count as held by others.
#[derive(Debug)]
pub struct HeldElsewhere(Vec<HeldRow>);

impl HeldElsewhere {
    /// These, in ascending order: what stands in another order may not be found, at every node alike.
    pub fn of(held: &[HeldRow]) -> HeldElsewhere {
        HeldElsewhere(held.to_vec())
    }
}

impl RowLocks for HeldElsewhere {
    fn is_held(&self, table: TableId, key: &Key, _: RowLockMode) -> bool {
        self.0.binary_search_by(|held| (held.table, &held.key).cmp(&(table, key))).is_ok()
    }

    fn hold(&self, table: TableId, key: &Key, mode: RowLockMode, alone: bool) -> bool {
        !(alone && self.is_held(table, key, mode))
    }
}

/// Locks that several threads know.
pub type SharedRowLocks = Arc<dyn RowLocks + Send + Sync>;

impl RowLocks for SharedRowLocks {
    fn is_held(&self, table: TableId, key: &Key, mode: RowLockMode) -> bool {
        self.as_ref().is_held(table, key, mode)
    }

    fn hold(&self, table: TableId, key: &Key, mode: RowLockMode, alone: bool) -> bool {
        self.as_ref().hold(table, key, mode, alone)
    }
}

impl Execution<'_> {
    /// What is known here of locks on rows; nothing as long as nobody says.
    pub fn know_row_locks(&mut self, locks: Option<Rc<dyn RowLocks>>) {
        self.on.row_locks = locks;
    }

    /// Runs a query that locks the rows that it gives.
    pub(super) fn select_locking(
        &mut self,
        select: &BoundSelect,
        (scanned, locking): (&Scanned, RowLocking),
        given: Given<'_>,
        limit: Option<usize>,
        take: Option<&mut TakeRow<'_>>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let (locks, table) = (self.on.row_locks.clone(), scanned.table.clone());
        let hold = |row: &mut Vec<Value>| hold_given(locks.as_deref(), &table, locking, row);
        let Some(take) = take else {
            loop {
                let mut rows = self.select_plain(select, given, limit, None)?;
                let space = rows_space(&rows);
                let mut all = true;
                for row in &mut rows {
                    all &= hold(row)?;
                }
                self.meter.memory.release(space - if all { rows_space(&rows) } else { 0 });
                // Where another block was quicker with a row, the query finds others.
                if all {
                    return Ok(rows);
                }
            }
        };
        let mut failed = None;
        let mut take_held = |mut row: Vec<Value>| match hold(&mut row) {
            Ok(true) => take(row),
            Ok(false) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        let rows = self.select_plain(select, given, limit, Some(&mut take_held))?;
        if let Some(error) = failed {
            return Err(error);
        }
        let (space, mut kept) = (rows_space(&rows), Vec::with_capacity(rows.len()));
        for mut row in rows {
            if hold(&mut row)? {
                kept.push(row);
            }
        }
        self.meter.memory.release(space - rows_space(&kept));
        Ok(kept)
    }
}

/// Whether a row counts that a query has found in a table which it locks. It is held at once where its key does not come with what the query
/// gives.
pub(crate) fn counts(
    locks: &dyn RowLocks,
    (scanned, locking): (&Scanned, RowLocking),
    key: &Key,
) -> Result<bool, SqlError> {
    match scanned.keyed {
        false => hold(locks, &scanned.table, locking, key),
        true if locking.when_held != WhenHeld::Skip => Ok(true),
        true => Ok(!locks.is_held(scanned.table.id, key, locking.mode)),
    }
}

/// Holds a row of a result, and takes its key from behind its columns. False where it is to be left out.
fn hold_given(
    locks: Option<&dyn RowLocks>,
    table: &TablePlan,
    locking: RowLocking,
    row: &mut Vec<Value>,
) -> Result<bool, SqlError> {
    let Some(Value::Bytea(key)) = row.pop() else { return Err(broken("a locked row without its key")) };
    match locks {
        None => Ok(true),
        Some(locks) => hold(locks, table, locking, &Key::from_bytes(&key)),
    }
}

fn hold(locks: &dyn RowLocks, table: &TablePlan, locking: RowLocking, key: &Key) -> Result<bool, SqlError> {
    let held = locks.hold(table.id, key, locking.mode, locking.when_held != WhenHeld::GoOn);
    if !held && locking.when_held == WhenHeld::Fail {
        let message = format!("could not obtain lock on row in relation \"{}\"", table.name);
        return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message));
    }
    Ok(held)
}
