//! The cases of the reference model `pcp.py`, under random schedules, and what goes wrong under each of its variants.
//!
//! `tests/data/pcp.jsonl` has the first 300 seeds. More:
//!
//! ```sh
//! python3 pcp.py --emit 10000 > cases.jsonl
//! PCP_CASES=cases.jsonl cargo test -p pcp --test model
//! ```

use pcp::{Case, CasePart, CaseTransaction, Schedule, ShardId, VARIANTS};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct ModelCase {
    seed: u64,
    hashes: u32,
    parts: BTreeMap<u32, ModelPart>,
}

#[derive(Deserialize)]
struct ModelPart {
    depends_on: Vec<u32>,
    valid: bool,
    commits: bool,
}

impl ModelCase {
    fn case(&self) -> Case {
        let part = |part: &ModelPart| CasePart {
            depends_on: part.depends_on.iter().copied().map(ShardId).collect(),
            is_endorsed: part.valid,
            ..CasePart::default()
        };
        let parts = self.parts.iter().map(|(shard, own)| (ShardId(*shard), part(own))).collect();
        let named = self.parts.values().flat_map(|part| &part.depends_on).chain(self.parts.keys());
        let shards = named.max().map_or(0, |last| last + 1);
        Case { shards, transactions: vec![CaseTransaction { hashes: self.hashes, parts }] }
    }
}

fn cases() -> Vec<ModelCase> {
    let text = std::env::var("PCP_CASES").map_or_else(
        |_| include_str!("data/pcp.jsonl").to_string(),
        |path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("PCP_CASES: {error}")),
    );
    text.lines().map(|line| serde_json::from_str(line).expect("a case of the model")).collect()
}

#[test]
fn every_part_commits_or_not_as_the_model_says_whatever_the_schedule() {
    let (mut commits, mut discards) = (0, 0);
    for model in cases() {
        let case = model.case();
        let truth = case.truth();
        for schedule in 0..3 {
            let mut run = Schedule::new(&case, &VARIANTS[0], model.seed * 10 + schedule);
            assert_eq!(run.run(), Ok(()), "pcp.py, seed {}, schedule {schedule}", model.seed);
            for (shard, part) in &model.parts {
                let decided = run.shards()[*shard as usize].decision(0);
                assert_eq!(decided, Some(part.commits), "pcp.py, seed {}, shard {shard}", model.seed);
                assert_eq!(
                    truth.commits[0][&ShardId(*shard)],
                    part.commits,
                    "the serial truth, seed {}",
                    model.seed
                );
            }
        }
        commits += model.parts.values().filter(|part| part.commits).count();
        discards += model.parts.values().filter(|part| !part.commits).count();
    }
    println!("{commits} parts commit, {discards} do not");
    assert!(commits > 100 && discards > 100);
}

#[test]
fn corrected_rules_hold_with_several_transactions_and_wrong_variants_fail() {
    for variant in VARIANTS {
        let mut violations: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..3_000 {
            let mut rng = StdRng::seed_from_u64(seed);
            let case = Case::random(&mut rng, variant.is_malformed);
            if let Err(violation) = Schedule::new(&case, &variant, rng.random()).run() {
                *violations.entry(violation.kind()).or_default() += 1;
            }
        }
        println!("{}: {violations:?}", variant.name);
        assert_eq!(!violations.is_empty(), variant.is_wrong, "{}: {violations:?}", variant.name);
    }
}
