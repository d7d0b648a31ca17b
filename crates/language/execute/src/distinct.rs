//! The rows of SELECT DISTINCT, of which not all fit into memory.

use crate::scratch::{KeyOrder, Scratch, Sorter};
use crate::sorting::Sortable;
use plan::expression::{Memory, long_bytes, row_space};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{SqlError, Value};

/// The rows that have come so far.
pub(super) struct DistinctRows {
    seen: BTreeSet<Sortable>,
    bytes: u64,
    scratch: Option<Arc<dyn Scratch>>,
    late: Option<Late>,
}

/// Rows that came when no more could be held, and were not among those that are.
struct Late {
    /// By their values, and by when they came.
    rows: Sorter<'static>,
    count: i64,
}

impl DistinctRows {
    /// None yet. Without `scratch` all of them must fit into memory.
    pub fn new(scratch: Option<Arc<dyn Scratch>>) -> DistinctRows {
        DistinctRows { seen: BTreeSet::new(), bytes: 0, scratch, late: None }
    }

    /// Whether a row is the first of its kind; `None`: that is known when all have come ([`DistinctRows::later`]).
    ///
    /// # Errors
    /// As [`Memory::hold`].
    pub fn is_first(&mut self, memory: &Memory, row: &[Value]) -> Result<Option<bool>, SqlError> {
        let row = Sortable(row.to_vec());
        if self.late.is_some() {
            return Ok(if self.seen.contains(&row) { Some(false) } else { None });
        }
        let space = row_space(row.0.len());
        let bytes = space + row.0.iter().map(long_bytes).sum::<u64>();
        if !self.seen.insert(row) {
            return Ok(Some(false));
        }
        let fits = memory.hold(space);
        self.bytes += bytes;
        if let Some(scratch) = &self.scratch
            && (self.bytes >= scratch.operator_bytes() || fits.is_err())
        {
            let rows = Sorter::new(KeyOrder::Grouped, Some(scratch.clone()));
            self.late = Some(Late { rows, count: 0 });
            if fits.is_err() {
                memory.release(space);
            }
            return Ok(Some(true));
        }
        fits.map(|()| Some(true))
    }

    /// A row of which it is not known yet whether it is the first of its kind, and the keys that it is sorted by.
    ///
    /// # Errors
    /// What writing raises.
    pub fn put_off(&mut self, memory: &Memory, row: Vec<Value>, keys: Vec<Value>) -> Result<(), SqlError> {
        let Some(late) = &mut self.late else { return Ok(()) };
        late.count += 1;
        let mut known_as = row;
        known_as.push(Value::BigInt(late.count));
        late.rows.push(memory, known_as, keys)
    }

    /// Hands out those of the rows that were put off which are the first of their kind, in the order in which they came, with their keys,
    /// until there are enough.
    ///
    /// # Errors
    /// What `take`, reading and writing raise.
    pub fn later(
        &mut self,
        memory: &Memory,
        take: &mut dyn FnMut(Vec<Value>, Vec<Value>) -> Result<ControlFlow<()>, SqlError>,
    ) -> Result<(), SqlError> {
        let Some(late) = self.late.take() else { return Ok(()) };
        let mut in_order = Sorter::new(KeyOrder::Grouped, self.scratch.clone());
        let mut rows = late.rows.finish()?;
        let mut before: Option<Sortable> = None;
        while let Some((mut row, keys)) = rows.next()? {
            let number = row.pop().unwrap_or_default();
            let row = Sortable(row);
            if before.as_ref() == Some(&row) {
                continue;
            }
            let width = row.0.len();
            let values = [row.0.as_slice(), keys.as_slice(), &[Value::BigInt(width as i64)]].concat();
            in_order.push(memory, vec![number], values)?;
            before = Some(row);
        }
        let mut rows = in_order.finish()?;
        while let Some((_, mut row)) = rows.next()? {
            let width = match row.pop() {
                Some(Value::BigInt(width)) => usize::try_from(width).unwrap_or_default(),
                _ => row.len(),
            };
            let keys = row.split_off(width);
            if take(row, keys)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
