//! Schema changes: CREATE and DROP of tables; those of procedures and functions stand in `ddl_routine`.

use crate::ddl_routine::{DropRoutine, bind_create_routine, create_routine};
use crate::expression::bind_data_type;
use crate::parse::ParsedStatement;
use crate::routines::Routines;
use crate::scope::name_of;
use crate::statement::table_name;
use crate::table::TablePlan;
use sqlparser::ast::{
    self, ColumnOption, CreateTable, CreateTableOptions, Expr, Ident, IndexColumn, ObjectType, Statement,
    TableConstraint,
};
use std::sync::Arc;
use types::{
    Catalog, Check, Column, Policy, Procedure, SqlError, SqlState, StatementResult, Table, TableId, limits,
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
            temporary: false,
            table: None,
            ..
        } => {
            let names = names.iter().map(table_name).collect::<Result<_, _>>()?;
            Ok(Some(SchemaChange::DropTable { if_exists: *if_exists, names }))
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

/// Nothing but a table's endorsement policy can be altered; `None` where it is something else.
fn bind_alter_table(alter: &ast::AlterTable) -> Result<Option<SchemaChange>, SqlError> {
    match alter.operations.as_slice() {
        [ast::AlterTableOperation::SetOptionsParens { options }] => {
            let (name, policy) = (table_name(&alter.name)?, table_endorsement(options)?);
            Ok(Some(SchemaChange::SetTableEndorsement { name, policy }))
        }
        _ => Ok(None),
    }
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
            TableConstraint::Unique(_) | TableConstraint::UniqueUsingIndex(_) => {
                Err(SqlError::unsupported("UNIQUE").hint("Make it the primary key, or a table of its own."))
            }
            TableConstraint::ForeignKey(_) => Err(SqlError::unsupported("FOREIGN KEY")
                .hint("Check in the procedure that the other row exists.")),
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
        ColumnOption::Unique(_) => {
            SqlError::unsupported("UNIQUE").hint("Make it the primary key, or a table of its own.")
        }
        ColumnOption::ForeignKey(_) => {
            SqlError::unsupported("FOREIGN KEY").hint("Check in the procedure that the other row exists.")
        }
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
    results: &mut Vec<StatementResult>,
) -> Result<Option<Catalog>, SqlError> {
    let mut catalog = before.clone();
    for change in changes {
        let tag = match change {
            SchemaChange::CreateTable { if_not_exists, table, unnamed_checks } => {
                create_table(&mut catalog, *if_not_exists, table, unnamed_checks)?;
                "CREATE TABLE"
            }
            SchemaChange::SetTableEndorsement { name, policy } => {
                let Some(table) = catalog.tables.get_mut(name) else {
                    let message = format!("relation \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
                };
                Arc::make_mut(table).endorsement = policy.clone();
                "ALTER TABLE"
            }
            SchemaChange::DropTable { if_exists, names } => {
                for name in names {
                    if catalog.tables.remove(name).is_none() && !if_exists {
                        let message = format!("table \"{name}\" does not exist");
                        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
                    }
                }
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
) -> Result<(), SqlError> {
    if catalog.tables.contains_key(&table.name) {
        if if_not_exists {
            return Ok(());
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
    TablePlan::new(&table, &routines)?;
    catalog.next_table = catalog.next_table.checked_add(1).ok_or_else(|| {
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a ledger numbers at most 2^32 tables in its life")
    })?;
    catalog.tables.insert(table.name.clone(), Arc::new(table));
    Ok(())
}

/// Gives the CHECKs without a name PostgreSQL's: with the column where they look at one only.
fn name_checks(table: &mut Table, unnamed: &[String], routines: &Routines) -> Result<(), SqlError> {
    let bare = TablePlan::new(&Table { checks: Vec::new(), ..table.clone() }, routines)?;
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
