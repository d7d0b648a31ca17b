//! A proof that verifies cannot be changed into another one that does.
#![allow(missing_docs)]

mod support;

use crypto::{Digest, merkle_root, sha256};
use proofs::{Path, ProofError, ReceiptProof, Sibling};
use proptest::prelude::*;
use support::node_key;
use types::{
    AmendedCharter, Attestation, AttestationError, Certificate, Charter, CharterChange, Handover, Outcome,
    OutcomeHeader, Receipt, RejectReason, SqlError, SqlState, StatementResult, TransactionId,
};

fn charter(nonce: u64) -> Charter {
    support::charter(nonce, 4)
}

fn receipts(height: u64, count: u32) -> Vec<Receipt> {
    let outcome = |index| match index % 4 {
        0 => Outcome::Committed(vec![StatementResult { tag: "CALL".into(), ..Default::default() }]),
        1 => Outcome::Aborted(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")),
        2 => Outcome::Conflict,
        _ => Outcome::Rejected(RejectReason::BlockBudget),
    };
    let id = |index: u32| TransactionId(sha256(&[&height.to_le_bytes(), &index.to_le_bytes()]));
    (0..count)
        .map(|index| Receipt { transaction: id(index), height, index, outcome: outcome(index) })
        .collect()
}

/// Outcome headers of heights 1 to `last`; blocks have `count` receipts.
fn headers(charter: &Charter, last: u64, count: u32) -> Vec<OutcomeHeader> {
    let mut previous = charter.ledger();
    let header = |height: u64| {
        let leaves: Vec<Digest> = receipts(height, count).iter().map(Receipt::leaf).collect();
        let header = OutcomeHeader {
            ledger: charter.ledger(),
            height,
            block: sha256(&[b"block", &height.to_le_bytes()]),
            previous,
            receipts_root: merkle_root(&leaves),
            state_digest: sha256(&[b"state", &height.to_le_bytes()]),
            charters: charter.ledger(),
        };
        previous = header.digest();
        header
    };
    (1..=last).map(header).collect()
}

fn certificate(header: &OutcomeHeader) -> Certificate<OutcomeHeader> {
    let sign =
        |member: u16| (member, Attestation::sign(header.clone(), member, &node_key(member.into())).signature);
    Certificate { statement: header.clone(), signatures: [0, 1, 3].map(sign).to_vec() }
}

/// Of receipt `index` of `count` at height 3, under a certificate of height 3 + `ahead`.
fn proof(charter: &Charter, count: u32, index: u32, ahead: usize) -> ReceiptProof {
    let mut headers = headers(charter, 3 + ahead as u64, count);
    let certified = headers.pop().expect("at least height 3");
    let headers = headers.split_off(2);
    ReceiptProof::new(&receipts(3, count), index, headers, certificate(&certified)).expect("such a receipt")
}

#[test]
fn every_receipt_is_proved_near_the_certificate_and_far_from_it() {
    let charter = charter(1);
    for (count, ahead) in [(1, 0), (2, 1), (7, 5), (64, 2)] {
        for index in 0..count {
            let proof = proof(&charter, count, index, ahead);
            assert_eq!(proof.headers.len(), ahead);
            assert_eq!(proof.verify(&charter), Ok(&receipts(3, count)[index as usize]));
            assert_eq!(ReceiptProof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
            assert_eq!(ReceiptProof::from_json(&proof.to_json()), Ok(proof));
        }
    }
}

#[test]
fn every_flipped_byte_of_the_encoding_shows() {
    let charter = charter(1);
    let bytes = proof(&charter, 7, 4, 2).to_bytes();
    for at in 0..bytes.len() {
        for bit in [1, 128] {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            let read = ReceiptProof::from_bytes(&flipped);
            assert!(!read.is_ok_and(|read| read.verify(&charter).is_ok()), "byte {at}, bit {bit}");
        }
    }
    for length in 0..bytes.len() {
        assert!(ReceiptProof::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn every_changed_character_of_the_json_form_shows() {
    let charter = charter(1);
    let text = proof(&charter, 3, 1, 1).to_json();
    for (at, character) in text.char_indices().filter(|(_, character)| !character.is_whitespace()) {
        let other = if character == '1' { '2' } else { '1' };
        let mut changed = text.clone();
        changed.replace_range(at..at + character.len_utf8(), &other.to_string());
        let read = ReceiptProof::from_json(&changed);
        assert!(!read.is_ok_and(|read| read.verify(&charter).is_ok()), "{at}: {character}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let (charter, other) = (charter(1), self::charter(2));
    let good = proof(&charter, 5, 2, 3);
    let foreign = good.verify(&other);
    let expected = AttestationError::OtherLedger { expected: other.ledger(), found: charter.ledger() };
    assert_eq!(foreign, Err(ProofError::Certificate(expected)));

    let mut few = good.clone();
    few.certificate.signatures.pop();
    let expected = AttestationError::NoQuorum { quorum: 3, members: 4, found: 2 };
    assert_eq!(few.verify(&charter), Err(ProofError::Certificate(expected)));

    let mut gap = good.clone();
    gap.headers.remove(1);
    assert!(matches!(gap.verify(&charter), Err(ProofError::Header { height: 3, .. })));
    let mut short = good.clone();
    short.headers.remove(0);
    assert_eq!(short.verify(&charter), Err(ProofError::Height { expected: 3, found: 4 }));

    let mut neighbour = good.clone();
    neighbour.receipt = receipts(3, 5)[3].clone();
    assert!(matches!(neighbour.verify(&charter), Err(ProofError::Path { .. })));
    let mut forged = good.clone();
    forged.receipt.outcome = Outcome::Rejected(RejectReason::BlockBudget);
    assert!(matches!(forged.verify(&charter), Err(ProofError::Path { .. })));
    let mut mixed = good.clone();
    mixed.certificate = certificate(&headers(&charter, 9, 5)[8]);
    assert!(matches!(mixed.verify(&charter), Err(ProofError::Header { height: 5, .. })));
}

/// The charter with another node key of member 1 from height 3 on, and of member 2 from height 50 on; their handovers.
fn amended(charter: &Charter) -> Vec<Handover> {
    let replace = |charter: &Charter, name: &str, key: usize| {
        let node_key = node_key(key).public_key();
        let change = CharterChange::ReplaceNodeKey { name: name.to_string(), node_key, expires: None };
        charter.amended(&change).expect("a good change")
    };
    let first = AmendedCharter { charter: replace(charter, "org1", 8), effective_height: 3 };
    let second = AmendedCharter { charter: replace(&first.charter, "org2", 9), effective_height: 50 };
    let mut named = charter.ledger();
    let mut handover = |amended: AmendedCharter, height: usize, keys: [(u16, usize); 3]| {
        named = amended.chain(&named);
        let header =
            OutcomeHeader { charters: named, ..headers(charter, height as u64, 1)[height - 1].clone() };
        let sign =
            |(member, key)| (member, Attestation::sign(header.clone(), member, &node_key(key)).signature);
        let certificate = Certificate { signatures: keys.map(sign).to_vec(), statement: header };
        Handover { certificate, charters: vec![amended] }
    };
    vec![handover(first, 2, [(0, 0), (1, 1), (3, 3)]), handover(second, 40, [(0, 8), (1, 1), (3, 3)])]
}

#[test]
fn a_receipt_under_a_later_charter_is_proved_from_the_founding_one() {
    let mut charter = charter(1);
    charter.signatures.clear();
    let handovers = amended(&charter);
    let mut proof = proof(&charter, 5, 2, 1);
    let sign = |(member, key): (u16, usize)| {
        (member, Attestation::sign(proof.certificate.statement.clone(), member, &node_key(key)).signature)
    };
    // Height 4 is the new key's.
    proof.certificate.signatures = [(0, 8), (1, 1), (3, 3)].map(sign).to_vec();
    assert!(matches!(proof.verify(&charter), Err(ProofError::Certificate(_))));
    let proof = proof.with_handovers(handovers.clone());
    assert_eq!(proof.handovers, handovers[..1], "the second is not needed");
    assert_eq!(proof.verify(&charter), Ok(&receipts(3, 5)[2]));
    assert_eq!(ReceiptProof::from_json(&proof.to_json()), Ok(proof.clone()));
    let bytes = proof.to_bytes();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        let read = ReceiptProof::from_bytes(&flipped);
        assert!(!read.is_ok_and(|read| read.verify(&charter).is_ok()), "byte {at}");
    }
    let mut more = proof;
    more.handovers = handovers;
    assert!(matches!(more.verify(&charter), Err(ProofError::Order(_))));
}

#[test]
fn limits_are_named_and_cost_nothing() {
    let charter = charter(1);
    let good = proof(&charter, 5, 2, 3);
    let mut long = good.clone();
    long.path = Path(vec![Sibling { left: true, digest: Digest::ZERO }; 65]);
    let expected = || ProofError::TooLarge { what: "levels in its path", found: 65, limit: 64 };
    assert_eq!(long.verify(&charter), Err(expected()));
    assert_eq!(ReceiptProof::from_bytes(&long.to_bytes()), Err(expected()));
    let mut many = good;
    many.headers = vec![many.headers[0].clone(); proofs::HEADERS_MAX + 1];
    assert!(matches!(many.verify(&charter), Err(ProofError::TooLarge { what: "outcome headers", .. })));
    let bytes = vec![0; proofs::PROOF_BYTES_MAX + 1];
    assert!(matches!(ReceiptProof::from_bytes(&bytes), Err(ProofError::TooLarge { what: "bytes", .. })));
}

proptest! {
    #[test]
    fn bytes_and_text_from_anywhere_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), text in ".{0,200}") {
        let charter = charter(1);
        prop_assert!(!ReceiptProof::from_bytes(&bytes).is_ok_and(|proof| proof.verify(&charter).is_ok()));
        prop_assert!(ReceiptProof::from_json(&text).is_err());
    }
}
