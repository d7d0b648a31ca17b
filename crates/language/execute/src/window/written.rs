//! Window functions over rows that need not fit into memory.
//!
//! Rows are sorted by the window's partition and order, each with the number that it had. A partition is a list, which is held where it
//! fits; each of its rows gets the function's value, and then they are sorted by their numbers again: for the next window, or the result.

use crate::execution::{Execution, interrupted};
use crate::scratch::{
    BLOCK_ROWS, EachRow, KeyOrder, RowList, Rows, Run, RunRows, Scratch, Sorted, Sorter, row_bytes,
};
use crate::sorting::{compare_by, compare_values};
use crate::subqueries::Given;
use crate::window::frame::{ResolvedFrame, resolved};
use crate::window::partition::{Finder, Partition, PartitionRows, Reached, Role};
use plan::aggregate::AggregateOrder;
use plan::expression::{Memory, row_space};
use plan::window::WindowCall;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use types::{SqlError, Value};
use values::broken;

/// Bytes of the last rows that a reader remembers at least: about what it reads at once.
const REMEMBERED_MIN: u64 = 64 * 1024;

/// Rows in the order in which they came.
pub(crate) enum NumberedRows {
    /// As the query has found them.
    Found(EachRow),
    /// By their numbers, with the values of windows.
    Sorted(Sorted<'static>),
}

impl NumberedRows {
    /// The next one.
    pub fn next(&mut self) -> Result<Option<Vec<Value>>, SqlError> {
        match self {
            NumberedRows::Found(rows) => rows.next(),
            NumberedRows::Sorted(rows) => Ok(rows.next()?.map(|(_, row)| row)),
        }
    }
}

impl Execution<'_> {
    /// The rows of a query, with the values of window functions behind their columns.
    pub(crate) fn with_windows(
        &mut self,
        windows: &[WindowCall],
        rows: Rows,
        given: Given<'_>,
        scratch: &Arc<dyn Scratch>,
    ) -> Result<NumberedRows, SqlError> {
        let memory = self.meter.memory.clone();
        let (held, mut rows) = (memory.held(), NumberedRows::Found(rows.into_each()));
        for call in windows {
            let sorted = self.sorted_for(call, rows, given, scratch)?;
            let frame = self.with_subqueries(&[], given, |environment| resolved(&call.frame, environment))?;
            let mut numbered = Sorter::new(KeyOrder::Grouped, Some(scratch.clone()));
            self.each_partition(call, sorted, scratch, &mut |execution, partition| {
                execution.fill(call, &frame, partition, given, &mut numbered)
            })?;
            // All that was held for this window is gone, but for its result.
            memory.release_to(held + numbered.held());
            rows = NumberedRows::Sorted(numbered.finish()?);
        }
        Ok(rows)
    }

