//! All schemas that this organisation is a member of, as far as they are executed.

use super::agreeing::{Agreeing, Verdict};
use super::block::{BlockOfParts, OrderedParts};
use super::ended::EndedParts;
use super::executor::{EndedPart, ExecutedParts, SchemaExecutor};
use super::message::Message;
use super::opened_store::OpenedStore;
use super::part_store::{HeldPart, PartStore};
use super::schema_stores::{SchemaFiles, SchemaStores};
#[cfg(feature = "simulation")]
use super::simulated::{EndedAtMember, SchemaAtMember};
use super::view::{CompiledTogether, SchemaView, Together};
use crate::NodeError;
use crate::charters::DecidedCharters;
use crate::faults::{Defence, Faults};
use crate::metrics::NodeMetrics;
use crate::pipeline::ExecutedState;
use crossbeam_channel::{Receiver, Sender, bounded};
use crypto::SecretKey;
use engine::{VerifiedBlock, VerifiedTransaction, Verifier};
use ledger::{Disk, Ledger};
use ordering::ExchangeMessages;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use sql::Library;
use state::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use types::{
    ExecutionVersion, Outcome, PartMembers, Payload, Receipt, SchemaAttestation, SchemaMembers,
    SchemaOutcome, TransactionId, limits,
};

/// Parts that others are asked for at once, and blocks that are looked at for them.
const ASKED_AT_ONCE: usize = 128;
const LOOKED_AT_BLOCKS: usize = 256;
/// Blocks behind the ledger's last of which other members are told without being asked.
const TOLD_BLOCKS: u64 = 64;

/// What this organisation's schemas need of the node.
pub(crate) struct SchemasNode {
    pub(crate) node_key: SecretKey,
    pub(crate) charters: Arc<DecidedCharters>,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) messages: Arc<dyn ExchangeMessages>,
    pub(crate) parts: PartStore,
    /// Where the rows of schemas are.
    pub(crate) stores: SchemaStores,
    /// The disk of their folder.
    pub(crate) disk: Disk,
    /// The schemas that this node holds of those of its organisation; all where nothing is said.
    pub(crate) only: Option<Vec<String>>,
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) pool: Arc<rayon::ThreadPool>,
    /// What a test has switched off.
    pub(crate) faults: Option<Arc<Faults>>,
}

impl SchemasNode {
    /// Position of this organisation in the newest charter: looked for each time, because a node may follow the ledger before it is
    /// admitted.
    pub(super) fn organisation(&self) -> Option<u16> {
        self.charters.newest().member(&self.node_key.public_key()).map(|position| position as u16)
    }

    /// Whether this node holds a schema, if its organisation is a member.
    fn holds(&self, schema: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == schema))
    }

    /// Whether a test has switched this off.
    pub(super) fn lacks(&self, defence: Defence) -> bool {
        Faults::lack(self.faults.as_deref(), defence)
    }
}

/// The schemas that this organisation is a member of.
pub(crate) struct PrivateSchemas {
    pub(super) node: SchemasNode,
    pub(super) state: Mutex<State>,
    /// By number.
    pub(super) files: Mutex<BTreeMap<u32, SchemaFiles>>,
    pub(super) agreeing: Mutex<Agreeing>,
    /// Parts that other members were asked for, with their transactions.
    asked: Mutex<FxHashMap<(TransactionId, String), Arc<VerifiedTransaction>>>,
    /// Says that this member has attested what is to stand in the ledger: others may wait for that.
    attests: Sender<()>,
    pub(super) attested: Receiver<()>,
    /// Changes whenever something was executed, or heard, that somebody may wait for.
    pub(super) news: watch::Sender<u64>,
}

#[derive(Default)]
pub(super) struct State {
    /// By number.
    pub(super) schemas: BTreeMap<u32, Schema>,
    /// The ledger's state that was shown last.
    pub(super) ledger: Option<(Arc<dyn Snapshot>, Arc<Library>)>,
    compiled: Option<CompiledTogether>,
    /// How often something was compiled together: no two have one version.
    compilations: u64,
    /// What there is of schemas that are not ours any more has gone.
    is_settled: bool,
    /// Who has proposed the newest blocks.
    proposers: BTreeMap<u64, u16>,
    pub(super) ended: EndedParts,
}

