//! FOREIGN KEY constraints: making and dropping them.

use crate::ddl::deferral::bind_deferral;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::{constraint_exists, generated_name, take_number};
use crate::ddl::rows::Rows;
use plan::constraint::ForeignKeys;
use plan::expression::Environment;
use sqlparser::ast::{self, ConstraintReferenceMatchKind};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::set_columns::columns_set_on_delete;
use types::{
    Catalog, Column, CompositeTypes, DataType, Deferral, ExecutionVersion, ForeignKey, Index,
    ReferentialAction, SqlError, SqlState, Table, TableId, Value,
};

/// A FOREIGN KEY as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct ForeignKeyDraft {
    /// Its name; `None`: PostgreSQL's.
    pub name: Option<String>,
    /// Names of the columns that reference.
    pub columns: Vec<String>,
    /// The table that is referenced.
    pub parent: String,
    /// Names of its columns; none: its primary key.
    pub referenced: Vec<String>,
    /// ON DELETE
    pub on_delete: ReferentialAction,
    /// ON UPDATE
    pub on_update: ReferentialAction,
    /// When it is held.
    pub deferral: Deferral,
    /// MATCH FULL
    pub match_full: bool,
    /// NOT VALID
    pub not_valid: bool,
    /// Names of the columns that ON DELETE SET NULL or SET DEFAULT changes; none: all.
    pub set_on_delete: Vec<String>,
}

/// FOREIGN KEY. `column`: the column that it stands at.
pub(super) fn bind_foreign_key(
    foreign_key: &ast::ForeignKeyConstraint,
    column: Option<&str>,
    rules: ExecutionVersion,
) -> Result<ForeignKeyDraft, SqlError> {
    let deferral = bind_deferral(foreign_key.characteristics.as_ref(), rules)?;
    let match_full = match &foreign_key.match_kind {
        None | Some(ConstraintReferenceMatchKind::Simple) => false,
        Some(ConstraintReferenceMatchKind::Full) if rules >= ExecutionVersion::V8 => true,
        // As PostgreSQL, which does not implement it.
        Some(ConstraintReferenceMatchKind::Partial) if rules >= ExecutionVersion::V8 => {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "MATCH PARTIAL not yet implemented"));
        }
        Some(other) => {
            return Err(SqlError::unsupported(format_args!("{other}")).hint("Use MATCH SIMPLE and NOT NULL."));
        }
    };
    let names = |idents: &[ast::Ident]| idents.iter().map(name_of).collect::<Result<Vec<_>, _>>();
    let columns = match column {
        Some(column) => vec![column.to_string()],
        None => names(&foreign_key.columns)?,
    };
    Ok(ForeignKeyDraft {
        name: foreign_key.name.as_ref().map(name_of).transpose()?,
        columns,
        parent: table_name(&foreign_key.foreign_table)?,
        referenced: names(&foreign_key.referred_columns)?,
        on_delete: action(foreign_key.on_delete.as_ref()),
        on_update: action(foreign_key.on_update.as_ref()),
        deferral,
        match_full,
        not_valid: false,
        set_on_delete: match rules >= ExecutionVersion::V8 {
            true => columns_set_on_delete(foreign_key.index_name.as_ref()),
            false => Vec::new(),
        },
    })
}

