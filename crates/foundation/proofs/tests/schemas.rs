//! Proofs of what happened in a schema with members: the charter alone is enough to check them, one that verifies cannot be changed
//! into another one that does, and a member that lies proves nothing.
#![allow(missing_docs)]

mod support;

use crypto::{Digest, merkle_root, sha256};
use proofs::salted::{definition_digest, push_row, salted_leaf};
use proofs::{Path, ProofError, ReceiptProof, SchemaEvidence, SchemaReceiptProof, SchemaRowProof};
use proptest::prelude::*;
use support::node_key;
use types::{
    Attestation, AttestationError, AttestingMembers, Certificate, Charter, Key, Outcome, OutcomeHeader,
    PartVotes, Receipt, Row, SchemaBlockOutcome, SchemaOutcome, StatementResult, Table, TableId,
    TransactionId, Value, encode,
};

const SCHEMA: u32 = 3;
/// Height of the block that is shown, of the schema's outcome that is attested, and of the block that has taken that in.
const SHOWN: u64 = 5;
const ATTESTED: u64 = 16;
const BROUGHT: u64 = 18;

fn charter(nonce: u64) -> Charter {
    support::charter(nonce, 5)
}

fn table() -> Table {
    Table {
        id: TableId(7),
        name: "deal.trades".into(),
        columns: Vec::new(),
        primary_key: vec![0],
        primary_key_name: "trades_pkey".into(),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    }
}

fn salt(tree: &str, number: usize) -> Digest {
    sha256(&[b"what only members know", tree.as_bytes(), &number.to_le_bytes()])
}

/// The receipt of a number in a block.
fn receipt(height: u64, number: u32) -> Receipt {
    let transaction = TransactionId(sha256(&[&height.to_le_bytes(), &number.to_le_bytes()]));
    let result = StatementResult { tag: "UPDATE 1".into(), ..StatementResult::default() };
    Receipt { transaction, height, index: number, outcome: Outcome::Committed(vec![result]) }
}

fn row(number: u8) -> (Key, Option<Row>) {
    let values = (number != 2).then(|| Row::from([Value::BigInt(number.into())]));
    (Key::from_bytes(&[number]), values)
}

/// Leaves of a block's trees.
fn leaves(height: u64) -> (Vec<Digest>, Vec<Digest>) {
    let receipts =
        (0..3).map(|number| salted_leaf(&salt("receipts", number), &encode(&receipt(height, number as u32))));
    let rows = (0..4).map(|number| {
        let (mut content, (key, row)) = (Vec::new(), row(number as u8));
        push_row(&mut content, &definition_digest(&table()), &key, row.as_ref());
        salted_leaf(&salt("rows", number), &content)
    });
    (receipts.collect(), rows.collect())
}

/// What the blocks of some heights came to in the schema.
fn blocks() -> Vec<SchemaBlockOutcome> {
    let mut previous = SchemaBlockOutcome::first(&charter(1).ledger(), SCHEMA);
    let block = |height: u64| {
        let (receipts, rows) = leaves(height);
        let block = SchemaBlockOutcome {
            height,
            previous,
            settled: height - 1,
            receipts: merkle_root(&receipts),
            rows: merkle_root(&rows),
            state: sha256(&[b"state", &height.to_le_bytes()]),
        };
        previous = block.digest();
        block
    };
    [2, SHOWN, 9, 14].map(block).to_vec()
}

fn signed(outcome: Digest, who: &[u16]) -> Certificate<SchemaOutcome> {
    let votes = vec![PartVotes { height: 15, yes: vec![1], no: vec![2] }];
    let statement = SchemaOutcome {
        ledger: charter(1).ledger(),
        schema: SCHEMA,
        height: ATTESTED,
        outcome,
        votes,
        moves: vec![],
    };
    let sign = |member: &u16| {
        (*member, Attestation::sign(statement.clone(), *member, &node_key((*member).into())).signature)
    };
    Certificate { signatures: who.iter().map(sign).collect(), statement: statement.clone() }
}

