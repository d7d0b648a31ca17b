//! CREATE TABLE … AS and SELECT … INTO: a table without a primary key, with the rows of a query.
//!
//! The effects of this schema change have rows of the table that it makes. That works on a ledger that executes
//! before it orders, too, because every node executes a schema change itself.

use crate::ddl::endorsement::table_endorsement;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use crate::ddl::rows::Rows;
use crate::ddl::tables::{TableDraft, create_table};
use plan::scope::VariableScope;
use plan::statement::{bind_query, changes_rows};
use sqlparser::ast::Query;
use std::collections::BTreeSet;
use syntax::names::{name_of, table_name};
use syntax::parse::create_as::CreateTableAs;
use types::session_format::within_format;
use types::{Catalog, Column, DataType, OutputColumn, SearchPath, SqlError, SqlState, limits};

/// A table with the rows of a query.
#[derive(Clone, Debug)]
pub(crate) struct TableOfQuery {
    if_not_exists: bool,
    pub(super) name: String,
    /// Where names without a schema are looked for.
    pub(super) search_path: SearchPath,
    /// Names that the first columns get.
    columns: Vec<String>,
    endorsement: Option<String>,
    query: Box<Query>,
    with_data: bool,
}

/// CREATE TABLE … AS.
///
/// # Errors
/// Forms that are not supported.
pub(super) fn bind_create_table_as(create: &CreateTableAs) -> Result<TableOfQuery, SqlError> {
    if create.temporary {
        return Err(SqlError::unsupported("CREATE TEMPORARY TABLE"));
    }
    if create.on_commit.is_some() {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    Ok(TableOfQuery {
        if_not_exists: create.if_not_exists,
        name: table_name(&create.name)?,
        search_path: SearchPath::default(),
        columns: create.columns.iter().map(name_of).collect::<Result<_, _>>()?,
        endorsement: match create.options.as_slice() {
            [] => None,
            options => table_endorsement(options)?,
        },
        query: create.query.clone(),
        with_data: create.with_data,
    })
}

/// Makes the table and its rows. Gives the command's tag. `before`: the catalog before the first change of the script.
///
/// # Errors
/// What is wrong with the query or its columns; a name that is taken.
pub(super) fn create_table_as(
    catalog: &mut NewCatalog,
    before: &Catalog,
    draft: &TableOfQuery,
    rows: &mut Rows<'_, '_>,
) -> Result<String, SqlError> {
    if draft.if_not_exists && relation_exists(catalog, &draft.name) {
        return Ok("CREATE TABLE AS".to_string());
    }
    if catalog.catalog != *before {
        return Err(SqlError::unsupported("CREATE TABLE AS behind another schema change of the same script")
            .hint("Send it in a script of its own."));
    }
    within_format(rows.format, || create_with_rows(catalog, draft, rows))
}

fn create_with_rows(
    catalog: &mut NewCatalog,
    draft: &TableOfQuery,
    rows: &mut Rows<'_, '_>,
) -> Result<String, SqlError> {
    let tables = &rows.execution.programs().tables().with_search_path(&draft.search_path);
    let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
    if changes_rows(&draft.query, tables.version()) {
        return Err(SqlError::unsupported("a WITH query that changes rows in CREATE TABLE AS")
            .hint("Create the table first, and insert what the query returns."));
    }
    let select = bind_query(tables, &scope, &draft.query)?;
    rows.execution.authorise(&scope.needs())?;
    if draft.columns.len() > select.columns.len() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
    }
    let mut columns = columns_for(&select.columns)?;
    for (column, name) in columns.iter_mut().zip(&draft.columns) {
        column.name.clone_from(name);
    }
    let mut names = BTreeSet::new();
    for column in &columns {
        if !names.insert(column.name.as_str()) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
    }
    let mut table = TableDraft::empty(&draft.name, draft.endorsement.clone());
    table.table.columns = columns;
    create_table(catalog, false, &table, rows)?;
    if !draft.with_data {
        return Ok("CREATE TABLE AS".to_string());
    }
    let id = catalog.tables[&draft.name].id;
    let count = rows.fill(id, select)?;
    Ok(format!("SELECT {count}"))
}

/// Columns of a table for those of a query.
///
/// # Errors
/// `54011` where there are too many.
pub(super) fn columns_for(columns: &[OutputColumn]) -> Result<Vec<Column>, SqlError> {
    if columns.len() > limits::COLUMNS_MAX {
        let message = format!("tables can have at most {} columns (COLUMNS_MAX)", limits::COLUMNS_MAX);
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    let column = |column: &OutputColumn| Column {
        name: column.name.clone(),
        data_type: match column.data_type {
            DataType::Unknown => DataType::Text(None),
            known => known,
        },
        not_null: false,
        default: None,
        generated: false,
    };
    Ok(columns.iter().map(column).collect())
}
