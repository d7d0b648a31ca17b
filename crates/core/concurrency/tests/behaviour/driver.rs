//! Runs batches through a protocol.

use concurrency::checker::{CheckedBatch, RecordingTransaction, Verified, Violation, check};
use concurrency::{
    Batch, BatchResult, BatchStatistics, Consistency, Granularity, History, OnConflict, Protocol,
    ProtocolOptions, Snapshots, TransactionOutcome, protocol,
};
use state::{PlainState, Simulate, Snapshot};
use std::sync::Arc;

/// Without inter-block parallelism.
pub const STEP_BY_STEP: ProtocolOptions = ProtocolOptions {
    consistency: Consistency::Strict,
    on_conflict: OnConflict::Reexecute,
    granularity: Granularity::Column,
    inter_block: false,
    reordering: true,
    coalescing: true,
    serial_threshold_percent: 101,
};

/// A protocol with the state it works on.
pub struct Driver {
    pub protocol: Box<dyn Protocol>,
    pub state: PlainState,
    height: u64,
}

struct Newest<'a>(&'a PlainState);

impl Snapshots for Newest<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        Arc::new(self.0.clone())
    }
}

impl Driver {
    pub fn new(id: &str, state: PlainState) -> Driver {
        Driver::with(id, STEP_BY_STEP, state)
    }

    pub fn with(id: &str, options: ProtocolOptions, state: PlainState) -> Driver {
        Driver { protocol: protocol(id, options).unwrap(), state, height: 0 }
    }

    pub fn run(&mut self, transactions: Vec<Arc<dyn Simulate>>) -> BatchResult {
        self.run_limited(transactions, u64::MAX, false)
    }

    pub fn run_limited(
        &mut self,
        transactions: Vec<Arc<dyn Simulate>>,
        steps_left: u64,
        forget: bool,
    ) -> BatchResult {
        self.offer(transactions, steps_left, forget);
        let result = self.poll().unwrap();
        assert!(self.protocol.poll(&Newest(&self.state)).unwrap().is_none(), "one batch, one result");
        result
    }

    fn offer(&mut self, transactions: Vec<Arc<dyn Simulate>>, steps_left: u64, forget: bool) {
        self.height += 1;
        self.protocol.offer(Batch {
            height: self.height,
            number: 0,
            transactions,
            steps_left,
            forget,
            oldest_snapshot: 0,
        });
    }

    fn poll(&mut self) -> Option<BatchResult> {
        let result = self.protocol.poll(&Newest(&self.state)).unwrap()?;
        result.changes.iter().for_each(|change| self.state.apply(change));
        Some(result)
    }

    /// Offers as many batches ahead as the protocol likes.
    pub fn run_all(&mut self, batches: Vec<Vec<Arc<dyn Simulate>>>) -> Vec<BatchResult> {
        let mut results = Vec::new();
        let count = batches.len();
        let mut batches = batches.into_iter();
        let ahead = self.protocol.lookahead();
        for batch in batches.by_ref().take(ahead) {
            self.offer(batch, u64::MAX, false);
        }
        while results.len() < count {
            results.push(self.poll().unwrap());
            if let Some(batch) = batches.next() {
                self.offer(batch, u64::MAX, false);
            }
        }
        results
    }
}

/// A whole run with everything that its transactions saw.
pub struct Recorded {
    pub initial: PlainState,
    pub batches: Vec<(Vec<Arc<RecordingTransaction>>, BatchResult)>,
    pub state: PlainState,
    /// The first executions in a batch did not see the batch before.
    inter_block: bool,
}

