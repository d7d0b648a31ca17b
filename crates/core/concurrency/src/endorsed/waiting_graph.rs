//! SmartFabric's graph over the transactions that wait for validation, those of all queued blocks (Thakkar and Nathan,
//! *SmartFabric*, section 3.1.1): who must be judged before whom, and who need not be looked at any more.
//!
//! Of two transactions in block order, the later one waits for the earlier one if
//!
//! | kind | the earlier one | the later one | fate |
//! | --- | --- | --- | --- |
//! | rw | writes a row | read it on an older state | yes |
//! | wr | read a row | writes it | no |
//! | ww | writes a row | writes it | no |
//! | pr | writes a row of an interval | scanned the interval on an older state | yes |
//!
//! *Fate*: once the earlier one is valid, the later one is stale and is not looked at. The three kinds on endorsement
//! policies need no edges here: a policy changes with the schema, which changes alone between two batches, and what was
//! simulated before that is void ([`Batch::oldest_snapshot`](crate::Batch::oldest_snapshot)).
//!
//! **Fewer edges.** On a hot row everybody depends on everybody before. A reader waits for the last writer alone, and a
//! writer for the last writer and who has read since: the others are done by then. Order goes by rows, which costs at
//! most parallelism; fate goes by columns, as staleness does. A transaction whose fate is sealed keeps its place until
//! what it waits for is done, so that whoever waits for it alone still comes behind that too.
//!
//! **Bounds.** Intervals are held against waiting rows until [`SEARCHED_MAX`] of the batch is used up; who scans after
//! that waits for everybody before, and everybody behind waits for it.

use super::recent_writes::changes_scan;
use state::{Effects, RowId, Scan};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use types::{ColumnSet, TableId};

/// Rows and intervals of one batch that are held against one another.
const SEARCHED_MAX: usize = 1 << 20;
/// Waiting readers of a row, or scanners of its table, whose fate a write is looked up for; the others are found stale
/// when it is their turn.
const FATED_MAX: usize = 256;

/// Number of a transaction in the order of the ledger, from 0.
pub(super) type Number = u64;

/// What waits for its judgement.
#[derive(Clone)]
pub(super) struct WaitingTransaction {
    pub(super) effects: Arc<Effects>,
    /// Height of the state that it was simulated on.
    pub(super) snapshot: u64,
    /// Height of its block.
    pub(super) height: u64,
}

/// Something whose predecessors are done.
#[derive(Clone)]
pub(super) enum Ready {
    /// Judge it.
    Judge(Number, WaitingTransaction),
    /// It is stale: something that it depends on by fate is valid.
    Fated(Number),
    /// Everything before this barrier is done.
    Barrier(Number),
}

impl Ready {
    pub(super) fn number(&self) -> Number {
        match self {
            Ready::Judge(number, _) | Ready::Fated(number) | Ready::Barrier(number) => *number,
        }
    }
}

struct Node {
    /// `None`: a barrier.
    transaction: Option<WaitingTransaction>,
    /// Predecessors that are not done.
    waits_for: u32,
    successors: Vec<Number>,
    fated: bool,
    done: bool,
}

/// Who waits on a row.
#[derive(Default)]
struct Waiters {
    /// Ascending, with what they read of it.
    readers: VecDeque<(Number, ColumnSet)>,
    /// The last that writes it.
    writer: Option<Number>,
    /// The first reader behind that writer.
    readers_since: Number,
    /// Nodes that are named here.
    count: usize,
}

struct Scanner {
    number: Number,
    effects: Arc<Effects>,
    /// Which of its scans.
    scan: usize,
}

impl Scanner {
    fn scan(&self) -> &Scan {
        &self.effects.scans[self.scan]
    }
}

/// Who must be judged before whom.
#[derive(Default)]
pub(super) struct WaitingGraph {
    /// Number of the first node that is kept.
    first: Number,
    nodes: VecDeque<Node>,
    rows: BTreeMap<RowId, Waiters>,
    /// By table, ascending.
    scanners: BTreeMap<TableId, VecDeque<Scanner>>,
    /// Predecessors are done, and nobody has taken it.
    ready: BTreeSet<Number>,
    /// The last barrier.
    barrier: Option<Number>,
    searched: usize,
}

