//! Reads the queue of executed blocks; writes the ledger, acknowledges to ordering, fills the queue of `answer`.

use super::answer::Answerable;
use super::{Executed, Shared};
use crate::metrics::RECORD;
use crate::{Defence, NodeError};
use crossbeam_channel::{Receiver, Sender};
use std::time::Instant;

/// Blocks that share one flush.
const GROUP_BLOCKS: usize = 64;

/// Appends a group of blocks, flushes once, and only then tells anybody: a receipt is sent when its block is final and on
/// this node's disk, at the earliest.
pub(super) fn step(shared: &Shared, mut group: Vec<Executed>) -> Result<Answerable, NodeError> {
    let start = Instant::now();
    for Executed { record, row_history } in &mut group {
        // Before the block, so that whatever the ledger has, the history has too.
        if let (Some(rows), Some(row_history)) = (&shared.rows, row_history.take()) {
            rows.record(record.block.header.height, &row_history)?;
        }
        shared.ledger.append(record)?;
    }
    if !shared.lacks(Defence::FlushBeforeAnswer) {
        shared.ledger.flush()?;
    }
    shared.metrics.worked(RECORD, start.elapsed());
    for Executed { record, .. } in &group {
        shared.published.recorded(record.block.header.height, record.outcome.header.state_digest);
    }
    if let Some(last) = group.last() {
        let height = last.record.block.header.height;
        shared.metrics.recorded(group.len() as u64, height);
        shared.ordering.acknowledge(height);
    }
    Ok(Answerable::Recorded(group.into_iter().map(|executed| executed.record).collect()))
}

/// Works until the stage before it has ended.
pub(super) fn run(
    shared: &Shared,
    executed: &Receiver<Executed>,
    answers: &Sender<Answerable>,
) -> Result<(), NodeError> {
    while let Ok(first) = executed.recv() {
        let mut group = vec![first];
        group.extend(executed.try_iter().take(GROUP_BLOCKS - 1));
        shared.metrics.waiting(RECORD, executed.len());
        let recorded = step(shared, group)?;
        // Nobody answers clients any more only when the node stops.
        let _ = answers.send(recorded);
    }
    Ok(())
}