impl Recorded {
    /// Each batch on the state that the one before left.
    pub fn run<T: Simulate + Clone + 'static>(
        id: &str,
        initial: &PlainState,
        batches: &[Vec<T>],
    ) -> Recorded {
        Recorded::run_with(id, STEP_BY_STEP, initial, batches)
    }

    pub fn run_with<T: Simulate + Clone + 'static>(
        id: &str,
        options: ProtocolOptions,
        initial: &PlainState,
        batches: &[Vec<T>],
    ) -> Recorded {
        let recorded: Vec<Vec<Arc<RecordingTransaction>>> = batches
            .iter()
            .map(|batch| batch.iter().map(|one| RecordingTransaction::new(Arc::new(one.clone()))).collect())
            .collect();
        let mut driver = Driver::with(id, options, initial.clone());
        let offered = |batch: &Vec<Arc<RecordingTransaction>>| {
            batch.iter().map(|one| one.clone() as Arc<dyn Simulate>).collect()
        };
        let results = driver.run_all(recorded.iter().map(offered).collect());
        Recorded {
            initial: initial.clone(),
            batches: recorded.into_iter().zip(results).collect(),
            state: driver.state,
            inter_block: options.inter_block && driver.protocol.lookahead() > 1,
        }
    }

    /// As [`Recorded::run_with`], with what a conflict stopped at the head of the next batch, until nothing is left.
    pub fn run_until_done<T: Simulate + Clone + 'static>(
        id: &str,
        options: ProtocolOptions,
        initial: &PlainState,
        batches: &[Vec<T>],
    ) -> Recorded {
        let mut driver = Driver::with(id, options, initial.clone());
        let mut done: Vec<(Vec<Arc<RecordingTransaction>>, BatchResult)> = Vec::new();
        let mut again: Vec<T> = Vec::new();
        let mut new = batches.iter();
        loop {
            let next = new.next();
            if next.is_none() && again.is_empty() {
                break;
            }
            let batch: Vec<T> = again.iter().chain(next.into_iter().flatten()).cloned().collect();
            let recorded: Vec<Arc<RecordingTransaction>> =
                batch.iter().map(|one| RecordingTransaction::new(Arc::new(one.clone()))).collect();
            let result = driver.run(recorded.iter().map(|one| one.clone() as Arc<dyn Simulate>).collect());
            let given_up = |outcome: &TransactionOutcome| *outcome == TransactionOutcome::Conflict;
            assert!(!result.outcomes.first().is_some_and(given_up), "the first of a batch always commits");
            let stopped = batch.into_iter().zip(&result.outcomes).filter(|(_, outcome)| given_up(outcome));
            again = stopped.map(|(one, _)| one).collect();
            done.push((recorded, result));
        }
        let inter_block = options.inter_block && driver.protocol.lookahead() > 1;
        Recorded { initial: initial.clone(), batches: done, state: driver.state, inter_block }
    }

    /// Without the transactions that a conflict stopped, as if they had never been offered.
    pub fn without_conflicts(self) -> Recorded {
        let batches = self.batches.into_iter().map(|(transactions, mut result)| {
            let outcomes = std::mem::take(&mut result.outcomes).into_iter();
            let settled: Vec<_> = transactions
                .into_iter()
                .zip(outcomes)
                .filter(|(_, outcome)| *outcome != TransactionOutcome::Conflict)
                .collect();
            let (transactions, outcomes) = settled.into_iter().unzip();
            // The numbers of the history would mean others now.
            (transactions, BatchResult { outcomes, history: History::default(), ..result })
        });
        Recorded { batches: batches.collect(), ..self }
    }

    pub fn check(&self) -> Result<Verified, Violation> {
        let batches = self.batches.iter().enumerate().map(|(number, (transactions, result))| CheckedBatch {
            transactions,
            result,
            unseen: usize::from(self.inter_block && number > 0 && !self.ran_serially_at_once(number - 1)),
            snapshots: None,
        });
        check(&self.initial, &batches.collect::<Vec<_>>())
    }

    /// Behind such a batch the next one starts afresh.
    fn ran_serially_at_once(&self, number: usize) -> bool {
        let result = &self.batches[number].1;
        result.history.placed.is_empty()
            && !result.history.serial.is_empty()
            && result.statistics.reexecuted == 0
    }

    pub fn results(&self) -> Vec<&BatchResult> {
        self.batches.iter().map(|(_, result)| result).collect()
    }

    /// The results without the counts, which may say how often things really happened.
    pub fn results_without_counts(&self) -> Vec<BatchResult> {
        let uncounted =
            |result: &BatchResult| BatchResult { statistics: BatchStatistics::default(), ..result.clone() };
        self.results().into_iter().map(uncounted).collect()
    }
}
