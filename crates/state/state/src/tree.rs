//! The tree over a whole state: its root, proofs of rows, and the pieces that somebody else fetches and checks.

use crate::{KeyRange, LiveContent, Snapshot, StoreError};
use borsh::BorshSerialize;
use crypto::{Digest, Sha256Batch, merkle_root};
use proofs::state::{TreeShape, state_root, table_leaf};
use proofs::{Entry, Found, Path, RowEntry, RowProof, TableEntry};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{Catalog, CheckpointCertificate, Key, Row, Table, TableId, encode};

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

/// Where a node stands in the order of all: a table's definition before its ranges.
pub(crate) type TreePosition<'a> = (TableId, Option<&'a Key>);

impl StateNode {
    pub(crate) fn place(&self) -> TreePosition<'_> {
        match self {
            StateNode::Table(table) => (table.id, None),
            StateNode::Range { table, first, .. } => (*table, Some(first)),
        }
    }
}

impl StateTree {
    /// Reads all rows of a snapshot and hashes them on the threads of the current rayon pool; the same for any number of
    /// them. Whoever writes meanwhile does not wait.
    ///
    /// # Errors
    /// Rows cannot be read.
    pub fn new(snapshot: &dyn Snapshot, live: &LiveContent) -> Result<StateTree, StoreError> {
        let mut growing = GrowingTree::new(snapshot.catalog());
        let tables: Vec<TableId> = growing.waiting.iter().map(|(id, _)| *id).collect();
        for table in tables {
            snapshot.scan(table, &KeyRange::ALL, false, &mut |key, row| {
                growing.add(table, key.clone(), row.clone(), 0);
                ControlFlow::Continue(())
            })?;
        }
        Ok(growing.finish(snapshot.catalog(), live).0)
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
    ///
    /// # Errors
    /// Rows cannot be read.
    pub fn prove(
        &self,
        snapshot: &dyn Snapshot,
        table: TableId,
        key: &Key,
        certificate: CheckpointCertificate,
    ) -> Result<Option<RowProof>, StoreError> {
        let definition = self.nodes.partition_point(|node| node.place() < (table, None));
        let known = self.nodes.get(definition).filter(|node| node.place().0 == table);
        let (Some(StateNode::Table(known)), Some(across)) = (known, self.across(definition)) else {
            return Ok(None);
        };
        let entry = TableEntry { table: Table::clone(known), across };
        let Some(found) = self.find(snapshot, table, key)? else { return Ok(None) };
        let (catalog, requests) = (self.catalog, self.requests);
        let handovers = Vec::new();
        Ok(Some(RowProof { table: entry, found, catalog, requests, certificate, handovers }))
    }

    fn across(&self, node: usize) -> Option<Path> {
        Path::new(&self.leaves, node)
    }

    fn find(&self, snapshot: &dyn Snapshot, table: TableId, key: &Key) -> Result<Option<Found>, StoreError> {
        // The node that the key would be in; the table's definition at least stands before it.
        let node = self.nodes.partition_point(|node| node.place() <= (table, Some(key)));
        let Some(node) = node.checked_sub(1) else { return Ok(None) };
        let rows = self.rows(snapshot, node)?;
        let next = match self.nodes.get(node + 1) {
            // Whether it is needed is known when this range has been read.
            Some(StateNode::Range { .. }) if rows.last().is_none_or(|(last, _)| last < key) => {
                self.rows(snapshot, node + 1)?
            }
            _ => Vec::new(),
        };
        Ok(self.found(key, node, &rows, &next))
    }

    /// `rows`: those of the node that the key would be in; `next`: those of the one behind it, where the key would stand
    /// between both.
    fn found(&self, key: &Key, node: usize, rows: &[(Key, Row)], next: &[(Key, Row)]) -> Option<Found> {
        let behind = rows.partition_point(|(one, _)| one < key);
        if rows.get(behind).is_some_and(|(one, _)| one == key) {
            return Some(Found::Row(self.row_entry(node, rows, behind)?));
        }
        let before = match behind.checked_sub(1) {
            Some(last) => Entry::Row(self.row_entry(node, rows, last)?),
            None => self.table_entry(node)?,
        };
        let after = match rows.len() > behind {
            true => Some(Entry::Row(self.row_entry(node, rows, behind)?)),
            false => match self.nodes.get(node + 1) {
                None => None,
                Some(StateNode::Table(_)) => Some(self.table_entry(node + 1)?),
                Some(StateNode::Range { .. }) => Some(Entry::Row(self.row_entry(node + 1, next, 0)?)),
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
    ///
    /// # Errors
    /// They cannot be read.
    pub fn rows(&self, snapshot: &dyn Snapshot, node: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let Some(StateNode::Range { table, first, rows }) = self.nodes.get(node) else {
            return Ok(Vec::new());
        };
        let range = KeyRange { start: Bound::Included(first.clone()), end: Bound::Unbounded };
        let mut found = Vec::with_capacity(*rows as usize);
        snapshot.scan(*table, &range, false, &mut |key, row| {
            found.push((key.clone(), row.clone()));
            if found.len() < *rows as usize { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }
}

/// A tree that gets its rows one by one, in their order.
pub(crate) struct GrowingTree {
    /// Numbers that rows of the tree may have, ascending, with definitions: those that were not begun.
    waiting: VecDeque<(TableId, Option<Arc<Table>>)>,
    /// The table that rows come of; `None` before the first.
    table: Option<TableId>,
    nodes: Vec<StateNode>,
    leaves: Vec<Digest>,
    /// Of each node: where its first row stands.
    places: Vec<u64>,
    /// Rows that are not hashed yet, and where they stand.
    read: (Vec<(Key, Row)>, Vec<u64>),
    open: OpenRange,
}

/// The rows since the last end of a range.
#[derive(Default)]
struct OpenRange {
    first: Key,
    place: u64,
    leaves: Vec<Digest>,
    bytes: usize,
}

impl GrowingTree {
    pub(crate) fn new(catalog: &Catalog) -> GrowingTree {
        let mut tables: Vec<(TableId, Option<Arc<Table>>)> =
            catalog.tables.values().map(|table| (table.id, Some(table.clone()))).collect();
        tables.extend(catalog.counters().map(|counter| (counter.table, None)));
        tables.sort_unstable_by_key(|(id, _)| *id);
        GrowingTree {
            waiting: tables.into(),
            table: None,
            nodes: Vec::new(),
            leaves: Vec::new(),
            places: Vec::new(),
            read: Default::default(),
            open: OpenRange::default(),
        }
    }

    /// The next row; those of tables that the tree does not have are left out. `place`: where it stands, for whoever reads
    /// it again.
    pub(crate) fn add(&mut self, table: TableId, key: Key, row: Row, place: u64) {
        if Some(table) != self.table {
            self.begin(|next| next <= table);
        }
        if Some(table) != self.table {
            return;
        }
        self.read.0.push((key, row));
        self.read.1.push(place);
        if self.read.0.len() == READ_ROWS {
            self.hash();
        }
    }

    /// The tree, and where the rows of each of its nodes begin.
    pub(crate) fn finish(mut self, catalog: &Catalog, live: &LiveContent) -> (StateTree, Vec<u64>) {
        self.begin(|_| true);
        let (catalog, requests) = (catalog.digest(), requests_root(live));
        let root = state_root(&merkle_root(&self.leaves), &catalog, &requests);
        let GrowingTree { nodes, leaves, places, .. } = self;
        (StateTree { nodes, leaves, root, catalog, requests }, places)
    }

    /// Ends the table, and begins those behind it that `which` names.
    fn begin(&mut self, which: impl Fn(TableId) -> bool) {
        self.hash();
        self.end_range();
        while let Some((id, definition)) = self.waiting.pop_front_if(|(id, _)| which(*id)) {
            self.table = Some(id);
            if let Some(table) = definition {
                self.leaves.push(table_leaf(&table));
                self.places.push(0);
                self.nodes.push(StateNode::Table(table));
            }
        }
    }

    fn hash(&mut self) {
        let (mut rows, mut places) = std::mem::take(&mut self.read);
        let hashed: Vec<(Digest, usize)> = rows.par_chunks(HASH_ROWS).flat_map_iter(hash_rows).collect();
        for (((key, _), place), (leaf, bytes)) in rows.drain(..).zip(places.drain(..)).zip(hashed) {
            if self.open.leaves.is_empty() {
                (self.open.first, self.open.place) = (key, place);
            }
            self.open.leaves.push(leaf);
            self.open.bytes += bytes;
            if TreeShape::Ranges.ends_range(&leaf, self.open.leaves.len(), self.open.bytes) {
                self.end_range();
            }
        }
        self.read = (rows, places);
    }

    fn end_range(&mut self) {
        let Some(table) = self.table.filter(|_| !self.open.leaves.is_empty()) else { return };
        let first = std::mem::take(&mut self.open.first);
        self.leaves.push(TreeShape::Ranges.range_leaf(table, &first, &merkle_root(&self.open.leaves)));
        self.places.push(self.open.place);
        let rows = self.open.leaves.len() as u32;
        self.nodes.push(StateNode::Range { table, first, rows });
        self.open.leaves.clear();
        self.open.bytes = 0;
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
