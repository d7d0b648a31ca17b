//! Proofs of receipts, made from a ledger as a network writes it.
#![allow(missing_docs)]

use bench::{SignedLedger, SignedLedgerOptions};
use node::receipt_proof;
use types::{Payload, SqlState, TransactionId};

const NOT_CERTIFIED: SqlState = SqlState(*b"55000");

#[test]
fn every_receipt_is_proved_by_the_next_certificate_in_a_block_or_by_a_newer_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SignedLedgerOptions { certified_after: 3, ..SignedLedgerOptions::default() };
    let mut signed = SignedLedger::create(folder.path(), options, |_| ()).expect("an empty folder");
    for _ in 0..8 {
        let script = |number| Payload::Script { sql: format!("SELECT {number}"), parameters: vec![] };
        let transactions = signed.transactions((0..3).map(script).collect());
        signed.append(transactions, |_| ()).expect("appends");
    }
    let (ledger, charter) = (signed.ledger(), signed.charter());
    let receipts = |height| ledger.outcome(height).expect("reads").expect("such a height").receipts;
    for height in 1..=8 {
        for receipt in receipts(height) {
            let proof = receipt_proof(ledger, &receipt.transaction, |_| None);
            if height > 4 {
                let error = proof.expect_err("block 9 will certify height 5");
                assert_eq!(error.state, NOT_CERTIFIED);
                continue;
            }
            let proof = proof.expect("certified");
            assert_eq!(proof.verify(charter), Ok(&receipt));
            assert!(proof.headers.is_empty());
        }
    }
    let newest = |height: u64| {
        let header = ledger.summary(height).expect("reads").expect("such a height").outcome;
        signed.certificate(header)
    };
    for height in 5..=8 {
        let id = receipts(height)[1].transaction;
        let proof = receipt_proof(ledger, &id, |_| Some(newest(8))).expect("certified");
        assert_eq!(proof.verify(charter), Ok(&receipts(height)[1]));
        assert_eq!(proof.headers.len() as u64, 8 - height);
    }
    let unknown = receipt_proof(ledger, &TransactionId::default(), |_| None);
    assert_eq!(unknown.expect_err("nobody sent it").state, SqlState::NO_DATA_FOUND);
}
