use super::committer::Committer;
use super::experiments::{Experiment, Hot};
use super::network::{Arrivals, RunOptions};
use super::reordering::Shape;
use super::system::System;
use super::transfers::Transfers;
use crate::machine;
use std::collections::BTreeMap;
use workloads::smallbank::Smallbank;
use workloads::{Contention, HotAccounts, ParameterError, Workload};

/// Parameters by the names that records have, and what they are called on an axis.
pub(super) const PARAMETERS: [(&str, &str); 19] = [
    ("skew", "skew (Zipf's exponent)"),
    ("block_size", "transactions of a block"),
    ("rows", "rows"),
    ("operations", "accounts that a transaction reads, and as many that it writes"),
    ("hot_reads", "probability that a read is hot, %"),
    ("hot_writes", "probability that a write is hot, %"),
    ("hot_share", "share of hot accounts, %"),
    ("write_probability", "probability that a call writes"),
    ("payload_bytes", "bytes of payload in a transaction"),
    ("endorsed_behind", "blocks between endorsement and validation"),
    ("threads", "threads"),
    ("verified_ahead", "blocks verified ahead"),
    ("recorded_behind", "recorded on a thread of its own"),
    ("flushed_together", "blocks of one flush, at most"),
    ("endorsed_together", "proposals under one signature"),
    ("remembered", "verified when submitted"),
    ("graph", "validated on a graph"),
    ("readers_in_front", "readers in front of the writers"),
    ("cycle_length", "length of the cycles"),
];
/// Parameters whose axis is logarithmic: what is swept doubles.
pub(super) const LOGARITHMIC: [&str; 2] = ["block_size", "cycle_length"];

/// What is measured at a point.
#[derive(Clone, Debug)]
pub(super) enum Measured {
    /// Clients, endorsers, orderer and committer.
    Network,
    /// A committer alone.
    Committer(Committer),
    /// The reordering of a batch at a step of its shape.
    Reordering(Shape, usize),
}

/// One point of an experiment.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) system: System,
    pub(super) workload: String,
    pub(super) rows: u64,
    /// Transactions of a block, or of the batch that is reordered.
    pub(super) block_size: usize,
    pub(super) skew: f64,
    pub(super) write_probability: Option<f64>,
    pub(super) hot: Option<Hot>,
    pub(super) payload_bytes: Option<usize>,
    pub(super) endorsed_behind: Option<usize>,
    pub(super) measured: Measured,
}

impl Point {
    pub(super) fn workload(&self) -> Result<Box<dyn Workload>, ParameterError> {
        let payload_bytes = self.payload_bytes.unwrap_or(0);
        Ok(match (self.workload.as_str(), self.hot) {
            ("smallbank", _) => {
                let smallbank = Smallbank::new(self.rows, self.skew)?;
                match self.write_probability {
                    Some(writes) => Box::new(smallbank.with_write_probability(writes)?),
                    None => Box::new(smallbank),
                }
            }
            ("contention", _) if self.payload_bytes.is_some() => {
                Box::new(Transfers::of_pairs(self.rows, self.skew, payload_bytes)?)
            }
            ("contention", _) => Box::new(Contention::new(self.rows, self.skew)?),
            ("transfers", _) => Box::new(Transfers::by_zipf(self.rows, self.skew, payload_bytes)?),
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
        if let Measured::Reordering(shape, step) = self.measured {
            add(shape.parameter(), step as f64);
            return parameters;
        }
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
        if let Some(bytes) = self.payload_bytes {
            add("payload_bytes", bytes as f64);
        }
        if let Some(behind) = self.endorsed_behind {
            add("endorsed_behind", behind as f64);
        }
        if let Measured::Committer(committer) = &self.measured {
            let threads = if committer.threads == 0 { machine::cores() } else { committer.threads };
            add("threads", threads as f64);
            add("verified_ahead", committer.verified_ahead as f64);
            add("recorded_behind", f64::from(u8::from(committer.recorded_behind)));
            add("flushed_together", committer.flushed_together as f64);
            add("endorsed_together", committer.endorsed_together as f64);
            add("remembered", f64::from(u8::from(committer.remembered)));
            add("graph", f64::from(u8::from(committer.graph)));
        }
        parameters
    }

    /// Name of the committer where there are several, otherwise empty.
    pub(super) fn variant(&self) -> &str {
        match &self.measured {
            Measured::Committer(committer) => &committer.name,
            _ => "",
        }
    }

    /// For people, in progress and errors.
    pub(super) fn describe(&self) -> String {
        let parameters: Vec<String> =
            self.parameters().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        let variant =
            if self.variant().is_empty() { String::new() } else { format!(" ({})", self.variant()) };
        format!("{}{variant}: {}", self.system.name, parameters.join(", "))
    }
}
