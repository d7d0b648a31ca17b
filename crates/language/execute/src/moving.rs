//! UPDATE of columns of the primary key: the row goes from its old key and is inserted under the new one.
//!
//! Rows are moved one after the other, as in PostgreSQL. Where another row has the new key, the row waits until the
//! statement has moved all of its rows, so that `SET id = id + 1` succeeds whatever the order of the rows. It does not
//! wait where a FOREIGN KEY takes referencing rows along: these could not be told apart from those of the row that has
//! the key.

use crate::execution::Execution;
use crate::remaining::Event;
use plan::command::{DeletePlan, UpdatePlan, insert_command};
use plan::expression::is_same;
use plan::table::TablePlan;
use std::sync::Arc;
use types::{ColumnSet, Key, ReferentialAction, Row, SqlError, TriggerEvent};

/// What has become of a row that an UPDATE has found.
pub(super) enum Updated {
    /// Nothing: a trigger or its WHERE has left it out.
    Left,
    /// The row as it is now.
    Row(Row),
    /// It is in no table until the others have moved.
    Waits(Box<WaitingRow>),
}

/// A row without a place: its new key was taken when its turn came.
pub(super) struct WaitingRow {
    plan: Arc<UpdatePlan>,
    old_key: Key,
    key: Key,
    old: Row,
    new: Row,
    /// Constraints whose checks of the row wait.
    unchecked: Vec<u32>,
}

impl Execution<'_> {
    /// Makes a row, all of which has been read, what an UPDATE and its BEFORE triggers have made of it, under the key that it
    /// has then.
    pub(super) fn replace_row(
        &mut self,
        plan: &Arc<UpdatePlan>,
        key: &Key,
        old: &Row,
        new: Row,
    ) -> Result<Updated, SqlError> {
        let table = &plan.table;
        if keeps_key(table, old, &new) {
            self.assign_row(plan, key, old, &new)?;
            return Ok(self.current(table.id, key)?.map_or(Updated::Left, Updated::Row));
        }
        table.check_row(&new)?;
        let new_key = Key::encode(table.key.iter().map(|ordinal| &new[usize::from(*ordinal)]))?;
        let delete = Arc::new(DeletePlan::new(table.clone(), Vec::new()));
        let mut delete = delete.command(key.clone(), &self.environment(&[], &[]))?;
        delete.guard = Some(true);
        self.apply(delete)?;
        self.register_read(table.id, &new_key, ColumnSet::EXISTS);
        let unchecked = self.take_put_off(table.id, key);
        let row = WaitingRow {
            plan: plan.clone(),
            old_key: key.clone(),
            key: new_key,
            old: old.clone(),
            new,
            unchecked,
        };
        if self.current(table.id, &row.key)?.is_some() && self.may_wait(table) {
            return Ok(Updated::Waits(Box::new(row)));
        }
        self.insert_moved(&row)?;
        Ok(Updated::Row(row.new))
    }

    /// Whether nothing follows the rows of a table to their new keys.
    fn may_wait(&self, table: &TablePlan) -> bool {
        let follows = |action: ReferentialAction| {
            !matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict)
        };
        let referencing = self.on.programs.tables().foreign_keys().of_parent(table.id);
        !referencing.iter().any(|foreign_key| follows(foreign_key.on_update))
    }

    fn insert_moved(&mut self, row: &WaitingRow) -> Result<(), SqlError> {
        let table = &row.plan.table;
        self.apply(insert_command(table, row.key.clone(), row.new.clone()))?;
        self.note_changed(table.id, &row.key);
        if !table.constrained.is_empty() {
            // Its removal is one change: with others before that, references of it may wait for the end.
            if self.seen(table, &row.old_key) > 1 {
                self.move_noted(table.id, &row.old_key, &row.key);
            }
            self.put_off_again(table.id, &row.key, &row.unchecked)?;
            self.row_changed(table, &row.key, Some(&row.old), Some(&row.new))?;
        }
        Ok(())
    }

    /// The statement has moved all other rows: a row that waited gets its place. Gives it.
    ///
    /// # Errors
    /// `23505` where the key is still taken.
    pub(super) fn end_waiting(&mut self, row: WaitingRow) -> Result<Row, SqlError> {
        self.charge(1)?;
        self.insert_moved(&row)?;
        let WaitingRow { plan, old, new, .. } = row;
        if plan.table.triggers.at(TriggerEvent::Update).rows {
            self.after_row(&plan.table, Event::Update(&plan), Some(&old), Some(&new))?;
        }
        Ok(new)
    }
}

/// Whether both rows have the same values in the columns of the primary key; a hidden one never changes.
fn keeps_key(table: &TablePlan, old: &Row, new: &Row) -> bool {
    let same = |ordinal: &u16| is_same(&old[usize::from(*ordinal)], &new[usize::from(*ordinal)]);
    table.key.iter().all(same)
}
