//! From the files of a node's folder to an executor at the ledger's tip: the newest good checkpoint, then the blocks
//! after it. Here it is decided what executes blocks; the pipeline knows no more than [`ExecuteBlock`].

use crate::attesting::OwnOutcome;
use crate::charters;
use crate::checkpoints::keep_checkpoint;
use crate::faults::FaultyEngine;
use crate::holders::Holders;
use crate::own_database::OwnDatabase;
use crate::own_execution::OwnExecution;
use crate::pipeline::ExecuteBlock;
use crate::row_history::KeptRows;
use crate::{Faults, NodeError};
use crypto::Digest;
use engine::{Engine, EngineError, ExecuteScripts, SplitRuns, Verifier};
use ledger::{BlockOutcome, BlockRecord, CheckpointStore, Ledger, LedgerError};
use state::{
    BlockEnd, Checkpoint, CheckpointError, CheckpointHeader, CheckpointProgress, LiveRequests, Manifest,
    Reopened, ResumePoint, Store, StoreError, Stores,
};
use std::io::Write;
use std::sync::Arc;
use types::{Charter, KnownVersions, OutcomeHeader, Pipeline};

/// An executor at the ledger's tip, and how it got there.
pub(crate) struct Recovered {
    /// Executes the blocks that come.
    pub(crate) executor: Box<dyn ExecuteBlock>,
    /// Height at which the state was taken up; 0 where everything was replayed.
    pub(crate) checkpoint: u64,
    /// Blocks executed again.
    pub(crate) replayed: u64,
    /// Checkpoints that could not be used, and why.
    pub(crate) refused: Vec<String>,
}

/// What is known of the states that recovery comes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Only states below this height are tried.
    pub(crate) below: u64,
    /// Behind this height the state is written down as a checkpoint, and has this root, if one is known.
    pub(crate) state: Option<(u64, Option<Digest>)>,
}

impl Known {
    /// Nothing: every checkpoint may be good.
    pub(crate) const NOTHING: Known = Known { below: u64::MAX, state: None };
}

/// So many blocks whose outcome nobody has certified are recorded again; there are not nearly as many before a ledger stands
/// still.
const UNCERTIFIED_BLOCKS_MAX: usize = 10_000;

/// What recovery works with.
pub(crate) struct Recovery {
    /// The founding charter.
    pub(crate) charter: Arc<Charter>,
    /// How validation is scheduled.
    pub(crate) pipeline: Pipeline,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) checkpoints: Arc<CheckpointStore>,
    /// Makes the store of the state.
    pub(crate) stores: Arc<dyn Stores>,
    /// Other nodes of the organisation that hold schemas.
    pub(crate) holders: Option<Arc<Holders>>,
    /// The history of rows, where it is kept.
    pub(crate) rows: Option<Arc<KeptRows>>,
    /// The organisation's own database, where there is one.
    pub(crate) own_database: Option<Arc<OwnDatabase>>,
    /// What executes scripts, if the node does not.
    pub(crate) own_execution: Option<Arc<dyn OwnExecution>>,
    /// Threads of the deterministic core.
    pub(crate) pool: Arc<rayon::ThreadPool>,
    /// What a test makes go wrong.
    pub(crate) faults: Option<Arc<Faults>>,
    /// The rules of execution that this program has.
    pub(crate) known_versions: KnownVersions,
}

/// Where a state can be taken up.
#[derive(Clone, Copy)]
enum Start {
    /// The store has it.
    Left(ResumePoint),
    /// The file of the checkpoint of this height has all rows.
    File(u64),
}

impl Start {
    fn height(self) -> u64 {
        match self {
            Start::Left(point) => point.header.height,
            Start::File(height) => height,
        }
    }
}

/// Why recovery does not begin at a state.
enum Refusal {
    /// Something is wrong with it. Another one may be better.
    Checkpoint(String),
    /// The store of the state has failed: no other checkpoint would help.
    Store(StoreError),
}

