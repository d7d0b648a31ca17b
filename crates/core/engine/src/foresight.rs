//! Blocks that are admitted and offered before their turn, so that validators find the transactions of all queued blocks
//! (SmartFabric, section 3.1): what of them is judged early does not depend on what the blocks before them came to.

use crate::admission::Admission;
use crate::row_history::Recorded;
use crate::submission::Submission;
use crate::{Engine, VerifiedBlock};
use concurrency::Batch;
use crypto::Digest;
use types::{ExecutionModel, RejectReason};

/// A block whose batches the protocol has.
pub(crate) struct ForeseenBlock {
    /// Digest of its header.
    pub(crate) digest: Digest,
    /// Positions of the transactions of its batches.
    pub(crate) batches: Vec<Vec<u32>>,
    /// Who was not admitted.
    pub(crate) rejected: Vec<(u32, RejectReason)>,
    /// Digest of the ids that it has admitted.
    pub(crate) requests: Digest,
    /// Its transactions, where they remember what they do.
    pub(crate) recorded: Recorded,
}

impl Engine {
    /// Admits a block behind those that were foreseen, and hands its transactions to the protocol, if what it comes to
    /// cannot depend on how the blocks before it end but through the protocol, and the protocol looks so far ahead.
    /// False: not yet, or not with this protocol. A block that was foreseen must be executed.
    pub fn foresee(&mut self, block: &VerifiedBlock) -> bool {
        let height = self.height + 1 + self.foreseen.len() as u64;
        let waiting: usize = self.foreseen.iter().map(|block| block.batches.len()).sum();
        // A checkpoint holds the live ids of its height, and what was simulated before it is void behind it.
        let behind_checkpoint = !self.foreseen.is_empty() && self.is_checkpoint(height - 1);
        let may = self.charter.execution == ExecutionModel::ExecuteOrderValidate
            && self.protocol.lookahead() > 1
            && waiting < self.protocol.lookahead()
            && block.header.height == height
            && !behind_checkpoint
            && !self.changes_charter(height)
            && !block.transactions.iter().flatten().any(|one| sql::is_schema_change(&one.payload));
        if may {
            self.admit_whole(block);
        }
        may
    }

    fn admit_whole(&mut self, block: &VerifiedBlock) {
        self.begin();
        let Engine { live, protocol, library, rules, charter, notes_rows, .. } = self;
        let size = charter.block.batch_transactions as usize;
        let mut admission = Admission::new(block, live, charter, Some(&**rules), library);
        let submission = Submission { block, library, charter };
        let (mut batches, mut recorded) = (Vec::new(), Recorded::default());
        loop {
            let positions = admission.take(size, library);
            if positions.is_empty() {
                break;
            }
            let mut transactions = submission.of_batch(&positions, &mut admission);
            if *notes_rows {
                transactions = recorded.wrap(&positions, transactions);
            }
            protocol.offer(Batch {
                height: block.header.height,
                number: batches.len() as u32,
                transactions,
                steps_left: charter.meter.block_steps,
                forget: std::mem::take(&mut self.forget),
                oldest_snapshot: self.oldest_snapshot,
            });
            batches.push(positions);
        }
        let rejected = admission.take_rejected();
        let requests = self.live.block_digest();
        let digest = block.digest;
        self.foreseen.push_back(ForeseenBlock { digest, batches, rejected, requests, recorded });
    }
}
