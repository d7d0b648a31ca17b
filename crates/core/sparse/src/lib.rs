//! One state whose rows several nodes of an organisation hold (SmartFabric's sparse peers, paper 001, section 4). A schema is the
//! unit: its tables, indexes and sequences stand at one node.
//!
//! - the **validator** is the organisation's member of the ledger: it orders, verifies and records blocks, has the engine, and
//!   holds what nobody else does;
//! - a [`Holder`] holds some schemas: it gets of each block the transactions that touch these alone, executes them, and shows its
//!   rows to the validator.
//!
//! ```text
//!              engine ──batches──▶ Splitter ──transactions of one holder──▶ Holder: the ledger's protocol, its own store
//!                │                     └─ all others, and whom they meet ─▶ the engine's own protocol
//!                ▼                                                              │ reads and changes rows
//!           SharedStores: Stores, Store, Snapshot over the validator's store ◀──┘ and, by question and answer, those of holders
//! ```
//!
//! What comes of a block, receipts, changes, digests and roots, is byte for byte what one node comes to that holds everything. So
//! nobody else has to know how an organisation shares its schemas out.
//!
//! **Failures.** A holder that starts again, or an answer that does not come, is [`state::StoreError::lost`]: the validator makes
//! its state again from the newest checkpoint that all of them have. Nodes of one organisation trust one another, and may
//! crash at any moment.
//!
//! Everything is synchronous; [`Link`] carries questions, and the node has one over the network.

mod held;
mod holder;
mod link;
mod messages;
mod placement;
mod remote;
mod snapshot;
mod splitting;
mod store;
mod stores;

pub use holder::Holder;
pub use link::{Link, LinkFailure};
pub use placement::Placement;
pub use splitting::Splitter;
pub use stores::{KnownHolder, KnownHolders, SharedStores};