/// What the ledger says of these members, from `changed` on.
fn members(changed: u64, organisations: &[u16]) -> ReceiptProof {
    let of = |number, organisations: &[u16]| AttestingMembers {
        schema: "deal".into(),
        number,
        changed,
        organisations: organisations.to_vec(),
    };
    let result = AttestingMembers::to_result(&[of(SCHEMA, organisations), of(SCHEMA + 1, &[3, 4])]);
    let receipts: Vec<Receipt> = (0..4u32)
        .map(|index| Receipt {
            transaction: TransactionId(sha256(&[b"brings", &index.to_le_bytes()])),
            height: BROUGHT,
            index,
            outcome: Outcome::Committed(vec![result.clone()]),
        })
        .collect();
    let leaves: Vec<Digest> = receipts.iter().map(Receipt::leaf).collect();
    let header = OutcomeHeader {
        ledger: charter(1).ledger(),
        height: BROUGHT,
        block: sha256(&[b"block"]),
        previous: sha256(&[b"before"]),
        receipts_root: merkle_root(&leaves),
        state_digest: sha256(&[b"state"]),
        charters: charter(1).ledger(),
    };
    let sign =
        |member: u16| (member, Attestation::sign(header.clone(), member, &node_key(member.into())).signature);
    let certificate = Certificate { signatures: [0, 1, 2, 4].map(sign).to_vec(), statement: header.clone() };
    ReceiptProof::new(&receipts, 1, Vec::new(), certificate).expect("such a receipt")
}

fn evidence(tree: &str, number: usize) -> SchemaEvidence {
    let (receipts, rows) = leaves(SHOWN);
    let leaves = if tree == "rows" { rows } else { receipts };
    let blocks = blocks().split_off(1);
    let outcome = blocks.last().expect("several").digest();
    SchemaEvidence {
        salt: salt(tree, number),
        path: Path::new(&leaves, number).expect("such a leaf"),
        certificate: signed(outcome, &[0, 2]),
        members: members(4, &[0, 1, 2]),
        blocks,
    }
}

fn receipt_proof(number: u32) -> SchemaReceiptProof {
    SchemaReceiptProof { receipt: receipt(SHOWN, number), evidence: evidence("receipts", number as usize) }
}

fn row_proof(number: u8) -> SchemaRowProof {
    let (key, row) = row(number);
    SchemaRowProof { table: table(), key, row, evidence: evidence("rows", number.into()) }
}

