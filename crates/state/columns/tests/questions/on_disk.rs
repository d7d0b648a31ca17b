//! Stores that come back have columns, and the newest one is that with columns.

use crate::world::{TYPES, apply, catalog, check, image, row, table};
use columns::WithColumns;
use crypto::Digest;
use disk::{Disk, DiskOptions};
use rand::SeedableRng;
use rand::rngs::StdRng;
use state::{BlockEnd, CheckpointHeader, CheckpointProgress, ResumePoint, Snapshot, Store, Stores, Version};
use std::path::Path;
use std::sync::Arc;
use types::Table;

fn open(folder: &Path) -> (WithColumns, Arc<Disk>) {
    let disk = Arc::new(Disk::open(folder, DiskOptions::default()).unwrap());
    (WithColumns::new(disk.clone(), 1 << 30), disk)
}

fn end_block(store: &dyn Store) {
    let [ledger, state_digest, outcome] = [1, 2, 3].map(|byte| Digest([byte; 32]));
    let header = CheckpointHeader { ledger, height: store.version().height(), state_digest, outcome };
    let point = ResumePoint { header, progress: CheckpointProgress { last: 0, rows: 0 } };
    store
        .end_block(BlockEnd {
            point,
            admitted: Vec::new(),
            is_resumable: true,
            is_checkpoint: false,
            is_due: false,
        })
        .unwrap();
}

fn ask(snapshot: &dyn Snapshot, table: &Table) {
    assert!(check(snapshot, table, &[0, 3, 11]));
}

#[test]
fn a_store_that_is_begun_or_taken_up_has_columns() {
    let (folder, made, mut random) =
        (tempfile::tempdir().unwrap(), table(1, &TYPES), StdRng::seed_from_u64(1));
    let mut images = |numbers: std::ops::Range<i64>| {
        numbers.map(|number| image(1, number, Some(row(number, &TYPES, &mut random)))).collect::<Vec<_>>()
    };
    let (stores, disk) = open(folder.path());
    assert!(stores.newest().is_none());
    let mut filling = stores.begin(Version::GENESIS, catalog(std::slice::from_ref(&made))).unwrap();
    filling.add(&images(0..100)).unwrap();
    let store = filling.finish().unwrap();
    ask(stores.newest().unwrap().snapshot().as_ref(), &made);
    apply(stores.newest().unwrap().as_ref(), images(50..150));
    ask(store.snapshot().as_ref(), &made);
    disk.recorded(1);
    end_block(store.as_ref());
    assert_eq!(store.durable_point(), Ok(Some(1)));
    // Somebody may have the store without its columns; what he does there is not noted by anybody.
    let bare = disk.newest().unwrap();
    drop(store);
    assert!(stores.newest().unwrap().snapshot().columns(&made, &[0]).unwrap().is_none());
    drop((bare, stores, disk));

    let (stores, _disk) = open(folder.path());
    let store = stores.reopen(1).unwrap().unwrap().state;
    assert!(Arc::ptr_eq(&store, &stores.newest().unwrap()));
    ask(store.snapshot().as_ref(), &made);
    apply(store.as_ref(), images(120..200));
    ask(store.snapshot().as_ref(), &made);
    drop(store);
    assert!(stores.newest().is_none(), "nobody has it");
}
