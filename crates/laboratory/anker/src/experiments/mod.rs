//! The tables and figures of chapter 2 that measure something: one file for each kind.

mod creation;
mod mixed;
mod scans;

use crate::AnkerError;
use crate::arguments::Plan;
use crate::record::AnkerRecord;

/// A table or figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The parameter that varies across the columns of its table.
    pub(crate) across: &'static str,
    run: fn(&Plan, &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError>,
}

/// Who is told what is being done.
pub(crate) type Progress<'p> = dyn FnMut(&str) + 'p;

/// Where the paper's own system call stands in tables.
pub(crate) const VM_SNAPSHOT: &str = "vm_snapshot";

/// All of them, as the paper orders them.
pub(crate) const EXPERIMENTS: [Experiment; 8] = [
    Experiment {
        name: "table-2-1",
        title: "creating a snapshot",
        across: "columns",
        run: creation::table_2_1,
    },
    Experiment {
        name: "figure-2-4",
        title: "snapshots and writes as more pages are modified",
        across: "modified_pages",
        run: creation::figure_2_4,
    },
    Experiment {
        name: "figure-2-5",
        title: "scanning versioned tables",
        across: "versioned_percent",
        run: scans::figure_2_5,
    },
    Experiment {
        name: "figure-2-6",
        title: "a snapshot of all columns of a table",
        across: "table",
        run: creation::figure_2_6,
    },
    Experiment {
        name: "figure-2-8",
        title: "snapshots and latency of questions beside transactions",
        across: "question",
        run: mixed::figures_2_8_and_2_9,
    },
    Experiment {
        name: "figure-2-10",
        title: "streams of transactions and latency of questions",
        across: "threads",
        run: mixed::figure_2_10,
    },
    Experiment {
        name: "figure-2-11",
        title: "streams of questions and throughput",
        across: "streams",
        run: mixed::figure_2_11,
    },
    Experiment {
        name: "table-2-2",
        title: "warehouses and throughput",
        across: "warehouses",
        run: mixed::table_2_2,
    },
];

/// What comes out of the runs of another one.
const FIGURE_2_9: Experiment = Experiment {
    name: "figure-2-9",
    title: "throughput of transactions beside questions",
    across: "access",
    run: mixed::figures_2_8_and_2_9,
};

/// The experiment of that name.
pub(crate) fn named(name: &str) -> Option<Experiment> {
    EXPERIMENTS.into_iter().chain([FIGURE_2_9]).find(|experiment| experiment.name == name)
}

/// All names.
pub(crate) fn names() -> Vec<&'static str> {
    EXPERIMENTS.iter().chain([&FIGURE_2_9]).map(|experiment| experiment.name).collect()
}

/// Runs what is planned, in the paper's order.
pub(crate) fn run(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let mut records = Vec::new();
    for experiment in EXPERIMENTS {
        let is_shared = experiment.name == "figure-2-8" && plan.has(FIGURE_2_9.name);
        if plan.has(experiment.name) || is_shared {
            progress(&format!("{}: {}", experiment.name, experiment.title));
            let made = (experiment.run)(plan, progress)?;
            records.extend(made.into_iter().filter(|record| plan.has(record.experiment)));
        }
    }
    // Records of one experiment lie together, because its runs may make those of another one, too.
    let names = names();
    records.sort_by_key(|record| names.iter().position(|name| *name == record.experiment));
    Ok(records)
}

/// The middle one; 0 of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count => (values[(count - 1) / 2] + values[count / 2]) / 2.0,
    }
}
