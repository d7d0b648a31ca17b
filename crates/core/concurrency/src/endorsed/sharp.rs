//! Fabric#: a dependency graph over the transactions of the last blocks instead of a comparison of versions
//! (`protocols.md`, section 3; Ruan et al., SIGMOD 2020).
//!
//! A stale read is no reason to give a transaction up: it may come, in a serial order, before whoever wrote what it
//! did not see. It is given up only if that closes a cycle.
//!
//! ```text
//!  before it:  the last writers, up to its snapshot, of what it read            (wr)
//!              the last writers of what it writes or uses at its place          (ww, wr)
//!              who has read what it writes                                      (rw)
//!  after it:   who wrote what it read after its snapshot                        (rw)
//!  dropped:    someone after it reaches someone before it
//! ```

use super::recent_writes::changes_scan;
use smallvec::SmallVec;
use state::{Effects, RowId, Scan};
use std::collections::{BTreeMap, VecDeque};
use types::ColumnSet;

/// Transactions that the search for one cycle may visit; who needs more is dropped.
const VISITED_MAX: usize = 8_192;
/// Rows and scans that the scans and writes of one block may be held against; who needs more is dropped.
const SCANNED_MAX: usize = 1 << 20;

/// Why the graph drops a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dropped {
    /// There is no serial order with it.
    Cycle,
    /// Nobody knows: the bounds of the graph or of the search were met.
    Bound,
}

/// A transaction that was accepted.
struct Node {
    /// Height of its block.
    height: u64,
    /// Who must come after it, by number.
    after: Vec<u64>,
    /// The least height among them.
    oldest_after: u64,
    /// The search that has visited it last.
    visited: u64,
}

/// What the transactions of the window did with one row.
#[derive(Clone, Default)]
struct RowUse {
    /// In the order in which they took effect: columns, height, number.
    writers: VecDeque<(ColumnSet, u64, u64)>,
    /// Since then: columns that nobody has written again, number.
    readers: Vec<(ColumnSet, u64)>,
}

/// The graph over the accepted transactions of a window of blocks.
pub(crate) struct SharpGraph {
    window: u64,
    /// Height of the last block that is forgotten.
    forgotten: u64,
    nodes: VecDeque<Node>,
    /// Number of the first of them.
    first: u64,
    rows: BTreeMap<RowId, RowUse>,
    /// By height: the rows that were touched there.
    touched: VecDeque<(u64, Vec<RowId>)>,
    scans: VecDeque<(u64, Scan)>,
    searches: u64,
    scanned: usize,
    /// Where there is one, what is accepted is taken back again.
    trial: Option<Trial>,
}

/// What was there before a trial, as far as the trial has changed it.
struct Trial {
    /// Number of the first transaction of the trial.
    first: u64,
    /// Numbers of those that got somebody behind them: how many they had, and their `oldest_after`.
    nodes: Vec<(u64, usize, u64)>,
    rows: BTreeMap<RowId, Option<RowUse>>,
    scans: usize,
    scanned: usize,
}

impl SharpGraph {
    /// Remembers so many blocks.
    pub(crate) fn new(window: u64) -> SharpGraph {
        SharpGraph {
            window,
            forgotten: 0,
            nodes: VecDeque::new(),
            first: 0,
            rows: BTreeMap::new(),
            touched: VecDeque::new(),
            scans: VecDeque::new(),
            searches: 0,
            scanned: 0,
            trial: None,
        }
    }

    /// A block of this height comes next: what lies behind the window is forgotten.
    pub(crate) fn begin(&mut self, height: u64) {
        self.scanned = 0;
        self.forget(height.saturating_sub(self.window + 1));
    }

    /// Nothing up to this height is remembered any more.
    pub(crate) fn forget(&mut self, height: u64) {
        self.forgotten = self.forgotten.max(height);
        while self.nodes.pop_front_if(|node| node.height <= height).is_some() {
            self.first += 1;
        }
        while self.scans.pop_front_if(|(number, _)| *number < self.first).is_some() {}
        while let Some((_, rows)) = self.touched.pop_front_if(|(touched, _)| *touched <= height) {
            for row in rows {
                if let Some(of_row) = self.rows.get_mut(&row) {
                    of_row.writers.retain(|(_, at, _)| *at > height);
                    of_row.readers.retain(|(_, number)| *number >= self.first);
                    if of_row.writers.is_empty() && of_row.readers.is_empty() {
                        self.rows.remove(&row);
                    }
                }
            }
        }
    }

