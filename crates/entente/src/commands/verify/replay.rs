use audit::Replay;
use engine::{Engine, EngineError, Verifier};
use ledger::BlockOutcome;
use memory::Memory;
use std::sync::Arc;
use types::{Block, Charter, Charters, Outcome, Receipt, RejectReason, TableId};

/// Executes a ledger from its beginning.
pub(super) struct EngineReplay {
    engine: Engine,
    verifier: Verifier,
    charters: Charters,
}

impl EngineReplay {
    pub(super) fn new(charter: Arc<Charter>) -> Result<EngineReplay, EngineError> {
        let (verifier, charters) = (Verifier::new(&charter), Charters::new(charter.clone()));
        Ok(EngineReplay { engine: Engine::new(charter, &Memory)?, verifier, charters })
    }
}

impl Replay for EngineReplay {
    fn execute(&mut self, block: &Block, recorded: &[Receipt]) -> Result<BlockOutcome, String> {
        // The audit has verified who signed what. What it says of transactions that were not signed as they must be is said
        // anew, because a receipt says that in words.
        let unsigned = |receipt: &Receipt| {
            matches!(
                receipt.outcome,
                Outcome::Rejected(
                    RejectReason::Malformed(_) | RejectReason::Unsigned(_) | RejectReason::Endorsement(_)
                )
            )
        };
        let verified = match recorded.iter().any(unsigned) {
            true => {
                let verified = self.verifier.verify_block(&self.charters, block);
                self.verifier.forget(&verified);
                verified
            }
            false => self.verifier.trust_block(&self.charters, block, recorded),
        };
        let executed = self.engine.execute(&verified).map_err(|error| error.to_string())?;
        if let Some(charters) = Charters::of(&self.engine.state().catalog().governance) {
            self.charters = charters;
        }
        Ok(BlockOutcome { receipts: executed.receipts, digest: executed.digest, header: executed.outcome })
    }

    fn table_name(&self, table: TableId) -> String {
        let catalog = self.engine.state().catalog();
        let named = catalog.tables.iter().find(|(_, known)| known.id == table);
        named.map_or_else(|| format!("number {}", table.0), |(name, _)| format!("`{name}`"))
    }
}
