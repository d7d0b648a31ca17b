//! Torn ends, flipped bytes and missing files: cut, found out or made again, and never a panic.
#![allow(missing_docs)]

mod chain;

use chain::{Chain, build, copy_folder, files, network, open, options};
use ledger::{BlockRecord, Ledger, LedgerError};
use std::fs::{self, OpenOptions};
use std::path::Path;

fn cut(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).expect("opens").set_len(bytes).expect("cuts");
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("reads");
    bytes[at] ^= 0x40;
    fs::write(path, bytes).expect("writes");
}

fn length(path: &Path) -> u64 {
    path.metadata().expect("is there").len()
}

/// Opens, reads and looks everything up. Gives the first error; panics where wrong data comes without one.
fn examine(folder: &Path, segment_bytes: u64, records: &[BlockRecord]) -> Result<u64, LedgerError> {
    let (ledger, report) = Ledger::open_with(folder, network(), options(segment_bytes))?;
    let tip = report.tip.map_or(0, |tip| tip.0);
    for record in &records[..tip as usize] {
        let height = record.block.header.height;
        assert_eq!(ledger.header(height)?.as_ref(), Some(&record.block.header));
        assert_eq!(ledger.read(height)?.as_ref(), Some(record));
        let receipt = &record.outcome.receipts[0];
        assert_eq!(ledger.receipt(&receipt.transaction)?.as_ref(), Some(receipt), "height {height}");
    }
    Ok(tip)
}

#[test]
fn a_last_record_torn_at_any_byte_is_cut_and_can_be_appended_again() {
    let folder = chain::folder();
    let records = build(&folder.path().join("two"), 1 << 20, 2, 3);
    build(&folder.path().join("three"), 1 << 20, 3, 3);
    let third = Chain { height: 2, previous: records[1].block.header.digest(), salt: 0 }.next(3);
    let three = files(&folder.path().join("three"), "log").remove(0);
    let (start, end) = (length(&files(&folder.path().join("two"), "log")[0]), length(&three));
    let bytes = fs::read(&three).expect("reads");
    for flushed in [false, true] {
        let path = folder.path().join(format!("torn {flushed}"));
        copy_folder(&folder.path().join(if flushed { "three" } else { "two" }), &path);
        let file = files(&path, "log").remove(0);
        let mark = fs::read(path.join("LEDGER")).expect("reads");
        for length in start..end {
            fs::write(&file, &bytes[..length as usize]).expect("tears");
            fs::write(path.join("LEDGER"), &mark).expect("writes");
            let (ledger, report) = open(&path, 1 << 20);
            assert_eq!(report.tip, Some((2, records[1].block.header.digest())));
            assert_eq!(report.bytes_cut, length - start);
            assert_eq!(report.file_cut.is_some(), length > start);
            assert_eq!(report.flushed_lost, flushed.then_some(3));
            assert_eq!(ledger.read(3).expect("reads"), None);
            ledger.append(&third).expect("appends");
            assert_eq!(ledger.read(3).expect("reads").as_ref(), Some(&third));
        }
    }
}

#[test]
fn unflushed_blocks_behind_a_torn_one_are_cut_with_it() {
    let folder = chain::folder();
    let (ledger, _) = open(folder.path(), 1 << 20);
    let mut chain = Chain::new();
    (0..2).for_each(|_| ledger.append(&chain.next(3)).expect("appends"));
    ledger.flush().expect("flushes");
    let durable = ledger.bytes().expect("reads");
    (0..3).for_each(|_| ledger.append(&chain.next(3)).expect("appends"));
    drop(ledger);
    // The power fails: of what was not flushed, the disk has the end but not the beginning.
    let file = files(folder.path(), "log").remove(0);
    let mut bytes = fs::read(&file).expect("reads");
    bytes[durable as usize..][..500].fill(0);
    fs::write(&file, &bytes).expect("writes");
    let (ledger, report) = open(folder.path(), 1 << 20);
    assert_eq!((report.tip.map(|tip| tip.0), report.flushed_lost), (Some(2), None));
    assert_eq!(report.bytes_cut, bytes.len() as u64 - durable);
    drop(ledger);
    assert_eq!(open(folder.path(), 1 << 20).1.bytes_cut, 0);
}

#[test]
fn a_file_torn_while_it_was_created_is_removed() {
    let folder = chain::folder();
    let records = build(folder.path(), 1, 2, 2);
    let next = folder.path().join(format!("blocks-{:020}.log", 3));
    for content in [
        vec![],
        vec![0; 10],
        vec![0; 64],
        fs::read(&files(folder.path(), "log")[1]).expect("reads")[..63].to_vec(),
    ] {
        fs::write(&next, &content).expect("writes");
        let (ledger, report) = open(folder.path(), 1);
        assert_eq!((report.tip.map(|tip| tip.0), report.bytes_cut), (Some(2), content.len() as u64));
        assert!(!next.exists());
        assert_eq!(ledger.read(2).expect("reads").as_ref(), Some(&records[1]));
        drop(ledger);
    }
}

