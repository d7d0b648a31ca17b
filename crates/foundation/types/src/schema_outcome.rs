//! What the members of a schema attest: what a block came to in their schema, and whether its parts of transactions that have
//! others can commit. Such outcomes stand in the ledger, where they decide those transactions.

use crate::{
    Attestation, AttestationError, Certificate, CertificateRules, DataType, OutputColumn, Statement,
    StatementResult, Value, encode,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};
use std::io;

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

/// What members of a schema say of what one transaction moves between their schema and another one: the same as that one's members, if
/// what leaves one comes into the other.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct PartMoves {
    /// Height of the block that the transaction stands in.
    pub height: u64,
    /// Its position in the block.
    pub index: u32,
    /// [`crate::SchemaMembers::number`] of the other schema.
    pub with: u32,
    /// [`crate::between_digest`].
    pub digest: Digest,
}

/// What a block came to in a schema, and all blocks before.
///
/// Where nothing moves between schemas it is encoded, and attested, as before execution version 6. Else the highest bit of `schema`
/// says in the encoding that moves follow.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// Of transactions that are voted for here, ascending; none up to execution version 5.
    pub moves: Vec<PartMoves>,
}

/// Says in an encoding that moves follow: schemas are fewer ([`crate::limits::SCHEMAS_MAX`]).
const HAS_MOVES: u32 = 1 << 31;

impl SchemaOutcome {
    fn write(&self, schema: u32, writer: &mut impl io::Write) -> io::Result<()> {
        (self.ledger, schema, self.height, self.outcome).serialize(writer)?;
        self.votes.serialize(writer)
    }

    fn read(reader: &mut impl io::Read) -> io::Result<SchemaOutcome> {
        let (ledger, schema, height, outcome) = BorshDeserialize::deserialize_reader(reader)?;
        let votes = BorshDeserialize::deserialize_reader(reader)?;
        Ok(SchemaOutcome { ledger, schema, height, outcome, votes, moves: Vec::new() })
    }
}

impl BorshSerialize for SchemaOutcome {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        if self.moves.is_empty() {
            return self.write(self.schema, writer);
        }
        self.write(self.schema | HAS_MOVES, writer)?;
        self.moves.serialize(writer)
    }
}

