//! One execution of one transaction: what it runs on, what it may call, and what it has come to.
//!
//! Steps bound the time of a query, a limit on its text bounds its plan, and one count of bytes bounds its memory
//! ([`plan::expression::Memory`]).

use crate::context::{Authority, Context, Oracles, SessionPlace, SignedBy, timestamp};
use crate::cursor::Cursors;
use crate::deferred::Deferred;
use crate::drawn::Drawn;
use crate::moves::Assets;
use crate::own::OwnRows;
use crate::programs::{Described, Programs};
use crate::random::RandomValues;
use crate::remaining::Remaining;
use crate::row_locks::RowLocks;
use crate::scratch::{Scratch, SharedRows};
use crate::subqueries::{Given, KnownSubqueries};
use plan::expression::{Environment, Expression, KeptMemory, Memory};
use plan::polymorphic::Actual;
use plan::routines::output_column;
use plan::statement::{BoundCall, BoundStatement, StatementOutput};
use state::{Command, Effects, FirstFailure, Read, Scan, Snapshot, StoreError};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use types::{
    AdvisorySession, Key, Notice, Notifications, OutputColumn, Row, SqlError, SqlState, StatementResult,
    TableId, Value,
};
use values::work::measured;

/// Queries that may stand inside of one another: each takes a part of the stack.
const QUERIES_DEEP_MAX: usize = 32;

/// What an execution runs on, when, and in whose name.
pub(crate) struct RunsOn<'a> {
    pub(crate) oracles: Option<&'a dyn Oracles>,
    /// It runs for one session, in no block.
    pub(crate) local: bool,
    pub(crate) programs: &'a dyn Programs,
    pub(crate) snapshot: &'a dyn Snapshot,
    pub(crate) context: Context,
    pub(crate) now: i64,
    pub(crate) session_place: Option<SessionPlace>,
    /// Whether reads are registered: not for queries outside of transactions.
    pub(crate) registers: bool,
    /// Set when nobody wants the result any more; never where a transaction of a block runs.
    pub(crate) interrupt: Option<Arc<AtomicBool>>,
    /// Where rows go that do not fit into memory; never where a transaction of a block runs.
    pub(crate) scratch: Option<Arc<dyn Scratch>>,
    /// What the role may do; `None`: everything.
    pub(crate) authority: Option<Authority>,
    pub(crate) signed_by: SignedBy,
    /// The session whose advisory locks it takes and gives back, where it says one.
    pub(crate) advisory: Option<AdvisorySession>,
    /// It must change nothing but temporary tables; never where a transaction of a block runs.
    pub(crate) read_only: bool,
    /// What is known of locks on rows.
    pub(crate) row_locks: Option<Rc<dyn RowLocks>>,
}

/// What it leaves behind: reads and commands, from which its effects are made.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) reads: Vec<Read>,
    pub(crate) scans: Vec<Scan>,
    pub(crate) commands: Vec<Command>,
    /// Positions of the commands of the last data-changing statement, and whether each matched.
    pub(crate) last_matched: Vec<(usize, bool)>,
    /// Why the snapshot could not be read, once that has happened: what the execution comes to does not count then.
    pub(crate) unread: FirstFailure,
}

/// The rows that it has written, as its statements see them, and what blocks with handlers may return to.
#[derive(Default)]
pub(crate) struct Written {
    /// Rows that the transaction has written, as the statement that is running sees them.
    pub(crate) own: Arc<OwnRows>,
    /// The same with what functions have written that the statement calls: it does not see that itself.
    pub(crate) newer: Option<Arc<OwnRows>>,
    /// Blocks with handlers that are running.
    pub(crate) protected: usize,
    /// For each block with handlers that is running, the bytes of the own rows that it may have to return to.
    pub(crate) remembered: Vec<u64>,
    /// Hidden keys given out.
    pub(crate) draws: u32,
}

