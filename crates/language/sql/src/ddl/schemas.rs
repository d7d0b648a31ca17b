//! CREATE, ALTER and DROP SCHEMA, and what moves from one schema to another.

use crate::ddl::aggregates::remove_aggregate;
use crate::ddl::any_type::rename_in_domain;
use crate::ddl::comments::rename_comments;
use crate::ddl::composite_types::drop_types;
use crate::ddl::members;
use crate::ddl::names::{Follow, rename_in_expression_text, rename_in_query};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use crate::ddl::routines::remove_routine;
use crate::ddl::sequences::drop_sequences;
use crate::ddl::tables::drop_tables;
use crate::ddl::views::{check_all, drop_views};
use plan::scope::VariableScope;
use plan::statement::bind_query;
use plan::tables::Tables;
use sqlparser::ast::{self, AlterSchemaOperation, ObjectName, SchemaName, Statement};
use std::collections::BTreeMap;
use std::sync::Arc;
use syntax::names::plain_name;
use syntax::parse::role::ADMINISTRATOR;
use syntax::parse::schema_members::{AlterSchemaMember, CreateSchemaWithMembers};
use syntax::parse::{parse_query, written_query};
use types::{
    Catalog, Commented, ExecutionVersion, Grantee, PUBLIC_SCHEMA, Privileges, Schema, SearchPath, Securable,
    SqlError, SqlState, Table, catalog_name, limits, object_name, schema_of, split_catalog_name,
};

/// A change of the schemas.
#[derive(Clone, Debug)]
pub(crate) enum ChangeOfSchemas {
    /// CREATE SCHEMA.
    Create {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Its name.
        name: String,
        /// AUTHORIZATION.
        owner: Option<String>,
        /// MEMBERS.
        members: Option<Vec<String>>,
    },
    /// DROP SCHEMA.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The schemas.
        names: Vec<String>,
    },
    /// ALTER SCHEMA … RENAME TO.
    Rename {
        /// As it is.
        from: String,
        /// As it will be.
        to: String,
    },
    /// ALTER SCHEMA … ADD MEMBER and DROP MEMBER.
    Member(AlterSchemaMember),
}

/// The name of a schema.
///
/// # Errors
/// A name that no schema has.
pub(super) fn schema_name(name: &ObjectName) -> Result<String, SqlError> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => plain_name(name),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \".\"")),
    }
}

/// The change that a statement about schemas is; `None` where it is none.
///
/// # Errors
/// Forms that are not supported.
pub(super) fn bind_schema_statement(statement: &Statement) -> Result<Option<ChangeOfSchemas>, SqlError> {
    let change = match statement {
        Statement::CreateSchema {
            schema_name: name,
            if_not_exists,
            with,
            options,
            default_collate_spec,
            clone,
        } => {
            if with.is_some() || options.is_some() || default_collate_spec.is_some() || clone.is_some() {
                return Err(SqlError::unsupported("this form of CREATE SCHEMA"));
            }
            let (name, owner) = match name {
                SchemaName::Simple(name) => (schema_name(name)?, None),
                SchemaName::UnnamedAuthorization(owner) => (plain_name(owner)?, Some(plain_name(owner)?)),
                SchemaName::NamedAuthorization(name, owner) => (schema_name(name)?, Some(plain_name(owner)?)),
            };
            // Who has no role is the administrator.
            let owner = owner.filter(|owner| !matches!(owner.as_str(), "current_user" | "session_user"));
            ChangeOfSchemas::Create { if_not_exists: *if_not_exists, name, owner, members: None }
        }
        Statement::AlterSchema(alter) => match alter.operations.as_slice() {
            [AlterSchemaOperation::Rename { name }] if !alter.if_exists => {
                ChangeOfSchemas::Rename { from: schema_name(&alter.name)?, to: schema_name(name)? }
            }
            _ => {
                return Err(SqlError::unsupported("this form of ALTER SCHEMA")
                    .hint("RENAME TO gives it another name; GRANT USAGE ON SCHEMA says who may use it."));
            }
        },
        Statement::Drop { object_type: ast::ObjectType::Schema, if_exists, names, cascade, .. } => {
            let names = names.iter().map(schema_name).collect::<Result<_, _>>()?;
            ChangeOfSchemas::Drop { if_exists: *if_exists, cascade: *cascade, names }
        }
        _ => return Ok(None),
    };
    Ok(Some(change))
}

impl ChangeOfSchemas {
    /// CREATE SCHEMA … MEMBERS.
    pub fn with_members(create: &CreateSchemaWithMembers) -> ChangeOfSchemas {
        ChangeOfSchemas::Create {
            if_not_exists: create.if_not_exists,
            name: create.name.clone(),
            owner: None,
            members: Some(create.members.clone()),
        }
    }

