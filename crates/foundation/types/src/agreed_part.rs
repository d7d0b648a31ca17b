//! What a part of a transaction brings beside its call: what only two parts share, and who agrees to it (paper 003, sections 5.2.3 and
//! 5.3.2).
//!
//! ```text
//!  Part in `vault`                               Part in `market`
//!    call                                          call
//!    between { market → secret }  ── the same ──   between { vault → secret }
//!    others  { market → core }                     others  { vault → core }
//!    stakeholders' signatures                      stakeholders' signatures
//!        under the cores of all parts: what each does, without the signatures
//! ```
//!
//! Members of a schema see the parts of that schema alone. So what each side says of the other is hashed with the secret, voted on, and
//! compared in the ledger ([`crate::PartMoves`]): what leaves one schema comes into the other, and both sides have the same
//! agreement before them.

use crate::{Charter, ClientId, Credential, Organisation, Payload, encode};
use borsh::de::EnumExt;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, PublicKey, SecretKey, Signature, SignedMessage, sha256};
use std::collections::BTreeMap;
use std::io;

const CORE_DOMAIN: &[u8] = b"entente part core 1\0";
const AGREEMENT_DOMAIN: &[u8] = b"entente stakeholders 1\0";
const BETWEEN_DOMAIN: &[u8] = b"entente between parts 1\0";

/// A part's call with what it shares with others, and who agrees to it: [`Payload::Agreed`].
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct AgreedPart {
    /// What it does: a call, a script, or rows of a COPY.
    #[borsh(deserialize_with = "read_call")]
    pub call: Payload,
    /// For each other schema of the transaction random bytes that its part there has, too, and nobody else.
    pub between: BTreeMap<String, [u8; 32]>,
    /// What the transaction's parts in other schemas do, as stakeholders have signed it ([`part_core`]). Empty where nobody has.
    pub others: BTreeMap<String, Digest>,
    /// Who agrees to the transaction beside its client.
    pub signatures: Vec<StakeholderSignature>,
}

/// Reads what a part does. It is none of the payloads that hold others: so nothing is read that is nested without end.
pub(crate) fn read_call<R: io::Read>(reader: &mut R) -> io::Result<Payload> {
    const CALL_SCRIPT_INSERT: u8 = 2;
    match u8::deserialize_reader(reader)? {
        tag if tag <= CALL_SCRIPT_INSERT => Payload::deserialize_variant(reader, tag),
        tag => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected a call, a script, or rows of a COPY in a part, found kind {tag}"),
        )),
    }
}

/// The word of somebody who has a stake in what a transaction changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct StakeholderSignature {
    /// Whose.
    pub key: PublicKey,
    /// The organisation that vouches for the key, where one does: then its word is the organisation's, too.
    pub credential: Option<Credential>,
    /// Under the [`agreement`].
    pub signature: Signature,
}

impl StakeholderSignature {
    /// Agrees.
    pub fn sign(agreement: &Digest, key: &SecretKey, credential: Option<Credential>) -> StakeholderSignature {
        StakeholderSignature { key: key.public_key(), credential, signature: key.sign(&agreement.0) }
    }

    /// The organisation whose word it is, too: a member by this charter, which vouches for the key. `ledger`: the charter's digest.
    pub fn organisation<'a>(&self, charter: &'a Charter, ledger: &Digest) -> Option<&'a Organisation> {
        let credential = self.credential?;
        let organisation = charter.organisations.get(usize::from(credential.organisation))?;
        let vouches = !organisation.removed && credential.verify(&organisation.root_key, ledger, &self.key);
        vouches.then_some(organisation)
    }

    /// Whether this key has signed this.
    pub fn is_under(&self, agreement: &Digest) -> bool {
        crypto::verify(&SignedMessage { key: self.key, signature: self.signature, message: &agreement.0 })
    }
}

/// Stands for what a transaction does in one schema, whoever agrees to it.
pub fn part_core(
    (ledger, schema, client): (&Digest, &str, &ClientId),
    salt: &[u8; 32],
    (call, between): (&Payload, &BTreeMap<String, [u8; 32]>),
) -> Digest {
    let covered = encode(&(ledger, schema, client.key, client.request, salt, between));
    sha256(&[CORE_DOMAIN, &covered, &encode(call)])
}

/// What stakeholders sign: all that a transaction does, by the cores of its parts. Its client is part of it, so nobody else can have it
/// executed; and so are its request and the last height at which it may stand, so that it is executed once: a ledger remembers requests
/// up to that height.
pub fn agreement(
    ledger: &Digest,
    (client, expires_at): (&ClientId, u64),
    cores: &BTreeMap<String, Digest>,
) -> Digest {
    sha256(&[AGREEMENT_DOMAIN, &encode(&(ledger, client.key, client.request, expires_at, cores))])
}

/// What a transaction moves from one schema to another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, BorshSerialize, BorshDeserialize)]
pub struct Move {
    /// The schema that it leaves.
    pub from: String,
    /// The schema that it comes into.
    pub to: String,
    /// What moves, as text: how PostgreSQL shows the value.
    pub what: String,
}

