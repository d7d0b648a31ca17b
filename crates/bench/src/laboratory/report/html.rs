use super::Context;
use super::chart::{Chart, Series, Value, escaped};
use super::tables::throughput;
use crate::laboratory::Measurement;
use crate::laboratory::experiments::{Experiment, Paper, Status};
use crate::laboratory::measurement::{METRICS, Metric};
use std::collections::BTreeSet;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// Colours of the protocols, told apart also by those who see red and green alike.
const COLORS: [(&str, &str); 7] = [
    ("harmony", "#00875a"),
    ("aria", "#d9480f"),
    ("ssi", "#e0a800"),
    ("graph", "#8250df"),
    ("block-stm", "#1f6feb"),
    ("serial", "#8b949e"),
    ("postgres", "var(--text)"),
];
/// Colours of other series, in turn.
const MORE_COLORS: [&str; 8] =
    ["#8b949e", "#1f6feb", "#8250df", "#00875a", "#e0a800", "#d9480f", "#c2255c", "#0c8599"];

/// The whole report as one page that needs nothing else.
pub(in super::super) fn html(
    context: &Context,
    experiments: &[Experiment],
    measurements: &[Measurement],
) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Entente laboratory: {command}</title><style>{STYLE}</style></head><body><main>\
         <header><h1>Entente laboratory <span>{command}</span></h1>",
        command = context.command
    );
    conditions(&mut page, context);
    page += "</header>";
    let measured = experiments.iter().filter_map(|experiment| {
        let of = |measurement: &&Measurement| measurement.experiments.contains(&experiment.id);
        let its: Vec<&Measurement> = measurements.iter().filter(of).collect();
        (!its.is_empty()).then_some((experiment, its))
    });
    let measured: Vec<(&Experiment, Vec<&Measurement>)> = measured.collect();
    page += "<nav>";
    for (experiment, _) in &measured {
        let _ = write!(page, "<a href=\"#{}\">{}</a>", escaped(&experiment.id), escaped(&name(experiment)));
    }
    page += "<a href=\"#coverage\">All experiments</a></nav>";
    for (experiment, its) in &measured {
        section(&mut page, experiment, its);
    }
    coverage(&mut page, experiments);
    page += "</main></body></html>\n";
    page
}

fn conditions(page: &mut String, context: &Context) {
    let mut all: Vec<(&str, String)> = context.machine.clone();
    let timing = format!("{} rounds of {} s at every point, interleaved", context.rounds, context.seconds);
    all.extend([("Timed", timing), ("Load", context.pace.clone())]);
    all.extend(context.postgres.iter().map(|postgres| ("PostgreSQL", postgres.clone())));
    all.extend([
        ("Seed", context.seed.to_string()),
        ("Took", format!("{:.0} s", context.took.as_secs_f64())),
    ]);
    *page += "<dl>";
    for (name, value) in all {
        let _ = write!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
    }
    *page += "</dl><p>Points are medians over the rounds, thin bars their range. Dashed lines with hollow points are \
              what the paper prints. Rates are counted in a run of their own, which is the same on every machine.</p>";
}

/// Paper and number; our own experiments have a name instead.
fn name(experiment: &Experiment) -> String {
    match experiment.paper {
        Paper::Entente => experiment.number.clone(),
        paper => format!("{} {}", paper.name(), experiment.number),
    }
}

fn section(page: &mut String, experiment: &Experiment, measurements: &[&Measurement]) {
    let _ = write!(
        page,
        "<section id=\"{}\"><h2><span>{}</span> {}</h2>",
        escaped(&experiment.id),
        escaped(&name(experiment)),
        escaped(&experiment.title)
    );
    let rows = format!("{} rows", experiment.rows);
    let note =
        if experiment.note.is_empty() { String::new() } else { format!(" {}", escaped(&experiment.note)) };
    let _ = write!(page, "<p>{}; {rows}.{note}</p>", settings(measurements));
    let series = series_names(measurements);
    *page += "<div class=\"legend\">";
    for (number, series) in series.iter().enumerate() {
        let color = color(series, number);
        let _ = write!(page, "<span><i style=\"background:{color}\"></i>{}</span>", escaped(series));
    }
    if !experiment.published.is_empty() {
        *page += "<span><i class=\"published\"></i>the paper</span>";
    }
    *page += "</div><div class=\"charts\">";
    for workload in &experiment.workloads {
        for plot in &experiment.plots {
            let metric = METRICS.iter().find(|metric| metric.name == plot).expect("checked with the file");
            if let Some(chart) = chart(experiment, measurements, &series, workload, metric) {
                let _ = write!(page, "<figure>{}</figure>", chart.svg());
            }
        }
    }
    *page += "</div>";
    table(page, measurements);
    *page += "</section>";
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

fn color(series: &str, number: usize) -> &'static str {
    let own = COLORS.iter().find(|(name, _)| *name == series).map(|(_, color)| *color);
    own.unwrap_or(MORE_COLORS[number % MORE_COLORS.len()])
}

