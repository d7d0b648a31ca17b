//! Rows in memory, at every version that somebody holds: what the stores of a state have in common.
//!
//! [`VersionedRows`] are decoded values in shards, each behind its own lock: the newest value of each row, and beside it what
//! the versions need that somebody holds. An ordered index per table has the keys for scans. Crate `memory` keeps a whole state
//! so; crate `disk` what the newest batches have written in front of what is on the disk, where a row that has gone must be
//! remembered ([`Absence::Kept`]).
//!
//! ```text
//!  write ──▶ by shard ──▶ Shard: newest values ─── replaced values ◀── older versions
//!                │              ▲                                         │
//!                └──▶ keys ◀────┼── keys: a chunk of them, in order ──────┤
//!                               └── get: hash of the key ────────────────┘
//! ```

mod rows;
mod shard;

pub use rows::{RowsInOrder, VersionedRows, Write, Written};
pub use shard::Absence;
