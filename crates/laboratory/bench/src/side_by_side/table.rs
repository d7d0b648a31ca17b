//! A table that all systems get: what creates it, and where its rows come from.

use types::Value;

/// Rows in the order of their keys.
pub(crate) type TableRows = Box<dyn Iterator<Item = Vec<Value>>>;

/// A table with its rows.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// What creates it, in all systems.
    pub(crate) definition: &'static str,
    /// What PostgreSQL runs when the rows are there, for indexes that the other systems do without.
    pub(crate) postgres_indexes: &'static [&'static str],
    /// Its rows, the same at every call.
    pub(crate) rows: Box<dyn Fn() -> TableRows>,
}
