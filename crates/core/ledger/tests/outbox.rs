//! Net changes of blocks on the disk: what is found again after restarts, torn ends, bounds and a ledger that lost its tail.

use crypto::{Digest, sha256};
use ledger::{BlockNetChanges, NetChange, Outbox};
use std::fs;
use std::path::{Path, PathBuf};
use types::{Key, Row, TableId, Value};

const NO_BOUND: u64 = u64::MAX;

fn charter() -> Digest {
    sha256(&[b"charter"])
}

fn open(folder: &Path, newest: u64) -> Outbox {
    Outbox::open(folder, charter(), newest, NO_BOUND).expect("opens")
}

/// A block that changes row 1 of table 7 and takes row 2 away.
fn block(height: u64, text: &str) -> BlockNetChanges {
    let key = |number| Key::encode(&[Value::BigInt(number)]).expect("a short key");
    let row = |height: u64| -> Row { [Value::BigInt(height as i64), Value::text(text)].into() };
    let change =
        |number, new| NetChange { table: TableId(7), key: key(number), old: Some(row(height - 1)), new };
    let changes = vec![change(1, Some(row(height))), change(2, None)];
    BlockNetChanges { height, reshaped: height.is_multiple_of(5), changes }
}

fn heights(outbox: &Outbox, behind: u64, last: u64) -> Option<Vec<u64>> {
    let blocks = outbox.behind(behind, last, NO_BOUND).expect("read");
    blocks.map(|blocks| blocks.iter().map(|block| block.height).collect())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn changes_come_back_as_they_were_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = open(folder.path(), 3);
    for height in 4..=9 {
        outbox.append(&block(height, "x")).expect("appended");
        // A block that comes again is known.
        outbox.append(&block(height, "again")).expect("known");
    }
    let check = |outbox: &Outbox| {
        let found = outbox.behind(5, 8, NO_BOUND).expect("read").expect("all are here");
        assert_eq!(found, [6, 7, 8].map(|height| block(height, "x")));
        assert_eq!(heights(outbox, 9, 9), Some(vec![]), "there is nothing behind the newest");
        assert_eq!(heights(outbox, 9, 12), None, "blocks 10 to 12 are not here");
        assert!(outbox.tells_all(5, 9) && outbox.tells_all(9, 9));
        assert!(!outbox.tells_all(4, 9), "block 5 is reshaped");
        assert!(!outbox.tells_all(5, 10) && !outbox.tells_all(2, 4), "not all are here");
        assert_eq!(heights(outbox, 3, 99), Some(vec![4, 5, 6, 7, 8, 9]));
        assert_eq!(heights(outbox, 2, 99), None, "block 3 is not here");
        assert_eq!(outbox.tip(), 9);
        let few = outbox.behind(3, 9, 1).expect("read").expect("all are here");
        assert_eq!(few.len(), 1, "one block is given however large");
    };
    check(&outbox);
    drop(outbox);
    check(&open(folder.path(), 9));
}

#[test]
fn blocks_that_the_ledger_lost_are_forgotten_and_those_that_it_has_alone_begin_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = open(folder.path(), 0);
    (1..=6).for_each(|height| outbox.append(&block(height, "x")).expect("appended"));
    outbox.take_back(4).expect("taken back");
    assert_eq!((outbox.tip(), heights(&outbox, 2, 9)), (4, Some(vec![3, 4])));
    outbox.append(&block(5, "other")).expect("appended");
    assert_eq!(outbox.behind(4, 9, NO_BOUND).expect("read"), Some(vec![block(5, "other")]));
    drop(outbox);
    // The ledger is at 8, and the changes of 6 to 8 are nowhere.
    let outbox = open(folder.path(), 8);
    assert_eq!((outbox.tip(), heights(&outbox, 5, 8)), (8, None));
    outbox.append(&block(9, "x")).expect("appended");
    assert_eq!(heights(&outbox, 8, 9), Some(vec![9]));
    // A node that has joined from a checkpoint goes on further up.
    outbox.append(&block(20, "x")).expect("appended");
    assert_eq!((heights(&outbox, 8, 20), heights(&outbox, 19, 20)), (None, Some(vec![20])));
}

#[test]
fn torn_and_damaged_ends_are_cut_and_a_block_with_a_changed_byte_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = open(folder.path(), 0);
    (1..=3).for_each(|height| outbox.append(&block(height, "x")).expect("appended"));
    let path = files(folder.path()).remove(0);
    let whole = fs::read(&path).expect("read");
    let mut flipped = whole.clone();
    let position = flipped.len() - 3;
    flipped[position] ^= 1;
    fs::write(&path, &flipped).expect("written");
    assert_eq!(heights(&outbox, 2, 3), None, "the checksum is another one");
    assert_eq!(heights(&outbox, 0, 2), Some(vec![1, 2]), "the others are whole");
    drop(outbox);
    for length in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..length]).expect("written");
        let outbox = open(folder.path(), 2);
        let found = outbox.behind(0, 2, NO_BOUND).expect("no error");
        assert!(found.is_none() || found == Some(vec![block(1, "x"), block(2, "x")]), "{length}");
        drop(outbox);
        fs::write(&path, &whole).expect("written");
    }
    let other = sha256(&[b"another ledger"]);
    let outbox = Outbox::open(folder.path(), other, 3, NO_BOUND).expect("opens");
    assert_eq!(heights(&outbox, 0, 3), None, "they are another ledger's");
}

#[test]
fn what_was_taken_and_what_is_too_much_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "x".repeat(3 << 20);
    let outbox = Outbox::open(folder.path(), charter(), 0, 60 << 20).expect("opens");
    (1..=4).for_each(|height| outbox.append(&block(height, &text)).expect("appended"));
    assert!(files(folder.path()).len() >= 2);
    outbox.taken(3).expect("removed");
    assert_eq!((heights(&outbox, 0, 9), heights(&outbox, 3, 9)), (None, Some(vec![4])));
    (5..=20).for_each(|height| outbox.append(&block(height, &text)).expect("appended"));
    assert_eq!(heights(&outbox, 4, 20), None, "more than 60 MB are not kept");
    assert_eq!(heights(&outbox, 19, 20), Some(vec![20]));
    let bytes: u64 = files(folder.path()).iter().map(|path| path.metadata().expect("a file").len()).sum();
    assert!(bytes < 80 << 20, "{bytes}");
}
