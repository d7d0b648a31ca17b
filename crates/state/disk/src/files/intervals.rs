//! Many intervals of the files, read in one go.
//!
//! Each run has a cursor, which goes from one interval to the next. In a run that has little between two intervals its next key stands
//! behind both, and then nothing is read. Where one interval after another is looked up from the root of each run, as
//! `FilesAt::range` does, a dozen runs with a few rows each cost more than the run that has nearly all rows.

use lsm_tree::{InternalValue, SeqNo, Slice, Table};
use state::StoreError;
use std::ops::Bound;

/// Keys that a cursor passes over, at most, before it looks its interval up.
const PATIENCE_MAX: u32 = 16;

/// Where an interval of keys begins and ends.
pub(crate) type Interval = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Gets the number of an interval, a key and its value.
pub(crate) type VisitItem<'v> = dyn FnMut(usize, &[u8], &[u8]) -> Result<(), StoreError> + 'v;

/// Visits the keys and values of intervals, which ascend and do not meet, with the number of each interval. `runs`: files whose keys
/// ascend from one to the next, run by run; `sequence`: what has this number or a higher one came later. `failed` says what it means
/// that a file cannot be read.
pub(super) fn visit_intervals(
    runs: &[Box<[Table]>],
    sequence: SeqNo,
    intervals: &[Interval],
    failed: &dyn Fn(lsm_tree::Error) -> StoreError,
    visit: &mut VisitItem<'_>,
) -> Result<(), StoreError> {
    let mut cursors: Vec<Cursor<'_>> = runs.iter().map(|run| Cursor::new(run, sequence)).collect();
    let mut found = Vec::new();
    for (number, interval) in intervals.iter().enumerate() {
        for cursor in &mut cursors {
            cursor.take(interval, &mut found).map_err(failed)?;
        }
        // By key, and the newest value of each first.
        found.sort_by(|one: &InternalValue, other| one.key.cmp(&other.key));
        found.dedup_by(|older, newest| older.key.user_key == newest.key.user_key);
        for item in found.drain(..).filter(|item| !item.is_tombstone()) {
            visit(number, &item.key.user_key, &item.value)?;
        }
    }
    Ok(())
}

type Items = dyn Iterator<Item = lsm_tree::Result<InternalValue>> + Send;

/// Where one run is read.
struct Cursor<'v> {
    /// Its files; their keys ascend.
    tables: &'v [Table],
    /// What has this sequence number or a higher one came later.
    sequence: SeqNo,
    /// What follows of the file that is read; `None`: nothing was read yet.
    items: Option<Box<Items>>,
    /// The next one.
    next: Option<InternalValue>,
    /// The files behind that one.
    rest: &'v [Table],
    /// Keys that are passed over now before an interval is looked up.
    patience: u32,
}

