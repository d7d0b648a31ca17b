//! Temporary tables that a session gives with a statement of a transaction block: for the statement they are relations, whose rows come with it.
//!
//! ```text
//!  gateway: INSERT INTO orders SELECT … FROM incoming ─▶ step: the statement, and the rows of `incoming` ─▶ every node
//! ```

use crate::bind::bind_script_given;
use crate::library::Library;
use crate::script::BoundScript;
use std::sync::Arc;
use types::{CompositeTypes, DataType, GivenTable, SessionStep, SqlError, SqlState, Value};

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

/// The rows of tables, each under the number of its table.
///
/// # Errors
/// `22P04` a row of another width, and what a value of another type ends with.
pub(crate) fn rows_of(
    library: &Library,
    tables: &[GivenTable],
) -> Result<Vec<(usize, Vec<Vec<Value>>)>, SqlError> {
    let types = library.tables().routines().types();
    let row = |table: &GivenTable, values: Vec<Value>| {
        if values.len() != table.columns.len() {
            let (found, name, expected) = (values.len(), &table.name, table.columns.len());
            let message = format!("a row of \"{name}\" has {found} values, expected {expected}");
            return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message));
        }
        let typed = values.into_iter().zip(&table.columns).map(|(value, (_, data_type))| {
            types.check_given(&value)?;
            types.assign(value, *data_type)
        });
        typed.collect::<Result<Vec<Value>, SqlError>>()
    };
    let rows = |table: &GivenTable| {
        table.rows.iter().map(|values| row(table, values)).collect::<Result<Vec<_>, SqlError>>()
    };
    tables.iter().enumerate().map(|(position, table)| Ok((number_of(position), rows(table)?))).collect()
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
