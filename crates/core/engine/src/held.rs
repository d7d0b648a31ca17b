//! Members' words in a block, and which of its transactions with parts they are about ([`types::HeldParts`]).

use crate::{Judged, VerifiedEndorsement, VerifiedTransaction};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{EndorsedEffects, EndorsementFault, HeldParts, Holder, Payload, RejectReason, TransactionId};

/// What members say in one block.
pub(crate) struct HeldInBlock<'a> {
    /// By transaction, whether it stands in the block or not. Few words are about one.
    words: FxHashMap<TransactionId, Vec<&'a HeldParts>>,
}

/// Whether a transaction says nothing of who holds its parts: then the block must.
fn needs_words(transaction: &VerifiedTransaction) -> bool {
    transaction.endorsed.is_none() && matches!(transaction.payload.as_ref(), Payload::Parts { .. })
}

impl<'a> HeldInBlock<'a> {
    /// Words whose signatures were verified.
    fn of(payloads: &'a [Arc<Payload>]) -> HeldInBlock<'a> {
        let mut words: FxHashMap<TransactionId, Vec<&HeldParts>> = FxHashMap::default();
        for payload in payloads {
            let Payload::HeldParts { held } = payload.as_ref() else { continue };
            for word in held {
                for id in &word.transactions {
                    words.entry(*id).or_default().push(word);
                }
            }
        }
        HeldInBlock { words }
    }

    /// Everybody who says that he holds the transaction's parts, and the newest height at which he says so: whoever brings an old word of
    /// somebody harms nobody. `None`: nobody says it.
    fn endorsement(&self, id: &TransactionId, effects: &Arc<EndorsedEffects>) -> Option<VerifiedEndorsement> {
        let mut holders: BTreeMap<u16, u64> = BTreeMap::new();
        for Holder { organisation, height, .. } in self.words.get(id)?.iter().flat_map(|word| &word.holders) {
            let newest = holders.entry(*organisation).or_default();
            *newest = (*newest).max(*height);
        }
        let some = !holders.is_empty();
        some.then(|| VerifiedEndorsement::new(effects.clone(), holders.into_iter().collect()))
    }
}

/// Refuses transactions of a block that nobody says to hold the parts of; the others are as if their members' words came with them.
pub(crate) fn judge_held(judged: &mut [Judged]) {
    if !judged.iter().flatten().any(|transaction| needs_words(transaction)) {
        return;
    }
    let is_word = |payload: &Arc<Payload>| matches!(payload.as_ref(), Payload::HeldParts { .. });
    let payloads: Vec<Arc<Payload>> =
        judged.iter().flatten().map(|transaction| transaction.payload.clone()).filter(is_word).collect();
    let held = HeldInBlock::of(&payloads);
    let effects = Arc::new(EndorsedEffects::held());
    for verdict in judged {
        let Ok(transaction) = verdict else { continue };
        if !needs_words(transaction) {
            continue;
        }
        *verdict = match held.endorsement(&transaction.id, &effects) {
            Some(endorsed) => {
                let endorsed = Some(endorsed);
                Ok(Arc::new(VerifiedTransaction { endorsed, ..VerifiedTransaction::clone(transaction) }))
            }
            None => Err((transaction.id, RejectReason::Endorsement(nobody_holds()))),
        };
    }
}

/// The block has no word about a transaction with parts.
fn nobody_holds() -> EndorsementFault {
    let why =
        "nobody says in its block that he holds the parts; send them to the members of their schemas first";
    EndorsementFault::Unasked(why.to_string())
}
