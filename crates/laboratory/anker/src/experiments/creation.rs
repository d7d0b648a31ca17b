//! What it costs to create a snapshot, and to write afterwards.

use super::{Progress, VM_SNAPSHOT, median};
use crate::AnkerError;
use crate::arguments::Plan;
use crate::record::AnkerRecord;
use crate::storage::{self, ColumnStorage, FrozenColumn};
use crate::system::{Isolation, Storage, System};
use std::time::{Duration, Instant};
use virtual_memory::{Forked, MemoryError, PAGE_BYTES, PAGE_NUMBERS, mappings};

/// Columns of the paper's table.
const COLUMNS: usize = 50;
/// Pages of the paper's columns of 200 MB.
const PAPER_PAGES: usize = 51_200;
/// What a forked process may take that has nothing to compute.
const FORK_LIMIT: Duration = Duration::from_secs(60);
/// Steps in which the pages of a column are modified for Figure 2.4.
const STEPS: usize = 10;
/// Pages of each step whose write comes behind a snapshot of its own, as every one does in the paper.
const SAMPLES: usize = 20;
/// Columns of TPC-H's tables, and how many rows of LINEITEM there are to one of theirs (2.5.5).
const TABLES: [(&str, usize, usize); 3] = [("LINEITEM", 16, 1), ("ORDERS", 9, 4), ("PART", 9, 30)];

/// The paper's times of rewiring: pages modified per column, then milliseconds for 1, 25 and 50 columns.
const PAPER_REWIRING: [(usize, [f64; 3]); 4] = [
    (0, [0.02, 0.39, 7.72]),
    (500, [1.22, 30.90, 61.87]),
    (5_000, [14.17, 352.15, 712.96]),
    (50_000, [169.28, 4_210.17, 8_459.67]),
];
const PAPER_PHYSICAL: [f64; 3] = [108.09, 2_693.69, 5_382.87];
const PAPER_FORK: [f64; 3] = [108.28; 3];

/// The storages that make snapshots, each once.
fn storages(plan: &Plan) -> Vec<System> {
    let makes =
        |system: &&System| system.storage != Storage::See && system.isolation == Isolation::Serializable;
    plan.systems.iter().filter(makes).copied().collect()
}

fn pages(plan: &Plan) -> usize {
    plan.column_megabytes * 1_048_576 / PAGE_BYTES
}

/// A column of so many pages, with every page written.
fn column(storage: Storage, pages: usize) -> Result<Box<dyn ColumnStorage>, MemoryError> {
    let column = storage::column(storage, pages * PAGE_NUMBERS)?;
    for page in 0..pages {
        column.prepare(page * PAGE_NUMBERS)?;
        column.set(page * PAGE_NUMBERS, page as i64 + 1);
    }
    Ok(column)
}

/// All pages in an order in which neighbours do not follow one another.
fn scattered(pages: usize) -> impl Iterator<Item = usize> {
    let common = |mut one: usize, mut other: usize| {
        while other > 0 {
            (one, other) = (other, one % other);
        }
        one
    };
    let step = (pages * 618 / 1_000 + 1..).find(|step| common(*step, pages) == 1).unwrap_or(1);
    (0..pages).map(move |page| page * step % pages)
}

/// Writes pages while a snapshot has them, so that each is a copy; then nobody has the snapshot any more.
fn modify(column: &dyn ColumnStorage, pages: usize, modified: usize) -> Result<(), MemoryError> {
    let held = column.snapshot(pages * PAGE_NUMBERS)?;
    for page in scattered(pages).take(modified) {
        column.prepare(page * PAGE_NUMBERS)?;
        column.set(page * PAGE_NUMBERS, -1);
    }
    drop(held);
    Ok(())
}

/// Milliseconds of a snapshot of columns, and what was made.
fn snapshot(
    columns: &[Box<dyn ColumnStorage>],
    rows: usize,
) -> Result<(f64, Vec<Box<dyn FrozenColumn>>), MemoryError> {
    let began = Instant::now();
    let made = columns.iter().map(|column| column.snapshot(rows)).collect::<Result<_, _>>()?;
    Ok((milliseconds(began), made))
}

