//! What every store must do, as tests that one line runs: `state::conformance!(MyStores);` in a test file of the store's crate.
//!
//! Random blocks go to a store and to a plain map ([`crate::PlainState`]), and everything that can be read must be the same: at
//! every version that somebody holds, after reopening from a checkpoint, and from pieces. Roots are compared with those of the
//! plain map, which are computed from all its rows. The seeds are fixed; a failure names its seed.
//!
//! [`FailingStores`] make reads and writes fail, for the tests here and for those of everything that works with a store.

mod checks;
mod coming_back;
mod failing;
mod world;

pub use coming_back::{a_state_comes_back_where_it_was_left, checkpoints_are_kept_as_they_were};
pub use failing::{CAUSE, FILE, FailingStores, Failures, Operation};

use crate::{
    Checkpoint, KeyRange, LiveRequests, Snapshot, StateAssembly, StateOutline, StatePiece, StateTree, Store,
    StoreError, Stores, Version, content_digest, read_checkpoint, write_checkpoint,
};
use checks::{assert_same, certificate, charter, header};
use proofs::state::TreeShape;
use rand::seq::SliceRandom;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use types::TableId;
use world::{KEYS, World, key};

/// The tests of the suite on the stores that an expression makes.
#[macro_export]
macro_rules! conformance {
    ($stores:expr) => {
        $crate::conformance_tests! {
            $stores;
            every_version_that_is_held_shows_its_rows
            versions_that_nobody_holds_are_gone
            a_table_that_was_dropped_is_seen_by_older_versions_only
            a_state_goes_on_behind_a_checkpoint_of_it
            roots_and_proofs_are_those_of_a_full_computation
            a_state_is_put_together_from_pieces
            readers_see_a_batch_whole_or_not_at_all
            what_cannot_be_read_is_an_error_wherever_it_is_met
            what_cannot_be_written_is_an_error
            checkpoints_are_kept_as_they_were
            a_state_comes_back_where_it_was_left
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($stores:expr; $($test:ident)*) => {
        $(
            #[test]
            fn $test() {
                $crate::conformance::$test(::std::sync::Arc::new($stores));
            }
        )*
    };
}

/// Random histories of this number.
const SEEDS: u64 = 12;
/// Blocks of each.
const BLOCKS: u64 = 40;

fn worlds(stores: &dyn Stores) -> impl Iterator<Item = World> {
    (0..SEEDS).map(move |seed| World::new(stores, seed))
}

/// Point reads, many at once, scans both ways over any interval that end anywhere, entries of indexes and counts of rows.
pub fn every_version_that_is_held_shows_its_rows(stores: Arc<dyn Stores>) {
    for mut world in worlds(stores.as_ref()) {
        for _ in 0..BLOCKS {
            world.block();
            let newest = world.store.snapshot();
            world.check(newest.as_ref(), &world.model.clone());
            if let Some((snapshot, model)) = world.held.last().cloned() {
                world.check(snapshot.as_ref(), &model);
            }
        }
        for (snapshot, model) in std::mem::take(&mut world.held) {
            world.check(snapshot.as_ref(), &model);
        }
        assert_eq!(world.store.catalog_digest(), world.model.catalog.digest());
        for table in world.numbers().into_iter().filter(|table| !table.is_index()) {
            let rows = world.model.tables.get(&table).map_or(0, |rows| rows.len() as u64);
            assert_eq!(world.store.rows(table), rows, "rows of table {}", table.0);
        }
    }
}

/// A store keeps the newest version, the one before it, and those that are held, which can be had again.
pub fn versions_that_nobody_holds_are_gone(stores: Arc<dyn Stores>) {
    let mut world = World::new(stores.as_ref(), 1);
    let genesis = world.store.snapshot();
    let blocks = |world: &mut World, count: usize| {
        for _ in 0..count {
            world.block();
            world.held.clear();
        }
    };
    blocks(&mut world, 10);
    let (held, version, model) = (world.store.snapshot(), world.store.version(), world.model.clone());
    blocks(&mut world, 5);
    let again = world.store.snapshot_at(version).expect("somebody holds it");
    world.check(again.as_ref(), &model);
    drop((held, again));
    blocks(&mut world, 3);
    assert!(world.store.snapshot_at(version).is_none(), "nobody holds it any more");
    assert!(world.store.snapshot_at(Version::after_block(world.height)).is_none(), "not yet");
    assert!(world.store.snapshot_at(world.store.version()).is_some(), "the newest one");
    assert!(world.store.snapshot_at(Version::GENESIS).is_some(), "it is still held");
    drop(genesis);
}

/// Its rows go with it, and come to nobody who looks later.
pub fn a_table_that_was_dropped_is_seen_by_older_versions_only(stores: Arc<dyn Stores>) {
    let mut world = World::new(stores.as_ref(), 2);
    while world.store.rows(TableId(1)) == 0 || world.store.rows(TableId(2)) == 0 {
        world.block();
    }
    let (before, model) = (world.store.snapshot(), world.model.clone());
    let mut catalog = types::Catalog::clone(&world.model.catalog);
    catalog.version += 1;
    catalog.tables.retain(|_, table| table.id != TableId(2));
    catalog.indexes.remove(&TableId(2));
    let catalog = Arc::new(catalog);
    world.height += 1;
    world.model.change_catalog(catalog.clone());
    world.store.apply(Version::after_batch(world.height, 0), &[], Some(catalog)).expect("nothing fails here");
    assert_eq!(world.store.rows(TableId(2)), 0);
    for _ in 0..4 {
        let newest = world.store.snapshot();
        world.check(newest.as_ref(), &world.model.clone());
        world.check(before.as_ref(), &model);
        world.block();
    }
}

fn written(snapshot: &dyn Snapshot, height: u64, live: &LiveRequests) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_checkpoint(&header(height), snapshot, &live.content(), &mut bytes).expect("nothing fails here");
    bytes
}

/// A checkpoint has the bytes that one of the plain map has; what is read from it is the same state, which goes on.
pub fn a_state_goes_on_behind_a_checkpoint_of_it(stores: Arc<dyn Stores>) {
    for mut world in worlds(stores.as_ref()) {
        for round in 0..4u64 {
            (0..BLOCKS / 4).for_each(|_| world.block());
            let live = LiveRequests::at(world.height);
            let bytes = written(world.store.snapshot().as_ref(), world.height, &live);
            assert_eq!(bytes, written(&world.model, world.height, &live), "round {round}");
            let read = read_checkpoint(bytes.as_slice(), stores.as_ref()).expect("what was written");
            let Checkpoint { header: found, state, .. } = read;
            assert_eq!((found, state.version()), (header(world.height), Version::after_block(world.height)));
            assert_eq!(written(state.snapshot().as_ref(), world.height, &live), bytes);
            world.go_on_with(state);
            let newest = world.store.snapshot();
            world.check(newest.as_ref(), &world.model.clone());
        }
    }
}

/// The root, and the proof of rows that are there and of those that are not.
pub fn roots_and_proofs_are_those_of_a_full_computation(stores: Arc<dyn Stores>) {
    let charter = charter();
    for mut world in worlds(stores.as_ref()) {
        (0..BLOCKS).for_each(|_| world.block());
        let (live, snapshot) = (LiveRequests::at(world.height).content(), world.store.snapshot());
        let tree = StateTree::new(snapshot.as_ref(), &live, TreeShape::Groups).expect("nothing fails here");
        let full = StateTree::new(&world.model, &live, TreeShape::Groups).expect("a map can be read");
        assert_eq!(tree.root(), full.root());
        let certificate = certificate(&charter, world.height, tree.root());
        for table in world.model.catalog.tables.values() {
            for number in [-1, 0, 1, KEYS / 2, KEYS - 1, KEYS] {
                let proof = tree.prove(snapshot.as_ref(), table.id, &key(number), certificate.clone());
                let proof = proof.expect("nothing fails here").expect("there is such a table");
                let row = world.model.get(table.id, &key(number));
                assert_eq!(proof.verify(&charter), Ok(row.as_ref()), "table {}, key {number}", table.id.0);
            }
        }
    }
}

fn pieces(store: &dyn Store, height: u64, stores: &dyn Stores) -> Result<Checkpoint, String> {
    let (snapshot, live) = (store.snapshot(), LiveRequests::at(height).content());
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let shape = TreeShape::at(snapshot.catalog(), height);
    let tree = StateTree::new(snapshot.as_ref(), &live, shape).map_err(|error| text(&error))?;
    let outline = StateOutline::new(&tree, snapshot.as_ref(), &live);
    let assembly = StateAssembly::new(outline, height, tree.root(), stores);
    let mut assembly = assembly.map_err(|error| text(&error))?;
    let mut missing: Vec<usize> = assembly.missing().collect();
    missing.shuffle(&mut <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(height));
    for number in missing {
        let piece = StatePiece::new(&tree, snapshot.as_ref(), number).map_err(|error| text(&error))?;
        let piece = piece.ok_or("a group without rows")?;
        assembly.add(number, &piece).map_err(|error| text(&error))?;
    }
    assembly.finish(header(height)).map_err(|error| text(&error))
}

/// In any order of pieces, checked one by one.
pub fn a_state_is_put_together_from_pieces(stores: Arc<dyn Stores>) {
    for mut world in worlds(stores.as_ref()) {
        (0..BLOCKS).for_each(|_| world.block());
        let copy = pieces(world.store.as_ref(), world.height, stores.as_ref()).expect("nothing fails here");
        assert_eq!(copy.state.version(), Version::after_block(world.height));
        world.go_on_with(copy.state);
        let newest = world.store.snapshot();
        world.check(newest.as_ref(), &world.model.clone());
        world.block();
        let newest = world.store.snapshot();
        world.check(newest.as_ref(), &world.model.clone());
    }
}

/// While one thread writes, others read.
pub fn readers_see_a_batch_whole_or_not_at_all(stores: Arc<dyn Stores>) {
    let mut world = World::new(stores.as_ref(), 3);
    world.block();
    let (store, done) = (world.store.clone(), AtomicBool::new(false));
    let states = parking_lot::Mutex::new(vec![content_digest(&world.model).expect("a map can be read")]);
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // Also where a check fails: readers that nobody ends would hide that.
        let end = EndReaders(&done);
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    let snapshot = store.snapshot();
                    let found = content_digest(snapshot.as_ref()).expect("nothing fails here");
                    assert!(states.lock().contains(&found), "half a batch");
                    let again = content_digest(snapshot.as_ref()).expect("nothing fails here");
                    assert_eq!(found, again, "a snapshot does not change");
                    reads.fetch_add(1, Relaxed);
                }
            });
        }
        // Readers that have failed read no more.
        for blocks in 0..10_000 {
            if blocks >= 60 && reads.load(Relaxed) >= 60 {
                break;
            }
            // What comes is known before it is there.
            world.block_known(&mut |model| {
                states.lock().push(content_digest(model).expect("a map can be read"));
            });
        }
        drop(end);
    });
    assert!(reads.load(Relaxed) > 0, "the readers have read");
}

