//! Schema changes: what a CREATE, ALTER or DROP is, and the catalog that a list of them makes.
//!
//! The catalog has one name per object: `t` in `public`, `s.t` elsewhere (`types::catalog_name`); no name has a dot.
//! So maps, grants, what views depend on, and encodings need not know of schemas. Indexes and constraints have plain
//! names and stand where their table stands. SQL's names become the catalog's just before each change is made
//! (`resolve`), because the changes before it in the same script count. In queries the binder does it, with a
//! `SearchPath`.
//!
//! A change that names a type which an earlier change of the same script makes is bound when it is its turn
//! ([`SchemaChange::Later`]).

mod aggregates;
mod alter;
mod alter_constraint;
mod alter_routine;
mod any_type;
mod attach_partition;
pub(crate) mod change;
mod checkpoint;
mod columns;
mod comments;
mod composite_types;
mod constraints;
mod counters;
mod create_as;
mod databases;
mod deferral;
mod domains;
mod endorsement;
mod enums;
mod extensions;
mod foreign_keys;
mod grants;
mod index_drafts;
mod indexes;
mod materialized_views;
mod members;
mod names;
mod new_catalog;
mod operator_classes;
mod partition_bounds;
mod partition_rows;
mod partition_slices;
mod partitions;
mod primary_key;
mod relations;
mod renumber;
mod resolve;
mod roles;
mod routines;
mod row_security;
pub(crate) mod rows;
mod schemas;
mod securables;
mod sequences;
mod tables;
mod trigger_owner;
mod triggers;
mod unreadable;
mod view_columns;
mod view_options;
mod views;

use aggregates::{AggregateDrop, bind_create_aggregate, create_aggregate};
use alter::{TableChange, alter_table, bind_alter_table};
use alter_routine::alter_routine;
use change::SchemaChange;
use checkpoint::ask_for_checkpoint;
use columns::ColumnChange;
use comments::{comment_on, forget_dropped};
use composite_types::{TypeDraft, bind_create_type, create_type, drop_types, settle};
use create_as::{bind_create_table_as, create_table_as};
use databases::change_database;
use domains::{alter_domain, bind_create_domain, refuse_other_types};
use enums::alter_type;
use extensions::check_extension;
use index_drafts::{IndexDraft, bind_create_index};
use indexes::{create_index, drop_index, write_entries};
use materialized_views::MaterializedChange;
use new_catalog::NewCatalog;
use partition_rows::{alter_partition, drop_partitions};
use partitions::{bind_partition, create_partition, list_partitions, unlist_partitions};
use relations::{find_table, relation_exists};
use resolve::resolved;
use roles::change_roles;
use routines::{DropRoutine, bind_create_routine, create_routine};
use row_security::{bind_policy_statement, check_policies_after};
use rows::Rows;
use schemas::{ChangeOfSchemas, bind_schema_statement};
use sequences::{change_sequence, drop_sequences};
use sqlparser::ast::{ObjectType, Statement};
use syntax::names::table_name;
use syntax::parse::ParsedStatement;
use syntax::parse::domain::DomainStatement;
use syntax::parse::governance::GovernanceCall;
use tables::{bind_create_table, create_table, drop_tables, refuse_table_forms};
use triggers::bind_trigger;
use types::{
    Catalog, CompositeTypes, ExecutionVersion, Principal, SearchPath, SqlError, SqlState, StatementResult,
};
use view_options::alter_view;
use views::{bind_create_view, create_view, drop_views};

/// The same, where changes stand before it in its script, one of which may make a type that it names: it is bound when it
/// is its turn.
///
/// # Errors
/// As [`bind_schema_change`], but for a type that is not there.
pub(crate) fn bind_change_behind(
    types: &CompositeTypes,
    statement: &ParsedStatement,
) -> Result<Option<SchemaChange>, SqlError> {
    match bind_schema_change(types, statement) {
        Err(error) if error.state == SqlState::UNDEFINED_OBJECT => {
            Ok(Some(in_schemas(types, SchemaChange::Later(Box::new(statement.clone())))))
        }
        bound => bound,
    }
}

/// The change with the search path by which its names are found.
fn in_schemas(types: &CompositeTypes, change: SchemaChange) -> SchemaChange {
    match types.search_path() {
        path if path.is_default() || matches!(change, SchemaChange::Governance(_)) => change,
        path => SchemaChange::InSchemas(path.clone(), Box::new(change)),
    }
}