impl Refusal {
    fn of(error: NodeError) -> Refusal {
        match error.store_failure() {
            Some(failure) => Refusal::Store(failure.clone()),
            None => Refusal::of_checkpoint(error),
        }
    }

    fn of_checkpoint(reason: impl std::fmt::Display) -> Refusal {
        Refusal::Checkpoint(reason.to_string())
    }
}

impl From<CheckpointError> for Refusal {
    fn from(error: CheckpointError) -> Refusal {
        match error {
            CheckpointError::Store(failure) => Refusal::Store(failure),
            error => Refusal::of_checkpoint(error),
        }
    }
}

impl Recovery {
    /// The ledger's newest height; 0 where it is empty.
    pub(crate) fn tip(&self) -> u64 {
        self.ledger.tip().map_or(0, |(height, _)| height)
    }

    /// What has come from this checkpoint, or from the first block, to where the engine stands.
    fn recovered(&self, engine: Engine, checkpoint: u64, replayed: u64) -> Recovered {
        let executor: Box<dyn ExecuteBlock> = match &self.faults {
            None => Box::new(engine),
            Some(faults) => Box::new(FaultyEngine::new(engine, faults.clone(), self.charter.clone())),
        };
        Recovered { executor, checkpoint, replayed, refused: Vec::new() }
    }

    /// Loads the newest checkpoint that is whole and whose replay agrees with the ledger; falls back to older ones and at
    /// last to replaying every block. Where nothing agrees, outcomes that nobody has certified are recorded anew.
    ///
    /// # Errors
    /// [`NodeError::Diverged`] where even full replay differs from what is certified;
    /// [`NodeError::NoState`] where the ledger does not have every block; errors of the ledger's files, and of the store of the
    /// state.
    pub(crate) fn recover(&self) -> Result<Recovered, NodeError> {
        self.check_versions()?;
        self.stores.recorded(self.tip());
        let mut refused = Vec::new();
        let recovered = match self.begin_anywhere(&mut refused) {
            Ok(recovered) => recovered,
            Err(error) if error.store_failure().is_some() => return Err(error),
            Err(error) => {
                let repair = self.pool.install(|| self.record_outcomes_again())?;
                let Some(repair) = repair else { return Err(error) };
                refused.push(repair);
                self.begin_anywhere(&mut refused)?
            }
        };
        self.settle()?;
        Ok(Recovered { refused, ..recovered })
    }

    /// The state that was made or taken up last is the right one: what other states there are is of no use any more.
    pub(crate) fn settle(&self) -> Result<(), NodeError> {
        self.stores.settle()?;
        self.stores.keep_checkpoints(&self.checkpoints.newest())?;
        Ok(())
    }

    /// A node that would stop at the first block behind its ledger, or whose ledger a newer program has written, does not
    /// begin to execute blocks again.
    ///
    /// # Errors
    /// [`EngineError::UnknownVersion`].
    fn check_versions(&self) -> Result<(), NodeError> {
        let charters = charters::named(&self.ledger, &self.charter)?;
        let next = self.tip() + 1;
        match self.known_versions.unknown(&charters).filter(|unknown| unknown.first <= next) {
            Some(unknown) => Err(EngineError::UnknownVersion(unknown).into()),
            None => Ok(()),
        }
    }

    fn begin_anywhere(&self, refused: &mut Vec<String>) -> Result<Recovered, NodeError> {
        match self.begin_at_checkpoint(&Known::NOTHING, refused)? {
            Some(recovered) => Ok(recovered),
            None => self.begin_at_start(&Known::NOTHING),
        }
    }

