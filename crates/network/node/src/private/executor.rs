//! One schema at one of its members: an engine with rows and a catalog of its own, which executes the schema's parts block by
//! block.

use super::block::BlockOfParts;
use super::part_store::PartStore;
use super::undecided::{Undecided, by_height};
use super::view::SchemaView;
use crate::NodeError;
use crate::charters::DecidedCharters;
use concurrency::parts::Decided;
use crypto::{Digest, sha256};
use engine::{Engine, SchemaBlock, SchemaEngine, SchemaPart, VerifiedTransaction};
use memory::Memory;
use state::{CheckpointHeader, CheckpointProgress, LiveRequests, Stores, Version};
use std::sync::Arc;
use types::{
    Catalog, Charter, KnownVersions, Organisation, Outcome, Part, SchemaMembers, SchemaOutcome,
    TransactionId, limits,
};

const SECRET_DOMAIN: &[u8] = b"entente schema secret 1\0";
const OUTCOME_DOMAIN: &[u8] = b"entente salted schema outcome 1\0";

/// A schema has no checkpoints of its own: it is made again from the ledger and the parts.
const NO_CHECKPOINTS: u32 = u32::MAX;

/// How a part has ended.
pub(super) struct EndedPart {
    pub(super) transaction: TransactionId,
    pub(super) outcome: Outcome,
}

/// A block that was executed in a schema.
pub(super) struct ExecutedParts {
    /// What this member attests.
    pub(super) outcome: SchemaOutcome,
    pub(super) ended: Vec<EndedPart>,
    /// What was decided in it.
    pub(super) decided: Vec<Decided>,
}

/// A schema that this organisation is a member of.
pub(super) struct SchemaExecutor {
    name: String,
    members: Arc<SchemaMembers>,
    engine: SchemaEngine,
    /// Transactions that have parts in other schemas, too.
    undecided: Undecided,
    /// Known to whoever has all parts so far, and to nobody else: outcomes that stand in blocks are told from it, so that nobody
    /// finds rows by trying.
    secret: Digest,
}

impl SchemaExecutor {
    /// The empty schema behind the block that has created it. `charter`: the one that held there.
    pub(super) fn begin(
        name: &str,
        members: &Arc<SchemaMembers>,
        charter: &Charter,
        known_versions: KnownVersions,
    ) -> Result<SchemaExecutor, NodeError> {
        let charter = Arc::new(own_charter(name, members, charter));
        let ledger = charter.ledger();
        let header =
            CheckpointHeader { ledger, height: members.since, state_digest: ledger, outcome: ledger };
        let catalog = Arc::new(Catalog::of_schema(name, members, charter.clone()));
        let store = Memory.begin(Version::after_block(members.since), catalog)?.finish()?;
        let progress = CheckpointProgress::default();
        let state = (store, LiveRequests::new());
        let engine = Engine::continued(charter, (&header, progress), state, known_versions)?;
        let (engine, undecided) = (SchemaEngine::new(engine), Undecided::new());
        let (name, members) = (name.to_string(), members.clone());
        Ok(SchemaExecutor { name, members, engine, undecided, secret: Digest::ZERO })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn members(&self) -> &Arc<SchemaMembers> {
        &self.members
    }

    /// Members have come or left.
    pub(super) fn change_members(&mut self, members: &Arc<SchemaMembers>) {
        self.members = members.clone();
    }

    /// Height of the last block that was executed.
    pub(super) fn height(&self) -> u64 {
        self.engine.height()
    }

    pub(super) fn view(&self) -> SchemaView {
        SchemaView { members: self.members.clone(), snapshot: self.engine.snapshot() }
    }

    /// Transactions that have parts in other schemas, too, and wait for votes.
    pub(super) fn undecided(&self) -> &Undecided {
        &self.undecided
    }

    /// Executes the next block, with parts from this store. `Err` in `Ok`: this transaction's part is not here.
    ///
    /// # Errors
    /// The schema cannot go on.
    pub(super) fn execute(
        &mut self,
        block: &BlockOfParts,
        parts: &PartStore,
        charters: &DecidedCharters,
    ) -> Result<Result<ExecutedParts, Arc<VerifiedTransaction>>, NodeError> {
        let (header, mut own, mut secret) = (&block.header, Vec::new(), self.secret);
        for ordered in block.transactions.iter().filter(|ordered| ordered.concerns(&self.name)) {
            let Some(part) = parts.get(&ordered.transaction.id, &self.name)? else {
                return Ok(Err(ordered.transaction.clone()));
            };
            secret = sha256(&[SECRET_DOMAIN, &secret.0, &part.salt]);
            own.push(SchemaPart {
                position: ordered.position,
                transaction: part_of(&ordered.transaction, part),
                timestamp_ms: header.timestamp_ms,
                crossing: ordered.is_crossing(),
            });
        }
        let decisions = self.undecided.block(block, &self.name, &|height| charters.at(height));
        let decided = decisions.clone();
        let executed = self.engine.execute(SchemaBlock { header: header.clone(), decisions, parts: own })?;
        self.secret = secret;
        let outcome = SchemaOutcome {
            ledger: header.ledger,
            schema: self.members.number,
            height: header.height,
            outcome: sha256(&[OUTCOME_DOMAIN, &secret.0, &executed.outcome.digest().0]),
            votes: by_height(&executed.votes),
        };
        let ended = executed.ended.into_iter();
        let ended = ended.map(|(transaction, outcome)| EndedPart { transaction, outcome }).collect();
        Ok(Ok(ExecutedParts { outcome, ended, decided }))
    }
}

/// A transaction as it is in the schema: its part, in the name of its client.
fn part_of(transaction: &VerifiedTransaction, part: Part) -> Arc<VerifiedTransaction> {
    let payload = Arc::new(part.payload);
    Arc::new(VerifiedTransaction { payload, endorsed: None, ..transaction.clone() })
}

/// The charter that a schema is executed with: the ledger's, where every member may change what the schema defines. Its name makes
/// digests those of this schema alone.
///
/// Who may do something was said when the ledger admitted the transaction, by the charter of then. So all positions are taken: an
/// organisation that comes into the ledger later can become a member.
fn own_charter(name: &str, members: &SchemaMembers, charter: &Charter) -> Charter {
    let mut own = Charter {
        name: format!("schema {name} {} of {}", members.number, charter.ledger()),
        governance: "any".to_string(),
        checkpoint_blocks: NO_CHECKPOINTS,
        ..charter.clone()
    };
    for organisation in &mut own.organisations {
        organisation.removed = false;
    }
    while own.organisations.len() < limits::ORGANISATIONS_MAX {
        let name = format!("organisation {}", own.organisations.len() + 1);
        let unnamed = Organisation { name, ..own.organisations[0].clone() };
        own.organisations.push(unnamed);
    }
    own
}
