//! Committing: lock the columns, validate, prepare what can fail, write, publish.
//!
//! ```text
//!  snapshots asked for ─▶ shared locks of columns ─▶ one commits at a time: validate ─▶ prepare ─▶ write ─▶ publish
//!   (made first)           (in their order)                                 (may fail)   (cannot)
//! ```

use super::Engine;
use super::recent::{Committed, Recent};
use super::transaction::{Insert, Transaction, Update};
use crate::AnkerError;
use crate::clock::RowCounts;
use crate::column::Column;
use crate::predicate::Cell;
use crate::system::Isolation;
use crate::table::TABLES_MAX;
use parking_lot::{MutexGuard, RwLockReadGuard};

impl Transaction<'_> {
    /// Commits; gives the time at which the writes are there, or that of the beginning if there are none.
    ///
    /// # Errors
    /// [`AnkerError::Conflict`] if somebody has committed what this one read or writes; a table that is full; memory that cannot be
    /// had. Nothing was written then.
    pub fn commit(self) -> Result<u64, AnkerError> {
        let Transaction { engine, active, updates, inserts, .. } = &self;
        if updates.is_empty() && inserts.is_empty() {
            // All of it was read from one state, so it takes effect there.
            return Ok(active.at);
        }
        let (_shared, mut recent) = engine.lock_for_writing(&self);
        validate(&self, &recent)?;
        let (before, rows) = engine.clock.now();
        let rows = engine.prepare(updates, inserts, rows)?;
        let now = before + 1;
        let committed = engine.write(&self, now, rows);
        let mut after = rows;
        inserts.iter().for_each(|insert| after[insert.table] += 1);
        let oldest = engine.clock.publish(now, after);
        if engine.system.isolation == Isolation::Serializable {
            recent.add(committed, oldest);
        }
        Ok(now)
    }
}

/// First committer wins where both write; precision locking where one has read.
fn validate(transaction: &Transaction<'_>, recent: &Recent) -> Result<(), AnkerError> {
    let begin = transaction.active.at;
    let is_overwritten = |update: &Update| {
        let column = &transaction.engine.tables[update.table].columns[update.column];
        column.versions.written(update.row as usize) > begin
    };
    let conflicts = match transaction.engine.system.isolation {
        Isolation::ReadUncommitted => false,
        Isolation::Snapshot => transaction.updates.iter().any(is_overwritten),
        Isolation::Serializable => {
            transaction.updates.iter().any(is_overwritten) || recent.meet(begin, &transaction.predicates)
        }
    };
    if conflicts { Err(AnkerError::Conflict) } else { Ok(()) }
}

impl Engine {
    /// Makes the snapshots that are asked for of columns that will be written; then locks these columns against snapshots, and others
    /// out of committing.
    fn lock_for_writing(
        &self,
        transaction: &Transaction<'_>,
    ) -> (Vec<RwLockReadGuard<'_, ()>>, MutexGuard<'_, Recent>) {
        if !self.system.snapshots_columns() {
            return (Vec::new(), self.commits.lock());
        }
        let columns = self.written_columns(transaction);
        loop {
            for column in columns.iter().filter(|column| column.is_pending()) {
                column.materialise_pending(|| self.clock.oldest());
            }
            // In the order of their numbers, as everybody does. Waiting here keeps nobody else from committing.
            let shared = columns.iter().map(|column| column.share()).collect();
            let recent = self.commits.lock();
            // Snapshots are asked for by those who hold the lock of commits, so from here on no new one is.
            if !columns.iter().any(|column| column.is_pending()) {
                return (shared, recent);
            }
        }
    }

    /// In the order of their numbers.
    fn written_columns(&self, transaction: &Transaction<'_>) -> Vec<&Column> {
        // A bit for each column of each table.
        let mut written = [0_u64; TABLES_MAX];
        for update in &transaction.updates {
            written[update.table] |= 1 << update.column;
        }
        for insert in &transaction.inserts {
            written[insert.table] = u64::MAX;
        }
        let mut columns = Vec::new();
        for (table, bits) in self.tables.iter().zip(written).filter(|(_, bits)| *bits != 0) {
            let own = table.columns.iter().enumerate().filter(|(column, _)| bits >> column & 1 == 1);
            columns.extend(own.map(|(_, column)| column));
        }
        columns
    }

    /// Everything that can fail. Gives how many rows there are.
    fn prepare(
        &self,
        updates: &[Update],
        inserts: &[Insert],
        rows: RowCounts,
    ) -> Result<RowCounts, AnkerError> {
        for update in updates {
            self.tables[update.table].columns[update.column].storage.prepare(update.row as usize)?;
        }
        let mut next = rows;
        for insert in inserts {
            let (table, row) = (&self.tables[insert.table], next[insert.table] as usize);
            if row >= table.shape.rows_max {
                return Err(AnkerError::Full { table: table.shape.name, rows_max: table.shape.rows_max });
            }
            for column in &table.columns {
                column.storage.prepare(row)?;
            }
            next[insert.table] += 1;
        }
        Ok(rows)
    }

    /// Replaces values and appends rows. Gives what was done, for validation of others.
    fn write(&self, transaction: &Transaction<'_>, now: u64, mut rows: RowCounts) -> Committed {
        let validated = self.system.isolation == Isolation::Serializable;
        let mut committed = Committed::new(now);
        let of_a_row = |one: &Update, next: &Update| (one.table, one.row) == (next.table, next.row);
        for updates in transaction.updates.chunk_by(of_a_row) {
            let first = updates[0];
            let cells: Vec<Cell> = updates.iter().map(|update| self.replace(*update, now)).collect();
            if validated {
                let table = &self.tables[first.table];
                let keys = table.columns[..table.shape.keys].iter();
                let keys = keys.map(|key| key.storage.get(first.row as usize));
                committed.push((first.table, first.row), false, keys, cells);
            }
        }
        for insert in &transaction.inserts {
            let (table, row) = (&self.tables[insert.table], rows[insert.table]);
            for (column, value) in table.columns.iter().zip(&insert.values) {
                column.storage.set(row as usize, *value);
                column.change();
            }
            if let Some((index, key)) = insert.entry {
                self.indexes[index].add(key, row);
            }
            if validated {
                let cell = |(column, after): (usize, &i64)| Cell { column, before: 0, after: *after };
                let cells = insert.values.iter().enumerate().map(cell);
                committed.push((insert.table, row), true, [], cells);
            }
            rows[insert.table] += 1;
        }
        committed
    }

    /// Replaces a value, which moves into its version chain.
    fn replace(&self, update: Update, now: u64) -> Cell {
        let (column, row) = (&self.tables[update.table].columns[update.column], update.row as usize);
        let before = column.storage.get(row);
        let set = || column.storage.set(row, update.value);
        match self.system.isolation {
            Isolation::ReadUncommitted => set(),
            _ => column.versions.replace((row, before), now, || self.clock.oldest(), set),
        }
        column.change();
        Cell { column: update.column, before, after: update.value }
    }
}