/// One metric of one workload; nothing if it was not measured.
fn chart(
    experiment: &Experiment,
    measurements: &[&Measurement],
    names: &[&str],
    workload: &str,
    metric: &Metric,
) -> Option<Chart> {
    let mut series: Vec<Series> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let here = measurements.iter().filter(|measurement| {
            measurement.point.workload == workload && measurement.point.series.as_str() == *name
        });
        let mut values: Vec<Value> = here
            .clone()
            .filter_map(|measurement| {
                let range = measurement.committed_tps_range.filter(|_| metric.name == "committed_tps");
                Some(Value { x: measurement.point.x(&experiment.x), y: (metric.of)(measurement)?, range })
            })
            .collect();
        values.sort_by(|one, other| one.x.total_cmp(&other.x));
        let everywhere =
            experiment.x != "skew" && here.clone().any(|measurement| measurement.point.is_postgres());
        let color = color(name, number);
        if !values.is_empty() {
            series.push(Series { name: name.to_string(), color, values, published: false, everywhere });
        }
        let published = experiment.published.iter().filter(|published| {
            published.series == *name && published.workload == workload && published.metric == metric.name
        });
        for published in published {
            let pairs = published.x.iter().zip(&published.y);
            let values = pairs.map(|(x, y)| Value { x: *x, y: *y, range: None }).collect();
            let name = format!("{name}, the paper");
            series.push(Series { name, color, values, published: true, everywhere: false });
        }
    }
    if series.iter().all(|series| series.published) {
        return None;
    }
    let x_title = match (experiment.x.as_str(), workload) {
        ("block_size", _) => "transactions of a batch",
        ("threads", _) => "threads",
        (_, "ycsb-hotspot") => "probability of a hot row",
        (_, "contention") => "share of transfers between the same two wallets",
        _ => "skew (Zipf's exponent)",
    };
    Some(Chart {
        title: format!("{} — {workload}", metric.title),
        x_title: x_title.to_string(),
        x_logarithmic: experiment.x == "block_size",
        unit: metric.unit,
        series,
    })
}

fn table(page: &mut String, measurements: &[&Measurement]) {
    let shown: Vec<&Metric> = METRICS
        .iter()
        .filter(|metric| metric.name != "committed_tps")
        .filter(|metric| measurements.iter().any(|measurement| (metric.of)(measurement).is_some()))
        .collect();
    let timed = measurements.iter().any(|measurement| measurement.record.committed_tps.is_some());
    *page += "<details><summary>All figures</summary><div class=\"scroll\"><table><tr><th>series</th><th>workload</th>\
              <th>skew</th><th>batch</th><th>threads</th>";
    if timed {
        *page += "<th>Committed per second (range)</th>";
    }
    for metric in &shown {
        let _ = write!(page, "<th>{}</th>", metric.title);
    }
    *page += "</tr>";
    for measurement in measurements {
        let point = &measurement.point;
        let block = if point.is_postgres() { "–".to_string() } else { point.block_size.to_string() };
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{block}</td><td>{}</td>",
            escaped(&point.series),
            point.workload,
            point.skew,
            point.threads
        );
        if timed {
            let _ = write!(page, "<td>{}</td>", throughput(measurement));
        }
        for metric in &shown {
            let value =
                (metric.of)(measurement).map_or_else(|| "–".to_string(), |value| metric.unit.show(value));
            let _ = write!(page, "<td>{value}</td>");
        }
        *page += "</tr>";
    }
    *page += "</table></div></details>";
}

/// Every table and figure of the papers, and how far it is.
fn coverage(page: &mut String, experiments: &[Experiment]) {
    *page += "<section id=\"coverage\"><h2>All experiments</h2><p>Every table and figure of the five papers, from \
              <code>docs/experiments.toml</code>.</p>";
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
        *page += "</table></div></details>";
    }
    *page += "</section>";
}
