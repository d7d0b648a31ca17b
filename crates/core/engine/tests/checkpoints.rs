//! When there are checkpoints: the same on every node, whatever it foresaw and wherever it began.

mod support;

use engine::Engine;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{CheckpointProgress, read_checkpoint, write_checkpoint};
use std::sync::Arc;
use support::random::{Said, random_ledger};
use support::{Chain, charter, script};
use types::{Charter, Consistency, ExecutionVersion, Outcome};

/// Executes a block that adds so many rows to `t`: whether there is a checkpoint behind it.
fn add(chain: &mut Chain, rows: u64) -> bool {
    let first = chain.engine.height() * 10_000;
    let sql =
        format!("INSERT INTO t (id) SELECT n FROM generate_series({first}, {first} + {rows} - 1) AS g (n)");
    let executed = chain.execute(if rows > 0 { vec![script(&sql)] } else { Vec::new() });
    assert_eq!(executed.changes.len() as u64, rows);
    chain.engine.is_at_checkpoint()
}

fn chain(charter: Charter) -> Chain {
    let mut chain = Chain::new(charter);
    chain.script("CREATE TABLE t (id bigint PRIMARY KEY, n bigint DEFAULT 0)");
    chain
}

#[test]
fn a_checkpoint_comes_when_enough_rows_have_changed_before_the_block_or_after_enough_blocks() {
    let mut chain = chain(Charter { checkpoint_rows: 100, checkpoint_blocks: 6, ..charter() });
    let progress = |chain: &Chain| chain.engine.checkpoint_progress();
    assert_eq!(progress(&chain), CheckpointProgress { last: 0, rows: 0 });
    // Many at once do not count for their own block.
    assert!(!add(&mut chain, 500));
    assert_eq!(progress(&chain), CheckpointProgress { last: 0, rows: 500 });
    assert!(add(&mut chain, 70), "height 3");
    // Nor do those of the block that has the checkpoint, for the next one.
    assert_eq!(progress(&chain), CheckpointProgress { last: 3, rows: 0 });
    assert!(!add(&mut chain, 99));
    assert!(!add(&mut chain, 1));
    assert!(add(&mut chain, 0), "height 6: 100 rows in heights 4 and 5");
    // Without work the blocks count.
    let found: Vec<bool> = (0..7).map(|_| add(&mut chain, 1)).collect();
    assert_eq!(found, [false, false, false, false, false, true, false]);
    assert_eq!(progress(&chain), CheckpointProgress { last: 12, rows: 1 });
    // Whoever asks for one gets it, and begins anew.
    assert!(matches!(chain.script("CHECKPOINT"), Outcome::Committed(_)));
    assert_eq!(progress(&chain), CheckpointProgress { last: 14, rows: 0 });
    // A row that changes twice in a block counts once.
    let twice = vec![script("UPDATE t SET n = n + 1 WHERE id = 10000"); 2];
    chain.execute(twice);
    assert_eq!(progress(&chain).rows, 1);
}

#[test]
fn before_version_3_checkpoints_are_where_heights_say_it() {
    for execution_version in [1, 2] {
        let mut chain =
            chain(Charter { execution_version, checkpoint_rows: 10, checkpoint_blocks: 4, ..charter() });
        while chain.engine.height() < 14 {
            let height = chain.engine.height() + 1;
            assert_eq!(add(&mut chain, 50), height.is_multiple_of(4), "height {height}");
        }
    }
}

/// An engine that begins with the state and the progress of another one.
fn beginning(other: &Engine, charter: &Arc<Charter>) -> Engine {
    let (header, snapshot) = (other.checkpoint_header(), other.state().snapshot());
    let (mut file, live) = (Vec::new(), other.live().content());
    write_checkpoint(&header, snapshot.as_ref(), &live, &mut file).expect("memory");
    let read = read_checkpoint(file.as_slice(), &memory::Memory).expect("what was written");
    let at = (&header, other.checkpoint_progress());
    Engine::at(charter.clone(), at, read.state, read.live).expect("a good state")
}

