//! CREATE TYPE and DROP TYPE, and what depends on types: also on those of the rows of relations.

use crate::ddl::domains::check_domain;
use crate::ddl::enums::{check_labels, first_values};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use crate::ddl::unreadable::unreadable;
use crate::ddl::views::{depends, drop_dependents};
use plan::expression::bind_data_type;
use sqlparser::ast::{
    ObjectName, UserDefinedTypeCompositeAttributeDef, UserDefinedTypeRepresentation as Representation,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use types::{
    Catalog, CompositeType, CompositeTypes, DataType, Domain, ExecutionVersion, FunctionResult, OutputColumn,
    Procedure, SqlError, SqlState, TypeId, TypeKind, limits, object_name,
};

/// A type as a statement describes it; its number is given when it is made.
#[derive(Clone, Debug)]
pub(crate) struct TypeDraft {
    pub(super) name: String,
    fields: Vec<OutputColumn>,
    /// The labels of an enum.
    labels: Option<Vec<String>>,
    /// What a domain is.
    domain: Option<Domain>,
}

impl TypeDraft {
    /// The expressions that it has as texts.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        self.domain.iter_mut().flat_map(|domain| {
            domain.checks.iter_mut().map(|check| &mut check.condition).chain(&mut domain.default)
        })
    }

    /// Whether it is a domain.
    pub(super) fn is_domain(&self) -> bool {
        self.domain.is_some()
    }

    /// A domain.
    pub(super) fn of_domain(name: &str, domain: Domain) -> TypeDraft {
        TypeDraft { name: name.to_string(), fields: Vec::new(), labels: None, domain: Some(domain) }
    }
}

