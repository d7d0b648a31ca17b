//! A ledger that begins behind a certified checkpoint.
#![allow(missing_docs)]

mod chain;

use chain::{build, copy_folder, files, network, open};
use crypto::Digest;
use ledger::{
    Anchor, BlockRecord, HANDOVERS_BYTES_MAX, Ledger, LedgerError, LedgerFiles, RowHistory, handovers_up_to,
};
use std::path::Path;
use types::{AmendedCharter, Certificate, Charter, CheckpointRoot, Handover, OutcomeHeader};

fn anchor(record: &BlockRecord) -> Anchor {
    let outcome = record.outcome.header.clone();
    let (height, digest) = (outcome.height, outcome.digest());
    let statement =
        CheckpointRoot { ledger: network(), height, outcome: digest, state_root: Digest([7; 32]) };
    let checkpoint = Certificate { statement, signatures: Vec::new() };
    let certificate = record.certificate.to_vec();
    let header = record.block.header.clone();
    Anchor { header, certificate, outcome, checkpoint, handovers: Vec::new() }
}

/// The records of a ledger of 30 blocks in another folder.
fn records() -> Vec<BlockRecord> {
    build(chain::folder().path(), 4_000, 30, 5)
}

fn append(ledger: &Ledger, records: &[BlockRecord]) {
    records.iter().for_each(|record| ledger.append(record).expect("it is the next"));
    ledger.flush().expect("flushed");
}

/// The ledger has blocks 21 to 30, and what block 20 came to.
fn check(folder: &Path, records: &[BlockRecord]) {
    let (ledger, report) = open(folder, 4_000);
    assert_eq!((report.flushed_lost, report.bytes_cut), (None, 0));
    assert_eq!((ledger.first_height(), ledger.tip().map(|(height, _)| height)), (21, Some(30)));
    assert_eq!(ledger.anchor().as_deref(), Some(&anchor(&records[19])));
    for height in 1..=20 {
        let refused = |error: LedgerError| {
            assert!(matches!(error, LedgerError::NotKept { first: 21, .. }), "{error}");
            assert!(error.to_string().contains("begins at height 21"), "{error}");
        };
        refused(ledger.read(height).expect_err("in front of the first"));
        refused(ledger.block(height).expect_err("in front of the first"));
        refused(ledger.outcome(height).expect_err("in front of the first"));
        refused(ledger.summary(height).expect_err("in front of the first"));
        refused(ledger.receipt_at(height, 0).expect_err("in front of the first"));
    }
    assert_eq!(ledger.header(20).expect("that of the anchor"), Some(records[19].block.header.clone()));
    for record in &records[19..] {
        let height = record.block.header.height;
        assert_eq!(ledger.outcome_header(height).expect("reads"), Some(record.outcome.header.clone()));
    }
    let read: Result<Vec<_>, _> = ledger.blocks_from(21).collect();
    assert_eq!(read.expect("reads"), records[20..]);
    assert_eq!(ledger.latest(100).expect("reads").len(), 10);
    let receipt = &records[25].outcome.receipts[0];
    assert_eq!(ledger.receipt(&receipt.transaction).expect("finds").as_ref(), Some(receipt));
    assert_eq!(ledger.locate(&records[5].outcome.receipts[0].transaction).expect("searches"), None);
}

#[test]
fn an_empty_ledger_begins_behind_an_anchor_and_is_the_same_when_it_is_opened_again() {
    let (records, folder) = (records(), chain::folder());
    let (ledger, _) = open(folder.path(), 4_000);
    ledger.begin_behind(anchor(&records[19])).expect("above the tip");
    assert_eq!(ledger.tip(), Some((20, records[19].block.header.digest())));
    assert_eq!(ledger.flushed_height(), 20);
    assert!(matches!(ledger.append(&records[21]), Err(LedgerError::WrongBlock { .. })));
    drop(ledger);
    let (ledger, report) = open(folder.path(), 4_000);
    assert_eq!(report.tip, Some((20, records[19].block.header.digest())));
    append(&ledger, &records[20..]);
    drop(ledger);
    check(folder.path(), &records);

    // Blocks are taken back to the anchor and no further.
    let (ledger, _) = open(folder.path(), 4_000);
    assert!(ledger.truncate_after(10).is_err());
    drop(ledger);
    let (ledger, _) = open(folder.path(), 4_000);
    ledger.truncate_after(20).expect("to the anchor");
    append(&ledger, &records[20..]);
    drop(ledger);
    check(folder.path(), &records);
}

