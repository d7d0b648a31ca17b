//! The table that a statement is about.

use crate::constant::Constants;
use crate::data_type::check_column_type;
use crate::fit::stored;
use crate::refusal::{COMPUTE_BEFORE, refused};
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor, TableWithJoins};
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::parse_expression;
use types::{Catalog, ExecutionVersion, SearchPath, SqlError, SqlState, Table, Value};

/// The table of a name that may have its schema in front.
///
/// # Errors
/// `42P01`; `0A000` where one of its columns has a type that is not the same everywhere.
pub(crate) fn find_table<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Table>, SqlError> {
    let found = SearchPath::default().find(name, |name| catalog.tables.contains_key(name));
    let table = found.and_then(|name| catalog.tables.get(&name)).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
    })?;
    table.columns.iter().try_for_each(|column| check_column_type(column.data_type))?;
    Ok(table)
}

/// The only table of UPDATE or DELETE, with the name under which its columns are known.
///
/// # Errors
/// As [`find_table`]; `0A000` for anything around it.
pub(crate) fn single_table<'c>(
    catalog: &'c Catalog,
    from: &TableWithJoins,
    constants: &Constants<'_>,
) -> Result<(&'c Arc<Table>, String), SqlError> {
    let beyond =
        |what: &str| refused(what).hint("A statement is about one table. Read values of others before.");
    if !from.joins.is_empty() {
        return Err(beyond("JOIN"));
    }
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = &from.relation
    else {
        return Err(beyond("anything but a table after UPDATE or FROM"));
    };
    if !(with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty()) {
        return Err(beyond("anything but a table after UPDATE or FROM"));
    }
    let table = named_table(catalog, name, constants)?;
    let known_as = match alias {
        None => table.object_name().to_string(),
        Some(TableAlias { name, columns, .. }) if columns.is_empty() => name_of(name)?,
        Some(_) => {
            return Err(refused("a list of column aliases").hint("Name the columns as the table does."));
        }
    };
    Ok((table, known_as))
}

/// As [`find_table`], at its place.
///
/// # Errors
/// As [`find_table`].
pub(crate) fn named_table<'c>(
    catalog: &'c Catalog,
    name: &ObjectName,
    constants: &Constants<'_>,
) -> Result<&'c Arc<Table>, SqlError> {
    let found = table_name(name).and_then(|name| find_table(catalog, &name));
    found.map_err(|error| constants.at(error, name))
}

/// Ordinal of a column that gets a value.
///
/// # Errors
/// `42703`; `0A000` for a part of a column.
pub(crate) fn target_column(
    table: &Table,
    name: &ObjectName,
    constants: &Constants<'_>,
) -> Result<usize, SqlError> {
    let found = match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => column_of(table, ident),
        _ => Err(refused(format_args!("the target {name}")).hint("Name a column alone.")),
    };
    found.map_err(|error| constants.at(error, name))
}

fn column_of(table: &Table, ident: &Ident) -> Result<usize, SqlError> {
    ordinal_of(table, &name_of(ident)?)
}

/// Ordinal of a column that gets a value.
///
/// # Errors
/// `42703`
pub(crate) fn ordinal_of(table: &Table, name: &str) -> Result<usize, SqlError> {
    table.ordinal(name).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.object_name());
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

/// The value of a column's DEFAULT; NULL where it has none.
///
/// # Errors
/// `0A000` where it is no constant; as [`stored`].
pub(crate) fn default_value(table: &Table, ordinal: usize, now_ms: Option<u64>) -> Result<Value, SqlError> {
    let column = &table.columns[ordinal];
    let Some(sql) = &column.default else { return Ok(Value::Null) };
    let constants = Constants { sql, parameters: &[], now_ms };
    let read = parse_expression(sql, ExecutionVersion::NEWEST)
        .and_then(|expr| constants.read(&expr))
        .and_then(|read| read.map(|written| stored(written, &column.name, column.data_type)).transpose());
    match read {
        Ok(Some(value)) => Ok(value),
        Err(error) if error.state != SqlState::FEATURE_NOT_SUPPORTED => {
            Err(SqlError { position: None, ..error })
        }
        _ => Err(refused(format_args!("the default {sql} of column \"{}\"", column.name))
            .hint(format!("A default is a constant, or now() for a timestamptz. {COMPUTE_BEFORE}"))),
    }
}
