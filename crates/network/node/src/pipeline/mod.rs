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
//! have to be taken back, or the state to be made again, because they are not those of a quorum: file `heal`.

mod answer;
mod execute;
mod heal;
#[cfg(feature = "simulation")]
mod inline;
mod join;
mod record;
mod verify;

use crate::attesting::{Attester, Heal, Input};
use crate::charters::DecidedCharters;
use crate::checkpoints::{CheckpointParts, Checkpoints};
use crate::endorsing::{Proposer, RecentStates};
use crate::joining::{Exchange, Fetched, Wanted};
use crate::key_watch::KeyWatch;
use crate::metrics::NodeMetrics;
use crate::published::Published;
use crate::receipts::Receipts;
use crate::recovery::{Recovered, Recovery};
use crate::row_history::KeptRows;
use crate::scrub::Scrub;
use crate::{Defence, Faults, NodeError};
use answer::Answerable;
use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use engine::{Engine, RowHistory, Verifier};
use execute::Execute;
use heal::Ladder;
#[cfg(feature = "simulation")]
pub(crate) use inline::Inline;
pub(crate) use join::skip;
use ledger::{BlockRecord, CheckpointStore, Ledger};
use ordering::{CertificateVerifier, CertifyOutcomes, ExchangeMessages, Ordering};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use types::{Charter, Pipeline};

/// Blocks that may wait between two stages.
const QUEUE_BLOCKS: usize = 8;
/// Outcomes that may wait to be attested.
pub(crate) const QUEUE_OUTCOMES: usize = 256;

/// What the stages share.
pub(crate) struct Shared {
    /// The founding charter.
    pub(crate) charter: Arc<Charter>,
    /// Those that the state has decided on.
    pub(crate) charters: Arc<DecidedCharters>,
    /// Says when keys expire.
    pub(crate) keys: Arc<KeyWatch>,
    /// How validation is scheduled.
    pub(crate) pipeline: Pipeline,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) certifying: Arc<dyn CertifyOutcomes>,
    pub(crate) messages: Arc<dyn ExchangeMessages>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) checkpoints: Arc<CheckpointStore>,
    pub(crate) verifier: Arc<Verifier>,
    /// With the charters that verified blocks name.
    pub(crate) certificates: Mutex<CertificateVerifier>,
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
    /// Who else than attesting asks for blocks to be taken back; `None` where outcomes are not attested.
    pub(crate) heal: Option<Sender<Heal>>,
    /// How quickly files are read again; `None`: as quickly as need be.
    pub(crate) scrub_bytes_per_second: Option<u64>,
    /// What a test makes go wrong.
    pub(crate) faults: Option<Arc<Faults>>,
    /// Where outcomes are attested; `None` where they are not, which is for measuring only.
    pub(crate) attest: Option<Sender<Input>>,
    /// Where another node's certified checkpoint is asked for; `None` where there is no other node.
    pub(crate) wanted: Option<Sender<Wanted>>,
    /// Set where blocks are missing that only a checkpoint makes up for; `None` where the node does not join by itself.
    pub(crate) gap: Option<Arc<AtomicBool>>,
    /// Where pieces of one are kept until all are there.
    pub(crate) staging: PathBuf,
}

impl Shared {
    /// What making a state again needs.
    pub(crate) fn recovery(&self) -> Recovery<'_> {
        Recovery {
            charter: &self.charter,
            pipeline: self.pipeline,
            verifier: &self.verifier,
            ledger: &self.ledger,
            checkpoints: &self.checkpoints,
            rows: self.rows.as_deref(),
            known_versions: self.charters.known_versions(),
        }
    }

    /// What reading files again needs, where that is done.
    fn scrub(&self, stopped: &Receiver<()>) -> Option<Scrub> {
        let heal = self.heal.clone().filter(|_| self.scrub_bytes_per_second != Some(0))?;
        Some(Scrub {
            charter: self.charter.clone(),
            ledger: self.ledger.clone(),
            ordering: self.ordering.clone(),
            parts: self.checkpoint_parts(),
            heal,
            bytes_per_second: self.scrub_bytes_per_second,
            stopped: stopped.clone(),
        })
    }

    /// What writing checkpoints needs.
    fn checkpoint_parts(&self) -> CheckpointParts {
        CheckpointParts {
            store: self.checkpoints.clone(),
            published: self.published.clone(),
            metrics: self.metrics.clone(),
            attest: self.attest.clone(),
        }
    }
}

