//! The gateway's side of a transaction in a schema with members: it asks the members to hold the part, has the transaction ordered,
//! and waits until enough of them have come to the same.
//!
//! ```text
//!  gateway ──Hold──▶ member: store, flush, sign ──Held──▶ gateway ──▶ ordering ──▶ receipt ──▶ what the part came to
//!     └─ again every 300 ms, to those who have not answered, until a quorum has
//! ```
//!
//! Messages may be lost. Whoever needs an answer asks again.

use super::agreeing::Verdict;
use super::collecting::{Bundle, Collecting, Missing, PartToHold, ReadyBundle, ToHold};
use super::message::Message;
use super::part_store::HeldPart;
use super::patience::Patience;
use super::routing::{Routed, explained};
use super::schemas::PrivateSchemas;
use super::waiters::Waiters;
use crate::submission::results_of;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use types::{
    Endorsement, HeldParts, Identity, Outcome, Part, PartSubmission, Payload, Receipt, SchemaMembers,
    SignedTransaction, SqlError, SqlState, StatementResult, SubmissionRefusal, SubmissionReply,
    TransactionId,
};

/// How often somebody who has not answered is asked again.
const AGAIN: Duration = Duration::from_millis(300);
/// How long members may take to hold a part.
const HELD_WITHIN: Duration = Duration::from_secs(10);

/// What a member says of transactions' parts.
#[derive(Clone)]
pub(super) enum Answered {
    /// It holds those of one.
    Held { transaction: TransactionId, member: u16, endorsement: Endorsement },
    /// It holds those of all in a list.
    HeldTogether { member: u16, word: HeldParts },
    /// It does not.
    Refused { transaction: TransactionId, member: u16, reason: String },
}

impl Answered {
    /// Which ones.
    pub(super) fn transactions(&self) -> &[TransactionId] {
        match self {
            Answered::Held { transaction, .. } | Answered::Refused { transaction, .. } => {
                std::slice::from_ref(transaction)
            }
            Answered::HeldTogether { word, .. } => &word.transactions,
        }
    }
}

/// What asks other members for this node's clients.
pub(crate) struct Asking {
    pub(super) schemas: Arc<PrivateSchemas>,
    patience: Patience,
    /// Who waits for members to hold a part.
    waiters: Waiters,
}

/// When clients are answered, and how long they wait.
#[derive(Clone, Copy)]
pub(crate) struct AnswerWhen {
    /// Once a quorum of the schema's members has come to the same; else once this node has executed the part.
    pub(crate) attested: bool,
    pub(crate) within: Duration,
}

impl Asking {
    pub(crate) fn new(schemas: Arc<PrivateSchemas>, patience: Patience) -> Asking {
        Asking { schemas, patience, waiters: Waiters::default() }
    }

    /// A member has answered whether it holds a part.
    pub(super) fn answered(&self, answered: &Answered) {
        self.waiters.tell(answered);
    }

    /// Does what a session wants done in schemas: their members hold it, the ledger has commitments. `order` has a transaction
    /// ordered and gives its receipt. Gives the results, and the height of the block in which it has taken effect.
    ///
    /// # Errors
    /// What a part ends with; `42501` where this organisation is no member; `0A000` for a role; `54000` where it is too long;
    /// `57014` where members do not answer in time.
    pub(crate) async fn run(
        &self,
        routed: Routed,
        (session, role): (&Identity, &str),
        (expires_at, height): (u64, u64),
        when: AnswerWhen,
        order: impl AsyncFnOnce(Bundle) -> Result<Receipt, SqlError>,
    ) -> Result<(Vec<StatementResult>, u64), SqlError> {
        let Routed { payloads, statements } = routed;
        if let Some(schema) = payloads.keys().next().filter(|_| !role.is_empty()) {
            return Err(SqlError::unsupported(format_args!(
                "a transaction of a role in schema \"{schema}\", which has members,"
            ))
            .hint("Connect as the administrator of the organisation."));
        }
        let (signed, parts) = match self.schemas.has_assets() && payloads.len() > 1 {
            true => session.sign_draft(&session.draft_parts(payloads, expires_at))?,
            false => session.sign_parts(payloads, expires_at),
        };
        let ended = self.run_signed((signed, parts), (session, height), when, order).await?;
        Ok((results_in_order(ended.outcomes, &statements)?, ended.height))
    }

