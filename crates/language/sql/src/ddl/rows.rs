//! The rows that a schema change looks at, and those that it makes.
//!
//! A schema change never changes rows of a table that stays: it makes a table with rows. Where an ALTER TABLE gives rows
//! another shape, that is the same table under another number, as PostgreSQL writes a new file: snapshots go on seeing
//! the rows that they saw, indexes are made anew, and the rows under the old number go with it.

use execute::{Execution, check_row_bytes};
use plan::expression::new_long_bytes;
use plan::statement::{BoundSelect, BoundStatement};
use state::{
    AfterImage, Changes, Command, CommandKind, KeyRange, Overlay, RowChange, RowFunction, RowId, Snapshot,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::session_format::SessionFormat;
use types::{Catalog, ColumnSet, ExecutionVersion, Key, Row, SqlError, TableId};

/// The rows of all tables while schema changes are made.
pub(crate) struct Rows<'e, 'x> {
    pub(super) execution: &'e mut Execution<'x>,
    /// In which values become rows; definitions have none.
    pub(super) format: SessionFormat,
    /// Those of tables that did not exist before, in front of what the execution runs on.
    made: Changes,
}

/// What is done with a row, beside all others.
pub(super) type VisitRow<'a> = dyn FnMut(&dyn Snapshot, &Key, &Row) -> Result<(), SqlError> + 'a;

/// What becomes of a row, and of its key.
pub(super) type ChangeRow<'a> = dyn FnMut(&Key, &Row) -> Result<(Key, Row), SqlError> + 'a;

impl<'e, 'x> Rows<'e, 'x> {
    /// Those that the execution sees.
    pub fn new(execution: &'e mut Execution<'x>, format: SessionFormat) -> Rows<'e, 'x> {
        Rows { execution, format, made: Changes::default() }
    }

    /// Height of the block that the change is in.
    pub(super) fn height(&self) -> u64 {
        self.execution.context().height
    }

    /// The rules of execution.
    pub(super) fn version(&self) -> ExecutionVersion {
        self.execution.programs().version()
    }

    /// Visits every row of a table, at a step each.
    pub(super) fn visit(&mut self, table: TableId, visit: &mut VisitRow<'_>) -> Result<(), SqlError> {
        let both = Overlay::lent(self.execution.snapshot(), &self.made);
        let mut result = Ok(());
        let read = both.scan(table, &KeyRange::ALL, false, &mut |key, row| {
            result = self.execution.charge(1);
            if result.is_ok() {
                result = self.execution.measured(|_| visit(&both, key, row));
            }
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.execution.read(read)?;
        result
    }

    /// Whether a table has rows.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn are_in(&self, table: TableId) -> Result<bool, SqlError> {
        let mut found = false;
        let both = Overlay::lent(self.execution.snapshot(), &self.made);
        let read = both.scan(table, &KeyRange::ALL, false, &mut |_, _| {
            found = true;
            ControlFlow::Break(())
        });
        self.execution.read(read).map(|()| found)
    }

    /// Puts the rows of a query into a table that has none. Gives how many there are.
    pub(super) fn fill(&mut self, table: TableId, query: BoundSelect) -> Result<usize, SqlError> {
        let output = self.execution.run(&BoundStatement::Select(query), &[])?;
        let count = output.rows.len();
        for row in output.rows {
            let key = self.execution.draw_key()?;
            self.put(table, key, Row::from(row))?;
        }
        Ok(count)
    }

    /// Makes the rows of a table from those of another one, which goes.
    pub(super) fn rewrite(
        &mut self,
        from: TableId,
        to: TableId,
        change: &mut ChangeRow<'_>,
    ) -> Result<(), SqlError> {
        let mut rows = Vec::new();
        self.visit(from, &mut |_, key, row| {
            let (key, changed) = change(key, row)?;
            let made = new_long_bytes(&changed, row);
            rows.push((key, changed, made));
            Ok(())
        })?;
        self.made.forget_table(from);
        rows.into_iter().try_for_each(|(key, row, made)| {
            self.execution.keep_row(&key, &row, made)?;
            self.put(to, key, row)
        })
    }

    /// Makes the rows of a table from those of another one, which goes, but for some. Gives these.
    pub(super) fn split(
        &mut self,
        from: TableId,
        to: TableId,
        goes: &mut dyn FnMut(&Row) -> Result<bool, SqlError>,
    ) -> Result<Vec<(Key, Row)>, SqlError> {
        let (mut stays, mut gone) = (Vec::new(), Vec::new());
        self.visit(from, &mut |_, key, row| {
            let side = if goes(row)? { &mut gone } else { &mut stays };
            side.push((key.clone(), row.clone()));
            Ok(())
        })?;
        self.made.forget_table(from);
        for (key, row) in stays {
            self.execution.keep_row(&key, &row, 0)?;
            self.put(to, key, row)?;
        }
        Ok(gone)
    }

    /// Forgets the rows of a table that was made by an earlier change, and goes.
    pub(super) fn forget(&mut self, table: TableId) {
        self.made.forget_table(table);
    }

    /// The same under hidden keys, in the order of the rows.
    pub(super) fn rewrite_hidden(&mut self, from: TableId, to: TableId) -> Result<(), SqlError> {
        let mut rows = Vec::new();
        self.visit(from, &mut |_, _, row| {
            rows.push(row.clone());
            Ok(())
        })?;
        self.made.forget_table(from);
        for row in rows {
            let key = self.execution.draw_key()?;
            self.execution.keep_row(&key, &row, 0)?;
            self.put(to, key, row)?;
        }
        Ok(())
    }

    /// Puts a row into a table that is made.
    pub(super) fn put(&mut self, table: TableId, key: Key, row: Row) -> Result<(), SqlError> {
        check_row_bytes(&row)?;
        self.made.put(RowId { table, key }, row);
        Ok(())
    }

    /// Leaves the rows of the tables that were made in the execution.
    pub(super) fn finish(self, catalog: &Catalog) {
        let kept: BTreeSet<TableId> = catalog.row_tables().collect();
        for AfterImage { row, value } in self.made.into_images() {
            let Some(value) = value.filter(|_| kept.contains(&row.table)) else { continue };
            self.execution.place_row(Command {
                row,
                function: Arc::new(PutRow(value.clone())),
                kind: CommandKind::Insert(value),
                uses: ColumnSet::EMPTY,
                writes: ColumnSet::ALL,
                guard: None,
                can_fail: false,
                addition: None,
            });
        }
    }
}

/// A row of a table that nobody else knows yet.
struct PutRow(Row);

impl RowFunction for PutRow {
    fn apply(&self, _row: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(RowChange::Put(self.0.clone()))
    }
}
