//! Ground truth (`protocols.md`, section 4): was what a protocol did serializable?
//!
//! Transactions run inside a [`RecordingTransaction`], which keeps what every execution saw. [`check`] then, from the
//! initial state and the results of all batches,
//!
//! 1. applies all commands in the protocol's order, one transaction after the other, and compares outcomes and
//!    changes: the plain definition of placement;
//! 2. builds the dependency graph from that order of versions: write–write and write–read edges, and edges from
//!    readers, scans included, to whoever wrote what they did not see;
//! 3. sorts it topologically (a cycle is a violation);
//! 4. runs the transactions again in that order, each on the state that the one before left, and compares results,
//!    every value read, every scan's rows, and the final state. Where that fails it is tried once more with the writers
//!    of scanned rows in the protocol's order.
//!
//! [`false_aborts`] counts the transactions that an optimistic protocol gave up without need.

mod false_aborts;
mod graph;
mod previous_batch;
mod recording;
mod replay;
mod versions;

pub use false_aborts::{Fate, false_aborts};
pub use previous_batch::fixed_edges;
pub use recording::{Execution, RecordingTransaction};

use crate::{BatchResult, TransactionOutcome};
use state::{PlainState, RowId};
use std::fmt;
use std::sync::Arc;
use versions::Node;

/// A batch and what a protocol made of it.
pub struct CheckedBatch<'a> {
    /// As they were offered, in order.
    pub transactions: &'a [Arc<RecordingTransaction>],
    /// What came out.
    pub result: &'a BatchResult,
    /// How many of the batches just before this one the first executions did not see: 0 without inter-block
    /// parallelism, 1 with it.
    pub unseen: usize,
    /// Where executions were made before their transactions were ordered: by transaction, how many batches of this run
    /// the execution that was placed had seen. Says more than `unseen`.
    pub snapshots: Option<&'a [usize]>,
}

/// A transaction by where it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    /// Number of the batch among those checked, from 0.
    pub batch: usize,
    /// Number of the transaction in the batch.
    pub transaction: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {} of batch {}", self.transaction, self.batch)
    }
}

/// What the check found in order.
#[derive(Debug)]
pub struct Verified {
    /// A serial order with the same results, values read and state.
    pub order: Vec<Position>,
    /// The final state.
    pub state: PlainState,
    /// Edges of the dependency graph.
    pub edges: usize,
}

/// How a run is not what it should be.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Violation {
    /// The history does not fit the outcomes.
    #[error(
        "expected {position} in the history {expected} times (its outcome is {outcome:?}), found {found}"
    )]
    History {
        /// Which transaction.
        position: Position,
        /// Its outcome.
        outcome: TransactionOutcome,
        /// 1 if it was executed and not given up.
        expected: usize,
        /// How often it is there.
        found: usize,
    },
    /// Applying the commands one transaction after the other in the protocol's order gives another outcome.
    #[error(
        "expected {position} to end with {expected} at its place in the order, the protocol says {found}"
    )]
    Placement {
        /// Which transaction.
        position: Position,
        /// What its commands come to.
        expected: String,
        /// What the protocol says.
        found: String,
    },
    /// The changes of a batch are not the difference that its commands make.
    #[error("batch {batch}: expected the changes {expected}, found {found}")]
    Changes {
        /// Which batch.
        batch: usize,
        /// What the commands come to.
        expected: String,
        /// What the protocol says.
        found: String,
    },
    /// No serial order exists for these versions.
    #[error("the dependency graph has the cycle {}", .0.iter().map(Position::to_string).collect::<Vec<_>>().join(" → "))]
    Cycle(Vec<Position>),
    /// The serial run ends the transaction in another way.
    #[error("expected {position} to end with {expected}, as in the serial run, found {found}")]
    Outcome {
        /// Which transaction.
        position: Position,
        /// In the serial run.
        expected: String,
        /// What the protocol says.
        found: String,
    },
    /// The transaction saw another value than it sees in the serial run.
    #[error("expected {position} to see {expected} of {row:?}, as in the serial run, found {found}")]
    Read {
        /// Which transaction.
        position: Position,
        /// Which row.
        row: RowId,
        /// In the serial run.
        expected: String,
        /// What it saw.
        found: String,
    },
    /// A scan found other rows than it finds in the serial run.
    #[error("expected scan {scan} of {position} to see {expected}, as in the serial run, found {found}")]
    Scan {
        /// Which transaction.
        position: Position,
        /// Which of its scans, from 0.
        scan: usize,
        /// In the serial run.
        expected: String,
        /// What it saw.
        found: String,
    },
    /// The serial run ends in another state.
    #[error("expected {row:?} to be {expected} in the end, as after the serial run, found {found}")]
    State {
        /// The first row that differs.
        row: RowId,
        /// After the serial run.
        expected: String,
        /// After the protocol's run.
        found: String,
    },
}

