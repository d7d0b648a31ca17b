//! Folders that a newer program has written: each file says so, and nothing in the folder is touched.
#![allow(missing_docs)]

mod chain;

use chain::{build, files, folder, network, open};
use crypto::{Digest, sha256};
use ledger::{Anchor, CheckpointStore, Ledger, LedgerError, RowHistory};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use types::{Certificate, CheckpointRoot};

/// Writes another format version into a file's head, with the checksum of a good one. `checksum`: where that is; `body`: what
/// follows it is covered too.
fn set_version(path: &Path, version: u32, checksum: usize, body: bool) {
    let mut bytes = std::fs::read(path).expect("reads");
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..checksum]);
    if body {
        crc.update(&bytes[checksum + 4..]);
    }
    bytes[checksum..checksum + 4].copy_from_slice(&crc.finalize().to_le_bytes());
    std::fs::write(path, bytes).expect("writes");
}

/// What is in a folder; who has it open is no matter.
fn content(folder: &Path) -> BTreeMap<PathBuf, Digest> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let kept = entries.filter(|path| path.is_file() && !path.ends_with("LOCK"));
    kept.map(|path| (path.clone(), sha256(&[&std::fs::read(&path).expect("reads")]))).collect()
}

/// A file of a ledger, and where the checksum of its head stands.
type Choose = fn(&Path) -> (PathBuf, usize);

fn assert_newer(error: Option<LedgerError>, file: &Path, expected: u32) {
    let error = error.expect("it is not opened");
    let LedgerError::Version { path, expected: known, found } = &error else { panic!("{error}") };
    assert_eq!((path.as_path(), *known, *found), (file, expected, expected + 1));
    let text = error.to_string();
    assert!(text.contains("install that version of Entente, or a newer one; nothing was changed"), "{text}");
}

#[test]
fn a_ledger_of_a_newer_format_is_left_alone() {
    // The file that names the ledger, a finished file of blocks, the last one.
    let choose: [Choose; 3] = [
        |folder| (folder.join("LEDGER"), 44),
        |folder| (files(folder, "log")[0].clone(), 60),
        |folder| (files(folder, "log").pop().expect("a file"), 60),
    ];
    for choose in choose {
        let folder = folder();
        build(folder.path(), 4_000, 30, 5);
        assert!(files(folder.path(), "log").len() > 2, "several files");
        let (path, checksum) = choose(folder.path());
        set_version(&path, 3, checksum, false);
        let before = content(folder.path());
        assert_newer(Ledger::open(folder.path(), network()).err(), &path, 2);
        assert_eq!(content(folder.path()), before, "{}", path.display());
        set_version(&path, 2, checksum, false);
        assert_eq!(open(folder.path(), 4_000).1.tip.map(|(height, _)| height), Some(30));
    }
}

#[test]
fn an_anchor_of_a_newer_format_is_left_alone() {
    let records = build(folder().path(), 4_000, 20, 5);
    let folder = folder();
    let (ledger, _) = open(folder.path(), 4_000);
    let last = &records[19];
    let outcome = last.outcome.header.clone();
    let (height, digest) = (outcome.height, outcome.digest());
    let statement =
        CheckpointRoot { ledger: network(), height, outcome: digest, state_root: Digest([7; 32]) };
    let checkpoint = Certificate { statement, signatures: Vec::new() };
    let (header, certificate) = (last.block.header.clone(), last.certificate.to_vec());
    let anchor = Anchor { header, certificate, outcome, checkpoint, handovers: Vec::new() };
    ledger.begin_behind(anchor).expect("above the tip");
    drop(ledger);
    let path = folder.path().join("ANCHOR");
    set_version(&path, 3, 48, true);
    let before = content(folder.path());
    assert_newer(Ledger::open(folder.path(), network()).err(), &path, 2);
    assert_eq!(content(folder.path()), before);
}

#[test]
fn a_checkpoint_of_a_newer_format_is_left_alone() {
    let folder = folder();
    let store = CheckpointStore::open(folder.path(), network()).expect("opens");
    store.write(9, |writer| writer.write_all(b"tables")).expect("writes");
    let path = files(folder.path(), "state").remove(0);
    set_version(&path, 3, 60, false);
    let before = content(folder.path());
    assert_newer(CheckpointStore::open(folder.path(), network()).err(), &path, 2);
    assert_eq!(content(folder.path()), before);
}

/// The last character of what a file of changes begins with counts its formats.
#[test]
fn a_history_of_rows_of_a_newer_format_is_left_alone() {
    let folder = folder();
    let history = RowHistory::open(folder.path(), network(), 0, u64::MAX).expect("opens");
    history.append(1, []).expect("appended");
    drop(history);
    let path = files(folder.path(), "log").remove(0);
    let mut bytes = std::fs::read(&path).expect("reads");
    assert_eq!(&bytes[..8], b"EnTxRow1");
    bytes[7] = b'2';
    std::fs::write(&path, bytes).expect("writes");
    let before = content(folder.path());
    assert_newer(RowHistory::open(folder.path(), network(), 1, u64::MAX).err(), &path, 1);
    assert_eq!(content(folder.path()), before);
}
