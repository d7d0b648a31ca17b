//! A member's side: it holds parts that others hand it, signs that, hands out what others miss, and sees to it that its schemas go
//! on.

use super::announcing::Announcing;
use super::asking::{Answered, Asking};
use super::message::{Message, packed};
use super::part_store::HeldPart;
use super::schemas::PrivateSchemas;
use crate::pipeline;
use crate::published::Published;
use crate::submission::Submitter;
use crate::{Defence, NodeError};
use bytes::Bytes;
use crossbeam_channel::{Receiver, never, select, tick};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use types::{Endorsement, Identity, Place, SignedTransaction, TransactionId, encode};

/// How often others are asked for what is missing.
const AGAIN: Duration = Duration::from_millis(300);
/// How often it is looked whether a schema is behind.
const TICK: Duration = Duration::from_millis(20);
/// Messages that are answered after one flush.
const TOGETHER: usize = 256;

/// Whose parts are to be held. What stands in one list is answered with one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asker {
    member: u16,
    /// Of those that came together; `None`: each transaction is answered by itself.
    list: Option<u32>,
}

/// Answers other members, and sees to it that schemas go on.
pub(crate) struct Holding {
    pub(crate) schemas: Arc<PrivateSchemas>,
    /// Hears what other members answer.
    pub(crate) asking: Arc<Asking>,
    pub(crate) published: Arc<Published>,
    /// What other members have told this node about schemas.
    pub(crate) told: Receiver<(u16, Bytes)>,
}

/// A member's side at work: each step is done whenever there is something to do.
pub(crate) struct Turns {
    holding: Holding,
    announcing: Announcing,
    /// When others were asked last for what is missing.
    asked: Duration,
}

impl Turns {
    /// Works until the node is told to stop.
    fn run(mut self) {
        let (ticks, began) = (tick(TICK), Instant::now());
        let (mut told, attested) = (self.holding.told.clone(), self.holding.schemas.attested.clone());
        loop {
            select! {
                recv(told) -> first => match first {
                    Ok(first) => self.hear(first),
                    Err(_) => told = never(),
                },
                recv(attested) -> _ => self.announce(false),
                recv(ticks) -> _ => {
                    if self.holding.published.is_stopping() {
                        return;
                    }
                    self.tick(began.elapsed());
                }
            }
        }
    }

    /// Does whatever there is to do.
    #[cfg(feature = "simulation")]
    pub(crate) fn turn(&mut self, now: Duration) {
        while let Ok(first) = self.holding.told.try_recv() {
            self.hear(first);
        }
        if self.holding.schemas.attested.try_recv().is_ok() {
            self.announce(false);
        }
        self.tick(now);
    }

    /// Hears this message, and others that have come.
    fn hear(&mut self, first: (u16, Bytes)) {
        let others = self.holding.told.try_iter().take(TOGETHER - 1);
        let together: Vec<(u16, Bytes)> = std::iter::once(first).chain(others).collect();
        if self.holding.hear(together) {
            self.announce(false);
        }
    }

    fn announce(&mut self, asks: bool) {
        self.announcing.announce(&self.holding.schemas, asks);
    }

    /// Time has passed: schemas go on that are behind, and others are asked again.
    fn tick(&mut self, now: Duration) {
        let asks = now >= self.asked + AGAIN;
        self.holding.go_on();
        self.announce(asks);
        if asks {
            self.asked = now;
            self.holding.ask();
        }
    }
}

