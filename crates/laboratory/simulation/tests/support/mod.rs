//! Runs plans of many seeds, for tests.

use simulation::{Mutation, Plan, run_plan};

/// Runs at the same time.
const THREADS: u64 = 2;

/// Runs the plans of seeds; all of them must keep their promises.
pub fn check(seeds: impl Iterator<Item = u64> + Clone + Sync, plan: impl Fn(u64) -> Plan + Sync) {
    let work = |part: u64| {
        let mut failed = Vec::new();
        for seed in seeds.clone().filter(|seed| seed % THREADS == part) {
            if let Err(error) = run_plan(seed, plan(seed), None) {
                failed.push(format!("seed {seed}: {error}; again: make sim SEED={seed}"));
            }
        }
        failed
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..THREADS).map(|part| scope.spawn(move || work(part))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a run says what is wrong")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The first seed whose run finds that something is switched off, and what it says.
pub fn found(mutation: Mutation, seeds: u64, plan: impl Fn(u64) -> Plan) -> (u64, String) {
    (1..=seeds)
        .find_map(|seed| run_plan(seed, plan(seed), Some(mutation)).err().map(|error| (seed, error)))
        .unwrap_or_else(|| panic!("{seeds} runs do not find {mutation:?}"))
}
