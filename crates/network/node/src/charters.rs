//! The charters of a node's ledger: founding, amended, and those that are decided and do not hold yet.

use crate::NodeError;
use crate::attesting::Input;
use crate::pipeline::ExecutedState;
use crossbeam_channel::Sender;
use crypto::Digest;
use ledger::Ledger;
use ordering::CertifyOutcomes;
use parking_lot::RwLock;
use std::sync::Arc;
use types::{Charter, Charters, KnownVersions, UnknownVersion};

/// What the node's state has decided on after the last block that it has executed, for everybody in the node.
pub(crate) struct DecidedCharters {
    /// The name of the ledger, which hashes the whole charter.
    ledger: Digest,
    charters: RwLock<Charters>,
    /// The rules of execution that this program has.
    known_versions: KnownVersions,
}

impl DecidedCharters {
    /// Those of a state; `known` where its catalog is no ledger's.
    pub(crate) fn of(
        state: &dyn ExecutedState,
        known: Charters,
        known_versions: KnownVersions,
    ) -> DecidedCharters {
        let charters = decided(state).unwrap_or(known);
        let (ledger, charters) = (charters.ledger(), RwLock::new(charters));
        let decided = DecidedCharters { ledger, charters, known_versions };
        decided.warn();
        decided
    }

    /// Digest of the charter that the ledger began with.
    pub(crate) fn ledger(&self) -> Digest {
        self.ledger
    }

    /// All of them.
    pub(crate) fn all(&self) -> Charters {
        self.charters.read().clone()
    }

    /// The rules of execution that this program has.
    pub(crate) fn known_versions(&self) -> KnownVersions {
        self.known_versions
    }

    /// The rules that one of the charters comes to and this program does not have: the node will stop there.
    pub(crate) fn unknown_version(&self) -> Option<UnknownVersion> {
        self.known_versions.unknown(&self.charters.read())
    }

    fn warn(&self) {
        if let Some(unknown) = self.unknown_version() {
            tracing::warn!("{unknown}");
        }
    }

    /// The one that holds at a height.
    pub(crate) fn at(&self, height: u64) -> Arc<Charter> {
        self.charters.read().at(height).charter.clone()
    }

    /// The one that the ledger began with.
    pub(crate) fn founding(&self) -> Arc<Charter> {
        self.charters.read().founding().clone()
    }

    /// The last one, whether it holds already or not: it has all organisations that the ledger ever had.
    pub(crate) fn newest(&self) -> Arc<Charter> {
        self.charters.read().newest().charter.clone()
    }

    /// A block has been executed, or the state was made anew. Gives all if they are others than before.
    fn follow(&self, state: &dyn ExecutedState) -> Option<Charters> {
        let amended = state.library().catalog().governance.amendments.last();
        let newest = amended.map_or((0, 0), |one| (one.charter.version, one.effective_height));
        let known = self.charters.read();
        let same = (known.newest().charter.version, known.newest().first) == newest;
        drop(known);
        if same {
            return None;
        }
        let charters = decided(state)?;
        *self.charters.write() = charters.clone();
        self.warn();
        Some(charters)
    }
}

fn decided(state: &dyn ExecutedState) -> Option<Charters> {
    Charters::of(&state.library().catalog().governance)
}

/// Tells whoever needs the charters that the state has decided on of new ones.
#[derive(Clone)]
pub(crate) struct Amendments {
    pub(crate) decided: Arc<DecidedCharters>,
    pub(crate) certifying: Arc<dyn CertifyOutcomes>,
    /// Where outcomes are attested; `None` where they are not.
    pub(crate) attest: Option<Sender<Input>>,
}

impl Amendments {
    /// The node stands on another state than before.
    pub(crate) fn tell(&self, state: &dyn ExecutedState) {
        let Some(charters) = self.decided.follow(state) else { return };
        let newest = charters.newest();
        tracing::info!(
            version = newest.charter.version,
            from = newest.first,
            "an amendment of the charter is decided"
        );
        self.certifying.decided(charters.clone());
        if let Some(attest) = &self.attest {
            // It ends after the pipeline only.
            let _ = attest.send(Input::Decided(charters));
        }
    }
}

/// The charters that the blocks of a ledger name.
///
/// # Errors
/// The ledger cannot be read, or its blocks carry what proves nothing.
pub(crate) fn named(ledger: &Ledger, founding: &Arc<Charter>) -> Result<Charters, NodeError> {
    let mut charters = Charters::new(founding.clone());
    for handover in ledger.handovers(charters.ledger())? {
        let height = handover.certificate.statement.height;
        let proved = charters.hand_over(&handover);
        proved.map_err(|error| NodeError::Certificate { height, reason: error.to_string() })?;
    }
    Ok(charters)
}