fn milliseconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

/// Milliseconds of a snapshot, the median over the rounds.
fn creation(
    storage: Storage,
    columns: &[Box<dyn ColumnStorage>],
    rows: usize,
    rounds: usize,
) -> Result<f64, MemoryError> {
    let round = |_| match storage {
        Storage::Fork => {
            let began = Instant::now();
            let forked = Forked::start(vec![0], |_, answer| answer[0] = 1)?;
            let taken = milliseconds(began);
            forked.wait(FORK_LIMIT)?;
            Ok(taken)
        }
        _ => snapshot(columns, rows).map(|(taken, _)| taken),
    };
    (0..rounds).map(round).collect::<Result<_, _>>().map(median)
}

/// Table 2.1: 1 to 50 columns; for rewiring after more and more pages of each were modified.
pub(super) fn table_2_1(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let (pages, mut records) = (pages(plan), Vec::new());
    for system in storages(plan) {
        progress(&format!("  {}", system.name));
        if system.storage == Storage::Rewire {
            for (modified, paper) in PAPER_REWIRING {
                records.extend(rewired(plan, modified * pages / PAPER_PAGES, paper));
            }
            continue;
        }
        let paper = match system.storage {
            Storage::Copy => Some(PAPER_PHYSICAL),
            Storage::Fork => Some(PAPER_FORK),
            _ => None,
        };
        let table: Vec<_> = (0..COLUMNS).map(|_| column(system.storage, pages)).collect::<Result<_, _>>()?;
        for columns in [1, 2, 5, 25, COLUMNS] {
            let taken = creation(system.storage, &table[..columns], pages * PAGE_NUMBERS, plan.rounds)?;
            let record = AnkerRecord::new("table-2-1", system.name, "snapshot_ms").at("columns", columns);
            records.push(record.is(taken).beside(paper.and_then(|paper| paper_at(columns, paper))));
        }
    }
    Ok(records)
}

fn paper_at(columns: usize, paper: [f64; 3]) -> Option<f64> {
    [1, 25, 50].iter().position(|known| *known == columns).map(|at| paper[at])
}

/// Rewiring after pages of every column were modified. Only the columns that are snapshotted are there, because fewer fit.
fn rewired(plan: &Plan, modified: usize, paper: [f64; 3]) -> Vec<AnkerRecord> {
    let pages = pages(plan);
    let at = |columns| {
        let record = AnkerRecord::new("table-2-1", "rewire", "snapshot_ms").at("columns", columns);
        record.at("modified_pages", modified).beside(paper_at(columns, paper))
    };
    let measured = |columns| -> Result<f64, MemoryError> {
        let mut table = Vec::new();
        for _ in 0..columns {
            let column = column(Storage::Rewire, pages)?;
            modify(&*column, pages, modified)?;
            table.push(column);
        }
        creation(Storage::Rewire, &table, pages * PAGE_NUMBERS, plan.rounds)
    };
    let record = |columns| match measured(columns) {
        Ok(taken) => at(columns).is(taken),
        Err(error) => at(columns).refused(&error.to_string()),
    };
    [1, 2, 5, 25, COLUMNS].into_iter().map(record).collect()
}

/// Figure 2.4: one column, of which every page is written once; snapshots on the way.
pub(super) fn figure_2_4(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let (pages, mut records) = (pages(plan), Vec::new());
    let lazy = |system: &System| matches!(system.storage, Storage::Columns | Storage::Rewire);
    for system in storages(plan).into_iter().filter(lazy) {
        progress(&format!("  {}", system.name));
        match written_step_by_step(system, plan) {
            Ok(made) => records.extend(made),
            Err(error) => {
                let record =
                    AnkerRecord::new("figure-2-4", system.name, "snapshot_ms").at("modified_pages", pages);
                records.push(record.refused(&error.to_string()));
            }
        }
    }
    // 2.5.3: with all pages written its snapshots are 68 times as fast as those of rewiring, which took 169.28 ms in Table 2.1.
    let quoted = AnkerRecord::new("figure-2-4", VM_SNAPSHOT, "snapshot_ms").at("modified_pages", pages);
    records.push(quoted.beside(Some(PAPER_REWIRING[3].1[0] / 68.0)));
    Ok(records)
}

