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
use super::held::{Verified, no_member};
use super::message::{Message, PartsToHold, packed};
use super::part_store::HeldPart;
use super::routing::{Routed, explained};
use super::schemas::PrivateSchemas;
use crate::submission::results_of;
use bytes::Bytes;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use types::{
    EndorsedEffects, EndorsedSimulation, Endorsement, Identity, Outcome, Part, PartSubmission, Payload,
    Receipt, SchemaMembers, SignedTransaction, SqlError, SqlState, StatementResult, SubmissionRefusal,
    SubmissionReply, TransactionId, encode,
};

/// How often somebody who has not answered is asked again.
const AGAIN: Duration = Duration::from_millis(300);
/// How long members may take to hold a part.
const HELD_WITHIN: Duration = Duration::from_secs(10);

/// Whether a member holds a transaction's part: its word, or why not.
pub(super) struct Answered {
    pub(super) transaction: TransactionId,
    pub(super) member: u16,
    pub(super) said: Result<Endorsement, String>,
}

/// Somebody who waits for members to hold parts.
pub(super) type Waiting = mpsc::UnboundedSender<Answered>;

/// A transaction in schemas with members, as its client has signed it, with its parts.
struct ToHold {
    parts: Vec<PartToHold>,
    signed: SignedTransaction,
    id: TransactionId,
}

struct PartToHold {
    members: Arc<SchemaMembers>,
    held: HeldPart,
}

impl ToHold {
    /// All members of its schemas.
    fn members(&self) -> BTreeSet<u16> {
        self.parts.iter().flat_map(|part| part.members.organisations.iter().copied()).collect()
    }

    /// The parts that a member is to hold.
    fn held_by(&self, member: u16) -> Vec<HeldPart> {
        let parts = self.parts.iter().filter(|part| part.members.has(member));
        parts.map(|part| part.held.clone()).collect()
    }

    /// The first schema of which too few members are among these.
    fn too_few(&self, held: &BTreeMap<u16, Endorsement>) -> Option<&PartToHold> {
        let count = |part: &PartToHold| held.keys().filter(|member| part.members.has(**member)).count();
        self.parts.iter().find(|part| count(part) < part.members.quorum())
    }
}

/// How far members are with one of several transactions.
#[derive(Default)]
struct Progress {
    endorsements: BTreeMap<u16, Endorsement>,
    refused: BTreeMap<u16, String>,
}

/// What asks other members for this node's clients.
pub(crate) struct Asking {
    schemas: Arc<PrivateSchemas>,
    /// Who waits for members to hold a part.
    waiting: Mutex<FxHashMap<TransactionId, Waiting>>,
}

/// When clients are answered, and how long they wait.
#[derive(Clone, Copy)]
pub(crate) struct AnswerWhen {
    /// Once a quorum of the schema's members has come to the same; else once this node has executed the part.
    pub(crate) attested: bool,
    pub(crate) within: Duration,
}

impl Asking {
    pub(crate) fn new(schemas: Arc<PrivateSchemas>) -> Asking {
        Asking { schemas, waiting: Mutex::default() }
    }

    /// A member has answered whether it holds a part.
    pub(super) fn answered(&self, answered: Answered) {
        if let Some(waiting) = self.waiting.lock().get(&answered.transaction) {
            // An error says that nobody waits any more.
            let _ = waiting.send(answered);
        }
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
        order: impl AsyncFnOnce(Bytes) -> Result<Receipt, SqlError>,
    ) -> Result<(Vec<StatementResult>, u64), SqlError> {
        let Routed { payloads, statements } = routed;
        if let Some(schema) = payloads.keys().next().filter(|_| !role.is_empty()) {
            return Err(SqlError::unsupported(format_args!(
                "a transaction of a role in schema \"{schema}\", which has members,"
            ))
            .hint("Connect as the administrator of the organisation."));
        }
        let (signed, parts) = session.sign_parts(payloads, expires_at);
        let all = [self.to_hold(signed, parts)?];
        let held = self.hold(&all, height).await.pop();
        let Receipt { outcome, .. } = order(held.expect("one for one transaction")?).await?;
        if let Outcome::Rejected(reason) = outcome {
            return Err(reason.to_error());
        }
        let [transaction] = &all;
        let Some(Some(ended)) = self.ended_transactions(&[transaction], when).await.pop() else {
            return Err(self.unknown(transaction));
        };
        Ok((results_in_order(ended.outcomes, &statements)?, ended.height))
    }