struct EndReaders<'a>(&'a AtomicBool);

impl Drop for EndReaders<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Reads one after the other are made to fail until none is left: whatever reads the state says so, and nothing is taken for
/// an answer.
pub fn what_cannot_be_read_is_an_error_wherever_it_is_met(stores: Arc<dyn Stores>) {
    let failures = Arc::new(Failures::default());
    let failing = FailingStores::new(stores.clone(), failures.clone());
    let mut world = World::new(&failing, 4);
    (0..6).for_each(|_| world.block());
    let (store, height) = (world.store.clone(), world.height);
    let live = LiveRequests::at(height).content();
    let expected = StoreError::read(FILE, CAUSE);
    let read = |what: &str, read: &dyn Fn(&dyn Snapshot) -> Result<(), String>| {
        failures.mend();
        let before = failures.reads();
        read(store.snapshot().as_ref()).expect("nothing fails yet");
        let reads = failures.reads() - before;
        assert!(reads > 0, "{what} reads nothing");
        for times in (0..reads).step_by((reads as usize / 50).max(1)) {
            failures.fail(Operation::Read, times);
            let found = read(store.snapshot().as_ref());
            assert_eq!(found, Err(expected.to_string()), "{what}, after {times} of {reads} reads");
            assert!(failures.have_struck());
        }
        failures.mend();
    };
    let text = |error: StoreError| error.to_string();
    let table = TableId(1);
    read("get", &|snapshot| snapshot.get(table, &key(1)).map(drop).map_err(text));
    read("scan", &|snapshot| {
        let scanned = snapshot.scan(table, &KeyRange::ALL, false, &mut |_, _| ControlFlow::Continue(()));
        scanned.map_err(text)
    });
    read("content_digest", &|snapshot| content_digest(snapshot).map(drop).map_err(|error| error.to_string()));
    read("StateTree::new", &|snapshot| {
        StateTree::new(snapshot, &live, TreeShape::Groups).map(drop).map_err(text)
    });
    read("write_checkpoint", &|snapshot| {
        let written = write_checkpoint(&header(height), snapshot, &live, std::io::sink());
        written.map_err(|error| error.to_string())
    });
    read("pieces", &|_| pieces(store.as_ref(), height, stores.as_ref()).map(drop));
    read("Overlay", &|snapshot| {
        let mut overlay = crate::Overlay::new(snapshot);
        let id = crate::RowId { table, key: key(2) };
        overlay.current(&id).map_err(text)?;
        overlay.set(id, None).map_err(text)
    });
    let newest = store.snapshot();
    world.check(newest.as_ref(), &world.model.clone());
}

