//! What follows from a seed and is counted: rounds against their bound, violations of each variant, the liar, what secrets hide.

use super::latency::linked;
use crate::PcpError;
use crate::arguments::Plan;
use crate::case::Case;
use crate::lying::attack_schemas;
use crate::message::{Message, Request, Secret, ShardId};
use crate::record::PcpRecord;
use crate::rules::{Rules, VARIANTS, Variant};
use crate::schedule::{Schedule, Violation};
use crate::shard::Shard;
use crypto::sha256;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const KINDS: [&str; 5] = ["closure", "exact", "bound", "ends", "serial"];

fn seeded(plan: &Plan, case: usize) -> StdRng {
    StdRng::seed_from_u64(plan.seed.wrapping_mul(1_000_003).wrapping_add(case as u64))
}

/// Rings take the most rounds: n − δ + 1, of which the last one is for a shard without a part (Theorem 2 has n − δ).
pub(super) fn rounds(plan: &Plan) -> Result<Vec<PcpRecord>, PcpError> {
    let mut records = Vec::new();
    for shards in 2..=8 {
        let case = linked(shards, true);
        let (mut most, mut limit) = (0, 0);
        for seed in 0..plan.cases.min(200) as u64 {
            let calm = Variant { has_faults: false, ..VARIANTS[0] };
            let mut schedule = Schedule::new(&case, &calm, plan.seed.wrapping_add(seed));
            schedule.run().map_err(|_| PcpError::Wrong { what: "decisions" })?;
            let of = schedule.shards().iter().filter_map(|shard| shard.rounds(0));
            let (taken, allowed) = of.max().unwrap_or((0, 0));
            (most, limit) = (most.max(taken), allowed);
        }
        let point = format!("ring, {shards} shards");
        let record =
            |metric, value| PcpRecord::new("rounds", "corrected", point.clone(), metric, f64::from(value));
        records.push(record("rounds_max", most));
        records.push(record("limit", limit).beside(Some(f64::from(shards - 1))));
    }
    Ok(records)
}

/// Random cases under each variant.
pub(super) fn variants(plan: &Plan) -> Result<Vec<PcpRecord>, PcpError> {
    let mut records = Vec::new();
    for variant in VARIANTS {
        let mut counts = [0; KINDS.len()];
        for case in 0..plan.cases {
            let mut rng = seeded(plan, case);
            let random = Case::random(&mut rng, variant.is_malformed);
            if let Err(violation) = Schedule::new(&random, &variant, rng.random()).run() {
                let kind = KINDS.iter().position(|kind| *kind == violation.kind());
                counts[kind.unwrap_or(0)] += 1;
            }
        }
        let record = |metric, count: usize| {
            PcpRecord::new("variants", variant.name, format!("{} cases", plan.cases), metric, count as f64)
        };
        records.push(record("violations", counts.iter().sum()));
        records.extend(KINDS.into_iter().zip(counts).map(|(kind, count)| record(kind, count)));
    }
    Ok(records)
}

/// A shard of pCP that lies, and a schema of ours that lies, in the same random transactions.
pub(super) fn liar(plan: &Plan) -> Result<Vec<PcpRecord>, PcpError> {
    let (mut torn, mut torn_schemas, mut committed, mut transactions) = (0, 0, 0, 0);
    let lying = Variant { lies: true, ..VARIANTS[0] };
    for case in 0..plan.cases {
        let mut rng = seeded(plan, case);
        let random = Case::random(&mut rng, false);
        let (liar, seed) = (ShardId(rng.random_range(0..random.shards)), rng.random());
        let mut schedule =
            Schedule::new(&random, &Variant { has_faults: false, ..lying }, seed).with_liar(liar);
        torn += usize::from(matches!(schedule.run(), Err(Violation::Closure(..))));
        let attacked = attack_schemas(&random, liar, seed)?;
        torn_schemas += usize::from(attacked.torn > 0);
        committed += attacked.committed;
        transactions += attacked.transactions;
    }
    let point = format!("{} cases, one liar", plan.cases);
    let record = |system: &str, metric, count: usize| {
        PcpRecord::new("liar", system, point.clone(), metric, count as f64)
    };
    Ok(vec![
        record("pcp", "torn", torn),
        record("schemas with members", "torn", torn_schemas),
        record("schemas with members", "committed", committed),
        record("schemas with members", "transactions", transactions),
    ])
}

/// A curious shard asks everybody about every transaction: how often it learns of a participant that is neither its dependency nor its
/// caller.
pub(super) fn secrets(plan: &Plan) -> Result<Vec<PcpRecord>, PcpError> {
    let mut records = Vec::new();
    for (system, asks_for_secrets) in [("without secrets", false), ("with secrets", true)] {
        let rules = Rules { asks_for_secrets, ..Rules::CORRECTED };
        let learned = (0..plan.cases).filter(|case| learns(&mut seeded(plan, *case), rules)).count();
        let point = format!("{} cases", plan.cases);
        records.push(PcpRecord::new("secrets", system, point, "participants_learned", learned as f64));
    }
    Ok(records)
}

fn learns(rng: &mut StdRng, rules: Rules) -> bool {
    let mut case = Case::random(rng, false);
    case.transactions.truncate(1);
    let variant = Variant { rules, has_faults: false, ..VARIANTS[1] };
    let mut schedule = Schedule::new(&case, &variant, rng.random());
    let Some(transaction) = case.transactions.first().filter(|_| schedule.run().is_ok()) else {
        return false;
    };
    let curious = ShardId(rng.random_range(0..case.shards));
    let depends = |from: ShardId, on: ShardId| {
        transaction.parts.get(&from).is_some_and(|part| part.depends_on.contains(&on))
    };
    let strange = (0..case.shards)
        .map(ShardId)
        .filter(|shard| *shard != curious && !depends(curious, *shard) && !depends(*shard, curious));
    strange.into_iter().any(|to| {
        let mut shard: Shard = schedule.shards()[to.0 as usize].clone();
        let secret = Secret(sha256(&[b"a guess"]));
        shard.hear(&Message::Ask(Request { from: curious, to, transaction: 0, round: 1, secret }));
        // Who has no part says "discard", so whoever says "commit" has one.
        shard.take_sent().iter().any(|sent| matches!(sent, Message::Say(answer) if answer.belief))
    })
}
