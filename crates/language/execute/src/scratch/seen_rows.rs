//! Which rows there have been, where not all of them fit into memory.
//!
//! The newest are held. The others stand in sorted runs, each with the first row of every block, so that a look takes one block of a run.
//! Who looks for many rows does so in their order: then each block is read once.

use crate::scratch::room::{Scratch, is_full, row_bytes};
use crate::scratch::run::{BLOCK_ROWS, Run, RunFile, RunWriter};
use crate::scratch::sorter::{KeyOrder, Merge, Source};
use crate::sorting::{Sortable, compare_values};
use plan::expression::{Memory, row_space};
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{SqlError, Value};

/// So many runs whose rows have been merged equally often become one: each row is written once per level.
const MERGED_AT_ONCE: usize = 8;

/// Rows that there have been.
pub(crate) struct SeenRows {
    newest: BTreeSet<Sortable>,
    /// What the newest take.
    bytes: u64,
    /// What was counted for the newest, and for the first rows of blocks.
    held: u64,
    held_of_blocks: u64,
    /// Those that were written first first.
    runs: Vec<SortedRun>,
    scratch: Arc<dyn Scratch>,
}

/// Rows in a file, sorted as SQL groups them, each once.
struct SortedRun {
    run: Run,
    /// The first row of each block.
    firsts: Vec<Vec<Value>>,
    /// How often its rows have been merged.
    level: usize,
    /// The block that was read last, and its rows.
    read: Option<(usize, Vec<Vec<Value>>)>,
}

impl SeenRows {
    /// None yet.
    pub fn new(scratch: Arc<dyn Scratch>) -> SeenRows {
        SeenRows { newest: BTreeSet::new(), bytes: 0, held: 0, held_of_blocks: 0, runs: Vec::new(), scratch }
    }

    /// What is counted for what is held.
    pub fn held(&self) -> u64 {
        self.held + self.held_of_blocks
    }

    /// Whether all are held: then a look reads nothing.
    pub fn are_held(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether there has been no row like this one; from now on there has.
    ///
    /// # Errors
    /// As [`Memory::hold`]; what reading and writing raise.
    pub fn add(&mut self, memory: &Memory, row: Sortable) -> Result<bool, SqlError> {
        if self.newest.contains(&row) {
            return Ok(false);
        }
        for run in &mut self.runs {
            if run.contains(&row.0)? {
                return Ok(false);
            }
        }
        let space = row_space(row.0.len());
        self.bytes += row_bytes(&row.0);
        self.held += space;
        self.newest.insert(row);
        let fits = memory.hold(space);
        if !is_full(&self.scratch, self.bytes, &fits) {
            return fits.map(|()| true);
        }
        self.write(memory)?;
        Ok(true)
    }

    /// Writes the newest as one more run.
    fn write(&mut self, memory: &Memory) -> Result<(), SqlError> {
        let mut rows = std::mem::take(&mut self.newest).into_iter();
        let run = SortedRun::write(self.scratch.as_ref(), 0, &mut || Ok(rows.next().map(|row| row.0)))?;
        self.runs.push(run);
        self.bytes = 0;
        memory.release(std::mem::take(&mut self.held));
        self.merge_full()?;
        let before = self.held_of_blocks;
        self.held_of_blocks = self.runs.iter().map(SortedRun::space).sum();
        memory.release(before);
        memory.hold(self.held_of_blocks)
    }

    fn merge_full(&mut self) -> Result<(), SqlError> {
        while let Some(level) = self.runs.last().map(|run| run.level) {
            let same = self.runs.iter().rev().take_while(|run| run.level == level).count();
            if same < MERGED_AT_ONCE {
                break;
            }
            let merged = self.runs.split_off(self.runs.len() - same);
            let width = merged[0].firsts.first().map_or(0, Vec::len);
            let sources = merged.iter().map(|run| Source::written(run.run.rows(), width)).collect();
            let mut rows = Merge::new(sources, KeyOrder::Grouped)?;
            let next = &mut || Ok(rows.next()?.map(|(row, _)| row));
            self.runs.push(SortedRun::write(self.scratch.as_ref(), level + 1, next)?);
        }
        Ok(())
    }
}

impl SortedRun {
    fn write(
        scratch: &dyn Scratch,
        level: usize,
        next: &mut dyn FnMut() -> Result<Option<Vec<Value>>, SqlError>,
    ) -> Result<SortedRun, SqlError> {
        let mut writer = RunWriter::new(&RunFile::new(scratch)?);
        let (mut firsts, mut count) = (Vec::new(), 0_usize);
        while let Some(row) = next()? {
            if count.is_multiple_of(BLOCK_ROWS) {
                firsts.push(row.clone());
            }
            writer.push(&[&row])?;
            count += 1;
        }
        Ok(SortedRun { run: writer.finish()?.0, firsts, level, read: None })
    }

    /// What the first rows of its blocks take.
    fn space(&self) -> u64 {
        self.firsts.iter().map(|row| row_bytes(row)).sum()
    }

    fn contains(&mut self, row: &[Value]) -> Result<bool, SqlError> {
        let behind = self.firsts.partition_point(|first| compare_values(first, row).is_le());
        let Some(number) = behind.checked_sub(1) else { return Ok(false) };
        let rows = match &mut self.read {
            Some((known, rows)) if *known == number => rows,
            read => {
                let mut found = self.run.block(number);
                let mut rows = Vec::with_capacity(BLOCK_ROWS);
                while let Some(row) = found.next()? {
                    rows.push(row);
                }
                &mut read.insert((number, rows)).1
            }
        };
        Ok(rows.binary_search_by(|known| compare_values(known, row)).is_ok())
    }
}
