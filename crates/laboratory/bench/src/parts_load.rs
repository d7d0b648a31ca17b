//! Transactions in schemas with members, through the gateways of their members: as many as get answers.

use crate::LoadError;
use client::{Client, ClientError};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use types::{Outcome, PartSubmission, Payload, SqlState};
use workloads::Call;
use workloads::smallbank::{Smallbank, money_change};

/// How far ahead the expiry heights lie.
const EXPIRY_BLOCKS: u64 = 2_000;
/// Pause after a submission that a gateway did not take.
const PAUSE: Duration = Duration::from_millis(50);

/// What to run.
#[derive(Clone, Debug)]
pub struct PartsLoadOptions {
    /// The schemas, each with Smallbank's tables and procedures. A transaction calls a procedure in each.
    pub schemas: BTreeSet<String>,
    /// Customers, already loaded.
    pub customers: u64,
    /// Zipf's exponent.
    pub skew: f64,
    /// Submissions under way at each gateway.
    pub submissions: usize,
    /// Transactions of a submission.
    pub transactions: usize,
    /// Seed of the workload.
    pub seed: u64,
}

/// What a load came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartsLoadReport {
    /// Transactions that committed in all of them.
    pub committed: u64,
    /// Transactions that the contract ended.
    pub business_aborts: u64,
    /// Transactions with parts in several schemas that were not decided within the window.
    pub undecided: u64,
    /// Transactions without a receipt.
    pub unanswered: u64,
    /// From the first submission to the last receipt.
    pub seconds: f64,
    /// Committed transactions per second.
    pub throughput_tps: f64,
    /// By how much the sum of all balances must have changed.
    pub money_change: i128,
}

#[derive(Default)]
struct Counted {
    stop: AtomicBool,
    height: AtomicU64,
    committed: AtomicU64,
    business_aborts: AtomicU64,
    undecided: AtomicU64,
    unanswered: AtomicU64,
}

/// Runs the load through `clients`, one per member's gateway, for `time`.
///
/// # Errors
/// Options that make no sense; a gateway that does not answer.
pub async fn parts_load(
    clients: &[Client],
    options: &PartsLoadOptions,
    time: Duration,
) -> Result<PartsLoadReport, LoadError> {
    let smallbank = Smallbank::new(options.customers, options.skew)?;
    let counted = Arc::new(Counted::default());
    for client in clients {
        counted.height.fetch_max(client.status().await?.height, Ordering::Relaxed);
    }
    let (start, mut workers) = (Instant::now(), tokio::task::JoinSet::new());
    for (home, client) in clients.iter().enumerate() {
        for task in 0..options.submissions {
            let seed = options.seed ^ ((home as u64 + 1) << 32) ^ ((task as u64 + 1) << 16);
            let random = StdRng::seed_from_u64(seed);
            workers.spawn(work(client.clone(), smallbank.clone(), options.clone(), counted.clone(), random));
        }
    }
    tokio::time::sleep(time).await;
    counted.stop.store(true, Ordering::Relaxed);
    let mut money = 0;
    while let Some(ended) = workers.join_next().await {
        money += ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let committed = counted.committed.load(Ordering::Relaxed);
    Ok(PartsLoadReport {
        committed,
        business_aborts: counted.business_aborts.load(Ordering::Relaxed),
        undecided: counted.undecided.load(Ordering::Relaxed),
        unanswered: counted.unanswered.load(Ordering::Relaxed),
        seconds,
        throughput_tps: committed as f64 / seconds,
        money_change: money,
    })
}

/// One submission after the other. Gives by how much it has changed the sum of all balances.
async fn work(
    client: Client,
    smallbank: Smallbank,
    options: PartsLoadOptions,
    counted: Arc<Counted>,
    mut random: StdRng,
) -> Result<i128, ClientError> {
    let mut money = 0;
    while !counted.stop.load(Ordering::Relaxed) {
        let expires_at = counted.height.load(Ordering::Relaxed) + EXPIRY_BLOCKS;
        let (mut calls, mut submissions) = (Vec::new(), Vec::new());
        for _ in 0..options.transactions {
            let of_schema = |schema: &String| (schema.clone(), smallbank.next_call(&mut random));
            let of_schemas: Vec<(String, Call)> = options.schemas.iter().map(of_schema).collect();
            let payload = |(schema, call): &(String, Call)| {
                let procedure = format!("{schema}.{}", call.procedure);
                (schema.clone(), Payload::Call { procedure, arguments: call.arguments.clone() })
            };
            let payloads: Vec<_> = of_schemas.iter().map(payload).collect();
            let (signed, parts) = client.identity().sign_parts(payloads, expires_at);
            submissions.push(PartSubmission { transaction: signed.to_bytes(), parts });
            calls.push(of_schemas);
        }
        let mut replies = match client.submit_parts(&submissions).await {
            Ok(replies) => replies,
            Err(ClientError::Refused { status: 503, .. }) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        while let Some(reply) = replies.next().await? {
            let Ok(receipt) = reply.result else {
                counted.unanswered.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            counted.height.fetch_max(receipt.height, Ordering::Relaxed);
            let counter = match &receipt.outcome {
                Outcome::Committed(_) => &counted.committed,
                // A part that its own schema refuses has another error.
                Outcome::Aborted(error) if error.state == SqlState::TRANSACTION_ROLLBACK => {
                    &counted.undecided
                }
                Outcome::Aborted(_) => &counted.business_aborts,
                Outcome::Conflict | Outcome::Rejected(_) => &counted.unanswered,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            if let (Some(calls), Outcome::Committed(results)) =
                (calls.get(reply.position as usize), receipt.outcome)
            {
                // A result for each call, in the order of the schemas.
                for ((_, call), result) in calls.iter().zip(results) {
                    money += money_change(call.procedure, &call.arguments, &Outcome::Committed(vec![result]));
                }
            }
        }
    }
    Ok(money)
}
