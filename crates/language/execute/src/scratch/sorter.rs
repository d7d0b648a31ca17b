//! Sorting rows of which not all fit into memory: sorted runs in files, merged when all have come.

use crate::scratch::room::{Scratch, is_full, row_bytes};
use crate::scratch::run::{Run, RunFile, RunRows, RunWriter};
use crate::sorting::{compare_by, compare_key, compare_values};
use plan::aggregate::AggregateOrder;
use plan::expression::{Memory, row_space};
use plan::statement::SortKey;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{SqlError, Value};

/// So many runs are merged at once; each takes a buffer.
const MERGED_AT_ONCE: usize = 32;

/// Keys and a row.
pub(crate) type Keyed = (Vec<Value>, Vec<Value>);

/// How keys are compared.
#[derive(Clone, Copy)]
pub(crate) enum KeyOrder<'b> {
    /// As ORDER BY says; what stands behind its keys does not count.
    By(&'b [SortKey]),
    /// As SQL groups values.
    Grouped,
    /// So many values as SQL groups them, then as the ORDER BY of a window says.
    Window { partition: usize, order: &'b [AggregateOrder] },
}

impl KeyOrder<'_> {
    pub fn compare(self, left: &[Value], right: &[Value]) -> Ordering {
        match self {
            KeyOrder::By(order) => {
                let keys = order.iter().zip(left.iter().zip(right));
                keys.map(|(key, (left, right))| compare_key(key.descending, key.nulls_first, left, right))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }
            KeyOrder::Grouped => compare_values(left, right),
            KeyOrder::Window { partition, order } => {
                let ((left, left_keys), (right, right_keys)) =
                    (left.split_at(partition), right.split_at(partition));
                compare_values(left, right).then_with(|| compare_by(order, left_keys, right_keys))
            }
        }
    }

    /// Whether all rows are equal.
    fn is_none(self) -> bool {
        matches!(self, KeyOrder::By([]) | KeyOrder::Window { partition: 0, order: [] })
    }
}

/// Rows that are to be sorted by keys. Rows with equal keys keep the order in which they came.
pub(crate) struct Sorter<'b> {
    order: KeyOrder<'b>,
    rows: Vec<Keyed>,
    /// What the rows that are held take.
    bytes: u64,
    /// What was counted for them.
    held: u64,
    scratch: Option<Arc<dyn Scratch>>,
    written: Option<Written>,
}

/// Rows that stand in files.
struct Written {
    file: RunFile,
    /// Those that came first first, each with how often its rows have been merged.
    runs: Vec<(usize, Run)>,
    /// Values of the keys, which stand in front of each row.
    keys: usize,
}

impl<'b> Sorter<'b> {
    /// No rows yet. Without `scratch` all of them must fit into memory.
    pub fn new(order: KeyOrder<'b>, scratch: Option<Arc<dyn Scratch>>) -> Sorter<'b> {
        Sorter { order, rows: Vec::new(), bytes: 0, held: 0, scratch, written: None }
    }

    /// One more row.
    ///
    /// # Errors
    /// As [`Memory::hold`]; what writing raises.
    #[inline]
    pub fn push(&mut self, memory: &Memory, keys: Vec<Value>, row: Vec<Value>) -> Result<(), SqlError> {
        let space = row_space(keys.len() + row.len());
        let fits = memory.hold(space);
        let Some(scratch) = &self.scratch else {
            self.rows.push((keys, row));
            return fits;
        };
        self.bytes += row_bytes(&keys) + row_bytes(&row);
        self.held += space;
        self.rows.push((keys, row));
        if !is_full(scratch, self.bytes, &fits) {
            return fits;
        }
        self.write()?;
        memory.release(std::mem::take(&mut self.held));
        Ok(())
    }

    /// What is counted for the rows that are held.
    pub fn held(&self) -> u64 {
        self.held
    }

    fn sort(&mut self) {
        let order = self.order;
        if !order.is_none() {
            self.rows.sort_by(|(left, _), (right, _)| order.compare(left, right));
        }
    }

    /// Writes the rows that are held as one more run.
    fn write(&mut self) -> Result<(), SqlError> {
        self.sort();
        let (Some(scratch), Some((keys, _))) = (&self.scratch, self.rows.first()) else { return Ok(()) };
        let written = match &mut self.written {
            Some(written) => written,
            none => {
                let file = RunFile::new(scratch.as_ref())?;
                none.insert(Written { file, runs: Vec::new(), keys: keys.len() })
            }
        };
        let mut writer = RunWriter::new(&written.file);
        for (keys, row) in self.rows.drain(..) {
            writer.push(&[&keys, &row])?;
        }
        let (run, file) = writer.finish()?;
        written.file = file;
        written.runs.push((0, run));
        self.bytes = 0;
        written.merge_full(scratch.as_ref(), self.order)
    }

    /// The rows in their order.
    ///
    /// # Errors
    /// What reading and writing raise.
    pub fn finish(mut self) -> Result<Sorted<'b>, SqlError> {
        self.sort();
        let held = self.rows.into_iter();
        let Some(written) = self.written else { return Ok(Sorted::Held(held)) };
        let mut sources: Vec<Source> =
            written.runs.iter().map(|(_, run)| Source::written(run.rows(), written.keys)).collect();
        // What has come last stands behind all others that are equal.
        sources.push(Source { head: None, rest: Rest::Held(held) });
        Ok(Sorted::Merged(Merge::new(sources, self.order)?))
    }
}

