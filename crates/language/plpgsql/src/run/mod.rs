//! Running a compiled procedure on an execution.
//!
//! One frame of values per call, no names and no recursion but that of nested calls. Every instruction is charged, so
//! that a contract that loops for ever ends when the meter does.

pub(crate) mod activation;
mod cursor;
mod handle;
mod late;
pub(crate) mod raise;
mod statement;
pub(crate) mod store;

use crate::program::{
    CompiledProcedure, Instruction, RaisePlan, RangeStart, ResultForm, RowsSource, RowsStart,
};
use crate::run::activation::{Activation, Cursor, Range};
use crate::run::raise::{assert, case_not_found, raise};
use crate::run::store::{refuse_null, store, store_row};
use crate::target::Store;
use crate::variables::not_assigned;
use execute::{CallResult, Execution};
use plan::expression::{Expression, rows_space};
use plan::statement::StatementOutput;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use types::{SqlError, SqlState, Value};

/// Calls a procedure or function, which is known by this name, with one value per IN and INOUT parameter, of the parameters' types.
///
/// # Errors
/// What it ends with: what RAISE says, what a statement or expression raises, 57014 from the meter.
pub fn call(
    procedure: &CompiledProcedure,
    name: &str,
    execution: &mut Execution<'_>,
    arguments: Vec<Value>,
) -> Result<CallResult, SqlError> {
    let run = |execution: &mut Execution<'_>| run_body(procedure, execution, arguments);
    execution.within_routine(name, &procedure.needs, &procedure.described, run)
}

fn run_body(
    procedure: &CompiledProcedure,
    execution: &mut Execution<'_>,
    arguments: Vec<Value>,
) -> Result<CallResult, SqlError> {
    let mut activation = Activation {
        procedure,
        frame: SmallVec::new(),
        ranges: SmallVec::new(),
        cursors: SmallVec::new(),
        row_count: 0,
        found_unseen: false,
        row_count_unseen: false,
        protections: Vec::new(),
        caught: Vec::new(),
        returned: None,
        rows: Vec::new(),
        loop_cursors: Vec::new(),
        told: Vec::new(),
        late: BTreeMap::new(),
        late_types: BTreeMap::new(),
    };
    activation.told.resize_with(procedure.records.len(), || None);
    activation.loop_cursors.resize_with(procedure.cursor_loops, || None);
    activation.frame.resize(procedure.slots, Value::Null);
    activation.ranges.resize(procedure.ranges, Range::default());
    activation.cursors.resize_with(procedure.cursors, Cursor::default);
    activation.frame[usize::from(procedure.found)] = Value::Boolean(false);
    for (slot, value) in procedure.inputs.iter().zip(arguments) {
        activation.frame[usize::from(*slot)] = value;
    }
    activation.run_to_the_end(execution)?;
    activation.close_loops(execution);
    // The caller has the rows now.
    let loops: u64 = activation.cursors.iter().map(|cursor| cursor.space).sum();
    execution.give_back(loops.saturating_add(rows_space(&activation.rows)));
    Ok(activation.result())
}

