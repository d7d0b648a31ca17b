//! What a transaction costs as the state grows: the same load on ever more rows, in memory and on the disk.

use crate::machine;
use crate::report::{Page, Plot, Plotted, Report, Section, Table, Unit, Value, color, write_json};
use crate::stored::{self, StateBenchError, StateOptions, StateRecord, remove_folder, state_bench};
use disk::{DiskOptions, RowsIn};
use serde::Serialize;
use std::path::PathBuf;

/// Memory that a row takes where all rows are in memory, with its part of the tree: so much is expected, to leave out what does
/// not fit.
const BYTES_PER_ROW: u64 = 400;
/// Tables of Smallbank: every customer has a row in each.
const ROWS_PER_CUSTOMER: u64 = 3;

const READING: &str = "The horizontal axis is logarithmic. A flat line is the goal: a transaction then costs the same \
                       however many rows there are.";

/// Which points to measure.
#[derive(Clone, Debug)]
pub struct GrowthOptions {
    /// What all points share; customers, skew, store and folder are set point by point.
    pub each: StateOptions,
    /// The fewest rows; every next point has ten times as many.
    pub rows_min: u64,
    /// The most.
    pub rows_max: u64,
    /// Zipf's exponents.
    pub skews: Vec<f64>,
    /// The stores.
    pub stores: Vec<DiskOptions>,
    /// Points in memory that need more than these bytes are left out.
    pub memory_limit_bytes: u64,
    /// Where stores are made; each goes after its point.
    pub folder: PathBuf,
    /// Folder of the report.
    pub out: PathBuf,
    /// Where the records go.
    pub json: Option<PathBuf>,
}

/// One point.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthRecord {
    /// Rows of all tables.
    pub rows: u64,
    /// Everything that was measured there.
    #[serde(flatten)]
    pub state: StateRecord,
}

/// Measures all points, writes `report.html`, `measurements.csv` and `measurements.md`, and gives the records. `progress` is told
/// what is being done.
///
/// # Errors
/// Options that make no sense, a store that fails, files that cannot be written.
pub fn growth(
    options: &GrowthOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<GrowthRecord>, StateBenchError> {
    let machine = machine::describe();
    let mut records: Vec<GrowthRecord> = Vec::new();
    let sizes = std::iter::successors(Some(options.rows_min), |rows| rows.checked_mul(10));
    for rows in sizes.take_while(|rows| *rows <= options.rows_max) {
        for store in &options.stores {
            for skew in &options.skews {
                let name = series(stored::name(store.rows_in), *skew);
                if store.rows_in == RowsIn::Memory && rows * BYTES_PER_ROW > options.memory_limit_bytes {
                    progress(&format!("{rows} rows, {name}: left out, they do not fit into --memory-limit"));
                    continue;
                }
                progress(&format!("{rows} rows, {name}"));
                records.push(measure(options, (rows, *store, *skew), progress)?);
            }
        }
    }
    report(&records, machine).write(&options.out)?;
    if let Some(path) = &options.json {
        write_json(path, &records)?;
    }
    Ok(records)
}

fn measure(
    options: &GrowthOptions,
    (rows, store, skew): (u64, DiskOptions, f64),
    progress: &mut dyn FnMut(&str),
) -> Result<GrowthRecord, StateBenchError> {
    let folder = options.folder.join("growth");
    let point = StateOptions {
        customers: (rows / ROWS_PER_CUSTOMER).max(2),
        skew,
        store,
        folder: folder.clone(),
        ..options.each.clone()
    };
    let measured = state_bench(&point, progress);
    remove_folder(&folder)?;
    let state = measured?;
    Ok(GrowthRecord { rows: state.load.rows, state })
}

fn series(store: &str, skew: f64) -> String {
    format!("{store}, Zipf {skew}")
}

/// A figure of a point: title, unit, and what it is.
type Figure = (&'static str, Unit, fn(&StateRecord) -> Option<f64>);

const FIGURES: [Figure; 6] = [
    ("Processor microseconds per transaction", Unit::Count, |state| {
        state.run.as_ref().map(|run| run.cpu_us_per_transaction)
    }),
    ("Microseconds per transaction", Unit::Count, |state| {
        state.run.as_ref().map(|run| run.wall_us_per_transaction)
    }),
    ("Committed transactions per second", Unit::Rate, |state| {
        state.run.as_ref().map(|run| run.committed_tps)
    }),
    ("Seconds to a root, median", Unit::Count, |state| {
        let seconds = state.run.as_ref()?.checkpoints.iter().map(|checkpoint| checkpoint.seconds);
        crate::median::median(&seconds.collect::<Vec<_>>())
    }),
    ("Most resident memory, MB", Unit::Whole, |state| Some(state.peak_memory_mb)),
    ("Bytes written over bytes changed", Unit::Count, |state| {
        state.run.as_ref().map(|run| run.write_amplification)
    }),
];

fn report(records: &[GrowthRecord], machine: Vec<(&'static str, String)>) -> Report {
    let of = |record: &GrowthRecord| series(record.state.store, record.state.skew);
    let mut names: Vec<String> = Vec::new();
    for record in records {
        let name = of(record);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let charts = FIGURES.iter().filter_map(|(title, unit, figure)| {
        let values = records.iter().filter_map(|record| {
            let name = of(record);
            let series = names.iter().find(|other| **other == name)?;
            let value = Value { x: record.rows as f64, y: figure(&record.state)?, range: None };
            Some(Plotted { series, value, everywhere: false })
        });
        let plot = Plot {
            title: title.to_string(),
            subtitle: String::new(),
            x_title: "rows — logarithmic scale".to_string(),
            x_logarithmic: true,
            unit: *unit,
            names: &names,
            values: values.collect(),
            published: Vec::new(),
        };
        plot.chart()
    });
    let mut table = Table::new(["store", "rows"].into_iter().chain(FIGURES.map(|(title, ..)| title)));
    let mut csv = table.clone();
    for record in records {
        let own = [of(record), record.rows.to_string()];
        let figures = FIGURES.map(|(_, unit, figure)| (unit, figure(&record.state)));
        let shown = figures.map(|(unit, value)| value.map_or("–".to_string(), |value| unit.show(value)));
        table.rows.push(own.iter().cloned().chain(shown).collect());
        let plain = figures.map(|(_, value)| crate::report::cell(value));
        csv.rows.push(own.into_iter().chain(plain).collect());
    }
    let legend = names.iter().enumerate().map(|(number, name)| (name.to_string(), color(name, number)));
    let section = Section {
        id: "growth".to_string(),
        name: "Growth".to_string(),
        title: "What a transaction costs as the state grows".to_string(),
        text: "Smallbank on the engine, with checkpoints beside it as in a node.".to_string(),
        legend: legend.collect(),
        published: false,
        charts: charts.collect(),
        table: table.clone(),
    };
    let introduction = machine.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
    let sections = vec![section];
    Report {
        page: Page { command: "growth", conditions: machine, reading: READING, sections, appendix: None },
        csv,
        introduction: format!("`entente bench growth`. {}.", introduction.join("; ")),
        markdown: table,
    }
}