/// A schema, and why it does not go on.
pub(super) struct Schema {
    pub(super) executor: SchemaExecutor,
    /// What its blocks came to, for proofs.
    pub(super) opened: OpenedStore,
    /// The block behind which this process has begun to execute it.
    pub(super) began: u64,
    /// The transaction whose part is missing.
    pub(super) lacks: Option<Arc<VerifiedTransaction>>,
    pub(super) stopped: Option<String>,
}

/// An outcome of a schema of this member's that is to stand in the ledger: somebody waits for votes in it, or what it covers stands in
/// no certificate there.
pub(super) struct NeededOutcome {
    pub(super) outcome: SchemaOutcome,
    /// Whose word counts.
    pub(super) members: PartMembers,
    /// The organisation that is to bring them into the ledger, and the block in which they are expected then.
    pub(super) bearer: u16,
    pub(super) expected: u64,
    /// Of one that nobody waits for: the highest height that a certificate in the ledger is about.
    pub(super) certified: Option<u64>,
}

/// The member whose node proposes a block soon behind a height, and which. `proposers`: of blocks so far; with so many nodes taking
/// turns, the block of a height has the proposer of the block `turns` before it.
fn bearer(proposers: &BTreeMap<u64, u16>, turns: u64, members: &[u16], height: u64) -> (u16, u64) {
    let turn = |ahead: u64| {
        let before = (height + ahead).checked_sub(turns)?;
        let proposer = proposers.get(&before).filter(|proposer| members.contains(proposer))?;
        Some((*proposer, height + ahead))
    };
    // When a block is executed the next one is proposed, and often the one behind it.
    let soon = (3..=turns).chain([2]).find_map(turn);
    soon.unwrap_or_else(|| (members.first().copied().unwrap_or_default(), height + turns))
}

/// What clients see.
pub(crate) type Shown = (Arc<dyn Snapshot>, Arc<Library>);

impl PrivateSchemas {
    /// Nothing is executed yet: [`PrivateSchemas::show`] begins.
    pub(crate) fn new(node: SchemasNode) -> PrivateSchemas {
        let (state, files, agreeing) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (asked, news) = (Mutex::default(), watch::Sender::new(0));
        let (attests, attested) = bounded(1);
        PrivateSchemas { node, state, files, agreeing, asked, attests, attested, news }
    }

    /// A block was executed. `publish` gets what this node's clients see behind it, before anybody hears how parts have ended.
    pub(crate) fn follow(
        &self,
        block: &VerifiedBlock,
        receipts: &[Receipt],
        ledger: (Arc<dyn Snapshot>, Arc<Library>),
        publish: impl FnOnce(Shown),
    ) {
        let mut state = self.state.lock();
        let height = block.header.height;
        state.ledger = Some(ledger);
        state.proposers.insert(height, block.header.proposer);
        while state.proposers.len() > limits::ORGANISATIONS_MAX {
            state.proposers.pop_first();
        }
        self.settle_members(&mut state, height);
        if !state.schemas.is_empty() {
            let parts = BlockOfParts::of(block, receipts);
            let State { schemas, ended, .. } = &mut *state;
            for schema in schemas.values_mut() {
                if schema.executor.height() + 1 < height {
                    self.catch_up(schema, height - 1, ended);
                }
                if schema.executor.height() + 1 == height {
                    self.execute(schema, &parts, ended);
                }
            }
        }
        let undecided = state.schemas.values().map(|schema| schema.executor.undecided().count());
        self.node.metrics.schemas.undecided(undecided.sum());
        publish(state.shown());
        self.news.send_modify(|news| *news += 1);
    }

    /// The node stands on a state that was recovered or made anew: schemas go on from where they are, or where their stores are, and what
    /// is behind that is executed from the ledger and the parts.
    pub(crate) fn show(&self, executed: &dyn ExecutedState, publish: impl FnOnce(Shown)) {
        let mut state = self.state.lock();
        let height = executed.height();
        state.ledger = Some((executed.snapshot(), executed.library().clone()));
        state.schemas.retain(|_, schema| schema.executor.height() <= height);
        self.agreeing.lock().take_back(height);
        self.recorded(self.tip());
        self.settle_members(&mut state, height);
        let State { schemas, ended, .. } = &mut *state;
        schemas.values_mut().for_each(|schema| self.catch_up(schema, height, ended));
        publish(state.shown());
        self.news.send_modify(|news| *news += 1);
    }

