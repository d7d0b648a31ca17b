//! The graph: who waits for whom.
//!
//! The keys of every table that footprints name are cut into segments, sorted, disjoint, together the whole table. Each
//! segment says for its keys who wrote which columns last, and who has read which columns since. A transaction's region
//! cuts the segments at its ends and then asks those between:
//!
//! - a **read** waits for the last writers of its columns (wr) and becomes one of their readers;
//! - a **write** waits for the last writers (ww) and for their readers since (rw), and takes their place.
//!
//! Whoever was replaced is waited for through those who replaced him, so every pair that conflicts is in order, and a row
//! that a thousand transactions write has a thousand edges and not half a million.
//!
//! **Bounds.** A region makes at most two cuts. One that meets more than [`SEGMENTS_MAX`] segments makes one of them
//! afterwards, so all regions together visit a number of segments that is linear in the number of regions. To have
//! one list instead of many, the nodes that these segments name are put behind a **gate**: a node without a transaction
//! that is done when all of them are. A list of more than [`ENTRIES_MAX`] goes behind a gate before it is
//! copied by a cut. So united segments and gates make a later transaction wait for some with which it does not conflict,
//! and never the other way round.

use smallvec::SmallVec;
use state::{Footprint, KeyRange, Region};
use std::collections::BTreeMap;
use std::ops::Bound;
use types::{ColumnSet, Granularity, Key, SqlError, TableId};

/// Segments that a region may meet without making one of them.
pub(super) const SEGMENTS_MAX: usize = 16;
/// Nodes that a segment's list may name when it is copied.
const ENTRIES_MAX: usize = 4;

/// The graph of a batch. Nodes are numbered: first the transactions, then the gates.
pub(super) struct Plan {
    transactions: u32,
    /// By node.
    predecessors: Vec<u32>,
    /// Where a node's part of `successors` begins; one more entry than nodes.
    first: Vec<u32>,
    successors: Vec<u32>,
}

impl Plan {
    /// Transactions without a footprint do not run and wait for nobody.
    pub(super) fn new(footprints: &[Result<Footprint, SqlError>], granularity: Granularity) -> Plan {
        let mut planner = Planner::new(footprints.len() as u32, granularity);
        for (number, footprint) in (0..).zip(footprints) {
            let Ok(footprint) = footprint else { continue };
            // Reads first: what a transaction writes it does not wait for itself.
            footprint.reads.iter().for_each(|region| planner.access(number, region, false));
            footprint.writes.iter().for_each(|region| planner.access(number, region, true));
            planner.finish_transaction(number);
        }
        planner.finish()
    }