/// CREATE TYPE.
///
/// # Errors
/// What is wrong with it; `0A000` names what is not supported.
pub(super) fn bind_create_type(
    types: &CompositeTypes,
    name: &ObjectName,
    representation: Option<&Representation>,
) -> Result<TypeDraft, SqlError> {
    let attributes = match representation {
        Some(Representation::Composite { attributes }) => attributes,
        Some(Representation::Enum { labels }) if types.rules() >= ExecutionVersion::V7 => {
            let labels: Vec<String> = labels.iter().map(|label| label.value.clone()).collect();
            check_labels(&labels)?;
            return Ok(TypeDraft {
                name: table_name(name)?,
                fields: Vec::new(),
                labels: Some(labels),
                domain: None,
            });
        }
        Some(Representation::Enum { .. }) => {
            return Err(SqlError::unsupported("CREATE TYPE … AS ENUM").hint("Use text with a CHECK."));
        }
        Some(Representation::Range { .. }) => {
            return Err(SqlError::unsupported("CREATE TYPE … AS RANGE").hint("Use two columns."));
        }
        Some(Representation::SqlDefinition { .. }) | None => {
            return Err(SqlError::unsupported("CREATE TYPE of a base type"));
        }
    };
    let name = table_name(name)?;
    if attributes.len() > limits::COLUMNS_MAX {
        let message = format!("a type can have at most {} attributes (COLUMNS_MAX)", limits::COLUMNS_MAX);
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    let mut fields: Vec<OutputColumn> = Vec::with_capacity(attributes.len());
    for UserDefinedTypeCompositeAttributeDef { name: field, data_type, collation } in attributes {
        if collation.is_some() {
            return Err(SqlError::unsupported("COLLATE of an attribute").hint("Text compares by bytes."));
        }
        let field = name_of(field)?;
        if fields.iter().any(|known| known.name == field) {
            let message = format!("column \"{field}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let data_type = bind_data_type(types, data_type)?;
        fields.push(OutputColumn { name: field, data_type });
    }
    Ok(TypeDraft { name, fields, labels: None, domain: None })
}

/// Adds a type to the catalog.
///
/// # Errors
/// A name that is taken; fields that cannot be.
pub(super) fn create_type(catalog: &mut NewCatalog, draft: &TypeDraft) -> Result<(), SqlError> {
    let name = &draft.name;
    if catalog.types.contains_key(name) || catalog.row_types.contains_key(name) {
        let message = format!("type \"{}\" already exists", object_name(name));
        return Err(SqlError::new(SqlState(*b"42710"), message));
    }
    if relation_exists(catalog, name) {
        let message = format!("relation \"{}\" already exists", object_name(name));
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    if catalog.types.len() >= limits::TYPES_MAX {
        let message = format!("a ledger has at most {} composite types (TYPES_MAX)", limits::TYPES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let id = take_number(catalog)?;
    let kind = draft.labels.as_ref().map(|labels| TypeKind::Enum(first_values(id, labels)));
    let kind = match &draft.domain {
        Some(domain) => {
            check_domain(&catalog.routines(), domain)?;
            Some(TypeKind::Domain(domain.clone()))
        }
        None => kind,
    };
    let (fields, kind) = (draft.fields.clone(), kind.unwrap_or_default());
    let made = CompositeType { id, name: name.clone(), fields, kind };
    catalog.types.insert(name.clone(), Arc::new(made));
    if draft.is_domain() { plan::domains::check_limits(catalog, catalog.rules) } else { Ok(()) }
}

/// What kind of relation this is whose rows have a type.
fn kind_of(catalog: &Catalog, name: &str) -> &'static str {
    match catalog.views.contains_key(name) {
        true => "view",
        false if catalog.materialized_view(name).is_some() => "materialized view",
        false => "table",
    }
}

/// DROP TYPE. What uses them is looked for by [`settle`].
///
/// # Errors
/// One that is not there, or is the type of a relation's rows.
pub(super) fn drop_types(
    catalog: &mut NewCatalog,
    if_exists: bool,
    cascade: bool,
    names: &[String],
) -> Result<(), SqlError> {
    let before = match catalog.rules >= ExecutionVersion::V8 {
        true => unreadable(catalog)?,
        false => BTreeSet::new(),
    };
    for name in names {
        if catalog.types.remove(name).is_some() {
            continue;
        }
        if catalog.row_types.contains_key(name) {
            let kind = kind_of(catalog, name);
            let message = format!("cannot drop type {name} because {kind} {name} requires it");
            return Err(SqlError::new(SqlState(*b"2BP01"), message)
                .hint(format!("You can drop {kind} {name} instead.")));
        }
        if !if_exists {
            let message = format!("type \"{}\" does not exist", types::as_given(name));
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
    }
    let what = format!("type {}", names.join(", "));
    remove_users(catalog, &what, cascade)?;
    // A view, a default or a CHECK may cast to a type without having a column of it.
    let looks_further = catalog.rules >= ExecutionVersion::V8;
    let routines = catalog.routines();
    let mut domains = catalog.types.values().filter_map(|known| known.as_domain());
    if !looks_further && domains.any(|domain| check_domain(&routines, domain).is_err()) {
        return Err(depends(&what, "a constraint of a domain", &what));
    }
    let Ok(tables) = catalog.bound() else {
        return Err(depends(&what, "a default value or a CHECK constraint", &what));
    };
    if looks_further && let Some(user) = unreadable(catalog)?.difference(&before).next() {
        return Err(match cascade {
            false => depends(&what, user, &what),
            true => SqlError::unsupported(format_args!("DROP … CASCADE of a type that {user} names"))
                .hint("Drop that first."),
        });
    }
    let scope = plan::scope::VariableScope::for_procedure(None).with_routines(tables.routines());
    let broken: BTreeSet<String> = catalog
        .queries()
        .filter(|view| {
            let query = syntax::parse::parse_query(&view.query, tables.version());
            query.and_then(|query| plan::statement::bind_query(&tables, &scope, &query)).is_err()
        })
        .map(|view| view.name.clone())
        .collect();
    drop_dependents(catalog, &what, cascade, &[], &|view| broken.contains(&view.name))
}

/// Brings the types of rows in line with the relations after a change, and looks whether all that types stand in is
/// still right. `cascade`: the change takes what depends on it along.
///
/// # Errors
/// `2BP01` where something used what is gone; `0A000` where the rows of a relation changed that a column holds; a type
/// that would be part of itself.
pub(super) fn settle(before: &Catalog, catalog: &mut Catalog, cascade: bool) -> Result<(), SqlError> {
    let relations = || catalog.tables.keys().chain(catalog.views.keys());
    let unchanged = before.tables.keys().chain(before.views.keys()).eq(relations())
        && before.tables == catalog.tables
        && before.views == catalog.views
        && before.types == catalog.types
        && catalog.row_types.len() == catalog.tables.len() + catalog.views.len();
    if unchanged {
        return Ok(());
    }
    let names: BTreeSet<String> = relations().cloned().collect();
    let gone: Vec<String> = catalog.row_types.keys().filter(|name| !names.contains(*name)).cloned().collect();
    gone.iter().for_each(|name| {
        catalog.row_types.remove(name);
    });
    for name in names {
        if !catalog.row_types.contains_key(&name) {
            let id = take_number(catalog)?;
            catalog.row_types.insert(name, id);
        }
    }
    if let Some(first) = gone.first() {
        let kind = kind_of(before, first);
        remove_users(catalog, &format!("{kind} {first}"), cascade)?;
    }
    check_fields(before, catalog)
}

/// The row type of a relation stays the same under another name.
pub(super) fn rename_row_type(catalog: &mut Catalog, from: &str, to: &str) {
    if let Some(id) = catalog.row_types.remove(from) {
        catalog.row_types.insert(to.to_string(), id);
    }
}

/// A number that no type has had.
fn take_number(catalog: &mut Catalog) -> Result<TypeId, SqlError> {
    let number = catalog.next_type;
    if number & !TypeId::FIRST_TEMPORARY.0 >= TypeId::NUMBERS_MAX - 1 {
        let message = "a ledger numbers at most 2^29 types in its life";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    catalog.next_type += 1;
    Ok(TypeId(number))
}

/// The number of a type of the ledger, or of that of an array's elements.
fn composite_in(data_type: DataType) -> Option<TypeId> {
    match data_type.element().unwrap_or(data_type) {
        DataType::Composite(id) | DataType::Enum(id) | DataType::Domain(id) => Some(id),
        _ => None,
    }
}

/// The types that a procedure or function has in its parameters and its result.
fn types_of(procedure: &Procedure) -> impl Iterator<Item = TypeId> {
    let result = match procedure.function.as_ref().map(|function| &function.result) {
        Some(FunctionResult::Value(data_type)) => Some(*data_type),
        _ => None,
    };
    let parameters = procedure.parameters.iter().map(|parameter| parameter.data_type);
    parameters.chain(result).filter_map(composite_in)
}

/// Looks for what uses types that are gone: refuses where there is something without CASCADE.
fn remove_users(catalog: &mut Catalog, what: &str, cascade: bool) -> Result<(), SqlError> {
    let known: BTreeSet<TypeId> =
        catalog.row_types.values().copied().chain(catalog.types.values().map(|known| known.id)).collect();
    let is_gone = |data_type: DataType| composite_in(data_type).is_some_and(|id| !known.contains(&id));
    for table in catalog.tables.values() {
        if let Some(column) = table.columns.iter().find(|column| is_gone(column.data_type)) {
            let user = format!("column {} of table {}", column.name, table.name);
            return Err(match cascade {
                false => depends(what, &user, what),
                true => SqlError::unsupported(format_args!("DROP … CASCADE of a type that {user} has"))
                    .hint("Drop the column first."),
            });
        }
    }
    for other in catalog.types.values() {
        if let Some(field) = other.fields.iter().find(|field| is_gone(field.data_type)) {
            let user = format!("column {} of composite type {}", field.name, other.name);
            return Err(match cascade {
                false => depends(what, &user, what),
                true => SqlError::unsupported(format_args!("DROP … CASCADE of a type that {user} has"))
                    .hint("Drop that type first."),
            });
        }
    }
    for other in catalog.types.values() {
        if other.as_domain().is_some_and(|domain| is_gone(domain.base)) {
            let user = format!("type {}", other.name);
            return Err(match cascade {
                false => depends(what, &user, what),
                true => SqlError::unsupported(format_args!("DROP … CASCADE of a type that {user} is of"))
                    .hint("Drop that domain first."),
            });
        }
    }
    let has_column = |view: &types::View| view.columns.iter().any(|column| is_gone(column.data_type));
    drop_dependents(catalog, what, cascade, &[], &has_column)?;
    let uses = |procedure: &Arc<Procedure>| types_of(procedure).any(|id| !known.contains(&id));
    let users: Vec<String> =
        catalog.procedures.values().filter(|procedure| uses(procedure)).map(|user| user.key()).collect();
    for user in users {
        if !cascade {
            return Err(depends(what, &format!("function {user}"), what));
        }
        let shown = format!("function {user}");
        drop_dependents(catalog, &shown, true, &[], &|view| view.functions.contains(&user))?;
        catalog.procedures.remove(&user);
    }
    Ok(())
}

/// Refuses fields that cannot be, and other fields for a type that stored values are of.
fn check_fields(before: &Catalog, catalog: &Catalog) -> Result<(), SqlError> {
    let (old, new) = (CompositeTypes::new(before), CompositeTypes::new(catalog));
    let pseudo = |name: &str, data_type: DataType| {
        let found = data_type.element().unwrap_or(data_type) == DataType::Record;
        let shown = if data_type == DataType::Record { "record" } else { "record[]" };
        let message = format!("column \"{name}\" has pseudo-type {shown}");
        if found { Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)) } else { Ok(()) }
    };
    let mut stored: BTreeMap<TypeId, String> = BTreeMap::new();
    for table in catalog.tables.values() {
        for column in &table.columns {
            pseudo(&column.name, column.data_type)?;
            let user = || format!("{}.{}", table.name, column.name);
            note_stored(&new, column.data_type, &user, &mut stored);
        }
    }
    let mut depths = BTreeMap::new();
    for known in new.all() {
        if catalog.types.contains_key(&known.name) {
            known.fields.iter().try_for_each(|field| pseudo(&field.name, field.data_type))?;
        }
        if depth(&new, known.id, limits::COMPOSITE_NESTING_MAX, &mut depths).is_none() {
            let message = format!("composite type {} cannot be made a member of itself", known.name);
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message).detail(format!(
                "Or types stand more than {} deep in one another (COMPOSITE_NESTING_MAX).",
                limits::COMPOSITE_NESTING_MAX
            )));
        }
        let types =
            |known: &CompositeType| known.fields.iter().map(|field| field.data_type).collect::<Vec<_>>();
        let Some(was) = old.get(known.id).filter(|was| types(was) != types(known)) else { continue };
        if let Some(user) = stored.get(&known.id) {
            let message =
                format!("cannot alter table \"{}\" because column \"{user}\" uses its row type", was.name);
            return Err(
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("Drop that column first.")
            );
        }
    }
    Ok(())
}

/// Notes that a column holds values of a type and of those inside of it.
fn note_stored(
    types: &CompositeTypes,
    data_type: DataType,
    user: &dyn Fn() -> String,
    stored: &mut BTreeMap<TypeId, String>,
) {
    let mut waiting: Vec<TypeId> = composite_in(data_type).into_iter().collect();
    while let Some(id) = waiting.pop() {
        if stored.contains_key(&id) {
            continue;
        }
        stored.insert(id, user());
        let fields = types.get(id).map_or(&[][..], |known| known.fields.as_slice());
        waiting.extend(fields.iter().filter_map(|field| composite_in(field.data_type)));
    }
}

/// How many types stand in one another, this one counted; `None`: more than so many, as where it is part of itself. `known`: those
/// of types that have been looked at, so that each is looked at once however often it stands in others.
fn depth(
    types: &CompositeTypes,
    id: TypeId,
    most: usize,
    known: &mut BTreeMap<TypeId, usize>,
) -> Option<usize> {
    if let Some(depth) = known.get(&id) {
        return Some(*depth).filter(|depth| *depth <= most);
    }
    let below = most.checked_sub(1)?;
    let mut deepest = 0;
    let fields = types.get(id).map_or(&[][..], |known| known.fields.as_slice());
    for inner in fields.iter().filter_map(|field| composite_in(field.data_type)) {
        deepest = deepest.max(depth(types, inner, below, known)?);
    }
    known.insert(id, deepest + 1);
    Some(deepest + 1)
}
