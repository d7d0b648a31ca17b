//! Ledgers that begin behind a certified checkpoint.
#![allow(missing_docs)]

mod support;

use audit::{AuditError, Options, Part, Replay, Report, audit};
use bench::SignedLedger;
use crypto::Digest;
use ledger::{Anchor, BlockOutcome, Ledger, handovers_up_to};
use std::path::Path;
use support::{check, create, fill, folder, script, wrong};
use types::{Block, CheckpointRoot, Receipt, TableId};

/// Eight blocks, the last ones with certificates of outcomes in front of block 5.
fn source(folder: &Path) -> SignedLedger {
    let mut source = create(folder, 1, 1 << 20, |_| ());
    fill(&mut source, &[3, 0, 5, 1, 2, 1, 2]);
    source
}

fn anchor(source: &SignedLedger, height: u64) -> Anchor {
    let ledger = source.ledger();
    let outcome = ledger.outcome_header(height).expect("reads").expect("such a height");
    let (block, certificate) = ledger.block(height).expect("reads").expect("such a height");
    let (digest, state_root) = (outcome.digest(), Digest([3; 32]));
    let statement = CheckpointRoot { ledger: outcome.ledger, height, outcome: digest, state_root };
    let checkpoint = source.certificate(statement);
    let (founding, named) = (source.charter().ledger(), block.header.charters);
    let handovers = handovers_up_to(ledger.handovers(founding).expect("reads"), founding, named);
    Anchor { header: block.header, certificate: certificate.to_vec(), outcome, checkpoint, handovers }
}

/// The ledger behind an anchor, as it is checked.
fn audit_behind(source: &SignedLedger, anchor: Anchor) -> (tempfile::TempDir, Report) {
    let folder = folder();
    let (ledger, _) = Ledger::open(folder.path().join("ledger"), source.charter().ledger()).expect("opens");
    let next = anchor.height() + 1;
    ledger.begin_behind(anchor).expect("an empty ledger");
    for record in source.ledger().blocks_from(next) {
        ledger.append(&record.expect("reads")).expect("it follows");
    }
    ledger.flush().expect("flushes");
    drop(ledger);
    let report = check(source.charter(), folder.path());
    (folder, report)
}

#[test]
fn what_follows_an_anchor_is_verified_from_there_on() {
    let place = folder();
    let source = source(place.path());
    for height in 1..=8 {
        let (_folder, report) = audit_behind(&source, anchor(&source, height));
        assert!(report.error.is_none(), "{report:?}");
        assert_eq!((report.first_height, report.certified_height), (height + 1, height.max(5)));
        assert_eq!(report.checked.height, 8);
    }
    let whole = check(source.charter(), place.path());
    assert_eq!((whole.first_height, whole.checked.height), (1, 8));
}

/// 44 blocks. Amendments hold from heights 16 and 38 on; blocks 5 and 27 carry them.
fn amended(folder: &Path) -> SignedLedger {
    let mut source = create(folder, 1, 1 << 20, |charter| charter.outcome_lag_blocks = 4);
    for milliseconds in ["200", "300"] {
        let set = script(&format!("SELECT entente.set_charter('block.idle_ms', '{milliseconds}')"));
        let set = source.transactions(vec![set]);
        let receipts = source.append(set, |_| ()).expect("appends");
        assert!(matches!(receipts[0].outcome, types::Outcome::Committed(_)), "{:?}", receipts[0].outcome);
        fill(&mut source, &[1; 21]);
    }
    source
}

#[test]
fn charters_are_followed_from_the_founding_one_through_an_anchor() {
    let place = folder();
    let source = amended(place.path());
    let mut counts = Vec::new();
    for height in [1, 4, 5, 15, 16, 26, 27, 37, 38, 42] {
        let anchor = anchor(&source, height);
        counts.push(anchor.handovers.len());
        let (_folder, report) = audit_behind(&source, anchor);
        assert!(report.error.is_none(), "{height}: {report:?}");
        assert_eq!((report.first_height, report.checked.height), (height + 1, 45));
    }
    assert_eq!(counts, [0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn handovers_that_are_forged_missing_or_reordered_are_found() {
    let place = folder();
    let source = amended(place.path());
    let good = anchor(&source, 40);
    let mut missing = good.clone();
    missing.handovers.pop();
    let mut first_missing = good.clone();
    first_missing.handovers.remove(0);
    let mut reordered = good.clone();
    reordered.handovers.swap(0, 1);
    let mut repeated = good.clone();
    repeated.handovers.insert(0, repeated.handovers[0].clone());
    let mut few = good.clone();
    few.handovers[1].certificate.signatures.truncate(2);
    let mut forged = good.clone();
    forged.handovers[1].charters[0].charter.block.idle_ms = 301;
    let mut later = good.clone();
    later.handovers[0].charters[0].effective_height += 1;
    let mut empty = good.clone();
    let mut nothing = empty.handovers[1].clone();
    nothing.charters.clear();
    empty.handovers.push(nothing);
    let wrong_ones = [
        (missing, "expected handovers to the charters"),
        (first_missing, "handover 1 of 1: expected version 1"),
        (reordered, "handover 1 of 2: expected version 1"),
        (repeated, "handover 2 of 3: expected version 2"),
        (few, "handover 2 of 2: the certificate of amended charters"),
        (forged, "handover 2 of 2: expected the amended charters that the certified outcome names"),
        (later, "handover 1 of 2: expected the amended charters that the certified outcome names"),
        (empty, "handover 3 of 3: expected amended charters, found none"),
    ];
    for (anchor, says) in wrong_ones {
        let (folder, _) = audit_behind(&source, anchor);
        let (height, part, what) = wrong(source.charter(), folder.path());
        assert_eq!((height, part), (40, Part::Charters), "{what}");
        assert!(what.contains(says), "{what}");
    }
}

#[test]
fn an_anchor_that_nobody_has_signed_is_found() {
    let place = folder();
    let source = source(place.path());
    let mut few = anchor(&source, 5);
    few.checkpoint.signatures.truncate(2);
    let mut forged = anchor(&source, 5);
    forged.checkpoint.statement.state_root = Digest([9; 32]);
    for anchor in [few, forged] {
        let (folder, _) = audit_behind(&source, anchor);
        let (height, part, what) = wrong(source.charter(), folder.path());
        assert_eq!((height, part), (5, Part::CheckpointCertificate), "{what}");
    }
    let mut other = anchor(&source, 5);
    other.certificate = anchor(&source, 4).certificate;
    let (folder, _) = audit_behind(&source, other);
    let (height, part, what) = wrong(source.charter(), folder.path());
    assert_eq!((height, part), (5, Part::OrderingCertificate), "{what}");
}

struct Never;

impl Replay for Never {
    fn execute(&mut self, _: &Block, _: &[Receipt]) -> Result<BlockOutcome, String> {
        panic!("there is no state to execute on");
    }

    fn table_name(&self, _: TableId) -> String {
        String::new()
    }
}

#[test]
fn blocks_behind_an_anchor_are_not_executed_again() {
    let place = folder();
    let source = source(place.path());
    let (folder, _) = audit_behind(&source, anchor(&source, 5));
    let options = Options { threads: 1, replay: Some(&mut Never), parts: None };
    let report = audit(source.charter(), folder.path().join("ledger"), options, &mut |_| ());
    let error = report.expect("good keys").error;
    assert!(matches!(error, Some(AuditError::NoReplay { first: 6 })), "{error:?}");
}