impl Written {
    /// As soon as there are many runs whose rows have been merged equally often, they become one: each row is written once per level.
    fn merge_full(&mut self, scratch: &dyn Scratch, order: KeyOrder<'_>) -> Result<(), SqlError> {
        while let Some((level, _)) = self.runs.last() {
            let level = *level;
            let same = self.runs.iter().rev().take_while(|(known, _)| *known == level).count();
            if same < MERGED_AT_ONCE {
                break;
            }
            let merged = self.runs.split_off(self.runs.len() - same);
            let sources = merged.iter().map(|(_, run)| Source::written(run.rows(), self.keys)).collect();
            let mut rows = Merge::new(sources, order)?;
            let mut writer = RunWriter::new(&RunFile::new(scratch)?);
            while let Some((keys, row)) = rows.next()? {
                writer.push(&[&keys, &row])?;
            }
            self.runs.push((level + 1, writer.finish()?.0));
            // The files of the runs that were merged are gone with them.
            self.file = RunFile::new(scratch)?;
        }
        Ok(())
    }
}

/// Sorted rows.
pub(crate) enum Sorted<'b> {
    /// All were held in memory.
    Held(std::vec::IntoIter<Keyed>),
    /// Some stand in files.
    Merged(Merge<'b>),
}

impl Sorted<'_> {
    /// The next one.
    ///
    /// # Errors
    /// What reading raises.
    pub fn next(&mut self) -> Result<Option<Keyed>, SqlError> {
        match self {
            Sorted::Held(rows) => Ok(rows.next()),
            Sorted::Merged(merge) => merge.next(),
        }
    }

    /// Whether some rows stand in files.
    pub fn is_written(&self) -> bool {
        matches!(self, Sorted::Merged(_))
    }
}

/// Sorted rows, of which the first is at hand.
pub(super) struct Source {
    head: Option<Keyed>,
    rest: Rest,
}

enum Rest {
    Held(std::vec::IntoIter<Keyed>),
    Written { rows: RunRows, keys: usize },
}

impl Source {
    pub(super) fn written(rows: RunRows, keys: usize) -> Source {
        Source { head: None, rest: Rest::Written { rows, keys } }
    }

    /// Gives the first row, and has the next one at hand.
    fn advance(&mut self) -> Result<Option<Keyed>, SqlError> {
        let next = match &mut self.rest {
            Rest::Held(rows) => rows.next(),
            Rest::Written { rows, keys } => rows.next()?.map(|mut values| {
                let row = values.split_off(*keys);
                (values, row)
            }),
        };
        Ok(std::mem::replace(&mut self.head, next))
    }
}

/// Merges sorted rows. Of equal ones those of the earlier source come first.
pub(crate) struct Merge<'b> {
    /// A heap of those that have a first row, by that row: parents stand at `(position - 1) / 2`.
    heap: Vec<(usize, Source)>,
    order: KeyOrder<'b>,
}

impl<'b> Merge<'b> {
    pub(super) fn new(sources: Vec<Source>, order: KeyOrder<'b>) -> Result<Merge<'b>, SqlError> {
        let mut heap = Vec::with_capacity(sources.len());
        for (number, mut source) in sources.into_iter().enumerate() {
            source.advance()?;
            if source.head.is_some() {
                heap.push((number, source));
            }
        }
        let mut merge = Merge { heap, order };
        (0..merge.heap.len() / 2).rev().for_each(|position| merge.sink(position));
        Ok(merge)
    }

    pub(super) fn next(&mut self) -> Result<Option<Keyed>, SqlError> {
        let Some((_, source)) = self.heap.first_mut() else { return Ok(None) };
        let row = source.advance()?;
        if source.head.is_none() {
            self.heap.swap_remove(0);
        }
        self.sink(0);
        Ok(row)
    }

    fn sink(&mut self, mut position: usize) {
        loop {
            let children = [2 * position + 1, 2 * position + 2];
            let first = children.into_iter().filter(|child| *child < self.heap.len());
            let Some(least) = first.min_by(|left, right| self.compare(*left, *right)) else { return };
            if self.compare(position, least).is_le() {
                return;
            }
            self.heap.swap(position, least);
            position = least;
        }
    }

    fn compare(&self, left: usize, right: usize) -> Ordering {
        let ((left_number, left), (right_number, right)) = (&self.heap[left], &self.heap[right]);
        match (&left.head, &right.head) {
            (Some((left, _)), Some((right, _))) => {
                self.order.compare(left, right).then(left_number.cmp(right_number))
            }
            _ => left_number.cmp(right_number),
        }
    }
}
