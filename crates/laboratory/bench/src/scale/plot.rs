//! The records as a report: throughput, latency and bytes by the number of members.

use super::ScaleNetwork;
use super::record::{ScaleRecord, scale_table};
use crate::LaboratoryError;
use crate::report::{Chart, Page, Plot, Plotted, Report, Section, Table, Unit, Value, color};
use std::path::Path;

const READING: &str = "Consensus and execution are the code that nodes run; time, lines and processors are simulated, and charged with \
                       what everything costs on this machine. Latency is from the call to the certified receipt at the client's \
                       own node, at half of the throughput.";

/// HarmonyBC prints no numbers beside its Figures 17 and 18; this is what its text says (paper 004, section 5.5).
const PAPER: &str = "HarmonyBC with HotStuff on 80 machines of four continents (Figures 17 and 18): \u{201c}the throughput of HarmonyBC \
                     using a BFT consensus is almost unaffected\u{201d}, and the latency becomes larger with more nodes.";

/// Whoever may be in a chart, simulated or not.
const ORDERINGS: [&str; 3] = ["bft", "raft", "kafka"];

/// What a chart shows.
struct Shown {
    title: &'static str,
    unit: Unit,
    of: fn(&ScaleRecord) -> Option<f64>,
}

const CHARTS: [Shown; 3] = [
    Shown { title: "Throughput", unit: Unit::Rate, of: |record| Some(record.throughput_tps) },
    Shown { title: "Latency, median", unit: Unit::Milliseconds, of: |record| Some(record.latency_ms.p50) },
    Shown {
        title: "Bytes of blocks that a leader sends for a transaction",
        unit: Unit::Whole,
        of: |record| record.leader_bytes_per_transaction,
    },
];

/// Writes `report.html`, `measurements.csv` and `measurements.md` into a folder.
///
/// # Errors
/// The folder cannot be written.
pub fn scale_report(records: &[ScaleRecord], folder: &Path) -> Result<(), LaboratoryError> {
    let sections = ScaleNetwork::ALL.into_iter().filter_map(|network| section(network, records)).collect();
    let table = table(records);
    Report {
        page: Page {
            command: "scale",
            conditions: vec![("Networks", records.len().to_string())],
            reading: READING,
            sections,
            appendix: None,
        },
        csv: table.clone(),
        introduction: format!("{READING}\n\n```text\n{}```", scale_table(records)),
        markdown: table,
    }
    .write(folder)
}

fn section(network: ScaleNetwork, records: &[ScaleRecord]) -> Option<Section> {
    let its: Vec<ScaleRecord> =
        records.iter().filter(|record| record.network == network.name()).cloned().collect();
    let charts: Vec<Chart> = CHARTS.iter().filter_map(|shown| chart(shown, &its)).collect();
    let (title, text) = match network {
        ScaleNetwork::Room => {
            ("In one machine room", "Lines of 10 Gbit/s, 0.1 ms from machine to machine. Kafka is not simulated: four nodes and three brokers on one \
             machine."
                .to_string())
        }
        ScaleNetwork::Continent => {
            ("On one continent", "Four cities, 1 to 15 ms apart; lines of 1 Gbit/s.".to_string())
        }
        ScaleNetwork::World => (
            "On four continents",
            format!("Ohio, Mumbai, Sydney and Stockholm, 57 to 138 ms apart; lines of 1 Gbit/s. {PAPER}"),
        ),
    };
    let legend = ORDERINGS.iter().enumerate();
    let legend = legend.filter(|(_, ordering)| its.iter().any(|record| record.ordering == **ordering));
    (!charts.is_empty()).then(|| Section {
        id: network.name().to_string(),
        name: network.name().to_string(),
        title: title.to_string(),
        text,
        legend: legend.map(|(number, ordering)| (ordering.to_string(), color(ordering, number))).collect(),
        published: false,
        charts,
        table: table(&its),
    })
}

fn chart(shown: &Shown, records: &[ScaleRecord]) -> Option<Chart> {
    let plotted = |record| {
        let record: &ScaleRecord = record;
        let value = Value { x: record.members as f64, y: (shown.of)(record)?, range: None };
        Some(Plotted { series: &record.ordering, value, everywhere: false })
    };
    Plot {
        title: shown.title.to_string(),
        subtitle: String::new(),
        x_title: "members".to_string(),
        x_logarithmic: true,
        unit: shown.unit,
        names: &ORDERINGS,
        values: records.iter().filter_map(plotted).collect(),
        published: Vec::new(),
    }
    .chart()
}

fn table(records: &[ScaleRecord]) -> Table {
    let mut table = Table::new([
        "ordering",
        "network",
        "members",
        "throughput_tps",
        "p50_ms",
        "p99_ms",
        "blocks_per_second",
        "transactions_per_block",
        "leader_bytes_per_transaction",
        "member_bytes_per_transaction",
    ]);
    table.rows = records
        .iter()
        .map(|record| {
            let number = |value: f64| format!("{value:.1}");
            vec![
                record.ordering.clone(),
                record.network.to_string(),
                record.members.to_string(),
                number(record.throughput_tps),
                number(record.latency_ms.p50),
                number(record.latency_ms.p99),
                number(record.blocks_per_second),
                number(record.transactions_per_block),
                record.leader_bytes_per_transaction.map(number).unwrap_or_default(),
                record.member_bytes_per_transaction.map(number).unwrap_or_default(),
            ]
        })
        .collect();
    table
}
