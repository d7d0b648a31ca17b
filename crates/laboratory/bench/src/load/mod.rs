//! Signed transactions through the gateways of a running network.
//!
//! ```text
//!  worker ─ sign ─▶ route ─▶ own gateway ──────────▶ receipts ─▶ tally
//!                     │        │ ends
//!                     └────────┴─▶ another gateway, the same bytes, until the own one is level again
//! ```
//!
//! The clients of an organisation ask its own gateway. Where that ends they ask the next one, with the same bytes: a
//! transaction has its id from its bytes and takes effect once, however often and wherever it is submitted. They return as
//! soon as their own gateway is level with the others.

mod route;
mod settle;
mod submission;
mod tally;
mod worker;

use crate::LatencyMs;
use client::{Client, ClientError};
use rand::SeedableRng;
use rand::rngs::StdRng;
use route::Route;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::Tally;
use types::{Identity, Payload};
use worker::Worker;
use workloads::Call;
use workloads::smallbank::{ParameterError, Smallbank};

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
    /// What is submitted.
    pub submit: Submit,
}

/// Which of Smallbank's transactions a load submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// Calls of all six procedures, in the mix of HarmonyBC.
    Calls,
    /// ChainifyDB's four transactions as calls.
    ChainifyCalls,
    /// ChainifyDB's four transactions as scripts: the databases of the ledger execute those.
    ChainifyScripts,
    /// Calls in the schemas `bank1`, `bank2`, …, each with Smallbank's tables and procedures: as `Calls`, and payments from a bank to
    /// another one (`bank1.pay_bank2`).
    CallsInSchemas {
        /// How many schemas.
        schemas: u8,
        /// Of a hundred transactions so many are payments over two schemas.
        crossing_percent: u8,
    },
}

/// Why a load cannot run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Options that make no sense.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// No gateway answers, or one answers with what cannot be.
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
    /// Transactions without a receipt that were refused for another reason.
    pub unanswered: u64,
    /// How often a transaction was submitted again, the same bytes, because the gateway that had it ended or gave it up.
    pub repeated: u64,
    /// From the first submission to the last receipt.
    pub seconds: f64,
    /// Committed transactions per second.
    pub throughput_tps: f64,
    /// From submission to receipt.
    pub latency_ms: LatencyMs,
    /// The longest time that the clients of one organisation had no answer, between two answers.
    pub longest_pause: Duration,
    /// By how much the sum of all balances must have changed.
    pub money_change: i128,
}

/// A load that runs against the gateways of several organisations.
pub struct Load {
    clients: Arc<[Client]>,
    smallbank: Smallbank,
    options: LoadOptions,
    tally: Arc<Tally>,
}

/// Reaches into a load that runs.
#[derive(Clone)]
pub struct LoadHandle(Arc<Tally>);

impl LoadHandle {
    /// Nothing more is submitted; the load ends once what is under way is answered.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Pauses that ended before now do not count for the report.
    pub fn forget_pauses(&self) {
        self.0.forget_pauses();
    }
}

/// Bytes of a signed call in a schema ([`Submit::CallsInSchemas`]), on average.
///
/// # Errors
/// [`ParameterError`].
pub fn bytes_per_call(identity: &Identity, customers: u64) -> Result<f64, ParameterError> {
    const CALLS: usize = 1_000;
    let (smallbank, mut random) = (Smallbank::new(customers, 0.0)?, StdRng::seed_from_u64(1));
    let bytes = (0..CALLS).map(|_| {
        let Call { procedure, arguments } = smallbank.next_call(&mut random);
        let procedure = format!("bank1.{procedure}");
        identity.sign(Payload::Call { procedure, arguments }, 100_000).to_bytes().len()
    });
    Ok(bytes.sum::<usize>() as f64 / CALLS as f64)
}

impl Load {
    /// Prepares a load over `clients`, one per gateway.
    ///
    /// # Errors
    /// [`LoadError::Parameter`].
    pub fn new(clients: Vec<Client>, options: LoadOptions) -> Result<Load, LoadError> {
        let smallbank = Smallbank::new(options.customers, options.skew)?;
        let smallbank = match options.submit {
            Submit::Calls | Submit::CallsInSchemas { .. } => smallbank,
            Submit::ChainifyCalls | Submit::ChainifyScripts => smallbank.with_chainify_mix(),
        };
        let tally = Arc::new(Tally::new(clients.len()));
        Ok(Load { clients: clients.into(), smallbank, options, tally })
    }

    /// To end the load early, and to say which pauses count.
    pub fn handle(&self) -> LoadHandle {
        LoadHandle(self.tally.clone())
    }

    /// Runs for `time` or until it is stopped, calls `progress` every second, then waits for the receipts that are missing.
    ///
    /// # Errors
    /// No gateway answers for two minutes. The transactions that have no receipt yet are lost to the report.
    pub async fn run(
        self,
        time: Duration,
        mut progress: impl FnMut(LoadProgress),
    ) -> Result<LoadReport, LoadError> {
        self.learn_height().await?;
        let start = Instant::now();
        let (mut workers, mut returns) = (tokio::task::JoinSet::new(), tokio::task::JoinSet::new());
        for home in 0..self.clients.len() {
            let route = Arc::new(Route::new(home, self.clients.clone()));
            for task in 0..self.tasks_per_gateway() {
                let worker = self.worker(&route, (home, task));
                match self.options.pace {
                    Pace::Closed { transactions, .. } => workers.spawn(worker.closed_loop(transactions)),
                    Pace::Open { rate } => workers.spawn(worker.open_loop(rate / self.clients.len() as f64)),
                };
            }
            let tally = self.tally.clone();
            returns.spawn(async move { route.return_when_level(&tally).await });
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        ticks.tick().await;
        while start.elapsed() < time && !self.tally.is_stopped() {
            tokio::select! {
                _ = ticks.tick() => progress(self.tally.progress()),
                // Before the end only a failure ends a worker.
                Some(ended) = workers.join_next() => finished(ended)?,
            }
        }
        self.tally.stop();
        while let Some(ended) = workers.join_next().await {
            finished(ended)?;
        }
        let mut worker = self.worker(&Arc::new(Route::new(0, self.clients.clone())), (0, usize::MAX));
        settle::settle(&mut worker).await;
        Ok(self.tally.report(start.elapsed().as_secs_f64()))
    }

    /// The newest height of any node: what is signed expires so many blocks later.
    async fn learn_height(&self) -> Result<(), ClientError> {
        let (mut answered, mut failure) = (false, None);
        for client in self.clients.iter() {
            match client.status().await {
                Ok(status) => {
                    answered = true;
                    self.tally.reached(status.height);
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.filter(|_| !answered).map_or(Ok(()), Err)
    }

    fn worker(&self, route: &Arc<Route>, (home, task): (usize, usize)) -> Worker {
        let seed = self.options.seed ^ ((home as u64 + 1) << 32) ^ ((task as u64).wrapping_add(1) << 16);
        let workload = (self.smallbank.clone(), self.options.submit);
        Worker::new(route.clone(), self.tally.clone(), workload, seed)
    }

    fn tasks_per_gateway(&self) -> usize {
        match self.options.pace {
            Pace::Closed { submissions, .. } => submissions,
            Pace::Open { .. } => 1,
        }
    }
}

/// The result of a task; its panic goes on in this one.
fn finished<T>(ended: Result<T, tokio::task::JoinError>) -> T {
    ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
