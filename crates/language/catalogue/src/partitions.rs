//! What partitions make of relations: what these are partitioned by, what they are partitions of.

use crate::cell::NamedRow;
use crate::objects::places;
use std::collections::BTreeSet;
use types::{
    Catalog, CompositeTypes, DataType, PartitionBound, PartitionKey, PartitionStrategy, Partitioning, Table,
    quoted_catalog_name,
};
use values::quote_ident;

/// What partitions make of a relation.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionFacts {
    /// What it is partitioned by.
    pub(crate) key: Option<KeyFacts>,
    /// What it is a partition of, by object identifier.
    pub(crate) parent: Option<i32>,
    /// The rows that it has, as PostgreSQL shows them, and as a condition.
    bound: Option<(String, String)>,
}

#[derive(Clone, Debug)]
pub(crate) struct KeyFacts {
    /// `r` for ranges, `l` for lists.
    pub(crate) strategy: &'static str,
    /// From 1.
    pub(crate) columns: Vec<i64>,
    definition: String,
    /// Object identifier of its DEFAULT; 0: it has none.
    pub(crate) default: i32,
}

impl PartitionFacts {
    /// Of a table.
    pub(crate) fn of_table(table: &Table, catalog: &Catalog) -> PartitionFacts {
        let partitioning = table.partitioning.as_deref();
        let key = partitioning.map(|one| key_facts(table, one, (None, &one.key), catalog));
        PartitionFacts { key, ..PartitionFacts::default() }
    }

    /// Of a partition, and the table whose rows it has; `None` where a view is none.
    pub(crate) fn of_partition<'c>(name: &str, catalog: &'c Catalog) -> Option<(&'c Table, PartitionFacts)> {
        let (table, partition) = catalog.partition(name)?;
        let partitioning = table.partitioning.as_deref()?;
        let key = partition.key.as_ref();
        let key = key.map(|key| key_facts(table, partitioning, (Some(name), key), catalog));
        let parent = match partition.parent.as_deref() {
            None => table.id.object_identifier(),
            Some(parent) => identifier(parent, catalog),
        };
        let types = CompositeTypes::new(catalog);
        let outer = partitioning.key_of(partition.parent.as_deref())?;
        let columns = outer.columns.iter().filter_map(|ordinal| table.columns.get(usize::from(*ordinal)));
        let columns: Vec<DataType> = columns.map(|column| types.base_of(column.data_type)).collect();
        // The view that it is has the condition at its end.
        let from = format!(" FROM {} WHERE ", quoted_catalog_name(&table.name));
        let condition = catalog.views.get(name)?.query.split_once(&from)?.1.to_string();
        let bound = Some((partition.bound.shown(&columns), condition));
        Some((table, PartitionFacts { key, parent: Some(parent), bound }))
    }

    /// `p` for what is partitioned, `r` else.
    pub(crate) fn kind(&self) -> &'static str {
        if self.key.is_some() { "p" } else { "r" }
    }

    /// What `pg_class` says of it.
    pub(crate) fn class_cells(&self) -> NamedRow {
        vec![
            ("relispartition", self.parent.is_some().into()),
            ("relhassubclass", self.key.is_some().into()),
            ("relpartbound", self.bound.as_ref().map(|(bound, _)| bound.clone()).into()),
        ]
    }

    /// What functions print of it: kinds of definitions, and these.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let key = self.key.iter().map(|key| ("partition key", &key.definition));
        key.chain(self.bound.iter().map(|(_, condition)| ("partition constraint", condition)))
    }
}

/// Views of the ledger that have object identifiers.
const VIEWS: usize = 2_000_000;

/// The session's temporary views, and the partitions of its temporary tables.
pub(crate) fn temporary_views(catalog: &Catalog) -> BTreeSet<&String> {
    let tables = catalog.tables.values().filter(|table| table.id.is_temporary());
    let partitions = tables.flat_map(|table| &table.partitioning).flat_map(|one| one.partitions.keys());
    let is_ours = |name: &&String| catalog.row_types.get(*name).is_some_and(|id| id.is_temporary());
    partitions.chain(catalog.views.keys().filter(is_ours)).collect()
}

/// The numbers of all views, in the order of their names.
pub(crate) fn view_numbers(catalog: &Catalog) -> Vec<usize> {
    let ours = temporary_views(catalog);
    places(catalog.views.keys().map(|name| ours.contains(name)), VIEWS)
}

/// The object identifier of the view of this number.
pub(crate) fn view_identifier(number: usize) -> i32 {
    1_200_000_000 + 4 * number as i32
}

/// The object identifier of a partition: that of the view that it is.
fn identifier(name: &str, catalog: &Catalog) -> i32 {
    let place = catalog.views.keys().position(|known| known == name);
    view_identifier(place.and_then(|place| view_numbers(catalog).get(place).copied()).unwrap_or_default())
}

fn key_facts(
    table: &Table,
    partitioning: &Partitioning,
    (name, key): (Option<&str>, &PartitionKey),
    catalog: &Catalog,
) -> KeyFacts {
    let names = key.columns.iter().filter_map(|ordinal| table.columns.get(usize::from(*ordinal)));
    let names: Vec<String> = names.map(|column| quote_ident(&column.name)).collect();
    let mut partitions = partitioning.partitions_of(name);
    let default = partitions.find(|(_, one)| one.bound == PartitionBound::Default);
    KeyFacts {
        strategy: match key.strategy {
            PartitionStrategy::Range => "r",
            PartitionStrategy::List => "l",
        },
        columns: key.columns.iter().map(|ordinal| i64::from(*ordinal) + 1).collect(),
        definition: format!("{} ({})", key.strategy.name(), names.join(", ")),
        default: default.map_or(0, |(name, _)| identifier(name, catalog)),
    }
}
