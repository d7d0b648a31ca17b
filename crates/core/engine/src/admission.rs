//! Admission: which transactions of a block are executed, judged in block order by endorsements, expiry and request.

use crate::endorsement::EndorsementRules;
use crate::parts::judge_parts;
use crate::{Judged, VerifiedBlock, VerifiedTransaction};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use sql::Library;
use state::{Endorsed, LiveRequests};
use std::collections::VecDeque;
use types::{Charter, EndorsementFault, RejectReason};

/// Transactions that are too few to be worth another thread.
const JUDGED_TOGETHER: usize = 32;

/// What the rules say of a transaction's endorsements.
type Verdict = Result<Option<Endorsed>, EndorsementFault>;

/// The transactions of a block, judged a few at a time while others are being executed: a verdict depends on those before
/// it in the block and, but for the schema, on nothing that is executed.
pub(crate) struct Admission<'a> {
    block: &'a VerifiedBlock,
    live: &'a mut LiveRequests,
    charter: &'a Charter,
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
    /// What endorsements must be; `None`: there are none.
    rules: Option<&'a EndorsementRules>,
    /// By position, what the rules say of endorsements under the schema of `ahead_version`.
    ahead: Vec<Option<Verdict>>,
    ahead_version: u64,
    /// By position, the endorsed effects of those that wait.
    endorsed: FxHashMap<u32, Endorsed>,
}

impl<'a> Admission<'a> {
    /// Begins a block under this charter.
    pub(crate) fn new(
        block: &'a VerifiedBlock,
        live: &'a mut LiveRequests,
        charter: &'a Charter,
        rules: Option<&'a EndorsementRules>,
        library: &Library,
    ) -> Admission<'a> {
        let height = block.header.height;
        live.begin_block(height);
        // Policies and effects are held against the schema for the whole block at once, on all threads. Where the block
        // changes the schema, what comes behind is judged again.
        let now_ms = block.header.timestamp_ms;
        let ahead = rules.map_or_else(Vec::new, |rules| {
            let judge = |judged: &Judged| Some(rules.judge(judged.as_ref().ok()?, library, now_ms));
            block.transactions.par_iter().with_min_len(JUDGED_TOGETHER).map(judge).collect()
        });
        Admission {
            block,
            live,
            charter,
            expires_at_max: height + u64::from(charter.expiry_blocks_max),
            next: 0,
            admitted: VecDeque::new(),
            schema_change: None,
            rejected: Vec::new(),
            rules,
            ahead,
            ahead_version: library.catalog().version,
            endorsed: FxHashMap::default(),
        }
    }

    /// Judges until `count` transactions wait, or a schema change is behind them, or the block ends.
    pub(crate) fn judge(&mut self, count: usize, library: &Library) {
        while self.admitted.len() < count && self.schema_change.is_none() {
            let Some(judged) = self.block.transactions.get(self.next as usize) else { return };
            let position = self.next;
            self.next += 1;
            let verdict = match judged {
                Err((_, reason)) => Err(reason.clone()),
                Ok(transaction) => self.admit(transaction, position, library),
            };
            match (verdict, judged) {
                (Err(reason), _) => self.rejected.push((position, reason)),
                (Ok(()), Ok(transaction))
                    if sql::is_schema_change(&transaction.payload, library.version()) =>
                {
                    self.schema_change = Some(position);
                }
                (Ok(()), _) => self.admitted.push_back(position),
            }
        }
    }

    fn admit(
        &mut self,
        transaction: &VerifiedTransaction,
        position: u32,
        library: &Library,
    ) -> Result<(), RejectReason> {
        let (height, expires_at) = (self.block.header.height, transaction.expires_at);
        if expires_at < height || expires_at > self.expires_at_max {
            return Err(RejectReason::Expired { height, expires_at });
        }
        let organisation = transaction.principal.organisation;
        let known = self.charter.organisations.get(usize::from(organisation));
        if known.is_none_or(|organisation| organisation.removed) {
            return Err(RejectReason::NoMember { organisation, height });
        }
        self.endorsers_count(transaction, library).map_err(RejectReason::Endorsement)?;
        let place = (height, self.charter.window_blocks, library.version());
        judge_parts(transaction, library.catalog(), place).map_err(RejectReason::Endorsement)?;
        // Before the request is taken: what others have put around it must not use it up.
        let endorsed = match self.rules {
            Some(rules) => {
                let ahead = self.ahead.get_mut(position as usize).and_then(Option::take);
                let verdict = ahead.filter(|_| library.catalog().version == self.ahead_version);
                let verdict = verdict
                    .unwrap_or_else(|| rules.judge(transaction, library, self.block.header.timestamp_ms));
                verdict.map_err(RejectReason::Endorsement)?
            }
            None => None,
        };
        self.live.admit(transaction.client, transaction.id, position, expires_at)?;
        self.endorsed.extend(endorsed.map(|endorsed| (position, endorsed)));
        Ok(())
    }

    /// Endorsements count where their organisations are members, with the keys that they were verified with: who has left, or
    /// whoever has a key that was replaced, could endorse for old heights for ever. And where effects were found with the rules
    /// that hold now: what another execution version has found would commit without ever being executed with these.
    fn endorsers_count(
        &self,
        transaction: &VerifiedTransaction,
        library: &Library,
    ) -> Result<(), EndorsementFault> {
        let Some(endorsed) = &transaction.endorsed else { return Ok(()) };
        let (height, snapshot) = (self.block.header.height, endorsed.snapshot);
        // Without a history of charters there is one charter.
        let before = library.catalog().governance.charter_at(snapshot.min(height)).unwrap_or(self.charter);
        let (found, holds) = (before.execution_version, self.charter.execution_version);
        if found != holds {
            return Err(EndorsementFault::Effects(format!(
                "they were found with execution version {found} on the state after block {snapshot}, and version {holds} holds at \
                 height {height}; have the call endorsed again"
            )));
        }
        let counts = |organisation: &&u16| {
            let position = usize::from(**organisation);
            let (now, then) = (self.charter.organisations.get(position), before.organisations.get(position));
            now.is_some_and(|now| {
                self.charter.signs_at(position, height)
                    && then.is_none_or(|then| then.node_key == now.node_key)
            })
        };
        match endorsed.endorsers.iter().find(|organisation| !counts(organisation)) {
            Some(organisation) => {
                Err(EndorsementFault::Outdated { organisation: *organisation, snapshot, height })
            }
            None => Ok(()),
        }
    }

    /// So many rows a transaction changes at most, where its endorsed effects say that: keys that it takes in unique indexes are
    /// among their writes, and who runs again may write no other rows.
    pub(crate) fn rows_max(&self, position: u32) -> Option<u64> {
        let endorsed = self.endorsed.get(&position)?;
        Some(endorsed.effects.commands.len() as u64)
    }

    /// The endorsed effects of a transaction that was taken.
    pub(crate) fn take_endorsed(&mut self, position: u32) -> Option<Endorsed> {
        self.endorsed.remove(&position)
    }

    /// Takes at most `count` transactions that are executed next; none where the block ends or its schema changes.
    pub(crate) fn take(&mut self, count: usize, library: &Library) -> Vec<u32> {
        self.judge(count, library);
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
