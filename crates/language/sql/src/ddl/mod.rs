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
mod checkpoint;
mod columns;
mod comments;
mod composite_types;
mod constraints;
mod counters;
mod create_as;
mod foreign_keys;
mod indexes;
mod names;
mod primary_key;
mod resolve;
mod roles;
mod routines;
mod rows;
mod schemas;
mod sequences;
mod tables;
mod triggers;
mod views;

use aggregates::{AggregateDrop, bind_create_aggregate, create_aggregate};
use alter::{TableChange, alter_table, bind_alter_table};
use checkpoint::ask_for_checkpoint;
use comments::{comment_on, forget_dropped};
use composite_types::{TypeDraft, bind_create_type, create_type, drop_types, settle};
use create_as::{TableOfQuery, bind_create_table_as, create_table_as};
use indexes::{IndexDraft, bind_create_index, create_index, drop_index};
use resolve::resolved;
use roles::change_roles;
use routines::{DropRoutine, bind_create_routine, create_routine};
pub(crate) use rows::Rows;
use schemas::{ChangeOfSchemas, bind_schema_statement};
use sequences::{change_sequence, drop_sequences};
use sqlparser::ast::{ObjectType, Statement};
use std::sync::Arc;
use syntax::names::table_name;
use syntax::parse::ParsedStatement;
use syntax::parse::comment::CommentOn;
use syntax::parse::governance::GovernanceCall;
use syntax::parse::role::RoleStatement;
use syntax::parse::sequence::SequenceStatement;
use tables::{TableDraft, bind_create_table, create_table, drop_tables};
use triggers::{TriggerChange, bind_trigger};
use types::{
    Catalog, CompositeTypes, Policy, Procedure, SearchPath, SqlError, SqlState, StatementResult, Table,
    TableId, UserAggregate, as_given, limits, object_name, schema_of, split_catalog_name,
};
use views::{ViewDraft, bind_create_view, create_view, drop_views};

/// A change of the catalog.
#[derive(Clone, Debug)]
pub(crate) enum SchemaChange {
    /// CREATE TABLE; the number is given when it runs.
    CreateTable {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The table.
        draft: Box<TableDraft>,
    },
    /// CREATE TABLE … AS.
    CreateTableAs(TableOfQuery),
    /// CREATE INDEX.
    CreateIndex {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Its table.
        table: String,
        /// The index.
        index: IndexDraft,
    },
    /// DROP INDEX.
    DropIndex {
        /// IF EXISTS.
        if_exists: bool,
        /// The indexes.
        names: Vec<String>,
    },
    /// ALTER TABLE.
    AlterTable {
        /// IF EXISTS.
        if_exists: bool,
        /// The table.
        name: String,
        /// What becomes of it, in order.
        changes: Vec<TableChange>,
    },
    /// DROP TABLE.
    DropTable {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The tables.
        names: Vec<String>,
    },
    /// CREATE VIEW.
    CreateView(ViewDraft),
    /// DROP VIEW.
    DropView {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The views.
        names: Vec<String>,
    },
    /// CREATE SEQUENCE and its kind.
    Sequence(Box<SequenceStatement>),
    /// DROP SEQUENCE.
    DropSequence {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The sequences.
        names: Vec<String>,
    },
    /// CREATE PROCEDURE and CREATE FUNCTION.
    CreateRoutine {
        /// OR REPLACE.
        or_replace: bool,
        /// False: the body may name what comes later.
        checks_body: bool,
        /// The procedure or function.
        procedure: Procedure,
    },
    /// DROP PROCEDURE and DROP FUNCTION.
    DropRoutine(DropRoutine),
    /// CREATE TYPE.
    CreateType(TypeDraft),
    /// DROP TYPE.
    DropType {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The types.
        names: Vec<String>,
    },
    /// CREATE AGGREGATE.
    CreateAggregate {
        /// OR REPLACE.
        or_replace: bool,
        /// The aggregate; the type of its result is known when it is created.
        aggregate: UserAggregate,
    },
    /// DROP AGGREGATE.
    DropAggregate(AggregateDrop),
    /// CREATE ROLE, GRANT and their kind.
    Role(RoleStatement),
    /// CREATE, ALTER and DROP TRIGGER.
    Trigger(TriggerChange),
    /// COMMENT ON.
    Comment(CommentOn),
    /// CHECKPOINT.
    Checkpoint,
    /// CREATE, ALTER and DROP SCHEMA.
    Schema(ChangeOfSchemas),
    /// `entente.approve` and its kind, which stand alone.
    Governance(Box<GovernanceCall>),
    /// One whose names are looked for by another search path than `public`.
    InSchemas(SearchPath, Box<SchemaChange>),
    /// One that names a type which an earlier change of the same script may make: bound when it is its turn.
    Later(Box<ParsedStatement>),
}

