//! Parts: what a transaction does in schemas with members, of which all others see a commitment.
//!
//! ```text
//! the ledger:   Payload::Parts { deal → commitment }      everybody
//! the members:  Part { salt, payload }                    of `deal` alone
//! commitment =  SHA-256(domain ‖ ledger ‖ schema ‖ client ‖ request ‖ salt ‖ payload)
//! ```
//!
//! A commitment covers client and request, so that nobody can submit somebody else's part as his own, without knowing it (a sealed
//! bid, for example); and 32 random bytes, so that nobody can find out a part by trying (`oracle/shards/PROTOCOLS.md`, section 3).

use crate::{
    ClientId, EndorsedEffects, Identity, OracleValue, Payload, RequestId, SignedTransaction, encode, limits,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};
use std::collections::BTreeMap;

const PART_DOMAIN: &[u8] = b"entente part 1\0";
/// What members say who endorse that they hold a transaction's parts.
const HELD: &str = "entente.parts";

/// What stands in the ledger for a part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct PartCommitment {
    /// The schema.
    pub schema: String,
    /// [`Part::commitment`].
    pub commitment: Digest,
}

/// What a transaction does in one schema.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Part {
    /// Random, of this part alone.
    pub salt: [u8; 32],
    /// What it does.
    pub payload: Payload,
}

/// Why a part cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PartFault {
    /// It is another one than the client has signed.
    #[error(
        "the part for schema \"{schema}\" is not the one that its client has committed to: expected {expected}, found {found}"
    )]
    Commitment {
        /// The schema.
        schema: String,
        /// What the client has signed.
        expected: Digest,
        /// What came.
        found: Digest,
    },
    /// The transaction has no part there.
    #[error("the transaction has no part for schema \"{0}\"")]
    Stranger(String),
    /// It is longer than a message between members may be.
    #[error("the part has {found} bytes, the limit is {} (PART_BYTES_MAX); split it", limits::PART_BYTES_MAX)]
    TooLarge {
        /// Its length.
        found: usize,
    },
    /// Parts have no parts.
    #[error("a part is a call, a script, or rows of a COPY")]
    Nested,
}

impl Part {
    /// A part with a salt of its own.
    pub fn new(payload: Payload) -> Part {
        Part { salt: crypto::random_bytes(), payload }
    }

    /// What the ledger is given of it.
    pub fn commitment(&self, ledger: &Digest, schema: &str, client: &ClientId) -> Digest {
        let covered = encode(&(ledger, schema, client.key, client.request, self.salt));
        sha256(&[PART_DOMAIN, &covered, &encode(&self.payload)])
    }

    /// Whether it is what a transaction's client has committed to, and can be executed.
    ///
    /// # Errors
    /// [`PartFault`].
    pub fn check(
        &self,
        ledger: &Digest,
        schema: &str,
        client: &ClientId,
        parts: &[PartCommitment],
    ) -> Result<(), PartFault> {
        let committed = parts.iter().find(|part| part.schema == schema);
        let committed = committed.ok_or_else(|| PartFault::Stranger(schema.to_string()))?;
        let found = self.commitment(ledger, schema, client);
        if found != committed.commitment {
            let (schema, expected) = (schema.to_string(), committed.commitment);
            return Err(PartFault::Commitment { schema, expected, found });
        }
        if !matches!(
            self.payload.call(),
            Payload::Call { .. } | Payload::Script { .. } | Payload::Insert { .. }
        ) {
            return Err(PartFault::Nested);
        }
        match encode(&self.payload).len() {
            found if found > limits::PART_BYTES_MAX => Err(PartFault::TooLarge { found }),
            _ => Ok(()),
        }
    }
}

/// A transaction in schemas with members on its way from a client to its gateway, which hands the parts to the members.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct PartSubmission {
    /// Encoded [`SignedTransaction`] without endorsements.
    pub transaction: Vec<u8>,
    /// What it does in each of its schemas, by the schema's name.
    pub parts: BTreeMap<String, Part>,
}

impl Identity {
    /// Signs a transaction in schemas with members, that may stand up to height `expires_at`: what it does in each. Nobody but the
    /// members of a schema learns what it does there. Nothing can move between the schemas: that needs [`Identity::draft_parts`].
    pub fn sign_parts(
        &self,
        payloads: impl IntoIterator<Item = (String, Payload)>,
        expires_at: u64,
    ) -> (SignedTransaction, BTreeMap<String, Part>) {
        let request = RequestId(crypto::random_bytes());
        let client = ClientId { key: self.public_key(), request };
        let parts = payloads.into_iter().map(|(schema, payload)| (schema, Part::new(payload)));
        let parts: BTreeMap<String, Part> = parts.collect();
        let commitments = parts.iter().map(|(schema, part)| PartCommitment {
            schema: schema.clone(),
            commitment: part.commitment(&self.ledger(), schema, &client),
        });
        let payload = Payload::Parts { parts: commitments.collect() };
        (self.sign_request(request, String::new(), payload, expires_at), parts)
    }
}

impl EndorsedEffects {
    /// What a member of a schema endorses that holds its part of a transaction: no effects.
    pub fn held() -> EndorsedEffects {
        let held = OracleValue { name: HELD.to_string(), value: String::new() };
        EndorsedEffects { oracles: vec![held], ..EndorsedEffects::default() }
    }

