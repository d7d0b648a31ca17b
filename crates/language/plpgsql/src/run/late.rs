//! Running what looks at records whose columns are told when the program runs ([`crate::late`]).

use crate::coercion::coercion;
use crate::late::{Late, LateRow, LateRows, LateStatement, LateValue, Wanted};
use crate::program::Address;
use crate::run::activation::{Activation, BoundLate, ToldRow};
use crate::run::store::{check_single, convert, store_first};
use crate::target::RowTarget;
use crate::variables::not_assigned;
use execute::Execution;
use plan::expand_rows::expand_rows;
use plan::expression::row_value;
use plan::statement::{BoundStatement, StatementOutput, bind_statement};
use std::sync::Arc;
use types::{DataType, OutputColumn, SqlError, SqlState, Value, format_value};
use values::broken;

impl Activation<'_> {
    /// A record gets a row with these columns; without one all of them are NULL.
    pub(super) fn tell(&mut self, record: u16, columns: &[OutputColumn], row: Option<Vec<Value>>) {
        let known = |column: &OutputColumn| match column.data_type {
            DataType::Unknown => OutputColumn { data_type: DataType::Text(None), ..column.clone() },
            _ => column.clone(),
        };
        let place = &mut self.told[usize::from(record)];
        let same = place.as_ref().map(|told| &told.columns).filter(|known| {
            known.len() == columns.len()
                && known.iter().zip(columns).all(|(known, column)| {
                    known.name == column.name
                        && (known.data_type == column.data_type || column.data_type == DataType::Unknown)
                })
        });
        let columns = match same {
            Some(same) => same.clone(),
            None => columns.iter().map(known).collect(),
        };
        let mut values = row.unwrap_or_default();
        values.resize(columns.len(), Value::Null);
        *place = Some(ToldRow { columns, values });
    }

    /// Stores the only row of a result, or that there is none.
    pub(super) fn store_first(
        &mut self,
        target: &RowTarget,
        columns: &[OutputColumn],
        row: Option<Vec<Value>>,
    ) -> Result<(), SqlError> {
        let row = match target.record {
            None => row,
            Some(record) => {
                self.tell(record, columns, row);
                None
            }
        };
        store_first(&mut self.frame, target, row, &self.procedure.types)
    }

    /// The row of a record.
    ///
    /// # Errors
    /// 55000 where it has none.
    fn told_row(&self, record: u16) -> Result<&ToldRow, SqlError> {
        let known = &self.procedure.records[usize::from(record)];
        let has_row = !self.frame[usize::from(known.flag)].is_null();
        let told = self.told[usize::from(record)].as_ref().filter(|_| has_row);
        told.ok_or_else(|| not_assigned(&known.name))
    }

    /// Binds a statement for the rows that records have now, and gives the frame that it runs on: behind the variables stand the
    /// values of these rows.
    fn bind_late(
        &mut self,
        late: &Late,
        execution: &mut Execution<'_>,
    ) -> Result<(Arc<BoundLate>, Vec<Value>), SqlError> {
        let (mut frame, mut columns) = (self.frame.to_vec(), Vec::with_capacity(late.records.len()));
        // A record without a row may be none of what is meant: a column may have its name.
        let mut unassigned = None;
        for record in &late.records {
            match self.told_row(*record) {
                Ok(told) => {
                    columns.push(told.columns.clone());
                    frame.extend(told.values.iter().cloned());
                }
                Err(error) => {
                    unassigned = Some(error);
                    columns.push(Arc::default());
                }
            }
        }
        let address: Address = execution.address;
        if let Some(bound) = self.late.get(&address)
            && bound.columns.iter().zip(&columns).all(|(bound, now)| Arc::ptr_eq(bound, now))
        {
            return Ok((bound.clone(), frame));
        }
        execution.charge(late.length)?;
        let programs = execution.programs();
        let tables = programs.tables().with_search_path(self.procedure.types.search_path());
        let mut scope = late.scope.scope(self.procedure.slots, tables.routines());
        let mut fields: Vec<(&str, Vec<String>)> = Vec::with_capacity(columns.len());
        for (record, columns) in late.records.iter().zip(&columns) {
            let known = &self.procedure.records[usize::from(*record)];
            let typed: Vec<(String, DataType)> =
                columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
            let slots = scope.add_slots(&typed);
            let names: Vec<String> = typed.into_iter().map(|(name, _)| name).collect();
            let named: Vec<(String, usize)> = names.iter().cloned().zip(slots).collect();
            scope.set_fields(usize::from(known.flag), &named);
            fields.push((known.name.as_ref(), names));
        }
        let mut statement = late.statement.clone();
        expand_rows(&mut statement, &|name| {
            let known = fields.iter().find(|(known, names)| *known == name && !names.is_empty());
            known.map(|(_, names)| names.clone())
        });
        let names = [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_TABLE];
        let named = |error: SqlError| match unassigned {
            Some(unassigned) if names.contains(&error.state) => unassigned,
            _ => tables.routines().types().named_in(error),
        };
        let bound = bind_statement(&tables, &scope, &statement).map_err(named)?;
        let bound = Arc::new(BoundLate { columns, statement: bound, needs: scope.needs() });
        execution.authorise_text(&bound.needs, "a call that is bound when it runs")?;
        self.late.insert(address, bound.clone());
        Ok((bound, frame))
    }

    pub(super) fn late_value(
        &mut self,
        late: &LateValue,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        let (bound, frame) = self.bind_late(&late.query, execution)?;
        let BoundStatement::Select(query) = &bound.statement else {
            return Err(broken("a value of no query"));
        };
        let rows = execution.select(query, &frame, Some(1))?;
        let value = rows.into_iter().flatten().next().unwrap_or_default();
        let found = query.columns.first().map_or(DataType::Unknown, |column| column.data_type);
        let types = &self.procedure.types;
        let value = match late.wanted {
            Wanted::Type(wanted) if wanted.is_composite() => match found == wanted || value.is_null() {
                true => value,
                false => types.assign(value, wanted)?,
            },
            Wanted::Type(wanted) => convert(value, coercion(found, wanted, &late.what)?, types)?,
            Wanted::Shown => format_value(&value).map_or(Value::Null, |text| Value::text(text.as_str())),
            Wanted::Itself => {
                let known = if found == DataType::Unknown { DataType::Text(None) } else { found };
                self.late_types.insert(late.slot, known);
                value
            }
        };
        self.frame[usize::from(late.slot)] = value;
        // PostgreSQL runs such an expression as a query of one row.
        self.row_count = 1;
        self.row_count_unseen = false;
        Ok(())
    }

    pub(super) fn late_statement(
        &mut self,
        late: &LateStatement,
        execution: &mut Execution<'_>,
    ) -> Result<(), SqlError> {
        if self.procedure.looks_at_matched {
            self.look_at_unseen(execution);
        }
        let (bound, frame) = self.bind_late(&late.statement, execution)?;
        let is_select = bound.statement.is_query();
        let output = match &bound.statement {
            BoundStatement::Select(query) => {
                // A second row is looked for only where it would be an error.
                let limit = late.target.as_ref().map(|(target, _)| if target.strict { 2 } else { 1 });
                let rows = execution.select(query, &frame, limit)?;
                let affected = rows.len() as u64;
                StatementOutput {
                    rows,
                    affected,
                    columns: query.columns.clone(),
                    ..StatementOutput::default()
                }
            }
            statement => execution.run(statement, &frame)?,
        };
        let Some((target, wanted)) = &late.target else {
            if bound.statement.returns_rows() && !late.is_performed {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "query has no destination for result data");
                return Err(match is_select {
                    true => {
                        error.hint("If you want to discard the results of a SELECT, use PERFORM instead.")
                    }
                    false => error,
                });
            }
            self.set_row_count(output.affected, !is_select);
            return Ok(());
        };
        if !bound.statement.returns_rows() {
            let message = "INTO used with a command that cannot return data";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        if !is_select {
            execution.look_at_matched();
        }
        if target.strict || (output.rows.len() > 1 && !is_select) {
            check_single(output.rows.len())?;
        }
        self.set_row_count(output.affected, false);
        let mut rows = output.rows;
        if target.record.is_none() {
            self.convert_rows(&mut rows, &output.columns, wanted)?;
        }
        self.store_first(target, &output.columns, rows.into_iter().next())
    }

    /// The rows of a loop or of RETURN QUERY.
    pub(super) fn late_rows(
        &mut self,
        late: &LateRows,
        execution: &mut Execution<'_>,
    ) -> Result<StatementOutput, SqlError> {
        let (bound, frame) = self.bind_late(&late.statement, execution)?;
        let mut output = match &bound.statement {
            BoundStatement::Select(query) => {
                let rows = execution.select(query, &frame, None)?;
                StatementOutput { rows, columns: query.columns.clone(), ..StatementOutput::default() }
            }
            statement if statement.returns_rows() => {
                let output = execution.run(statement, &frame)?;
                execution.look_at_matched();
                output
            }
            _ => {
                let message = "cannot open query as cursor: it returns no rows";
                return Err(SqlError::new(SqlState(*b"42P11"), message));
            }
        };
        if let Some(wanted) = &late.wanted {
            self.convert_rows(&mut output.rows, &output.columns, wanted)?;
        }
        Ok(output)
    }

    /// Makes the columns of rows values of these types, as assignments do.
    pub(super) fn convert_rows(
        &self,
        rows: &mut [Vec<Value>],
        columns: &[OutputColumn],
        wanted: &[DataType],
    ) -> Result<(), SqlError> {
        let from = |position: usize| columns.get(position).map_or(DataType::Unknown, |c| c.data_type);
        let coercions = wanted.iter().enumerate();
        let coercions = coercions.map(|(position, to)| coercion(from(position), *to, "a variable"));
        let coercions = coercions.collect::<Result<Vec<_>, SqlError>>()?;
        for row in rows {
            for (value, coercion) in row.iter_mut().zip(&coercions) {
                *value = convert(std::mem::take(value), *coercion, &self.procedure.types)?;
            }
        }
        Ok(())
    }

    pub(super) fn late_row(&mut self, late: &LateRow) -> Result<(), SqlError> {
        let value = match !late.is_next && self.frame[usize::from(late.flag)].is_null() {
            true => Value::Null,
            false => {
                let told = self.told_row(late.record)?;
                if let Some(fields) = &late.fields {
                    check_row(&told.columns, fields, late.is_next)?;
                }
                row_value(late.data_type, told.values.clone())?
            }
        };
        self.frame[usize::from(late.slot)] = value;
        Ok(())
    }
}

/// Refuses a row whose columns are not those of the result.
fn check_row(columns: &[OutputColumn], fields: &[DataType], is_next: bool) -> Result<(), SqlError> {
    let refused = |detail: String| {
        let message = match is_next {
            true => "wrong record type supplied in RETURN NEXT",
            false => "returned record type does not match expected record type",
        };
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail))
    };
    if columns.len() != fields.len() {
        let (found, expected) = (columns.len(), fields.len());
        return refused(format!(
            "Number of returned columns ({found}) does not match expected column count ({expected})."
        ));
    }
    for (position, (column, expected)) in columns.iter().zip(fields).enumerate() {
        let (found, expected) = (column.data_type.family(), expected.family());
        if found != expected {
            return refused(format!(
                "Returned type {found} does not match expected type {expected} in column {}.",
                position + 1
            ));
        }
    }
    Ok(())
}