impl SchemaChange {
    /// Whether it runs a query, on the schema as it is before.
    pub fn runs_a_query(&self) -> bool {
        matches!(self.without_path().1, SchemaChange::CreateTableAs(_))
    }

    /// The search path, and the change itself.
    fn without_path(&self) -> (SearchPath, &SchemaChange) {
        match self {
            SchemaChange::InSchemas(path, change) => (path.clone(), change),
            change => (SearchPath::default(), change),
        }
    }

    /// Whether it makes a table.
    pub fn creates_table(&self) -> bool {
        match self.without_path().1 {
            SchemaChange::CreateTable { .. } | SchemaChange::CreateTableAs(_) => true,
            SchemaChange::Later(statement) => match statement.as_ref() {
                ParsedStatement::Sql(statement) => matches!(statement.as_ref(), Statement::CreateTable(_)),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether it is CHECKPOINT.
    pub fn is_checkpoint(&self) -> bool {
        matches!(self.without_path().1, SchemaChange::Checkpoint)
    }

    /// Whether it takes what depends on it along.
    fn cascades(&self) -> bool {
        match self {
            SchemaChange::DropTable { cascade, .. }
            | SchemaChange::DropView { cascade, .. }
            | SchemaChange::DropSequence { cascade, .. }
            | SchemaChange::DropType { cascade, .. } => *cascade,
            SchemaChange::Schema(change) => change.cascades(),
            _ => false,
        }
    }
}

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
    let statement = match statement {
        ParsedStatement::CreateRoutine(create) => return bind_create_routine(types, create).map(Some),
        ParsedStatement::CreateAggregate(create) => return bind_create_aggregate(types, create).map(Some),
        ParsedStatement::DropAggregate(drop) => {
            return AggregateDrop::bind(types, drop).map(|drop| Some(SchemaChange::DropAggregate(drop)));
        }
        ParsedStatement::CreateTableAs(create) => return bind_create_table_as(create).map(Some),
        ParsedStatement::Role(statement) => return Ok(Some(SchemaChange::Role(statement.as_ref().clone()))),
        ParsedStatement::Sequence(statement) => return Ok(Some(SchemaChange::Sequence(statement.clone()))),
        ParsedStatement::Trigger(statement) => {
            return bind_trigger(statement).map(|change| Some(SchemaChange::Trigger(change)));
        }
        ParsedStatement::Comment(comment) => {
            return Ok(Some(SchemaChange::Comment(comment.as_ref().clone())));
        }
        ParsedStatement::SetSchema(statement) => {
            let changes = vec![TableChange::SetSchema(statement.schema.clone())];
            let (if_exists, name) = (statement.if_exists, statement.table.clone());
            return Ok(Some(SchemaChange::AlterTable { if_exists, name, changes }));
        }
        ParsedStatement::Checkpoint => return Ok(Some(SchemaChange::Checkpoint)),
        ParsedStatement::Governance(call) => return Ok(Some(SchemaChange::Governance(call.clone()))),
        ParsedStatement::Do(_) => return Ok(None),
        ParsedStatement::Sql(statement) => statement.as_ref(),
    };
    if let Some(change) = bind_schema_statement(statement)? {
        return Ok(Some(change));
    }
    match statement {
        Statement::CreateTable(create) => bind_create_table(types, create).map(Some),
        Statement::AlterTable(alter) => bind_alter_table(types, alter),
        Statement::CreateType { name, representation } => {
            bind_create_type(types, name, representation.as_ref()).map(Some)
        }
        Statement::Drop { object_type: ObjectType::Type, if_exists, names, cascade, .. } => {
            let names = names.iter().map(table_name).collect::<Result<_, _>>()?;
            Ok(Some(SchemaChange::DropType { if_exists: *if_exists, cascade: *cascade, names }))
        }
        Statement::Drop {
            object_type: ObjectType::Table,
            if_exists,
            names,
            cascade,
            temporary: false,
            table: None,
            ..
        } => {
            let names = names.iter().map(table_name).collect::<Result<_, _>>()?;
            Ok(Some(SchemaChange::DropTable { if_exists: *if_exists, cascade: *cascade, names }))
        }
        Statement::CreateIndex(create) => {
            let (table, index) = bind_create_index(create)?;
            Ok(Some(SchemaChange::CreateIndex { if_not_exists: create.if_not_exists, table, index }))
        }
        Statement::Drop { object_type: ObjectType::Index, if_exists, names, cascade: false, .. } => {
            let names = names.iter().map(table_name).collect::<Result<_, _>>()?;
            Ok(Some(SchemaChange::DropIndex { if_exists: *if_exists, names }))
        }
        Statement::Drop { object_type: ObjectType::Sequence, if_exists, names, cascade, .. } => {
            let names = names.iter().map(table_name).collect::<Result<_, _>>()?;
            Ok(Some(SchemaChange::DropSequence { if_exists: *if_exists, cascade: *cascade, names }))
        }
        Statement::Drop { object_type: ObjectType::View, if_exists, names, cascade, .. } => {
            let names = names.iter().map(table_name).collect::<Result<_, _>>()?;
            Ok(Some(SchemaChange::DropView { if_exists: *if_exists, cascade: *cascade, names }))
        }
        Statement::Drop { object_type, .. } => Err(SqlError::unsupported(format_args!("DROP {object_type}"))),
        Statement::DropProcedure { if_exists, proc_desc, drop_behavior } => {
            DropRoutine::bind(types, *if_exists, false, proc_desc, drop_behavior.as_ref())
                .map(|drop| Some(SchemaChange::DropRoutine(drop)))
        }
        Statement::DropFunction(drop) => {
            DropRoutine::bind(types, drop.if_exists, true, &drop.func_desc, drop.drop_behavior.as_ref())
                .map(|drop| Some(SchemaChange::DropRoutine(drop)))
        }
        Statement::CreateView(create) => bind_create_view(create).map(Some),
        _ => Ok(None),
    }
}

/// A policy in its canonical text.
pub(crate) fn bind_policy(text: &str) -> Result<Option<String>, SqlError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let policy = Policy::parse(text).map_err(|error| {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("the endorsement policy cannot be: {error}"))
    })?;
    Ok(Some(policy.to_string()))
}

