//! The state, and what transactions see of it and leave behind.
//!
//! - [`Snapshot`]: the state after a batch, read by key and by key range.
//! - [`Simulate`]: a transaction that can be run on a snapshot without changing it; what that finds is its
//!   [`Effects`]: [`Read`]s, [`Scan`]s, [`Command`]s and a result (`protocols.md`, section 1).
//! - [`Endorsed`]: a simulation that others have made; [`types::RowWrite`]s say what it changes without the contract.
//! - [`Footprint`]: what a transaction may touch, as intervals, from analysing it before it runs.
//! - [`Overlay`]: a snapshot with changes in front of it, for transactions that run one after the other.
//! - [`State`]: the tables, at the newest [`Version`] and at every version of which somebody holds a snapshot.
//! - [`BlockChanges`] and [`block_digest`]: what a block did, as one digest that is chained to those before.
//! - [`LiveRequests`]: the transaction ids that have not expired.
//! - [`StateTree`]: the root over everything, and proofs of rows under it.
//! - [`StateOutline`], [`StatePiece`], [`StateAssembly`]: a state in pieces that are checked one by one against its root.
//! - [`StoredState`]: what others need of a checkpoint, read where it was written.
//! - [`write_checkpoint`] and [`read_checkpoint`]: all of this as a stream of bytes, the same on every node.
//!
//! ```text
//!  transaction ──simulate──▶ Effects ──protocol──▶ after-images ──State::apply──▶ next snapshot
//!       ▲                                               │                            │
//!       │                                          BlockChanges ──▶ block_digest     │
//!       └────────────────────────────── Snapshot ◀───────────────────────────────────┘
//! ```
//!
//! ```
//! use state::{AfterImage, RowId, Snapshot, State, Version};
//! use std::sync::Arc;
//! use types::{Key, TableId, Value};
//!
//! let state = State::new(Arc::default());
//! let before = state.snapshot();
//! let row = RowId { table: TableId(1), key: Key::encode([&Value::BigInt(7)])? };
//! let image = AfterImage { row: row.clone(), value: Some(Arc::from([Value::BigInt(7), Value::text("seven")])) };
//! state.apply(Version::after_batch(1, 0), &[image], None);
//! assert!(before.get(row.table, &row.key)?.is_none(), "a snapshot does not change");
//! assert!(state.snapshot().get(row.table, &row.key)?.is_some());
//! # Ok::<(), types::SqlError>(())
//! ```

mod checkpoint;
mod command;
mod digest;
mod effects;
mod endorsed;
mod footprint;
mod hash;
mod indexes;
mod live_requests;
mod overlay;
mod pieces;
mod plain;
mod shard;
mod snapshot;
mod state;
mod store_error;
mod stored;
mod tree;
mod version;
mod watched;

pub use checkpoint::{
    Checkpoint, CheckpointError, CheckpointHeader, content_digest, read_checkpoint, write_checkpoint,
};
pub use command::apply_command;
pub use digest::{BlockChanges, block_digest};
pub use effects::{
    Addition, AfterImage, Command, CommandKind, Effects, Read, RowChange, RowFunction, RowId, RowPredicate,
    Scan, Simulate,
};
pub use endorsed::{Endorsed, EndorsedForm, effects_of, endorsed_effects, write_command};
pub use footprint::{Footprint, Region};
pub use indexes::entry_changes;
pub use live_requests::{LiveContent, LiveRequest, LiveRequests};
pub use overlay::{Amended, Changed, Changes, Overlay};
pub use pieces::{OutlinedRequest, PieceError, StateAssembly, StateOutline, StatePiece};
pub use plain::PlainState;
pub use snapshot::{KeyRange, PastChange, PastError, Snapshot};
pub use state::{State, StateSnapshot};
pub use store_error::{FirstFailure, StoreError};
pub use stored::{ReadCheckpointAt, StoredState};
pub use tree::{StateNode, StateTree};
pub use version::Version;
pub use watched::Watched;
