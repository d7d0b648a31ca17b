//! What a transaction may touch, known before it runs.
//!
//! ChainifyDB (Sharma, *Snapshots in data management*, section 4.6.3) analyses the statements of a block before it
//! executes them and takes read and write sets as intervals over the accessed columns. A [`Footprint`] is such a set: it
//! holds at least everything that an execution on *any* state can touch. [`Footprint::covers`] says whether one
//! execution kept to it.

use crate::{Effects, KeyRange};
use std::ops::Bound;
use types::{ColumnSet, Key, TableId};

/// Regions that a footprint keeps apart; beyond this, those of each table become one interval.
const REGIONS_MAX: usize = 4_096;

/// Columns of the rows of an interval of one table, whether they exist or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Which table.
    pub table: TableId,
    /// Which rows.
    pub range: KeyRange,
    /// Which of their columns.
    pub columns: ColumnSet,
}

impl Region {
    /// Columns of one row.
    pub fn row(table: TableId, key: Key, columns: ColumnSet) -> Region {
        let range = KeyRange { start: Bound::Included(key.clone()), end: Bound::Included(key) };
        Region { table, range, columns }
    }

    /// The key, where the region is written as one row.
    pub fn key(&self) -> Option<&Key> {
        match (&self.range.start, &self.range.end) {
            (Bound::Included(start), Bound::Included(end)) if start == end => Some(start),
            _ => None,
        }
    }

    /// Whether the interval holds the whole of another one.
    fn holds(&self, range: &KeyRange) -> bool {
        let starts = match (&self.range.start, &range.start) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(outer), Bound::Included(inner) | Bound::Excluded(inner)) => outer <= inner,
            (Bound::Excluded(outer), Bound::Excluded(inner)) => outer <= inner,
            (Bound::Excluded(outer), Bound::Included(inner)) => outer < inner,
            // No key is less than the empty one.
            (Bound::Included(outer), Bound::Unbounded) => *outer == Key::default(),
            (Bound::Excluded(_), Bound::Unbounded) => false,
        };
        starts
            && match (&self.range.end, &range.end) {
                (Bound::Unbounded, _) => true,
                (Bound::Included(outer), Bound::Included(inner) | Bound::Excluded(inner)) => outer >= inner,
                (Bound::Excluded(outer), Bound::Excluded(inner)) => outer >= inner,
                (Bound::Excluded(outer), Bound::Included(inner)) => outer > inner,
                (_, Bound::Unbounded) => false,
            }
    }
}

/// What a transaction may read and write: at least what any execution of it touches.
///
/// What a command uses counts as read, because its place is where the transaction runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// Columns that may be looked at.
    pub reads: Vec<Region>,
    /// Columns that may be written.
    pub writes: Vec<Region>,
}

impl Footprint {
    /// The transaction may look at this.
    pub fn read(&mut self, region: Region) {
        add(&mut self.reads, region);
    }

    /// The transaction may write this.
    pub fn write(&mut self, region: Region) {
        add(&mut self.writes, region);
    }

    /// Whether an execution touched nothing outside. A scan is inside if the regions that hold the whole of its
    /// interval have its columns together.
    pub fn covers(&self, effects: &Effects) -> bool {
        if effects.reads.is_empty() && effects.scans.is_empty() && effects.commands.is_empty() {
            return true;
        }
        let (reads, writes) = (Cover::new(&self.reads), Cover::new(&self.writes));
        effects.reads.iter().all(|read| reads.row(read.row.table, &read.row.key, read.columns))
            && effects
                .scans
                .iter()
                .all(|scan| reads.interval(scan.table, &scan.range, scan.columns | scan.predicate_columns))
            && effects.commands.iter().all(|command| {
                let row = &command.row;
                reads.row(row.table, &row.key, command.uses)
                    && writes.row(row.table, &row.key, command.writes)
            })
    }
}

/// Adds a region; one with the same rows takes its columns, and too many of one table become one interval.
fn add(regions: &mut Vec<Region>, region: Region) {
    if region.columns.is_empty() || region.range.is_empty() {
        return;
    }
    // What a program names twice, it names soon again.
    let same = |known: &&mut Region| known.table == region.table && known.range == region.range;
    if let Some(known) = regions.iter_mut().rev().take(16).find(same) {
        known.columns |= region.columns;
        return;
    }
    if regions.len() >= REGIONS_MAX {
        // Every table's become one, so that this comes seldom.
        let mut hulls: Vec<Region> = Vec::new();
        for known in regions.drain(..) {
            match hulls.iter_mut().find(|hull| hull.table == known.table) {
                Some(hull) => *hull = joined(hull, &known),
                None => hulls.push(known),
            }
        }
        *regions = hulls;
    }
    regions.push(region);
}

/// The least interval around two of one table, with the columns of both.
fn joined(a: &Region, b: &Region) -> Region {
    let contains_start = |outer: &Region, inner: &Region| {
        outer.holds(&KeyRange { start: inner.range.start.clone(), end: outer.range.end.clone() })
    };
    let contains_end = |outer: &Region, inner: &Region| {
        outer.holds(&KeyRange { start: outer.range.start.clone(), end: inner.range.end.clone() })
    };
    let start = if contains_start(a, b) { &a.range.start } else { &b.range.start };
    let end = if contains_end(a, b) { &a.range.end } else { &b.range.end };
    let range = KeyRange { start: start.clone(), end: end.clone() };
    Region { table: a.table, range, columns: a.columns | b.columns }
}

