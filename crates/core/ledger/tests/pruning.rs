//! Old blocks without transactions and receipts: what stays, what is refused, and what a full disk or a flipped byte does.
#![allow(missing_docs)]

mod chain;

use chain::{Chain, files, folder, network, options};
use ledger::{BlockRecord, Faults, Ledger, LedgerError, LedgerFiles, LedgerOptions};
use std::path::Path;
use std::sync::Arc;

/// Blocks in files of two or three.
const FILE_BYTES: u64 = 4_000;

fn filled(folder: &Path, blocks: u64) -> (Ledger, Vec<BlockRecord>) {
    let (ledger, _) = Ledger::open_with(folder, network(), options(FILE_BYTES)).expect("opens");
    let mut chain = Chain::after(&ledger, 1);
    let records: Vec<BlockRecord> = (0..blocks).map(|number| chain.next(4 + number as u32 % 9)).collect();
    records.iter().for_each(|record| ledger.append(record).expect("appends"));
    ledger.flush().expect("flushes");
    (ledger, records)
}

fn prune_all(ledger: &Ledger, below: u64) -> u64 {
    let mut blocks = 0;
    while let Some(pruned) = ledger.prune(below).expect("prunes") {
        assert!(pruned.bytes_now < pruned.bytes_before, "{pruned:?}");
        blocks += pruned.blocks;
    }
    blocks
}

#[test]
fn headers_certificates_and_digests_stay_and_payloads_go() {
    let folder = folder();
    let (ledger, records) = filled(folder.path(), 40);
    let before = ledger.bytes().expect("is there");
    let summaries: Vec<_> = ledger.summaries(1..=40).collect::<Result<_, _>>().expect("reads");
    assert_eq!(prune_all(&ledger, 1), 0, "nothing is below the first block");
    let pruned = prune_all(&ledger, 31);
    assert!((20..=30).contains(&pruned), "whole files below the height: {pruned}");
    assert_eq!(ledger.payloads_from(), pruned + 1);
    assert_eq!(prune_all(&ledger, 31), 0);
    assert!(ledger.bytes().expect("is there") < before);
    let check = |ledger: &Ledger| {
        for (record, before) in records.iter().zip(&summaries) {
            let height = record.block.header.height;
            let mut summary = ledger.summary(height).expect("reads").expect("is there");
            assert_eq!(summary.pruned, height <= pruned);
            (summary.block_bytes, summary.outcome_bytes) = (before.block_bytes, before.outcome_bytes);
            summary.pruned = false;
            assert_eq!(summary, *before, "header, digests and counts");
            let (attested, certificate) = ledger.certificates(height).expect("reads").expect("is there");
            assert_eq!((attested, certificate), (record.block.attested.clone(), record.certificate.clone()));
            let receipt = &record.outcome.receipts[0];
            let found = ledger.receipt(&receipt.transaction).expect("searches");
            if height > pruned {
                assert_eq!(ledger.read(height).expect("reads").as_ref(), Some(record));
                assert_eq!(found.as_ref(), Some(receipt));
                continue;
            }
            assert_eq!(found, None);
            for error in [
                ledger.read(height).map(drop),
                ledger.block(height).map(drop),
                ledger.outcome(height).map(drop),
                ledger.receipt_at(height, 0).map(drop),
                ledger.blocks_from(height).next().expect("says so").map(drop),
            ] {
                assert!(matches!(error, Err(LedgerError::Pruned { height: named }) if named == height));
            }
        }
    };
    check(&ledger);
    ledger.settle_indexes();
    drop(ledger);
    let (ledger, report) = Ledger::open_with(folder.path(), network(), options(FILE_BYTES)).expect("opens");
    assert_eq!((report.tip.expect("has blocks").0, report.indexes_rebuilt), (40, 0));
    check(&ledger);
    let mut chain = Chain::after(&ledger, 1);
    ledger.append(&chain.next(3)).expect("goes on");
}

