//! The history of rows on the disk: what is found again after restarts, torn ends, lost indexes and a ledger that lost its
//! tail.

use crypto::{Digest, sha256};
use ledger::{LedgerError, RecordedRow, RowHistory, RowVersion};
use std::fs;
use std::path::Path;
use types::{Key, Principal, Row, TableId, TransactionId, Value};

const NO_BOUND: u64 = u64::MAX;

fn charter() -> Digest {
    sha256(&[b"charter"])
}

fn open(folder: &Path, newest: u64) -> RowHistory {
    RowHistory::open(folder, charter(), newest, NO_BOUND).expect("opens")
}

fn key(number: i64) -> Key {
    Key::encode(&[Value::BigInt(number)]).expect("a short key")
}

fn transaction(height: u64, index: u32) -> TransactionId {
    TransactionId(sha256(&[&height.to_le_bytes(), &index.to_le_bytes()]))
}

/// A block that sets row 1 of table 7 to its height, in a transaction of the role `ann`, and then deletes row 2.
fn append(history: &RowHistory, height: u64, text: &str) {
    let row: Row = [Value::BigInt(1), Value::text(text)].into();
    let principal = Principal::new(3, "ann");
    let (one, two) = (key(1), key(2));
    let of = |index, key, value| RecordedRow {
        index,
        transaction: transaction(height, index),
        principal: &principal,
        table: TableId(7),
        key,
        existed: height > 1,
        value,
    };
    history.append(height, [of(0, &one, Some(&row)), of(4, &two, None)]).expect("appended");
}

fn heights(history: &RowHistory, number: i64) -> Vec<u64> {
    let versions = history.versions(TableId(7), &key(number)).expect("read");
    versions.iter().map(|version| version.height).collect()
}

#[test]
fn changes_are_found_by_row_and_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = open(folder.path(), 0);
    assert_eq!(history.tip(), 0);
    for height in 1..=3 {
        append(&history, height, "x");
        // A block that comes again is known.
        append(&history, height, "again");
    }
    let check = |history: &RowHistory| {
        assert_eq!(history.tip(), 3);
        assert_eq!(heights(history, 1), [1, 2, 3]);
        assert!(heights(history, 3).is_empty());
        assert!(history.versions(TableId(8), &key(1)).expect("read").is_empty());
        let versions = history.versions(TableId(7), &key(2)).expect("read");
        let expected = RowVersion {
            height: 2,
            index: 4,
            transaction: transaction(2, 4),
            principal: Principal::new(3, "ann"),
            existed: true,
            value: None,
        };
        assert_eq!(versions[1], expected);
        let first = &history.versions(TableId(7), &key(1)).expect("read")[0];
        assert_eq!(
            (first.existed, first.value.clone()),
            (false, Some([Value::BigInt(1), Value::text("x")].into()))
        );
    };
    check(&history);
    drop(history);
    let history = open(folder.path(), 3);
    check(&history);
    append(&history, 4, "y");
    assert_eq!(heights(&history, 1), [1, 2, 3, 4]);
}

#[test]
fn what_the_ledger_has_lost_is_taken_off_and_a_torn_end_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = open(folder.path(), 0);
    (1..=5).for_each(|height| append(&history, height, "x"));
    drop(history);
    let history = open(folder.path(), 3);
    assert_eq!((history.tip(), heights(&history, 1)), (3, vec![1, 2, 3]));
    // Another block than the lost one stands there now.
    append(&history, 4, "other");
    drop(history);
    let path = folder.path().join(format!("rows-{:020}.log", 1));
    let whole = fs::read(&path).expect("read");
    for cut in 1..whole.len() {
        fs::write(&path, &whole[..whole.len() - cut]).expect("written");
        let history = open(folder.path(), 4);
        let tip = history.tip();
        assert!(tip < 4, "{cut}");
        assert_eq!(heights(&history, 1), (1..=tip).collect::<Vec<u64>>(), "{cut}");
        append(&history, tip + 1, "again");
        assert_eq!(heights(&history, 2), (1..=tip + 1).collect::<Vec<u64>>(), "{cut}");
    }
    // A damaged byte ends it as a torn end does.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&path, &damaged).expect("written");
    assert!((1..4).contains(&open(folder.path(), 4).tip()));
}

