//! Random programs: serializable by every judge, and the same bytes for any number of threads.

use crate::driver::{Driver, Recorded, STEP_BY_STEP};
use crate::program::{A, B, Check, Formula, Operation, Program, Update, table};
use crate::serial_order;
use concurrency::{Granularity, OnConflict, ProtocolOptions};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::ThreadPool;
use state::{PlainState, Simulate};
use std::sync::Arc;

/// What a random program may contain.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub keys: u8,
    pub operations: usize,
    pub scans: f64,
    pub conditions: f64,
    pub checks: f64,
    pub inserts: f64,
}

fn random_update(rng: &mut StdRng, mix: Mix) -> Update {
    let column = rng.random_range(A..=B);
    let formula = match rng.random_range(0..6) {
        0..3 => Formula::Add([-3, -2, 2, 3][rng.random_range(0..4)]),
        3 => Formula::Multiply(2),
        4 => Formula::Set(rng.random_range(0..5)),
        _ => Formula::Use(1 - column, [-2, 1][rng.random_range(0..2)]),
    };
    let condition =
        rng.random_bool(mix.conditions).then(|| (rng.random_range(A..=B), rng.random_range(0..5)));
    let check = rng.random_bool(mix.checks).then(|| match rng.random_range(0..3) {
        0 => Check::Sum,
        _ => Check::Column(rng.random_range(A..=B)),
    });
    Update { key: rng.random_range(0..mix.keys), column, formula, condition, check }
}

pub fn random_program(rng: &mut StdRng, mix: Mix) -> Program {
    let mut operations = Vec::new();
    for _ in 0..rng.random_range(1..=mix.operations) {
        let place = |rng: &mut StdRng| (rng.random_range(0..mix.keys), rng.random_range(A..=B));
        if rng.random_bool(mix.scans) {
            operations.push(Operation::Scan(rng.random_range(0..4), rng.random_range(0..4)));
            continue;
        }
        if rng.random_bool(mix.inserts) {
            let (key, values) = (place(rng).0, (rng.random_range(0..5), rng.random_range(0..5)));
            let insert = rng.random_bool(0.55);
            operations.push(if insert {
                Operation::Insert(key, values.0, values.1)
            } else {
                Operation::Delete(key)
            });
        } else {
            match rng.random_range(0..10) {
                0..3 => {
                    let (key, column) = place(rng);
                    operations.push(Operation::Read(key, column));
                }
                3 => {
                    let operation = Operation::Move(place(rng), place(rng));
                    operations.push(operation);
                }
                _ => operations.push(Operation::Update(random_update(rng, mix))),
            }
        }
        if rng.random_bool(0.2) {
            let mut branch =
                || rng.random_bool(0.7).then(|| Update { condition: None, ..random_update(rng, mix) });
            let (then, otherwise) = (branch(), branch());
            operations.push(Operation::Found(then, otherwise));
        }
    }
    if rng.random_bool(0.08) {
        operations.push(Operation::Raise);
    }
    Program(operations)
}

pub fn random_history(seed: u64, mix: Mix, sizes: &[usize]) -> (PlainState, Vec<Vec<Program>>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let rows: Vec<(u8, i64, i64)> = (0..mix.keys)
        .filter(|_| rng.random_bool(0.7))
        .collect::<Vec<u8>>()
        .into_iter()
        .map(|key| (key, rng.random_range(0..5), rng.random_range(0..5)))
        .collect();
    let batch = |rng: &mut StdRng, size: usize| (0..size).map(|_| random_program(rng, mix)).collect();
    (table(&rows), sizes.iter().map(|size| batch(rng, *size)).collect())
}

pub const TINY: Mix =
    Mix { keys: 3, operations: 3, scans: 0.1, conditions: 0.3, checks: 0.35, inserts: 0.18 };

