//! Transactions without their content: what goes, what stays, and what a full disk, a flipped byte or an end in the middle does.
#![allow(missing_docs)]

mod chain;

use chain::{Chain, files, folder, id, network, open, options};
use ledger::{BlockRecord, Ended, Faults, KeptTransaction, Ledger, LedgerError, LedgerFiles, LedgerOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use types::{SignedTransaction, transaction_leaf, transactions_root_of_leaves};

/// Blocks in files of two or three.
const FILE_BYTES: u64 = 4_000;
const BLOCKS: u64 = 20;

fn filled(folder: &Path) -> (Ledger, Vec<BlockRecord>) {
    let (ledger, _) = open(folder, FILE_BYTES);
    let mut chain = Chain::after(&ledger, 1);
    let records: Vec<BlockRecord> = (0..BLOCKS).map(|number| chain.next(4 + number as u32 % 3)).collect();
    records.iter().for_each(|record| ledger.append(record).expect("appends"));
    ledger.flush().expect("flushes");
    (ledger, records)
}

/// Positions, each with a proposal.
fn marks(positions: &[(u32, u64)]) -> BTreeMap<u32, u64> {
    positions.iter().copied().collect()
}

/// Whether any file of the folder has these bytes.
fn has_bytes(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).expect("a folder").any(|entry| {
        let content = std::fs::read(entry.expect("an entry").path()).expect("reads");
        content.windows(bytes.len()).any(|part| part == bytes)
    })
}

