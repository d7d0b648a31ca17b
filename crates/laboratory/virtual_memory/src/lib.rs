//! Memory that the laboratory maps itself. This is the one crate of the laboratory with `unsafe` code.
//!
//! - [`Area`]: 64-bit numbers in private pages of 4 KB, which a forked process shares until somebody writes.
//! - [`Rewired`]: numbers in pages of a file in memory. [`Rewired::snapshot`] maps the same pages a second time, and a page that a
//!   snapshot holds is copied and mapped anew before it is written (Sharma's thesis, 2.4.2, "Rewired Snapshotting").
//! - [`Forked`]: a question that a copy of this process answers (fork(2)), as HyPer did.
//! - [`mappings`], [`mappings_max`]: how many mappings this process has, and may have.
//!
//! ```text
//!  Rewired   [ page 0 ][ page 1 ][ page 2 ]      written after the snapshot: page 1
//!                 │         └───────────────┐
//!  file      [ page 0 ][ page 1 ][ page 2 ][ copy of page 1 ]
//!                 │         │
//!  snapshot  [ page 0 ][ page 1 ][ page 2 ]
//! ```
//!
//! Each run of pages that lie one behind the other in the file is a mapping of its own, and the kernel allows
//! `vm.max_map_count` of them. A refusal is [`MemoryError::Mappings`]; what was there before it stays as it was.
//!
//! ```
//! use virtual_memory::Rewired;
//!
//! let column = Rewired::new(1_000)?;
//! column.write(7, 1)?;
//! let snapshot = column.snapshot(1_000)?;
//! column.write(7, 2)?;
//! assert_eq!((snapshot.numbers()[7], column.get(7)), (1, 2));
//! # Ok::<(), virtual_memory::MemoryError>(())
//! ```
#![allow(
    unsafe_code,
    reason = "mapping memory and forking have no safe interface; every block says why it holds"
)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod area;
mod ballast;
mod error;
mod forked;
mod mapping;
mod page_table;
mod rewired;

pub use area::Area;
pub use error::MemoryError;
pub use forked::{Forked, InChild};
pub use mapping::{mappings, mappings_max};
pub use rewired::{Rewired, RewiredSnapshot};

/// Bytes of a page. The kernel of every machine that the laboratory runs on has these.
pub const PAGE_BYTES: usize = 4_096;
/// Numbers of a page.
pub const PAGE_NUMBERS: usize = PAGE_BYTES / size_of::<i64>();
/// Numbers that an area may have: 32 GB of addresses.
pub const NUMBERS_MAX: usize = 1 << 32;
