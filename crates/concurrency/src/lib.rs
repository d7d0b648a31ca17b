//! Deterministic concurrency control: transactions of a batch in, outcomes and after-images out, the same for any
//! number of threads.
//!
//! A [`Protocol`] is offered [`Batch`]es in ledger order and polled for [`BatchResult`]s; some work on one batch at a
//! time, others on two, others on all that wait. Rules: `protocols.md`.

mod protocol;

pub use protocol::{Batch, BatchResult, BatchStatistics, Protocol, Snapshots, TransactionOutcome};
