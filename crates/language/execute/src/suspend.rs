//! Executions that stop between two statements and go on later: a session waits for its client.

use crate::context::Context;
use crate::cursor::Cursors;
use crate::deferred::Deferred;
use crate::drawn::Drawn;
use crate::execution::{Execution, Written};
use crate::own::OwnRows;
use crate::programs::Programs;
use crate::random::RandomValues;
use plan::expression::{KeptMemory, Memory};
use state::{Command, Snapshot};
use std::rc::Rc;
use std::sync::Arc;
use types::{Catalog, MemoryShare, Notifications, Principal, SqlError, StatementResult};

/// What an execution has come to between two statements.
#[derive(Default)]
pub struct Suspended {
    commands: Vec<Command>,
    own: Arc<OwnRows>,
    protected: usize,
    draws: u32,
    drawn: Drawn,
    random: RandomValues,
    cursors: Cursors,
    steps: u64,
    memory: KeptMemory,
    remembered: Vec<u64>,
    said: (usize, usize),
    deferred: Deferred,
    notifications: Notifications,
}

/// The rows that a suspended execution has written, as it sees them.
pub struct OwnWrites(Arc<OwnRows>);

impl Suspended {
    /// Nothing has run yet; it has a share of the memory that all queries of a node have together.
    pub fn sharing(share: MemoryShare) -> Suspended {
        Suspended { memory: KeptMemory::of(share), ..Suspended::default() }
    }

    /// Its commands so far.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Takes away what it sees of its own writes: it is in what its next statement runs on.
    pub fn take_own(&mut self) -> OwnWrites {
        OwnWrites(std::mem::take(&mut self.own))
    }

    /// Returns to when it had this many commands and these writes.
    pub fn go_back(&mut self, commands: usize, own: OwnWrites) {
        self.commands.truncate(commands);
        self.own = own.0;
    }

    /// Whether checks of constraints wait for the end of the transaction.
    pub fn has_checks(&self) -> bool {
        self.deferred.is_waiting()
    }

    /// Refuses another schema for tables of which checks of constraints wait.
    ///
    /// # Errors
    /// `55006`
    pub fn refuse_change(&self, before: &Catalog, after: &Catalog) -> Result<(), SqlError> {
        self.deferred.refuse_change(before, after)
    }

    /// The cursors that its functions have left open.
    pub fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    /// How much it has to say once it has committed.
    pub fn notifications(&self) -> usize {
        self.notifications.len()
    }

    /// What it has to say, for its receipt; it says it once.
    pub fn take_notifications(&mut self) -> Option<StatementResult> {
        self.notifications.take_result()
    }

    /// Its commands, and the steps that it took.
    pub fn into_commands(self) -> (Vec<Command>, u64) {
        (self.commands, self.steps)
    }

    /// The next statement is metered on its own.
    pub fn forget_steps(&mut self) {
        self.steps = 0;
        self.memory.forget_made();
    }
}

impl<'a> Execution<'a> {
    /// Goes on. Reads are not registered: it runs for its client alone.
    pub fn resume(
        programs: &'a dyn Programs,
        snapshot: &'a dyn Snapshot,
        context: Context,
        principal: &Principal,
        suspended: Suspended,
    ) -> Execution<'a> {
        let mut execution =
            Execution::new(programs, snapshot, context).without_registration().acting_as(principal);
        let Suspended {
            commands,
            own,
            protected,
            draws,
            drawn,
            random,
            cursors,
            steps,
            memory,
            remembered,
            said,
            deferred,
            notifications,
        } = suspended;
        execution.outcome.commands = commands;
        execution.written = Written { own, newer: None, protected, remembered, draws };
        execution.meter.steps = steps;
        execution.meter.memory = Rc::new(Memory::new(context.step_limit, memory));
        execution.told.said = said;
        (execution.deferred, execution.notifications) = (deferred, notifications);
        (execution.drawn, execution.random, execution.cursors) = (drawn, random, cursors);
        execution
    }

    /// A statement has ended, well or with an error.
    pub fn suspend(mut self) -> Suspended {
        self.see_newer();
        let Execution {
            outcome, written, meter, told, drawn, random, cursors, deferred, notifications, ..
        } = self;
        let Written { own, protected, remembered, draws, .. } = written;
        let memory = meter.memory.suspended();
        let (commands, steps, said) = (outcome.commands, meter.steps, told.said);
        Suspended {
            commands,
            own,
            protected,
            draws,
            drawn,
            random,
            cursors,
            steps,
            memory,
            remembered,
            said,
            deferred,
            notifications,
        }
    }
}
