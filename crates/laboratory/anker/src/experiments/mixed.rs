//! Transactions of TPC-C beside the eight questions (2.6).

use super::{Progress, VM_SNAPSHOT, median};
use crate::AnkerError;
use crate::arguments::Plan;
use crate::driver::{self, Load, Ran};
use crate::record::AnkerRecord;
use crate::system::System;
use crate::tpcc::{Access, QUESTIONS, Scale};
use std::time::Duration;

/// Transactions run alone at most so long; five seconds in the paper.
const QUIET: Duration = Duration::from_secs(5);

/// Table 2.2: transactions per second with 1, 10, 20, 30 and 40 warehouses.
const PAPER_WAREHOUSES: [(&str, [f64; 5]); 4] = [
    (VM_SNAPSHOT, [51_289.0, 50_525.0, 49_718.0, 48_637.0, 47_729.0]),
    ("fork", [46_391.0, 42_741.0, 39_172.0, 35_678.0, 31_220.0]),
    ("see", [32_456.0, 31_810.0, 31_281.0, 30_299.0, 28_794.0]),
    ("see-snapshot", [48_391.0, 48_027.0, 47_687.0, 47_033.0, 46_237.0]),
];
/// The last column of Table 2.2: how many times as many with 1 warehouse as with 40.
const PAPER_SLOWDOWN: [(&str, f64); 4] =
    [(VM_SNAPSHOT, 1.07), ("fork", 1.49), ("see", 1.18), ("see-snapshot", 1.05)];
/// 2.6.4: transactions per second beside questions, uniform, from and to.
const PAPER_TPS: [(&str, (f64, f64)); 4] = [
    (VM_SNAPSHOT, (47_000.0, 47_000.0)),
    ("fork", (30_000.0, 38_000.0)),
    ("see", (28_000.0, 28_000.0)),
    ("see-snapshot", (42_000.0, 42_000.0)),
];
/// 2.6.4: the same before the first question, whatever the system.
const PAPER_TPS_BEFORE: (f64, f64) = (60_000.0, 70_000.0);
/// 2.6.3: milliseconds of Q3 in one engine, uniform, "up to".
const PAPER_Q3: [(&str, f64); 2] = [("see", 2_200.0), ("see-snapshot", 2_200.0)];
/// 2.6.3: latency of Q6, Q7 and Q8 with fork, by that with vm_snapshot.
const PAPER_BY_FORK: (f64, f64) = (4.9, 7.5);
/// 2.6.5: how much lower the throughput with six streams of questions is than with one, in percent.
const PAPER_STREAMS: [(&str, f64); 2] = [(VM_SNAPSHOT, -11.6), ("fork", -67.6)];

