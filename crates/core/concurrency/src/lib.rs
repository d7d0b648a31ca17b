//! Deterministic concurrency control: transactions of a batch in, outcomes and after-images out, the same for any
//! number of threads.
//!
//! A [`Protocol`] is offered [`Batch`]es in ledger order and polled for [`BatchResult`]s; some work on one batch at a
//! time, others on two. [`protocol()`] makes one by its name:
//!
//! - `serial`: one transaction after the other. The yardstick for everything else.
//! - `harmony`: simulate all on one snapshot, decide by rw edges alone, place the commands of the accepted ones, run
//!   the rejected ones one after the other at the end: nobody is aborted for a conflict, unless so configured. After HarmonyBC ("When
//!   Private Blockchain Meets Deterministic Database", Lai, Liu, Lo; section 3), with the corrections of
//!   `protocols.md`.
//! - `aria`: simulate all on one snapshot, reserve what they read and write for the smallest number, give up who
//!   conflicts with a smaller one; with deterministic reordering or without (Lu et al., PVLDB 2020).
//! - `ssi`: simulate all on one snapshot, commit in block order, give up the middle of two rw edges in a row and every
//!   writer of a row but the first (RBC: Nathan et al., PVLDB 2019).
//! - `block-stm`: execute all at once over a multi-version memory, validate, execute again until the outcome is that
//!   of `serial`. Nobody is given up (Gelashvili et al., PPoPP 2023).
//! - `graph`: know from the statements alone what each transaction may touch, and run each as soon as those before it
//!   that it conflicts with are done. Nobody is aborted and nobody runs twice; contracts that cannot be analysed are
//!   refused. After ChainifyDB (Sharma, "Snapshots in data management"; section 4.6.3).
//!
//! Commands are what sets Harmony apart: for `aria` and `ssi` an update reads what it updates, so of the writers of a
//! hot row one commits per batch (the Hot Key Theorem: Gorenflo, section 4.1); `block-stm` executes the others again.
//!
//! ```text
//!            ┌─ optimistic ────────────────────────────────────────────────────────────┐
//!  offer ──▶ │ simulate all ──▶ decide ──▶ place ─────────────▶ run what is left over  │ ──poll──▶ outcomes,
//!            │ (in parallel)    (edges)    (judge, then fold,   (serially, by number)  │           after-images
//!            │                              rows in parallel)                          │
//!            └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`checker`] holds the ground truth that every random test ends in: the dependency graph, a serial replay in its
//! order, every value read compared.
//!
//! ```
//! use concurrency::{Batch, Protocol, ProtocolOptions, Snapshots, TransactionOutcome, protocol};
//! use state::{Effects, PlainState, Simulate, Snapshot, StoreError};
//! use std::sync::Arc;
//!
//! struct Nothing;
//! impl Simulate for Nothing {
//!     fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
//!         let (reads, scans, commands) = Default::default();
//!         Ok(Effects { reads, scans, commands, result: Ok(vec![]), steps: 1, catalog: None })
//!     }
//! }
//! struct Empty;
//! impl Snapshots for Empty {
//!     fn newest(&self) -> Arc<dyn Snapshot> {
//!         Arc::new(PlainState::default())
//!     }
//! }
//!
//! let mut harmony = protocol("harmony", ProtocolOptions::default())?;
//! let transactions: Vec<Arc<dyn Simulate>> = vec![Arc::new(Nothing)];
//! harmony.offer(Batch { height: 1, number: 0, transactions, steps_left: 1_000, forget: false, oldest_snapshot: 0 });
//! let result = harmony.poll(&Empty)?.expect("one batch was offered");
//! assert_eq!(result.outcomes, [TransactionOutcome::Committed(vec![])]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aria;
mod block_stm;
pub mod checker;
mod column_classes;
mod conflict;
pub mod endorsed;
mod execution;
mod graph;
mod harmony;
mod optimistic;
pub mod parts;
mod placement;
mod protocol;
#[cfg(test)]
mod rw_edges;
mod scanned_rows;
mod serial;
pub mod sparse;
mod ssi;
mod written_rows;

pub use protocol::{
    Batch, BatchResult, BatchStatistics, GRAPH_IDS, History, IDS, Protocol, Snapshots, TransactionOutcome,
    UnknownProtocol, UnknownValidation, VALIDATION_IDS, ids, protocol, register, validation,
};
pub use types::{Consistency, Granularity, OnConflict, ProtocolOptions};