#[test]
fn blocks_in_front_of_an_anchor_are_put_aside_also_if_a_crash_came_between() {
    let (records, folder) = (records(), chain::folder());
    let (ledger, _) = open(folder.path(), 4_000);
    append(&ledger, &records[..12]);
    ledger.settle_indexes();
    let crashed = chain::folder();
    drop(ledger);
    copy_folder(folder.path(), crashed.path());
    let (ledger, _) = open(folder.path(), 4_000);
    for wrong in [4, 11] {
        let refused = ledger.begin_behind(anchor(&records[wrong]));
        assert!(matches!(refused, Err(LedgerError::WrongBlock { .. })));
    }
    let mut other = anchor(&records[19]);
    other.outcome = records[18].outcome.header.clone();
    assert!(matches!(ledger.begin_behind(other), Err(LedgerError::WrongBlock { .. })));
    ledger.begin_behind(anchor(&records[19])).expect("above the tip");
    append(&ledger, &records[20..]);
    drop(ledger);
    check(folder.path(), &records);
    let aside = folder.path().join("before-00000000000000000020");
    assert!(!files(&aside, "log").is_empty(), "they are kept");

    // The anchor was there, the files were not put aside yet.
    std::fs::copy(folder.path().join("ANCHOR"), crashed.path().join("ANCHOR")).expect("copied");
    let mut audited = LedgerFiles::open(crashed.path(), network()).expect("whole files").records();
    assert!(audited.next().is_none(), "what lies in front does not count");
    let (ledger, _) = open(crashed.path(), 4_000);
    append(&ledger, &records[20..]);
    drop(ledger);
    check(crashed.path(), &records);

    let files = LedgerFiles::open(folder.path(), network()).expect("whole files");
    assert_eq!(files.anchor(), Some(&anchor(&records[19])));
    let heights: Result<Vec<u64>, _> =
        files.records().map(|record| record.map(|record| record.summary().header.height)).collect();
    assert_eq!(heights.expect("whole records"), (21..=30).collect::<Vec<_>>());
}

#[test]
fn every_byte_of_an_anchor_counts() {
    let (records, folder) = (records(), chain::folder());
    let (ledger, _) = open(folder.path(), 4_000);
    ledger.begin_behind(anchor(&records[19])).expect("above the tip");
    drop(ledger);
    let path = folder.path().join("ANCHOR");
    let bytes = std::fs::read(&path).expect("reads");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).expect("writes");
        assert!(LedgerFiles::open(folder.path(), network()).is_err(), "byte {at}");
    }
    for cut in [0, 8, 51, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).expect("writes");
        assert!(Ledger::open(folder.path(), network()).is_err(), "cut to {cut}");
    }
    std::fs::write(&path, &bytes).expect("writes");
    assert!(Ledger::open(folder.path(), network()).is_ok());
}

#[test]
fn the_history_of_rows_begins_behind_an_anchor_too() {
    let folder = chain::folder();
    let rows = RowHistory::open(folder.path(), network(), 0, 1 << 20).expect("opens");
    (1..=5).for_each(|height| rows.append(height, []).expect("appends"));
    drop(rows);
    let rows = RowHistory::begin_behind(folder.path(), network(), 20, 1 << 20).expect("begins");
    assert_eq!(rows.tip(), 20);
    rows.append(21, []).expect("appends");
    drop(rows);
    assert_eq!(RowHistory::open(folder.path(), network(), 21, 1 << 20).expect("opens").tip(), 21);
}

/// Certificates that nobody has signed: the ledger keeps them, whoever has the charter looks at them.
fn handovers(record: &BlockRecord, names: &[u8]) -> Vec<Handover> {
    let handover = |name: &u8| {
        let charters = Digest([*name; 32]);
        let statement = OutcomeHeader { charters, ..record.outcome.header.clone() };
        let charter = Charter::with_defaults("test", u64::from(*name));
        Handover {
            certificate: Certificate { statement, signatures: Vec::new() },
            charters: vec![AmendedCharter { charter, effective_height: u64::from(*name) }],
        }
    };
    names.iter().map(handover).collect()
}

#[test]
fn what_proves_the_charters_in_front_of_an_anchor_is_kept_and_bounded() {
    let (records, folder) = (records(), chain::folder());
    let mut anchored = anchor(&records[19]);
    anchored.header.charters = Digest([2; 32]);
    anchored.outcome.block = anchored.header.digest();
    anchored.checkpoint.statement.outcome = anchored.outcome.digest();
    anchored.handovers = handovers(&records[19], &[1, 2]);
    let (ledger, _) = open(folder.path(), 4_000);
    let mut long = anchored.clone();
    let charters = vec![long.handovers[0].charters[0].clone(); HANDOVERS_BYTES_MAX / 50];
    long.handovers[0].charters = charters;
    let Err(LedgerError::WrongBlock { expected, .. }) = ledger.begin_behind(long) else { panic!("too long") };
    assert!(expected.contains("HANDOVERS_BYTES_MAX"), "{expected}");
    ledger.begin_behind(anchored.clone()).expect("above the tip");
    assert_eq!(ledger.handovers(network()).expect("reads"), anchored.handovers);
    drop(ledger);
    let (ledger, _) = open(folder.path(), 4_000);
    assert_eq!(ledger.anchor().as_deref(), Some(&anchored));
    assert_eq!(ledger.handovers(network()).expect("reads"), anchored.handovers);

    let all = handovers(&records[19], &[1, 2, 3]);
    for (named, kept) in [(network(), 0), (Digest([1; 32]), 1), (Digest([3; 32]), 3)] {
        assert_eq!(handovers_up_to(all.clone(), network(), named), all[..kept]);
    }
}