fn action(action: Option<&ast::ReferentialAction>) -> ReferentialAction {
    match action {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// Adds a constraint to a table of the catalog.
///
/// # Errors
/// Unknown table or columns, columns that are no key there or of other types; rows that reference nothing.
pub(super) fn create_foreign_key(
    catalog: &mut NewCatalog,
    table: &Arc<Table>,
    draft: &ForeignKeyDraft,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    if catalog.partition(&draft.parent).is_some() {
        return Err(SqlError::unsupported("a FOREIGN KEY that references a partition")
            .hint("Reference the partitioned table."));
    }
    if catalog.views.contains_key(&draft.parent) || catalog.materialized_view(&draft.parent).is_some() {
        let message = format!("referenced relation \"{}\" is not a table", types::object_name(&draft.parent));
        return Err(SqlError::new(SqlState(*b"42809"), message));
    }
    let Some(parent) = catalog.tables.get(&draft.parent).cloned() else {
        let message = format!("relation \"{}\" does not exist", types::as_given(&draft.parent));
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    };
    let columns = ordinals(table, &draft.columns)?;
    if catalog.rules >= ExecutionVersion::V8 {
        refuse_generated(table, &columns, draft)?;
    }
    let referenced = match draft.referenced.as_slice() {
        [] if has_deferrable_key(catalog, &parent) => {
            let table = parent.object_name();
            let message = format!("cannot use a deferrable primary key for referenced table \"{table}\"");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        [] if parent.primary_key.is_empty() => {
            let message =
                format!("there is no primary key for referenced table \"{}\"", parent.object_name());
            return Err(SqlError::new(SqlState(*b"42704"), message));
        }
        [] => parent.primary_key.clone(),
        names => ordinals(&parent, names)?,
    };
    let index = referenced_key(catalog, &parent, &referenced)?;
    if referenced.len() != columns.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(SqlError::new(SqlState(*b"42830"), message));
    }
    let name = match &draft.name {
        Some(name) if constraint_exists(catalog, table, name) => {
            let message =
                format!("constraint \"{name}\" for relation \"{}\" already exists", table.object_name());
            return Err(SqlError::new(SqlState(*b"42710"), message));
        }
        Some(name) => name.clone(),
        None => {
            let candidates = (0..).map(|number: u32| {
                let label = if number == 0 { "fkey".to_string() } else { format!("fkey{number}") };
                generated_name(table.object_name(), &draft.columns.join("_"), &label)
            });
            candidates.into_iter().find(|name| !constraint_exists(catalog, table, name)).unwrap_or_default()
        }
    };
    check_types(&CompositeTypes::new(catalog), table, &parent, &name, &columns, &referenced)?;
    let set_on_delete = set_columns(table, draft, &columns)?;
    let foreign_key = ForeignKey {
        number: take_number(catalog)?,
        name,
        columns,
        parent: parent.id,
        referenced,
        index,
        on_delete: draft.on_delete,
        on_update: draft.on_update,
        deferral: draft.deferral,
        match_full: draft.match_full,
        valid: !draft.not_valid,
        set_on_delete,
    };
    catalog.foreign_keys.entry(table.id).or_default().push(foreign_key.clone());
    match foreign_key.valid {
        true => check_rows(catalog, table, &foreign_key, rows),
        // Binds it: what is wrong is said now.
        false => catalog.bound().map(drop),
    }
}

/// Ordinals of the columns that ON DELETE changes, where it says which.
fn set_columns(table: &Table, draft: &ForeignKeyDraft, columns: &[u16]) -> Result<Vec<u16>, SqlError> {
    let mut found = ordinals(table, &draft.set_on_delete)?;
    if let Some(other) = found.iter().find(|ordinal| !columns.contains(ordinal)) {
        let name = &table.columns[usize::from(*other)].name;
        let message =
            format!("column \"{name}\" referenced in ON DELETE SET action must be part of foreign key");
        return Err(SqlError::new(SqlState(*b"42P10"), message));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Whether the primary key of a table is one that can be deferred.
fn has_deferrable_key(catalog: &Catalog, table: &Table) -> bool {
    catalog.indexes_of(table.id).iter().any(|index| index.primary)
}

/// Refuses actions that would assign a generated column.
fn refuse_generated(table: &Table, columns: &[u16], draft: &ForeignKeyDraft) -> Result<(), SqlError> {
    use ReferentialAction::{Cascade, SetDefault, SetNull};
    if !columns.iter().any(|ordinal| table.columns[usize::from(*ordinal)].generated) {
        return Ok(());
    }
    let what = if matches!(draft.on_update, Cascade | SetNull | SetDefault) {
        "ON UPDATE"
    } else if matches!(draft.on_delete, SetNull | SetDefault) {
        "ON DELETE"
    } else {
        return Ok(());
    };
    let message = format!("invalid {what} action for foreign key constraint containing generated column");
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
}

fn ordinals(table: &Table, names: &[String]) -> Result<Vec<u16>, SqlError> {
    let ordinal = |name: &String| {
        table.ordinal(name).map(|ordinal| ordinal as u16).ok_or_else(|| {
            let message = format!("column \"{name}\" referenced in foreign key constraint does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })
    };
    names.iter().map(ordinal).collect()
}

/// The unique index that has these columns; `None`: the primary key has.
fn referenced_key(catalog: &Catalog, parent: &Table, columns: &[u16]) -> Result<Option<u32>, SqlError> {
    let same = |key: &[u16]| {
        let (mut key, mut columns) = (key.to_vec(), columns.to_vec());
        key.sort_unstable();
        columns.sort_unstable();
        key == columns
    };
    if same(&parent.primary_key) {
        return Ok(None);
    }
    let matching = || {
        catalog
            .indexes_of(parent.id)
            .iter()
            .filter(|index| index.unique && !index.is_computed() && same(&index.columns))
    };
    let index = matching().find(|index| !index.deferral.is_deferrable());
    if index.is_none() && matching().next().is_some() {
        let table = parent.object_name();
        let message = format!("cannot use a deferrable unique constraint for referenced table \"{table}\"");
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    index.map(|index| Some(index.number)).ok_or_else(|| {
        let message = format!(
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            parent.object_name()
        );
        SqlError::new(SqlState(*b"42830"), message)
    })
}

fn check_types(
    types: &CompositeTypes,
    child: &Table,
    parent: &Table,
    name: &str,
    columns: &[u16],
    referenced: &[u16],
) -> Result<(), SqlError> {
    for (ordinal, referenced) in columns.iter().zip(referenced) {
        let (column, referenced) =
            (&child.columns[usize::from(*ordinal)], &parent.columns[usize::from(*referenced)]);
        let family = |column: &Column| types.base_of(column.data_type).family();
        let (one, other) = (family(column), family(referenced));
        let number =
            |data_type: DataType| data_type.is_integer() || matches!(data_type, DataType::Numeric(_));
        if one == other || (number(one) && number(other)) {
            continue;
        }
        let message = format!("foreign key constraint \"{name}\" cannot be implemented");
        return Err(SqlError::new(SqlState(*b"42804"), message).detail(format!(
            "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
            column.name, referenced.name, one, other
        )));
    }
    Ok(())
}

/// Refuses rows that reference nothing.
pub(super) fn check_rows(
    catalog: &NewCatalog,
    table: &Table,
    foreign_key: &ForeignKey,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    // Binds it in any case: what is wrong is said now.
    let tables = catalog.bound()?;
    let foreign_keys: &ForeignKeys = tables.foreign_keys();
    let Some(plan) = foreign_keys.of_child(table.id).iter().find(|plan| plan.name == foreign_key.name) else {
        return Ok(());
    };
    // The keys of an index that is as new as the constraint stand nowhere yet.
    let mut new_keys = None;
    let index =
        catalog.indexes_of(foreign_key.parent).iter().find(|index| Some(index.number) == foreign_key.index);
    let known = rows.execution.snapshot().catalog().indexes_of(foreign_key.parent);
    if let Some(index) = index.filter(|index| known.iter().all(|known| known.number != index.number)) {
        let mut keys = BTreeSet::new();
        rows.visit(foreign_key.parent, &mut |_, _, row| {
            keys.extend(index.unique_entry(row)?);
            Ok(())
        })?;
        new_keys = Some(keys);
    }
    rows.visit(table.id, &mut |snapshot, _, row| {
        let values: Vec<Value> =
            plan.columns.iter().map(|ordinal| row[usize::from(*ordinal)].clone()).collect();
        if plan.mixes_nulls(&values) {
            return Err(plan.mixed_nulls());
        }
        if values.iter().any(Value::is_null) {
            return Ok(());
        }
        let key = plan.parent_key(&Environment::new(&[], &values, 0))?;
        let is_there = match (key, &new_keys) {
            (None, _) => false,
            (Some(key), Some(keys)) => keys.contains(&key),
            (Some(key), None) => snapshot.get(plan.keys, &key)?.is_some(),
        };
        if is_there { Ok(()) } else { Err(plan.not_present(&values)) }
    })
}

/// Refuses to drop an index that a FOREIGN KEY references. `what`: what is dropped; `depends_on`: what the constraint
/// depends on.
pub(super) fn refuse_needed(
    catalog: &Catalog,
    index: &Index,
    what: &str,
    depends_on: &str,
) -> Result<(), SqlError> {
    let needs = |foreign_key: &ForeignKey| foreign_key.index == Some(index.number);
    refuse_dependents(catalog, &needs, what, depends_on, None)
}

/// Refuses to drop a primary key that a FOREIGN KEY references.
pub(super) fn refuse_key_needed(catalog: &Catalog, table: &Table) -> Result<(), SqlError> {
    let needs = |foreign_key: &ForeignKey| foreign_key.parent == table.id && foreign_key.index.is_none();
    let what = format!("constraint {} on table {}", table.primary_key_name, table.name);
    refuse_dependents(catalog, &needs, &what, &format!("index {}", table.primary_key_name), None)
}

/// Refuses to drop a table that a FOREIGN KEY of another one references.
pub(super) fn refuse_referenced(
    catalog: &Catalog,
    table: &Table,
    dropped: &[TableId],
) -> Result<(), SqlError> {
    let needs = |foreign_key: &ForeignKey| foreign_key.parent == table.id;
    let what = format!("table {}", table.name);
    refuse_dependents(catalog, &needs, &what, &what, Some(dropped))
}

fn refuse_dependents(
    catalog: &Catalog,
    needs: &dyn Fn(&ForeignKey) -> bool,
    what: &str,
    depends_on: &str,
    but_of: Option<&[TableId]>,
) -> Result<(), SqlError> {
    for (child, foreign_keys) in &catalog.foreign_keys {
        if but_of.is_some_and(|dropped| dropped.contains(child)) {
            continue;
        }
        let Some(foreign_key) = foreign_keys.iter().find(|foreign_key| needs(foreign_key)) else { continue };
        let child = catalog.table(*child).map(|table| table.name.clone()).unwrap_or_default();
        let message = format!("cannot drop {what} because other objects depend on it");
        return Err(SqlError::new(SqlState(*b"2BP01"), message)
            .detail(format!("constraint {} on table {child} depends on {depends_on}", foreign_key.name))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    Ok(())
}

/// Takes out the constraints that meet a condition.
pub(super) fn remove_foreign_keys(catalog: &mut Catalog, goes: impl Fn(TableId, &ForeignKey) -> bool) {
    for (child, foreign_keys) in &mut catalog.foreign_keys {
        foreign_keys.retain(|foreign_key| !goes(*child, foreign_key));
    }
    catalog.foreign_keys.retain(|_, foreign_keys| !foreign_keys.is_empty());
}
