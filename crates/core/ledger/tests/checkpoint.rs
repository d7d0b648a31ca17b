//! Checkpoints are whole or refused.
#![allow(missing_docs)]

mod chain;

use chain::{files, network};
use crypto::sha256;
use ledger::{CheckpointStore, Faults, LedgerError};
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

fn store(folder: &Path) -> CheckpointStore {
    CheckpointStore::open(folder, network()).expect("opens")
}

fn read(store: &CheckpointStore, height: u64) -> Result<Vec<u8>, LedgerError> {
    let mut reader = store.read(height)?;
    let mut bytes = Vec::new();
    match reader.read_to_end(&mut bytes) {
        Ok(_) => reader.finish().map(|length| assert_eq!(length, bytes.len() as u64))?,
        Err(error) => return Err(error.downcast().expect("errors of reading carry the ledger's")),
    }
    Ok(bytes)
}

#[test]
fn checkpoints_of_every_size_are_read_as_written() {
    let folder = chain::folder();
    let mebibyte = 1 << 20;
    for bytes in [0, 1, mebibyte - 1, mebibyte, mebibyte + 1, 3 * mebibyte + 17] {
        let content = content(bytes);
        let written = store(folder.path())
            .write(7, |writer| content.chunks(100_000).try_for_each(|part| writer.write_all(part)));
        assert_eq!(
            written.expect("writes"),
            files(folder.path(), "state")[0].metadata().expect("is there").len()
        );
        assert!(read(&store(folder.path()), 7).expect("reads") == content);
    }
}

#[test]
fn who_reads_a_part_can_check_the_rest() {
    let folder = chain::folder();
    let store = store(folder.path());
    store.write(7, |writer| writer.write_all(&content(2_000_000))).expect("writes");
    let mut reader = store.read(7).expect("opens");
    reader.read_exact(&mut [0; 10]).expect("reads");
    assert_eq!(reader.finish().expect("is whole"), 2_000_000);
}

#[test]
fn the_two_newest_stay() {
    let folder = chain::folder();
    let store = store(folder.path());
    assert!(store.newest().is_empty());
    for height in [10, 20, 30, 30] {
        store.write(height, |writer| writer.write_all(&height.to_le_bytes())).expect("writes");
    }
    assert_eq!(store.newest(), [30, 20]);
    assert_eq!(files(folder.path(), "state").len(), 2);
    assert!(matches!(store.read(10), Err(LedgerError::NoCheckpoint { height: 10, .. })));
    fs::write(folder.path().join("checkpoint-00000000000000000040.state.tmp"), b"half").expect("writes");
    let store = self::store(folder.path());
    assert_eq!(store.newest(), [30, 20]);
    assert_eq!(files(folder.path(), "tmp").len(), 0);
    store.remove_after(20).expect("removes");
    assert_eq!(store.newest(), [20]);
    assert_eq!(read(&store, 20).expect("reads"), 20u64.to_le_bytes());
}

#[test]
fn a_flipped_byte_or_a_cut_anywhere_is_named_and_the_older_one_is_good() {
    let folder = chain::folder();
    let store = store(folder.path());
    store.write(1, |writer| writer.write_all(b"older")).expect("writes");
    store.write(2, |writer| writer.write_all(&content(300))).expect("writes");
    let path = files(folder.path(), "state").remove(1);
    let good = fs::read(&path).expect("reads");
    let check = |damaged: &[u8], at: usize| {
        fs::write(&path, damaged).expect("writes");
        let error = read(&store, 2).expect_err("refused");
        assert!(
            matches!(&error, LedgerError::Damaged { path: named, height: 2, .. } if *named == path),
            "{at}: {error}"
        );
        assert_eq!(read(&self::store(folder.path()), 1).expect("the older one"), b"older");
    };
    for at in 0..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        check(&flipped, at);
        check(&good[..at], at);
    }
    check(&[good.as_slice(), b"x"].concat(), good.len());
}

#[test]
fn chunks_that_are_left_out_or_swapped_are_found_out() {
    let folder = chain::folder();
    let store = store(folder.path());
    let chunk = (1 << 20) + 8;
    store.write(2, |writer| writer.write_all(&content(3 << 20))).expect("writes");
    let path = files(folder.path(), "state").remove(0);
    let good = fs::read(&path).expect("reads");
    let piece = |number: usize| &good[64 + number * chunk..64 + (number + 1) * chunk];
    let trailer = &good[64 + 3 * chunk..];
    let swapped = [&good[..64], piece(1), piece(0), piece(2), trailer].concat();
    let left_out = [&good[..64], piece(0), piece(1), trailer].concat();
    let repeated = [&good[..64], piece(0), piece(0), piece(2), trailer].concat();
    for damaged in [swapped, left_out, repeated] {
        fs::write(&path, damaged).expect("writes");
        assert!(matches!(read(&store, 2), Err(LedgerError::Damaged { .. })));
    }
}

