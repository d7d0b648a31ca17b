//! Has the transactions of this node's clients endorsed before they are ordered.

use super::collection::{Collection, Question};
use super::endorser::{Endorser, Simulated};
use super::peers::{Endorsers, Peers};
use super::proposer::Proposer;
use crate::metrics::NodeMetrics;
use crate::submission::{Submitted, Submitter};
use bytes::Bytes;
use engine::{EndorsementBasis, Verifier};
use futures::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use types::{
    EndorsementFault, Place, ProposalRefusal, ProposalReply, RejectReason, SqlError, SubmissionRefusal,
    TransactionId,
};

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
    endorser: Arc<Endorser>,
    peers: Peers,
    verifier: Arc<Verifier>,
    /// Drops what has become stale while it was endorsed, under protocols that do that.
    proposer: Option<Arc<Proposer>>,
    submitter: Arc<Submitter>,
    metrics: Arc<NodeMetrics>,
    batches: Arc<Semaphore>,
    /// Of the transactions in the queue.
    waiting_bytes: Arc<AtomicUsize>,
    /// Counts batches, so that the others are asked in turn.
    turn: AtomicUsize,
}

/// A transaction, as it came, and what it does.
type Proposed = (Submitted, Bytes, Simulated);
/// A transaction that its contract refuses.
type Aborted = (Submitted, TransactionId, SqlError);

