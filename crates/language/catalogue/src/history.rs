//! `entente.blocks`, `entente.transactions`, `entente.nodes` and `entente.databases`: the history of the ledger as relations whose rows the node
//! reads when they are asked for.
//!
//! Their primary keys begin with the height, and transactions have an index on the id, so that conditions on both go down
//! to the node as intervals of keys. What has no lower bound begins at the newest [`ROWS_MAX`] rows.

use crate::SessionFacts;
use state::KeyRange;
use std::collections::VecDeque;
use std::ops::{ControlFlow, RangeInclusive};
use types::{Key, Row, SqlError, Value};

/// Rows of blocks or transactions that a query without a condition on height or id sees: the newest.
pub const ROWS_MAX: usize = 100_000;
/// Rows that are asked of the node at once.
const PAGE_ROWS: usize = 1_000;
/// Heights that are asked for at once in ascending order.
const PAGE_HEIGHTS: u64 = 200;

/// What a node keeps of its ledger. Rows have the columns of the relations, in order.
pub trait History: Send + Sync {
    /// The newest height.
    fn height(&self) -> u64;
    /// Blocks, the newest first.
    fn blocks(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<Row>;
    /// Transactions, the newest first.
    fn transactions(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<Row>;
    /// The transaction with this id.
    fn transaction(&self, id: &str) -> Option<Row>;
    /// What proves the receipt of the transaction with this id: JSON.
    ///
    /// # Errors
    /// Why there is no proof.
    fn receipt_proof(&self, id: &str) -> Result<String, SqlError>;
    /// What proves the row of a table whose primary key has these values, or that there is none: JSON. `facts`: who asks, and
    /// where names are looked for.
    ///
    /// # Errors
    /// Why there is no proof.
    fn row_proof(&self, facts: &SessionFacts, table: &str, key: &[String]) -> Result<String, SqlError>;
    /// The nodes of the ledger.
    fn nodes(&self) -> Vec<Row>;
    /// The organisation's own database, where it keeps tables in one.
    fn databases(&self) -> Vec<Row>;
}

/// A relation with a row per height, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heights {
    Blocks,
    Transactions,
}

impl Heights {
    /// The primary key of a row.
    pub(crate) fn key(self, row: &Row) -> Option<Key> {
        let columns = if self == Heights::Blocks { 1 } else { 2 };
        Key::encode(row.get(..columns)?).ok()
    }

    fn read(self, history: &dyn History, heights: RangeInclusive<u64>, limit: usize) -> Vec<Row> {
        match self {
            Heights::Blocks => history.blocks(heights, limit),
            Heights::Transactions => history.transactions(heights, limit),
        }
    }

    /// Visits the rows of an interval of keys.
    pub(crate) fn scan(
        self,
        history: &dyn History,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) {
        let heights = self.heights(history, range);
        let is_open = range.start == std::ops::Bound::Unbounded;
        if !reverse {
            let first = if is_open { self.first_of_newest(history, &heights) } else { *heights.start() };
            self.ascend(history, first..=*heights.end(), range, visit);
            return;
        }
        let mut left = if is_open { ROWS_MAX } else { usize::MAX };
        self.descend(history, heights, &mut |key, row| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            if !range.contains(key) {
                return ControlFlow::Continue(());
            }
            left -= 1;
            visit(key, row)
        });
    }

    /// Heights that hold all keys of an interval.
    fn heights(self, history: &dyn History, range: &KeyRange) -> RangeInclusive<u64> {
        let newest = history.height();
        let prefix = |height: u64| {
            let height = Value::BigInt(i64::try_from(height).unwrap_or(i64::MAX));
            Key::encode([&height]).unwrap_or_default()
        };
        // The bytes of keys are ordered as their values are.
        let first_where = |is_there: &dyn Fn(&Key) -> bool| {
            let (mut low, mut high) = (0, newest + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if is_there(&prefix(middle)) { high = middle } else { low = middle + 1 }
            }
            low
        };
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let start = match &range.start {
            Included(key) | Excluded(key) => first_where(&|height| height >= key),
            Unbounded => 0,
        };
        let end = match &range.end {
            Included(key) | Excluded(key) => first_where(&|height| height > key),
            Unbounded => newest,
        };
        // A key inside of a block is behind the height that it begins with.
        start.saturating_sub(1)..=end.min(newest)
    }

