//! The measurements of execute–order–validate as a report.

use super::experiments::Experiment;
use super::measurement::{EndorseMeasurement, METRICS};
use super::point::{LOGARITHMIC, PARAMETERS};
use crate::report::{
    Chart, Metric, Page, Plot, Plotted, Report, Section, Table, Value, cell, color, grouped, throughput,
};
use std::collections::BTreeSet;
use std::time::Duration;

const READING: &str = "Points are medians over the rounds, thin bars their range; shares and latencies are of all rounds \
                       together. Hollow points are what the paper prints, on its own machines; dashes only connect them. Clients, \
                       endorsers, orderer and committer share one process and its cores; signatures are real, no wire.";

/// How the measurements were made.
pub(super) struct Context {
    /// The machine, as names and values.
    pub(super) machine: Vec<(&'static str, String)>,
    pub(super) seed: u64,
    pub(super) rounds: usize,
    /// Seconds of a point in a round.
    pub(super) seconds: f64,
    pub(super) took: Duration,
}

pub(super) fn report(
    context: &Context,
    experiments: &[Experiment],
    measurements: &[EndorseMeasurement],
) -> Report {
    let sections = experiments.iter().filter_map(|experiment| {
        let of = |measurement: &&EndorseMeasurement| measurement.record.experiment == experiment.id;
        let its: Vec<&EndorseMeasurement> = measurements.iter().filter(of).collect();
        (!its.is_empty()).then(|| section(experiment, &its))
    });
    let timed = format!("{} of {} s at every point, interleaved", rounds(context.rounds), context.seconds);
    let mut conditions = context.machine.clone();
    conditions.extend([
        ("Timed", timed.clone()),
        ("Seed", context.seed.to_string()),
        ("Took", format!("{:.0} s", context.took.as_secs_f64())),
    ]);
    let machine: Vec<String> =
        context.machine.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    Report {
        page: Page {
            command: "endorse",
            conditions,
            reading: READING,
            sections: sections.collect(),
            appendix: None,
        },
        csv: csv(measurements),
        introduction: format!(
            "`entente bench endorse --seed {}`, {timed}; medians (range).\n\n{}.",
            context.seed,
            machine.join("; ")
        ),
        markdown: markdown(measurements),
    }
}

fn rounds(number: usize) -> String {
    if number == 1 { "1 round".to_string() } else { format!("{number} rounds") }
}

fn section(experiment: &Experiment, measurements: &[&EndorseMeasurement]) -> Section {
    let placed: Vec<Placed> = measurements
        .iter()
        .map(|measurement| Placed {
            series: experiment.series(&measurement.point),
            panel: experiment.panel(&measurement.point),
            measurement,
        })
        .collect();
    let series = in_order(placed.iter().map(|placed| placed.series.as_str()));
    let panels = in_order(placed.iter().map(|placed| placed.panel.as_str()));
    let mut charts = Vec::new();
    for panel in panels {
        for plot in &experiment.plots {
            let metric = METRICS.iter().find(|metric| metric.name == plot).expect("checked with the file");
            charts.extend(chart(experiment, &placed, &series, panel, metric));
        }
    }
    let note = if experiment.note.is_empty() { String::new() } else { format!(" {}", experiment.note) };
    let legend = series.iter().enumerate().map(|(number, name)| (name.to_string(), color(name, number)));
    Section {
        id: experiment.id.clone(),
        name: experiment.name(),
        title: experiment.title.clone(),
        text: format!("{}.{note}", settings(experiment)),
        legend: legend.collect(),
        published: !experiment.published.is_empty(),
        charts,
        table: table(measurements),
    }
}

/// A measurement and where it stands.
struct Placed<'a> {
    series: String,
    panel: String,
    measurement: &'a EndorseMeasurement,
}

/// Each once, as they come.
fn in_order<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// What the points share.
fn settings(experiment: &Experiment) -> String {
    let sizes: Vec<String> = experiment.block_sizes.iter().map(usize::to_string).collect();
    let sizes = sizes.join(", ");
    let workload = format!("{} with {} rows", experiment.workload, grouped(experiment.rows));
    let network = |arrivals: String| {
        format!("{workload}; {arrivals}; blocks of {sizes}, cut after {} ms", experiment.block_ms)
    };
    if let Some(rate) = experiment.rate {
        network(format!("open loop, {} transactions per second", grouped(rate as u64)))
    } else if let Some(clients) = experiment.clients {
        network(format!("closed loop, {} clients", grouped(clients as u64)))
    } else if let Some(transactions) = experiment.endorsed_ahead {
        let transactions = grouped(transactions);
        format!(
            "{workload}; a committer alone with {transactions} endorsed transactions in blocks of {sizes}"
        )
    } else {
        format!("Batches of {sizes} transactions, given by the keys that they read and write")
    }
}

