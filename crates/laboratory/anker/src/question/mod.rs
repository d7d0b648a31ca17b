//! Questions: scans, groups and sums over whole tables, and who answers them.

mod asked;
mod sources;

pub use asked::{Asked, FORK_SECONDS_MAX};

use crate::AnkerError;
use crate::engine::Engine;
use crate::storage::BLOCK_ROWS;
use sources::Source;
use virtual_memory::MemoryError;

/// Groups that a question may have.
pub const GROUPS_MAX: usize = 1 << 20;

/// An analytical question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// `SELECT group, count(*), sum(s1), … FROM table [WHERE group IN (SELECT column FROM other)] GROUP BY group`.
    Groups {
        /// The table.
        table: usize,
        /// The column whose values make groups; all rows are one group without it.
        by: Option<usize>,
        /// Groups: values from 0 to this one, not included. All others are the last group of the answer.
        groups: usize,
        /// The columns that are summed.
        sums: Vec<usize>,
        /// A table and a column of it, of whose values the group must be one.
        among: Option<(usize, usize)>,
    },
    /// `SELECT * FROM table`: every value of every column is read. The answer has the rows, and a checksum over all values.
    Whole {
        /// The table.
        table: usize,
    },
}

/// What a question comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The time whose state it was asked of.
    pub at: u64,
    /// By group: how many rows, then each sum. Of [`Question::Whole`]: the rows, then the checksum.
    pub groups: Vec<Vec<i64>>,
}

impl Question {
    /// The table whose rows are read.
    pub fn table(&self) -> usize {
        match self {
            Question::Groups { table, .. } | Question::Whole { table } => *table,
        }
    }

    pub(crate) fn check(&self, engine: &Engine) -> Result<(), AnkerError> {
        match self {
            Question::Whole { table } => engine.check_table(*table),
            Question::Groups { table, by, groups, sums, among } => {
                engine.check_columns(*table, by.iter().chain(sums).copied())?;
                if let Some((other, column)) = among {
                    engine.check_columns(*other, [*column])?;
                }
                let expected = format!("1 to {GROUPS_MAX} groups (GROUPS_MAX)");
                if (1..=GROUPS_MAX).contains(groups) {
                    return Ok(());
                }
                Err(AnkerError::unknown(expected, groups))
            }
        }
    }

    /// The columns that are read, each with its table.
    pub(crate) fn columns(&self, engine: &Engine) -> Vec<(usize, usize)> {
        let mut columns: Vec<(usize, usize)> = match self {
            Question::Whole { table } => {
                (0..engine.tables[*table].columns.len()).map(|column| (*table, column)).collect()
            }
            Question::Groups { table, by, sums, among, .. } => {
                let own = by.iter().chain(sums).map(|column| (*table, *column));
                // Counting needs some column, because a snapshot consists of columns.
                own.chain(*among).chain((by.is_none() && sums.is_empty()).then_some((*table, 0))).collect()
            }
        };
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Numbers of the answer, and behind them those that are needed on the way.
    pub(crate) fn words(&self) -> usize {
        match self {
            Question::Whole { .. } => 2,
            Question::Groups { groups, sums, among, .. } => {
                (groups + 1) * (1 + sums.len() + usize::from(among.is_some()))
            }
        }
    }

    pub(crate) fn answer(&self, at: u64, words: &[i64]) -> Answer {
        let groups = match self {
            Question::Whole { .. } => vec![words.to_vec()],
            Question::Groups { groups, sums, .. } => {
                words.chunks_exact(1 + sums.len()).take(groups + 1).map(<[i64]>::to_vec).collect()
            }
        };
        Answer { at, groups }
    }

    /// Fills so many `words`. Neither locks nor allocates where the source does not: a forked process may do neither.
    fn evaluate(&self, source: &dyn Source, words: &mut [i64]) -> Result<(), MemoryError> {
        match self {
            Question::Whole { table } => whole(*table, source, words),
            Question::Groups { table, by, groups, sums, among } => {
                let (answer, flags) = words.split_at_mut((groups + 1) * (1 + sums.len()));
                if let Some((other, column)) = among {
                    each_block(source, *other, *column, &mut |_, values| {
                        values.iter().for_each(|value| flags[group(*value, *groups)] = 1);
                    })?;
                }
                let flags = among.is_some().then_some(&*flags);
                match by {
                    Some(by) => grouped(source, (*table, *by), sums, flags, answer),
                    None => ungrouped(source, *table, sums, answer),
                }
            }
        }
    }
}

/// The place of a value among the groups; the last one for what has none.
fn group(value: i64, groups: usize) -> usize {
    usize::try_from(value).unwrap_or(groups).min(groups)
}

fn each_block(
    source: &dyn Source,
    table: usize,
    column: usize,
    with: &mut dyn FnMut(usize, &[i64]),
) -> Result<(), MemoryError> {
    let mut buffer = [0; BLOCK_ROWS];
    for block in 0..source.rows(table).div_ceil(BLOCK_ROWS) {
        with(block, source.block((table, column), block, &mut buffer)?);
    }
    Ok(())
}

fn whole(table: usize, source: &dyn Source, words: &mut [i64]) -> Result<(), MemoryError> {
    words[0] = source.rows(table) as i64;
    for column in 0..source.columns(table) {
        let mut sum = 0_i64;
        each_block(source, table, column, &mut |_, values| {
            sum = values.iter().fold(sum, |sum, value| sum.wrapping_add(*value));
        })?;
        words[1] = words[1].wrapping_mul(31).wrapping_add(sum);
    }
    Ok(())
}

fn ungrouped(
    source: &dyn Source,
    table: usize,
    sums: &[usize],
    words: &mut [i64],
) -> Result<(), MemoryError> {
    words[0] = source.rows(table) as i64;
    for (sum, column) in words[1..].iter_mut().zip(sums) {
        each_block(source, table, *column, &mut |_, values| {
            *sum = values.iter().fold(*sum, |sum, value| sum.wrapping_add(*value));
        })?;
    }
    Ok(())
}

/// Groups by a column of a table; only those with a flag, if there are flags.
fn grouped(
    source: &dyn Source,
    (table, by): (usize, usize),
    sums: &[usize],
    flags: Option<&[i64]>,
    words: &mut [i64],
) -> Result<(), MemoryError> {
    let width = 1 + sums.len();
    let groups = words.len() / width - 1;
    let counts = |group: usize| flags.is_none_or(|flags| flags[group] == 1);
    let (mut first, mut second) = ([0; BLOCK_ROWS], [0; BLOCK_ROWS]);
    for block in 0..source.rows(table).div_ceil(BLOCK_ROWS) {
        let keys = source.block((table, by), block, &mut first)?;
        for key in keys {
            let group = group(*key, groups);
            words[group * width] += i64::from(counts(group));
        }
        for (place, column) in (1..).zip(sums) {
            let values = source.block((table, *column), block, &mut second)?;
            for (key, value) in keys.iter().zip(values) {
                let group = group(*key, groups);
                if counts(group) {
                    let sum = &mut words[group * width + place];
                    *sum = sum.wrapping_add(*value);
                }
            }
        }
    }
    Ok(())
}
