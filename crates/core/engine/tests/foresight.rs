//! Blocks that are foreseen under order–execute: batches of two blocks overlap, and come to what they come to one after the
//! other.

mod support;

use concurrency::{Batch, BatchResult, Protocol, Snapshots, protocol};
use engine::{Engine, VerifiedBlock};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::StoreError;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use support::random::{Said, random_ledger};
use support::{Chain, charter, script};
use types::{Charter, Consistency, OnConflict, ProtocolOptions};

fn overlapping() -> Charter {
    let mut charter = charter();
    charter.block.batch_transactions = 10;
    charter.concurrency.consistency = Consistency::Serializable;
    charter
}

/// What an engine says of the same blocks that foresees some of them, and how many it foresaw.
fn foreseeing(charter: &Charter, blocks: &[VerifiedBlock], rng: &mut StdRng) -> (Vec<Said>, usize) {
    let mut engine = Engine::new(Arc::new(charter.clone()), &memory::Memory)
        .expect("a known protocol")
        .noting_row_history();
    let (mut said, mut next, mut foreseen) = (Vec::new(), 0, 0);
    for (number, block) in blocks.iter().enumerate() {
        next = next.max(number);
        let most = blocks.len().min(number + rng.random_range(0..4));
        while next < most && engine.foresee(&blocks[next]) {
            (next, foreseen) = (next + 1, foreseen + 1);
        }
        let executed = engine.execute(block).expect("the next block");
        said.push((executed.receipts, executed.outcome.digest(), engine.checkpoint_progress()));
    }
    (said, foreseen)
}

#[test]
fn blocks_that_are_foreseen_come_to_the_same_on_any_number_of_threads() {
    let pools =
        [1, 2, 4].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for seed in 0..12 {
        let mut charter = overlapping();
        let mut rng = StdRng::seed_from_u64(seed);
        charter.checkpoint_blocks = rng.random_range(5..40);
        charter.checkpoint_rows = rng.random_range(100..2_000);
        charter.found_with_version(rng.random_range(2..=3));
        charter.block.batch_transactions = rng.random_range(1..20);
        charter.concurrency.on_conflict =
            if rng.random_bool(0.3) { OnConflict::Abort } else { OnConflict::Reexecute };
        charter.concurrency.serial_threshold_percent = if rng.random_bool(0.3) { 30 } else { 101 };
        if rng.random_bool(0.3) {
            // Not enough for all of a block.
            charter.meter.block_steps = 500;
        }
        let (blocks, expected) = random_ledger(&charter, seed);
        for pool in &pools {
            let (said, foreseen) = pool.install(|| foreseeing(&charter, &blocks, &mut rng));
            assert_eq!(said, expected, "seed {seed}");
            assert!(foreseen > 8, "seed {seed}: {foreseen}");
        }
    }
}

#[test]
fn nothing_is_foreseen_where_it_gains_nothing_or_could_not_be_kept() {
    let foresees = |change: &dyn Fn(&mut Charter)| {
        let mut charter = overlapping();
        change(&mut charter);
        let chain = Chain::new(charter.clone());
        let block = chain.block(vec![]);
        let mut engine = Engine::new(Arc::new(charter), &memory::Memory).expect("a known protocol");
        engine.foresee(&block)
    };
    assert!(foresees(&|_| {}));
    assert!(!foresees(&|charter| charter.concurrency.consistency = Consistency::Strict));
    assert!(!foresees(&|charter| charter.concurrency.inter_block = false));
    assert!(!foresees(&|charter| charter.concurrency.on_conflict = OnConflict::Requeue));
    assert!(!foresees(&|charter| charter.protocol = "serial".to_string()));

    let mut chain = Chain::new(overlapping());
    let schema_change = chain.transaction(script("CREATE TABLE t (id int)"));
    let block = chain.block(vec![schema_change]);
    assert!(!chain.engine.foresee(&block), "who runs behind it needs the new schema");
}

