//! The tables and figures of chapter 2 that measure something: one file for each kind.

mod creation;
mod mixed;
mod scans;

use crate::AnkerError;
use crate::arguments::Plan;
use crate::figures;
use crate::record::AnkerRecord;

/// What measures a table or figure.
type Run = fn(&Plan, &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError>;

/// Who is told what is being done.
pub(crate) type Progress<'p> = dyn FnMut(&str) + 'p;

/// Where the paper's own system call stands in tables.
pub(crate) const VM_SNAPSHOT: &str = "vm_snapshot";

/// The runs, as the paper orders them, with the figures that come out of each.
const RUNS: [(&[&str], Run); 8] = [
    (&["table-2-1"], creation::table_2_1),
    (&["figure-2-4"], creation::figure_2_4),
    (&["figure-2-5"], scans::figure_2_5),
    (&["figure-2-6"], creation::figure_2_6),
    (&["figure-2-8", "figure-2-9"], mixed::figures_2_8_and_2_9),
    (&["figure-2-10"], mixed::figure_2_10),
    (&["figure-2-11"], mixed::figure_2_11),
    (&["table-2-2"], mixed::table_2_2),
];

/// Runs what is planned, in the paper's order.
pub(crate) fn run(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let mut records = Vec::new();
    for (made, run) in RUNS {
        let Some(figure) = made.iter().filter(|name| plan.has(name)).find_map(|name| figures::named(name))
        else {
            continue;
        };
        progress(&format!("{}: {}", figure.name, figure.title));
        records.extend(run(plan, progress)?.into_iter().filter(|record| plan.has(record.experiment)));
    }
    // Records of one experiment lie together, because its runs may make those of another one, too.
    let names = figures::names();
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