impl<'v> Cursor<'v> {
    fn new(tables: &'v [Table], sequence: SeqNo) -> Cursor<'v> {
        Cursor { tables, sequence, items: None, next: None, rest: tables, patience: PATIENCE_MAX }
    }

    /// Adds what an interval has.
    fn take(&mut self, interval: &Interval, found: &mut Vec<InternalValue>) -> lsm_tree::Result<()> {
        self.go_to(&interval.0)?;
        while let Some(item) = self.next.take_if(|item| is_before_end(&item.key.user_key, &interval.1)) {
            self.read_next()?;
            if item.key.seqno < self.sequence {
                found.push(item);
            }
        }
        Ok(())
    }

    /// Makes the first key at or behind the start of an interval the next one.
    fn go_to(&mut self, start: &Bound<Vec<u8>>) -> lsm_tree::Result<()> {
        if self.items.is_none() {
            return self.look_up(start);
        }
        for passed in 0..=self.patience {
            if self.next.as_ref().is_none_or(|item| !is_before_start(&item.key.user_key, start)) {
                if passed > 0 {
                    self.patience = PATIENCE_MAX.min(self.patience * 2);
                }
                return Ok(());
            }
            self.read_next()?;
        }
        // It was in vain, and would be again in a run that has much between intervals.
        self.patience = 1.max(self.patience / 2);
        self.look_up(start)
    }

    fn look_up(&mut self, start: &Bound<Vec<u8>>) -> lsm_tree::Result<()> {
        let first =
            self.tables.partition_point(|table| is_before_start(table.metadata.key_range.max(), start));
        let tables: &'v [Table] = &self.tables[first..];
        self.next = None;
        self.rest = tables;
        if let Some((table, rest)) = tables.split_first() {
            let start = match start {
                Bound::Included(key) => Bound::Included(Slice::from(key.as_slice())),
                Bound::Excluded(key) => Bound::Excluded(Slice::from(key.as_slice())),
                Bound::Unbounded => Bound::Unbounded,
            };
            self.items = Some(Box::new(table.range((start, Bound::Unbounded))));
            self.rest = rest;
        } else {
            self.items = Some(Box::new(std::iter::empty()));
        }
        self.read_next()
    }

    fn read_next(&mut self) -> lsm_tree::Result<()> {
        loop {
            if let Some(item) = self.items.as_mut().and_then(Iterator::next) {
                self.next = Some(item?);
                return Ok(());
            }
            self.next = None;
            let Some((table, rest)) = self.rest.split_first() else { return Ok(()) };
            self.items = Some(Box::new(table.iter()));
            self.rest = rest;
        }
    }
}

fn is_before_start(key: &[u8], start: &Bound<Vec<u8>>) -> bool {
    match start {
        Bound::Included(start) => key < start.as_slice(),
        Bound::Excluded(start) => key <= start.as_slice(),
        Bound::Unbounded => false,
    }
}

fn is_before_end(key: &[u8], end: &Bound<Vec<u8>>) -> bool {
    match end {
        Bound::Included(end) => key <= end.as_slice(),
        Bound::Excluded(end) => key < end.as_slice(),
        Bound::Unbounded => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Files, FilesAt, Item};
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn bytes(key: u32) -> Vec<u8> {
        [b"k".as_slice(), &key.to_be_bytes()].concat()
    }

    /// Intervals that ascend and do not meet, some of them empty, with every kind of bound.
    fn some_intervals(random: &mut StdRng, keys: u32) -> Vec<Interval> {
        let mut ends: Vec<u32> =
            (0..2 * random.random_range(1..30)).map(|_| random.random_range(0..keys)).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut intervals: Vec<Interval> = Vec::new();
        for pair in ends.chunks_exact(2) {
            let start = if random.random() { Bound::Included } else { Bound::Excluded };
            let end = if random.random() { Bound::Included } else { Bound::Excluded };
            intervals.push((start(bytes(pair[0])), end(bytes(pair[1]))));
        }
        if let (Some(first), true) = (intervals.first_mut(), random.random()) {
            first.0 = Bound::Unbounded;
        }
        if let (Some(last), true) = (intervals.last_mut(), random.random()) {
            last.1 = Bound::Unbounded;
        }
        intervals
    }

    fn together(files: &Arc<FilesAt>, intervals: &[Interval]) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        let read = files.intervals(intervals, &mut |number, key, value| {
            found.push((number, key.to_vec(), value.to_vec()));
            Ok(())
        });
        read.expect("nothing is damaged");
        found
    }

    type Content = BTreeMap<Vec<u8>, Vec<u8>>;

    fn one_by_one(content: &Content, intervals: &[Interval]) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
        let found = intervals.iter().enumerate().flat_map(|(number, interval)| {
            let items = content.range(interval.clone());
            items.map(move |(key, value)| (number, key.clone(), value.clone()))
        });
        found.collect()
    }

    #[test]
    fn intervals_read_together_have_what_each_has() {
        const KEYS: u32 = 20_000;
        let random = &mut StdRng::seed_from_u64(1);
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(&folder.path().join("store-1"), 1 << 20).expect("an empty folder");
        let owner = files.take_over();
        let (mut found, mut held, mut content) = (0, Vec::new(), Content::new());
        for round in 0..24_u32 {
            // Runs with every key, with every hundredth one, with a few, some of which have gone.
            let every = *[1, 10, 100, 5_000].choose(random).expect("four");
            let keys = (0..KEYS).filter(|_| every == 1 || random.random_range(0..every) == 0);
            let items: Vec<_> = keys.map(|key| (bytes(key), key % 7 != round % 7)).collect();
            let items =
                items.into_iter().map(|(key, is_there)| Ok((key, is_there.then(|| vec![round as u8; 30]))));
            for (key, value) in items.clone().filter_map(Result::<Item, StoreError>::ok) {
                match value {
                    Some(value) => content.insert(key, value),
                    None => content.remove(&key),
                };
            }
            held.push((files.write(owner, items).expect("there is room"), content.clone()));
            if round % 3 == 2 {
                files.merge().expect("there is room");
            }
            for (files, content) in held.iter().rev().step_by(5) {
                let intervals = some_intervals(random, KEYS);
                let read = together(files, &intervals);
                let expected = one_by_one(content, &intervals);
                let differs = read.iter().zip(&expected).find(|(read, expected)| read != expected);
                assert_eq!((differs, read.len()), (None, expected.len()), "round {round}: {intervals:?}");
                found += read.len();
            }
        }
        assert!(found > 100_000 && files.overlapping_runs() > 1);
        assert_eq!(together(&files.now(), &[]), []);
    }
}