/// One metric of one panel; nothing if it was not measured.
fn chart(
    experiment: &Experiment,
    placed: &[Placed],
    names: &[&str],
    panel: &str,
    metric: &Metric<EndorseMeasurement>,
) -> Option<Chart> {
    let values = placed.iter().filter(|placed| placed.panel == panel).filter_map(|placed| {
        let measurement = placed.measurement;
        let range = measurement.committed_tps_range.filter(|_| metric.name == "committed_tps");
        let x = *measurement.record.parameters.get(&experiment.x)?;
        let value = Value { x, y: (metric.of)(measurement)?, range };
        Some(Plotted { series: &placed.series, value, everywhere: false })
    });
    let published = experiment
        .published
        .iter()
        .filter(|published| published.panel == panel && published.metric == metric.name);
    let title = PARAMETERS.iter().find(|(name, _)| *name == experiment.x).map_or("", |(_, title)| title);
    let x_title = match experiment.workload.as_str() {
        "contention" if experiment.x == "skew" => "share of transfers between the same two wallets",
        _ => title,
    };
    let plot = Plot {
        title: metric.title.to_string(),
        subtitle: panel.to_string(),
        x_title: x_title.to_string(),
        x_logarithmic: LOGARITHMIC.contains(&experiment.x.as_str()),
        unit: metric.unit,
        names,
        values: values.collect(),
        published: published.collect(),
    };
    plot.chart()
}

/// The parameters that some of these have.
fn parameters<'a>(measurements: impl Iterator<Item = &'a EndorseMeasurement>) -> Vec<&'a str> {
    let all: BTreeSet<&str> = measurements
        .flat_map(|measurement| measurement.record.parameters.keys())
        .map(String::as_str)
        .collect();
    all.into_iter().collect()
}

fn parameter(measurement: &EndorseMeasurement, name: &str) -> Option<f64> {
    measurement.record.parameters.get(name).copied()
}

fn table(measurements: &[&EndorseMeasurement]) -> Table {
    let parameters = parameters(measurements.iter().copied());
    let shown: Vec<&Metric<EndorseMeasurement>> = METRICS
        .iter()
        .filter(|metric| metric.name != "committed_tps")
        .filter(|metric| measurements.iter().any(|measurement| (metric.of)(measurement).is_some()))
        .collect();
    let variants = measurements.iter().any(|measurement| measurement.record.variant.is_some());
    let mut table = Table::new(["system"]);
    if variants {
        table.columns.push("committer".to_string());
    }
    table.columns.extend(parameters.iter().map(|name| name.to_string()));
    table.columns.push("Committed per second (range)".to_string());
    table.columns.extend(shown.iter().map(|metric| metric.title.to_string()));
    for measurement in measurements {
        let mut row = vec![measurement.record.system.clone()];
        if variants {
            row.push(measurement.point.variant().to_string());
        }
        let value =
            |name: &&str| parameter(measurement, name).map_or("–".to_string(), |value| value.to_string());
        row.extend(parameters.iter().map(value));
        row.push(committed(measurement));
        row.extend(shown.iter().map(|metric| metric.show(measurement)));
        table.rows.push(row);
    }
    table
}

fn committed(measurement: &EndorseMeasurement) -> String {
    throughput(measurement.record.committed_tps, measurement.committed_tps_range)
}

/// One line per point, every parameter and metric a column, nothing where there is none.
fn csv(measurements: &[EndorseMeasurement]) -> Table {
    let parameters = parameters(measurements.iter());
    let mut table = Table::new(
        ["experiment", "kind", "system", "variant"]
            .into_iter()
            .chain(parameters.iter().copied())
            .chain(METRICS.map(|metric| metric.name))
            .chain(["committed_tps_min", "committed_tps_max"]),
    );
    for measurement in measurements {
        let record = &measurement.record;
        let mut cells = vec![
            record.experiment.clone(),
            record.kind.to_string(),
            record.system.clone(),
            measurement.point.variant().to_string(),
        ];
        cells.extend(parameters.iter().map(|name| cell(parameter(measurement, name))));
        cells.extend(METRICS.iter().map(|metric| cell((metric.of)(measurement))));
        cells.push(cell(measurement.committed_tps_range.map(|range| range.0)));
        cells.push(cell(measurement.committed_tps_range.map(|range| range.1)));
        table.rows.push(cells);
    }
    table
}

/// A table for other documents.
fn markdown(measurements: &[EndorseMeasurement]) -> Table {
    let mut table = Table::new(["experiment", "system", "parameters", "committed tps"]);
    let shown = METRICS.iter().filter(|metric| metric.name != "committed_tps");
    table.columns.extend(shown.clone().map(|metric| metric.title.to_lowercase()));
    for measurement in measurements {
        let record = &measurement.record;
        let parameters: Vec<String> =
            record.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let system = match &record.variant {
            Some(variant) => format!("{} ({variant})", record.system),
            None => record.system.clone(),
        };
        let mut row = vec![record.experiment.clone(), system, parameters.join(", "), committed(measurement)];
        row.extend(shown.clone().map(|metric| metric.show(measurement)));
        table.rows.push(row);
    }
    table
}
