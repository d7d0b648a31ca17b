use super::experiments::{Experiment, POSTGRES};
use super::store_place::StorePlace;
use crate::LaboratoryError;
use concurrency::ProtocolOptions;
use std::collections::BTreeMap;

/// What is measured as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) protocol: String,
    /// Name of the options in an ablation, otherwise empty.
    pub(super) variant: String,
    /// Its line in a plot.
    pub(super) series: String,
    pub(super) workload: String,
    pub(super) rows: u64,
    pub(super) skew: f64,
    /// Transactions of an execution batch; 0 for PostgreSQL.
    pub(super) block_size: u32,
    pub(super) threads: usize,
    /// Where rows are in timed runs.
    pub(super) store: StorePlace,
    /// Memory of a store with files, in units of 1,048,576 bytes; 0 in memory.
    pub(super) memory_megabytes: u64,
    pub(super) options: ProtocolOptions,
}

impl Point {
    pub(super) fn is_postgres(&self) -> bool {
        self.protocol == POSTGRES
    }

    /// Its position on a plot's horizontal axis.
    pub(super) fn x(&self, axis: &str) -> f64 {
        match axis {
            "block_size" => f64::from(self.block_size),
            "threads" => self.threads as f64,
            _ => self.skew,
        }
    }

    /// For people, in progress and errors.
    pub(super) fn describe(&self) -> String {
        let Point { protocol, variant, workload, skew, block_size, threads, .. } = self;
        let variant = if variant.is_empty() { String::new() } else { format!(" ({variant})") };
        let store = match self.store.has_files() {
            true => format!(", {} with {} MB", self.store.name(), self.memory_megabytes),
            false => String::new(),
        };
        format!(
            "{protocol}{variant} on {workload}, skew {skew}, blocks of {block_size}, {threads} threads{store}"
        )
    }
}

/// A point, who wants it, and what is to be measured there.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) point: Point,
    /// Ids of the experiments.
    pub(super) experiments: Vec<String>,
    pub(super) throughput: bool,
    pub(super) rates: bool,
}

/// The points of these experiments that the filter leaves; one that several experiments share stands once.
pub(super) fn plan<'a>(
    experiments: impl Iterator<Item = &'a Experiment>,
    only: &Filter,
    cores: usize,
) -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::new();
    for experiment in experiments {
        for point in points(experiment, cores) {
            if !only.leaves(&point, &experiment.id) {
                continue;
            }
            let found = match planned.iter().position(|planned| planned.point == point) {
                Some(found) => &mut planned[found],
                None => {
                    planned.push(Planned { point, experiments: vec![], throughput: false, rates: false });
                    planned.last_mut().expect("just pushed")
                }
            };
            if found.experiments.last() != Some(&experiment.id) {
                found.experiments.push(experiment.id.clone());
            }
            found.throughput |= experiment.measures("throughput");
            found.rates |= experiment.measures("rates");
        }
    }
    planned
}

fn points(experiment: &Experiment, cores: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for workload in &experiment.workloads {
        for skew in &experiment.skews {
            for protocol in &experiment.protocols {
                for (variant, options) in experiment.series(protocol) {
                    let point = Point {
                        protocol: protocol.clone(),
                        variant: variant.to_string(),
                        series: match (variant, experiment.protocols.len()) {
                            ("", _) => protocol.clone(),
                            (variant, 1) => variant.to_string(),
                            (variant, _) => format!("{protocol}, {variant}"),
                        },
                        workload: workload.clone(),
                        rows: experiment.rows,
                        skew: *skew,
                        block_size: 0,
                        threads: cores,
                        store: StorePlace::Memory,
                        memory_megabytes: 0,
                        options,
                    };
                    // PostgreSQL has no blocks and takes the threads that it wants: it is the same for all of these.
                    if point.is_postgres() {
                        points.push(Point { options: ProtocolOptions::default(), ..point });
                        continue;
                    }
                    for store in &experiment.stores {
                        let point = on_store(&point, *store, experiment.memory_megabytes);
                        for block_size in &experiment.block_sizes {
                            for threads in &experiment.threads {
                                let threads = if *threads == 0 { cores } else { *threads };
                                points.push(Point { block_size: *block_size, threads, ..point.clone() });
                            }
                        }
                    }
                }
            }
        }
    }
    points
}

/// The point with its rows there.
fn on_store(point: &Point, store: StorePlace, memory_megabytes: u64) -> Point {
    match store.has_files() {
        true => Point {
            series: format!("{}, {}", point.series, store.name()),
            store,
            memory_megabytes,
            ..point.clone()
        },
        false => point.clone(),
    }
}

/// What `--only` leaves: of every key that is named, one of its values.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    wanted: BTreeMap<String, Vec<String>>,
}

impl Filter {
    const KEYS: [&str; 8] =
        ["experiment", "protocol", "variant", "workload", "skew", "block_size", "threads", "store"];

    /// From `key=value` texts; ids are checked against what the file of experiments has.
    pub(super) fn parse(only: &[String], experiments: &[Experiment]) -> Result<Filter, LaboratoryError> {
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in only {
            let wrong = |expected: String| Err(LaboratoryError::Only { expected, found: text.clone() });
            let Some((key, value)) = text.split_once('=') else {
                return wrong("key=value, such as protocol=harmony".to_string());
            };
            let (key, value) = (key.trim(), value.trim());
            let ids = |ids: Vec<&str>| -> Result<(), String> {
                if ids.contains(&value) { Ok(()) } else { Err(format!("as {key} one of {}", ids.join(", "))) }
            };
            let number = |valid: bool| -> Result<(), String> {
                if valid { Ok(()) } else { Err(format!("a number as {key}")) }
            };
            let protocols = || concurrency::ids().into_iter().chain([POSTGRES]).collect();
            let variants = experiments.iter().flat_map(|experiment| &experiment.variants);
            let checked = match key {
                "experiment" => ids(experiments.iter().map(|experiment| experiment.id.as_str()).collect()),
                "protocol" => ids(protocols()),
                "workload" => ids(workloads::WORKLOADS.to_vec()),
                "variant" => ids(variants.map(|variant| variant.name.as_str()).collect()),
                "store" => ids(StorePlace::NAMES.to_vec()),
                "skew" => number(value.parse::<f64>().is_ok_and(f64::is_finite)),
                "block_size" | "threads" => number(value.parse::<u32>().is_ok()),
                _ => Err(format!("as key one of {}", Filter::KEYS.join(", "))),
            };
            if let Err(expected) = checked {
                return wrong(expected);
            }
            wanted.entry(key.to_string()).or_default().push(value.to_string());
        }
        Ok(Filter { wanted })
    }

    fn leaves(&self, point: &Point, experiment: &str) -> bool {
        self.wanted.iter().all(|(key, values)| {
            values.iter().any(|value| {
                let number = value.parse::<f64>().ok();
                match key.as_str() {
                    "experiment" => experiment == value,
                    "protocol" => point.protocol == *value,
                    "variant" => point.variant == *value,
                    "workload" => point.workload == *value,
                    "skew" => number == Some(point.skew),
                    "store" => point.is_postgres() || point.store.name() == value,
                    "block_size" => point.is_postgres() || number == Some(f64::from(point.block_size)),
                    _ => point.is_postgres() || number == Some(point.threads as f64),
                }
            })
        })
    }
}
