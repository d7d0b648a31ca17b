//! Running OPEN, FETCH, MOVE, CLOSE and loops over cursors.

use crate::coercion::coercion;
use crate::program::{
    Count, CurrentRow, CursorName, CursorVariable, FetchCursor, FetchTarget, OpenCursor, RecordColumns,
    RowsSource,
};
use crate::run::activation::{Activation, LoopCursor};
use crate::run::store::{convert, store, store_row};
use crate::target::Store;
use crate::variables::constant;
use execute::{CursorRows, Execution};
use std::sync::Arc;
use syntax::plpgsql::ast::FetchKind;
use types::{CompositeTypes, DataType, Movement, OutputColumn, SqlError, SqlState, Value};

impl Activation<'_> {
    /// The name of a cursor.
    pub(crate) fn cursor_name(&self, variable: &CursorVariable) -> Result<String, SqlError> {
        match &self.frame[usize::from(variable.slot)] {
            Value::Text(name) => Ok(name.to_string()),
            _ => {
                let message = format!("cursor variable \"{}\" is null", variable.name);
                Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
            }
        }
    }

    pub(crate) fn open_cursor(
        &mut self,
        open: &OpenCursor,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let slot = open.variable.slot;
        let name = match &self.frame[usize::from(slot)] {
            Value::Text(name) => Some(name.clone()),
            _ if open.variable.constant => return Err(constant(&open.variable.name)),
            _ => None,
        };
        execution.cursors.check_name(name.as_deref())?;
        // All are computed before the first one is assigned.
        let mut values = Vec::with_capacity(open.arguments.len());
        for (_, value) in &open.arguments {
            values.push(execution.evaluate(value, &self.frame)?);
        }
        for ((target, _), value) in open.arguments.iter().zip(values) {
            store(&mut self.frame, target, value, &self.procedure.types)?;
        }
        let output = self.source_rows(&open.query.source, execution)?;
        let columns: Arc<[OutputColumn]> = match open.query.source {
            RowsSource::Dynamic(_) | RowsSource::Late(_) => output.columns.clone(),
            _ => open.query.columns.clone(),
        };
        if columns.is_empty() {
            let message = "cannot open query as cursor: it returns no rows";
            return Err(SqlError::new(SqlState(*b"42P11"), message));
        }
        let content = CursorRows {
            columns,
            rows: output.rows,
            table: open.query.table.clone(),
            scroll: open.scroll,
            pinned: open.level.is_some(),
        };
        let opened = execution.open_cursor(name.as_deref(), content)?;
        if name.is_none() {
            self.frame[usize::from(slot)] = Value::text(opened.as_str());
        }
        if let Some(level) = open.level {
            let named = name.is_none().then_some(slot);
            self.loop_cursors[usize::from(level)] = Some(LoopCursor { name: opened, had_turn: false, named });
        }
        Ok(())
    }

    pub(crate) fn fetch_cursor(
        &mut self,
        fetch: &FetchCursor,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let name = self.cursor_name(&fetch.variable)?;
        let columns = execution.cursors.columns(&name)?;
        let count = match &fetch.count {
            Count::Constant(count) => Some(*count),
            Count::All => None,
            Count::Expression(count) => match execution.evaluate(count, &self.frame)? {
                Value::Integer(count) => Some(i64::from(count)),
                _ => {
                    let message = "relative or absolute cursor position is null";
                    return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
                }
            },
        };
        let movement = match (fetch.kind, count) {
            (FetchKind::Forward, Some(count)) => Movement::By(count),
            (FetchKind::Backward, Some(count)) => Movement::By(-count),
            (FetchKind::Absolute, Some(count)) => Movement::To(count),
            (FetchKind::Relative, Some(count)) => Movement::Relative(count),
            (FetchKind::Backward, None) => Movement::ToStart,
            (_, None) => Movement::ToEnd,
        };
        let moved = execution.cursors.go(&name, movement)?;
        self.set_row_count(moved.rows as u64, false);
        let Some(target) = &fetch.target else { return Ok(()) };
        let row = match moved.rows {
            0 => None,
            _ => {
                let row = execution.cursors.row(&name, moved.first)?;
                match target.target.record {
                    Some(_) => Some(row),
                    None => Some(wanted_row(row, &columns, target, &self.procedure.types)?),
                }
            }
        };
        self.store_first(&target.target, &columns, row)
    }

    pub(crate) fn close_cursor(
        &mut self,
        variable: &CursorVariable,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let name = self.cursor_name(variable)?;
        execution.close_cursor(&name)
    }

    /// Stores the next row of a loop over a cursor; false at its end.
    pub(crate) fn next_of_cursor(
        &mut self,
        level: u16,
        stores: &[Store],
        record: Option<u16>,
        execution: &mut Execution<'_>,
    ) -> Result<bool, SqlError> {
        let Some(cursor) = &mut self.loop_cursors[usize::from(level)] else { return Ok(false) };
        let moved = execution.cursors.go(&cursor.name, Movement::By(1))?;
        if moved.rows > 0 {
            cursor.had_turn = true;
            let row = execution.cursors.row(&cursor.name, moved.first)?;
            if let Some(record) = record {
                let columns = execution.cursors.columns(&cursor.name)?;
                self.tell(record, &columns, Some(row));
                return Ok(true);
            }
            store_row(&mut self.frame, stores, Some(row), &self.procedure.types)?;
            return Ok(true);
        }
        let had_turn = cursor.had_turn;
        self.leave_cursor(level, execution);
        self.set_found(had_turn);
        Ok(false)
    }

    /// A loop over a cursor has ended: the cursor is closed.
    pub(crate) fn leave_cursor(&mut self, level: u16, execution: &mut Execution<'_>) {
        let Some(cursor) = self.loop_cursors[usize::from(level)].take() else { return };
        execution.forget_cursor(&cursor.name);
        if let Some(slot) = cursor.named {
            self.frame[usize::from(slot)] = Value::Null;
        }
    }

    /// The procedure has ended, perhaps in the middle of loops.
    pub(crate) fn close_loops(&mut self, execution: &mut Execution<'_>) {
        for cursor in self.loop_cursors.drain(..).flatten() {
            execution.forget_cursor(&cursor.name);
        }
    }

    /// The key of the row that a cursor stands on goes into variables.
    pub(crate) fn current_row(
        &mut self,
        current: &CurrentRow,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let name = match &current.cursor {
            CursorName::Variable(variable) => self.cursor_name(variable)?,
            CursorName::Literal(name) => name.to_string(),
        };
        let key = execution.cursors.key(&name, &current.table)?;
        for (slot, value) in current.slots.iter().zip(key) {
            self.frame[usize::from(*slot)] = value;
        }
        Ok(())
    }
}

