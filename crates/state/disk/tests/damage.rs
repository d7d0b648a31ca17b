//! Files that are damaged, and folders of an earlier process.

mod one_table;

use disk::{Disk, DiskOptions, RowsIn};
use one_table::TABLE;
use proofs::state::TreeShape;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{
    AfterImage, BlockEnd, CheckpointHeader, CheckpointProgress, KeyRange, LiveRequests, Reopened,
    ResumePoint, RowId, Snapshot, Store, StoreError, Stores, Version,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Key, Row, Value};

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
    let store =
        Disk::open(folder, LITTLE).expect("a folder").create(one_table::catalog()).expect("an empty store");
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

/// Files that are one in both folders are one in the copy, too.
fn copy_with_links(from: &Path, to: &Path) {
    let mut known: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for file in files(from) {
        let copy = to.join(file.strip_prefix(from).expect("it is in there"));
        std::fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        match known.entry(std::fs::metadata(&file).expect("it is there").ino()) {
            Entry::Occupied(first) => std::fs::hard_link(first.get(), copy).expect("it is new"),
            Entry::Vacant(first) => {
                std::fs::copy(&file, &copy).expect("it is there");
                first.insert(copy);
            }
        }
    }
}

/// Blocks, a checkpoint whose tree is kept, and blocks behind that whose end is durable.
fn with_checkpoint(folder: &Path, rows_in: RowsIn) {
    let stores = Disk::open(folder, DiskOptions { rows_in, ..LITTLE }).expect("a folder");
    stores.recorded(u64::MAX);
    let store = stores.create(one_table::catalog()).expect("an empty store");
    for height in 1..=6 {
        let rows: Vec<AfterImage> = (0..500).map(|number| image(number, &format!("{height}"))).collect();
        store.apply(Version::after_batch(height, 0), &rows, None).expect("there is room");
        let header = CheckpointHeader { height, ..CheckpointHeader::default() };
        let point = ResumePoint { header, progress: CheckpointProgress::default() };
        let is_checkpoint = height == 3;
        let end = BlockEnd { point, admitted: Vec::new(), is_resumable: true, is_checkpoint, is_due: false };
        store.end_block(end).expect("there is room");
        if is_checkpoint {
            let live = LiveRequests::new().content();
            let kept = store.keep_checkpoint(&header, store.snapshot(), live, TreeShape::Groups);
            assert!(kept.expect("there is room").is_some());
        }
    }
    assert_eq!(store.durable_point(), Ok(Some(6)));
    stores.settle().expect("nothing else was left");
}

fn heights(stores: &dyn Stores) -> Vec<u64> {
    let left = stores.left().expect("the folder can be read");
    left.into_iter().map(|point| point.header.height).collect()
}

fn rows_at(stores: &dyn Stores, height: u64) -> Result<Option<Vec<Row>>, StoreError> {
    let Some(Reopened { state, .. }) = stores.reopen(height)? else { return Ok(None) };
    Ok(Some(read(state.snapshot().as_ref())?.0))
}

fn expected_at(height: u64) -> Vec<Row> {
    let rows = (0..500).map(|number| image(number, &format!("{height}")).value);
    rows.map(|row| row.expect("it is there")).collect()
}

/// What one node does after another: it checks its files, or meets the damage; then it takes up what is whole.
#[test]
fn a_state_with_a_flipped_byte_is_not_taken_up_once_somebody_has_met_it() {
    let everything = &mut |_| ControlFlow::Continue(());
    let mut random = StdRng::seed_from_u64(2);
    for rows_in in [RowsIn::Disk, RowsIn::Memory] {
        let whole = tempfile::tempdir().expect("a folder");
        with_checkpoint(whole.path(), rows_in);
        let open = |folder: &Path| Disk::open(folder, DiskOptions { rows_in, ..LITTLE });
        let tables: Vec<PathBuf> = files(whole.path());
        assert!(tables.iter().any(|path| path.starts_with(whole.path().join("checkpoint-3-1"))));
        let (mut found, mut refused, mut fell_back) = (0, 0, 0);
        for file in &tables {
            let relative = file.strip_prefix(whole.path()).expect("it is in there");
            for _ in 0..8 {
                let copy = tempfile::tempdir().expect("a folder");
                copy_with_links(whole.path(), copy.path());
                let damaged = copy.path().join(relative);
                let mut bytes = std::fs::read(&damaged).expect("it is there");
                if bytes.is_empty() {
                    continue;
                }
                let place = random.random_range(0..bytes.len());
                bytes[place] ^= 1 << random.random_range(0..8);
                std::fs::write(&damaged, bytes).expect("it is written");
                let stores = open(copy.path()).expect("a folder");
                let before = heights(&stores);
                refused += usize::from(before.len() < 2);
                for height in before {
                    // Wherever it is taken up it is right.
                    if let Ok(Some(rows)) = rows_at(&stores, height) {
                        assert!(rows == expected_at(height), "height {height}, {}", damaged.display());
                    }
                }
                if let Err(error) = stores.check_files(everything) {
                    let folder = copy.path().display().to_string();
                    assert!(error.to_string().contains(&folder), "it names the file: {error}");
                    found += 1;
                }
                drop(stores);
                let stores = open(copy.path()).expect("a folder");
                let after = heights(&stores);
                for height in &after {
                    let rows = rows_at(&stores, *height).expect("what is left is whole");
                    assert!(rows == Some(expected_at(*height)), "height {height}, {}", damaged.display());
                }
                stores.settle().expect("it can be removed");
                assert_eq!(stores.check_files(everything), Ok(()), "it is not found again and again");
                fell_back += usize::from(after == [3]);
            }
        }
        assert!(found > 0 && refused > 0 && fell_back > 0, "{found} {refused} {fell_back}");
    }
}

