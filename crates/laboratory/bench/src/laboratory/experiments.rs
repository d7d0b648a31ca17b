use super::measurement::METRICS;
use super::store_place::StorePlace;
use crate::LaboratoryError;
use crate::paper::Paper;
use crate::report::Published;
use concurrency::{OnConflict, ProtocolOptions};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The id of the database beside the protocols.
pub(super) const POSTGRES: &str = "postgres";
/// Commands that an entry may name: the first two are this harness, the others measure elsewhere.
const COMMANDS: [&str; 13] = [
    "protocols",
    "ablation",
    "endorse",
    "engine",
    "tpcc",
    "demo",
    "join",
    "state",
    "growth",
    "anker",
    "pcp",
    "chainify",
    "shards",
];
/// What the horizontal axis of a plot may be.
const AXES: [&str; 3] = ["skew", "block_size", "threads"];
/// What may be measured.
const MEASURES: [&str; 2] = ["throughput", "rates"];

/// How far an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// A command repeats it.
    Done,
    /// It is to be repeated.
    Planned,
    /// It will not be; the entry says why.
    Not,
}

/// One table or figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    pub(super) id: String,
    pub(super) paper: Paper,
    /// Table or figure, as the paper numbers it.
    pub(super) number: String,
    pub(super) title: String,
    pub(super) status: Status,
    /// Why it is not done.
    #[serde(default)]
    pub(super) why: String,
    /// What runs it.
    #[serde(default)]
    pub(super) command: String,
    /// The id of the experiment in endorse.toml that is run for it, where that is not its own.
    #[serde(default)]
    repeats: String,
    /// Whether `--quick` runs it.
    #[serde(default)]
    pub(super) quick: bool,
    /// What to know when reading the result.
    #[serde(default)]
    pub(super) note: String,
    #[serde(default)]
    pub(super) protocols: Vec<String>,
    #[serde(default)]
    pub(super) workloads: Vec<String>,
    /// Customers, keys or wallets.
    #[serde(default = "ten_thousand")]
    pub(super) rows: u64,
    #[serde(default)]
    pub(super) skews: Vec<f64>,
    #[serde(default)]
    pub(super) block_sizes: Vec<u32>,
    /// Threads of the core; 0 is as many as the machine has.
    #[serde(default = "all_threads")]
    pub(super) threads: Vec<usize>,
    /// Where rows are in timed runs.
    #[serde(default = "memory_alone")]
    pub(super) stores: Vec<StorePlace>,
    /// Memory of a store with files, in units of 1,048,576 bytes.
    #[serde(default = "store_megabytes")]
    pub(super) memory_megabytes: u64,
    #[serde(default = "all_measures")]
    pub(super) measures: Vec<String>,
    #[serde(default)]
    pub(super) options: ProtocolOptions,
    /// What protocols do on a conflict whatever `options` say.
    #[serde(skip)]
    on_conflict: BTreeMap<String, OnConflict>,
    /// The same points under other options; none: one series per protocol.
    #[serde(default)]
    pub(super) variants: Vec<Variant>,
    /// Horizontal axis of the plots.
    #[serde(default = "skew")]
    pub(super) x: String,
    /// What is plotted: one plot per workload and metric.
    #[serde(default)]
    pub(super) plots: Vec<String>,
    /// What the paper found, for comparison.
    #[serde(default)]
    pub(super) published: Vec<Published>,
}

/// Options of one series of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) options: ProtocolOptions,
}

fn ten_thousand() -> u64 {
    10_000
}

fn all_threads() -> Vec<usize> {
    vec![0]
}

fn memory_alone() -> Vec<StorePlace> {
    vec![StorePlace::Memory]
}

fn store_megabytes() -> u64 {
    16
}

fn all_measures() -> Vec<String> {
    MEASURES.map(str::to_string).to_vec()
}

fn skew() -> String {
    "skew".to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// By protocol: what it does on a conflict in its own paper. Goes before an experiment's `options`; those of a
    /// variant go before it.
    #[serde(default)]
    on_conflict: BTreeMap<String, OnConflict>,
    experiment: Vec<Experiment>,
}

/// Reads and checks a file of experiments.
pub(super) fn parse(text: &str) -> Result<Vec<Experiment>, LaboratoryError> {
    let File { on_conflict, mut experiment } =
        toml::from_str(text).map_err(|error| LaboratoryError::Malformed(error.to_string()))?;
    if let Some(unknown) =
        on_conflict.keys().find(|protocol| !concurrency::ids().contains(&protocol.as_str()))
    {
        let expected = format!("protocols in `on_conflict`: {}", concurrency::ids().join(", "));
        return Err(LaboratoryError::Malformed(format!("expected {expected}; found `{unknown}`")));
    }
    let mut ids = BTreeSet::new();
    for experiment in &mut experiment {
        experiment.check()?;
        experiment.on_conflict = on_conflict.clone();
        if !ids.insert(experiment.id.clone()) {
            return Err(experiment.wrong("an id of its own", "one that another entry has"));
        }
    }
    Ok(experiment)
}

/// Options under which a protocol does on a conflict what it does in its own paper, as the built-in experiments say.
pub(crate) fn paper_options(protocol: &str) -> ProtocolOptions {
    let file: File = toml::from_str(super::run::BUILT_IN).expect("the built-in experiments are valid");
    let default = ProtocolOptions::default();
    let on_conflict = file.on_conflict.get(protocol).copied().unwrap_or(default.on_conflict);
    ProtocolOptions { on_conflict, ..default }
}

