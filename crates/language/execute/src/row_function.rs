//! The rows of functions in FROM.

use crate::execution::Execution;
use crate::scratch::{RowList, Rows};
use crate::subqueries::Given;
use plan::expression::{Expression, row_space, rows_space};
use plan::statement::{JsonCall, RowFunction, RowKind, goes_up};
use std::sync::Arc;
use types::{Array, SqlError, SqlState, Value, add, elements_in};
use values::broken;
use values::functions::Counting;

/// What a row of a series costs: a step, and more of them for a number that is as long as many.
fn steps_of(value: &Value) -> u64 {
    const BYTES_PER_STEP: usize = 64;
    match value {
        Value::Numeric(number) => 1 + (number.stored_bytes() / BYTES_PER_STEP) as u64,
        _ => 1,
    }
}

impl Execution<'_> {
    pub(super) fn function_rows(
        &mut self,
        function: &RowFunction,
        arguments: &[Expression],
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let arguments = self.evaluate_all(arguments, given)?;
        let mut rows = match &function.rows {
            RowKind::Series(_) => return self.series(&arguments, function.with_ordinality),
            RowKind::Elements(widths) => self.elements(&arguments, widths)?,
            RowKind::Slices(dimensions) => self.slices(&arguments, *dimensions)?,
            RowKind::Json(call) => self.rows_of_json(call, &arguments)?,
            RowKind::History(table) => {
                let rows = self.row_history(table, &arguments)?;
                self.meter.memory.hold(rows_space(&rows))?;
                rows
            }
        };
        if function.with_ordinality {
            for (number, row) in (1..).zip(&mut rows) {
                row.push(Value::BigInt(number));
            }
        }
        Ok(Rows::Held(rows))
    }

    fn rows_of_json(&mut self, call: &JsonCall, arguments: &[Value]) -> Result<Vec<Vec<Value>>, SqlError> {
        let [base, json] = arguments else { return Err(broken("rows of JSON without any")) };
        let rows = self.measured(|this| {
            let memory = &this.meter.memory;
            // While they are made: a text of two characters may be a row of many columns.
            let row = |row: &[Value]| {
                memory.hold_row(row.len())?;
                row.iter().try_for_each(|value| memory.count(value))
            };
            let counting = Counting { row: &row, number: &|value| memory.count(value) };
            call.rows.rows(&call.name, json, base, (&call.types, counting))
        })?;
        self.charge(rows.len() as u64)?;
        Ok(rows)
    }

    fn series(&mut self, bounds: &[Value], with_ordinality: bool) -> Result<Rows, SqlError> {
        let [start, stop, step] = bounds else { return Err(broken("a series without bounds")) };
        // NULL gives no rows.
        if bounds.iter().any(Value::is_null) {
            return Ok(Rows::Held(Vec::new()));
        }
        for (bound, name) in bounds.iter().zip(["start value", "stop value", "step size"]) {
            match bound {
                Value::Numeric(number) if number.is_special() => {
                    let what = if number.is_nan() { "NaN" } else { "infinity" };
                    let message = format!("{name} cannot be {what}");
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
                _ => {}
            }
        }
        let up = goes_up(step)?;
        let memory = self.meter.memory.clone();
        let (mut rows, mut number) = (RowList::new(self.on.scratch.clone()), 0);
        let mut next = Some(start.clone());
        while let Some(value) = next.filter(|value| match value.compare(stop) {
            Some(order) => {
                if up {
                    order.is_le()
                } else {
                    order.is_ge()
                }
            }
            None => false,
        }) {
            self.charge(steps_of(&value))?;
            next = match add(&value, step) {
                Ok(next) => Some(next),
                // The series of a type ends where the type does.
                Err(error) if error.state == SqlState::NUMERIC_VALUE_OUT_OF_RANGE => None,
                Err(error) => return Err(error),
            };
            number += 1;
            let row = match with_ordinality {
                true => vec![value, Value::BigInt(number)],
                false => vec![value],
            };
            rows.push(&memory, row_space(1), row)?;
        }
        rows.complete()
    }

    /// The parts of an array that have so many dimensions, the last ones of it.
    fn slices(&mut self, arguments: &[Value], dimensions: usize) -> Result<Vec<Vec<Value>>, SqlError> {
        let [Value::Array(array)] = arguments else { return Ok(Vec::new()) };
        let all = array.dimensions();
        let Some(outer) = all.len().checked_sub(dimensions) else { return Ok(Vec::new()) };
        let inner = &all[outer..];
        let parts = array.values().chunks(elements_in(inner).max(1));
        self.charge(array.values().len() as u64)?;
        self.meter.memory.hold(row_space(1).saturating_mul(parts.len() as u64))?;
        let row = |part: &[Value]| {
            Ok(vec![Value::Array(Arc::new(Array::shaped(array.element(), inner, part.to_vec())?))])
        };
        parts.map(row).collect()
    }

    /// The elements of arrays side by side, NULL behind the end of the shorter ones. `widths`: how many fields those have
    /// that are rows.
    fn elements(&mut self, arrays: &[Value], widths: &[Option<usize>]) -> Result<Vec<Vec<Value>>, SqlError> {
        let arrays: Vec<&[Value]> = arrays
            .iter()
            .map(|array| match array {
                Value::Array(array) => array.values(),
                _ => &[],
            })
            .collect();
        let length = arrays.iter().map(|array| array.len()).max().unwrap_or(0);
        self.charge(length as u64)?;
        let width: usize = widths.iter().map(|width| width.unwrap_or(1)).sum();
        self.meter.memory.hold(row_space(width).saturating_mul(length as u64))?;
        let row = |index: usize| {
            let mut row: Vec<Value> = Vec::with_capacity(arrays.len());
            for (array, width) in arrays.iter().zip(widths) {
                match (array.get(index), width) {
                    (Some(Value::Composite(fields)), Some(_)) => row.extend_from_slice(fields.values()),
                    (_, Some(width)) => row.resize(row.len() + width, Value::Null),
                    (element, None) => row.push(element.cloned().unwrap_or_default()),
                }
            }
            row
        };
        Ok((0..length).map(row).collect())
    }
}
