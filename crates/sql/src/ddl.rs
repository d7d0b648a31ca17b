//! Schema changes: CREATE, ALTER and DROP of tables, indexes and constraints; those of procedures and functions stand
//! in `ddl_routine`.

mod foreign_keys;
mod indexes;

use crate::ddl_routine::{DropRoutine, bind_create_routine, create_routine};
use crate::execution::Execution;
use crate::expression::{Environment, bind_data_type};
use crate::parse::ParsedStatement;
use crate::routines::Routines;
use crate::scope::name_of;
use crate::statement::table_name;
use crate::table::TablePlan;
use foreign_keys::{ForeignKeyDraft, bind_foreign_key, create_foreign_key, remove_foreign_keys};
use indexes::{IndexDraft, bind_create_index, bind_unique, create_index, drop_index, remove_index};
use sqlparser::ast::{
    self, AlterTableOperation, ColumnOption, CreateTable, CreateTableOptions, Expr, Ident, IndexColumn,
    ObjectType, Statement, TableConstraint,
};
use state::KeyRange;
use state::Snapshot;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{
    Catalog, Check, Column, Policy, Procedure, Row, SqlError, SqlState, StatementResult, Table, TableId,
    limits,
};

/// A change of the catalog.
#[derive(Debug)]
pub(crate) enum SchemaChange {
    /// CREATE TABLE; the number is given when it runs.
    CreateTable {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The table.
        table: Table,
        /// CHECKs without a name yet.
        unnamed_checks: Vec<String>,
        /// UNIQUE constraints.
        unique: Vec<IndexDraft>,
        /// FOREIGN KEY constraints.
        foreign_keys: Vec<ForeignKeyDraft>,
    },
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
    /// ALTER TABLE … ADD CONSTRAINT.
    AddConstraint {
        /// The table.
        table: String,
        /// The constraint.
        constraint: Box<NewConstraint>,
    },
    /// ALTER TABLE … DROP CONSTRAINT.
    DropConstraint {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The table.
        table: String,
        /// The constraint.
        name: String,
    },
    /// ALTER TABLE … SET (endorsement_policy = …).
    SetTableEndorsement {
        /// The table.
        name: String,
        /// The policy; `None`: none any more.
        policy: Option<String>,
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
    /// CREATE PROCEDURE and CREATE FUNCTION.
    CreateRoutine {
        /// OR REPLACE.
        or_replace: bool,
        /// The procedure or function.
        procedure: Procedure,
    },
    /// DROP PROCEDURE and DROP FUNCTION.
    DropRoutine(DropRoutine),
}

/// A constraint that is added to a table.
#[derive(Debug)]
pub(crate) enum NewConstraint {
    /// CHECK, with its name if it has one.
    Check(Option<String>, String),
    /// UNIQUE
    Unique(IndexDraft),
    /// FOREIGN KEY
    ForeignKey(ForeignKeyDraft),
}

/// The rows of the tables that a schema change looks at.
pub(crate) struct Rows<'e, 'x>(pub &'e mut Execution<'x>);

impl<'x> Rows<'_, 'x> {
    /// The state that is changed.
    fn snapshot(&self) -> &'x dyn Snapshot {
        self.0.snapshot()
    }

    /// Visits every row of a table, at a step each.
    fn visit(
        &mut self,
        table: TableId,
        visit: &mut dyn FnMut(&Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let snapshot = self.snapshot();
        let mut result = Ok(());
        snapshot.scan(table, &KeyRange::ALL, false, &mut |_, row| {
            result = self.0.charge(1).and_then(|()| visit(row));
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        result
    }
}

/// The change that a statement is; `None` where it is none.
///
/// # Errors
/// What is wrong with it; `0A000` names what is not supported.
pub(crate) fn bind_schema_change(statement: &ParsedStatement) -> Result<Option<SchemaChange>, SqlError> {
    let statement = match statement {
        ParsedStatement::CreateRoutine(create) => return bind_create_routine(create).map(Some),
        ParsedStatement::Do(_) => return Ok(None),
        ParsedStatement::Sql(statement) => statement.as_ref(),
    };
    match statement {
        Statement::CreateTable(create) => bind_create_table(create).map(Some),
        Statement::AlterTable(alter) => bind_alter_table(alter),
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
        Statement::Drop { object_type, .. } => Err(SqlError::unsupported(format_args!("DROP {object_type}"))),
        Statement::DropProcedure { if_exists, proc_desc, .. } => {
            DropRoutine::bind(*if_exists, false, proc_desc).map(|drop| Some(SchemaChange::DropRoutine(drop)))
        }
        Statement::DropFunction(drop) => DropRoutine::bind(drop.if_exists, true, &drop.func_desc)
            .map(|drop| Some(SchemaChange::DropRoutine(drop))),
        Statement::CreateView(_) => Err(SqlError::unsupported("CREATE VIEW")),
        _ => Ok(None),
    }
}

/// What of a table is altered; `None` where it is something that cannot be.
fn bind_alter_table(alter: &ast::AlterTable) -> Result<Option<SchemaChange>, SqlError> {
    let table = || table_name(&alter.name);
    Ok(Some(match alter.operations.as_slice() {
        [AlterTableOperation::SetOptionsParens { options }] => {
            SchemaChange::SetTableEndorsement { name: table()?, policy: table_endorsement(options)? }
        }
        [AlterTableOperation::AddConstraint { constraint, not_valid: false }] => {
            let constraint = Box::new(bind_new_constraint(constraint)?);
            SchemaChange::AddConstraint { table: table()?, constraint }
        }
        [AlterTableOperation::DropConstraint { if_exists, name, drop_behavior }] => {
            SchemaChange::DropConstraint {
                if_exists: *if_exists,
                cascade: matches!(drop_behavior, Some(ast::DropBehavior::Cascade)),
                table: table()?,
                name: name_of(name)?,
            }
        }
        _ => return Ok(None),
    }))
}

fn bind_new_constraint(constraint: &TableConstraint) -> Result<NewConstraint, SqlError> {
    Ok(match constraint {
        TableConstraint::Unique(unique) => NewConstraint::Unique(bind_unique(unique)?),
        TableConstraint::ForeignKey(foreign_key) => {
            NewConstraint::ForeignKey(bind_foreign_key(foreign_key, None)?)
        }
        TableConstraint::Check(check) if check.enforced != Some(false) => {
            NewConstraint::Check(check.name.as_ref().map(name_of).transpose()?, check.expr.to_string())
        }
        TableConstraint::PrimaryKey(_) => {
            return Err(SqlError::unsupported("PRIMARY KEY on a table that exists")
                .hint("Say PRIMARY KEY in CREATE TABLE; a unique index serves a table that exists."));
        }
        other => return Err(SqlError::unsupported(format_args!("the constraint {other}"))),
    })
}

/// What `endorsement_policy` says among a table's options; an empty text means none.
fn table_endorsement(options: &[ast::SqlOption]) -> Result<Option<String>, SqlError> {
    let [ast::SqlOption::KeyValue { key, value: Expr::Value(value) }] = options else {
        return Err(SqlError::unsupported("an option of a table but endorsement_policy"));
    };
    match (name_of(key)?.as_str(), &value.value) {
        ("endorsement_policy", ast::Value::SingleQuotedString(text)) => bind_policy(text),
        (other, _) => Err(SqlError::unsupported(format_args!("the option {other} of a table"))
            .hint("endorsement_policy = 'policy' says who must endorse what writes to it.")),
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

fn bind_create_table(create: &CreateTable) -> Result<SchemaChange, SqlError> {
    refuse_table_forms(create)?;
    let name = table_name(&create.name)?;
    if create.columns.len() > limits::COLUMNS_MAX {
        let message = format!("tables can have at most {} columns (COLUMNS_MAX)", limits::COLUMNS_MAX);
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    let mut draft = TableDraft {
        table: Table {
            id: TableId(0),
            primary_key_name: generated_name(&name, "", "pkey"),
            name,
            columns: Vec::with_capacity(create.columns.len()),
            primary_key: Vec::new(),
            checks: Vec::new(),
            endorsement: match &create.table_options {
                CreateTableOptions::With(options) => table_endorsement(options)?,
                _ => None,
            },
        },
        unnamed_checks: Vec::new(),
        unique: Vec::new(),
        foreign_keys: Vec::new(),
    };
    for column in &create.columns {
        draft.add_column(column)?;
    }
    for constraint in &create.constraints {
        draft.add_constraint(constraint)?;
    }
    for ordinal in &draft.table.primary_key {
        draft.table.columns[usize::from(*ordinal)].not_null = true;
    }
    Ok(SchemaChange::CreateTable {
        if_not_exists: create.if_not_exists,
        table: draft.table,
        unnamed_checks: draft.unnamed_checks,
        unique: draft.unique,
        foreign_keys: draft.foreign_keys,
    })
}

fn refuse_table_forms(create: &CreateTable) -> Result<(), SqlError> {
    let refused = [
        (create.temporary, "CREATE TEMPORARY TABLE"),
        (create.or_replace, "CREATE OR REPLACE TABLE"),
        (create.query.is_some(), "CREATE TABLE AS"),
        (create.like.is_some(), "CREATE TABLE … LIKE"),
        (create.inherits.is_some(), "INHERITS"),
        (create.partition_by.is_some() || create.partition_of.is_some(), "PARTITION"),
        (create.on_commit.is_some(), "ON COMMIT"),
        (
            !matches!(create.table_options, CreateTableOptions::None | CreateTableOptions::With(_)),
            "an option of CREATE TABLE",
        ),
        (
            create.external
                || create.transient
                || create.volatile
                || create.clone.is_some()
                || create.primary_key.is_some()
                || create.order_by.is_some()
                || create.without_rowid
                || create.comment.is_some()
                || create.strict,
            "this form of CREATE TABLE",
        ),
    ];
    match refused.into_iter().find(|(found, _)| *found) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}

/// A table while its definition is read.
struct TableDraft {
    table: Table,
    /// Conditions of the CHECKs without a name.
    unnamed_checks: Vec<String>,
    unique: Vec<IndexDraft>,
    foreign_keys: Vec<ForeignKeyDraft>,
}

impl TableDraft {
    fn add_column(&mut self, definition: &ast::ColumnDef) -> Result<(), SqlError> {
        let name = name_of(&definition.name)?;
        if self.table.ordinal(&name).is_some() {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let data_type = bind_data_type(&definition.data_type)?;
        let ordinal = self.table.columns.len() as u16;
        self.table.columns.push(Column { name: name.clone(), data_type, not_null: false, default: None });
        let mut nullable = None;
        for option in &definition.options {
            match &option.option {
                ColumnOption::Null => self.set_nullable(&name, &mut nullable, true)?,
                ColumnOption::NotNull => self.set_nullable(&name, &mut nullable, false)?,
                ColumnOption::Default(expr) => {
                    let column = &mut self.table.columns[usize::from(ordinal)];
                    if column.default.replace(expr.to_string()).is_some() {
                        let message = format!(
                            "multiple default values specified for column \"{name}\" of table \"{}\"",
                            self.table.name
                        );
                        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                    }
                }
                ColumnOption::PrimaryKey(key) => {
                    refuse_key_forms(&key.characteristics)?;
                    self.set_primary_key(vec![ordinal], option.name.as_ref().or(key.name.as_ref()))?;
                }
                ColumnOption::Check(check) => {
                    self.add_check(check, option.name.as_ref().or(check.name.as_ref()))?;
                }
                ColumnOption::Unique(unique) => {
                    let mut draft = bind_unique(unique)?;
                    draft.columns = vec![name.clone()];
                    if let Some(constraint) = &option.name {
                        draft.name = Some(name_of(constraint)?);
                    }
                    self.unique.push(draft);
                }
                ColumnOption::ForeignKey(foreign_key) => {
                    let mut draft = bind_foreign_key(foreign_key, Some(&name))?;
                    if let Some(constraint) = &option.name {
                        draft.name = Some(name_of(constraint)?);
                    }
                    self.foreign_keys.push(draft);
                }
                other => refuse_column_option(other)?,
            }
        }
        self.table.columns[usize::from(ordinal)].not_null = nullable == Some(false);
        Ok(())
    }

    fn set_nullable(&self, column: &str, known: &mut Option<bool>, nullable: bool) -> Result<(), SqlError> {
        if known.replace(nullable).is_some_and(|known| known != nullable) {
            let message = format!(
                "conflicting NULL/NOT NULL declarations for column \"{column}\" of table \"{}\"",
                self.table.name
            );
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        Ok(())
    }

    fn add_constraint(&mut self, constraint: &TableConstraint) -> Result<(), SqlError> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                refuse_key_forms(&key.characteristics)?;
                let mut ordinals = Vec::with_capacity(key.columns.len());
                for column in &key.columns {
                    ordinals.push(self.key_column(column, &ordinals)?);
                }
                self.set_primary_key(ordinals, key.name.as_ref())
            }
            TableConstraint::Check(check) => self.add_check(check, check.name.as_ref()),
            TableConstraint::Unique(unique) => {
                self.unique.push(bind_unique(unique)?);
                Ok(())
            }
            TableConstraint::ForeignKey(foreign_key) => {
                self.foreign_keys.push(bind_foreign_key(foreign_key, None)?);
                Ok(())
            }
            other => Err(SqlError::unsupported(format_args!("the constraint {other}"))),
        }
    }

    fn key_column(&self, column: &IndexColumn, before: &[u16]) -> Result<u16, SqlError> {
        let Expr::Identifier(ident) = &column.column.expr else {
            return Err(SqlError::unsupported("an expression in PRIMARY KEY"));
        };
        let name = name_of(ident)?;
        let Some(ordinal) = self.table.ordinal(&name) else {
            let message = format!("column \"{name}\" named in key does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if before.contains(&(ordinal as u16)) {
            let message = format!("column \"{name}\" appears twice in primary key constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        Ok(ordinal as u16)
    }

    fn set_primary_key(&mut self, ordinals: Vec<u16>, name: Option<&Ident>) -> Result<(), SqlError> {
        if !self.table.primary_key.is_empty() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", self.table.name);
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        self.table.primary_key = ordinals;
        if let Some(name) = name {
            self.table.primary_key_name = name_of(name)?;
        }
        Ok(())
    }

    fn add_check(&mut self, check: &ast::CheckConstraint, name: Option<&Ident>) -> Result<(), SqlError> {
        if check.enforced == Some(false) {
            return Err(SqlError::unsupported("NOT ENFORCED"));
        }
        let condition = check.expr.to_string();
        let Some(name) = name else {
            self.unnamed_checks.push(condition);
            return Ok(());
        };
        let name = name_of(name)?;
        if self.table.checks.iter().any(|known| known.name == name) {
            let message = format!("check constraint \"{name}\" already exists");
            return Err(SqlError::new(SqlState(*b"42710"), message));
        }
        self.table.checks.push(Check { name, condition });
        Ok(())
    }
}

fn refuse_key_forms(characteristics: &Option<ast::ConstraintCharacteristics>) -> Result<(), SqlError> {
    match characteristics {
        None => Ok(()),
        Some(_) => Err(SqlError::unsupported("DEFERRABLE")),
    }
}

fn refuse_column_option(option: &ColumnOption) -> Result<(), SqlError> {
    Err(match option {
        ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
            SqlError::unsupported("GENERATED").hint("Compute the value in the procedure that writes it.")
        }
        ColumnOption::Collation(name) if matches!(name.to_string().trim_matches('"'), "C" | "POSIX") => {
            return Ok(());
        }
        ColumnOption::Collation(_) => SqlError::unsupported("COLLATE").hint("Text compares by bytes."),
        other => SqlError::unsupported(format_args!("the column option {other}")),
    })
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

/// The catalog after the changes; `None` where they change nothing. Pushes a result for each.
///
/// # Errors
/// The first change that cannot be made: then none is.
pub(crate) fn change_catalog<'c>(
    before: &Catalog,
    changes: impl IntoIterator<Item = &'c SchemaChange>,
    rows: &mut Rows<'_, '_>,
    results: &mut Vec<StatementResult>,
) -> Result<Option<Catalog>, SqlError> {
    let mut catalog = before.clone();
    for change in changes {
        let tag = match change {
            SchemaChange::CreateTable { if_not_exists, table, unnamed_checks, unique, foreign_keys } => {
                if create_table(&mut catalog, *if_not_exists, table, unnamed_checks)? {
                    let table = catalog.tables[&table.name].clone();
                    for draft in unique {
                        create_index(&mut catalog, &table, draft, rows)?;
                    }
                    for draft in foreign_keys {
                        create_foreign_key(&mut catalog, &table, draft, rows)?;
                    }
                    // Indexes bind with the table.
                    TablePlan::new(&table, &catalog, &Routines::new(&catalog))?;
                }
                "CREATE TABLE"
            }
            SchemaChange::CreateIndex { if_not_exists, table, index } => {
                let table = find_table(&catalog, table)?;
                let known = index.name.as_ref().is_some_and(|name| relation_exists(&catalog, name));
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
            SchemaChange::AddConstraint { table, constraint } => {
                let table = find_table(&catalog, table)?;
                match constraint.as_ref() {
                    NewConstraint::Unique(draft) => create_index(&mut catalog, &table, draft, rows)?,
                    NewConstraint::ForeignKey(draft) => {
                        create_foreign_key(&mut catalog, &table, draft, rows)?;
                    }
                    NewConstraint::Check(name, condition) => {
                        add_check(&mut catalog, &table, name.as_deref(), condition, rows)?;
                    }
                }
                "ALTER TABLE"
            }
            SchemaChange::DropConstraint { if_exists, cascade, table, name } => {
                let table = find_table(&catalog, table)?;
                drop_constraint(&mut catalog, &table, name, *if_exists, *cascade)?;
                "ALTER TABLE"
            }
            SchemaChange::SetTableEndorsement { name, policy } => {
                let Some(table) = catalog.tables.get_mut(name) else {
                    let message = format!("relation \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
                };
                Arc::make_mut(table).endorsement = policy.clone();
                "ALTER TABLE"
            }
            SchemaChange::DropTable { if_exists, cascade, names } => {
                drop_tables(&mut catalog, *if_exists, *cascade, names)?;
                "DROP TABLE"
            }
            SchemaChange::CreateRoutine { or_replace, procedure } => {
                create_routine(&mut catalog, *or_replace, procedure)?
            }
            SchemaChange::DropRoutine(drop) => drop.apply(&mut catalog)?,
        };
        results.push(StatementResult { tag: tag.to_string(), ..StatementResult::default() });
    }
    if catalog == *before {
        return Ok(None);
    }
    catalog.version += 1;
    Ok(Some(catalog))
}

fn create_table(
    catalog: &mut Catalog,
    if_not_exists: bool,
    table: &Table,
    unnamed_checks: &[String],
) -> Result<bool, SqlError> {
    if relation_exists(catalog, &table.name) {
        if if_not_exists && catalog.tables.contains_key(&table.name) {
            return Ok(false);
        }
        let message = format!("relation \"{}\" already exists", table.name);
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    if catalog.tables.len() >= limits::TABLES_MAX {
        let message = format!("a ledger has at most {} tables (TABLES_MAX)", limits::TABLES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let mut table = table.clone();
    let routines = Routines::new(catalog);
    name_checks(&mut table, unnamed_checks, &routines)?;
    table.id = TableId(catalog.next_table);
    // Binds defaults and checks: what is wrong in them is said now.
    TablePlan::new(&table, catalog, &routines)?;
    take_number(catalog)?;
    catalog.tables.insert(table.name.clone(), Arc::new(table));
    Ok(true)
}

/// A number that no table and no index has had.
fn take_number(catalog: &mut Catalog) -> Result<u32, SqlError> {
    let number = catalog.next_table;
    if number >= TableId::NUMBERS_MAX {
        let message = "a ledger numbers at most 2^30 tables and indexes in its life";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    catalog.next_table += 1;
    Ok(number)
}

fn find_table(catalog: &Catalog, name: &str) -> Result<Arc<Table>, SqlError> {
    catalog.tables.get(name).cloned().ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
    })
}

/// Whether a table or an index has this name; that of a primary key counts.
fn relation_exists(catalog: &Catalog, name: &str) -> bool {
    let has_key = |table: &Arc<Table>| !table.primary_key.is_empty() && table.primary_key_name == name;
    catalog.tables.contains_key(name)
        || catalog.tables.values().any(has_key)
        || catalog.indexes.values().flatten().any(|index| index.name == name)
}

/// Whether a constraint of a table has this name.
fn constraint_exists(catalog: &Catalog, table: &Table, name: &str) -> bool {
    table.checks.iter().any(|check| check.name == name)
        || (!table.primary_key.is_empty() && table.primary_key_name == name)
        || catalog.indexes_of(table.id).iter().any(|index| index.constraint && index.name == name)
        || catalog.foreign_keys_of(table.id).iter().any(|foreign_key| foreign_key.name == name)
}

fn drop_tables(
    catalog: &mut Catalog,
    if_exists: bool,
    cascade: bool,
    names: &[String],
) -> Result<(), SqlError> {
    let mut dropped: Vec<Arc<Table>> = Vec::with_capacity(names.len());
    for name in names {
        match catalog.tables.get(name) {
            Some(table) => dropped.push(table.clone()),
            None if if_exists => {}
            None => {
                let message = format!("table \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
        }
    }
    let ids: Vec<TableId> = dropped.iter().map(|table| table.id).collect();
    for table in &dropped {
        if !cascade {
            foreign_keys::refuse_referenced(catalog, table, &ids)?;
        }
        catalog.tables.remove(&table.name);
        catalog.indexes.remove(&table.id);
    }
    remove_foreign_keys(catalog, |child, foreign_key| {
        ids.contains(&child) || ids.contains(&foreign_key.parent)
    });
    Ok(())
}

/// ALTER TABLE … ADD CHECK, which every row must keep.
fn add_check(
    catalog: &mut Catalog,
    table: &Arc<Table>,
    name: Option<&str>,
    condition: &str,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let mut new = Table::clone(table);
    let routines = Routines::new(catalog);
    match name {
        None => name_checks(&mut new, &[condition.to_string()], &routines)?,
        Some(name) if constraint_exists(catalog, table, name) => {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
            return Err(SqlError::new(SqlState(*b"42710"), message));
        }
        Some(name) => {
            new.checks.push(Check { name: name.to_string(), condition: condition.to_string() });
            new.checks.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    let plan = TablePlan::new(&new, catalog, &routines)?;
    let added = plan.checks.iter().find(|check| table.checks.iter().all(|known| known.name != check.name));
    if let Some(check) = added {
        rows.visit(table.id, &mut |row| match check.condition.truth(&Environment::new(row, &[], 0))? {
            Some(false) => {
                let message = format!(
                    "check constraint \"{}\" of relation \"{}\" is violated by some row",
                    check.name, table.name
                );
                Err(SqlError::new(SqlState::CHECK_VIOLATION, message))
            }
            _ => Ok(()),
        })?;
    }
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    Ok(())
}

fn drop_constraint(
    catalog: &mut Catalog,
    table: &Arc<Table>,
    name: &str,
    if_exists: bool,
    cascade: bool,
) -> Result<(), SqlError> {
    if table.checks.iter().any(|check| check.name == name) {
        let mut new = Table::clone(table);
        new.checks.retain(|check| check.name != name);
        catalog.tables.insert(new.name.clone(), Arc::new(new));
        return Ok(());
    }
    if catalog.foreign_keys_of(table.id).iter().any(|foreign_key| foreign_key.name == name) {
        remove_foreign_keys(catalog, |child, foreign_key| child == table.id && foreign_key.name == name);
        return Ok(());
    }
    let indexes = catalog.indexes_of(table.id);
    if let Some(index) = indexes.iter().find(|index| index.constraint && index.name == name).cloned() {
        if cascade {
            remove_foreign_keys(catalog, |_, foreign_key| foreign_key.index == Some(index.number));
        }
        let what = format!("constraint {name} on table {}", table.name);
        foreign_keys::refuse_needed(catalog, &index, &what, &format!("index {name}"))?;
        remove_index(catalog, table.id, &index);
        return Ok(());
    }
    if !table.primary_key.is_empty() && table.primary_key_name == name {
        return Err(SqlError::unsupported("dropping the primary key")
            .hint("Make a table with another key, and insert the rows there."));
    }
    if if_exists {
        return Ok(());
    }
    let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
    Err(SqlError::new(SqlState(*b"42704"), message))
}

/// Gives the CHECKs without a name PostgreSQL's: with the column where they look at one only.
fn name_checks(table: &mut Table, unnamed: &[String], routines: &Routines) -> Result<(), SqlError> {
    let bare = Table { checks: Vec::new(), ..table.clone() };
    let bare = TablePlan::new(&bare, &Catalog::default(), routines)?;
    for condition in unnamed {
        let bound = crate::table::bind_check(&bare, condition, routines)?;
        let columns: Vec<&Column> = (0..table.columns.len())
            .filter(|ordinal| {
                bound.any(&mut |expression| {
                    matches!(expression.kind, crate::expression::Kind::Column(column) if usize::from(column) == *ordinal)
                })
            })
            .map(|ordinal| &table.columns[ordinal])
            .collect();
        let column = match columns.as_slice() {
            [only] => only.name.clone(),
            _ => String::new(),
        };
        let candidates = (0..).map(|number| {
            let label = if number == 0 { "check".to_string() } else { format!("check{number}") };
            generated_name(&table.name, &column, &label)
        });
        let free = |name: &String| !table.checks.iter().any(|known| known.name == *name);
        let Some(name) = candidates.into_iter().find(free) else { continue };
        table.checks.push(Check { name, condition: condition.clone() });
    }
    table.checks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}
