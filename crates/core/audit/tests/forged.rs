//! What every member together could write, with good certificates: the rules are checked, not only the signatures.
#![allow(missing_docs)]

mod support;

use audit::Part;
use bytes::Bytes;
use crypto::Digest;
use support::{check, create, fill, folder, insert, wrong};
use types::{CheckpointRoot, Outcome, RejectReason, SignedTransaction, StatementResult};

fn committed() -> Outcome {
    Outcome::Committed(vec![StatementResult { tag: "INSERT 0 1".into(), ..Default::default() }])
}

/// A transaction with its encoding changed.
fn changed(bytes: &Bytes, change: impl FnOnce(&mut SignedTransaction)) -> Bytes {
    let mut signed = SignedTransaction::from_bytes(bytes).expect("a transaction");
    change(&mut signed);
    Bytes::from(signed.to_bytes())
}

/// A second block of which the transactions and then the receipts are changed.
fn audit_of(
    change: impl FnOnce(&mut Vec<Bytes>),
    forge: impl FnOnce(&mut ledger::BlockOutcome),
) -> Option<(Part, String)> {
    let folder = folder();
    let mut ledger = create(folder.path(), 1, 1 << 20, |_| ());
    let mut transactions = ledger.transactions((0..3).map(insert).collect());
    change(&mut transactions);
    ledger.append(transactions, forge).expect("appends");
    fill(&mut ledger, &[2, 1]);
    let charter = ledger.charter().clone();
    ledger.finish().expect("flushes");
    let report = check(&charter, folder.path());
    report.error.as_ref()?;
    let (height, part, what) = wrong(&charter, folder.path());
    assert_eq!(height, 2, "{what}");
    Some((part, what))
}