    /// Whether it takes what depends on it along.
    pub fn cascades(&self) -> bool {
        matches!(self, ChangeOfSchemas::Drop { cascade: true, .. })
    }

    /// Makes the change, which the administrator of the organisation with this number asks for in the block of this height. Gives the
    /// command's tag.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn apply(
        &self,
        catalog: &mut NewCatalog,
        organisation: u16,
        height: u64,
    ) -> Result<&'static str, SqlError> {
        match self {
            ChangeOfSchemas::Create { if_not_exists, name, owner, members } => {
                let exists = catalog.has_schema(name);
                create_schema(catalog, *if_not_exists, name, owner.as_deref())?;
                if let Some(members) = members.as_ref().filter(|_| !exists) {
                    members::set_members(catalog, name, members, organisation, height)?;
                }
                Ok("CREATE SCHEMA")
            }
            ChangeOfSchemas::Drop { if_exists, cascade, names } => {
                for name in names {
                    members::check_member(catalog, name, organisation)?;
                    match catalog.check_schema(name) {
                        Ok(()) => drop_schema(catalog, name, *cascade)?,
                        Err(_) if *if_exists => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok("DROP SCHEMA")
            }
            ChangeOfSchemas::Member(change) => {
                members::change_member(catalog, change, organisation, height)?;
                Ok("ALTER SCHEMA")
            }
            ChangeOfSchemas::Rename { from, to } => {
                members::refuse_renaming(catalog, from)?;
                rename_schema(catalog, from, to)?;
                Ok("ALTER SCHEMA")
            }
        }
    }
}

/// Refuses a name that a new schema cannot have.
fn check_new(catalog: &Catalog, name: &str) -> Result<(), SqlError> {
    if catalog.has_schema(name) || matches!(name, "pg_catalog" | "information_schema" | "entente") {
        return Err(SqlError::new(SqlState(*b"42P06"), format!("schema \"{name}\" already exists")));
    }
    if name.starts_with("pg_") {
        let error = SqlError::new(SqlState(*b"42939"), format!("unacceptable schema name \"{name}\""));
        return Err(error.detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    if catalog.schemas.len() >= limits::SCHEMAS_MAX {
        let message = format!("a ledger has at most {} schemas (SCHEMAS_MAX)", limits::SCHEMAS_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}

pub(super) fn create_schema(
    catalog: &mut Catalog,
    if_not_exists: bool,
    name: &str,
    owner: Option<&str>,
) -> Result<(), SqlError> {
    if if_not_exists && catalog.has_schema(name) {
        return Ok(());
    }
    let owner = owner.filter(|owner| *owner != ADMINISTRATOR);
    if let Some(owner) = owner
        && !catalog.roles.by_name.contains_key(owner)
    {
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{owner}\" does not exist")));
    }
    check_new(catalog, name)?;
    if let Some(owner) = owner {
        let grantee = Grantee::Role(owner.to_string());
        catalog.roles.grant(Securable::Schema(name.to_string()), grantee, Privileges::OF_SCHEMAS);
    }
    let schema = Schema { owner: owner.map(str::to_string), members: None };
    catalog.schemas.insert(name.to_string(), schema);
    Ok(())
}

/// The names in the catalog of what stands in a schema.
fn names_in<'c, V: 'c>(objects: &'c BTreeMap<String, V>, schema: &str) -> Vec<String> {
    objects.keys().filter(|name| schema_of(name) == schema).cloned().collect()
}

pub(super) fn drop_schema(catalog: &mut NewCatalog, schema: &str, cascade: bool) -> Result<(), SqlError> {
    if schema == PUBLIC_SCHEMA {
        return Err(SqlError::unsupported("dropping the schema public").hint("Drop what is in it."));
    }
    let (tables, views) = (names_in(&catalog.tables, schema), names_in(&catalog.views, schema));
    let (sequences, types) = (names_in(&catalog.sequences, schema), names_in(&catalog.types, schema));
    let (routines, aggregates) =
        (names_in(&catalog.procedures, schema), names_in(&catalog.aggregates, schema));
    if !cascade {
        let kinds = [
            ("table", &tables),
            ("view", &views),
            ("sequence", &sequences),
            ("type", &types),
            ("function", &routines),
            ("function", &aggregates),
        ];
        let mut inside = kinds.iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)));
        if let Some((kind, name)) = inside.next() {
            let kind = if catalog.materialized_view(name).is_some() { "materialized view" } else { kind };
            let message = format!("cannot drop schema {schema} because other objects depend on it");
            return Err(SqlError::new(SqlState(*b"2BP01"), message)
                .detail(format!("{kind} {name} depends on schema {schema}"))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
    }
    let mut partitions = views.iter().filter_map(|name| Some((name, catalog.partition(name)?.0)));
    if let Some((name, table)) = partitions.find(|(_, table)| !tables.contains(&table.name)) {
        let what = format_args!("DROP SCHEMA … CASCADE with a partition of \"{}\"", table.name);
        return Err(SqlError::unsupported(what).hint(format!("DROP TABLE {name} first.")));
    }
    let views: Vec<String> = views.iter().filter(|name| catalog.partition(name).is_none()).cloned().collect();
    drop_views(catalog, true, true, &views)?;
    drop_tables(catalog, true, true, &tables)?;
    drop_sequences(catalog, true, true, &sequences)?;
    for name in &aggregates {
        remove_aggregate(catalog, name, true)?;
    }
    for name in &routines {
        if catalog.procedures.contains_key(name) {
            remove_routine(catalog, name, true)?;
        }
    }
    if !types.is_empty() {
        drop_types(catalog, true, true, &types)?;
    }
    catalog.schemas.remove(schema);
    Ok(())
}

