//! Reads the queue of recorded blocks and hears which heights are certified; hands out receipts, each at the moment that
//! its client has asked for.

use super::Shared;
use crate::Defence;
use crate::admission::ordering_name;
use crate::metrics::ANSWER;
use crate::receipts::Begins;
use crossbeam_channel::{Receiver, never, select};
use ledger::BlockRecord;
use std::collections::VecDeque;
use std::time::Instant;
use types::Receipt;

/// Recorded blocks that are kept in memory until they are certified; others are read again.
const KEPT_BLOCKS: usize = 16;

/// What happened to recorded blocks.
pub(super) enum Answerable {
    /// They are on the disk.
    Recorded(Vec<BlockRecord>),
    /// Those from this height on are taken back.
    TakenBack(u64),
}

/// Recorded blocks with transactions whose outcomes are not certified, ascending. There are as many as the charter lets
/// ordering be ahead, at most.
pub(super) struct Waiting {
    blocks: VecDeque<(u64, Option<BlockRecord>)>,
    recorded: u64,
}

/// Works until the pipeline has ended.
pub(super) fn run(shared: &Shared, blocks: &Receiver<Answerable>, certified: &Receiver<()>) {
    let mut waiting = Waiting::at_start(shared);
    let mut certified = certified.clone();
    loop {
        select! {
            recv(blocks) -> message => match message {
                Ok(answerable) => waiting.take(shared, answerable),
                Err(_) => return,
            },
            recv(certified) -> wake => match wake {
                Ok(()) => waiting.settle(shared),
                Err(_) => certified = never(),
            },
        }
    }
}

impl Waiting {
    /// Blocks may have been recorded and not certified before the node was started: whoever asks for them waits too.
    pub(super) fn at_start(shared: &Shared) -> Waiting {
        let recorded = shared.ledger.tip().map_or(0, |(height, _)| height);
        let first = certified_height(shared).saturating_add(1).max(shared.ledger.first_height());
        let has_transactions = |height: &u64| match shared.ledger.header(*height) {
            Ok(header) => header.is_some_and(|header| header.transactions > 0),
            Err(error) => {
                tracing::error!(height, %error, "a recorded block cannot be read");
                false
            }
        };
        let blocks = (first..=recorded).filter(has_transactions).map(|height| (height, None)).collect();
        Waiting { blocks, recorded }
    }

    /// Something happened to recorded blocks.
    pub(super) fn take(&mut self, shared: &Shared, answerable: Answerable) {
        match answerable {
            Answerable::Recorded(records) => {
                let start = Instant::now();
                self.record(shared, records);
                shared.metrics.worked(ANSWER, start.elapsed());
            }
            Answerable::TakenBack(height) => self.take_back(height),
        }
    }

    fn record(&mut self, shared: &Shared, records: Vec<BlockRecord>) {
        let certified = certified_height(shared);
        let Some(last) = records.last() else { return };
        self.recorded = last.block.header.height;
        for record in records {
            let height = record.block.header.height;
            if height <= certified {
                publish(shared, &record, true);
            } else if !record.block.transactions.is_empty() {
                publish(shared, &record, false);
                let kept = self.blocks.len() < KEPT_BLOCKS;
                self.blocks.push_back((height, kept.then_some(record)));
            }
        }
        self.settle(shared);
        let attested = self.blocks.front().map_or(self.recorded, |(height, _)| height - 1);
        let begins = Begins::of(&shared.ledger, &shared.charters.all());
        shared.receipts.expire(self.recorded, attested.min(certified_height(shared)), begins);
    }

    /// Hands out what is recorded and certified.
    pub(super) fn settle(&mut self, shared: &Shared) {
        let certified = certified_height(shared);
        while let Some((height, record)) = self.blocks.pop_front_if(|(height, _)| *height <= certified) {
            let record = match record {
                Some(record) => Some(record),
                None => shared.ledger.read(height).unwrap_or_else(|error| {
                    tracing::error!(height, %error, "a recorded block cannot be read");
                    None
                }),
            };
            if let Some(record) = record {
                publish(shared, &record, true);
            }
        }
    }

    fn take_back(&mut self, height: u64) {
        self.blocks.retain(|(recorded, _)| *recorded < height);
        self.recorded = self.recorded.min(height.saturating_sub(1));
    }
}

/// The height up to which nobody has to wait any longer.
fn certified_height(shared: &Shared) -> u64 {
    match shared.attest {
        Some(_) if !shared.lacks(Defence::QuorumBeforeAnswer) => shared.published.certified().height(),
        _ => u64::MAX,
    }
}

fn publish(shared: &Shared, record: &BlockRecord, attested: bool) {
    let original = |height, index| match shared.ledger.receipt_at(height, index) {
        Ok(receipt) => receipt,
        Err(error) => {
            tracing::error!(height, index, %error, "a recorded receipt cannot be read");
            None
        }
    };
    let name = |receipt: &Receipt| {
        ordering_name(receipt.transaction, &record.block.transactions[receipt.index as usize])
    };
    shared.receipts.publish(&record.outcome.receipts, attested, original, name);
}
