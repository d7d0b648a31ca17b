//! A schema with members, executed by itself: the parts of its transactions, in the order of the ledger.
//!
//! ```text
//!  decisions, parts of a block ─┬─ nothing is prepared, waits, or has parts elsewhere ─▶ Engine::execute: the ledger's protocol
//!                               └─ else ─▶ PartsExecutor: locks, votes                ─▶ Engine::take_parts
//! ```
//!
//! A change of the schema runs alone: it waits until nothing is prepared or waits before it, and what comes behind it waits for it. So no
//! part is executed under another schema than it was prepared under.

use crate::engine::EndOfSchema;
use crate::schema_moves::Between;
use crate::{Engine, EngineError, VerifiedBlock, VerifiedTransaction};
use concurrency::parts::{
    Decided, Decision, LedgerPosition, NewPart, PartOutcome, PartsBlock, PartsError, PartsExecutor, PartsRule,
};
use crypto::{Digest, Sha256Batch, merkle_root};
use sql::{Context, Invocation};
use state::{AfterImage, Effects, Simulate, Snapshot, StoreError, Version, block_digest};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use types::{
    BlockHeader, ExecutionVersion, Outcome, OutcomeHeader, Receipt, SqlError, SqlState, TransactionId, encode,
};

/// After so many blocks at most a schema's store is asked to be able to come back, as soon as nothing waits: whoever starts executes the
/// blocks behind that again, and one in which the schema has no part takes 50 µs.
const DUE_BLOCKS: u64 = 1_000;

/// A part that stands in a block.
#[derive(Clone, Debug)]
pub struct SchemaPart {
    /// Where its transaction stands.
    pub position: LedgerPosition,
    /// The transaction, with what it does in this schema.
    pub transaction: Arc<VerifiedTransaction>,
    /// Milliseconds since 1970-01-01 00:00 UTC of the block that it stands in: `now()`, unless it waits behind a change of the schema:
    /// then that is the time of the block in which it is executed.
    pub timestamp_ms: u64,
    /// The transaction has parts in other schemas.
    pub crossing: bool,
    /// What it shares with them, from execution version 6 on.
    pub between: Option<Between>,
}

/// What a block has for a schema.
#[derive(Clone, Debug)]
pub struct SchemaBlock {
    /// Its header.
    pub header: BlockHeader,
    /// What is decided in it of the transactions that have a part here.
    pub decisions: Vec<Decided>,
    /// The parts in it, by position.
    pub parts: Vec<SchemaPart>,
    /// Behind it transactions that have a part here are undecided.
    pub undecided: bool,
    /// The rules that the ledger's charter names for its height.
    pub version: ExecutionVersion,
}

/// What a block came to in a schema.
#[derive(Debug)]
pub struct ExecutedSchemaBlock {
    /// The schema's own.
    pub outcome: OutcomeHeader,
    /// The parts that have ended in it, also of earlier blocks.
    pub ended: Vec<(TransactionId, Outcome)>,
    /// What this member says of parts whose transactions have others.
    pub votes: Vec<(LedgerPosition, bool)>,
    /// What stands for all that the parts move which can commit, by the number of the other schema.
    pub moves: Vec<(LedgerPosition, BTreeMap<u32, Digest>)>,
    /// The rows that it wrote, as it has left them, by table and key.
    pub changes: Vec<AfterImage>,
    /// All transactions with a part here in blocks up to this height have ended.
    pub settled: u64,
    /// The store was asked to be able to come back here.
    pub is_due: bool,
}

/// Why a schema cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// As any engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its parts cannot be executed.
    #[error(transparent)]
    Parts(#[from] PartsError),
}

/// The rows of a schema, what is locked and what waits, at one height.
pub struct SchemaEngine {
    engine: Engine,
    parts: PartsExecutor,
    /// Parts whose turn has not come: a schema change that waits, and everything behind it.
    queue: VecDeque<SchemaPart>,
    /// Transactions with parts elsewhere, until they are decided; and all that wait.
    known: BTreeMap<LedgerPosition, TransactionId>,
    /// What parts share with others that were not voted on.
    between: BTreeMap<LedgerPosition, Between>,
    /// Blocks since the store was asked to be able to come back.
    since_due: u64,
}

/// A part that cannot be executed.
struct Refused(SqlError);

impl Simulate for Refused {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        let (reads, scans, commands, catalog) = Default::default();
        Ok(Effects { reads, scans, commands, result: Err(self.0.clone()), steps: 1, catalog })
    }
}

impl SchemaEngine {
    /// `engine` has the schema's rows and its catalog.
    pub fn new(engine: Engine) -> SchemaEngine {
        let (parts, queue, known, between, since_due) = Default::default();
        SchemaEngine { engine, parts, queue, known, between, since_due }
    }

    /// The same without one of the rules: for tests alone.
    #[must_use]
    pub fn without(self, rule: PartsRule) -> SchemaEngine {
        SchemaEngine { parts: self.parts.without(rule), ..self }
    }