#[test]
fn every_receipt_and_row_is_proved_by_the_charter_alone() {
    let charter = charter(1);
    for number in 0..3 {
        let proof = receipt_proof(number);
        let proved = proof.verify(&charter).expect("it is one");
        assert_eq!((proved.schema.as_str(), proved.height, proved.members), ("deal", SHOWN, vec![0, 2]));
        assert_eq!(SchemaReceiptProof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
        assert_eq!(SchemaReceiptProof::from_json(&proof.to_json()), Ok(proof));
    }
    for number in 0..4 {
        let proof = row_proof(number);
        assert_eq!(proof.verify(&charter).expect("it is one").height, SHOWN);
        assert_eq!(SchemaRowProof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
        assert_eq!(SchemaRowProof::from_json(&proof.to_json()), Ok(proof));
    }
}

#[test]
fn every_flipped_byte_of_the_encodings_shows() {
    let charter = charter(1);
    let is_receipt = |bytes: &[u8]| {
        SchemaReceiptProof::from_bytes(bytes).is_ok_and(|proof| proof.verify(&charter).is_ok())
    };
    let is_row =
        |bytes: &[u8]| SchemaRowProof::from_bytes(bytes).is_ok_and(|proof| proof.verify(&charter).is_ok());
    type IsProof<'a> = &'a dyn Fn(&[u8]) -> bool;
    let proofs: [(Vec<u8>, IsProof<'_>); 2] =
        [(receipt_proof(1).to_bytes(), &is_receipt), (row_proof(1).to_bytes(), &is_row)];
    for (bytes, is_proof) in proofs {
        assert!(is_proof(&bytes));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(!is_proof(&flipped), "byte {at}");
        }
        for length in (0..bytes.len()).step_by(11) {
            assert!(!is_proof(&bytes[..length]), "{length} bytes");
        }
    }
}

#[test]
fn every_changed_character_of_the_json_forms_shows() {
    let charter = charter(1);
    let is_receipt =
        |text: &str| SchemaReceiptProof::from_json(text).is_ok_and(|proof| proof.verify(&charter).is_ok());
    let is_row =
        |text: &str| SchemaRowProof::from_json(text).is_ok_and(|proof| proof.verify(&charter).is_ok());
    type IsProof<'a> = &'a dyn Fn(&str) -> bool;
    let texts: [(String, IsProof<'_>); 2] =
        [(receipt_proof(1).to_json(), &is_receipt), (row_proof(2).to_json(), &is_row)];
    for (text, is_proof) in texts {
        assert!(is_proof(&text));
        for (at, character) in text.char_indices().filter(|(at, _)| at % 3 == 0) {
            let other = if character == '1' { '2' } else { '1' };
            let mut changed = text.clone();
            changed.replace_range(at..at + character.len_utf8(), &other.to_string());
            assert!(!is_proof(&changed), "{at}: {character}");
        }
    }
}

#[test]
fn what_a_minority_of_members_says_is_no_proof() {
    let charter = charter(1);
    let with = |certificate, members| {
        let mut proof = receipt_proof(0);
        proof.evidence.certificate = certificate;
        proof.evidence.members = members;
        proof.verify(&charter).map(|proved| proved.members)
    };
    let outcome = blocks()[3].digest();
    let of = |who: &[u16]| signed(outcome, who);
    let few = AttestationError::NoQuorum { quorum: 2, members: 3, found: 1 };
    assert_eq!(with(of(&[1]), members(4, &[0, 1, 2])), Err(ProofError::Certificate(few.clone())));
    assert_eq!(with(of(&[1, 3]), members(4, &[0, 1, 2])), Err(ProofError::Certificate(few)), "a stranger");
    assert_eq!(
        with(of(&[1, 2, 3]), members(4, &[0, 1, 2])),
        Ok(vec![1, 2]),
        "who has signed, too, does not count"
    );
    // A member that lies makes up a block in which its transaction has ended otherwise.
    let mut lie = receipt_proof(0);
    lie.receipt.outcome = Outcome::Committed(vec![]);
    let leaf = salted_leaf(&lie.evidence.salt, &encode(&lie.receipt));
    lie.evidence.blocks[0].receipts = lie.evidence.path.root(leaf);
    assert!(matches!(lie.verify(&charter), Err(ProofError::Header { height: SHOWN, .. })));
    let mut chained = lie.clone();
    for at in 1..chained.evidence.blocks.len() {
        chained.evidence.blocks[at].previous = chained.evidence.blocks[at - 1].digest();
    }
    let made_up = chained.evidence.blocks.last().expect("several").digest();
    assert!(matches!(chained.verify(&charter), Err(ProofError::Header { height: 14, .. })));
    chained.evidence.certificate = signed(made_up, &[1]);
    assert!(matches!(
        chained.verify(&charter),
        Err(ProofError::Certificate(AttestationError::NoQuorum { .. }))
    ));
    chained.evidence.certificate = signed(made_up, &[1, 3]);
    assert!(matches!(
        chained.verify(&charter),
        Err(ProofError::Certificate(AttestationError::NoQuorum { .. }))
    ));
    chained.evidence.certificate.signatures[1].0 = 2;
    let forged = chained.verify(&charter);
    assert_eq!(forged, Err(ProofError::Certificate(AttestationError::Signature { organisation: 2 })));
    // The check is not for nothing: a quorum could.
    chained.evidence.certificate = signed(made_up, &[1, 2]);
    assert!(chained.verify(&charter).is_ok());
}

#[test]
fn the_ledger_must_say_who_the_members_were_then() {
    let charter = charter(1);
    let with = |members: ReceiptProof| {
        let mut proof = row_proof(0);
        proof.evidence.members = members;
        proof.verify(&charter).map(|proved| proved.height)
    };
    let unknown = "the ledger does not say who the schema's members were";
    assert_eq!(with(members(ATTESTED, &[0, 1, 2])), Ok(SHOWN), "members since the block that is attested");
    let later = with(members(ATTESTED + 1, &[0, 1, 2]));
    assert_eq!(later, Err(ProofError::Order(unknown)), "they have come later");
    let mut proof = row_proof(0);
    proof.evidence.certificate.statement.schema = SCHEMA + 5;
    assert_eq!(proof.verify(&charter), Err(ProofError::Order(unknown)));
    // The members of another schema have signed.
    let mut other = row_proof(0);
    other.evidence.certificate = signed(blocks()[3].digest(), &[3, 4]);
    assert!(matches!(
        other.verify(&charter),
        Err(ProofError::Certificate(AttestationError::NoQuorum { .. }))
    ));
    // Whoever brings it makes up what the ledger says.
    let mut forged = members(4, &[3, 4]);
    forged.certificate.signatures.pop();
    assert!(matches!(with(forged), Err(ProofError::Certificate(AttestationError::NoQuorum { .. }))));
    let mut altered = members(4, &[0, 1, 2]);
    altered.receipt = members(4, &[3, 4]).receipt;
    assert!(matches!(with(altered), Err(ProofError::Path { .. })));
}

#[test]
fn what_is_wrong_is_named_and_limits_are() {
    let (charter, other) = (charter(1), self::charter(2));
    assert!(matches!(receipt_proof(0).verify(&other), Err(ProofError::Certificate(_))));
    let mut neighbour = receipt_proof(0);
    neighbour.receipt = receipt(SHOWN, 1);
    assert!(matches!(neighbour.verify(&charter), Err(ProofError::Path { what: "the receipt", .. })));
    let mut gap = row_proof(1);
    gap.evidence.blocks.remove(1);
    assert!(matches!(gap.verify(&charter), Err(ProofError::Header { height: SHOWN, .. })));
    let mut none = row_proof(1);
    none.evidence.blocks.clear();
    assert!(matches!(none.verify(&charter), Err(ProofError::Order(_))));
    let mut before = receipt_proof(1);
    before.evidence.blocks = blocks();
    assert!(
        matches!(before.verify(&charter), Err(ProofError::Path { .. })),
        "the block before is another one"
    );
    // A receipt of a row's tree, and the other way round.
    let mut mixed = receipt_proof(1);
    mixed.evidence.path = row_proof(1).evidence.path;
    assert!(matches!(mixed.verify(&charter), Err(ProofError::Path { .. })));
    let mut many = receipt_proof(1);
    many.evidence.blocks = vec![many.evidence.blocks[0].clone(); proofs::HEADERS_MAX + 1];
    assert!(matches!(many.verify(&charter), Err(ProofError::TooLarge { what: "blocks of the schema", .. })));
    let bytes = vec![0; proofs::PROOF_BYTES_MAX + 1];
    assert!(matches!(SchemaRowProof::from_bytes(&bytes), Err(ProofError::TooLarge { what: "bytes", .. })));
}

proptest! {
    #[test]
    fn bytes_and_text_from_anywhere_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), text in ".{0,200}") {
        let charter = charter(1);
        prop_assert!(!SchemaReceiptProof::from_bytes(&bytes).is_ok_and(|proof| proof.verify(&charter).is_ok()));
        prop_assert!(!SchemaRowProof::from_bytes(&bytes).is_ok_and(|proof| proof.verify(&charter).is_ok()));
        prop_assert!(SchemaReceiptProof::from_json(&text).is_err() && SchemaRowProof::from_json(&text).is_err());
    }
}
