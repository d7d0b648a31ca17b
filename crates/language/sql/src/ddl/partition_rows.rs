//! Rows that come with a partition, and that go with it: DROP TABLE of a partition, ATTACH PARTITION and DETACH PARTITION.
//!
//! The table gets another number with the rows that it has then, as where ALTER TABLE gives rows another shape.

use crate::ddl::attach_partition::check_attached;
use crate::ddl::foreign_keys::check_rows as check_references;
use crate::ddl::indexes::check_unique;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::partition_slices::{any_row, condition_of, is_within};
use crate::ddl::partitions::{NewPartition, find_partitioned, with_partition, without_partitions};
use crate::ddl::primary_key::distinct_key;
use crate::ddl::relations::{generated_name, relation_exists, take_number};
use crate::ddl::renumber::renumber;
use crate::ddl::rows::Rows;
use crate::ddl::views::{depends, drop_dependents};
use sqlparser::ast::ForValues;
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::partition::AlterPartition;
use types::{
    Catalog, ForeignKey, Index, Key, Partition, Partitioning, Row, RowSecurity, SearchPath, SqlError,
    SqlState, Table, TableId, as_given, object_name,
};

/// Takes partitions with all that is inside of them out of a table, and their rows. Gives the table, and the rows. `name`: the outermost.
fn take_out(
    catalog: &mut NewCatalog,
    table: &Table,
    name: &str,
    rows: &mut Rows<'_, '_>,
) -> Result<Vec<(Key, Row)>, SqlError> {
    let condition = condition_of(catalog, table, name)?;
    let gone = table.partitioning.as_ref().map_or_else(Vec::new, |one| one.with_inner(name));
    let mut new = without_partitions(table, &gone);
    let mut taken = Vec::new();
    if any_row(catalog, table, name, rows)? {
        new = renumber(catalog, &new)?;
        taken = rows.split(table.id, new.id, &mut |row| is_within(&condition, row))?;
    }
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    Ok(taken)
}

/// DROP TABLE of what partitions there are among the names. Gives the other names.
///
/// # Errors
/// What depends on a partition, without CASCADE.
pub(super) fn drop_partitions(
    catalog: &mut NewCatalog,
    cascade: bool,
    names: &[String],
    rows: &mut Rows<'_, '_>,
) -> Result<Vec<String>, SqlError> {
    let (mut rest, mut gone) = (Vec::new(), BTreeSet::new());
    for name in names {
        let Some((table, _)) = catalog.partition(name) else {
            rest.extend((!gone.contains(name)).then(|| name.clone()));
            continue;
        };
        if names.contains(&table.name) {
            continue;
        }
        let table = table.clone();
        let inner = table.partitioning.as_ref().map_or_else(Vec::new, |one| one.with_inner(name));
        refuse_referenced(catalog, &table, name, cascade)?;
        let going = [names, &inner].concat();
        for one in &inner {
            let what = format!("table {one}");
            drop_dependents(catalog, &what, cascade, &going, &|view| view.relations.contains(one))?;
            catalog.views.remove(one);
        }
        take_out(catalog, &table, name, rows)?;
        gone.extend(inner);
    }
    Ok(rest)
}

/// Refuses to drop a partition of a table that another one references.
fn refuse_referenced(catalog: &Catalog, table: &Table, name: &str, cascade: bool) -> Result<(), SqlError> {
    let Some((child, foreign_key)) = referencing(catalog, table.id) else { return Ok(()) };
    if cascade {
        return Err(SqlError::unsupported("DROP TABLE … CASCADE of a partition whose table is referenced")
            .hint(format!("Drop the constraint \"{}\" first.", foreign_key.name)));
    }
    let what = format!("table {name}");
    let child = catalog.table(child).map(|child| child.name.clone()).unwrap_or_default();
    Err(depends(&what, &format!("constraint {} on table {child}", foreign_key.name), &what))
}

fn referencing(catalog: &Catalog, parent: TableId) -> Option<(TableId, &ForeignKey)> {
    let find = |(child, keys)| {
        let (child, keys): (&TableId, &Vec<ForeignKey>) = (child, keys);
        keys.iter().find(|foreign_key| foreign_key.parent == parent).map(|foreign_key| (*child, foreign_key))
    };
    catalog.foreign_keys.iter().find_map(find)
}

/// ALTER TABLE … ATTACH PARTITION and DETACH PARTITION. `search_path`: for the bound.
///
/// # Errors
/// What cannot be attached, or is no partition.
pub(super) fn alter_partition(
    catalog: &mut NewCatalog,
    alter: &AlterPartition,
    search_path: &SearchPath,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    if alter.if_exists && !relation_exists(catalog, &alter.table) {
        return Ok(());
    }
    let (table, parent) = find_partitioned(catalog, &alter.table, "table ")?;
    match &alter.bound {
        Some(bound) => attach(catalog, (&table, parent), &alter.partition, (bound, search_path), rows),
        None => detach(catalog, (&table, parent), &alter.partition, rows),
    }
}

