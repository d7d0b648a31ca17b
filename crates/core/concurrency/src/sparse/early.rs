//! What peers say of transactions, also of those whose block has not come.

use super::transaction::ContractId;
use super::verdict::Said;
use crate::parts::LedgerPosition;
use std::collections::{BTreeMap, BTreeSet};

/// Verdicts, counted by contract, that a peer keeps on transactions whose blocks have not come. Those beyond are asked for again.
pub const EARLY_VERDICTS_MAX: usize = 1 << 16;

/// What was heard of a transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// One part is invalid.
    pub(super) invalid: bool,
    /// Somebody knows that all parts are valid.
    pub(super) valid: bool,
    /// Contracts whose parts are valid.
    pub(super) contracts: BTreeSet<ContractId>,
}

impl Heard {
    pub(super) fn note(&mut self, said: &Said) {
        match said {
            Said::Invalid => self.invalid = true,
            Said::Valid => self.valid = true,
            Said::ValidFor(contracts) => self.contracts.extend(contracts),
        }
    }

    /// What was said of other contracts than these is of no use.
    pub(super) fn keep_only(&mut self, contracts: &BTreeSet<ContractId>) {
        self.contracts.retain(|contract| contracts.contains(contract));
    }

    /// Contracts of which nothing is known.
    pub(super) fn missing(&self, contracts: &BTreeSet<ContractId>) -> BTreeSet<ContractId> {
        if self.valid { BTreeSet::new() } else { contracts - &self.contracts }
    }
}

/// What was heard too early.
#[derive(Debug, Default)]
pub(super) struct Early {
    heard: BTreeMap<LedgerPosition, Heard>,
    count: usize,
}

impl Early {
    pub(super) fn keep(&mut self, transaction: LedgerPosition, said: &Said) {
        if self.count + size(said) > EARLY_VERDICTS_MAX {
            return;
        }
        self.count += size(said);
        self.heard.entry(transaction).or_default().note(said);
    }

    /// What was heard of the transactions up to a height. The rest of it is of no use to anybody.
    pub(super) fn take(&mut self, height: u64) -> BTreeMap<LedgerPosition, Heard> {
        let later = self.heard.split_off(&LedgerPosition { height: height.saturating_add(1), index: 0 });
        let taken = std::mem::replace(&mut self.heard, later);
        self.count = self.heard.values().map(|heard| 1 + heard.contracts.len()).sum();
        taken
    }
}

fn size(said: &Said) -> usize {
    match said {
        Said::Invalid | Said::Valid => 1,
        Said::ValidFor(contracts) => 1 + contracts.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_early_is_bounded_and_goes_with_its_block() {
        let at = |height, index| LedgerPosition { height, index };
        let mut early = Early::default();
        for index in 0..2 * EARLY_VERDICTS_MAX as u32 {
            early.keep(at(9, index), &Said::Valid);
        }
        assert_eq!(early.heard.len(), EARLY_VERDICTS_MAX);
        early.keep(at(3, 0), &Said::Invalid);
        assert!(early.take(8).is_empty(), "there was no room for it");
        assert_eq!(early.take(9).len(), EARLY_VERDICTS_MAX);
        early.keep(at(11, 0), &Said::ValidFor([ContractId(1), ContractId(2)].into()));
        early.keep(at(12, 0), &Said::Invalid);
        assert_eq!(early.take(11)[&at(11, 0)].contracts.len(), 2);
        assert_eq!(early.count, 1);
    }
}
