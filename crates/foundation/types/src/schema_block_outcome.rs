//! What a block came to in a schema with members, in pieces that can be shown to outsiders one by one; and what the ledger says of
//! who the members were that have attested it.

use crate::{DataType, OutputColumn, StatementResult, Value, encode};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};

const BLOCK_DOMAIN: &[u8] = b"entente schema block 1\0";
const FIRST_DOMAIN: &[u8] = b"entente schema chain 1\0";
/// Command tag of the receipt of a transaction that brings outcomes of schemas.
const OUTCOMES_TAG: &str = "SCHEMA OUTCOMES";

/// What a block came to in a schema, where something happened in it. Each names the one before, so whoever attests one answers for
/// all. Everything in it is salted with what the members alone know: its parts say nothing to whoever sees them without their salts.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct SchemaBlockOutcome {
    /// Height of the block.
    pub height: u64,
    /// Digest of the one before; [`SchemaBlockOutcome::first`] in front of all.
    pub previous: Digest,
    /// All transactions with a part in the schema that stand in blocks up to this height have ended, in this block at the latest.
    pub settled: u64,
    /// Merkle root over salted receipts of what has ended in the block.
    pub receipts: Digest,
    /// Merkle root over salted rows as the block has left them that it wrote.
    pub rows: Digest,
    /// The whole state of the schema and everything before, salted.
    pub state: Digest,
}

impl SchemaBlockOutcome {
    /// What the first one of a schema names as the one before.
    pub fn first(ledger: &Digest, schema: u32) -> Digest {
        sha256(&[FIRST_DOMAIN, &ledger.0, &schema.to_le_bytes()])
    }

    /// What the next one names, and what is attested.
    pub fn digest(&self) -> Digest {
        sha256(&[BLOCK_DOMAIN, &encode(self)])
    }
}

/// The members of a schema at the place of a transaction that brings its outcome: they are who may have attested it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttestingMembers {
    /// Name of the schema.
    pub schema: String,
    /// [`crate::SchemaMembers::number`].
    pub number: u32,
    /// They have been the members since the block of this height.
    pub changed: u64,
    /// Positions in the charter, ascending.
    pub organisations: Vec<u16>,
}

impl AttestingMembers {
    /// Whether these were the members at a height, as seen from a block: who comes later says nothing of what was before.
    pub fn were_at(&self, height: u64, seen_from: u64) -> bool {
        (self.changed..=seen_from).contains(&height)
    }

    /// What the ledger says in the receipt of a transaction that brings outcomes: a row per schema.
    pub fn to_result(members: &[AttestingMembers]) -> StatementResult {
        let column = |name: &str, data_type| OutputColumn { name: name.to_string(), data_type };
        let columns = vec![
            column("schema", DataType::Text(None)),
            column("number", DataType::BigInt),
            column("changed", DataType::BigInt),
            column("organisations", DataType::Text(None)),
        ];
        let rows = members.iter().map(|members| {
            let organisations: Vec<String> = members.organisations.iter().map(u16::to_string).collect();
            vec![
                Value::Text(members.schema.as_str().into()),
                Value::BigInt(members.number.into()),
                // Heights of a ledger are far below.
                Value::BigInt(i64::try_from(members.changed).unwrap_or(i64::MAX)),
                Value::Text(organisations.join(" ").as_str().into()),
            ]
        });
        StatementResult { tag: OUTCOMES_TAG.to_string(), columns, rows: rows.collect(), notices: Vec::new() }
    }

    /// Reads that; empty for anything else.
    pub fn of_results(results: &[StatementResult]) -> Vec<AttestingMembers> {
        let [StatementResult { tag, rows, .. }] = results else { return Vec::new() };
        let members = rows.iter().map(|row| AttestingMembers::of_row(row)).collect::<Option<Vec<_>>>();
        members.filter(|_| tag == OUTCOMES_TAG).unwrap_or_default()
    }

    fn of_row(row: &[Value]) -> Option<AttestingMembers> {
        let [Value::Text(schema), Value::BigInt(number), Value::BigInt(changed), Value::Text(organisations)] =
            row
        else {
            return None;
        };
        let organisations = organisations.split_whitespace().map(str::parse).collect::<Result<_, _>>();
        Some(AttestingMembers {
            schema: schema.to_string(),
            number: u32::try_from(*number).ok()?,
            changed: u64::try_from(*changed).ok()?,
            organisations: organisations.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_exactly;

    #[test]
    fn everything_in_it_counts_and_every_flipped_byte_shows() {
        let outcome = SchemaBlockOutcome {
            height: 9,
            previous: SchemaBlockOutcome::first(&Digest([7; 32]), 3),
            settled: 8,
            receipts: Digest([1; 32]),
            rows: Digest([2; 32]),
            state: Digest([3; 32]),
        };
        let bytes = encode(&outcome);
        assert_eq!(decode_exactly::<SchemaBlockOutcome>(&bytes).expect("what was encoded"), outcome);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let other: SchemaBlockOutcome = decode_exactly(&flipped).expect("of the same length");
            assert_ne!(other.digest(), outcome.digest(), "byte {at}");
        }
        assert_ne!(outcome.previous, SchemaBlockOutcome::first(&Digest([7; 32]), 4));
        assert_ne!(outcome.previous, SchemaBlockOutcome::first(&Digest([8; 32]), 3));
    }

    #[test]
    fn receipts_say_who_the_members_were_and_since_when() {
        let members = |number, changed, organisations: &[u16]| AttestingMembers {
            schema: "deal".into(),
            number,
            changed,
            organisations: organisations.to_vec(),
        };
        let all = [members(3, 17, &[0, 1, 7]), members(9, 1, &[5])];
        let result = AttestingMembers::to_result(&all);
        assert_eq!(AttestingMembers::of_results(std::slice::from_ref(&result)), all);
        assert!(AttestingMembers::of_results(&[]).is_empty());
        let other = StatementResult { tag: "SELECT 2".into(), ..result.clone() };
        assert!(AttestingMembers::of_results(&[other]).is_empty());
        let mut broken = result;
        broken.rows[1][2] = Value::BigInt(-1);
        assert!(AttestingMembers::of_results(&[broken]).is_empty());
        assert!(all[0].were_at(17, 20) && all[0].were_at(20, 20));
        assert!(!all[0].were_at(16, 20) && !all[0].were_at(21, 20));
    }
}