impl BorshDeserialize for SchemaOutcome {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<SchemaOutcome> {
        let mut read = SchemaOutcome::read(reader)?;
        if read.schema & HAS_MOVES != 0 {
            read.schema &= !HAS_MOVES;
            read.moves = BorshDeserialize::deserialize_reader(reader)?;
            if read.moves.is_empty() {
                let message = "expected moves, found none";
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        Ok(read)
    }
}

/// Certificates as [`crate::Payload::SchemaOutcomes`] has them, whose form is older than moves: [`HAS_MOVES`] is a part of the number
/// in it.
pub(crate) fn write_without_moves<W: io::Write>(
    certificates: &[SchemaCertificate],
    writer: &mut W,
) -> io::Result<()> {
    (certificates.len() as u32).serialize(writer)?;
    for Certificate { statement, signatures } in certificates {
        statement.write(statement.schema, writer)?;
        signatures.serialize(writer)?;
    }
    Ok(())
}

pub(crate) fn read_without_moves<R: io::Read>(reader: &mut R) -> io::Result<Vec<SchemaCertificate>> {
    let count = u32::deserialize_reader(reader)?;
    // Not made as long as it says it is: nothing of it need be there.
    let mut certificates = Vec::new();
    for _ in 0..count {
        let statement = SchemaOutcome::read(reader)?;
        let signatures = BorshDeserialize::deserialize_reader(reader)?;
        certificates.push(Certificate { statement, signatures });
    }
    Ok(certificates)
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
    /// count, for ever: a row per schema. Up to execution version 5 there are none for a transaction in one schema, where nobody votes.
    pub fn to_result(parts: &[PartMembers]) -> StatementResult {
        if parts.is_empty() {
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
        let statement = SchemaOutcome {
            ledger: charter.ledger(),
            schema: 3,
            height: 9,
            outcome: Digest([4; 32]),
            votes,
            moves: vec![],
        };
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
    fn what_moves_is_signed_and_where_nothing_does_the_form_is_the_old_one() {
        let charter = charter();
        let rules = CertificateRules::new(&charter);
        let still = certificate(&charter, &[0, 1]);
        let SchemaOutcome { ledger, schema, height, outcome, votes, .. } = still.statement.clone();
        assert_eq!(encode(&still.statement), encode(&(ledger, schema, height, outcome, votes)));
        let mut statement = still.statement.clone();
        statement.moves = vec![PartMoves { height: 9, index: 4, with: 6, digest: Digest([5; 32]) }];
        let sign = |number: u16| {
            let key = &keys()[usize::from(number)];
            (number, Attestation::sign(statement.clone(), number, key).signature)
        };
        let moving = Certificate { signatures: vec![sign(0), sign(1)], statement: statement.clone() };
        assert_eq!(check(&moving, &rules, &[0, 1, 2]), Ok(()));
        let bytes = encode(&moving);
        assert_eq!(decode_exactly::<SchemaCertificate>(&bytes).expect("what was encoded"), moving);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let read = decode_exactly::<SchemaCertificate>(&flipped);
            assert!(read.is_err() || check(&read.unwrap(), &rules, &[0, 1, 2]).is_err(), "byte {at}");
            assert!(decode_exactly::<SchemaCertificate>(&bytes[..at]).is_err(), "{at} bytes");
        }
        let said = encode(&(ledger, schema | HAS_MOVES, height, outcome, &statement.votes, 0_u32));
        let empty = decode_exactly::<SchemaOutcome>(&said);
        assert!(empty.expect_err("moves that are none").to_string().contains("found none"));
    }

    /// A program of before reads the highest bit of a schema's number as a part of the number. So does this one, there.
    #[test]
    fn the_payload_of_before_has_no_moves_whatever_a_number_looks_like() {
        let mut odd = certificate(&charter(), &[0, 1]);
        odd.statement.schema |= HAS_MOVES;
        let payload = crate::Payload::SchemaOutcomes { certificates: vec![odd.clone()] };
        let bytes = encode(&payload);
        assert_eq!(decode_exactly::<crate::Payload>(&bytes).expect("what was encoded"), payload);
        let still = certificate(&charter(), &[0, 1]);
        let plain = crate::Payload::of_schema_outcomes(vec![still.clone()]);
        assert_eq!(encode(&plain), [&[5][..], &encode(&vec![still.clone()])[..]].concat());
        let mut moving = still;
        moving.statement.moves = vec![PartMoves { height: 9, index: 4, with: 6, digest: Digest([5; 32]) }];
        let moving = crate::Payload::of_schema_outcomes(vec![moving]);
        let bytes = encode(&moving);
        assert_eq!((bytes[0], decode_exactly::<crate::Payload>(&bytes).expect("encoded")), (7, moving));
    }

    #[test]
    fn receipts_say_whose_votes_count() {
        let parts = [members(&[0, 1, 7]), PartMembers { number: 9, ..members(&[5]) }];
        let result = PartMembers::to_result(&parts);
        assert_eq!(PartMembers::of_results(std::slice::from_ref(&result)), parts);
        let one = PartMembers::to_result(&parts[..1]);
        assert_eq!(PartMembers::of_results(std::slice::from_ref(&one)), parts[..1]);
        assert_eq!(PartMembers::to_result(&[]).rows, Vec::<Vec<Value>>::new());
        assert!(PartMembers::of_results(&[]).is_empty());
        let other = StatementResult { tag: "SELECT 2".into(), ..result.clone() };
        assert!(PartMembers::of_results(&[other]).is_empty());
        let mut broken = result;
        broken.rows[1][2] = Value::Text("5 x".into());
        assert!(PartMembers::of_results(&[broken]).is_empty());
    }
}
