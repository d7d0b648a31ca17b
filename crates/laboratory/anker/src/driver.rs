//! Transactions and questions side by side for some seconds.
//!
//! ```text
//!  begin ── transactions alone ──┬── transactions, and every stream asks a question every 500 ms ──┬─ end: consistent?
//! ```

use crate::AnkerError;
use crate::engine::Engine;
use crate::system::{Isolation, Storage, System};
use crate::tpcc::{self, Access, Inputs, QUESTIONS, Scale};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// From one collection of versions to the next in an engine without snapshots (2.6.1).
const COLLECT_EVERY: Duration = Duration::from_secs(1);
/// The longest sleep of somebody who waits for the end.
const NAP: Duration = Duration::from_millis(20);

/// What runs side by side.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) system: System,
    pub(crate) scale: Scale,
    pub(crate) access: Access,
    /// Streams of transactions, a thread each.
    pub(crate) threads: usize,
    /// Streams of questions, a thread each.
    pub(crate) streams: usize,
    /// Transactions alone.
    pub(crate) quiet: Duration,
    /// Transactions and questions.
    pub(crate) time: Duration,
    /// From the beginning of a stream's question to that of its next one.
    pub(crate) every: Duration,
    /// Numbers of the questions to choose from.
    pub(crate) questions: Vec<usize>,
    pub(crate) seed: u64,
}

/// What it came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ran {
    /// Committed transactions per second before the first question.
    pub(crate) quiet_tps: f64,
    /// Beside questions.
    pub(crate) tps: f64,
    /// Transactions that were given up because of a conflict, of all.
    pub(crate) conflict_rate: f64,
    /// By the name of the question: milliseconds of the snapshot and of the whole answer.
    pub(crate) asked: BTreeMap<&'static str, Vec<(f64, f64)>>,
    /// Old versions in place at the end.
    pub(crate) versions: usize,
    /// The memory that the kernel or an allocation refused, in its words; then nothing else counts.
    pub(crate) refused: Option<String>,
}

/// What all threads look at.
struct Shared<'a> {
    load: &'a Load,
    engine: Engine,
    committed: AtomicU64,
    conflicts: AtomicU64,
    stops: AtomicBool,
    failed: Mutex<Option<AnkerError>>,
    asked: Mutex<BTreeMap<&'static str, Vec<(f64, f64)>>>,
}

/// Loads the tables and runs.
///
/// # Errors
/// Tables that are full, or a condition of TPC-C that does not hold at the end. Memory that is refused is no error: it is in [`Ran`].
pub(crate) fn run(load: &Load) -> Result<Ran, AnkerError> {
    let engine = tpcc::load(load.system, load.scale, load.seed)?;
    let shared = Shared {
        load,
        engine,
        committed: AtomicU64::new(0),
        conflicts: AtomicU64::new(0),
        stops: AtomicBool::new(false),
        failed: Mutex::new(None),
        asked: Mutex::default(),
    };
    let began = Instant::now();
    let [at_first_question, at_end] = std::thread::scope(|scope| {
        for thread in 0..load.threads {
            let shared = &shared;
            scope.spawn(move || shared.or_stop(transactions(shared, thread as u64)));
        }
        for stream in 0..load.streams {
            let shared = &shared;
            scope.spawn(move || shared.or_stop(questions(shared, began + load.quiet, stream as u64)));
        }
        if load.system.storage == Storage::See && load.system.isolation != Isolation::ReadUncommitted {
            scope.spawn(|| collect(&shared));
        }
        let reached = |time| shared.sleep_until(began + time);
        let counted = [load.quiet, load.quiet + load.time].map(|time| {
            reached(time);
            (began.elapsed().as_secs_f64(), shared.committed.load(Ordering::Relaxed) as f64)
        });
        shared.stops.store(true, Ordering::Relaxed);
        counted
    });
    match shared.failed.lock().take() {
        Some(AnkerError::Memory(error)) => {
            return Ok(Ran { refused: Some(error.to_string()), ..Ran::default() });
        }
        Some(error) => return Err(error),
        None => {}
    }
    if load.system.isolation != Isolation::ReadUncommitted {
        tpcc::check(&shared.engine, load.scale)?;
    }
    let conflicts = shared.conflicts.load(Ordering::Relaxed) as f64;
    let all = conflicts + shared.committed.load(Ordering::Relaxed) as f64;
    Ok(Ran {
        quiet_tps: at_first_question.1 / at_first_question.0.max(1e-9),
        tps: (at_end.1 - at_first_question.1) / (at_end.0 - at_first_question.0).max(1e-9),
        conflict_rate: conflicts / all.max(1.0),
        versions: shared.engine.versions(),
        asked: shared.asked.into_inner(),
        refused: None,
    })
}

