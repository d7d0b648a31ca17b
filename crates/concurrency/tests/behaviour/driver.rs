//! Runs batches through a protocol.

use concurrency::checker::{CheckedBatch, RecordingTransaction, Verified, Violation, check};
use concurrency::{Batch, BatchResult, Protocol, ProtocolOptions, Snapshots, protocol};
use state::{PlainState, Simulate, Snapshot};
use std::sync::Arc;

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
        Driver::with(id, ProtocolOptions::default(), state)
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
        self.height += 1;
        self.protocol.offer(Batch { height: self.height, number: 0, transactions, steps_left, forget });
        self.protocol.finish();
        let result = self.protocol.poll(&Newest(&self.state)).unwrap();
        assert!(self.protocol.poll(&Newest(&self.state)).is_none(), "one batch, one result");
        result.changes.iter().for_each(|change| self.state.apply(change));
        result
    }
}

/// A whole run with everything that its transactions saw.
pub struct Recorded {
    pub initial: PlainState,
    pub batches: Vec<(Vec<Arc<RecordingTransaction>>, BatchResult)>,
    pub state: PlainState,
}

impl Recorded {
    pub fn run<T: Simulate + Clone + 'static>(
        id: &str,
        initial: &PlainState,
        batches: &[Vec<T>],
    ) -> Recorded {
        let mut driver = Driver::new(id, initial.clone());
        let batches = batches.iter().map(|batch| {
            let recorded: Vec<Arc<RecordingTransaction>> =
                batch.iter().map(|one| RecordingTransaction::new(Arc::new(one.clone()))).collect();
            let offered = recorded.iter().map(|one| one.clone() as Arc<dyn Simulate>).collect();
            let result = driver.run(offered);
            (recorded, result)
        });
        let batches = batches.collect();
        Recorded { initial: initial.clone(), batches, state: driver.state }
    }

    pub fn check(&self) -> Result<Verified, Violation> {
        let batches = self.batches.iter().map(|(transactions, result)| CheckedBatch {
            transactions,
            result,
            unseen: 0,
        });
        check(&self.initial, &batches.collect::<Vec<_>>())
    }

    pub fn results(&self) -> Vec<&BatchResult> {
        self.batches.iter().map(|(_, result)| result).collect()
    }
}
