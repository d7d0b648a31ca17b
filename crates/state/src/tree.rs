//! The tree over a whole state: its root, proofs of rows, and the pieces that somebody else fetches and checks.

use crate::{KeyRange, LiveContent, Snapshot};
use borsh::BorshSerialize;
use crypto::{Digest, Sha256Batch, merkle_root};
use proofs::state::{ends_range, range_leaf, state_root, table_leaf};
use proofs::{Entry, Found, Path, RowEntry, RowProof, TableEntry};
use rayon::prelude::*;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{CheckpointCertificate, Key, Row, Table, TableId, encode};

/// Rows that are read before they are hashed, on all threads.
const READ_ROWS: usize = 16_384;
/// Rows that one thread hashes together.
const HASH_ROWS: usize = 512;
/// Live ids in one leaf: as many as fit into the lanes of [`Sha256Batch`].
const LEAF_REQUESTS: usize = 15;

/// A leaf of the tree over tables and ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateNode {
    /// A table's definition.
    Table(Arc<Table>),
    /// Rows of a table that follow one another.
    Range {
        /// Which table.
        table: TableId,
        /// Key of the first row.
        first: Key,
        /// How many rows.
        rows: u32,
    },
}

/// The tree over a state at one height, without the rows: those are read again where a proof needs them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateTree {
    nodes: Vec<StateNode>,
    leaves: Vec<Digest>,
    root: Digest,
    catalog: Digest,
    requests: Digest,
}

impl StateNode {
    /// Where it stands in the order of all.
    fn place(&self) -> (TableId, Option<&Key>) {
        match self {
            StateNode::Table(table) => (table.id, None),
            StateNode::Range { table, first, .. } => (*table, Some(first)),
        }
    }
}

impl StateTree {
    /// Reads all rows of a snapshot and hashes them on the threads of the current rayon pool; the same for any number of
    /// them. Whoever writes meanwhile does not wait.
    pub fn new(snapshot: &dyn Snapshot, live: &LiveContent) -> StateTree {
        let catalog = snapshot.catalog();
        let mut tables: Vec<(TableId, Option<Arc<Table>>)> =
            catalog.tables.values().map(|table| (table.id, Some(table.clone()))).collect();
        tables.extend(catalog.counters().map(|counter| (counter.table, None)));
        tables.sort_unstable_by_key(|(id, _)| *id);
        let (mut nodes, mut leaves) = (Vec::new(), Vec::new());
        for (id, definition) in tables {
            if let Some(table) = definition {
                leaves.push(table_leaf(&table));
                nodes.push(StateNode::Table(table));
            }
            read_ranges(snapshot, id, &KeyRange::ALL, &mut |first, rows| {
                leaves.push(range_leaf(id, &first, &merkle_root(rows)));
                nodes.push(StateNode::Range { table: id, first, rows: rows.len() as u32 });
                ControlFlow::Continue(())
            });
        }
        let (catalog, requests) = (catalog.digest(), requests_root(live));
        let root = state_root(&merkle_root(&leaves), &catalog, &requests);
        StateTree { nodes, leaves, root, catalog, requests }
    }

    /// What nodes attest.
    pub fn root(&self) -> Digest {
        self.root
    }

    /// Hashes of its nodes.
    pub(crate) fn leaves(&self) -> &[Digest] {
        &self.leaves
    }

    /// Tables and ranges, in order.
    pub fn nodes(&self) -> &[StateNode] {
        &self.nodes
    }

    /// The proof of the row of `table` under `key`, or that there is none. `snapshot`: the one that the tree was made of.
    /// Nothing where there is no such table.
    pub fn prove(
        &self,
        snapshot: &dyn Snapshot,
        table: TableId,
        key: &Key,
        certificate: CheckpointCertificate,
    ) -> Option<RowProof> {
        let definition = self.nodes.partition_point(|node| node.place() < (table, None));
        let StateNode::Table(known) = self.nodes.get(definition).filter(|node| node.place().0 == table)?
        else {
            return None;
        };
        let entry = TableEntry { table: Table::clone(known), across: self.across(definition)? };
        let found = self.find(snapshot, table, key)?;
        let (catalog, requests) = (self.catalog, self.requests);
        Some(RowProof { table: entry, found, catalog, requests, certificate })
    }

    fn across(&self, node: usize) -> Option<Path> {
        Path::new(&self.leaves, node)
    }

    fn find(&self, snapshot: &dyn Snapshot, table: TableId, key: &Key) -> Option<Found> {
        // The node that the key would be in; the table's definition at least stands before it.
        let node = self.nodes.partition_point(|node| node.place() <= (table, Some(key))).checked_sub(1)?;
        let rows = self.rows(snapshot, node);
        let behind = rows.partition_point(|(one, _)| one < key);
        if rows.get(behind).is_some_and(|(one, _)| one == key) {
            return Some(Found::Row(self.row_entry(node, &rows, behind)?));
        }
        let before = match behind.checked_sub(1) {
            Some(last) => Entry::Row(self.row_entry(node, &rows, last)?),
            None => self.table_entry(node)?,
        };
        let after = match rows.len() > behind {
            true => Some(Entry::Row(self.row_entry(node, &rows, behind)?)),
            false => match self.nodes.get(node + 1) {
                None => None,
                Some(StateNode::Table(_)) => Some(self.table_entry(node + 1)?),
                Some(StateNode::Range { .. }) => {
                    let rows = self.rows(snapshot, node + 1);
                    Some(Entry::Row(self.row_entry(node + 1, &rows, 0)?))
                }
            },
        };
        Some(Found::Nothing { key: key.clone(), before: Box::new(before), after: after.map(Box::new) })
    }

