//! Where Entente has its rows beside others, and the memory that it may use.

use columns::WithColumns;
use memory::Memory;
use state::Stores;
use std::fmt;
use std::sync::Arc;

/// Where Entente has its rows, and the memory that it may use.
#[derive(Clone)]
pub struct EntentePlace {
    /// What makes the store of the rows; `None`: they are in memory.
    pub stores: Option<Arc<dyn Stores>>,
    /// What copies of tables in columns may have.
    pub column_bytes: u64,
    /// What a query may have.
    pub query_bytes: u64,
}

impl Default for EntentePlace {
    /// In memory, with enough for any of the tables, and for queries so much that the machine stays alive.
    fn default() -> EntentePlace {
        EntentePlace { stores: None, column_bytes: 64 << 30, query_bytes: 4 << 30 }
    }
}

impl fmt::Debug for EntentePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntentePlace")
            .field("on_disk", &self.stores.is_some())
            .field("column_bytes", &self.column_bytes)
            .field("query_bytes", &self.query_bytes)
            .finish()
    }
}

impl EntentePlace {
    /// What makes the store, with columns where somebody reads them.
    pub(super) fn stores(&self, with_columns: bool) -> Arc<dyn Stores> {
        let stores = self.stores.clone().unwrap_or_else(|| Arc::new(Memory));
        match with_columns {
            true => Arc::new(WithColumns::new(stores, self.column_bytes)),
            false => stores,
        }
    }
}