/// The change that a statement is; `None` where it is none.
///
/// # Errors
/// What is wrong with it; `0A000` names what is not supported.
pub(crate) fn bind_schema_change(
    types: &CompositeTypes,
    statement: &ParsedStatement,
) -> Result<Option<SchemaChange>, SqlError> {
    let change = bind_change(types, statement)?;
    Ok(change.map(|change| in_schemas(types, change)))
}

fn bind_change(
    types: &CompositeTypes,
    statement: &ParsedStatement,
) -> Result<Option<SchemaChange>, SqlError> {
    Ok(Some(match statement {
        ParsedStatement::CreateRoutine(create) => {
            let procedure = bind_create_routine(types, create)?;
            let (or_replace, checks_body) = (create.or_replace, create.checks_body);
            SchemaChange::CreateRoutine { or_replace, checks_body, procedure }
        }
        ParsedStatement::CreateAggregate(create) => {
            let aggregate = bind_create_aggregate(types, create)?;
            SchemaChange::CreateAggregate { or_replace: create.or_replace, aggregate }
        }
        ParsedStatement::DropAggregate(drop) => {
            SchemaChange::DropAggregate(AggregateDrop::bind(types, drop)?)
        }
        ParsedStatement::CreateTableAs(create) => SchemaChange::CreateTableAs(bind_create_table_as(create)?),
        ParsedStatement::Role(statement) => SchemaChange::Role(statement.as_ref().clone()),
        ParsedStatement::Sequence(statement) => SchemaChange::Sequence(statement.clone()),
        ParsedStatement::Trigger(statement) => SchemaChange::Trigger(bind_trigger(statement)?),
        ParsedStatement::Comment(comment) => SchemaChange::Comment(comment.as_ref().clone()),
        ParsedStatement::SetSchema(statement) => {
            let changes = vec![TableChange::SetSchema(statement.schema.clone())];
            let (if_exists, name) = (statement.if_exists, statement.table.clone());
            SchemaChange::AlterTable { if_exists, name, changes }
        }
        ParsedStatement::SchemaWithMembers(create) => {
            SchemaChange::Schema(ChangeOfSchemas::with_members(create))
        }
        ParsedStatement::SchemaMember(change) => {
            SchemaChange::Schema(ChangeOfSchemas::Member(change.clone()))
        }
        ParsedStatement::Checkpoint => SchemaChange::Checkpoint,
        ParsedStatement::Governance(call) => SchemaChange::Governance(call.clone()),
        ParsedStatement::Domain(statement) => match statement.as_ref() {
            DomainStatement::Create(create) => {
                let domain = bind_create_domain(types, create)?;
                SchemaChange::CreateType(TypeDraft::of_domain(&create.name, domain))
            }
            DomainStatement::Alter(name, change) => SchemaChange::AlterDomain(name.clone(), change.clone()),
            DomainStatement::Drop { if_exists, cascade, names } => SchemaChange::DropType {
                domains: true,
                if_exists: *if_exists,
                cascade: *cascade,
                names: names.clone(),
            },
        },
        ParsedStatement::DropExpression(statement) => {
            let (name, change) =
                (statement.column.clone(), ColumnChange::DropExpression(statement.if_exists));
            let changes = vec![TableChange::AlterColumn { name, change }];
            let (if_exists, name) = (statement.table_if_exists, statement.table.clone());
            SchemaChange::AlterTable { if_exists, name, changes }
        }
        ParsedStatement::AlterConstraint(statement) => {
            let changes = vec![TableChange::AlterConstraint(statement.name.clone(), statement.deferral)];
            let (if_exists, name) = (statement.if_exists, statement.table.clone());
            SchemaChange::AlterTable { if_exists, name, changes }
        }
        ParsedStatement::Partition(alter) => {
            SchemaChange::AlterPartition(alter.clone(), SearchPath::default())
        }
        ParsedStatement::AlterRoutine(alter) => SchemaChange::AlterRoutine(alter.clone()),
        ParsedStatement::AlterView(alter) => SchemaChange::AlterView(alter.as_ref().clone()),
        ParsedStatement::Database(statement) => SchemaChange::Database(statement.clone()),
        ParsedStatement::MaterializedView(statement) => {
            SchemaChange::Materialized(Box::new(MaterializedChange::bind(statement)))
        }
        ParsedStatement::AlterType(alter) => SchemaChange::AlterType(alter.as_ref().clone()),
        ParsedStatement::Do(_)
        | ParsedStatement::SetConstraints(_)
        | ParsedStatement::Notify(_)
        | ParsedStatement::Cursor(_) => return Ok(None),
        ParsedStatement::Sql(statement) => return bind_change_of_standard_sql(types, statement),
    }))
}

