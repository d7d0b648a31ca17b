//! Parts on their way: a client's gateway hands a part to the members of its schema, who store it and sign that they hold it.
//!
//! ```text
//!  gateway ──Hold──▶ member: is it what the client has committed to? store, flush, sign ──Held──▶ gateway
//!     └─ again every 300 ms, to those who have not answered, until a quorum has
//! ```
//!
//! Messages may be lost. Whoever needs an answer asks again.

use super::agreeing::Verdict;
use super::executor::answer;
use super::message::Message;
use super::part_store::HeldPart;
use super::routing::explained;
use super::schemas::PrivateSchemas;
use crate::NodeError;
use crate::published::Published;
use bytes::Bytes;
use crossbeam_channel::{Receiver, never, select, tick};
use crypto::{Digest, Signature, SignedMessage};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use types::{
    EndorsedEffects, EndorsedSimulation, Endorsement, Identity, Outcome, Part, PartSubmission, Payload,
    Place, SchemaMembers, SignedTransaction, SqlError, SqlState, StatementResult, TransactionId, encode,
    endorse, endorsement_leaf, endorsement_message, limits,
};

/// How often somebody who has not answered is asked again.
const AGAIN: Duration = Duration::from_millis(300);
/// How long members may take to hold a part.
const HELD_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether a schema is behind.
const TICK: Duration = Duration::from_millis(50);
/// Bytes that go into one message, with room for what stands around them.
const PACKED_BYTES: usize = 56 * 1024;
/// Messages that are answered after one flush.
const TOGETHER: usize = 256;

/// Whether a member holds a transaction's part: its word, or why not.
pub(super) struct Answered {
    pub(super) transaction: TransactionId,
    member: u16,
    said: Result<Endorsement, String>,
}

/// Somebody who waits for members to hold parts.
pub(super) type Waiting = mpsc::UnboundedSender<Answered>;

/// A transaction in a schema with members, as its client has signed it, with its part.
pub(crate) struct ToHold {
    schema: String,
    members: Arc<SchemaMembers>,
    part: Part,
    signed: SignedTransaction,
    pub(crate) id: TransactionId,
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

impl PrivateSchemas {
    /// What a session wants done in a schema, with a commitment for everybody else.
    ///
    /// # Errors
    /// `42501` where this organisation is no member, or for a role; `54000` where it is too long.
    pub(crate) fn part(
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
    pub(crate) fn submitted(&self, submission: PartSubmission) -> Result<ToHold, SqlError> {
        let PartSubmission { transaction, schema, part } = submission;
        let signed = SignedTransaction::from_bytes(&transaction)
            .map_err(|error| SqlError::new(SqlState::PROTOCOL_VIOLATION, error.to_string()))?;
        self.to_hold(schema, signed, part)
    }

    fn to_hold(&self, schema: String, signed: SignedTransaction, part: Part) -> Result<ToHold, SqlError> {
        let Some(members) = self.members(&schema) else {
            let message = format!("this node's organisation is no member of schema \"{schema}\"");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        };
        let id = signed.transaction.id();
        let to_hold = ToHold { schema, members, part, signed, id };
        self.check_content(&to_hold.signed, &to_hold.held())
            .map_err(|reason| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, reason))?;
        Ok(to_hold)
    }

