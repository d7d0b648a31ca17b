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

mod orderer;
mod recent_writes;
mod reorder;
mod sharp;
mod validation;
mod validators;
mod waiting_graph;

pub use orderer::{Cut, EarlyAbort, Orderer, OrdererOptions, Waiting, key_sets};
pub use reorder::{KeySets, Reordering, reorder};
pub(crate) use validation::Validation;