    /// Height of the last block.
    pub fn height(&self) -> u64 {
        self.engine.height()
    }

    /// Rows and catalog at that height.
    pub fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.engine.state().snapshot()
    }

    /// Executes the next block.
    ///
    /// # Errors
    /// [`SchemaError`]: the schema is of no more use then.
    pub fn execute(&mut self, block: SchemaBlock) -> Result<ExecutedSchemaBlock, SchemaError> {
        let SchemaBlock { header, decisions, parts, undecided, version } = block;
        self.engine.go_over_to(version)?;
        self.known.extend(parts.iter().map(|part| (part.position, part.transaction.id)));
        let mut undone = Vec::new();
        // What waits behind a schema change was not prepared, so that it can only be decided against.
        self.queue.retain(|part| {
            let decided = decisions.iter().find(|decided| decided.transaction == part.position);
            undone.extend(decided.copied());
            decided.is_none()
        });
        self.queue.extend(parts);
        let is_quiet = self.parts.is_quiet() && decisions.is_empty();
        let (count, changes_schema) = self.next_parts(is_quiet);
        let next: Vec<SchemaPart> = self.queue.drain(..count).collect();
        match is_quiet && (changes_schema || next.iter().all(|part| !part.crossing)) {
            true => self.execute_alone(&header, next, undecided),
            false => self.execute_parts(&header, (decisions, next), undecided),
        }
    }

    /// How many of the parts that wait can be executed next, and whether a schema change is among them.
    fn next_parts(&self, is_quiet: bool) -> (usize, bool) {
        let (parts, version) = (&self.queue, self.engine.execution_version());
        let is_change =
            |part: &SchemaPart| !part.crossing && sql::is_schema_change(&part.transaction.payload, version);
        let first_change = parts.iter().position(is_change);
        match first_change {
            None => (parts.len(), false),
            Some(first) => {
                let before = parts.iter().take(first);
                // Parts of this schema alone, and changes of it: the engine executes them in their order.
                match is_quiet && before.clone().all(|part| !part.crossing) {
                    true => (parts.iter().take_while(|part| !part.crossing).count(), true),
                    false => (first, false),
                }
            }
        }
    }

    /// Parts of this schema alone, where nothing is locked.
    fn execute_alone(
        &mut self,
        header: &BlockHeader,
        parts: Vec<SchemaPart>,
        undecided: bool,
    ) -> Result<ExecutedSchemaBlock, SchemaError> {
        for part in &parts {
            self.known.remove(&part.position);
        }
        let is_due = self.ends(undecided);
        let transactions = parts.into_iter().map(|part| Ok(unexpired(part.transaction, header.height)));
        let block = VerifiedBlock {
            header: header.clone(),
            digest: header.digest(),
            transactions: transactions.collect(),
        };
        let executed = self.engine.execute(&block)?;
        let ended = executed.receipts.into_iter().map(|receipt| (receipt.transaction, receipt.outcome));
        Ok(ExecutedSchemaBlock {
            outcome: executed.outcome,
            ended: ended.collect(),
            votes: Vec::new(),
            moves: Vec::new(),
            changes: executed.changes,
            settled: self.settled(header.height),
            is_due,
        })
    }

    /// Tells the engine how the block ends whose parts have all been taken up or ended. Whether the store is to come back there.
    fn ends(&mut self, undecided: bool) -> bool {
        let needs_more = undecided || !self.known.is_empty();
        self.since_due += 1;
        let is_due = !needs_more && self.since_due >= DUE_BLOCKS;
        if is_due {
            self.since_due = 0;
        }
        self.engine.of_schema = Some(EndOfSchema { needs_more, is_due });
        is_due
    }

    /// Behind the block of a height.
    fn settled(&self, height: u64) -> u64 {
        self.known.keys().next().map_or(height, |oldest| oldest.height - 1)
    }

    /// Parts among which some have others elsewhere, or where something is locked.
    fn execute_parts(
        &mut self,
        header: &BlockHeader,
        (decisions, parts): (Vec<Decided>, Vec<SchemaPart>),
        undecided: bool,
    ) -> Result<ExecutedSchemaBlock, SchemaError> {
        let parts = parts.into_iter().map(|part| self.new_part(part)).collect();
        let steps = self.engine.charter.meter.block_steps;
        let block = PartsBlock { height: header.height, decisions, parts, steps };
        let executed = self.parts.execute(block, &*self.snapshot())?;
        let moves = self.moves_of(&executed.votes);
        let mut ended = Vec::with_capacity(executed.outcomes.len());
        for (position, outcome) in executed.outcomes {
            self.between.remove(&position);
            if let Some(id) = self.known.remove(&position) {
                ended.push((id, ended_as(outcome)));
            }
        }
        let is_due = self.ends(undecided);
        let outcome = self.engine.take_parts(header, &executed.changes, &ended)?;
        let (votes, changes) = (executed.votes, executed.changes);
        let settled = self.settled(header.height);
        Ok(ExecutedSchemaBlock { outcome, ended, votes, moves, changes, settled, is_due })
    }

    /// What parts move that were voted on just now. What they do is fixed until they are decided.
    fn moves_of(&mut self, votes: &[(LedgerPosition, bool)]) -> Vec<(LedgerPosition, BTreeMap<u32, Digest>)> {
        let mut moves = Vec::new();
        for (position, is_yes) in votes {
            let Some(between) = self.between.remove(position).filter(|_| *is_yes) else { continue };
            let digests = between.digests();
            if !digests.is_empty() {
                moves.push((*position, digests));
            }
        }
        moves
    }

    fn new_part(&mut self, part: SchemaPart) -> NewPart {
        let SchemaPart { position, transaction, timestamp_ms, crossing, between } = part;
        let version = self.engine.execution_version();
        let part: Arc<dyn Simulate> = match crossing && sql::is_schema_change(&transaction.payload, version) {
            true => Arc::new(Refused(SqlError::unsupported(
                "a change of a schema in a transaction that touches another one, too,",
            ))),
            false => {
                let context = Context {
                    height: position.height,
                    timestamp_ms,
                    index: position.index,
                    transaction: transaction.id,
                    step_limit: self.engine.charter.meter.transaction_steps,
                };
                let library = self.engine.library.clone();
                let invocation = Invocation::new(library, context, transaction.payload.clone());
                let invocation = invocation.by(transaction.principal.clone());
                match between {
                    Some(between) => {
                        let moves = between.moves.clone();
                        self.between.insert(position, between);
                        Arc::new(invocation.moving(moves))
                    }
                    None => Arc::new(invocation),
                }
            }
        };
        let moved = self.between.get(&position).map(Between::counted);
        NewPart { position, part, crossing, moved }
    }
}

