//! Which rows the last blocks wrote: what tells a fresh read from a stale one without a version beside every row.

use smallvec::{SmallVec, smallvec};
use state::{Effects, RowId, Scan};
use std::collections::{BTreeMap, VecDeque};
use types::{ColumnSet, Key};

/// Rows that the scans of one batch may be held against.
const SCANNED_ROWS_MAX: usize = 1 << 21;

/// Columns that were last written at one height.
type Written = SmallVec<[(ColumnSet, u64); 1]>;

/// The rows that the blocks of a window of heights wrote, each with the last height by column.
///
/// A read on the state after block `h` is current if nobody has written its columns above `h`. So a version is a
/// height, and what is older than the window needs none: a simulation that is older than that is outdated.
pub(crate) struct RecentWrites {
    /// Blocks that are remembered.
    window: u64,
    /// Height of the last block that is not remembered.
    forgotten: u64,
    rows: BTreeMap<RowId, Written>,
    /// By height, ascending: the rows written there.
    heights: VecDeque<(u64, Vec<RowId>)>,
}

/// How far scans are followed: who uses it up is stale without a further look, which is always safe. What is counted
/// does not depend on what else is remembered, so it is the same on every node and for every schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Only rows written above this height count.
    oldest: u64,
    rows_left: usize,
}

impl Search {
    /// Of a whole block.
    pub(crate) fn of_block(oldest: u64) -> Search {
        Search { oldest, rows_left: SCANNED_ROWS_MAX }
    }

    /// Of each of a batch's transactions: those that scan share what a block has.
    pub(crate) fn of_each<'a>(oldest: u64, batch: impl IntoIterator<Item = &'a Effects>) -> Search {
        let scans = |effects: &&Effects| effects.scans.iter().any(|scan| !scan.range.is_empty());
        let scanning = batch.into_iter().filter(scans).count();
        Search { oldest, rows_left: SCANNED_ROWS_MAX / scanning.max(1) }
    }

    /// Whether a simulation on the state of this height can be judged in the block of that height. Nobody can have seen
    /// the state after a block that is not there yet.
    pub(crate) fn reaches(&self, snapshot: u64, height: u64) -> bool {
        (self.oldest..height).contains(&snapshot)
    }

    /// Height of the oldest state that counts.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Whether it is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.rows_left == 0
    }
}

impl RecentWrites {
    pub(crate) fn new(window: u64) -> RecentWrites {
        let (rows, heights) = (BTreeMap::new(), VecDeque::new());
        RecentWrites { window, forgotten: 0, rows, heights }
    }

    /// A block of this height comes next: what lies behind the window is forgotten.
    pub(crate) fn begin(&mut self, height: u64) {
        self.forget(height.saturating_sub(self.window + 1));
    }

    /// Height of the oldest state on which a simulation can still be judged.
    pub(crate) fn oldest(&self) -> u64 {
        self.forgotten
    }

    /// Nothing up to this height is remembered any more.
    pub(crate) fn forget(&mut self, height: u64) {
        self.forgotten = self.forgotten.max(height);
        while let Some((_, rows)) = self.heights.pop_front_if(|(written, _)| *written <= height) {
            for row in rows {
                if let Some(written) = self.rows.get_mut(&row) {
                    written.retain(|(_, at)| *at > height);
                    if written.is_empty() {
                        self.rows.remove(&row);
                    }
                }
            }
        }
    }

    /// Whether a simulation on the state after this height is too old to be judged.
    pub(crate) fn is_outdated(&self, snapshot: u64) -> bool {
        snapshot < self.forgotten
    }

    /// Whether somebody has written what these effects read since `snapshot`.
    pub(crate) fn is_stale(&self, effects: &Effects, snapshot: u64, search: &mut Search) -> bool {
        let read = |read: &state::Read| self.wrote(&read.row, read.columns, snapshot);
        effects.reads.iter().any(read)
            || effects.scans.iter().any(|scan| self.entered(scan, snapshot, search))
    }

