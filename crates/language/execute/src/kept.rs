//! The memory of an execution: whose share it is, and rows that stay.

use crate::cursor::CursorRows;
use crate::execution::Execution;
use plan::expression::{KeptMemory, Memory, row_space, rows_space};
use std::rc::Rc;
use types::{MemoryShare, SqlError, Value};

impl<'a> Execution<'a> {
    /// With a share of the memory that all queries of a node have together.
    pub fn sharing(mut self, share: MemoryShare) -> Execution<'a> {
        self.meter.memory = Rc::new(Memory::new(self.on.context.step_limit, KeptMemory::of(share)));
        self
    }

    /// Rows stay that a statement gave: until the transaction ends, or until they are given back.
    ///
    /// # Errors
    /// `54000` where they are too many, `53200` where the node has too little memory for them.
    pub fn keep_rows(&self, rows: &[Vec<Value>]) -> Result<(), SqlError> {
        self.meter.memory.keep(rows_space(rows))
    }

    /// Rows that a query finds under these numbers, until the execution ends. Gives whether there is room for them: where there is not, but
    /// room outside of memory, the query is to find them itself.
    ///
    /// # Errors
    /// As [`Execution::keep_rows`].
    pub fn give_rows(&mut self, found: Vec<(usize, Vec<Vec<Value>>)>) -> Result<bool, SqlError> {
        let space = found.iter().map(|(_, rows)| rows_space(rows)).sum();
        if let Err(error) = self.meter.memory.keep(space) {
            self.meter.memory.give_back(space);
            return if self.on.scratch.is_some() { Ok(false) } else { Err(error) };
        }
        self.running.working.extend(found.into_iter().map(|(number, rows)| (number, Rc::new(rows).into())));
        Ok(true)
    }

    /// Runs something that makes and keeps so many rows of so many values, each once for as long as it runs.
    ///
    /// # Errors
    /// `57014` where they are more than the steps that are left, as [`Execution::keep_rows`], and those of `run`.
    pub fn with_room_for_rows<R>(
        &mut self,
        sizes: impl Iterator<Item = (usize, usize)>,
        run: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let (mut count, mut space) = (0_u64, 0_u64);
        for (rows, width) in sizes {
            count = count.saturating_add(rows as u64);
            space = space.saturating_add(row_space(width).saturating_mul(rows as u64));
        }
        self.charge(count)?;
        let result = match self.meter.memory.keep(space) {
            Ok(()) => run(self),
            Err(error) => Err(error),
        };
        self.meter.memory.give_back(space);
        result
    }

    /// Runs something with rows that its queries find under these numbers, and for which there is room.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn with_given_rows<R>(
        &mut self,
        given: Vec<(usize, Vec<Vec<Value>>)>,
        run: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let known = self.running.working.len();
        self.running.working.extend(given.into_iter().map(|(number, rows)| (number, Rc::new(rows).into())));
        let result = run(self);
        self.running.working.truncate(known);
        result
    }

    /// Rows of a result are held until the transaction ends; until the end of the statement where a session's client gets
    /// them then.
    ///
    /// # Errors
    /// As [`Execution::keep_rows`].
    pub fn hold_result(&self, rows: &[Vec<Value>]) -> Result<(), SqlError> {
        self.meter.memory.hold(rows_space(rows))
    }

    /// Rows that were kept are gone; `space`: what [`rows_space`] says of them.
    pub fn give_back(&self, space: u64) {
        self.meter.memory.give_back(space);
    }

    /// Opens a cursor, whose rows are kept as long as it is open.
    ///
    /// # Errors
    /// As [`crate::cursor::Cursors::open`].
    pub fn open_cursor(&mut self, name: Option<&str>, content: CursorRows) -> Result<String, SqlError> {
        self.cursors.open(name, content, &self.meter.memory)
    }

    /// Closes a cursor.
    ///
    /// # Errors
    /// As [`crate::cursor::Cursors::close`].
    pub fn close_cursor(&mut self, name: &str) -> Result<(), SqlError> {
        self.cursors.close(name, &self.meter.memory)
    }

    /// The loop over a cursor has ended.
    pub fn forget_cursor(&mut self, name: &str) {
        self.cursors.forget(name, &self.meter.memory);
    }
}
