//! How parts have ended at this member, of the newest of them: for whoever waits for that, or asks again.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use types::{Outcome, TransactionId};

/// So many are remembered, of all schemas.
pub(super) const ENDED_REMEMBERED: usize = 20_000;

/// Ended parts by schema and transaction.
#[derive(Default)]
pub(super) struct EndedParts {
    by_schema: FxHashMap<Arc<str>, FxHashMap<TransactionId, (u64, Outcome)>>,
    /// In the order in which they have ended.
    order: VecDeque<(TransactionId, Arc<str>)>,
}

impl EndedParts {
    /// A transaction's part in a schema has ended in a block.
    pub(super) fn note(&mut self, (transaction, schema): (TransactionId, &Arc<str>), how: (u64, Outcome)) {
        let of_schema = match self.by_schema.get_mut(schema) {
            Some(known) => known,
            None => self.by_schema.entry(schema.clone()).or_default(),
        };
        if of_schema.insert(transaction, how).is_some() {
            return;
        }
        self.order.push_back((transaction, schema.clone()));
        if self.order.len() > ENDED_REMEMBERED
            && let Some((oldest, schema)) = self.order.pop_front()
            && let Some(of_schema) = self.by_schema.get_mut(&schema)
        {
            of_schema.remove(&oldest);
        }
    }

    /// How the part has ended, and at which height.
    pub(super) fn of(&self, transaction: &TransactionId, schema: &str) -> Option<&(u64, Outcome)> {
        self.by_schema.get(schema)?.get(transaction)
    }

    /// In the order in which they have ended.
    #[cfg(feature = "simulation")]
    pub(super) fn in_order(&self) -> impl Iterator<Item = &(TransactionId, Arc<str>)> {
        self.order.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_and_each_once() {
        let (mut ended, deal, other) = (EndedParts::default(), Arc::from("deal"), Arc::from("other"));
        let id = |number: u64| TransactionId(crypto::sha256(&[&number.to_le_bytes()]));
        let how = |height| (height, Outcome::Committed(Vec::new()));
        ended.note((id(0), &deal), how(1));
        ended.note((id(0), &other), how(2));
        ended.note((id(0), &deal), how(3));
        assert_eq!(ended.of(&id(0), "deal"), Some(&how(3)), "it was executed again");
        assert_eq!(ended.of(&id(0), "other"), Some(&how(2)));
        assert_eq!(ended.of(&id(1), "deal"), None);
        (1..ENDED_REMEMBERED as u64).for_each(|number| ended.note((id(number), &deal), how(4)));
        assert_eq!(ended.of(&id(0), "deal"), None, "the oldest has gone");
        assert_eq!(ended.of(&id(0), "other"), Some(&how(2)));
        assert_eq!(ended.order.len(), ENDED_REMEMBERED);
    }
}