/// Blocks on both sides of the height from which on another charter holds: transactions expire too late there, or `true IS
/// DISTINCT FROM false AND false` is read otherwise.
#[test]
fn nothing_is_foreseen_under_a_charter_that_holds_no_longer() {
    for (parameter, value) in [("expiry_blocks_max", "5"), ("execution_version", "2")] {
        let mut charter = overlapping();
        (charter.execution_version, charter.outcome_lag_blocks) = (1, 2);
        let mut chain = Chain::new(charter.clone());
        let (mut blocks, mut said) = (Vec::new(), Vec::new());
        let mut execute = |chain: &mut Chain, sql: &str| {
            let transaction = chain.transaction(script(sql));
            let block = chain.block(vec![transaction]);
            let executed = chain.engine.execute(&block).expect("the next height");
            let outcome = executed.receipts[0].outcome.clone();
            said.push((executed.receipts, executed.outcome.digest(), chain.engine.checkpoint_progress()));
            blocks.push(block);
            outcome
        };
        execute(&mut chain, "CREATE TABLE t (id bigint PRIMARY KEY)");
        let set = format!("SELECT entente.set_charter('{parameter}', '{value}')");
        let outcome = execute(&mut chain, &set);
        assert!(matches!(outcome, types::Outcome::Committed(_)), "{outcome:?}");
        let first = chain.engine.amended_charter().expect("decided").effective_height;
        let insert =
            |id: u64| format!("INSERT INTO t SELECT {id} WHERE true IS DISTINCT FROM false AND false");
        let outcomes: Vec<_> = (3..first + 6).map(|id| execute(&mut chain, &insert(id))).collect();
        let switched = outcomes.windows(2).position(|pair| pair[0] != pair[1]).expect("it shows") as u64;
        assert_eq!(switched + 4, first, "{parameter}: {outcomes:?}");
        for seed in 0..8 {
            let (found, foreseen) = foreseeing(&charter, &blocks, &mut StdRng::seed_from_u64(seed));
            assert_eq!(found, said, "{parameter}, seed {seed}");
            assert!(foreseen > 4, "{parameter}, seed {seed}: {foreseen}");
        }
    }
}

/// Harmony, with a note of what waits behind the batch that is decided.
struct Watched(Box<dyn Protocol>, Vec<u64>);

/// Heights of batches that were decided while one of the next height waited.
static OVERLAPPED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

impl Watched {
    fn of(options: ProtocolOptions) -> Box<dyn Protocol> {
        Box::new(Watched(protocol("harmony", options).expect("it is built in"), Vec::new()))
    }
}

impl Protocol for Watched {
    fn id(&self) -> &'static str {
        "watched-harmony"
    }

    fn offer(&mut self, batch: Batch) {
        self.1.push(batch.height);
        self.0.offer(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let height = self.1.remove(0);
        if self.1.first().is_some_and(|next| *next > height) {
            OVERLAPPED.lock().expect("nobody panics").insert(height);
        }
        self.0.poll(snapshots)
    }

    fn lookahead(&self) -> usize {
        self.0.lookahead()
    }
}

#[test]
fn the_first_batch_of_a_block_is_there_while_the_last_one_of_the_block_before_takes_effect() {
    concurrency::register("watched-harmony", Watched::of);
    let mut charter = overlapping();
    (charter.protocol, charter.checkpoint_blocks) = ("watched-harmony".to_string(), 1_000);
    let (blocks, expected) = random_ledger(&charter, 1);
    assert!(OVERLAPPED.lock().expect("nobody panics").is_empty(), "nothing was foreseen");
    let mut engine =
        Engine::new(Arc::new(charter), &memory::Memory).expect("it is registered").noting_row_history();
    let mut next = 0;
    for (number, (block, expected)) in blocks.iter().zip(expected).enumerate() {
        next = next.max(number);
        // As a node does it where blocks wait.
        while next < blocks.len() && engine.foresee(&blocks[next]) {
            next += 1;
        }
        let executed = engine.execute(block).expect("the next block");
        assert_eq!((executed.receipts, executed.outcome.digest(), engine.checkpoint_progress()), expected);
    }
    let overlapped = OVERLAPPED.lock().expect("nobody panics").len();
    assert!(overlapped > 8, "{overlapped} of {} blocks", blocks.len());
}