impl Experiment {
    /// Whether this harness runs it.
    pub(super) fn runs_with(&self, command: &str) -> bool {
        self.status == Status::Done && self.command == command
    }

    pub(super) fn measures(&self, what: &str) -> bool {
        self.measures.iter().any(|measure| measure == what)
    }

    /// A protocol's series: the name of each and its options.
    pub(super) fn series(&self, protocol: &str) -> Vec<(&str, ProtocolOptions)> {
        if !self.variants.is_empty() {
            return self.variants.iter().map(|variant| (variant.name.as_str(), variant.options)).collect();
        }
        let on_conflict = self.on_conflict.get(protocol).copied().unwrap_or(self.options.on_conflict);
        vec![("", ProtocolOptions { on_conflict, ..self.options })]
    }

    fn wrong(&self, expected: impl Into<String>, found: impl Into<String>) -> LaboratoryError {
        LaboratoryError::Experiment {
            experiment: self.id.clone(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn check(&self) -> Result<(), LaboratoryError> {
        if self.status != Status::Done {
            return match self.why.is_empty() {
                true => Err(self.wrong("`why` it is not done", "none")),
                false => Ok(()),
            };
        }
        self.known("command", &COMMANDS, [&self.command])?;
        if !self.repeats.is_empty() && self.command != "endorse" {
            return Err(
                self.wrong("`repeats` only beside `command = \"endorse\"`", format!("`{}`", self.command))
            );
        }
        if !self.runs_with("protocols") && !self.runs_with("ablation") {
            return Ok(());
        }
        self.check_lists()?;
        let protocols: Vec<&str> = concurrency::ids().into_iter().chain([POSTGRES]).collect();
        self.known("protocol", &protocols, &self.protocols)?;
        self.known("workload", &workloads::WORKLOADS, &self.workloads)?;
        self.known("measure", &MEASURES, &self.measures)?;
        self.known("x", &AXES, [&self.x])?;
        self.known("metric in `plots`", &METRICS.map(|metric| metric.name), &self.plots)?;
        for workload in &self.workloads {
            for skew in &self.skews {
                workloads::workload(workload, self.rows, *skew)
                    .map_err(|error| self.wrong("a workload with its parameters", error.to_string()))?;
            }
        }
        if let Some(size) = self.block_sizes.iter().find(|size| !(1..=65_000).contains(*size)) {
            return Err(self.wrong("block sizes from 1 to 65000", size.to_string()));
        }
        if !(16..=1_000_000).contains(&self.memory_megabytes) {
            let found = self.memory_megabytes.to_string();
            return Err(self.wrong("16 to 1000000 as memory_megabytes", found));
        }
        for published in &self.published {
            self.known("metric in `published`", &METRICS.map(|metric| metric.name), [&published.metric])?;
            if published.x.len() != published.y.len() {
                let lengths = format!("{} and {}", published.x.len(), published.y.len());
                return Err(self.wrong("as many published x as y", lengths));
            }
        }
        Ok(())
    }

    fn check_lists(&self) -> Result<(), LaboratoryError> {
        let lists = [
            ("protocols", self.protocols.is_empty()),
            ("workloads", self.workloads.is_empty()),
            ("skews", self.skews.is_empty()),
            ("block_sizes", self.block_sizes.is_empty()),
            ("threads", self.threads.is_empty()),
            ("stores", self.stores.is_empty()),
            ("measures", self.measures.is_empty()),
        ];
        match lists.into_iter().find(|(_, empty)| *empty) {
            Some((name, _)) => Err(self.wrong(format!("at least one value in `{name}`"), "none")),
            None => Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::plan::{Filter, plan};
    use crate::laboratory::run::BUILT_IN;

    #[test]
    fn the_built_in_experiments_have_every_table_and_figure_of_harmonybc() {
        let experiments = parse(BUILT_IN).expect("the file is valid");
        let has = |number: String| {
            let its = |experiment: &&Experiment| experiment.paper == Paper::HarmonyBC;
            let starts = |experiment: &Experiment| {
                experiment.number == number || experiment.number.starts_with(&format!("{number} "))
            };
            assert!(experiments.iter().filter(its).any(starts), "{number} is missing");
        };
        (1..=3).for_each(|number| has(format!("Table {number}")));
        (1..=21).for_each(|number| has(format!("Figure {number}")));
        let papers: BTreeSet<Paper> = experiments.iter().map(|experiment| experiment.paper).collect();
        assert_eq!(papers.len(), 6);
    }

    /// A record has no experiment and no options in it: two measurements must not look like one.
    #[test]
    fn what_a_record_names_is_measured_once() {
        let experiments = parse(BUILT_IN).expect("the file is valid");
        for command in ["protocols", "ablation"] {
            let its = experiments.iter().filter(|experiment| experiment.runs_with(command));
            let planned = plan(its, &Filter::default(), 2);
            assert!(!planned.is_empty());
            let mut names = BTreeSet::new();
            for planned in &planned {
                assert!(names.insert(planned.point.describe()), "{:?}", planned);
            }
        }
    }
}
