//! The older versions of a column's values, newest first, by blocks of 1,024 rows.
//!
//! A block comes to be when one of its rows is first overwritten. It has the time at which each value was written, and chains of
//! those that were replaced. Chains are given away with a snapshot ([`Versions::hand_over`]) and are gone with it once nobody is as
//! old; an engine without snapshots collects them ([`Versions::collect`]).

use crate::storage::BLOCK_ROWS;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// No node.
const NONE: u32 = u32::MAX;
/// A block with so many nodes looks first for those that nobody can see any more, so that chains of hot rows stay bounded
/// although nobody asks for a snapshot.
const NODES_BEFORE_COLLECTING: usize = 4_096;

/// A value that was replaced: a transaction that began at `written` or later, and before `replaced`, sees it.
#[derive(Clone, Copy, Debug)]
struct Node {
    written: u64,
    replaced: u64,
    value: i64,
    next: u32,
}

/// The chains of a block.
#[derive(Debug, Default)]
struct Chains {
    /// By row of the block; empty as long as there is no node.
    heads: Vec<u32>,
    nodes: Vec<Node>,
    /// Positions of the first and the last row that has a chain, so that scans check nothing outside.
    first: usize,
    last: usize,
    /// How many nodes the last collection left.
    kept: usize,
}

#[derive(Debug)]
struct Block {
    /// By row: when its newest value was written; 0 for before everything.
    written: Vec<AtomicU64>,
    chains: RwLock<Chains>,
}

/// Chains that were handed over.
#[derive(Debug)]
struct Piece {
    /// No value in it was replaced later.
    until: u64,
    blocks: Vec<(u32, Chains)>,
}

/// Values of some rows, by block, as they were at one time.
pub(crate) type Overlay = BTreeMap<usize, Vec<(usize, i64)>>;

/// The versions of a column.
#[derive(Debug)]
pub(crate) struct Versions {
    blocks: Vec<OnceLock<Box<Block>>>,
    /// Blocks that have chains.
    touched: Mutex<Vec<u32>>,
    /// The newest time at which a value was replaced.
    newest: AtomicU64,
    /// What was handed over and somebody may still see, oldest first.
    pieces: Mutex<Vec<Arc<Piece>>>,
}

impl Versions {
    pub(crate) fn new(rows_max: usize) -> Versions {
        Versions {
            blocks: (0..rows_max.div_ceil(BLOCK_ROWS)).map(|_| OnceLock::new()).collect(),
            touched: Mutex::default(),
            newest: AtomicU64::new(0),
            pieces: Mutex::default(),
        }
    }

    /// When the newest value of a row was written.
    pub(crate) fn written(&self, row: usize) -> u64 {
        let block = self.blocks[row / BLOCK_ROWS].get();
        block.map_or(0, |block| block.written[row % BLOCK_ROWS].load(Ordering::Acquire))
    }

    /// The value in place if somebody who began at `begin` sees it. The value is read before its time: a writer stores them in the
    /// other order.
    pub(crate) fn in_place(&self, row: usize, begin: u64, get: impl Fn() -> i64) -> Option<i64> {
        let value = get();
        (self.written(row) <= begin).then_some(value)
    }

    /// What somebody who began at `begin` sees, out of the chain if need be.
    pub(crate) fn read(&self, row: usize, begin: u64, get: impl Fn() -> i64) -> i64 {
        if let Some(value) = self.in_place(row, begin, &get) {
            return value;
        }
        let block = self.blocks[row / BLOCK_ROWS].get().expect("a row that was written has a block");
        let chains = block.chains.read();
        chains.at(row % BLOCK_ROWS, begin).unwrap_or_else(get)
    }

