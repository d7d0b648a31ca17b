//! Checkpoint after checkpoint from a node's folder into a target.

use crate::LakehouseError;
use crate::export::{Exported, Exporter};
use crate::state_source::NodeState;

/// Exports what is new, as often as it is asked.
pub struct Continuous {
    state: NodeState,
    exporter: Exporter,
    /// Height that the target is known to have; the outer `None`: it was not asked yet.
    reached: Option<Option<u64>>,
}

impl Continuous {
    /// `exporter` writes the ledger of `state`.
    pub fn new(state: NodeState, exporter: Exporter) -> Continuous {
        Continuous { state, exporter, reached: None }
    }

    /// Height of the newest checkpoint that the target has whole, as far as is known; `None`: none.
    pub fn reached(&self) -> Option<u64> {
        self.reached.flatten()
    }

    /// Exports the node's newest certified checkpoint, if the target does not have it. Nothing is asked of the target where the
    /// node has nothing new.
    ///
    /// # Errors
    /// What fails; the next attempt begins anew.
    pub async fn step(&mut self) -> Result<Option<Exported>, LakehouseError> {
        let reached = match self.reached {
            Some(reached) => reached,
            None => self.exporter.newest().await?,
        };
        self.reached = Some(reached);
        let Some(state) = self.state.newest_above(reached)? else { return Ok(None) };
        let exported = self.exporter.export(&state).await?;
        self.reached = Some(Some(exported.height));
        Ok(Some(exported))
    }
}
