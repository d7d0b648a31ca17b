//! Members of schemas that run a node and lie: in what they say that they hold, in the parts that they hand out, in how they vote.

use crate::liar::Lie;
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, unbounded};
use crypto::{Digest, SecretKey, sha256};
use node::simulation::{
    Liar, PrivateWord, ask_for_part, ask_to_hold, held_alone, hold_these, private_word, say_held,
    with_other_outcome, with_other_parts,
};
use ordering::Services;
use ordering::simulation::{node_key, root_key};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use types::{
    Credential, Identity, Part, PartVotes, Payload, RequestId, SchemaAttestation, SchemaCertificate,
    SchemaOutcome, SignedTransaction, limits,
};

/// Heights for which its transactions may wait.
const EXPIRY: u64 = 1_000;

/// A message, and which member it is from.
type Told = (u16, Bytes);

/// What a lying node does with messages about schemas.
pub(crate) struct PartLies {
    lie: Lie,
    liar: Liar,
    /// Signs its own transactions.
    identity: Identity,
    /// Up to here it has recorded blocks.
    height: AtomicU64,
    /// Blocks for which it has made up a certificate.
    made_up: Mutex<BTreeSet<(u32, u64)>>,
    /// What its own node hears.
    heard: (Sender<Told>, Receiver<Told>),
}

impl PartLies {
    pub(crate) fn new(ledger: Digest, organisation: usize, lie: Lie) -> PartLies {
        let key = SecretKey::from_bytes(sha256(&[b"client of a liar"]).0);
        let root = root_key(organisation);
        let credential = Credential::issue(&root, organisation as u16, &ledger, &key.public_key());
        PartLies {
            lie,
            liar: Liar { ledger, organisation: organisation as u16, key: node_key(organisation) },
            identity: Identity::new(ledger, key, credential),
            height: AtomicU64::new(0),
            made_up: Mutex::default(),
            heard: unbounded(),
        }
    }

    pub(crate) fn recorded(&self, height: u64) {
        self.height.store(height, Atomic::Relaxed);
    }

    fn height(&self) -> u64 {
        self.height.load(Atomic::Relaxed)
    }

    /// What its node hears of what others have told it.
    pub(crate) fn hear(&self, services: &Services) -> &Receiver<Told> {
        for (member, message) in services.messages.told().try_iter() {
            let is_hold = private_word(&message) == Some(PrivateWord::Hold);
            match self.lie {
                Lie::HoldsNothing if is_hold => {
                    let held = say_held(&message, &self.liar, self.height());
                    held.into_iter().for_each(|held| services.messages.tell(member, held));
                    continue;
                }
                Lie::Replays if is_hold => self.replay(member, &message, services),
                _ => {}
            }
            // The other end is its own.
            let _ = self.heard.0.send((member, message));
        }
        &self.heard.1
    }

    /// What is told a member in the place of a message; `None`: nothing.
    pub(crate) fn tell(&self, member: u16, message: Bytes, services: &Services) -> Option<Bytes> {
        let Some(word) = private_word(&message) else { return Some(message) };
        match (self.lie, word) {
            (Lie::SchemaSilence, _) | (Lie::HoldsNothing | Lie::WithholdsParts, PrivateWord::Part) => None,
            (Lie::WithholdsParts, PrivateWord::Hold) => {
                let alone =
                    |(signed, _)| Bytes::from(held_alone(signed, &self.liar, self.height()).to_bytes());
                let ordered = hold_these(&message).into_iter().map(alone).collect();
                let _ = services.ordering.submit(ordered);
                None
            }
            (Lie::AltersParts, PrivateWord::Hold | PrivateWord::Part) => {
                with_other_parts(&message, |part| alter(part, member))
            }
            // The right votes to some, and others to others.
            (Lie::Votes, PrivateWord::Outcome) if member % 2 == 1 => {
                with_other_outcome(&message, &self.liar, turn_votes).map(|(message, _)| message)
            }
            (Lie::SchemaOutcomes, PrivateWord::Outcome) => {
                let other = |outcome: &mut SchemaOutcome| outcome.outcome = sha256(&[&outcome.outcome.0]);
                with_other_outcome(&message, &self.liar, other).map(|(message, _)| message)
            }
            (Lie::SchemaCertificates, PrivateWord::Outcome) => {
                if let Some((_, said)) = with_other_outcome(&message, &self.liar, turn_votes) {
                    self.make_up(said, services);
                }
                Some(message)
            }
            _ => Some(message),
        }
    }

