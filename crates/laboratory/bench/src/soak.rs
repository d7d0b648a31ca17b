//! What a long run of a network has shown: samples of every node, what was done to it, what has grown, and the page with the plots.

use crate::report::{Page, Plot, Plotted, Report, Section, Table, Unit, Value, color};
use crate::{LaboratoryError, LatencyMs};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// A long run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SoakRecord {
    /// Nodes of the network.
    pub nodes: usize,
    /// How long the load ran, in minutes.
    pub minutes: u64,
    /// Transactions per second that were submitted.
    pub rate_tps: f64,
    /// Of how many blocks all nodes but the first keep transactions.
    pub payload_blocks: u64,
    /// What was done to the network.
    pub events: Vec<SoakEvent>,
    /// What clients saw, minute by minute.
    pub intervals: Vec<SoakInterval>,
    /// What the nodes were like.
    pub samples: Vec<SoakSample>,
    /// What has grown from the middle third of the time to the last one.
    pub grew: Vec<Growth>,
    /// Blocks of the ledger at the end.
    pub height: u64,
    /// Digest of the state on which all nodes agreed at the end.
    pub state_digest: String,
}

/// Something that was done to the network.
#[derive(Clone, Debug, Serialize)]
pub struct SoakEvent {
    /// Since the load began.
    pub seconds: f64,
    /// Position of the node.
    pub node: usize,
    /// `kill`, `join`, `amendment`, `checkpoint` or `restart`.
    pub kind: &'static str,
}

/// What clients saw for a minute.
#[derive(Clone, Debug, Serialize)]
pub struct SoakInterval {
    /// Since the load began, at its end.
    pub seconds: f64,
    /// Committed transactions per second.
    pub throughput_tps: f64,
    /// From submission to receipt.
    pub latency_ms: LatencyMs,
    /// The longest time that the clients of one organisation had no answer.
    pub longest_pause_seconds: f64,
    /// Submissions that were made again elsewhere.
    pub repeated: u64,
}

/// A node at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct SoakSample {
    /// Since the load began.
    pub seconds: f64,
    /// Position of the node.
    pub node: usize,
    /// Resident memory, in units of 1,000,000 bytes.
    pub resident_mb: f64,
    /// Open files, sockets and the like.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
    /// Bytes of the files of blocks, in units of 1,000,000.
    pub ledger_mb: f64,
    /// Bytes of the node's folder, in units of 1,000,000.
    pub folder_mb: f64,
    /// Transactions of the network until then.
    pub transactions: u64,
    /// Height of the first block with transactions.
    pub payloads_from: u64,
}

/// A figure that has grown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Position of the node; `None`: of the clients.
    pub node: Option<usize>,
    /// Name of the figure.
    pub what: &'static str,
    /// Its median in the middle third of the time.
    pub middle: f64,
    /// In the last third.
    pub last: f64,
}

impl fmt::Display for Growth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Growth { node, what, middle, last } = self;
        match node {
            Some(node) => write!(formatter, "node {}", node + 1)?,
            None => write!(formatter, "clients")?,
        }
        write!(formatter, ": {what} has grown from {middle:.1} to {last:.1}")
    }
}

/// What of a sample must not grow, and what it may have on top: no figure of a system that is busy is the same twice.
struct Bounded {
    what: &'static str,
    of: fn(&SoakSample) -> f64,
    slack: f64,
}

/// Growth up to this share of what there was is none.
const SHARE: f64 = 0.15;
const BOUNDED: [Bounded; 3] = [
    Bounded { what: "resident_mb", of: |sample| sample.resident_mb, slack: 30.0 },
    Bounded { what: "descriptors", of: |sample| sample.descriptors as f64, slack: 30.0 },
    Bounded { what: "threads", of: |sample| sample.threads as f64, slack: 4.0 },
];

/// What has grown from the middle third of a run to its last: memory, descriptors and threads of each node, bytes on the disk per transaction,
/// the ledger of nodes that prune, and latency.
pub fn soak_growth(samples: &[SoakSample], intervals: &[SoakInterval]) -> Vec<Growth> {
    let nodes = samples.iter().map(|sample| sample.node + 1).max().unwrap_or(0);
    let mut grew = Vec::new();
    for node in 0..nodes {
        let own: Vec<&SoakSample> = samples.iter().filter(|sample| sample.node == node).collect();
        for Bounded { what, of, slack } in &BOUNDED {
            let values: Vec<(f64, f64)> = own.iter().map(|sample| (sample.seconds, of(sample))).collect();
            grew.extend(growth((Some(node), what), &values, *slack));
        }
        grew.extend(growth((Some(node), "folder_bytes_per_transaction"), &per_transaction(&own), 50.0));
        if own.last().is_some_and(|last| last.payloads_from > 1) {
            let values: Vec<(f64, f64)> =
                own.iter().map(|sample| (sample.seconds, sample.ledger_mb)).collect();
            grew.extend(growth((Some(node), "ledger_mb"), &values, 64.0));
        }
    }
    let p50: Vec<(f64, f64)> = intervals.iter().map(|one| (one.seconds, one.latency_ms.p50)).collect();
    grew.extend(growth((None, "latency_ms_p50"), &p50, 20.0));
    grew
}