/// Checks a whole run that began with `initial`.
///
/// # Errors
/// The first violation.
pub fn check(initial: &PlainState, batches: &[CheckedBatch<'_>]) -> Result<Verified, Violation> {
    let nodes = nodes(batches)?;
    let (versions, last) = versions::apply(initial, batches, &nodes)?;
    let mut edges = graph::edges(&nodes, &versions);
    let serial_run = |edges: &graph::Edges| -> Result<Verified, Violation> {
        let order = graph::sort(edges).map_err(|cycle| {
            Violation::Cycle(cycle.into_iter().map(|node| nodes[node].position).collect())
        })?;
        let state = replay::replay(initial, &nodes, &order)?;
        replay::compare_states(&state, &last)?;
        let order = order.into_iter().map(|node| nodes[node].position).collect();
        Ok(Verified { order, state, edges: edges.iter().map(|to| to.len()).sum() })
    };
    serial_run(&edges).or_else(|violation| {
        // Writers of different columns of a row may stand in any order, but a predicate over both columns meets images
        // of the row that the protocol's order never made. One serial order is enough: perhaps the one that has the
        // row as the protocol had it.
        if !graph::keep_images_of_scanned_rows(&nodes, &versions, &mut edges) {
            return Err(violation);
        }
        serial_run(&edges).map_err(|_| violation)
    })
}

/// The transactions that took effect, in the protocol's order.
fn nodes<'a>(batches: &[CheckedBatch<'a>]) -> Result<Vec<Node<'a>>, Violation> {
    let mut nodes: Vec<Node<'a>> = Vec::new();
    let mut before: Vec<usize> = Vec::new();
    for (batch, checked) in batches.iter().enumerate() {
        before.push(nodes.len());
        let result = checked.result;
        let snapshot = |number: u32| match checked.snapshots {
            Some(snapshots) => before[snapshots[number as usize]],
            None => before[batch - checked.unseen.min(batch)],
        };
        let mut found = vec![0; checked.transactions.len()];
        let placed = result.history.placed.iter().map(|number| (number, false));
        for (number, serial) in placed.chain(result.history.serial.iter().map(|number| (number, true))) {
            found[*number as usize] += 1;
            let transaction = &checked.transactions[*number as usize];
            nodes.push(Node {
                position: Position { batch, transaction: *number },
                seen: if serial { nodes.len() } else { snapshot(*number) },
                execution: transaction.last().expect("what is in the history has been executed"),
                outcome: &result.outcomes[*number as usize],
                transaction,
            });
        }
        for (transaction, (found, outcome)) in found.into_iter().zip(&result.outcomes).enumerate() {
            let settled =
                matches!(outcome, TransactionOutcome::Committed(_) | TransactionOutcome::Aborted(_));
            let expected = usize::from(settled);
            if found != expected {
                let position = Position { batch, transaction: transaction as u32 };
                return Err(Violation::History { position, outcome: outcome.clone(), expected, found });
            }
        }
    }
    Ok(nodes)
}
