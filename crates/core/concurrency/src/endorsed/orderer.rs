//! What the ordering stage of execute–order–validate does with the transactions that wait for a block: drop what cannot
//! commit, and put readers in front of writers.
//!
//! Fabric++ drops one of two transactions that read different versions in one block. Here whatever is stale against
//! the validated blocks is dropped as soon as they are validated: it cannot commit either, and it then takes part in
//! no cycles.

use super::recent_writes::{RecentWrites, Search, changes_scan};
use super::reorder::{KeySets, reorder};
use super::sharp::{Dropped, SharpGraph};
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
    /// Who closes a cycle with what is validated and what is before it in the block is dropped (Fabric#).
    pub serializability: bool,
    /// Rows that the transactions of a block may touch together.
    pub unique_rows_max: usize,
}

/// Rows that the transactions of a block of Fabric++ may touch together (Fabric++, Table 5: 16,384 unique keys).
const UNIQUE_ROWS_MAX: usize = 16_384;

impl OrdererOptions {
    /// Transactions come as they came.
    pub const FABRIC: OrdererOptions = OrdererOptions {
        reordering: false,
        early_abort: false,
        serializability: false,
        unique_rows_max: usize::MAX,
    };
    /// Fabric++.
    pub const FABRIC_PLUS_PLUS: OrdererOptions = OrdererOptions {
        reordering: true,
        early_abort: true,
        serializability: false,
        unique_rows_max: UNIQUE_ROWS_MAX,
    };
    /// Fabric#.
    pub const FABRIC_SHARP: OrdererOptions =
        OrdererOptions { serializability: true, ..OrdererOptions::FABRIC };

    /// What a proposer does under the validation protocol with this id.
    pub fn of_protocol(id: &str) -> OrdererOptions {
        match id {
            "fabric++" => OrdererOptions::FABRIC_PLUS_PLUS,
            "fabric-sharp" => OrdererOptions::FABRIC_SHARP,
            _ => OrdererOptions::FABRIC,
        }
    }
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
pub struct PendingTransaction<'a> {
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
    /// With Fabric# alone: who was validated.
    graph: SharpGraph,
    /// Height of the last validated block.
    height: u64,
}

impl Orderer {
    /// Remembers what so many blocks wrote.
    pub fn new(options: OrdererOptions, window: u64) -> Orderer {
        let (recent, graph) = (RecentWrites::new(window), SharpGraph::new(window));
        Orderer { options, recent, graph, height: 0 }
    }

    /// A block of this height has been validated: these of it have committed, in its order.
    pub fn validated<'a>(
        &mut self,
        height: u64,
        committed: impl IntoIterator<Item = PendingTransaction<'a>>,
    ) {
        self.height = height;
        if self.options.serializability {
            self.graph.begin(height);
            for one in committed {
                // The validators have accepted it. If this node knows less than they do, because it has just started,
                // it drops a few more or less, and they decide.
                let _ = self.graph.accept(one.effects, one.snapshot, height);
            }
            return;
        }
        self.recent.begin(height);
        committed.into_iter().for_each(|one| self.recent.note_all(one.effects, height));
    }

    /// Makes a block of Fabric#: who closes a cycle is dropped.
    fn cut_serializable(&mut self, waiting: &[PendingTransaction<'_>], most: usize) -> Cut {
        let height = self.height + 1;
        self.graph.try_out(|graph| {
            let mut cut = Cut::default();
            for (position, one) in (0u32..).zip(waiting) {
                if cut.order.len() >= most {
                    break;
                }
                cut.taken += 1;
                if graph.is_outdated(one.snapshot) {
                    cut.dropped.push((position, EarlyAbort::Stale));
                    continue;
                }
                match graph.accept(one.effects, one.snapshot, height) {
                    Ok(()) => cut.order.push(position),
                    // What this block has searched through is enough; the next one begins anew.
                    Err(Dropped::Bound) if !cut.order.is_empty() && graph.is_spent() => {
                        cut.taken -= 1;
                        break;
                    }
                    Err(_) => cut.dropped.push((position, EarlyAbort::Cycle)),
                }
            }
            cut
        })
    }

    /// Whether a transaction that waits is dropped at once, because what it read is old.
    pub fn drops(&self, one: &PendingTransaction<'_>) -> bool {
        self.drops_within(one, &mut Search::of_block(self.recent.oldest()))
    }

    fn drops_within(&self, one: &PendingTransaction<'_>, search: &mut Search) -> bool {
        let recent = &self.recent;
        self.options.early_abort
            && (recent.is_outdated(one.snapshot) || recent.is_stale(one.effects, one.snapshot, search))
    }

    /// Makes a block of at most `most` transactions.
    pub fn cut(&mut self, waiting: &[PendingTransaction<'_>], most: usize) -> Cut {
        if self.options.serializability {
            return self.cut_serializable(waiting, most);
        }
        let mut search = Search::of_block(self.recent.oldest());
        let mut cut = Cut::default();
        let mut rows: FxHashSet<&RowId> = FxHashSet::default();
        let mut kept: Vec<u32> = Vec::new();
        for (position, one) in (0u32..).zip(waiting) {
            if kept.len() >= most {
                break;
            }
            let dropped = self.drops_within(one, &mut search);
            if search.is_spent() && !kept.is_empty() {
                // The next block begins anew.
                break;
            }
            if dropped {
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
