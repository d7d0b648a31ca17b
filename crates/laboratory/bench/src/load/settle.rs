//! What has become of transactions that one gateway had and another one has refused.
//!
//! Where transactions are endorsed before they are ordered, a gateway refuses those that its endorsers cannot execute, without
//! ordering them. That says nothing of a transaction which a gateway that has ended had before: its last block may hold it.
//! A node that has ended proposes no more, so whatever it proposed stands below every block that was proposed later. Once a
//! gateway has executed a transaction that was signed after the end, its next word on the others is the last one.

use super::submission::Submission;
use super::worker::Worker;
use client::ClientError;
use futures::future::join_all;
use std::time::{Duration, Instant};
use types::SubmissionRefusal;

/// How long it may take.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);

/// Finds out what has become of all that was left undecided, and counts it; what nobody says in time is unanswered. Nothing
/// else is submitted meanwhile.
pub(super) async fn settle(worker: &mut Worker) {
    let start = Instant::now();
    let mut undecided = worker.tally.take_undecided();
    while !undecided.is_empty() {
        if start.elapsed() > SETTLED_WITHIN {
            let open: usize = undecided.iter().map(|submission| submission.open.len()).sum();
            (0..open).for_each(|_| worker.tally.count_refusal(&SubmissionRefusal::Unknown));
            return;
        }
        if settle_at_one(worker, &mut undecided).await.is_err() {
            worker.route.leave(worker.route.gateway().0);
        }
        undecided.retain(|submission| !submission.open.is_empty());
        undecided.extend(worker.tally.take_undecided());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks one gateway, once it has executed something new. What is still open is undecided.
async fn settle_at_one(worker: &mut Worker, undecided: &mut Vec<Submission>) -> Result<(), ClientError> {
    let before = worker.tally.height();
    let mut witness = Submission::new(worker.route.home(), worker.sign(1));
    let asked = witness.ask(worker.route.gateway().1, &worker.tally).await;
    let unanswered = !witness.open.is_empty();
    if unanswered {
        undecided.push(witness);
    }
    asked?;
    if unanswered || worker.tally.height() == before {
        // It was refused itself; the next one will do.
        return Ok(());
    }
    let (_, client) = worker.route.gateway();
    let asked = undecided.iter_mut().map(|submission| {
        submission.may_be_ordered = false;
        submission.ask(client, &worker.tally)
    });
    join_all(asked).await.into_iter().collect()
}
