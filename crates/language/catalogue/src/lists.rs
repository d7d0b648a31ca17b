//! Relations of `pg_catalog` that are views in PostgreSQL: the same with names instead of numbers. And sequences.

use crate::cell::{Cell, NamedRow};
use crate::objects::{Objects, ROLE, Relation};

pub(crate) fn sequences(objects: &Objects) -> Vec<NamedRow> {
    let sequences = objects.relations.iter().filter(|relation| relation.kind == "S");
    let row = |relation: &Relation| {
        let counting = relation.counting();
        vec![
            ("seqrelid", relation.oid.into()),
            ("seqtypid", (counting.data_type.oid() as i32).into()),
            ("seqstart", Cell::Integer(counting.start)),
            ("seqincrement", Cell::Integer(counting.increment)),
            ("seqmax", Cell::Integer(counting.largest)),
            ("seqmin", Cell::Integer(counting.smallest)),
            ("seqcache", Cell::Integer(relation.cache)),
            ("seqcycle", counting.cycles.into()),
        ]
    };
    sequences.map(row).collect()
}

pub(crate) fn sequence_list(objects: &Objects) -> Vec<NamedRow> {
    let sequences = objects.relations.iter().filter(|relation| relation.kind == "S");
    let row = |relation: &Relation| {
        let counting = relation.counting();
        vec![
            ("schemaname", relation.schema_name.clone().into()),
            ("sequencename", relation.name.clone().into()),
            ("sequenceowner", ROLE.into()),
            ("data_type", (counting.data_type.oid() as i32).into()),
            ("start_value", Cell::Integer(counting.start)),
            ("min_value", Cell::Integer(counting.smallest)),
            ("max_value", Cell::Integer(counting.largest)),
            ("increment_by", Cell::Integer(counting.increment)),
            ("cycle", counting.cycles.into()),
            ("cache_size", Cell::Integer(relation.cache)),
        ]
    };
    sequences.map(row).collect()
}

pub(crate) fn index_list(objects: &Objects) -> Vec<NamedRow> {
    let relations = objects.relations.iter();
    let indexes = relations.flat_map(|relation| relation.indexes.iter().map(move |index| (relation, index)));
    let row = |(relation, index): (&Relation, &crate::objects::Index)| {
        vec![
            ("schemaname", relation.schema_name.clone().into()),
            ("tablename", relation.name.clone().into()),
            ("indexname", index.name.clone().into()),
            ("indexdef", index.definition.clone().into()),
        ]
    };
    indexes.map(row).collect()
}

pub(crate) fn view_list(objects: &Objects) -> Vec<NamedRow> {
    let views = objects.relations.iter().filter(|relation| relation.kind == "v");
    let row = |relation: &Relation| {
        vec![
            ("schemaname", relation.schema_name.clone().into()),
            ("viewname", relation.name.clone().into()),
            ("viewowner", ROLE.into()),
            ("definition", relation.query.as_ref().map(|query| format!(" {query};")).into()),
        ]
    };
    views.map(row).collect()
}

pub(crate) fn materialized_list(objects: &Objects) -> Vec<NamedRow> {
    let views = objects.relations.iter().filter(|relation| relation.kind == "m");
    let row = |relation: &Relation| {
        vec![
            ("schemaname", relation.schema_name.clone().into()),
            ("matviewname", relation.name.clone().into()),
            ("matviewowner", ROLE.into()),
            ("hasindexes", (!relation.indexes.is_empty()).into()),
            ("ispopulated", relation.is_populated.into()),
            ("definition", relation.query.as_ref().map(|query| format!(" {query};")).into()),
        ]
    };
    views.map(row).collect()
}

pub(crate) fn table_list(objects: &Objects) -> Vec<NamedRow> {
    let tables = objects.relations.iter().filter(|relation| matches!(relation.kind, "r" | "p"));
    tables
        .map(|relation| {
            vec![
                ("schemaname", relation.schema_name.clone().into()),
                ("tablename", relation.name.clone().into()),
                ("tableowner", ROLE.into()),
                ("hasindexes", (!relation.indexes.is_empty()).into()),
                ("rowsecurity", relation.row_security.enabled.into()),
            ]
        })
        .collect()
}
