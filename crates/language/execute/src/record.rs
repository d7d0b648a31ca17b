//! What an execution leaves behind: reads and commands.

use crate::change::check_row_bytes;
use crate::execution::Execution;
use crate::own::{COMMAND_BYTES, OwnRow, READ_BYTES, key_space, without};
use plan::expression::{long_bytes, row_space};
use state::{Command, CommandKind, Read, RowChange, RowId};
use std::sync::Arc;
use types::{ColumnSet, ExecutionVersion, Key, Row, SqlError, TableId};
use values::work::measured;

impl Execution<'_> {
    /// Records a command on a row that nothing else of the transaction looks at.
    pub fn place_row(&mut self, command: Command) {
        self.outcome.commands.push(command);
    }

    /// A row stays that a command will place; `made`: the bytes of its values that nothing else holds.
    ///
    /// # Errors
    /// `54000` where there are too many.
    pub fn keep_row(&self, key: &Key, row: &Row, made: u64) -> Result<(), SqlError> {
        self.meter.memory.keep(COMMAND_BYTES + 2 * key_space(key) + row_space(row.len()) + made)
    }

    /// Registers that these columns of a row were looked at.
    pub(super) fn register_read(&mut self, table: TableId, key: &Key, columns: ColumnSet) {
        if !self.on.registers {
            return;
        }
        let columns = match self.written.own.position(table, key) {
            Some(position) => {
                let own = self.written.own.get(position);
                without(columns, own.written) | own.uses
            }
            None => columns,
        };
        let row = RowId { table, key: key.clone() };
        self.outcome.reads.push(Read { row, columns: columns | ColumnSet::EXISTS });
        // What is too much says so where the next thing is counted, which can fail.
        let _ = self.meter.memory.keep(READ_BYTES + key_space(key));
    }

    /// A new data-changing statement begins.
    pub fn begin_change(&mut self) {
        if self.running.remaining.parts.is_none() {
            self.see_newer();
        }
        self.outcome.last_matched.clear();
    }

    /// It has found its rows: what it does with them stands on what functions, and other parts of the same statement, have
    /// written in the meantime. In version 1 it stands on what was there when the statement began.
    pub(super) fn begin_commands(&mut self) {
        if self.on.programs.version() >= ExecutionVersion::V2 {
            self.see_newer();
        }
    }

    /// Applies a command to the row as it stands and records it. Gives whether it matched.
    pub(super) fn apply(&mut self, command: Command) -> Result<bool, SqlError> {
        let fetched;
        let current = match self.written.own.position(command.row.table, &command.row.key) {
            Some(position) => self.written.own.get(position).value.as_ref(),
            None => {
                fetched = self.read(self.on.snapshot.get(command.row.table, &command.row.key))?;
                fetched.as_ref()
            }
        };
        // The size of a row is judged here only: at a command's place other transactions may have made it larger, and
        // judging it there would make every text column of the row one that the command uses.
        let left = self.on.context.step_limit.saturating_sub(self.meter.steps);
        let (change, steps) = measured(left, || command.function.apply(current).and_then(sized));
        if let Err(error) = self.charge(steps) {
            // How much work it is depends on the row.
            self.read_for_good(command.row, command.uses);
            return Err(error);
        }
        let writes = command.writes;
        self.record(command, writes, change)
    }

    /// Records a command with what it makes of the row as it stands. `writes`: what it has certainly written where it
    /// matches. Gives whether it matched.
    pub fn record(
        &mut self,
        command: Command,
        writes: ColumnSet,
        change: Result<RowChange, SqlError>,
    ) -> Result<bool, SqlError> {
        let change = match change {
            Ok(change) => change,
            Err(error) => {
                // An error that shows the whole row, or its length, has looked at all of it.
                let insert = matches!(command.kind, state::CommandKind::Insert(_));
                let shown = !insert && error.detail.is_some();
                let columns = if shown { ColumnSet::ALL } else { command.uses };
                self.read_for_good(command.row, columns);
                return Err(error);
            }
        };
        self.read_what_may_fail(&command);
        self.authorise_change((&command.row, command.uses), &change)?;
        let space = self.meter.memory.keep(command_space(&command, &change));
        if let Err(error) = space.and_then(|()| self.remember_own()) {
            // How much it takes depends on the row.
            self.read_for_good(command.row, ColumnSet::ALL);
            return Err(error);
        }
        let matched = change != RowChange::Unmatched;
        let written = if matched { writes } else { ColumnSet::EMPTY };
        let position = self.written.own.position(command.row.table, &command.row.key);
        let value = match change {
            RowChange::Unmatched => self.current(command.row.table, &command.row.key)?,
            RowChange::Put(row) => Some(row),
            RowChange::Delete => None,
        };
        match position {
            Some(position) => {
                let own = Arc::make_mut(&mut self.written.own).get_mut(position);
                own.value = value;
                own.uses |= command.uses;
                own.written |= written;
                own.changes += u32::from(matched);
            }
            None => {
                Arc::make_mut(&mut self.written.own).push(OwnRow {
                    row: command.row.clone(),
                    value,
                    uses: command.uses,
                    written,
                    changes: u32::from(matched),
                });
            }
        }
        self.outcome.last_matched.push((self.outcome.commands.len(), matched));
        self.outcome.commands.push(command);
        Ok(matched)
    }
}

/// What a command takes, and the row that it makes. What an UPDATE computes from the row was counted nowhere else.
fn command_space(command: &Command, change: &RowChange) -> u64 {
    let mut bytes = COMMAND_BYTES + 2 * key_space(&command.row.key);
    if let RowChange::Put(row) = change {
        bytes += row_space(row.len());
        if let CommandKind::Update { known } = &command.kind {
            let computed = (0_u16..).zip(row.iter()).filter(|(ordinal, _)| {
                command.writes.intersects(ColumnSet::column(usize::from(*ordinal)))
                    && !known.iter().any(|(known, _)| known == ordinal)
            });
            bytes += computed.map(|(_, value)| long_bytes(value)).sum::<u64>();
        }
    }
    bytes
}

/// Refuses a row that is too long to store.
pub fn sized(change: RowChange) -> Result<RowChange, SqlError> {
    match &change {
        RowChange::Put(row) => check_row_bytes(row).map(|()| change),
        _ => Ok(change),
    }
}
