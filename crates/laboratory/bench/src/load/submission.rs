//! A submission, until every transaction of it has an answer.

use super::route::Route;
use super::tally::Tally;
use client::{Client, ClientError};
use std::time::{Duration, Instant};
use types::{SignedTransaction, SubmissionRefusal};

/// Pause before transactions that a full node has refused are submitted again.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// Pause when every gateway was asked and none has answered.
const NOBODY_PAUSE: Duration = Duration::from_millis(100);
/// A gateway that refuses for so long is left, as one that does not answer: it may have stopped serving, and another one takes
/// the submission.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// When no gateway takes a submission for so long the network is out of service.
const NOBODY_FOR: Duration = Duration::from_secs(120);
/// A transaction that is not endorsed for so long counts as refused: endorsers that are away come back before.
const NOT_ENDORSED_FOR: Duration = Duration::from_secs(60);

/// Transactions of one organisation's clients that were first submitted together.
pub(super) struct Submission {
    pub(super) home: usize,
    pub(super) open: Vec<SignedTransaction>,
    pub(super) submitted: Instant,
    /// A gateway had these and has not said what became of them: they may be in a block. A refusal by another gateway says
    /// nothing then.
    pub(super) may_be_ordered: bool,
}

impl Submission {
    pub(super) fn new(home: usize, open: Vec<SignedTransaction>) -> Submission {
        Submission { home, open, submitted: Instant::now(), may_be_ordered: false }
    }

    /// Asks one gateway, and keeps as `open` what it does not answer.
    ///
    /// # Errors
    /// The gateway does not answer, or not to the end.
    pub(super) async fn ask(&mut self, client: &Client, tally: &Tally) -> Result<(), ClientError> {
        let mut answered = vec![false; self.open.len()];
        let result = self.receive(client, tally, &mut answered).await;
        let mut answered = answered.into_iter();
        self.open.retain(|_| !answered.next().expect("one for each"));
        result
    }

    async fn receive(
        &mut self,
        client: &Client,
        tally: &Tally,
        answered: &mut [bool],
    ) -> Result<(), ClientError> {
        let mut replies = client.submit(&self.open).await?;
        while let Some(reply) = replies.next().await? {
            let position = reply.position as usize;
            let Some(transaction) = self.open.get(position) else { continue };
            answered[position] = true;
            match reply.result {
                Ok(receipt) => tally.count(self.home, transaction, &receipt, self.submitted),
                Err(SubmissionRefusal::Full | SubmissionRefusal::TooFast { .. }) => {
                    answered[position] = false;
                }
                Err(SubmissionRefusal::Unknown) => {
                    answered[position] = false;
                    self.may_be_ordered = true;
                    tally.count_repeated(1);
                }
                Err(SubmissionRefusal::NotEndorsed(_)) if self.submitted.elapsed() < NOT_ENDORSED_FOR => {
                    answered[position] = false;
                }
                Err(_) if self.may_be_ordered => {
                    tally.leave_undecided(self.home, self.submitted, transaction.clone());
                }
                Err(refusal) => tally.count_refusal(&refusal),
            }
        }
        Ok(())
    }

    /// Asks until everything is answered: the same bytes, at another gateway where one does not answer.
    ///
    /// # Errors
    /// No gateway has taken them for two minutes, or one refuses what no gateway would take.
    pub(super) async fn until_answered(mut self, route: &Route, tally: &Tally) -> Result<(), ClientError> {
        let (mut failures, mut failing) = (0_usize, None);
        let mut refusing = Refusing::default();
        while !self.open.is_empty() {
            let (gateway, client) = route.gateway();
            let Err(error) = self.ask(client, tally).await else {
                (failures, failing, refusing) = (0, None, Refusing::default());
                if !self.open.is_empty() {
                    tokio::time::sleep(FULL_PAUSE).await;
                }
                continue;
            };
            let failing_for = failing.get_or_insert_with(Instant::now).elapsed();
            if failing_for > NOBODY_FOR || !is_temporary(&error) {
                return Err(error);
            }
            // Too many submissions under way, after a pause of the whole network for example.
            if matches!(error, ClientError::Refused { .. }) {
                if refusing.refuses_for(gateway, Instant::now()) >= REFUSED_FOR {
                    route.leave(gateway);
                }
                tokio::time::sleep(FULL_PAUSE).await;
                continue;
            }
            refusing = Refusing::default();
            if !was_never_sent(&error) {
                self.may_be_ordered = true;
                tally.count_repeated(self.open.len());
            }
            route.leave(gateway);
            failures += 1;
            if failures.is_multiple_of(route.gateways()) {
                tokio::time::sleep(NOBODY_PAUSE).await;
            }
        }
        Ok(())
    }
}

/// Which gateway refuses, and since when.
#[derive(Default)]
struct Refusing(Option<(usize, Instant)>);

impl Refusing {
    /// For how long this gateway has refused, without another one between, which it does now.
    fn refuses_for(&mut self, gateway: usize, now: Instant) -> Duration {
        let (_, since) = self.0.filter(|(other, _)| *other == gateway).unwrap_or((gateway, now));
        self.0 = Some((gateway, since));
        now.duration_since(since)
    }
}

/// Whether the same bytes may be taken later, or elsewhere.
fn is_temporary(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Connection { .. } | ClientError::Reply(_) | ClientError::Refused { status: 503, .. }
    )
}

/// Whether there was no connection to send anything on.
fn was_never_sent(error: &ClientError) -> bool {
    matches!(error, ClientError::Connection { error, .. } if error.is_connect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_refuses_for_as_long_as_no_other_one_was_asked() {
        let (mut refusing, start) = (Refusing::default(), Instant::now());
        let mut refuses = |gateway, milliseconds| {
            let now = start + Duration::from_millis(milliseconds);
            refusing.refuses_for(gateway, now).as_millis()
        };
        assert_eq!([refuses(1, 0), refuses(1, 20), refuses(1, 1_000)], [0, 20, 1_000]);
        assert_eq!([refuses(2, 1_020), refuses(2, 1_040)], [0, 20]);
        assert_eq!(refuses(1, 1_060), 0, "it is asked anew");
    }
}