/// What the members of a schema say in the ledger of all that moves between it and another one in a transaction, and of what
/// stakeholders have agreed to: the same as the members of the other schema, if what leaves one comes into the other. `secret`: of the
/// two parts. The order of moves does not count.
pub fn between_digest(
    (ledger, client): (&Digest, &ClientId),
    secret: &[u8; 32],
    agreement: Option<&Digest>,
    mut moves: Vec<&Move>,
) -> Digest {
    moves.sort_unstable();
    sha256(&[
        BETWEEN_DOMAIN,
        secret,
        &encode(&(ledger, client.key, client.request)),
        &encode(&(agreement, moves)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Part, PartCommitment, PartFault, RequestId, decode_exactly};

    fn client() -> ClientId {
        ClientId { key: SecretKey::from_bytes([7; 32]).public_key(), request: RequestId([3; 16]) }
    }

    fn call(sql: &str) -> Payload {
        Payload::Script { sql: sql.into(), parameters: vec![] }
    }

    #[test]
    fn who_agrees_agrees_to_all_that_all_parts_do() {
        let (ledger, client) = (sha256(&[b"ledger"]), client());
        let between = BTreeMap::from([("market".to_string(), [1; 32])]);
        let core =
            |sql: &str, salt: u8| part_core((&ledger, "vault", &client), &[salt; 32], (&call(sql), &between));
        let cores =
            BTreeMap::from([("vault".to_string(), core("a", 1)), ("market".to_string(), core("b", 2))]);
        let signed = agreement(&ledger, (&client, 50), &cores);
        let alice = SecretKey::from_bytes([9; 32]);
        let word = StakeholderSignature::sign(&signed, &alice, None);
        assert!(word.is_under(&signed));
        let mut other = cores.clone();
        other.insert("market".into(), core("c", 2));
        let fewer = BTreeMap::from([("vault".to_string(), core("a", 1))]);
        let later = ClientId { request: RequestId([4; 16]), ..client };
        let others = [
            agreement(&ledger, (&client, 50), &other),
            agreement(&ledger, (&client, 50), &fewer),
            agreement(&ledger, (&client, 51), &cores),
            agreement(&ledger, (&later, 50), &cores),
            agreement(&sha256(&[b"other"]), (&client, 50), &cores),
        ];
        assert!(others.iter().all(|other| !word.is_under(other)));
        assert!(core("a", 1) != core("a", 2), "a core has the part's salt: nobody finds it by trying");
        let bytes = encode(&word);
        assert_eq!(decode_exactly::<StakeholderSignature>(&bytes).expect("it is one"), word);
        for length in 0..bytes.len() {
            assert!(decode_exactly::<StakeholderSignature>(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn both_sides_of_a_move_come_to_the_same_in_any_order_and_only_with_the_secret() {
        let ledger = sha256(&[b"ledger"]);
        let go = |what: &str| Move { from: "vault".into(), to: "market".into(), what: what.into() };
        let (ten, coin) = (go("10"), go("(7,gold)"));
        let back = Move { from: "market".into(), to: "vault".into(), what: "10".into() };
        let digest =
            |secret: u8, moves: Vec<&Move>| between_digest((&ledger, &client()), &[secret; 32], None, moves);
        let both = digest(1, vec![&ten, &coin]);
        assert_eq!(both, digest(1, vec![&coin, &ten]));
        for other in [vec![&ten], vec![&ten, &ten, &coin], vec![&ten, &coin, &coin], vec![&back, &coin]] {
            assert_ne!(both, digest(1, other));
        }
        assert_ne!(both, digest(2, vec![&ten, &coin]));
        let agreed = sha256(&[b"agreement"]);
        let with = between_digest((&ledger, &client()), &[1; 32], Some(&agreed), vec![&ten, &coin]);
        assert_ne!(both, with);
    }

    #[test]
    fn an_agreed_part_is_committed_to_as_any_and_does_not_nest() {
        let ledger = sha256(&[b"ledger"]);
        let agreed = |call: Payload| {
            let between = BTreeMap::from([("market".to_string(), [1; 32])]);
            let agreed = AgreedPart { call, between, others: BTreeMap::new(), signatures: vec![] };
            Part::new(Payload::Agreed(Box::new(agreed)))
        };
        let check = |part: &Part| {
            let commitment = part.commitment(&ledger, "vault", &client());
            let parts = [PartCommitment { schema: "vault".into(), commitment }];
            part.check(&ledger, "vault", &client(), &parts)
        };
        let part = agreed(call("SELECT 1"));
        assert_eq!(check(&part), Ok(()));
        assert_eq!(decode_exactly::<Part>(&encode(&part)).expect("it is one"), part);
        let nested = agreed(part.payload.clone());
        assert_eq!(check(&nested), Err(PartFault::Nested));
        let error = decode_exactly::<Part>(&encode(&nested)).expect_err("nested").to_string();
        assert!(error.contains("expected a call"), "{error}");
        assert_eq!(check(&agreed(Payload::HeldParts { held: vec![] })), Err(PartFault::Nested));
    }
}