/// Bytes by which a node's folder has grown per transaction since its first sample.
fn per_transaction(samples: &[&SoakSample]) -> Vec<(f64, f64)> {
    let Some(first) = samples.first() else { return Vec::new() };
    let since = |sample: &&SoakSample| {
        let transactions = sample.transactions.saturating_sub(first.transactions);
        let bytes = (sample.folder_mb - first.folder_mb).max(0.0) * 1e6;
        (transactions > 0).then(|| (sample.seconds, bytes / transactions as f64))
    };
    samples.iter().filter_map(since).collect()
}

fn growth(of: (Option<usize>, &'static str), values: &[(f64, f64)], slack: f64) -> Option<Growth> {
    let (begin, end) = (values.first()?.0, values.last()?.0);
    let third = |number: f64| begin + (end - begin) * number / 3.0;
    let median = |from: f64, to: f64| {
        let mut those: Vec<f64> =
            values.iter().filter(|(at, _)| (from..=to).contains(at)).map(|(_, value)| *value).collect();
        those.sort_by(f64::total_cmp);
        those.get(those.len() / 2).copied()
    };
    let (middle, last) = (median(third(1.0), third(2.0))?, median(third(2.0), end)?);
    let (node, what) = of;
    (last > middle * (1.0 + SHARE) + slack).then_some(Growth { node, what, middle, last })
}

/// A chart of the page.
struct Shown {
    title: &'static str,
    unit: Unit,
    of: fn(&SoakSample) -> f64,
}

const SHOWN: [Shown; 5] = [
    Shown { title: "Resident memory (MB)", unit: Unit::Whole, of: |sample| sample.resident_mb },
    Shown { title: "Open descriptors", unit: Unit::Whole, of: |sample| sample.descriptors as f64 },
    Shown { title: "Threads", unit: Unit::Whole, of: |sample| sample.threads as f64 },
    Shown { title: "Files of blocks (MB)", unit: Unit::Whole, of: |sample| sample.ledger_mb },
    Shown { title: "The node's folder (MB)", unit: Unit::Whole, of: |sample| sample.folder_mb },
];

const READING: &str = "Four nodes under a steady load. Every minute something happens to one of them: it is killed and comes back, loses its \
                       ledger and joins again, is stopped and started, or the charter changes. Lines that go up to the end are leaks; the \
                       first node keeps all blocks, so its files grow with the ledger.";

/// Writes the page with the plots and a table of what has grown into a folder.
///
/// # Errors
/// [`LaboratoryError`]: the folder cannot be written.
pub fn soak_report(record: &SoakRecord, folder: &Path) -> Result<(), LaboratoryError> {
    let nodes: Vec<String> = (0..record.nodes).map(|node| format!("node {}", node + 1)).collect();
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut charts: Vec<_> =
        SHOWN.iter().filter_map(|shown| by_node(record, shown, &names).chart()).collect();
    charts.extend(latencies(record).chart());
    let table = events(record);
    let growth = match record.grew.is_empty() {
        true => "Nothing has grown.".to_string(),
        false => {
            let all: Vec<String> = record.grew.iter().map(ToString::to_string).collect();
            format!("{}.", all.join("; "))
        }
    };
    Report {
        page: Page {
            command: "soak",
            conditions: vec![
                ("Minutes", record.minutes.to_string()),
                ("Load", format!("{:.0} transactions per second", record.rate_tps)),
                ("Blocks", record.height.to_string()),
            ],
            reading: READING,
            sections: vec![Section {
                id: "soak".to_string(),
                name: "soak".to_string(),
                title: "A long run".to_string(),
                text: growth.clone(),
                legend: names
                    .iter()
                    .enumerate()
                    .map(|(number, name)| (name.to_string(), color(name, number)))
                    .collect(),
                published: false,
                charts,
                table: events(record),
            }],
            appendix: None,
        },
        csv: samples(record),
        introduction: format!("{READING}\n\n{growth}"),
        markdown: table,
    }
    .write(folder)
}

fn by_node<'a>(record: &'a SoakRecord, shown: &Shown, names: &'a [&'a str]) -> Plot<'a> {
    let plotted = |sample: &SoakSample| Plotted {
        series: names[sample.node],
        value: Value { x: minutes(sample.seconds), y: (shown.of)(sample), range: None },
        everywhere: false,
    };
    plot(shown.title, shown.unit, names, record.samples.iter().map(plotted).collect())
}

/// To the second.
fn minutes(seconds: f64) -> f64 {
    (seconds / 60.0 * 100.0).round() / 100.0
}

fn latencies(record: &SoakRecord) -> Plot<'_> {
    const NAMES: [&str; 2] = ["half", "99 of 100"];
    let plotted = |one: &SoakInterval| {
        let of = |series, y| Plotted {
            series,
            value: Value { x: minutes(one.seconds), y, range: None },
            everywhere: false,
        };
        [of(NAMES[0], one.latency_ms.p50), of(NAMES[1], one.latency_ms.p99)]
    };
    plot("Latency", Unit::Milliseconds, &NAMES, record.intervals.iter().flat_map(plotted).collect())
}