    /// The rows by the window's partition and order, each with its number behind it.
    fn sorted_for<'b>(
        &mut self,
        call: &'b WindowCall,
        mut rows: NumberedRows,
        given: Given<'_>,
        scratch: &Arc<dyn Scratch>,
    ) -> Result<Sorted<'b>, SqlError> {
        let memory = self.meter.memory.clone();
        let order = KeyOrder::Window { partition: call.partition.len(), order: &call.order };
        let (mut sorter, mut number) = (Sorter::new(order, Some(scratch.clone())), 0);
        while let Some(mut row) = rows.next()? {
            self.charge(0)?;
            let keys = self.with_subqueries(&row, given, |environment| {
                let expressions = call.partition.iter().chain(call.order.iter().map(|key| &key.expression));
                expressions.map(|expression| expression.evaluate(environment)).collect::<Result<Vec<_>, _>>()
            })?;
            number += 1;
            row.push(Value::BigInt(number));
            sorter.push(&memory, keys, row)?;
        }
        sorter.finish()
    }

    /// Gives the rows of one partition after the other.
    fn each_partition(
        &mut self,
        call: &WindowCall,
        mut sorted: Sorted<'_>,
        scratch: &Arc<dyn Scratch>,
        take: &mut dyn FnMut(&mut Self, PartitionList<'_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let memory = self.meter.memory.clone();
        let mut next = sorted.next()?;
        while let Some((keys, row)) = next.take() {
            let width = row.len() - 1;
            let partition = keys[..call.partition.len()].to_vec();
            let mut list = RowList::new(Some(scratch.clone()));
            let mut push = |mut keys: Vec<Value>, mut row: Vec<Value>| {
                row.extend(keys.drain(partition.len()..));
                list.push(&memory, row_space(row.len()), row)
            };
            push(keys, row)?;
            next = sorted.next()?;
            while let Some((keys, row)) =
                next.take_if(|(keys, _)| compare_values(&keys[..partition.len()], &partition).is_eq())
            {
                push(keys, row)?;
                next = sorted.next()?;
            }
            let held = list.held();
            let rows = PartitionList { rows: list.complete()?, width, order: &call.order };
            take(self, rows)?;
            memory.release(held);
        }
        Ok(())
    }

    /// Computes the window's value for all rows of a partition.
    fn fill(
        &mut self,
        call: &WindowCall,
        frame: &ResolvedFrame,
        partition: PartitionList<'_>,
        given: Given<'_>,
        numbered: &mut Sorter<'static>,
    ) -> Result<(), SqlError> {
        let (memory, interrupt) = (self.meter.memory.clone(), self.on.interrupt.clone());
        let held = memory.held();
        let remembered = match &partition.rows {
            Rows::Held(_) => 0,
            Rows::Written { .. } => self.remembered(),
        };
        let (counted, steps_max, mut steps) = (memory.held() - held, self.steps_left(), 0);
        self.with_subqueries(&[], given, |environment| {
            let rows = StoredRows::new(partition, remembered, &memory, interrupt.as_deref(), numbered);
            let (peers, group, memory) = ((0, 0), 0, Some(memory.as_ref()));
            let (start, end) = (Reached::default(), Reached::default());
            Partition { call, rows, environment, frame, steps_max, memory, peers, group, start, end }
                .fill(&mut steps)
        })?;
        memory.release(counted);
        self.charge(steps)
    }

    /// So many bytes of rows may readers of a partition remember.
    fn remembered(&mut self) -> u64 {
        let wanted = self.on.scratch.as_ref().map_or(0, |scratch| scratch.operator_bytes() / 8);
        let wanted = wanted.max(REMEMBERED_MIN);
        let counted = READERS * (wanted - REMEMBERED_MIN);
        match self.meter.memory.hold(counted) {
            Ok(()) => wanted,
            // Less does as well: rows are read more often then.
            Err(_) => {
                self.meter.memory.release(counted);
                REMEMBERED_MIN
            }
        }
    }
}

/// The rows of a partition in the window's order: the values of each, its number, and what it is sorted by.
struct PartitionList<'a> {
    rows: Rows,
    /// So many values are the row's own.
    width: usize,
    order: &'a [AggregateOrder],
}

/// The same while its rows are looked at.
struct StoredRows<'a> {
    rows: Stored,
    count: usize,
    width: usize,
    order: &'a [AggregateOrder],
    memory: &'a Memory,
    interrupt: Option<&'a AtomicBool>,
    /// The rows with their values, by their numbers.
    numbered: &'a mut Sorter<'static>,
}

enum Stored {
    Held(Vec<Vec<Value>>),
    Written(Box<Readers>),
}

/// Each stands where it is asked for rows.
struct Readers {
    current: Reader,
    other: Reader,
    peers: Reader,
    start: Reader,
    end: Reader,
}

/// Readers of a partition.
const READERS: u64 = 5;

