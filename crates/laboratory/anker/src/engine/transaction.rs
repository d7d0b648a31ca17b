use super::Engine;
use crate::AnkerError;
use crate::clock::{Active, Looks};
use crate::predicate::{Condition, Predicate, Rows};
use crate::system::{Isolation, Storage};

/// A transaction: reads the state of its beginning, keeps its writes to itself until it commits.
///
/// Dropping it leaves everything as it was.
#[derive(Debug)]
pub struct Transaction<'e> {
    pub(super) engine: &'e Engine,
    pub(super) active: Active<'e>,
    pub(super) predicates: Vec<Predicate>,
    pub(super) updates: Vec<Update>,
    pub(super) inserts: Vec<Insert>,
}

/// A value that a transaction writes when it commits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub(super) table: usize,
    pub(super) row: u32,
    pub(super) column: usize,
    pub(super) value: i64,
}

/// A row that a transaction appends when it commits.
#[derive(Clone, Debug)]
pub(super) struct Insert {
    pub(super) table: usize,
    pub(super) values: Vec<i64>,
    pub(super) entry: Option<(usize, u64)>,
}

impl<'e> Transaction<'e> {
    pub(super) fn new(engine: &'e Engine) -> Transaction<'e> {
        Transaction {
            engine,
            active: engine.clock.begin(Looks::Transaction),
            predicates: Vec::new(),
            updates: Vec::new(),
            inserts: Vec::new(),
        }
    }

    /// The time whose state it reads.
    pub fn began(&self) -> u64 {
        self.active.at
    }

    /// How many rows of a table it sees.
    pub fn rows(&self, table: usize) -> u32 {
        self.active.rows.get(table).copied().unwrap_or(0)
    }

    /// A value; its own, if it has written one.
    ///
    /// # Errors
    /// A place that does not exist; a [`AnkerError::Conflict`] as soon as the value would have to come out of a version chain, where
    /// snapshots take the chains (2.6.1).
    pub fn read(&mut self, table: usize, row: u32, column: usize) -> Result<i64, AnkerError> {
        self.engine.check_place(table, row, column, self.rows(table))?;
        self.registers(table, row, column);
        self.value(table, row, column)
    }

    /// Reads columns of all rows that meet conditions: gives each row to `with`, with the values of `columns`.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub fn read_where(
        &mut self,
        table: usize,
        conditions: &[Condition],
        columns: &[usize],
        mut with: impl FnMut(u32, &[i64]),
    ) -> Result<(), AnkerError> {
        let named = conditions.iter().map(|condition| condition.column).chain(columns.iter().copied());
        self.engine.check_columns(table, named)?;
        let bits = columns.iter().fold(0, |bits, column| bits | 1 << column);
        self.register(Predicate { table, rows: Rows::Where(conditions.to_vec()), columns: bits })?;
        let mut values = vec![0; columns.len()];
        for row in 0..self.rows(table) {
            let mut matches = true;
            for condition in conditions {
                let value = self.value(table, row, condition.column)?;
                matches &= (condition.from..=condition.to).contains(&value);
            }
            if matches {
                for (value, column) in values.iter_mut().zip(columns) {
                    *value = self.value(table, row, *column)?;
                }
                with(row, &values);
            }
        }
        Ok(())
    }

    /// Looks at the rows that an index has under a key, in the order in which they were committed. What that reads is for the caller
    /// to [`Transaction::register`].
    ///
    /// # Errors
    /// An index or table that does not exist.
    pub fn look<T>(
        &self,
        index: usize,
        table: usize,
        key: u64,
        with: impl FnOnce(&[u32]) -> T,
    ) -> Result<T, AnkerError> {
        Ok(self.engine.index(index)?.look(key, self.rows(table), with))
    }

    /// Says what the transaction has read, so that it is validated when it commits.
    ///
    /// # Errors
    /// A table or column that does not exist.
    pub fn register(&mut self, predicate: Predicate) -> Result<(), AnkerError> {
        if let Rows::Where(conditions) = &predicate.rows {
            self.engine.check_columns(predicate.table, conditions.iter().map(|one| one.column))?;
        }
        if self.engine.system.isolation == Isolation::Serializable {
            self.predicates.push(predicate);
        }
        Ok(())
    }

    /// Writes a value when it commits.
    ///
    /// # Errors
    /// A place that does not exist, or a key, which never changes.
    pub fn write(&mut self, table: usize, row: u32, column: usize, value: i64) -> Result<(), AnkerError> {
        self.engine.check_place(table, row, column, self.rows(table))?;
        let shape = &self.engine.tables[table].shape;
        if column < shape.keys {
            let expected = format!("a column of {} that may change", shape.name);
            return Err(AnkerError::unknown(expected, format_args!("its key {}", shape.columns[column])));
        }
        let same = |update: &&mut Update| (update.table, update.row, update.column) == (table, row, column);
        match self.updates.iter_mut().find(same) {
            Some(update) => update.value = value,
            None => self.updates.push(Update { table, row, column, value }),
        }
        Ok(())
    }

    /// Appends a row when it commits, with an entry (index, key) if there is one. The transaction itself does not see it.
    ///
    /// # Errors
    /// A table or index that does not exist, or too few or many values.
    pub fn insert(
        &mut self,
        table: usize,
        values: Vec<i64>,
        entry: Option<(usize, u64)>,
    ) -> Result<(), AnkerError> {
        self.engine.check_row(table, &values)?;
        if let Some((index, _)) = entry {
            self.engine.index(index)?;
        }
        self.inserts.push(Insert { table, values, entry });
        Ok(())
    }

    /// The row's columns that were read, in one predicate where the last one is of the same row.
    fn registers(&mut self, table: usize, row: u32, column: usize) {
        if self.engine.system.isolation != Isolation::Serializable {
            return;
        }
        let columns = 1 << column;
        match self.predicates.last_mut() {
            Some(last) if last.table == table && last.rows == Rows::One(row) => last.columns |= columns,
            _ => self.predicates.push(Predicate { table, rows: Rows::One(row), columns }),
        }
    }

    fn value(&self, table: usize, row: u32, column: usize) -> Result<i64, AnkerError> {
        let own = |update: &&Update| (update.table, update.row, update.column) == (table, row, column);
        if let Some(update) = self.updates.iter().find(own) {
            return Ok(update.value);
        }
        let (place, begin) = (&self.engine.tables[table].columns[column], self.active.at);
        let get = || place.storage.get(row as usize);
        match (self.engine.system.isolation, self.engine.system.storage) {
            (Isolation::ReadUncommitted, _) => Ok(get()),
            (_, Storage::See) => Ok(place.versions.read(row as usize, begin, get)),
            _ => place.versions.in_place(row as usize, begin, get).ok_or(AnkerError::Conflict),
        }
    }
}
