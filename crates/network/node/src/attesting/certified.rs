use crypto::Digest;
use parking_lot::RwLock;
use state::KeptState;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{CheckpointCertificate, OutcomeCertificate};

/// Certificates that are kept.
const KEPT: usize = 1_000;

/// Where this node's outcomes differ from those of a quorum, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Divergence {
    /// The first height that differs, as far as it is known.
    pub(crate) height: u64,
    /// What was found.
    pub(crate) text: String,
}

/// A checkpoint of this node that a quorum has attested: what others may believe of the state.
pub(crate) struct CertifiedCheckpoint {
    /// Proves its root.
    pub(crate) certificate: CheckpointCertificate,
    /// The state, as the store keeps it.
    pub(crate) kept: Arc<KeptState>,
}

/// What is known about others' outcomes, for everybody in the node.
pub(crate) struct Certified {
    height: AtomicU64,
    inner: RwLock<Inner>,
}

struct Inner {
    newest: VecDeque<OutcomeCertificate>,
    told: Vec<Option<(u64, Digest)>>,
    divergence: Option<Divergence>,
    checkpoint: Option<Arc<CertifiedCheckpoint>>,
    /// The last one, whether it is over or not.
    reported: Option<String>,
}

impl Certified {
    /// `height`: certified in a block of this node's ledger.
    pub(crate) fn new(height: u64, members: usize) -> Certified {
        let inner = Inner {
            newest: VecDeque::new(),
            told: vec![None; members],
            divergence: None,
            checkpoint: None,
            reported: None,
        };
        Certified { height: AtomicU64::new(height), inner: RwLock::new(inner) }
    }

    /// The outcomes of this node up to here are those of a quorum.
    pub(crate) fn height(&self) -> u64 {
        self.height.load(Ordering::Acquire)
    }

    /// A certificate that this node's outcomes agree with.
    pub(crate) fn certify(&self, certificate: OutcomeCertificate) {
        let height = certificate.statement.height;
        let mut inner = self.inner.write();
        if inner.newest.len() == KEPT {
            inner.newest.pop_front();
        }
        inner.newest.push_back(certificate);
        drop(inner);
        self.height.fetch_max(height, Ordering::AcqRel);
    }

    /// The outcome at this height is certified together with a state that this node has from others.
    pub(crate) fn reach(&self, height: u64) {
        self.height.fetch_max(height, Ordering::AcqRel);
    }

    /// The first kept certificate that answers for `height`: one of this height or of one above it.
    pub(crate) fn covering(&self, height: u64) -> Option<OutcomeCertificate> {
        let inner = self.inner.read();
        let position = inner.newest.partition_point(|known| known.statement.height < height);
        inner.newest.get(position).cloned()
    }

    /// The newest checkpoint of this node that is certified.
    pub(crate) fn checkpoint(&self) -> Option<Arc<CertifiedCheckpoint>> {
        self.inner.read().checkpoint.clone()
    }

    /// A checkpoint that this node's root agrees with; `None`: that there was cannot be read any more.
    pub(crate) fn keep_checkpoint(&self, checkpoint: Option<CertifiedCheckpoint>) {
        self.inner.write().checkpoint = checkpoint.map(Arc::new);
    }

    /// What members have told last.
    pub(crate) fn tell(&self, told: impl Iterator<Item = Option<(u64, Digest)>>) {
        let mut inner = self.inner.write();
        inner.told.clear();
        inner.told.extend(told);
    }

    /// The newest height and state digest that member number `member` has told.
    pub(crate) fn told(&self, member: usize) -> Option<(u64, Digest)> {
        self.inner.read().told.get(member).copied().flatten()
    }

    /// This node's outcomes differ from those of a quorum, or no longer.
    pub(crate) fn diverge(&self, divergence: Option<Divergence>) {
        let mut inner = self.inner.write();
        if let Some(divergence) = &divergence {
            inner.reported = Some(divergence.text.clone());
        }
        inner.divergence = divergence;
    }

    /// More is known about a divergence that is over.
    pub(crate) fn report(&self, text: String) {
        self.inner.write().reported = Some(text);
    }

    /// The last thing that was said about a divergence.
    pub(crate) fn reported(&self) -> Option<String> {
        self.inner.read().reported.clone()
    }

    /// Where this node's outcomes differ.
    pub(crate) fn divergence(&self) -> Option<Divergence> {
        self.inner.read().divergence.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Certificate, OutcomeHeader};

    fn certificate(height: u64) -> OutcomeCertificate {
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

    #[test]
    fn a_certificate_answers_for_the_heights_below_it_while_it_is_kept() {
        let certified = Certified::new(3, 4);
        assert_eq!((certified.height(), certified.covering(1)), (3, None));
        for height in (5..).step_by(2).take(KEPT + 2) {
            certified.certify(certificate(height));
        }
        let covering = |height| certified.covering(height).map(|known| known.statement.height);
        assert_eq!(covering(8), Some(9));
        assert_eq!(covering(9), Some(9));
        assert_eq!(covering(1), Some(9), "the first two are forgotten");
        assert_eq!(covering(certified.height()), Some(certified.height()));
        assert_eq!(covering(certified.height() + 1), None);
    }
}
