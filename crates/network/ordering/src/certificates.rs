//! Certificates of outcomes that this node puts into its next block.

use crate::cutting::Parent;
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::{AmendedCharter, Attested, Charter, Charters, CheckpointCertificate, OutcomeCertificate};

/// The newest certificates that the node has handed over.
#[derive(Default)]
pub(crate) struct Certificates {
    newest: Mutex<Newest>,
    changed: Notify,
}

#[derive(Default)]
struct Newest {
    outcome: Option<OutcomeCertificate>,
    checkpoint: Option<CheckpointCertificate>,
    /// What this node's state has decided on: a block carries those that its certificate is the first to name.
    decided: Option<Charters>,
}

/// What a block may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Allowed {
    /// It may have transactions.
    Transactions,
    /// It must be empty: ordering is too far ahead of certified outcomes.
    Empty,
    /// There can be none before something is certified.
    Nothing,
}

impl Newest {
    /// The outcome certificate that the block after `parent` carries, with the charters that it has to carry then.
    fn outcome_for(&self, parent: &Parent) -> Option<(&OutcomeCertificate, Vec<AmendedCharter>)> {
        let new = (parent.certified_height + 1)..=parent.height;
        let outcome = self.outcome.as_ref().filter(|known| new.contains(&known.statement.height))?;
        let named = &outcome.statement.charters;
        if *named == parent.charters {
            return Some((outcome, Vec::new()));
        }
        let charters = self.decided.as_ref()?.between(&parent.charters, named)?;
        Some((outcome, charters))
    }
}

impl Certificates {
    /// The node has a certificate of what a block came to.
    pub(crate) fn certify(&self, certificate: OutcomeCertificate) {
        let mut newest = self.newest.lock();
        let height = certificate.statement.height;
        if newest.outcome.as_ref().is_none_or(|known| known.statement.height < height) {
            newest.outcome = Some(certificate);
            drop(newest);
            self.changed.notify_waiters();
        }
    }

