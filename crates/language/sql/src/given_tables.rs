//! Temporary tables that a session gives with a statement of a transaction block: for the statement they are relations, whose rows come with it.
//!
//! ```text
//!  gateway: INSERT INTO orders SELECT … FROM incoming ─▶ step: the statement, and the rows of `incoming` ─▶ every node
//! ```

use crate::bind::bind_script_given;
use crate::library::Library;
use crate::script::BoundScript;
use execute::Execution;
use plan::expression::long_bytes;
use std::sync::Arc;
use types::{CompositeTypes, DataType, GivenTable, SessionStep, SqlError, SqlState, StatementResult, Value};

/// Bytes of long values that are looked at in one step.
const BYTES_OF_A_STEP: u64 = 1024;

/// By which number the first of them is known; those of recursive queries are small.
const FIRST_NUMBER: usize = usize::MAX / 2;

/// The number by which a statement and its execution know a table.
pub(crate) fn number_of(position: usize) -> usize {
    FIRST_NUMBER + position
}

impl Library {
    /// The statement of a step, bound; `None` where it has none.
    ///
    /// # Errors
    /// What is wrong in the statement, or in what is given with it.
    pub(crate) fn script_of(&self, step: &SessionStep) -> Result<Option<Arc<BoundScript>>, SqlError> {
        let Some((sql, parameters)) = step.statement() else { return Ok(None) };
        let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
        match step.given().tables.as_slice() {
            [] => self.script(sql, &types).map(Some),
            tables => {
                check(self.tables().routines().types(), tables)?;
                bind_script_given(self, sql, &types, tables).map(|script| Some(Arc::new(script)))
            }
        }
    }
}

impl BoundScript {
    /// Runs a statement with the tables that are given with it.
    ///
    /// # Errors
    /// `22P04` a row of another width, `42804` a value of another type, and what the statement ends with.
    pub(crate) fn run_given(
        &self,
        execution: &mut Execution<'_>,
        frame: &[Value],
        tables: &[GivenTable],
    ) -> Result<Vec<StatementResult>, SqlError> {
        if tables.is_empty() {
            return self.run_steps(execution, frame, false);
        }
        // Rows that repeat are packed to next to nothing: what they take is asked for before they are made.
        let sizes = tables.iter().map(|table| (table.rows.len(), table.columns.len()));
        execution.with_room_for_rows(sizes, |execution| {
            let given = tables.iter().enumerate().map(|(position, table)| {
                let mut rows = Vec::with_capacity(table.rows.len());
                for values in table.rows.iter() {
                    execution.charge(values.iter().map(long_bytes).sum::<u64>() / BYTES_OF_A_STEP)?;
                    rows.push(checked(&self.types, table, values)?);
                }
                Ok((number_of(position), rows))
            });
            let given = given.collect::<Result<Vec<_>, SqlError>>()?;
            execution.with_given_rows(given, |execution| self.run_steps(execution, frame, false))
        })
    }
}

/// A row of a table, if it is one.
fn checked(types: &CompositeTypes, table: &GivenTable, values: Vec<Value>) -> Result<Vec<Value>, SqlError> {
    if values.len() != table.columns.len() {
        let (found, name, expected) = (values.len(), &table.name, table.columns.len());
        let message = format!("a row of \"{name}\" has {found} values, expected {expected}");
        return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message));
    }
    for (value, (name, data_type)) in values.iter().zip(&table.columns) {
        types.check_given(value)?;
        if !types.fits(value, *data_type) {
            let found = types.name_of(value.data_type());
            let message = format!(
                "column \"{name}\" is of type {} but a value of type {found} is given",
                types.name_of(*data_type)
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
    }
    Ok(values)
}

/// Whether there are the types that columns say they have.
fn check(types: &CompositeTypes, tables: &[GivenTable]) -> Result<(), SqlError> {
    let mut columns = tables.iter().flat_map(|table| &table.columns);
    match columns.find(|(_, data_type)| !is_known(types, *data_type)) {
        None => Ok(()),
        Some((name, _)) => {
            let message =
                format!("the column \"{name}\" of a temporary table has a type that does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

fn is_known(types: &CompositeTypes, data_type: DataType) -> bool {
    match data_type {
        DataType::Composite(id) | DataType::Enum(id) | DataType::Domain(id) => {
            types.get(id).is_some_and(|known| known.data_type() == data_type)
        }
        DataType::Array(element) => is_known(types, element.data_type()),
        _ => true,
    }
}
