//! What the ordering stage of execute–order–validate does with the transactions that wait for a block: drop what cannot
//! commit, and put readers in front of writers.

use super::recent_writes::{RecentWrites, changes_scan};
use super::reorder::{KeySets, reorder};
use rustc_hash::{FxHashMap, FxHashSet};
use state::{Effects, RowId};
use std::collections::BTreeMap;
use types::ColumnSet;

/// What an orderer looks at (Fabric++: all of it; Fabric: nothing).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrdererOptions {
    /// Readers come before writers, and who would close a cycle is dropped.
    pub reordering: bool,
    /// Who has read what a validated block has written since is dropped.
    pub early_abort: bool,
    /// Rows that the transactions of a block may touch together.
    pub unique_rows_max: usize,
}

/// Why a transaction is dropped before it is ordered. Its client can be told at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyAbort {
    /// What it read has been written since.
    Stale,
    /// It is on a cycle with others of its block.
    Cycle,
}

/// A transaction that waits: its effects, and the height of the block after which they were found.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// What was endorsed.
    pub effects: &'a Effects,
    /// On which state.
    pub snapshot: u64,
}

/// The next block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Who is in it, in order, by position among those that waited.
    pub order: Vec<u32>,
    /// Who is dropped, by position.
    pub dropped: Vec<(u32, EarlyAbort)>,
    /// How many of those that waited were looked at; the others wait on.
    pub taken: usize,
}

/// Cuts blocks.
pub struct Orderer {
    options: OrdererOptions,
    recent: RecentWrites,
}

impl Orderer {
    /// Remembers what so many blocks wrote.
    pub fn new(options: OrdererOptions, window: u64) -> Orderer {
        Orderer { options, recent: RecentWrites::new(window) }
    }

    /// A block of this height has been validated: these effects of it count.
    pub fn validated<'a>(&mut self, height: u64, effects: impl IntoIterator<Item = &'a Effects>) {
        self.recent.begin(height);
        effects.into_iter().for_each(|effects| self.recent.note_all(effects, height));
    }

    /// Whether a transaction that waits is dropped at once, because what it read is old.
    pub fn drops(&mut self, one: &Waiting<'_>) -> bool {
        self.options.early_abort
            && (self.recent.is_outdated(one.snapshot) || self.recent.is_stale(one.effects, one.snapshot))
    }

    /// Makes a block of at most `most` transactions.
    pub fn cut(&mut self, waiting: &[Waiting<'_>], most: usize) -> Cut {
        let mut cut = Cut::default();
        let mut rows: FxHashSet<&RowId> = FxHashSet::default();
        let mut kept: Vec<u32> = Vec::new();
        for (position, one) in (0u32..).zip(waiting) {
            if kept.len() >= most {
                break;
            }
            if self.drops(one) {
                cut.dropped.push((position, EarlyAbort::Stale));
                cut.taken += 1;
                continue;
            }
            rows.extend(one.effects.reads.iter().map(|read| &read.row));
            rows.extend(one.effects.commands.iter().map(|command| &command.row));
            if rows.len() > self.options.unique_rows_max && !kept.is_empty() {
                break;
            }
            kept.push(position);
            cut.taken += 1;
        }
        if !self.options.reordering {
            cut.order = kept;
            return cut;
        }
        let effects: Vec<&Effects> =
            kept.iter().map(|position| waiting[*position as usize].effects).collect();
        let reordered = reorder(&key_sets(&effects));
        cut.order = reordered.order.into_iter().map(|number| kept[number as usize]).collect();
        cut.dropped
            .extend(reordered.dropped.into_iter().map(|number| (kept[number as usize], EarlyAbort::Cycle)));
        cut
    }
}

/// What the transactions read and write of one another, as small numbers: one for each column of a row that somebody
/// reads and somebody writes.
pub fn key_sets(effects: &[&Effects]) -> Vec<KeySets> {
    let mut written: BTreeMap<&RowId, ColumnSet> = BTreeMap::new();
    for command in effects.iter().flat_map(|effects| &effects.commands) {
        *written.entry(&command.row).or_default() |= command.writes;
    }
    // By transaction: what it reads of written rows.
    let reads: Vec<Vec<(&RowId, ColumnSet)>> = effects
        .iter()
        .map(|effects| {
            let points = effects.reads.iter().filter_map(|read| {
                let (row, writes) = written.get_key_value(&read.row)?;
                Some((*row, read.columns & *writes))
            });
            let mut found: Vec<(&RowId, ColumnSet)> = points.collect();
            for scan in effects.scans.iter().filter(|scan| !scan.range.is_empty()) {
                let (start, end) = scan.range.of_table(scan.table);
                let interval = written.range::<RowId, _>((start.as_ref(), end.as_ref()));
                found.extend(interval.filter(|(row, writes)| changes_scan(scan, &row.key, **writes)).map(
                    |(row, writes)| {
                        let columns = match scan.result.binary_search(&row.key) {
                            Ok(_) => scan.columns,
                            Err(_) => scan.predicate_columns | ColumnSet::EXISTS,
                        };
                        (*row, columns & *writes)
                    },
                ));
            }
            found
        })
        .collect();
    let mut numbers: FxHashMap<(&RowId, usize), u32> = FxHashMap::default();
    let mut sets: Vec<KeySets> = vec![KeySets::default(); effects.len()];
    for (set, reads) in sets.iter_mut().zip(&reads) {
        for (row, columns) in reads {
            for bit in columns.bits() {
                let next = numbers.len() as u32;
                set.reads.push(*numbers.entry((*row, bit)).or_insert(next));
            }
        }
    }
    for (set, effects) in sets.iter_mut().zip(effects) {
        for command in &effects.commands {
            let read = command.writes.bits().filter_map(|bit| numbers.get(&(&command.row, bit)));
            set.writes.extend(read.copied());
        }
        for keys in [&mut set.reads, &mut set.writes] {
            keys.sort_unstable();
            keys.dedup();
        }
    }
    sets
}
