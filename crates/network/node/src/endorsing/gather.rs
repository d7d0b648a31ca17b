//! Endorsements for one batch: executes it here, asks others, compares, and hands over to ordering what is endorsed enough.
//! How others are asked, and when, is for [`Others`]: over HTTP at a node, at once in a simulated network.

use super::collection::{Collection, Question};
use super::endorser::{Endorser, Simulated};
use super::proposer::Proposer;
use crate::metrics::NodeMetrics;
use crate::submission::{Submitted, Submitter};
use bytes::Bytes;
use engine::EndorsementBasis;
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::block_in_place;
use types::{
    EndorsementFault, Place, ProposalRefusal, ProposalReply, ProposalRequest, RejectReason, SqlError,
    SqlState, SubmissionRefusal, TransactionId,
};

/// The endorsers of other organisations, as the charter of one height names them.
pub(crate) trait Others {
    /// Names of all organisations, by position.
    fn names(&self) -> &[String];

    /// Positions of those that can be asked, this node's included, the best first.
    fn preference(&self) -> Vec<u16>;

    /// Asks one; says for people why there is no answer.
    fn ask(
        &self,
        organisation: u16,
        request: &ProposalRequest,
    ) -> impl Future<Output = Result<ProposalReply, String>> + Send;

    /// One has failed, forged, or found something else.
    fn avoid(&self, organisation: u16);
}

/// What gathering endorsements needs of its node.
pub(crate) struct Gather {
    pub(crate) endorser: Arc<Endorser>,
    /// Drops what has become stale while it was endorsed, under protocols that do that.
    pub(crate) proposer: Option<Arc<Proposer>>,
    pub(crate) submitter: Arc<Submitter>,
    pub(crate) metrics: Arc<NodeMetrics>,
    /// How long a batch is executed here; what is left then is to come later.
    pub(crate) simulated_within: Duration,
}

/// Transactions that their contract refuses on the state of some height. Their clients hear it from [`Aborted::tell`].
pub(crate) struct Aborted {
    height: u64,
    transactions: Vec<(Submitted, TransactionId, SqlError)>,
}

impl Aborted {
    /// Whether the block whose state they failed on, which is executed, is recorded.
    pub(crate) fn is_recorded(&self, submitter: &Submitter) -> bool {
        submitter.published.newest().0 >= self.height
    }

    /// Tells clients that their transactions end with errors, unless they were executed before: the state on which they
    /// failed may hold their own effects. What that state holds is to be recorded by now.
    pub(crate) fn tell(self, submitter: &Submitter) {
        for (one, id, error) in self.transactions {
            match submitter.executed_receipt(&id) {
                Ok(Some(receipt)) => submitter.answer_executed(one, receipt),
                Ok(None) => one.reply(Err(SubmissionRefusal::Aborted(error))),
                Err(_) => one.reply(Err(SubmissionRefusal::Unknown)),
            }
        }
    }
}

/// A transaction, as it came, and what it does.
type Proposed = (Submitted, Bytes, Simulated);

/// A batch that was executed here.
pub(crate) struct Executed {
    basis: EndorsementBasis,
    proposed: Vec<Proposed>,
}

impl Executed {
    /// The height in whose block these endorsements are to count.
    pub(crate) fn next_height(&self) -> u64 {
        self.basis.height + 1
    }
}

impl Gather {
    /// Executes a batch on this node's newest state: what is worth endorsing, and what its contract refuses. The rest has
    /// its answer.
    pub(crate) fn execute(&self, batch: Vec<Submitted>) -> (Option<Executed>, Option<Aborted>) {
        let basis = self.endorser.newest();
        let bytes: Vec<Bytes> = batch.iter().map(|one| one.bytes.clone()).collect();
        // Signatures and contracts: tell the runtime that this thread is busy for a while.
        let found = block_in_place(|| self.endorser.simulate(&basis, &bytes, self.simulated_within));
        let (mut proposed, mut aborted) = (Vec::new(), Vec::new());
        for ((one, bytes), found) in batch.into_iter().zip(bytes).zip(found) {
            let id = match &found {
                Ok(simulated) => simulated.transaction.id,
                Err((id, _)) => *id,
            };
            // What was executed already gets its receipt, however it would end now.
            match self.submitter.executed_receipt(&id) {
                Ok(None) => {}
                Ok(Some(receipt)) => {
                    self.submitter.answer_executed(one, receipt);
                    continue;
                }
                Err(_) => {
                    one.reply(Err(SubmissionRefusal::Unknown));
                    continue;
                }
            }
            match found {
                Ok(found) => proposed.push((one, bytes, found)),
                Err((id, ProposalRefusal::Aborted(error))) => aborted.push((one, id, error)),
                Err((_, ProposalRefusal::Rejected(reason))) => {
                    self.metrics.collected("rejected", 1);
                    one.reply(Err(SubmissionRefusal::Rejected(reason)));
                }
                Err((_, ProposalRefusal::Busy | ProposalRefusal::Disagrees(_))) => {
                    one.reply(Err(SubmissionRefusal::Full))
                }
            }
        }
        self.metrics.collected("aborted", aborted.len() as u64);
        let height = basis.height;
        let executed = (!proposed.is_empty()).then_some(Executed { basis, proposed });
        let aborted = (!aborted.is_empty()).then_some(Aborted { height, transactions: aborted });
        (executed, aborted)
    }

