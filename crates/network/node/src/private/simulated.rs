//! The schemas of a simulated node: what it does without threads, what a test may know of it, and what a member can say that lies.

use super::asking::{AnswerWhen, Asking};
use super::collecting::Bundle;
use super::holding::{Holding, Turns};
use super::message::{Message, PartsToHold};
use super::part_store::HeldPart;
use super::schemas::PrivateSchemas;
use crate::attesting::Clock;
use crate::published::Published;
use crate::submission::Submitter;
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::sync::mpsc;
use types::{
    AnswerAt, EndorsedEffects, EndorsedSimulation, Endorsement, HeldParts, Identity, Outcome, Part,
    PartSubmission, SchemaAttestation, SchemaOutcome, SignedTransaction, SubmissionReply, TransactionId,
    endorse,
};

type UnderWay = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a node does for schemas, whenever it has its turn.
pub(crate) struct PrivateTurns {
    turns: Turns,
    asking: Arc<Asking>,
    schemas: Arc<PrivateSchemas>,
    session: Identity,
    clock: Clock,
    /// Submissions that were not answered.
    under_way: Mutex<Vec<UnderWay>>,
}

impl PrivateTurns {
    pub(crate) fn new(
        holding: Holding,
        session: Identity,
        submitter: Arc<Submitter>,
        clock: Clock,
    ) -> PrivateTurns {
        let (asking, schemas) = (holding.asking.clone(), holding.schemas.clone());
        let (turns, under_way) = (holding.turns(session.clone(), submitter), Mutex::default());
        PrivateTurns { turns, asking, schemas, session, clock, under_way }
    }

    /// Hears the others, goes on with schemas and with what clients wait for.
    pub(crate) fn turn(&mut self) {
        self.turns.turn((self.clock)());
        let mut context = Context::from_waker(Waker::noop());
        self.under_way.get_mut().retain_mut(|one| one.as_mut().poll(&mut context).is_pending());
    }

    pub(crate) fn schemas(&self) -> Vec<SchemaAtMember> {
        self.schemas.at_member()
    }

    pub(crate) fn ended(&self, before: usize) -> Vec<EndedAtMember> {
        self.schemas.ended_behind(before)
    }

    pub(crate) fn outcome(&self, schema: u32, height: u64) -> Option<SchemaOutcome> {
        self.schemas.agreeing.lock().own((schema, height)).map(|own| own.statement.clone())
    }

    /// Takes a client's submission.
    pub(crate) fn submit(
        &self,
        submission: PartSubmission,
        (answer_at, within): (AnswerAt, Duration),
        (submitter, published): (&Arc<Submitter>, &Published),
    ) -> mpsc::Receiver<SubmissionReply> {
        let (replies, receiver) = mpsc::channel(1);
        let (asking, submitter, height) = (self.asking.clone(), submitter.clone(), published.newest().0);
        let session = self.session.clone();
        let when = AnswerWhen { attested: answer_at == AnswerAt::Attested, within };
        let submitted = async move {
            let order = |ready: Vec<Bundle>| {
                let (replies, receipts) = mpsc::channel(1);
                Bundle::submit(ready, &submitter, (answer_at, &replies));
                receipts
            };
            let reply = |position, result| {
                // An error says that the client has gone.
                let _ = replies.try_send(SubmissionReply { position, result });
            };
            asking.submit(vec![submission], (&session, height, when), order, reply).await;
        };
        self.under_way.lock().push(Box::pin(submitted));
        receiver
    }
}

/// A schema at one of its members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaAtMember {
    /// Its name.
    pub name: String,
    /// [`types::SchemaMembers::number`].
    pub number: u32,
    /// Who its members are, as this one knows.
    pub members: Vec<u16>,
    /// The last block that was executed in it.
    pub height: u64,
    /// Why it will never go on.
    pub stopped: Option<String>,
    /// Transactions that wait for votes.
    pub undecided: usize,
}

/// How a part has ended at a member.
#[derive(Clone, PartialEq, Debug)]
pub struct EndedAtMember {
    /// Its transaction.
    pub transaction: TransactionId,
    /// The name of its schema.
    pub schema: String,
    /// Of the block in which it has taken effect, or not.
    pub height: u64,
    /// How.
    pub outcome: Outcome,
}

/// What one member tells another about a schema, as whoever carries it sees it.
#[derive(Clone, PartialEq, Debug)]
pub enum PrivateWord {
    /// Hold these parts.
    Hold,
    /// I hold them, or I do not.
    Held,
    /// Who has this part?
    AskPart(TransactionId, String),
    /// A part.
    Part,
    /// What a block came to.
    Outcome,
    /// What did it come to?
    AskOutcome,
}

