//! CREATE DOMAIN and ALTER DOMAIN: what a domain is, and whether the values that are there keep what is asked of it.

use crate::ddl::any_type::rename_type;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::generated_name;
use crate::ddl::rows::Rows;
use plan::domains::{bind_domain_check, check_limits};
use plan::expression::{Environment, Expression, bind_type_or_domain};
use plan::routines::Routines;
use std::sync::Arc;
use syntax::parse::domain::{CreateDomain, DomainChange};
use types::{
    Catalog, Check, Column, CompositeType, CompositeTypes, DataType, Domain, ExecutionVersion, SqlError,
    SqlState, Table, TypeKind, as_given, catalog_name, object_name, schema_of,
};

/// CREATE DOMAIN.
///
/// # Errors
/// A type that is not there, or that no domain can be of.
pub(super) fn bind_create_domain(types: &CompositeTypes, create: &CreateDomain) -> Result<Domain, SqlError> {
    let base = bind_type_or_domain(types, &create.data_type)?;
    let single = base.element().unwrap_or(base);
    let is_row = matches!(base, DataType::Composite(_)) && types.rules() >= ExecutionVersion::V9;
    if single.is_composite() && !is_row || base == DataType::RefCursor {
        let what = format_args!("a domain of type {}", types.name_of(base));
        return Err(SqlError::unsupported(what).hint("Use the type itself, with a CHECK on each column."));
    }
    let mut domain = Domain {
        base,
        not_null: create.not_null == Some(true),
        default: create.default.clone(),
        checks: Vec::new(),
    };
    for (name, condition) in &create.checks {
        add_check(&mut domain, object_name(&create.name), name.as_deref(), condition)?;
    }
    Ok(domain)
}

fn add_check(domain: &mut Domain, of: &str, name: Option<&str>, condition: &str) -> Result<String, SqlError> {
    let is_taken = |name: &str| domain.checks.iter().any(|check| check.name == name);
    let name = match name {
        Some(name) if is_taken(name) => {
            let message = format!("constraint \"{name}\" for domain \"{of}\" already exists");
            return Err(SqlError::new(SqlState(*b"42710"), message));
        }
        Some(name) => name.to_string(),
        None => {
            let first = generated_name(of, "", "check");
            let numbered = (1..).map(|number| generated_name(of, "", &format!("check{number}")));
            let mut names = std::iter::once(first).chain(numbered);
            names.find(|name| !is_taken(name)).unwrap_or_default()
        }
    };
    domain.checks.push(Check { name: name.clone(), condition: condition.to_string(), valid: true });
    domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(name)
}

/// Binds what a domain that is made or altered has: what is wrong in it is said now.
///
/// # Errors
/// The first that is wrong.
pub(super) fn check_domain(routines: &Routines, domain: &Domain) -> Result<(), SqlError> {
    let base = routines.types().base_of(domain.base);
    for check in &domain.checks {
        bind_domain_check(base, &check.condition, routines)?;
    }
    match &domain.default {
        Some(default) => plan::bind_tables::bind_default(default, "value", base, routines).map(drop),
        None => Ok(()),
    }
}

