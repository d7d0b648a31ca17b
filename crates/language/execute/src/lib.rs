//! Running bound statements on a snapshot, and what that leaves as [`state::Effects`].
//!
//! ```text
//!  plan::BoundStatement ──Execution::run──▶ rows for whoever asked
//!                             │    │  └──── reads and scans registered, commands recorded ──finish──▶ state::Effects
//!                             │    └─────── routines, triggers' functions, texts made while running: Programs
//!                             └──────────── state::Snapshot
//! ```
//!
//! `tests/effects.rs` of crate `sql` says, one test per rule, what registers a read and what becomes a command. Every step
//! is charged, so that a statement ends after as many of them as the ledger allows.

mod advisory;
mod aggregate;
mod assets;
mod authority;
mod change;
mod change_firing;
mod constraint;
mod context;
mod counter;
mod cursor;
mod deferred;
mod distinct;
mod drawn;
mod execution;
mod fetch;
mod footprint;
mod function;
mod grouping;
mod instead;
mod joining;
mod kept;
mod moves;
mod moving;
mod notify;
mod own;
mod past;
mod programs;
mod protect;
mod random;
mod record;
mod recursion;
mod relation;
mod remaining;
mod row_function;
mod row_locks;
mod row_security;
mod scan;
mod scratch;
mod select;
mod sequence;
mod serial_sequence;
mod session_facts;
mod set_constraints;
mod set_operation;
mod sorting;
mod subqueries;
mod suspend;
mod trigger;
mod window;
mod with;

pub use authority::refuse_schema_change;
pub use change::{check_row_bytes, row_bytes};
pub use context::{Context, Oracles, SessionPlace, timestamp};
pub use cursor::{CursorRows, Cursors};
pub use execution::{Execution, Place};
pub use footprint::{Analysis, KnownFrame, refused};
pub use moves::Moves;
pub use own::without;
pub use programs::{CallResult, Described, Programs};
pub use protect::Savepoint;
pub use record::sized;
pub use row_locks::{HeldElsewhere, RowLocks, SharedRowLocks};
pub use scratch::{Scratch, ScratchFile};
pub use select::check_result_rows;
pub use suspend::Suspended;