/// Holds a block whose transactions 0 and 2 are redacted against what it was.
fn check_redacted(ledger: &Ledger, record: &BlockRecord) {
    let (header, height) = (&record.block.header, record.block.header.height);
    for error in [
        ledger.read(height).map(drop),
        ledger.block(height).map(drop),
        ledger.outcome(height).map(drop),
        ledger.blocks_from(height).next().expect("says so").map(drop),
    ] {
        assert!(
            matches!(error, Err(LedgerError::RedactedBlock { height: named }) if named == height),
            "{error:?}"
        );
    }
    let summary = ledger.summary(height).expect("reads").expect("is there");
    assert_eq!((summary.redacted, summary.pruned), (true, false));
    assert_eq!((&summary.header, &summary.outcome), (header, &record.outcome.header));
    let (attested, certificate) = ledger.certificates(height).expect("reads").expect("is there");
    assert_eq!((&attested, &certificate), (&record.block.attested, &record.certificate));
    let kept = ledger.transactions(height).expect("reads").expect("is there");
    let mut leaves = Vec::new();
    for ((kept, bytes), receipt) in kept.iter().zip(&record.block.transactions).zip(&record.outcome.receipts)
    {
        assert_eq!((kept.id(), kept.receipt_leaf()), (receipt.transaction, receipt.leaf()));
        let leaf = transaction_leaf(receipt.index, bytes);
        leaves.push((SignedTransaction::contract_of(bytes), leaf));
        let (located, found) = (ledger.locate(&receipt.transaction), ledger.receipt(&receipt.transaction));
        assert_eq!(located.expect("searches"), Some((height, receipt.index)));
        match (kept, receipt.index) {
            (KeptTransaction::Redacted(redacted), 0 | 2) => {
                assert_eq!((redacted.index, redacted.leaf), (receipt.index, leaf));
                let ended = if receipt.index == 0 { Ended::Committed } else { Ended::Aborted };
                assert_eq!((redacted.ended, redacted.proposal), (ended, 7 + u64::from(receipt.index)));
                let error = found.expect_err("it is redacted");
                let LedgerError::Redacted { transaction, proposal, .. } = error else { panic!("{error}") };
                assert_eq!((transaction, proposal), (receipt.transaction, redacted.proposal));
            }
            (KeptTransaction::Whole(whole, kept), 1 | 3..) => {
                assert_eq!((whole, kept, found.expect("reads").as_ref()), (bytes, receipt, Some(receipt)));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        transactions_root_of_leaves(leaves),
        header.transactions_root,
        "hashes and places prove the root"
    );
}

#[test]
fn content_goes_and_hash_and_place_stay() {
    let folder = folder();
    let (ledger, records) = filled(folder.path());
    let content = |height: u64, index: u32| format!("1/{height}/{index} x").into_bytes();
    assert!(has_bytes(folder.path(), &content(8, 0)));
    assert!(ledger.redact(8, &marks(&[(0, 7), (2, 9)])).expect("redacts"));
    assert!(!ledger.redact(8, &marks(&[(0, 11)])).expect("looks"), "it is gone already, by another proposal");
    assert!(!ledger.redact(BLOCKS + 1, &marks(&[(0, 11)])).expect("looks"), "there is no such block");
    assert!(!has_bytes(folder.path(), &content(8, 0)) && !has_bytes(folder.path(), &content(8, 2)));
    assert!(has_bytes(folder.path(), &content(8, 1)));
    assert_eq!((ledger.redacted_to(), ledger.executable_from(), ledger.payloads_from()), (8, 9, 1));
    let check = |ledger: &Ledger| {
        for record in &records {
            let height = record.block.header.height;
            match height {
                8 => check_redacted(ledger, record),
                _ => assert_eq!(ledger.read(height).expect("reads").as_ref(), Some(record)),
            }
        }
    };
    check(&ledger);
    // One after the other in a block, and an older one.
    assert!(ledger.redact(3, &marks(&[(1, 4)])).expect("redacts"));
    assert!(ledger.redact(3, &marks(&[(0, 5)])).expect("redacts"));
    let kept = ledger.transactions(3).expect("reads").expect("is there");
    let redacted = kept.iter().filter(|one| matches!(one, KeptTransaction::Redacted(_))).count();
    assert_eq!((redacted, ledger.redacted_to()), (2, 8));
    ledger.settle_indexes();
    drop(ledger);
    for index in files(folder.path(), "idx").into_iter().chain(files(folder.path(), "txi")) {
        std::fs::remove_file(index).expect("there");
    }
    let (ledger, report) = open(folder.path(), FILE_BYTES);
    assert_eq!(report.tip.expect("has blocks").0, BLOCKS);
    check_redacted(&ledger, &records[7]);
    assert_eq!((ledger.redacted_to(), ledger.executable_from()), (8, 9));
    ledger.append(&Chain::after(&ledger, 1).next(3)).expect("goes on");
}

#[test]
fn a_block_of_the_file_that_is_written_is_redacted_too_and_taken_back() {
    let folder = folder();
    let (ledger, records) = filled(folder.path());
    assert!(ledger.redact(BLOCKS, &marks(&[(0, 7), (2, 9)])).expect("redacts"));
    check_redacted(&ledger, records.last().expect("blocks"));
    let next = Chain::after(&ledger, 1).next(5);
    ledger.append(&next).expect("goes on in another file");
    ledger.flush().expect("flushes");
    assert_eq!(ledger.read(BLOCKS + 1).expect("reads"), Some(next));
    ledger.truncate_after(BLOCKS).expect("takes one back");
    check_redacted(&ledger, records.last().expect("blocks"));
    ledger.append(&Chain::after(&ledger, 2).next(2)).expect("goes on behind it");
    ledger.flush().expect("flushes");
    drop(ledger);
    let (ledger, _) = open(folder.path(), FILE_BYTES);
    check_redacted(&ledger, records.last().expect("blocks"));
    assert_eq!(ledger.locate(&id(2, BLOCKS + 1, 1)).expect("searches"), Some((BLOCKS + 1, 1)));
}

#[test]
fn pruning_takes_what_is_left_of_a_redacted_block() {
    let folder = folder();
    let (ledger, records) = filled(folder.path());
    ledger.redact(4, &marks(&[(0, 7), (2, 9)])).expect("redacts");
    while ledger.prune(12).expect("prunes").is_some() {}
    let summary = ledger.summary(4).expect("reads").expect("is there");
    assert_eq!((summary.pruned, summary.redacted), (true, false));
    let (attested, certificate) = ledger.certificates(4).expect("reads").expect("is there");
    assert_eq!((attested, certificate), (records[3].block.attested.clone(), records[3].certificate.clone()));
    let refused = ledger.redact(4, &marks(&[(1, 7)])).expect_err("nothing is there any more");
    assert!(matches!(refused, LedgerError::Pruned { height: 4 }), "{refused}");
}

#[test]
fn a_disk_that_refuses_leaves_everything_as_it_was() {
    let folder = folder();
    let (ledger, records) = filled(folder.path());
    drop(ledger);
    let faults = Arc::new(Faults::default());
    let with_faults = LedgerOptions { faults: Some(faults.clone()), ..options(FILE_BYTES) };
    let (ledger, _) = Ledger::open_with(folder.path(), network(), with_faults).expect("opens");
    faults.leave_space(300);
    let error = ledger.redact(8, &marks(&[(0, 7), (2, 9)])).expect_err("there is no room");
    assert!(matches!(error, LedgerError::DiskFull { .. }), "{error}");
    assert_eq!(ledger.read(8).expect("reads").as_ref(), Some(&records[7]));
    faults.leave_space(1 << 20);
    faults.fail_flushes(true);
    ledger.redact(8, &marks(&[(0, 7), (2, 9)])).expect_err("it is not durable");
    assert_eq!(ledger.read(8).expect("reads").as_ref(), Some(&records[7]));
    faults.fail_flushes(false);
    assert!(ledger.redact(8, &marks(&[(0, 7), (2, 9)])).expect("redacts"));
    check_redacted(&ledger, &records[7]);
}

#[test]
fn audits_read_what_is_kept_and_every_flipped_byte_shows() {
    let folder = folder();
    let (ledger, records) = filled(folder.path());
    ledger.redact(8, &marks(&[(0, 7), (2, 9)])).expect("redacts");
    drop(ledger);
    let stored = || -> Vec<_> {
        let files = LedgerFiles::open(folder.path(), network()).expect("opens");
        files.records().collect::<Result<_, _>>().expect("reads")
    };
    let (whole, redacted) = (&stored()[6], &stored()[7]);
    assert_eq!(whole.redacted().expect("decodes"), []);
    assert_eq!(whole.decode().expect("decodes"), records[6]);
    assert!(matches!(redacted.decode(), Err(LedgerError::RedactedBlock { height: 8 })));
    let places: Vec<(u32, u64)> =
        redacted.redacted().expect("decodes").iter().map(|one| (one.index, one.proposal)).collect();
    assert_eq!(places, [(0, 7), (2, 9)]);
    let kept = redacted.decode_what_is_kept().expect("decodes");
    assert_eq!(kept.block.transactions.len() + 2, records[7].block.transactions.len());
    assert_eq!(kept.outcome.receipts[0], records[7].outcome.receipts[1]);
    let (path, first, bytes) = (redacted.path().to_path_buf(), redacted.offset(), redacted.bytes());
    let content = std::fs::read(&path).expect("reads");
    for at in (first..first + bytes).step_by(7) {
        let mut flipped = content.clone();
        flipped[at as usize] ^= 1;
        std::fs::write(&path, flipped).expect("writes");
        let files = LedgerFiles::open(folder.path(), network()).expect("opens");
        let error = files.records().find_map(Result::err).expect("it shows");
        assert!(matches!(error, LedgerError::Damaged { height: 8, .. }), "byte {at}: {error}");
    }
    std::fs::write(&path, content).expect("writes");
    let note = folder.path().join("REDACTED");
    let noted = std::fs::read(&note).expect("reads");
    std::fs::write(&note, &noted[..9]).expect("writes");
    let error = Ledger::open(folder.path(), network()).map(drop).expect_err("half a note");
    assert!(
        matches!(error, LedgerError::Damaged { .. }) && error.to_string().contains("REDACTED"),
        "{error}"
    );
}

/// Who prunes and who redacts are at the same files.
#[test]
fn files_are_written_anew_by_one_at_a_time() {
    for _ in 0..20 {
        let folder = folder();
        let (ledger, records) = filled(folder.path());
        std::thread::scope(|scope| {
            scope.spawn(|| while ledger.prune(BLOCKS).expect("prunes").is_some() {});
            scope.spawn(|| {
                for height in 1..=BLOCKS {
                    match ledger.redact(height, &marks(&[(0, 7), (2, 9)])) {
                        Ok(_) | Err(LedgerError::Pruned { .. }) => {}
                        Err(error) => panic!("{height}: {error}"),
                    }
                }
            });
        });
        let kept_from = ledger.payloads_from();
        assert!(kept_from > 1, "something is pruned");
        let check = |ledger: &Ledger| {
            for record in &records {
                let height = record.block.header.height;
                match height < kept_from {
                    true => assert!(ledger.summary(height).expect("reads").expect("is there").pruned),
                    false => check_redacted(ledger, record),
                }
            }
        };
        check(&ledger);
        drop(ledger);
        check(&open(folder.path(), FILE_BYTES).0);
    }
}