fn load(plan: &Plan, system: System) -> Load {
    Load {
        system,
        scale: plan.scale,
        access: Access::Uniform,
        threads: plan.threads,
        streams: plan.streams,
        quiet: (plan.time / 5).min(QUIET),
        time: plan.time,
        every: plan.every,
        questions: (0..QUESTIONS.len()).collect(),
        seed: plan.seed,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

fn paper_of<T: Copy>(known: &[(&str, T)], system: &str) -> Option<T> {
    known.iter().find(|(name, _)| *name == system).map(|(_, value)| *value)
}

/// Figures 2.8 and 2.9 come out of the same runs: latency of the questions, throughput of the transactions.
pub(super) fn figures_2_8_and_2_9(
    plan: &Plan,
    progress: &mut Progress<'_>,
) -> Result<Vec<AnkerRecord>, AnkerError> {
    let mut records = Vec::new();
    for access in [Access::Uniform, Access::Skewed] {
        let first = records.len();
        for system in &plan.systems {
            progress(&format!("  {}, {}", system.name, access.name()));
            let ran = driver::run(&Load { access, ..load(plan, *system) })?;
            records.extend(latencies(*system, access, &ran));
            records.extend(throughputs(*system, access, &ran));
        }
        let by_fork = by_fork(&records[first..], access);
        records.extend(by_fork);
    }
    let quoted = AnkerRecord::new("figure-2-9", VM_SNAPSHOT, "committed_tps");
    let quoted = quoted.at("access", Access::Uniform.name());
    records.push(quoted.beside_range(paper_of(&PAPER_TPS, VM_SNAPSHOT)));
    for question in ["Q6", "Q7", "Q8"] {
        let quoted = AnkerRecord::new("figure-2-8", VM_SNAPSHOT, "times_as_fast_as_fork");
        let quoted = quoted.at("access", Access::Uniform.name()).at("question", question);
        records.push(quoted.beside_range(Some(PAPER_BY_FORK)));
    }
    Ok(records)
}

/// How many times as long the same question takes with fork.
fn by_fork(records: &[AnkerRecord], access: Access) -> Vec<AnkerRecord> {
    let of = |record: &&AnkerRecord| record.metric == "latency_ms" && record.value.is_some();
    let latencies: Vec<&AnkerRecord> = records.iter().filter(of).collect();
    let mut made = Vec::new();
    for record in latencies.iter().filter(|record| record.system != "fork") {
        let same = |fork: &&&AnkerRecord| fork.system == "fork" && fork.point == record.point;
        let fork = latencies.iter().find(same).and_then(|fork| fork.value);
        let question = record.point.get("question").cloned();
        if let (Some(fork), Some(own), Some(question)) = (fork, record.value, question) {
            let times = AnkerRecord::new("figure-2-8", record.system, "times_as_fast_as_fork");
            let times = times.at("access", access.name()).at("question", question);
            made.push(times.is(fork / own.max(1e-9)));
        }
    }
    made
}

/// The means over all times that a question was asked, as in the paper.
fn latencies(system: System, access: Access, ran: &Ran) -> Vec<AnkerRecord> {
    let record = |metric| AnkerRecord::new("figure-2-8", system.name, metric).at("access", access.name());
    if let Some(why) = &ran.refused {
        return vec![record("latency_ms").at("question", QUESTIONS[0]).refused(why)];
    }
    let mut records = Vec::new();
    for question in QUESTIONS {
        let Some(times) = ran.asked.get(question) else { continue };
        let latency = mean(times.iter().map(|(_, latency)| *latency));
        let is_paper = access == Access::Uniform && question == "Q3";
        let paper = is_paper.then(|| paper_of(&PAPER_Q3, system.name)).flatten();
        records.push(record("latency_ms").at("question", question).is(latency).beside(paper));
        if system.storage != crate::Storage::See {
            let snapshot = mean(times.iter().map(|(snapshot, _)| *snapshot));
            records.push(record("snapshot_ms").at("question", question).is(snapshot));
        }
    }
    records
}

fn throughputs(system: System, access: Access, ran: &Ran) -> Vec<AnkerRecord> {
    let record = |metric| AnkerRecord::new("figure-2-9", system.name, metric).at("access", access.name());
    if let Some(why) = &ran.refused {
        return vec![record("committed_tps").refused(why)];
    }
    let is_uniform = access == Access::Uniform;
    let paper = is_uniform.then(|| paper_of(&PAPER_TPS, system.name)).flatten();
    vec![
        record("committed_tps").is(ran.tps).beside_range(paper),
        record("committed_tps_before_questions")
            .is(ran.quiet_tps)
            .beside_range(is_uniform.then_some(PAPER_TPS_BEFORE)),
        record("conflict_rate").is(ran.conflict_rate),
        record("old_versions").is(ran.versions as f64),
    ]
}

/// 1, 2, 4 and so on, and the last.
fn streams(most: usize) -> Vec<usize> {
    let mut streams: Vec<usize> = [1, 2, 4, 6].into_iter().filter(|streams| *streams < most).collect();
    streams.push(most);
    streams
}

/// Figure 2.10: latency of Q1 and Q6 beside 1 to 6 streams of transactions, with two streams of questions.
pub(super) fn figure_2_10(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let mut records = Vec::new();
    for system in &plan.systems {
        for threads in streams(plan.streams_max) {
            progress(&format!("  {}, {threads} streams of transactions", system.name));
            let questions = vec![0, 5];
            let ran = driver::run(&Load { threads, streams: 2, questions, ..load(plan, *system) })?;
            for question in ["Q1", "Q6"] {
                let record = AnkerRecord::new("figure-2-10", system.name, "latency_ms");
                let record = record.at("threads", threads).at("question", question);
                records.push(match (&ran.refused, ran.asked.get(question)) {
                    (Some(why), _) => record.refused(why),
                    (None, Some(times)) => record.is(median(times.iter().map(|(_, ms)| *ms).collect())),
                    (None, None) => record,
                });
            }
        }
    }
    Ok(records)
}

/// Figure 2.11: throughput of two streams of transactions beside 1 to 6 streams of questions.
pub(super) fn figure_2_11(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let mut records = Vec::new();
    let most = plan.streams_max;
    let change = |system| AnkerRecord::new("figure-2-11", system, "change_percent").at("streams", most);
    let paper = |system: &str| if most == 6 { paper_of(&PAPER_STREAMS, system) } else { None };
    for system in &plan.systems {
        let mut first = None;
        for streams in streams(most) {
            progress(&format!("  {}, {streams} streams of questions", system.name));
            let ran = driver::run(&Load { threads: 2, streams, ..load(plan, *system) })?;
            let record = AnkerRecord::new("figure-2-11", system.name, "committed_tps").at("streams", streams);
            if let Some(why) = &ran.refused {
                records.push(record.refused(why));
                continue;
            }
            records.push(record.is(ran.tps));
            let first = *first.get_or_insert(ran.tps);
            if streams == most && most > 1 && first > 0.0 {
                let lower = (ran.tps / first - 1.0) * 100.0;
                records.push(change(system.name).is(lower).beside(paper(system.name)));
            }
        }
    }
    if let Some(paper) = paper(VM_SNAPSHOT) {
        records.push(change(VM_SNAPSHOT).beside(Some(paper)));
    }
    records.sort_by_key(|record| record.metric != "committed_tps");
    Ok(records)
}

/// Table 2.2: throughput as the tables grow. The paper leaves read uncommitted out.
pub(super) fn table_2_2(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let most = plan.scale.warehouses;
    let mut warehouses: Vec<usize> = [1, most / 4, most / 2, most * 3 / 4, most].to_vec();
    warehouses.retain(|warehouses| *warehouses > 0);
    warehouses.dedup();
    let paper = |system: &str, warehouses: usize| {
        let row = PAPER_WAREHOUSES.iter().find(|(name, _)| *name == system)?.1;
        let at = [1, 10, 20, 30, 40].iter().position(|known| *known == warehouses)?;
        Some(row[at])
    };
    let mut records = Vec::new();
    for system in plan.systems.iter().filter(|system| system.name != "see-uncommitted") {
        let mut measured = Vec::new();
        for warehouses in &warehouses {
            progress(&format!("  {}, {warehouses} warehouses", system.name));
            let scale = Scale { warehouses: *warehouses, ..plan.scale };
            let ran = driver::run(&Load { scale, ..load(plan, *system) })?;
            let record = AnkerRecord::new("table-2-2", system.name, "committed_tps");
            let record = record.at("warehouses", *warehouses).beside(paper(system.name, *warehouses));
            records.push(match &ran.refused {
                Some(why) => record.refused(why),
                None => record.is(ran.tps),
            });
            measured.extend(ran.refused.is_none().then_some(ran.tps));
        }
        if let [first, .., last] = measured.as_slice() {
            let record = slowdown(system.name, most).is(first / last.max(1e-9));
            records.push(record.beside(paper_slowdown(system.name, most)));
        }
    }
    for warehouses in warehouses {
        if let Some(tps) = paper(VM_SNAPSHOT, warehouses) {
            let record = AnkerRecord::new("table-2-2", VM_SNAPSHOT, "committed_tps");
            records.push(record.at("warehouses", warehouses).beside(Some(tps)));
        }
    }
    if let Some(paper) = paper_slowdown(VM_SNAPSHOT, most) {
        records.push(slowdown(VM_SNAPSHOT, most).beside(Some(paper)));
    }
    records.sort_by_key(|record| record.metric != "committed_tps");
    Ok(records)
}

/// How many times as many transactions commit with one warehouse as with the most.
fn slowdown(system: &'static str, warehouses: usize) -> AnkerRecord {
    AnkerRecord::new("table-2-2", system, "slowdown").at("warehouses", warehouses)
}

fn paper_slowdown(system: &str, warehouses: usize) -> Option<f64> {
    if warehouses == 40 { paper_of(&PAPER_SLOWDOWN, system) } else { None }
}