    /// Has a transaction that its client has signed held by the members and ordered, and waits for what it comes to.
    ///
    /// # Errors
    /// As [`Asking::run`].
    pub(super) async fn run_signed(
        &self,
        (signed, parts): (SignedTransaction, BTreeMap<String, Part>),
        (session, height): (&Identity, u64),
        when: AnswerWhen,
        order: impl AsyncFnOnce(Bundle) -> Result<Receipt, SqlError>,
    ) -> Result<Ended, SqlError> {
        let all = [self.to_hold(signed, parts)?];
        let (mut ready, mut missing) = self.hold(&all, (session, height)).await;
        if let Some((_, error)) = missing.pop() {
            return Err(error);
        }
        let (bundle, _) = ready.pop().expect("one for one transaction that lacks nothing");
        let Receipt { outcome, .. } = order(bundle).await?;
        if let Outcome::Rejected(reason) = outcome {
            return Err(reason.to_error());
        }
        let [transaction] = &all;
        let Some(Some(ended)) = self.ended_transactions(&[transaction], when).await.pop() else {
            return Err(self.unknown(transaction));
        };
        Ok(ended)
    }

    /// Takes what clients with keys of their own have submitted. `order` has transactions ordered: their receipts come by their
    /// positions among all in these bundles. A reply has a receipt with what came of the part.
    pub(crate) async fn submit(
        &self,
        submissions: Vec<PartSubmission>,
        (session, height, when): (&Identity, u64, AnswerWhen),
        order: impl FnOnce(Vec<Bundle>) -> mpsc::Receiver<SubmissionReply>,
        reply: impl Fn(u32, Result<Receipt, SubmissionRefusal>),
    ) {
        let (mut positions, mut all) = (Vec::new(), Vec::new());
        for (position, submission) in (0..).zip(submissions) {
            match self.submitted(submission) {
                Ok(one) => {
                    positions.push(position);
                    all.push(one);
                }
                Err(error) => reply(position, Err(SubmissionRefusal::Aborted(error))),
            }
        }
        let (ready, missing) = self.hold(&all, (session, height)).await;
        for (at, error) in missing {
            reply(positions[at], Err(SubmissionRefusal::NotEndorsed(error)));
        }
        let (mut bundles, mut ordered) = (Vec::new(), Vec::new());
        for (bundle, which) in ready {
            bundles.push(bundle);
            ordered.extend(which.into_iter().map(|at| (positions[at], &all[at])));
        }
        let (mut receipts, mut admitted) = (order(bundles), Vec::new());
        while let Some(SubmissionReply { position, result }) = receipts.recv().await {
            let (position, one) = ordered[position as usize];
            match result {
                Ok(receipt) if matches!(receipt.outcome, Outcome::Committed(_)) => {
                    admitted.push((position, one, receipt));
                }
                other => reply(position, other),
            }
        }
        let transactions: Vec<&ToHold> = admitted.iter().map(|(_, one, _)| *one).collect();
        let ended = self.ended_transactions(&transactions, when).await;
        for ((position, _, receipt), ended) in admitted.into_iter().zip(ended) {
            let ended = ended.ok_or(SubmissionRefusal::Unknown);
            let outcome =
                |Ended { height, outcomes }| Receipt { height, outcome: together(outcomes), ..receipt };
            reply(position, ended.map(outcome));
        }
    }