    /// How many nodes are transactions: the first ones.
    pub(super) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// By node: how many others it waits for.
    pub(super) fn predecessors(&self) -> impl Iterator<Item = u32> + '_ {
        self.predecessors.iter().copied()
    }

    /// Who waits for a node.
    pub(super) fn successors(&self, node: u32) -> &[u32] {
        &self.successors[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// How many edges there are.
    #[cfg(test)]
    pub(super) fn edges(&self) -> usize {
        self.successors.len()
    }
}

/// A place between keys: before a key, or (true) behind it.
type Cut = (Key, bool);

/// Who has touched which columns.
type Entries = SmallVec<[(u32, ColumnSet); 2]>;

/// Keys that the same regions have named.
#[derive(Clone, Default)]
struct Segment {
    /// The last writers; no two of one column, unless segments were united.
    writers: Entries,
    /// Who has read since, each with the columns that nobody has written since.
    readers: Entries,
}

/// By where they begin; each ends where the next one begins.
type Segments = BTreeMap<Cut, Segment>;

struct Planner {
    granularity: Granularity,
    tables: BTreeMap<TableId, Segments>,
    transactions: u32,
    nodes: u32,
    /// From, to.
    edges: Vec<(u32, u32)>,
    /// Whom the transaction at hand waits for, with repetitions.
    found: Vec<u32>,
}

impl Planner {
    fn new(transactions: u32, granularity: Granularity) -> Planner {
        Planner {
            granularity,
            tables: BTreeMap::new(),
            transactions,
            nodes: transactions,
            edges: Vec::new(),
            found: Vec::new(),
        }
    }

    /// A transaction touches a region.
    fn access(&mut self, node: u32, region: &Region, write: bool) {
        if region.range.is_empty() {
            return;
        }
        let columns = match self.granularity {
            Granularity::Column => region.columns,
            Granularity::Row => ColumnSet::ALL,
        };
        let mut segments = self.tables.remove(&region.table).unwrap_or_else(|| {
            let whole = ((Key::default(), false), Segment::default());
            Segments::from([whole])
        });
        let (start, end) = cuts(&region.range);
        self.cut(&mut segments, node, &start);
        if let Some(end) = &end {
            self.cut(&mut segments, node, end);
        }
        let bounds = (Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded));
        let mut met = 0;
        for (_, segment) in segments.range_mut(bounds.clone()) {
            met += 1;
            match write {
                true => segment.write(node, columns, &mut self.found),
                false => segment.read(node, columns, &mut self.found),
            }
        }
        if met > SEGMENTS_MAX {
            self.unite(&mut segments, node, bounds);
        }
        self.tables.insert(region.table, segments);
    }

    /// Makes a segment begin here.
    fn cut(&mut self, segments: &mut Segments, node: u32, at: &Cut) {
        let Some((start, segment)) = segments.range_mut(..=at).next_back() else { return };
        if start == at {
            return;
        }
        self.shorten(node, &mut segment.writers);
        self.shorten(node, &mut segment.readers);
        let copy = segment.clone();
        segments.insert(at.clone(), copy);
    }

    /// Puts a long list behind a gate. The transaction at hand stays out of it: it may wait for the gate.
    fn shorten(&mut self, node: u32, entries: &mut Entries) {
        if entries.len() <= ENTRIES_MAX {
            return;
        }
        let gate = self.nodes;
        let (mut own, mut columns) = (ColumnSet::EMPTY, ColumnSet::EMPTY);
        let mut behind: Vec<u32> = Vec::with_capacity(entries.len());
        for (of, touched) in entries.drain(..) {
            if of == node {
                own |= touched;
            } else {
                columns |= touched;
                behind.push(of);
            }
        }
        behind.sort_unstable();
        behind.dedup();
        match behind.as_slice() {
            [] => {}
            [only] => entries.push((*only, columns)),
            _ => {
                self.nodes += 1;
                self.edges.extend(behind.into_iter().map(|from| (from, gate)));
                entries.push((gate, columns));
            }
        }
        if !own.is_empty() {
            entries.push((node, own));
        }
    }

    /// Makes one segment of those between two cuts.
    fn unite(&mut self, segments: &mut Segments, node: u32, bounds: (Bound<Cut>, Bound<Cut>)) {
        let mut united = Segment::default();
        let mut starts = Vec::new();
        for (start, segment) in segments.range_mut(bounds) {
            starts.push(start.clone());
            united.writers.append(&mut segment.writers);
            united.readers.append(&mut segment.readers);
        }
        self.shorten(node, &mut united.writers);
        self.shorten(node, &mut united.readers);
        let mut starts = starts.into_iter();
        let Some(first) = starts.next() else { return };
        segments.insert(first, united);
        starts.for_each(|start| {
            segments.remove(&start);
        });
    }

    fn finish_transaction(&mut self, node: u32) {
        self.found.sort_unstable();
        self.found.dedup();
        debug_assert!(!self.found.contains(&node), "nobody waits for himself");
        self.edges.extend(self.found.drain(..).map(|from| (from, node)));
    }

    fn finish(self) -> Plan {
        let nodes = self.nodes as usize;
        let mut predecessors = vec![0; nodes];
        let mut first = vec![0; nodes + 1];
        for (from, to) in &self.edges {
            predecessors[*to as usize] += 1;
            first[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut successors = vec![0; self.edges.len()];
        for (from, to) in self.edges {
            let position = &mut next[from as usize];
            successors[*position as usize] = to;
            *position += 1;
        }
        Plan { transactions: self.transactions, predecessors, first, successors }
    }
}

impl Segment {
    fn read(&mut self, node: u32, columns: ColumnSet, found: &mut Vec<u32>) {
        let writers = self.writers.iter().filter(|(of, written)| *of != node && written.intersects(columns));
        found.extend(writers.map(|(of, _)| *of));
        match self.readers.last_mut() {
            Some((of, read)) if *of == node => *read |= columns,
            _ => self.readers.push((node, columns)),
        }
    }

    fn write(&mut self, node: u32, columns: ColumnSet, found: &mut Vec<u32>) {
        for entries in [&mut self.writers, &mut self.readers] {
            entries.retain(|(of, touched)| {
                if *of != node && touched.intersects(columns) {
                    found.push(*of);
                }
                *touched = touched.without(columns);
                !touched.is_empty()
            });
        }
        self.writers.push((node, columns));
    }
}

/// Where an interval begins and ends; `None`: with the table.
pub(super) fn cuts(range: &KeyRange) -> (Cut, Option<Cut>) {
    let start = match &range.start {
        Bound::Included(key) => (key.clone(), false),
        Bound::Excluded(key) => (key.clone(), true),
        Bound::Unbounded => (Key::default(), false),
    };
    let end = match &range.end {
        Bound::Included(key) => Some((key.clone(), true)),
        Bound::Excluded(key) => Some((key.clone(), false)),
        Bound::Unbounded => None,
    };
    (start, end)
}
