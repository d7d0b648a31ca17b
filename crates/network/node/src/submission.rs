//! The way of a transaction from a client into ordering, and of the reply back.

use crate::admission::ordering_names;
use crate::charters::DecidedCharters;
use crate::live::Live;
use crate::published::Published;
use crate::receipts::{Begins, Receipts};
use crate::redaction;
use bytes::Bytes;
use engine::Verifier;
use ledger::{Ledger, LedgerError};
use ordering::{Ordering, SubmitError};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use types::{
    AnswerAt, CharterChange, Outcome, Payload, Place, ProposedChange, Receipt, RejectReason, SqlError,
    SqlState, StatementResult, SubmissionRefusal, SubmissionReply, TransactionId,
};

/// A transaction that somebody has submitted and waits for.
pub(crate) struct Submitted {
    /// Its place in the client's submission.
    pub(crate) position: u32,
    pub(crate) bytes: Bytes,
    /// When its receipt is to be sent.
    pub(crate) answer_at: AnswerAt,
    pub(crate) replies: mpsc::Sender<SubmissionReply>,
}

impl Submitted {
    pub(crate) fn reply(&self, result: Result<Receipt, SubmissionRefusal>) {
        // The channel has room for every transaction of its submission; an error says that the client has gone.
        let _ = self.replies.try_send(SubmissionReply { position: self.position, result });
    }
}

/// A transaction's id, and what ordering knows it by.
type Known = (TransactionId, TransactionId);

/// Hands transactions to ordering, and their clients what becomes of them.
pub(crate) struct Submitter {
    pub(crate) charters: Arc<DecidedCharters>,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) published: Arc<Published>,
    pub(crate) receipts: Arc<Receipts>,
    /// How much a client may submit.
    pub(crate) live: Arc<Live>,
    /// Counts from here.
    pub(crate) started: Instant,
}

impl Submitter {
    /// Replies now, or when they are recorded. Verifies signatures, so it is called on a thread that may work.
    pub(crate) fn submit(&self, transactions: Vec<Submitted>) {
        let (waiting, ordered) = self.admit(transactions);
        let verdicts = self.ordering.submit(ordered);
        self.tell_refused(waiting, verdicts);
    }

    /// The same for transactions that need what the others say: they stand in one block.
    pub(crate) fn submit_together(&self, transactions: Vec<Submitted>) {
        let (waiting, ordered) = self.admit(transactions);
        let verdicts = self.ordering.submit_together(ordered);
        self.tell_refused(waiting, verdicts);
    }