    /// Records again what blocks come to, from the first on whose recorded outcome is not what executing it gives: a node
    /// whose memory was damaged may have ended before it was told. Says what was done; `None`: the record agrees.
    ///
    /// What comes out is no more than this node's opinion, and the others' attestations are held against it.
    ///
    /// # Errors
    /// [`NodeError::Diverged`] where a quorum has certified something else: then this program is another one, or the blocks
    /// are.
    fn record_outcomes_again(&self) -> Result<Option<String>, NodeError> {
        let first = self.ledger.executable_from();
        let mut engine = match (first, self.starting_points()?.last()) {
            (1, _) => Engine::founded(self.charter.clone(), &*self.stores, self.known_versions)?,
            (_, None) => return Ok(None),
            // The oldest has seen least.
            (_, Some(oldest)) => match self.take_up(*oldest) {
                Ok(engine) => engine,
                Err(Refusal::Checkpoint(_)) => return Ok(None),
                Err(Refusal::Store(failure)) => return Err(failure.into()),
            },
        };
        engine = self.executing(engine);
        let charters = charters::named(&self.ledger, &self.charter)?;
        let mut anew: Vec<BlockRecord> = Vec::new();
        for record in self.ledger.blocks_from(engine.height() + 1) {
            let BlockRecord { block, certificate, outcome } = record?;
            let verified = match anew.is_empty() {
                true => self.verifier.trust_block(&charters, &block, &outcome.receipts),
                false => self.verifier.verify_block(&charters, &block),
            };
            let executed = engine.execute(&verified)?;
            if anew.is_empty() && outcome.header == executed.outcome {
                continue;
            }
            let differs = |height, expected: &OutcomeHeader, found: &OutcomeHeader| NodeError::Diverged {
                height,
                expected: expected.state_digest,
                found: found.state_digest,
            };
            if anew.len() == UNCERTIFIED_BLOCKS_MAX {
                return Err(differs(block.header.height, &outcome.header, &executed.outcome));
            }
            if let (Some(certified), Some(first)) = (&block.attested.outcome, anew.first()) {
                let OutcomeHeader { height, .. } = certified.statement;
                let position = height.checked_sub(first.block.header.height);
                let found = position.and_then(|position| anew.get(position as usize));
                if let Some(found) = found.filter(|found| found.outcome.header != certified.statement) {
                    return Err(differs(height, &certified.statement, &found.outcome.header));
                }
            }
            let outcome = BlockOutcome {
                receipts: executed.receipts,
                digest: executed.digest,
                header: executed.outcome,
            };
            anew.push(BlockRecord { block, certificate, outcome });
        }
        let (Some(from), Some(to)) = (anew.first(), anew.last()) else { return Ok(None) };
        let (from, to) = (from.block.header.height, to.block.header.height);
        self.ledger.truncate_after(from - 1)?;
        self.checkpoints.remove_after(from - 1)?;
        self.stores.remove_checkpoints_behind(from - 1)?;
        if let Some(rows) = &self.rows {
            rows.take_back(from - 1)?;
        }
        if let Some(own) = &self.own_database {
            own.take_back(from - 1)?;
        }
        anew.iter().try_for_each(|record| self.ledger.append(record))?;
        self.ledger.flush()?;
        Ok(Some(format!(
            "blocks {from} to {to} do not come to what was recorded of them, which nobody has certified: executed and recorded \
             again"
        )))
    }

    /// From the newest state that may be good, is whole, and whose replay agrees with the ledger and with what is known.
    /// `refused`: why others do not.
    ///
    /// # Errors
    /// It cannot be said what the store has left.
    pub(crate) fn begin_at_checkpoint(
        &self,
        known: &Known,
        refused: &mut Vec<String>,
    ) -> Result<Option<Recovered>, StoreError> {
        let tip = self.tip();
        for start in self.starting_points()?.into_iter().filter(|start| start.height() < known.below) {
            let height = start.height();
            if height > tip {
                refused.push(format!("the state of height {height} lies above the ledger's tip {tip}"));
                continue;
            }
            if let Some(rows) = self.rows.as_ref().filter(|rows| rows.tip() < height) {
                let known = rows.tip();
                refused.push(format!(
                    "the state of height {height} lies above height {known}, where the history of rows ends"
                ));
                continue;
            }
            let attempt = self.pool.install(|| {
                let engine = self.take_up(start)?;
                self.replay(engine, known).map_err(Refusal::of)
            });
            match attempt {
                Ok((engine, replayed)) => return Ok(Some(self.recovered(engine, height, replayed))),
                Err(Refusal::Checkpoint(reason)) => {
                    refused.push(format!("the state of height {height}: {reason}"))
                }
                // What the store has left may be damaged; a store that begins anew may be well.
                Err(Refusal::Store(failure)) => {
                    refused.push(format!("the state of height {height}: {failure}"))
                }
            }
        }
        Ok(None)
    }

