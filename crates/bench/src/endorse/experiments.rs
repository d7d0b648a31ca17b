//! Experiments as data.

use super::measurement::METRICS;
use super::point::{PARAMETERS, Point};
use super::system::{SYSTEMS, named};
use crate::LaboratoryError;
use crate::paper::Paper;
use crate::report::Published;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    experiment: Vec<Experiment>,
}

/// One table or figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    pub(super) id: String,
    pub(super) paper: Paper,
    /// Table or figure, as the paper numbers it; a name for our own.
    number: String,
    pub(super) title: String,
    /// What to know when reading the result.
    #[serde(default)]
    pub(super) note: String,
    #[serde(default)]
    pub(super) quick: bool,
    systems: Vec<String>,
    pub(super) workload: String,
    pub(super) rows: u64,
    /// Transactions per second in open loop.
    pub(super) rate: Option<f64>,
    /// Clients in closed loop.
    pub(super) clients: Option<usize>,
    /// Pre-endorsed transactions for a committer alone.
    pub(super) endorsed_ahead: Option<u64>,
    /// The committer verifies the next blocks while it validates one.
    #[serde(default)]
    pub(super) pipelined: bool,
    pub(super) block_sizes: Vec<usize>,
    /// A block is cut so long after its first transaction came.
    #[serde(default = "a_second")]
    pub(super) block_ms: u64,
    #[serde(default = "zero")]
    skews: Vec<f64>,
    #[serde(default)]
    write_probabilities: Vec<f64>,
    #[serde(default)]
    hot: Vec<Hot>,
    /// The parameter on the horizontal axis of the plots.
    #[serde(default = "skew")]
    pub(super) x: String,
    /// What is plotted: one plot per metric and panel.
    #[serde(default = "throughput_and_aborts")]
    pub(super) plots: Vec<String>,
    /// What the paper found, for comparison.
    #[serde(default)]
    pub(super) published: Vec<Published>,
}

fn a_second() -> u64 {
    1_000
}

fn zero() -> Vec<f64> {
    vec![0.0]
}

fn skew() -> String {
    "skew".to_string()
}

fn throughput_and_aborts() -> Vec<String> {
    ["committed_tps", "conflict_abort_rate"].map(str::to_string).to_vec()
}

/// A configuration of hot accounts, in percent but for the first.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hot {
    pub(super) operations: u32,
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) share: f64,
}

/// Reads and checks a file of experiments.
pub(super) fn parse(text: &str) -> Result<Vec<Experiment>, LaboratoryError> {
    let File { experiment } =
        toml::from_str(text).map_err(|error| LaboratoryError::Malformed(error.to_string()))?;
    let mut ids = BTreeSet::new();
    for experiment in &experiment {
        experiment.check()?;
        if !ids.insert(&experiment.id) {
            return Err(experiment.wrong("an id of its own", "one that another entry has"));
        }
    }
    Ok(experiment)
}

impl Experiment {
    /// Paper and number; our own experiments have a name instead.
    pub(super) fn name(&self) -> String {
        self.paper.figure(&self.number)
    }

    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for skew in &self.skews {
            for write_probability in optional(&self.write_probabilities) {
                for hot in optional(&self.hot) {
                    for block_size in &self.block_sizes {
                        for system in self.systems.iter().filter_map(|system| named(system)) {
                            points.push(Point {
                                system,
                                workload: self.workload.clone(),
                                rows: self.rows,
                                block_size: *block_size,
                                skew: *skew,
                                write_probability,
                                hot,
                            });
                        }
                    }
                }
            }
        }
        points
    }

    /// The line of a point in a plot.
    pub(super) fn series(&self, point: &Point) -> String {
        point.system.name.to_string()
    }

    /// What a plot of one metric shows: the parameters that several plots of it differ in, with their values.
    pub(super) fn panel(&self, point: &Point) -> String {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, value) in self.points().iter().flat_map(Point::parameters) {
            values.entry(name).or_default().insert(value.to_string());
        }
        let differs = |name: &String| *name != self.x && values.get(name).is_some_and(|all| all.len() > 1);
        let own = point.parameters().into_iter().filter(|(name, _)| differs(name));
        own.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    }

    fn wrong(&self, expected: impl Into<String>, found: impl Into<String>) -> LaboratoryError {
        LaboratoryError::Experiment {
            experiment: self.id.clone(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn check(&self) -> Result<(), LaboratoryError> {
        self.known("system", &SYSTEMS.map(|system| system.name), &self.systems)?;
        let ways = [
            ("rate", self.rate.is_some()),
            ("clients", self.clients.is_some()),
            ("endorsed_ahead", self.endorsed_ahead.is_some()),
        ];
        let found: Vec<&str> = ways.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        if found.len() != 1 {
            let expected = format!("one of `{}`", ways.map(|(name, _)| name).join("`, `"));
            let found = if found.is_empty() { "none".to_string() } else { found.join(" and ") };
            return Err(self.wrong(expected, found));
        }
        if let Some(rate) = self.rate.filter(|rate| !(*rate > 0.0 && *rate <= 1e7)) {
            return Err(self.wrong("a `rate` above 0, at most 10000000", rate.to_string()));
        }
        if let Some(size) = self.block_sizes.iter().find(|size| !(1..=65_000).contains(*size)) {
            return Err(self.wrong("block_sizes from 1 to 65000", size.to_string()));
        }
        let points = self.points();
        if points.is_empty() {
            return Err(self.wrong("at least one value in `systems`, `block_sizes` and `skews`", "none"));
        }
        for point in &points {
            point
                .workload()
                .map_err(|error| self.wrong("a workload with its parameters", error.to_string()))?;
        }
        self.check_plots(&points)
    }

    fn check_plots(&self, points: &[Point]) -> Result<(), LaboratoryError> {
        let metrics = METRICS.map(|metric| metric.name);
        self.known("x", &PARAMETERS.map(|(name, _)| name), [&self.x])?;
        self.known("metric in `plots`", &metrics, &self.plots)?;
        let series: BTreeSet<String> = points.iter().map(|point| self.series(point)).collect();
        let panels: BTreeSet<String> = points.iter().map(|point| self.panel(point)).collect();
        let list =
            |all: &BTreeSet<String>| all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
        for published in &self.published {
            self.known("metric in `published`", &metrics, [&published.metric])?;
            if !series.contains(&published.series) {
                let expected = format!("as series in `published` one of {}", list(&series));
                return Err(self.wrong(expected, format!("`{}`", published.series)));
            }
            if !panels.contains(&published.panel) {
                let expected = format!("as panel in `published` one of {}", list(&panels));
                return Err(self.wrong(expected, format!("`{}`", published.panel)));
            }
            if published.x.len() != published.y.len() {
                let lengths = format!("{} and {}", published.x.len(), published.y.len());
                return Err(self.wrong("as many published x as y", lengths));
            }
        }
        Ok(())
    }

    fn known<'a>(
        &self,
        what: &str,
        known: &[&str],
        found: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), LaboratoryError> {
        match found.into_iter().find(|found| !known.contains(&found.as_str())) {
            Some(found) => {
                Err(self.wrong(format!("as {what} one of {}", known.join(", ")), format!("`{found}`")))
            }
            None => Ok(()),
        }
    }
}

/// Each of the values; nothing once where there is none.
fn optional<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    match values {
        [] => vec![None],
        values => values.iter().copied().map(Some).collect(),
    }
}
