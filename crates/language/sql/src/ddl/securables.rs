//! What privileges are granted on.

use crate::ddl::any_type::find_type;
use crate::ddl::domains::refuse_other_types;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use syntax::parse::grant::Objects;
use types::{
    Catalog, ExecutionVersion, Privileges, Securable, SqlError, SqlState, as_given, object_name, schema_of,
};

/// All privileges that there are on tables and views.
fn of_tables(rules: ExecutionVersion) -> Privileges {
    match rules >= ExecutionVersion::V10 {
        true => Privileges::OF_TABLES,
        false => Privileges::OF_TABLES_BEFORE_V10,
    }
}

/// A table or routine as errors call it.
pub(super) fn described(catalog: &Catalog, object: &Securable) -> String {
    match object {
        Securable::Schema(name) => format!("schema {name}"),
        Securable::Column(relation, column) => {
            format!("column {column} of {}", described(catalog, &Securable::Relation(relation.clone())))
        }
        Securable::Relation(name) if catalog.views.contains_key(name) => format!("view {name}"),
        Securable::Relation(name) if catalog.sequences.contains_key(name) => format!("sequence {name}"),
        Securable::Relation(name) => format!("table {name}"),
        Securable::Routine(name) => match catalog.procedures.get(name) {
            Some(routine) if routine.function.is_some() => format!("function {name}"),
            None if catalog.aggregates.contains_key(name) => format!("function {name}"),
            _ => format!("procedure {name}"),
        },
    }
}

/// All privileges that there are on something.
pub(super) fn all_privileges(catalog: &NewCatalog, object: &Securable) -> Privileges {
    match object {
        Securable::Relation(name) if catalog.sequences.contains_key(name) => Privileges::OF_SEQUENCES,
        Securable::Relation(_) => of_tables(catalog.rules),
        Securable::Column(..) => Privileges::OF_COLUMNS,
        Securable::Routine(_) => Privileges::OF_ROUTINES,
        Securable::Schema(_) => Privileges::OF_SCHEMAS,
    }
}

/// Whether there is such a type. On types there are no privileges.
fn check_type(catalog: &Catalog, is_domain: bool, name: &String) -> Result<(), SqlError> {
    if is_domain {
        refuse_other_types(catalog, std::slice::from_ref(name))?;
    }
    find_type(catalog, name).map(drop)
}

/// What is meant, and all privileges that there are on it.
pub(super) fn securables(
    catalog: &NewCatalog,
    objects: &Objects,
) -> Result<(Vec<Securable>, Privileges), SqlError> {
    let table = |name: &String| match catalog.tables.contains_key(name) || catalog.views.contains_key(name) {
        true => Ok(Securable::Relation(name.clone())),
        false => {
            let message = format!("relation \"{}\" does not exist", as_given(name));
            Err(SqlError::new(SqlState::UNDEFINED_TABLE, message))
        }
    };
    let routine = |name: &String| match catalog.has_routine(name) {
        true => Ok(Securable::Routine(name.clone())),
        false => {
            let message = format!("could not find a function named \"{}\"", as_given(name));
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    };
    Ok(match objects {
        Objects::Tables(names) => {
            (names.iter().map(table).collect::<Result<_, SqlError>>()?, of_tables(catalog.rules))
        }
        Objects::Relations(names) => {
            let relation = |name: &String| match catalog.sequences.contains_key(name) {
                true => Ok(Securable::Relation(name.clone())),
                false => table(name),
            };
            (names.iter().map(relation).collect::<Result<_, SqlError>>()?, of_tables(catalog.rules))
        }
        Objects::Sequences(names) => {
            let sequence = |name: &String| match catalog.sequences.contains_key(name) {
                true => Ok(Securable::Relation(name.clone())),
                false if relation_exists(catalog, name) => {
                    let message = format!("\"{}\" is not a sequence", object_name(name));
                    Err(SqlError::new(SqlState(*b"42809"), message))
                }
                false => table(name),
            };
            (names.iter().map(sequence).collect::<Result<_, SqlError>>()?, Privileges::OF_SEQUENCES)
        }
        Objects::AllSequences(schemas) => {
            let all = catalog.sequences.keys();
            let all = all.filter(|name| schemas.iter().any(|schema| schema == schema_of(name)));
            (all.map(|name| Securable::Relation(name.clone())).collect(), Privileges::OF_SEQUENCES)
        }
        Objects::AllTables(schemas) => {
            let all = catalog.tables.keys().chain(catalog.views.keys());
            let all = all.filter(|name| schemas.iter().any(|schema| schema == schema_of(name)));
            (all.map(|name| Securable::Relation(name.clone())).collect(), of_tables(catalog.rules))
        }
        Objects::Type(is_domain, name) => {
            check_type(catalog, *is_domain, name)?;
            (Vec::new(), Privileges::NONE)
        }
        Objects::Schemas(names) => {
            (names.iter().map(|name| Securable::Schema(name.clone())).collect(), Privileges::OF_SCHEMAS)
        }
        Objects::Routines(names) => (
            names.iter().map(|one| routine(&one.name)).collect::<Result<_, SqlError>>()?,
            Privileges::OF_ROUTINES,
        ),
        Objects::AllRoutines(schemas) => {
            let all = catalog.procedures.keys().chain(catalog.aggregates.keys());
            let all = all.filter(|name| schemas.iter().any(|schema| schema == schema_of(name)));
            (all.map(|name| Securable::Routine(name.clone())).collect(), Privileges::OF_ROUTINES)
        }
    })
}
