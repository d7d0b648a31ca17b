//! The charters of a node's ledger: founding, amended, and those that are decided and do not hold yet.

use crate::NodeError;
use engine::Engine;
use ledger::Ledger;
use parking_lot::RwLock;
use std::sync::Arc;
use types::{Charter, Charters};

/// What the node's state has decided on after the last block that it has executed, for everybody in the node.
pub(crate) struct DecidedCharters(RwLock<Charters>);

impl DecidedCharters {
    /// Those of an engine; `known` where its catalog is no ledger's.
    pub(crate) fn of(engine: &Engine, known: Charters) -> DecidedCharters {
        DecidedCharters(RwLock::new(decided(engine).unwrap_or(known)))
    }

    /// All of them.
    pub(crate) fn all(&self) -> Charters {
        self.0.read().clone()
    }

    /// The one that holds at a height.
    pub(crate) fn at(&self, height: u64) -> Arc<Charter> {
        self.0.read().at(height).charter.clone()
    }

    /// The last one, whether it holds already or not: it has all organisations that the ledger ever had.
    pub(crate) fn newest(&self) -> Arc<Charter> {
        self.0.read().newest().charter.clone()
    }

    /// The engine has executed a block, or has healed. Gives all if they are others than before.
    pub(crate) fn follow(&self, engine: &Engine) -> Option<Charters> {
        let amended = engine.amended_charter();
        let newest = amended.as_ref().map_or((0, 0), |one| (one.charter.version, one.effective_height));
        let known = self.0.read();
        let same = (known.newest().charter.version, known.newest().first) == newest;
        drop(known);
        if same {
            return None;
        }
        let charters = decided(engine)?;
        *self.0.write() = charters.clone();
        Some(charters)
    }
}

fn decided(engine: &Engine) -> Option<Charters> {
    Charters::of(&engine.state().catalog().governance)
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