    fn wrote(&self, row: &RowId, columns: ColumnSet, snapshot: u64) -> bool {
        let written = self.rows.get(row).into_iter().flatten();
        written.into_iter().any(|(written, at)| *at > snapshot && written.intersects(columns))
    }

    fn entered(&self, scan: &Scan, snapshot: u64, search: &mut Search) -> bool {
        if scan.range.is_empty() {
            return false;
        }
        self.rows.range(scan.range.of_table(scan.table)).any(|(row, written)| {
            if written.iter().all(|(_, at)| *at <= search.oldest) {
                return false;
            }
            if search.is_spent() {
                return true;
            }
            search.rows_left -= 1;
            let newer = written.iter().filter(|(_, at)| *at > snapshot);
            let columns = newer.fold(ColumnSet::EMPTY, |all, (columns, _)| all | *columns);
            changes_scan(scan, &row.key, columns)
        })
    }

    /// Notes what a transaction of the block of this height writes.
    pub(crate) fn note_all(&mut self, effects: &Effects, height: u64) {
        effects.commands.iter().for_each(|command| self.note(&command.row, command.writes, height));
    }

    fn note(&mut self, row: &RowId, columns: ColumnSet, height: u64) {
        if columns.is_empty() {
            return;
        }
        match self.rows.get_mut(row) {
            Some(written) => {
                written.iter_mut().for_each(|(older, _)| *older = older.without(columns));
                written.retain(|(older, _)| !older.is_empty());
                match written.iter_mut().find(|(_, at)| *at == height) {
                    Some((same, _)) => *same |= columns,
                    None => written.push((columns, height)),
                }
            }
            None => _ = self.rows.insert(row.clone(), smallvec![(columns, height)]),
        }
        match self.heights.back_mut().filter(|(at, _)| *at == height) {
            Some((_, rows)) => rows.push(row.clone()),
            None => self.heights.push_back((height, vec![row.clone()])),
        }
    }
}

/// Whether a scan may find something else once these columns of a row have been written. Of a row that was not in the
/// result, it counts that the row may have come into being, or that its condition looks at one of the columns.
pub(crate) fn changes_scan(scan: &Scan, key: &Key, columns: ColumnSet) -> bool {
    match scan.result.binary_search(key) {
        Ok(_) => columns.intersects(scan.columns),
        Err(_) => columns.intersects(scan.predicate_columns | ColumnSet::EXISTS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use state::Read;
    use types::TableId;

    fn row(key: u8) -> RowId {
        RowId { table: TableId(1), key: Key::from_bytes(&[key]) }
    }

    fn reader(key: u8, column: usize) -> Effects {
        let reads = vec![Read { row: row(key), columns: ColumnSet::column(column) | ColumnSet::EXISTS }];
        let (scans, commands) = Default::default();
        Effects { reads, scans, commands, result: Ok(vec![]), steps: 1, catalog: None }
    }

    #[test]
    fn what_lies_behind_the_window_is_forgotten_column_by_column() {
        let mut recent = RecentWrites::new(3);
        recent.begin(5);
        recent.note(&row(1), ColumnSet::column(0), 5);
        recent.note(&row(2), ColumnSet::column(0), 5);
        recent.begin(7);
        recent.note(&row(1), ColumnSet::column(1), 7);
        let stale = |recent: &RecentWrites, column, snapshot| {
            recent.is_stale(&reader(1, column), snapshot, &mut Search::of_block(0))
        };
        assert!(stale(&recent, 0, 4) && !stale(&recent, 0, 5));
        assert!(stale(&recent, 1, 6) && !stale(&recent, 1, 7));
        recent.begin(9);
        assert_eq!(recent.rows.len(), 1, "row 2 was last written at 5");
        assert!(recent.is_outdated(4) && !recent.is_outdated(5));
        assert!(!stale(&recent, 0, 5) && stale(&recent, 1, 5));
        recent.begin(11);
        assert!(recent.rows.is_empty() && recent.heights.is_empty());
    }
}