    /// Runs `attempt`, and forgets whom it accepts: an orderer tries what a block would be.
    pub(crate) fn try_out<T>(&mut self, attempt: impl FnOnce(&mut SharpGraph) -> T) -> T {
        let first = self.first + self.nodes.len() as u64;
        let (scans, scanned) = (self.scans.len(), std::mem::take(&mut self.scanned));
        self.trial = Some(Trial { first, nodes: Vec::new(), rows: BTreeMap::new(), scans, scanned });
        let result = attempt(self);
        if let Some(trial) = self.trial.take() {
            self.take_back(trial);
        }
        result
    }

    fn take_back(&mut self, trial: Trial) {
        self.nodes.truncate((trial.first - self.first) as usize);
        for (number, after, oldest_after) in trial.nodes.into_iter().rev() {
            // Those of the trial itself are gone.
            if let Some(node) = self.nodes.get_mut((number - self.first) as usize) {
                node.after.truncate(after);
                node.oldest_after = oldest_after;
            }
        }
        for (row, before) in trial.rows {
            match before {
                Some(before) => self.rows.insert(row, before),
                None => self.rows.remove(&row),
            };
        }
        self.scans.truncate(trial.scans);
        self.scanned = trial.scanned;
    }

    /// Whether the scans of this block, or trial, have used up what they may search through.
    pub(crate) fn is_spent(&self) -> bool {
        self.scanned > SCANNED_MAX
    }

    /// Whether a simulation on the state after this height is too old to be judged.
    pub(crate) fn is_outdated(&self, snapshot: u64) -> bool {
        snapshot < self.forgotten
    }

    /// Takes in a transaction of the block of this height, unless that closes a cycle.
    pub(crate) fn accept(&mut self, effects: &Effects, snapshot: u64, height: u64) -> Result<(), Dropped> {
        let (mut before, after) = self.neighbours(effects, snapshot)?;
        before.sort_unstable();
        before.dedup();
        self.search(&after, &before)?;
        let number = self.first + self.nodes.len() as u64;
        for earlier in before {
            let node = &mut self.nodes[(earlier - self.first) as usize];
            if let Some(trial) = &mut self.trial {
                trial.nodes.push((earlier, node.after.len(), node.oldest_after));
            }
            node.after.push(number);
            node.oldest_after = node.oldest_after.min(height);
        }
        let heights = after.iter().map(|later| self.nodes[(later - self.first) as usize].height);
        let oldest_after = heights.min().unwrap_or(u64::MAX);
        self.nodes.push_back(Node { height, after, oldest_after, visited: 0 });
        self.note(effects, number, height);
        Ok(())
    }

