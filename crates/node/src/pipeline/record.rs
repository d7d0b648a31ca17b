//! Reads the queue of executed blocks; writes the ledger, hands out receipts, acknowledges to ordering.

use super::{Executed, Shared};
use crate::NodeError;
use crate::admission::ordering_name;
use crate::metrics::RECORD;
use crossbeam_channel::Receiver;
use std::time::Instant;
use types::Receipt;

/// Blocks that share one flush.
const GROUP_BLOCKS: usize = 64;

/// Appends what waits, flushes once, and only then tells anybody: a receipt is sent when its block is final and on
/// this node's disk.
pub(super) fn run(shared: &Shared, executed: &Receiver<Executed>) -> Result<(), NodeError> {
    while let Ok(first) = executed.recv() {
        let mut group = vec![first];
        group.extend(executed.try_iter().take(GROUP_BLOCKS - 1));
        shared.metrics.waiting(RECORD, executed.len());
        let start = Instant::now();
        for Executed { record, row_history } in &mut group {
            // Before the block, so that whatever the ledger has, the history has too.
            if let (Some(rows), Some(row_history)) = (&shared.rows, row_history.take()) {
                rows.record(record.block.header.height, &row_history)?;
            }
            shared.ledger.append(record)?;
        }
        shared.ledger.flush()?;
        shared.metrics.worked(RECORD, start.elapsed());
        publish(shared, &group);
    }
    Ok(())
}

fn publish(shared: &Shared, group: &[Executed]) {
    let original = |height, index| match shared.ledger.receipt_at(height, index) {
        Ok(receipt) => receipt,
        Err(error) => {
            tracing::error!(height, index, %error, "a recorded receipt cannot be read");
            None
        }
    };
    for Executed { record, .. } in group {
        let height = record.block.header.height;
        shared.published.recorded(height, record.outcome.header.state_digest);
        let name = |receipt: &Receipt| {
            ordering_name(receipt.transaction, &record.block.transactions[receipt.index as usize])
        };
        shared.receipts.publish(&record.outcome.receipts, original, name);
    }
    let Some(last) = group.last() else { return };
    let height = last.record.block.header.height;
    shared.metrics.recorded(group.len() as u64, height);
    shared.receipts.expire(height);
    shared.ordering.acknowledge(height);
}
