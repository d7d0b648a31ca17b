//! The columns of a function in FROM that returns `record`.

use crate::expression::bind_data_type;
use crate::routines::{CallForm, Routine};
use crate::statement::query_scope::QueryScope;
use sqlparser::ast::{TableAlias, TableAliasColumnDef};
use std::sync::Arc;
use syntax::names::name_of;
use types::{DataType, Function, FunctionResult, OutputColumn, SqlError, SqlState};

/// The columns that a call of a function names which returns `record`: `AS (name type, …)`.
///
/// # Errors
/// `42601` where it names none, or names those of a function that says what it returns.
pub(super) fn asked_columns(
    query: QueryScope<'_>,
    routine: &Routine,
    alias: Option<&TableAlias>,
) -> Result<Option<Arc<[OutputColumn]>>, SqlError> {
    let listed = alias.map_or(&[][..], |alias| alias.columns.as_slice());
    let is_record =
        matches!(routine.definition.function, Some(Function { result: FunctionResult::Record, .. }));
    let has_types = listed.iter().any(|column| column.data_type.is_some());
    let refused = |message: &str| {
        let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
        Err(match alias {
            Some(alias) => query.variables.located(error, alias.name.span),
            None => error,
        })
    };
    match (is_record, has_types) {
        (true, false) => refused("a column definition list is required for functions returning \"record\""),
        (false, true) => match routine.form() {
            CallForm::Value => {
                refused("a column definition list is only allowed for functions returning \"record\"")
            }
            _ if routine.data_type() == DataType::Record => {
                refused("a column definition list is redundant for a function with OUT parameters")
            }
            _ => refused(
                "a column definition list is redundant for a function returning a named composite type",
            ),
        },
        (false, false) => Ok(None),
        (true, true) => Ok(listed_columns(query, alias)?.map(Arc::from)),
    }
}

/// The columns that an alias lists with their types; `None` where it lists none.
///
/// # Errors
/// `42601` for one without a type; types that do not exist.
pub(super) fn listed_columns(
    query: QueryScope<'_>,
    alias: Option<&TableAlias>,
) -> Result<Option<Vec<OutputColumn>>, SqlError> {
    let listed = alias.map_or(&[][..], |alias| alias.columns.as_slice());
    if listed.iter().all(|column| column.data_type.is_none()) {
        return Ok(None);
    }
    let types = query.tables.routines().types();
    let column = |column: &TableAliasColumnDef| {
        let Some(data_type) = &column.data_type else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "a column of a record needs a type"));
        };
        let data_type = bind_data_type(types, data_type)?;
        Ok(OutputColumn { name: name_of(&column.name)?, data_type })
    };
    listed.iter().map(column).collect::<Result<Vec<_>, _>>().map(Some)
}