fn find_domain(catalog: &Catalog, name: &str) -> Result<(Arc<CompositeType>, Domain), SqlError> {
    let known = catalog.types.get(name).cloned();
    let is_there = known.is_some() || catalog.row_types.contains_key(name);
    match known.and_then(|known| known.as_domain().cloned().map(|domain| (known, domain))) {
        Some(found) => Ok(found),
        None if is_there => {
            let message = format!("{} is not a domain", object_name(name));
            Err(SqlError::new(SqlState(*b"42809"), message))
        }
        None => {
            let message = format!("type \"{}\" does not exist", as_given(name));
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

/// Refuses names of types in DROP DOMAIN that are no domains.
///
/// # Errors
/// `42809`
pub(super) fn refuse_other_types(catalog: &Catalog, names: &[String]) -> Result<(), SqlError> {
    let is_there = |name: &String| catalog.types.contains_key(name) || catalog.row_types.contains_key(name);
    names.iter().filter(|name| is_there(name)).try_for_each(|name| find_domain(catalog, name).map(drop))
}

/// ALTER DOMAIN.
///
/// # Errors
/// What is not there; values that do not keep what is asked of them now.
pub(super) fn alter_domain(
    catalog: &mut NewCatalog,
    name: &str,
    change: &DomainChange,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let (known, mut domain) = find_domain(catalog, name)?;
    let of = object_name(name).to_string();
    let missing = |constraint: &str| {
        let message = format!("constraint \"{constraint}\" of domain \"{of}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    };
    let position =
        |domain: &Domain, wanted: &str| domain.checks.iter().position(|check| check.name == wanted);
    let mut look_at = None;
    match change {
        DomainChange::Default(default) => domain.default.clone_from(default),
        DomainChange::NotNull(not_null) => {
            domain.not_null = *not_null;
            look_at = (*not_null).then_some(Look::AtNulls);
        }
        DomainChange::AddCheck(constraint, condition, validates) => {
            let added = add_check(&mut domain, &of, constraint.as_deref(), condition)?;
            look_at = validates.then_some(Look::AtCheck(added));
        }
        DomainChange::DropCheck(constraint, if_exists) => match position(&domain, constraint) {
            Some(at) => drop(domain.checks.remove(at)),
            None if *if_exists => return Ok(()),
            None => return Err(missing(constraint)),
        },
        DomainChange::Validate(constraint) => {
            position(&domain, constraint).ok_or_else(|| missing(constraint))?;
            look_at = Some(Look::AtCheck(constraint.clone()));
        }
        DomainChange::RenameCheck(from, to) => {
            let at = position(&domain, from).ok_or_else(|| missing(from))?;
            let renamed = domain.checks.remove(at);
            add_check(&mut domain, &of, Some(to), &renamed.condition)?;
        }
        DomainChange::Rename(to) => return rename_type(catalog, name, &catalog_name(schema_of(name), to)),
        DomainChange::SetSchema(schema) => return rename_type(catalog, name, &catalog_name(schema, &of)),
    }
    check_domain(&catalog.routines(), &domain)?;
    if let Some(look) = look_at {
        look_at_values(catalog, &known, &domain, &look, rows)?;
    }
    let changed = CompositeType { kind: TypeKind::Domain(domain), ..CompositeType::clone(&known) };
    catalog.types.insert(name.to_string(), Arc::new(changed));
    check_limits(catalog, catalog.rules)?;
    // Tables bind with it.
    catalog.bound().map(drop)
}

/// What values that are there are held against.
enum Look {
    AtNulls,
    AtCheck(String),
}

fn look_at_values(
    catalog: &NewCatalog,
    known: &CompositeType,
    domain: &Domain,
    look: &Look,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let routines = catalog.routines();
    let base = routines.types().base_of(domain.base);
    let condition: Option<Expression> = match look {
        Look::AtNulls => None,
        Look::AtCheck(name) => {
            let check = domain.checks.iter().find(|check| check.name == *name);
            check.map(|check| bind_domain_check(base, &check.condition, &routines)).transpose()?
        }
    };
    // A column may be of a domain that is of this one.
    let is_of = |data_type: DataType| is_of(routines.types(), data_type, known.data_type());
    for table in catalog.tables.values() {
        refuse_in_rows(catalog, routines.types(), table, known, &is_of)?;
        let columns = table.columns.iter().enumerate().filter(|(_, column)| is_of(column.data_type));
        for (ordinal, column) in columns {
            rows.visit(table.id, &mut |_, _, row| {
                let value = std::slice::from_ref(&row[ordinal]);
                let (state, what) = match &condition {
                    None if value[0].is_null() => (SqlState::NOT_NULL_VIOLATION, "contains null values"),
                    None => return Ok(()),
                    Some(condition) => match condition.truth(&Environment::new(&[], value, 0))? {
                        Some(false) => {
                            (SqlState::CHECK_VIOLATION, "contains values that violate the new constraint")
                        }
                        _ => return Ok(()),
                    },
                };
                let (column, table) = (&column.name, table.object_name());
                let message = format!("column \"{column}\" of table \"{table}\" {what}");
                Err(SqlError::new(state, message))
            })?;
        }
    }
    Ok(())
}

/// Refuses a new condition of a domain that stands in rows which a column holds, as PostgreSQL does.
fn refuse_in_rows(
    catalog: &NewCatalog,
    types: &CompositeTypes,
    table: &Table,
    known: &CompositeType,
    is_of: &dyn Fn(DataType) -> bool,
) -> Result<(), SqlError> {
    let holds = |column: &&Column| types.has_domains_inside(column.data_type, is_of);
    match table.columns.iter().find(holds).filter(|_| catalog.rules >= ExecutionVersion::V8) {
        None => Ok(()),
        Some(column) => {
            let (domain, table, column) = (object_name(&known.name), table.object_name(), &column.name);
            let message =
                format!("cannot alter type \"{domain}\" because column \"{table}.{column}\" uses it");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

/// Whether a type is this domain, or a domain that is of it.
fn is_of(types: &CompositeTypes, data_type: DataType, domain: DataType) -> bool {
    let mut next = data_type;
    while let DataType::Domain(id) = next {
        if next == domain {
            return true;
        }
        match types.get(id).and_then(|known| known.as_domain()) {
            Some(above) => next = above.base,
            None => return false,
        }
    }
    false
}