/// PostgreSQL's name for a constraint without one: `table_column_label`, cut to fit.
fn generated_name(table: &str, column: &str, label: &str) -> String {
    let room = limits::NAME_BYTES_MAX - label.len() - 1 - usize::from(!column.is_empty());
    let (mut first, mut second) = (table.len(), column.len());
    while first + second > room {
        if first > second { first -= 1 } else { second -= 1 }
    }
    let cut = |text: &str, length: usize| {
        let end = (0..=length).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text[..end].to_string()
    };
    let (table, column) = (cut(table, first), cut(column, second));
    if column.is_empty() { format!("{table}_{label}") } else { format!("{table}_{column}_{label}") }
}

/// The catalog after the changes, which the administrator of the organisation with this number makes; `None` where they
/// change nothing. Pushes a result for each.
///
/// # Errors
/// The first change that cannot be made: then none is.
pub(crate) fn change_catalog<'c>(
    before: &Catalog,
    changes: impl IntoIterator<Item = &'c SchemaChange>,
    organisation: u16,
    all: Rows<'_, '_>,
    results: &mut Vec<StatementResult>,
) -> Result<Option<Catalog>, SqlError> {
    change_all(before, changes, organisation, all, results)
        .map_err(|error| CompositeTypes::new(before).named_in(error))
}