    /// What goes to ordering, and what it is known by there; the others are answered.
    fn admit(&self, transactions: Vec<Submitted>) -> (Vec<Known>, Vec<Bytes>) {
        let came = Instant::now();
        let bytes: Vec<Bytes> = transactions.iter().map(|one| one.bytes.clone()).collect();
        let rate_limit = self.live.rate_limit();
        let height = self.published.newest().0;
        let charters = self.charters.all();
        let judged = self.verifier.check(Place { charters: &charters, height: height + 1 }, &bytes);
        let names = ordering_names(&judged, &bytes);
        let ahead_max = u64::from(charters.at(height + 1).charter.expiry_blocks_max);
        let begins = Begins::of(&self.ledger, &charters);
        let (mut waiting, mut ordered) = (Vec::new(), Vec::new());
        for ((one, verdict), name) in transactions.into_iter().zip(judged).zip(names) {
            let transaction = match verdict {
                Ok(transaction) => transaction,
                Err((_, reason)) => {
                    one.reply(Err(SubmissionRefusal::Rejected(reason)));
                    continue;
                }
            };
            let expires_at = transaction.expires_at;
            let executed = match expires_at <= height {
                true => self.executed_receipt(&transaction.id).map_err(|error| self.unanswerable(&error)),
                false => Ok(None),
            };
            let executed = match executed {
                Ok(executed) => executed,
                Err(refusal) => {
                    one.reply(Err(refusal));
                    continue;
                }
            };
            if let Some(receipt) = &executed
                && self.is_due(receipt, one.answer_at)
            {
                one.reply(Ok(receipt.clone()));
                continue;
            }
            if executed.is_none() && expires_at <= height {
                one.reply(Err(begins.expired(height + 1, expires_at)));
                continue;
            }
            if expires_at > height + ahead_max {
                let reason = RejectReason::Expired { height: height + 1, expires_at };
                one.reply(Err(SubmissionRefusal::Rejected(reason)));
                continue;
            }
            if let Some(error) = self.refuses_change(&transaction.payload) {
                one.reply(Err(SubmissionRefusal::Aborted(error)));
                continue;
            }
            // What nodes bring for others is no client's.
            let is_brought = transaction.payload.is_brought_by_nodes();
            if let Some(limit) = &rate_limit
                && !is_brought
                && !limit.admit(transaction.client.key, &transaction.principal, self.started.elapsed())
            {
                one.reply(Err(SubmissionRefusal::TooFast { per_second: limit.per_second() }));
                continue;
            }
            let known_by = (transaction.id, name);
            let (position, answer_at, replies) = (one.position, one.answer_at, one.replies.clone());
            if !self.receipts.wait_since(came, known_by, position, expires_at, answer_at, replies) {
                one.reply(Err(SubmissionRefusal::Full));
                continue;
            }
            // Looked up after the registration, so that a block recorded or attested meanwhile is not missed.
            match self.executed_receipt(&transaction.id) {
                Ok(Some(receipt)) => {
                    let attested = self.is_due(&receipt, AnswerAt::Attested);
                    self.receipts.publish(std::slice::from_ref(&receipt), attested, |_, _| None, |_| name);
                }
                Ok(None) => {
                    ordered.push(one.bytes.clone());
                    waiting.push((transaction.id, name));
                }
                Err(error) => self.receipts.answer(&transaction.id, &name, &Err(self.unanswerable(&error))),
            }
        }
        (waiting, ordered)
    }

    /// What is said of a transaction whose receipt cannot be had. That it has expired would be a promise, which only somebody can
    /// give who can read.
    fn unanswerable(&self, error: &LedgerError) -> SubmissionRefusal {
        match redaction::told(error) {
            Some(redacted) => SubmissionRefusal::Aborted(redacted),
            None => SubmissionRefusal::Unknown,
        }
    }

    /// Tells who waits for a transaction that ordering does not take why not.
    fn tell_refused(&self, waiting: Vec<Known>, verdicts: Vec<Result<TransactionId, SubmitError>>) {
        for ((id, name), verdict) in waiting.into_iter().zip(verdicts) {
            let refusal = match verdict {
                Ok(_) => continue,
                Err(SubmitError::Rejected(reason)) => SubmissionRefusal::Rejected(reason),
                // This node's organisation has left or is still to come, or its key was replaced.
                Err(SubmitError::NoMember { height }) => SubmissionRefusal::NoMember { height },
                Err(_) => SubmissionRefusal::Full,
            };
            self.receipts.answer(&id, &name, &Err(refusal));
        }
    }

    /// Why nobody should agree to an amendment, or to a redaction, through this node.
    fn refuses_change(&self, payload: &Payload) -> Option<SqlError> {
        let library = self.published.library();
        let (parameter, value) = match sql::agreed_change(&library, payload)? {
            ProposedChange::Redaction(redaction) => {
                let checkpoint = self.published.certified().checkpoint();
                let certified = checkpoint.map(|one| one.certificate.statement.height);
                let charters = self.charters.all();
                let of = (&*self.ledger, &charters);
                return redaction::refusal(&redaction.transaction, of, library.catalog(), certified);
            }
            ProposedChange::Charter(CharterChange::SetParameter { parameter, value }) => (parameter, value),
            ProposedChange::Charter(_) | ProposedChange::Script(_) => return None,
        };
        match parameter.as_str() {
            "execution_version" => self.refuses_version(value.parse().ok()?),
            "ordering" | "execution" | "protocol" | "concurrency" => Some(is_founded_with(&parameter)),
            _ => None,
        }
    }

