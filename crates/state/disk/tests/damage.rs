//! Files that are damaged, and folders of an earlier process.

use disk::{Disk, DiskOptions, RowsIn};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{AfterImage, KeyRange, RowId, Snapshot, Store, StoreError, Stores, Version};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Key, Row, TableId, Value};

const TABLE: TableId = TableId(1);
/// So little that reading starts at the disk again and again.
const LITTLE: DiskOptions = DiskOptions { rows_in: RowsIn::Disk, memory_bytes: 1_000 };

fn image(number: i64, text: &str) -> AfterImage {
    let key = Key::encode([&Value::BigInt(number)]).expect("a key");
    AfterImage {
        row: RowId { table: TABLE, key },
        value: Some(Arc::from([Value::BigInt(number), Value::text(text)])),
    }
}

fn filled(folder: &Path) -> Arc<dyn Store> {
    let store = Disk::open(folder, LITTLE).expect("a folder").create(Arc::default()).expect("an empty store");
    let text = "x".repeat(50);
    for block in 0..4 {
        let rows: Vec<AfterImage> =
            (block * 1_000..(block + 1) * 1_000).map(|number| image(number, &text)).collect();
        store.apply(Version::after_batch(block as u64 + 1, 0), &rows, None).expect("there is room");
    }
    store.durable_point().expect("there is room");
    store
}

/// All rows, by a scan and one by one.
fn read(snapshot: &dyn Snapshot) -> Result<(Vec<Row>, Vec<Option<Row>>), StoreError> {
    let mut rows = Vec::new();
    snapshot.scan(TABLE, &KeyRange::ALL, false, &mut |_, row| {
        rows.push(row.clone());
        ControlFlow::Continue(())
    })?;
    let asked: Vec<RowId> = (0..4_100).step_by(17).map(|number| image(number, "").row).collect();
    Ok((rows, snapshot.get_many(&asked)?))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}

#[test]
fn a_flipped_byte_is_an_error_or_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    let expected = read(store.snapshot().as_ref()).expect("nothing is damaged yet");
    assert_eq!((expected.0.len(), expected.1.iter().flatten().count()), (4_000, 236));
    let mut random = StdRng::seed_from_u64(1);
    let (mut errors, mut flips) = (0, 0);
    for file in files(folder.path()) {
        let bytes = std::fs::read(&file).expect("it is there");
        for _ in 0..bytes.len().min(60) {
            let mut damaged = bytes.clone();
            damaged[random.random_range(0..bytes.len())] ^= 1 << random.random_range(0..8);
            // In place: the store has the file open.
            std::fs::write(&file, &damaged).expect("it is written");
            match read(store.snapshot().as_ref()) {
                Ok(found) => assert_eq!(found, expected, "{}", file.display()),
                Err(error) => {
                    let folder = folder.path().display().to_string();
                    assert!(error.to_string().contains(&folder), "it names the folder: {error}");
                    errors += 1;
                }
            }
            flips += 1;
            std::fs::write(&file, &bytes).expect("it is written");
        }
    }
    assert!(errors > flips / 4, "{errors} errors of {flips} flipped bytes");
    assert_eq!(read(store.snapshot().as_ref()), Ok(expected), "it is well again");
}

#[test]
fn stores_of_an_earlier_process_go_when_another_one_is_settled_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["store-7", "store-x", "other"] {
        std::fs::create_dir_all(folder.path().join(name).join("below")).expect("a folder");
    }
    let disk = Disk::open(folder.path(), LITTLE).expect("a folder");
    let left = |name: &str| folder.path().join(name).exists();
    let store = disk.create(Arc::default()).expect("an empty store");
    assert_eq!(["store-7", "store-8", "store-x", "other"].map(left), [true; 4]);
    disk.settle().expect("it is removed");
    assert_eq!(["store-7", "store-8", "store-x", "other"].map(left), [false, true, true, true]);
    let snapshot = store.snapshot();
    drop(store);
    let other = disk.create(Arc::default()).expect("an empty store");
    disk.settle().expect("it is removed");
    assert!(left("store-8"), "somebody reads it");
    drop(snapshot);
    assert!(!left("store-8"), "it goes with the last who reads it");
    drop(other);
    assert!(left("store-9"), "the next process takes it up");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("it is written");
    let error = Disk::open(&file, LITTLE).err().expect("a file is no folder");
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}
