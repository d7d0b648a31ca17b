//! What the members of a schema attest: what a block came to in their schema, and whether its parts of transactions that have
//! others can commit. Such outcomes stand in the ledger, where they decide those transactions.

use crate::{
    Attestation, AttestationError, Certificate, CertificateRules, DataType, OutputColumn, Statement,
    StatementResult, Value, encode,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};

/// Command tag of the receipt of a transaction with parts.
const PARTS_TAG: &str = "PARTS";

/// What members of a schema say of its parts of one block's transactions.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct PartVotes {
    /// Height of the block that the transactions stand in.
    pub height: u64,
    /// Positions of those whose part can commit.
    pub yes: Vec<u32>,
    /// Positions of those whose part cannot.
    pub no: Vec<u32>,
}

/// What a block came to in a schema, and all blocks before.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct SchemaOutcome {
    /// Digest of the charter of the ledger.
    pub ledger: Digest,
    /// [`crate::SchemaMembers::number`].
    pub schema: u32,
    /// Height of the block.
    pub height: u64,
    /// From execution version 5 on the digest of a [`crate::SchemaBlockOutcome`]: that of the last block up to this height in which
    /// something happened in the schema. In version 4 the digest of the schema's [`crate::OutcomeHeader`], hashed with what only those
    /// know who have all parts up to there. Neither lets small rows be found by trying.
    pub outcome: Digest,
    /// Ascending by height.
    pub votes: Vec<PartVotes>,
}

/// One member's word on a schema's outcome.
pub type SchemaAttestation = Attestation<SchemaOutcome>;
/// The word of a quorum of a schema's members.
pub type SchemaCertificate = Certificate<SchemaOutcome>;

impl Statement for SchemaOutcome {
    const DOMAIN: &'static [u8] = b"entente schema outcome attestation 1\0";

    fn ledger(&self) -> Digest {
        self.ledger
    }

    fn height(&self) -> u64 {
        self.height
    }

    fn digest(&self) -> Digest {
        sha256(&[b"entente schema outcome 1\0", &encode(self)])
    }
}

impl Certificate<SchemaOutcome> {
    /// Checks all signatures, whoever has made them. `rules`: of the charter at the statement's height.
    ///
    /// # Errors
    /// [`AttestationError`] says what is wrong.
    pub fn check_signed(&self, rules: &CertificateRules) -> Result<(), AttestationError> {
        rules.check_signatures(&self.statement, &self.signatures)
    }

    /// Checks that enough of these members of the schema seem to have signed.
    ///
    /// # Errors
    /// [`AttestationError::NoQuorum`].
    pub fn check_count(&self, members: &[u16]) -> Result<(), AttestationError> {
        let is_member = |(organisation, _): &&(u16, _)| members.contains(organisation);
        let (found, quorum) = (self.signatures.iter().filter(is_member).count(), schema_quorum(members));
        match found < quorum {
            true => Err(AttestationError::NoQuorum { quorum, members: members.len(), found }),
            false => Ok(()),
        }
    }
}

/// So many members of a schema decide what is said of it.
pub fn schema_quorum(members: &[u16]) -> usize {
    members.len() / 2 + 1
}

/// Who may vote on a transaction's part: the members of its schema when the transaction took its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartMembers {
    /// Name of the schema.
    pub schema: String,
    /// [`crate::SchemaMembers::number`].
    pub number: u32,
    /// Positions in the charter, ascending.
    pub organisations: Vec<u16>,
}

impl PartMembers {
    /// So many of them decide.
    pub fn quorum(&self) -> usize {
        schema_quorum(&self.organisations)
    }

    /// What the ledger says in the receipt of a transaction in several schemas, so that whoever has the ledger can tell whose votes
    /// count, for ever: a row per schema. In one schema nobody votes.
    pub fn to_result(parts: &[PartMembers]) -> StatementResult {
        if parts.len() < 2 {
            return StatementResult { tag: PARTS_TAG.to_string(), ..StatementResult::default() };
        }
        let column = |name: &str, data_type| OutputColumn { name: name.to_string(), data_type };
        let columns = vec![
            column("schema", DataType::Text(None)),
            column("number", DataType::BigInt),
            column("organisations", DataType::Text(None)),
        ];
        let rows = parts.iter().map(|part| {
            let organisations: Vec<String> = part.organisations.iter().map(u16::to_string).collect();
            vec![
                Value::Text(part.schema.as_str().into()),
                Value::BigInt(part.number.into()),
                Value::Text(organisations.join(" ").as_str().into()),
            ]
        });
        StatementResult { tag: PARTS_TAG.to_string(), columns, rows: rows.collect(), notices: Vec::new() }
    }