impl WaitingGraph {
    /// The number that comes next.
    pub(super) fn next(&self) -> Number {
        self.first + self.nodes.len() as u64
    }

    /// What a batch may search through begins anew.
    pub(super) fn begin_batch(&mut self) {
        self.searched = 0;
    }

    /// Adds the next transaction in the order of the ledger. `void`: its simulation counts for nothing, it is stale
    /// without a look.
    pub(super) fn add(&mut self, transaction: WaitingTransaction, void: bool) -> Number {
        let number = self.next();
        let effects = transaction.effects.clone();
        let mut before: Vec<Number> = self.barrier.into_iter().collect();
        let mut complete = true;
        if !void {
            self.read(number, &effects, &mut before);
            complete = self.scan(number, &effects, &mut before) & self.write(number, &effects, &mut before);
        }
        self.push(Some(transaction), void);
        if complete {
            before.sort_unstable();
            before.dedup();
            before.into_iter().for_each(|before| self.wait(number, before));
        } else {
            self.become_barrier(number);
        }
        self.offer_if_ready(number);
        number
    }

    /// Adds something that waits for everybody before, and for which everybody behind waits.
    pub(super) fn add_barrier(&mut self) -> Number {
        let number = self.next();
        self.push(None, false);
        self.become_barrier(number);
        self.offer_if_ready(number);
        number
    }

    fn push(&mut self, transaction: Option<WaitingTransaction>, fated: bool) {
        self.nodes.push_back(Node { transaction, waits_for: 0, successors: Vec::new(), fated, done: false });
    }

    /// Whoever is before the last barrier is before this one through it.
    fn become_barrier(&mut self, number: Number) {
        let from = self.barrier.map_or(self.first, |barrier| barrier.max(self.first));
        (from..number).for_each(|before| self.wait(number, before));
        self.barrier = Some(number);
    }

    fn read(&mut self, number: Number, effects: &Effects, before: &mut Vec<Number>) {
        for read in &effects.reads {
            let waiters = self.rows.entry(read.row.clone()).or_default();
            before.extend(waiters.writer);
            waiters.readers.push_back((number, read.columns));
            waiters.count += 1;
        }
    }

    /// False where not everybody was found that it must come behind.
    fn scan(&mut self, number: Number, effects: &Arc<Effects>, before: &mut Vec<Number>) -> bool {
        for (at, scan) in effects.scans.iter().enumerate().filter(|(_, scan)| !scan.range.is_empty()) {
            for (_, waiters) in self.rows.range(scan.range.of_table(scan.table)) {
                self.searched += 1;
                if self.searched > SEARCHED_MAX {
                    break;
                }
                before.extend(waiters.writer);
            }
            let scanner = Scanner { number, effects: effects.clone(), scan: at };
            self.scanners.entry(scan.table).or_default().push_back(scanner);
        }
        effects.scans.is_empty() || self.searched <= SEARCHED_MAX
    }

    /// False where not everybody was found that it must come behind.
    fn write(&mut self, number: Number, effects: &Effects, before: &mut Vec<Number>) -> bool {
        let mut complete = true;
        for command in effects.commands.iter().filter(|command| !command.writes.is_empty()) {
            let RowId { table, key } = &command.row;
            for scanner in self.scanners.get(table).into_iter().flatten() {
                self.searched += 1;
                if self.searched > SEARCHED_MAX {
                    complete = false;
                    break;
                }
                if scanner.number != number && scanner.scan().range.contains(key) {
                    before.push(scanner.number);
                }
            }
            let waiters = self.rows.entry(command.row.clone()).or_default();
            let since = waiters.readers.partition_point(|(reader, _)| *reader < waiters.readers_since);
            let readers = waiters.readers.range(since..).map(|(reader, _)| *reader);
            before.extend(waiters.writer.into_iter().chain(readers).filter(|before| *before != number));
            waiters.writer = Some(number);
            waiters.readers_since = number;
            waiters.count += 1;
        }
        complete
    }

    fn node(&mut self, number: Number) -> Option<&mut Node> {
        self.nodes.get_mut(number.checked_sub(self.first)? as usize)
    }