fn change_all<'c>(
    before: &Catalog,
    changes: impl IntoIterator<Item = &'c SchemaChange>,
    organisation: u16,
    mut all: Rows<'_, '_>,
    results: &mut Vec<StatementResult>,
) -> Result<Option<Catalog>, SqlError> {
    let mut catalog = before.clone();
    let rows = &mut all;
    for change in changes {
        let (path, change) = change.without_path();
        let now;
        let change = match change {
            SchemaChange::Later(statement) => {
                let types = CompositeTypes::new(&catalog).with_search_path(&path);
                let bound = bind_change(&types, statement)?;
                now = bound.ok_or_else(|| SqlError::unsupported("this statement"))?;
                &now
            }
            change => change,
        };
        let change = &resolved(&catalog, &path, change)?;
        let previous = catalog.clone();
        let tag = match change {
            SchemaChange::CreateTable { if_not_exists, draft } => {
                create_table(&mut catalog, *if_not_exists, draft, rows)?;
                "CREATE TABLE"
            }
            SchemaChange::CreateTableAs(draft) => {
                let tag = create_table_as(&mut catalog, before, draft, rows)?;
                settle(&previous, &mut catalog, false)?;
                results.push(StatementResult { tag, ..StatementResult::default() });
                continue;
            }
            SchemaChange::CreateIndex { if_not_exists, table, index } => {
                let table = find_table(&catalog, table)?;
                let name = index.name.as_ref().map(|name| table.index_name(name));
                let known = name.is_some_and(|name| relation_exists(&catalog, &name));
                if !(*if_not_exists && known) {
                    create_index(&mut catalog, &table, index, rows)?;
                }
                "CREATE INDEX"
            }
            SchemaChange::DropIndex { if_exists, names } => {
                for name in names {
                    drop_index(&mut catalog, *if_exists, name)?;
                }
                "DROP INDEX"
            }
            SchemaChange::AlterTable { if_exists, name, changes } => {
                alter_table(&mut catalog, *if_exists, name, changes, rows)?;
                "ALTER TABLE"
            }
            SchemaChange::DropTable { if_exists, cascade, names } => {
                drop_tables(&mut catalog, *if_exists, *cascade, names)?;
                "DROP TABLE"
            }
            SchemaChange::CreateView(draft) => {
                create_view(&mut catalog, draft)?;
                "CREATE VIEW"
            }
            SchemaChange::DropView { if_exists, cascade, names } => {
                drop_views(&mut catalog, *if_exists, *cascade, names)?;
                "DROP VIEW"
            }
            SchemaChange::Sequence(statement) => change_sequence(&mut catalog, statement, rows)?,
            SchemaChange::DropSequence { if_exists, cascade, names } => {
                drop_sequences(&mut catalog, *if_exists, *cascade, names)?;
                "DROP SEQUENCE"
            }
            SchemaChange::CreateRoutine { or_replace, checks_body, procedure } => {
                create_routine(&mut catalog, *or_replace, *checks_body, procedure)?
            }
            SchemaChange::DropRoutine(drop) => drop.apply(&mut catalog)?,
            SchemaChange::Trigger(change) => change.apply(&mut catalog)?,
            SchemaChange::CreateAggregate { or_replace, aggregate } => {
                create_aggregate(&mut catalog, *or_replace, aggregate)?;
                "CREATE AGGREGATE"
            }
            SchemaChange::DropAggregate(drop) => {
                drop.apply(&mut catalog)?;
                "DROP AGGREGATE"
            }
            SchemaChange::CreateType(draft) => {
                create_type(&mut catalog, draft)?;
                "CREATE TYPE"
            }
            SchemaChange::DropType { if_exists, cascade, names } => {
                drop_types(&mut catalog, *if_exists, *cascade, names)?;
                "DROP TYPE"
            }
            SchemaChange::Schema(change) => change.apply(&mut catalog)?,
            SchemaChange::Governance(call) => {
                let what =
                    format!("entente.{} in a transaction block or among other statements", call.function);
                return Err(SqlError::unsupported(what).hint("Send it alone."));
            }
            SchemaChange::Comment(comment) => {
                comment_on(&mut catalog, comment)?;
                "COMMENT"
            }
            SchemaChange::Checkpoint => {
                ask_for_checkpoint(&mut catalog, rows.height())?;
                "CHECKPOINT"
            }
            SchemaChange::Later(_) | SchemaChange::InSchemas(..) => {
                return Err(SqlError::unsupported("this statement"));
            }
            SchemaChange::Role(statement) => change_roles(&mut catalog, statement, organisation)?,
        };
        settle(&previous, &mut catalog, change.cascades())?;
        results.push(StatementResult { tag: tag.to_string(), ..StatementResult::default() });
        forget_dropped(&mut catalog);
        catalog.roles = std::mem::take(&mut catalog.roles).without_dropped(&catalog);
    }
    if catalog == *before {
        return Ok(None);
    }
    all.finish(&catalog);
    catalog.version += 1;
    Ok(Some(catalog))
}

/// A number that no table and no index has had.
fn take_number(catalog: &mut Catalog) -> Result<u32, SqlError> {
    let number = catalog.next_table;
    if number & !TableId::FIRST_TEMPORARY.0 >= TableId::NUMBERS_MAX - 1 {
        let message = "a ledger numbers at most 2^29 tables and indexes in its life";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    catalog.next_table += 1;
    Ok(number)
}

fn find_table(catalog: &Catalog, name: &str) -> Result<Arc<Table>, SqlError> {
    if catalog.views.contains_key(name) || catalog.sequences.contains_key(name) {
        return Err(SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a table", object_name(name))));
    }
    catalog.tables.get(name).cloned().ok_or_else(|| {
        let message = format!("relation \"{}\" does not exist", as_given(name));
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })
}

/// Refuses a name that a relation has.
fn check_free(catalog: &Catalog, name: &str) -> Result<(), SqlError> {
    if relation_exists(catalog, name) {
        let message = format!("relation \"{}\" already exists", object_name(name));
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    Ok(())
}

/// Whether a table, a view, a sequence or an index has this name; that of a primary key counts.
fn relation_exists(catalog: &Catalog, name: &str) -> bool {
    let (schema, object) = split_catalog_name(name);
    let has_index = |table: &Arc<Table>| {
        let has_key = !table.primary_key.is_empty() && table.primary_key_name == object;
        let mut indexes = catalog.indexes_of(table.id).iter();
        (has_key || indexes.any(|index| index.name == object)) && schema_of(&table.name) == schema
    };
    catalog.tables.contains_key(name)
        || catalog.views.contains_key(name)
        || catalog.sequences.contains_key(name)
        || catalog.types.contains_key(name)
        || catalog.tables.values().any(has_index)
}
