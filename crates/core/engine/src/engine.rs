use crate::VerifiedBlock;
use crate::admission::Admission;
use crate::block_run::BlockRun;
use crate::elsewhere::ExecuteScripts;
use crate::endorsement::{EndorsementBasis, EndorsementRules};
use crate::foresight::ForeseenBlock;
use crate::outcomes::{self, FinishedPiece, Outcomes};
use crate::row_history::{Noting, RowHistory};
use crate::splitting::SplitRuns;
use concurrency::Protocol;
use crypto::Digest;
use rustc_hash::FxHashSet;
use sql::{CompileOptions, Library};
use state::{
    AfterImage, BlockChanges, BlockEnd, CheckpointHeader, CheckpointProgress, EndorsedForm, LiveRequests,
    ResumePoint, Store, StoreError, Stores, block_digest,
};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use types::{
    AmendedCharter, BlockDigest, BlockHeader, Catalog, Charter, Consistency, ExecutionModel,
    ExecutionVersion, KnownVersions, Outcome, OutcomeHeader, Pipeline, Receipt, SqlError, UnknownVersion,
};

/// Why the engine cannot go on. Nothing that a transaction does leads here.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The charter names a protocol that this binary does not have.
    #[error(transparent)]
    UnknownProtocol(#[from] concurrency::UnknownProtocol),
    /// The same where transactions are executed before they are ordered.
    #[error(transparent)]
    UnknownValidation(#[from] concurrency::UnknownValidation),
    /// The charter of the next block names rules of execution that this program does not have.
    #[error(transparent)]
    UnknownVersion(#[from] UnknownVersion),
    /// The endorsement policy of a charter is none.
    #[error("the charter's endorsement.policy cannot be: {0}")]
    Policy(#[from] types::PolicyError),
    /// A catalog that was accepted cannot be compiled again.
    #[error("the catalog of version {version} does not compile: {error}; restore another checkpoint")]
    Catalog {
        /// Version of the catalog.
        version: u64,
        /// Why.
        error: SqlError,
    },
    /// A block that does not follow the last one.
    #[error("expected the block of height {expected}, found height {found}")]
    Height {
        /// The next height.
        expected: u64,
        /// The height that came.
        found: u64,
    },
    /// The state cannot be read or written. The block has no outcome, and the engine executes nothing more.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block other than the one that was foreseen at its height.
    #[error("the block of height {0} is not the one that was foreseen")]
    Foreseen(u64),
}

/// Counts of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStatistics {
    /// Transactions in the block.
    pub transactions: u64,
    /// Those that committed.
    pub committed: u64,
    /// Those that the contract or a constraint ended.
    pub business_aborts: u64,
    /// Those given up because of a conflict.
    pub conflict_aborts: u64,
    /// Those that were not executed.
    pub rejected: u64,
    /// Those that ran more than once.
    pub reexecuted: u64,
    /// Simulations, repeated ones included.
    pub executions: u64,
    /// Logical steps spent.
    pub steps: u64,
}

/// How long the parts of a block's execution took, as its own thread saw it; for metrics alone, nothing depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTimes {
    /// Admission of ids and cutting into batches.
    pub admit: Duration,
    /// Simulation, decision and placement, with what is done beside them: admission of the next ids.
    pub protocol: Duration,
    /// Installing after-images.
    pub apply: Duration,
    /// State digest.
    pub digest: Duration,
    /// Receipts and their root, as far as they were not done in the background: waiting for the rest counts.
    pub receipts: Duration,
}

/// What a block came to.
pub struct ExecutedBlock {
    /// One per transaction, in block order.
    pub receipts: Vec<Receipt>,
    /// What the block did to rows: one after-image per row that it wrote, the last one, by table and key.
    pub changes: Vec<AfterImage>,
    /// Digests of that, of the catalog and of the live ids.
    pub digest: BlockDigest,
    /// All of it in one header, chained to those before.
    pub outcome: OutcomeHeader,
    /// What its transactions did to rows one by one, where that is noted: [`Engine::noting_row_history`].
    pub row_history: Option<RowHistory>,
    /// Counts.
    pub statistics: BlockStatistics,
    /// Durations.
    pub times: StageTimes,
}

/// State, live ids and protocol of one ledger, at one height.
pub struct Engine {
    pub(crate) state: Arc<dyn Store>,
    pub(crate) live: LiveRequests,
    pub(crate) protocol: Box<dyn Protocol>,
    /// What endorsements must be.
    pub(crate) rules: Arc<EndorsementRules>,
    pub(crate) library: Arc<Library>,
    pub(crate) height: u64,
    state_digest: Digest,
    /// Digest of the outcome header at that height.
    outcome: Digest,
    pub(crate) charter: Arc<Charter>,
    /// The rules that blocks are executed with while that charter holds, and those that this program knows.
    version: ExecutionVersion,
    known_versions: KnownVersions,
    /// The name of the ledger, which hashes the whole charter.
    ledger: Digest,
    /// How many amendments of the charter there are, and what names them in headers.
    charters: (usize, Digest),
    /// The next batch may not depend on the one before.
    pub(crate) forget: bool,
    /// Simulations that come with transactions count only if made on the state after this height or a later one.
    pub(crate) oldest_snapshot: u64,
    /// How far it is from the last checkpoint.
    pub(crate) progress: CheckpointProgress,
    /// The next blocks, as far as they are admitted.
    pub(crate) foreseen: VecDeque<ForeseenBlock>,
    /// What transactions do to rows is noted.
    pub(crate) notes_rows: bool,
    /// What executes scripts, if the engine does not.
    elsewhere: Option<Arc<dyn ExecuteScripts>>,
    /// What says where transactions run, if not all of them run here.
    splitter: Option<Arc<dyn SplitRuns>>,
    /// Why it executes nothing more.
    failure: Option<StoreError>,
    /// Of a schema with members: how its next block ends, beside the rows.
    pub(crate) of_schema: Option<EndOfSchema>,
}

/// What whoever executes a schema adds to the end of a block.
#[derive(Clone, Copy, Default)]
pub(crate) struct EndOfSchema {
    /// Nobody can go on here who knows nothing of the blocks before: parts are locked, or wait.
    pub(crate) needs_more: bool,
    /// [`BlockEnd::is_due`]
    pub(crate) is_due: bool,
}

impl Engine {
    /// The empty state at height 0, in a store that `stores` makes.
    ///
    /// # Errors
    /// The charter's protocol or execution version is unknown; the store cannot be made.
    pub fn new(charter: Arc<Charter>, stores: &dyn Stores) -> Result<Engine, EngineError> {
        Engine::founded(charter, stores, KnownVersions::default())
    }

    /// As [`Engine::new`], with what an older program knows.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn founded(
        charter: Arc<Charter>,
        stores: &dyn Stores,
        known_versions: KnownVersions,
    ) -> Result<Engine, EngineError> {
        let state = stores.create(Arc::new(Catalog::founded(charter.clone())))?;
        let ledger = charter.ledger();
        let header = CheckpointHeader { ledger, height: 0, state_digest: ledger, outcome: ledger };
        let progress = CheckpointProgress::default();
        Engine::continued(charter, (&header, progress), (state, LiveRequests::new()), known_versions)
    }

    /// The state of a checkpoint, or the one behind any other block of a ledger in which no block depends on what the one before
    /// has left in memory ([`Charter::blocks_stand_alone`]). `progress`: [`Engine::checkpoint_progress`] there.
    ///
    /// # Errors
    /// The charter's protocol or execution version is unknown, or the checkpoint's catalog does not compile.
    pub fn at(
        charter: Arc<Charter>,
        (header, progress): (&CheckpointHeader, CheckpointProgress),
        state: Arc<dyn Store>,
        live: LiveRequests,
    ) -> Result<Engine, EngineError> {
        Engine::continued(charter, (header, progress), (state, live), KnownVersions::default())
    }

    /// As [`Engine::at`], with what an older program knows.
    ///
    /// # Errors
    /// As [`Engine::at`].
    pub fn continued(
        charter: Arc<Charter>,
        (header, progress): (&CheckpointHeader, CheckpointProgress),
        (state, live): (Arc<dyn Store>, LiveRequests),
        known_versions: KnownVersions,
    ) -> Result<Engine, EngineError> {
        let CheckpointHeader { height, state_digest, outcome, .. } = *header;
        let (id, options) = (&charter.protocol, charter.concurrency);
        let protocol = match charter.execution {
            ExecutionModel::OrderExecute | ExecutionModel::WhateverThenAgree => {
                concurrency::protocol(id, options)?
            }
            ExecutionModel::ExecuteOrderValidate => {
                concurrency::validation(id, options, Pipeline::default())?
            }
        };
        let rules = Arc::new(EndorsementRules::new(&charter)?);
        let catalog = state.catalog();
        let catalog_version = catalog.version;
        let amended = catalog.governance.amendments.iter().rev();
        let mut before = amended.filter(|amended| amended.effective_height <= height + 1);
        // What holds for the next block, so that everything is compiled once.
        let rules_version = match before.next() {
            Some(amended) => known_versions.of(&amended.charter, amended.effective_height)?,
            None => known_versions.of(&charter, 0)?,
        };
        let options = CompileOptions { version: rules_version, ..CompileOptions::default() };
        let library = Library::with_options(catalog, options)
            .map_err(|error| EngineError::Catalog { version: catalog_version, error })?;
        let mut engine = Engine {
            state,
            live,
            protocol,
            rules,
            library: Arc::new(library),
            height,
            state_digest,
            outcome,
            ledger: charter.ledger(),
            charters: (0, charter.ledger()),
            charter,
            version: rules_version,
            known_versions,
            forget: true,
            oldest_snapshot: height,
            progress,
            foreseen: VecDeque::new(),
            notes_rows: false,
            elsewhere: None,
            splitter: None,
            failure: None,
            of_schema: None,
        };
        engine.follow_charter(height + 1)?;
        Ok(engine)
    }

    /// Schedules validation so, where transactions are executed before they are ordered. For an engine that has executed
    /// nothing yet.
    ///
    /// # Errors
    /// The charter's protocol is unknown.
    pub fn with_pipeline(mut self, pipeline: Pipeline) -> Result<Engine, EngineError> {
        if self.charter.execution == ExecutionModel::ExecuteOrderValidate {
            let (id, options) = (&self.charter.protocol, self.charter.concurrency);
            self.protocol = concurrency::validation(id, options, pipeline)?;
        }
        Ok(self)
    }

    /// Notes what transactions do to rows: [`ExecutedBlock::row_history`].
    pub fn noting_row_history(mut self) -> Engine {
        self.notes_rows = true;
        self
    }

    /// Has scripts executed there, on a ledger that agrees on what they come to.
    pub fn executing(mut self, elsewhere: Option<Arc<dyn ExecuteScripts>>) -> Engine {
        self.elsewhere = elsewhere;
        self
    }

    /// Has transactions run where this says, on a ledger whose batches can be split. Its store has, wherever they stand, the rows
    /// of all of them.
    pub fn splitting(mut self, splitter: Option<Arc<dyn SplitRuns>>) -> Engine {
        self.splitter = splitter;
        self
    }

    /// Height of the last block executed.
    pub fn height(&self) -> u64 {
        self.height
    }

    /// Digest of the state at that height.
    pub fn state_digest(&self) -> Digest {
        self.state_digest
    }

    /// What a checkpoint of the state at that height says of it.
    pub fn checkpoint_header(&self) -> CheckpointHeader {
        let (height, state_digest, outcome) = (self.height, self.state_digest, self.outcome);
        CheckpointHeader { ledger: self.ledger, height, state_digest, outcome }
    }

    /// The tables; readers take snapshots of it while blocks are executed.
    pub fn state(&self) -> &Arc<dyn Store> {
        &self.state
    }

    /// The newest amendment of the charter, whether it holds already or not; `None`: the founding charter holds. All of
    /// them are in the catalog ([`types::Governance`]).
    pub fn amended_charter(&self) -> Option<Arc<AmendedCharter>> {
        self.state.catalog().governance.amendments.last().cloned()
    }

    /// Names all amendments of the charter that are decided.
    fn charters_digest(&mut self) -> Digest {
        let catalog = self.state.catalog();
        let governance = &catalog.governance;
        let amendments = governance.amendments.len();
        if amendments != self.charters.0 {
            self.charters = (amendments, governance.charters_digest(&self.ledger));
        }
        self.charters.1
    }

    /// The rules that the last block was executed with, or, of an engine that has executed nothing, those of the next one.
    pub fn execution_version(&self) -> ExecutionVersion {
        self.version
    }

    /// The compiled catalog at that height.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// The ids that may not come again.
    pub fn live(&self) -> &LiveRequests {
        &self.live
    }

    /// What an endorser stands on at this height. `timestamp_ms`: time of the last block.
    pub fn endorsement_basis(&self, timestamp_ms: u64) -> EndorsementBasis {
        let catalog = self.state.catalog();
        // As admission looks at it, so that an engine that goes on from a checkpoint here, with the next version's library,
        // says the same.
        let version = |height| catalog.governance.charter_at(height).map(|charter| charter.execution_version);
        EndorsementBasis {
            is_before_switch: version(self.height) != version(self.height + 1),
            library: self.library.clone(),
            snapshot: self.state.snapshot(),
            height: self.height,
            timestamp_ms,
            step_limit: self.charter.meter.transaction_steps,
            transaction_bytes_max: self.charter.block.transaction_bytes_max,
            form: match self.charter.endorsement.commands {
                true => EndorsedForm::Commands,
                false => EndorsedForm::Writes,
            },
            rules: self.rules.clone(),
            oracles: None,
        }
    }

    /// Whether every node makes a checkpoint of the state behind the last block: the charter says so, or a CHECKPOINT in the
    /// block.
    pub fn is_at_checkpoint(&self) -> bool {
        self.progress.last == self.height
    }

    /// How far it is from the last checkpoint: an engine that goes on from the state at this height needs it.
    pub fn checkpoint_progress(&self) -> CheckpointProgress {
        self.progress
    }

    /// Whether the charter lets there be a checkpoint behind the block of this height, the first one since the last. `rows_before`:
    /// so many rows have the blocks between the two changed; where that is not known it may be enough. The block's own rows do
    /// not count: while it takes effect the one behind it is simulated already, which must know.
    pub(crate) fn is_due(&self, height: u64, rows_before: Option<u64>) -> bool {
        let Charter { checkpoint_blocks, checkpoint_rows, .. } = *self.charter;
        match self.version >= ExecutionVersion::V3 {
            true => {
                height - self.progress.last >= u64::from(checkpoint_blocks)
                    || rows_before.is_none_or(|rows| rows >= u64::from(checkpoint_rows))
            }
            false => height.is_multiple_of(u64::from(checkpoint_blocks)),
        }
    }

    /// Behind a block that has changed so many rows.
    pub(crate) fn make_progress(&mut self, rows: usize) {
        let asked = self.library.catalog().checkpoint == self.height;
        if asked || self.is_due(self.height, Some(self.progress.rows)) {
            debug_assert!(self.foreseen.is_empty(), "nothing is foreseen across a checkpoint");
            self.progress = CheckpointProgress::at(self.height);
            // An engine that starts there knows nothing of what was before, whatever charter holds for the next block.
            self.forget = true;
            self.oldest_snapshot = self.height;
        } else {
            self.progress.rows += rows as u64;
        }
    }

    /// The charter that holds for the block of this height, as the ledger has amended it.
    fn follow_charter(&mut self, height: u64) -> Result<(), EngineError> {
        let catalog = self.state.catalog();
        let amended = catalog.governance.charter_at(height);
        if let Some(charter) = amended.filter(|charter| charter.version != self.charter.version) {
            let version = self.known_versions.of(charter, height)?;
            self.rules = Arc::new(EndorsementRules::new(charter)?);
            self.charter = Arc::new(charter.clone());
            self.go_over_to(version)?;
        }
        Ok(())
    }

    /// The next blocks are executed with these rules: everything is compiled again.
    pub(crate) fn go_over_to(&mut self, version: ExecutionVersion) -> Result<(), EngineError> {
        if version == self.version {
            return Ok(());
        }
        let (catalog, of) = (self.state.catalog(), self.state.catalog().version);
        let library = self.library.with_version(catalog, version);
        let library = library.map_err(|error| EngineError::Catalog { version: of, error })?;
        (self.library, self.version) = (Arc::new(library), version);
        Ok(())
    }

    /// Whether another charter holds for the block of this height than for those before it.
    pub(crate) fn changes_charter(&self, height: u64) -> bool {
        let catalog = self.state.catalog();
        catalog.governance.charter_at(height).is_some_and(|charter| charter.version != self.charter.version)
    }

    /// What holds from the next block on.
    pub(crate) fn begin(&mut self) {
        // Nothing in a block can have been submitted after the answer to something else in it, so batches of one block
        // may miss each other without a client noticing; those of two blocks may not, if consistency is strict.
        self.forget |= self.charter.concurrency.consistency == Consistency::Strict;
    }

    /// Executes the next block.
    ///
    /// # Errors
    /// [`EngineError::Height`] or [`EngineError::Foreseen`] if it is not the next one; the state is then unchanged.
    /// [`EngineError::Store`] where the state cannot be read or written: the engine is of no more use then.
    pub fn execute(&mut self, block: &VerifiedBlock) -> Result<ExecutedBlock, EngineError> {
        let height = block.header.height;
        self.check_next(height)?;
        if self.foreseen.front().is_some_and(|foreseen| foreseen.digest != block.digest) {
            return Err(EngineError::Foreseen(height));
        }
        let foreseen = self.foreseen.pop_front();
        if foreseen.is_none() {
            self.follow_charter(height)?;
            self.begin();
        }
        let finished = outcomes::places(block);
        let ran = self.run(block, foreseen, &finished)?;
        let executed = self.finish(block, ran, finished);
        self.end_block().inspect_err(|failure| self.failure = Some(failure.clone()))?;
        Ok(executed)
    }

    /// Whether the block of this height is the next one that can be executed.
    fn check_next(&self, height: u64) -> Result<(), EngineError> {
        let expected = self.height + 1;
        match &self.failure {
            Some(failure) => Err(failure.clone().into()),
            None if height != expected => Err(EngineError::Height { expected, found: height }),
            None => Ok(()),
        }
    }

    /// Begins a block that nothing has foreseen.
    pub(crate) fn begin_next(&mut self, height: u64) -> Result<(), EngineError> {
        self.check_next(height)?;
        self.follow_charter(height)?;
        self.begin();
        Ok(())
    }

    /// Runs the transactions of a block: the state is the one behind it then.
    ///
    /// # Errors
    /// Where the state cannot be read or written.
    fn run(
        &mut self,
        block: &VerifiedBlock,
        mut foreseen: Option<ForeseenBlock>,
        finished: &[OnceLock<FinishedPiece>],
    ) -> Result<RanBlock, StoreError> {
        let noting = self.notes_rows.then(|| {
            let recorded = foreseen.as_mut().map(|foreseen| std::mem::take(&mut foreseen.recorded));
            Noting { recorded: recorded.unwrap_or_default(), history: RowHistory::default() }
        });
        let rules = match self.charter.execution {
            ExecutionModel::OrderExecute => None,
            ExecutionModel::ExecuteOrderValidate | ExecutionModel::WhateverThenAgree => Some(&*self.rules),
        };
        let is_of_scripts = self.charter.execution == ExecutionModel::WhateverThenAgree;
        rayon::scope(|background| {
            let mut run = BlockRun {
                block,
                state: self.state.as_ref(),
                protocol: self.protocol.as_mut(),
                library: &mut self.library,
                charter: &self.charter,
                elsewhere: self.elsewhere.as_deref(),
                splitter: self.splitter.as_deref(),
                forget: &mut self.forget,
                oldest_snapshot: &mut self.oldest_snapshot,
                outcomes: Outcomes::new(block, finished),
                background,
                groups: 0,
                requeued: FxHashSet::default(),
                changes: BlockChanges::default(),
                noting,
                statistics: BlockStatistics::default(),
                times: StageTimes::default(),
            };
            let (requests, executed) = match foreseen {
                Some(foreseen) => {
                    let requests = foreseen.requests;
                    (Some(requests), run.execute_foreseen(foreseen, &mut self.foreseen))
                }
                None => {
                    let start = Instant::now();
                    let mut admission =
                        Admission::new(block, &mut self.live, &self.charter, rules, run.library);
                    run.times.admit = start.elapsed();
                    let executed = match is_of_scripts {
                        true => run.execute_scripts(&mut admission),
                        false => run.execute(&mut admission),
                    };
                    (None, executed)
                }
            };
            let BlockRun { changes, statistics, times, noting, .. } = run;
            executed.map(|()| RanBlock {
                changes,
                statistics,
                times,
                ended: Instant::now(),
                noting,
                requests,
            })
        })
        .inspect_err(|failure| self.failure = Some(failure.clone()))
    }

    /// The store hears that the state is the one behind a block, and what belongs to it beside rows.
    pub(crate) fn end_block(&mut self) -> Result<(), StoreError> {
        let is_checkpoint = self.is_at_checkpoint() && self.of_schema.is_none();
        let catalog = self.state.catalog();
        let next = catalog.governance.charter_at(self.height + 1).unwrap_or(&self.charter);
        let stands_alone = self.charter.blocks_stand_alone() && next.blocks_stand_alone();
        let EndOfSchema { needs_more, is_due } = self.of_schema.unwrap_or_default();
        let is_resumable = is_checkpoint || (stands_alone && !needs_more);
        let point = ResumePoint { header: self.checkpoint_header(), progress: self.progress };
        let admitted = self.live.take_admitted(self.height);
        self.state.end_block(BlockEnd { point, admitted, is_resumable, is_checkpoint, is_due })
    }

    /// What the block came to. `finished`: its receipts, all of which are there.
    fn finish(
        &mut self,
        block: &VerifiedBlock,
        ran: RanBlock,
        finished: Vec<OnceLock<FinishedPiece>>,
    ) -> ExecutedBlock {
        let RanBlock { changes, mut statistics, mut times, ended, noting, requests } = ran;
        times.receipts = ended.elapsed();
        let start = Instant::now();
        let (changes, requests) =
            rayon::join(|| changes.finish(), || requests.unwrap_or_else(|| self.live.block_digest()));
        let digest = block_digest(&changes, self.state.catalog_digest(), requests);
        times.digest = start.elapsed();
        let start = Instant::now();
        let receipts = outcomes::collect(finished, block.transactions.len());
        statistics.add(&receipts.statistics);
        times.receipts += start.elapsed();
        let outcome = self.chain(&block.header, block.digest, &digest, receipts.root);
        self.make_progress(changes.len());
        let row_history = noting.map(|noting| noting.history);
        ExecutedBlock {
            receipts: receipts.receipts,
            changes,
            digest,
            outcome,
            row_history,
            statistics,
            times,
        }
    }
}