/// The change that a statement is which sqlparser reads.
fn bind_change_of_standard_sql(
    types: &CompositeTypes,
    statement: &Statement,
) -> Result<Option<SchemaChange>, SqlError> {
    if let Some(change) = bind_schema_statement(statement)? {
        return Ok(Some(SchemaChange::Schema(change)));
    }
    if types.rules() >= ExecutionVersion::V8
        && let Some(policy) = bind_policy_statement(statement)?
    {
        return Ok(Some(SchemaChange::Policy(policy)));
    }
    Ok(Some(match statement {
        Statement::CreateTable(create) => {
            refuse_table_forms(create, types.rules())?;
            if let Some(draft) = bind_partition(create)? {
                return Ok(Some(SchemaChange::CreatePartition(Box::new(draft))));
            }
            let draft = Box::new(bind_create_table(types, create)?);
            SchemaChange::CreateTable { if_not_exists: create.if_not_exists, draft }
        }
        Statement::AlterTable(alter) => {
            let Some(changes) = bind_alter_table(types, alter)? else { return Ok(None) };
            let name = table_name(&alter.name)?;
            SchemaChange::AlterTable { if_exists: alter.if_exists, name, changes }
        }
        Statement::CreateType { name, representation } => {
            SchemaChange::CreateType(bind_create_type(types, name, representation.as_ref())?)
        }
        Statement::CreateIndex(create) => {
            let (table, index) = bind_create_index(create, types.rules())?;
            SchemaChange::CreateIndex { if_not_exists: create.if_not_exists, table, index }
        }
        Statement::CreateExtension(create) if types.rules() >= ExecutionVersion::V7 => {
            check_extension(create, types.rules())?;
            SchemaChange::CreateExtension
        }
        Statement::CreateView(create) => SchemaChange::CreateView(bind_create_view(create, types.rules())?),
        Statement::Drop { .. } => bind_drop(statement)?,
        Statement::DropProcedure { if_exists, proc_desc, drop_behavior } => SchemaChange::DropRoutine(
            DropRoutine::bind(types, *if_exists, false, proc_desc, drop_behavior.as_ref())?,
        ),
        Statement::DropFunction(drop) => SchemaChange::DropRoutine(DropRoutine::bind(
            types,
            drop.if_exists,
            true,
            &drop.func_desc,
            drop.drop_behavior.as_ref(),
        )?),
        _ => return Ok(None),
    }))
}

/// DROP of what stands under a name alone.
fn bind_drop(statement: &Statement) -> Result<SchemaChange, SqlError> {
    let Statement::Drop { object_type, if_exists, cascade, names, temporary, table, .. } = statement else {
        return Err(SqlError::unsupported("this statement"));
    };
    let (if_exists, cascade) = (*if_exists, *cascade);
    let listed = || names.iter().map(table_name).collect::<Result<Vec<String>, SqlError>>();
    Ok(match object_type {
        ObjectType::Type => SchemaChange::DropType { domains: false, if_exists, cascade, names: listed()? },
        ObjectType::Table if !temporary && table.is_none() => {
            SchemaChange::DropTable { if_exists, cascade, names: listed()? }
        }
        ObjectType::Index if !cascade => SchemaChange::DropIndex { if_exists, names: listed()? },
        ObjectType::Sequence => SchemaChange::DropSequence { if_exists, cascade, names: listed()? },
        ObjectType::View => SchemaChange::DropView { if_exists, cascade, names: listed()? },
        other => return Err(SqlError::unsupported(format_args!("DROP {other}"))),
    })
}

/// The catalog after the changes, which the principal makes; `None` where they
/// change nothing. Pushes a result for each.
///
/// # Errors
/// The first change that cannot be made: then none is.
pub(crate) fn change_catalog<'c>(
    before: &Catalog,
    changes: impl IntoIterator<Item = &'c SchemaChange>,
    principal: &Principal,
    all: Rows<'_, '_>,
    results: &mut Vec<StatementResult>,
) -> Result<Option<Catalog>, SqlError> {
    change_all(before, changes, principal, all, results)
        .map_err(|error| CompositeTypes::new(before).named_in(error))
}