    /// Whether who endorses this says that it holds the parts.
    pub fn is_held(&self) -> bool {
        // Compared without making another one: this is asked of every transaction with parts.
        let EndorsedEffects { reads, scans, writes, results, now_ms, oracles } = self;
        let says = |one: &OracleValue| one.name == HELD && one.value.is_empty();
        let has_effects = !reads.is_empty()
            || !scans.is_empty()
            || !writes.is_empty()
            || !results.is_empty()
            || *now_ms != 0;
        !has_effects && oracles.len() == 1 && oracles.iter().all(says)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crypto::SecretKey;

    fn client(seed: u8) -> ClientId {
        ClientId { key: SecretKey::from_bytes([seed; 32]).public_key(), request: RequestId([seed; 16]) }
    }

    fn payload() -> Payload {
        Payload::Call { procedure: "deal.bid".into(), arguments: vec![Value::BigInt(7)] }
    }

    #[test]
    fn a_commitment_covers_everything_and_another_part_is_refused() {
        let ledger = sha256(&[b"ledger"]);
        let part = Part::new(payload());
        let commitment = part.commitment(&ledger, "deal", &client(1));
        let parts = [PartCommitment { schema: "deal".into(), commitment }];
        assert_eq!(part.check(&ledger, "deal", &client(1), &parts), Ok(()));
        let others = [
            part.commitment(&sha256(&[b"other"]), "deal", &client(1)),
            part.commitment(&ledger, "dea", &client(1)),
            part.commitment(&ledger, "deal", &client(2)),
            Part::new(payload()).commitment(&ledger, "deal", &client(1)),
            Part {
                payload: Payload::Insert { table: "t".into(), columns: vec![], rows: vec![] },
                ..part.clone()
            }
            .commitment(&ledger, "deal", &client(1)),
        ];
        assert!(others.iter().all(|other| *other != commitment));
        // Whoever copies a commitment that stands in the ledger cannot execute it as his own.
        assert!(matches!(part.check(&ledger, "deal", &client(2), &parts), Err(PartFault::Commitment { .. })));
        assert_eq!(
            part.check(&ledger, "other", &client(1), &parts),
            Err(PartFault::Stranger("other".into()))
        );
        let nested = Part::new(Payload::Parts { parts: parts.to_vec() });
        let parts = [PartCommitment {
            schema: "deal".into(),
            commitment: nested.commitment(&ledger, "deal", &client(1)),
        }];
        assert_eq!(nested.check(&ledger, "deal", &client(1), &parts), Err(PartFault::Nested));
        let long = "x".repeat(limits::PART_BYTES_MAX);
        let large = Part::new(Payload::Script { sql: long, parameters: vec![] });
        let commitment = large.commitment(&ledger, "deal", &client(1));
        let parts = [PartCommitment { schema: "deal".into(), commitment }];
        assert!(matches!(large.check(&ledger, "deal", &client(1), &parts), Err(PartFault::TooLarge { .. })));
    }

    /// The variant `commitment` of `schemas.py`: a gateway gives one member another part than the client's.
    #[test]
    fn commitment_unchecked_a_part_that_another_client_or_gateway_made_up_is_none() {
        let ledger = sha256(&[b"ledger"]);
        let part = Part::new(payload());
        let parts = [PartCommitment {
            schema: "deal".into(),
            commitment: part.commitment(&ledger, "deal", &client(1)),
        }];
        let Payload::Call { procedure, .. } = payload() else { panic!("a call") };
        let other = Payload::Call { procedure, arguments: vec![Value::BigInt(8)] };
        for made_up in [Part { payload: other, ..part.clone() }, Part { salt: [0; 32], ..part.clone() }] {
            let checked = made_up.check(&ledger, "deal", &client(1), &parts);
            assert!(matches!(checked, Err(PartFault::Commitment { .. })), "{checked:?}");
        }
    }

    /// The variant `bind` of `schemas.py`: somebody submits a commitment that stands in the ledger, and has its part executed.
    #[test]
    fn bind_no_who_copies_a_commitment_has_committed_to_nothing() {
        let ledger = sha256(&[b"ledger"]);
        let part = Part::new(payload());
        let parts = [PartCommitment {
            schema: "deal".into(),
            commitment: part.commitment(&ledger, "deal", &client(1)),
        }];
        assert_eq!(part.check(&ledger, "deal", &client(1), &parts), Ok(()));
        let again = ClientId { request: RequestId([2; 16]), ..client(1) };
        for copier in [client(2), ClientId { key: client(2).key, ..client(1) }, again] {
            let checked = part.check(&ledger, "deal", &copier, &parts);
            assert!(matches!(checked, Err(PartFault::Commitment { .. })), "{copier:?}: {checked:?}");
        }
    }

    #[test]
    fn a_transaction_commits_to_its_part_in_each_schema_in_their_order() {
        let (root, key, ledger) =
            (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]), sha256(&[b"l"]));
        let credential = crate::Credential::issue(&root, 0, &ledger, &key.public_key());
        let identity = Identity::new(ledger, key, credential);
        let payloads = ["other", "deal"].map(|schema| (schema.to_string(), payload()));
        let (signed, parts) = identity.sign_parts(payloads, 9);
        let Payload::Parts { parts: committed } = &signed.transaction.payload else { panic!("{signed:?}") };
        let schemas: Vec<&str> = committed.iter().map(|part| part.schema.as_str()).collect();
        assert_eq!(schemas, ["deal", "other"]);
        for (schema, part) in &parts {
            assert_eq!(part.check(&ledger, schema, &signed.client_id(), committed), Ok(()));
        }
        assert_ne!(parts["deal"].salt, parts["other"].salt);
        let swapped = parts["deal"].check(&ledger, "other", &signed.client_id(), committed);
        assert!(matches!(swapped, Err(PartFault::Commitment { .. })), "{swapped:?}");
    }

    #[test]
    fn who_holds_parts_says_nothing_else() {
        assert!(EndorsedEffects::held().is_held());
        assert!(!EndorsedEffects::default().is_held() && !EndorsedEffects::agreement(1).is_held());
        assert!(EndorsedEffects::held().agreed_schema().is_none());
    }
}