/// The rows of a table become a partition of another one.
fn attach(
    catalog: &mut NewCatalog,
    (table, parent): (&Arc<Table>, Option<String>),
    name: &str,
    (bound, search_path): (&ForValues, &SearchPath),
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let child = check_attached(catalog, table, name)?;
    let new = NewPartition { table, parent, name, search_path };
    let partition = new.bind(catalog, bound, rows)?;
    let new = with_partition(table, name, partition);
    let condition = condition_of(catalog, &new, name)?;
    let mut found = Vec::new();
    rows.visit(child.id, &mut |_, _, row| {
        if !is_within(&condition, row)? {
            let message =
                format!("partition constraint of relation \"{}\" is violated by some row", object_name(name));
            return Err(SqlError::new(SqlState::CHECK_VIOLATION, message));
        }
        found.push(row.clone());
        Ok(())
    })?;
    catalog.tables.remove(name);
    catalog.indexes.remove(&child.id);
    catalog.foreign_keys.remove(&child.id);
    if found.is_empty() {
        catalog.tables.insert(new.name.clone(), Arc::new(new));
        return Ok(());
    }
    let new = Arc::new(renumber(catalog, &new)?);
    rows.rewrite(table.id, new.id, &mut |key, row| Ok((key.clone(), row.clone())))?;
    rows.forget(child.id);
    // No other partition has a key with these values of what the table is partitioned by.
    let mut seen = BTreeSet::new();
    for row in found {
        let key = match new.primary_key.is_empty() {
            true => rows.execution.draw_key()?,
            false => distinct_key(&new, &row, &mut seen)?,
        };
        rows.execution.keep_row(&key, &row, 0)?;
        rows.put(new.id, key, row)?;
    }
    catalog.tables.insert(new.name.clone(), new.clone());
    let unique: Vec<Index> = catalog.indexes_of(new.id).to_vec();
    for index in unique.iter().filter(|index| index.unique && !index.is_computed()) {
        check_unique(catalog, &new, index, rows)?;
    }
    let own: Vec<ForeignKey> = catalog.foreign_keys_of(new.id).to_vec();
    own.iter().filter(|one| one.valid).try_for_each(|one| check_references(catalog, &new, one, rows))
}

/// The rows of a partition become those of a table of their own.
fn detach(
    catalog: &mut NewCatalog,
    (table, parent): (&Arc<Table>, Option<String>),
    name: &str,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    if !relation_exists(catalog, name) {
        let message = format!("relation \"{}\" does not exist", as_given(name));
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    }
    let partition = table.partitioning.as_ref().and_then(|one| one.partitions.get(name));
    let Some(partition) = partition.filter(|one| one.parent == parent) else {
        let message = format!(
            "relation \"{}\" is not a partition of relation \"{}\"",
            object_name(name),
            object_name(parent.as_ref().unwrap_or(&table.name))
        );
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    };
    if let Some((_, foreign_key)) = referencing(catalog, table.id) {
        return Err(SqlError::unsupported("DETACH PARTITION of a table that is referenced")
            .hint(format!("Drop the constraint \"{}\" first.", foreign_key.name)));
    }
    let own = detached(catalog, table, name, partition)?;
    let (indexes, foreign_keys) =
        (catalog.indexes_of(table.id).to_vec(), catalog.foreign_keys_of(table.id).to_vec());
    let taken = take_out(catalog, table, name, rows)?;
    catalog.views.remove(name);
    for (key, row) in taken {
        rows.execution.keep_row(&key, &row, 0)?;
        rows.put(own.id, key, row)?;
    }
    let own = Arc::new(own);
    catalog.tables.insert(name.to_string(), own.clone());
    for index in indexes {
        let name = index_name(catalog, &own, &index);
        let index = Index { number: take_number(catalog)?, name, ..index };
        catalog.indexes.entry(own.id).or_default().push(index);
    }
    for foreign_key in foreign_keys {
        let foreign_key = ForeignKey { number: take_number(catalog)?, ..foreign_key };
        catalog.foreign_keys.entry(own.id).or_default().push(foreign_key);
    }
    Ok(())
}

/// The table that a partition becomes.
fn detached(
    catalog: &mut NewCatalog,
    table: &Table,
    name: &str,
    partition: &Partition,
) -> Result<Table, SqlError> {
    let inner = |key: &types::PartitionKey| {
        let all = table.partitioning.as_deref();
        let names = all.map_or_else(Vec::new, |one| one.with_inner(name));
        let partitions = all.into_iter().flat_map(|one| &one.partitions);
        let partitions = partitions.filter(|(one, _)| one.as_str() != name && names.contains(one));
        let moved = |(one, inner): (&String, &Partition)| {
            let parent = inner.parent.clone().filter(|parent| parent != name);
            (one.clone(), Partition { parent, ..inner.clone() })
        };
        Arc::new(Partitioning { key: key.clone(), partitions: partitions.map(moved).collect() })
    };
    let id = TableId(take_number(catalog)?);
    let mut own = Table {
        id,
        name: name.to_string(),
        primary_key_name: generated_name(object_name(name), "", "pkey"),
        row_security: RowSecurity::default(),
        partitioning: partition.key.as_ref().map(inner),
        ..table.clone()
    };
    for (number, column) in own.columns.iter_mut().enumerate() {
        // What counts belongs to the table.
        let mut owners = catalog.sequences.values().filter_map(|sequence| sequence.owner.as_ref());
        if owners.any(|owner| owner.table == table.id && usize::from(owner.column) == number) {
            column.default = None;
        }
    }
    Ok(own)
}

/// PostgreSQL's name for an index of a table that has it from another one.
fn index_name(catalog: &Catalog, table: &Table, index: &Index) -> String {
    let column = |ordinal: &u16| match table.columns.get(usize::from(*ordinal)) {
        Some(column) => column.name.clone(),
        None => "expr".to_string(),
    };
    let columns: Vec<String> = index.columns.iter().chain(&index.details.included).map(column).collect();
    let (columns, label) = match (index.primary, index.constraint) {
        (true, _) => (String::new(), "pkey"),
        (false, true) => (columns.join("_"), "key"),
        (false, false) => (columns.join("_"), "idx"),
    };
    let mut candidates = (0..).map(|number: u32| {
        let label = if number == 0 { label.to_string() } else { format!("{label}{number}") };
        generated_name(table.object_name(), &columns, &label)
    });
    let free = candidates.find(|name| !relation_exists(catalog, &table.index_name(name)));
    free.unwrap_or_default()
}