fn plot<'a>(title: &str, unit: Unit, names: &'a [&'a str], values: Vec<Plotted<'a>>) -> Plot<'a> {
    Plot {
        title: title.to_string(),
        subtitle: String::new(),
        x_title: "minutes".to_string(),
        x_logarithmic: false,
        unit,
        names,
        values,
        published: Vec::new(),
    }
}

fn events(record: &SoakRecord) -> Table {
    let mut table = Table::new(["minute", "event", "node", "tps", "p50 ms", "p99 ms", "longest pause s"]);
    for interval in &record.intervals {
        let event = record.events.iter().rfind(|event| event.seconds <= interval.seconds);
        table.rows.push(vec![
            format!("{:.0}", interval.seconds / 60.0),
            event.map_or(String::new(), |event| event.kind.to_string()),
            event.map_or(String::new(), |event| (event.node + 1).to_string()),
            format!("{:.0}", interval.throughput_tps),
            format!("{:.0}", interval.latency_ms.p50),
            format!("{:.0}", interval.latency_ms.p99),
            format!("{:.1}", interval.longest_pause_seconds),
        ]);
    }
    table
}

fn samples(record: &SoakRecord) -> Table {
    let mut table = Table::new([
        "seconds",
        "node",
        "resident_mb",
        "descriptors",
        "threads",
        "ledger_mb",
        "folder_mb",
        "transactions",
        "payloads_from",
    ]);
    for sample in &record.samples {
        table.rows.push(vec![
            format!("{:.1}", sample.seconds),
            (sample.node + 1).to_string(),
            format!("{:.1}", sample.resident_mb),
            sample.descriptors.to_string(),
            sample.threads.to_string(),
            format!("{:.1}", sample.ledger_mb),
            format!("{:.1}", sample.folder_mb),
            sample.transactions.to_string(),
            sample.payloads_from.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node whose memory, descriptors and folder are what these say at each of 60 minutes.
    fn samples_of(
        resident_mb: impl Fn(f64) -> f64,
        descriptors: impl Fn(f64) -> u64,
        folder_mb: impl Fn(f64) -> f64,
    ) -> Vec<SoakSample> {
        let sample = |minute: u32| SoakSample {
            seconds: f64::from(minute) * 60.0,
            node: 0,
            resident_mb: resident_mb(minute.into()),
            descriptors: descriptors(minute.into()),
            threads: 20,
            ledger_mb: 10.0,
            folder_mb: folder_mb(minute.into()),
            transactions: u64::from(minute) * 1_000,
            payloads_from: 1,
        };
        (0..60).map(sample).collect()
    }

    fn names(grew: &[Growth]) -> Vec<&str> {
        grew.iter().map(|growth| growth.what).collect()
    }

    #[test]
    fn what_stays_within_bounds_has_not_grown_and_what_leaks_is_named() {
        // Kills make memory go up and down.
        let sawtooth = |minute: f64| 200.0 + 5.0 * (minute % 8.0);
        let linear = |minute: f64| minute;
        assert!(soak_growth(&samples_of(sawtooth, |_| 100, linear), &[]).is_empty());
        let leaks = samples_of(
            |minute| 200.0 + 10.0 * minute,
            |minute| 100 + 5 * minute as u64,
            |minute| minute * minute,
        );
        assert_eq!(
            names(&soak_growth(&leaks, &[])),
            ["resident_mb", "descriptors", "folder_bytes_per_transaction"]
        );
        let interval = |minute: u32| SoakInterval {
            seconds: f64::from(minute) * 60.0,
            throughput_tps: 100.0,
            latency_ms: LatencyMs { p50: 20.0 + 2.0 * f64::from(minute), p99: 100.0 },
            longest_pause_seconds: 0.1,
            repeated: 0,
        };
        let slower: Vec<SoakInterval> = (0..60).map(interval).collect();
        let grew = soak_growth(&[], &slower);
        assert_eq!((names(&grew), grew[0].node), (vec!["latency_ms_p50"], None));
        assert!(soak_growth(&[], &slower[..1]).is_empty(), "a minute tells nothing");
    }

    #[test]
    fn the_page_has_a_line_for_each_node() {
        let mut samples = samples_of(|_| 200.0, |_| 100, |minute| minute);
        samples.extend(samples.clone().into_iter().map(|sample| SoakSample { node: 1, ..sample }));
        let record = SoakRecord { nodes: 2, samples, ..SoakRecord::default() };
        let folder = tempfile::tempdir().expect("a folder");
        soak_report(&record, folder.path()).expect("written");
        let page = std::fs::read_to_string(folder.path().join("report.html")).expect("written");
        assert!(
            page.contains("Resident memory") && page.contains("node 2") && page.contains("Nothing has grown")
        );
    }
}