    /// Who comes before and who after a transaction, by number.
    fn neighbours(&mut self, effects: &Effects, snapshot: u64) -> Result<(Vec<u64>, Vec<u64>), Dropped> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for read in &effects.reads {
            if let Some(of_row) = self.rows.get(&read.row) {
                of_row.writers_around(read.columns, snapshot, &mut before, &mut after);
            }
        }
        for scan in effects.scans.iter().filter(|scan| !scan.range.is_empty()) {
            for (row, of_row) in self.rows.range(scan.range.of_table(scan.table)) {
                self.scanned += 1 + of_row.writers.len();
                for (columns, height, number) in &of_row.writers {
                    if changes_scan(scan, &row.key, *columns) {
                        if *height > snapshot { after.push(*number) } else { before.push(*number) }
                    }
                }
            }
        }
        for command in &effects.commands {
            if let Some(of_row) = self.rows.get(&command.row) {
                let readers = of_row.readers.iter().filter(|(read, _)| read.intersects(command.writes));
                before.extend(readers.map(|(_, number)| *number));
                of_row.last_writers(command.uses | command.writes, u64::MAX, &mut before);
            }
            self.scanned += self.scans.len();
            let met = |scan: &Scan| {
                scan.table == command.row.table
                    && scan.range.contains(&command.row.key)
                    && changes_scan(scan, &command.row.key, command.writes)
            };
            before.extend(self.scans.iter().filter(|(_, scan)| met(scan)).map(|(number, _)| *number));
        }
        if self.scanned > SCANNED_MAX { Err(Dropped::Bound) } else { Ok((before, after)) }
    }

    /// Looks for a way from one of `from` to one of `to`, which are ascending.
    fn search(&mut self, from: &[u64], to: &[u64]) -> Result<(), Dropped> {
        self.searches += 1;
        let mut waiting = from.to_vec();
        let mut visited = 0;
        while let Some(number) = waiting.pop() {
            // Who is forgotten may lead to anybody.
            let position = number.checked_sub(self.first).ok_or(Dropped::Bound)?;
            let node = &mut self.nodes[position as usize];
            if std::mem::replace(&mut node.visited, self.searches) == self.searches {
                continue;
            }
            if to.binary_search(&number).is_ok() {
                return Err(Dropped::Cycle);
            }
            visited += 1;
            if visited > VISITED_MAX || node.oldest_after <= self.forgotten {
                return Err(Dropped::Bound);
            }
            waiting.extend(&node.after);
        }
        Ok(())
    }

    fn note(&mut self, effects: &Effects, number: u64, height: u64) {
        if let Some(trial) = &mut self.trial {
            let read = effects.reads.iter().map(|read| &read.row);
            for row in read.chain(effects.commands.iter().map(|command| &command.row)) {
                if !trial.rows.contains_key(row) {
                    trial.rows.insert(row.clone(), self.rows.get(row).cloned());
                }
            }
        }
        let mut rows: Vec<RowId> = Vec::new();
        let used = effects.commands.iter().map(|command| (&command.row, command.uses));
        let read = effects.reads.iter().map(|read| (&read.row, read.columns));
        for (row, columns) in read.chain(used) {
            self.rows.entry(row.clone()).or_default().readers.push((columns, number));
            rows.push(row.clone());
        }
        for command in &effects.commands {
            let of_row = self.rows.entry(command.row.clone()).or_default();
            // Who read it before comes before this one, and with it before whoever writes it next.
            of_row.readers.iter_mut().for_each(|(read, _)| *read = read.without(command.writes));
            of_row.readers.retain(|(read, _)| !read.is_empty());
            of_row.writers.push_back((command.writes, height, number));
            rows.push(command.row.clone());
        }
        self.scans.extend(effects.scans.iter().map(|scan| (number, scan.clone())));
        if self.trial.is_some() {
            return;
        }
        match self.touched.back_mut().filter(|(at, _)| *at == height) {
            Some((_, touched)) => touched.append(&mut rows),
            None => self.touched.push_back((height, rows)),
        }
    }
}

impl RowUse {
    /// The last writers of each of these columns up to a height.
    fn last_writers(&self, columns: ColumnSet, height: u64, into: &mut Vec<u64>) {
        let mut missing = columns;
        for (written, at, number) in self.writers.iter().rev() {
            if *at <= height && written.intersects(missing) {
                missing = missing.without(*written);
                into.push(*number);
            }
            if missing.is_empty() {
                break;
            }
        }
    }