    /// Why nobody should agree to rules of execution through a node that does not have them: it would stop where they hold.
    /// Where all nodes refuse, the ledger cannot come to what nobody can execute.
    fn refuses_version(&self, version: u32) -> Option<SqlError> {
        let newest = self.charters.known_versions().newest();
        if version <= newest.number() {
            return None;
        }
        let message = format!(
            "the program of this node knows execution versions 1 to {newest}, and would stop where version {version} holds"
        );
        let error = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
        Some(
            error.hint(
                "Install a newer version of Entente on the nodes first, then propose or approve it again.",
            ),
        )
    }

    /// Whether a recorded receipt may be handed out to somebody who waits for this moment.
    fn is_due(&self, receipt: &Receipt, answer_at: AnswerAt) -> bool {
        answer_at == AnswerAt::Recorded || receipt.height <= self.published.certified().height()
    }

    /// Answers with the receipt of a transaction that was executed before: now where that is due, else once its outcome is
    /// attested.
    pub(crate) fn answer_executed(&self, one: Submitted, receipt: Receipt) {
        if self.is_due(&receipt, one.answer_at) {
            one.reply(Ok(receipt));
            return;
        }
        let id = receipt.transaction;
        let blocks_max = self.charters.all().at(receipt.height).charter.expiry_blocks_max;
        let waits_until = receipt.height.saturating_add(blocks_max.into());
        if !self.receipts.wait((id, id), one.position, waits_until, one.answer_at, one.replies.clone()) {
            one.reply(Err(SubmissionRefusal::Full));
            return;
        }
        // Looked at again after the registration, so that a certificate that has come meanwhile is not missed.
        if self.is_due(&receipt, AnswerAt::Attested) {
            self.receipts.publish(std::slice::from_ref(&receipt), true, |_, _| None, |_| id);
        }
    }

    /// The receipt of a transaction that was executed (and not merely rejected, which may change).
    ///
    /// # Errors
    /// The ledger cannot be read: nobody knows whether it was.
    pub(crate) fn executed_receipt(&self, id: &TransactionId) -> Result<Option<Receipt>, LedgerError> {
        let receipt = self.receipt(id)?;
        Ok(receipt.filter(|receipt| !matches!(receipt.outcome, Outcome::Rejected(_))))
    }

    /// The receipt of a transaction that is final here.
    ///
    /// # Errors
    /// [`LedgerError::Redacted`]; the ledger cannot be read, which the log has said.
    pub(crate) fn receipt(&self, id: &TransactionId) -> Result<Option<Receipt>, LedgerError> {
        let unreadable = |error: &LedgerError| {
            if !matches!(error, LedgerError::Redacted { .. }) {
                tracing::error!(%error, "the ledger cannot be read");
            }
        };
        self.ledger.receipt(id).inspect_err(unreadable)
    }
}

/// What a session hears of a transaction, or of its part in a schema.
///
/// # Errors
/// What it has ended with.
pub(crate) fn results_of(outcome: Outcome) -> Result<Vec<StatementResult>, SqlError> {
    match outcome {
        Outcome::Committed(results) => Ok(results),
        Outcome::Aborted(error) => Err(error),
        Outcome::Conflict => Err(SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "the transaction conflicts with another one of its block",
        )
        .hint("Submit it again.")),
        Outcome::Rejected(reason) => Err(reason.to_error()),
    }
}

/// What a ledger is founded with stays: its old blocks are checked by it.
fn is_founded_with(parameter: &str) -> SqlError {
    let message =
        format!("`{parameter}` of the charter is what the ledger was founded with, and cannot be amended");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(
        "Found a new ledger with the other choice (entente init) and load the rows of this one with COPY; this one stays provable.",
    )
}
