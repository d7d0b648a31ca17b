//! COMMENT ON: comments are kept by the names of what they are about, follow those, and go with them.

use crate::ddl::relations::{constraint_exists, find_table, relation_exists};
use std::sync::Arc;
use syntax::parse::comment::{CommentOn, CommentedObject};
use syntax::parse::grant::NamedRoutine;
use types::{Catalog, Commented, SqlError, SqlState, Table, as_given, limits, object_name};

/// What a comment is about that a statement names, whose names are those of the catalog already.
fn commented(catalog: &Catalog, object: &CommentedObject) -> Result<Commented, SqlError> {
    let no_column = |relation: &str, column: &str| {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", object_name(relation));
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    };
    match object {
        CommentedObject::Relation(kind, name) => {
            if !relation_exists(catalog, name) {
                let message = format!("relation \"{}\" does not exist", as_given(name));
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
            let is_it = match kind.as_str() {
                "table" => {
                    let table = catalog.tables.get(name);
                    table.map_or(catalog.partition(name).is_some(), |table| table.materialized.is_none())
                }
                "materialized view" => catalog.materialized_view(name).is_some(),
                "view" => catalog.views.contains_key(name) && catalog.partition(name).is_none(),
                "sequence" => catalog.sequences.contains_key(name),
                _ => !catalog.has_relation(name) && !catalog.types.contains_key(name),
            };
            if !is_it {
                let article = if kind == "index" { "an" } else { "a" };
                let message = format!("\"{}\" is not {article} {kind}", object_name(name));
                return Err(SqlError::new(SqlState(*b"42809"), message));
            }
            Ok(Commented::Relation(name.clone()))
        }
        CommentedObject::Column(relation, column) => {
            let known = match catalog.types.get(relation) {
                Some(known) => Some(known.fields.clone()),
                None => catalog.columns_of(relation),
            };
            let Some(columns) = known else {
                let message = format!("relation \"{}\" does not exist", as_given(relation));
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            };
            match columns.iter().any(|known| known.name == *column) {
                true => Ok(Commented::Column(relation.clone(), column.clone())),
                false => Err(no_column(relation, column)),
            }
        }
        CommentedObject::Routine(kind, routine) => commented_routine(catalog, kind, routine),
        CommentedObject::Type(name) if catalog.types.contains_key(name) => Ok(Commented::Type(name.clone())),
        CommentedObject::Type(name) => {
            let message = format!("type \"{}\" does not exist", as_given(name));
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
        CommentedObject::Schema(name) => {
            catalog.check_schema(name)?;
            Ok(Commented::Schema(name.clone()))
        }
        CommentedObject::Constraint(table, name) => {
            let found = find_table(catalog, table)?;
            if constraint_exists(catalog, &found, name) {
                return Ok(Commented::Constraint(table.clone(), name.clone()));
            }
            let message =
                format!("constraint \"{name}\" for table \"{}\" does not exist", found.object_name());
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
        CommentedObject::Trigger(table, name) => {
            if catalog.views.get(table).is_some_and(|view| view.triggers.contains_key(name)) {
                return Ok(Commented::Trigger(table.clone(), name.clone()));
            }
            let found = find_table(catalog, table)?;
            if catalog.triggers_of(found.id).any(|known| known.name == *name) {
                return Ok(Commented::Trigger(table.clone(), name.clone()));
            }
            let message = format!("trigger \"{name}\" for table \"{}\" does not exist", found.object_name());
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

fn commented_routine(catalog: &Catalog, kind: &str, routine: &NamedRoutine) -> Result<Commented, SqlError> {
    let known = catalog.procedures.get(&routine.name);
    let is_it = match kind {
        "function" => known.is_some_and(|known| known.function.is_some()),
        "procedure" => known.is_some_and(|known| known.function.is_none()),
        "aggregate" => catalog.aggregates.contains_key(&routine.name),
        _ => known.is_some(),
    };
    if is_it {
        return Ok(Commented::Routine(routine.name.clone()));
    }
    let message = match &routine.types {
        None => format!("could not find a {kind} named \"{}\"", as_given(&routine.name)),
        Some(types) => {
            let types: Vec<String> = types.iter().map(|one| one.to_string().to_ascii_lowercase()).collect();
            format!("{kind} {}({}) does not exist", as_given(&routine.name), types.join(", "))
        }
    };
    Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
}

/// COMMENT ON.
///
/// # Errors
/// What it is about is not there; a text that is too long.
pub(super) fn comment_on(catalog: &mut Catalog, comment: &CommentOn) -> Result<(), SqlError> {
    let about = commented(catalog, &comment.object)?;
    match &comment.text {
        None => drop(catalog.comments.remove(&about)),
        Some(text) if text.len() > limits::COMMENT_BYTES_MAX => {
            let most = limits::COMMENT_BYTES_MAX;
            let message = format!("a comment has at most {most} bytes (COMMENT_BYTES_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Some(text) => drop(catalog.comments.insert(about, text.clone())),
    }
    Ok(())
}

/// Gives comments to what has another name now.
pub(super) fn rename_comments(catalog: &mut Catalog, renamed: &dyn Fn(Commented) -> Commented) {
    let comments = std::mem::take(&mut catalog.comments);
    catalog.comments = comments.into_iter().map(|(about, text)| (renamed(about), text)).collect();
}

/// Forgets what was said of objects that are gone.
pub(super) fn forget_dropped(catalog: &mut Catalog) {
    if catalog.comments.is_empty() {
        return;
    }
    let comments = std::mem::take(&mut catalog.comments);
    let known = &*catalog;
    let is_there = |about: &Commented| match about {
        Commented::Relation(name) => relation_exists(known, name),
        Commented::Column(relation, column) => {
            let fields = known.types.get(relation).map(|one| one.fields.clone());
            let columns = fields.or_else(|| known.columns_of(relation));
            columns.is_some_and(|columns| columns.iter().any(|one| one.name == *column))
        }
        Commented::Routine(name) => {
            known.procedures.contains_key(name) || known.aggregates.contains_key(name)
        }
        Commented::Type(name) => known.types.contains_key(name),
        Commented::Schema(name) => known.has_schema(name),
        Commented::Constraint(table, name) => {
            known.tables.get(table).is_some_and(|table| constraint_exists(known, table, name))
        }
        Commented::Trigger(owner, name) => {
            let of_table = |table: &Arc<Table>| known.triggers_of(table.id).any(|one| one.name == *name);
            known.tables.get(owner).is_some_and(of_table)
                || known.views.get(owner).is_some_and(|view| view.triggers.contains_key(name))
        }
    };
    let kept = comments.into_iter().filter(|(about, _)| is_there(about)).collect();
    catalog.comments = kept;
}
