//! Certificates of outcomes that this node puts into its next block.

use crate::cutting::Parent;
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::{Attested, CheckpointCertificate, OutcomeCertificate};

/// The newest certificates that the node has handed over.
#[derive(Default)]
pub(crate) struct Certificates {
    newest: Mutex<Attested>,
    changed: Notify,
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
        let new = (parent.certified_height + 1)..=parent.height;
        let outcome = newest.outcome.as_ref().filter(|known| new.contains(&known.statement.height));
        let checkpoint = newest.checkpoint.as_ref();
        let checkpoint = checkpoint.filter(|known| known.statement.height <= parent.height);
        Attested { outcome: outcome.cloned(), checkpoint: checkpoint.cloned() }
    }

    /// Whether the block after `parent` may have transactions: its height is at most `lag` above what is certified.
    pub(crate) fn allow_transactions(&self, parent: &Parent, lag: u32) -> bool {
        let outcome = self.newest.lock().outcome.as_ref().map(|known| known.statement.height);
        let outcome = outcome.filter(|height| *height <= parent.height).unwrap_or(0);
        parent.height + 1 - outcome.max(parent.certified_height) <= u64::from(lag)
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
        };
        Certificate { statement, signatures: Vec::new() }
    }

    fn checkpoint(height: u64) -> CheckpointCertificate {
        let zero = Digest::ZERO;
        let statement = CheckpointRoot { ledger: zero, height, outcome: zero, state_root: zero };
        Certificate { statement, signatures: Vec::new() }
    }

    fn parent(height: u64, certified_height: u64) -> Parent {
        Parent { digest: Digest::ZERO, height, timestamp_ms: 0, certified_height }
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
        certificates.carried(&Attested { outcome: None, checkpoint: Some(checkpoint(3)) });
        assert_eq!(offered(), Some(checkpoint(4)));
        certificates.carried(&Attested { outcome: None, checkpoint: Some(checkpoint(4)) });
        assert_eq!(offered(), None);
        assert_eq!(certificates.for_child_of(&parent(3, 0)).checkpoint, None);
    }

    #[test]
    fn transactions_wait_while_ordering_is_too_far_ahead() {
        let certificates = Certificates::default();
        assert!(certificates.allow_transactions(&parent(9, 0), 10));
        assert!(!certificates.allow_transactions(&parent(10, 0), 10));
        assert!(certificates.allow_transactions(&parent(10, 1), 10));
        certificates.certify(outcome(5));
        assert!(certificates.allow_transactions(&parent(14, 0), 10));
        assert!(!certificates.allow_transactions(&parent(15, 0), 10));
    }
}
