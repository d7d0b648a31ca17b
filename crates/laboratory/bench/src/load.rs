//! Signed transactions through the gateways of a running network.

use crate::LatencyMs;
use client::{Client, ClientError};
use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use types::{Outcome, Payload, Receipt, SignedTransaction, SubmissionRefusal};
use workloads::smallbank::{ParameterError, Smallbank, money_change};

/// How far ahead the expiry heights lie.
const EXPIRY_BLOCKS: u64 = 2_000;
/// Pause before transactions that a full node has refused are submitted again.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// A gateway that has refused whole submissions for so long is not full but out of service.
const FULL_FOR: Duration = Duration::from_secs(60);
/// How often an open loop submits what is due.
const OPEN_LOOP_TICK: Duration = Duration::from_millis(20);

/// When transactions are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A new submission as soon as the previous one has all its receipts.
    Closed {
        /// Submissions under way at each gateway.
        submissions: usize,
        /// Transactions of a submission.
        transactions: usize,
    },
    /// So many transactions per second over all gateways, whether answered or not.
    Open {
        /// Transactions per second.
        rate: f64,
    },
}

/// What to run.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Customers, already loaded.
    pub customers: u64,
    /// Zipf's exponent.
    pub skew: f64,
    /// When transactions are sent.
    pub pace: Pace,
    /// Seed of the workload.
    pub seed: u64,
}

/// Why a load cannot run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Options that make no sense.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A gateway failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// What has happened so far.
#[derive(Clone, Debug, Default)]
pub struct LoadProgress {
    /// Newest height seen in a receipt.
    pub height: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Latencies since the last look.
    pub latency_ms: LatencyMs,
}

/// What a load came to.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that the contract ended.
    pub business_aborts: u64,
    /// Transactions given up because of a conflict.
    pub conflict_aborts: u64,
    /// Transactions without a receipt: refused, or the connection broke.
    pub unanswered: u64,
    /// From the first submission to the last receipt.
    pub seconds: f64,
    /// Committed transactions per second.
    pub throughput_tps: f64,
    /// From submission to receipt.
    pub latency_ms: LatencyMs,
    /// The longest time that one gateway's clients had no answer, between two answers.
    pub longest_pause: Duration,
    /// By how much the sum of all balances must have changed.
    pub money_change: i128,
}

/// A load that runs against the gateways of several organisations.
pub struct Load {
    clients: Vec<Client>,
    smallbank: Smallbank,
    options: LoadOptions,
    shared: Arc<Shared>,
}

/// Reaches into a load that runs.
#[derive(Clone)]
pub struct LoadHandle(Arc<Shared>);

impl LoadHandle {
    /// Nothing more is submitted; the load ends once what is under way is answered.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Pauses that ended before now do not count for the report.
    pub fn forget_pauses(&self) {
        self.0.counts().pauses.longest = Duration::ZERO;
    }
}

/// When each gateway answered last, and the longest time between two of its answers.
struct Pauses {
    last: Vec<Option<Instant>>,
    longest: Duration,
}

impl Pauses {
    fn new(gateways: usize) -> Pauses {
        Pauses { last: vec![None; gateways], longest: Duration::ZERO }
    }

    fn answered(&mut self, gateway: usize, at: Instant) {
        if let Some(before) = self.last[gateway].replace(at) {
            self.longest = self.longest.max(at.saturating_duration_since(before));
        }
    }
}

struct Shared {
    stop: AtomicBool,
    height: AtomicU64,
    counts: Mutex<Counts>,
}

struct Counts {
    committed: u64,
    business_aborts: u64,
    conflict_aborts: u64,
    unanswered: u64,
    money: i128,
    pauses: Pauses,
    latency: Histogram<u64>,
    recent: Histogram<u64>,
}

impl Shared {
    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, gateway: usize, transaction: &SignedTransaction, receipt: &Receipt, submitted: Instant) {
        self.height.fetch_max(receipt.height, Ordering::Relaxed);
        let now = Instant::now();
        let mut counts = self.counts();
        counts.pauses.answered(gateway, now);
        match &receipt.outcome {
            Outcome::Committed(_) => counts.committed += 1,
            Outcome::Aborted(_) => counts.business_aborts += 1,
            Outcome::Conflict => counts.conflict_aborts += 1,
            Outcome::Rejected(_) => counts.unanswered += 1,
        }
        if let Payload::Call { procedure, arguments } = &transaction.transaction.payload {
            counts.money += money_change(procedure, arguments, &receipt.outcome);
        }
        let microseconds = now.saturating_duration_since(submitted).as_micros() as u64;
        counts.latency.saturating_record(microseconds);
        counts.recent.saturating_record(microseconds);
    }
}

impl Load {
    /// Prepares a load over `clients`, one per gateway.
    ///
    /// # Errors
    /// [`LoadError::Parameter`].
    pub fn new(clients: Vec<Client>, options: LoadOptions) -> Result<Load, LoadError> {
        let smallbank = Smallbank::new(options.customers, options.skew)?;
        // Microseconds up to ten minutes, three digits.
        let histogram = || Histogram::new_with_bounds(1, 600_000_000, 3).expect("valid bounds");
        let counts = Counts {
            committed: 0,
            business_aborts: 0,
            conflict_aborts: 0,
            unanswered: 0,
            money: 0,
            pauses: Pauses::new(clients.len()),
            latency: histogram(),
            recent: histogram(),
        };
        let (stop, height) = (AtomicBool::new(false), AtomicU64::new(0));
        let shared = Arc::new(Shared { stop, height, counts: Mutex::new(counts) });
        Ok(Load { clients, smallbank, options, shared })
    }