fn change_all<'c>(
    before: &Catalog,
    changes: impl IntoIterator<Item = &'c SchemaChange>,
    principal: &Principal,
    mut all: Rows<'_, '_>,
    results: &mut Vec<StatementResult>,
) -> Result<Option<Catalog>, SqlError> {
    let rules = all.execution.programs().version();
    let mut catalog = NewCatalog { catalog: before.clone(), rules, notices: Vec::new(), warnings: 0 };
    if rules >= ExecutionVersion::V7 {
        catalog.number_types_apart();
    }
    let rows = &mut all;
    for change in changes {
        let (path, change) = change.without_path();
        let now;
        let change = match change {
            SchemaChange::Later(statement) => {
                let types = CompositeTypes::new(&catalog).with_rules(rules).with_search_path(&path);
                let bound = bind_change(&types, statement)?;
                now = bound.ok_or_else(|| SqlError::unsupported("this statement"))?;
                &now
            }
            change => change,
        };
        let change = &resolved(&catalog, (&path, rules), change)?;
        let previous = catalog.clone();
        if let SchemaChange::CreateTableAs(draft) = change {
            let tag = create_table_as(&mut catalog, before, draft, rows)?;
            settle(&previous, &mut catalog, false)?;
            results.push(StatementResult { tag, ..StatementResult::default() });
            continue;
        }
        if let SchemaChange::AlterTable { name, changes, .. } = change
            && changes.iter().any(TableChange::changes_columns)
        {
            unlist_partitions(&mut catalog, name);
        }
        let tag = match change {
            SchemaChange::Materialized(change) => change.make(&mut catalog, before, rows)?,
            change => make(&mut catalog, change, principal, rows)?.to_string(),
        };
        list_partitions(&previous, &mut catalog)?;
        settle(&previous, &mut catalog, change.cascades())?;
        let makes_routine =
            matches!(change, SchemaChange::CreateRoutine { .. } | SchemaChange::AlterRoutine(_));
        check_policies_after(&previous, &catalog, makes_routine)?;
        write_entries(&previous, &catalog, rows)?;
        let notices = std::mem::take(&mut catalog.notices);
        results.push(StatementResult { tag, notices, ..StatementResult::default() });
        forget_dropped(&mut catalog);
        catalog.roles = std::mem::take(&mut catalog.roles).without_dropped(&catalog);
    }
    let NewCatalog { mut catalog, .. } = catalog;
    if catalog == *before {
        return Ok(None);
    }
    members::check_boundaries(before, &catalog)?;
    all.finish(&catalog);
    catalog.version += 1;
    Ok(Some(catalog))
}

/// Makes one change whose names are those of the catalog. Gives the command's tag.
fn make(
    catalog: &mut NewCatalog,
    change: &SchemaChange,
    principal: &Principal,
    rows: &mut Rows<'_, '_>,
) -> Result<&'static str, SqlError> {
    let organisation = principal.organisation;
    Ok(match change {
        SchemaChange::CreateTable { .. }
        | SchemaChange::CreatePartition(_)
        | SchemaChange::AlterPartition(..)
        | SchemaChange::DropTable { .. } => change_tables(catalog, change, rows)?,
        SchemaChange::CreateIndex { if_not_exists, table, index } => {
            create_index_of(catalog, *if_not_exists, table, index, rows)?;
            "CREATE INDEX"
        }
        SchemaChange::DropIndex { if_exists, names } => {
            names.iter().try_for_each(|name| drop_index(catalog, *if_exists, name))?;
            "DROP INDEX"
        }
        SchemaChange::AlterTable { if_exists, name, changes } => {
            alter_table(catalog, *if_exists, name, changes, rows)?;
            "ALTER TABLE"
        }
        SchemaChange::CreateView(_) | SchemaChange::AlterView(_) | SchemaChange::DropView { .. } => {
            change_views(catalog, change)?
        }
        SchemaChange::Sequence(statement) => change_sequence(catalog, statement, rows)?,
        SchemaChange::DropSequence { if_exists, cascade, names } => {
            drop_sequences(catalog, *if_exists, *cascade, names)?;
            "DROP SEQUENCE"
        }
        SchemaChange::CreateRoutine { or_replace, checks_body, procedure } => {
            create_routine(catalog, *or_replace, *checks_body, procedure)?
        }
        SchemaChange::AlterRoutine(alter) => alter_routine(catalog, alter)?,
        SchemaChange::DropRoutine(drop) => drop.apply(catalog)?,
        SchemaChange::Trigger(change) => change.apply(catalog)?,
        SchemaChange::CreateAggregate { or_replace, aggregate } => {
            create_aggregate(catalog, *or_replace, aggregate)?;
            "CREATE AGGREGATE"
        }
        SchemaChange::DropAggregate(drop) => {
            drop.apply(catalog)?;
            "DROP AGGREGATE"
        }
        SchemaChange::CreateType(_)
        | SchemaChange::DropType { .. }
        | SchemaChange::AlterType(_)
        | SchemaChange::AlterDomain(..) => change_type(catalog, change, rows)?,
        SchemaChange::Schema(change) => change.apply(catalog, organisation, rows.height())?,
        SchemaChange::Database(statement) => change_database(catalog, statement, rows.height())?,
        SchemaChange::Governance(call) => {
            return Err(stands_alone(call));
        }
        SchemaChange::Policy(statement) => statement.apply(catalog, organisation)?,
        SchemaChange::Comment(comment) => {
            comment_on(catalog, comment)?;
            "COMMENT"
        }
        SchemaChange::Checkpoint => {
            ask_for_checkpoint(catalog, rows.height())?;
            "CHECKPOINT"
        }
        SchemaChange::CreateExtension => "CREATE EXTENSION",
        SchemaChange::CreateTableAs(_)
        | SchemaChange::Materialized(_)
        | SchemaChange::Later(_)
        | SchemaChange::InSchemas(..) => {
            return Err(SqlError::unsupported("this statement"));
        }
        SchemaChange::Role(statement) => change_roles(catalog, statement, principal)?,
    })
}