    /// Where a state can be taken up, the newest first: what the store has left, and checkpoints that have all rows themselves.
    fn starting_points(&self) -> Result<Vec<Start>, StoreError> {
        let mut starts: Vec<Start> = self.checkpoints.newest().into_iter().map(Start::File).collect();
        for point in self.stores.left()? {
            // What it has itself is there more quickly.
            starts.retain(|start| start.height() != point.header.height);
            starts.push(Start::Left(point));
        }
        starts.sort_by_key(|start| std::cmp::Reverse(start.height()));
        Ok(starts)
    }

    /// The engine that stands at a state which says what the ledger has recorded.
    fn take_up(&self, start: Start) -> Result<Engine, Refusal> {
        let height = start.height();
        let recorded = self.ledger.outcome_header(height).map_err(Refusal::of_checkpoint)?;
        let Some(outcome) = recorded else {
            return Err(Refusal::of_checkpoint(format_args!("the ledger has no block {height}")));
        };
        let (state_digest, outcome) = (outcome.state_digest, outcome.digest());
        let expected = CheckpointHeader { ledger: self.charter.ledger(), height, state_digest, outcome };
        let check = |found: &CheckpointHeader| match *found == expected {
            true => Ok(()),
            false => {
                Err(Refusal::of_checkpoint(format_args!("expected the state {expected:?}, found {found:?}")))
            }
        };
        let (state, progress) = match start {
            Start::Left(point) => {
                check(&point.header)?;
                let reopened = self.stores.reopen(height).map_err(Refusal::Store)?;
                let Some(Reopened { point, state, live }) = reopened else {
                    return Err(Refusal::of_checkpoint("the store does not have it any more"));
                };
                ((state, live), point.progress)
            }
            Start::File(height) => {
                let mut reader = self.checkpoints.read(height).map_err(Refusal::of_checkpoint)?;
                let checkpoint = state::read_checkpoint(&mut reader, &*self.stores)?;
                reader.finish().map_err(Refusal::of_checkpoint)?;
                check(&checkpoint.header)?;
                ((checkpoint.state, checkpoint.live), CheckpointProgress::at(height))
            }
        };
        if let Start::File(_) = start {
            end_at_checkpoint(&expected, &state).map_err(Refusal::Store)?;
        }
        let engine =
            Engine::continued(self.charter.clone(), (&expected, progress), state, self.known_versions);
        engine.map_err(|error| Refusal::of(error.into()))
    }

    /// From the first block.
    ///
    /// # Errors
    /// As [`Recovery::recover`].
    pub(crate) fn begin_at_start(&self, known: &Known) -> Result<Recovered, NodeError> {
        let first = self.ledger.executable_from();
        if first > 1 {
            return Err(NodeError::NoState { first });
        }
        let engine = Engine::founded(self.charter.clone(), &*self.stores, self.known_versions)?;
        let (engine, replayed) = self.pool.install(|| self.replay(engine, known))?;
        Ok(self.recovered(engine, 0, replayed))
    }

    /// From the state of a checkpoint of other nodes.
    ///
    /// # Errors
    /// As [`Recovery::recover`].
    pub(crate) fn begin_with(&self, checkpoint: Checkpoint) -> Result<Recovered, NodeError> {
        let Checkpoint { header, state, live } = checkpoint;
        let at = (&header, CheckpointProgress::at(header.height));
        let engine = Engine::continued(self.charter.clone(), at, (state, live), self.known_versions)?;
        let (engine, replayed) = self.pool.install(|| self.replay(engine, &Known::NOTHING))?;
        Ok(self.recovered(engine, header.height, replayed))
    }

