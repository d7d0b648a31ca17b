//! Columns of tables that exist: ADD, DROP, RENAME and ALTER COLUMN, and the names of tables.

use crate::ddl::composite_types::rename_row_type;
use crate::ddl::constraints::name_checks;
use crate::ddl::foreign_keys::{create_foreign_key, remove_foreign_keys};
use crate::ddl::indexes::{check_keys_ordered, check_unique, create_index, remove_index};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::partitions::{refuse_key_column, without_column};
use crate::ddl::primary_key::{contains_nulls, distinct_key, drop_primary_key};
use crate::ddl::relations::{check_free, find_table};
use crate::ddl::renumber::renumber;
use crate::ddl::row_security::{policies_using_column, without_policies_using_column};
use crate::ddl::rows::Rows;
use crate::ddl::sequences::{change_owners, drop_owned};
use crate::ddl::tables::TableDraft;
use crate::ddl::triggers::{drop_using_column, using_column};
use crate::ddl::view_columns::write_names;
use crate::ddl::views::{self, depends, drop_dependents, drop_needing_primary_key};
use plan::bind_tables::{bind_computed, bind_default};
use plan::expression::{Binder, Environment, Expression, Kind, Source, bind_type_or_domain};
use plan::scope::VariableScope;
use plan::table::TablePlan;
use sqlparser::ast::{self, AlterColumnOperation, Expr, Ident};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use syntax::names::name_of;
use syntax::parse::parse_expression;
use types::session_format::within_format;
use types::{
    Catalog, Check, Column, CompositeTypes, DataType, ExecutionVersion, Index, Row, Securable, SqlError,
    SqlState, Table, TableId, Value, limits, object_name,
};

/// What becomes of a column.
#[derive(Clone, Debug)]
pub(crate) enum ColumnChange {
    /// SET NOT NULL and DROP NOT NULL.
    NotNull(bool),
    /// SET DEFAULT and DROP DEFAULT: the expression.
    Default(Option<String>),
    /// DROP EXPRESSION; the flag: IF EXISTS.
    DropExpression(bool),
    /// TYPE: the type, and what USING says.
    Type(DataType, Option<Box<Expr>>),
}

/// ALTER COLUMN; `None` where it is something that cannot be.
///
/// # Errors
/// A type that is not there.
pub(super) fn bind_alter_column(
    types: &CompositeTypes,
    operation: &AlterColumnOperation,
) -> Result<Option<ColumnChange>, SqlError> {
    Ok(Some(match operation {
        AlterColumnOperation::SetNotNull => ColumnChange::NotNull(true),
        AlterColumnOperation::DropNotNull => ColumnChange::NotNull(false),
        AlterColumnOperation::SetDefault { value } => ColumnChange::Default(Some(value.to_string())),
        AlterColumnOperation::DropDefault => ColumnChange::Default(None),
        AlterColumnOperation::SetDataType { data_type, using, .. } => {
            ColumnChange::Type(bind_type_or_domain(types, data_type)?, using.clone().map(Box::new))
        }
        AlterColumnOperation::AddGenerated { .. } => return Ok(None),
    }))
}

/// Binds a table as it is in the catalog now.
fn plan(catalog: &NewCatalog, table: &Table) -> Result<TablePlan, SqlError> {
    TablePlan::stored(table, catalog, &catalog.routines())
}

/// Refuses a new default that the rules of now cannot read.
fn check_default(catalog: &NewCatalog, column: &Column) -> Result<(), SqlError> {
    let Some(default) = column.default.as_ref().filter(|_| !column.generated) else { return Ok(()) };
    bind_default(default, &column.name, column.data_type, &catalog.routines()).map(drop)
}

/// Refuses what generates a new column where the rules of now cannot read it. Version 7 asked the rules before.
fn check_computed(
    catalog: &NewCatalog,
    table: &Table,
    bound: &TablePlan,
    column: &Column,
) -> Result<(), SqlError> {
    match column.default.as_deref().filter(|_| catalog.rules >= ExecutionVersion::V8) {
        Some(sql) => bind_computed(bound, table, column, sql, &catalog.routines()).map(drop),
        None => Ok(()),
    }
}

/// Ordinal of a column that is altered.
fn ordinal_of(table: &Table, name: &str) -> Result<usize, SqlError> {
    table.ordinal(name).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.object_name());
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

