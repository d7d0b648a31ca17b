use super::states::RecentStates;
use crate::admission::ordering_name;
use crate::charters::DecidedCharters;
use crate::receipts::Receipts;
use bytes::Bytes;
use concurrency::endorsed::{EarlyAbort, Orderer, OrdererOptions, PendingTransaction};
use engine::{ExecutedBlock, VerifiedBlock, VerifiedEndorsement, Verifier};
use ordering::Arrangement;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use state::Effects;
use std::collections::VecDeque;
use std::sync::Arc;
use types::{EndorsedEffects, Outcome, Place, SubmissionRefusal, TransactionId};

/// Blocks whose writes are remembered: what is older is too old for every validation.
const WINDOW: u64 = 256;

/// What this node does as proposer with the endorsed transactions that are next: Fabric++ drops what cannot commit and
/// puts readers in front of writers, Fabric# drops what closes a cycle. Their clients, who wait at this node, are told at
/// once.
pub(crate) struct Proposer {
    inner: Mutex<Inner>,
    charters: Arc<DecidedCharters>,
    verifier: Arc<Verifier>,
    receipts: Arc<Receipts>,
    states: Arc<RecentStates>,
}

struct Inner {
    orderer: Orderer,
    /// Ids of the last blocks: they have a receipt, or get one, whatever becomes of the same request once more.
    executed: FxHashSet<TransactionId>,
    by_block: VecDeque<Vec<TransactionId>>,
}

impl Proposer {
    /// `None`: under this protocol a proposer takes transactions as they come.
    pub(crate) fn new(
        charters: Arc<DecidedCharters>,
        verifier: Arc<Verifier>,
        receipts: Arc<Receipts>,
        states: Arc<RecentStates>,
    ) -> Option<Proposer> {
        let options = OrdererOptions::of_protocol(&charters.newest().protocol);
        let orderer = Orderer::new(options, WINDOW);
        let inner = Inner { orderer, executed: FxHashSet::default(), by_block: VecDeque::new() };
        let proposer = Proposer { inner: Mutex::new(inner), charters, verifier, receipts, states };
        (options != OrdererOptions::FABRIC).then_some(proposer)
    }

    /// A block has been validated: what has committed in it makes others stale.
    pub(crate) fn validated(&self, block: &VerifiedBlock, executed: &ExecutedBlock) {
        let committed = block.transactions.iter().zip(&executed.receipts);
        let committed: Vec<(Effects, u64)> = committed
            .filter(|(_, receipt)| matches!(receipt.outcome, Outcome::Committed(_)))
            .filter_map(|(judged, _)| judged.as_ref().ok()?.endorsed.as_ref())
            .map(|endorsed| (effects_of(endorsed), endorsed.snapshot))
            .collect();
        let committed =
            committed.iter().map(|(effects, snapshot)| PendingTransaction { effects, snapshot: *snapshot });
        let decided = executed.receipts.iter().filter(|one| !matches!(one.outcome, Outcome::Rejected(_)));
        let decided: Vec<TransactionId> = decided.map(|receipt| receipt.transaction).collect();
        let mut inner = self.inner.lock();
        inner.orderer.validated(block.header.height, committed);
        inner.executed.extend(&decided);
        inner.by_block.push_back(decided);
        if inner.by_block.len() as u64 > WINDOW {
            for id in inner.by_block.pop_front().unwrap_or_default() {
                inner.executed.remove(&id);
            }
        }
    }

    /// Whether a transaction that was just endorsed has become stale meanwhile: there is no use in ordering it.
    pub(crate) fn is_hopeless(&self, id: &TransactionId, effects: &EndorsedEffects, snapshot: u64) -> bool {
        let effects = plain(effects);
        let inner = self.inner.lock();
        // Its own effects make what was executed stale.
        !inner.executed.contains(id)
            && inner.orderer.drops(&PendingTransaction { effects: &effects, snapshot })
    }

    /// What goes into the block that this node proposes, in which order.
    ///
    /// A request that waits more than once, with different endorsements, goes in once; what is not endorsed as its policies
    /// ask, and schema changes, which make what is behind them void, go last and keep nobody out.
    pub(crate) fn arrange(&self, transactions: &[Bytes]) -> Arrangement {
        let basis = self.states.newest();
        let charters = self.charters.all();
        let place = Place { charters: &charters, height: basis.height + 1 };
        let judged = self.verifier.check(place, transactions);
        let (mut last, mut arrangement) = (Vec::new(), Arrangement::default());
        let mut candidates: Vec<(u32, TransactionId, Effects, u64)> = Vec::new();
        let mut seen: FxHashSet<TransactionId> = FxHashSet::default();
        let mut inner = self.inner.lock();
        for (position, judged) in (0u32..).zip(&judged) {
            let Ok(transaction) = judged else {
                last.push(position);
                continue;
            };
            if inner.executed.contains(&transaction.id) {
                // Whoever waits for it gets the receipt that it has.
                arrangement.dropped.push(position);
                continue;
            }
            match &transaction.endorsed {
                Some(endorsed) if basis.is_endorsed(transaction) => {
                    if seen.insert(transaction.id) {
                        candidates.push((position, transaction.id, effects_of(endorsed), endorsed.snapshot));
                    }
                }
                _ => last.push(position),
            }
        }
        let waiting: Vec<PendingTransaction<'_>> = candidates
            .iter()
            .map(|(_, _, effects, snapshot)| PendingTransaction { effects, snapshot: *snapshot })
            .collect();
        let most = place.charter().block.transactions_max as usize;
        let cut = inner.orderer.cut(&waiting, most);
        drop(inner);
        arrangement.order =
            cut.order.iter().map(|number| candidates[*number as usize].0).chain(last).collect();
        for (number, why) in cut.dropped {
            let (position, id, ..) = &candidates[number as usize];
            let name = ordering_name(*id, &transactions[*position as usize]);
            let refusal = SubmissionRefusal::EarlyAbort { stale: why == EarlyAbort::Stale };
            self.receipts.answer(id, &name, &Err(refusal));
            arrangement.dropped.push(*position);
        }
        arrangement
    }
}

fn effects_of(endorsed: &VerifiedEndorsement) -> Effects {
    plain(&endorsed.effects)
}

fn plain(effects: &EndorsedEffects) -> Effects {
    let command = |write: &types::EndorsedWrite| Ok(state::write_command(write));
    state::effects_of(effects, command).expect("a write becomes a command whatever it is")
}
