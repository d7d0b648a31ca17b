//! The measurements of the laboratory as a report.

use super::Measurement;
use super::experiments::{Experiment, Status};
use super::measurement::METRICS;
use crate::paper::Paper;
use crate::report::{
    Chart, Metric, Page, Plot, Plotted, Report, Section, Table, Value, cell, color, escaped, throughput,
};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

const READING: &str = "Points are medians over the rounds, thin bars their range. Dashed lines with hollow points are \
                       what the paper prints. Rates are counted in a run of their own, which is the same on every machine.";

/// How the measurements were made.
pub(super) struct Context {
    /// `protocols` or `ablation`.
    pub(super) command: &'static str,
    /// The machine, as names and values.
    pub(super) machine: Vec<(&'static str, String)>,
    pub(super) seed: u64,
    pub(super) rounds: usize,
    /// Seconds of a point in a round.
    pub(super) seconds: f64,
    /// How transactions came, for people.
    pub(super) pace: String,
    /// The same of PostgreSQL, which keeps its own, where it was measured.
    pub(super) postgres: Option<String>,
    pub(super) took: Duration,
}

pub(super) fn report(context: &Context, experiments: &[Experiment], measurements: &[Measurement]) -> Report {
    let sections = experiments.iter().filter_map(|experiment| {
        let of = |measurement: &&Measurement| measurement.experiments.contains(&experiment.id);
        let its: Vec<&Measurement> = measurements.iter().filter(of).collect();
        (!its.is_empty()).then(|| section(experiment, &its))
    });
    let page = Page {
        command: context.command,
        conditions: conditions(context),
        reading: READING,
        sections: sections.collect(),
        appendix: Some(("coverage", "All experiments", coverage(experiments))),
    };
    Report {
        page,
        csv: csv(measurements),
        introduction: introduction(context),
        markdown: markdown(measurements),
    }
}

fn conditions(context: &Context) -> Vec<(&'static str, String)> {
    let mut all = context.machine.clone();
    let timing = format!("{} rounds of {} s at every point, interleaved", context.rounds, context.seconds);
    all.extend([("Timed", timing), ("Load", context.pace.clone())]);
    all.extend(context.postgres.iter().map(|postgres| ("PostgreSQL", postgres.clone())));
    all.extend([
        ("Seed", context.seed.to_string()),
        ("Took", format!("{:.0} s", context.took.as_secs_f64())),
    ]);
    all
}

fn section(experiment: &Experiment, measurements: &[&Measurement]) -> Section {
    let names = series_names(measurements);
    let mut charts = Vec::new();
    for workload in &experiment.workloads {
        for plot in &experiment.plots {
            let metric = METRICS.iter().find(|metric| metric.name == plot).expect("checked with the file");
            charts.extend(chart(experiment, measurements, &names, workload, metric));
        }
    }
    let note = if experiment.note.is_empty() { String::new() } else { format!(" {}", experiment.note) };
    let legend = names.iter().enumerate().map(|(number, name)| (name.to_string(), color(name, number)));
    Section {
        id: experiment.id.clone(),
        name: experiment.paper.figure(&experiment.number),
        title: experiment.title.clone(),
        text: format!("{}; {} rows.{note}", settings(measurements), experiment.rows),
        legend: legend.collect(),
        published: !experiment.published.is_empty(),
        charts,
        table: table(measurements),
    }
}

/// What the series share: block sizes, threads, options.
fn settings(measurements: &[&Measurement]) -> String {
    let list = |numbers: BTreeSet<usize>| {
        numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
    };
    let engine = measurements.iter().filter(|measurement| !measurement.point.is_postgres());
    let blocks = list(engine.clone().map(|measurement| measurement.point.block_size as usize).collect());
    let threads = list(engine.clone().map(|measurement| measurement.point.threads).collect());
    let options: BTreeSet<String> = engine
        .map(|measurement| {
            let options = &measurement.point.options;
            let (consistency, granularity) = (options.consistency, options.granularity);
            format!("{consistency:?} consistency, conflicts by {granularity:?}, {:?}", options.on_conflict)
                .to_lowercase()
        })
        .collect();
    let options: Vec<String> = options.into_iter().collect();
    format!("Batches of {blocks}; threads {threads}; {}", options.join(" or "))
}

fn series_names<'a>(measurements: &[&'a Measurement]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for measurement in measurements {
        if !names.contains(&measurement.point.series.as_str()) {
            names.push(measurement.point.series.as_str());
        }
    }
    names
}

