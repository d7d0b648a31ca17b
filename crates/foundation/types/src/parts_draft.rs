//! A transaction in schemas with members before it is signed: for those who have to agree to it (paper 003, section 5.3.2, negotiation).

use crate::{
    AgreedPart, ClientId, Credential, Identity, Part, PartCommitment, Payload, RequestId, SignedTransaction,
    SqlError, SqlState, StakeholderSignature, agreement, decode_exactly, encode, format_hexadecimal,
    parse_hexadecimal, part_core,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, SecretKey};
use std::collections::BTreeMap;

/// How the text of a draft begins.
const TEXT: &str = "entente-offer:";

/// What a transaction is to do, in the name of one client. Whoever has it can agree to it; its client alone can have it executed.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct PartsDraft {
    /// Digest of the charter of the ledger.
    pub ledger: Digest,
    /// Who will sign it.
    pub client: ClientId,
    /// The last height at which it may stand: after that it has to be offered again.
    pub expires_at: u64,
    /// What it does in each of its schemas, by the schema's name.
    pub parts: BTreeMap<String, DraftPart>,
    /// Who agrees so far.
    pub signatures: Vec<StakeholderSignature>,
}

/// What a transaction does in one schema, or what stands for it.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum DraftPart {
    /// All of it.
    Whole {
        /// Random, of this part alone.
        salt: [u8; 32],
        /// [`AgreedPart::between`].
        between: BTreeMap<String, [u8; 32]>,
        /// [`AgreedPart::call`].
        #[borsh(deserialize_with = "crate::agreed_part::read_call")]
        call: Payload,
    },
    /// [`part_core`]: for whoever agrees to the transaction and is not to know what it does there.
    Core(Digest),
}

impl PartsDraft {
    /// What stands for each part.
    fn cores(&self) -> BTreeMap<String, Digest> {
        let core = |(schema, part): (&String, &DraftPart)| {
            let core = match part {
                DraftPart::Whole { salt, between, call } => {
                    part_core((&self.ledger, schema, &self.client), salt, (call, between))
                }
                DraftPart::Core(core) => *core,
            };
            (schema.clone(), core)
        };
        self.parts.iter().map(core).collect()
    }

    /// What those sign who agree.
    pub fn agreement(&self) -> Digest {
        agreement(&self.ledger, (&self.client, self.expires_at), &self.cores())
    }

    /// Somebody agrees, with a key that an organisation vouches for or with any other.
    pub fn sign(&mut self, key: &SecretKey, credential: Option<Credential>) {
        let signature = StakeholderSignature::sign(&self.agreement(), key, credential);
        self.signatures.retain(|known| known.key != signature.key);
        self.signatures.push(signature);
    }

    /// The same for somebody who is to see what it does in these schemas alone. What others agree to is the same.
    #[must_use]
    pub fn seen_in(&self, schemas: &[&str]) -> PartsDraft {
        let mut seen = self.clone();
        for (schema, core) in self.cores() {
            if !schemas.contains(&schema.as_str()) {
                seen.parts.insert(schema, DraftPart::Core(core));
            }
        }
        seen
    }

    /// Takes the signatures of a copy that has been seen by somebody.
    ///
    /// # Errors
    /// `22023`: it is about something else.
    pub fn take_signatures(&mut self, of: &PartsDraft) -> Result<(), SqlError> {
        let agreement = self.agreement();
        if of.agreement() != agreement {
            return Err(wrong("the signatures are under another offer than this one"));
        }
        for signature in &of.signatures {
            if !self.signatures.iter().any(|known| known.key == signature.key) {
                self.signatures.push(*signature);
            }
        }
        Ok(())
    }

    /// Each part shares something with each other one, or nobody could tell whether the others do what was signed.
    fn check_shared(&self) -> Result<(), SqlError> {
        for (schema, part) in &self.parts {
            let DraftPart::Whole { between, .. } = part else { continue };
            if !self.parts.keys().filter(|other| *other != schema).eq(between.keys()) {
                let message =
                    format!("the offer's part for schema \"{schema}\" shares nothing with the others");
                return Err(wrong(&message));
            }
        }
        Ok(())
    }

    /// For people who send it to one another.
    pub fn to_text(&self) -> String {
        format!("{TEXT}{}", format_hexadecimal(&encode(self)))
    }