/// Whether a column is one of the primary key, which may be one that can be deferred.
fn is_in_key(catalog: &NewCatalog, table: &Table, number: u16) -> bool {
    let mut keys = catalog.indexes_of(table.id).iter().filter(|index| index.primary);
    table.primary_key.contains(&number) || keys.any(|index| index.columns.contains(&number))
}

/// ADD COLUMN: every row gets the default.
///
/// # Errors
/// A name that is taken; rows that keep not what is asked of the column.
pub(super) fn add_column(
    catalog: &mut NewCatalog,
    mut draft: TableDraft,
    definition: &ast::ColumnDef,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let before = draft.table.clone();
    let name = name_of(&definition.name)?;
    if before.ordinal(&name).is_some() {
        let message = format!("column \"{name}\" of relation \"{}\" already exists", before.object_name());
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    if before.columns.len() >= limits::COLUMNS_MAX {
        let message = format!("tables can have at most {} columns (COLUMNS_MAX)", limits::COLUMNS_MAX);
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    let types = CompositeTypes::new(catalog).with_rules(catalog.rules);
    draft.add_column(&types, definition)?;
    if draft.table.primary_key != before.primary_key || !draft.deferrable_key.is_empty() {
        return Err(SqlError::unsupported("ADD COLUMN with PRIMARY KEY")
            .hint("Add the column, fill it, and then ADD PRIMARY KEY."));
    }
    if !draft.sequences.is_empty() {
        return Err(SqlError::unsupported("ADD COLUMN with a sequence")
            .hint("Make a table with the column, and insert the rows there."));
    }
    views::refuse_name(catalog, &before.name, &name)?;
    let column = draft.table.columns.last().expect("it has been added").clone();
    let mut table = renumber(catalog, &draft.table)?;
    check_default(catalog, &column)?;
    let bound = plan(catalog, &Table { checks: Vec::new(), ..table.clone() })?;
    if column.generated {
        check_computed(catalog, &table, &bound, &column)?;
        fill_generated(before.id, &table, &bound, rows)?;
    } else {
        fill_with_default(&before, &table, &bound, rows)?;
    }
    name_checks(&mut table, &draft.unnamed_checks, &catalog.routines())?;
    let table = Arc::new(table);
    catalog.tables.insert(table.name.clone(), table.clone());
    check_rows(catalog, &table, rows, &|check| before.checks.iter().all(|known| known.name != check.name))?;
    for unique in &draft.unique {
        create_index(catalog, &table, unique, rows)?;
    }
    for foreign_key in &draft.foreign_keys {
        create_foreign_key(catalog, &table, foreign_key, rows)?;
    }
    views::check_all(catalog, &table.name)
}

/// The rows of a table with a generated column more.
fn fill_generated(
    before: TableId,
    table: &Table,
    bound: &TablePlan,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    rows.rewrite(before, table.id, &mut |key, row| {
        let row: Row = row.iter().cloned().chain([Value::Null]).collect();
        let row = bound.with_computed(row)?;
        let column = table.columns.last().filter(|column| column.not_null);
        match column.filter(|_| row.last().is_some_and(Value::is_null)) {
            Some(column) => Err(contains_nulls(table.object_name(), &column.name)),
            None => Ok((key.clone(), row)),
        }
    })
}

/// The rows of a table with a column more, which has the same value in all of them.
fn fill_with_default(
    before: &Table,
    table: &Table,
    bound: &TablePlan,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let default = bound.columns.last().and_then(|column| column.default.clone());
    let value = match default {
        Some(default) if default.runs_anything() => {
            return Err(SqlError::unsupported("ADD COLUMN with a DEFAULT that calls a function")
                .hint("Add the column without it, fill it with UPDATE, then SET DEFAULT."));
        }
        Some(default) => rows.execution.evaluate(&default, &[])?,
        None => Value::Null,
    };
    let column = table.columns.last().filter(|column| column.not_null && value.is_null());
    if let Some(column) = column
        && rows.are_in(before.id)?
    {
        return Err(contains_nulls(before.object_name(), &column.name));
    }
    rows.rewrite(before.id, table.id, &mut |key, row| {
        Ok((key.clone(), row.iter().cloned().chain([value.clone()]).collect::<Row>()))
    })
}

/// Holds the rows of a table against some of its CHECKs.
fn check_rows(
    catalog: &NewCatalog,
    table: &Table,
    rows: &mut Rows<'_, '_>,
    is_meant: &dyn Fn(&plan::table::CheckPlan) -> bool,
) -> Result<(), SqlError> {
    let plan = plan(catalog, table)?;
    if !plan.checks.iter().any(is_meant) {
        return Ok(());
    }
    rows.visit(table.id, &mut |_, _, row| {
        for check in plan.checks.iter().filter(|check| is_meant(check)) {
            if check.is_violated(&Environment::new(row, &[], 0))? {
                let message = format!(
                    "check constraint \"{}\" of relation \"{}\" is violated by some row",
                    check.name,
                    table.object_name()
                );
                return Err(SqlError::new(SqlState::CHECK_VIOLATION, message));
            }
        }
        Ok(())
    })
}

/// DROP COLUMN: the primary key, the constraints and the indexes that it is part of go with it.
///
/// # Errors
/// What depends on it, without CASCADE.
pub(super) fn drop_column(
    catalog: &mut NewCatalog,
    table: &Table,
    name: &str,
    cascade: bool,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let gone = ordinal_of(table, name)?;
    let number = gone as u16;
    refuse_key_column(table, number, "drop")?;
    if table.columns.len() == 1 {
        return Err(SqlError::unsupported("dropping the only column of a table"));
    }
    let what = format!("column {name} of table {}", table.name);
    remove_referencing(catalog, table, number, &what, cascade)?;
    if let Some(user) = generated_from(catalog, table, number)?.first() {
        if !cascade {
            return Err(depends(&what, &format!("column {user} of table {}", table.name), &what));
        }
        drop_column(catalog, table, user, true, rows)?;
        let rest = find_table(catalog, &table.name)?;
        return drop_column(catalog, &rest, name, true, rows);
    }
    let keyless = without_key_of(catalog, table, number, (&what, cascade), rows)?;
    let table = keyless.as_deref().unwrap_or(table);
    let without = |checks: &dyn Fn(&Check) -> bool| Table {
        columns: table.columns.iter().filter(|column| column.name != name).cloned().collect(),
        checks: table.checks.iter().filter(|check| checks(check)).cloned().collect(),
        primary_key: table.primary_key.iter().map(|ordinal| ordinal - u16::from(*ordinal > number)).collect(),
        partitioning: without_column(table.partitioning.as_ref(), number),
        ..table.clone()
    };
    let bound = plan(catalog, table)?;
    let users = views::using_column(catalog, table, gone, &without(&|_| false))?;
    drop_dependents(catalog, &what, cascade, &[], &|view| users.contains(&view.name))?;
    drop_using_column(catalog, table, gone, &what, cascade)?;
    let row_security = without_policies_using_column(catalog, table, gone, &what, cascade)?;
    remove_foreign_keys(catalog, |child, foreign_key| {
        child == table.id && foreign_key.columns.contains(&number)
    });
    remove_indexes_with(catalog, &bound, number);
    let shift = |ordinals: &mut Vec<u16>| {
        let columns = ordinals.iter_mut().filter(|ordinal| **ordinal != Index::EXPRESSION);
        columns.for_each(|ordinal| *ordinal -= u16::from(*ordinal > number));
    };
    for index in catalog.indexes.get_mut(&table.id).into_iter().flatten() {
        shift(&mut index.columns);
        shift(&mut index.details.included);
    }
    for (child, foreign_keys) in &mut catalog.foreign_keys {
        for foreign_key in foreign_keys {
            if *child == table.id {
                shift(&mut foreign_key.columns);
                shift(&mut foreign_key.set_on_delete);
            }
            if foreign_key.parent == table.id {
                shift(&mut foreign_key.referenced);
            }
        }
    }
    drop_owned(catalog, table.id, Some(number));
    forget_privileges(catalog, table, name);
    change_owners(catalog, table.id, &|owner| owner.column -= u16::from(owner.column > number));
    let uses = |check: &Check| {
        let plan = bound.checks.iter().find(|plan| plan.name == check.name);
        plan.is_some_and(|plan| {
            plan.condition.any(&mut |inner| matches!(inner.kind, Kind::Column(column) if column == number))
        })
    };
    let new = renumber(catalog, &Table { row_security, ..without(&|check| !uses(check)) })?;
    rows.rewrite(table.id, new.id, &mut |key, row| {
        let kept = row.iter().enumerate().filter(|(ordinal, _)| *ordinal != gone);
        Ok((key.clone(), kept.map(|(_, value)| value.clone()).collect::<Row>()))
    })?;
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    Ok(())
}

/// The table without its primary key, where a column that is dropped is one of that.
fn without_key_of(
    catalog: &mut NewCatalog,
    table: &Table,
    number: u16,
    (what, cascade): (&str, bool),
    rows: &mut Rows<'_, '_>,
) -> Result<Option<Arc<Table>>, SqlError> {
    if !table.primary_key.contains(&number) {
        return Ok(None);
    }
    drop_needing_primary_key(catalog, table, what, cascade)?;
    drop_primary_key(catalog, table, true, rows).map(Some)
}

fn forget_privileges(catalog: &mut NewCatalog, table: &Table, column: &str) {
    for relation in shown_as(catalog, table) {
        catalog.roles.grants.remove(&Securable::column(&relation, column));
    }
}

/// The names under which a table's columns have privileges and comments: its own, and those of its partitions, which version 10 forgot.
pub(super) fn shown_as(catalog: &NewCatalog, table: &Table) -> Vec<String> {
    let partitions = table.partitioning.iter().filter(|_| catalog.rules >= ExecutionVersion::V11);
    let partitions = partitions.flat_map(|one| one.partitions.keys().cloned());
    std::iter::once(table.name.clone()).chain(partitions).collect()
}

/// Takes the indexes out of the catalog that a column is in, or that look at it.
fn remove_indexes_with(catalog: &mut NewCatalog, table: &TablePlan, number: u16) {
    let looks = |index: &&Index| {
        let computed = table.computed.iter().find(|computed| computed.index.number == index.number);
        index.columns.contains(&number)
            || index.details.included.contains(&number)
            || computed.is_some_and(|computed| computed.looks_at(number))
    };
    let indexes: Vec<Index> = catalog.indexes_of(table.id).iter().filter(looks).cloned().collect();
    indexes.iter().for_each(|index| remove_index(catalog, table.id, index));
}

/// Removes the foreign keys that reference a column, or an index that names it.
///
/// # Errors
/// Those of other tables, without CASCADE.
fn remove_referencing(
    catalog: &mut NewCatalog,
    table: &Table,
    number: u16,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    let goes = indexes_on(catalog, table, number);
    let references = |foreign_key: &types::ForeignKey| {
        foreign_key.parent == table.id
            && (foreign_key.referenced.contains(&number)
                || foreign_key.index.is_some_and(|index| goes.contains(&index)))
    };
    refuse_referencing(catalog, table, &references, what, cascade)?;
    remove_foreign_keys(catalog, |_, foreign_key| references(foreign_key));
    Ok(())
}

/// Numbers of the indexes that name a column, INCLUDE among it.
fn indexes_on(catalog: &NewCatalog, table: &Table, number: u16) -> BTreeSet<u32> {
    let names = |index: &&Index| index.columns.contains(&number) || index.details.included.contains(&number);
    catalog.indexes_of(table.id).iter().filter(names).map(|index| index.number).collect()
}

/// Refuses without CASCADE to drop a column that other tables reference.
fn refuse_referencing(
    catalog: &NewCatalog,
    table: &Table,
    references: &dyn Fn(&types::ForeignKey) -> bool,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    let referencing = catalog.foreign_keys.iter().find_map(|(child, foreign_keys)| {
        let is_meant = |foreign_key: &&types::ForeignKey| *child != table.id && references(foreign_key);
        Some((*child, foreign_keys.iter().find(is_meant)?.name.clone()))
    });
    if let Some((child, constraint)) = referencing.filter(|_| !cascade) {
        let child = catalog.table(child).map(|child| child.name.clone()).unwrap_or_default();
        return Err(depends(what, &format!("constraint {constraint} on table {child}"), what));
    }
    Ok(())
}

/// Names of the generated columns that are computed from a column.
fn generated_from(catalog: &NewCatalog, table: &Table, number: u16) -> Result<Vec<String>, SqlError> {
    if table.columns.iter().all(|column| !column.generated) {
        return Ok(Vec::new());
    }
    let bound = plan(catalog, table)?;
    let uses = |computed: &Expression| {
        computed.any(&mut |inner| matches!(inner.kind, Kind::Column(column) if column == number))
    };
    let users = bound.columns.iter().filter(|column| column.computed.as_ref().is_some_and(uses));
    Ok(users.map(|column| column.name.clone()).collect())
}

/// Refuses another type for a column that is generated, or that one is generated from.
fn refuse_generated(catalog: &NewCatalog, table: &Table, ordinal: usize) -> Result<(), SqlError> {
    let column = &table.columns[ordinal];
    if column.generated {
        return Err(SqlError::unsupported("another type for a generated column")
            .hint("Drop the column, and add it again with the other type."));
    }
    match generated_from(catalog, table, ordinal as u16)?.first() {
        None => Ok(()),
        Some(user) => {
            let message = "cannot alter type of a column used by a generated column";
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .detail(format!("Column \"{}\" is used by generated column \"{user}\".", column.name)))
        }
    }
}

/// RENAME COLUMN.
///
/// # Errors
/// A name that is taken; a view that uses the column.
pub(super) fn rename_column(
    catalog: &mut NewCatalog,
    table: &Table,
    from: &str,
    to: &str,
) -> Result<(), SqlError> {
    let Some(ordinal) = table.ordinal(from) else {
        let message = format!("column \"{from}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    };
    if table.ordinal(to).is_some() {
        let message = format!("column \"{to}\" of relation \"{}\" already exists", table.object_name());
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    let mut new = table.clone();
    new.columns[ordinal].name = to.to_string();
    if let Some(materialized) = &mut new.materialized {
        let view = &mut Arc::make_mut(materialized).view;
        view.columns[ordinal].name = to.to_string();
        if catalog.rules >= ExecutionVersion::V12 {
            write_names(catalog, view)?;
        }
    }
    if let Some(user) =
        views::using_column(catalog, table, ordinal, &Table { checks: Vec::new(), ..new.clone() })?.first()
    {
        return Err(SqlError::unsupported(format_args!("renaming a column that the view \"{user}\" uses"))
            .hint("Drop the view, and create it again with the new name."));
    }
    views::refuse_name(catalog, &table.name, to)?;
    for check in &mut new.checks {
        rename_in(&mut check.condition, table.object_name(), &|column| (column == from).then_some(to))?;
    }
    for text in new.row_security.texts_mut() {
        rename_in(text, table.object_name(), &|column| (column == from).then_some(to))?;
    }
    for generated in new.columns.iter_mut().filter(|column| column.generated) {
        if let Some(expression) = &mut generated.default {
            rename_in(expression, table.object_name(), &|column| (column == from).then_some(to))?;
        }
    }
    for sql in expressions_of_indexes(catalog, table.id) {
        rename_in(sql, table.object_name(), &|column| (column == from).then_some(to))?;
    }
    for trigger in catalog.triggers.get_mut(&table.id).into_iter().flat_map(BTreeMap::values_mut) {
        let trigger = Arc::make_mut(trigger);
        trigger
            .columns
            .iter_mut()
            .filter(|column| *column == from)
            .for_each(|column| *column = to.to_string());
        for condition in trigger.condition.iter_mut() {
            for row in ["old", "new"] {
                rename_in(condition, row, &|column| (column == from).then_some(to))?;
            }
        }
    }
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    views::check_all(catalog, &table.name)
}

/// Renames columns in the condition of a CHECK, which names those of its table alone.
fn rename_in<'n>(
    condition: &mut String,
    table: &str,
    renamed: &dyn Fn(&str) -> Option<&'n str>,
) -> Result<(), SqlError> {
    // Names stand where they stand, however the versions group what is between them.
    let mut expr = parse_expression(condition, ExecutionVersion::NEWEST)?;
    let rename = |ident: &mut Ident| {
        if let Some(to) = name_of(ident).ok().as_deref().and_then(renamed) {
            *ident = Ident::with_quote('"', to);
        }
    };
    let _ = ast::visit_expressions_mut(&mut expr, |inner| {
        match inner {
            Expr::Identifier(ident) => rename(ident),
            Expr::CompoundIdentifier(path)
                if path.len() == 2 && name_of(&path[0]).is_ok_and(|name| name == table) =>
            {
                rename(&mut path[1]);
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    *condition = expr.to_string();
    Ok(())
}

/// What the computed indexes of a table have written down.
fn expressions_of_indexes(catalog: &mut Catalog, table: TableId) -> impl Iterator<Item = &mut String> {
    let indexes = catalog.indexes.get_mut(&table).into_iter().flatten();
    indexes.flat_map(|index| index.details.texts_mut())
}

/// RENAME TO.
///
/// # Errors
/// A name that is taken.
pub(super) fn rename_table(catalog: &mut NewCatalog, table: &Table, to: &str) -> Result<(), SqlError> {
    check_free(catalog, to)?;
    let mut new = Table { name: to.to_string(), ..table.clone() };
    if let Some(materialized) = &mut new.materialized {
        Arc::make_mut(materialized).view.name = to.to_string();
    }
    let generated = new.columns.iter_mut().filter(|column| column.generated);
    let generated = generated.filter_map(|column| column.default.as_mut());
    let (rules, indexes) = (catalog.rules, expressions_of_indexes(catalog, table.id));
    let conditions = new.checks.iter_mut().map(|check| &mut check.condition);
    for condition in conditions.chain(generated).chain(indexes).chain(new.row_security.texts_mut()) {
        let mut expr = parse_expression(condition, rules)?;
        let _ = ast::visit_expressions_mut(&mut expr, |inner| {
            if let Expr::CompoundIdentifier(path) = inner
                && name_of(&path[0]).is_ok_and(|name| name == table.object_name())
            {
                path[0] = Ident::with_quote('"', object_name(to));
            }
            ControlFlow::<()>::Continue(())
        });
        *condition = expr.to_string();
    }
    catalog.tables.remove(&table.name);
    catalog.tables.insert(to.to_string(), Arc::new(new));
    rename_row_type(catalog, &table.name, to);
    views::rename_relation(catalog, &table.name, to)
}

/// ALTER COLUMN.
///
/// # Errors
/// Rows that do not keep what is asked of the column.
pub(super) fn alter_column(
    catalog: &mut NewCatalog,
    table: &Table,
    name: &str,
    change: &ColumnChange,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let ordinal = ordinal_of(table, name)?;
    let mut new = table.clone();
    let column = &mut new.columns[ordinal];
    match change {
        ColumnChange::NotNull(true) => {
            column.not_null = true;
            rows.visit(table.id, &mut |_, _, row| match row[ordinal].is_null() {
                true => Err(contains_nulls(table.object_name(), name)),
                false => Ok(()),
            })?;
        }
        ColumnChange::NotNull(false) if is_in_key(catalog, table, ordinal as u16) => {
            let message = format!("column \"{name}\" is in a primary key");
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        ColumnChange::NotNull(false) => column.not_null = false,
        ColumnChange::Default(_) if column.generated => {
            let message =
                format!("column \"{name}\" of relation \"{}\" is a generated column", table.object_name());
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        ColumnChange::DropExpression(if_exists) => match column.generated {
            true => (column.generated, column.default) = (false, None),
            false if *if_exists => {}
            false => {
                let message = format!(
                    "column \"{name}\" of relation \"{}\" is not a stored generated column",
                    table.object_name()
                );
                return Err(SqlError::new(SqlState(*b"55000"), message));
            }
        },
        ColumnChange::Default(default) => {
            column.default.clone_from(default);
            check_default(catalog, column)?;
        }
        ColumnChange::Type(data_type, using) => {
            return change_type(catalog, table, ordinal, *data_type, using.as_deref(), rows);
        }
    }
    plan(catalog, &new)?;
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    Ok(())
}

/// Refuses another type for a column that a view, a trigger or a policy uses.
fn refuse_users(catalog: &NewCatalog, table: &Table, ordinal: usize) -> Result<(), SqlError> {
    let (name, number) = (&table.columns[ordinal].name, ordinal as u16);
    let without = Table {
        columns: table.columns.iter().filter(|column| column.name != *name).cloned().collect(),
        checks: Vec::new(),
        primary_key: table.primary_key.iter().map(|ordinal| ordinal - u16::from(*ordinal > number)).collect(),
        ..table.clone()
    };
    if let Some(view) = views::using_column(catalog, table, ordinal, &without)?.first() {
        let message = "cannot alter type of a column used by a view or rule";
        let detail = format!("rule _RETURN on view {view} depends on column \"{name}\"");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail));
    }
    if let Some(trigger) = using_column(catalog, table, ordinal)?.first() {
        let message = "cannot alter type of a column used in a trigger definition";
        let detail = format!("trigger {trigger} on table {} depends on column \"{name}\"", table.name);
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail));
    }
    if let Some(policy) = policies_using_column(catalog, table, ordinal)?.first() {
        let message = "cannot alter type of a column used in a policy definition";
        let detail = format!("policy {policy} on table {} depends on column \"{name}\"", table.name);
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail));
    }
    Ok(())
}

fn change_type(
    catalog: &mut NewCatalog,
    table: &Table,
    ordinal: usize,
    data_type: DataType,
    using: Option<&Expr>,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let (name, number) = (&table.columns[ordinal].name, ordinal as u16);
    refuse_key_column(table, number, "alter")?;
    refuse_generated(catalog, table, ordinal)?;
    let referenced = catalog.foreign_keys.iter().any(|(child, foreign_keys)| {
        let meets = |foreign_key: &types::ForeignKey| {
            (*child == table.id && foreign_key.columns.contains(&number))
                || (foreign_key.parent == table.id && foreign_key.referenced.contains(&number))
        };
        foreign_keys.iter().any(meets)
    });
    if referenced {
        return Err(SqlError::unsupported(
            "another type for a column of a foreign key, or that one references",
        )
        .hint("Make a table with the other type, and insert the rows there."));
    }
    refuse_users(catalog, table, ordinal)?;
    // Values are read as the session says, and definitions are not.
    let format = rows.format;
    let value = within_format(format, || conversion(catalog, table, ordinal, data_type, using))?;
    if value.runs_anything() {
        return Err(SqlError::unsupported("a function of the ledger in USING"));
    }
    let mut new = renumber(catalog, table)?;
    new.columns[ordinal].data_type = data_type;
    check_keys_ordered(catalog, &new)?;
    plan(catalog, &new).map_err(|error| match error.message.contains("default expression") {
        true => SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "default for column \"{name}\" cannot be cast automatically to type {}",
                data_type.family()
            ),
        ),
        false => error,
    })?;
    let now = rows.execution.now();
    let (in_key, mut keys) = (table.primary_key.contains(&number), BTreeSet::new());
    rows.rewrite(table.id, new.id, &mut |key, row| {
        let mut values: Vec<Value> = row.to_vec();
        values[ordinal] = within_format(format, || value.evaluate(&Environment::new(row, &[], now)))?;
        if new.columns[ordinal].not_null && values[ordinal].is_null() {
            return Err(contains_nulls(new.object_name(), name));
        }
        let key = match in_key {
            true => distinct_key(&new, &values, &mut keys)?,
            false => key.clone(),
        };
        Ok((key, Row::from(values)))
    })?;
    let new = Arc::new(new);
    catalog.tables.insert(new.name.clone(), new.clone());
    check_rows(catalog, &new, rows, &|check| check.valid)?;
    for index in catalog.indexes_of(new.id).iter().filter(|index| index.unique && !index.is_computed()) {
        check_unique(catalog, &new, index, rows)?;
    }
    Ok(())
}

/// What a column's value becomes in another type.
fn conversion(
    catalog: &NewCatalog,
    table: &Table,
    ordinal: usize,
    data_type: DataType,
    using: Option<&Expr>,
) -> Result<Expression, SqlError> {
    let routines = catalog.routines();
    let plan = TablePlan::stored(table, catalog, &routines)?;
    let scope = VariableScope::for_procedure(None).with_routines(&routines);
    let binder = Binder::new(&scope, Source::Table { table: &plan, name: &plan.name });
    let name = &table.columns[ordinal].name;
    let value = match using {
        Some(using) => binder.bind_towards(using, data_type)?,
        None => Expression::column(ordinal, table.columns[ordinal].data_type),
    };
    binder.assign_to_column(value, name, data_type).map_err(|error| {
        if error.state != SqlState::DATATYPE_MISMATCH {
            return error;
        }
        let what = match using {
            Some(_) => "result of USING clause for column",
            None => "column",
        };
        let message =
            format!("{what} \"{name}\" cannot be cast automatically to type {}", data_type.family());
        let hint = match using {
            Some(_) => "You might need to add an explicit cast.".to_string(),
            None => format!("You might need to specify \"USING {name}::{data_type}\"."),
        };
        SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint)
    })
}