/// One metric of one workload; nothing if it was not measured.
fn chart(
    experiment: &Experiment,
    measurements: &[&Measurement],
    names: &[&str],
    workload: &str,
    metric: &Metric<Measurement>,
) -> Option<Chart> {
    let here = measurements.iter().filter(|measurement| measurement.point.workload == workload);
    let values = here.filter_map(|measurement| {
        let point = &measurement.point;
        let range = measurement.committed_tps_range.filter(|_| metric.name == "committed_tps");
        let value = Value { x: point.x(&experiment.x), y: (metric.of)(measurement)?, range };
        // A database without blocks is measured once for all of them.
        let everywhere = experiment.x != "skew" && point.is_postgres();
        Some(Plotted { series: &point.series, value, everywhere })
    });
    let published = experiment
        .published
        .iter()
        .filter(|published| published.panel == workload && published.metric == metric.name);
    let x_title = match (experiment.x.as_str(), workload) {
        ("block_size", _) => "transactions of a batch",
        ("threads", _) => "threads",
        (_, "ycsb-hotspot") => "probability of a hot row",
        (_, "contention") => "share of transfers between the same two wallets",
        _ => "skew (Zipf's exponent)",
    };
    let plot = Plot {
        title: format!("{} — {workload}", metric.title),
        subtitle: String::new(),
        x_title: x_title.to_string(),
        x_logarithmic: experiment.x == "block_size",
        unit: metric.unit,
        names,
        values: values.collect(),
        published: published.collect(),
    };
    plot.chart()
}

fn table(measurements: &[&Measurement]) -> Table {
    let shown: Vec<&Metric<Measurement>> = METRICS
        .iter()
        .filter(|metric| metric.name != "committed_tps")
        .filter(|metric| measurements.iter().any(|measurement| (metric.of)(measurement).is_some()))
        .collect();
    let timed = measurements.iter().any(|measurement| measurement.record.committed_tps.is_some());
    let mut table = Table::new(["series", "workload", "skew", "batch", "threads"]);
    if timed {
        table.columns.push("Committed per second (range)".to_string());
    }
    table.columns.extend(shown.iter().map(|metric| metric.title.to_string()));
    for measurement in measurements {
        let point = &measurement.point;
        let block = if point.is_postgres() { "–".to_string() } else { point.block_size.to_string() };
        let mut row = vec![
            point.series.clone(),
            point.workload.clone(),
            point.skew.to_string(),
            block,
            point.threads.to_string(),
        ];
        if timed {
            row.push(throughput(measurement.record.committed_tps, measurement.committed_tps_range));
        }
        row.extend(shown.iter().map(|metric| metric.show(measurement)));
        table.rows.push(row);
    }
    table
}

