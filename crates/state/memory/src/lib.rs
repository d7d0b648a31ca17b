//! The store that keeps all rows in memory.
//!
//! Rows are decoded values ([`versioned::VersionedRows`]): the newest value of each row, and beside it what the versions need
//! that somebody holds a snapshot of. It never fails, and comes back from a checkpoint.
//!
//! [`Memory`] is all that others see; the rest is behind [`state::Store`] and [`state::Snapshot`].
//!
//! ```
//! use memory::Memory;
//! use state::{AfterImage, RowId, Stores, Version};
//! use std::sync::Arc;
//! use types::{Key, TableId, Value};
//!
//! let store = Memory.create(Arc::default())?;
//! let before = store.snapshot();
//! let row = RowId { table: TableId(1), key: Key::encode([&Value::BigInt(7)])? };
//! let image = AfterImage { row: row.clone(), value: Some(Arc::from([Value::BigInt(7), Value::text("seven")])) };
//! store.apply(Version::after_batch(1, 0), &[image], None)?;
//! assert!(before.get(row.table, &row.key)?.is_none(), "a snapshot does not change");
//! assert!(store.snapshot().get(row.table, &row.key)?.is_some());
//! # Ok::<(), types::SqlError>(())
//! ```

mod store;

use state::{Filling, StoreError, Stores, Version};
use std::sync::Arc;
use store::MemoryStore;
use types::Catalog;

/// Makes stores that keep all rows in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory;

impl Stores for Memory {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        Ok(Box::new(MemoryStore::at(version, catalog)))
    }
}
