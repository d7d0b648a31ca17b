//! Copies of tables in columns, for analytics: made at the first question, kept up with what blocks change.
//!
//! The rows of a store stay the truth. [`WithColumns`] wraps the stores of another kind, so that their snapshots give columns
//! ([`state::Snapshot::columns`]); a ledger that nobody asks for any pays nothing for that.
//!
//! ```text
//!  apply ──▶ keys that change, noted ──▶ the store with the rows ──▶ where nobody keeps columns: made of rows for one reader
//!                     │                            │
//!                     ▼ (at the next question,     ▼ (rows with these keys; all rows at the first question)
//!                     │  and while questions come) │
//!            columns of a table, in chunks ◀───────┘
//!                     │
//!                     ▼ lent, without a copy
//!                  queries
//! ```
//!
//! What a query has borrowed does not change. Where its chunk changes meanwhile, the columns that do get arrays of their own
//! first.
//!
//! ```
//! use columns::WithColumns;
//! use memory::Memory;
//! use state::{AfterImage, RowId, Stores, Version};
//! use std::sync::Arc;
//! use types::{Catalog, Column, DataType, Key, Table, TableId, Value};
//!
//! let column = Column { name: "n".into(), data_type: DataType::BigInt, not_null: true, default: None, generated: false };
//! let table = Arc::new(Table {
//!     id: TableId(1),
//!     name: "t".into(),
//!     columns: vec![column],
//!     primary_key: vec![0],
//!     primary_key_name: "t_pkey".into(),
//!     checks: vec![],
//!     endorsement: None,
//!     row_security: types::RowSecurity::default(),
//!     partitioning: None,
//!     materialized: None,
//! });
//! let catalog = Catalog { tables: [("t".into(), table.clone())].into(), ..Catalog::default() };
//! let store = WithColumns::new(Arc::new(Memory), 1 << 30).create(Arc::new(catalog))?;
//! let row = RowId { table: table.id, key: Key::encode([&Value::BigInt(7)])? };
//! let image = AfterImage { row, value: Some(Arc::from([Value::BigInt(7)])) };
//! store.apply(Version::after_batch(1, 0), &[image], None)?;
//! let batches = store.snapshot().columns(&table, &[0])?.expect("bigints are kept");
//! assert_eq!(batches[0].rows, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod booleans;
mod chunk;
mod column_kind;
mod columns;
mod fixed;
mod keeper;
mod keys;
mod marks;
mod notes;
mod reading;
mod registry;
mod snapshot;
mod store;
mod stores;
mod table;
mod texts;
mod validity;
mod values;

pub use stores::WithColumns;