/// At a batch, at a durable point, and where a state is begun or read from a checkpoint.
pub fn what_cannot_be_written_is_an_error(stores: Arc<dyn Stores>) {
    let failures = Arc::new(Failures::default());
    let failing = FailingStores::new(stores, failures.clone());
    let expected = StoreError::write(FILE, CAUSE);
    let mut world = World::new(&failing, 5);
    (0..6).for_each(|_| world.block());
    let (store, height) = (world.store.clone(), world.height);
    let bytes = written(store.snapshot().as_ref(), height, &LiveRequests::at(height));
    failures.fail(Operation::Apply, 0);
    assert_eq!(store.apply(Version::after_batch(height + 1, 0), &[], None), Err(expected.clone()));
    failures.fail(Operation::DurablePoint, 0);
    assert_eq!(store.durable_point(), Err(expected.clone()));
    failures.fail(Operation::Begin, 0);
    assert_eq!(failing.create(Arc::default()).err(), Some(expected.clone()));
    for operation in [Operation::Begin, Operation::Add] {
        failures.fail(operation, 0);
        let read = read_checkpoint(bytes.as_slice(), &failing).err().map(|error| error.to_string());
        assert_eq!(read, Some(expected.to_string()));
        assert_eq!(pieces(store.as_ref(), height, &failing).err(), Some(expected.to_string()));
    }
    failures.mend();
    let read = read_checkpoint(bytes.as_slice(), &failing).expect("it was the store that failed");
    assert_same(read.state.snapshot().as_ref(), &world.model, &world.numbers());
    let durable = read.state.durable_point().expect("nothing fails now");
    assert!(
        durable.is_none_or(|height| height <= read.state.version().height()),
        "what is durable was applied"
    );
}