fn written_step_by_step(system: System, plan: &Plan) -> Result<Vec<AnkerRecord>, MemoryError> {
    let (pages, mut records) = (pages(plan), Vec::new());
    let column = [column(system.storage, pages)?];
    let before = mappings();
    let (_, mut held) = snapshot(&column, pages * PAGE_NUMBERS)?;
    let order: Vec<usize> = scattered(pages).collect();
    let mut modified = 0;
    for step in order.chunks(pages.div_ceil(STEPS)) {
        let (at_once, sampled) = step.split_at(step.len().saturating_sub(SAMPLES));
        for page in at_once {
            write(&*column[0], *page)?;
        }
        let (mut taken, mut written) = (Vec::new(), Vec::new());
        for page in sampled {
            held.clear();
            let (creating, next) = snapshot(&column, pages * PAGE_NUMBERS)?;
            held = next;
            taken.push(creating);
            written.push(write(&*column[0], *page)?);
        }
        modified += step.len();
        held.clear();
        let of_column = mappings().saturating_sub(before) + 1;
        held = snapshot(&column, pages * PAGE_NUMBERS)?.1;
        let record = |metric, value| {
            AnkerRecord::new("figure-2-4", system.name, metric).at("modified_pages", modified).is(value)
        };
        records.push(record("snapshot_ms", median(taken)));
        records.push(record("write_us", median(written)));
        if system.storage == Storage::Rewire {
            records.push(record("mappings", of_column as f64));
        }
    }
    Ok(records)
}

/// Writes the first number of a page; gives the microseconds.
fn write(column: &dyn ColumnStorage, page: usize) -> Result<f64, MemoryError> {
    let began = Instant::now();
    column.prepare(page * PAGE_NUMBERS)?;
    column.set(page * PAGE_NUMBERS, -1);
    Ok(milliseconds(began) * 1e3)
}

/// Figure 2.6: all columns of three tables of TPC-H, and all tables.
pub(super) fn figure_2_6(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let mut records = Vec::new();
    for system in storages(plan) {
        progress(&format!("  {}", system.name));
        let mut tables = Vec::new();
        for (name, columns, fewer) in TABLES {
            let pages = (plan.rows / fewer).div_ceil(PAGE_NUMBERS);
            let columns = (0..columns).map(|_| column(system.storage, pages));
            tables.push((name, columns.collect::<Result<Vec<_>, _>>()?, plan.rows / fewer));
        }
        let record = |table: &'static str, taken: f64| {
            AnkerRecord::new("figure-2-6", system.name, "snapshot_ms").at("table", table).is(taken)
        };
        let mut all = 0.0;
        for (name, columns, rows) in &tables {
            let taken = creation(system.storage, columns, *rows, plan.rounds)?;
            all += taken;
            records.push(record(name, taken));
        }
        // A fork has everything in it at once.
        let one_fork = || creation(Storage::Fork, &[], 0, plan.rounds);
        records.push(record("All", if system.storage == Storage::Fork { one_fork()? } else { all }));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_come_once_and_neighbours_do_not_follow_one_another() {
        for pages in [1, 2, 256, 1_024, 10_240] {
            let order: Vec<usize> = scattered(pages).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..pages).collect::<Vec<_>>());
            let neighbours = order.windows(2).filter(|two| two[0] + 1 == two[1]).count();
            assert!(pages < 100 || neighbours < pages / 100, "{neighbours} of {pages}");
        }
    }
}
