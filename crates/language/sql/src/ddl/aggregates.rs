//! CREATE and DROP of aggregates.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::views::{depends, drop_dependents};
use plan::aggregate::{AggregateFunction, OrderedSet};
use plan::expression::{Binder, Source, bind_data_type};
use plan::scope::VariableScope;
use sqlparser::ast::{self, ObjectName};
use std::sync::Arc;
use syntax::names::table_name;
use syntax::parse::aggregate::{CreateAggregate, DropAggregate};
use types::{Catalog, CompositeTypes, DataType, SqlError, SqlState, UserAggregate, limits};

/// `wrong_object_type`
const WRONG_OBJECT: SqlState = SqlState(*b"42809");
/// Arguments of an aggregate, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 99;

/// DROP AGGREGATE.
#[derive(Clone, Debug)]
pub(crate) struct AggregateDrop {
    pub(super) if_exists: bool,
    cascade: bool,
    pub(super) names: Vec<(String, Vec<Option<DataType>>)>,
}

/// The type of an argument; `None` for `"any"`.
fn bind_argument(types: &CompositeTypes, data_type: &ast::DataType) -> Result<Option<DataType>, SqlError> {
    match data_type {
        ast::DataType::Custom(name, modifiers)
            if modifiers.is_empty() && name.to_string().trim_matches('"').eq_ignore_ascii_case("any") =>
        {
            Ok(None)
        }
        other => bind_data_type(types, other).map(|data_type| Some(data_type.family())),
    }
}

/// The name of a function, with or without its schema.
fn function_name(name: &ObjectName) -> Result<String, SqlError> {
    match name.0.as_slice() {
        [schema, name] if schema.to_string().eq_ignore_ascii_case("pg_catalog") => {
            table_name(&ObjectName(vec![name.clone()]))
        }
        _ => table_name(name),
    }
}

/// What CREATE AGGREGATE makes.
///
/// # Errors
/// Names and types that cannot be.
pub(crate) fn bind_create_aggregate(
    types: &CompositeTypes,
    create: &CreateAggregate,
) -> Result<UserAggregate, SqlError> {
    let name = table_name(&create.name)?;
    if AggregateFunction::named(&name, types.rules()).is_some() || OrderedSet::named(&name).is_some() {
        let error =
            SqlError::unsupported(format_args!("an aggregate of the name of the system's \"{name}\""));
        return Err(error.hint("Choose another name."));
    }
    if create.arguments.len() > ARGUMENTS_MAX {
        let message = format!("aggregates cannot have more than {ARGUMENTS_MAX} arguments");
        return Err(SqlError::new(SqlState(*b"54023"), message));
    }
    let is_internal = matches!(&create.state, ast::DataType::Custom(name, _)
        if name.to_string().eq_ignore_ascii_case("internal"));
    if is_internal {
        let error = SqlError::unsupported("an aggregate whose state is of type internal");
        return Err(error.hint("Use a type that values have."));
    }
    let state = bind_data_type(types, &create.state)?.family();
    Ok(UserAggregate {
        name,
        arguments: create.arguments.iter().map(|one| bind_argument(types, one)).collect::<Result<_, _>>()?,
        transition: function_name(&create.transition)?,
        state,
        initial: create.initial.clone(),
        result: create.result.as_ref().map(function_name).transpose()?,
        result_takes_arguments: create.result_takes_arguments,
        // Known when it is created, with the functions that there are then.
        data_type: state,
    })
}

