//! The tree over a whole state, whose root nodes attest at checkpoints.
//!
//! ```text
//!  state root = SHA-256(domain ‖ nodes ‖ catalog ‖ requests)
//!                               │
//!              Merkle tree over tables and groups, by table and first key
//!               ├─ table: its definition          (in front of its groups; sequences and computed indexes have none)
//!               ├─ group: table ‖ first key ‖ ──▶ Merkle tree over its ranges, by first key
//!               │                                  ├─ range: table ‖ first key ‖ ──▶ Merkle tree over its rows, by key: key ‖ row
//!               │                                  └─ …
//!               └─ …
//! ```
//!
//! Where a range and a group end follows from the rows in them ([`TreeShape`]), so that equal states have equal trees, whatever
//! led to them, and a change moves the ranges and groups around it at most. Up to execution version 2 there are no groups:
//! ranges stand in their place.

use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, leaf_hash, merkle_root, sha256};
use types::{Catalog, ExecutionVersion, Key, Table, TableId, encode};

/// Rows of a range at most, up to execution version 2.
const LONE_RANGE_ROWS_MAX: usize = 1_024;
/// Such a range that has so many bytes ends with the row that it has got there by.
const LONE_RANGE_BYTES_MAX: usize = 256 * 1024;
/// Rows of a range in a group at most.
const RANGE_ROWS_MAX: usize = 128;
/// A range in a group that has so many bytes ends with the row that it has got there by.
const RANGE_BYTES_MAX: usize = 64 * 1024;
/// Ranges of a group at most.
const GROUP_RANGES_MAX: usize = 128;
/// A group that has so many bytes ends with the range that it has got there by.
const GROUP_BYTES_MAX: usize = 256 * 1024;
/// One row of so many ends a range in a group, and one range of so many the group.
const GROUP_FANOUT: u8 = 32;

const TABLE_DOMAIN: &[u8] = b"entente table 1\0";
const LONE_RANGE_DOMAIN: &[u8] = b"entente range 1\0";
const RANGE_DOMAIN: &[u8] = b"entente range 2\0";
const GROUP_DOMAIN: &[u8] = b"entente group 1\0";
const STATE_DOMAIN: &[u8] = b"entente state root 1\0";

/// How a state's rows are gathered into the leaves of its tree; which one holds follows from the execution version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum TreeShape {
    /// Versions 1 and 2: ranges of about 256 rows are leaves of the tree over all tables.
    Ranges,
    /// From version 3 on: ranges of about 32 rows, in groups of about 32 ranges, which are those leaves.
    Groups,
}

impl TreeShape {
    /// The one in which nodes attest a state that a block of this version has left.
    pub fn of(version: ExecutionVersion) -> TreeShape {
        TreeShape::of_number(version.number())
    }

    /// The same from the catalog of the state at `height`: it has the charters that said the block's version.
    pub fn at(catalog: &Catalog, height: u64) -> TreeShape {
        let charter = catalog.governance.charter_at(height);
        TreeShape::of_number(charter.map_or(0, |charter| charter.execution_version))
    }

    pub(crate) fn of_number(version: u32) -> TreeShape {
        match version >= ExecutionVersion::V3.number() {
            true => TreeShape::Groups,
            false => TreeShape::Ranges,
        }
    }

    /// Whether a range ends behind a row with this leaf. `rows`, `bytes`: what the range has with it.
    pub fn ends_range(self, leaf: &Digest, rows: usize, bytes: usize) -> bool {
        match self {
            TreeShape::Ranges => {
                leaf.0[31] == 0 || rows >= LONE_RANGE_ROWS_MAX || bytes >= LONE_RANGE_BYTES_MAX
            }
            TreeShape::Groups => {
                leaf.0[31].is_multiple_of(GROUP_FANOUT) || rows >= RANGE_ROWS_MAX || bytes >= RANGE_BYTES_MAX
            }
        }
    }

    /// Leaf of a range. `rows`: root of the tree over its rows.
    pub fn range_leaf(self, table: TableId, first: &Key, rows: &Digest) -> Digest {
        let domain = match self {
            TreeShape::Ranges => LONE_RANGE_DOMAIN,
            TreeShape::Groups => RANGE_DOMAIN,
        };
        leaf_hash(&[domain, &encode(&table), &encode(first), &rows.0].concat())
    }

    /// Whether a group ends behind a range with this leaf: always where ranges stand alone. `ranges`, `rows`, `bytes`:
    /// what the group has with it.
    pub fn ends_group(self, leaf: &Digest, ranges: usize, rows: usize, bytes: usize) -> bool {
        match self {
            TreeShape::Ranges => true,
            TreeShape::Groups => {
                leaf.0[31].is_multiple_of(GROUP_FANOUT)
                    || ranges >= GROUP_RANGES_MAX
                    || rows >= self.group_rows_max()
                    || bytes >= GROUP_BYTES_MAX
            }
        }
    }

    /// Leaf of a group, from the leaves of its ranges. Where ranges stand alone it is that of the only one.
    pub fn group_leaf(self, table: TableId, first: &Key, ranges: &[Digest]) -> Digest {
        let ranges = merkle_root(ranges);
        match self {
            TreeShape::Ranges => ranges,
            TreeShape::Groups => {
                leaf_hash(&[GROUP_DOMAIN, &encode(&table), &encode(first), &ranges.0].concat())
            }
        }
    }

    /// The same from the root over its ranges; over its rows, where ranges stand alone.
    pub fn leaf_of_content(self, table: TableId, first: &Key, content: &Digest) -> Digest {
        match self {
            TreeShape::Ranges => self.range_leaf(table, first, content),
            // One digest: the root over all of them.
            TreeShape::Groups => self.group_leaf(table, first, &[*content]),
        }
    }

    /// Rows of a group at most.
    pub const fn group_rows_max(self) -> usize {
        match self {
            TreeShape::Ranges => LONE_RANGE_ROWS_MAX,
            TreeShape::Groups => GROUP_RANGES_MAX * RANGE_ROWS_MAX,
        }
    }

    /// Bytes of a group's keys and rows at most, without those of its last row.
    pub const fn group_bytes_max(self) -> usize {
        match self {
            TreeShape::Ranges => LONE_RANGE_BYTES_MAX,
            TreeShape::Groups => GROUP_BYTES_MAX + RANGE_BYTES_MAX,
        }
    }
}

/// Leaf of a table's definition.
pub fn table_leaf(table: &Table) -> Digest {
    leaf_hash(&[TABLE_DOMAIN, &encode(table)].concat())
}

/// The root over everything. `nodes`: root of the tree over tables and groups; `catalog`: digest of the catalog;
/// `requests`: digest of the ids that may not come again.
pub fn state_root(nodes: &Digest, catalog: &Digest, requests: &Digest) -> Digest {
    sha256(&[STATE_DOMAIN, &nodes.0, &catalog.0, &requests.0])
}