    /// Asks everybody for the parts of these transactions, a member of their schemas or not.
    pub(crate) fn ask(lie: Lie, transactions: &[Bytes], services: &Services) {
        if lie != Lie::AsksForParts {
            return;
        }
        for signed in transactions.iter().filter_map(|bytes| SignedTransaction::from_bytes(bytes).ok()) {
            let Payload::Parts { parts } = &signed.transaction.payload else { continue };
            for part in parts {
                let Some(ask) = ask_for_part(signed.transaction.id(), &part.schema) else { continue };
                (0..limits::ORGANISATIONS_MAX as u16)
                    .for_each(|member| services.messages.tell(member, ask.clone()));
            }
        }
    }

    /// Brings votes into the ledger that nobody has cast, in its own name and in those of others.
    fn make_up(&self, said: SchemaAttestation, services: &Services) {
        let SchemaAttestation { statement, organisation, signature } = said;
        let is_new = self.made_up.lock().insert((statement.schema, statement.height));
        if !is_new || statement.votes.is_empty() {
            return;
        }
        let alone = SchemaCertificate { statement, signatures: vec![(organisation, signature)] };
        let everybody = (0..limits::ORGANISATIONS_MAX as u16).map(|member| (member, signature));
        let forged = SchemaCertificate { signatures: everybody.collect(), ..alone.clone() };
        let transactions = [alone, forged].into_iter().map(|certificate| {
            let request = types::encode(&certificate);
            let payload = Payload::of_schema_outcomes(vec![certificate]);
            Bytes::from(self.sign(&request, payload).to_bytes())
        });
        let _ = services.ordering.submit(transactions.collect());
    }

    /// Hands another client's parts in, as if its own client had signed what these commit to: to whom they came from.
    fn replay(&self, member: u16, message: &Bytes, services: &Services) {
        for (signed, parts) in hold_these(message) {
            let Payload::Parts { .. } = signed.transaction.payload else { continue };
            let own = self.sign(message, signed.transaction.payload);
            let Some(ask) = ask_to_hold(&own, parts) else { continue };
            services.messages.tell(member, ask);
            let alone = held_alone(own, &self.liar, self.height());
            let _ = services.ordering.submit(vec![Bytes::from(alone.to_bytes())]);
        }
    }

    fn sign(&self, request: &[u8], payload: Payload) -> SignedTransaction {
        let digest = sha256(&[request]);
        let request = RequestId(std::array::from_fn(|byte| digest.0[byte]));
        self.identity.sign_request(request, String::new(), payload, self.height() + EXPIRY)
    }
}

/// Something else, for each member.
fn alter(part: &mut Part, member: u16) {
    let payload = match &mut part.payload {
        Payload::Agreed(agreed) => &mut agreed.call,
        other => other,
    };
    match payload {
        Payload::Script { sql, .. } => sql.push_str(&format!(" -- for {member}")),
        Payload::Call { arguments, .. } => arguments.truncate(usize::from(member % 3)),
        _ => {}
    }
    // Those of odd numbers get rows that differ.
    if let Payload::Script { sql, .. } = payload
        && member % 2 == 1
    {
        *sql = sql.replace("balance + 1", "balance + 5").replace(", 20, ", ", 50, ");
    }
}

/// Yes is no.
fn turn_votes(outcome: &mut SchemaOutcome) {
    for PartVotes { yes, no, .. } in &mut outcome.votes {
        std::mem::swap(yes, no);
    }
    for moves in &mut outcome.moves {
        moves.digest = sha256(&[&moves.digest.0]);
    }
}