    fn table_entry(&self, node: usize) -> Option<Entry> {
        let StateNode::Table(table) = self.nodes.get(node)? else { return None };
        Some(Entry::Table(TableEntry { table: Table::clone(table), across: self.across(node)? }))
    }

    fn row_entry(&self, node: usize, rows: &[(Key, Row)], index: usize) -> Option<RowEntry> {
        let StateNode::Range { table, first, .. } = self.nodes.get(node)? else { return None };
        let (key, row) = rows.get(index)?.clone();
        let within = Path::new(&row_leaves(rows), index)?;
        Some(RowEntry { table: *table, key, row, within, first: first.clone(), across: self.across(node)? })
    }

    /// The rows of a range; none of a table's definition.
    pub fn rows(&self, snapshot: &dyn Snapshot, node: usize) -> Vec<(Key, Row)> {
        let Some(StateNode::Range { table, first, rows }) = self.nodes.get(node) else { return Vec::new() };
        let range = KeyRange { start: Bound::Included(first.clone()), end: Bound::Unbounded };
        let mut found = Vec::with_capacity(*rows as usize);
        snapshot.scan(*table, &range, false, &mut |key, row| {
            found.push((key.clone(), row.clone()));
            if found.len() < *rows as usize { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        found
    }
}

/// Cuts the rows of a table into ranges; `visit` gets the first key and the leaves of each.
fn read_ranges(
    snapshot: &dyn Snapshot,
    table: TableId,
    range: &KeyRange,
    visit: &mut dyn FnMut(Key, &[Digest]) -> ControlFlow<()>,
) {
    let mut open = OpenRange::default();
    let mut read: Vec<(Key, Row)> = Vec::new();
    let mut ended = false;
    snapshot.scan(table, range, false, &mut |key, row| {
        read.push((key.clone(), row.clone()));
        if read.len() == READ_ROWS {
            ended = open.add(&mut read, visit).is_break();
        }
        if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if !ended && open.add(&mut read, visit).is_continue() && !open.leaves.is_empty() {
        // The last range ends with the table; there is nobody left to be told to stop.
        let _ = visit(open.first, &open.leaves);
    }
}

/// The rows since the last end of a range.
#[derive(Default)]
struct OpenRange {
    first: Key,
    leaves: Vec<Digest>,
    bytes: usize,
}

impl OpenRange {
    /// Adds rows and takes them.
    fn add(
        &mut self,
        rows: &mut Vec<(Key, Row)>,
        visit: &mut dyn FnMut(Key, &[Digest]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let hashed: Vec<(Digest, usize)> = rows.par_chunks(HASH_ROWS).flat_map_iter(hash_rows).collect();
        for ((key, _), (leaf, bytes)) in rows.drain(..).zip(hashed) {
            if self.leaves.is_empty() {
                self.first = key;
            }
            self.leaves.push(leaf);
            self.bytes += bytes;
            if ends_range(&leaf, self.leaves.len(), self.bytes) {
                visit(std::mem::take(&mut self.first), &self.leaves)?;
                self.leaves.clear();
                self.bytes = 0;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Leaf and bytes of each row.
pub(crate) fn hash_rows(rows: &[(Key, Row)]) -> Vec<(Digest, usize)> {
    let (mut hashes, mut content) = (Sha256Batch::new(), Vec::new());
    let mut lengths = Vec::with_capacity(rows.len());
    for (key, row) in rows {
        content.clear();
        let written = key.serialize(&mut content).and_then(|()| row.serialize(&mut content));
        written.expect("writing to memory cannot fail");
        hashes.push_leaf(&content);
        lengths.push(content.len());
    }
    hashes.finish().into_iter().zip(lengths).collect()
}

fn row_leaves(rows: &[(Key, Row)]) -> Vec<Digest> {
    hash_rows(rows).into_iter().map(|(leaf, _)| leaf).collect()
}

/// Merkle root over the live ids, in their order, several in one leaf.
pub(crate) fn requests_root(live: &LiveContent) -> Digest {
    let (mut leaves, mut content, mut count) = (Sha256Batch::new(), Vec::new(), 0);
    for request in live.iter() {
        content.extend_from_slice(&encode(&(
            request.client,
            request.id,
            request.height,
            request.index,
            request.expires_at,
        )));
        count += 1;
        if count == LEAF_REQUESTS {
            leaves.push_leaf(&content);
            content.clear();
            count = 0;
        }
    }
    if count > 0 {
        leaves.push_leaf(&content);
    }
    merkle_root(&leaves.finish())
}
