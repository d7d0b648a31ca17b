//! The tree over a whole state, whose root nodes attest at checkpoints.
//!
//! ```text
//!  state root = SHA-256(domain ‖ nodes ‖ catalog ‖ requests)
//!                               │
//!              Merkle tree over tables and ranges, by table and first key
//!               ├─ table: its definition          (in front of its ranges; sequences have none)
//!               ├─ range: table ‖ first key ‖ ──▶ Merkle tree over its rows, by key: key ‖ row
//!               └─ …
//! ```
//!
//! Where a range ends follows from the rows in it ([`ends_range`]), so that equal states have equal trees, whatever led to
//! them, and a change moves the ranges around it at most.

use crypto::{Digest, leaf_hash, sha256};
use types::{Key, Table, TableId, encode};

/// Rows of a range at most.
pub const RANGE_ROWS_MAX: usize = 1_024;
/// A range that has so many bytes ends with the row that it has got there by.
pub const RANGE_BYTES_MAX: usize = 256 * 1024;

const TABLE_DOMAIN: &[u8] = b"entente table 1\0";
const RANGE_DOMAIN: &[u8] = b"entente range 1\0";
const STATE_DOMAIN: &[u8] = b"entente state root 1\0";

/// Whether a range ends behind a row with this leaf. One row of 256 ends it, otherwise its size does.
pub fn ends_range(leaf: &Digest, rows: usize, bytes: usize) -> bool {
    leaf.0[31] == 0 || rows >= RANGE_ROWS_MAX || bytes >= RANGE_BYTES_MAX
}

/// Leaf of a table's definition.
pub fn table_leaf(table: &Table) -> Digest {
    leaf_hash(&[TABLE_DOMAIN, &encode(table)].concat())
}

/// Leaf of a range. `rows`: root of the tree over its rows.
pub fn range_leaf(table: TableId, first: &Key, rows: &Digest) -> Digest {
    leaf_hash(&[RANGE_DOMAIN, &encode(&table), &encode(first), &rows.0].concat())
}

/// The root over everything. `nodes`: root of the tree over tables and ranges; `catalog`: digest of the catalog;
/// `requests`: digest of the ids that may not come again.
pub fn state_root(nodes: &Digest, catalog: &Digest, requests: &Digest) -> Digest {
    sha256(&[STATE_DOMAIN, &nodes.0, &catalog.0, &requests.0])
}