fn rename_schema(catalog: &mut NewCatalog, from: &str, to: &str) -> Result<(), SqlError> {
    catalog.check_schema(from)?;
    if from == PUBLIC_SCHEMA {
        return Err(
            SqlError::unsupported("renaming the schema public").hint("Make a schema, and move tables there.")
        );
    }
    check_new(catalog, to)?;
    if let Some(schema) = catalog.schemas.remove(from) {
        catalog.schemas.insert(to.to_string(), schema);
    }
    rename_comments(catalog, &|about| match about {
        Commented::Schema(name) if name == from => Commented::Schema(to.to_string()),
        other => other,
    });
    catalog.roles.rename(&Securable::Schema(from.to_string()), Securable::Schema(to.to_string()));
    move_objects(catalog, &|name| match split_catalog_name(name) {
        (schema, object) if schema == from => Some(catalog_name(to, object)),
        _ => None,
    })?;
    for procedure in catalog.procedures.values_mut() {
        if procedure.search_path.schemas().iter().any(|schema| schema == from) {
            let renamed = |schema: &String| if schema == from { to.to_string() } else { schema.clone() };
            let path = SearchPath::new(procedure.search_path.schemas().iter().map(renamed))?;
            Arc::make_mut(procedure).search_path = path;
        }
    }
    Ok(())
}

