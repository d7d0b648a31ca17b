//! Experiments as data.

use super::committer::Committer;
use super::measurement::METRICS;
use super::point::{Measured, PARAMETERS, Point};
use super::reordering::Shape;
use super::system::{SYSTEMS, named};
use super::transfers::PAYLOAD_BYTES_MAX;
use crate::LaboratoryError;
use crate::paper::Paper;
use crate::report::Published;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Endorsements on older states are void; the blocks of a committer alone stay well within it.
const SNAPSHOT_BLOCKS_MAX: usize = 250;
/// Transactions that a verifier remembers.
const REMEMBERED_MAX: u64 = 32_768;

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
    #[serde(default)]
    pub(super) workload: String,
    #[serde(default)]
    pub(super) rows: u64,
    /// Transactions per second in open loop.
    pub(super) rate: Option<f64>,
    /// Clients in closed loop.
    pub(super) clients: Option<usize>,
    /// Pre-endorsed transactions for a committer alone.
    pub(super) endorsed_ahead: Option<u64>,
    /// A batch that is only reordered, and the steps of its shape.
    pub(super) reordering: Option<Shape>,
    #[serde(default)]
    steps: Vec<usize>,
    /// Ahead by so many blocks; without it, all are endorsed on the state before the first block.
    endorsed_behind: Option<usize>,
    /// How the committer works; without it, one block after the other.
    #[serde(default)]
    committers: Vec<Committer>,
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
    /// What transfers carry.
    #[serde(default)]
    payload_bytes: Vec<usize>,
    /// The system whose throughput at the same parameters the others' overhead is compared with.
    pub(super) baseline: Option<String>,
    /// The parameter on the horizontal axis of the plots.
    #[serde(default = "skew")]
    pub(super) x: String,
    /// What makes a line of a plot: `system`, or a parameter.
    #[serde(default = "system")]
    series: String,
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