    /// Scripts are executed by whatever the organisation executes them with, and transactions where their rows are.
    fn executing(&self, engine: Engine) -> Engine {
        let splitter = self.holders.as_ref().map(|holders| holders.splitter.clone() as Arc<dyn SplitRuns>);
        let scripts = self.own_execution.clone().map(|execution| execution as Arc<dyn ExecuteScripts>);
        engine.executing(scripts).splitting(splitter)
    }

    /// Executes the blocks that the ledger has above the engine's height and compares every state digest.
    ///
    /// # Errors
    /// As [`Recovery::recover`], and [`NodeError::State`] where the state is not the one that is known.
    fn replay(&self, engine: Engine, known: &Known) -> Result<(Engine, u64), NodeError> {
        let engine = self.executing(engine).with_pipeline(self.pipeline)?;
        let mut engine = if self.rows.is_some() { engine.noting_row_history() } else { engine };
        let charters = charters::named(&self.ledger, &self.charter)?;
        let mut replayed = 0;
        for record in self.ledger.blocks_from(engine.height() + 1) {
            let record = record?;
            let block = self.verifier.trust_block(&charters, &record.block, &record.outcome.receipts);
            let executed = engine.execute(&block)?;
            if record.outcome.header != executed.outcome {
                let (expected, found) = (record.outcome.header.state_digest, executed.outcome.state_digest);
                return Err(NodeError::Diverged { height: block.header.height, expected, found });
            }
            if let (Some(rows), Some(history)) = (&self.rows, &executed.row_history) {
                rows.record(block.header.height, history)?;
            }
            if let Some((_, root)) = known.state.filter(|(height, _)| *height == engine.height()) {
                check_state(&engine, root, (&self.checkpoints, &*self.stores))?;
            }
            replayed += 1;
        }
        Ok((engine, replayed))
    }
}

/// The store hears that a state was put together which is that of a checkpoint.
pub(crate) fn end_at_checkpoint(
    header: &CheckpointHeader,
    (state, live): &(Arc<dyn Store>, LiveRequests),
) -> Result<(), StoreError> {
    let point = ResumePoint { header: *header, progress: CheckpointProgress::at(header.height) };
    let admitted = live.content().iter().collect();
    state.end_block(BlockEnd { point, admitted, is_resumable: true, is_checkpoint: true, is_due: false })
}

/// Whoever keeps a state has handed its store over to nobody, unless the node ends.
pub(crate) fn closed_meanwhile() -> StoreError {
    StoreError::write("the state", "its store was closed meanwhile")
}

/// Compares the root of the state, and all rows with its tree, which is kept up and does not show that a row has changed by itself;
/// then writes the checkpoint.
fn check_state(
    engine: &Engine,
    root: Option<Digest>,
    (checkpoints, stores): (&CheckpointStore, &dyn Stores),
) -> Result<(), NodeError> {
    let (height, state) = (engine.height(), engine.state());
    let (header, live) = (engine.checkpoint_header(), engine.live().content());
    let kept = keep_checkpoint(&header, state, state.snapshot(), live)?.ok_or_else(closed_meanwhile)?;
    let found = kept.tree().root();
    if let Some(expected) = root.filter(|expected| *expected != found) {
        stores.remove_checkpoints_behind(height - 1)?;
        return Err(NodeError::State { height, expected, found });
    }
    if let Some(node) = kept.find_damage(0..kept.tree().nodes().len())? {
        stores.remove_checkpoints_behind(height - 1)?;
        let table = kept.table_name(node.table());
        let what = format_args!("rows of it are not those that its tree was made of at height {height}");
        return Err(StoreError::read(table, what).into());
    }
    let manifest = Manifest { header, root: found };
    checkpoints.write(height, |writer| writer.write_all(&manifest.to_bytes()))?;
    Ok(())
}

