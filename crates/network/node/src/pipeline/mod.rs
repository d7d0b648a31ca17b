//! The way of a block: one stage per file, a thread each, bounded queues between.
//!
//! ```text
//!  Ordering ──Delivery──▶ verify ──Verified──▶ execute ──Executed──▶ record ──▶ answer ──▶ receipts
//!                                                 │ outcome            │           ▲
//!                                                 └──▶ attest          └─ acknowledgement to ordering
//!                                                        └──── certified heights ──┘
//! ```
//!
//! Each stage is a struct with what it needs and nothing else ([`VerifyStage`], [`ExecuteStage`], [`RecordStage`],
//! [`AnswerStage`]); [`Stages`] has them together. What executes blocks stands behind a trait: file `execute_block`.
//!
//! A stage that fails says why in [`Published::stop_serving`] and ends; its neighbours end with their queues. What was
//! recorded stays readable. The first three stages and the thread that writes checkpoints are started again when blocks
//! have to be taken back, or the state to be made again, because they are not those of a quorum: file `heal`.

mod answer;
mod execute;
mod execute_block;
mod heal;
#[cfg(feature = "simulation")]
mod inline;
mod join;
mod record;
mod verify;

pub(crate) use answer::AnswerStage;
pub(crate) use execute::ExecuteStage;
pub(crate) use execute_block::{ExecuteBlock, ExecutedState};
pub(crate) use heal::Restore;
#[cfg(feature = "simulation")]
pub(crate) use inline::Inline;
pub(crate) use join::{Audience, Takeover, skip};
pub(crate) use record::RecordStage;
pub(crate) use verify::VerifyStage;

use crate::NodeError;
use crate::attesting::{Attester, Heal, Input};
use crate::checkpoints::{CheckpointParts, Checkpoints};
use crate::joining::{Exchange, Fetched};
use crate::own_database::OwnChanges;
use crate::pruning::Pruning;
use crate::published::Published;
use crate::recovery::Recovered;
use crate::redaction::Redacting;
use crate::scrub::Scrub;
use answer::Answerable;
use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use engine::RowHistory;
use heal::Ladder;
use ledger::BlockRecord;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Blocks that may wait between two stages.
const QUEUE_BLOCKS: usize = 8;
/// Outcomes that may wait to be attested.
pub(crate) const QUEUE_OUTCOMES: usize = 256;

/// The stages of a node, each with what it needs. Nothing runs.
pub(crate) struct Stages {
    pub(crate) verify: VerifyStage,
    pub(crate) execute: ExecuteStage,
    pub(crate) record: RecordStage,
    pub(crate) answer: AnswerStage,
    /// Writes checkpoints beside them.
    pub(crate) checkpoints: CheckpointParts,
    /// Reads files again beside them, where that is done.
    pub(crate) scrub: Option<Scrub>,
    /// Gives up payloads of old blocks beside them, where that is done.
    pub(crate) pruning: Option<Pruning>,
    pub(crate) redacting: Redacting,
    /// Makes the state again between two runs of them.
    pub(crate) restore: Restore,
    /// Where a stage says why it has failed.
    pub(crate) published: Arc<Published>,
}

/// A block that is executed and waits to be recorded.
pub(crate) struct Executed {
    pub(crate) record: BlockRecord,
    /// What its transactions did to rows, where that is kept.
    pub(crate) row_history: Option<RowHistory>,
    /// What it did to rows, where tables are kept in a database of the organisation's own.
    pub(crate) own_changes: Option<OwnChanges>,
}

/// What attests, with the queues around it.
pub(crate) struct Attest {
    pub(crate) attester: Attester,
    pub(crate) inputs: Receiver<Input>,
    /// Something new is certified.
    pub(crate) certified: Receiver<()>,
    /// Blocks or the state are to be made again.
    pub(crate) heal: Receiver<Heal>,
}

/// Fetches checkpoints of other members that are ahead of this one, and hands out this node's.
pub(crate) struct Exchanging {
    /// `None` where there are no others.
    pub(crate) exchange: Option<Exchange>,
    /// What it has fetched.
    pub(crate) joined: Receiver<Box<Fetched>>,
}

/// Starts the stages behind ordering. They end when ordering's deliveries do.
pub(crate) fn start(
    stages: Stages,
    recovered: Recovered,
    attest: Option<Attest>,
    Exchanging { exchange, joined }: Exchanging,
) -> Result<Vec<JoinHandle<()>>, NodeError> {
    let (answers, to_answer) = bounded(QUEUE_BLOCKS);
    let published = stages.published.clone();
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
    let answer = stages.answer.clone();
    threads.push(stage("answer", &published, move || {
        answer.at_start().run(&to_answer, &certified);
        Ok(())
    })?);
    threads.push(stage("pipeline", &published, move || {
        supervise(&stages, recovered, (&heal, &joined), &answers)
    })?);
    if let Some(exchange) = exchange {
        // It ends when the pipeline has.
        threads.push(stage("exchange", &published, move || {
            crate::joining::run(exchange);
            Ok(())
        })?);
    }
    Ok(threads)
}

