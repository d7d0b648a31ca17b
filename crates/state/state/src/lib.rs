//! The state, and what transactions see of it and leave behind.
//!
//! - [`Snapshot`]: the state after a batch, read by key and by key range.
//! - [`Simulate`]: a transaction that can be run on a snapshot without changing it; what that finds is its
//!   [`Effects`]: [`Read`]s, [`Scan`]s, [`Command`]s and a result (`protocols.md`, section 1).
//! - [`Endorsed`]: a simulation that others have made; [`types::RowWrite`]s say what it changes without the contract.
//! - [`Footprint`]: what a transaction may touch, as intervals, from analysing it before it runs.
//! - [`Overlay`]: a snapshot with changes in front of it, for transactions that run one after the other.
//! - [`Store`]: the seam: where rows are kept, at the newest [`Version`] and at every version of which somebody holds a
//!   snapshot. Reads and writes may fail with a [`StoreError`], which stops the node and is never an outcome. Which kind of store
//!   a node has is chosen where it is given its [`Stores`]; this crate has what all of them share.
//! - [`BlockChanges`] and [`block_digest`]: what a block did, as one digest that is chained to those before.
//! - [`LiveRequests`]: the transaction ids that have not expired.
//! - [`StateTree`]: the root over everything, and proofs of rows under it.
//! - [`TableHashing`]: the same groups again, from a table's rows that somebody else has.
//! - [`StateOutline`], [`StatePiece`], [`StateAssembly`]: a state in pieces that are checked one by one against its root.
//! - [`bring_up`]: the groups of such a tree, kept up with what changes; [`RangeRows`] spare it reading rows that have not changed.
//! - [`KeptState`]: what others need of a checkpoint.
//! - [`write_checkpoint`] and [`read_checkpoint`]: a whole state as a stream of bytes, the same on every node.
//!
//! ```text
//!  transaction ──simulate──▶ Effects ──protocol──▶ after-images ──Store::apply──▶ next snapshot
//!       ▲                                               │                            │
//!       │                                          BlockChanges ──▶ block_digest     │
//!       └────────────────────────────── Snapshot ◀───────────────────────────────────┘
//! ```
//!
//! ```
//! use state::{AfterImage, Overlay, PlainState, RowId, Snapshot};
//! use std::sync::Arc;
//! use types::{Key, TableId, Value};
//!
//! let before = PlainState::default();
//! let row = RowId { table: TableId(1), key: Key::encode([&Value::BigInt(7)])? };
//! let mut after = Overlay::new(&before);
//! after.set(row.clone(), Some(Arc::from([Value::BigInt(7), Value::text("seven")])))?;
//! assert!(after.current(&row)?.is_some(), "what stands in front of a snapshot is seen");
//! assert!(before.get(row.table, &row.key).is_none(), "and the snapshot does not change");
//! let images: Vec<AfterImage> = after.into_changes();
//! assert_eq!(images.len(), 1, "this is what a store applies");
//! # Ok::<(), types::SqlError>(())
//! ```

mod assembly;
mod checkpoint;
mod checkpoint_header;
mod column_batch;
mod command;
#[cfg(feature = "conformance")]
pub mod conformance;
mod digest;
mod effects;
mod endorsed;
mod footprint;
mod group_ranges;
mod growing;
mod hash;
mod indexes;
mod kept_state;
mod kept_tree;
mod live_requests;
mod manifest;
mod overlay;
mod pieces;
mod plain;
mod range_rows;
mod row_hashes;
mod snapshot;
mod store;
mod store_error;
mod table_hashing;
mod tables_proof;
mod tree;
mod version;
mod watched;

pub use assembly::{PieceError, StateAssembly};
pub use checkpoint::{Checkpoint, CheckpointError, content_digest, read_checkpoint, write_checkpoint};
pub use checkpoint_header::{CheckpointHeader, CheckpointProgress};
pub use column_batch::{ColumnBatch, ColumnPiece, ReadColumns, column_type};
pub use command::apply_command;
pub use digest::{BlockChanges, block_digest};
pub use effects::{
    Addition, AfterImage, Command, CommandKind, Effects, Read, RowChange, RowFunction, RowId, RowPredicate,
    Scan, Simulate,
};
pub use endorsed::{Endorsed, EndorsedForm, effects_of, endorsed_effects, write_command};
pub use footprint::{Footprint, Region};
pub use growing::{GroupHead, GroupRecord, RangeRecord};
pub use hash::KeyHasher;
pub use indexes::{
    all_entry_changes, entries_of_row, entry_changes, indexes_made, new_entries, tables_dropped,
};
pub use kept_state::KeptState;
pub use kept_tree::{GroupChange, GroupRecords, Groups, bring_up};
pub use live_requests::{LiveContent, LiveRequest, LiveRequests};
pub use manifest::Manifest;
pub use overlay::{Changes, Overlay};
pub use pieces::{OutlinedRequest, StateOutline, StatePiece};
pub use plain::PlainState;
pub use range_rows::RangeRows;
pub use snapshot::{KeyRange, PastChange, PastError, Snapshot};
pub use store::{BlockEnd, Filling, Reopened, ResumePoint, Store, StoreStatistics, Stores};
pub use store_error::{FirstFailure, StoreError};
pub use table_hashing::{HashedGroup, TableHashing};
pub use tree::{StateNode, StateTree};
pub use version::Version;
pub use watched::Watched;