/// What it has used of time, memory and depth.
pub(crate) struct Meter {
    pub(crate) steps: u64,
    pub(crate) memory: Rc<Memory>,
    /// Routines that are running inside of one another.
    pub(crate) depth: usize,
    /// Queries that are running inside of one another.
    pub(crate) queries: usize,
}

/// What the statement that is running has come to.
#[derive(Default)]
pub(crate) struct Running {
    /// What it has left to do.
    pub(crate) remaining: Remaining,
    pub(crate) subqueries: KnownSubqueries,
    /// By number, the rows that recursive queries have found last; the innermost last.
    pub(crate) working: Vec<(usize, SharedRows)>,
}

/// A routine, and the address in it.
pub type Place = (Arc<Described>, u32);

/// What its routines tell the client: where they are, and what they say.
#[derive(Default)]
pub(crate) struct Told {
    /// Routines that are being called, the innermost last, each with the address that its caller had come to.
    pub(crate) calls: Vec<Place>,
    /// Those that the error at hand has ended, the innermost first, each with the address that it had come to.
    pub(crate) ended: Vec<Place>,
    /// A handler has had that error and has raised it again: those around it are among these already.
    pub(crate) raised_again: bool,
    /// What the statement that is running has said.
    pub(crate) notices: Vec<Notice>,
    /// Messages of the whole transaction, and their bytes.
    pub(crate) said: (usize, usize),
}

/// One execution of one transaction.
pub struct Execution<'a> {
    pub(crate) on: RunsOn<'a>,
    pub(crate) outcome: Outcome,
    pub(crate) written: Written,
    pub(crate) meter: Meter,
    pub(crate) running: Running,
    pub(crate) told: Told,
    pub(crate) assets: Assets<'a>,
    /// Checks of constraints that wait for the end of the transaction.
    pub(crate) deferred: Deferred,
    /// Values drawn from sequences.
    pub drawn: Drawn,
    pub(crate) random: RandomValues,
    /// What it has to say once it has committed.
    pub(crate) notifications: Notifications,
    /// Open cursors.
    pub cursors: Cursors,
    /// The address that the innermost routine has come to.
    pub address: u32,
}