/// Tells clients that their transactions end with errors, unless they were executed before: the state on which they failed may
/// hold their own effects. What that state holds is recorded a moment later.
async fn tell_aborted(submitter: Arc<Submitter>, height: u64, aborted: Vec<Aborted>) {
    let start = Instant::now();
    while submitter.published.newest().0 < height && start.elapsed() < RECORDED_WITHIN {
        tokio::time::sleep(RECORDED_POLL).await;
    }
    for (one, id, error) in aborted {
        match submitter.executed_receipt(&id) {
            Some(receipt) => one.reply(Ok(receipt)),
            None => one.reply(Err(SubmissionRefusal::Aborted(error))),
        }
    }
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
        let work = Work {
            endorser,
            peers,
            verifier: submitter.verifier.clone(),
            proposer,
            submitter,
            metrics,
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
        let basis = self.endorser.newest();
        // Signatures and contracts: tell the runtime that this thread is busy for a while.
        let (simulated, aborted) = tokio::task::block_in_place(|| self.simulate(&basis, batch));
        if !aborted.is_empty() {
            tokio::spawn(tell_aborted(self.submitter.clone(), basis.height, aborted));
        }
        if simulated.is_empty() {
            return;
        }
        // They are to count in the next block.
        let endorsers = self.peers.at(basis.height + 1);
        let preference = endorsers.by_preference(self.turn.fetch_add(1, Ordering::Relaxed));
        let mut collection = Collection::new(&basis, &endorsers.names, preference, simulated);
        let endorsed = loop {
            let questions = collection.questions();
            if !questions.is_empty() {
                self.ask(&endorsers, &mut collection, questions, basis.height).await;
                continue;
            }
            if let Some(proposer) = &self.proposer {
                let stale = collection
                    .take_where(|one| proposer.is_hopeless(&one.transaction.id, &one.effects, basis.height));
                self.metrics.collected("stale", stale.len() as u64);
                stale
                    .into_iter()
                    .for_each(|one| one.reply(Err(SubmissionRefusal::EarlyAbort { stale: true })));
            }
            let endorsed = tokio::task::block_in_place(|| collection.endorsed());
            let forged = tokio::task::block_in_place(|| self.forged(basis.height, &endorsed));
            if forged.is_empty() {
                break endorsed;
            }
            for (position, organisation) in forged {
                endorsers.avoid(organisation);
                collection.forged(position, organisation);
            }
        };
        let mut ready = Vec::new();
        for (mut one, endorsed) in collection.finish(endorsed) {
            match endorsed {
                Ok(bytes) => {
                    one.bytes = bytes;
                    ready.push(one);
                }
                Err(error) => {
                    tracing::warn!(
                        error = error.message,
                        detail = error.detail,
                        "a transaction is not endorsed"
                    );
                    self.metrics.collected("not_endorsed", 1);
                    one.reply(Err(SubmissionRefusal::NotEndorsed(error)));
                }
            }
        }
        self.metrics.collected("endorsed", ready.len() as u64);
        tokio::task::block_in_place(|| self.submitter.submit(ready));
    }

    /// What is worth endorsing, and what its contract refuses. The rest has its answer.
    fn simulate(&self, basis: &EndorsementBasis, batch: Vec<Submitted>) -> (Vec<Proposed>, Vec<Aborted>) {
        let bytes: Vec<Bytes> = batch.iter().map(|one| one.bytes.clone()).collect();
        let found = self.endorser.simulate(basis, &bytes, SIMULATED_WITHIN);
        let (mut simulated, mut aborted) = (Vec::new(), Vec::new());
        for ((one, bytes), found) in batch.into_iter().zip(bytes).zip(found) {
            let id = match &found {
                Ok(simulated) => simulated.transaction.id,
                Err((id, _)) => *id,
            };
            // What was executed already gets its receipt, however it would end now.
            if let Some(receipt) = self.submitter.executed_receipt(&id) {
                one.reply(Ok(receipt));
                continue;
            }
            match found {
                Ok(found) => simulated.push((one, bytes, found)),
                Err((id, ProposalRefusal::Aborted(error))) => aborted.push((one, id, error)),
                Err((_, ProposalRefusal::Rejected(reason))) => {
                    self.metrics.collected("rejected", 1);
                    one.reply(Err(SubmissionRefusal::Rejected(reason)));
                }
                Err((_, ProposalRefusal::Busy)) => one.reply(Err(SubmissionRefusal::Full)),
            }
        }
        self.metrics.collected("aborted", aborted.len() as u64);
        (simulated, aborted)
    }

    /// Asks everybody at once, this node itself included.
    async fn ask(
        &self,
        endorsers: &Endorsers,
        collection: &mut Collection<'_, Submitted>,
        questions: Vec<Question>,
        height: u64,
    ) {
        let (own, others): (Vec<Question>, Vec<Question>) =
            questions.into_iter().partition(|question| question.organisation == self.endorser.organisation());
        let requests: Vec<_> = others.iter().map(|question| collection.request(question)).collect();
        let asked = others
            .iter()
            .zip(&requests)
            .map(|(question, request)| endorsers.ask(question.organisation, request));
        let replies: Vec<Result<ProposalReply, String>> = join_all(asked).await;
        for question in own {
            let endorsements = self.endorser.sign(height, &collection.own(&question));
            collection.signed(&question, endorsements);
        }
        for (question, reply) in others.iter().zip(replies) {
            if let Err(reason) = &reply {
                let organisation = &endorsers.names[usize::from(question.organisation)];
                tracing::warn!(organisation, reason, "an endorser does not endorse");
            }
            let diverging = collection.answered(question, reply);
            if diverging > 0 {
                endorsers.avoid(question.organisation);
            }
            self.metrics.diverging(diverging);
        }
    }

    /// Which endorsements are forged: position of the transaction, and whose. The good ones need not be verified again.
    fn forged(&self, height: u64, endorsed: &[Result<Bytes, SqlError>]) -> Vec<(usize, u16)> {
        let (positions, bytes): (Vec<usize>, Vec<Bytes>) = endorsed
            .iter()
            .enumerate()
            .filter_map(|(position, endorsed)| Some((position, endorsed.as_ref().ok()?.clone())))
            .unzip();
        let forger = |judged| match judged {
            Err((_, RejectReason::Endorsement(EndorsementFault::Forged { organisation, .. }))) => {
                Some(organisation)
            }
            _ => None,
        };
        let place = Place { charters: &self.submitter.charters.all(), height: height + 1 };
        let judged = self.verifier.check(place, &bytes).into_iter();
        positions
            .into_iter()
            .zip(judged)
            .filter_map(|(position, judged)| Some((position, forger(judged)?)))
            .collect()
    }
}
