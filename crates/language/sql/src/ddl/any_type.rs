//! Types whatever their kind: finding them, and RENAME TO and SET SCHEMA.

use crate::ddl::comments::rename_comments;
use crate::ddl::names::{Renaming, rename_in_expression_text, rename_in_query};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Span;
use std::collections::BTreeMap;
use std::sync::Arc;
use syntax::names::table_name;
use syntax::parse::{parse_query, written_query};
use types::{Catalog, Commented, CompositeType, SqlError, SqlState, Table, TypeKind, as_given, object_name};

/// The type of this name that CREATE TYPE or CREATE DOMAIN has made.
///
/// # Errors
/// `42704` where there is none, `42809` for the type of a relation's rows.
pub(super) fn find_type(catalog: &Catalog, name: &str) -> Result<Arc<CompositeType>, SqlError> {
    if let Some(known) = catalog.types.get(name) {
        return Ok(known.clone());
    }
    if catalog.row_types.contains_key(name) {
        let message = format!("{name} is a table's row type");
        return Err(SqlError::new(SqlState(*b"42809"), message).hint("Use ALTER TABLE instead."));
    }
    let message = format!("type \"{}\" does not exist", as_given(name));
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

/// RENAME TO and SET SCHEMA. What names the type in texts that the catalog keeps follows; bodies of functions do not, as in
/// PostgreSQL.
pub(super) fn rename_type(catalog: &mut NewCatalog, from: &str, to: &str) -> Result<(), SqlError> {
    if from == to {
        return Ok(());
    }
    if catalog.types.contains_key(to) || catalog.row_types.contains_key(to) || relation_exists(catalog, to) {
        let message = format!("type \"{}\" already exists", object_name(to));
        return Err(SqlError::new(SqlState(*b"42710"), message));
    }
    let follow = FollowType { from, to };
    for table in catalog.tables.values_mut() {
        let mut new = Table::clone(table);
        for check in &mut new.checks {
            rename_in_expression_text(&mut check.condition, &follow)?;
        }
        for default in new.columns.iter_mut().filter_map(|column| column.default.as_mut()) {
            rename_in_expression_text(default, &follow)?;
        }
        for text in new.row_security.texts_mut() {
            rename_in_expression_text(text, &follow)?;
        }
        if new != **table {
            *table = Arc::new(new);
        }
    }
    for text in catalog.indexes.values_mut().flatten().flat_map(|index| index.details.texts_mut()) {
        rename_in_expression_text(text, &follow)?;
    }
    let rules = catalog.rules;
    for view in catalog.queries_mut() {
        let mut query = parse_query(&view.query, rules)?;
        let before = query.clone();
        rename_in_query(&mut query, &follow);
        if query != before {
            view.query = written_query(&query, rules);
        }
    }
    for procedure in catalog.procedures.values_mut() {
        let defaults = Arc::make_mut(procedure).parameters.iter_mut();
        for default in defaults.filter_map(|parameter| parameter.default.as_mut()) {
            rename_in_expression_text(default, &follow)?;
        }
    }
    for trigger in catalog.triggers.values_mut().flat_map(BTreeMap::values_mut) {
        if let Some(condition) = &mut Arc::make_mut(trigger).condition {
            rename_in_expression_text(condition, &follow)?;
        }
    }
    for known in catalog.types.values_mut() {
        rename_in_domain(known, &follow)?;
    }
    if let Some(mut known) = catalog.types.remove(from) {
        Arc::make_mut(&mut known).name = to.to_string();
        catalog.types.insert(to.to_string(), known);
    }
    rename_comments(catalog, &|about| match about {
        Commented::Type(name) if name == from => Commented::Type(to.to_string()),
        Commented::Column(name, field) if name == from => Commented::Column(to.to_string(), field),
        other => other,
    });
    Ok(())
}

/// Renames what stands in the texts of a domain.
pub(super) fn rename_in_domain(
    known: &mut Arc<CompositeType>,
    renaming: &dyn Renaming,
) -> Result<(), SqlError> {
    let Some(mut domain) = known.as_domain().cloned() else { return Ok(()) };
    let conditions = domain.checks.iter_mut().map(|check| &mut check.condition);
    for text in conditions.chain(&mut domain.default) {
        rename_in_expression_text(text, renaming)?;
    }
    Arc::make_mut(known).kind = TypeKind::Domain(domain);
    Ok(())
}

/// Lets the name of one type follow it.
struct FollowType<'n> {
    from: &'n str,
    to: &'n str,
}

impl Renaming for FollowType<'_> {
    fn is_relation(&self, _: Span) -> bool {
        false
    }

    fn relation(&self, _: &ObjectName, _: Span) -> Option<String> {
        None
    }

    fn routine(&self, _: &ObjectName) -> Option<String> {
        None
    }

    fn data_type(&self, name: &ObjectName) -> Option<String> {
        let name = table_name(name).ok()?;
        let name = name.strip_prefix("public.").unwrap_or(&name);
        (name == self.from).then(|| self.to.to_string())
    }

    fn sequence(&self, _: &str) -> Option<String> {
        None
    }
}