#[test]
fn a_reader_that_has_failed_fails_again() {
    let folder = chain::folder();
    let store = store(folder.path());
    store.write(2, |writer| writer.write_all(&content((1 << 20) + 100))).expect("writes");
    let path = files(folder.path(), "state").remove(0);
    let mut bytes = fs::read(&path).expect("reads");
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    fs::write(&path, bytes).expect("writes");
    let mut reader = store.read(2).expect("the head is good");
    let mut taken = vec![0; 1 << 20];
    reader.read_exact(&mut taken).expect("the first chunk is good");
    assert!(reader.read(&mut [0; 8]).is_err());
    assert!(reader.read(&mut [0; 8]).is_err());
    assert!(reader.finish().is_err());
}

#[test]
fn another_networks_checkpoint_is_refused() {
    let folder = chain::folder();
    store(folder.path()).write(5, |writer| writer.write_all(b"state")).expect("writes");
    let error = CheckpointStore::open(folder.path(), sha256(&[b"another charter"])).err().expect("refused");
    assert!(matches!(error, LedgerError::OtherLedger { .. }), "{error}");
}

#[test]
fn a_failure_while_writing_leaves_the_others() {
    let folder = chain::folder();
    let faults = Arc::new(Faults::default());
    let store =
        CheckpointStore::open_with(folder.path(), network(), Some(Arc::clone(&faults))).expect("opens");
    store.write(1, |writer| writer.write_all(b"first")).expect("writes");
    store.write(2, |writer| writer.write_all(b"second")).expect("writes");
    for space in [0, 70, (1 << 20) + 80, (2 << 20) - 5, (2 << 20) + 100] {
        faults.leave_space(space);
        let error = store.write(3, |writer| writer.write_all(&content(2 << 20))).expect_err("no space");
        assert!(matches!(error, LedgerError::DiskFull { .. }), "{space}: {error}");
    }
    faults.leave_space(u64::MAX);
    faults.fail_flushes(true);
    assert!(matches!(store.write(3, |_| Ok(())), Err(LedgerError::Io { action: "flush", .. })));
    faults.fail_flushes(false);
    let error = store.write(3, |_| Err(io::Error::other("the state is gone"))).expect_err("reported");
    assert!(error.to_string().contains("the state is gone"));
    assert_eq!(store.newest(), [2, 1]);
    assert_eq!(files(folder.path(), "tmp").len(), 0);
    assert_eq!(read(&store, 1).expect("reads"), b"first");
    store.write(3, |writer| writer.write_all(b"third")).expect("writes");
    assert_eq!(store.newest(), [3, 2]);
}

#[test]
fn the_newest_that_is_certified_stays_until_a_newer_one_is() {
    let folder = chain::folder();
    let open = store(folder.path());
    let write = |height: u64| open.write(height, |writer| writer.write_all(b"x")).expect("writes");
    for height in [1, 2] {
        write(height);
    }
    open.certify(1, b"proved").expect("it is there");
    for height in [3, 4] {
        write(height);
    }
    assert_eq!((open.newest(), open.certified()), (vec![4, 3, 1], vec![1]));
    let again = store(folder.path());
    assert_eq!((again.newest(), again.certified()), (vec![4, 3, 1], vec![1]));
    assert_eq!(again.certificate(1).expect("reads").as_deref(), Some(b"proved".as_slice()));
    assert_eq!(again.certificate(4).expect("reads"), None);
    again.certify(4, b"too").expect("it is there");
    assert_eq!((again.newest(), again.certified()), (vec![4, 3], vec![4]));
    assert!(matches!(again.certify(1, b"gone"), Err(LedgerError::NoCheckpoint { .. })));
    again.remove_after(3).expect("removes");
    assert!(again.certified().is_empty() && again.newest() == [3]);
    assert!(files(folder.path(), "certificate").is_empty(), "they go with their checkpoints");
    again.remove(3).expect("removes");
    assert!(files(folder.path(), "state").is_empty());
}

#[test]
fn a_certificate_does_not_wait_for_a_checkpoint_that_is_being_written() {
    let folder = chain::folder();
    let store = store(folder.path());
    for height in [1, 2] {
        store.write(height, |writer| writer.write_all(b"x")).expect("writes");
    }
    // On the thread that writes: waiting would last for ever.
    let written = store.write(3, |writer| {
        store.certify(2, b"proved").expect("it is there");
        writer.write_all(b"x")
    });
    written.expect("writes");
    assert_eq!((store.newest(), store.certified()), (vec![3, 2], vec![2]));
}
