//! The engine: tables, a clock, and what was committed recently.

mod commit;
mod recent;
mod transaction;

pub use transaction::Transaction;

use crate::AnkerError;
use crate::clock::Clock;
use crate::index::Index;
use crate::system::System;
use crate::table::{TABLES_MAX, Table, TableShape};
use parking_lot::Mutex;
use recent::Recent;

/// A database for transactions and questions.
///
/// Transactions read and write the newest columns. Questions read a state of the past ([`Engine::ask`]).
#[derive(Debug)]
pub struct Engine {
    pub(crate) system: System,
    pub(crate) tables: Vec<Table>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) clock: Clock,
    /// Held by whoever commits: one at a time validates and writes.
    pub(crate) commits: Mutex<Recent>,
}

impl Engine {
    /// An engine with empty tables and so many indexes.
    ///
    /// # Errors
    /// Tables with no or too many columns or rows, more than [`TABLES_MAX`] of them, or memory that cannot be had.
    pub fn new(system: System, shapes: &[TableShape], indexes: usize) -> Result<Engine, AnkerError> {
        if !(1..=TABLES_MAX).contains(&shapes.len()) {
            let expected = format!("1 to {TABLES_MAX} tables (TABLES_MAX)");
            return Err(AnkerError::unknown(expected, shapes.len()));
        }
        let table = |shape: &TableShape| Table::new(*shape, system.storage);
        Ok(Engine {
            system,
            tables: shapes.iter().map(table).collect::<Result<_, _>>()?,
            indexes: (0..indexes).map(|_| Index::default()).collect(),
            clock: Clock::default(),
            commits: Mutex::default(),
        })
    }

    /// What the engine is.
    pub fn system(&self) -> System {
        self.system
    }

    /// Fills a table before anybody uses it: rows without versions, and their entries in indexes. Gives the row after the last.
    ///
    /// # Errors
    /// A table, column or index that does not exist, a table that is full, memory that cannot be had.
    pub fn load<R: AsRef<[i64]>>(
        &mut self,
        table: usize,
        rows: impl Iterator<Item = (R, Option<(usize, u64)>)>,
    ) -> Result<u32, AnkerError> {
        let (now, mut counts) = self.clock.now();
        self.check_table(table)?;
        for (values, entry) in rows {
            let values = values.as_ref();
            let (into, row) = (&self.tables[table], counts[table]);
            self.check_row(table, values)?;
            if row as usize >= into.shape.rows_max {
                return Err(AnkerError::Full { table: into.shape.name, rows_max: into.shape.rows_max });
            }
            for (column, value) in into.columns.iter().zip(values) {
                column.storage.prepare(row as usize)?;
                column.storage.set(row as usize, *value);
            }
            if let Some((index, key)) = entry {
                self.index(index)?.add(key, row);
            }
            counts[table] += 1;
        }
        self.clock.publish(now, counts);
        Ok(counts[table])
    }

    /// Begins a transaction on the newest state.
    pub fn begin(&self) -> Transaction<'_> {
        Transaction::new(self)
    }

    /// Drops versions that nobody sees any more. An engine without snapshots needs that from time to time.
    pub fn collect(&self) {
        let oldest = self.clock.oldest();
        let columns = self.tables.iter().flat_map(|table| &table.columns);
        columns.for_each(|column| column.versions.collect(oldest));
    }

    /// How many old versions are in place.
    pub fn versions(&self) -> usize {
        let columns = self.tables.iter().flat_map(|table| &table.columns);
        columns.map(|column| column.versions.count()).sum()
    }

    /// How many rows a table has now.
    pub fn rows(&self, table: usize) -> usize {
        self.clock.now().1.get(table).map_or(0, |rows| *rows as usize)
    }

    /// The newest value of a place, for checks after a run.
    ///
    /// # Errors
    /// It does not exist.
    pub fn newest(&self, table: usize, row: usize, column: usize) -> Result<i64, AnkerError> {
        self.check_place(table, row as u32, column, self.clock.now().1[table.min(TABLES_MAX - 1)])?;
        Ok(self.tables[table].columns[column].storage.get(row))
    }

    pub(crate) fn check_table(&self, table: usize) -> Result<(), AnkerError> {
        let expected = || format!("a table from 0 to {}", self.tables.len() - 1);
        if table < self.tables.len() { Ok(()) } else { Err(AnkerError::unknown(expected(), table)) }
    }

    pub(crate) fn check_columns(
        &self,
        table: usize,
        columns: impl IntoIterator<Item = usize>,
    ) -> Result<(), AnkerError> {
        self.check_table(table)?;
        let shape = &self.tables[table].shape;
        match columns.into_iter().find(|column| *column >= shape.columns.len()) {
            None => Ok(()),
            Some(column) => {
                let expected = format!("a column of {} from 0 to {}", shape.name, shape.columns.len() - 1);
                Err(AnkerError::unknown(expected, column))
            }
        }
    }

    pub(crate) fn check_place(
        &self,
        table: usize,
        row: u32,
        column: usize,
        rows: u32,
    ) -> Result<(), AnkerError> {
        self.check_columns(table, [column])?;
        if row < rows {
            return Ok(());
        }
        let name = self.tables[table].shape.name;
        Err(AnkerError::unknown(format!("a row of {name}, which has {rows}"), row))
    }

    pub(crate) fn check_row(&self, table: usize, values: &[i64]) -> Result<(), AnkerError> {
        self.check_table(table)?;
        let shape = &self.tables[table].shape;
        if values.len() == shape.columns.len() {
            return Ok(());
        }
        let expected = format!("{} values for a row of {}", shape.columns.len(), shape.name);
        Err(AnkerError::unknown(expected, values.len()))
    }

    pub(crate) fn index(&self, index: usize) -> Result<&Index, AnkerError> {
        let expected = || format!("one of {} indexes", self.indexes.len());
        self.indexes.get(index).ok_or_else(|| AnkerError::unknown(expected(), index))
    }
}
