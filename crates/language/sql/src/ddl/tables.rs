//! CREATE TABLE and DROP TABLE.

use crate::ddl::constraints::name_checks;
use crate::ddl::deferral::bind_deferral;
use crate::ddl::endorsement::table_endorsement;
use crate::ddl::foreign_keys::{
    ForeignKeyDraft, bind_foreign_key, create_foreign_key, refuse_referenced, remove_foreign_keys,
};
use crate::ddl::index_drafts::{IndexDraft, bind_unique};
use crate::ddl::indexes::{check_ordered, create_index};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::partition_bounds::{PartitionKeyDraft, bind_partition_key};
use crate::ddl::relations::{check_type_free, generated_name, relation_exists, take_number};
use crate::ddl::rows::Rows;
use crate::ddl::sequences::{ColumnSequence, create_owned, drop_owned};
use crate::ddl::views::drop_dependents;
use plan::expression::bind_type_or_domain;
use plan::table::TablePlan;
use sqlparser::ast::{
    self, ColumnOption, CreateTable, CreateTableLikeDefaults, CreateTableLikeKind, CreateTableOptions, Expr,
    GeneratedAs, Ident, IndexColumn, SequenceOptions, TableConstraint,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::sequence::CountingOptions;
use types::{
    Catalog, Check, Column, CompositeTypes, DataType, Deferral, ExecutionVersion, Generated, Partitioning,
    SqlError, SqlState, Table, TableId, limits, object_name,
};

pub(super) fn bind_create_table(
    types: &CompositeTypes,
    create: &CreateTable,
) -> Result<TableDraft, SqlError> {
    let name = table_name(&create.name)?;
    if create.columns.len() > limits::COLUMNS_MAX {
        let message = format!("tables can have at most {} columns (COLUMNS_MAX)", limits::COLUMNS_MAX);
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    let endorsement = match &create.table_options {
        CreateTableOptions::With(options) => table_endorsement(options)?,
        _ => None,
    };
    let mut draft = TableDraft::empty(&name, endorsement);
    if let Some(CreateTableLikeKind::Parenthesized(like)) = &create.like {
        let defaults = matches!(like.defaults, Some(CreateTableLikeDefaults::Including));
        draft.like = Some((table_name(&like.name)?, defaults));
    }
    for column in &create.columns {
        draft.add_column(types, column)?;
    }
    for constraint in &create.constraints {
        draft.add_constraint(constraint, types.rules())?;
    }
    draft.partition_by = create.partition_by.as_deref().map(bind_partition_key).transpose()?;
    for ordinal in draft.table.primary_key.iter().chain(&draft.deferrable_key) {
        draft.table.columns[usize::from(*ordinal)].not_null = true;
    }
    Ok(draft)
}

/// Refuses what of CREATE TABLE is not supported.
///
/// # Errors
/// `0A000`
pub(super) fn refuse_table_forms(create: &CreateTable, rules: ExecutionVersion) -> Result<(), SqlError> {
    let partitioned = create.partition_by.is_some() || create.partition_of.is_some();
    let refused = [
        (create.temporary, "CREATE TEMPORARY TABLE"),
        (create.or_replace, "CREATE OR REPLACE TABLE"),
        (matches!(create.like, Some(CreateTableLikeKind::Plain(_))), "this form of LIKE"),
        (create.inherits.is_some(), "INHERITS"),
        (partitioned && rules < ExecutionVersion::V10, "PARTITION"),
        (
            !matches!(create.table_options, CreateTableOptions::None | CreateTableOptions::With(_)),
            "an option of CREATE TABLE",
        ),
        (
            create.external
                || create.query.is_some()
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
        None if create.on_commit.is_some() => {
            let message = "ON COMMIT can only be used on temporary tables";
            Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
        }
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}

/// A table as a statement describes it; its number is given when it is made.
#[derive(Clone, Debug)]
pub(crate) struct TableDraft {
    pub(super) table: Table,
    /// Conditions of the CHECKs without a name.
    pub(super) unnamed_checks: Vec<String>,
    pub(super) unique: Vec<IndexDraft>,
    pub(super) foreign_keys: Vec<ForeignKeyDraft>,
    /// Ordinals of a primary key that can be deferred, which is one of `unique`.
    pub(super) deferrable_key: Vec<u16>,
    /// Columns with a sequence of their own.
    pub(super) sequences: Vec<ColumnSequence>,
    /// LIKE: the relation whose columns come first, and whether their defaults come along.
    pub(super) like: Option<(String, bool)>,
    /// PARTITION BY.
    pub(super) partition_by: Option<PartitionKeyDraft>,
}

impl TableDraft {
    /// A table without columns.
    pub(super) fn empty(name: &str, endorsement: Option<String>) -> TableDraft {
        TableDraft::of(&Table {
            id: TableId(0),
            primary_key_name: generated_name(object_name(name), "", "pkey"),
            name: name.to_string(),
            columns: Vec::new(),
            primary_key: Vec::new(),
            checks: Vec::new(),
            endorsement,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        })
    }

    /// A table that exists, to which something is added.
    pub(super) fn of(table: &Table) -> TableDraft {
        let (unnamed_checks, unique, foreign_keys, deferrable_key, sequences, like) = Default::default();
        let (table, partition_by) = (table.clone(), None);
        TableDraft {
            table,
            unnamed_checks,
            unique,
            foreign_keys,
            deferrable_key,
            sequences,
            like,
            partition_by,
        }
    }

    /// Adds a column with its constraints.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn add_column(
        &mut self,
        types: &CompositeTypes,
        definition: &ast::ColumnDef,
    ) -> Result<(), SqlError> {
        let name = name_of(&definition.name)?;
        if self.table.ordinal(&name).is_some() {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let ordinal = self.table.columns.len() as u16;
        let serial = serial_type(&definition.data_type);
        let data_type = match serial {
            Some(data_type) => {
                let options = CountingOptions::default();
                self.sequences.push(ColumnSequence { column: ordinal, identity: None, options });
                data_type
            }
            None => bind_type_or_domain(types, &definition.data_type)?,
        };
        let (not_null, default, generated) = (false, None, false);
        self.table.columns.push(Column { name: name.clone(), data_type, not_null, default, generated });
        let (mut nullable, rules) = (None, types.rules());
        for option in &definition.options {
            match &option.option {
                ColumnOption::Null => self.set_nullable(&name, &mut nullable, true)?,
                ColumnOption::NotNull => self.set_nullable(&name, &mut nullable, false)?,
                ColumnOption::Default(expr) => self.set_default(ordinal, expr)?,
                ColumnOption::PrimaryKey(key) => {
                    let deferral = bind_deferral(key.characteristics.as_ref(), rules)?;
                    self.set_primary_key(
                        vec![ordinal],
                        option.name.as_ref().or(key.name.as_ref()),
                        deferral,
                    )?;
                }
                ColumnOption::Check(check) => {
                    self.add_check(check, option.name.as_ref().or(check.name.as_ref()))?;
                }
                ColumnOption::Unique(unique) => {
                    let mut draft = bind_unique(unique, rules)?.of_column(&name);
                    if let Some(constraint) = &option.name {
                        draft.name = Some(name_of(constraint)?);
                    }
                    self.unique.push(draft);
                }
                ColumnOption::ForeignKey(foreign_key) => {
                    let mut draft = bind_foreign_key(foreign_key, Some(&name), rules)?;
                    if let Some(constraint) = &option.name {
                        draft.name = Some(name_of(constraint)?);
                    }
                    self.foreign_keys.push(draft);
                }
                ColumnOption::Generated { generated_as, sequence_options, generation_expr: None, .. }
                    if *generated_as != GeneratedAs::ExpStored =>
                {
                    self.set_identity(
                        ordinal,
                        *generated_as,
                        (sequence_options.as_deref().unwrap_or_default(), rules),
                    )?;
                    self.set_nullable(&name, &mut nullable, false)?;
                }
                ColumnOption::Generated { generation_expr: Some(expr), .. }
                    if rules >= ExecutionVersion::V7 =>
                {
                    self.set_generated(ordinal, expr)?;
                }
                other => refuse_column_option(other)?,
            }
        }
        self.check_generated(ordinal)?;
        if serial.is_some() && nullable != Some(true) {
            nullable = Some(false);
        }
        self.table.columns[usize::from(ordinal)].not_null = nullable == Some(false);
        Ok(())
    }

    fn set_default(&mut self, ordinal: u16, expr: &Expr) -> Result<(), SqlError> {
        let column = &mut self.table.columns[usize::from(ordinal)];
        if column.generated {
            return Err(self.specified("both default and generation expression", ordinal));
        }
        match column.default.replace(expr.to_string()) {
            Some(_) => Err(self.specified("multiple default values", ordinal)),
            None => Ok(()),
        }
    }

    /// GENERATED ALWAYS AS (…) STORED.
    fn set_generated(&mut self, ordinal: u16, expr: &Expr) -> Result<(), SqlError> {
        let column = &mut self.table.columns[usize::from(ordinal)];
        let what = match (column.generated, column.default.is_some()) {
            (false, false) => {
                column.default = Some(expr.to_string());
                column.generated = true;
                return Ok(());
            }
            (true, _) => "multiple generation clauses",
            (false, true) => "both default and generation expression",
        };
        Err(self.specified(what, ordinal))
    }

    /// Refuses a generated column that counts, too.
    fn check_generated(&self, ordinal: u16) -> Result<(), SqlError> {
        let generated = self.table.columns[usize::from(ordinal)].generated;
        match generated && self.sequences.iter().any(|known| known.column == ordinal) {
            true => Err(self.specified("both identity and generation expression", ordinal)),
            false => Ok(()),
        }
    }

    fn specified(&self, what: &str, ordinal: u16) -> SqlError {
        let (column, table) = (&self.table.columns[usize::from(ordinal)].name, self.table.object_name());
        let message = format!("{what} specified for column \"{column}\" of table \"{table}\"");
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    }

    /// GENERATED … AS IDENTITY.
    fn set_identity(
        &mut self,
        ordinal: u16,
        generated: GeneratedAs,
        (options, rules): (&[SequenceOptions], ExecutionVersion),
    ) -> Result<(), SqlError> {
        let column = &self.table.columns[usize::from(ordinal)];
        if !column.data_type.is_integer() {
            let message = "identity column type must be smallint, integer, or bigint";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        if self.sequences.iter().any(|known| known.column == ordinal) {
            let message = format!(
                "multiple identity specifications for column \"{}\" of table \"{}\"",
                column.name,
                self.table.object_name()
            );
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let generated = match generated {
            GeneratedAs::Always => Generated::Always,
            _ => Generated::ByDefault,
        };
        let (identity, options) = (Some(generated), CountingOptions::of(options, rules)?);
        self.sequences.push(ColumnSequence { column: ordinal, identity, options });
        Ok(())
    }

    fn set_nullable(&self, column: &str, known: &mut Option<bool>, nullable: bool) -> Result<(), SqlError> {
        if known.replace(nullable).is_some_and(|known| known != nullable) {
            let message = format!(
                "conflicting NULL/NOT NULL declarations for column \"{column}\" of table \"{}\"",
                self.table.object_name()
            );
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        Ok(())
    }

    fn add_constraint(
        &mut self,
        constraint: &TableConstraint,
        rules: ExecutionVersion,
    ) -> Result<(), SqlError> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let deferral = bind_deferral(key.characteristics.as_ref(), rules)?;
                let mut ordinals = Vec::with_capacity(key.columns.len());
                for column in &key.columns {
                    ordinals.push(self.key_column(column, &ordinals)?);
                }
                self.set_primary_key(ordinals, key.name.as_ref(), deferral)
            }
            TableConstraint::Check(check) => self.add_check(check, check.name.as_ref()),
            TableConstraint::Unique(unique) => {
                self.unique.push(bind_unique(unique, rules)?);
                Ok(())
            }
            TableConstraint::ForeignKey(foreign_key) => {
                self.foreign_keys.push(bind_foreign_key(foreign_key, None, rules)?);
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

    fn set_primary_key(
        &mut self,
        ordinals: Vec<u16>,
        name: Option<&Ident>,
        deferral: Deferral,
    ) -> Result<(), SqlError> {
        if !self.table.primary_key.is_empty() || !self.deferrable_key.is_empty() {
            let message =
                format!("multiple primary keys for table \"{}\" are not allowed", self.table.object_name());
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        check_ordered(&self.table, &ordinals)?;
        if deferral.is_deferrable() {
            let named = |ordinal: &u16| self.table.columns[usize::from(*ordinal)].name.clone();
            let (name, columns) = (name.map(name_of).transpose()?, ordinals.iter().map(named).collect());
            self.unique.insert(0, IndexDraft::key(name, columns, deferral));
            self.deferrable_key = ordinals;
            return Ok(());
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
        self.table.checks.push(Check { name, condition, valid: true });
        Ok(())
    }
}

/// The type of the values of a column that has a sequence of its own because of how its type is written.
fn serial_type(data_type: &ast::DataType) -> Option<DataType> {
    let ast::DataType::Custom(name, modifiers) = data_type else { return None };
    let name = name.to_string().to_ascii_lowercase();
    match name.as_str() {
        "bigserial" | "serial8" if modifiers.is_empty() => Some(DataType::BigInt),
        "serial" | "serial4" if modifiers.is_empty() => Some(DataType::Integer),
        "smallserial" | "serial2" if modifiers.is_empty() => Some(DataType::SmallInt),
        _ => None,
    }
}

fn refuse_column_option(option: &ColumnOption) -> Result<(), SqlError> {
    Err(match option {
        ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
            SqlError::unsupported("GENERATED ALWAYS AS (…) STORED")
                .hint("Compute the value in the procedure that writes it.")
        }
        ColumnOption::Collation(name) if matches!(name.to_string().trim_matches('"'), "C" | "POSIX") => {
            return Ok(());
        }
        ColumnOption::Collation(_) => SqlError::unsupported("COLLATE").hint("Text compares by bytes."),
        other => SqlError::unsupported(format_args!("the column option {other}")),
    })
}

/// The columns of a relation without its keys and constraints, but for NOT NULL.
fn columns_like(catalog: &Catalog, relation: &str, defaults: bool) -> Result<Vec<Column>, SqlError> {
    let table = catalog.tables.get(relation);
    if let Some(table) = table.or_else(|| catalog.partition(relation).map(|(table, _)| table)) {
        let column = |column: &Column| Column {
            // What generates them does not come along: INCLUDING GENERATED would say so.
            default: column.default.clone().filter(|_| defaults && !column.generated),
            generated: false,
            ..column.clone()
        };
        return Ok(table.columns.iter().map(column).collect());
    }
    let columns = catalog.columns_of(relation).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{}\" does not exist", types::as_given(relation)),
        )
    })?;
    let column = |column: types::OutputColumn| Column {
        name: column.name,
        data_type: column.data_type,
        not_null: false,
        default: None,
        generated: false,
    };
    Ok(columns.into_iter().map(column).collect())
}

/// Adds a table to the catalog. Gives whether it was not there.
///
/// # Errors
/// A name that is taken; what is wrong with its parts.
pub(super) fn create_table(
    catalog: &mut NewCatalog,
    if_not_exists: bool,
    draft: &TableDraft,
    rows: &mut Rows<'_, '_>,
) -> Result<bool, SqlError> {
    let table = &draft.table;
    if relation_exists(catalog, &table.name) {
        let is_table = catalog.tables.contains_key(&table.name) || catalog.partition(&table.name).is_some();
        if if_not_exists && is_table {
            return Ok(false);
        }
        let message = format!("relation \"{}\" already exists", table.object_name());
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    check_type_free(catalog, &table.name)?;
    if catalog.tables.len() >= limits::TABLES_MAX {
        let message = format!("a ledger has at most {} tables (TABLES_MAX)", limits::TABLES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let mut table = table.clone();
    if let Some((relation, defaults)) = &draft.like {
        table.columns = columns_like(catalog, relation, *defaults)?;
    }
    if let Some(key) = &draft.partition_by {
        let (key, partitions) = (key.of(&table)?, BTreeMap::new());
        table.partitioning = Some(Arc::new(Partitioning { key, partitions }));
    }
    let routines = catalog.routines();
    name_checks(&mut table, &draft.unnamed_checks, &routines)?;
    table.id = TableId(take_number(catalog)?);
    for ColumnSequence { column, identity, .. } in &draft.sequences {
        let column = &table.columns[usize::from(*column)];
        if column.default.is_some() {
            let what =
                if identity.is_some() { "both default and identity" } else { "multiple default values" };
            let message = format!(
                "{what} specified for column \"{}\" of table \"{}\"",
                column.name,
                table.object_name()
            );
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
    }
    let rules = catalog.rules;
    create_owned(catalog, rules, &mut table, &draft.sequences)?;
    let routines = catalog.routines();
    // Binds defaults and checks: what is wrong in them is said now.
    TablePlan::new(&table, catalog, &routines)?;
    let table = Arc::new(table);
    catalog.tables.insert(table.name.clone(), table.clone());
    for unique in &draft.unique {
        create_index(catalog, &table, unique, rows)?;
    }
    for foreign_key in &draft.foreign_keys {
        create_foreign_key(catalog, &table, foreign_key, rows)?;
    }
    // Indexes bind with the table.
    TablePlan::new(&table, catalog, &catalog.routines())?;
    Ok(true)
}

pub(super) fn drop_tables(
    catalog: &mut Catalog,
    if_exists: bool,
    cascade: bool,
    names: &[String],
) -> Result<(), SqlError> {
    let mut dropped: Vec<Arc<Table>> = Vec::with_capacity(names.len());
    for name in names {
        match catalog.tables.get(name) {
            Some(table) => dropped.push(table.clone()),
            None if catalog.views.contains_key(name) => {
                let error =
                    SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a table", object_name(name)));
                return Err(error.hint("Use DROP VIEW to remove a view."));
            }
            None if catalog.sequences.contains_key(name) => {
                let error =
                    SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a table", object_name(name)));
                return Err(error.hint("Use DROP SEQUENCE to remove a sequence."));
            }
            None if if_exists => {}
            None => {
                let message = format!("table \"{}\" does not exist", object_name(name));
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
        }
    }
    let ids: Vec<TableId> = dropped.iter().map(|table| table.id).collect();
    let what_of = |table: &Table| match table.materialized.is_some() {
        true => format!("materialized view {}", table.name),
        false => format!("table {}", table.name),
    };
    let partitions = dropped.iter().filter_map(|table| table.partitioning.as_ref());
    let partitions: Vec<String> = partitions.flat_map(|one| one.partitions.keys().cloned()).collect();
    let going = [names, &partitions].concat();
    for partition in &partitions {
        let what = format!("table {partition}");
        drop_dependents(catalog, &what, cascade, &going, &|view| view.relations.contains(partition))?;
        catalog.views.remove(partition);
    }
    for table in &dropped {
        if !cascade {
            refuse_referenced(catalog, table, &ids)?;
        }
        let what = what_of(table);
        drop_dependents(catalog, &what, cascade, &going, &|view| view.relations.contains(&table.name))?;
        drop_owned(catalog, table.id, None);
        catalog.tables.remove(&table.name);
        catalog.indexes.remove(&table.id);
        catalog.triggers.remove(&table.id);
    }
    remove_foreign_keys(catalog, |child, foreign_key| {
        ids.contains(&child) || ids.contains(&foreign_key.parent)
    });
    Ok(())
}
