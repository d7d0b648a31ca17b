//! Has the transactions of this node's clients endorsed before they are ordered.

use super::endorser::Endorser;
use super::gather::{Aborted, Gather};
use super::peers::Peers;
use super::proposer::Proposer;
use crate::metrics::NodeMetrics;
use crate::submission::{Submitted, Submitter};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use types::SubmissionRefusal;

/// Transactions that are endorsed together: one request to each endorser, one signature of each.
const BATCH_TRANSACTIONS: usize = 512;
/// Bytes of them.
const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// Batches that are under way at once. What arrives meanwhile makes the next ones larger.
const BATCHES_MAX: usize = 4;
/// Submissions that may wait.
const WAITING_MAX: usize = 4_096;
/// Bytes of all transactions that wait; beyond them clients are told to come later.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long a batch is executed here; what is left then is to come later.
const SIMULATED_WITHIN: Duration = Duration::from_secs(5);
/// How long a refusal waits for the block whose state it was found on, which is executed, to be recorded.
const RECORDED_WITHIN: Duration = Duration::from_secs(5);
const RECORDED_POLL: Duration = Duration::from_millis(2);

/// Takes transactions without endorsements and hands them to the [`Submitter`] with them.
pub(crate) struct Collector {
    waiting: mpsc::Sender<Vec<Submitted>>,
    waiting_bytes: Arc<AtomicUsize>,
}

struct Work {
    gather: Gather,
    peers: Peers,
    batches: Arc<Semaphore>,
    /// Of the transactions in the queue.
    waiting_bytes: Arc<AtomicUsize>,
    /// Counts batches, so that the others are asked in turn.
    turn: AtomicUsize,
}

/// What these transactions failed on is recorded a moment later.
async fn tell_aborted(submitter: Arc<Submitter>, aborted: Aborted) {
    let start = Instant::now();
    while !aborted.is_recorded(&submitter) && start.elapsed() < RECORDED_WITHIN {
        tokio::time::sleep(RECORDED_POLL).await;
    }
    aborted.tell(&submitter);
}

impl Collector {
    /// Starts on `runtime`.
    pub(crate) fn start(
        runtime: &tokio::runtime::Handle,
        endorser: Arc<Endorser>,
        peers: Peers,
        submitter: Arc<Submitter>,
        proposer: Option<Arc<Proposer>>,
        metrics: Arc<NodeMetrics>,
    ) -> Collector {
        let (waiting, queue) = mpsc::channel(WAITING_MAX);
        let gather = Gather { endorser, proposer, submitter, metrics, simulated_within: SIMULATED_WITHIN };
        let work = Work {
            gather,
            peers,
            batches: Arc::new(Semaphore::new(BATCHES_MAX)),
            waiting_bytes: Arc::default(),
            turn: AtomicUsize::new(0),
        };
        let waiting_bytes = work.waiting_bytes.clone();
        runtime.spawn(Arc::new(work).run(queue));
        Collector { waiting, waiting_bytes }
    }

    /// Has transactions endorsed and submitted; replies come when they are recorded, or refused.
    pub(crate) fn endorse(&self, transactions: Vec<Submitted>) {
        let mut batch = Vec::new();
        for one in transactions {
            if is_full(&batch) {
                self.send(std::mem::take(&mut batch));
            }
            batch.push(one);
        }
        if !batch.is_empty() {
            self.send(batch);
        }
    }

    fn send(&self, batch: Vec<Submitted>) {
        let bytes = bytes_of(&batch);
        let refused = match self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes {
            waiting if waiting > WAITING_BYTES_MAX => Some(batch),
            _ => self.waiting.try_send(batch).err().map(|refused| refused.into_inner()),
        };
        if let Some(refused) = refused {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            refused.into_iter().for_each(|one| one.reply(Err(SubmissionRefusal::Full)));
        }
    }
}

fn bytes_of(batch: &[Submitted]) -> usize {
    batch.iter().map(|one| one.bytes.len()).sum()
}

/// Whether a batch is as large as one should be.
fn is_full(batch: &[Submitted]) -> bool {
    batch.len() >= BATCH_TRANSACTIONS || bytes_of(batch) >= BATCH_BYTES
}

impl Work {
    async fn run(self: Arc<Self>, mut queue: mpsc::Receiver<Vec<Submitted>>) {
        while let Some(mut batch) = queue.recv().await {
            let Ok(permit) = self.batches.clone().acquire_owned().await else { return };
            while !is_full(&batch)
                && let Ok(more) = queue.try_recv()
            {
                batch.extend(more);
            }
            self.waiting_bytes.fetch_sub(bytes_of(&batch), Ordering::Relaxed);
            // Whoever has gone needs nothing.
            batch.retain(|one| !one.replies.is_closed());
            let work = self.clone();
            tokio::spawn(async move {
                work.endorse(batch).await;
                drop(permit);
            });
        }
    }

    async fn endorse(&self, batch: Vec<Submitted>) {
        let (executed, aborted) = self.gather.execute(batch);
        if let Some(aborted) = aborted {
            tokio::spawn(tell_aborted(self.gather.submitter.clone(), aborted));
        }
        if let Some(executed) = executed {
            let endorsers = self.peers.at(executed.next_height());
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            self.gather.endorse(executed, &endorsers.in_turn(turn)).await;
        }
    }
}
