//! What has become of the transactions, and how long it took.

use super::submission::Submission;
use super::{LoadProgress, LoadReport};
use crate::LatencyMs;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use types::{Outcome, Payload, Receipt, SignedTransaction, SubmissionRefusal};
use workloads::smallbank::{money_change, money_change_of_script};

pub(super) struct Tally {
    stop: AtomicBool,
    height: AtomicU64,
    counts: Mutex<Counts>,
    /// Transactions that one gateway had, and another one has refused: they may still commit.
    undecided: Mutex<Vec<Submission>>,
}

struct Counts {
    committed: u64,
    business_aborts: u64,
    conflict_aborts: u64,
    unanswered: u64,
    repeated: u64,
    money: i128,
    pauses: Pauses,
    latency: Histogram<u64>,
    recent: Histogram<u64>,
}

/// When the clients of each organisation had their last answer, and the longest time between two answers.
struct Pauses {
    last: Vec<Option<Instant>>,
    longest: Duration,
}

impl Pauses {
    fn new(organisations: usize) -> Pauses {
        Pauses { last: vec![None; organisations], longest: Duration::ZERO }
    }

    fn answered(&mut self, home: usize, at: Instant) {
        if let Some(before) = self.last[home].replace(at) {
            self.longest = self.longest.max(at.saturating_duration_since(before));
        }
    }
}

impl Tally {
    pub(super) fn new(organisations: usize) -> Tally {
        // Microseconds up to ten minutes, three digits.
        let histogram = || Histogram::new_with_bounds(1, 600_000_000, 3).expect("valid bounds");
        let counts = Counts {
            committed: 0,
            business_aborts: 0,
            conflict_aborts: 0,
            unanswered: 0,
            repeated: 0,
            money: 0,
            pauses: Pauses::new(organisations),
            latency: histogram(),
            recent: histogram(),
        };
        Tally {
            stop: AtomicBool::new(false),
            height: AtomicU64::new(0),
            counts: Mutex::new(counts),
            undecided: Mutex::default(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn forget_pauses(&self) {
        self.counts().pauses.longest = Duration::ZERO;
    }

    /// The newest height that a node has told.
    pub(super) fn height(&self) -> u64 {
        self.height.load(Ordering::Relaxed)
    }

    pub(super) fn reached(&self, height: u64) {
        self.height.fetch_max(height, Ordering::Relaxed);
    }

    /// Counts a receipt that the clients of the organisation `home` have waited for.
    pub(super) fn count(
        &self,
        home: usize,
        transaction: &SignedTransaction,
        receipt: &Receipt,
        submitted: Instant,
    ) {
        self.reached(receipt.height);
        let now = Instant::now();
        let mut counts = self.counts();
        counts.pauses.answered(home, now);
        match &receipt.outcome {
            Outcome::Committed(_) => counts.committed += 1,
            Outcome::Aborted(_) => counts.business_aborts += 1,
            Outcome::Conflict => counts.conflict_aborts += 1,
            Outcome::Rejected(_) => counts.unanswered += 1,
        }
        counts.money += match &transaction.transaction.payload {
            Payload::Call { procedure, arguments } => {
                let procedure = procedure.rsplit_once('.').map_or(procedure.as_str(), |(_, name)| name);
                money_change(procedure, arguments, &receipt.outcome)
            }
            Payload::Script { sql, parameters } => money_change_of_script(sql, parameters, &receipt.outcome),
            Payload::Insert { .. }
            | Payload::Session { .. }
            | Payload::Parts { .. }
            | Payload::SchemaOutcomes { .. }
            | Payload::MovingOutcomes { .. }
            | Payload::HeldParts { .. }
            | Payload::Agreed(_) => 0,
        };
        let microseconds = now.saturating_duration_since(submitted).as_micros() as u64;
        counts.latency.saturating_record(microseconds);
        counts.recent.saturating_record(microseconds);
    }

    /// Counts a transaction that is refused and never ordered.
    pub(super) fn count_refusal(&self, refusal: &SubmissionRefusal) {
        let mut counts = self.counts();
        match refusal {
            SubmissionRefusal::EarlyAbort { .. } => counts.conflict_aborts += 1,
            SubmissionRefusal::Aborted(_) => counts.business_aborts += 1,
            _ => counts.unanswered += 1,
        }
    }

    pub(super) fn count_repeated(&self, transactions: usize) {
        self.counts().repeated += transactions as u64;
    }

    /// What one gateway had, and another one has refused. What was submitted together stays together.
    pub(super) fn leave_undecided(&self, home: usize, submitted: Instant, transaction: SignedTransaction) {
        let mut undecided = self.undecided.lock().unwrap_or_else(PoisonError::into_inner);
        match undecided.iter_mut().find(|one| (one.home, one.submitted) == (home, submitted)) {
            Some(submission) => submission.open.push(transaction),
            None => {
                undecided.push(Submission { home, open: vec![transaction], submitted, may_be_ordered: true })
            }
        }
    }

    pub(super) fn take_undecided(&self) -> Vec<Submission> {
        std::mem::take(&mut *self.undecided.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn progress(&self) -> LoadProgress {
        let mut counts = self.counts();
        let latency_ms = LatencyMs::of(&counts.recent);
        counts.recent.reset();
        LoadProgress { height: self.height(), committed: counts.committed, latency_ms }
    }

    pub(super) fn report(&self, seconds: f64) -> LoadReport {
        let counts = self.counts();
        LoadReport {
            committed: counts.committed,
            business_aborts: counts.business_aborts,
            conflict_aborts: counts.conflict_aborts,
            unanswered: counts.unanswered,
            repeated: counts.repeated,
            seconds,
            throughput_tps: counts.committed as f64 / seconds,
            latency_ms: LatencyMs::of(&counts.latency),
            longest_pause: counts.pauses.longest,
            money_change: counts.money,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_is_that_of_one_gateway_between_two_answers() {
        let (start, mut pauses) = (Instant::now(), Pauses::new(2));
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        pauses.answered(0, at(500));
        assert_eq!(pauses.longest, Duration::ZERO, "the first answer ends no pause");
        pauses.answered(1, at(600));
        pauses.answered(0, at(650));
        assert_eq!(pauses.longest, Duration::from_millis(150));
        pauses.answered(1, at(1_600));
        pauses.answered(1, at(1_700));
        assert_eq!(pauses.longest, Duration::from_secs(1));
    }
}