/// Whose node lies.
#[derive(Clone)]
pub struct Liar {
    /// Of the ledger.
    pub ledger: Digest,
    /// Position of its organisation.
    pub organisation: u16,
    /// Its node's.
    pub key: SecretKey,
}

impl Liar {
    /// Its word on a transaction's parts, whether it has them or not.
    fn holds(&self, transaction: TransactionId, height: u64) -> Vec<Endorsement> {
        let held = [(transaction, EndorsedEffects::held().digest())];
        endorse(&self.key, self.organisation, &self.ledger, height, &held)
    }
}

/// What a message between members is; `None` for one that is about something else.
pub fn private_word(message: &[u8]) -> Option<PrivateWord> {
    Some(match Message::from_bytes(message)? {
        Message::Hold(_) | Message::HoldTogether(_) => PrivateWord::Hold,
        Message::Held(_) | Message::HeldTogether(_) | Message::Refused { .. } => PrivateWord::Held,
        Message::AskPart { transaction, schema } => PrivateWord::AskPart(transaction, schema),
        Message::Part(_) => PrivateWord::Part,
        Message::Outcome(_) => PrivateWord::Outcome,
        Message::AskOutcome { .. } => PrivateWord::AskOutcome,
    })
}

/// A message with parts, each of them changed.
pub fn with_other_parts(message: &[u8], change: impl Fn(&mut Part)) -> Option<Bytes> {
    let mut message = Message::from_bytes(message)?;
    match &mut message {
        Message::Hold(all) | Message::HoldTogether(all) => {
            all.iter_mut().flat_map(|(_, parts)| parts).for_each(|held| change(&mut held.part));
        }
        Message::Part(held) => change(&mut held.part),
        _ => return None,
    }
    message.to_bytes()
}

/// A member's word on a block, changed and signed again.
pub fn with_other_outcome(
    message: &[u8],
    liar: &Liar,
    change: impl Fn(&mut SchemaOutcome),
) -> Option<(Bytes, SchemaAttestation)> {
    let Message::Outcome(SchemaAttestation { mut statement, .. }) = Message::from_bytes(message)? else {
        return None;
    };
    change(&mut statement);
    let said = SchemaAttestation::sign(statement, liar.organisation, &liar.key);
    Some((Message::Outcome(said.clone()).to_bytes()?, said))
}

/// Answers a message that asks to hold parts: whoever says this need not have looked at them.
pub fn say_held(message: &[u8], liar: &Liar, height: u64) -> Option<Bytes> {
    let ids = |all: Vec<PartsToHold>| -> Vec<TransactionId> {
        all.iter().filter_map(|(_, parts)| Some(parts.first()?.transaction)).collect()
    };
    let words = match Message::from_bytes(message)? {
        Message::Hold(all) => {
            let of = |id: TransactionId| liar.holds(id, height).into_iter().map(move |word| (id, word));
            Message::Held(ids(all).into_iter().flat_map(of).collect())
        }
        Message::HoldTogether(all) => {
            let whose = (liar.organisation, height);
            Message::HeldTogether(HeldParts::sign(ids(all), whose, (&liar.ledger, &liar.key)))
        }
        _ => return None,
    };
    words.to_bytes()
}

/// The transactions of a message that asks to hold their parts, each with them.
pub fn hold_these(message: &[u8]) -> Vec<(SignedTransaction, Vec<(String, Part)>)> {
    let Some(Message::Hold(all) | Message::HoldTogether(all)) = Message::from_bytes(message) else {
        return Vec::new();
    };
    let read = |(bytes, parts): (Vec<u8>, Vec<HeldPart>)| {
        let parts = parts.into_iter().map(|held| (held.schema, held.part)).collect();
        Some((SignedTransaction::from_bytes(&bytes).ok()?, parts))
    };
    all.into_iter().filter_map(read).collect()
}

/// Asks a member to hold the parts of a transaction.
pub fn ask_to_hold(transaction: &SignedTransaction, parts: Vec<(String, Part)>) -> Option<Bytes> {
    let id = transaction.transaction.id();
    let held = parts.into_iter().map(|(schema, part)| HeldPart { transaction: id, schema, part });
    Message::Hold(vec![(transaction.to_bytes(), held.collect())]).to_bytes()
}

/// Asks a member for a part.
pub fn ask_for_part(transaction: TransactionId, schema: &str) -> Option<Bytes> {
    Message::AskPart { transaction, schema: schema.to_string() }.to_bytes()
}

/// A transaction with the word of a liar that it alone holds its parts.
pub fn held_alone(transaction: SignedTransaction, liar: &Liar, height: u64) -> SignedTransaction {
    let endorsements = liar.holds(transaction.transaction.id(), height);
    let endorsed = Some(Box::new(EndorsedSimulation { effects: EndorsedEffects::held(), endorsements }));
    SignedTransaction { endorsed, ..transaction }
}
