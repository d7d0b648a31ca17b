//! Execute–order–validate: transactions come with effects that endorsers found on older states; validation decides in
//! ledger order which of them still hold (`protocols.md`, section 3).
//!
//! ```text
//!  endorse (elsewhere) ──▶ order ──▶ validate: stale? ──▶ place what holds ──▶ run again what does not (xox)
//!   effects at height h    reorder,   reads against the    commands in order,
//!                          drop       writes since h       rows in parallel
//! ```
//!
//! - `occ`: Fabric. In block order, a transaction holds if nobody has written what it read since its snapshot.
//! - `fabric++`: the same behind an orderer that puts readers in front of writers and drops what would close a cycle
//!   ([`reorder()`]; Sharma et al., SIGMOD 2019).
//! - `fabric-sharp`: a transaction holds if it closes no cycle with those of the last blocks, stale or not.
//! - `xox`: what is stale runs again at the end of the block, on the state as it stands, if its policy allows that; it
//!   may touch no more than was endorsed (Gorenflo, chapter 4).
//!
//! Validation is scheduled in order, or on SmartFabric's graph of those that wait ([`Pipeline`](types::Pipeline)); both come
//! to the same.
//!
//! A version is the height of a block: a read at `h` is stale if its columns were written above `h`.
//! Endorsed additions are commands as in Harmony: they read nothing, so they are never stale, and are placed like
//! Harmony's.
//!
//! What validation decides follows from what is ordered and from nothing that executions come to. Who was accepted
//! counts as a writer, also if a constraint or the block's budget stops it in the end. So, at the end of its batch,
//! does a stale transaction that may run again. Therefore blocks can be judged before those in front of them have
//! taken effect: the engine admits the blocks that wait in the node's queue (`Engine::foresee`) and offers their
//! batches, and whoever is idle judges them. It looks past no schema change and no checkpoint. Fate spares a
//! transaction the look at versions, not the look at its endorsements: what a receipt says must not depend on the
//! schedule.
//!
//! `xox` runs a stale transaction again within the rows and columns that were endorsed. A transaction behind it in
//! the block that reads what it would have written is not stale because of it.
//!
//! Every node decides `fabric-sharp` from the order of the block. A proposer drops what closes a cycle before it is
//! ordered, but only of its own clients, who trust their gateway with that anyway.

mod orderer;
mod recent_writes;
mod reorder;
mod sharp;
mod validation;
mod validators;
mod waiting_graph;

pub use orderer::{Cut, EarlyAbort, Orderer, OrdererOptions, PendingTransaction, key_sets};
pub use reorder::{KeySets, Reordering, reorder};
pub(crate) use validation::Validation;
