//! Reads the queue of verified blocks; fills the queue of `record`. Owns what executes them.

use super::execute_block::ExecuteBlock;
use super::verify::Verified;
use super::{Executed, QUEUE_BLOCKS};
use crate::NodeError;
use crate::attesting::{Input, OwnOutcome};
use crate::charters::Amendments;
use crate::checkpoints::Checkpoints;
use crate::endorsing::{Proposer, RecentStates};
use crate::key_watch::KeyWatch;
use crate::metrics::{CHECKPOINT_SNAPSHOT, EXECUTE, NodeMetrics};
use crate::own_database::OwnChanges;
use crate::private::{PrivateSchemas, Shown};
use crate::published::Published;
use crossbeam_channel::{Receiver, Sender};
use engine::{ExecutedBlock, Verifier};
use ledger::{BlockOutcome, BlockRecord};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// What the stage needs.
#[derive(Clone)]
pub(crate) struct ExecuteStage {
    /// Threads of the deterministic core.
    pub(crate) pool: Arc<rayon::ThreadPool>,
    pub(crate) verifier: Arc<Verifier>,
    /// Who hears of amended charters.
    pub(crate) amendments: Amendments,
    /// Says when keys expire.
    pub(crate) keys: Arc<KeyWatch>,
    /// Where outcomes are attested; `None` where they are not, which is for measuring only.
    pub(crate) attest: Option<Sender<Input>>,
    pub(crate) published: Arc<Published>,
    /// Schemas that the organisation is a member of.
    pub(crate) private: Option<Arc<PrivateSchemas>>,
    /// Where transactions are executed before they are ordered: the states that they are executed on.
    pub(crate) states: Option<Arc<RecentStates>>,
    /// What this node does as proposer, if not what everybody does.
    pub(crate) proposer: Option<Arc<Proposer>>,
    /// What blocks did is kept for a database of the organisation's own.
    pub(crate) notes_changes: bool,
    pub(crate) metrics: Arc<NodeMetrics>,
}

/// Executes blocks, and looks ahead at those that wait.
pub(super) struct Executing {
    stage: ExecuteStage,
    executor: Box<dyn ExecuteBlock>,
    checkpoints: Checkpoints,
    waiting: VecDeque<Verified>,
    /// Of those that wait, how many the executor has seen.
    foreseen: usize,
}

impl ExecuteStage {
    pub(super) fn with(&self, executor: Box<dyn ExecuteBlock>, checkpoints: Checkpoints) -> Executing {
        Executing { stage: self.clone(), executor, checkpoints, waiting: VecDeque::new(), foreseen: 0 }
    }
}

impl Executing {
    /// A block waits to be executed.
    pub(super) fn push(&mut self, verified: Verified) {
        self.waiting.push_back(verified);
    }

    /// Executes the first block that waits, and hands to others what it came to.
    pub(super) fn step(&mut self) -> Result<Option<Executed>, NodeError> {
        if let Some(failure) = self.stage.published.store_health().failure() {
            return Err(failure.into());
        }
        let start = Instant::now();
        self.foresee();
        let Some(block) = self.waiting.pop_front() else {
            return Ok(None);
        };
        self.foreseen = self.foreseen.saturating_sub(1);
        let before = self.stage.notes_changes.then(|| self.executor.snapshot());
        let executed = self.stage.pool.install(|| self.executor.execute(&block.verified));
        let executed = executed.inspect_err(|error| self.stage.published.note_store_failure(error))?;
        self.tell(&block, &executed);
        self.stage.metrics.worked_on(EXECUTE, [block.block.header.height], start);
        self.request_checkpoint();
        let ExecutedBlock { receipts, digest, outcome: header, row_history, changes, .. } = executed;
        let own_changes = before.map(|before| OwnChanges::new(before, self.executor.snapshot(), changes));
        let Verified { block, certificate, .. } = block;
        let outcome = BlockOutcome { receipts, digest, header };
        let record = BlockRecord { block, certificate, outcome };
        Ok(Some(Executed { record, row_history, own_changes }))
    }

    /// Shows the executor as many of the blocks that wait as it likes to see.
    fn foresee(&mut self) {
        let Executing { stage, executor, waiting, foreseen, .. } = self;
        stage.pool.install(|| {
            while waiting.get(*foreseen).is_some_and(|next| executor.foresee(&next.verified)) {
                *foreseen += 1;
            }
        });
    }

    /// Everybody who waits for it hears what the block came to, and sees the state behind it.
    fn tell(&self, Verified { block, verified, .. }: &Verified, executed: &ExecutedBlock) {
        let ExecuteStage {
            verifier,
            amendments,
            keys,
            attest,
            published,
            private,
            states,
            proposer,
            metrics,
            ..
        } = &self.stage;
        let executor = &*self.executor;
        // Before the outcome that names them.
        amendments.tell(executor);
        keys.executed(&block.header);
        if let Some(attest) = attest {
            // First of all: the others wait for it, and it takes its time beside everything below.
            let (outcome, digest) = (executed.outcome.clone(), executed.digest.clone());
            let attested = block.attested.clone();
            let _ = attest.send(Input::Executed(Box::new(OwnOutcome { outcome, digest, attested })));
        }
        verifier.forget(verified);
        let (height, ledger) = (executor.height(), (executor.snapshot(), executor.library().clone()));
        let publish = |(snapshot, library): Shown| published.applied(snapshot, &library, height);
        match private {
            Some(private) => private.follow(verified, &executed.receipts, ledger, publish),
            None => publish(ledger),
        }
        if let Some(proposer) = proposer {
            proposer.validated(verified, executed);
        }
        if let Some(states) = states {
            states.push(executor.endorsement_basis(block.header.timestamp_ms));
        }
        metrics.executed(executed);
    }

