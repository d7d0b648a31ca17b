//! A thread that asks questions beside transactions, and how long each took.

use super::questions::QUESTIONS;
use crate::LaboratoryError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often each question is asked where nothing else runs, in a round.
const ALONE: usize = 3;

/// Who answers. It is made on the thread that asks.
pub(super) trait Answers {
    /// Runs a query until all rows are there.
    fn answer(&mut self, sql: &str) -> Result<(), LaboratoryError>;
}

/// How long answers took.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Milliseconds by question.
    pub(super) ms: BTreeMap<&'static str, Vec<f64>>,
    /// In which so many were asked.
    pub(super) seconds: f64,
}

impl Asked {
    pub(super) fn add(&mut self, other: Asked) {
        for (id, ms) in other.ms {
            self.ms.entry(id).or_default().extend(ms);
        }
        self.seconds += other.seconds;
    }

    pub(super) fn count(&self) -> usize {
        self.ms.values().map(Vec::len).sum()
    }
}

/// Runs transactions, and asks questions on another thread as long as they run.
pub(super) fn beside<A: Answers, T>(
    every: Duration,
    answers: impl Fn() -> Result<A, LaboratoryError> + Send + Sync,
    run: impl FnOnce() -> Result<T, LaboratoryError>,
) -> Result<(T, Asked), LaboratoryError> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| ask_until(&stop, every, &mut answers()?));
        let ran = run();
        stop.store(true, Ordering::Relaxed);
        let asked = asking.join().expect("a question does not panic");
        Ok((ran?, asked?))
    })
}

/// Asks one question after another, one at each beginning of an interval, until `stop`; a late answer delays those behind it.
fn ask_until(
    stop: &AtomicBool,
    every: Duration,
    answers: &mut dyn Answers,
) -> Result<Asked, LaboratoryError> {
    let (mut asked, start) = (Asked::default(), Instant::now());
    for (number, question) in QUESTIONS.iter().cycle().enumerate() {
        let due = start + every * number as u32;
        while Instant::now() < due && !stop.load(Ordering::Relaxed) {
            thread::sleep((due - Instant::now()).min(Duration::from_millis(10)));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        answers.answer(question.text)?;
        asked.ms.entry(question.id).or_default().push(began.elapsed().as_secs_f64() * 1e3);
    }
    asked.seconds = start.elapsed().as_secs_f64();
    Ok(asked)
}

/// Asks each question [`ALONE`] times where nothing else runs; the first answers, which may have to catch up, are left out.
pub(super) fn ask_alone(answers: &mut dyn Answers) -> Result<Asked, LaboratoryError> {
    let mut asked = Asked::default();
    for turn in 0..=ALONE {
        let start = Instant::now();
        for question in &QUESTIONS {
            let began = Instant::now();
            answers.answer(question.text)?;
            if turn > 0 {
                asked.ms.entry(question.id).or_default().push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        if turn > 0 {
            asked.seconds += start.elapsed().as_secs_f64();
        }
    }
    Ok(asked)
}