impl Activation<'_> {
    /// What the caller gets.
    fn result(mut self) -> CallResult {
        let procedure = self.procedure;
        if let Some(values) = self.returned {
            return CallResult { values, rows: None };
        }
        match procedure.result {
            ResultForm::Rows => CallResult { values: Vec::new(), rows: Some(self.rows) },
            ResultForm::Void => CallResult { values: vec![Value::text("")], rows: None },
            ResultForm::Outputs | ResultForm::Value => {
                let output = |slot: &u16| std::mem::take(&mut self.frame[usize::from(*slot)]);
                CallResult { values: procedure.outputs.iter().map(output).collect(), rows: None }
            }
        }
    }

    /// Runs from an address on until the end or an error.
    pub(super) fn run(&mut self, execution: &mut Execution<'_>, start: usize) -> Result<(), SqlError> {
        let procedure = self.procedure;
        let mut at = start;
        loop {
            execution.charge(1)?;
            execution.address = at as u32;
            let mut next = at + 1;
            match &procedure.code[at] {
                Instruction::Assign { slot, value } => {
                    let value = execution.evaluate(value, &self.frame)?;
                    self.frame[usize::from(*slot)] = value;
                    if *slot == procedure.found {
                        self.found_unseen = false;
                    }
                }
                Instruction::Jump { to } => next = *to as usize,
                Instruction::JumpIf { condition, to } => {
                    if execution.is_true(condition, &self.frame)? {
                        next = *to as usize;
                    }
                }
                Instruction::JumpUnless { condition, to } => {
                    if !execution.is_true(condition, &self.frame)? {
                        next = *to as usize;
                    }
                }
                Instruction::RangeNext { range, slot, end } => {
                    match self.ranges[usize::from(*range)].take() {
                        Some(number) => self.frame[usize::from(*slot)] = Value::Integer(number),
                        None => {
                            let found = self.ranges[usize::from(*range)].had_turn;
                            self.set_found(found);
                            next = *end as usize;
                        }
                    }
                }
                Instruction::RowsNext { cursor, stores, record, end } => {
                    if !self.next_row(usize::from(*cursor), stores, *record)? {
                        next = *end as usize;
                    }
                }
                Instruction::Fused(fused) => {
                    self.fused(fused, execution)?;
                    next = fused.end();
                }
                Instruction::Return => return Ok(()),
                Instruction::ReturnValue { values } => {
                    self.returned = Some(self.evaluated(values, execution)?);
                    return Ok(());
                }
                Instruction::ReturnFirst => {
                    let width = procedure.outputs.len().max(1);
                    let rows = std::mem::take(&mut self.rows);
                    execution.give_back(rows_space(&rows));
                    let first = rows.into_iter().next();
                    self.returned = Some(first.unwrap_or_else(|| vec![Value::Null; width]));
                    return Ok(());
                }
                Instruction::JumpUnlessCaught { conditions, to } => {
                    if !self.is_caught_by(conditions) {
                        next = *to as usize;
                    }
                }
                Instruction::CursorNext { level, stores, record, end } => {
                    if !self.next_of_cursor(*level, stores, *record, execution)? {
                        next = *end as usize;
                    }
                }
                other => self.step(other, execution)?,
            }
            at = next;
        }
    }

    /// An instruction behind which the next one is run. Calls nest through [`Activation::run`]: what it does not need in its
    /// own frame is here, and more than a line in functions of its own.
    fn step(&mut self, instruction: &Instruction, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        match instruction {
            Instruction::RefuseNull { slot, variable } => {
                refuse_null(&self.frame[usize::from(*slot)], variable)
            }
            Instruction::RequireRecord { flag, record } => match self.frame[usize::from(*flag)].is_null() {
                true => Err(not_assigned(record)),
                false => Ok(()),
            },
            Instruction::RangeStart(start) => self.start_range(start, execution),
            Instruction::RowsStart(start) => self.start_rows(start, execution),
            Instruction::SelectInto(select) => self.select_into(select, execution),
            Instruction::Subquery(plan) => self.subquery(plan, execution),
            Instruction::Oracle { slot, name } => self.oracle(*slot, name, execution),
            Instruction::Perform(query) => self.perform(query, execution),
            Instruction::Change(statement) => self.change(statement, execution),
            Instruction::ChangeInto(change) => self.change_into(change, execution),
            Instruction::Call(call) => self.call(call, execution),
            Instruction::RowCount { stores } => self.show_row_count(stores, execution),
            Instruction::Context { stores } => self.show_context(stores, execution),
            Instruction::Raise(plan) => self.raise(plan, execution),
            Instruction::Assert(assertion) => execution.with_variables(&self.frame, |environment| {
                assert(&assertion.0, assertion.1.as_ref(), environment)
            }),
            Instruction::CaseNotFound => Err(case_not_found()),
            Instruction::NoReturn => {
                let message = "control reached end of function without RETURN";
                Err(SqlError::new(SqlState::NO_RETURN, message))
            }
            Instruction::Fail(error) => Err(error.as_ref().clone()),
            Instruction::ReturnNext { values } => self.return_next(values, execution),
            Instruction::ReturnQuery(query) => self.return_query(query, execution),
            Instruction::Execute(execute) => self.execute(execute, execution),
            Instruction::LateValue(late) => self.late_value(late, execution),
            Instruction::LateStatement(late) => self.late_statement(late, execution),
            Instruction::LateRow(late) => self.late_row(late),
            Instruction::Rethrow => Err(self.error_at_hand(execution)),
            Instruction::StackedDiagnostics { items } => self.stacked_diagnostics(items),
            Instruction::OpenCursor(open) => self.open_cursor(open, execution),
            Instruction::FetchCursor(fetch) => self.fetch_cursor(fetch, execution),
            Instruction::CloseCursor(variable) => self.close_cursor(variable, execution),
            Instruction::SetConstraints(set) => {
                let search_path = self.procedure.types.search_path();
                execution.set_constraints(set.names.as_deref(), set.deferred, search_path)
            }
            Instruction::Notify(notify) => execution.notify(&notify.channel, &notify.payload),
            Instruction::CurrentRow(current) => self.current_row(current, execution),
            certain => {
                self.certain_step(certain, execution);
                Ok(())
            }
        }
    }

    /// An instruction that cannot fail.
    fn certain_step(&mut self, instruction: &Instruction, execution: &mut Execution<'_>) {
        match instruction {
            Instruction::Clear { slot } => self.frame[usize::from(*slot)] = Value::Null,
            Instruction::SetFound => self.set_found(true),
            Instruction::LookAtFound if self.found_unseen => self.look_at_matched(execution),
            Instruction::Protect { handlers } => self.protect(*handlers, execution),
            Instruction::Leave { blocks, handlers } => self.leave(*blocks, *handlers, execution),
            Instruction::ShowError { state, message } => self.show_error(*state, *message),
            Instruction::LeaveCursor { level } => self.leave_cursor(*level, execution),
            // All others have been run.
            _ => {}
        }
    }

    fn start_rows(&mut self, start: &RowsStart, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let StatementOutput { rows, columns, .. } = self.source_rows(&start.source, execution)?;
        let columns = match &start.source {
            RowsSource::Query(query) => query.columns.clone(),
            _ => columns,
        };
        execution.keep_rows(&rows)?;
        let cursor = Cursor { had_turn: false, space: rows_space(&rows), rows: rows.into_iter(), columns };
        let before = std::mem::replace(&mut self.cursors[usize::from(start.cursor)], cursor);
        execution.give_back(before.space);
        if let Some(flag) = start.flag {
            self.frame[usize::from(flag)] = Value::Boolean(true);
        }
        Ok(())
    }

    fn show_row_count(&mut self, stores: &[Store], execution: &mut Execution<'_>) -> Result<(), SqlError> {
        if self.row_count_unseen {
            self.look_at_matched(execution);
        }
        let count = Value::BigInt(i64::try_from(self.row_count).unwrap_or(i64::MAX));
        for target in stores {
            store(&mut self.frame, target, count.clone(), &self.procedure.types)?;
        }
        Ok(())
    }

    fn show_context(&mut self, stores: &[Store], execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let context = execution.call_context();
        for target in stores {
            store(&mut self.frame, target, Value::text(context.as_str()), &self.procedure.types)?;
        }
        Ok(())
    }

    fn raise(&mut self, plan: &RaisePlan, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let said = execution.with_variables(&self.frame, |environment| raise(plan, environment))?;
        if let Some(notice) = said {
            execution.say(notice);
        }
        Ok(())
    }

    fn return_next(&mut self, values: &[Expression], execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let row = self.evaluated(values, execution)?;
        execution.keep_rows(std::slice::from_ref(&row))?;
        self.rows.push(row);
        Ok(())
    }

    #[inline]
    pub(super) fn set_found(&mut self, found: bool) {
        self.frame[usize::from(self.procedure.found)] = Value::Boolean(found);
        self.found_unseen = false;
    }

    /// FOUND and ROW_COUNT after a statement of SQL.
    #[inline]
    pub(super) fn set_row_count(&mut self, rows: u64, is_change: bool) {
        self.frame[usize::from(self.procedure.found)] = Value::Boolean(rows > 0);
        self.row_count = rows;
        self.found_unseen = is_change;
        self.row_count_unseen = is_change;
    }

    /// The last change becomes one whose matches matter.
    pub(super) fn look_at_matched(&mut self, execution: &mut Execution<'_>) {
        execution.look_at_matched();
        self.found_unseen = false;
        self.row_count_unseen = false;
    }

    /// The last change becomes one whose matches matter, if its matches may still be looked at.
    pub(super) fn look_at_unseen(&mut self, execution: &mut Execution<'_>) {
        if self.found_unseen || self.row_count_unseen {
            self.look_at_matched(execution);
        }
    }

    /// Nobody needs to look at what the last change matched.
    pub(super) fn forget_unseen(&mut self) {
        self.found_unseen = false;
        self.row_count_unseen = false;
    }

    fn start_range(&mut self, start: &RangeStart, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let mut bound =
            |expression: &Expression, what: &str| match execution.evaluate(expression, &self.frame)? {
                Value::Integer(bound) => Ok(i64::from(bound)),
                _ => {
                    let message = format!("{what} of FOR loop cannot be null");
                    Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
                }
            };
        let next = bound(&start.first, "lower bound")?;
        let last = bound(&start.last, "upper bound")?;
        let step = match &start.step {
            Some(step) => bound(step, "BY value")?,
            None => 1,
        };
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let step = if start.reverse { -step } else { step };
        self.ranges[usize::from(start.range)] = Range { next, last, step, had_turn: false };
        Ok(())
    }

    pub(super) fn evaluated(
        &self,
        values: &[Expression],
        execution: &mut Execution<'_>,
    ) -> Result<Vec<Value>, SqlError> {
        execution.with_variables(&self.frame, |environment| {
            values.iter().map(|value| value.evaluate(environment)).collect()
        })
    }

    /// Stores the next row of a loop; false at its end. A loop without a turn leaves NULLs.
    fn next_row(&mut self, cursor: usize, stores: &[Store], record: Option<u16>) -> Result<bool, SqlError> {
        let next = self.cursors[cursor].rows.next();
        if let Some(record) = record
            && (next.is_some() || !self.cursors[cursor].had_turn)
        {
            let columns = self.cursors[cursor].columns.clone();
            self.tell(record, &columns, next.clone());
        }
        if let Some(row) = next {
            self.cursors[cursor].had_turn = true;
            store_row(&mut self.frame, stores, Some(row), &self.procedure.types)?;
            return Ok(true);
        }
        let had_turn = self.cursors[cursor].had_turn;
        if !had_turn {
            store_row(&mut self.frame, stores, None, &self.procedure.types)?;
        }
        self.set_found(had_turn);
        Ok(false)
    }
}