/// Regions, to be asked about rows: single rows by table and key, the few intervals one after the other.
struct Cover<'a> {
    rows: Vec<(TableId, &'a Key, ColumnSet)>,
    intervals: Vec<&'a Region>,
}

impl<'a> Cover<'a> {
    fn new(regions: &'a [Region]) -> Cover<'a> {
        let mut rows = Vec::with_capacity(regions.len());
        let mut intervals = Vec::new();
        for region in regions {
            match region.key() {
                Some(key) => rows.push((region.table, key, region.columns)),
                None => intervals.push(region),
            }
        }
        rows.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        Cover { rows, intervals }
    }

    fn row(&self, table: TableId, key: &Key, columns: ColumnSet) -> bool {
        let first = self.rows.partition_point(|row| (row.0, row.1) < (table, key));
        let rows = self.rows[first..].iter().take_while(|row| (row.0, row.1) == (table, key));
        let rows = rows.map(|row| row.2);
        let intervals =
            self.intervals.iter().filter(|region| region.table == table && region.range.contains(key));
        rows.chain(intervals.map(|region| region.columns))
            .fold(ColumnSet::EMPTY, |all, some| all | some)
            .contains(columns)
    }

    fn interval(&self, table: TableId, range: &KeyRange, columns: ColumnSet) -> bool {
        if let (Bound::Included(start), Bound::Included(end)) = (&range.start, &range.end)
            && start == end
        {
            return self.row(table, start, columns);
        }
        self.intervals
            .iter()
            .filter(|region| region.table == table && region.holds(range))
            .fold(ColumnSet::EMPTY, |all, region| all | region.columns)
            .contains(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Read, RowId, Scan};
    use proptest::prelude::*;

    const TABLE: TableId = TableId(1);

    fn key(byte: u8) -> Key {
        Key::from_bytes(&[byte])
    }

    fn bound(kind: u8, byte: u8) -> Bound<Key> {
        match kind {
            0 => Bound::Included(key(byte)),
            1 => Bound::Excluded(key(byte)),
            _ => Bound::Unbounded,
        }
    }

    fn effects(reads: Vec<Read>, scans: Vec<Scan>) -> Effects {
        Effects { reads, scans, commands: vec![], result: Ok(vec![]), steps: 1, catalog: None }
    }

    fn read(table: TableId, byte: u8, columns: ColumnSet) -> Effects {
        effects(vec![Read { row: RowId { table, key: key(byte) }, columns }], vec![])
    }

    #[test]
    fn a_row_is_covered_in_its_table_by_its_columns_alone() {
        let (a, b) = (ColumnSet::column(0), ColumnSet::column(1));
        let mut footprint = Footprint::default();
        footprint.read(Region::row(TABLE, key(3), a));
        assert!(footprint.covers(&read(TABLE, 3, a)));
        assert!(!footprint.covers(&read(TABLE, 3, b)));
        assert!(!footprint.covers(&read(TABLE, 4, a)));
        assert!(!footprint.covers(&read(TableId(2), 3, a)));
        footprint.read(Region { table: TABLE, range: KeyRange::prefix(key(3)), columns: b });
        assert!(footprint.covers(&read(TABLE, 3, a | b)), "the row and the interval have them together");
        assert!(footprint.covers(&effects(vec![], vec![])));
    }

    #[test]
    fn a_long_list_of_rows_becomes_one_interval_that_holds_them_all() {
        let mut footprint = Footprint::default();
        let name = |number: usize| Key::from_bytes(&(number as u16).to_be_bytes());
        for number in 0..=REGIONS_MAX {
            footprint.write(Region::row(TABLE, name((number * 7_919) % (REGIONS_MAX + 1)), ColumnSet::ALL));
        }
        assert_eq!(footprint.writes.len(), 2, "the last one came when there were enough");
        let last = footprint.writes.remove(1);
        footprint.writes[0] = joined(&footprint.writes[0], &last);
        let [region] = footprint.writes.as_slice() else {
            panic!("expected one, found {}", footprint.writes.len())
        };
        assert!(region.range.contains(&name(0)) && region.range.contains(&name(REGIONS_MAX)));
        assert!(!region.range.contains(&name(REGIONS_MAX + 1)));
    }

    proptest! {
        #[test]
        fn an_interval_is_held_exactly_if_no_key_of_it_is_outside(
            outer in (0..3u8, 0..6u8, 0..3u8, 0..6u8), inner in (0..3u8, 0..6u8, 0..3u8, 0..6u8),
        ) {
            let range = |(a, b, c, d): (u8, u8, u8, u8)| KeyRange { start: bound(a, b), end: bound(c, d) };
            let (outer, inner) = (range(outer), range(inner));
            prop_assume!(!outer.is_empty() && !inner.is_empty());
            let region = Region { table: TABLE, range: outer.clone(), columns: ColumnSet::ALL };
            // Keys on, before and behind every bound.
            let keys = (0..7u8).flat_map(|byte| [Key::from_bytes(&[byte]), Key::from_bytes(&[byte, 0])]);
            let mut keys = keys.chain([Key::default(), Key::from_bytes(&[255])]);
            let inside = keys.all(|key| !inner.contains(&key) || outer.contains(&key));
            if region.holds(&inner) {
                prop_assert!(inside, "{outer:?} holds {inner:?}");
            }
            let other = Region { table: TABLE, range: inner.clone(), columns: ColumnSet::EXISTS };
            let both = joined(&region, &other);
            prop_assert!(both.holds(&outer) && both.holds(&inner), "{both:?}");
        }
    }
}