#[test]
fn stores_of_an_earlier_process_go_when_another_one_is_settled_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["store-7", "store-x", "other"] {
        std::fs::create_dir_all(folder.path().join(name).join("below")).expect("a folder");
    }
    let disk = Disk::open(folder.path(), LITTLE).expect("a folder");
    let left = |name: &str| folder.path().join(name).exists();
    let store = disk.create(one_table::catalog()).expect("an empty store");
    assert_eq!(["store-7", "store-8", "store-x", "other"].map(left), [true; 4]);
    disk.settle().expect("it is removed");
    assert_eq!(["store-7", "store-8", "store-x", "other"].map(left), [false, true, true, true]);
    let snapshot = store.snapshot();
    drop(store);
    let other = disk.create(one_table::catalog()).expect("an empty store");
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

/// Another process reads a checkpoint while the store goes on, removes it, and is damaged.
#[test]
fn a_checkpoint_is_read_from_links_that_nobody_else_touches() {
    for rows_in in [RowsIn::Disk, RowsIn::Memory] {
        let (folder, copies) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another"));
        with_checkpoint(folder.path(), rows_in);
        // Somebody has it open and writes.
        let stores = Disk::open(folder.path(), DiskOptions { rows_in, ..LITTLE }).expect("a folder");
        let open = stores.reopen(6).expect("it is whole").expect("it was left");
        let before = files(folder.path());
        let copy = copies.path().join("checkpoint");
        let nothing = disk::copied_checkpoint(folder.path(), 6, &copy).expect("it can be listed");
        assert!(nothing.is_none(), "6 is no checkpoint");
        let kept =
            disk::copied_checkpoint(folder.path(), 3, &copy).expect("it is whole").expect("it is there");
        assert_eq!(files(folder.path()), before, "nothing has changed there");
        // It goes, and what is written later is not seen.
        stores.keep_checkpoints(&[6]).expect("it can be removed");
        open.state.apply(Version::after_batch(7, 0), &[image(1, "late")], None).expect("there is room");
        assert!(
            !files(folder.path()).iter().any(|path| path.starts_with(folder.path().join("checkpoint-3-1")))
        );
        assert_eq!(kept.header().height, 3);
        assert_eq!(read(kept.snapshot().as_ref()).expect("it is whole").0, expected_at(3));
        let live = LiveRequests::new().content();
        let whole = state::StateTree::new(kept.snapshot().as_ref(), &live, kept.tree().shape());
        assert_eq!(kept.tree().root(), whole.expect("it is whole").root());
        let gone = disk::copied_checkpoint(folder.path(), 3, &copies.path().join("again"));
        assert!(gone.expect("it can be listed").is_none());
    }
    let (folder, copies) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another"));
    with_checkpoint(folder.path(), RowsIn::Disk);
    let checkpoint = folder.path().join("checkpoint-3-1");
    let whole = disk::copied_checkpoint(folder.path(), 3, &copies.path().join("whole"));
    let root = whole.expect("it is whole").expect("it is there").tree().root();
    let mut found = 0;
    for (number, file) in files(&checkpoint).into_iter().enumerate() {
        let honest = std::fs::read(&file).expect("it is there");
        let mut damaged = honest.clone();
        let Some(byte) = damaged.get_mut(honest.len() / 2) else { continue };
        *byte ^= 4;
        std::fs::write(&file, &damaged).expect("it is written");
        let copy = copies.path().join(format!("copy{number}"));
        let kept = disk::copied_checkpoint(folder.path(), 3, &copy);
        let rows = kept.and_then(|kept| {
            let kept = kept.expect("it is there");
            let nodes = 0..kept.tree().nodes().len();
            let rows = nodes.map(|node| kept.tree().rows(kept.snapshot().as_ref(), node));
            Ok((kept.tree().root(), rows.collect::<Result<Vec<_>, _>>()?.concat()))
        });
        match rows {
            Err(error) => {
                assert!(error.to_string().contains(&copies.path().display().to_string()), "{error}");
                found += 1;
            }
            // Other rows would have another root.
            Ok((found, rows)) if found == root => {
                let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
                assert_eq!(rows, expected_at(3));
            }
            Ok(_) => found += 1,
        }
        std::fs::write(&file, &honest).expect("it is written");
    }
    assert!(found > 0);
}
