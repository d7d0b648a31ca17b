//! The names under which the columns of a relation of FROM are known.

use crate::expression::{Catalogued, NamedRelation, Relations};
use crate::statement::query_scope::QueryScope;
use crate::table::TablePlan;
use sqlparser::ast::TableAlias;
use syntax::names::name_of;
use types::{DataType, SqlError, SqlState, object_name, schema_of};

/// Adds the columns under the alias, with the names that it gives them.
pub(super) fn add_relation(
    query: QueryScope<'_>,
    names: &mut Relations,
    name: &str,
    alias: Option<&TableAlias>,
    mut columns: Vec<(String, DataType)>,
) -> Result<(), SqlError> {
    let mut known_as = name.to_string();
    if let Some(alias) = alias {
        known_as = name_of(&alias.name)?;
        if alias.columns.len() > columns.len() {
            let message = format!(
                "table \"{known_as}\" has {} columns available but {} columns specified",
                columns.len(),
                alias.columns.len()
            );
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        for (column, renamed) in columns.iter_mut().zip(&alias.columns) {
            column.0 = name_of(&renamed.name)?;
        }
    }
    if names.relations.iter().any(|relation| relation.name == known_as) {
        let message = format!("table name \"{known_as}\" specified more than once");
        let error = SqlError::new(SqlState(*b"42712"), message);
        return Err(match alias {
            Some(alias) => query.variables.located(error, alias.name.span),
            None => error,
        });
    }
    let (first, hidden) = (names.width(), Vec::new());
    let table = (!name.is_empty()).then(|| name.to_string());
    let (may_be_missing, row_type, keyed, records) = (false, None, false, Vec::new());
    names.relations.push(NamedRelation {
        name: known_as,
        table,
        schema: None,
        catalogued: None,
        columns,
        first,
        hidden,
        may_be_missing,
        row_type,
        keyed,
        records,
        origins: Vec::new(),
    });
    Ok(())
}

/// Says of what composite type the rows of the last relation are.
pub(super) fn set_row_type(names: &mut Relations, row_type: Option<DataType>) {
    if let Some(relation) = names.relations.last_mut() {
        relation.row_type = row_type;
    }
}

/// Says that the last relation is the table or view that has this name and these columns in the catalog. It may be named with its
/// schema, unless it has an alias.
pub(super) fn set_catalogued(names: &mut Relations, name: &str, columns: Vec<String>) {
    let Some(relation) = names.relations.last_mut() else { return };
    relation.catalogued = Some(Catalogued { relation: name.to_string(), columns, primary_key: Vec::new() });
    if relation.name == object_name(name) {
        relation.schema = Some(schema_of(name).to_string());
    }
}

/// Says that the primary key of the last relation decides on its other columns.
pub(super) fn set_primary_key(names: &mut Relations, table: &TablePlan) {
    if let Some(known) = names.relations.last_mut().and_then(|relation| relation.catalogued.as_mut()) {
        known.primary_key = table.key.iter().map(|ordinal| usize::from(*ordinal)).collect();
    }
}

/// The same of a table.
pub(super) fn set_table(names: &mut Relations, table: &TablePlan) {
    set_catalogued(names, &table.relation, table.columns.iter().map(|column| column.name.clone()).collect());
}
