//! Partitioned tables and their partitions as `pg_inherits` and `pg_partitioned_table` show them.

use crate::cell::{Cell, NamedRow};
use crate::objects::{Objects, Relation};

/// The rows of `pg_inherits`.
pub(crate) fn inheritance(objects: &Objects) -> Vec<NamedRow> {
    let row = |relation: &Relation| {
        Some(vec![
            ("inhrelid", relation.oid.into()),
            ("inhparent", relation.partitions.parent?.into()),
            ("inhseqno", 1.into()),
            ("inhdetachpending", false.into()),
        ])
    };
    objects.relations.iter().filter_map(row).collect()
}

/// The rows of `pg_partitioned_table`.
pub(crate) fn partitioned(objects: &Objects) -> Vec<NamedRow> {
    let row = |relation: &Relation| {
        let key = relation.partitions.key.as_ref()?;
        let zeros = || Cell::Integers(vec![0; key.columns.len()]);
        Some(vec![
            ("partrelid", relation.oid.into()),
            ("partstrat", key.strategy.into()),
            ("partnatts", (key.columns.len() as i32).into()),
            ("partdefid", key.default.into()),
            ("partattrs", Cell::Integers(key.columns.clone())),
            ("partclass", zeros()),
            ("partcollation", zeros()),
        ])
    };
    objects.relations.iter().filter_map(row).collect()
}
