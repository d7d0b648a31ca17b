//! FETCH, MOVE and CLOSE as statements of their own: what the client of a transaction does with the cursors that its functions have left
//! open.
//!
//! A cursor's rows were registered as read when it was opened, so nothing here reads. But the position is a part of the
//! transaction: a function may move the cursor on behind the client. So every node does the same again.

use crate::execution::Execution;
use plan::statement::StatementOutput;
use types::{Movement, SqlError};

impl Execution<'_> {
    /// Moves a cursor, and gives the rows that it meets.
    ///
    /// # Errors
    /// `34000` where there is none, `55000` where it would go back and must not, `57014` where the steps are spent.
    pub fn fetch(&mut self, name: &str, movement: Movement) -> Result<StatementOutput, SqlError> {
        let columns = self.cursors.columns(name)?;
        let moved = self.cursors.go(name, movement)?;
        // As many as a query takes that finds these rows.
        self.charge(1 + moved.rows as u64)?;
        let rows = moved.positions().map(|position| self.cursors.row(name, position));
        let rows = rows.collect::<Result<Vec<_>, SqlError>>()?;
        Ok(StatementOutput { affected: moved.rows as u64, columns, rows, ..StatementOutput::default() })
    }

    /// Moves a cursor, and says how many rows it has met.
    ///
    /// # Errors
    /// As [`Execution::fetch`].
    pub fn move_cursor(&mut self, name: &str, movement: Movement) -> Result<StatementOutput, SqlError> {
        let moved = self.cursors.go(name, movement)?;
        self.charge(1)?;
        Ok(StatementOutput { affected: moved.rows as u64, ..StatementOutput::default() })
    }

    /// Closes a cursor, or all.
    ///
    /// # Errors
    /// `34000` where there is none, `24000` where a loop runs over it, `57014` where the steps are spent.
    pub fn close(&mut self, name: Option<&str>) -> Result<StatementOutput, SqlError> {
        self.charge(1)?;
        match name {
            Some(name) => self.close_cursor(name)?,
            None => self.cursors.close_all(&self.meter.memory),
        }
        Ok(StatementOutput::default())
    }
}
