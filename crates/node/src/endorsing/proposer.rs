use crate::receipts::Receipts;
use bytes::Bytes;
use concurrency::endorsed::{EarlyAbort, Orderer, OrdererOptions, Waiting};
use engine::{ExecutedBlock, VerifiedBlock, VerifiedEndorsement, Verifier};
use ordering::Arrangement;
use parking_lot::Mutex;
use state::Effects;
use std::sync::Arc;
use types::{Outcome, SubmissionRefusal, TransactionId};

/// Blocks whose writes are remembered: what is older is too old for every validation.
const WINDOW: u64 = 256;

/// What this node does as proposer with the endorsed transactions that are next: Fabric++ drops what cannot commit and
/// puts readers in front of writers, Fabric# drops what closes a cycle. Their clients, who wait at this node, are told at
/// once.
pub(crate) struct Proposer {
    orderer: Mutex<Orderer>,
    most: usize,
    verifier: Arc<Verifier>,
    receipts: Arc<Receipts>,
}

impl Proposer {
    /// `None`: under this protocol a proposer takes transactions as they come.
    pub(crate) fn new(
        charter: &types::Charter,
        verifier: Arc<Verifier>,
        receipts: Arc<Receipts>,
    ) -> Option<Proposer> {
        let options = OrdererOptions::of_protocol(&charter.protocol);
        let most = charter.block.transactions_max as usize;
        (options != OrdererOptions::FABRIC).then(|| Proposer {
            orderer: Mutex::new(Orderer::new(options, WINDOW)),
            most,
            verifier,
            receipts,
        })
    }

    /// A block has been validated: what has committed in it makes others stale.
    pub(crate) fn validated(&self, block: &VerifiedBlock, executed: &ExecutedBlock) {
        let committed = block.transactions.iter().zip(&executed.receipts);
        let committed: Vec<(Effects, u64)> = committed
            .filter(|(_, receipt)| matches!(receipt.outcome, Outcome::Committed(_)))
            .filter_map(|(judged, _)| judged.as_ref().ok()?.endorsed.as_ref())
            .map(|endorsed| (effects_of(endorsed), endorsed.snapshot))
            .collect();
        let committed = committed.iter().map(|(effects, snapshot)| Waiting { effects, snapshot: *snapshot });
        self.orderer.lock().validated(block.header.height, committed);
    }

    /// What goes into the block that this node proposes, in which order.
    pub(crate) fn arrange(&self, transactions: &[Bytes]) -> Arrangement {
        let judged = self.verifier.check(transactions);
        let endorsed: Vec<Option<(TransactionId, Effects, u64)>> = judged
            .iter()
            .map(|judged| {
                let transaction = judged.as_ref().ok()?;
                let endorsed = transaction.endorsed.as_ref()?;
                Some((transaction.id, effects_of(endorsed), endorsed.snapshot))
            })
            .collect();
        // A schema change makes what is behind it in the block void: it goes last.
        let plain = (0u32..).zip(&endorsed).filter(|(_, one)| one.is_none()).map(|(position, _)| position);
        let (positions, waiting): (Vec<u32>, Vec<Waiting<'_>>) = (0u32..)
            .zip(&endorsed)
            .filter_map(|(position, one)| {
                let (_, effects, snapshot) = one.as_ref()?;
                Some((position, Waiting { effects, snapshot: *snapshot }))
            })
            .unzip();
        let cut = self.orderer.lock().cut(&waiting, self.most);
        let arranged = cut.order.iter().map(|number| positions[*number as usize]);
        let order = arranged.chain(plain).collect();
        let mut dropped = Vec::with_capacity(cut.dropped.len());
        for (number, why) in cut.dropped {
            let position = positions[number as usize];
            if let Some((id, ..)) = &endorsed[position as usize] {
                self.receipts.refuse(id, &SubmissionRefusal::EarlyAbort { stale: why == EarlyAbort::Stale });
            }
            dropped.push(position);
        }
        Arrangement { order, dropped }
    }
}

fn effects_of(endorsed: &VerifiedEndorsement) -> Effects {
    let command = |write: &types::EndorsedWrite| Ok(state::write_command(write));
    state::effects_of(&endorsed.effects, command).expect("a write becomes a command whatever it is")
}