#[test]
fn a_flipped_byte_in_a_block_file_is_found_out_or_cut_off_the_end() {
    let folder = chain::folder();
    let original = folder.path().join("original");
    let records = build(&original, 1_500, 6, 3);
    let logs = files(&original, "log");
    assert_eq!(logs.len(), 3, "finished files and one that is written");
    for (number, log) in logs.iter().enumerate() {
        for at in (0..length(log) as usize).step_by(3) {
            let copy = folder.path().join("copy");
            copy_folder(&original, &copy);
            flip(&copy.join(log.file_name().expect("a name")), at);
            match examine(&copy, 1_500, &records) {
                Err(error @ (LedgerError::Damaged { .. } | LedgerError::Io { .. })) => {
                    let text = error.to_string();
                    assert!(text.contains("blocks-0"), "{text}");
                }
                Ok(tip) => assert!(
                    number == 2 && tip == 5,
                    "byte {at} of file {number}: only the last record is cut"
                ),
                // The names of the networks are under the checksum, too.
                Err(error) => panic!("byte {at} of file {number}: {error}"),
            }
        }
    }
}

#[test]
fn a_damaged_block_is_named_with_file_offset_and_height() {
    let folder = chain::folder();
    let original = folder.path().join("original");
    build(&original, 1 << 20, 3, 3);
    let bytes = fs::read(&files(&original, "log")[0]).expect("reads");
    let record = (bytes.len() - 64) / 3;
    for (part, at) in
        [("record", 64 + record + 2), ("record head", 64 + record + 100), ("block", 64 + record + 424)]
    {
        let copy = folder.path().join(part);
        copy_folder(&original, &copy);
        flip(&files(&copy, "log")[0], at);
        let error = Ledger::open(&copy, network()).err().expect("refused");
        let LedgerError::Damaged { path, offset, height, what } = error else { panic!("{error}") };
        assert_eq!((path, offset, height), (files(&copy, "log").remove(0), 64 + record as u64, 2));
        assert!(what.contains(part), "{what}");
    }
}

#[test]
fn index_files_that_are_missing_or_wrong_are_made_again() {
    let folder = chain::folder();
    let original = folder.path().join("original");
    let records = build(&original, 1_500, 6, 3);
    for extension in ["idx", "txi"] {
        let sidecars = files(&original, extension);
        assert_eq!(sidecars.len(), 2, "finished files have their indexes");
        let sidecar = &sidecars[0];
        let steps = if extension == "idx" { 1 } else { 11 };
        let damages = (0..length(sidecar) as usize).step_by(steps).map(Some).chain([None]);
        for damage in damages {
            let copy = folder.path().join("copy");
            let _ = fs::remove_dir_all(&copy);
            copy_folder(&original, &copy);
            let path = copy.join(sidecar.file_name().expect("a name"));
            match damage {
                Some(at) => flip(&path, at),
                None => fs::remove_file(&path).expect("removes"),
            }
            assert_eq!(examine(&copy, 1_500, &records).expect("harmless"), 6, "{damage:?}");
        }
        for kept in [0, 3, length(sidecar) - 1] {
            let copy = folder.path().join("shortened");
            let _ = fs::remove_dir_all(&copy);
            copy_folder(&original, &copy);
            let path = copy.join(sidecar.file_name().expect("a name"));
            cut(&path, kept);
            let (ledger, report) = open(&copy, 1_500);
            assert_eq!(report.indexes_rebuilt, 1);
            ledger.settle_indexes();
            drop(ledger);
            assert_eq!(length(&path), length(sidecar));
            assert_eq!(open(&copy, 1_500).1.indexes_rebuilt, 0);
        }
    }
}

#[test]
fn an_index_of_other_blocks_is_not_believed() {
    let folder = chain::folder();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let records = build(&one, 1_500, 6, 3);
    let (ledger, _) = open(&two, 1_500);
    let mut chain = Chain { salt: 1, ..Chain::new() };
    (0..6).for_each(|_| ledger.append(&chain.next(3)).expect("appends"));
    ledger.settle_indexes();
    drop(ledger);
    for extension in ["idx", "txi"] {
        for (from, to) in files(&two, extension).iter().zip(files(&one, extension)) {
            fs::copy(from, to).expect("copies");
        }
    }
    assert_eq!(examine(&one, 1_500, &records).expect("harmless"), 6);
}

#[test]
fn the_ledger_file_is_written_again_when_it_is_damaged() {
    let folder = chain::folder();
    let original = folder.path().join("original");
    let records = build(&original, 1_500, 6, 3);
    for at in 0..=64 {
        let copy = folder.path().join("copy");
        copy_folder(&original, &copy);
        let path = copy.join("LEDGER");
        if at < 64 {
            flip(&path, at)
        } else {
            fs::remove_file(&path).expect("removes")
        }
        assert_eq!(examine(&copy, 1_500, &records).expect("harmless"), 6, "byte {at}");
        let good = fs::read(original.join("LEDGER")).expect("reads");
        assert_eq!(fs::read(&path).expect("reads")[..60], good[..60], "byte {at}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let folder = chain::folder();
    build(folder.path(), 1_500, 6, 3);
    let logs = files(folder.path(), "log");
    fs::remove_file(&logs[1]).expect("removes");
    let error = Ledger::open(folder.path(), network()).err().expect("refused");
    assert!(
        matches!(&error, LedgerError::Gap { path, expected: 3, found: 5 } if *path == logs[2]),
        "{error}"
    );
    fs::remove_file(&logs[0]).expect("removes");
    assert!(matches!(Ledger::open(folder.path(), network()), Err(LedgerError::Gap { expected: 1, .. })));
}