    /// Takes what clients with keys of their own have submitted. `order` has transactions ordered: their receipts come by their
    /// positions. A reply has a receipt with what came of the part.
    pub(crate) async fn submit(
        &self,
        submissions: Vec<PartSubmission>,
        (height, when): (u64, AnswerWhen),
        order: impl FnOnce(Vec<Bytes>) -> mpsc::Receiver<SubmissionReply>,
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
        let (mut ready, mut ordered) = (Vec::new(), Vec::new());
        for ((position, one), held) in positions.into_iter().zip(&all).zip(self.hold(&all, height).await) {
            match held {
                Ok(bytes) => {
                    ready.push(bytes);
                    ordered.push((position, one));
                }
                Err(error) => reply(position, Err(SubmissionRefusal::NotEndorsed(error))),
            }
        }
        let (mut receipts, mut admitted) = (order(ready), Vec::new());
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
            let members = self.schemas.members(&schema).ok_or_else(|| no_member(&schema))?;
            Ok(PartToHold { members, held: HeldPart { transaction: id, schema, part } })
        };
        let parts = parts.into_iter().map(to_hold).collect::<Result<Vec<PartToHold>, SqlError>>()?;
        let held: Vec<HeldPart> = parts.iter().map(|part| part.held.clone()).collect();
        self.schemas.check_content(&signed, &held)?;
        Ok(ToHold { parts, signed, id })
    }

    /// Makes transactions ready to be ordered: each is once a quorum of its schema's members holds its part.
    ///
    /// # Errors
    /// `57014` where too few do in time, with what they say; `58030` where they cannot be stored here.
    async fn hold(&self, all: &[ToHold], height: u64) -> Vec<Result<Bytes, SqlError>> {
        let stored = tokio::task::block_in_place(|| {
            let mut parts = all.iter().flat_map(|one| &one.parts);
            parts.try_for_each(|part| self.schemas.node.parts.put(part.held.clone()))?;
            self.schemas.node.parts.flush()
        });
        if let Err(error) = stored {
            let failed = SqlError::new(SqlState::IO_ERROR, error.to_string());
            return all.iter().map(|_| Err(failed.clone())).collect();
        }
        let ids: Vec<TransactionId> = all.iter().map(|one| one.id).collect();
        let own = self.schemas.sign(&ids, height);
        let mut progress: FxHashMap<TransactionId, Progress> = FxHashMap::default();
        for (id, endorsement) in ids.iter().zip(own) {
            let endorsements = BTreeMap::from([(endorsement.organisation, endorsement)]);
            progress.insert(*id, Progress { endorsements, ..Progress::default() });
        }
        let (answer, mut answers) = mpsc::unbounded_channel();
        self.waiting.lock().extend(ids.iter().map(|id| (*id, answer.clone())));
        let (start, mut verified) = (Instant::now(), Verified::default());
        while start.elapsed() < HELD_WITHIN {
            let open: Vec<&ToHold> = all.iter().filter(|one| !is_enough(one, &progress)).collect();
            if open.is_empty() {
                break;
            }
            self.ask_to_hold(&open, &progress);
            let again = tokio::time::sleep(AGAIN);
            tokio::pin!(again);
            let mut missing: FxHashSet<TransactionId> = open.iter().map(|one| one.id).collect();
            let members: FxHashMap<TransactionId, &ToHold> = open.iter().map(|one| (one.id, *one)).collect();
            while !missing.is_empty() {
                tokio::select! {
                    () = &mut again => break,
                    answered = answers.recv() => {
                        let Some(answered) = answered else { break };
                        let id = answered.transaction;
                        self.note(answered, &mut progress, &mut verified);
                        if members.get(&id).is_some_and(|one| is_enough(one, &progress)) {
                            missing.remove(&id);
                        }
                    }
                }
            }
        }
        let mut waiting = self.waiting.lock();
        ids.iter().for_each(|id| drop(waiting.remove(id)));
        drop(waiting);
        all.iter().map(|one| self.ready(one, progress.remove(&one.id).unwrap_or_default())).collect()
    }

    /// Asks members who have not answered, several transactions in a message.
    fn ask_to_hold(&self, open: &[&ToHold], progress: &FxHashMap<TransactionId, Progress>) {
        let mut asked: BTreeMap<u16, Vec<PartsToHold>> = BTreeMap::new();
        for one in open {
            let known = progress.get(&one.id);
            let bytes = one.signed.to_bytes();
            for member in one.members() {
                if known.is_none_or(|known| !known.endorsements.contains_key(&member)) {
                    asked.entry(member).or_default().push((bytes.clone(), one.held_by(member)));
                }
            }
        }
        for (member, parts) in asked {
            let size = |(transaction, held): &PartsToHold| transaction.len() + encode(held).len() + 8;
            for parts in packed(parts, size) {
                self.schemas.tell(member, &Message::Hold(parts));
            }
        }
    }

    fn note(
        &self,
        answered: Answered,
        progress: &mut FxHashMap<TransactionId, Progress>,
        verified: &mut Verified,
    ) {
        let Answered { transaction, member, said } = answered;
        let Some(progress) = progress.get_mut(&transaction) else { return };
        match said {
            Ok(endorsement) if self.schemas.is_held(&transaction, member, &endorsement, verified) => {
                progress.endorsements.insert(member, endorsement);
            }
            Ok(_) => drop(progress.refused.insert(member, "its signature is not its own".to_string())),
            Err(reason) => drop(progress.refused.insert(member, reason)),
        }
    }

    /// A transaction with the members' words, if they are enough.
    fn ready(&self, one: &ToHold, progress: Progress) -> Result<Bytes, SqlError> {
        let Progress { endorsements, refused } = progress;
        if let Some(part) = one.too_few(&endorsements) {
            return Err(self.too_few(part, &endorsements, &refused));
        }
        // More would say nothing more.
        let mut enough = BTreeMap::new();
        for (member, endorsement) in endorsements {
            let counts = |part: &PartToHold| {
                let held = enough.keys().filter(|known| part.members.has(**known)).count();
                part.members.has(member) && held < part.members.quorum()
            };
            if one.parts.iter().any(counts) {
                enough.insert(member, endorsement);
            }
        }
        let endorsements = enough.into_values().collect();
        let endorsed = Some(Box::new(EndorsedSimulation { effects: EndorsedEffects::held(), endorsements }));
        let signed = SignedTransaction { endorsed, ..one.signed.clone() };
        Ok(Bytes::from(signed.to_bytes()))
    }

    fn too_few(
        &self,
        PartToHold { held: HeldPart { schema, .. }, members }: &PartToHold,
        held: &BTreeMap<u16, Endorsement>,
        refused: &BTreeMap<u16, String>,
    ) -> SqlError {
        let charter = self.schemas.node.charters.newest();
        let name = |position: &u16| {
            charter.organisations.get(usize::from(*position)).map_or("?", |known| known.name.as_str())
        };
        let silent: Vec<String> = members
            .organisations
            .iter()
            .filter(|member| !held.contains_key(*member))
            .map(|member| match refused.get(member) {
                Some(reason) => format!("{} says: {reason}", name(member)),
                None => format!("{} does not answer", name(member)),
            })
            .collect();
        let (found, needed) = (held.keys().filter(|member| members.has(**member)).count(), members.quorum());
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
        let (start, mut news, mut asked) = (Instant::now(), self.schemas.news.subscribe(), Instant::now());
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
            if open.is_empty() || start.elapsed() >= within {
                return ended;
            }
            if asked.elapsed() >= AGAIN {
                asked = Instant::now();
                self.ask_for_outcomes(open.iter().map(|position| of[*position]));
            }
            let _ = tokio::time::timeout(AGAIN, news.changed()).await;
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
struct Ended {
    /// Of the block in which it has taken effect.
    height: u64,
    outcomes: BTreeMap<String, Outcome>,
}

/// What a transaction came to: its statements' results in their order; one schema's where `statements` is empty.
///
/// # Errors
/// What its parts have ended with.
fn results_in_order(
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

/// Whether enough members hold a transaction's parts.
fn is_enough(one: &ToHold, progress: &FxHashMap<TransactionId, Progress>) -> bool {
    progress.get(&one.id).is_some_and(|known| one.too_few(&known.endorsements).is_none())
}