impl<'a> StoredRows<'a> {
    fn new(
        PartitionList { rows, width, order }: PartitionList<'a>,
        remembered: u64,
        memory: &'a Memory,
        interrupt: Option<&'a AtomicBool>,
        numbered: &'a mut Sorter<'static>,
    ) -> StoredRows<'a> {
        let count = rows.len();
        let rows = match rows {
            Rows::Held(rows) => Stored::Held(rows),
            Rows::Written { run, .. } => {
                let reader = || Reader::new(run.clone(), remembered);
                Stored::Written(Box::new(Readers {
                    current: reader(),
                    other: reader(),
                    peers: reader(),
                    start: reader(),
                    end: reader(),
                }))
            }
        };
        StoredRows { rows, count, width, order, memory, interrupt, numbered }
    }

    /// What a row is sorted by.
    fn keys(&mut self, finder: Finder, position: usize) -> Result<&[Value], SqlError> {
        let row = match &mut self.rows {
            Stored::Held(rows) => &rows[position],
            Stored::Written(readers) => match finder {
                Finder::Peers => readers.peers.row(position)?,
                Finder::Start => readers.start.row(position)?,
                Finder::End => readers.end.row(position)?,
            },
        };
        Ok(&row[self.width + 1..])
    }
}

impl PartitionRows for StoredRows<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn row(&mut self, role: Role, position: usize) -> Result<&[Value], SqlError> {
        let row = match (&mut self.rows, role) {
            (Stored::Held(rows), _) => &rows[position],
            (Stored::Written(readers), Role::Current) => readers.current.row(position)?,
            (Stored::Written(readers), Role::Other) => readers.other.row(position)?,
        };
        Ok(&row[..self.width])
    }

    fn key(&mut self, finder: Finder, position: usize) -> Result<&Value, SqlError> {
        self.keys(finder, position)?.first().ok_or_else(|| broken("a window without an order"))
    }

    fn after_peers(&mut self, finder: Finder, first: usize) -> Result<usize, SqlError> {
        let order = self.order;
        if order.is_empty() {
            return Ok(self.count);
        }
        let keys = self.keys(finder, first)?.to_vec();
        let mut position = first + 1;
        while position < self.count && compare_by(order, &keys, self.keys(finder, position)?).is_eq() {
            position += 1;
        }
        Ok(position)
    }

    fn take(&mut self, position: usize, value: Value) -> Result<(), SqlError> {
        if self.interrupt.is_some_and(|interrupt| interrupt.load(Relaxed)) {
            return Err(interrupted());
        }
        let row = match &mut self.rows {
            Stored::Held(rows) => &rows[position],
            Stored::Written(readers) => readers.current.row(position)?,
        };
        let number = row[self.width].clone();
        let mut row = row[..self.width].to_vec();
        row.push(value);
        self.numbered.push(self.memory, vec![number], row)
    }
}

/// Reads rows of a run by their positions, and remembers the last ones.
struct Reader {
    run: Run,
    rows: RunRows,
    /// The position of the row that comes next.
    next: usize,
    /// The rows in front of that one.
    remembered: VecDeque<Vec<Value>>,
    bytes: u64,
    bytes_max: u64,
}

impl Reader {
    fn new(run: Run, bytes_max: u64) -> Reader {
        Reader { rows: run.rows(), run, next: 0, remembered: VecDeque::new(), bytes: 0, bytes_max }
    }

    fn row(&mut self, position: usize) -> Result<&Vec<Value>, SqlError> {
        let is_forgotten = position < self.next - self.remembered.len();
        if is_forgotten || position >= self.next + BLOCK_ROWS {
            let block = position / BLOCK_ROWS;
            self.rows = self.run.rows_from_block(block);
            (self.next, self.bytes) = (block * BLOCK_ROWS, 0);
            self.remembered.clear();
        }
        while self.next <= position {
            let row = self.rows.next()?.ok_or_else(|| broken("a row behind the end of a partition"))?;
            self.next += 1;
            self.bytes += row_bytes(&row);
            self.remembered.push_back(row);
            while self.bytes > self.bytes_max
                && self.remembered.len() > 1
                && let Some(row) = self.remembered.pop_front()
            {
                self.bytes -= row_bytes(&row);
            }
        }
        let first = self.next - self.remembered.len();
        self.remembered.get(position - first).ok_or_else(|| broken("a row that was read"))
    }
}
