//! Checkpoints beside the measured engine, as a node makes them: on a thread of its own, one at a time, by one thread of hashing.

use super::StateBenchError;
use super::record::CheckpointTime;
use crate::chain::Chain;
use proofs::state::TreeShape;
use state::{CheckpointHeader, KeptState, LiveContent, Snapshot, Store, StoreError, Stores};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// Checkpoints that a node keeps.
const KEPT: usize = 2;

struct Request {
    header: CheckpointHeader,
    store: Arc<dyn Store>,
    snapshot: Arc<dyn Snapshot>,
    live: LiveContent,
    changed_rows: u64,
}

/// The thread, and what it is asked.
pub(super) struct Checkpoints {
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<Result<Vec<CheckpointTime>, StoreError>>>,
    /// Checkpoints that were left out because the one before was still being made.
    pub(super) left_out: u64,
}

impl Checkpoints {
    pub(super) fn start(stores: Arc<dyn Stores>) -> Result<Checkpoints, StateBenchError> {
        let (requests, asked) = sync_channel(1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|_| crate::EngineBenchError::Threads(1))?;
        let work = move || make_all(&asked, stores.as_ref(), &pool);
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(work);
        let thread = thread.map_err(|_| crate::EngineBenchError::Threads(1))?;
        Ok(Checkpoints { requests: Some(requests), thread: Some(thread), left_out: 0 })
    }

    /// Hands over the state behind the last block. `changed_rows`: how many have changed since the last checkpoint.
    pub(super) fn request(&mut self, chain: &Chain, changed_rows: u64) {
        let store = chain.engine.state().clone();
        let request = Request {
            header: chain.engine.checkpoint_header(),
            snapshot: store.snapshot(),
            store,
            live: chain.engine.live().content(),
            changed_rows,
        };
        let taken = self.requests.as_ref().is_some_and(|requests| requests.try_send(request).is_ok());
        self.left_out += u64::from(!taken);
    }

    /// Waits for what was asked.
    pub(super) fn finish(mut self) -> Result<Vec<CheckpointTime>, StateBenchError> {
        self.requests = None;
        let thread = self.thread.take().expect("it is joined once");
        Ok(thread.join().expect("the thread of checkpoints does not panic")?)
    }
}

fn make_all(
    asked: &Receiver<Request>,
    stores: &dyn Stores,
    pool: &rayon::ThreadPool,
) -> Result<Vec<CheckpointTime>, StoreError> {
    let (mut made, mut heights) = (Vec::new(), Vec::new());
    // As a node, which shows rows and proofs of it.
    let mut _kept: Option<KeptState> = None;
    for Request { header, store, snapshot, live, changed_rows } in asked {
        let start = Instant::now();
        let shape = TreeShape::at(snapshot.catalog(), header.height);
        let Some(kept) = pool.install(|| store.keep_checkpoint(&header, snapshot, live, shape))? else {
            continue;
        };
        let root = kept.tree().root();
        made.push(CheckpointTime {
            height: header.height,
            seconds: start.elapsed().as_secs_f64(),
            changed_rows,
            root: root.to_string(),
        });
        _kept = Some(kept);
        heights.push(header.height);
        heights.drain(..heights.len().saturating_sub(KEPT));
        stores.keep_checkpoints(&heights)?;
    }
    Ok(made)
}