    /// To end the load early, and to say which pauses count.
    pub fn handle(&self) -> LoadHandle {
        LoadHandle(self.shared.clone())
    }

    /// Runs for `time` or until it is stopped, calls `progress` every second, then waits for the receipts that are missing.
    ///
    /// # Errors
    /// A gateway does not answer. The others' transactions are lost to the report.
    pub async fn run(
        self,
        time: Duration,
        mut progress: impl FnMut(LoadProgress),
    ) -> Result<LoadReport, LoadError> {
        for client in &self.clients {
            self.shared.height.fetch_max(client.status().await?.height, Ordering::Relaxed);
        }
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for (gateway, client) in self.clients.iter().enumerate() {
            for task in 0..self.tasks_per_gateway() {
                let seed = self.options.seed ^ ((gateway as u64 + 1) << 32) ^ ((task as u64 + 1) << 16);
                let worker = Worker {
                    gateway,
                    client: client.clone(),
                    smallbank: self.smallbank.clone(),
                    shared: self.shared.clone(),
                    random: StdRng::seed_from_u64(seed),
                };
                match self.options.pace {
                    Pace::Closed { transactions, .. } => {
                        tasks.spawn(worker.closed_loop(transactions));
                    }
                    Pace::Open { rate } => {
                        tasks.spawn(worker.open_loop(rate / self.clients.len() as f64));
                    }
                }
            }
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        ticks.tick().await;
        while start.elapsed() < time && !self.shared.stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            progress(self.progress());
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            match ended {
                Ok(result) => result?,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        Ok(self.report(start.elapsed().as_secs_f64()))
    }

    fn tasks_per_gateway(&self) -> usize {
        match self.options.pace {
            Pace::Closed { submissions, .. } => submissions,
            Pace::Open { .. } => 1,
        }
    }

    fn progress(&self) -> LoadProgress {
        let mut counts = self.shared.counts();
        let latency_ms = LatencyMs::of(&counts.recent);
        counts.recent.reset();
        LoadProgress {
            height: self.shared.height.load(Ordering::Relaxed),
            committed: counts.committed,
            latency_ms,
        }
    }

    fn report(&self, seconds: f64) -> LoadReport {
        let counts = self.shared.counts();
        LoadReport {
            committed: counts.committed,
            business_aborts: counts.business_aborts,
            conflict_aborts: counts.conflict_aborts,
            unanswered: counts.unanswered,
            seconds,
            throughput_tps: counts.committed as f64 / seconds,
            latency_ms: LatencyMs::of(&counts.latency),
            longest_pause: counts.pauses.longest,
            money_change: counts.money,
        }
    }
}

struct Worker {
    gateway: usize,
    client: Client,
    smallbank: Smallbank,
    shared: Arc<Shared>,
    random: StdRng,
}

impl Worker {
    fn sign(&mut self, count: usize) -> Vec<SignedTransaction> {
        let expires_at = self.shared.height.load(Ordering::Relaxed) + EXPIRY_BLOCKS;
        (0..count)
            .map(|_| {
                let call = self.smallbank.next_call(&mut self.random);
                self.client.identity().sign(call.into_payload(), expires_at)
            })
            .collect()
    }

    async fn closed_loop(mut self, transactions: usize) -> Result<(), ClientError> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let submission = self.sign(transactions);
            submit(&self.client, &self.shared, self.gateway, submission).await?;
        }
        Ok(())
    }

    async fn open_loop(mut self, rate: f64) -> Result<(), ClientError> {
        let (start, mut sent) = (Instant::now(), 0_u64);
        let mut submissions = tokio::task::JoinSet::new();
        let mut ticks = tokio::time::interval(OPEN_LOOP_TICK);
        while !self.shared.stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            let due = (start.elapsed().as_secs_f64() * rate) as u64 - sent;
            if due > 0 {
                sent += due;
                let submission = self.sign(due as usize);
                let (client, shared, gateway) = (self.client.clone(), self.shared.clone(), self.gateway);
                submissions.spawn(async move { submit(&client, &shared, gateway, submission).await });
            }
            while let Some(ended) = submissions.try_join_next() {
                ended.unwrap_or(Ok(()))?;
            }
        }
        while let Some(ended) = submissions.join_next().await {
            ended.unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}

/// Submits and waits for every receipt; what a full node refuses is submitted again, the same bytes.
async fn submit(
    client: &Client,
    shared: &Shared,
    gateway: usize,
    mut transactions: Vec<SignedTransaction>,
) -> Result<(), ClientError> {
    let start = Instant::now();
    while !transactions.is_empty() {
        let mut refused = Vec::new();
        let mut replies = match client.submit(&transactions).await {
            // Too many submissions under way, after a pause of the whole network for example.
            Err(ClientError::Refused { status: 503, .. }) if start.elapsed() < FULL_FOR => {
                tokio::time::sleep(FULL_PAUSE).await;
                continue;
            }
            replies => replies?,
        };
        while let Some(reply) = replies.next().await? {
            let Some(transaction) = transactions.get(reply.position as usize) else { continue };
            match reply.result {
                Ok(receipt) => shared.count(gateway, transaction, &receipt, start),
                Err(SubmissionRefusal::Full) => refused.push(transaction.clone()),
                Err(SubmissionRefusal::EarlyAbort { .. }) => shared.counts().conflict_aborts += 1,
                Err(SubmissionRefusal::Aborted(_)) => shared.counts().business_aborts += 1,
                Err(_) => shared.counts().unanswered += 1,
            }
        }
        transactions = refused;
        if !transactions.is_empty() {
            tokio::time::sleep(FULL_PAUSE).await;
        }
    }
    Ok(())
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