#[test]
fn what_reads_the_files_without_the_node_sees_what_is_pruned() {
    let folder = folder();
    let (ledger, records) = filled(folder.path(), 20);
    let pruned = prune_all(&ledger, 15);
    let opened = LedgerFiles::open(folder.path(), network()).expect("opens");
    assert_eq!(opened.payloads_from().expect("reads"), pruned + 1);
    let stored = opened.records();
    for (stored, record) in stored.map(|stored| stored.expect("reads")).zip(&records) {
        let kept = stored.decode_what_is_kept().expect("decodes");
        assert_eq!(kept.certificate, record.certificate);
        assert_eq!(
            (&kept.block.header, &kept.block.attested),
            (&record.block.header, &record.block.attested)
        );
        assert_eq!(
            (&kept.outcome.digest, &kept.outcome.header),
            (&record.outcome.digest, &record.outcome.header)
        );
        let is_pruned = record.block.header.height <= pruned;
        assert_eq!(kept.block.transactions.is_empty() && kept.outcome.receipts.is_empty(), is_pruned);
        assert_eq!(matches!(stored.decode(), Err(LedgerError::Pruned { .. })), is_pruned);
        let mut bytes = Vec::new();
        stored.append_to(&mut bytes);
        assert_eq!(bytes.len() as u64, stored.bytes(), "a backup copies it");
    }
}

#[test]
fn a_last_file_that_is_ended_can_be_pruned_once_another_has_begun() {
    let folder = folder();
    let (ledger, _) = Ledger::open(folder.path(), network()).expect("opens");
    ledger.begin_file().expect("has nothing to end");
    let mut chain = Chain::after(&ledger, 1);
    (0..5).for_each(|_| ledger.append(&chain.next(4)).expect("appends"));
    assert_eq!(ledger.active_file_from(), Some(1));
    assert_eq!(prune_all(&ledger, 100), 0, "it is being written");
    ledger.begin_file().expect("ends it");
    ledger.begin_file().expect("there is nothing to end");
    assert_eq!(prune_all(&ledger, 100), 5);
    assert_eq!(ledger.flushed_height(), 5, "what is ended is flushed");
    drop(ledger);
    // The file that had begun held no block.
    let (ledger, report) = Ledger::open(folder.path(), network()).expect("opens");
    assert_eq!((report.tip.expect("has blocks").0, ledger.payloads_from()), (5, 6));
    ledger.append(&chain.next(2)).expect("goes on");
    assert_eq!(ledger.read(6).expect("reads").expect("is there").block.transactions.len(), 2);
}

#[test]
fn a_pruned_file_that_becomes_the_last_is_not_written_to() {
    let folder = folder();
    let (ledger, records) = filled(folder.path(), 20);
    let pruned = prune_all(&ledger, 15);
    let refused = ledger.truncate_after(pruned - 1);
    assert!(matches!(refused, Err(LedgerError::Pruned { height }) if height == pruned), "{refused:?}");
    ledger.truncate_after(pruned).expect("takes the others back");
    assert_eq!(ledger.tip().expect("has blocks").0, pruned);
    drop(ledger);
    let (ledger, _) = Ledger::open_with(folder.path(), network(), options(FILE_BYTES)).expect("opens");
    ledger.append(&records[pruned as usize]).expect("goes on");
    assert_eq!(ledger.read(pruned + 1).expect("reads").as_ref(), Some(&records[pruned as usize]));
    assert_eq!(ledger.payloads_from(), pruned + 1);
}

#[test]
fn a_disk_that_is_full_leaves_the_file_as_it_was_and_the_ledger_at_work() {
    let folder = folder();
    let faults = Arc::new(Faults::default());
    let options = LedgerOptions { segment_bytes: FILE_BYTES, faults: Some(faults.clone()) };
    let (ledger, _) = Ledger::open_with(folder.path(), network(), options).expect("opens");
    let mut chain = Chain::after(&ledger, 1);
    let records: Vec<BlockRecord> = (0..20).map(|_| chain.next(5)).collect();
    records.iter().for_each(|record| ledger.append(record).expect("appends"));
    ledger.settle_indexes();
    faults.leave_space(100);
    let refused = ledger.prune(15);
    assert!(matches!(refused, Err(LedgerError::DiskFull { .. })), "{refused:?}");
    assert_eq!(ledger.payloads_from(), 1);
    assert_eq!(ledger.read(1).expect("reads").as_ref(), Some(&records[0]));
    faults.leave_space(u64::MAX);
    ledger.append(&chain.next(1)).expect("pruning that failed ends nothing else");
    assert!(prune_all(&ledger, 15) > 0);
}