    /// Reads that.
    ///
    /// # Errors
    /// `22023` says that it is none, or damaged; or has signatures that are not under it.
    pub fn from_text(text: &str) -> Result<PartsDraft, SqlError> {
        let text = text.trim();
        let hexadecimal = text.strip_prefix(TEXT).ok_or_else(|| {
            wrong(&format!("expected an offer, which begins with {TEXT}, as entente.offer() gives it"))
        })?;
        let damaged = |error: String| wrong(&format!("the offer is damaged: {error}; copy all of it"));
        let bytes = parse_hexadecimal(hexadecimal).map_err(|error| damaged(error.message))?;
        let draft: PartsDraft = decode_exactly(&bytes).map_err(|error| damaged(error.to_string()))?;
        draft.check_shared()?;
        let agreement = draft.agreement();
        match draft.signatures.iter().find(|signature| !signature.is_under(&agreement)) {
            Some(forged) => Err(wrong(&format!("the signature of {} is not under this offer", forged.key))),
            None => Ok(draft),
        }
    }
}

fn wrong(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Identity {
    /// Agrees to what a draft does, in the name of the organisation that vouches for this key.
    ///
    /// # Errors
    /// `22023`: it is about another ledger.
    pub fn agree(&self, draft: &mut PartsDraft) -> Result<(), SqlError> {
        if draft.ledger != self.ledger() {
            return Err(wrong("the offer is one of another ledger"));
        }
        draft.sign(self.key(), Some(self.credential()));
        Ok(())
    }

    /// What a transaction is to do in schemas with members, that may stand up to height `expires_at`, before anybody signs it.
    pub fn draft_parts(
        &self,
        payloads: impl IntoIterator<Item = (String, Payload)>,
        expires_at: u64,
    ) -> PartsDraft {
        let payloads: BTreeMap<String, Payload> = payloads.into_iter().collect();
        let mut between: BTreeMap<String, BTreeMap<String, [u8; 32]>> = BTreeMap::new();
        for one in payloads.keys() {
            for other in payloads.keys().filter(|other| *other > one) {
                let secret = crypto::random_bytes();
                between.entry(one.clone()).or_default().insert(other.clone(), secret);
                between.entry(other.clone()).or_default().insert(one.clone(), secret);
            }
        }
        let part = |(schema, call): (String, Payload)| {
            let between = between.remove(&schema).unwrap_or_default();
            (schema, DraftPart::Whole { salt: crypto::random_bytes(), between, call })
        };
        let client = ClientId { key: self.public_key(), request: RequestId(crypto::random_bytes()) };
        PartsDraft {
            ledger: self.ledger(),
            client,
            expires_at,
            parts: payloads.into_iter().map(part).collect(),
            signatures: Vec::new(),
        }
    }

    /// Signs a draft of this client's, with the signatures of all who agree: what is given to the ledger, and the parts.
    ///
    /// # Errors
    /// `22023`: it is another client's, or ledger's, or not all of it is here.
    pub fn sign_draft(
        &self,
        draft: &PartsDraft,
    ) -> Result<(SignedTransaction, BTreeMap<String, Part>), SqlError> {
        let PartsDraft { ledger, client, expires_at, parts, signatures } = draft;
        if *ledger != self.ledger() {
            return Err(wrong("the offer is one of another ledger"));
        }
        if client.key != self.public_key() {
            return Err(wrong("the offer was made by another client; whoever has made it submits it"));
        }
        let cores = draft.cores();
        let mut made = BTreeMap::new();
        for (schema, part) in parts {
            let DraftPart::Whole { salt, between, call } = part else {
                return Err(wrong(&format!(
                    "the offer does not say what it does in schema \"{schema}\"; submit the one that was made first"
                )));
            };
            let others = match signatures.is_empty() {
                true => BTreeMap::new(),
                false => {
                    let others = cores.iter().filter(|(other, _)| *other != schema);
                    others.map(|(other, core)| (other.clone(), *core)).collect()
                }
            };
            let agreed = AgreedPart {
                call: call.clone(),
                between: between.clone(),
                others,
                signatures: signatures.clone(),
            };
            let payload = match agreed.between.is_empty() && agreed.signatures.is_empty() {
                true => agreed.call,
                false => Payload::Agreed(Box::new(agreed)),
            };
            made.insert(schema.clone(), Part { salt: *salt, payload });
        }
        let commitment = |(schema, part): (&String, &Part)| PartCommitment {
            schema: schema.clone(),
            commitment: part.commitment(ledger, schema, client),
        };
        let payload = Payload::Parts { parts: made.iter().map(commitment).collect() };
        Ok((self.sign_request(client.request, String::new(), payload, *expires_at), made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::sha256;

    fn identity(organisation: u16) -> Identity {
        let (ledger, root) = (sha256(&[b"ledger"]), SecretKey::from_bytes([organisation as u8 + 1; 32]));
        Identity::issue(ledger, &root, organisation)
    }

    fn script(sql: &str) -> Payload {
        Payload::Script { sql: sql.into(), parameters: vec![] }
    }

    fn draft(identity: &Identity) -> PartsDraft {
        let calls = [("vault", "CALL vault.give(7)"), ("market", "CALL market.take(7)")];
        identity.draft_parts(calls.map(|(schema, sql)| (schema.to_string(), script(sql))), 9)
    }

    #[test]
    fn an_offer_goes_from_hand_to_hand_and_its_client_alone_submits_it() {
        let (alice, bob) = (identity(0), identity(1));
        let offer = draft(&alice);
        let mut seen = PartsDraft::from_text(&offer.seen_in(&["market"]).to_text()).expect("an offer");
        assert!(matches!(seen.parts["vault"], DraftPart::Core(_)), "bob is not to know");
        bob.agree(&mut seen).expect("of this ledger");
        let mut signed = offer.clone();
        signed.take_signatures(&seen).expect("the same offer");
        signed.take_signatures(&seen).expect("twice is once");
        assert_eq!(PartsDraft::from_text(&format!(" {}\n", signed.to_text())), Ok(signed.clone()));
        let refused = alice.sign_draft(&seen).expect_err("a part is missing").message;
        assert!(refused.contains("what it does in schema \"vault\""), "{refused}");
        let refused = bob.sign_draft(&signed).expect_err("bob is not its client").message;
        assert!(refused.contains("another client"), "{refused}");
        let (transaction, parts) = alice.sign_draft(&signed).expect("all of it");
        let Payload::Parts { parts: committed } = &transaction.transaction.payload else { panic!("parts") };
        for (schema, part) in &parts {
            let checked = part.check(&offer.ledger, schema, &transaction.client_id(), committed);
            assert_eq!(checked, Ok(()));
            let Payload::Agreed(agreed) = &part.payload else { panic!("{part:?}") };
            assert_eq!((agreed.signatures.len(), agreed.others.len(), agreed.between.len()), (1, 1, 1));
            assert!(agreed.signatures[0].is_under(&offer.agreement()));
        }
        let secret = |schema: &str| match &parts[schema].payload {
            Payload::Agreed(agreed) => agreed.between.values().next().copied(),
            _ => None,
        };
        assert_eq!(secret("vault"), secret("market"), "both parts know it");
    }

    #[test]
    fn damaged_offers_and_signatures_under_others_are_refused_by_name() {
        let (alice, bob) = (identity(0), identity(1));
        let (mut one, mut other) = (draft(&alice), draft(&alice));
        bob.agree(&mut one).expect("of this ledger");
        assert!(other.take_signatures(&one).is_err());
        other.signatures = one.signatures.clone();
        let forged = PartsDraft::from_text(&other.to_text()).expect_err("not under it").message;
        assert!(forged.contains("is not under this offer"), "{forged}");
        for (text, expected) in
            [("x", "expected an offer"), ("entente-offer:0z", "damaged"), ("entente-offer:00", "damaged")]
        {
            let message = PartsDraft::from_text(text).expect_err("none").message;
            assert!(message.contains(expected), "{message}");
        }
        let whole = one.to_text();
        for length in (TEXT.len()..whole.len()).step_by(7) {
            assert!(PartsDraft::from_text(&whole[..length]).is_err(), "{length} characters");
        }
        let mut torn = draft(&alice);
        if let Some(DraftPart::Whole { between, .. }) = torn.parts.get_mut("vault") {
            between.clear();
        }
        let message = PartsDraft::from_text(&torn.to_text()).expect_err("nothing is compared").message;
        assert!(message.contains("shares nothing with the others"), "{message}");
        let stranger = Identity::issue(sha256(&[b"other"]), &SecretKey::from_bytes([9; 32]), 0);
        assert!(stranger.agree(&mut one).is_err() && stranger.sign_draft(&one).is_err());
    }
}
