//! What members' nodes agree on and say beside the order of blocks: the same whichever service orders.

use super::clocks::Clocks;
use super::{Epochs, Messages};
use crate::certificates::Certificates;
use crate::mempool::{Mempool, Placing, Source};
use crate::{Admission, CertifyOutcomes, ExchangeMessages, Ordering, Services, SubmitError};
use bytes::Bytes;
use crossbeam_channel::Receiver;
use crypto::SecretKey;
use std::sync::Arc;
use std::time::Duration;
use types::{Charters, CheckpointCertificate, OutcomeCertificate, Place, TransactionId};

/// Who the members are, what this node's next block carries for them, and what they tell one another.
#[derive(Clone)]
pub(crate) struct Members {
    /// Which charter holds when, and who is a member then.
    pub epochs: Epochs,
    /// What this node's next block carries.
    pub certificates: Arc<Certificates>,
    /// What all members' nodes are told.
    pub messages: Arc<Messages>,
    /// What one of them is told.
    pub exchange: Arc<Messages>,
    /// How far the others' clocks are from this node's.
    pub clocks: Arc<Clocks>,
}

impl Members {
    /// `key`: this node's, whether it is that of a member or not.
    pub(crate) fn new(charters: Charters, key: &SecretKey) -> Members {
        Members {
            epochs: Epochs::new(charters, key.clone()),
            certificates: Arc::new(Certificates::default()),
            messages: Arc::new(Messages::new()),
            exchange: Arc::new(Messages::new()),
            clocks: Arc::default(),
        }
    }

    /// Whose clock is wrong, as far as it is known at a time and behind a height.
    pub(crate) fn trouble_with_clocks(&self, height: u64, now: Duration) -> Option<String> {
        let (charter, own) = (self.epochs.charter_at(height + 1), self.epochs.own_at(height + 1));
        self.clocks.trouble(&charter, own, now)
    }

    /// Puts transactions that are to stand at a height into this node's mempool, where it is a member's then.
    pub(crate) fn submit(
        &self,
        (mempool, admission): (&Mempool, &dyn Admission),
        height: u64,
        (transactions, placing, source): (Vec<Bytes>, Placing, Source),
    ) -> Vec<Result<TransactionId, SubmitError>> {
        if self.epochs.own_at(height).is_none() {
            return transactions.iter().map(|_| Err(SubmitError::NoMember { height })).collect();
        }
        let place = Place { charters: &self.epochs.charters(), height };
        mempool.submit(admission, place, (transactions, placing, source))
    }

    /// What a node is given, with who orders.
    pub(crate) fn with(&self, ordering: Arc<dyn Ordering>) -> Services {
        Services { ordering, certifying: Arc::new(self.clone()), messages: Arc::new(self.clone()) }
    }
}

impl CertifyOutcomes for Members {
    fn certify(&self, certificate: OutcomeCertificate) {
        // The node knows the charters that its own certificates name.
        if let Some(decided) = self.certificates.decided() {
            self.epochs.certified(&decided, &certificate.statement.charters);
        }
        self.certificates.certify(certificate);
    }

    fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        self.certificates.certify_checkpoint(certificate);
    }

    fn decided(&self, charters: Charters) {
        self.certificates.decide(charters);
    }

    fn charters(&self) -> Charters {
        self.epochs.charters()
    }

    fn follow(&self, charters: &Charters) {
        self.epochs.adopt(charters);
    }
}

impl ExchangeMessages for Members {
    fn broadcast(&self, message: Bytes) {
        self.messages.send(None, message);
    }

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        self.messages.received()
    }

    fn tell(&self, member: u16, message: Bytes) {
        self.exchange.send(Some(member), message);
    }

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        self.exchange.received()
    }
}
