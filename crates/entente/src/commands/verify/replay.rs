use audit::Replay;
use engine::{Engine, EngineError, VerifiedBlock, Verifier};
use ledger::BlockOutcome;
use memory::Memory;
use node::{CertifiedState, ReplayedSchema, SchemaReplay};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use types::{
    Block, Charter, Charters, CheckpointCertificate, Outcome, Receipt, RejectReason, TableId, TransactionId,
};

/// Executes a ledger from its beginning.
pub(super) struct EngineReplay {
    charter: Arc<Charter>,
    engine: Engine,
    /// The node's folder, for a state to go on from behind what is redacted.
    folder: Option<PathBuf>,
    /// That state, once it is needed.
    found: Option<CertifiedState>,
    verifier: Verifier,
    charters: Charters,
    /// Where the folder has parts of schemas with members.
    schemas: Option<SchemaReplay>,
    /// The last block, with its receipts.
    executed: Option<(VerifiedBlock, Vec<Receipt>)>,
}

impl EngineReplay {
    pub(super) fn new(
        charter: Arc<Charter>,
        folder: Option<PathBuf>,
        schemas: Option<SchemaReplay>,
    ) -> Result<EngineReplay, EngineError> {
        let (verifier, charters) = (Verifier::new(&charter), Charters::new(charter.clone()));
        let engine = Engine::new(charter.clone(), &Memory)?;
        Ok(EngineReplay { charter, engine, folder, found: None, verifier, charters, schemas, executed: None })
    }

    /// How far schemas with members were executed.
    pub(super) fn schemas(&self) -> Vec<ReplayedSchema> {
        self.schemas.as_ref().map(SchemaReplay::schemas).unwrap_or_default()
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
        if self.schemas.is_some() {
            self.executed = Some((verified, executed.receipts.clone()));
        }
        Ok(BlockOutcome { receipts: executed.receipts, digest: executed.digest, header: executed.outcome })
    }

    fn execute_schemas(&mut self) -> Result<(), String> {
        let (Some(schemas), Some((block, receipts))) = (&mut self.schemas, self.executed.take()) else {
            return Ok(());
        };
        schemas.follow((&block, &receipts), &self.engine.state().catalog(), &self.charters)
    }

    fn checkpoint_from(&mut self, height: u64) -> Result<Option<CheckpointCertificate>, String> {
        let Some(folder) = &self.folder else { return Ok(None) };
        self.found = CertifiedState::find(folder, height).map_err(|error| error.to_string())?;
        Ok(self.found.as_ref().map(|found| found.certificate().clone()))
    }

    fn resume(&mut self, certificate: &CheckpointCertificate) -> Result<(), String> {
        let found = self.found.take().filter(|found| found.certificate() == certificate);
        let found = found.ok_or("expected the state that this certificate is about, found none")?;
        self.engine = found.engine(&self.charter, &Memory).map_err(|error| error.to_string())?;
        if let Some(charters) = Charters::of(&self.engine.state().catalog().governance) {
            self.charters = charters;
        }
        // What these came to depends on blocks that were not executed.
        (self.schemas, self.executed) = (None, None);
        Ok(())
    }

    fn redactions(&self) -> BTreeMap<u64, TransactionId> {
        let catalog = self.engine.state().catalog();
        let agreed = catalog.governance.redactions();
        agreed.map(|(proposal, redaction)| (proposal.number, redaction.transaction)).collect()
    }

    fn table_name(&self, table: TableId) -> String {
        let catalog = self.engine.state().catalog();
        let named = catalog.tables.iter().find(|(_, known)| known.id == table);
        named.map_or_else(|| format!("number {}", table.0), |(name, _)| format!("`{name}`"))
    }
}