    /// Goes on with schemas that are behind the ledger: parts may have come that were missing.
    /// `false`: none has.
    pub(super) fn go_on(&self, publish: impl FnOnce(Shown)) -> bool {
        let mut state = self.state.lock();
        let tip = self.tip();
        let State { schemas, ended, .. } = &mut *state;
        let mut went_on = false;
        for schema in schemas.values_mut() {
            let before = schema.executor.height();
            if before < tip {
                self.catch_up(schema, tip, ended);
            }
            went_on |= schema.executor.height() > before;
        }
        if went_on {
            publish(state.shown());
            self.news.send_modify(|news| *news += 1);
        }
        went_on
    }

    /// Schemas of the ledger's catalog that this organisation has become a member of begin, and those that are gone end.
    fn settle_members(&self, state: &mut State, height: u64) {
        let Some((_, library)) = &state.ledger else { return };
        let Some(organisation) = self.node.organisation() else { return };
        let catalog = library.catalog().clone();
        let ours: BTreeMap<u32, (&String, &Arc<SchemaMembers>)> = catalog
            .schemas
            .iter()
            .filter_map(|(name, schema)| Some((name, schema.members.as_ref()?)))
            .filter(|(name, members)| {
                members.has(organisation) && members.since <= height && self.node.holds(name)
            })
            .map(|(name, members)| (members.number, (name, members)))
            .collect();
        // The first time an earlier process may have left something.
        if !state.is_settled || state.schemas.keys().any(|number| !ours.contains_key(number)) {
            state.is_settled = true;
            state.schemas.retain(|number, _| ours.contains_key(number));
            self.files.lock().retain(|number, _| ours.contains_key(number));
            self.node.stores.keep_only(|number| ours.contains_key(&number));
        }
        for (number, (name, members)) in ours {
            if let Some(schema) = state.schemas.get_mut(&number) {
                schema.executor.change_members(members);
                continue;
            }
            match self.begin(name, members, height, &mut state.ended) {
                Ok(schema) => {
                    let (since, behind) = (members.since, schema.executor.height());
                    tracing::info!(schema = name, since, behind, "this organisation is a member");
                    state.schemas.insert(number, schema);
                }
                Err(error) => tracing::error!(schema = name, %error, "the schema cannot be executed"),
            }
        }
    }

    /// Whether the rules of the next block know what moves between schemas, and who agrees to that.
    pub(crate) fn has_assets(&self) -> bool {
        let version = self.node.charters.at(self.tip() + 1).execution_version;
        version >= ExecutionVersion::V6.number()
    }

    /// The ledger's newest height.
    pub(super) fn tip(&self) -> u64 {
        self.node.ledger.tip().map_or(0, |(height, _)| height)
    }

    /// Executes what the ledger has, up to a height.
    fn catch_up(&self, schema: &mut Schema, to: u64, ended: &mut EndedParts) {
        if schema.stopped.is_some() || schema.still_lacks(&self.node.parts) {
            return;
        }
        let from = schema.executor.height() + 1;
        for record in self.node.ledger.blocks_from(from) {
            let record = match record {
                Ok(record) if record.block.header.height <= to => record,
                Ok(_) => return,
                Err(error) => {
                    schema.stop(error.to_string());
                    return;
                }
            };
            if record.block.header.height != schema.executor.height() + 1 {
                let found = record.block.header.height;
                let expected = schema.executor.height() + 1;
                schema.stop(format!(
                    "this node's ledger begins at block {found}, and the schema needs block {expected}; start the node with join = \
                     \"replay\" in an empty folder"
                ));
                return;
            }
            if !self.execute(schema, &BlockOfParts::recorded(&record), ended) {
                return;
            }
        }
    }