/// A row of a cursor with values of the types that are wanted.
///
/// # Errors
/// `42804` where a column has a type that does not become the variable's; `0A000` where a record that has taken its
/// columns from another query would get others.
fn wanted_row(
    row: Vec<Value>,
    columns: &[OutputColumn],
    target: &FetchTarget,
    types: &CompositeTypes,
) -> Result<Vec<Value>, SqlError> {
    if let Some(RecordColumns { record, columns: names }) = &target.record {
        let same = columns.len() == names.len()
            && columns.iter().zip(names).zip(&target.wanted).all(|((column, name), wanted)| {
                let found = match column.data_type {
                    DataType::Unknown => DataType::Text(None),
                    known => known,
                };
                column.name == name.as_ref() && found == *wanted
            });
        if !same {
            return Err(SqlError::unsupported(format_args!(
                "rows of different columns in record \"{record}\""
            ))
            .hint("Declare another record for the other query."));
        }
    }
    let mut values = row.into_iter();
    let mut wanted = Vec::with_capacity(target.wanted.len());
    for (position, data_type) in target.wanted.iter().enumerate() {
        let found = columns.get(position).map_or(DataType::Unknown, |column| column.data_type);
        let coercion = coercion(found, *data_type, "a variable")?;
        wanted.push(convert(values.next().unwrap_or_default(), coercion, types)?);
    }
    Ok(wanted)
}
