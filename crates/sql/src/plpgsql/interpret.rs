//! Running a compiled procedure on an execution.
//!
//! One frame of values per call, no names and no recursion but that of nested calls. Every instruction is charged, so
//! that a contract that loops for ever ends when the meter does.

use super::ast::RaiseOption;
use super::conditions::{parse_state, state_of_condition};
use super::program::{
    Call, ChangeInto, Coercion, CompiledProcedure, Instruction, RaiseMessage, RaisePlan, RangeStart,
    RowTarget, SelectInto, Store, SubqueryPlan,
};
use super::variables::{coercion, constant, not_assigned};
use crate::execution::Execution;
use crate::expression::Expression;
use smallvec::SmallVec;
use types::{DataType, SqlError, SqlState, Value, assign, format_value};

/// `22004`: NULL where PL/pgSQL refuses it.
const NULL_VALUE_NOT_ALLOWED: SqlState = SqlState(*b"22004");

/// Values of a frame that need no allocation.
const FRAME_INLINE: usize = 16;

/// Calls a procedure with one value per IN and INOUT parameter, of the parameters' types; gives the OUT and INOUT
/// values.
///
/// # Errors
/// What the procedure ends with: what RAISE says, what a statement or expression raises, 57014 from the meter.
pub(crate) fn call(
    procedure: &CompiledProcedure,
    execution: &mut Execution<'_>,
    arguments: Vec<Value>,
) -> Result<Vec<Value>, SqlError> {
    let mut activation = Activation {
        procedure,
        frame: SmallVec::new(),
        ranges: SmallVec::new(),
        cursors: SmallVec::new(),
        row_count: 0,
        found_unseen: false,
        row_count_unseen: false,
    };
    activation.frame.resize(procedure.slots, Value::Null);
    activation.ranges.resize(procedure.ranges, Range::default());
    activation.cursors.resize_with(procedure.cursors, Cursor::default);
    activation.frame[usize::from(procedure.found)] = Value::Boolean(false);
    for (slot, value) in procedure.inputs.iter().zip(arguments) {
        activation.frame[usize::from(*slot)] = value;
    }
    activation.run(execution)?;
    Ok(procedure
        .outputs
        .iter()
        .map(|slot| std::mem::take(&mut activation.frame[usize::from(*slot)]))
        .collect())
}

/// The numbers that an integer loop has not had.
#[derive(Clone, Copy, Default)]
struct Range {
    next: i64,
    last: i64,
    /// Never 0 in a loop that runs; negative downwards.
    step: i64,
    had_turn: bool,
}

/// The rows that a row loop has not had.
#[derive(Default)]
struct Cursor {
    rows: std::vec::IntoIter<Vec<Value>>,
    had_turn: bool,
}

/// One call of one procedure.
struct Activation<'p> {
    procedure: &'p CompiledProcedure,
    frame: SmallVec<[Value; FRAME_INLINE]>,
    ranges: SmallVec<[Range; 2]>,
    cursors: SmallVec<[Cursor; 1]>,
    row_count: u64,
    /// FOUND comes from a change whose matches nobody has looked at.
    found_unseen: bool,
    /// The same of ROW_COUNT.
    row_count_unseen: bool,
}