/// ALTER TABLE … SET SCHEMA: its indexes, and the sequences of its columns, go along. Gives its new name.
///
/// # Errors
/// `42P07` where something has the name there.
pub(super) fn move_table(catalog: &mut NewCatalog, table: &Table, schema: &str) -> Result<String, SqlError> {
    catalog.check_schema(schema)?;
    let to = catalog_name(schema, table.object_name());
    if schema_of(&table.name) == schema {
        return Ok(to);
    }
    if table.id.is_temporary() {
        return Err(SqlError::unsupported("SET SCHEMA of a temporary table"));
    }
    let mut moved = BTreeMap::from([(table.name.clone(), to.clone())]);
    for sequence in catalog.sequences.values() {
        if sequence.owner.as_ref().is_some_and(|owner| owner.table == table.id) {
            moved.insert(sequence.name.clone(), catalog_name(schema, object_name(&sequence.name)));
        }
    }
    let indexes = catalog.indexes_of(table.id).iter().map(|index| index.name.clone());
    let key = (!table.primary_key.is_empty()).then(|| table.primary_key_name.clone());
    let indexes: Vec<String> = indexes.chain(key).map(|index| catalog_name(schema, &index)).collect();
    if let Some(taken) = moved.values().chain(&indexes).find(|name| relation_exists(catalog, name)) {
        let message = format!("relation \"{}\" already exists in schema \"{schema}\"", object_name(taken));
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    // What is said of its indexes goes along.
    for index in indexes {
        moved.insert(table.index_name(object_name(&index)), index);
    }
    move_objects(catalog, &|name| moved.get(name).cloned())?;
    Ok(to)
}

/// Gives objects other names in the catalog, and lets everything that names them follow.
///
/// # Errors
/// `0A000` where a view would be another one.
pub(super) fn move_objects(
    catalog: &mut NewCatalog,
    moved: &dyn Fn(&str) -> Option<String>,
) -> Result<(), SqlError> {
    let follow = Follow { places: Vec::new(), moved };
    let before = catalog.bound()?;
    let renamed = |name: &String| moved(name).unwrap_or_else(|| name.clone());
    move_tables(catalog, &follow)?;
    for text in catalog.indexes.values_mut().flatten().flat_map(|index| index.details.texts_mut()) {
        rename_in_expression_text(text, &follow)?;
    }
    move_views(catalog, &before, moved)?;
    let mut sequences = BTreeMap::new();
    for (_, mut sequence) in std::mem::take(&mut catalog.sequences) {
        let name = renamed(&sequence.name);
        Arc::make_mut(&mut sequence).name.clone_from(&name);
        sequences.insert(name, sequence);
    }
    catalog.sequences = sequences;
    let mut procedures = BTreeMap::new();
    for (_, mut procedure) in std::mem::take(&mut catalog.procedures) {
        let new = Arc::make_mut(&mut procedure);
        new.name = renamed(&new.name);
        for default in new.parameters.iter_mut().filter_map(|parameter| parameter.default.as_mut()) {
            rename_in_expression_text(default, &follow)?;
        }
        procedures.insert(procedure.key(), procedure);
    }
    catalog.procedures = procedures;
    let mut aggregates = BTreeMap::new();
    for (_, mut aggregate) in std::mem::take(&mut catalog.aggregates) {
        let new = Arc::make_mut(&mut aggregate);
        new.name = renamed(&new.name);
        new.transition = renamed(&new.transition);
        new.result = new.result.as_ref().map(renamed);
        aggregates.insert(aggregate.name.clone(), aggregate);
    }
    catalog.aggregates = aggregates;
    let mut types = BTreeMap::new();
    for (_, mut known) in std::mem::take(&mut catalog.types) {
        let name = renamed(&known.name);
        rename_in_domain(&mut known, &follow)?;
        Arc::make_mut(&mut known).name.clone_from(&name);
        types.insert(name, known);
    }
    catalog.types = types;
    let row_types = std::mem::take(&mut catalog.row_types);
    catalog.row_types = row_types.into_iter().map(|(name, id)| (renamed(&name), id)).collect();
    for trigger in catalog.triggers.values_mut().flat_map(BTreeMap::values_mut) {
        let new = Arc::make_mut(trigger);
        new.function = renamed(&new.function);
        if let Some(condition) = &mut new.condition {
            rename_in_expression_text(condition, &follow)?;
        }
    }
    rename_comments(catalog, &|about| about.moved(moved));
    let objects: Vec<Securable> = catalog.roles.grants.keys().cloned().collect();
    for object in objects {
        let new = match &object {
            Securable::Relation(name) => Securable::Relation(renamed(name)),
            Securable::Routine(name) => Securable::Routine(renamed(name)),
            // They went along with what the relation itself had, if it had anything: version 10 left them where it had nothing.
            Securable::Column(relation, column) if catalog.rules >= ExecutionVersion::V11 => {
                Securable::column(&renamed(relation), column)
            }
            Securable::Schema(_) | Securable::Column(..) => continue,
        };
        if new != object {
            catalog.roles.rename(&object, new);
        }
    }
    let relations: Vec<String> = catalog.tables.keys().chain(catalog.views.keys()).cloned().collect();
    relations.iter().try_for_each(|relation| check_all(catalog, relation))
}

fn move_tables(catalog: &mut Catalog, follow: &Follow<'_>) -> Result<(), SqlError> {
    let mut tables = BTreeMap::new();
    for (name, mut table) in std::mem::take(&mut catalog.tables) {
        let mut new = Table::clone(&table);
        new.name = (follow.moved)(&name).unwrap_or(name);
        if let Some(partitioning) = &mut new.partitioning {
            let renamed = |name: &str| (follow.moved)(name).unwrap_or_else(|| name.to_string());
            *partitioning = Arc::new(partitioning.renamed(&renamed));
        }
        for check in &mut new.checks {
            rename_in_expression_text(&mut check.condition, follow)?;
        }
        for default in new.columns.iter_mut().filter_map(|column| column.default.as_mut()) {
            rename_in_expression_text(default, follow)?;
        }
        for text in new.row_security.texts_mut() {
            rename_in_expression_text(text, follow)?;
        }
        if new != *table {
            table = Arc::new(new);
        }
        tables.insert(table.name.clone(), table);
    }
    catalog.tables = tables;
    Ok(())
}

/// `before`: the tables as the views' texts name them.
fn move_views(
    catalog: &mut Catalog,
    before: &Tables,
    moved: &dyn Fn(&str) -> Option<String>,
) -> Result<(), SqlError> {
    let renamed = |name: &String| moved(name).unwrap_or_else(|| name.clone());
    for new in catalog.queries_mut() {
        new.name = renamed(&new.name);
        let mut query = parse_query(&new.query, before.version())?;
        let scope = VariableScope::for_procedure(None).with_routines(before.routines()).noting();
        bind_query(before, &scope, &query)?;
        rename_in_query(&mut query, &Follow { places: scope.noted().places, moved });
        new.query = written_query(&query, before.version());
        new.relations = new.relations.iter().map(renamed).collect();
        new.functions = new.functions.iter().map(renamed).collect();
        for trigger in new.triggers.values_mut().map(Arc::make_mut) {
            trigger.function = renamed(&trigger.function);
        }
    }
    let views = std::mem::take(&mut catalog.views).into_values();
    catalog.views = views.map(|view| (view.name.clone(), view)).collect();
    Ok(())
}