#[test]
fn full_files_get_an_index_which_is_made_again_and_the_oldest_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = open(folder.path(), 0);
    let long = "x".repeat(6 * 1024 * 1024);
    (1..=10).for_each(|height| append(&history, height, &long));
    assert_eq!(heights(&history, 1), (1..=10).collect::<Vec<u64>>());
    drop(history);
    let files = |kind: &str| {
        let names = fs::read_dir(folder.path()).expect("read").map(|file| file.expect("a file").path());
        let mut files: Vec<_> =
            names.filter(|path| path.extension().is_some_and(|found| found == kind)).collect();
        files.sort();
        files
    };
    assert_eq!((files("log").len(), files("idx").len()), (4, 3));
    fs::remove_file(&files("idx")[0]).expect("removed");
    fs::write(&files("idx")[1], b"EnTxRow2 but no index").expect("written");
    let history = open(folder.path(), 10);
    assert_eq!((history.tip(), heights(&history, 2)), (10, (1..=10).collect()));
    assert_eq!(files("idx").len(), 3);
    drop(history);
    // A ledger that has lost much takes whole files with it.
    let history = open(folder.path(), 4);
    assert_eq!((history.tip(), heights(&history, 1)), (4, vec![1, 2, 3, 4]));
    drop(history);
    let history = RowHistory::open(folder.path(), charter(), 4, 30 * 1024 * 1024).expect("opens");
    (5..=14).for_each(|height| append(&history, height, &long));
    let kept = heights(&history, 1);
    assert!(kept.first().is_some_and(|first| *first > 1) && kept.last() == Some(&14), "{kept:?}");
}

#[test]
fn a_history_begins_where_its_ledger_was_and_is_of_one_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(open(folder.path(), 41).tip(), 41);
    // Whatever was torn off since: it has to be made again from there.
    let history = open(folder.path(), 60);
    assert_eq!(history.tip(), 41);
    append(&history, 42, "x");
    drop(history);
    assert_eq!(open(folder.path(), 60).tip(), 42);
    let other = RowHistory::open(folder.path(), sha256(&[b"other"]), 60, NO_BOUND);
    assert!(matches!(other, Err(LedgerError::OtherLedger { .. })));
}

#[test]
fn what_old_blocks_did_is_forgotten_in_whole_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = open(folder.path(), 0);
    for height in 1..=3 {
        append(&history, height, "x");
    }
    // Blocks up to 3 are in the file that is being written: it ends, and goes once another one goes on.
    history.forget_below(3).expect("forgets");
    assert_eq!((heights(&history, 1), history.tip()), (vec![1, 2, 3], 3));
    history.forget_below(100).expect("nothing goes on behind it");
    drop(history);
    let history = open(folder.path(), 3);
    assert_eq!((heights(&history, 1), history.tip()), (vec![1, 2, 3], 3));
    history.forget_below(2).expect("forgets");
    append(&history, 4, "x");
    append(&history, 5, "x");
    history.forget_below(3).expect("block 3 is in the first file");
    assert_eq!(heights(&history, 1), [1, 2, 3, 4, 5]);
    history.forget_below(4).expect("forgets");
    assert_eq!((heights(&history, 1), history.tip()), (vec![4, 5], 5));
    drop(history);
    let history = open(folder.path(), 5);
    assert_eq!((heights(&history, 1), history.tip()), (vec![4, 5], 5));
    append(&history, 6, "x");
    assert_eq!(heights(&history, 1), [4, 5, 6]);
}

#[test]
fn what_a_transaction_did_is_taken_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = open(folder.path(), 0);
    (1..=3).for_each(|height| append(&history, height, "somebody's name"));
    assert_eq!(history.redact(2, &transaction(2, 0)).expect("redacts"), 1);
    assert_eq!(history.redact(2, &transaction(2, 0)).expect("looks"), 0, "it is gone");
    assert_eq!(history.redact(1, &transaction(2, 0)).expect("looks"), 0, "not of that block");
    assert_eq!(history.redact(9, &transaction(9, 0)).expect("looks"), 0, "there is no such block");
    let check = |history: &RowHistory, last: u64| {
        assert_eq!(history.tip(), last);
        assert_eq!(heights(history, 1), (1..=last).filter(|height| *height != 2).collect::<Vec<_>>());
        assert_eq!(heights(history, 2), (1..=last).collect::<Vec<_>>(), "another transaction's");
    };
    check(&history, 3);
    append(&history, 4, "x");
    check(&history, 4);
    for height in [1, 3] {
        assert_eq!(history.redact(height, &transaction(height, 0)).expect("redacts"), 1);
    }
    for entry in fs::read_dir(folder.path()).expect("a folder") {
        let content = fs::read(entry.expect("an entry").path()).expect("reads");
        assert!(!content.windows(15).any(|part| part == b"somebody's name"));
    }
    drop(history);
    // An end in the middle leaves a file without its index.
    for entry in fs::read_dir(folder.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "idx") {
            fs::remove_file(path).expect("there");
        }
    }
    let history = open(folder.path(), 4);
    assert_eq!((history.tip(), heights(&history, 1)), (4, vec![4]));
    assert_eq!(heights(&history, 2), [1, 2, 3, 4]);
}
