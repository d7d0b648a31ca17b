//! The way of a block: one stage per file, a thread each, bounded queues between.
//!
//! ```text
//!  Ordering ──Delivery──▶ verify ──Verified──▶ execute ──Executed──▶ record ──▶ answer ──▶ receipts
//!                                                 │ outcome            │           ▲
//!                                                 └──▶ attest          └─ acknowledgement to ordering
//!                                                        └──── certified heights ──┘
//! ```
//!
//! A stage that fails says why in [`Published::stop_serving`] and ends; its neighbours end with their queues. What was
//! recorded stays readable. The first three stages and the thread that writes checkpoints are started again when blocks
//! have to be taken back because their outcomes are not those of a quorum: file `heal`.

mod answer;
mod execute;
mod heal;
mod record;
mod verify;

use crate::Faults;
use crate::NodeError;
use crate::attesting::{Attester, Input};
use crate::checkpoints::Checkpoints;
use crate::endorsing::{Proposer, RecentStates};
use crate::metrics::NodeMetrics;
use crate::published::Published;
use crate::receipts::Receipts;
use crate::recovery::Recovered;
use crate::row_history::KeptRows;
use answer::Answerable;
use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use engine::{Engine, RowHistory, Verifier};
use heal::Ladder;
use ledger::{BlockRecord, CheckpointStore, Ledger};
use ordering::{CertificateVerifier, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use types::{Charter, Pipeline};

/// Blocks that may wait between two stages.
const QUEUE_BLOCKS: usize = 8;
/// Outcomes that may wait to be attested.
pub(crate) const QUEUE_OUTCOMES: usize = 256;

/// What the stages share.
pub(crate) struct Shared {
    pub(crate) charter: Arc<Charter>,
    /// How validation is scheduled.
    pub(crate) pipeline: Pipeline,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) checkpoints: Arc<CheckpointStore>,
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
    /// What a test makes go wrong.
    pub(crate) faults: Option<Arc<Faults>>,
    /// Where outcomes are attested; `None` where they are not, which is for measuring only.
    pub(crate) attest: Option<Sender<Input>>,
}

/// A block that is executed and waits to be recorded.
pub(crate) struct Executed {
    pub(crate) record: BlockRecord,
    /// What its transactions did to rows, where that is kept.
    pub(crate) row_history: Option<RowHistory>,
}

/// What attests, with the queues around it.
pub(crate) struct Attest {
    pub(crate) attester: Attester,
    pub(crate) inputs: Receiver<Input>,
    /// Something new is certified.
    pub(crate) certified: Receiver<()>,
    /// Blocks from a height on are to be taken back.
    pub(crate) heal: Receiver<u64>,
}

/// Starts the stages behind ordering. They end when ordering's deliveries do.
pub(crate) fn start(
    shared: Arc<Shared>,
    recovered: Recovered,
    attest: Option<Attest>,
) -> Result<Vec<JoinHandle<()>>, NodeError> {
    let (answers, to_answer) = bounded(QUEUE_BLOCKS);
    let published = shared.published.clone();
    let mut threads = Vec::new();
    let (certified, heal) = match attest {
        None => (never(), never()),
        Some(Attest { attester, inputs, certified, heal }) => {
            threads.push(stage("attest", &published, move || {
                crate::attesting::run(attester, &inputs);
                Ok(())
            })?);
            (certified, heal)
        }
    };
    let answering = shared.clone();
    threads.push(stage("answer", &published, move || {
        answer::run(&answering, &to_answer, &certified);
        Ok(())
    })?);
    threads.push(stage("pipeline", &published, move || supervise(&shared, recovered, &heal, &answers))?);
    Ok(threads)
}

/// Runs the stages, and heals between two runs of them.
fn supervise(
    shared: &Arc<Shared>,
    recovered: Recovered,
    heal: &Receiver<u64>,
    answers: &Sender<Answerable>,
) -> Result<(), NodeError> {
    let mut ladder = Ladder::at(recovered.checkpoint);
    let mut engine = recovered.engine;
    loop {
        let (stop, stopped) = bounded::<()>(0);
        // Disconnects when the last of the stages has ended.
        let (alive, ended) = bounded::<()>(0);
        let stages = run_stages(shared, engine, &stopped, &alive, answers)?;
        drop(alive);
        let height = select! {
            recv(heal) -> height => height.ok(),
            recv(ended) -> _ => None,
        };
        drop(stop);
        for stage in stages {
            // A stage that panicked has said so in `not_serving`.
            let _ = stage.join();
        }
        let Some(height) = height else { return Ok(()) };
        engine = heal::heal(shared, &mut ladder, height, answers)?;
        // What was asked for meanwhile is what was done.
        heal.try_iter().for_each(drop);
    }
}

fn run_stages(
    shared: &Arc<Shared>,
    engine: Engine,
    stopped: &Receiver<()>,
    alive: &Sender<()>,
    answers: &Sender<Answerable>,
) -> Result<Vec<JoinHandle<()>>, NodeError> {
    let (verified, to_execute) = bounded(QUEUE_BLOCKS);
    let (executed, to_record) = bounded(QUEUE_BLOCKS);
    let (checkpoints, writing) = Checkpoints::start(shared.checkpoints.clone())?;
    let next_height = engine.height() + 1;
    let published = &shared.published;
    let verify = {
        let (shared, stopped, alive) = (shared.clone(), stopped.clone(), alive.clone());
        stage("verify", published, move || {
            let _alive = alive;
            verify::run(&shared, next_height, &stopped, &verified)
        })?
    };
    let execute = {
        let (shared, alive) = (shared.clone(), alive.clone());
        stage("execute", published, move || {
            let _alive = alive;
            execute::run(&shared, engine, &checkpoints, &to_execute, &executed)
        })?
    };
    let record = {
        let (shared, alive, answers) = (shared.clone(), alive.clone(), answers.clone());
        stage("record", published, move || {
            let _alive = alive;
            record::run(&shared, &to_record, &answers)
        })?
    };
    Ok(vec![verify, execute, record, writing])
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