    /// What a client has submitted.
    ///
    /// # Errors
    /// `42501` where this organisation is no member; what is wrong with it.
    fn submitted(&self, submission: PartSubmission) -> Result<ToHold, SqlError> {
        let PartSubmission { transaction, parts } = submission;
        let signed = SignedTransaction::from_bytes(&transaction)
            .map_err(|error| SqlError::new(SqlState::PROTOCOL_VIOLATION, error.to_string()))?;
        if let Payload::Parts { parts: committed } = &signed.transaction.payload
            && let Some(missing) = committed.iter().find(|part| !parts.contains_key(&part.schema))
        {
            let message = format!("the part for schema \"{}\" is missing", missing.schema);
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        self.to_hold(signed, parts)
    }

    fn to_hold(&self, signed: SignedTransaction, parts: BTreeMap<String, Part>) -> Result<ToHold, SqlError> {
        let id = signed.transaction.id();
        let to_hold = |(schema, part): (String, Part)| {
            let members = self.schemas.members(&schema).ok_or_else(|| self.schemas.not_here(&schema))?;
            Ok(PartToHold { members, held: HeldPart { transaction: id, schema, part } })
        };
        let parts = parts.into_iter().map(to_hold).collect::<Result<Vec<PartToHold>, SqlError>>()?;
        let held: Vec<HeldPart> = parts.iter().map(|part| part.held.clone()).collect();
        self.schemas.check_content(&signed, &held)?;
        Ok(ToHold { parts, signed, id })
    }

    /// Makes transactions ready to be ordered: each is once a quorum of its schema's members holds its part. Gives those, and why
    /// others are not: `57014` where too few members hold them in time, with what they say; `58030` where they cannot be stored here.
    async fn hold(
        &self,
        all: &[ToHold],
        (session, height): (&Identity, u64),
    ) -> (Vec<ReadyBundle>, Vec<(usize, SqlError)>) {
        let stored = tokio::task::block_in_place(|| {
            let parts = all.iter().flat_map(|one| &one.parts);
            self.schemas.node.parts.put(parts.map(|part| part.held.clone()))?;
            self.schemas.node.parts.flush()
        });
        if let Err(error) = stored {
            let failed = SqlError::new(SqlState::IO_ERROR, error.to_string());
            return (Vec::new(), (0..all.len()).map(|position| (position, failed.clone())).collect());
        }
        let mut collecting = Collecting::begin(&self.schemas, all, height);
        let ids: Vec<TransactionId> = all.iter().map(|one| one.id).collect();
        let (waiter, mut answers) = self.waiters.come(&ids);
        let end = self.patience.now() + HELD_WITHIN;
        while self.patience.now() < end && !collecting.is_complete() {
            for (members, message) in collecting.to_ask() {
                self.schemas.tell_all(members, &message);
            }
            let again = self.patience.sleep(AGAIN);
            tokio::pin!(again);
            while !collecting.is_complete() {
                tokio::select! {
                    biased;
                    () = &mut again => break,
                    answered = answers.recv() => {
                        let Some(answered) = answered else { break };
                        collecting.note(answered);
                        while let Ok(answered) = answers.try_recv() {
                            collecting.note(answered);
                        }
                    }
                }
            }
        }
        drop(waiter);
        let missing = all.iter().enumerate();
        let missing = missing.filter_map(|(at, one)| Some((at, self.too_few(&collecting.missing(one)?))));
        (collecting.bundles(session), missing.collect())
    }

    fn too_few(&self, Missing { part, held, refused }: &Missing<'_>) -> SqlError {
        let PartToHold { held: HeldPart { schema, .. }, members } = part;
        let charter = self.schemas.node.charters.newest();
        let name = |position: &u16| {
            charter.organisations.get(usize::from(*position)).map_or("?", |known| known.name.as_str())
        };
        let silent: Vec<String> = members
            .organisations
            .iter()
            .filter(|member| !held.contains(member))
            .map(|member| match refused.get(member) {
                Some(reason) => format!("{} says: {reason}", name(member)),
                None => format!("{} does not answer", name(member)),
            })
            .collect();
        let (found, needed) = (held.iter().filter(|member| members.has(**member)).count(), members.quorum());
        let message = format!(
            "{found} of {} members of schema \"{schema}\" hold the transaction's part, {needed} are needed: {}",
            members.organisations.len(),
            silent.join("; ")
        );
        SqlError::new(SqlState::QUERY_CANCELED, message)
            .hint("Nothing was ordered. Submit it again once enough members' nodes are up.")
    }

    /// How transactions have ended that stand in blocks, each once enough members of each of its schemas agree on that. `None`: nothing
    /// is known in time, or they do not agree.
    async fn ended_transactions(&self, of: &[&ToHold], when: AnswerWhen) -> Vec<Option<Ended>> {
        let parts: Vec<(TransactionId, &PartToHold)> =
            of.iter().flat_map(|one| one.parts.iter().map(|part| (one.id, part))).collect();
        let mut ended = self.ended_parts(&parts, when).await.into_iter();
        let mut transaction = |one: &&ToHold| {
            let parts: Vec<Option<(u64, Outcome)>> = ended.by_ref().take(one.parts.len()).collect();
            let parts: Vec<(u64, Outcome)> = parts.into_iter().collect::<Option<_>>()?;
            let height = parts.iter().map(|(height, _)| *height).max()?;
            let schemas = one.parts.iter().map(|part| part.held.schema.clone());
            Some(Ended {
                height,
                outcomes: schemas.zip(parts.into_iter().map(|(_, outcome)| outcome)).collect(),
            })
        };
        of.iter().map(&mut transaction).collect()
    }

    /// The same for parts.
    async fn ended_parts(
        &self,
        of: &[(TransactionId, &PartToHold)],
        when: AnswerWhen,
    ) -> Vec<Option<(u64, Outcome)>> {
        let AnswerWhen { attested, within } = when;
        let mut ended: Vec<Option<(u64, Outcome)>> = vec![None; of.len()];
        let mut open: Vec<usize> = (0..of.len()).collect();
        let (start, mut news, mut asked) =
            (self.patience.now(), self.schemas.news.subscribe(), self.patience.now());
        loop {
            news.mark_unchanged();
            let names: Vec<(TransactionId, &str)> =
                open.iter().map(|position| (of[*position].0, of[*position].1.held.schema.as_str())).collect();
            let mut found = self.schemas.ended(&names).into_iter();
            let mut verdicts: BTreeMap<(u32, u64), Verdict> = BTreeMap::new();
            open.retain(|position| {
                let Some((height, outcome)) = found.next().flatten() else { return true };
                let members = &of[*position].1.members;
                let said = || self.schemas.verdict(members, height);
                let verdict = match attested {
                    true => *verdicts.entry((members.number, height)).or_insert_with(said),
                    false => Verdict::Agreed,
                };
                match verdict {
                    Verdict::Agreed => ended[*position] = Some((height, outcome)),
                    Verdict::Differs => self.schemas.differs(members, height),
                    Verdict::Open => {}
                }
                verdict == Verdict::Open
            });
            let now = self.patience.now();
            if open.is_empty() || now >= start + within {
                return ended;
            }
            if now >= asked + AGAIN {
                asked = now;
                self.ask_for_outcomes(open.iter().map(|position| of[*position]));
            }
            tokio::select! {
                biased;
                _ = news.changed() => {}
                () = self.patience.sleep(AGAIN) => {}
            }
        }
    }

    /// Asks members what blocks came to that this member has executed: what they said may be lost.
    fn ask_for_outcomes<'a>(&self, open: impl Iterator<Item = (TransactionId, &'a PartToHold)>) {
        let mut blocks: BTreeMap<(u32, u64), &SchemaMembers> = BTreeMap::new();
        for (id, PartToHold { members, held }) in open {
            let found = self.schemas.ended(&[(id, &held.schema)]).pop().flatten();
            blocks.extend(found.map(|(height, _)| ((members.number, height), &**members)));
        }
        for ((schema, height), members) in blocks {
            self.schemas.tell_members(members, &Message::AskOutcome { schema, height });
        }
    }

    /// `57014`: a transaction is ordered, and nobody knows what it came to.
    fn unknown(&self, transaction: &ToHold) -> SqlError {
        let names: Vec<&str> = transaction.parts.iter().map(|part| part.held.schema.as_str()).collect();
        let problem = names.iter().find_map(|schema| self.schemas.problem(schema));
        let problem = problem.map_or(String::new(), |problem| format!(": {problem}"));
        let message = format!(
            "the transaction is ordered, but what it came to in schema \"{}\" is not known yet{problem}",
            names.join("\", \"")
        );
        SqlError::new(SqlState::QUERY_CANCELED, message)
    }
}