    fn wait(&mut self, number: Number, before: Number) {
        match self.node(before) {
            Some(node) if !node.done => node.successors.push(number),
            _ => return,
        }
        if let Some(node) = self.node(number) {
            node.waits_for += 1;
        }
    }

    fn offer_if_ready(&mut self, number: Number) {
        if self.node(number).is_some_and(|node| node.waits_for == 0) {
            self.ready.insert(number);
        }
    }

    /// Takes the oldest that can be judged, at most so many; each must be finished.
    pub(super) fn take(&mut self, most: usize) -> Vec<Ready> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(number) = self.ready.pop_first()
        {
            let Some(node) = self.node(number) else { continue };
            taken.push(match &node.transaction {
                None => Ready::Barrier(number),
                Some(_) if node.fated => Ready::Fated(number),
                Some(transaction) => Ready::Judge(number, transaction.clone()),
            });
        }
        taken
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.rows.is_empty() && self.scanners.values().all(VecDeque::is_empty)
    }

    /// How many could be taken.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// It is judged. What it writes must be known to whoever judges others by now.
    pub(super) fn finish(&mut self, number: Number, valid: bool) {
        let Some(node) = self.node(number) else { return };
        node.done = true;
        let successors = std::mem::take(&mut node.successors);
        if let Some(WaitingTransaction { effects, height, .. }) = node.transaction.take() {
            self.remove(number, &effects);
            if valid {
                self.seal_fates(number, &effects, height);
            }
        }
        for successor in successors {
            if let Some(node) = self.node(successor) {
                node.waits_for -= 1;
            }
            self.offer_if_ready(successor);
        }
        while self.nodes.front().is_some_and(|node| node.done) {
            self.nodes.pop_front();
            self.first += 1;
        }
    }

    fn remove(&mut self, number: Number, effects: &Effects) {
        for read in &effects.reads {
            self.leave(&read.row, |waiters| {
                let at = waiters.readers.partition_point(|(reader, _)| *reader < number);
                let found = waiters.readers.get(at).is_some_and(|(reader, _)| *reader == number);
                if found {
                    waiters.readers.remove(at);
                }
                found
            });
        }
        for command in effects.commands.iter().filter(|command| !command.writes.is_empty()) {
            self.leave(&command.row, |waiters| {
                waiters.writer = waiters.writer.filter(|writer| *writer != number);
                true
            });
        }
        for scan in effects.scans.iter().filter(|scan| !scan.range.is_empty()) {
            if let Some(scanners) = self.scanners.get_mut(&scan.table) {
                let at = scanners.partition_point(|scanner| scanner.number < number);
                if scanners.get(at).is_some_and(|scanner| scanner.number == number) {
                    scanners.remove(at);
                }
            }
        }
    }

    fn leave(&mut self, row: &RowId, from: impl FnOnce(&mut Waiters) -> bool) {
        let Some(waiters) = self.rows.get_mut(row) else { return };
        if from(waiters) {
            waiters.count -= 1;
        }
        if waiters.count == 0 {
            self.rows.remove(row);
        }
    }

    /// Whoever still waits and has read what a valid transaction of this height writes, on an older state, is stale.
    fn seal_fates(&mut self, number: Number, effects: &Effects, height: u64) {
        let WaitingGraph { first, nodes, rows, scanners, .. } = self;
        let mut seal = |reader: Number| {
            let node = reader.checked_sub(*first).and_then(|at| nodes.get_mut(at as usize));
            let Some(node) = node.filter(|node| reader > number && !node.fated) else { return };
            if node.transaction.as_ref().is_some_and(|transaction| transaction.snapshot < height) {
                node.fated = true;
            }
        };
        for command in effects.commands.iter().filter(|command| !command.writes.is_empty()) {
            let readers = rows.get(&command.row).into_iter().flat_map(|waiters| &waiters.readers);
            for (reader, columns) in readers.take(FATED_MAX) {
                if columns.intersects(command.writes) {
                    seal(*reader);
                }
            }
            let RowId { table, key } = &command.row;
            for scanner in scanners.get(table).into_iter().flatten().take(FATED_MAX) {
                if scanner.scan().range.contains(key) && changes_scan(scanner.scan(), key, command.writes) {
                    seal(scanner.number);
                }
            }
        }
    }
}