/// Adds an aggregate to the catalog.
///
/// # Errors
/// A routine of its name that it cannot replace; functions that do not fit.
pub(crate) fn create_aggregate(
    catalog: &mut NewCatalog,
    or_replace: bool,
    draft: &UserAggregate,
) -> Result<(), SqlError> {
    let name = &draft.name;
    let known = catalog.aggregates.get(name).cloned();
    let types_of_function = catalog.overloads(name).next().map(|(_, procedure)| {
        procedure.inputs().map(|parameter| Some(parameter.data_type)).collect::<Vec<Option<DataType>>>()
    });
    let known_types = types_of_function.as_ref().or(known.as_ref().map(|known| &known.arguments));
    if let Some(known_types) = known_types {
        if *known_types != draft.arguments {
            let error =
                SqlError::unsupported(format_args!("a second function \"{name}\" with other parameters"));
            return Err(error.hint("Drop the first one, or choose another name."));
        }
        if !or_replace {
            let message = format!("function \"{name}\" already exists with same argument types");
            return Err(SqlError::new(SqlState::DUPLICATE_FUNCTION, message));
        }
    } else if catalog.procedures.len() + catalog.aggregates.len() >= limits::PROCEDURES_MAX {
        let message = format!("a ledger has at most {} procedures (PROCEDURES_MAX)", limits::PROCEDURES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if let Some((_, procedure)) = catalog.overloads(name).next() {
        let kind = if procedure.function.is_some() { "function" } else { "procedure" };
        let error = SqlError::new(WRONG_OBJECT, "cannot change routine kind");
        return Err(error.detail(format!("\"{name}\" is a {kind}.")));
    }
    let routines = catalog.routines();
    let scope = VariableScope::for_procedure(None).with_routines(&routines);
    let functions = Binder::new(&scope, Source::Default).user_functions(draft)?;
    let aggregate = UserAggregate { data_type: functions.result.data_type().family(), ..draft.clone() };
    if known.is_some_and(|known| known.data_type != aggregate.data_type) {
        let error = SqlError::new(SqlState(*b"42P13"), "cannot change return type of existing function");
        return Err(error.hint(format!("Use DROP AGGREGATE {} first.", signature(&aggregate))));
    }
    catalog.aggregates.insert(name.clone(), Arc::new(aggregate));
    Ok(())
}

fn shown_types(types: &[Option<DataType>]) -> String {
    match types {
        [] => "*".to_string(),
        types => {
            let shown =
                types.iter().map(|known| known.map_or("\"any\"".to_string(), |known| known.to_string()));
            shown.collect::<Vec<String>>().join(",")
        }
    }
}

fn signature(aggregate: &UserAggregate) -> String {
    format!("{}({})", aggregate.name, shown_types(&aggregate.arguments))
}

/// Takes out the aggregates whose functions include this one, or refuses to.
///
/// # Errors
/// `2BP01` where there are some and they are to stay.
pub(super) fn drop_aggregates_of(
    catalog: &mut Catalog,
    function: &str,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    let uses = |aggregate: &Arc<UserAggregate>| {
        aggregate.transition == function || aggregate.result.as_deref() == Some(function)
    };
    let found: Vec<Arc<UserAggregate>> =
        catalog.aggregates.values().filter(|aggregate| uses(aggregate)).cloned().collect();
    for aggregate in found {
        if !cascade {
            return Err(depends(what, &format!("function {}", signature(&aggregate)), what));
        }
        drop_aggregate(catalog, &aggregate, true)?;
    }
    Ok(())
}

/// Takes an aggregate out of the catalog, if it is there.
///
/// # Errors
/// `2BP01` for what others need, without CASCADE.
pub(super) fn remove_aggregate(catalog: &mut Catalog, name: &str, cascade: bool) -> Result<(), SqlError> {
    match catalog.aggregates.get(name).cloned() {
        Some(known) => drop_aggregate(catalog, &known, cascade),
        None => Ok(()),
    }
}

fn drop_aggregate(catalog: &mut Catalog, aggregate: &UserAggregate, cascade: bool) -> Result<(), SqlError> {
    let what = format!("function {}", signature(aggregate));
    drop_dependents(catalog, &what, cascade, &[], &|view| view.functions.contains(&aggregate.name))?;
    catalog.aggregates.remove(&aggregate.name);
    Ok(())
}

impl AggregateDrop {
    /// Binds the names and types.
    ///
    /// # Errors
    /// Names and types that cannot be.
    pub fn bind(known: &CompositeTypes, drop: &DropAggregate) -> Result<AggregateDrop, SqlError> {
        let bind = |(name, types): &(ObjectName, Vec<ast::DataType>)| {
            let types =
                types.iter().map(|one| bind_argument(known, one)).collect::<Result<Vec<_>, SqlError>>()?;
            Ok((table_name(name)?, types))
        };
        let names = drop.names.iter().map(bind).collect::<Result<_, SqlError>>()?;
        Ok(AggregateDrop { if_exists: drop.if_exists, cascade: drop.cascade, names })
    }

    /// Takes them out of the catalog.
    ///
    /// # Errors
    /// `42883` for one that is not there, `42809` for a function, `2BP01` for what others need.
    pub fn apply(&self, catalog: &mut Catalog) -> Result<(), SqlError> {
        for (name, types) in &self.names {
            let known = catalog.aggregates.get(name).filter(|known| known.arguments == *types).cloned();
            if let Some(known) = known {
                drop_aggregate(catalog, &known, self.cascade)?;
                continue;
            }
            let is_routine = catalog.overloads(name).any(|(_, procedure)| {
                procedure.inputs().map(|parameter| Some(parameter.data_type)).eq(types.iter().copied())
            });
            if is_routine {
                let message = format!("function {name}({}) is not an aggregate", shown_types(types));
                return Err(SqlError::new(WRONG_OBJECT, message));
            }
            if !self.if_exists {
                let message =
                    format!("aggregate {}({}) does not exist", types::as_given(name), shown_types(types));
                return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
            }
        }
        Ok(())
    }
}