impl Holding {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        self,
        session: &Identity,
        submitter: &Arc<Submitter>,
        published: &Arc<Published>,
    ) -> Result<JoinHandle<()>, NodeError> {
        let turns = self.turns(session.clone(), submitter.clone());
        pipeline::stage("schemas", published, move || {
            turns.run();
            Ok(())
        })
    }

    /// What the thread does, and a simulated node without one.
    pub(crate) fn turns(self, session: Identity, submitter: Arc<Submitter>) -> Turns {
        let announcing = Announcing::new(session, submitter, self.published.clone());
        Turns { holding: self, announcing, asked: Duration::ZERO }
    }

    fn go_on(&self) -> bool {
        self.schemas.go_on(|(snapshot, library)| self.published.refresh(snapshot, library))
    }

    /// Asks members for what is missing.
    fn ask(&self) {
        for (members, transaction, schema) in self.schemas.missing() {
            self.schemas.tell_members(&members, &Message::AskPart { transaction, schema });
        }
    }

    /// Stores all parts of these messages with one flush, and answers. Whether somebody has said what a block came to.
    fn hear(&self, messages: Vec<(u16, Bytes)>) -> bool {
        let (mut to_hold, mut came, mut said, mut lists) = (Vec::new(), false, false, 0);
        for (member, bytes) in messages {
            let Some(message) = Message::from_bytes(&bytes) else { continue };
            match message {
                Message::Hold(parts) => {
                    let asker = Asker { member, list: None };
                    to_hold.extend(parts.into_iter().map(|(transaction, parts)| (asker, transaction, parts)));
                }
                Message::HoldTogether(parts) => {
                    lists += 1;
                    let asker = Asker { member, list: Some(lists) };
                    to_hold.extend(parts.into_iter().map(|(transaction, parts)| (asker, transaction, parts)));
                }
                Message::Held(held) => {
                    for (transaction, endorsement) in held {
                        self.asking.answered(&Answered::Held { transaction, member, endorsement });
                    }
                }
                Message::HeldTogether(word) => {
                    self.asking.answered(&Answered::HeldTogether { member, word });
                }
                Message::Refused { transaction, reason } => {
                    let reason: String = reason.chars().take(200).collect();
                    self.asking.answered(&Answered::Refused { transaction, member, reason });
                }
                Message::AskPart { transaction, schema } => self.hand_out(member, transaction, &schema),
                Message::Part(part) => came |= self.schemas.take_missing(part),
                Message::Outcome(attestation) => {
                    self.schemas.agreeing.lock().heard(member, &attestation);
                    said = true;
                    self.schemas.news.send_modify(|news| *news += 1);
                }
                Message::AskOutcome { schema, height } => {
                    let own = self.schemas.agreeing.lock().own((schema, height)).cloned();
                    if let Some(own) = own {
                        self.schemas.tell(member, &Message::Outcome(own));
                    }
                }
            }
        }
        if came && self.go_on() {
            self.ask();
        }
        if !to_hold.is_empty() {
            self.hold(to_hold);
        }
        said
    }

    /// Holds what can be held, and says so: after one flush, with one signature for each who asks and each list.
    fn hold(&self, all: Vec<(Asker, Vec<u8>, Vec<HeldPart>)>) {
        let (mut transactions, mut parts) = (Vec::new(), Vec::new());
        for (asker, bytes, held) in all {
            let read = SignedTransaction::from_bytes(&bytes).map_err(|error| error.to_string());
            let Some(transaction) = held.first().map(|part| part.transaction) else { continue };
            let checked = |one| self.schemas.check_content(&one, &held).map_err(|error| error.message);
            match read.and_then(checked) {
                Ok(()) => {
                    transactions.push(Bytes::from(bytes));
                    parts.push((asker, transaction, held));
                }
                Err(reason) => self.refuse(asker.member, transaction, reason),
            }
        }
        let (mut held, mut to_store): (BTreeMap<Asker, Vec<TransactionId>>, _) =
            (BTreeMap::new(), Vec::new());
        let height = self.published.newest().0;
        let signed = self.are_signed(&transactions, height);
        for ((asker, id, parts), is_signed) in parts.into_iter().zip(signed) {
            if is_signed {
                held.entry(asker).or_default().push(id);
                to_store.extend(parts);
            } else {
                self.refuse(asker.member, id, "its signature or credential is not right".to_string());
            }
        }
        let parts = &self.schemas.node.parts;
        if let Err(error) = parts.put(to_store).and_then(|()| parts.flush()) {
            tracing::error!(%error, "parts of schemas cannot be stored, so this member does not hold them");
            for (Asker { member, .. }, ids) in held {
                ids.into_iter().for_each(|id| self.refuse(member, id, error.to_string()));
            }
            return;
        }
        for (Asker { member, list }, ids) in held {
            if list.is_some() {
                if let Some(word) = self.schemas.sign_together(ids, height) {
                    self.schemas.tell(member, &Message::HeldTogether(word));
                }
                continue;
            }
            let words = ids.iter().copied().zip(self.schemas.sign(&ids, height)).collect();
            for words in packed(words, |word: &(TransactionId, Endorsement)| encode(word).len()) {
                self.schemas.tell(member, &Message::Held(words));
            }
        }
    }

    /// Which of these transactions their clients have signed, who are those of the organisations that they name. When they come in
    /// blocks that need not be verified again.
    fn are_signed(&self, transactions: &[Bytes], height: u64) -> Vec<bool> {
        let charters = self.schemas.node.charters.all();
        let place = Place { charters: &charters, height: height + 1 };
        let judged = self
            .schemas
            .node
            .pool
            .install(|| self.schemas.node.verifier.check_proposals(place, transactions));
        judged.iter().map(Result::is_ok).collect()
    }

    fn refuse(&self, member: u16, transaction: TransactionId, reason: String) {
        self.schemas.tell(member, &Message::Refused { transaction, reason });
    }

    /// Gives a member a part of its schema that it misses.
    fn hand_out(&self, member: u16, transaction: TransactionId, schema: &str) {
        // Who is none is told nothing, whoever asks.
        if !self.schemas.members(schema).is_some_and(|members| members.has(member))
            && !self.schemas.node.lacks(Defence::MembersAlone)
        {
            return;
        }
        match self.schemas.node.parts.get(&transaction, schema) {
            Ok(Some(part)) => {
                let schema = schema.to_string();
                self.schemas.tell(member, &Message::Part(HeldPart { transaction, schema, part }));
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "a part that another member asks for cannot be read"),
        }
    }
}
