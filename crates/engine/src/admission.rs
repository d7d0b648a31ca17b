//! Admission: which transactions of a block are executed, judged in block order by expiry and request.

use crate::{VerifiedBlock, VerifiedTransaction};
use state::LiveRequests;
use std::collections::VecDeque;
use types::RejectReason;

/// The transactions of a block, judged a few at a time while others are being executed: a verdict depends on those before
/// it in the block and on nothing that is executed.
pub(crate) struct Admission<'a> {
    block: &'a VerifiedBlock,
    live: &'a mut LiveRequests,
    /// The last height at which a transaction may expire.
    expires_at_max: u64,
    /// Position of the first transaction that has not been judged.
    next: u32,
    /// Positions of those that have been admitted and not been taken.
    admitted: VecDeque<u32>,
    /// Position of a schema change behind them; what follows is not judged before it is taken.
    schema_change: Option<u32>,
    /// What was turned away since the last look.
    rejected: Vec<(u32, RejectReason)>,
}

impl<'a> Admission<'a> {
    /// Begins a block. `ahead_max`: blocks that a transaction may be valid.
    pub(crate) fn new(block: &'a VerifiedBlock, live: &'a mut LiveRequests, ahead_max: u32) -> Admission<'a> {
        let height = block.header.height;
        live.begin_block(height);
        Admission {
            block,
            live,
            expires_at_max: height + u64::from(ahead_max),
            next: 0,
            admitted: VecDeque::new(),
            schema_change: None,
            rejected: Vec::new(),
        }
    }

    /// Judges until `count` transactions wait, or a schema change is behind them, or the block ends.
    pub(crate) fn judge(&mut self, count: usize) {
        while self.admitted.len() < count && self.schema_change.is_none() {
            let Some(judged) = self.block.transactions.get(self.next as usize) else { return };
            let position = self.next;
            self.next += 1;
            let verdict = match judged {
                Err((_, reason)) => Err(reason.clone()),
                Ok(transaction) => self.admit(transaction, position),
            };
            match (verdict, judged) {
                (Err(reason), _) => self.rejected.push((position, reason)),
                (Ok(()), Ok(transaction)) if sql::is_schema_change(&transaction.payload) => {
                    self.schema_change = Some(position);
                }
                (Ok(()), _) => self.admitted.push_back(position),
            }
        }
    }

    fn admit(&mut self, transaction: &VerifiedTransaction, position: u32) -> Result<(), RejectReason> {
        let (height, expires_at) = (self.block.header.height, transaction.expires_at);
        if expires_at < height || expires_at > self.expires_at_max {
            return Err(RejectReason::Expired { height, expires_at });
        }
        self.live.admit(transaction.client, transaction.id, position, expires_at)
    }

    /// Takes at most `count` transactions that are executed next; none where the block ends or its schema changes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u32> {
        self.judge(count);
        let count = count.min(self.admitted.len());
        self.admitted.drain(..count).collect()
    }

    /// Takes the schema change that follows when no transactions do; `None` at the block's end.
    pub(crate) fn take_schema_change(&mut self) -> Option<u32> {
        self.schema_change.take()
    }

    /// Puts transactions back in front of all others, in their order.
    pub(crate) fn put_back(&mut self, positions: &[u32]) {
        positions.iter().rev().for_each(|position| self.admitted.push_front(*position));
    }

    /// What was turned away since the last look.
    pub(crate) fn take_rejected(&mut self) -> Vec<(u32, RejectReason)> {
        std::mem::take(&mut self.rejected)
    }
}