    /// The node has a certificate of the state at a checkpoint height.
    pub(crate) fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        let mut newest = self.newest.lock();
        let height = certificate.statement.height;
        if newest.checkpoint.as_ref().is_none_or(|known| known.statement.height < height) {
            newest.checkpoint = Some(certificate);
        }
    }

    /// The node's state has decided on these charters.
    pub(crate) fn decide(&self, charters: Charters) {
        self.newest.lock().decided = Some(charters);
        self.changed.notify_waiters();
    }

    /// What the node's state has decided on.
    pub(crate) fn decided(&self) -> Option<Charters> {
        self.newest.lock().decided.clone()
    }

    /// A final block carries these: no other one has to.
    pub(crate) fn carried(&self, attested: &Attested) {
        if let Some(carried) = &attested.checkpoint {
            let height = carried.statement.height;
            let mut newest = self.newest.lock();
            newest.checkpoint.take_if(|known| known.statement.height <= height);
        }
    }

    /// What the block after `parent` carries: only what nobody can refuse there.
    pub(crate) fn for_child_of(&self, parent: &Parent) -> Attested {
        let newest = self.newest.lock();
        let (outcome, charters) = newest.outcome_for(parent).unzip();
        let checkpoint = newest.checkpoint.as_ref();
        let checkpoint = checkpoint.filter(|known| known.statement.height <= parent.height);
        Attested {
            outcome: outcome.cloned(),
            checkpoint: checkpoint.cloned(),
            charters: charters.unwrap_or_default(),
        }
    }

    /// What the block after `parent` may be under the charter of its height, carrying what there is.
    pub(crate) fn allow(&self, parent: &Parent, charter: &Charter) -> Allowed {
        let newest = self.newest.lock();
        let outcome = newest.outcome_for(parent).map_or(0, |(known, _)| known.statement.height);
        match parent.height + 1 - outcome.max(parent.certified_height) {
            ahead if ahead <= u64::from(charter.outcome_lag_blocks) => Allowed::Transactions,
            ahead if ahead <= charter.uncertified_blocks_max() => Allowed::Empty,
            _ => Allowed::Nothing,
        }
    }

    /// Resolves when an outcome certificate comes after the call.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::Digest;
    use types::{Certificate, CheckpointRoot, OutcomeHeader};

    fn outcome(height: u64) -> OutcomeCertificate {
        let zero = Digest::ZERO;
        let statement = OutcomeHeader {
            ledger: zero,
            height,
            block: zero,
            previous: zero,
            receipts_root: zero,
            state_digest: zero,
            charters: zero,
        };
        Certificate { statement, signatures: Vec::new() }
    }

    fn checkpoint(height: u64) -> CheckpointCertificate {
        let zero = Digest::ZERO;
        let statement = CheckpointRoot { ledger: zero, height, outcome: zero, state_root: zero };
        Certificate { statement, signatures: Vec::new() }
    }

    fn parent(height: u64, certified_height: u64) -> Parent {
        Parent { digest: Digest::ZERO, height, timestamp_ms: 0, certified_height, charters: Digest::ZERO }
    }

    #[test]
    fn the_newest_is_carried_once_and_never_by_a_block_that_is_not_above_it() {
        let certificates = Certificates::default();
        assert_eq!(certificates.for_child_of(&parent(9, 0)), Attested::default());
        certificates.certify(outcome(7));
        certificates.certify(outcome(5));
        let carried = |parent| certificates.for_child_of(&parent).outcome.map(|known| known.statement.height);
        assert_eq!(carried(parent(9, 6)), Some(7));
        assert_eq!(carried(parent(9, 7)), None);
        assert_eq!(carried(parent(7, 0)), Some(7));
        assert_eq!(carried(parent(6, 0)), None, "a block on a branch that lost");
    }

    #[test]
    fn checkpoints_are_offered_until_a_final_block_carries_one_as_new() {
        let certificates = Certificates::default();
        certificates.certify_checkpoint(checkpoint(4));
        let offered = || certificates.for_child_of(&parent(9, 9)).checkpoint;
        assert_eq!(offered(), Some(checkpoint(4)));
        certificates.carried(&Attested { checkpoint: Some(checkpoint(3)), ..Attested::default() });
        assert_eq!(offered(), Some(checkpoint(4)));
        certificates.carried(&Attested { checkpoint: Some(checkpoint(4)), ..Attested::default() });
        assert_eq!(offered(), None);
        assert_eq!(certificates.for_child_of(&parent(3, 0)).checkpoint, None);
    }

    #[test]
    fn transactions_wait_while_ordering_is_too_far_ahead() {
        let certificates = Certificates::default();
        let mut charter = Charter::with_defaults("test", 1);
        charter.outcome_lag_blocks = 10;
        let allowed = |parent| certificates.allow(&parent, &charter);
        assert_eq!(allowed(parent(9, 0)), Allowed::Transactions);
        assert_eq!(allowed(parent(10, 0)), Allowed::Empty);
        assert_eq!(allowed(parent(10, 1)), Allowed::Transactions);
        assert_eq!(allowed(parent(15, 0)), Allowed::Empty);
        assert_eq!(allowed(parent(16, 0)), Allowed::Nothing);
        certificates.certify(outcome(5));
        assert_eq!(allowed(parent(14, 0)), Allowed::Transactions);
        assert_eq!(allowed(parent(15, 0)), Allowed::Empty);
        assert_eq!(allowed(parent(21, 0)), Allowed::Nothing);
    }

    #[test]
    fn a_certificate_that_names_new_charters_is_carried_with_them_or_not_at_all() {
        let mut founding = Charter::with_defaults("test", 1);
        founding.ordering = "solo".to_string();
        founding.organisations.push(types::Organisation {
            name: "org1".to_string(),
            root_key: crypto::SecretKey::from_bytes([1; 32]).public_key(),
            node_key: crypto::SecretKey::from_bytes([101; 32]).public_key(),
            address: String::new(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        let change = types::CharterChange::SetParameter {
            parameter: "block.fill_ms".to_string(),
            value: "7".to_string(),
        };
        let amended =
            AmendedCharter { charter: founding.amended(&change).expect("in range"), effective_height: 30 };
        let mut charters = Charters::new(std::sync::Arc::new(founding));
        let before = charters.digest();
        charters.add(amended.clone()).expect("the next");
        let certificates = Certificates::default();
        let mut named = outcome(9);
        named.statement.charters = charters.digest();
        certificates.certify(named.clone());
        let parent = |charters| Parent { charters, ..parent(20, 4) };
        assert_eq!(certificates.for_child_of(&parent(before)), Attested::default(), "its text is not known");
        certificates.decide(charters.clone());
        let carried = certificates.for_child_of(&parent(before));
        assert_eq!(carried.charters, [amended]);
        assert_eq!(carried.charters_after(&before), Some(charters.digest()));
        let carried = certificates.for_child_of(&parent(charters.digest()));
        assert_eq!((carried.outcome, carried.charters.len()), (Some(named), 0));
    }
}