/// The outcomes of recorded blocks that are not certified by blocks, and the newest that is; in front of them
/// the height up to which outcomes are certified: the newest certificate in a block that the record agrees with.
///
/// # Errors
/// The ledger cannot be read.
pub(crate) fn attestable(ledger: &Ledger) -> Result<(u64, Vec<OwnOutcome>), NodeError> {
    let tip = ledger.tip().map_or(0, |(height, _)| height);
    // The block in front of the first one is certified with the state behind it.
    let first = ledger.first_height();
    let mut certified = first - 1;
    for height in (first..=tip).rev() {
        let header = ledger.header(height)?;
        if header.is_none_or(|header| header.certified_height == 0) {
            break;
        }
        let Some(certificate) = ledger.certificates(height)?.and_then(|(attested, _)| attested.outcome)
        else {
            continue;
        };
        if certificate.statement.height < first {
            break;
        }
        if ledger.outcome_header(certificate.statement.height)? == Some(certificate.statement.clone()) {
            certified = certificate.statement.height;
            break;
        }
    }
    let own = |record: Result<BlockRecord, LedgerError>| {
        let BlockRecord { block, outcome, .. } = record?;
        Ok(OwnOutcome { outcome: outcome.header, digest: outcome.digest, attested: block.attested })
    };
    let outcomes: Result<Vec<_>, NodeError> = ledger.blocks_from(certified.max(first)).map(own).collect();
    Ok((certified, outcomes?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::SecretKey;
    use engine::VerifiedBlock;
    use state::conformance::{FailingStores, Failures, Operation};
    use types::{Attested, BlockHeader, Identity, Organisation, Outcome, Payload};

    /// An engine behind one block, which creates a table.
    fn engine(stores: &dyn Stores) -> Engine {
        let (root, node) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
        let mut charter = Charter::with_defaults("test", 1);
        charter.governance = "any".into();
        charter.endorsement.policy = "one".into();
        charter.organisations.push(Organisation {
            name: "one".into(),
            root_key: root.public_key(),
            node_key: node.public_key(),
            address: String::new(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        let ledger = charter.ledger();
        let mut engine = Engine::new(Arc::new(charter), stores).expect("a charter");
        let sql = "CREATE TABLE t (id bigint PRIMARY KEY)".to_string();
        let payload = Payload::Script { sql, parameters: Vec::new() };
        let transaction = Identity::issue(ledger, &root, 0).sign(payload, 9);
        let header = BlockHeader {
            ledger,
            height: 1,
            timestamp_ms: 1,
            previous: ledger,
            transactions_root: Digest::ZERO,
            transactions: 1,
            proposer: 0,
            certified_height: 0,
            attested: Attested::default().digest(),
            charters: ledger,
        };
        let transactions = vec![Ok(Arc::new(transaction.into()))];
        let executed = engine.execute(&VerifiedBlock { digest: header.digest(), header, transactions });
        let receipts = executed.expect("the first block").receipts;
        assert!(matches!(receipts[0].outcome, Outcome::Committed(_)), "{receipts:?}");
        engine
    }

    /// Where it is taken for the checkpoint's fault, a node that heals tries older and older ones.
    #[test]
    fn a_state_that_cannot_be_read_is_no_fault_of_the_checkpoint_that_is_written() {
        let failures = Arc::new(Failures::default());
        let stores = FailingStores::new(Arc::new(memory::Memory), failures.clone());
        let engine = engine(&stores);
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = engine.checkpoint_header().ledger;
        let checkpoints = CheckpointStore::open(folder.path().join("checkpoints"), ledger);
        let checkpoints = checkpoints.expect("an empty folder");
        failures.fail(Operation::Read, 0);
        let error =
            check_state(&engine, None, (&checkpoints, &stores)).expect_err("the state cannot be read");
        assert!(failures.have_struck() && error.store_failure().is_some(), "{error}");
        assert!(matches!(Refusal::of(error), Refusal::Store(_)));
        failures.mend();
        check_state(&engine, None, (&checkpoints, &stores)).expect("everything works again");
    }
}