#[test]
fn every_tiny_history_has_a_serial_order() {
    let mut again = 0;
    for seed in 0..10_000 {
        let (initial, batches) = random_history(seed, TINY, &[4, 4]);
        let run = Recorded::run("harmony", &initial, &batches);
        assert!(serial_order::exists(&run), "seed {seed}: no serial order for {initial:?} {batches:?}");
        run.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        again += run.results().iter().map(|result| result.statistics.reexecuted).sum::<u64>();
    }
    assert!(again > 5_000, "histories with conflicts: {again} ran again");
}

pub const INTER_BLOCK: ProtocolOptions = ProtocolOptions { inter_block: true, ..STEP_BY_STEP };

#[test]
fn every_tiny_history_with_overlapping_batches_has_a_serial_order() {
    for on_conflict in [OnConflict::Reexecute, OnConflict::Abort] {
        let options = ProtocolOptions { on_conflict, ..INTER_BLOCK };
        let mut rejected = 0;
        for seed in 0..4_000 {
            let (initial, batches) = random_history(seed, TINY, &[2, 3, 3]);
            let run = Recorded::run_with("harmony", options, &initial, &batches);
            let exists = serial_order::exists_across_batches(&run);
            assert!(exists, "seed {seed}: no serial order for {initial:?} {batches:?}");
            run.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
            rejected += run.results().iter().map(|result| result.statistics.rejected).sum::<u64>();
        }
        assert!(rejected > 2_000, "histories with conflicts: {rejected} rejected");
    }
}

#[test]
fn serial_runs_pass_the_same_checks() {
    for seed in 0..300 {
        let (initial, batches) = random_history(seed, TINY, &[4, 4]);
        let run = Recorded::run("serial", &initial, &batches);
        assert!(serial_order::exists(&run), "seed {seed}");
        let verified = run.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert!(verified.order.is_sorted_by_key(|position| position.batch));
    }
}

pub fn pools() -> [ThreadPool; 3] {
    [1, 2, 4].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap())
}

pub fn mixes() -> impl Strategy<Value = Mix> {
    let share = |most: f64| prop_oneof![Just(0.0), Just(most / 4.0), Just(most)];
    (2..40u8, 1..5usize, share(0.3), share(0.5), share(0.5), share(0.5)).prop_map(
        |(keys, operations, scans, conditions, checks, inserts)| Mix {
            keys,
            operations,
            scans,
            conditions,
            checks,
            inserts,
        },
    )
}

fn options() -> impl Strategy<Value = ProtocolOptions> {
    let on_conflict = prop_oneof![Just(OnConflict::Reexecute), Just(OnConflict::Abort)];
    let granularity = prop_oneof![Just(Granularity::Column), Just(Granularity::Row)];
    let threshold = prop_oneof![Just(101), Just(30)];
    (on_conflict, granularity, any::<[bool; 3]>(), threshold).prop_map(
        |(on_conflict, granularity, [inter_block, reordering, coalescing], serial_threshold_percent)| {
            ProtocolOptions {
                on_conflict,
                granularity,
                inter_block,
                reordering,
                coalescing,
                serial_threshold_percent,
                ..ProtocolOptions::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn histories_are_serializable_and_the_same_for_any_number_of_threads(
        seed in any::<u64>(), mix in mixes(), sizes in prop::collection::vec(0..40usize, 1..5), options in options(),
    ) {
        let (initial, batches) = random_history(seed, mix, &sizes);
        let runs =
            pools().map(|pool| pool.install(|| Recorded::run_with("harmony", options, &initial, &batches)));
        let checked = runs[0].check();
        prop_assert!(checked.is_ok(), "{}", checked.err().map_or(String::new(), |violation| violation.to_string()));
        for run in &runs[1..] {
            prop_assert_eq!(runs[0].results(), run.results());
        }
        let mut late = Driver::with("harmony", options, initial.clone());
        for (batch, expected) in batches.into_iter().zip(runs[0].results()) {
            let batch = batch.into_iter().map(|program| Arc::new(program) as Arc<dyn Simulate>).collect();
            prop_assert_eq!(&late.run(batch), expected, "offered one by one");
        }
    }
}
