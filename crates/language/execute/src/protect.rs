//! Blocks whose errors are handled: undoing what they have done, and why it is possible to go on.
//!
//! A command is judged twice: by the simulation, and at its place in the order, where the row may be another one. An
//! error there ends the transaction. Inside of a block with handlers it must not: there the handler decides how the
//! transaction goes on, and what it would have done instead nobody knows. So everything that decides whether a command of
//! such a block fails is read: the columns that a command uses which can fail, whether it has failed or not. Then it
//! comes out at its place as it did in the simulation, or the protocol runs the transaction again. What a block did before
//! an error has been undone, and what it used is read as well, because it is why the program came there.
//!
//! `cargo test -p sql --test handlers` replays random procedures on states that agree in what was read.

use crate::execution::Execution;
use crate::own::{OwnRows, READ_BYTES, key_space};
use state::{Command, Read, RowId};
use std::sync::Arc;
use types::{ColumnSet, SqlError};

/// How things stood when a block began.
pub struct Savepoint {
    commands: usize,
    own: Arc<OwnRows>,
    protected: usize,
    depth: usize,
    queries: usize,
    working: usize,
    cursors: u64,
    held: u64,
    moved: usize,
    deferred: usize,
    notifications: usize,
}

impl Execution<'_> {
    /// A block begins whose errors are handled.
    pub fn protect(&mut self) -> Savepoint {
        let protected = self.written.protected;
        self.written.protected += 1;
        Savepoint {
            commands: self.outcome.commands.len(),
            own: self.written.own.clone(),
            protected,
            depth: self.meter.depth,
            queries: self.meter.queries,
            working: self.running.working.len(),
            cursors: self.cursors.opened(),
            held: self.meter.memory.held(),
            moved: self.moved(),
            deferred: self.deferred.mark(),
            notifications: self.notifications.len(),
        }
    }

    /// It has ended without an error.
    pub fn unprotect(&mut self) {
        self.written.protected -= 1;
        self.forget_remembered();
        if self.written.protected == 0 {
            self.deferred.forget_before();
        }
    }

    /// It has ended with an error that a handler takes: its commands have not been.
    pub fn undo(&mut self, savepoint: Savepoint) {
        let Savepoint { commands, own, protected, depth, queries, working, cursors, held, .. } = savepoint;
        let Savepoint { moved, deferred, notifications, .. } = savepoint;
        self.notifications.truncate(notifications);
        self.undo_moves(moved);
        self.deferred.undo(deferred);
        self.written.protected = protected;
        self.forget_remembered();
        self.meter.memory.release_to(held);
        for command in self.outcome.commands.split_off(commands) {
            self.read_for_good(command.row, command.uses);
        }
        self.written.own = own;
        self.written.newer = None;
        self.outcome.last_matched.clear();
        self.running.remaining.clear();
        self.forget_subqueries();
        (self.meter.depth, self.meter.queries) = (depth, queries);
        self.running.working.truncate(working);
        self.cursors.close_since(cursors, &self.meter.memory);
    }

    /// Own rows are about to change. Where the innermost block with handlers may have to return to them, there are two
    /// versions of them from now on.
    ///
    /// # Errors
    /// `54000` where there are too many.
    pub(super) fn remember_own(&mut self) -> Result<(), SqlError> {
        if self.written.protected == 0 || Arc::strong_count(&self.written.own) == 1 {
            return Ok(());
        }
        self.written.remembered.resize(self.written.protected, 0);
        let (known, bytes) =
            (self.written.remembered[self.written.protected - 1], self.written.own.copy_bytes());
        if bytes > known {
            self.meter.memory.keep(bytes - known)?;
            self.written.remembered[self.written.protected - 1] = bytes;
        }
        Ok(())
    }

    fn forget_remembered(&mut self) {
        let rest = self.written.protected.min(self.written.remembered.len());
        self.meter.memory.give_back(self.written.remembered.drain(rest..).sum());
    }

    /// What a command used counts, whatever becomes of the command. So does what commands before it used that made the
    /// row what it saw: they may stay, and act at their place on another row.
    pub fn read_for_good(&mut self, row: RowId, uses: ColumnSet) {
        let own = self.written.newer.as_ref().unwrap_or(&self.written.own);
        let before = own.position(row.table, &row.key).map_or(ColumnSet::EMPTY, |at| own.get(at).uses);
        // As for every read.
        let _ = self.meter.memory.keep(READ_BYTES + key_space(&row.key));
        self.outcome.reads.push(Read { row, columns: uses | before });
    }

    /// A command of a block with handlers is about to be recorded: what decides whether it fails is read.
    pub(super) fn read_what_may_fail(&mut self, command: &Command) {
        if self.written.protected > 0 && command.can_fail {
            self.register_read(command.row.table, &command.row.key, command.uses);
        }
    }
}
