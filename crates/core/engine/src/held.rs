//! Members' words in a block, and which of its transactions with parts they are about ([`types::HeldParts`]).

use crate::{Judged, VerifiedEndorsement, VerifiedTransaction};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{EndorsedEffects, EndorsementFault, HeldParts, Holder, Payload, RejectReason, TransactionId};

/// What members say in one block.
struct HeldInBlock<'a> {
    words: Vec<Word<'a>>,
    /// By transaction, whether it stands in the block or not: the first word about it, and others, which few have.
    about: FxHashMap<TransactionId, (usize, Vec<usize>)>,
}

/// One list, and what it says of each of its transactions.
struct Word<'a> {
    said: &'a HeldParts,
    endorsement: VerifiedEndorsement,
}

/// Whether a transaction says nothing of who holds its parts: then the block must.
fn needs_words(transaction: &VerifiedTransaction) -> bool {
    transaction.endorsed.is_none() && matches!(transaction.payload.as_ref(), Payload::Parts { .. })
}

impl<'a> HeldInBlock<'a> {
    /// Words whose signatures were verified.
    fn of(payloads: &'a [Arc<Payload>]) -> HeldInBlock<'a> {
        let (effects, mut words) = (Arc::new(EndorsedEffects::held()), Vec::new());
        let mut about: FxHashMap<TransactionId, (usize, Vec<usize>)> = FxHashMap::default();
        for payload in payloads {
            let Payload::HeldParts { held } = payload.as_ref() else { continue };
            for said in held {
                let number = words.len();
                for id in &said.transactions {
                    about
                        .entry(*id)
                        .and_modify(|(_, others)| others.push(number))
                        .or_insert((number, Vec::new()));
                }
                words.push(Word { said, endorsement: endorsement(std::iter::once(said), &effects) });
            }
        }
        HeldInBlock { words, about }
    }

    /// Everybody who says that he holds the transaction's parts. `None`: nobody says it.
    fn endorsement(&self, id: &TransactionId) -> Option<VerifiedEndorsement> {
        let (first, others) = self.about.get(id)?;
        let Word { said, endorsement: alone } = &self.words[*first];
        if others.is_empty() {
            return (!alone.endorsers.is_empty()).then(|| alone.clone());
        }
        let all = std::iter::once(*said).chain(others.iter().map(|number| self.words[*number].said));
        let together = endorsement(all, &alone.effects);
        (!together.endorsers.is_empty()).then_some(together)
    }
}

/// Everybody who has signed one of these lists, and the newest height at which he has: whoever brings an old word of somebody harms
/// nobody.
fn endorsement<'a>(
    said: impl Iterator<Item = &'a HeldParts>,
    effects: &Arc<EndorsedEffects>,
) -> VerifiedEndorsement {
    let mut holders: BTreeMap<u16, u64> = BTreeMap::new();
    for Holder { organisation, height, .. } in said.flat_map(|word| &word.holders) {
        let newest = holders.entry(*organisation).or_default();
        *newest = (*newest).max(*height);
    }
    VerifiedEndorsement::new(effects.clone(), holders.into_iter().collect())
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
    for verdict in judged {
        let Ok(transaction) = verdict else { continue };
        if !needs_words(transaction) {
            continue;
        }
        *verdict = match held.endorsement(&transaction.id) {
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
