//! Experiments as data.

use super::EndorseError;
use super::network::{Arrivals, RunOptions};
use super::system::{SYSTEMS, System, named};
use serde::Deserialize;
use std::collections::BTreeMap;
use workloads::smallbank::Smallbank;
use workloads::{Contention, HotAccounts, ParameterError, Workload};

/// The experiments that are built in.
pub(super) const BUILT_IN: &str = include_str!("../../../../docs/endorse.toml");

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
    /// Paper and number, for people.
    pub(super) title: String,
    systems: Vec<String>,
    workload: String,
    rows: u64,
    /// Transactions per second in open loop.
    rate: Option<f64>,
    /// Clients in closed loop.
    clients: Option<usize>,
    /// Pre-endorsed transactions for a committer alone.
    pub(super) endorsed_ahead: Option<u64>,
    /// The committer verifies the next blocks while it validates one.
    #[serde(default)]
    pub(super) pipelined: bool,
    block_sizes: Vec<usize>,
    /// A block is cut so long after its first transaction came.
    #[serde(default = "a_second")]
    block_ms: u64,
    #[serde(default = "zero")]
    skews: Vec<f64>,
    #[serde(default)]
    write_probabilities: Vec<f64>,
    #[serde(default)]
    hot: Vec<Hot>,
    #[serde(default)]
    pub(super) quick: bool,
}

fn a_second() -> u64 {
    1_000
}

fn zero() -> Vec<f64> {
    vec![0.0]
}

/// A configuration of hot accounts, in percent but for the first.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hot {
    operations: u32,
    reads: f64,
    writes: f64,
    share: f64,
}

/// One point of an experiment.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) system: System,
    workload: String,
    rows: u64,
    pub(super) block_size: usize,
    skew: f64,
    write_probability: Option<f64>,
    hot: Option<Hot>,
}

/// Reads a file of experiments and checks it.
pub(super) fn parse(text: &str) -> Result<Vec<Experiment>, EndorseError> {
    let file: File = toml::from_str(text).map_err(|error| EndorseError::Experiments(error.to_string()))?;
    for experiment in &file.experiment {
        let wrong = |what: String| Err(EndorseError::Experiments(format!("{}: {what}", experiment.id)));
        if let Some(system) = experiment.systems.iter().find(|system| named(system).is_none()) {
            let known: Vec<&str> = SYSTEMS.iter().map(|system| system.name).collect();
            return wrong(format!("expected systems of {}, found `{system}`", known.join(", ")));
        }
        let ways =
            [experiment.rate.is_some(), experiment.clients.is_some(), experiment.endorsed_ahead.is_some()];
        if ways.iter().filter(|way| **way).count() != 1 {
            return wrong("expected one of `rate`, `clients` and `endorsed_ahead`".to_string());
        }
        if let Some(size) = experiment.block_sizes.iter().find(|size| !(1..=65_000).contains(*size)) {
            return wrong(format!("expected block_sizes from 1 to 65000, found {size}"));
        }
        for point in experiment.points() {
            if let Err(error) = point.workload() {
                return wrong(error.to_string());
            }
        }
    }
    Ok(file.experiment)
}

impl Experiment {
    pub(super) fn points(&self) -> Vec<Point> {
        let optional = |values: &[f64]| match values {
            [] => vec![None],
            values => values.iter().copied().map(Some).collect(),
        };
        let hot: Vec<Option<Hot>> = match self.hot.as_slice() {
            [] => vec![None],
            hot => hot.iter().copied().map(Some).collect(),
        };
        let mut points = Vec::new();
        for skew in &self.skews {
            for write_probability in optional(&self.write_probabilities) {
                for hot in &hot {
                    for block_size in &self.block_sizes {
                        for system in self.systems.iter().filter_map(|system| named(system)) {
                            points.push(Point {
                                system,
                                workload: self.workload.clone(),
                                rows: self.rows,
                                block_size: *block_size,
                                skew: *skew,
                                write_probability,
                                hot: *hot,
                            });
                        }
                    }
                }
            }
        }
        points
    }
}

impl Point {
    pub(super) fn workload(&self) -> Result<Box<dyn Workload>, ParameterError> {
        Ok(match (self.workload.as_str(), self.hot) {
            ("smallbank", _) => {
                let smallbank = Smallbank::new(self.rows, self.skew)?;
                match self.write_probability {
                    Some(writes) => Box::new(smallbank.with_write_probability(writes)?),
                    None => Box::new(smallbank),
                }
            }
            ("contention", _) => Box::new(Contention::new(self.rows, self.skew)?),
            ("hot-accounts", Some(hot)) => Box::new(
                HotAccounts {
                    accounts: self.rows,
                    operations: hot.operations,
                    hot_reads: hot.reads / 100.0,
                    hot_writes: hot.writes / 100.0,
                    hot_share: hot.share / 100.0,
                }
                .check()?,
            ),
            (other, _) => return Err(ParameterError::Workload { found: other.to_string() }),
        })
    }

    pub(super) fn options(&self, experiment: &Experiment, seconds: f64, seed: u64) -> RunOptions {
        let arrivals = match (experiment.rate, experiment.clients) {
            (Some(rate), _) => Arrivals::Rate(rate),
            (None, clients) => Arrivals::Clients(clients.unwrap_or(2 * self.block_size)),
        };
        let (block_transactions, block_ms) = (self.block_size, experiment.block_ms);
        RunOptions { arrivals, seconds, block_transactions, block_ms, seed }
    }

    pub(super) fn parameters(&self) -> BTreeMap<String, f64> {
        let mut parameters = BTreeMap::new();
        let mut add = |name: &str, value: f64| _ = parameters.insert(name.to_string(), value);
        add("block_size", self.block_size as f64);
        add("rows", self.rows as f64);
        match self.hot {
            Some(hot) => {
                add("operations", f64::from(hot.operations));
                add("hot_reads", hot.reads);
                add("hot_writes", hot.writes);
                add("hot_share", hot.share);
            }
            None => add("skew", self.skew),
        }
        if let Some(writes) = self.write_probability {
            add("write_probability", writes);
        }
        parameters
    }

    pub(super) fn describe(&self) -> String {
        let parameters: Vec<String> =
            self.parameters().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        format!("{}: {}", self.system.name, parameters.join(", "))
    }
}

/// What `--only` says: by key, the values that are wanted.
pub(super) struct Filter(BTreeMap<String, Vec<String>>);

impl Filter {
    pub(super) fn parse(only: &[String]) -> Result<Filter, EndorseError> {
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in only {
            let expected = || {
                "key=value with experiment, system, skew, write_probability or block_size as key".to_string()
            };
            let wrong = |found: &str| EndorseError::Only { expected: expected(), found: found.to_string() };
            let (key, value) = text.split_once('=').ok_or_else(|| wrong(text))?;
            if !["experiment", "system", "skew", "write_probability", "block_size"].contains(&key.trim()) {
                return Err(wrong(text));
            }
            wanted.entry(key.trim().to_string()).or_default().push(value.trim().to_string());
        }
        Ok(Filter(wanted))
    }

    pub(super) fn accepts(&self, experiment: &Experiment, point: &Point) -> bool {
        self.0.iter().all(|(key, values)| {
            values.iter().any(|value| match key.as_str() {
                "experiment" => *value == experiment.id,
                "system" => value == point.system.name,
                number => point.parameters().get(number).is_some_and(|found| value.parse() == Ok(*found)),
            })
        })
    }
}