    /// Visits rows, the newest first.
    fn descend(
        self,
        history: &dyn History,
        heights: RangeInclusive<u64>,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) {
        let (low, mut high) = heights.into_inner();
        while low <= high {
            let mut rows = self.read(history, low..=high, PAGE_ROWS);
            let height = |row: &Row| match row.first() {
                Some(Value::BigInt(height)) => u64::try_from(*height).unwrap_or(0),
                _ => 0,
            };
            let Some(last) = rows.last().map(height) else { return };
            let is_full = rows.len() >= PAGE_ROWS;
            if is_full && self == Heights::Transactions {
                // The last block may go on beyond the page.
                rows.retain(|row| height(row) != last);
                rows.extend(self.read(history, last..=last, usize::MAX));
            }
            for row in &rows {
                if let Some(key) = self.key(row)
                    && visit(&key, row).is_break()
                {
                    return;
                }
            }
            match last.checked_sub(1).filter(|_| is_full) {
                Some(next) => high = next,
                None => return,
            }
        }
    }

    fn ascend(
        self,
        history: &dyn History,
        heights: RangeInclusive<u64>,
        range: &KeyRange,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) {
        let (mut low, high) = heights.into_inner();
        while low <= high {
            let end = high.min(low.saturating_add(PAGE_HEIGHTS - 1));
            for row in self.read(history, low..=end, usize::MAX).iter().rev() {
                if let Some(key) = self.key(row).filter(|key| range.contains(key))
                    && visit(&key, row).is_break()
                {
                    return;
                }
            }
            low = end + 1;
        }
    }

    /// The height at which the newest [`ROWS_MAX`] rows begin.
    fn first_of_newest(self, history: &dyn History, heights: &RangeInclusive<u64>) -> u64 {
        let (low, high) = (*heights.start(), *heights.end());
        if self == Heights::Blocks {
            return low.max(high.saturating_sub(ROWS_MAX as u64 - 1));
        }
        let (mut rows, mut first) = (0, high);
        while first > low && rows < ROWS_MAX {
            let next = first.saturating_sub(PAGE_HEIGHTS).max(low);
            rows += self.read(history, next..=first - 1, usize::MAX).len();
            first = next;
        }
        first
    }
}

/// The entry of a transaction in the index on ids.
fn entry(row: &Row) -> Option<Key> {
    Some(Key::index_entry([row.get(2)?], &Heights::Transactions.key(row)?))
}

/// Visits the entries of the index on ids: the one of an id where the interval begins with one, else those of the newest
/// transactions.
pub(crate) fn scan_ids(
    history: &dyn History,
    range: &KeyRange,
    reverse: bool,
    visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
) {
    let nothing: Row = std::sync::Arc::from([]);
    let mut entries = VecDeque::new();
    match id_of(range) {
        Some(id) => entries.extend(history.transaction(&id).as_ref().and_then(entry)),
        None => {
            let mut all = Vec::new();
            Heights::Transactions.scan(history, &KeyRange::ALL, true, &mut |_, row| {
                all.extend(entry(row));
                ControlFlow::Continue(())
            });
            all.sort_unstable();
            entries.extend(all);
        }
    }
    while let Some(key) = if reverse { entries.pop_back() } else { entries.pop_front() } {
        if range.contains(&key) && visit(&key, &nothing).is_break() {
            return;
        }
    }
}

/// The only id whose entry can be in an interval.
fn id_of(range: &KeyRange) -> Option<String> {
    use std::ops::Bound::{Excluded, Included};
    let (Included(start) | Excluded(start)) = &range.start else { return None };
    // A byte says that the value is not NULL; then comes the text.
    let bytes = start.as_bytes().get(1..)?;
    let end = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(bytes.len());
    let id = std::str::from_utf8(&bytes[..end]).ok()?.to_string();
    let prefix = Key::index_prefix([&Value::text(id.as_str())]);
    let next = prefix.after_prefix()?;
    let ends_there = match &range.end {
        Included(end) | Excluded(end) => *end <= next,
        _ => false,
    };
    (*start >= prefix && ends_there).then_some(id)
}