    /// Executes the next block in one schema; `false`: it waits, or has stopped.
    fn execute(&self, schema: &mut Schema, block: &BlockOfParts, ended: &mut EndedParts) -> bool {
        if schema.stopped.is_some() {
            return false;
        }
        let name = schema.executor.name().clone();
        let charter_at = |height| self.node.charters.at(height);
        let executed =
            self.node.pool.install(|| schema.executor.execute(block, &self.node.parts, &charter_at));
        let executed = match executed {
            Ok(Ok(executed)) => executed,
            Ok(Err(missing)) => {
                if schema.lacks.as_ref().is_none_or(|known| known.id != missing.id) {
                    tracing::warn!(schema = &*name, transaction = %missing.id, "a part is missing; other members are asked");
                }
                schema.lacks = Some(missing);
                return false;
            }
            Err(error) => {
                if matches!(error, NodeError::SchemaDiffers { .. }) {
                    self.node.stores.distrust(schema.executor.members().number);
                }
                schema.stop(error.to_string());
                return false;
            }
        };
        schema.lacks = None;
        if let Err(error) = schema.keep(&executed) {
            schema.stop(error.to_string());
            return false;
        }
        let height = schema.executor.height();
        for one in &executed.decided {
            self.node.metrics.schemas.decided(one.decision, height - one.transaction.height);
        }
        for EndedPart { transaction, outcome } in executed.ended {
            ended.note((transaction, &name), (height, outcome));
        }
        if let Some(outcome) = executed.outcome {
            self.attest(&schema.executor, outcome);
        }
        true
    }

    /// Says what a block came to in a schema.
    pub(super) fn attest(&self, executor: &SchemaExecutor, outcome: SchemaOutcome) {
        let Some(organisation) = self.node.organisation() else { return };
        let is_needed = !outcome.votes.is_empty() || executor.needs_certificate(&outcome, false).is_some();
        let own = SchemaAttestation::sign(outcome, organisation, &self.node.node_key);
        let height = own.statement.height;
        self.agreeing.lock().executed(own.clone(), is_needed);
        // Of older blocks whoever needs it asks.
        if height + TOLD_BLOCKS >= self.tip() {
            self.tell_members(executor.members(), &Message::Outcome(own));
        }
        if is_needed {
            // Full: whoever hears it looks at all that is needed.
            let _ = self.attests.try_send(());
        }
    }

    /// The parts that are missing next, of each schema that waits for one: asked for until they come.
    pub(super) fn missing(&self) -> Vec<(Arc<SchemaMembers>, TransactionId, String)> {
        let mut missing = Vec::new();
        let waiting: Vec<(Arc<SchemaMembers>, String, TransactionId, u64)> = {
            let state = self.state.lock();
            let waiting = state.schemas.values().filter_map(|schema| {
                let executor = &schema.executor;
                let (members, name) = (executor.members().clone(), executor.name().to_string());
                let lacks = schema.lacks.clone()?;
                missing.push((members.clone(), lacks.clone(), name.clone()));
                Some((members, name, lacks.id, executor.height()))
            });
            waiting.collect()
        };
        for (members, name, lacks, height) in waiting {
            let blocks = self.node.ledger.blocks_from(height + 1).take(LOOKED_AT_BLOCKS);
            let ahead =
                blocks.map_while(Result::ok).flat_map(|record| BlockOfParts::recorded(&record).transactions);
            let ahead = ahead.filter(|ordered| ordered.concerns(&name));
            let ahead = ahead.map(|OrderedParts { transaction, .. }| transaction);
            let of_schema = ahead.filter(|transaction| {
                !self.node.parts.has(&transaction.id, &name) && transaction.id != lacks
            });
            missing.extend(of_schema.take(ASKED_AT_ONCE).map(|one| (members.clone(), one, name.clone())));
        }
        let mut asked = self.asked.lock();
        asked.clear();
        asked.extend(missing.iter().map(|(_, one, name)| ((one.id, name.clone()), one.clone())));
        missing.into_iter().map(|(members, one, name)| (members, one.id, name)).collect()
    }

    /// Takes a part that was asked for, if it is the one that its client has committed to.
    pub(super) fn take_missing(&self, held: HeldPart) -> bool {
        let key = (held.transaction, held.schema.clone());
        let Some(transaction) = self.asked.lock().remove(&key) else { return false };
        let Payload::Parts { parts } = transaction.payload.as_ref() else { return false };
        let ledger = self.node.charters.ledger();
        if let Err(fault) = held.part.check(&ledger, &held.schema, &transaction.client, parts)
            && !self.node.lacks(Defence::PartCommitments)
        {
            tracing::warn!(%fault, "another member sent a part that is none");
            return false;
        }
        // It need not be flushed: whoever has handed it out has it.
        let stored = self.node.parts.put([held]);
        stored.inspect_err(|error| tracing::error!(%error, "a part cannot be stored")).is_ok()
    }

