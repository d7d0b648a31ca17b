//! Scripts: their statements as they are read, what those are once they are bound, and how they run.

use crate::ddl::change::SchemaChange;
use execute::{Execution, check_result_rows};
use plan::logical::Split;
use plan::needs::Needs;
use plan::polymorphic::Callee;
use plan::statement::{BoundStatement, StatementOutput};
use plpgsql::{self, CompiledProcedure};
use std::sync::Arc;
use syntax::parse::cursor::CursorUse;
use syntax::parse::deferrals::SetConstraints;
use syntax::parse::notify::NotifyStatement;
use syntax::parse::{self, ParsedStatement, parse_script};
use types::session_format::{SessionFormat, within_format};
use types::{
    AdvisorySession, ColumnOrigin, CompositeTypes, DataType, ExecutionVersion, Notice, OutputColumn, Payload,
    ScriptSettings, SearchPath, Severity, SqlError, SqlState, StatementResult, Value, split_settings,
};

/// The statements of a script.
pub(crate) struct Script<'s> {
    /// What they mean depends on these.
    pub settings: ScriptSettings,
    /// Their text.
    pub source: &'s str,
    /// In order.
    pub statements: Vec<ParsedStatement>,
}

impl<'s> Script<'s> {
    /// Reads a script by these rules, with what stands in front of it.
    ///
    /// # Errors
    /// `42601` with the position behind that.
    pub fn parse(sql: &'s str, version: ExecutionVersion) -> Result<Script<'s>, SqlError> {
        let (settings, source) = split_settings(sql, version)?;
        Ok(Script { settings, source, statements: parse_script(source, version)? })
    }
}

/// What a script does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatementKind {
    /// It reads only: any node answers it from its newest snapshot.
    Read,
    /// It changes rows or calls a procedure: it is a transaction.
    Write,
    /// It changes the catalog: a transaction that runs alone.
    SchemaChange,
    /// `COPY table (columns) FROM STDIN`, in the text format: becomes transactions that insert.
    Copy {
        /// The table.
        table: String,
        /// The columns in the order of the data.
        columns: Vec<OutputColumn>,
    },
    /// It has no statement.
    Empty,
}

/// A script bound on a library.
pub(crate) struct BoundScript {
    /// In which its values are read and written.
    pub format: SessionFormat,
    /// Whose advisory locks it takes and gives back.
    pub advisory: Option<AdvisorySession>,
    /// In order.
    pub steps: Vec<Step>,
    /// Types of the parameters.
    pub parameters: Vec<DataType>,
    /// Columns of the last statement's rows; empty where it returns none.
    pub columns: Vec<OutputColumn>,
    /// By column, what column of a table or view it is; may be shorter.
    pub origins: Vec<Option<ColumnOrigin>>,
    /// What it does.
    pub kind: StatementKind,
    /// What its statements need, and which procedures and functions they call.
    pub needs: Needs,
    /// What values of composite types are.
    pub types: Arc<CompositeTypes>,
    /// Of a script that is one query: the same query whose fragments somebody else runs, where that may be.
    pub elsewhere: Elsewhere,
}

/// A query of which fragments may be run elsewhere.
#[derive(Debug, Default)]
pub(crate) enum Elsewhere {
    /// There is none.
    #[default]
    Nothing,
    /// It is to be run.
    Run(Split),
    /// It is to be explained.
    Explained(Split),
}

/// One statement.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few of them, and none is moved once a script is bound")]
pub(crate) enum Step {
    /// A query or a change of rows.
    Statement(BoundStatement),
    /// DO.
    Block(Box<CompiledProcedure>),
    /// SET CONSTRAINTS, and where its names are looked for.
    Constraints(SetConstraints, SearchPath),
    /// NOTIFY.
    Notify(NotifyStatement),
    /// FETCH, MOVE and CLOSE.
    Cursor(CursorUse),
    /// DDL.
    Schema(Box<SchemaChange>),
    /// COPY, which does not run here.
    Copy,
}