    fn request_checkpoint(&self) {
        let start = Instant::now();
        if let Some(request) = self.executor.checkpoint() {
            self.checkpoints.request(request);
            self.stage.metrics.worked(CHECKPOINT_SNAPSHOT, start.elapsed());
        }
    }

    /// Works until the stage before or behind it has ended.
    pub(super) fn run(
        mut self,
        verified: &Receiver<Verified>,
        executed: &Sender<Executed>,
    ) -> Result<(), NodeError> {
        loop {
            if self.waiting.is_empty() {
                let Ok(next) = verified.recv() else { return Ok(()) };
                self.push(next);
            }
            let room = QUEUE_BLOCKS.saturating_sub(self.waiting.len());
            self.waiting.extend(verified.try_iter().take(room));
            self.stage.metrics.waiting(EXECUTE, self.waiting.len() - 1 + verified.len());
            let Some(done) = self.step()? else { continue };
            if executed.send(done).is_err() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::execute_block::ExecutedState;
    use super::*;
    use crate::attesting::Certified;
    use crate::charters::DecidedCharters;
    use crate::checkpoints::{CheckpointParts, CheckpointRequest};
    use bytes::Bytes;
    use crossbeam_channel::bounded;
    use crypto::Digest;
    use engine::{BlockStatistics, EndorsementBasis, Engine, StageTimes, VerifiedBlock};
    use ledger::{CheckpointStore, Ledger};
    use ordering::CertifyOutcomes;
    use parking_lot::Mutex;
    use sql::Library;
    use state::{Snapshot, StoreError};
    use std::path::Path;
    use types::{
        Attested, Block, BlockDigest, BlockHeader, Charter, Charters, CheckpointCertificate, KnownVersions,
        OutcomeCertificate, OutcomeHeader,
    };

    type Calls = Arc<Mutex<Vec<(&'static str, u64)>>>;

    /// Nothing of Entente's executes here: outcomes are made up, as if somebody else's database had come to them.
    struct Foreign {
        calls: Calls,
        height: u64,
        foreseen: u64,
        /// Shows an empty state.
        shown: Engine,
        /// Its store fails once.
        failure: Option<StoreError>,
    }

    impl ExecuteBlock for Foreign {
        fn execute(&mut self, block: &VerifiedBlock) -> Result<ExecutedBlock, NodeError> {
            let BlockHeader { ledger, height, .. } = block.header;
            self.calls.lock().push(("execute", height));
            if let Some(failure) = self.failure.take() {
                return Err(failure.into());
            }
            self.height = height;
            Ok(ExecutedBlock {
                receipts: Vec::new(),
                changes: Vec::new(),
                digest: BlockDigest::default(),
                outcome: OutcomeHeader {
                    ledger,
                    height,
                    block: block.digest,
                    previous: ledger,
                    receipts_root: Digest::ZERO,
                    state_digest: self.state_digest(),
                    charters: ledger,
                },
                row_history: None,
                statistics: BlockStatistics::default(),
                times: StageTimes::default(),
            })
        }

        fn foresee(&mut self, block: &VerifiedBlock) -> bool {
            // One block ahead.
            let next = self.foreseen + 1;
            let may = block.header.height == next && next <= self.height + 1;
            if may {
                self.foreseen = next;
                self.calls.lock().push(("foresee", next));
            }
            may
        }
    }

    impl ExecutedState for Foreign {
        fn height(&self) -> u64 {
            self.height
        }

        fn state_digest(&self) -> Digest {
            Digest([self.height as u8; 32])
        }

        fn library(&self) -> &Arc<Library> {
            self.shown.library()
        }

        fn snapshot(&self) -> Arc<dyn Snapshot> {
            self.shown.snapshot()
        }

        fn endorsement_basis(&self, timestamp_ms: u64) -> EndorsementBasis {
            self.shown.endorsement_basis(timestamp_ms)
        }

        fn checkpoint(&self) -> Option<CheckpointRequest> {
            self.calls.lock().push(("checkpoint?", self.height));
            None
        }
    }

    /// Nobody certifies anything.
    struct Nobody(Charters);

    impl CertifyOutcomes for Nobody {
        fn certify(&self, _: OutcomeCertificate) {}

        fn certify_checkpoint(&self, _: CheckpointCertificate) {}

        fn decided(&self, _: Charters) {}

        fn charters(&self) -> Charters {
            self.0.clone()
        }

        fn follow(&self, _: &Charters) {}
    }

    fn of_one_member() -> Charter {
        let mut charter = Charter::with_defaults("test", 1);
        charter.endorsement.policy = "one".into();
        charter.organisations.push(types::Organisation {
            name: "one".into(),
            root_key: crypto::SecretKey::from_bytes([1; 32]).public_key(),
            node_key: crypto::SecretKey::from_bytes([2; 32]).public_key(),
            address: String::new(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        charter
    }

    fn block(charter: &Charter, height: u64) -> Verified {
        let header = BlockHeader {
            ledger: charter.ledger(),
            height,
            timestamp_ms: height,
            previous: Digest::ZERO,
            transactions_root: Digest::ZERO,
            transactions: 0,
            proposer: 0,
            certified_height: 0,
            attested: Attested::default().digest(),
            charters: charter.ledger(),
        };
        let verified =
            VerifiedBlock { digest: header.digest(), header: header.clone(), transactions: Vec::new() };
        let block = Block { header, attested: Attested::default(), transactions: Vec::new() };
        Verified { block, certificate: Bytes::from_static(b"final"), verified }
    }

    /// A stage on which blocks of a ledger of one member are executed, and what it attests.
    fn executing(
        folder: &Path,
        charter: &Arc<Charter>,
        calls: &Calls,
        failure: Option<StoreError>,
    ) -> (Executing, Receiver<Input>) {
        let ledger = Arc::new(Ledger::open(folder.join("ledger"), charter.ledger()).expect("empty").0);
        let shown = Engine::new(charter.clone(), &memory::Memory).expect("an engine");
        let charters =
            Arc::new(DecidedCharters::of(&shown, Charters::new(charter.clone()), KnownVersions::default()));
        let (attest, attested) = bounded(8);
        let certified = Arc::new(Certified::new(0, 1));
        let (snapshot, library) = (shown.snapshot(), shown.library().clone());
        let published =
            Published::new(snapshot, library, (4, None), 0, Digest::ZERO, certified, Arc::default());
        let published = Arc::new(published);
        let metrics = Arc::new(NodeMetrics::new());
        let stage = ExecuteStage {
            private: None,
            pool: Arc::new(crate::core::threads("test", 1).expect("a thread")),
            verifier: Arc::new(Verifier::new(charter)),
            amendments: Amendments {
                decided: charters.clone(),
                certifying: Arc::new(Nobody(Charters::new(charter.clone()))),
                attest: None,
            },
            keys: Arc::new(KeyWatch::new(ledger, charters)),
            attest: Some(attest),
            published: published.clone(),
            states: None,
            proposer: None,
            notes_changes: false,
            metrics: metrics.clone(),
        };
        let store = CheckpointStore::open(folder.join("checkpoints"), charter.ledger());
        let store = Arc::new(store.expect("an empty folder"));
        let parts =
            CheckpointParts { store, stores: Arc::new(memory::Memory), published, metrics, attest: None };
        let (checkpoints, _writer) = Checkpoints::new(parts).expect("a thread");
        let foreign = Foreign { calls: calls.clone(), height: 0, foreseen: 0, shown, failure };
        (stage.with(Box::new(foreign), checkpoints), attested)
    }

    #[test]
    fn whatever_executes_blocks_is_shown_those_that_wait_and_its_outcomes_are_attested_and_recorded() {
        let folder = tempfile::tempdir().expect("a folder");
        let (charter, calls) = (Arc::new(of_one_member()), Calls::default());
        let (mut executing, attested) = executing(folder.path(), &charter, &calls, None);
        (1..=3).for_each(|height| executing.push(block(&charter, height)));
        for height in 1..=3 {
            let Executed { record, .. } = executing.step().expect("it executes").expect("a block waits");
            assert_eq!((record.block.header.height, &record.certificate[..]), (height, &b"final"[..]));
            let Ok(Input::Executed(own)) = attested.try_recv() else { panic!("no outcome of {height}") };
            assert_eq!(own.outcome, record.outcome.header);
            assert_eq!(own.outcome.state_digest, Digest([height as u8; 32]));
        }
        assert!(executing.step().expect("nothing to do").is_none());
        let each = |height| [("foresee", height), ("execute", height), ("checkpoint?", height)];
        let expected: Vec<_> = (1..=3).flat_map(each).collect();
        assert_eq!(*calls.lock(), expected, "each is shown once, before its turn");
    }

    #[test]
    fn nothing_is_executed_or_attested_behind_a_failure_of_the_store() {
        let folder = tempfile::tempdir().expect("a folder");
        let (charter, calls) = (Arc::new(of_one_member()), Calls::default());
        let failure = Some(StoreError::read("rows", "injected"));
        let (mut executing, attested) = executing(folder.path(), &charter, &calls, failure);
        (1..=3).for_each(|height| executing.push(block(&charter, height)));
        for _ in 0..2 {
            // What executes would go on, as one does that was made again.
            let error = executing.step().err().expect("the store has failed");
            assert!(error.store_failure().is_some(), "{error}");
        }
        assert_eq!(calls.lock().iter().filter(|(call, _)| *call == "execute").count(), 1);
        assert!(attested.try_recv().is_err());
    }
}
