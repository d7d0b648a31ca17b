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
use super::message::{Message, packed};
use super::part_store::HeldPart;
use super::routing::explained;
use super::schemas::PrivateSchemas;
use crate::submission::results_of;
use bytes::Bytes;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
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

/// A transaction in a schema with members, as its client has signed it, with its part.
struct ToHold {
    schema: String,
    members: Arc<SchemaMembers>,
    part: Part,
    signed: SignedTransaction,
    id: TransactionId,
}

impl ToHold {
    fn held(&self) -> HeldPart {
        HeldPart { transaction: self.id, schema: self.schema.clone(), part: self.part.clone() }
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

    /// Does what a session wants done in a schema: these members hold it, the ledger has a commitment. `order` has a transaction
    /// ordered and gives its receipt. Gives the results, and the height of the block.
    ///
    /// # Errors
    /// What the part ends with; `42501` where this organisation is no member; `0A000` for a role; `54000` where it is too long;
    /// `57014` where members do not answer in time.
    pub(crate) async fn run(
        &self,
        schema: &str,
        (session, role): (&Identity, &str),
        (payload, expires_at, height): (Payload, u64, u64),
        when: AnswerWhen,
        order: impl AsyncFnOnce(Bytes) -> Result<Receipt, SqlError>,
    ) -> Result<(Vec<StatementResult>, u64), SqlError> {
        let part = self.part(schema, (session, role), payload, expires_at)?;
        let held = self.hold(std::slice::from_ref(&part), height).await.pop();
        let Receipt { height, outcome, .. } = order(held.expect("one for one transaction")?).await?;
        if let Outcome::Rejected(reason) = outcome {
            return Err(reason.to_error());
        }
        Ok((self.ended_part(&part, when).await?, height))
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
        let parts: Vec<&ToHold> = admitted.iter().map(|(_, one, _)| *one).collect();
        let ended = self.ended_parts(&parts, when).await;
        for ((position, _, receipt), ended) in admitted.into_iter().zip(ended) {
            let ended = ended.ok_or(SubmissionRefusal::Unknown);
            reply(position, ended.map(|(_, outcome)| Receipt { outcome, ..receipt }));
        }
    }

    /// What a session wants done in a schema, with a commitment for everybody else.
    ///
    /// # Errors
    /// `42501` where this organisation is no member, or for a role; `54000` where it is too long.
    fn part(
        &self,
        schema: &str,
        (session, role): (&Identity, &str),
        payload: Payload,
        expires_at: u64,
    ) -> Result<ToHold, SqlError> {
        if !role.is_empty() {
            return Err(SqlError::unsupported(format_args!(
                "a transaction of a role in schema \"{schema}\", which has members,"
            ))
            .hint("Connect as the administrator of the organisation."));
        }
        let (signed, part) = session.sign_part(schema, payload, expires_at);
        self.to_hold(schema.to_string(), signed, part)
    }

    /// What a client has submitted.
    ///
    /// # Errors
    /// As [`PrivateSchemas::part`], and what is wrong with it.
    fn submitted(&self, submission: PartSubmission) -> Result<ToHold, SqlError> {
        let PartSubmission { transaction, schema, part } = submission;
        let signed = SignedTransaction::from_bytes(&transaction)
            .map_err(|error| SqlError::new(SqlState::PROTOCOL_VIOLATION, error.to_string()))?;
        self.to_hold(schema, signed, part)
    }

    fn to_hold(&self, schema: String, signed: SignedTransaction, part: Part) -> Result<ToHold, SqlError> {
        let members = self.schemas.members(&schema).ok_or_else(|| no_member(&schema))?;
        let id = signed.transaction.id();
        let to_hold = ToHold { schema, members, part, signed, id };
        self.schemas.check_content(&to_hold.signed, &to_hold.held())?;
        Ok(to_hold)
    }

    /// Makes transactions ready to be ordered: each is once a quorum of its schema's members holds its part.
    ///
    /// # Errors
    /// `57014` where too few do in time, with what they say; `58030` where they cannot be stored here.
    async fn hold(&self, all: &[ToHold], height: u64) -> Vec<Result<Bytes, SqlError>> {
        let stored = tokio::task::block_in_place(|| {
            all.iter().try_for_each(|one| self.schemas.node.parts.put(one.held()))?;
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
        let mut asked: BTreeMap<u16, Vec<(Vec<u8>, HeldPart)>> = BTreeMap::new();
        for one in open {
            let known = progress.get(&one.id);
            let bytes = one.signed.to_bytes();
            for member in &one.members.organisations {
                if known.is_none_or(|known| !known.endorsements.contains_key(member)) {
                    asked.entry(*member).or_default().push((bytes.clone(), one.held()));
                }
            }
        }
        for (member, parts) in asked {
            let size = |(transaction, held): &(Vec<u8>, HeldPart)| transaction.len() + encode(held).len() + 8;
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
        if endorsements.len() < one.members.quorum() {
            return Err(self.too_few(one, &endorsements, &refused));
        }
        // More would say nothing more.
        let endorsements = endorsements.into_values().take(one.members.quorum()).collect();
        let endorsed = Some(Box::new(EndorsedSimulation { effects: EndorsedEffects::held(), endorsements }));
        let signed = SignedTransaction { endorsed, ..one.signed.clone() };
        Ok(Bytes::from(signed.to_bytes()))
    }

    fn too_few(
        &self,
        ToHold { schema, members, .. }: &ToHold,
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
        let (found, needed) = (held.len(), members.quorum());
        let message = format!(
            "{found} of {} members of schema \"{schema}\" hold the transaction's part, {needed} are needed: {}",
            members.organisations.len(),
            silent.join("; ")
        );
        SqlError::new(SqlState::QUERY_CANCELED, message)
            .hint("Nothing was ordered. Submit it again once enough members' nodes are up.")
    }

    /// How parts have ended that stand in blocks, each once enough members agree on it. `None`: nothing is known in time, or they do
    /// not agree.
    async fn ended_parts(&self, of: &[&ToHold], when: AnswerWhen) -> Vec<Option<(u64, Outcome)>> {
        let AnswerWhen { attested, within } = when;
        let mut ended: Vec<Option<(u64, Outcome)>> = vec![None; of.len()];
        let mut open: Vec<usize> = (0..of.len()).collect();
        let (start, mut news, mut asked) = (Instant::now(), self.schemas.news.subscribe(), Instant::now());
        loop {
            news.mark_unchanged();
            let names: Vec<(TransactionId, &str)> =
                open.iter().map(|position| (of[*position].id, of[*position].schema.as_str())).collect();
            let mut found = self.schemas.ended(&names).into_iter();
            let mut verdicts: BTreeMap<(u32, u64), Verdict> = BTreeMap::new();
            open.retain(|position| {
                let Some((height, outcome)) = found.next().flatten() else { return true };
                let members = &of[*position].members;
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
    fn ask_for_outcomes<'a>(&self, open: impl Iterator<Item = &'a ToHold>) {
        let mut blocks: BTreeMap<(u32, u64), &SchemaMembers> = BTreeMap::new();
        for one in open {
            let found = self.schemas.ended(&[(one.id, &one.schema)]).pop().flatten();
            blocks.extend(found.map(|(height, _)| ((one.members.number, height), &*one.members)));
        }
        for ((schema, height), members) in blocks {
            self.schemas.tell_members(members, &Message::AskOutcome { schema, height });
        }
    }

    /// How the part of a session has ended.
    ///
    /// # Errors
    /// What it has ended with; `57014` where nothing is known in time.
    async fn ended_part(&self, of: &ToHold, when: AnswerWhen) -> Result<Vec<StatementResult>, SqlError> {
        let schema = &of.schema;
        if let Some(Some((_, outcome))) = self.ended_parts(&[of], when).await.pop() {
            return results_of(outcome).map_err(|error| explained(error, schema));
        }
        let problem = self.schemas.problem(schema).map_or(String::new(), |problem| format!(": {problem}"));
        let message = format!(
            "the transaction is ordered, but what it came to in schema \"{schema}\" is not known yet{problem}"
        );
        Err(SqlError::new(SqlState::QUERY_CANCELED, message))
    }
}

/// Whether enough members hold a transaction's part.
fn is_enough(one: &ToHold, progress: &FxHashMap<TransactionId, Progress>) -> bool {
    progress.get(&one.id).is_some_and(|known| known.endorsements.len() >= one.members.quorum())
}