    /// How parts have ended here, and at which height.
    pub(super) fn ended(&self, parts: &[(TransactionId, &str)]) -> Vec<Option<(u64, Outcome)>> {
        let state = self.state.lock();
        let found = |(id, schema): &(TransactionId, &str)| state.ended.of(id, schema).cloned();
        parts.iter().map(found).collect()
    }

    /// The members of a schema that this organisation is one of.
    pub(super) fn members(&self, name: &str) -> Option<Arc<SchemaMembers>> {
        let state = self.state.lock();
        let schema = state.schemas.values().find(|schema| &**schema.executor.name() == name)?;
        Some(schema.executor.members().clone())
    }

    /// Whether the organisation is a member of a schema, and this node does not hold it.
    pub(super) fn is_held_elsewhere(&self, name: &str) -> bool {
        let state = self.state.lock();
        let Some((_, library)) = &state.ledger else { return false };
        let (members, own) = (library.catalog().members_of(name), self.node.organisation());
        !self.node.holds(name) && own.is_some_and(|own| members.is_some_and(|members| members.has(own)))
    }

    /// The height of the first block that a schema of this organisation may have to be executed from.
    pub(crate) fn since(&self) -> Option<u64> {
        self.state.lock().schemas.values().map(|schema| schema.executor.members().since).min()
    }

    /// What is wrong with the choice of schemas in `node.toml`.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut unknown = self.node.only.clone().unwrap_or_default();
        unknown.retain(|name| self.members(name).is_none());
        let warning = |name: &String| {
            format!(
                "schemas in node.toml names \"{name}\", and the ledger has no schema of that name of which this node's organisation is \
                 a member"
            )
        };
        unknown.iter().map(warning).collect()
    }

    /// How many transactions wait in a schema for votes.
    pub(super) fn undecided(&self, name: &str) -> usize {
        let state = self.state.lock();
        let schema = state.schemas.values().find(|schema| &**schema.executor.name() == name);
        schema.map_or(0, |schema| schema.executor.undecided().count())
    }

    /// What this member has attested and is to stand in the ledger.
    pub(super) fn needed_outcomes(&self) -> Vec<NeededOutcome> {
        let outcomes = self.agreeing.lock().needed();
        let own = self.node.organisation();
        let (mut needed, mut due) = (Vec::new(), BTreeMap::new());
        let state = self.state.lock();
        for (outcome, is_asked) in outcomes {
            let block = (outcome.schema, outcome.height);
            let executor = state.schemas.get(&outcome.schema).map(|schema| &schema.executor);
            let turns = self.node.charters.at(outcome.height).members().count() as u64;
            let bearer_of = |members: &PartMembers| {
                bearer(&state.proposers, turns, &members.organisations, outcome.height)
            };
            if let Some(members) = executor.and_then(|executor| executor.undecided().needs(&outcome)) {
                let (bearer, expected) = bearer_of(&members);
                needed.push(NeededOutcome { outcome, members, bearer, expected, certified: None });
            } else if let Some(members) = executor.and_then(|one| one.needs_certificate(&outcome, is_asked)) {
                let (bearer, expected) = match own.filter(|_| is_asked) {
                    Some(own) => (own, outcome.height),
                    None => bearer_of(&members),
                };
                // The newest one covers all others.
                let certified = executor.filter(|_| !is_asked).map(SchemaExecutor::certified);
                let one = NeededOutcome { outcome, members, bearer, expected, certified };
                if let Some(older) = due.insert(block.0, one) {
                    self.agreeing.lock().settled((block.0, older.outcome.height));
                }
            } else {
                self.agreeing.lock().settled(block);
            }
        }
        needed.extend(due.into_values());
        needed
    }

    /// Why a schema does not go on.
    pub(super) fn problem(&self, name: &str) -> Option<String> {
        let state = self.state.lock();
        let schema = state.schemas.values().find(|schema| &**schema.executor.name() == name)?;
        let lacks = || {
            schema.lacks.as_ref().map(|missing| format!("a part of transaction {} is missing", missing.id))
        };
        schema.stopped.clone().or_else(lacks)
    }

    #[cfg(feature = "simulation")]
    pub(super) fn at_member(&self) -> Vec<SchemaAtMember> {
        let state = self.state.lock();
        let at_member = |schema: &Schema| {
            let SchemaMembers { number, organisations, .. } = &**schema.executor.members();
            SchemaAtMember {
                name: schema.executor.name().to_string(),
                number: *number,
                members: organisations.clone(),
                height: schema.executor.height(),
                stopped: schema.stopped.clone(),
                undecided: schema.executor.undecided().count(),
            }
        };
        state.schemas.values().map(at_member).collect()
    }

    #[cfg(feature = "simulation")]
    pub(super) fn ended_behind(&self, before: usize) -> Vec<EndedAtMember> {
        let state = self.state.lock();
        let ended = |(transaction, schema): &(TransactionId, Arc<str>)| {
            let (height, outcome) = state.ended.of(transaction, schema)?.clone();
            Some(EndedAtMember { transaction: *transaction, schema: schema.to_string(), height, outcome })
        };
        state.ended.in_order().skip(before).filter_map(ended).collect()
    }

    /// Whether members agree on what a block came to in a schema.
    pub(super) fn verdict(&self, members: &SchemaMembers, height: u64) -> Verdict {
        self.agreeing.lock().verdict(members, self.node.organisation(), (members.number, height))
    }

    /// The outcome differs from a quorum's: the schema stops here.
    pub(super) fn differs(&self, members: &SchemaMembers, height: u64) {
        if let Some(schema) = self.state.lock().schemas.get_mut(&members.number) {
            self.node.stores.distrust(members.number);
            schema.stop(format!("its outcome at block {height} is not that of the other members"));
        }
    }

    /// Tells another member something.
    pub(super) fn tell(&self, member: u16, message: &Message) {
        if Some(member) != self.node.organisation()
            && let Some(bytes) = message.to_bytes()
        {
            self.node.messages.tell(member, bytes);
        }
    }

    /// Tells all other members the same.
    pub(super) fn tell_members(&self, members: &SchemaMembers, message: &Message) {
        self.tell_all(members.organisations.iter().copied(), message);
    }

    /// Tells several others the same.
    pub(super) fn tell_all(&self, members: impl IntoIterator<Item = u16>, message: &Message) {
        let Some(bytes) = message.to_bytes() else { return };
        let own = self.node.organisation();
        for member in members.into_iter().filter(|member| Some(*member) != own) {
            self.node.messages.tell(member, bytes.clone());
        }
    }
}

