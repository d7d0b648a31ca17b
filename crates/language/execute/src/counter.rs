//! Sequences that count: reading and writing the last value.
//!
//! The row of a counter is data like any other: a draw is part of its transaction, is undone with it, and whoever draws in the
//! same batch is in conflict with it.

use crate::execution::Execution;
use plan::sequence::counter_key;
use state::{Command, CommandKind, RowChange, RowFunction, RowId};
use std::sync::Arc;
use types::{ColumnSet, Counter, Row, SqlError, SqlState, TableId, Value};

/// Leaves this row.
struct Leave(Row);

impl RowFunction for Leave {
    fn apply(&self, _row: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(RowChange::Put(self.0.clone()))
    }
}

impl Execution<'_> {
    /// Draws the next value.
    ///
    /// # Errors
    /// `2200H` where there is none.
    pub fn count(&mut self, counter: &Counter, name: &str) -> Result<i64, SqlError> {
        self.beside_statement(|execution| {
            execution.register_read(counter.table, &counter_key(), ColumnSet::ALL);
            let row = execution.current(counter.table, &counter_key())?;
            let value = counter.next(row.as_ref()).ok_or_else(|| {
                let (end, bound) = match counter.increment > 0 {
                    true => ("maximum", counter.largest),
                    false => ("minimum", counter.smallest),
                };
                let message = format!("nextval: reached {end} value of sequence \"{name}\" ({bound})");
                SqlError::new(SqlState(*b"2200H"), message)
            })?;
            execution.leave_counter(counter, value, true)?;
            Ok(value)
        })
    }

    /// The value that was drawn or set last, or the first one, and whether it was drawn.
    ///
    /// # Errors
    /// What reading raises.
    pub(super) fn counter_standing(&mut self, counter: &Counter) -> Result<(i64, bool), SqlError> {
        self.register_read(counter.table, &counter_key(), ColumnSet::ALL);
        let row = self.current(counter.table, &counter_key())?;
        Ok(match row.as_deref() {
            Some([Value::BigInt(value), Value::Boolean(is_drawn)]) => (*value, *is_drawn),
            _ => (counter.start, false),
        })
    }

    /// Sets the last value.
    ///
    /// # Errors
    /// What recording a command raises.
    pub fn set_counter(&mut self, counter: &Counter, value: i64, is_drawn: bool) -> Result<(), SqlError> {
        self.beside_statement(|execution| execution.leave_counter(counter, value, is_drawn))
    }

    /// RESTART IDENTITY: what belongs to this table counts from its start again.
    pub(super) fn restart_counters(&mut self, table: TableId) -> Result<(), SqlError> {
        let programs = self.on.programs;
        for sequence in programs.catalog().sequences.values() {
            if let Some(counter) = &sequence.counter
                && sequence.owner.as_ref().is_some_and(|owner| owner.table == table)
            {
                self.set_counter(counter, counter.start, false)?;
            }
        }
        Ok(())
    }

    fn leave_counter(&mut self, counter: &Counter, value: i64, is_drawn: bool) -> Result<(), SqlError> {
        let key = counter_key();
        self.register_read(counter.table, &key, ColumnSet::EXISTS);
        let row = Counter::row(value, is_drawn);
        let kind = match self.current(counter.table, &key)? {
            None => CommandKind::Insert(row.clone()),
            Some(_) => {
                CommandKind::Update { known: vec![(0, Value::BigInt(value)), (1, Value::Boolean(is_drawn))] }
            }
        };
        let command = Command {
            row: RowId { table: counter.table, key },
            function: Arc::new(Leave(row)),
            kind,
            uses: ColumnSet::EXISTS,
            writes: ColumnSet::ALL,
            guard: None,
            can_fail: false,
            addition: None,
        };
        self.apply(command).map(drop)
    }

    /// Does something for the statement that is running, which goes on seeing the rows that it saw when it began.
    pub(super) fn beside_statement<R>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let seen = self.written.own.clone();
        self.see_newer();
        let matched = std::mem::take(&mut self.outcome.last_matched);
        let remaining = std::mem::take(&mut self.running.remaining);
        let result = run(self);
        (self.outcome.last_matched, self.running.remaining) = (matched, remaining);
        self.see_newer();
        if !Arc::ptr_eq(&seen, &self.written.own) {
            self.written.newer = Some(std::mem::replace(&mut self.written.own, seen));
        }
        result
    }
}
