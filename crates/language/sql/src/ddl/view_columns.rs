//! The names that a view gives to its columns, in the text of its query: whoever is shown the query reads them there.

use crate::ddl::new_catalog::NewCatalog;
use plan::scope::VariableScope;
use plan::statement::{BoundSelect, bind_query};
use plan::tables::Tables;
use sqlparser::ast::{self, Expr, Ident, SelectItem};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use syntax::names::name_of;
use syntax::parse::{parse_query, written_query};
use types::{ExecutionVersion, OutputColumn, SqlError, View};

/// Writes the query of a view with the names that the columns of the view have now, where that changes nothing else.
pub(super) fn write_names(catalog: &NewCatalog, view: &mut View) -> Result<(), SqlError> {
    let tables = catalog.bound()?;
    let found = bind_again(&tables, &parse_query(&view.query, tables.version())?)?.columns;
    if let Some(query) = with_names(&tables, &view.query, &found, &view.columns) {
        view.query = query;
    }
    Ok(())
}

/// What the query of a view gives, which was bound when the view was made.
pub(super) fn bind_again(tables: &Tables, query: &ast::Query) -> Result<BoundSelect, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
    bind_query(tables, &scope, query)
}

/// Whether a query, stored as this text, gives these columns.
pub(super) fn gives(tables: &Tables, query: &str, columns: &[OutputColumn]) -> bool {
    let again = parse_query(query, tables.version()).and_then(|query| bind_again(tables, &query));
    again.is_ok_and(|again| again.columns.as_ref() == columns)
}

/// The query, which gives the columns `found`, with the names of `columns`. `None`: it has them, or would mean something else.
pub(super) fn with_names(
    tables: &Tables,
    query: &str,
    found: &[OutputColumn],
    columns: &[OutputColumn],
) -> Option<String> {
    let named = match found == columns {
        true => None,
        false => renamed(query, found, columns, tables.version()),
    };
    named.filter(|named| gives(tables, named, columns))
}

fn renamed(
    query: &str,
    found: &[OutputColumn],
    columns: &[OutputColumn],
    version: ExecutionVersion,
) -> Option<String> {
    let mut query = parse_query(query, version).ok()?;
    let sorted_by = names_in(&query.order_by);
    let mut body = query.body.as_mut();
    let select = loop {
        match body {
            ast::SetExpr::Select(select) => break select,
            ast::SetExpr::SetOperation { left, .. } => body = left.as_mut(),
            _ => return None,
        }
    };
    if select.projection.len() != columns.len() {
        return None;
    }
    // ORDER BY, DISTINCT ON and GROUP BY may take a name for that of a column of the output.
    let looked_for: BTreeSet<String> =
        [sorted_by, names_in(&select.distinct), names_in(&select.group_by)].into_iter().flatten().collect();
    for (item, (before, column)) in select.projection.iter_mut().zip(found.iter().zip(columns)) {
        if before.name == column.name {
            continue;
        }
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return None;
        };
        // A column of a table under its own name is the same without the name in the output.
        let is_itself = matches!(expr, Expr::Identifier(ident) if is_named(ident, &before.name));
        let is_looked_for =
            looked_for.contains(&column.name) || (looked_for.contains(&before.name) && !is_itself);
        if is_looked_for && version >= ExecutionVersion::V12 {
            return None;
        }
        let alias = Ident::with_quote('"', &column.name);
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
    Some(written_query(&query, version))
}

/// The names that stand alone, without that of a table.
fn names_in(clause: &impl ast::Visit) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let _ = ast::visit_expressions(clause, |expr| {
        if let Expr::Identifier(ident) = expr {
            names.extend(name_of(ident));
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

fn is_named(ident: &Ident, name: &str) -> bool {
    name_of(ident).is_ok_and(|found| found == name)
}