/// One stream of transactions. One that is given up is not run again; the next one follows.
fn transactions(shared: &Shared<'_>, thread: u64) -> Result<(), AnkerError> {
    let load = shared.load;
    let mut inputs = Inputs::new(load.scale, load.access, load.seed.wrapping_mul(1_000) + thread);
    while !shared.stops.load(Ordering::Relaxed) {
        match tpcc::run(&shared.engine, &mut inputs) {
            Ok(committed) => {
                shared.committed.fetch_add(u64::from(committed), Ordering::Relaxed);
            }
            Err(AnkerError::Conflict) => {
                shared.conflicts.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One stream of questions.
fn questions(shared: &Shared<'_>, begin: Instant, stream: u64) -> Result<(), AnkerError> {
    let load = shared.load;
    let mut random = StdRng::seed_from_u64(load.seed.wrapping_mul(7_777) + stream);
    let mut due = begin;
    loop {
        shared.sleep_until(due);
        if shared.stops.load(Ordering::Relaxed) {
            return Ok(());
        }
        let number = load.questions[random.random_range(0..load.questions.len())];
        let question = tpcc::question(number, load.scale);
        let began = Instant::now();
        let mut asked = shared.engine.ask(&question)?;
        asked.materialise()?;
        let snapshot = began.elapsed();
        asked.answer()?;
        let times = (snapshot.as_secs_f64() * 1e3, began.elapsed().as_secs_f64() * 1e3);
        shared.asked.lock().entry(QUESTIONS[number]).or_default().push(times);
        // One that took longer than it might is not made up for.
        due = (due + load.every).max(Instant::now());
    }
}

fn collect(shared: &Shared<'_>) {
    while !shared.stops.load(Ordering::Relaxed) {
        shared.sleep_until(Instant::now() + COLLECT_EVERY);
        shared.engine.collect();
    }
}

impl Shared<'_> {
    /// The first error ends everything.
    fn or_stop(&self, result: Result<(), AnkerError>) {
        if let Err(error) = result {
            self.failed.lock().get_or_insert(error);
            self.stops.store(true, Ordering::Relaxed);
        }
    }

    /// Until then, or until all stop.
    fn sleep_until(&self, then: Instant) {
        while !self.stops.load(Ordering::Relaxed) {
            match then.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return,
                left => std::thread::sleep(left.min(NAP)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(system: System, access: Access) -> Load {
        Load {
            system,
            scale: Scale { warehouses: 2, customers: 30, items: 200 },
            access,
            threads: 2,
            streams: 2,
            // Long enough for a transaction of each thread beside other programs.
            quiet: Duration::from_millis(500),
            time: Duration::from_millis(400),
            every: Duration::from_millis(5),
            questions: (0..QUESTIONS.len()).collect(),
            seed: 1,
        }
    }

    #[test]
    fn every_system_commits_and_answers_and_stays_consistent() {
        for system in System::ALL {
            for access in [Access::Uniform, Access::Skewed] {
                let ran = run(&load(system, access)).expect("it runs");
                assert_eq!(ran.refused, None, "{}", system.name);
                assert!(ran.tps > 0.0 && ran.quiet_tps > 0.0 && ran.conflict_rate < 1.0, "{ran:?}");
                assert!(ran.asked.values().flatten().count() > 0, "{}: {ran:?}", system.name);
            }
        }
    }
}
