//! The random programs of [`crate::random_histories`], for the protocols that Harmony is compared with, in every
//! configuration.

use crate::driver::{Recorded, STEP_BY_STEP};
use crate::program::Program;
use crate::random_histories::{Mix, TINY, mixes, pools, random_history};
use crate::serial_order;
use concurrency::{Granularity, OnConflict, ProtocolOptions};
use proptest::prelude::*;
use state::PlainState;

const ON_CONFLICT: [OnConflict; 3] = [OnConflict::Reexecute, OnConflict::Requeue, OnConflict::Abort];

/// Everything that changes what a rival does.
fn configurations() -> Vec<(&'static str, ProtocolOptions)> {
    let mut all = vec![("block-stm", STEP_BY_STEP)];
    for on_conflict in ON_CONFLICT {
        for granularity in [Granularity::Column, Granularity::Row] {
            for reordering in [true, false] {
                let options = ProtocolOptions { on_conflict, granularity, reordering, ..STEP_BY_STEP };
                all.push(("aria", options));
                if reordering {
                    all.push(("ssi", options));
                }
            }
        }
    }
    all
}

fn run((id, options): (&str, ProtocolOptions), initial: &PlainState, batches: &[Vec<Program>]) -> Recorded {
    match options.on_conflict {
        OnConflict::Requeue => Recorded::run_until_done(id, options, initial, batches),
        _ => Recorded::run_with(id, options, initial, batches),
    }
}

/// No transaction whose uses were registered as reads can find a guard wrong at its place.
fn guards_failed(run: &Recorded) -> u64 {
    run.results().iter().map(|result| result.statistics.guards_failed).sum()
}

#[test]
fn every_tiny_history_has_a_serial_order() {
    let mut rejected = 0;
    for (number, configuration) in configurations().into_iter().enumerate() {
        for seed in 0..700 {
            let seed = seed + 1_000_000 * number as u64;
            let (initial, batches) = random_history(seed, TINY, &[4, 4]);
            let run = run(configuration, &initial, &batches);
            let context = || format!("{configuration:?}, seed {seed}, {initial:?} {batches:?}");
            run.check().unwrap_or_else(|violation| panic!("{violation}: {}", context()));
            assert_eq!(guards_failed(&run), 0, "{}", context());
            rejected += run.results().iter().map(|result| result.statistics.rejected).sum::<u64>();
            assert!(serial_order::exists(&run.without_conflicts()), "no serial order: {}", context());
        }
    }
    assert!(rejected > 5_000, "histories with conflicts: {rejected} rejected");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn histories_are_serializable_and_the_same_for_any_number_of_threads(
        seed in any::<u64>(), mix in mixes(), sizes in prop::collection::vec(0..60usize, 1..4),
        configuration in prop::sample::select(configurations()),
    ) {
        let mix: Mix = mix;
        let (initial, batches) = random_history(seed, mix, &sizes);
        let runs = pools().map(|pool| pool.install(|| run(configuration, &initial, &batches)));
        let checked = runs[0].check();
        prop_assert!(checked.is_ok(), "{}", checked.err().map_or(String::new(), |violation| violation.to_string()));
        prop_assert_eq!(guards_failed(&runs[0]), 0);
        for run in &runs[1..] {
            if configuration.0 == "block-stm" {
                prop_assert_eq!(runs[0].results_without_counts(), run.results_without_counts());
            } else {
                prop_assert_eq!(runs[0].results(), run.results());
            }
        }
    }
}

#[test]
fn block_stm_is_serial_byte_for_byte() {
    let pools = pools();
    for seed in 0..400 {
        let mix = Mix { keys: 2 + (seed % 20) as u8, operations: 4, ..TINY };
        let (initial, batches) = random_history(seed, mix, &[30, 30]);
        let serial = Recorded::run("serial", &initial, &batches).results_without_counts();
        for pool in &pools {
            let run = pool.install(|| Recorded::run("block-stm", &initial, &batches));
            assert_eq!(run.results_without_counts(), serial, "seed {seed}");
        }
    }
}