    /// Makes transactions ready to be ordered: each is once a quorum of its schema's members holds its part.
    ///
    /// # Errors
    /// `57014` where too few do in time, with what they say; `58030` where they cannot be stored here.
    pub(crate) async fn hold(&self, all: &[ToHold], height: u64) -> Vec<Result<Bytes, SqlError>> {
        let stored = tokio::task::block_in_place(|| {
            all.iter().try_for_each(|one| self.node.parts.put(one.held()))?;
            self.node.parts.flush()
        });
        if let Err(error) = stored {
            let failed = SqlError::new(SqlState::IO_ERROR, error.to_string());
            return all.iter().map(|_| Err(failed.clone())).collect();
        }
        let ids: Vec<TransactionId> = all.iter().map(|one| one.id).collect();
        let own = self.sign(&ids, height);
        let mut progress: FxHashMap<TransactionId, Progress> = FxHashMap::default();
        for (id, endorsement) in ids.iter().zip(own) {
            let endorsements = BTreeMap::from([(self.node.organisation, endorsement)]);
            progress.insert(*id, Progress { endorsements, ..Progress::default() });
        }
        let (answer, mut answers) = mpsc::unbounded_channel();
        self.waiting.lock().extend(ids.iter().map(|id| (*id, answer.clone())));
        let (start, mut verified) = (Instant::now(), FxHashSet::default());
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
                self.tell(member, &Message::Hold(parts));
            }
        }
    }

    fn note(
        &self,
        answered: Answered,
        progress: &mut FxHashMap<TransactionId, Progress>,
        verified: &mut FxHashSet<(u16, Digest, Signature)>,
    ) {
        let Answered { transaction, member, said } = answered;
        let Some(progress) = progress.get_mut(&transaction) else { return };
        match said {
            Ok(endorsement) if self.is_held(&transaction, member, &endorsement, verified) => {
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
        let charter = self.node.charters.newest();
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

    /// This member's word that it holds transactions' parts: one signature for all of them.
    fn sign(&self, ids: &[TransactionId], height: u64) -> Vec<Endorsement> {
        let ledger = self.node.charters.newest().ledger();
        let effects = EndorsedEffects::held().digest();
        let (key, organisation) = (&self.node.node_key, self.node.organisation);
        let held: Vec<(TransactionId, Digest)> = ids.iter().map(|id| (*id, effects)).collect();
        endorse(key, organisation, &ledger, height, &held)
    }

    /// Whether it is this member's word. A signature that covers many transactions is verified once.
    fn is_held(
        &self,
        id: &TransactionId,
        member: u16,
        endorsement: &Endorsement,
        verified: &mut FxHashSet<(u16, Digest, Signature)>,
    ) -> bool {
        let leaf = endorsement_leaf(id, endorsement.snapshot, &EndorsedEffects::held().digest());
        let Some(root) = endorsement.proof.root(leaf) else { return false };
        if endorsement.organisation != member {
            return false;
        }
        let signature = (member, root, endorsement.signature);
        if verified.contains(&signature) {
            return true;
        }
        let charter = self.node.charters.newest();
        let Some(organisation) = charter.organisations.get(usize::from(member)) else { return false };
        let message = endorsement_message(&charter.ledger(), &root);
        let (key, signed) = (organisation.node_key, endorsement.signature);
        let is_its = crypto::verify(&SignedMessage { key, signature: signed, message: &message });
        if is_its {
            verified.insert(signature);
        }
        is_its
    }

    /// How parts have ended that stand in blocks, each once enough members agree on it. `None`: nothing is known in time.
    pub(crate) async fn ended_parts(
        &self,
        of: &[&ToHold],
        attested: bool,
        within: Duration,
    ) -> Vec<Option<(u64, Outcome)>> {
        let mut ended: Vec<Option<(u64, Outcome)>> = vec![None; of.len()];
        let (start, mut news, mut asked) = (Instant::now(), self.news.subscribe(), Instant::now());
        while start.elapsed() < within && ended.iter().any(Option::is_none) {
            news.mark_unchanged();
            let open: Vec<usize> = (0..of.len()).filter(|position| ended[*position].is_none()).collect();
            let names: Vec<(TransactionId, &str)> =
                open.iter().map(|position| (of[*position].id, of[*position].schema.as_str())).collect();
            let mut verdicts: BTreeMap<(u32, u64), Verdict> = BTreeMap::new();
            for (position, found) in open.into_iter().zip(self.ended(&names)) {
                let Some((height, outcome)) = found else { continue };
                let members = &of[position].members;
                let verdict = match attested {
                    true => *verdicts
                        .entry((members.number, height))
                        .or_insert_with(|| self.verdict(members, height)),
                    false => Verdict::Agreed,
                };
                match verdict {
                    Verdict::Agreed => ended[position] = Some((height, outcome)),
                    Verdict::Differs => self.differs(members, height),
                    Verdict::Open if asked.elapsed() >= AGAIN => {
                        asked = Instant::now();
                        self.tell_members(members, &Message::AskOutcome { schema: members.number, height });
                    }
                    Verdict::Open => {}
                }
            }
            if ended.iter().any(Option::is_none) {
                let _ = tokio::time::timeout(AGAIN, news.changed()).await;
            }
        }
        ended
    }

    /// How the part of a session has ended.
    ///
    /// # Errors
    /// What it has ended with; `57014` where nothing is known in time.
    pub(crate) async fn ended_part(
        &self,
        of: &ToHold,
        attested: bool,
        within: Duration,
    ) -> Result<Vec<StatementResult>, SqlError> {
        let schema = &of.schema;
        if let Some(Some((_, outcome))) = self.ended_parts(&[of], attested, within).await.pop() {
            return answer(outcome).map_err(|error| explained(error, schema));
        }
        let problem = self.problem(schema).map_or(String::new(), |problem| format!(": {problem}"));
        let message = format!(
            "the transaction is ordered, but what it came to in schema \"{schema}\" is not known yet{problem}"
        );
        Err(SqlError::new(SqlState::QUERY_CANCELED, message))
    }

    /// Whether a part is what a transaction's client has committed to. Who has signed it is for somebody else to say.
    fn check_content(&self, signed: &SignedTransaction, held: &HeldPart) -> Result<(), String> {
        let charter = self.node.charters.newest();
        let ledger = charter.ledger();
        if signed.transaction.ledger != ledger || signed.transaction.id() != held.transaction {
            return Err("the transaction is of another ledger, or another one".to_string());
        }
        let Some(members) = self.members(&held.schema) else {
            return Err(format!("it does not know of a schema \"{}\" that it is a member of", held.schema));
        };
        if !members.has(signed.credential.organisation) {
            return Err(format!("its client's organisation is no member of schema \"{}\"", held.schema));
        }
        let Payload::Parts { parts } = &signed.transaction.payload else {
            return Err("it has no parts".to_string());
        };
        if parts.len() > limits::PARTS_MAX {
            return Err(format!("it has {} parts, the limit is {}", parts.len(), limits::PARTS_MAX));
        }
        let checked = held.part.check(&ledger, &held.schema, &signed.client_id(), parts);
        checked.map_err(|fault| fault.to_string())
    }

    /// Which of these transactions their clients have signed, who are those of the organisations that they name. When they come in
    /// blocks that need not be verified again.
    fn are_signed(&self, transactions: &[Bytes], height: u64) -> Vec<bool> {
        let charters = self.node.charters.all();
        let place = Place { charters: &charters, height: height + 1 };
        let judged = self.node.pool.install(|| self.node.verifier.check_proposals(place, transactions));
        judged.iter().map(Result::is_ok).collect()
    }

    pub(super) fn tell(&self, member: u16, message: &Message) {
        if member != self.node.organisation
            && let Some(bytes) = message.to_bytes()
        {
            self.node.messages.tell(member, bytes);
        }
    }
}

/// Whether enough members hold a transaction's part.
fn is_enough(one: &ToHold, progress: &FxHashMap<TransactionId, Progress>) -> bool {
    progress.get(&one.id).is_some_and(|known| known.endorsements.len() >= one.members.quorum())
}

/// As many in a message as it holds.
fn packed<T>(all: Vec<T>, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut messages, mut bytes) = (Vec::<Vec<T>>::new(), 0);
    for one in all {
        let size = size(&one);
        match messages.last_mut() {
            Some(last) if bytes + size <= PACKED_BYTES => {
                bytes += size;
                last.push(one);
            }
            _ => {
                bytes = size;
                messages.push(vec![one]);
            }
        }
    }
    messages
}

/// Answers other members, and sees to it that schemas go on.
pub(crate) struct Holding {
    pub(crate) private: Arc<PrivateSchemas>,
    pub(crate) published: Arc<Published>,
    /// What other members have told this node about schemas.
    pub(crate) told: Receiver<(u16, Bytes)>,
}

impl Holding {
    /// Works until nobody can tell anything any more: the node's pipeline has ended.
    ///
    /// # Errors
    /// A part cannot be stored.
    pub(crate) fn run(self) -> Result<(), NodeError> {
        let (ticks, mut asked) = (tick(TICK), Instant::now());
        let mut told = self.told.clone();
        loop {
            select! {
                recv(told) -> first => match first {
                    Ok(first) => {
                        let others = self.told.try_iter().take(TOGETHER - 1);
                        let together: Vec<(u16, Bytes)> = std::iter::once(first).chain(others).collect();
                        self.hear(together)?;
                    }
                    Err(_) => {
                        told = never();
                        if self.published.is_stopping() {
                            return Ok(());
                        }
                    }
                },
                recv(ticks) -> _ => {
                    if self.published.is_stopping() {
                        return Ok(());
                    }
                    self.go_on();
                    if asked.elapsed() >= AGAIN {
                        asked = Instant::now();
                        self.ask();
                    }
                }
            }
        }
    }

    fn go_on(&self) -> bool {
        self.private.go_on(|(snapshot, library)| self.published.refresh(snapshot, library))
    }

    /// Asks members for what is missing.
    fn ask(&self) {
        for (members, transaction, schema) in self.private.missing() {
            self.private.tell_members(&members, &Message::AskPart { transaction, schema });
        }
    }

    /// Stores all parts of these messages with one flush, and answers.
    fn hear(&self, messages: Vec<(u16, Bytes)>) -> Result<(), NodeError> {
        let (mut to_hold, mut came) = (Vec::new(), false);
        for (member, bytes) in messages {
            let Some(message) = Message::from_bytes(&bytes) else { continue };
            match message {
                Message::Hold(parts) => {
                    to_hold.extend(parts.into_iter().map(|(transaction, held)| (member, transaction, held)));
                }
                Message::Held(held) => {
                    for (transaction, endorsement) in held {
                        self.private.answered(Answered { transaction, member, said: Ok(endorsement) });
                    }
                }
                Message::Refused { transaction, reason } => {
                    let reason: String = reason.chars().take(200).collect();
                    self.private.answered(Answered { transaction, member, said: Err(reason) });
                }
                Message::AskPart { transaction, schema } => self.hand_out(member, transaction, &schema)?,
                Message::Part(part) => came |= self.private.take_missing(part)?,
                Message::Outcome { schema, height, digest } => {
                    self.private.agreeing.lock().heard((schema, height), member, digest);
                    self.private.news.send_modify(|news| *news += 1);
                }
                Message::AskOutcome { schema, height } => {
                    if let Some(digest) = self.private.agreeing.lock().own((schema, height)) {
                        self.private.tell(member, &Message::Outcome { schema, height, digest });
                    }
                }
            }
        }
        if came {
            self.private.node.parts.flush()?;
            if self.go_on() {
                self.ask();
            }
        }
        if to_hold.is_empty() { Ok(()) } else { self.hold(to_hold) }
    }

    /// Holds what can be held, and says so.
    fn hold(&self, all: Vec<(u16, Vec<u8>, HeldPart)>) -> Result<(), NodeError> {
        let (mut transactions, mut parts) = (Vec::new(), Vec::new());
        for (member, bytes, held) in all {
            let read = SignedTransaction::from_bytes(&bytes).map_err(|error| error.to_string());
            let checked = read.and_then(|one| self.private.check_content(&one, &held));
            match checked {
                Ok(()) => {
                    transactions.push(Bytes::from(bytes));
                    parts.push((member, held));
                }
                Err(reason) => self.refuse(member, held.transaction, reason),
            }
        }
        let mut held: BTreeMap<u16, Vec<TransactionId>> = BTreeMap::new();
        let height = self.published.newest().0;
        let signed = self.private.are_signed(&transactions, height);
        for ((member, part), is_signed) in parts.into_iter().zip(signed) {
            let id = part.transaction;
            if !is_signed {
                self.refuse(member, id, "its signature or credential is not right".to_string());
                continue;
            }
            self.private.node.parts.put(part)?;
            held.entry(member).or_default().push(id);
        }
        self.private.node.parts.flush()?;
        for (member, ids) in held {
            let words = ids.iter().copied().zip(self.private.sign(&ids, height)).collect();
            for words in packed(words, |word: &(TransactionId, Endorsement)| encode(word).len()) {
                self.private.tell(member, &Message::Held(words));
            }
        }
        Ok(())
    }

    fn refuse(&self, member: u16, transaction: TransactionId, reason: String) {
        self.private.tell(member, &Message::Refused { transaction, reason });
    }

    /// Gives a member a part of its schema that it misses.
    fn hand_out(&self, member: u16, transaction: TransactionId, schema: &str) -> Result<(), NodeError> {
        // Who is none is told nothing, whoever asks.
        if !self.private.members(schema).is_some_and(|members| members.has(member)) {
            return Ok(());
        }
        if let Some(part) = self.private.node.parts.get(&transaction, schema)? {
            let schema = schema.to_string();
            self.private.tell(member, &Message::Part(HeldPart { transaction, schema, part }));
        }
        Ok(())
    }
}
