//! Reads the queue of executed blocks; writes the ledger, acknowledges to ordering, fills the queue of `answer`.

use super::Executed;
use super::answer::Answerable;
use crate::metrics::{NodeMetrics, RECORD};
use crate::own_database::OwnDatabase;
use crate::private::PrivateSchemas;
use crate::published::Published;
use crate::row_history::KeptRows;
use crate::{Defence, Faults, NodeError};
use crossbeam_channel::{Receiver, Sender};
use ledger::Ledger;
use ordering::Ordering;
use state::Stores;
use std::sync::Arc;
use std::time::Instant;

/// Blocks that share one flush.
const GROUP_BLOCKS: usize = 64;

/// What the stage needs.
#[derive(Clone)]
pub(crate) struct RecordStage {
    pub(crate) ledger: Arc<Ledger>,
    /// Who hears up to where the ledger goes.
    pub(crate) stores: Arc<dyn Stores>,
    /// The same, of schemas that the organisation is a member of.
    pub(crate) private: Option<Arc<PrivateSchemas>>,
    /// The history of rows, where it is kept.
    pub(crate) rows: Option<Arc<KeptRows>>,
    /// The organisation's own database, where there is one.
    pub(crate) own_database: Option<Arc<OwnDatabase>>,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) published: Arc<Published>,
    pub(crate) metrics: Arc<NodeMetrics>,
    /// What a test makes go wrong.
    pub(crate) faults: Option<Arc<Faults>>,
}

impl RecordStage {
    /// Appends a group of blocks, flushes once, and only then tells anybody: a receipt is sent when its block is final and on
    /// this node's disk, at the earliest.
    pub(super) fn step(&self, mut group: Vec<Executed>) -> Result<Answerable, NodeError> {
        let start = Instant::now();
        for Executed { record, row_history, own_changes } in &mut group {
            // Before the block, so that whatever the ledger has, the history has too.
            if let (Some(rows), Some(row_history)) = (&self.rows, row_history.take()) {
                let kept = rows.record(record.block.header.height, &row_history);
                kept.inspect_err(|error| self.published.note_store_failure(error))?;
            }
            if let (Some(own), Some(changes)) = (&self.own_database, own_changes.take()) {
                let kept = own.record(record.block.header.height, changes);
                kept.inspect_err(|error| self.published.note_store_failure(error))?;
            }
            self.ledger.append(record)?;
        }
        if !Faults::lack(self.faults.as_deref(), Defence::FlushBeforeAnswer) {
            self.ledger.flush()?;
        }
        let heights = group.iter().map(|executed| executed.record.block.header.height);
        self.metrics.worked_on(RECORD, heights, start);
        for Executed { record, .. } in &group {
            self.published.recorded(record.block.header.height, record.outcome.header.state_digest);
        }
        if let Some(last) = group.last() {
            let header = &last.record.block.header;
            let height = header.height;
            self.metrics.recorded(group.len() as u64, height, header.timestamp_ms);
            self.stores.recorded(height);
            if let Some(private) = &self.private {
                private.recorded(height);
            }
            self.ordering.acknowledge(height);
        }
        Ok(Answerable::Recorded(group.into_iter().map(|executed| executed.record).collect()))
    }

    /// Works until the stage before it has ended.
    pub(super) fn run(
        &self,
        executed: &Receiver<Executed>,
        answers: &Sender<Answerable>,
    ) -> Result<(), NodeError> {
        let ran = self.record_all(executed, answers);
        self.stores.recording_ends();
        if let Some(private) = &self.private {
            private.recording_ends();
        }
        ran
    }

    fn record_all(
        &self,
        executed: &Receiver<Executed>,
        answers: &Sender<Answerable>,
    ) -> Result<(), NodeError> {
        while let Ok(first) = executed.recv() {
            let mut group = vec![first];
            group.extend(executed.try_iter().take(GROUP_BLOCKS - 1));
            self.metrics.waiting(RECORD, executed.len());
            let recorded = self.step(group)?;
            // Nobody answers clients any more only when the node stops.
            let _ = answers.send(recorded);
        }
        Ok(())
    }
}