/// How a transaction has ended in its schemas, by name.
pub(super) struct Ended {
    /// Of the block in which it has taken effect.
    pub(super) height: u64,
    pub(super) outcomes: BTreeMap<String, Outcome>,
}

/// What a transaction came to: its statements' results in their order; one schema's where `statements` is empty.
///
/// # Errors
/// What its parts have ended with.
pub(super) fn results_in_order(
    outcomes: BTreeMap<String, Outcome>,
    statements: &[String],
) -> Result<Vec<StatementResult>, SqlError> {
    let mut results: BTreeMap<String, VecDeque<StatementResult>> = BTreeMap::new();
    let mut undone = None;
    for (schema, outcome) in outcomes {
        match results_of(outcome).map_err(|error| explained(error, &schema)) {
            Ok(found) => drop(results.insert(schema, found.into())),
            // One schema's part has its own reason, the others hear that there is one.
            Err(error) if error.state == SqlState::TRANSACTION_ROLLBACK => undone = Some(error),
            Err(error) => return Err(error),
        }
    }
    match undone {
        Some(error) => Err(error),
        None if statements.is_empty() => Ok(results.into_values().flatten().collect()),
        None => {
            let next = |schema: &String| results.get_mut(schema)?.pop_front();
            Ok(statements.iter().filter_map(next).collect())
        }
    }
}

/// The outcome of a transaction in all of its schemas.
fn together(outcomes: BTreeMap<String, Outcome>) -> Outcome {
    let mut all = Vec::new();
    let mut aborted = None;
    for outcome in outcomes.into_values() {
        match outcome {
            Outcome::Committed(results) => all.extend(results),
            Outcome::Aborted(error) if error.state == SqlState::TRANSACTION_ROLLBACK => {
                aborted.get_or_insert(Outcome::Aborted(error));
            }
            other => return other,
        }
    }
    aborted.unwrap_or(Outcome::Committed(all))
}