impl Shared {
    /// The engine stands at another height: whoever needs the charters that its state has decided on hears of new ones.
    pub(crate) fn follow_charters(&self, engine: &Engine) {
        let Some(charters) = self.charters.follow(engine) else { return };
        let newest = charters.newest();
        tracing::info!(
            version = newest.charter.version,
            from = newest.first,
            "an amendment of the charter is decided"
        );
        self.certifying.decided(charters.clone());
        if let Some(attest) = &self.attest {
            // It ends after the pipeline only.
            let _ = attest.send(Input::Decided(charters));
        }
    }
}

impl Shared {
    /// Whether a test has switched this off.
    fn lacks(&self, defence: Defence) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.lacks(defence))
    }
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
    /// Blocks or the state are to be made again.
    pub(crate) heal: Receiver<Heal>,
}

/// Starts the stages behind ordering. They end when ordering's deliveries do. `joined`: checkpoints of other nodes that are
/// ahead of this one, as `exchange` fetches them.
pub(crate) fn start(
    shared: Arc<Shared>,
    recovered: Recovered,
    attest: Option<Attest>,
    (exchange, joined): (Option<Exchange>, Receiver<Box<Fetched>>),
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
    threads.push(stage("pipeline", &published, move || {
        supervise(&shared, recovered, (&heal, &joined), &answers)
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
    shared: &Arc<Shared>,
    recovered: Recovered,
    (heal, joined): (&Receiver<Heal>, &Receiver<Box<Fetched>>),
    answers: &Sender<Answerable>,
) -> Result<(), NodeError> {
    let mut ladder = Ladder::at(recovered.checkpoint);
    let mut engine = recovered.engine;
    let mut joined = joined.clone();
    loop {
        let (stop, stopped) = bounded::<()>(0);
        // Disconnects when the last of the stages has ended.
        let (alive, ended) = bounded::<()>(0);
        let stages = run_stages(shared, engine, &stopped, &alive, answers)?;
        drop(alive);
        let pause = loop {
            break select! {
                recv(heal) -> wanted => wanted.map_or(Pause::End, Pause::Heal),
                recv(joined) -> fetched => match fetched {
                    // Executing blocks was quicker, or their outcomes are being looked into.
                    Ok(fetched) if !is_ahead(shared, &fetched) => continue,
                    Ok(fetched) => Pause::Join(fetched),
                    Err(_) => {
                        joined = never();
                        continue;
                    }
                },
                recv(ended) -> _ => Pause::End,
            };
        };
        drop(stop);
        for stage in stages {
            // A stage that panicked has said so in `not_serving`.
            let _ = stage.join();
        }
        engine = match pause {
            Pause::End => return Ok(()),
            Pause::Heal(wanted) => {
                let engine = heal::heal(shared, &mut ladder, &wanted, answers)?;
                // What was asked for meanwhile is what was done.
                heal.try_iter().for_each(drop);
                engine
            }
            // The stages have gone on until they were stopped.
            Pause::Join(fetched) => {
                let height = fetched.anchor.height();
                let recovered = join::join(shared, *fetched, answers)?;
                ladder = Ladder::at(height);
                recovered.engine
            }
        };
    }
}

/// Whether a checkpoint saves this node the execution of blocks.
fn is_ahead(shared: &Shared, fetched: &Fetched) -> bool {
    let recorded = shared.published.newest().0;
    fetched.anchor.height() > recorded && shared.published.certified().divergence().is_none()
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
    let (checkpoints, writing) = Checkpoints::start(shared.checkpoint_parts(), stopped.clone())?;
    let next_height = engine.height() + 1;
    let execute = Execute::new(engine, checkpoints);
    let published = &shared.published;
    let verifying = {
        let (shared, stopped, alive) = (shared.clone(), stopped.clone(), alive.clone());
        stage("verify", published, move || {
            let _alive = alive;
            verify::run(&shared, next_height, &stopped, &verified)
        })?
    };
    let executing = {
        let (shared, alive) = (shared.clone(), alive.clone());
        stage("execute", published, move || {
            let _alive = alive;
            execute::run(&shared, execute, &to_execute, &executed)
        })?
    };
    let recording = {
        let (shared, alive, answers) = (shared.clone(), alive.clone(), answers.clone());
        stage("record", published, move || {
            let _alive = alive;
            record::run(&shared, &to_record, &answers)
        })?
    };
    let mut threads = vec![verifying, executing, recording, writing];
    if let Some(scrub) = shared.scrub(stopped) {
        threads.push(stage("scrub", published, move || {
            scrub.run();
            Ok(())
        })?);
    }
    Ok(threads)
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