fn system() -> String {
    "system".to_string()
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
        let systems: Vec<_> = self.systems.iter().filter_map(|system| named(system)).collect();
        let mut points = Vec::new();
        for skew in &self.skews {
            for write_probability in optional(&self.write_probabilities) {
                for hot in optional(&self.hot) {
                    for payload_bytes in optional(&self.payload_bytes) {
                        for block_size in &self.block_sizes {
                            for measured in self.measured() {
                                points.extend(systems.iter().map(|system| Point {
                                    system: *system,
                                    workload: self.workload.clone(),
                                    rows: self.rows,
                                    block_size: *block_size,
                                    skew: *skew,
                                    write_probability,
                                    hot,
                                    payload_bytes,
                                    endorsed_behind: self.endorsed_behind,
                                    measured: measured.clone(),
                                }));
                            }
                        }
                    }
                }
            }
        }
        points
    }

    fn measured(&self) -> Vec<Measured> {
        match (self.reordering, self.endorsed_ahead) {
            (Some(shape), _) => self.steps.iter().map(|step| Measured::Reordering(shape, *step)).collect(),
            (None, Some(_)) if self.committers.is_empty() => vec![Measured::Committer(Committer::default())],
            (None, Some(_)) => self.committers.iter().cloned().map(Measured::Committer).collect(),
            (None, None) => vec![Measured::Network],
        }
    }

    /// The line of a point in a plot.
    pub(super) fn series(&self, point: &Point) -> String {
        if self.series != "system" {
            let value = point.parameters().get(&self.series).copied().unwrap_or_default();
            return format!("{} {value}", self.series);
        }
        match (point.variant(), self.systems.len()) {
            ("", _) => point.system.name.to_string(),
            (variant, 1) => variant.to_string(),
            (variant, _) => format!("{}, {variant}", point.system.name),
        }
    }

    /// What a plot of one metric shows: the parameters that several plots of it differ in, with their values. What a
    /// committer's name stands for makes lines, not plots.
    pub(super) fn panel(&self, point: &Point) -> String {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let named = self.series == "system" && !point.variant().is_empty();
        for other in self.points().iter().filter(|other| !named || other.variant() == point.variant()) {
            for (name, value) in other.parameters() {
                values.entry(name).or_default().insert(value.to_string());
            }
        }
        let differs = |name: &String| {
            *name != self.x && *name != self.series && values.get(name).is_some_and(|all| all.len() > 1)
        };
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
            ("reordering", self.reordering.is_some()),
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
        self.check_committers()?;
        self.check_reordering()?;
        let points = self.points();
        if points.is_empty() {
            return Err(self.wrong("at least one value in `systems`, `block_sizes` and `skews`", "none"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = points.iter().map(Point::describe).find(|name| !names.insert(name.clone())) {
            return Err(self.wrong("points that a record can tell apart", format!("twice {twice}")));
        }
        if let Some(baseline) = self.baseline.as_ref().filter(|baseline| !self.systems.contains(baseline)) {
            let expected = format!("as `baseline` one of its systems: {}", self.systems.join(", "));
            return Err(self.wrong(expected, format!("`{baseline}`")));
        }
        for point in points.iter().filter(|_| self.reordering.is_none()) {
            point
                .workload()
                .map_err(|error| self.wrong("a workload with its parameters", error.to_string()))?;
        }
        self.check_plots(&points)
    }

    fn check_committers(&self) -> Result<(), LaboratoryError> {
        let Some(transactions) = self.endorsed_ahead else {
            let only = "only beside `endorsed_ahead`";
            return match (self.committers.is_empty(), self.endorsed_behind) {
                (true, None) => Ok(()),
                (false, _) => Err(self.wrong(format!("`committers` {only}"), "them without it")),
                (true, Some(_)) => Err(self.wrong(format!("`endorsed_behind` {only}"), "it without that")),
            };
        };
        let within =
            |name: &str, found: u64, range: std::ops::RangeInclusive<u64>| match range.contains(&found) {
                true => Ok(()),
                false => Err(self
                    .wrong(format!("{name} from {} to {}", range.start(), range.end()), found.to_string())),
            };
        within("endorsed_ahead", transactions, 1..=10_000_000)?;
        for bytes in &self.payload_bytes {
            within("payload_bytes", *bytes as u64, 0..=PAYLOAD_BYTES_MAX as u64)?;
        }
        if !self.payload_bytes.is_empty() && !["contention", "transfers"].contains(&self.workload.as_str()) {
            let expected = "contention or transfers as workload of `payload_bytes`";
            return Err(self.wrong(expected, format!("`{}`", self.workload)));
        }
        let blocks = |size: &usize| transactions.div_ceil(*size as u64);
        match self.endorsed_behind {
            Some(behind) => within("endorsed_behind", behind as u64, 0..=SNAPSHOT_BLOCKS_MAX as u64)?,
            None => {
                if let Some(blocks) =
                    self.block_sizes.iter().map(blocks).find(|blocks| *blocks > SNAPSHOT_BLOCKS_MAX as u64)
                {
                    let expected = format!(
                        "`endorsed_behind` where there are more than {SNAPSHOT_BLOCKS_MAX} blocks, because \
                         endorsements become too old"
                    );
                    return Err(self.wrong(expected, format!("{blocks} blocks without it")));
                }
            }
        }
        for committer in &self.committers {
            within("threads", committer.threads as u64, 0..=256)?;
            within("verified_ahead", committer.verified_ahead as u64, 0..=64)?;
            within("flushed_together", committer.flushed_together as u64, 1..=1_000)?;
            within("endorsed_together", committer.endorsed_together as u64, 1..=1_000)?;
            if committer.remembered {
                within("endorsed_ahead beside `remembered`", transactions, 1..=REMEMBERED_MAX)?;
            }
            let in_order = |name: &&String| {
                named(name).is_none_or(|system| !concurrency::GRAPH_IDS.contains(&system.protocol))
            };
            if let Some(system) = self.systems.iter().find(in_order).filter(|_| committer.graph) {
                let expected = format!(
                    "beside `graph` systems that validate with one of {}: others are judged in order all the same",
                    concurrency::GRAPH_IDS.join(", ")
                );
                return Err(self.wrong(expected, format!("`{system}`")));
            }
        }
        Ok(())
    }

    fn check_reordering(&self) -> Result<(), LaboratoryError> {
        let Some(shape) = self.reordering else {
            return match self.steps.as_slice() {
                [] => Ok(()),
                _ => Err(self.wrong("`steps` only beside `reordering`", "them without it")),
            };
        };
        if self.steps.is_empty() {
            return Err(self.wrong("at least one value in `steps`", "none"));
        }
        for size in &self.block_sizes {
            let range = shape.steps(*size);
            if let Some(step) = self.steps.iter().find(|step| !range.contains(step)) {
                let expected = format!("steps from {} to {}", range.start(), range.end());
                return Err(self.wrong(expected, step.to_string()));
            }
        }
        Ok(())
    }

    fn check_plots(&self, points: &[Point]) -> Result<(), LaboratoryError> {
        let metrics = METRICS.map(|metric| metric.name);
        let parameters = PARAMETERS.map(|(name, _)| name);
        self.known("x", &parameters, [&self.x])?;
        let series: Vec<&str> = ["system"].into_iter().chain(parameters).collect();
        self.known("series", &series, [&self.series])?;
        if let Some(point) = points.iter().find(|point| !point.parameters().contains_key(&self.x)) {
            let own: Vec<String> = point.parameters().into_keys().collect();
            return Err(self.wrong(format!("as x one of {}", own.join(", ")), format!("`{}`", self.x)));
        }
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