impl BoundScript {
    /// The procedures and functions that its statements call, or that triggers call which they fire.
    pub fn calls(&self) -> &[Callee] {
        &self.needs.involved
    }

    /// Whether it consists of CALLs.
    pub fn only_calls(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Statement(BoundStatement::Call(_))))
    }

    /// What the first FOR UPDATE or its kind is called that asks for rows of the ledger.
    pub fn lock(&self) -> Option<&'static str> {
        self.steps.iter().find_map(|step| match step {
            Step::Statement(BoundStatement::Select(select)) => select.lock,
            _ => None,
        })
    }

    /// What the script does.
    pub fn kind(&self) -> StatementKind {
        self.kind.clone()
    }

    /// The values of parameters that come from outside, with the types that the script was bound for.
    ///
    /// # Errors
    /// `08P01` where there are too few or too many; a value that does not fit, or is none of its enum.
    pub fn frame(&self, parameters: &[Value]) -> Result<Vec<Value>, SqlError> {
        self.check_count(parameters)?;
        parameters.iter().try_for_each(|value| self.types.check_given(value))?;
        within_format(self.format, || self.assigned(parameters))
    }

    fn check_count(&self, parameters: &[Value]) -> Result<(), SqlError> {
        if parameters.len() != self.parameters.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement requires {}",
                parameters.len(),
                self.parameters.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        Ok(())
    }

    fn assigned(&self, parameters: &[Value]) -> Result<Vec<Value>, SqlError> {
        let values = parameters.iter().zip(&self.parameters);
        values.map(|(value, data_type)| self.types.assign(value.clone(), *data_type)).collect()
    }

    /// Runs the statements in order. The client of a transaction sees every command tag, so row counts are guarded,
    /// and gets its rows in a receipt, so there are not too many.
    pub fn run_steps(
        &self,
        execution: &mut Execution<'_>,
        frame: &[Value],
        in_receipt: bool,
    ) -> Result<Vec<StatementResult>, SqlError> {
        within_format(self.format, || self.results_of_steps(execution, frame, in_receipt))
            .map_err(|error| self.types.named_in(error))
    }

    fn results_of_steps(
        &self,
        execution: &mut Execution<'_>,
        frame: &[Value],
        in_receipt: bool,
    ) -> Result<Vec<StatementResult>, SqlError> {
        execution.authorise(&self.needs)?;
        execution.be_advisory_session(self.advisory);
        let mut results = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let statement = match step {
                Step::Statement(statement) => statement,
                Step::Block(block) => {
                    plpgsql::call(block, "DO", execution, Vec::new())?;
                    let notices = execution.take_notices();
                    results.push(StatementResult { tag: "DO".to_string(), notices, ..Default::default() });
                    continue;
                }
                Step::Constraints(set, search_path) => {
                    self.warn_outside_of_block(execution);
                    execution.set_constraints(set.names.as_deref(), set.deferred, search_path)?;
                    let (tag, notices) = ("SET CONSTRAINTS".to_string(), execution.take_notices());
                    results.push(StatementResult { tag, notices, ..Default::default() });
                    continue;
                }
                Step::Notify(notify) => {
                    execution.notify(&notify.channel, &notify.payload)?;
                    results.push(StatementResult { tag: "NOTIFY".to_string(), ..Default::default() });
                    continue;
                }
                Step::Cursor(cursor) => {
                    let output = use_cursor(execution, cursor)?;
                    let tag = cursor.tag(output.affected);
                    results.push(result_of(execution, output, tag, in_receipt)?);
                    continue;
                }
                Step::Schema(_) | Step::Copy => {
                    return Err(SqlError::unsupported("a schema change among other statements"));
                }
            };
            let output = execution.run(statement, frame)?;
            if matches!(statement, BoundStatement::Update(_) | BoundStatement::Delete(_)) {
                execution.look_at_matched();
            }
            let tag = statement.tag(output.affected);
            results.push(result_of(execution, output, tag, in_receipt)?);
        }
        Ok(results)
    }

    /// SET CONSTRAINTS says nothing where the transaction ends with it.
    fn warn_outside_of_block(&self, execution: &mut Execution<'_>) {
        if self.steps.len() > 1 || execution.session_place().is_some() {
            return;
        }
        let message = "SET CONSTRAINTS can only be used in transaction blocks";
        let report = SqlError::new(SqlState::NO_ACTIVE_TRANSACTION, message);
        execution.say(Notice { severity: Severity::Warning, report });
    }

    /// Runs it inside of a routine, and gives what its last statement gave.
    ///
    /// # Errors
    /// What its statements end with; `0A000` for what a procedure cannot run.
    pub fn run_inside(
        &self,
        execution: &mut Execution<'_>,
        values: Vec<Value>,
    ) -> Result<StatementOutput, SqlError> {
        let refused = match self.kind() {
            StatementKind::Read | StatementKind::Write | StatementKind::Empty => None,
            StatementKind::SchemaChange => Some("a schema change"),
            StatementKind::Copy { .. } => Some("COPY"),
        };
        if let Some(what) = refused {
            return Err(SqlError::unsupported(format_args!("{what} in EXECUTE")).hint("Send it on its own."));
        }
        within_format(self.format, || self.output_inside(execution, &values))
    }

    fn output_inside(
        &self,
        execution: &mut Execution<'_>,
        values: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        execution.authorise_text(&self.needs, "EXECUTE of a call")?;
        self.check_count(values)?;
        let frame = self.assigned(values)?;
        let mut output = StatementOutput::default();
        for step in &self.steps {
            output = match step {
                Step::Statement(statement) => execution.run(statement, &frame)?,
                Step::Block(block) => {
                    plpgsql::call(block, "DO", execution, Vec::new())?;
                    StatementOutput::default()
                }
                Step::Constraints(set, search_path) => {
                    execution.set_constraints(set.names.as_deref(), set.deferred, search_path)?;
                    StatementOutput::default()
                }
                Step::Notify(notify) => {
                    execution.notify(&notify.channel, &notify.payload)?;
                    StatementOutput::default()
                }
                Step::Cursor(cursor) => use_cursor(execution, cursor)?,
                Step::Schema(_) | Step::Copy => StatementOutput::default(),
            };
        }
        Ok(output)
    }
}

