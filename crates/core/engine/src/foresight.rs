//! Blocks that are admitted before their turn, where the protocol looks ahead beyond one block: what of them is done early does
//! not depend on what the blocks before them come to.
//!
//! - Under execute–order–validate all batches of a block are offered at once, so that validators find the transactions of all
//!   queued blocks (SmartFabric, section 3.1).
//! - Under order–execute the first batch of the next block is offered beside the last one of this block, so that it is simulated,
//!   on the state that both find, while that one takes effect (HarmonyBC, section 3.4). That is the state on which it is
//!   simulated anyway, later, where nobody foresaw it: the outcomes are the same. It pays in `serializable` mode alone, because
//!   in `strict` mode the first batch of a block must see everything before it.

use crate::admission::Admission;
use crate::row_history::Recorded;
use crate::submission::Submission;
use crate::{Engine, VerifiedBlock};
use concurrency::{Batch, Protocol};
use crypto::Digest;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use types::{Consistency, ExecutionModel, OnConflict, RejectReason};

/// Blocks that are admitted ahead under order–execute: the one that is executed next, and the one behind it.
const ADMITTED_BLOCKS_MAX: usize = 2;

/// A block that is admitted.
pub(crate) struct ForeseenBlock {
    /// Digest of its header.
    pub(crate) digest: Digest,
    /// Its batches that have not been executed, in their order.
    pub(crate) batches: VecDeque<ForeseenBatch>,
    /// Who was not admitted.
    pub(crate) rejected: Vec<(u32, RejectReason)>,
    /// Digest of the ids that it has admitted.
    pub(crate) requests: Digest,
    /// Its transactions, where they remember what they do.
    pub(crate) recorded: Recorded,
    /// So many rows it changes at most, where that is known before it is executed.
    pub(crate) rows_max: Option<u64>,
    /// How long that took.
    pub(crate) admitted_in: Duration,
}

/// A batch of a block that is admitted.
pub(crate) struct ForeseenBatch {
    /// Positions of its transactions in the block.
    pub(crate) positions: Vec<u32>,
    /// `None`: the protocol has it.
    unoffered: Option<Batch>,
}

/// Offers the first batches that there are, as many as the protocol looks ahead: `own` of the block that is executed, which has
/// so many steps left, then those of the blocks behind it.
pub(crate) fn offer(
    protocol: &mut dyn Protocol,
    own: &mut VecDeque<ForeseenBatch>,
    own_steps_left: u64,
    behind: &mut VecDeque<ForeseenBlock>,
) {
    let lookahead = protocol.lookahead().max(1);
    for foreseen in own.iter_mut().take(lookahead) {
        if let Some(batch) = foreseen.unoffered.take() {
            protocol.offer(Batch { steps_left: own_steps_left, ..batch });
        }
    }
    let room = lookahead.saturating_sub(own.len());
    for foreseen in behind.iter_mut().flat_map(|block| &mut block.batches).take(room) {
        if let Some(batch) = foreseen.unoffered.take() {
            protocol.offer(batch);
        }
    }
}

impl Engine {
    /// Admits a block behind those that were foreseen, and hands its transactions to the protocol, now or when their turn is
    /// near, if what it comes to cannot depend on how the blocks before it end but through the protocol, and the protocol looks
    /// so far ahead. False: not yet, or not with this protocol. A block that was foreseen must be executed.
    pub fn foresee(&mut self, block: &VerifiedBlock) -> bool {
        let height = self.height + 1 + self.foreseen.len() as u64;
        let version = self.execution_version();
        let may = self.looks_ahead()
            && block.header.height == height
            && !self.may_be_behind_checkpoint(height)
            && !self.changes_charter(height)
            && !block.transactions.iter().flatten().any(|one| sql::is_schema_change(&one.payload, version));
        if may {
            self.admit_whole(block);
        }
        may
    }

    /// Whether there is a checkpoint in front of the block of this height that was not reached yet, or may be one: it holds the
    /// live ids of its height, and what was simulated before it is void behind it. Blocks that were foreseen have no CHECKPOINT,
    /// and none of them but the last one is in front of a checkpoint.
    fn may_be_behind_checkpoint(&self, height: u64) -> bool {
        let Some(before_last) = self.foreseen.len().checked_sub(1) else { return false };
        let mut rows_max = self.foreseen.iter().take(before_last).map(|block| block.rows_max);
        let rows_max = rows_max.try_fold(self.progress.rows, |sum, rows| sum.checked_add(rows?));
        self.is_due(height - 1, rows_max)
    }

    /// Whether the protocol has a use for one more block.
    fn looks_ahead(&self) -> bool {
        let lookahead = self.protocol.lookahead();
        let options = &self.charter.concurrency;
        lookahead > 1
            && match self.charter.execution {
                ExecutionModel::ExecuteOrderValidate => {
                    let waiting: usize = self.foreseen.iter().map(|block| block.batches.len()).sum();
                    waiting < lookahead
                }
                // What has to be offered again would stand in front of what was offered ahead.
                ExecutionModel::OrderExecute => {
                    options.consistency == Consistency::Serializable
                        && options.on_conflict != OnConflict::Requeue
                        && self.foreseen.len() < ADMITTED_BLOCKS_MAX
                }
                ExecutionModel::WhateverThenAgree => false,
            }
    }

    fn admit_whole(&mut self, block: &VerifiedBlock) {
        let start = Instant::now();
        self.begin();
        let Engine { state, live, protocol, library, rules, charter, notes_rows, .. } = self;
        let size = charter.block.batch_transactions as usize;
        let endorsed = charter.execution == ExecutionModel::ExecuteOrderValidate;
        let mut admission = Admission::new(block, live, charter, endorsed.then_some(&**rules), library);
        let step_limit = charter.meter.transaction_steps;
        let submission = Submission { block, library, step_limit, has_endorsed_effects: endorsed };
        let (mut batches, mut recorded) = (VecDeque::new(), Recorded::default());
        let mut rows_max = Some(0);
        loop {
            let positions = admission.take(size, library);
            if positions.is_empty() {
                break;
            }
            let rows = positions.iter().map(|position| admission.rows_max(*position));
            rows_max = rows.fold(rows_max, |sum: Option<u64>, rows| sum?.checked_add(rows?));
            let mut transactions = submission.of_batch(&positions, &mut admission);
            state.prefetch(&transactions);
            if *notes_rows {
                transactions = recorded.wrap(&positions, transactions);
            }
            let batch = Batch {
                height: block.header.height,
                number: batches.len() as u32,
                transactions,
                steps_left: charter.meter.block_steps,
                forget: std::mem::take(&mut self.forget),
                oldest_snapshot: self.oldest_snapshot,
            };
            let unoffered = match endorsed {
                true => {
                    protocol.offer(batch);
                    None
                }
                false => Some(batch),
            };
            batches.push_back(ForeseenBatch { positions, unoffered });
        }
        let rejected = admission.take_rejected();
        let requests = self.live.block_digest();
        let digest = block.digest;
        let admitted_in = start.elapsed();
        let foreseen = ForeseenBlock { digest, batches, rejected, requests, recorded, rows_max, admitted_in };
        self.foreseen.push_back(foreseen);
    }
}