/// One line per point, every metric a column, nothing where nothing was measured.
fn csv(measurements: &[Measurement]) -> Table {
    let names = METRICS.map(|metric| metric.name);
    let mut table = Table::new(
        "experiments,protocol,variant,workload,rows,skew,block_size,threads,consistency,on_conflict,granularity,\
         inter_block,reordering,coalescing,store,memory_megabytes"
            .split(',')
            .chain(names)
            .chain(["committed_tps_min", "committed_tps_max"]),
    );
    for measurement in measurements {
        let point = &measurement.point;
        let options = &point.options;
        let mut cells = vec![
            measurement.experiments.join(" "),
            point.protocol.clone(),
            point.variant.clone(),
            point.workload.clone(),
            point.rows.to_string(),
            point.skew.to_string(),
            point.block_size.to_string(),
            point.threads.to_string(),
            format!("{:?}", options.consistency).to_lowercase(),
            format!("{:?}", options.on_conflict).to_lowercase(),
            format!("{:?}", options.granularity).to_lowercase(),
            options.inter_block.to_string(),
            options.reordering.to_string(),
            options.coalescing.to_string(),
            point.store.name().to_string(),
            point.memory_megabytes.to_string(),
        ];
        cells.extend(METRICS.iter().map(|metric| cell((metric.of)(measurement))));
        cells.push(cell(measurement.committed_tps_range.map(|range| range.0)));
        cells.push(cell(measurement.committed_tps_range.map(|range| range.1)));
        table.rows.push(cells);
    }
    table
}

fn introduction(context: &Context) -> String {
    let machine: Vec<String> =
        context.machine.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let postgres = context.postgres.as_ref().map_or(String::new(), |own| format!(" PostgreSQL: {own}."));
    format!(
        "`entente bench {} --seed {}`, {} rounds of {} s at every point, interleaved; medians (range). {}.{postgres}\n\n{}.",
        context.command,
        context.seed,
        context.rounds,
        context.seconds,
        context.pace,
        machine.join("; ")
    )
}

/// A table for other documents.
fn markdown(measurements: &[Measurement]) -> Table {
    let mut table = Table::new([
        "protocol",
        "workload",
        "skew",
        "block",
        "threads",
        "committed tps",
        "p50",
        "p99",
        "conflict aborts",
        "false aborts",
        "dangerous structures",
        "ran again",
        "executions",
        "cores",
    ]);
    for measurement in measurements {
        let point = &measurement.point;
        let mut cells = vec![
            point.protocol.clone(),
            point.workload.clone(),
            point.skew.to_string(),
            point.block_size.to_string(),
            point.threads.to_string(),
            throughput(measurement.record.committed_tps, measurement.committed_tps_range),
        ];
        if !point.variant.is_empty() {
            cells[0] = format!("{} ({})", point.protocol, point.variant);
        }
        if point.store.has_files() {
            cells[0] = format!("{}, {}", cells[0], point.store.name());
        }
        let shown =
            METRICS.iter().filter(|metric| !["committed_tps", "business_abort_rate"].contains(&metric.name));
        cells.extend(shown.map(|metric| metric.show(measurement)));
        table.rows.push(cells);
    }
    table
}

/// Every table and figure of the papers, and how far it is.
fn coverage(experiments: &[Experiment]) -> String {
    let mut page = "<section id=\"coverage\"><h2>All experiments</h2><p>Every table and figure of the five papers, from \
              <code>docs/experiments.toml</code>.</p>"
        .to_string();
    let papers: BTreeSet<Paper> = experiments.iter().map(|experiment| experiment.paper).collect();
    for paper in papers {
        let its: Vec<&Experiment> =
            experiments.iter().filter(|experiment| experiment.paper == paper).collect();
        let count = |status| its.iter().filter(|experiment| experiment.status == status).count();
        let _ = write!(
            page,
            "<details><summary>{}: {} done, {} planned, {} not</summary><div class=\"scroll\"><table>",
            paper.name(),
            count(Status::Done),
            count(Status::Planned),
            count(Status::Not)
        );
        for experiment in its {
            let (status, how) = match experiment.status {
                Status::Done if experiment.command == "demo" => ("done", "entente demo".to_string()),
                Status::Done => ("done", format!("entente bench {}", experiment.command)),
                Status::Planned => ("planned", experiment.why.clone()),
                Status::Not => ("not", experiment.why.clone()),
            };
            let _ = write!(
                page,
                "<tr><td>{}</td><td>{}</td><td><b class=\"{status}\">{status}</b></td><td>{}</td></tr>",
                escaped(&experiment.number),
                escaped(&experiment.title),
                escaped(&how)
            );
        }
        page += "</table></div></details>";
    }
    page += "</section>";
    page
}