#[test]
fn a_wrong_byte_anywhere_in_a_pruned_file_is_found() {
    let folder = folder();
    let (ledger, _) = filled(folder.path(), 9);
    assert!(prune_all(&ledger, 8) > 0);
    ledger.settle_indexes();
    drop(ledger);
    let path = files(folder.path(), "log").remove(0);
    let good = std::fs::read(&path).expect("reads");
    for position in 64..good.len() {
        let mut bad = good.clone();
        bad[position] ^= 0x20;
        std::fs::write(&path, &bad).expect("writes");
        let read = LedgerFiles::open(folder.path(), network())
            .expect("opens")
            .records()
            .try_for_each(|record| record.map(drop));
        assert!(matches!(read, Err(LedgerError::Damaged { .. })), "byte {position}: {read:?}");
    }
}

#[test]
fn a_file_whose_record_is_damaged_is_not_pruned() {
    let folder = folder();
    let (ledger, _) = filled(folder.path(), 9);
    ledger.settle_indexes();
    let path = files(folder.path(), "log").remove(0);
    let mut bytes = std::fs::read(&path).expect("reads");
    let position = 64 + 416 + 200;
    bytes[position] ^= 1;
    std::fs::write(&path, &bytes).expect("writes");
    let refused = ledger.prune(8);
    assert!(matches!(refused, Err(LedgerError::Damaged { .. })), "{refused:?}");
    assert_eq!(std::fs::read(&path).expect("reads"), bytes, "somebody may still read what is right in it");
}

/// Names of the files of blocks.
fn names(folder: &Path) -> Vec<String> {
    let name = |path: std::path::PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    files(folder, "log").into_iter().map(name).collect()
}

#[test]
fn small_pruned_files_are_put_together() {
    let folder = folder();
    let (ledger, records) = filled(folder.path(), 60);
    let before = names(folder.path());
    let pruned = prune_all(&ledger, 50);
    let after = names(folder.path());
    assert_eq!(after[0], before[0]);
    assert_eq!(after[1..], before[before.len() + 1 - after.len()..], "one file for all pruned blocks");
    assert!(before.len() > after.len() + 10, "{before:?} {after:?}");
    ledger.settle_indexes();
    drop(ledger);
    let (ledger, report) = Ledger::open_with(folder.path(), network(), options(FILE_BYTES)).expect("opens");
    assert_eq!((report.indexes_rebuilt, ledger.payloads_from()), (0, pruned + 1));
    for record in &records[..pruned as usize] {
        assert_eq!(
            ledger.header(record.block.header.height).expect("reads").as_ref(),
            Some(&record.block.header)
        );
    }
}

#[test]
fn a_file_that_was_put_into_another_and_not_removed_is_removed_at_the_next_start() {
    let folder = folder();
    let (ledger, records) = filled(folder.path(), 30);
    ledger.settle_indexes();
    let second = files(folder.path(), "log").remove(1);
    let (log, index) =
        (std::fs::read(&second).expect("reads"), std::fs::read(second.with_extension("idx")).expect("reads"));
    assert!(prune_all(&ledger, 20) > 4);
    ledger.settle_indexes();
    drop(ledger);
    assert!(!second.exists());
    std::fs::write(&second, &log).expect("writes");
    std::fs::write(second.with_extension("idx"), index).expect("writes");
    let read = LedgerFiles::open(folder.path(), network()).expect("opens").records();
    assert_eq!(
        read.map(|record| record.expect("reads").summary().header.height).collect::<Vec<_>>(),
        (1..=30).collect::<Vec<_>>()
    );
    let (ledger, _) = Ledger::open_with(folder.path(), network(), options(FILE_BYTES)).expect("opens");
    assert!(!second.exists() && !second.with_extension("idx").exists());
    assert_eq!(ledger.read(30).expect("reads").as_ref(), records.last());
}

#[test]
fn who_reads_the_files_while_they_are_pruned_sees_every_block() {
    let folder = folder();
    let (ledger, records) = filled(folder.path(), 60);
    // Listed before, and read up to somewhere before; the rest afterwards.
    for read_before in [0, 1, 7, 30] {
        let below = 10 + read_before;
        let mut reading = LedgerFiles::open(folder.path(), network()).expect("opens").records();
        let mut heights: Vec<u64> = reading
            .by_ref()
            .take(read_before as usize)
            .map(|record| record.expect("reads").summary().header.height)
            .collect();
        prune_all(&ledger, below + 10);
        heights.extend(reading.by_ref().map(|record| record.expect("reads").summary().header.height));
        assert_eq!(heights, (1..=records.len() as u64).collect::<Vec<_>>(), "after {read_before}");
        assert_eq!(reading.torn(), None);
    }
}