#[test]
fn whoever_goes_on_from_a_checkpoint_or_in_between_has_the_same_ones() {
    for seed in 0..4 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut charter = charter();
        (charter.checkpoint_rows, charter.checkpoint_blocks) = (rng.random_range(50..400), 9);
        charter.block.batch_transactions = rng.random_range(5..20);
        if seed % 2 == 1 {
            charter.concurrency.consistency = Consistency::Serializable;
        }
        let (blocks, expected) = random_ledger(&charter, seed);
        let charter = Arc::new(charter);
        let engine = Engine::new(charter.clone(), &memory::Memory).expect("a known protocol");
        let mut engines = vec![engine];
        let mut checkpoints = 0;
        for (block, expected) in blocks.iter().zip(&expected) {
            for engine in &mut engines {
                let executed = engine.execute(block).expect("the next height");
                let said: Said = (executed.receipts, executed.outcome.digest(), engine.checkpoint_progress());
                assert!(said == *expected, "seed {seed}, height {}", engine.height());
            }
            let first = &engines[0];
            checkpoints += usize::from(first.is_at_checkpoint());
            if charter.blocks_stand_alone() || first.is_at_checkpoint() {
                engines.push(beginning(first, &charter));
            }
        }
        assert!(checkpoints > 3, "seed {seed}: {checkpoints}");
    }
}

/// Adds rows to each of the next blocks, with engines that begin at each height: where there are checkpoints.
fn checkpoints_up_to(chain: &mut Chain, height: u64, rows: u64) -> Vec<u64> {
    let charter = chain.charter.clone();
    let (mut engines, mut heights) = (Vec::new(), Vec::new());
    while chain.engine.height() < height {
        engines.push(beginning(&chain.engine, &charter));
        let first = chain.engine.height() * 10_000;
        let sql = format!(
            "INSERT INTO t (id) SELECT n FROM generate_series({first}, {first} + {rows} - 1) AS g (n)"
        );
        let transaction = chain.transaction(script(&sql));
        let block = chain.block(vec![transaction]);
        let outcome = chain.engine.execute(&block).expect("the next height").outcome;
        for engine in &mut engines {
            assert_eq!(engine.execute(&block).expect("the next height").outcome, outcome);
            assert_eq!(engine.checkpoint_progress(), chain.engine.checkpoint_progress());
        }
        if chain.engine.is_at_checkpoint() {
            heights.push(chain.engine.height());
        }
    }
    heights
}

fn set(chain: &mut Chain, parameter: &str, value: u32) -> u64 {
    let outcome = chain.script(&format!("SELECT entente.set_charter('{parameter}', '{value}')"));
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    chain.engine.amended_charter().expect("decided").effective_height
}

#[test]
fn the_old_rule_hands_over_to_the_new_one() {
    let mut chain =
        chain(Charter { execution_version: 2, outcome_lag_blocks: 2, checkpoint_blocks: 8, ..charter() });
    let refused = chain.script("SELECT entente.set_charter('checkpoint_rows', '1000')");
    assert!(matches!(refused, Outcome::Aborted(_)), "version 2 has no such parameter");
    assert_eq!(set(&mut chain, "execution_version", 3), 15, "decided at height 3");
    // The last one of the old rule is the first from which the new one counts.
    assert_eq!(checkpoints_up_to(&mut chain, 17, 400), [8, 16]);
    assert_eq!(chain.engine.execution_version(), ExecutionVersion::V3);
    assert_eq!(set(&mut chain, "checkpoint_rows", 1_000), 30, "decided at height 18");
    // By their distance up to 24, then by the rows of heights 25 to 29, 31 to 33, and so on.
    assert_eq!(checkpoints_up_to(&mut chain, 40, 400), [24, 30, 34, 38]);
}

#[test]
fn rows_that_changed_under_the_old_rule_count_under_the_new_one() {
    let mut chain = chain(Charter {
        execution_version: 2,
        outcome_lag_blocks: 2,
        checkpoint_blocks: 8,
        // Where nobody has checked the charter; members cannot agree to it.
        checkpoint_rows: 1_000,
        ..charter()
    });
    assert_eq!(set(&mut chain, "execution_version", 3), 14, "decided at height 2");
    assert_eq!(checkpoints_up_to(&mut chain, 20, 400), [8, 14, 18]);
}
