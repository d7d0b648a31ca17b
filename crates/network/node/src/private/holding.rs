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
use crypto::SignedMessage;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use types::{
    EndorsedEffects, EndorsedSimulation, Endorsement, Identity, Part, PartCommitment, Payload, RequestId,
    SchemaMembers, SignedTransaction, SqlError, SqlState, StatementResult, TransactionId, endorse,
    endorsement_leaf, endorsement_message, limits,
};

/// How often somebody who has not answered is asked again.
const AGAIN: Duration = Duration::from_millis(300);
/// How long members may take to hold a part.
const HELD_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether a schema is behind.
const TICK: Duration = Duration::from_millis(50);
/// Messages that are answered after one flush.
const TOGETHER: usize = 256;

/// Somebody who waits for members to hold a part: who has answered, and what.
pub(super) type Waiting = mpsc::UnboundedSender<(u16, Result<Endorsement, String>)>;

/// A transaction in a schema with members, as its client signs it.
pub(crate) struct PartToHold {
    schema: String,
    members: Arc<SchemaMembers>,
    part: Part,
    signed: SignedTransaction,
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
    ) -> Result<PartToHold, SqlError> {
        let Some(members) = self.members(schema) else {
            let message = format!("this node's organisation is no member of schema \"{schema}\"");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        };
        if !role.is_empty() {
            return Err(SqlError::unsupported(format_args!(
                "a transaction of a role in schema \"{schema}\", which has members,"
            ))
            .hint("Connect as the administrator of the organisation."));
        }
        let part = Part::new(payload);
        let request = RequestId(crypto::random_bytes());
        let client = types::ClientId { key: session.public_key(), request };
        let commitment = part.commitment(&session.ledger(), schema, &client);
        let parts = vec![PartCommitment { schema: schema.to_string(), commitment }];
        part.check(&session.ledger(), schema, &client, &parts)
            .map_err(|fault| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, fault.to_string()))?;
        let payload = Payload::Parts { parts };
        let signed = session.sign_request(request, String::new(), payload, expires_at);
        Ok(PartToHold { schema: schema.to_string(), members, part, signed })
    }

    /// Returns the transaction, ready to be ordered, once a quorum of the schema's members holds its part.
    ///
    /// # Errors
    /// `57014` where too few do in time, with what they say.
    pub(crate) async fn hold(&self, to_hold: &PartToHold, height: u64) -> Result<Bytes, SqlError> {
        let PartToHold { schema, members, part, signed } = to_hold;
        let id = signed.transaction.id();
        let held = HeldPart { transaction: id, schema: schema.clone(), part: part.clone() };
        let stored = tokio::task::block_in_place(|| {
            self.node.parts.put(held.clone()).and_then(|()| self.node.parts.flush())
        });
        stored.map_err(|error| SqlError::new(SqlState::IO_ERROR, error.to_string()))?;
        let mut endorsements = BTreeMap::from([(self.node.organisation, self.sign(&id, height))]);
        let message = Message::Hold { transaction: signed.to_bytes(), held };
        let (answer, mut answers) = mpsc::unbounded_channel();
        self.waiting.lock().insert(id, answer);
        let (start, mut refused) = (Instant::now(), BTreeMap::new());
        let quorum = members.quorum();
        while endorsements.len() < quorum && start.elapsed() < HELD_WITHIN {
            for member in members.organisations.iter().filter(|member| !endorsements.contains_key(*member)) {
                message.to_bytes().into_iter().for_each(|bytes| self.node.messages.tell(*member, bytes));
            }
            let again = tokio::time::sleep(AGAIN);
            tokio::pin!(again);
            while endorsements.len() < quorum {
                tokio::select! {
                    () = &mut again => break,
                    answered = answers.recv() => match answered {
                        Some((member, Ok(endorsement))) if self.is_held(&id, member, &endorsement) => {
                            endorsements.insert(member, endorsement);
                        }
                        Some((member, Err(reason))) => {
                            refused.insert(member, reason);
                        }
                        Some(_) => {}
                        None => break,
                    },
                }
            }
        }
        self.waiting.lock().remove(&id);
        if endorsements.len() < quorum {
            return Err(self.too_few(schema, members, &endorsements, &refused));
        }
        let endorsements = endorsements.into_values().collect();
        let endorsed = Some(Box::new(EndorsedSimulation { effects: EndorsedEffects::held(), endorsements }));
        let signed = SignedTransaction { endorsed, ..signed.clone() };
        Ok(Bytes::from(signed.to_bytes()))
    }

    fn too_few(
        &self,
        schema: &str,
        members: &SchemaMembers,
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

    /// This member's word that it holds a transaction's parts.
    fn sign(&self, id: &TransactionId, height: u64) -> Endorsement {
        let ledger = self.node.charters.newest().ledger();
        let effects = EndorsedEffects::held().digest();
        let (key, organisation) = (&self.node.node_key, self.node.organisation);
        let mut endorsements = endorse(key, organisation, &ledger, height, &[(*id, effects)]);
        endorsements.pop().expect("one for one transaction")
    }

    /// Whether it is this member's word.
    fn is_held(&self, id: &TransactionId, member: u16, endorsement: &Endorsement) -> bool {
        let charter = self.node.charters.newest();
        let Some(organisation) = charter.organisations.get(usize::from(member)) else { return false };
        let leaf = endorsement_leaf(id, endorsement.snapshot, &EndorsedEffects::held().digest());
        let Some(root) = endorsement.proof.root(leaf) else { return false };
        let message = endorsement_message(&charter.ledger(), &root);
        endorsement.organisation == member
            && crypto::verify(&SignedMessage {
                key: organisation.node_key,
                signature: endorsement.signature,
                message: &message,
            })
    }

    /// How a part has ended that stands in the block of this height, once enough members agree on it.
    ///
    /// # Errors
    /// What it has ended with; `57014` where nothing is known in time.
    pub(crate) async fn ended_part(
        &self,
        to_hold: &PartToHold,
        attested: bool,
        within: Duration,
    ) -> Result<Vec<StatementResult>, SqlError> {
        let PartToHold { schema, members, signed, .. } = to_hold;
        let (id, start, mut news) = (signed.transaction.id(), Instant::now(), self.news.subscribe());
        while start.elapsed() < within {
            news.mark_unchanged();
            if let Some((height, outcome)) = self.ended(&id, schema) {
                match if attested { self.verdict(members, height) } else { Verdict::Agreed } {
                    Verdict::Agreed => return answer(outcome).map_err(|error| explained(error, schema)),
                    Verdict::Differs => self.differs(members, height),
                    Verdict::Open => {
                        self.tell_members(members, &Message::AskOutcome { schema: members.number, height });
                    }
                }
            }
            let _ = tokio::time::timeout(AGAIN, news.changed()).await;
        }
        let problem = self.problem(schema).map_or(String::new(), |problem| format!(": {problem}"));
        let message = format!(
            "the transaction is ordered, but what it came to in schema \"{schema}\" is not known yet{problem}"
        );
        Err(SqlError::new(SqlState::QUERY_CANCELED, message))
    }

    /// Whether this member can hold a part for somebody's transaction.
    fn check_to_hold(&self, bytes: &[u8], held: &HeldPart) -> Result<(), String> {
        let signed = SignedTransaction::from_bytes(bytes).map_err(|error| error.to_string())?;
        let charter = self.node.charters.newest();
        let ledger = charter.ledger();
        if signed.transaction.ledger != ledger || signed.transaction.id() != held.transaction {
            return Err("the transaction is of another ledger, or another one".to_string());
        }
        let Some(members) = self.members(&held.schema) else {
            return Err(format!("it does not know of a schema \"{}\" that it is a member of", held.schema));
        };
        let client = signed.credential.organisation;
        if !members.has(client) {
            return Err(format!("its client's organisation is no member of schema \"{}\"", held.schema));
        }
        let root = charter.organisations.get(usize::from(client)).map(|known| known.root_key);
        let vouched =
            root.is_some_and(|root| signed.credential.verify(&root, &ledger, &signed.transaction.client));
        if !vouched || !signed.verify_signature() {
            return Err("its signature or credential is not right".to_string());
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
        let (mut held, mut came) = (Vec::new(), false);
        for (member, bytes) in messages {
            let Some(message) = Message::from_bytes(&bytes) else { continue };
            match message {
                Message::Hold { transaction, held: part } => {
                    let id = part.transaction;
                    match self.private.check_to_hold(&transaction, &part) {
                        Ok(()) => {
                            self.private.node.parts.put(part)?;
                            held.push((member, id));
                        }
                        Err(reason) => self.tell(member, &Message::Refused { transaction: id, reason }),
                    }
                }
                Message::Held { transaction, endorsement } => {
                    self.private.answered(&transaction, member, Ok(endorsement));
                }
                Message::Refused { transaction, reason } => {
                    let reason: String = reason.chars().take(200).collect();
                    self.private.answered(&transaction, member, Err(reason));
                }
                Message::AskPart { transaction, schema } => self.hand_out(member, transaction, &schema),
                Message::Part(part) => came |= self.private.take_missing(part)?,
                Message::Outcome { schema, height, digest } => {
                    self.private.agreeing.lock().heard((schema, height), member, digest);
                    self.private.news.send_modify(|news| *news += 1);
                }
                Message::AskOutcome { schema, height } => {
                    if let Some(digest) = self.private.agreeing.lock().own((schema, height)) {
                        self.tell(member, &Message::Outcome { schema, height, digest });
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
        if !held.is_empty() {
            self.private.node.parts.flush()?;
            let height = self.published.newest().0;
            for (member, transaction) in held {
                let endorsement = self.private.sign(&transaction, height);
                self.tell(member, &Message::Held { transaction, endorsement });
            }
        }
        Ok(())
    }

    /// Gives a member a part of its schema that it misses.
    fn hand_out(&self, member: u16, transaction: TransactionId, schema: &str) {
        // Who is none is told nothing, whoever asks.
        if !self.private.members(schema).is_some_and(|members| members.has(member)) {
            return;
        }
        if let Some(part) = self.private.node.parts.get(&transaction, schema) {
            let schema = schema.to_string();
            self.tell(member, &Message::Part(HeldPart { transaction, schema, part }));
        }
    }

    fn tell(&self, member: u16, message: &Message) {
        if let Some(bytes) = message.to_bytes() {
            self.private.node.messages.tell(member, bytes);
        }
    }
}