impl<'a> Execution<'a> {
    /// Nothing has run yet.
    pub fn new(programs: &'a dyn Programs, snapshot: &'a dyn Snapshot, context: Context) -> Execution<'a> {
        let on = RunsOn {
            oracles: None,
            local: false,
            programs,
            snapshot,
            context,
            now: context.now(),
            session_place: None,
            registers: true,
            interrupt: None,
            scratch: None,
            authority: None,
            signed_by: SignedBy::default(),
            advisory: None,
            read_only: false,
            row_locks: None,
        };
        let memory = Rc::new(Memory::new(context.step_limit, KeptMemory::default()));
        Execution {
            on,
            outcome: Outcome {
                reads: Vec::with_capacity(4),
                commands: Vec::with_capacity(2),
                ..Outcome::default()
            },
            written: Written::default(),
            meter: Meter { steps: 0, memory, depth: 0, queries: 0 },
            running: Running::default(),
            told: Told::default(),
            assets: Assets::default(),
            deferred: Deferred::default(),
            drawn: Drawn::default(),
            random: RandomValues::default(),
            notifications: Notifications::default(),
            cursors: Cursors::default(),
            address: 0,
        }
    }

    /// With these oracles.
    pub fn asking(mut self, oracles: Option<&'a dyn Oracles>) -> Execution<'a> {
        self.on.oracles = oracles;
        self
    }

    /// What an oracle says, as text.
    pub fn ask_oracle(&self, name: &Value) -> Result<Value, SqlError> {
        let Value::Text(name) = name else {
            let message = "the name of an oracle is NULL";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let oracles = self.on.oracles.ok_or_else(|| {
            SqlError::unsupported("entente.oracle() on a ledger that executes after ordering")
                .hint("Pass the value as an argument, or choose execution = \"execute-order-validate\" in the charter.")
        })?;
        oracles.value(name).map(Value::text)
    }

    /// For one session, in no block.
    pub fn locally(mut self) -> Execution<'a> {
        self.on.local = true;
        self
    }

    /// Whether it runs for one session, in no block.
    pub fn is_local(&self) -> bool {
        self.on.local
    }

    /// Where and when it runs.
    pub fn context(&self) -> Context {
        self.on.context
    }

    /// Whether it is executed before it is ordered.
    pub fn asks_oracles(&self) -> bool {
        self.on.oracles.is_some()
    }

    /// It is a transaction block: of this place are `now()` outside of routines, values of sequences and random values.
    pub fn be_session(&mut self, place: SessionPlace) {
        self.on.now = timestamp(place.now_ms);
        self.on.session_place = Some(place);
    }

    /// What runs next takes and gives back the advisory locks of this session.
    pub fn be_advisory_session(&mut self, session: Option<AdvisorySession>) {
        self.on.advisory = session;
    }

    /// What stands for the place of a transaction block.
    pub fn session_place(&self) -> Option<SessionPlace> {
        self.on.session_place
    }

    /// What it may call.
    pub fn programs(&self) -> &'a dyn Programs {
        self.on.programs
    }

    /// `now()`
    pub fn now(&self) -> i64 {
        self.on.now
    }

    /// How many rows the transaction has touched by commands.
    pub fn own_rows(&self) -> usize {
        self.written.own.len()
    }

    /// What it runs on.
    pub fn snapshot(&self) -> &'a dyn Snapshot {
        self.on.snapshot
    }

    /// For queries whose reads nobody asks for.
    pub fn without_registration(mut self) -> Execution<'a> {
        self.on.registers = false;
        self
    }

    /// In a read-only transaction: what would change the ledger ends with an error.
    pub fn reading_only(mut self, read_only: bool) -> Execution<'a> {
        self.on.read_only = read_only;
        self
    }

    /// Whether it is a read-only transaction.
    pub fn is_reading_only(&self) -> bool {
        self.on.read_only
    }

    /// For a client that may lose interest: it ends soon after `interrupt` is set.
    pub fn interrupted_by(mut self, interrupt: &Arc<AtomicBool>) -> Execution<'a> {
        self.on.interrupt = Some(Arc::clone(interrupt));
        self
    }

    /// With room outside of memory for rows of queries. Only where nobody else executes the same: whether rows fit into memory
    /// depends on the node.
    pub fn with_scratch(mut self, scratch: Option<Arc<dyn Scratch>>) -> Execution<'a> {
        self.on.scratch = scratch;
        self
    }

    /// Takes logical steps off the limit.
    ///
    /// # Errors
    /// `57014` where there are none left, and where nobody wants the result any more.
    #[inline]
    pub fn charge(&mut self, steps: u64) -> Result<(), SqlError> {
        self.meter.steps = self.meter.steps.saturating_add(steps);
        if self.meter.steps > self.on.context.step_limit {
            return Err(self.out_of_steps());
        }
        if self.is_interrupted() { Err(interrupted()) } else { Ok(()) }
    }

    /// Runs something and charges the work of the expressions that it evaluates.
    ///
    /// # Errors
    /// Those of `run`; `57014` where the work takes more steps than there are left.
    #[inline]
    pub fn measured<R>(&mut self, run: impl FnOnce(&mut Self) -> Result<R, SqlError>) -> Result<R, SqlError> {
        let left = self.steps_left();
        let (result, steps) = measured(left, || run(self));
        if steps > 0 {
            self.charge(steps)?;
        }
        result
    }

    /// Steps that are left.
    pub fn steps_left(&self) -> u64 {
        self.on.context.step_limit.saturating_sub(self.meter.steps)
    }

    /// Whether nobody wants the result any more.
    #[inline]
    pub(crate) fn is_interrupted(&self) -> bool {
        self.on.interrupt.as_ref().is_some_and(|interrupt| interrupt.load(Relaxed))
    }

    #[cold]
    fn out_of_steps(&mut self) -> SqlError {
        let limit = self.on.context.step_limit;
        self.meter.steps = limit;
        SqlError::new(
            SqlState::QUERY_CANCELED,
            format!("the transaction needs more than {limit} steps, the limit that the ledger sets"),
        )
        .hint("Touch fewer rows, or split the work into several transactions.")
    }

    /// A query begins inside of another one.
    ///
    /// # Errors
    /// `54001` where that is too deep.
    pub(crate) fn enter_query(&mut self) -> Result<(), SqlError> {
        if self.meter.queries >= QUERIES_DEEP_MAX {
            let message = format!("queries are nested more than {QUERIES_DEEP_MAX} deep (QUERIES_DEEP_MAX)");
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        self.meter.queries += 1;
        Ok(())
    }

    /// It has ended.
    pub(crate) fn leave_query(&mut self) {
        self.meter.queries -= 1;
    }

    /// The value of an expression without columns. `frame` holds the variables by slot.
    ///
    /// # Errors
    /// What evaluation raises.
    #[inline]
    pub fn evaluate(&mut self, expression: &Expression, frame: &[Value]) -> Result<Value, SqlError> {
        self.with_variables(frame, |environment| expression.evaluate(environment))
    }

    /// Evaluates something over variables, which may call functions.
    ///
    /// # Errors
    /// What evaluation raises.
    #[inline]
    pub fn with_variables<R>(
        &mut self,
        frame: &[Value],
        evaluate: impl FnOnce(&Environment<'_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        self.forget_subqueries();
        let result = self.with_subqueries(&[], Given { frame, arguments: &[], left: &[] }, evaluate);
        self.see_newer();
        result
    }

    /// Whether a condition without columns is true (and not NULL).
    ///
    /// # Errors
    /// What evaluation raises.
    #[inline]
    pub fn is_true(&mut self, expression: &Expression, frame: &[Value]) -> Result<bool, SqlError> {
        self.with_variables(frame, |environment| expression.is_true(environment))
    }

    /// Runs a statement. `frame` holds the variables by slot, or the parameters of a script.
    ///
    /// # Errors
    /// What the statement ends with; the transaction is over then.
    pub fn run(&mut self, statement: &BoundStatement, frame: &[Value]) -> Result<StatementOutput, SqlError> {
        self.charge(1)?;
        self.measured(|execution| execution.run_measured(statement, frame))
    }

    pub(crate) fn run_measured(
        &mut self,
        statement: &BoundStatement,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        if self.on.read_only && statement.changes_ledger() {
            return Err(SqlError::not_in_read_only(statement.tag(0).trim_end_matches([' ', '0'])));
        }
        match statement {
            BoundStatement::Select(select) => {
                let rows = self.select(select, frame, None)?;
                Ok(StatementOutput {
                    affected: rows.len() as u64,
                    columns: select.columns.clone(),
                    rows,
                    call_outputs: Vec::new(),
                })
            }
            BoundStatement::Insert(insert) => self.insert(insert, frame),
            BoundStatement::Update(update) => self.update(update, frame),
            BoundStatement::Delete(delete) => self.delete(delete, frame),
            BoundStatement::With(with) => self.run_with(with, frame),
            BoundStatement::Call(call) => self.call_bound(call, frame),
            BoundStatement::Explain(explain) => {
                let rows: Vec<Vec<Value>> =
                    explain.lines.iter().map(|line| vec![Value::text(line.as_str())]).collect();
                self.charge(rows.len() as u64)?;
                Ok(StatementOutput {
                    affected: rows.len() as u64,
                    columns: explain.columns.clone(),
                    rows,
                    call_outputs: Vec::new(),
                })
            }
        }
    }

    /// Somebody looks at how many rows the last data-changing statement matched (FOUND, ROW_COUNT, the command tag):
    /// its commands are guarded from now on.
    pub fn look_at_matched(&mut self) {
        for (position, matched) in &self.outcome.last_matched {
            self.outcome.commands[*position].guard = Some(*matched);
        }
    }

    fn call_bound(&mut self, call: &BoundCall, frame: &[Value]) -> Result<StatementOutput, SqlError> {
        let programs = self.on.programs;
        let procedure = programs
            .tables()
            .routines()
            .named(&call.procedure)
            .map(|routine| &routine.definition)
            .filter(|procedure| procedure.function.is_none() && call.fits(&procedure.parameters))
            .ok_or_else(|| call.no_procedure())?;
        let parameters = &procedure.parameters;
        let mut arguments = Vec::with_capacity(parameters.len());
        for (parameter, argument) in parameters.iter().zip(&call.arguments) {
            if parameter.mode.is_input() {
                // Parameters have no length, precision or scale, as in PostgreSQL.
                let value = self.evaluate(argument, frame)?;
                let types = programs.tables().routines().types();
                arguments.push(types.cast(value, parameter.data_type.family())?);
            }
        }
        let values = self.call(&call.procedure, Actual::default(), arguments)?.values;
        let outputs = parameters.iter().enumerate().filter(|(_, parameter)| parameter.mode.is_output());
        let (call_outputs, columns): (Vec<usize>, Vec<OutputColumn>) =
            outputs.map(|(position, parameter)| (position, output_column(position, parameter))).unzip();
        let rows = if columns.is_empty() { Vec::new() } else { vec![values] };
        Ok(StatementOutput { affected: 0, columns: columns.into(), rows, call_outputs })
    }

    /// What the transaction left behind.
    ///
    /// # Errors
    /// The snapshot could not be read, whatever the transaction made of that.
    pub fn finish(mut self, result: Result<Vec<StatementResult>, SqlError>) -> Result<Effects, StoreError> {
        if result.is_err() {
            // What commands had used was observed: it is why the program came to this error.
            let used = self
                .outcome
                .commands
                .drain(..)
                .map(|command| Read { row: command.row, columns: command.uses });
            self.outcome.reads.extend(used);
        }
        self.outcome.unread.check(Effects {
            reads: self.outcome.reads,
            scans: self.outcome.scans,
            commands: self.outcome.commands,
            result,
            steps: self.meter.steps,
            catalog: None,
        })
    }

    /// What was read of the snapshot.
    ///
    /// # Errors
    /// It cannot be read. No handler takes this error, and [`Execution::finish`] gives the failure.
    #[inline]
    pub fn read<T>(&self, read: Result<T, StoreError>) -> Result<T, SqlError> {
        read.map_err(|failure| self.cannot_read(failure))
    }

    #[cold]
    fn cannot_read(&self, failure: StoreError) -> SqlError {
        self.outcome.unread.note(failure.clone());
        failure.into()
    }

    /// Whether the snapshot could not be read.
    pub fn has_unread(&self) -> bool {
        self.outcome.unread.get().is_some()
    }

    /// What expressions over a row and variables are evaluated in, outside of queries.
    pub fn environment<'b>(&self, row: &'b [Value], frame: &'b [Value]) -> Environment<'b> {
        Environment::new(row, frame, self.on.now)
    }

    /// The row as it stands for this transaction, without registering anything.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn current(&self, table: TableId, key: &Key) -> Result<Option<Row>, SqlError> {
        match self.written.own.position(table, key) {
            Some(position) => Ok(self.written.own.get(position).value.clone()),
            None => self.read(self.on.snapshot.get(table, key)),
        }
    }

    /// A statement has ended: the next one sees what its functions have written.
    pub fn see_newer(&mut self) {
        if let Some(newer) = self.written.newer.take() {
            self.written.own = newer;
        }
    }
}

#[cold]
pub(crate) fn interrupted() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement: nobody waits for its result any more")
}