/// What the client of a statement is given.
fn result_of(
    execution: &mut Execution<'_>,
    output: StatementOutput,
    tag: String,
    in_receipt: bool,
) -> Result<StatementResult, SqlError> {
    if in_receipt {
        check_result_rows(output.rows.len())?;
    }
    execution.hold_result(&output.rows)?;
    let (columns, notices) = (output.columns.to_vec(), execution.take_notices());
    Ok(StatementResult { tag, columns, rows: output.rows, notices })
}

/// FETCH, MOVE or CLOSE.
fn use_cursor(execution: &mut Execution<'_>, cursor: &CursorUse) -> Result<StatementOutput, SqlError> {
    match cursor {
        CursorUse::Fetch { name, movement, gives: true } => execution.fetch(name, *movement),
        CursorUse::Fetch { name, movement, gives: false } => execution.move_cursor(name, *movement),
        CursorUse::Close(name) => execution.close(name.as_deref()),
    }
}

/// True where the transaction changes the schema of a ledger of this version: it runs alone.
pub fn is_schema_change(payload: &Payload, version: ExecutionVersion) -> bool {
    match payload.call() {
        Payload::Script { sql, .. } => parse::is_schema_change(sql, version),
        Payload::Session { steps, .. } => steps
            .iter()
            .any(|step| step.statement().is_some_and(|(sql, _)| parse::is_schema_change(sql, version))),
        Payload::Call { .. }
        | Payload::Insert { .. }
        | Payload::Parts { .. }
        | Payload::SchemaOutcomes { .. }
        | Payload::MovingOutcomes { .. }
        | Payload::HeldParts { .. }
        | Payload::Agreed(_) => false,
    }
}
