//! The way of a block: one stage per file, a thread each, bounded queues between.
//!
//! ```text
//!  Ordering ──Delivery──▶ verify ──Verified──▶ execute ──Executed──▶ record ──▶ receipts, acknowledgement
//! ```
//!
//! A stage that fails says why in [`Published::stop_serving`] and ends; its neighbours end with their queues. What was
//! recorded stays readable.

mod execute;
mod record;
mod verify;

use crate::NodeError;
use crate::checkpoints::Checkpoints;
use crate::endorsing::{Proposer, RecentStates};
use crate::metrics::NodeMetrics;
use crate::published::Published;
use crate::receipts::Receipts;
use crate::row_history::KeptRows;
use crossbeam_channel::bounded;
use engine::{Engine, RowHistory, Verifier};
use ledger::{BlockRecord, Ledger};
use ordering::{CertificateVerifier, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Blocks that may wait between two stages.
const QUEUE_BLOCKS: usize = 8;

/// What the stages share.
pub(crate) struct Shared {
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) certificates: CertificateVerifier,
    pub(crate) published: Arc<Published>,
    pub(crate) receipts: Arc<Receipts>,
    /// Where transactions are executed before they are ordered: the states that they are executed on.
    pub(crate) states: Option<Arc<RecentStates>>,
    /// What this node does as proposer, if not what everybody does.
    pub(crate) proposer: Option<Arc<Proposer>>,
    /// The history of rows, where it is kept.
    pub(crate) rows: Option<Arc<KeptRows>>,
    pub(crate) metrics: Arc<NodeMetrics>,
    /// Threads of the deterministic core.
    pub(crate) pool: rayon::ThreadPool,
    pub(crate) checkpoint_blocks: u64,
}

/// A block that is executed and waits to be recorded.
pub(crate) struct Executed {
    pub(crate) record: BlockRecord,
    /// What its transactions did to rows, where that is kept.
    pub(crate) row_history: Option<RowHistory>,
}

/// Starts the three stages behind ordering. They end when ordering's deliveries do.
pub(crate) fn start(
    shared: Arc<Shared>,
    engine: Engine,
    checkpoints: Checkpoints,
) -> Result<Vec<JoinHandle<()>>, NodeError> {
    let (verified, to_execute) = bounded(QUEUE_BLOCKS);
    let (executed, to_record) = bounded(QUEUE_BLOCKS);
    let next_height = engine.height() + 1;
    let verify = {
        let shared = shared.clone();
        stage("verify", &shared.published.clone(), move || verify::run(&shared, next_height, &verified))?
    };
    let execute = {
        let shared = shared.clone();
        stage("execute", &shared.published.clone(), move || {
            execute::run(&shared, engine, &checkpoints, &to_execute, &executed)
        })?
    };
    let record = stage("record", &shared.published.clone(), move || record::run(&shared, &to_record))?;
    Ok(vec![verify, execute, record])
}

fn stage(
    name: &'static str,
    published: &Arc<Published>,
    run: impl FnOnce() -> Result<(), NodeError> + Send + 'static,
) -> Result<JoinHandle<()>, NodeError> {
    let published = published.clone();
    let work = move || match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => published.stop_serving(error.to_string()),
        Err(_) => published.stop_serving(format!("the stage {name} broke an invariant; see the log")),
    };
    std::thread::Builder::new()
        .name(name.to_string())
        .spawn(work)
        .map_err(|error| NodeError::Thread { name, error })
}