    /// Reads that; empty for anything else.
    pub fn of_results(results: &[StatementResult]) -> Vec<PartMembers> {
        let [StatementResult { tag, rows, .. }] = results else { return Vec::new() };
        let part = |row: &Vec<Value>| {
            let [Value::Text(schema), Value::BigInt(number), Value::Text(organisations)] = row.as_slice()
            else {
                return None;
            };
            let organisations = organisations.split_whitespace().map(str::parse).collect::<Result<_, _>>();
            Some(PartMembers {
                schema: schema.to_string(),
                number: u32::try_from(*number).ok()?,
                organisations: organisations.ok()?,
            })
        };
        let parts = rows.iter().map(part).collect::<Option<Vec<_>>>();
        parts.filter(|_| tag == PARTS_TAG).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Charter, Organisation, decode_exactly};
    use crypto::SecretKey;

    fn keys() -> Vec<SecretKey> {
        (0..4).map(|number| SecretKey::from_bytes([number + 101; 32])).collect()
    }

    fn charter() -> Charter {
        let mut charter = Charter::with_defaults("test", 7);
        for (position, key) in keys().iter().enumerate() {
            charter.organisations.push(Organisation {
                name: format!("org{}", position + 1),
                root_key: SecretKey::from_bytes([position as u8 + 1; 32]).public_key(),
                node_key: key.public_key(),
                address: format!("127.0.0.1:{}", 7000 + position),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        charter
    }

    fn certificate(charter: &Charter, who: &[u16]) -> SchemaCertificate {
        let votes = vec![
            PartVotes { height: 8, yes: vec![2], no: vec![] },
            PartVotes { height: 9, yes: vec![0, 4], no: vec![1] },
        ];
        let statement =
            SchemaOutcome { ledger: charter.ledger(), schema: 3, height: 9, outcome: Digest([4; 32]), votes };
        let sign = |number: &u16| {
            let key = &keys()[usize::from(*number)];
            (*number, Attestation::sign(statement.clone(), *number, key).signature)
        };
        Certificate { signatures: who.iter().map(sign).collect(), statement: statement.clone() }
    }

    fn members(organisations: &[u16]) -> PartMembers {
        PartMembers { schema: "deal".into(), number: 3, organisations: organisations.to_vec() }
    }

    /// As those do who count votes.
    fn check(
        certificate: &SchemaCertificate,
        rules: &CertificateRules,
        of: &[u16],
    ) -> Result<(), AttestationError> {
        certificate.check_count(of)?;
        certificate.check_signed(rules)
    }

    #[test]
    fn a_quorum_of_the_schemas_members_is_a_certificate_and_strangers_do_not_count() {
        let charter = charter();
        let rules = CertificateRules::new(&charter);
        let check = |who: &[u16], of: &[u16]| check(&certificate(&charter, who), &rules, of);
        assert_eq!(check(&[0, 1], &[0, 1, 2]), Ok(()));
        assert_eq!(check(&[0, 1, 3], &[0, 1, 2]), Ok(()), "who has left may have signed, too");
        let too_few = AttestationError::NoQuorum { quorum: 2, members: 3, found: 1 };
        assert_eq!(check(&[0, 3], &[0, 1, 2]), Err(too_few.clone()));
        assert_eq!(check(&[0], &[0, 1, 2]), Err(too_few));
        assert_eq!(check(&[2], &[2]), Ok(()), "of one member that one is enough");
        assert!(matches!(check(&[0, 0], &[0, 1, 2]), Err(AttestationError::Members { .. })), "twice");
        let mut lies = certificate(&charter, &[0, 1]);
        lies.statement.votes[1].yes.push(1);
        let wrong = lies.check_signed(&rules);
        assert!(matches!(wrong, Err(AttestationError::Signature { .. })), "{wrong:?}");
    }

    #[test]
    fn every_flipped_byte_of_a_certificate_shows() {
        let charter = charter();
        let (rules, good) = (CertificateRules::new(&charter), certificate(&charter, &[0, 1, 2]));
        let bytes = encode(&good);
        assert_eq!(decode_exactly::<SchemaCertificate>(&bytes).expect("what was encoded"), good);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let read = decode_exactly::<SchemaCertificate>(&flipped);
            assert!(read.is_err() || check(&read.unwrap(), &rules, &[0, 1, 2]).is_err(), "byte {at}");
        }
    }

    #[test]
    fn receipts_say_whose_votes_count() {
        let parts = [members(&[0, 1, 7]), PartMembers { number: 9, ..members(&[5]) }];
        let result = PartMembers::to_result(&parts);
        assert_eq!(PartMembers::of_results(std::slice::from_ref(&result)), parts);
        assert_eq!(PartMembers::to_result(&parts[..1]).rows, Vec::<Vec<Value>>::new());
        assert!(PartMembers::of_results(&[]).is_empty());
        let other = StatementResult { tag: "SELECT 2".into(), ..result.clone() };
        assert!(PartMembers::of_results(&[other]).is_empty());
        let mut broken = result;
        broken.rows[1][2] = Value::Text("5 x".into());
        assert!(PartMembers::of_results(&[broken]).is_empty());
    }
}