    /// Has what was executed endorsed by as many others as it takes, and submits it. Clients whose transactions nobody, or
    /// not enough, endorse hear it.
    pub(crate) async fn endorse(&self, executed: Executed, others: &impl Others) {
        let Executed { basis, proposed } = executed;
        let mut collection = Collection::new(&basis, others.names(), others.preference(), proposed);
        let endorsed = loop {
            let questions = collection.questions();
            if !questions.is_empty() {
                self.ask(others, &mut collection, questions, basis.height).await;
                continue;
            }
            self.drop_stale(&mut collection, basis.height);
            let endorsed = block_in_place(|| collection.endorsed());
            let forged = block_in_place(|| self.forged(basis.height, &endorsed));
            if forged.is_empty() {
                break endorsed;
            }
            for (position, organisation) in forged {
                others.avoid(organisation);
                collection.forged(position, organisation);
            }
        };
        self.submit(collection.finish(endorsed));
    }

    /// Asks everybody at once, this node itself included.
    async fn ask(
        &self,
        others: &impl Others,
        collection: &mut Collection<'_, Submitted>,
        questions: Vec<Question>,
        height: u64,
    ) {
        let (own, foreign): (Vec<Question>, Vec<Question>) =
            questions.into_iter().partition(|question| question.organisation == self.endorser.organisation());
        let requests: Vec<_> = foreign.iter().map(|question| collection.request(question)).collect();
        let asked = foreign
            .iter()
            .zip(&requests)
            .map(|(question, request)| others.ask(question.organisation, request));
        let replies: Vec<Result<ProposalReply, String>> = join_all(asked).await;
        for question in own {
            let verdicts =
                block_in_place(|| self.endorser.judge(collection.basis(), &collection.simulated(&question)));
            let agreed = collection.judged(question, verdicts);
            let endorsements = self.endorser.sign(height, &collection.own(&agreed));
            collection.signed(&agreed, endorsements);
        }
        for (question, reply) in foreign.iter().zip(replies) {
            if let Err(reason) = &reply {
                let organisation = &others.names()[usize::from(question.organisation)];
                tracing::warn!(organisation, reason, "an endorser does not endorse");
            }
            let diverging = collection.answered(question, reply);
            if diverging > 0 {
                others.avoid(question.organisation);
            }
            self.metrics.diverging(diverging);
        }
    }

    fn drop_stale(&self, collection: &mut Collection<'_, Submitted>, height: u64) {
        let Some(proposer) = &self.proposer else { return };
        let stale =
            collection.take_where(|one| proposer.is_hopeless(&one.transaction.id, &one.effects, height));
        self.metrics.collected("stale", stale.len() as u64);
        stale.into_iter().for_each(|one| one.reply(Err(SubmissionRefusal::EarlyAbort { stale: true })));
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
        let judged = self.submitter.verifier.check(place, &bytes).into_iter();
        positions
            .into_iter()
            .zip(judged)
            .filter_map(|(position, judged)| Some((position, forger(judged)?)))
            .collect()
    }

    /// Hands over what is endorsed enough, and tells the clients of the rest why theirs is not.
    fn submit(&self, finished: Vec<(Submitted, Result<Bytes, SqlError>)>) {
        let mut ready = Vec::new();
        for (mut one, endorsed) in finished {
            match endorsed {
                Ok(bytes) => {
                    one.bytes = bytes;
                    ready.push(one);
                }
                Err(error) => {
                    // That somebody does not agree is no fault of anybody's.
                    match error.state == SqlState::CHECK_VIOLATION {
                        true => {
                            tracing::debug!(error = error.message, detail = error.detail, "not agreed to")
                        }
                        false => tracing::warn!(
                            error = error.message,
                            detail = error.detail,
                            "a transaction is not endorsed"
                        ),
                    }
                    self.metrics.collected("not_endorsed", 1);
                    one.reply(Err(SubmissionRefusal::NotEndorsed(error)));
                }
            }
        }
        self.metrics.collected("endorsed", ready.len() as u64);
        block_in_place(|| self.submitter.submit(ready));
    }
}
