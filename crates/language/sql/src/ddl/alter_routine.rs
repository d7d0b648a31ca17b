//! ALTER FUNCTION, ALTER PROCEDURE and ALTER ROUTINE: another name, another schema, other options.

use crate::ddl::endorsement::bind_policy;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use crate::ddl::routines::create_routine;
use crate::ddl::schemas::move_objects;
use std::sync::Arc;
use syntax::parse::alter_routine::{AlterRoutine, RoutineChange};
use syntax::parse::routine::RoutineOptions;
use types::{Procedure, SqlError, SqlState, as_given, catalog_name, object_name, schema_of};

/// Changes a procedure or function whose name is that of the catalog. Gives the command's tag.
///
/// # Errors
/// `42883` for one that is not there, `42809` for one of the other kind, `42723` where the name is taken; what a change of its options is
/// refused with.
pub(super) fn alter_routine(
    catalog: &mut NewCatalog,
    alter: &AlterRoutine,
) -> Result<&'static str, SqlError> {
    let key = &alter.routine.name;
    if catalog.aggregates.contains_key(key) {
        return Err(
            SqlError::unsupported("ALTER FUNCTION of an aggregate").hint("Drop it and create it again.")
        );
    }
    let Some(known) = catalog.procedures.get(key).cloned() else {
        let message = format!("could not find a routine named \"{}\"", as_given(key));
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
    };
    if alter.is_function.is_some_and(|is_function| is_function != known.function.is_some()) {
        let kind = if known.function.is_some() { "procedure" } else { "function" };
        let message = format!("{} is not a {kind}", as_given(key));
        return Err(SqlError::new(SqlState(*b"42809"), message));
    }
    match &alter.change {
        RoutineChange::Rename(name) => rename(catalog, &known, &catalog_name(schema_of(&known.name), name))?,
        RoutineChange::SetSchema(schema) => {
            catalog.check_schema(schema)?;
            rename(catalog, &known, &catalog_name(schema, object_name(&known.name)))?;
        }
        RoutineChange::Options(options) => change_options(catalog, &known, options)?,
    }
    Ok(match alter.is_function {
        Some(true) => "ALTER FUNCTION",
        Some(false) => "ALTER PROCEDURE",
        None => "ALTER ROUTINE",
    })
}

/// Views, defaults, CHECKs, indexes, policies, triggers and privileges follow; bodies do not, as in PostgreSQL.
fn rename(catalog: &mut NewCatalog, known: &Procedure, to: &str) -> Result<(), SqlError> {
    let from = known.name.as_str();
    if to == from {
        return Ok(());
    }
    // What follows goes by names alone.
    let shares = catalog.overloads(from).count() > 1
        || relation_exists(catalog, from)
        || catalog.types.contains_key(from)
        || catalog.aggregates.contains_key(from);
    if shares {
        let what = format_args!("another name for {from}, which is the name of something else as well");
        return Err(SqlError::unsupported(what).hint("Create it under the other name, and drop this one."));
    }
    let is_taken = catalog.overloads(to).any(|(_, other)| other.input_types() == known.input_types());
    if !is_taken && (catalog.has_routine(to) || catalog.aggregates.contains_key(to)) {
        let what = format_args!("the name {}, which another routine has,", as_given(to));
        return Err(SqlError::unsupported(what).hint("Create it under that name, and drop this one."));
    }
    if is_taken {
        let (name, schema) = (object_name(to), schema_of(to));
        let message = format!("function {name} already exists in schema \"{schema}\"");
        return Err(SqlError::new(SqlState::DUPLICATE_FUNCTION, message));
    }
    let moved = Procedure { name: to.to_string(), ..known.clone() };
    // What names it in the catalog does so by its key, texts by its name.
    let (from_key, to_key) = (known.key(), moved.key());
    move_objects(catalog, &|name| match name {
        name if name == from => Some(to.to_string()),
        name if name == from_key => Some(to_key.clone()),
        _ => None,
    })
}

/// As CREATE OR REPLACE with these options would.
fn change_options(
    catalog: &mut NewCatalog,
    known: &Arc<Procedure>,
    options: &RoutineOptions,
) -> Result<(), SqlError> {
    let mut changed = Procedure::clone(known);
    match &mut changed.function {
        Some(function) => {
            function.volatility = options.volatility.unwrap_or(function.volatility);
            function.is_strict = options.is_strict.unwrap_or(function.is_strict);
        }
        None if options.volatility.is_some() || options.is_strict.is_some() => {
            return Err(SqlError::new(SqlState(*b"42P13"), "invalid attribute in procedure definition"));
        }
        None => {}
    }
    changed.security_definer = options.security_definer.unwrap_or(changed.security_definer);
    if let Some(path) = &options.search_path {
        changed.search_path = path.clone();
    }
    if let Some(policy) = &options.endorsement {
        changed.endorsement = bind_policy(policy)?;
    }
    create_routine(catalog, true, false, &changed).map(|_| ())
}
