//! Figure 5.12: how long shards take to agree, by their number, in chains and rings, beside two-phase commit.

use crate::PcpError;
use crate::arguments::Plan;
use crate::case::{Case, CasePart, CaseTransaction};
use crate::message::ShardId;
use crate::record::PcpRecord;
use crate::timed::{Taken, pcp, two_phase};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const FIGURE: &str = "figure-5-12";
/// The most shards, as in the thesis.
const SHARDS_MAX: u32 = 5;
/// Transactions of which the mean is taken.
const SAMPLES: usize = 2_000;
/// 5.5.3: each further round of a ring takes less than 2 ms, and four rounds less than 20 ms.
const PAPER_ROUND_MS: f64 = 2.0;
const PAPER_FOUR_ROUNDS_MS: f64 = 20.0;

/// Each shard depends on the one before it; in a ring, the first one on the last.
pub(super) fn linked(shards: u32, is_ring: bool) -> Case {
    let part = |shard: u32| {
        let before = shard.checked_sub(1).or((is_ring && shards > 1).then(|| shards - 1));
        let depends_on = before.map(ShardId).into_iter().collect();
        (ShardId(shard), CasePart { depends_on, is_endorsed: true, ..CasePart::default() })
    };
    let parts = (0..shards).map(part).collect();
    Case { shards, transactions: vec![CaseTransaction { hashes: shards, parts }] }
}

pub(super) fn figure_5_12(plan: &Plan) -> Result<Vec<PcpRecord>, PcpError> {
    let mut records = Vec::new();
    for (shape, is_ring) in [("chain", false), ("ring", true)] {
        let mut before: Option<f64> = None;
        for shards in 2..=SHARDS_MAX {
            let case = linked(shards, is_ring);
            let point = format!("{shape}, {shards} shards");
            let last = Some(ShardId(shards - 1));
            let (ms, taken) = mean(plan, shards, last, |arrives, delay| pcp(&case, arrives, delay));
            if taken.micros.len() != shards as usize {
                return Err(PcpError::Wrong { what: "decisions" });
            }
            let record = |metric, value| PcpRecord::new(FIGURE, "pcp", point.clone(), metric, value);
            let limit = (is_ring && taken.rounds == 4).then_some(PAPER_FOUR_ROUNDS_MS);
            records.push(record("last_shard_ms", ms).beside(limit));
            records.push(record("rounds", f64::from(taken.rounds)));
            records.push(record("messages", taken.messages as f64));
            if let Some(before) = before.filter(|_| is_ring) {
                records.push(record("ms_of_a_further_round", ms - before).beside(Some(PAPER_ROUND_MS)));
            }
            before = Some(ms);
            if !is_ring {
                for (who, shard) in [("coordinator", Some(ShardId(0))), ("participant", last)] {
                    let (ms, taken) = mean(plan, shards, shard, two_phase);
                    let system = format!("two-phase, {who}");
                    let record =
                        |metric, value| PcpRecord::new(FIGURE, system.clone(), point.clone(), metric, value);
                    records.push(record("last_shard_ms", ms));
                    records.push(record("rounds", f64::from(taken.rounds)));
                    records.push(record("messages", taken.messages as f64));
                }
            }
        }
    }
    Ok(records)
}

/// The mean latency of a shard, and what the last transaction took. Blocks come to shards within ten messages' time: who has it early
/// waits, as in the thesis.
fn mean(
    plan: &Plan,
    shards: u32,
    shard: Option<ShardId>,
    mut run: impl FnMut(&[u64], &mut dyn FnMut() -> u64) -> Taken,
) -> (f64, Taken) {
    let mut rng = StdRng::seed_from_u64(plan.seed);
    let delay = plan.delay_ms * 1e3;
    let (mut sum, mut last) = (0, Taken::default());
    for _ in 0..SAMPLES {
        let arrives: Vec<u64> = (0..shards).map(|_| rng.random_range(0.0..10.0 * delay) as u64).collect();
        last = run(&arrives, &mut || rng.random_range(0.5 * delay..1.5 * delay) as u64);
        sum += shard.and_then(|shard| last.micros.get(&shard)).copied().unwrap_or(0);
    }
    (sum as f64 / SAMPLES as f64 / 1e3, last)
}