/// What the stages are stopped for.
enum Pause {
    Heal(Heal),
    Join(Box<Fetched>),
    End,
}

/// Runs the stages, and heals or joins between two runs of them.
fn supervise(
    stages: &Stages,
    recovered: Recovered,
    (heal, joined): (&Receiver<Heal>, &Receiver<Box<Fetched>>),
    answers: &Sender<Answerable>,
) -> Result<(), NodeError> {
    let mut ladder = Ladder::at(recovered.checkpoint);
    let mut executor = recovered.executor;
    let mut joined = joined.clone();
    loop {
        let (stop, stopped) = bounded::<()>(0);
        // Disconnects when the last of the stages has ended.
        let (alive, ended) = bounded::<()>(0);
        let threads = run_stages(stages, executor, &stopped, &alive, answers)?;
        drop(alive);
        let pause = loop {
            break select! {
                recv(heal) -> wanted => wanted.map_or(Pause::End, Pause::Heal),
                recv(joined) -> fetched => match fetched {
                    // Executing blocks was quicker, or their outcomes are being looked into.
                    Ok(fetched) if !is_ahead(&stages.published, &fetched) => continue,
                    Ok(fetched) => Pause::Join(fetched),
                    Err(_) => {
                        joined = never();
                        continue;
                    }
                },
                recv(ended) -> _ => match heal.try_recv().ok().or_else(|| stages.restore.damaged_store()) {
                    Some(wanted) if !stages.published.is_stopping() => Pause::Heal(wanted),
                    _ => Pause::End,
                },
            };
        };
        drop(stop);
        for thread in threads {
            // A stage that panicked has said so in `not_serving`.
            let _ = thread.join();
        }
        executor = match pause {
            Pause::End => return Ok(()),
            Pause::Heal(wanted) => {
                let executor = stages.restore.heal(&mut ladder, &wanted, answers)?;
                // What was asked for meanwhile is what was done.
                heal.try_iter().for_each(drop);
                executor
            }
            // The stages have gone on until they were stopped.
            Pause::Join(fetched) => {
                let height = fetched.anchor.height();
                let recovered = stages.restore.takeover.join(*fetched, answers)?;
                ladder = Ladder::at(height);
                recovered.executor
            }
        };
    }
}

/// Whether a checkpoint saves this node the execution of blocks.
fn is_ahead(published: &Published, fetched: &Fetched) -> bool {
    fetched.anchor.height() > published.newest().0 && published.certified().divergence().is_none()
}

/// The stages that are stopped and started again, with those beside them.
fn run_stages(
    stages: &Stages,
    executor: Box<dyn ExecuteBlock>,
    stopped: &Receiver<()>,
    alive: &Sender<()>,
    answers: &Sender<Answerable>,
) -> Result<Vec<JoinHandle<()>>, NodeError> {
    let Stages { published, record, .. } = stages;
    let (verified, to_execute) = bounded(QUEUE_BLOCKS);
    let (executed, to_record) = bounded(QUEUE_BLOCKS);
    let (checkpoints, writing) = Checkpoints::start(stages.checkpoints.clone())?;
    let verifying = stages.verify.from(executor.height() + 1);
    let executing = stages.execute.with(executor, checkpoints);
    let (record, answers, stop) = (record.clone(), answers.clone(), stopped.clone());
    let mut threads = vec![
        healed("verify", published, alive, move || verifying.run(&stop, &verified))?,
        healed("execute", published, alive, move || executing.run(&to_execute, &executed))?,
        healed("record", published, alive, move || record.run(&to_record, &answers))?,
        writing,
    ];
    if let Some(scrub) = &stages.scrub {
        let scrubbing = scrub.until(stopped.clone());
        threads.push(stage("scrub", published, move || {
            scrubbing.run();
            Ok(())
        })?);
    }
    if let Some(pruning) = stages.pruning.clone() {
        let stopped = stopped.clone();
        threads.push(stage("pruning", published, move || {
            pruning.run(&stopped);
            Ok(())
        })?);
    }
    let (redacting, stopped) = (stages.redacting.clone(), stopped.clone());
    threads.push(stage("redaction", published, move || {
        redacting.run(&stopped);
        Ok(())
    })?);
    Ok(threads)
}

/// A stage that lets go of `alive` when it ends, also where it ends because files of the state are damaged: then the state is made
/// again.
fn healed(
    name: &'static str,
    published: &Arc<Published>,
    alive: &Sender<()>,
    run: impl FnOnce() -> Result<(), NodeError> + Send + 'static,
) -> Result<JoinHandle<()>, NodeError> {
    let (alive, noted) = (alive.clone(), published.clone());
    stage(name, published, move || {
        let _alive = alive;
        run().or_else(|error| match error.store_failure() {
            Some(failure) if failure.can_be_made_again() => {
                noted.store_health().note(failure.clone());
                Ok(())
            }
            _ => Err(error),
        })
    })
}

pub(crate) fn stage(
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