impl Activation<'_> {
    fn run(&mut self, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let procedure = self.procedure;
        let mut at = 0;
        loop {
            execution.charge(1)?;
            let mut next = at + 1;
            match &procedure.code[at] {
                Instruction::Assign { slot, value } => {
                    let value = execution.evaluate(value, &self.frame)?;
                    self.frame[usize::from(*slot)] = value;
                    if *slot == procedure.found {
                        self.found_unseen = false;
                    }
                }
                Instruction::RefuseNull { slot, variable } => {
                    refuse_null(&self.frame[usize::from(*slot)], variable)?;
                }
                Instruction::Clear { slot } => self.frame[usize::from(*slot)] = Value::Null,
                Instruction::RequireRecord { flag, record } => {
                    if self.frame[usize::from(*flag)].is_null() {
                        return Err(not_assigned(record));
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
                Instruction::RangeStart(start) => self.start_range(start, execution)?,
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
                Instruction::RowsStart(start) => {
                    let rows = execution.select(&start.query, &self.frame, None)?;
                    let cursor = Cursor { rows: rows.into_iter(), had_turn: false };
                    self.cursors[usize::from(start.cursor)] = cursor;
                    if let Some(flag) = start.flag {
                        self.frame[usize::from(flag)] = Value::Boolean(true);
                    }
                }
                Instruction::RowsNext { cursor, stores, end } => {
                    if !self.next_row(usize::from(*cursor), stores)? {
                        next = *end as usize;
                    }
                }
                Instruction::SetFound => self.set_found(true),
                Instruction::LookAtFound => {
                    if self.found_unseen {
                        self.look_at_matched(execution);
                    }
                }
                Instruction::SelectInto(select) => self.select_into(select, execution)?,
                Instruction::Subquery(plan) => self.subquery(plan, execution)?,
                Instruction::Perform(query) => {
                    let rows = execution.select(query, &self.frame, None)?.len();
                    self.set_row_count(rows as u64, false);
                }
                Instruction::Change(statement) => {
                    let affected = execution.run(statement, &self.frame)?.affected;
                    self.set_row_count(affected, true);
                }
                Instruction::ChangeInto(change) => self.change_into(change, execution)?,
                Instruction::Call(call) => self.call(call, execution)?,
                Instruction::RowCount { stores } => {
                    if self.row_count_unseen {
                        self.look_at_matched(execution);
                    }
                    let count = Value::BigInt(i64::try_from(self.row_count).unwrap_or(i64::MAX));
                    for store in stores {
                        self.store(store, count.clone())?;
                    }
                }
                Instruction::Raise(plan) => self.raise(plan, execution)?,
                Instruction::Assert(assertion) => {
                    self.assert(&assertion.0, assertion.1.as_ref(), execution)?
                }
                Instruction::CaseNotFound => {
                    return Err(SqlError::new(SqlState(*b"20000"), "case not found")
                        .hint("CASE statement is missing ELSE part."));
                }
                Instruction::Return => return Ok(()),
            }
            at = next;
        }
    }

    #[inline]
    fn set_found(&mut self, found: bool) {
        self.frame[usize::from(self.procedure.found)] = Value::Boolean(found);
        self.found_unseen = false;
    }

    /// FOUND and ROW_COUNT after a statement of SQL.
    #[inline]
    fn set_row_count(&mut self, rows: u64, is_change: bool) {
        self.frame[usize::from(self.procedure.found)] = Value::Boolean(rows > 0);
        self.row_count = rows;
        self.found_unseen = is_change;
        self.row_count_unseen = is_change;
    }

    /// The last change becomes one whose matches matter.
    fn look_at_matched(&mut self, execution: &mut Execution<'_>) {
        execution.look_at_matched();
        self.found_unseen = false;
        self.row_count_unseen = false;
    }

    #[inline]
    fn store(&mut self, store: &Store, value: Value) -> Result<(), SqlError> {
        let value = convert(value, store.coercion)?;
        if let Some(variable) = &store.not_null {
            refuse_null(&value, variable)?;
        }
        self.frame[usize::from(store.slot)] = value;
        Ok(())
    }

    /// Stores a row column by column; NULL where it has none, or where there is no row.
    fn store_row(&mut self, stores: &[Store], row: Option<Vec<Value>>) -> Result<(), SqlError> {
        let mut values = row.into_iter().flatten();
        for store in stores {
            let value = values.next().unwrap_or(Value::Null);
            self.store(store, value)?;
        }
        Ok(())
    }

    fn store_first(&mut self, target: &RowTarget, rows: Vec<Vec<Value>>) -> Result<(), SqlError> {
        if let Some(flag) = target.flag {
            self.frame[usize::from(flag)] = Value::Boolean(true);
        }
        self.store_row(&target.stores, rows.into_iter().next())
    }

    fn start_range(&mut self, start: &RangeStart, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let mut bound =
            |expression: &Expression, what: &str| match execution.evaluate(expression, &self.frame)? {
                Value::Integer(bound) => Ok(i64::from(bound)),
                _ => {
                    let message = format!("{what} of FOR loop cannot be null");
                    Err(SqlError::new(NULL_VALUE_NOT_ALLOWED, message))
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

    /// Stores the next row of a loop; false at its end. A loop without a turn leaves NULLs.
    fn next_row(&mut self, cursor: usize, stores: &[Store]) -> Result<bool, SqlError> {
        if let Some(row) = self.cursors[cursor].rows.next() {
            self.cursors[cursor].had_turn = true;
            self.store_row(stores, Some(row))?;
            return Ok(true);
        }
        let had_turn = self.cursors[cursor].had_turn;
        if !had_turn {
            self.store_row(stores, None)?;
        }
        self.set_found(had_turn);
        Ok(false)
    }

    fn select_into(&mut self, select: &SelectInto, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        // A second row is looked for only where it would be an error.
        let limit = if select.target.strict { 2 } else { 1 };
        let rows = execution.select(&select.query, &self.frame, Some(limit))?;
        if select.target.strict {
            check_single(rows.len())?;
        }
        self.set_row_count(rows.len() as u64, false);
        self.store_first(&select.target, rows)
    }

    fn subquery(&mut self, plan: &SubqueryPlan, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        // A second row of a value is an error.
        let limit = if plan.exists.is_some() { 1 } else { 2 };
        let mut rows = execution.select(&plan.query, &self.frame, Some(limit))?;
        let value = match plan.exists {
            Some(value) => Value::Boolean(if rows.is_empty() { !value } else { value }),
            None if rows.len() > 1 => {
                let message = "more than one row returned by a subquery used as an expression";
                return Err(SqlError::new(SqlState(*b"21000"), message));
            }
            None => rows.pop().and_then(|row| row.into_iter().next()).unwrap_or(Value::Null),
        };
        self.frame[usize::from(plan.slot)] = value;
        // PostgreSQL runs such an expression as a query of one row.
        self.row_count = 1;
        self.row_count_unseen = false;
        Ok(())
    }

    fn change_into(&mut self, change: &ChangeInto, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let output = execution.run(&change.statement, &self.frame)?;
        // Whether there was a row shows in the variables.
        self.look_at_matched(execution);
        match output.rows.len() {
            1 => {}
            0 if !change.target.strict => {}
            several => check_single(several)?,
        }
        self.set_row_count(output.affected, false);
        self.store_first(&change.target, output.rows)
    }

    fn call(&mut self, call: &Call, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        if self.procedure.looks_at_matched && (self.found_unseen || self.row_count_unseen) {
            // Afterwards the last change would be one of the procedure called.
            self.look_at_matched(execution);
        }
        let output = execution.run(&call.statement, &self.frame)?;
        let values = output.rows.into_iter().flatten();
        for ((position, value), column) in output.call_outputs.iter().zip(values).zip(output.columns.iter()) {
            let Some(variable) = call.variables.get(*position).and_then(Option::as_ref) else {
                let message = format!(
                    "procedure parameter \"{}\" is an output parameter but corresponding argument is not writable",
                    column.name
                );
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            };
            if let Some(name) = &variable.constant {
                return Err(constant(name));
            }
            let value =
                convert(value, coercion(column.data_type, variable.data_type, "an output argument")?)?;
            if let Some(name) = &variable.not_null {
                refuse_null(&value, name)?;
            }
            self.frame[usize::from(variable.slot)] = value;
        }
        Ok(())
    }

    fn raise(&mut self, plan: &RaisePlan, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let mut message = match &plan.message {
            RaiseMessage::Format { pieces, arguments } => Some(self.formatted(pieces, arguments, execution)?),
            RaiseMessage::Condition(name) => Some(name.to_string()),
            RaiseMessage::Code => None,
        };
        let has_text = matches!(plan.message, RaiseMessage::Format { .. });
        let mut error = SqlError::new(plan.state, "");
        let mut given_message = None;
        for (option, expression) in &plan.options {
            let Some(text) = format_value(&execution.evaluate(expression, &self.frame)?) else {
                let message = "RAISE statement option cannot be null";
                return Err(SqlError::new(NULL_VALUE_NOT_ALLOWED, message));
            };
            match option {
                RaiseOption::ErrorCode => {
                    error.state = state_named(&text)?;
                    if !has_text {
                        message = Some(text);
                    }
                }
                RaiseOption::Message => given_message = Some(text),
                RaiseOption::Detail => error.detail = Some(text),
                RaiseOption::Hint => error.hint = Some(text),
                RaiseOption::Other(_) => {}
            }
        }
        if !plan.ends {
            return Ok(());
        }
        error.message = given_message.or(message).unwrap_or_else(|| error.state.to_string());
        Err(error)
    }

    fn formatted(
        &self,
        pieces: &[Box<str>],
        arguments: &[Expression],
        execution: &mut Execution<'_>,
    ) -> Result<String, SqlError> {
        let mut text = String::new();
        for (index, piece) in pieces.iter().enumerate() {
            text.push_str(piece);
            if let Some(argument) = arguments.get(index) {
                let value = execution.evaluate(argument, &self.frame)?;
                text.push_str(format_value(&value).as_deref().unwrap_or("<NULL>"));
            }
        }
        Ok(text)
    }

    fn assert(
        &self,
        condition: &Expression,
        message: Option<&Expression>,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        if execution.is_true(condition, &self.frame)? {
            return Ok(());
        }
        let text = match message {
            Some(message) => format_value(&execution.evaluate(message, &self.frame)?),
            None => None,
        };
        Err(SqlError::new(SqlState(*b"P0004"), text.unwrap_or_else(|| "assertion failed".to_string())))
    }
}

impl Range {
    /// The next number.
    #[inline]
    fn take(&mut self) -> Option<i32> {
        let over = if self.step < 0 { self.next < self.last } else { self.next > self.last };
        if over {
            return None;
        }
        let number = i32::try_from(self.next).ok()?;
        self.next += self.step;
        self.had_turn = true;
        Some(number)
    }
}

#[inline]
fn convert(value: Value, coercion: Coercion) -> Result<Value, SqlError> {
    match coercion {
        Coercion::None => Ok(value),
        Coercion::Assign(data_type) => assign(value, data_type),
        Coercion::ThroughText(data_type) => assign(assign(value, DataType::Text(None))?, data_type),
    }
}

#[inline]
fn refuse_null(value: &Value, variable: &str) -> Result<(), SqlError> {
    if !value.is_null() {
        return Ok(());
    }
    let message = format!("null value cannot be assigned to variable \"{variable}\" declared NOT NULL");
    Err(SqlError::new(NULL_VALUE_NOT_ALLOWED, message))
}

/// The errors of STRICT.
fn check_single(rows: usize) -> Result<(), SqlError> {
    match rows {
        0 => Err(SqlError::new(SqlState::NO_DATA_FOUND, "query returned no rows")),
        1 => Ok(()),
        _ => Err(SqlError::new(SqlState::TOO_MANY_ROWS, "query returned more than one row")
            .hint("Make sure the query returns a single row, or use LIMIT 1.")),
    }
}

/// The code that ERRCODE gives, itself or by the condition's name.
fn state_named(text: &str) -> Result<SqlState, SqlError> {
    parse_state(text).or_else(|| state_of_condition(text)).ok_or_else(|| {
        let message = format!("unrecognized exception condition \"{text}\"");
        SqlError::new(SqlState(*b"42704"), message)
    })
}