    /// Replaces a value by `set`. `oldest` says when the oldest began who may still look for versions.
    pub(crate) fn replace(
        &self,
        (row, value): (usize, i64),
        now: u64,
        oldest: impl FnOnce() -> u64,
        set: impl FnOnce(),
    ) {
        let number = row / BLOCK_ROWS;
        let block = self.blocks[number].get_or_init(|| Box::new(Block::new()));
        let written = &block.written[row % BLOCK_ROWS];
        let mut chains = block.chains.write();
        if chains.nodes.is_empty() {
            self.touched.lock().push(number as u32);
        }
        if chains.nodes.len() >= NODES_BEFORE_COLLECTING.max(2 * chains.kept) {
            chains.collect(oldest());
        }
        let node = Node { written: written.load(Ordering::Acquire), replaced: now, value, next: NONE };
        chains.push(row % BLOCK_ROWS, node);
        self.newest.store(now, Ordering::Release);
        written.store(now, Ordering::Release);
        set();
    }

    /// Reads the values of a block's first rows as somebody sees them who began at `begin`.
    pub(crate) fn scan(&self, number: usize, begin: u64, values: &mut [i64], get: impl Fn(usize) -> i64) {
        let fill = |values: &mut [i64]| {
            let from = number * BLOCK_ROWS;
            values.iter_mut().enumerate().for_each(|(row, value)| *value = get(from + row));
        };
        if self.blocks[number].get().is_none() {
            fill(values);
        }
        // Whoever writes a first version makes the block before; then the values are read again.
        let Some(block) = self.blocks[number].get() else { return };
        let chains = block.chains.read();
        fill(values);
        if chains.nodes.is_empty() {
            return;
        }
        for row in chains.first..=chains.last.min(values.len().saturating_sub(1)) {
            if chains.heads[row] != NONE
                && block.written[row].load(Ordering::Acquire) > begin
                && let Some(value) = chains.at(row, begin)
            {
                values[row] = value;
            }
        }
    }

    /// Moves all chains to the snapshot that is being made. Nobody writes meanwhile.
    pub(crate) fn hand_over(&self, oldest: u64) {
        let touched = std::mem::take(&mut *self.touched.lock());
        let taken = touched.into_iter().filter_map(|number| {
            let block = self.blocks[number as usize].get()?;
            Some((number, std::mem::take(&mut *block.chains.write())))
        });
        let piece = Piece { blocks: taken.collect(), until: self.newest.load(Ordering::Acquire) };
        let mut pieces = self.pieces.lock();
        pieces.retain(|piece| piece.until > oldest);
        if !piece.blocks.is_empty() && piece.until > oldest {
            pieces.push(Arc::new(piece));
        }
    }

    /// The rows that have other values now than at a time, with their values then. Whoever asks is registered as that old, and
    /// has had the chains handed over.
    pub(crate) fn overlay(&self, at: u64) -> Overlay {
        let pieces: Vec<Arc<Piece>> =
            self.pieces.lock().iter().filter(|piece| piece.until > at).cloned().collect();
        let mut overlay = Overlay::new();
        for (number, chains) in pieces.iter().flat_map(|piece| &piece.blocks) {
            for (row, head) in chains.heads.iter().enumerate() {
                if let Some(node) = chains.visible(*head, at) {
                    overlay.entry(*number as usize).or_default().push((row, node.value));
                }
            }
        }
        overlay
    }

    /// Drops versions that nobody sees who began at `oldest` or later.
    pub(crate) fn collect(&self, oldest: u64) {
        let touched = std::mem::take(&mut *self.touched.lock());
        for number in touched {
            let Some(block) = self.blocks[number as usize].get() else { continue };
            let mut chains = block.chains.write();
            chains.collect(oldest);
            if !chains.nodes.is_empty() {
                self.touched.lock().push(number);
            }
        }
    }

    /// How many old versions there are.
    pub(crate) fn count(&self) -> usize {
        let touched = self.touched.lock().clone();
        let nodes = touched.iter().filter_map(|number| self.blocks[*number as usize].get());
        nodes.map(|block| block.chains.read().nodes.len()).sum()
    }
}

impl Block {
    fn new() -> Block {
        Block { written: (0..BLOCK_ROWS).map(|_| AtomicU64::new(0)).collect(), chains: RwLock::default() }
    }
}

