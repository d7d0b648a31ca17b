//! Partitions of tables: CREATE TABLE … PARTITION OF, and what the catalog has of them.
//!
//! The rows are the table's. A partition is an entry of the table ([`types::Partitioning`]) and a view of the catalog that follows from it:
//! the table's columns, where the partition's bound is true. So whatever finds, reads and changes views does so with partitions, and
//! after each change of the schema the views are made what the tables say ([`list_partitions`]).

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::partition_bounds::{NewBound, PartitionKeyDraft, bind_partition_key};
use crate::ddl::partition_slices::any_row;
use crate::ddl::relations::{check_type_free, relation_exists};
use crate::ddl::rows::Rows;
use crate::ddl::schemas::move_objects;
use crate::ddl::views::check_all;
use plan::partition_conditions::PartitionConditions;
use sqlparser::ast::{CreateTable, ForValues};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use syntax::names::table_name;
use types::{
    Catalog, Column, CompositeTypes, OutputColumn, Partition, PartitionBound, Partitioning, SearchPath,
    SqlError, SqlState, Table, View, as_given, catalog_name, limits, object_name, schema_of,
};

/// A partition as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct PartitionDraft {
    pub(super) if_not_exists: bool,
    pub(super) name: String,
    /// The table, or the partition, that it is one of.
    pub(super) parent: String,
    bound: ForValues,
    key: Option<PartitionKeyDraft>,
    /// Where names without a schema are looked for.
    pub(super) search_path: SearchPath,
}

/// CREATE TABLE … PARTITION OF; `None` where it is another CREATE TABLE.
///
/// # Errors
/// Forms that are not supported.
pub(super) fn bind_partition(create: &CreateTable) -> Result<Option<PartitionDraft>, SqlError> {
    let Some(parent) = &create.partition_of else { return Ok(None) };
    if !create.columns.is_empty() || !create.constraints.is_empty() {
        return Err(SqlError::unsupported("a column or a constraint of one partition")
            .hint("Give it to the table: a partition has the table's columns and constraints."));
    }
    let Some(bound) = create.for_values.clone() else {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "a partition needs FOR VALUES or DEFAULT"));
    };
    Ok(Some(PartitionDraft {
        if_not_exists: create.if_not_exists,
        name: table_name(&create.name)?,
        parent: table_name(parent)?,
        bound,
        key: create.partition_by.as_deref().map(bind_partition_key).transpose()?,
        search_path: SearchPath::default(),
    }))
}

/// What is partitioned: a table and, where it is one, the partition of it that has this name.
///
/// # Errors
/// `42P01` where it is not there, `42P17` where it is not partitioned. `what`: a word in front of its name.
pub(super) fn find_partitioned(
    catalog: &Catalog,
    name: &str,
    what: &str,
) -> Result<(Arc<Table>, Option<String>), SqlError> {
    if let Some(table) = catalog.tables.get(name).filter(|table| table.partitioning.is_some()) {
        return Ok((table.clone(), None));
    }
    if let Some((table, partition)) = catalog.partition(name)
        && partition.key.is_some()
    {
        return Ok((table.clone(), Some(name.to_string())));
    }
    if !relation_exists(catalog, name) {
        let message = format!("relation \"{}\" does not exist", as_given(name));
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    }
    let message = format!("{what}\"{}\" is not partitioned", object_name(name));
    Err(SqlError::new(SqlState(*b"42P17"), message))
}

/// Adds a partition to a table.
///
/// # Errors
/// A name that is taken; what is wrong with the bound; rows of a DEFAULT that the partition would have.
pub(super) fn create_partition(
    catalog: &mut NewCatalog,
    draft: &PartitionDraft,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let name = &draft.name;
    if relation_exists(catalog, name) {
        if draft.if_not_exists && (catalog.tables.contains_key(name) || catalog.partition(name).is_some()) {
            return Ok(());
        }
        let message = format!("relation \"{}\" already exists", object_name(name));
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    check_type_free(catalog, name)?;
    let (table, parent) = find_partitioned(catalog, &draft.parent, "")?;
    let key = draft.key.as_ref().map(|key| key.of(&table)).transpose()?;
    let new = NewPartition { table: &table, parent, name, search_path: &draft.search_path };
    let partition = Partition { key, ..new.bind(catalog, &draft.bound, rows)? };
    let table = with_partition(&table, name, partition);
    catalog.tables.insert(table.name.clone(), Arc::new(table));
    Ok(())
}

/// A partition that a table is to get.
pub(super) struct NewPartition<'a> {
    pub table: &'a Table,
    /// The partition that it is to be one of; `None`: it is to be one of the table.
    pub parent: Option<String>,
    /// Its name in the catalog.
    pub name: &'a str,
    pub search_path: &'a SearchPath,
}