    /// Who wrote columns last up to a height, and who wrote each first after it.
    fn writers_around(&self, columns: ColumnSet, height: u64, before: &mut Vec<u64>, after: &mut Vec<u64>) {
        self.last_writers(columns, height, before);
        let newer = self.writers.partition_point(|(_, at, _)| *at <= height);
        let mut missing = columns;
        let mut first: SmallVec<[u64; 2]> = SmallVec::new();
        for (written, _, number) in self.writers.range(newer..) {
            if missing.is_empty() {
                break;
            }
            if written.intersects(missing) {
                missing = missing.without(*written);
                first.push(*number);
            }
        }
        after.extend(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use state::{Read, write_command};
    use types::{EndorsedWrite, Key, RowWrite, TableId, Value};

    fn row(key: u32) -> RowId {
        RowId { table: TableId(1), key: Key::from_bytes(&key.to_be_bytes()) }
    }

    /// Reads rows and writes rows.
    fn effects(reads: &[u32], writes: &[u32]) -> Effects {
        let columns = ColumnSet::column(0);
        let read = |key: &u32| Read { row: row(*key), columns: columns | ColumnSet::EXISTS };
        let write = |key: &u32| {
            let RowId { table, key } = row(*key);
            let write = RowWrite::Assign(vec![(0, Value::BigInt(1))]);
            write_command(&EndorsedWrite { table, key, guard: Some(true), write })
        };
        Effects {
            reads: reads.iter().map(read).collect(),
            scans: vec![],
            commands: writes.iter().map(write).collect(),
            result: Ok(vec![]),
            steps: 1,
            catalog: None,
        }
    }

    #[test]
    fn who_leads_to_somebody_forgotten_is_not_trusted() {
        let mut graph = SharpGraph::new(3);
        graph.begin(2);
        graph.accept(&effects(&[], &[1]), 1, 2).expect("it is the first");
        graph.begin(4);
        // It did not see the first, and comes before it.
        graph.accept(&effects(&[1], &[2]), 1, 4).expect("no cycle");
        graph.begin(6);
        assert_eq!((graph.nodes.len(), graph.first), (1, 1), "the first is forgotten");
        assert_eq!(graph.accept(&effects(&[2], &[3]), 3, 6), Err(Dropped::Bound));
        graph.accept(&effects(&[2], &[3]), 4, 6).expect("it comes behind");
        graph.begin(20);
        assert!(graph.nodes.is_empty() && graph.rows.is_empty() && graph.touched.is_empty());
        assert!(graph.is_outdated(15) && !graph.is_outdated(16));
    }

    #[test]
    fn a_trial_leaves_nothing_behind() {
        for seed in 0..200 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut one = || {
                let mut rows = |count: u32| -> Vec<u32> {
                    (0..random.random_range(0..=count)).map(|_| random.random_range(0..6)).collect()
                };
                (effects(&rows(2), &rows(2)), random.random_range(1..=3u64))
            };
            let (mut tried, mut plain) = (SharpGraph::new(4), SharpGraph::new(4));
            for height in 1..12 {
                let attempts: Vec<(Effects, u64)> = (0..8).map(|_| one()).collect();
                let accept = |graph: &mut SharpGraph, height: u64| -> Vec<Result<(), Dropped>> {
                    let age = |age: &u64| height.saturating_sub(*age);
                    attempts.iter().map(|(effects, back)| graph.accept(effects, age(back), height)).collect()
                };
                tried.begin(height);
                plain.begin(height);
                let trial = tried.try_out(|graph| accept(graph, height));
                assert_eq!(trial, tried.try_out(|graph| accept(graph, height)), "seed {seed}");
                let accepted = accept(&mut plain, height);
                assert_eq!(trial, accepted, "seed {seed}: a trial finds what happens");
                assert_eq!(accept(&mut tried, height), accepted, "seed {seed}");
                assert_eq!(tried.scans.len(), plain.scans.len());
                assert!(tried.touched.iter().zip(&plain.touched).all(|(one, other)| one == other));
            }
        }
    }

    #[test]
    fn a_search_has_an_end() {
        let mut graph = SharpGraph::new(10);
        graph.begin(1);
        // Each reads what the one before writes, on the state before all: a chain from the last to the first.
        for key in 0..=VISITED_MAX as u32 {
            graph.accept(&effects(&[key], &[key + 1]), 0, 1).expect("no cycle");
        }
        let last = VISITED_MAX as u32 + 1;
        assert_eq!(graph.accept(&effects(&[last], &[last + 5]), 0, 1), Err(Dropped::Bound));
        assert_eq!(graph.accept(&effects(&[2], &[0]), 0, 1), Err(Dropped::Cycle), "the first has read row 0");
        graph.accept(&effects(&[last + 9], &[]), 0, 1).expect("nobody comes behind it");
    }
}
