//! Certificates of what happened in schemas with members: an audit says who has signed them, and which ones say nothing.
#![allow(missing_docs)]

use audit::{Options, Report, SchemasReport, audit};
use bench::{SignedLedger, SignedLedgerOptions};
use crypto::{Digest, SecretKey, sha256};
use types::{Attestation, Certificate, ExecutionVersion, Outcome, Payload, SchemaCertificate, SchemaOutcome};

fn script(sql: &str) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters: vec![] }
}

/// The node key of a member of such ledgers.
fn node_key(member: u16) -> SecretKey {
    let mut bytes = [2; 32];
    bytes[..8].copy_from_slice(&u64::from(member).to_le_bytes());
    SecretKey::from_bytes(bytes)
}

fn certificate(ledger: Digest, (schema, height): (u32, u64), who: &[u16]) -> SchemaCertificate {
    let statement =
        SchemaOutcome { ledger, schema, height, outcome: sha256(&[b"salted"]), votes: vec![], moves: vec![] };
    let sign =
        |member: &u16| (*member, Attestation::sign(statement.clone(), *member, &node_key(*member)).signature);
    Certificate { signatures: who.iter().map(sign).collect(), statement: statement.clone() }
}

/// A schema of three organisations from block 1 on, whose members change in block 4, and certificates in block 5.
fn report(version: ExecutionVersion, certificates: impl Fn(Digest, u32) -> Vec<SchemaCertificate>) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SignedLedgerOptions { clients: 1, ..SignedLedgerOptions::default() };
    let mut ledger =
        SignedLedger::create(folder.path(), options, |charter| charter.found_with_version(version.number()))
            .expect("an empty folder");
    let charter = ledger.charter().clone();
    let append = |ledger: &mut SignedLedger, payloads: Vec<Payload>| {
        let transactions = ledger.transactions(payloads);
        let receipts = ledger.append(transactions, |_| ()).expect("appends");
        assert!(
            receipts.iter().all(|receipt| matches!(receipt.outcome, Outcome::Committed(_))),
            "{receipts:?}"
        );
    };
    append(&mut ledger, vec![script("CREATE SCHEMA deal MEMBERS (org1, org2)")]);
    append(&mut ledger, vec![]);
    append(&mut ledger, vec![]);
    append(&mut ledger, vec![script("ALTER SCHEMA deal ADD MEMBER org3")]);
    let number = ledger.engine().state().catalog().members_of("deal").expect("it has members").number;
    let certificates = certificates(charter.ledger(), number);
    append(&mut ledger, vec![Payload::SchemaOutcomes { certificates }]);
    ledger.finish().expect("closes");
    audit(&charter, folder.path().join("ledger"), Options::default(), &mut |_| ()).expect("good keys")
}

#[test]
fn certificates_count_that_enough_members_have_signed_and_others_are_named() {
    let found = report(ExecutionVersion::V5, |ledger, deal| {
        let of = |height, who: &[u16]| certificate(ledger, (deal, height), who);
        let mut altered = of(4, &[0, 1]);
        altered.statement.outcome.0[3] ^= 1;
        let foreign = certificate(sha256(&[b"other"]), (deal, 4), &[0, 1]);
        vec![
            of(4, &[0, 1]),
            of(4, &[0, 1, 3]),
            of(4, &[1]),
            of(4, &[1, 3]),
            altered,
            of(3, &[0, 1]),
            of(9, &[0, 1]),
            certificate(ledger, (deal + 1, 4), &[0, 1]),
            foreign,
        ]
    });
    assert!(found.error.is_none(), "anybody can bring what says nothing: {found:?}");
    let SchemasReport { certificates, uncounted, unnamed, .. } = found.schemas;
    assert_eq!((certificates, uncounted.count, unnamed), (2, 7, 0));
    let expected = [
        "expected the signatures of 2 of 3 members, found 1",
        "expected the signatures of 2 of 3 members, found 1",
        "the signature of member 0 does not fit",
        "its members have changed at height 4",
        "it is about a block that is still to come",
        "there is no such schema any more",
        "expected an attestation of ledger",
    ];
    for (found, expected) in uncounted.first.iter().zip(expected) {
        assert!(found.starts_with("height 5, transaction 0: schema number "), "{found}");
        assert!(found.contains(expected), "expected {expected}, found {found}");
    }
}

#[test]
fn a_ledger_of_version_4_does_not_say_who_the_members_were() {
    let found = report(ExecutionVersion::V4, |ledger, deal| {
        vec![certificate(ledger, (deal, 4), &[0, 1]), certificate(ledger, (deal, 4), &[9])]
    });
    assert!(found.error.is_none(), "{found:?}");
    let SchemasReport { certificates, uncounted, unnamed, .. } = found.schemas;
    assert_eq!((certificates, uncounted.count, unnamed), (0, 1, 1));
}

#[test]
fn findings_that_are_named_are_bounded() {
    let found = report(ExecutionVersion::V5, |ledger, deal| {
        (0..50).map(|_| certificate(ledger, (deal, 4), &[1])).collect()
    });
    let uncounted = found.schemas.uncounted;
    assert_eq!((uncounted.count, uncounted.first.len()), (50, 20));
}