#[test]
fn what_is_badly_signed_must_be_rejected_and_may_stand_there() {
    let signature = |transactions: &mut Vec<Bytes>| {
        transactions[1] = changed(&transactions[1], |signed| signed.signature.0[5] ^= 1);
    };
    let credential = |transactions: &mut Vec<Bytes>| {
        transactions[1] = changed(&transactions[1], |signed| signed.credential.signature.0[5] ^= 1);
    };
    let member = |transactions: &mut Vec<Bytes>| {
        transactions[1] = changed(&transactions[1], |signed| signed.credential.organisation = 9);
    };
    let foreign = |transactions: &mut Vec<Bytes>| {
        transactions[1] = changed(&transactions[1], |signed| signed.transaction.ledger = Digest::ZERO);
    };
    let garbage = |transactions: &mut Vec<Bytes>| transactions[1] = support::bytes_of("garbage");
    type Change<'a> = &'a dyn Fn(&mut Vec<Bytes>);
    let changes: [(Change<'_>, &str); 5] = [
        (&signature, "expected the signature of client"),
        (&credential, "expected a credential that member"),
        (&member, "expected a credential of a member below 4, found 9"),
        (&foreign, "it is one of ledger"),
        (&garbage, "expected a transaction of this ledger"),
    ];
    for (change, says) in changes {
        assert_eq!(audit_of(change, |_| ()), None, "{says}: rejected by the engine, and rightly");
        let found = audit_of(change, |outcome| outcome.receipts[1].outcome = committed());
        let Some((Part::Transaction(1), what)) = found else { panic!("{says}: {found:?}") };
        assert!(what.contains(says), "{what}");
    }
}

#[test]
fn what_is_well_signed_may_not_be_rejected_for_its_signature() {
    for (reason, says) in [
        (RejectReason::Unsigned("so they say".into()), "found good signatures"),
        (RejectReason::Malformed("so they say".into()), "what its receipt calls malformed"),
        (RejectReason::NoMember { organisation: 0, height: 1 }, "what its receipt calls no member's"),
    ] {
        let found = audit_of(|_| (), |outcome| outcome.receipts[2].outcome = Outcome::Rejected(reason));
        let Some((Part::Transaction(2), what)) = found else { panic!("{says}: {found:?}") };
        assert!(what.contains(says), "{what}");
    }
}

#[test]
fn receipts_must_be_those_of_the_transactions() {
    let found = audit_of(|_| (), |outcome| outcome.receipts[1].transaction = outcome.receipts[2].transaction);
    assert!(matches!(found, Some((Part::Receipt(1), _))), "{found:?}");
    // Another outcome for a transaction that is well signed: only execution tells.
    assert_eq!(audit_of(|_| (), |outcome| outcome.receipts[1].outcome = Outcome::Conflict), None);
}

#[test]
fn certificates_must_be_about_what_is_recorded() {
    let audit = |forge: &dyn Fn(&mut bench::SignedLedger)| {
        let folder = folder();
        let mut ledger = create(folder.path(), 1, 1 << 20, |_| ());
        fill(&mut ledger, &[2, 1, 2]);
        forge(&mut ledger);
        fill(&mut ledger, &[1, 1]);
        let charter = ledger.charter().clone();
        ledger.finish().expect("flushes");
        let report = check(&charter, folder.path());
        report.error.as_ref()?;
        let (height, part, what) = wrong(&charter, folder.path());
        assert_eq!(height, 5, "{what}");
        Some((part, what))
    };
    let outcome = |ledger: &bench::SignedLedger, height| {
        ledger.ledger().summary(height).expect("reads").expect("such a height").outcome
    };
    assert_eq!(audit(&|_| ()), None);
    let contradicting = audit(&|ledger| {
        let mut statement = outcome(ledger, 3);
        statement.state_digest = Digest::ZERO;
        ledger.attest_outcome(statement);
    });
    let Some((Part::OutcomeCertificate, what)) = contradicting else { panic!("{contradicting:?}") };
    assert!(what.contains("at height 3 the outcome that is recorded there"), "{what}");
    // Block 4 carries the certificate of height 1 already.
    let older = audit(&|ledger| ledger.attest_outcome(outcome(ledger, 1)));
    let Some((Part::OutcomeCertificate, what)) = older else { panic!("{older:?}") };
    assert!(what.contains("one of a height above 1 and up to 4, found 1"), "{what}");

    let checkpoint = |ledger: &bench::SignedLedger, height, outcome: &Digest| CheckpointRoot {
        ledger: ledger.charter().ledger(),
        height,
        outcome: *outcome,
        state_root: Digest([7; 32]),
    };
    let good = audit(&|ledger| {
        let digest = outcome(ledger, 2).digest();
        ledger.attest_checkpoint(checkpoint(ledger, 2, &digest));
    });
    assert_eq!(good, None);
    for (height, digest_of, says) in [(2, 3, "at height 2"), (9, 3, "one of a height up to 4, found 9")] {
        let wrong = audit(&|ledger| {
            let digest = outcome(ledger, digest_of).digest();
            ledger.attest_checkpoint(checkpoint(ledger, height, &digest));
        });
        let Some((Part::CheckpointCertificate, what)) = wrong else { panic!("{wrong:?}") };
        assert!(what.contains(says), "{what}");
    }
}

#[test]
fn ordering_may_not_be_further_ahead_of_certified_outcomes_than_the_charter_allows() {
    let folder = folder();
    let files = ledger::LedgerOptions::default();
    let options = bench::SignedLedgerOptions {
        clients: 1,
        certified_after: 4,
        files,
        ..bench::SignedLedgerOptions::default()
    };
    let lag = |charter: &mut types::Charter| charter.outcome_lag_blocks = 3;
    let mut ledger = bench::SignedLedger::create(folder.path(), options, lag).expect("an empty folder");
    let table =
        ledger.transactions(vec![support::script("CREATE TABLE t (id bigint PRIMARY KEY, name text)")]);
    ledger.append(table, |_| ()).expect("appends");
    // Empty blocks may be, those with transactions may not.
    fill(&mut ledger, &[1, 1, 0, 0, 0, 0, 1]);
    let charter = ledger.charter().clone();
    ledger.finish().expect("flushes");
    let (height, part, what) = wrong(&charter, folder.path());
    assert_eq!((height, part), (8, Part::Header), "{what}");
    assert!(what.contains("outcome_lag_blocks"), "{what}");
}

/// A ledger whose block 10 sets a parameter, from block 24 on; the block that carries that is changed by `forge`.
fn amended(
    forge: impl FnOnce(&mut bench::SignedLedger),
) -> (tempfile::TempDir, std::sync::Arc<types::Charter>) {
    let folder = folder();
    let mut ledger = create(folder.path(), 1, 1 << 20, |charter| charter.outcome_lag_blocks = 4);
    fill(&mut ledger, &[1; 8]);
    let set = ledger
        .transactions(vec![support::script("SELECT entente.set_charter('block.transactions_max', '2')")]);
    let receipts = ledger.append(set, |_| ()).expect("appends");
    assert!(matches!(receipts[0].outcome, Outcome::Committed(_)), "{:?}", receipts[0].outcome);
    forge(&mut ledger);
    fill(&mut ledger, &[3; 8]);
    fill(&mut ledger, &[1; 12]);
    let charter = ledger.charter().clone();
    ledger.finish().expect("flushes");
    (folder, charter)
}

#[test]
fn amended_charters_hold_from_their_heights_on_and_are_certified_before() {
    let (folder, charter) = amended(|_| ());
    let report = check(&charter, folder.path());
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!(report.checked.height, 30);

    // The same blocks, two transactions more in one than the amended charter allows.
    let (folder, charter) = amended(|ledger| fill(ledger, &[3; 6]));
    let (height, part, what) = wrong(&charter, folder.path());
    assert_eq!((height, part), (24, Part::Header), "{what}");
    assert!(what.contains("a count of transactions of 2 at most, found 3"), "{what}");
}

#[test]
fn a_block_that_carries_other_charters_than_are_certified_is_found() {
    // A certificate of an outcome that is not the recorded one, and names no amendment.
    let (folder, charter) = amended(|ledger| {
        let mut statement = ledger.ledger().summary(10).expect("reads").expect("such a height").outcome;
        statement.charters = ledger.charter().ledger();
        ledger.attest_outcome(statement);
    });
    let (height, part, _) = wrong(&charter, folder.path());
    assert_eq!((height, part), (11, Part::OutcomeCertificate));
}