impl Schema {
    /// Keeps what proofs of a block need.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&mut self, executed: &ExecutedParts) -> Result<(), NodeError> {
        executed.note.as_ref().map_or(Ok(()), |note| self.opened.put(note, executed.opened.as_ref()))
    }

    /// Whether the part that it waits for has not come.
    fn still_lacks(&self, parts: &PartStore) -> bool {
        let lacks = self.lacks.as_ref();
        lacks.is_some_and(|transaction| !parts.has(&transaction.id, self.executor.name()))
    }

    fn stop(&mut self, why: String) {
        if self.stopped.is_none() {
            tracing::error!(schema = &**self.executor.name(), why, "the schema stops; others go on");
            self.stopped = Some(why);
        }
    }
}

impl State {
    /// What clients see: the ledger's state with those of the schemas. Without any, the ledger's as it is.
    fn shown(&mut self) -> Shown {
        let (snapshot, library) = self.ledger.clone().expect("a state was shown before");
        if self.schemas.is_empty() {
            self.compiled = None;
            return (snapshot, library);
        }
        let views: Arc<[SchemaView]> = self.schemas.values().map(|schema| schema.executor.view()).collect();
        match CompiledTogether::of(self.compiled.take(), &library, &views, &mut self.compilations) {
            Ok(compiled) => {
                let together = compiled.library().clone();
                self.compiled = Some(compiled);
                (Arc::new(Together::new(together.catalog().clone(), snapshot, views)), together)
            }
            Err(error) => {
                tracing::error!(%error, "the catalogs of ledger and schemas do not go together");
                (snapshot, library)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::four_members::{charter, key};
    use super::super::going_on::{members, organisation};
    use super::*;
    use std::path::Path;
    use types::{Credential, Identity, Part, SignedTransaction};

    /// Organisation 0, a member of schema `deal` beside 1 and 2.
    fn member(folder: &Path) -> PrivateSchemas {
        let private = organisation(folder, SchemaStores::in_memory());
        private.begin_alone("deal", &members());
        private
    }

    /// A client of organisation 1.
    fn client(number: u16) -> Identity {
        let (ledger, own) = (charter().ledger(), key(100 + number));
        let credential = Credential::issue(&key(1), 1, &ledger, &own.public_key());
        Identity::new(ledger, own, credential)
    }

    fn script(sql: &str) -> Payload {
        Payload::Script { sql: sql.to_string(), parameters: vec![] }
    }

    fn held(transaction: &SignedTransaction, part: &Part) -> HeldPart {
        HeldPart { transaction: transaction.transaction.id(), schema: "deal".to_string(), part: part.clone() }
    }

    /// Whether the member holds a part that is handed to it, and whether it takes it as one that it misses.
    fn taken(member: &PrivateSchemas, transaction: &SignedTransaction, part: &Part) -> (bool, bool) {
        let one = held(transaction, part);
        let is_held = member.check_content(transaction, std::slice::from_ref(&one)).is_ok();
        let place = (one.transaction, one.schema.clone());
        member.asked.lock().insert(place.clone(), Arc::new(transaction.clone().into()));
        let was_missing = member.take_missing(one);
        assert_eq!(member.node.parts.has(&place.0, &place.1), was_missing, "what is not taken is not stored");
        (is_held, was_missing)
    }

    /// The variant `commitment` of `schemas.py`: gateways and members hand out other parts than the client's.
    #[test]
    fn commitment_unchecked_a_member_takes_no_part_but_the_client_s() {
        let folder = tempfile::tempdir().expect("a folder");
        let member = member(folder.path());
        let (signed, parts) = client(1).sign_parts([("deal".to_string(), script("DELETE FROM deal.t"))], 99);
        let right = &parts["deal"];
        let other = Part { payload: script("DROP TABLE deal.t"), ..right.clone() };
        let salted = Part { salt: [0; 32], ..right.clone() };
        assert_eq!(taken(&member, &signed, &other), (false, false));
        assert_eq!(taken(&member, &signed, &salted), (false, false));
        assert_eq!(taken(&member, &signed, right), (true, true));
        assert!(!member.take_missing(held(&signed, right)), "nobody asks for it any more");
    }

    /// The variant `bind` of `schemas.py`: a client submits the commitment of another one, whose part the members have.
    #[test]
    fn bind_no_a_copied_commitment_has_no_part() {
        let folder = tempfile::tempdir().expect("a folder");
        let member = member(folder.path());
        let (signed, parts) = client(1).sign_parts([("deal".to_string(), script("DELETE FROM deal.t"))], 99);
        assert_eq!(taken(&member, &signed, &parts["deal"]), (true, true));
        let (mut copied, _) = client(2).sign_parts([("deal".to_string(), script("SELECT 1"))], 99);
        copied.transaction.payload = signed.transaction.payload.clone();
        assert_eq!(taken(&member, &copied, &parts["deal"]), (false, false));
    }

    #[test]
    fn the_member_whose_turn_comes_soon_brings_votes() {
        // Four nodes take turns: 2, 3, 1, 0, 2, 3, …
        let proposers: BTreeMap<u64, u16> = (10..=20).zip([2, 3, 1, 0].into_iter().cycle()).collect();
        assert_eq!(proposers[&20], 1);
        let of = |members: &[u16]| bearer(&proposers, 4, members, 20);
        assert_eq!(of(&[0, 1, 2, 3]), (3, 23), "block 23 has the proposer of block 19");
        assert_eq!(of(&[0, 1]), (1, 24), "or the next one of a member");
        assert_eq!(of(&[0, 2]), (2, 22), "the block behind the next one, if there is no later one");
        assert_eq!(of(&[0]), (0, 24), "a member whose turn is too soon has it again");
        assert_eq!(bearer(&BTreeMap::new(), 4, &[1, 2], 20), (1, 24), "nobody knows");
        assert_eq!(bearer(&BTreeMap::from([(20, 0)]), 1, &[0], 20), (0, 21), "a network of one");
    }
}
