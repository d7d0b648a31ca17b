//! Every store gives the same: receipts, digests and checkpoints, byte for byte.

mod support;

use disk::{Disk, DiskOptions};
use engine::{Engine, VerifiedBlock};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{Stores, write_checkpoint};
use std::sync::Arc;
use support::charter;
use support::random::{Said, random_ledger};
use types::{Charter, Consistency};

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
    let (snapshot, mut checkpoint) = (engine.state().snapshot(), Vec::new());
    let (header, live) = (engine.checkpoint_header(), engine.live().content());
    write_checkpoint(&header, snapshot.as_ref(), &live, &mut checkpoint).expect("nothing fails");
    (said, checkpoint)
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
            // With room for all rows, and with so little that every batch goes to the disk.
            for memory_bytes in [16 << 20, 20_000] {
                let path = folder.path().join(format!("{number}-{seed}-{memory_bytes}"));
                let disk = Disk::open(&path, DiskOptions { memory_bytes }).expect("an empty folder");
                let (said, on_disk) = on(&disk, &charter, &blocks);
                assert_eq!(said, expected, "{protocol}, seed {seed}, {memory_bytes} bytes of memory");
                assert_eq!(on_disk, in_memory, "{protocol}, seed {seed}, {memory_bytes} bytes of memory");
            }
        }
    }
}
