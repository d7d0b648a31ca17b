//! Functions that statements and expressions call.

use crate::execution::{Execution, Place};
use crate::programs::{CallResult, Described};
use crate::serial_sequence::serial_sequence;
use crate::subqueries::Given;
use plan::advisory::AdvisoryFunction;
use plan::assets::AssetFunction;
use plan::expression::RoutineCall;
use plan::needs::Needs;
use plan::notify::NOTIFY;
use plan::polymorphic::{Actual, Callee};
use plan::random::RandomFunction;
use plan::routines::CallForm;
use plan::sequence::{SERIAL_SEQUENCE, is_sequence_function, looks_at_sequence};
use plan::session_facts::SessionFunction;
use plan::statement::StatementOutput;
use std::sync::Arc;
use types::{DataType, Notice, OutputColumn, SearchPath, Severity, SqlError, SqlState, Value, limits};
use values::work::unmeasured;

/// Bytes of a polymorphic function's body that a call of it pays a step for.
const BODY_BYTES_PER_STEP: u64 = 16;

impl Execution<'_> {
    /// Calls a procedure or function with one value per parameter that takes one, of the parameters' types. `actual`: what
    /// its polymorphic types stand for.
    ///
    /// # Errors
    /// What it ends with.
    pub fn call(
        &mut self,
        name: &str,
        actual: Actual,
        arguments: Vec<Value>,
    ) -> Result<CallResult, SqlError> {
        let definition = self.on.programs.catalog().procedures.get(name);
        if actual != Actual::default() {
            // Nobody can tell when a node compiles it again.
            let length = definition.map_or(0, |definition| definition.body.len());
            self.charge(length as u64 / BODY_BYTES_PER_STEP)?;
        }
        let definer = definition.is_some_and(|definition| definition.security_definer);
        let programs = self.on.programs;
        let policy = definition.and_then(|definition| definition.endorsement.as_deref());
        self.under_policy(policy, |execution| {
            execution.as_definer(definer, |execution| programs.call(execution, name, actual, arguments))
        })
    }

    /// Runs something with all rights, if its definer's hold.
    pub(super) fn as_definer<R>(&mut self, definer: bool, run: impl FnOnce(&mut Self) -> R) -> R {
        let authority = if definer { self.on.authority.take() } else { None };
        let result = run(self);
        if definer {
            self.on.authority = authority;
        }
        result
    }

    /// Runs the body of a routine: it is authorised, counts as a level of nesting, and stands in PG_CONTEXT meanwhile.
    ///
    /// # Errors
    /// What the body ends with; `42501`; `54001` where calls are nested too deep.
    pub fn within_routine<R>(
        &mut self,
        name: &str,
        needs: &Needs,
        described: &Arc<Described>,
        body: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        if self.meter.depth >= limits::NESTING_MAX {
            let message = format!(
                "calls are nested more than {} deep (NESTING_MAX) in procedure \"{name}\"",
                limits::NESTING_MAX
            );
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        self.charge(1)?;
        self.authorise(needs)?;
        self.meter.depth += 1;
        // A routine sees the block's time, whatever time a session says it is in its own statements.
        let now = std::mem::replace(&mut self.on.now, self.on.context.now());
        if self.told.calls.is_empty() {
            // An error before that nobody has handled.
            self.told.ended.clear();
            self.told.raised_again = false;
        }
        self.told.calls.push((described.clone(), self.address));
        // What its statements do is measured there.
        let result = unmeasured(|| body(self));
        if let Some((described, address)) = self.told.calls.pop() {
            if result.is_err() && !self.told.raised_again {
                self.told.ended.push((described, self.address));
            }
            self.address = address;
        }
        self.on.now = now;
        self.meter.depth -= 1;
        result
    }

    /// The routines that are being called and where they have come to, the innermost first: PG_CONTEXT.
    pub fn call_context(&self) -> String {
        let mut address = self.address;
        let mut places = Vec::with_capacity(self.told.calls.len());
        for (described, caller) in self.told.calls.iter().rev() {
            places.push(described.place(address));
            address = *caller;
        }
        places.join("\n")
    }

    /// Where the error at hand has come from: the routines that it has ended and those around its handler, the innermost first. The next error
    /// begins anew.
    pub fn take_error_places(&mut self) -> Vec<Place> {
        let mut places = std::mem::take(&mut self.told.ended);
        if std::mem::take(&mut self.told.raised_again) {
            return places;
        }
        let mut address = self.address;
        for (described, caller) in self.told.calls.iter().rev() {
            places.push((described.clone(), address));
            address = *caller;
        }
        places
    }

    /// A handler raises the error again that it has taken: it has come from where it came from.
    pub fn raise_again(&mut self, places: Vec<Place>) {
        (self.told.ended, self.told.raised_again) = (places, true);
    }

    /// Runs a function for the statement that is running. It sees what the functions before it have written, the
    /// statement goes on seeing what it saw when it began.
    ///
    /// # Errors
    /// What the function ends with.
    pub(super) fn call_function(
        &mut self,
        callee: &Callee,
        arguments: Vec<Value>,
    ) -> Result<CallResult, SqlError> {
        let name = &callee.name;
        if is_sequence_function(name) {
            let value = Value::BigInt(self.sequence_value(name, &arguments)?);
            return Ok(CallResult { values: vec![value], rows: None });
        }
        if looks_at_sequence(name) {
            let value = self.sequence_standing(name, &arguments)?;
            return Ok(CallResult { values: vec![value], rows: None });
        }
        if **name == *SERIAL_SEQUENCE {
            let value = serial_sequence(self.on.programs.catalog(), &arguments)?;
            return Ok(CallResult { values: vec![value], rows: None });
        }
        if **name == *NOTIFY {
            let value = self.notify_value(&arguments)?;
            return Ok(CallResult { values: vec![value], rows: None });
        }
        if let Some(function) = AdvisoryFunction::named(name) {
            let value = self.advisory_value(function, &arguments)?;
            return Ok(CallResult { values: vec![value], rows: None });
        }
        if let Some(function) = RandomFunction::named(name) {
            let value = self.random_value(function, &arguments)?;
            return Ok(CallResult { values: vec![value], rows: None });
        }
        if let Some(function) = SessionFunction::named(name) {
            let value = self.session_value(function, &arguments)?;
            return Ok(CallResult { values: vec![value], rows: None });
        }
        if let Some(function) = AssetFunction::named(name) {
            let value = self.asset_value(function, &arguments)?;
            return Ok(CallResult { values: vec![value], rows: None });
        }
        self.beside_statement(|execution| execution.call(name, callee.actual, arguments))
    }

    /// Runs a text of SQL that a routine has made: [`crate::programs::Programs::run_text`].
    ///
    /// # Errors
    /// What is wrong in it; `0A000` for what a procedure cannot run.
    pub fn run_text(
        &mut self,
        search_path: &SearchPath,
        sql: &str,
        values: Vec<Value>,
        types: &[DataType],
    ) -> Result<StatementOutput, SqlError> {
        self.charge(sql.len() as u64)?;
        self.on.programs.run_text(self, search_path, sql, (values, types))
    }

    /// Refuses what is known only now that it runs, where the role may not do it, or where others would have had to endorse it.
    ///
    /// # Errors
    /// `42501`; `0A000` for a call of what has an endorsement policy.
    pub fn authorise_text(&self, needs: &Needs, what: &str) -> Result<(), SqlError> {
        if let Some(procedure) = self.on.programs.with_a_policy(&needs.involved)? {
            let what = format_args!("{what} of \"{procedure}\", which has an endorsement policy,");
            return Err(
                SqlError::unsupported(what).hint("Call it without EXECUTE: who must endorse is known then.")
            );
        }
        self.authorise(needs)
    }

    /// Says something to the client. What is too much is left out, and the last message says so.
    pub fn say(&mut self, notice: Notice) {
        let report = &notice.report;
        let texts = [Some(&report.message), report.detail.as_ref(), report.hint.as_ref()];
        let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
        let (count, total) = self.told.said;
        if count > limits::NOTICES_MAX {
            return;
        }
        if count == limits::NOTICES_MAX || total + bytes > limits::NOTICES_BYTES_MAX {
            let message = format!(
                "more messages are left out: a transaction sends at most {} of them (NOTICES_MAX) with {} bytes (NOTICES_BYTES_MAX)",
                limits::NOTICES_MAX,
                limits::NOTICES_BYTES_MAX
            );
            let severity = Severity::Warning;
            self.told.notices.push(Notice { severity, report: SqlError::new(severity.state(), message) });
            self.told.said.0 = limits::NOTICES_MAX + 1;
            return;
        }
        self.told.said = (count + 1, total + bytes);
        self.told.notices.push(notice);
    }

    /// What has been said since this was asked last.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.told.notices)
    }

    /// The rows of a function in FROM.
    pub(super) fn called_rows(
        &mut self,
        call: &RoutineCall,
        given: Given<'_>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let arguments = self.with_subqueries(&[], given, |environment| call.arguments_in(environment))?;
        let Some(arguments) = arguments else {
            // One row of NULLs, where it gives one.
            return Ok(self.on.programs.tables().routines().row_of_nulls(call));
        };
        let CallResult { values, rows } = self.call_function(&call.callee, arguments)?;
        let rows = rows.unwrap_or_else(|| vec![values]);
        match (call.form, &call.columns) {
            (CallForm::Row, Some(columns)) => {
                rows.into_iter().map(|row| fields_of_row(row, columns, call.columns_are_asked)).collect()
            }
            _ => Ok(rows),
        }
    }
}

/// The columns of a function's row that is one value. `asked`: the caller has named them, and they may be others.
///
/// # Errors
/// `42804` where they are.
fn fields_of_row(row: Vec<Value>, columns: &[OutputColumn], asked: bool) -> Result<Vec<Value>, SqlError> {
    let mismatch = |detail: String| {
        let message = "returned record type does not match expected record type";
        SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail)
    };
    let Some(Value::Composite(row)) = row.into_iter().next() else {
        return Ok(vec![Value::Null; columns.len()]);
    };
    let values = row.values().to_vec();
    if values.len() != columns.len() {
        return Err(mismatch(format!(
            "Returned row contains {} attributes, but query expects {}.",
            values.len(),
            columns.len()
        )));
    }
    if asked {
        for (position, (value, column)) in values.iter().zip(columns).enumerate() {
            let (found, expected) = (value.data_type(), column.data_type.family());
            if !value.is_null() && found != expected {
                return Err(mismatch(format!(
                    "Returned type {found} at ordinal position {}, but query expects {expected}.",
                    position + 1
                )));
            }
        }
    }
    Ok(values)
}
