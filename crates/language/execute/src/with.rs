//! Statements with WITH queries that change rows: parts that run one after the other, as if all at once.
//!
//! Every part looks for its rows among those that were there when the statement began, and its commands stand on what
//! the parts before it have left. A row is changed by one part alone: as in PostgreSQL the first one has it, and the
//! others leave it out. What a part does depends on which rows the others have changed, so all commands are guarded.
//! References and AFTER triggers come when the last part has ended.

use crate::execution::Execution;
use crate::remaining::Parts;
use plan::statement::{BoundWith, StatementOutput};
use rustc_hash::FxHashSet;
use state::RowId;
use std::rc::Rc;
use types::{Key, SqlError, TableId, Value};

impl Execution<'_> {
    /// Runs a statement with WITH queries that change rows.
    pub(super) fn run_with(
        &mut self,
        with: &BoundWith,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        self.see_newer();
        let base = self.written.own.clone();
        self.running.remaining.parts =
            Some(Parts { base, changed: FxHashSet::default(), changing: Vec::new() });
        let known = self.running.working.len();
        let output = self.run_parts(with, frame);
        self.running.working.truncate(known);
        self.running.remaining.parts = None;
        let output = output?;
        self.settle()?;
        Ok(output)
    }

    fn run_parts(&mut self, with: &BoundWith, frame: &[Value]) -> Result<StatementOutput, SqlError> {
        let mut output = StatementOutput::default();
        for next in &with.order {
            let part = match next {
                Some(position) => &with.changes[*position].statement,
                None => &with.main,
            };
            self.charge(1)?;
            if let Some(parts) = &mut self.running.remaining.parts {
                parts.changed.extend(parts.changing.drain(..));
                let seen = parts.base.clone();
                self.written.newer = Some(std::mem::replace(&mut self.written.own, seen));
            }
            self.outcome.last_matched.clear();
            let found = self.run_measured(part, frame)?;
            self.see_newer();
            self.look_at_matched();
            match next {
                None => output = found,
                Some(position) => {
                    self.keep_rows(&found.rows)?;
                    self.running.working.push((with.changes[*position].number, Rc::new(found.rows).into()));
                }
            }
        }
        Ok(output)
    }

    /// Whether a part of the running statement leaves out a row, because another part has changed it.
    ///
    /// # Errors
    /// `27000` where a function has that another part calls.
    pub(super) fn is_left_out(&self, table: TableId, key: &Key, what: &str) -> Result<bool, SqlError> {
        let Some(parts) = &self.running.remaining.parts else { return Ok(false) };
        let row = RowId { table, key: key.clone() };
        if parts.changed.contains(&row) {
            return Ok(true);
        }
        let seen = parts.base.position(table, key).map_or(0, |position| parts.base.get(position).changes);
        self.refuse_changed(&row, seen, what)?;
        Ok(false)
    }

    /// The running statement has changed a row.
    pub(super) fn note_changed(&mut self, table: TableId, key: &Key) {
        if let Some(parts) = &mut self.running.remaining.parts {
            parts.changing.push(RowId { table, key: key.clone() });
        }
    }
}