impl Engine {
    /// Puts what a block came to behind everything before it.
    pub(crate) fn chain(
        &mut self,
        header: &BlockHeader,
        block: Digest,
        digest: &BlockDigest,
        receipts_root: Digest,
    ) -> OutcomeHeader {
        self.state_digest = digest.chain(self.state_digest, header.height);
        self.height = header.height;
        let outcome = OutcomeHeader {
            ledger: header.ledger,
            height: header.height,
            block,
            previous: self.outcome,
            receipts_root,
            state_digest: self.state_digest,
            charters: self.charters_digest(),
        };
        self.outcome = outcome.digest();
        outcome
    }
}

/// A block whose transactions have run.
struct RanBlock {
    changes: BlockChanges,
    statistics: BlockStatistics,
    times: StageTimes,
    /// The last one had ended then; receipts may still be hashed in the background.
    ended: Instant,
    noting: Option<Noting>,
    /// Digest of the ids that were admitted, where the block was foreseen.
    requests: Option<Digest>,
}

impl BlockStatistics {
    /// Counts one more transaction.
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        self.transactions += 1;
        match outcome {
            Outcome::Committed(_) => self.committed += 1,
            Outcome::Aborted(_) => self.business_aborts += 1,
            Outcome::Conflict => self.conflict_aborts += 1,
            Outcome::Rejected(_) => self.rejected += 1,
        }
    }

    /// The counts of both.
    pub(crate) fn add(&mut self, other: &BlockStatistics) {
        self.transactions += other.transactions;
        self.committed += other.committed;
        self.business_aborts += other.business_aborts;
        self.conflict_aborts += other.conflict_aborts;
        self.rejected += other.rejected;
        self.reexecuted += other.reexecuted;
        self.executions += other.executions;
        self.steps += other.steps;
    }
}
