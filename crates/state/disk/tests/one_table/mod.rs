//! A catalog with one table: a number, which is its key, and a text.

use std::sync::Arc;
use types::{Catalog, Column, DataType, Table, TableId};

pub const TABLE: TableId = TableId(1);

pub fn catalog() -> Arc<Catalog> {
    let column = |name: &str, data_type| Column {
        name: name.into(),
        data_type,
        not_null: false,
        default: None,
        generated: false,
    };
    let table = Table {
        id: TABLE,
        name: "t".into(),
        columns: vec![column("id", DataType::BigInt), column("text", DataType::Text(None))],
        primary_key: vec![0],
        primary_key_name: "t_pkey".into(),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    let mut catalog = Catalog::default();
    catalog.tables.insert(table.name.clone(), Arc::new(table));
    Arc::new(catalog)
}