impl NewPartition<'_> {
    /// Binds its bound, and holds rows against it that are in a DEFAULT.
    ///
    /// # Errors
    /// As [`create_partition`].
    pub(super) fn bind(
        self,
        catalog: &NewCatalog,
        bound: &ForValues,
        rows: &mut Rows<'_, '_>,
    ) -> Result<Partition, SqlError> {
        let NewPartition { table, parent, name, search_path } = self;
        let partitions = table.partitioning.iter().flat_map(|one| &one.partitions);
        if partitions.count() >= limits::PARTITIONS_MAX || catalog.views.len() >= limits::TABLES_MAX {
            let limit = limits::PARTITIONS_MAX;
            let message = format!("a table has at most {limit} partitions (PARTITIONS_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        refuse_too_deep(table, parent.as_deref())?;
        let bound =
            NewBound { table, parent: parent.as_deref(), name, search_path }.bind(catalog, bound, rows)?;
        let partition = Partition { parent, bound, key: None };
        if partition.bound == PartitionBound::Default {
            return Ok(partition);
        }
        if let Some(default) = default_of(table, partition.parent.as_deref())
            && any_row(catalog, &with_partition(table, name, partition.clone()), name, rows)?
        {
            let message = format!(
                "updated partition constraint for default partition \"{}\" would be violated by some row",
                object_name(default)
            );
            return Err(SqlError::new(SqlState::CHECK_VIOLATION, message));
        }
        Ok(partition)
    }
}

/// The DEFAULT of a table, or of a partition of it.
fn default_of<'t>(table: &'t Table, parent: Option<&str>) -> Option<&'t String> {
    let partitions = table.partitioning.iter().flat_map(|one| &one.partitions);
    let mut siblings = partitions.filter(|(_, one)| one.parent.as_deref() == parent);
    siblings.find(|(_, one)| one.bound == PartitionBound::Default).map(|(name, _)| name)
}

