//! What transactions see and leave behind.
//!
//! - [`Snapshot`]: the state after a batch, read by key and by key range.
//! - [`Simulate`]: a transaction that can be run on a snapshot without changing it; what that finds is its
//!   [`Effects`]: [`Read`]s, [`Scan`]s, [`Command`]s and a result (`protocols.md`, section 1).
//! - [`Overlay`]: a snapshot with changes in front of it, for transactions that run one after the other.
//!
//! ```text
//!  transaction ──simulate──▶ Effects ──protocol──▶ after-images ──State::apply──▶ next snapshot
//!       ▲                                                                            │
//!       └────────────────────────────── Snapshot ◀───────────────────────────────────┘
//! ```

mod command;
mod effects;
mod hash;
mod overlay;
mod plain;
mod shard;
mod snapshot;
mod state;
mod version;

pub use command::apply_command;
pub use effects::{
    AfterImage, Command, CommandKind, Effects, Read, RowChange, RowFunction, RowId, RowPredicate, Scan,
    Simulate,
};
pub use overlay::Overlay;
pub use plain::PlainState;
pub use snapshot::{KeyRange, Snapshot};
pub use state::{State, StateSnapshot};
pub use version::Version;
