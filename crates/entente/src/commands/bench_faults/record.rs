//! What was measured.

use super::shares::Means;
use crate::commands::figures::{median, quantile};
use bench::LatencyMs;
use comfy_table::{Table, presets};
use serde::Serialize;

/// What `--json` writes.
#[derive(Debug, Serialize)]
pub(super) struct FaultsRecord {
    /// Nodes of the network.
    pub nodes: usize,
    /// Customers of Smallbank.
    pub customers: u64,
    /// Where nodes keep rows.
    pub store: &'static str,
    /// Who had how much of the processors.
    pub shares: SharesRecord,
    /// (a) With all nodes and with one down.
    pub throughput: ThroughputRecord,
    /// (b) How a node that was down catches up.
    pub catch_up: CatchUpRecord,
    /// (c) What clients of the others notice when the leader ends.
    pub leader_failure: PauseRecord,
    /// (d) All nodes up, answers at each moment.
    pub latency: Vec<LatencyRecord>,
    /// Digest of the state on which all nodes agreed at the end.
    pub state_digest: String,
}

/// Who had how much of the processors.
#[derive(Debug, Serialize)]
pub(super) struct SharesRecord {
    /// How the shares were kept.
    pub means: Means,
    /// Processors of a node.
    pub node: f64,
    /// Processors of the load generator; null where it was not bound.
    pub load: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct ThroughputRecord {
    /// Median over the rounds of committed transactions per second, all nodes up.
    pub normal_tps: f64,
    /// The same with one down, after its first missed turns.
    pub one_down_tps: f64,
    /// Median over the rounds of the ratio of the two.
    pub ratio: f64,
    pub rounds: Vec<ThroughputRound>,
}

#[derive(Debug, Serialize)]
pub(super) struct ThroughputRound {
    /// Position of the node that was down.
    pub node: usize,
    pub normal_tps: f64,
    pub one_down_tps: f64,
    /// How much of its share the load generator used, with all nodes and with one down: near 1 it is what limits the
    /// throughput. Null where it had no share.
    pub load_busy: Option<[f64; 2]>,
}

#[derive(Debug, Serialize)]
pub(super) struct CatchUpRecord {
    /// Median over the rounds of [`CatchUpRound::ratio`].
    pub ratio: f64,
    /// Median over the rounds of [`CatchUpRound::ratio_once_answering`].
    pub ratio_once_answering: f64,
    pub rounds: Vec<CatchUpRound>,
}

#[derive(Debug, Serialize)]
pub(super) struct CatchUpRound {
    /// Position of the node that was down.
    pub node: usize,
    /// Blocks that it lacked when its process was started again.
    pub blocks_behind: u64,
    /// Transactions in them.
    pub transactions_behind: u64,
    /// From the start of its process until it answered.
    pub answered_seconds: f64,
    /// From the start of its process until it had the newest block.
    pub caught_up_seconds: f64,
    /// Transactions per second that arrived meanwhile.
    pub arriving_tps: f64,
    /// Transactions per second that the node executed meanwhile.
    pub executed_tps: f64,
    /// The second by the first, from the start of the process.
    pub ratio: f64,
    /// The same from its first answer: without opening its files and reading its checkpoint.
    pub ratio_once_answering: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct PauseRecord {
    /// How often a leader was killed.
    pub kills: usize,
    /// Transactions per second that were submitted at the others.
    pub rate_tps: f64,
    /// Of the longest times without an answer that a gateway of the others had after each kill, in milliseconds.
    pub median_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    /// Of every kill.
    pub pauses_ms: Vec<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct LatencyRecord {
    /// When clients were answered.
    pub answer_at: &'static str,
    /// Transactions per second that were submitted.
    pub rate_tps: f64,
    /// From submission to receipt.
    pub latency_ms: LatencyMs,
}

impl ThroughputRecord {
    pub(super) fn of(rounds: Vec<ThroughputRound>) -> ThroughputRecord {
        let of = |figure: fn(&ThroughputRound) -> f64| median(rounds.iter().map(figure).collect());
        ThroughputRecord {
            normal_tps: of(|round| round.normal_tps),
            one_down_tps: of(|round| round.one_down_tps),
            ratio: of(|round| round.one_down_tps / round.normal_tps),
            rounds,
        }
    }
}

impl CatchUpRecord {
    pub(super) fn of(rounds: Vec<CatchUpRound>) -> CatchUpRecord {
        let of = |figure: fn(&CatchUpRound) -> f64| median(rounds.iter().map(figure).collect());
        CatchUpRecord {
            ratio: of(|round| round.ratio),
            ratio_once_answering: of(|round| round.ratio_once_answering),
            rounds,
        }
    }
}

impl PauseRecord {
    pub(super) fn of(rate_tps: f64, pauses_ms: Vec<f64>) -> PauseRecord {
        PauseRecord {
            kills: pauses_ms.len(),
            rate_tps,
            median_ms: median(pauses_ms.clone()),
            p99_ms: quantile(pauses_ms.clone(), 0.99),
            max_ms: quantile(pauses_ms.clone(), 1.0),
            pauses_ms,
        }
    }
}

/// For people.
pub(super) fn table(record: &FaultsRecord) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "measured", "asked"]);
    let FaultsRecord { throughput, catch_up, leader_failure, latency, .. } = record;
    let mut row = |name: String, measured: String, asked: &str| {
        table.add_row([name, measured, asked.to_string()]);
    };
    row("all nodes, committed tps".into(), format!("{:.0}", throughput.normal_tps), "");
    row("one node down, committed tps".into(), format!("{:.0}", throughput.one_down_tps), "");
    row("one down by all".into(), format!("{:.2}", throughput.ratio), "≥ 0.80");
    row("catching up by arriving".into(), format!("{:.1}", catch_up.ratio), "≥ 3");
    row("… from its first answer".into(), format!("{:.1}", catch_up.ratio_once_answering), "");
    let PauseRecord { kills, median_ms, p99_ms, max_ms, .. } = leader_failure;
    let pause = format!("{median_ms:.0} / {p99_ms:.0} / {max_ms:.0}");
    row(format!("pause at {kills} leader failures, ms: median / p99 / max"), pause, "p99 < 3,000");
    for LatencyRecord { answer_at, rate_tps, latency_ms } in latency {
        row(
            format!("latency at {rate_tps:.0} tps, {answer_at}, ms: p50 / p99"),
            format!("{:.0} / {:.0}", latency_ms.p50, latency_ms.p99),
            "",
        );
    }
    table
}