fn refuse_too_deep(table: &Table, parent: Option<&str>) -> Result<(), SqlError> {
    let (mut depth, mut next) = (0, parent);
    while let Some(name) = next {
        depth += 1;
        let partition = table.partitioning.as_ref().and_then(|one| one.partitions.get(name));
        next = partition.and_then(|partition| partition.parent.as_deref());
    }
    if depth < limits::PARTITIONS_DEEP_MAX {
        return Ok(());
    }
    let limit = limits::PARTITIONS_DEEP_MAX;
    let message =
        format!("partitions stand more than {limit} deep inside of one another (PARTITIONS_DEEP_MAX)");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

/// The table with a partition more.
pub(super) fn with_partition(table: &Table, name: &str, partition: Partition) -> Table {
    let mut table = table.clone();
    if let Some(partitioning) = &mut table.partitioning {
        Arc::make_mut(partitioning).partitions.insert(name.to_string(), partition);
    }
    table
}

/// The table without some of its partitions.
pub(super) fn without_partitions(table: &Table, names: &[String]) -> Table {
    let mut table = table.clone();
    if let Some(partitioning) = &mut table.partitioning {
        Arc::make_mut(partitioning).partitions.retain(|name, _| !names.contains(name));
    }
    table
}

/// What a table is partitioned by without a column of this number, in front of which its other columns stay.
pub(super) fn without_column(
    partitioning: Option<&Arc<Partitioning>>,
    number: u16,
) -> Option<Arc<Partitioning>> {
    let mut partitioning = partitioning?.clone();
    for key in Arc::make_mut(&mut partitioning).keys_mut() {
        key.columns.iter_mut().for_each(|ordinal| *ordinal -= u16::from(*ordinal > number));
    }
    Some(partitioning)
}

/// Refuses to change a column that something is partitioned by.
///
/// # Errors
/// `42P16`
pub(super) fn refuse_key_column(table: &Table, number: u16, verb: &str) -> Result<(), SqlError> {
    let Some(partitioning) = &table.partitioning else { return Ok(()) };
    let uses = |columns: &[u16]| columns.contains(&number);
    let inner = partitioning.partitions.iter();
    let mut inner = inner.filter(|(_, one)| one.key.as_ref().is_some_and(|key| uses(&key.columns)));
    let relation = match uses(&partitioning.key.columns) {
        true => Some(&table.name),
        false => inner.next().map(|(name, _)| name),
    };
    let Some(relation) = relation else { return Ok(()) };
    let message = format!(
        "cannot {verb} column \"{}\" because it is part of the partition key of relation \"{}\"",
        table.columns[usize::from(number)].name,
        object_name(relation)
    );
    Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
}

/// Takes the views of a table's partitions out of the catalog, which an ALTER TABLE would find in its way.
pub(super) fn unlist_partitions(catalog: &mut Catalog, table: &str) {
    let Some(partitioning) = catalog.tables.get(table).and_then(|table| table.partitioning.clone()) else {
        return;
    };
    partitioning.partitions.keys().for_each(|name| drop(catalog.views.remove(name)));
}

/// Makes the views of partitions what the tables say, after a change of the schema.
///
/// # Errors
/// `0A000` for a key of a table without what it is partitioned by; what a view of a partition is that is another one now.
pub(super) fn list_partitions(previous: &Catalog, catalog: &mut NewCatalog) -> Result<(), SqlError> {
    let partitioned = |catalog: &Catalog| catalog.tables.values().any(|table| table.partitioning.is_some());
    if !partitioned(previous) && !partitioned(catalog) {
        return Ok(());
    }
    let names = |catalog: &Catalog| {
        let partitionings = catalog.tables.values().filter_map(|table| table.partitioning.as_ref());
        partitionings.flat_map(|one| one.partitions.keys().cloned()).collect::<BTreeSet<String>>()
    };
    let now = names(catalog);
    names(previous).difference(&now).for_each(|gone| drop(catalog.views.remove(gone)));
    let types = CompositeTypes::new(catalog).with_rules(catalog.rules);
    let mut changed = Vec::new();
    for table in catalog.tables.values() {
        let (Some(partitioning), Some(conditions)) =
            (&table.partitioning, PartitionConditions::new(table, &types))
        else {
            continue;
        };
        check_unique_keys(catalog, table, partitioning)?;
        for name in partitioning.partitions.keys() {
            let view = view_of(table, name, &conditions);
            if catalog.views.get(name).is_none_or(|known| **known != view) {
                changed.push(Arc::new(view));
            }
        }
    }
    for view in &changed {
        catalog.views.insert(view.name.clone(), view.clone());
    }
    let other =
        |view: &&Arc<View>| previous.views.get(&view.name).is_some_and(|known| known.columns != view.columns);
    changed.iter().filter(other).try_for_each(|view| check_all(catalog, &view.name))
}

/// The view that a partition is.
fn view_of(table: &Table, name: &str, conditions: &PartitionConditions<'_>) -> View {
    let column =
        |column: &Column| OutputColumn { name: column.name.clone(), data_type: column.data_type.unrounded() };
    View {
        name: name.to_string(),
        columns: table.columns.iter().map(column).collect(),
        query: conditions.query(name),
        relations: BTreeSet::from([table.name.clone()]),
        functions: BTreeSet::new(),
        check_option: None,
        triggers: BTreeMap::new(),
    }
}

/// As PostgreSQL: a key that is unique within each partition alone would not be unique.
fn check_unique_keys(catalog: &Catalog, table: &Table, partitioning: &Partitioning) -> Result<(), SqlError> {
    let inner = partitioning.partitions.iter().filter_map(|(name, one)| Some((name, one.key.as_ref()?)));
    for (relation, key) in std::iter::once((&table.name, &partitioning.key)).chain(inner) {
        let lacks = |columns: &[u16]| key.columns.iter().find(|ordinal| !columns.contains(ordinal)).copied();
        let refused = |kind: &str, ordinal: u16| {
            let message = "unique constraint on partitioned table must include all partitioning columns";
            let column = &table.columns[usize::from(ordinal)].name;
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(format!(
                "{kind} constraint on table \"{}\" lacks column \"{column}\" which is part of the partition key.",
                object_name(relation)
            )))
        };
        if let Some(ordinal) = lacks(&table.primary_key).filter(|_| !table.primary_key.is_empty()) {
            return refused("PRIMARY KEY", ordinal);
        }
        for index in catalog.indexes_of(table.id).iter().filter(|index| index.unique) {
            if let Some(ordinal) = lacks(&index.columns) {
                return refused(if index.primary { "PRIMARY KEY" } else { "UNIQUE" }, ordinal);
            }
        }
    }
    Ok(())
}

/// ALTER TABLE … RENAME TO and SET SCHEMA of a partition: it gets another name in the catalog.
///
/// # Errors
/// A name that is taken.
pub(super) fn rename_partition(catalog: &mut NewCatalog, name: &str, to: &str) -> Result<(), SqlError> {
    if relation_exists(catalog, to) {
        let message = format!("relation \"{}\" already exists", object_name(to));
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    check_type_free(catalog, to)?;
    move_objects(catalog, &|moved| (moved == name).then(|| to.to_string()))
}

/// The name that a partition gets in its schema, or the same in another schema.
pub(super) fn moved_name(name: &str, object: Option<&str>, schema: Option<&str>) -> String {
    catalog_name(schema.unwrap_or(schema_of(name)), object.unwrap_or(object_name(name)))
}