/// Whoever has waited behind a change of the schema must not have expired meanwhile: the ledger has admitted the transaction.
fn unexpired(transaction: Arc<VerifiedTransaction>, height: u64) -> Arc<VerifiedTransaction> {
    match transaction.expires_at >= height {
        true => transaction,
        false => {
            Arc::new(VerifiedTransaction { expires_at: height, ..VerifiedTransaction::clone(&transaction) })
        }
    }
}

/// How a part has ended.
fn ended_as(outcome: PartOutcome) -> Outcome {
    match outcome {
        PartOutcome::Committed(results) => Outcome::Committed(results),
        PartOutcome::Aborted(error) => Outcome::Aborted(error),
        PartOutcome::Undone { refusal: Some(error), .. } => Outcome::Aborted(error),
        PartOutcome::Undone { decision, refusal: None } => {
            let why = match decision {
                Decision::Moves => return moves_differ(),
                Decision::Window => "not all of its schemas' members have voted within the window",
                Decision::No | Decision::Commit => {
                    "the members of another of its schemas have refused their part"
                }
            };
            Outcome::Aborted(
                SqlError::new(
                    SqlState::TRANSACTION_ROLLBACK,
                    format!("the transaction does not take effect: {why}"),
                )
                .hint("Nothing of it has happened in any schema."),
            )
        }
    }
}

/// `23000`: all parts can commit, and not together.
fn moves_differ() -> Outcome {
    let message =
        "the transaction does not take effect: what leaves one of its schemas does not come into the other";
    Outcome::Aborted(
        SqlError::new(SqlState(*b"23000"), message).hint(
            "Each entente.hand_over(schema, what) in one schema needs entente.take_over(schema, what) of the same in the other, and \
             both parts the same signatures. Nothing of it has happened in any schema.",
        ),
    )
}

impl Engine {
    /// Takes in what a block came to that was executed elsewhere: these rows have changed, these transactions have ended.
    ///
    /// # Errors
    /// As [`Engine::execute`].
    fn take_parts(
        &mut self,
        header: &BlockHeader,
        changes: &[AfterImage],
        ended: &[(TransactionId, Outcome)],
    ) -> Result<OutcomeHeader, EngineError> {
        self.begin_next(header.height)?;
        self.live.begin_block(header.height);
        self.state.apply(Version::after_batch(header.height, 0), changes, None)?;
        let digest = block_digest(changes, self.state.catalog_digest(), self.live.block_digest());
        let outcome = self.chain(header, header.digest(), &digest, receipts_root(header.height, ended));
        // What the protocol remembers of the batch before is older than this.
        (self.forget, self.oldest_snapshot) = (true, header.height);
        self.make_progress(changes.len());
        self.end_block()?;
        Ok(outcome)
    }
}

fn receipts_root(height: u64, ended: &[(TransactionId, Outcome)]) -> Digest {
    let mut leaves = Sha256Batch::new();
    for (index, (transaction, outcome)) in (0..).zip(ended) {
        let receipt = Receipt { transaction: *transaction, height, index, outcome: outcome.clone() };
        leaves.push_leaf(&encode(&receipt));
    }
    merkle_root(&leaves.finish())
}
