//! Every store gives the same: receipts, digests and checkpoints, byte for byte.

mod support;

use disk::{Disk, DiskOptions, RowsIn};
use engine::{Engine, VerifiedBlock};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{Reopened, Stores, write_checkpoint};
use std::path::Path;
use std::sync::Arc;
use support::charter;
use support::random::{Said, random_ledger};
use types::{Charter, Consistency};

/// The checkpoint of where an engine stands.
fn checkpoint(engine: &Engine) -> Vec<u8> {
    let (snapshot, mut checkpoint) = (engine.state().snapshot(), Vec::new());
    let (header, live) = (engine.checkpoint_header(), engine.live().content());
    write_checkpoint(&header, snapshot.as_ref(), &live, &mut checkpoint).expect("nothing fails");
    checkpoint
}

/// What an engine on a store says of these blocks, and the checkpoint behind them.
fn on(stores: &dyn Stores, charter: &Charter, blocks: &[VerifiedBlock]) -> (Vec<Said>, Vec<u8>) {
    let engine = Engine::new(Arc::new(charter.clone()), stores).expect("a known protocol");
    let mut engine = engine.noting_row_history();
    let mut said = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        if let Some(next) = blocks.get(number + 1) {
            engine.foresee(next);
        }
        let executed = engine.execute(block).expect("the next block");
        said.push((executed.receipts, executed.outcome.digest(), engine.checkpoint_progress()));
    }
    let checkpoint = checkpoint(&engine);
    (said, checkpoint)
}

/// The same with processes that end and begin again: each goes on somewhere where the one before it has left the state, executes
/// the blocks behind that again, and some more.
fn with_processes(
    open: &dyn Fn() -> Disk,
    charter: &Charter,
    blocks: &[VerifiedBlock],
    rng: &mut StdRng,
) -> (Vec<Said>, Vec<u8>) {
    let charter = Arc::new(charter.clone());
    let mut said: Vec<Said> = Vec::new();
    loop {
        let stores = open();
        let left = stores.left().expect("nothing fails");
        let one = (!left.is_empty()).then(|| rng.random_range(0..left.len()));
        let mut engine = match one.map(|one| left[one].header.height) {
            None => Engine::new(charter.clone(), &stores).expect("a known protocol"),
            Some(height) => {
                let Reopened { point, state, live } =
                    stores.reopen(height).expect("nothing fails").expect("it was left");
                let at = (&point.header, point.progress);
                Engine::at(charter.clone(), at, state, live).expect("a known protocol")
            }
        };
        stores.settle().expect("nothing fails");
        let (begins, ends) = (engine.height() as usize, rng.random_range(1..=blocks.len()));
        stores.remove_checkpoints_behind(begins as u64).expect("nothing fails");
        for (number, block) in blocks.iter().enumerate().skip(begins) {
            if number >= ends.max(said.len() + 1) {
                break;
            }
            if let Some(next) = blocks.get(number + 1) {
                engine.foresee(next);
            }
            let executed = engine.execute(block).expect("the next block");
            let found = (executed.receipts, executed.outcome.digest(), engine.checkpoint_progress());
            match said.get(number) {
                None => said.push(found),
                Some(known) => assert_eq!(*known, found, "block {number}, from {begins} on"),
            }
            if rng.random_bool(0.2) {
                engine.state().durable_point().expect("nothing fails");
            }
        }
        if engine.height() as usize == blocks.len() {
            return (said, checkpoint(&engine));
        }
    }
}

#[test]
fn every_protocol_comes_to_the_same_in_memory_and_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, protocol) in concurrency::IDS.into_iter().enumerate() {
        for seed in 0..3 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut charter = charter();
            charter.protocol = protocol.to_string();
            charter.block.batch_transactions = rng.random_range(5..20);
            if rng.random_bool(0.5) {
                charter.concurrency.consistency = Consistency::Serializable;
            }
            let (blocks, expected) = random_ledger(&charter, seed);
            let (said, in_memory) = on(&memory::Memory, &charter, &blocks);
            assert_eq!(said, expected, "{protocol}, seed {seed}");
            // With room for all rows, with so little that every batch goes to the disk, and with all rows in memory.
            for (rows_in, memory_bytes) in
                [(RowsIn::Disk, 16 << 20), (RowsIn::Disk, 20_000), (RowsIn::Memory, 0)]
            {
                let path = folder.path().join(format!("{number}-{seed}-{rows_in:?}-{memory_bytes}"));
                let open =
                    |path: &Path| Disk::open(path, DiskOptions { rows_in, memory_bytes }).expect("a folder");
                let what = format!("{protocol}, seed {seed}, {memory_bytes} bytes of memory, {rows_in:?}");
                let (said, on_disk) = on(&open(&path), &charter, &blocks);
                assert_eq!(said, expected, "{what}");
                assert_eq!(on_disk, in_memory, "{what}");
                let path = path.join("again");
                let (said, on_disk) = with_processes(&|| open(&path), &charter, &blocks, &mut rng);
                assert_eq!(said, expected, "{what}, with processes that end");
                assert_eq!(on_disk, in_memory, "{what}, with processes that end");
            }
        }
    }
}
