use super::experiments::{Experiment, Hot};
use super::network::{Arrivals, RunOptions};
use super::system::System;
use std::collections::BTreeMap;
use workloads::smallbank::Smallbank;
use workloads::{Contention, HotAccounts, ParameterError, Workload};

/// Parameters by the names that records have, and what they are called on an axis.
pub(super) const PARAMETERS: [(&str, &str); 8] = [
    ("skew", "skew (Zipf's exponent)"),
    ("block_size", "transactions of a block"),
    ("rows", "rows"),
    ("operations", "accounts that a transaction reads, and as many that it writes"),
    ("hot_reads", "probability that a read is hot, %"),
    ("hot_writes", "probability that a write is hot, %"),
    ("hot_share", "share of hot accounts, %"),
    ("write_probability", "probability that a call writes"),
];

/// Parameters whose axis is logarithmic: what is swept doubles.
pub(super) const LOGARITHMIC: [&str; 1] = ["block_size"];

/// One point of an experiment.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) system: System,
    pub(super) workload: String,
    pub(super) rows: u64,
    pub(super) block_size: usize,
    pub(super) skew: f64,
    pub(super) write_probability: Option<f64>,
    pub(super) hot: Option<Hot>,
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

    /// What a record names.
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

    /// For people, in progress and errors.
    pub(super) fn describe(&self) -> String {
        let parameters: Vec<String> =
            self.parameters().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        format!("{}: {}", self.system.name, parameters.join(", "))
    }
}