impl Chains {
    fn push(&mut self, row: usize, node: Node) {
        if self.heads.is_empty() {
            self.heads = vec![NONE; BLOCK_ROWS];
        }
        (self.first, self.last) = match self.nodes.is_empty() {
            true => (row, row),
            false => (self.first.min(row), self.last.max(row)),
        };
        let head = self.nodes.len() as u32;
        self.nodes.push(Node { next: std::mem::replace(&mut self.heads[row], head), ..node });
    }

    fn chain(&self, head: u32) -> impl Iterator<Item = &Node> {
        let next = |node: &&Node| self.nodes.get(node.next as usize);
        std::iter::successors(self.nodes.get(head as usize), next)
    }

    /// The node whose value was there at a time.
    fn visible(&self, head: u32, at: u64) -> Option<&Node> {
        self.chain(head).find(|node| node.written <= at).filter(|node| at < node.replaced)
    }

    /// The replaced value that was there at a time.
    fn at(&self, row: usize, at: u64) -> Option<i64> {
        self.visible(*self.heads.get(row)?, at).map(|node| node.value)
    }

    fn collect(&mut self, oldest: u64) {
        let before = std::mem::take(self);
        for (row, head) in before.heads.iter().enumerate() {
            let mut kept: Vec<Node> =
                before.chain(*head).take_while(|node| node.replaced > oldest).copied().collect();
            kept.reverse();
            kept.into_iter().for_each(|node| self.push(row, node));
        }
        self.kept = self.nodes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A column of one row, written at times 10, 20, …, 100 with the time as its value.
    fn written(versions: &Versions, value: &Cell<i64>, times: impl Iterator<Item = u64>) {
        for time in times {
            versions.replace((0, value.get()), time, || 0, || value.set(time as i64));
        }
    }

    #[test]
    fn everyone_sees_the_value_of_their_time() {
        let (versions, value) = (Versions::new(2_000), Cell::new(0));
        written(&versions, &value, (1..=10).map(|time| time * 10));
        for begin in 0..120 {
            let expected = (begin / 10 * 10).min(100) as i64;
            assert_eq!(versions.read(0, begin, || value.get()), expected);
            let mut scanned = [7; BLOCK_ROWS];
            versions.scan(0, begin, &mut scanned, |row| if row == 0 { value.get() } else { 7 });
            assert_eq!((scanned[0], scanned[1]), (expected, 7));
            let in_place = versions.in_place(0, begin, || value.get());
            assert_eq!(in_place, (begin >= 100).then_some(100));
        }
        versions.collect(45);
        assert_eq!((versions.count(), versions.read(0, 45, || value.get())), (6, 40));
        versions.collect(100);
        assert_eq!(versions.count(), 0);
    }

    #[test]
    fn chains_that_were_handed_over_show_older_states_as_long_as_somebody_is_as_old() {
        let (versions, value) = (Versions::new(2_000), Cell::new(0));
        written(&versions, &value, (1..=5).map(|time| time * 10));
        versions.hand_over(0);
        written(&versions, &value, (6..=10).map(|time| time * 10));
        versions.hand_over(0);
        for at in 0..100 {
            assert_eq!(versions.overlay(at), Overlay::from([(0, vec![(0, (at / 10 * 10) as i64)])]), "{at}");
        }
        assert!(versions.overlay(100).is_empty());
        versions.hand_over(60);
        assert_eq!(versions.pieces.lock().len(), 1);
        assert_eq!(versions.overlay(60), Overlay::from([(0, vec![(0, 60)])]));
    }

    #[test]
    fn hot_rows_have_bounded_chains_although_nobody_asks() {
        let (versions, value) = (Versions::new(1), Cell::new(0));
        for time in 1..50_000 {
            versions.replace((0, value.get()), time, || time - 1, || value.set(time as i64));
        }
        assert!(versions.count() <= NODES_BEFORE_COLLECTING);
    }
}