/// CREATE TABLE and DROP TABLE, and what partitions a table has.
fn change_tables(
    catalog: &mut NewCatalog,
    change: &SchemaChange,
    rows: &mut Rows<'_, '_>,
) -> Result<&'static str, SqlError> {
    Ok(match change {
        SchemaChange::CreateTable { if_not_exists, draft } => {
            create_table(catalog, *if_not_exists, draft, rows)?;
            "CREATE TABLE"
        }
        SchemaChange::CreatePartition(draft) => {
            create_partition(catalog, draft, rows)?;
            "CREATE TABLE"
        }
        SchemaChange::AlterPartition(alter, path) => {
            alter_partition(catalog, alter, path, rows)?;
            "ALTER TABLE"
        }
        SchemaChange::DropTable { if_exists, cascade, names } => {
            names.iter().try_for_each(|name| materialized_views::refuse_table_drop(catalog, name))?;
            let names = drop_partitions(catalog, *cascade, names, rows)?;
            drop_tables(catalog, *if_exists, *cascade, &names)?;
            "DROP TABLE"
        }
        _ => return Err(SqlError::unsupported("this statement")),
    })
}

/// CREATE VIEW, ALTER VIEW and DROP VIEW.
fn change_views(catalog: &mut NewCatalog, change: &SchemaChange) -> Result<&'static str, SqlError> {
    Ok(match change {
        SchemaChange::CreateView(draft) => {
            create_view(catalog, draft)?;
            "CREATE VIEW"
        }
        SchemaChange::AlterView(alter) => {
            alter_view(catalog, alter)?;
            "ALTER VIEW"
        }
        SchemaChange::DropView { if_exists, cascade, names } => {
            drop_views(catalog, *if_exists, *cascade, names)?;
            "DROP VIEW"
        }
        _ => return Err(SqlError::unsupported("this statement")),
    })
}

/// CREATE TYPE, ALTER TYPE and DROP TYPE.
fn change_type(
    catalog: &mut NewCatalog,
    change: &SchemaChange,
    rows: &mut Rows<'_, '_>,
) -> Result<&'static str, SqlError> {
    Ok(match change {
        SchemaChange::CreateType(draft) => {
            create_type(catalog, draft)?;
            if draft.is_domain() { "CREATE DOMAIN" } else { "CREATE TYPE" }
        }
        SchemaChange::DropType { domains, if_exists, cascade, names } => {
            if *domains {
                refuse_other_types(catalog, names)?;
            }
            drop_types(catalog, *if_exists, *cascade, names)?;
            if *domains { "DROP DOMAIN" } else { "DROP TYPE" }
        }
        SchemaChange::AlterType(alter) => {
            alter_type(catalog, alter, rows)?;
            "ALTER TYPE"
        }
        SchemaChange::AlterDomain(name, change) => {
            alter_domain(catalog, name, change, rows)?;
            "ALTER DOMAIN"
        }
        _ => return Err(SqlError::unsupported("this statement")),
    })
}

fn create_index_of(
    catalog: &mut NewCatalog,
    if_not_exists: bool,
    table: &str,
    draft: &IndexDraft,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let table = find_table(catalog, table)?;
    let name = draft.name.as_ref().map(|name| table.index_name(name));
    let known = name.is_some_and(|name| relation_exists(catalog, &name));
    if if_not_exists && known { Ok(()) } else { create_index(catalog, &table, draft, rows) }
}

fn stands_alone(call: &GovernanceCall) -> SqlError {
    let what = format!("entente.{} in a transaction block or among other statements", call.function);
    SqlError::unsupported(what).hint("Send it alone.")
}
