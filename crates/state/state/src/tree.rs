//! The tree over a whole state: its root, proofs of rows, and the pieces that somebody else fetches and checks.

use crate::group_ranges::GroupRanges;
use crate::growing::Growing;
use crate::row_hashes::{READ_ROWS, hash_on_all_threads};
use crate::{GroupHead, KeyRange, LiveContent, RowId, Snapshot, StoreError};
use crypto::{Digest, Sha256Batch, merkle_root};
use proofs::state::{TreeShape, state_root, table_leaf};
use proofs::{Entry, Found, GroupedRow, Path, RowEntry, RowProof, TableEntry};
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{Catalog, CheckpointCertificate, Key, Row, Table, TableId, encode};

/// Live ids in one leaf: as many as fit into the lanes of [`Sha256Batch`].
const LEAF_REQUESTS: usize = 15;

/// A leaf of the tree over tables and groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateNode {
    /// A table's definition.
    Table(Arc<Table>),
    /// Rows of a table that follow one another.
    Group {
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
    shape: TreeShape,
    nodes: Vec<StateNode>,
    leaves: Vec<Digest>,
    root: Digest,
    catalog: Digest,
    requests: Digest,
}

/// Where a node stands in the order of all: a table's definition before its groups.
type TreePosition<'a> = (TableId, Option<&'a Key>);

impl StateNode {
    /// Whose definition or rows it has.
    pub fn table(&self) -> TableId {
        self.place().0
    }

    /// How many rows it has.
    pub fn rows(&self) -> u32 {
        match self {
            StateNode::Table(_) => 0,
            StateNode::Group { rows, .. } => *rows,
        }
    }

    fn place(&self) -> TreePosition<'_> {
        match self {
            StateNode::Table(table) => (table.id, None),
            StateNode::Group { table, first, .. } => (*table, Some(first)),
        }
    }
}

impl StateTree {
    /// Reads all rows of a snapshot and hashes them on the threads of the current rayon pool; the same for any number of
    /// them. Whoever writes meanwhile does not wait. `shape`: the one that holds at the snapshot's height ([`TreeShape::at`]).
    ///
    /// # Errors
    /// Rows cannot be read.
    pub fn new(
        snapshot: &dyn Snapshot,
        live: &LiveContent,
        shape: TreeShape,
    ) -> Result<StateTree, StoreError> {
        let mut growing = GrowingTree::new(snapshot.catalog(), shape);
        let tables: Vec<TableId> = growing.waiting.iter().map(|(id, _)| *id).collect();
        for table in tables {
            snapshot.scan(table, &KeyRange::ALL, false, &mut |key, row| {
                growing.add(table, key.clone(), row.clone());
                ControlFlow::Continue(())
            })?;
        }
        Ok(growing.finish(snapshot.catalog(), live))
    }

    /// The tree whose groups are known, by table and first key.
    pub fn of_groups(
        catalog: &Catalog,
        live: &LiveContent,
        shape: TreeShape,
        groups: impl Iterator<Item = (RowId, GroupHead)>,
    ) -> StateTree {
        let mut growing = GrowingTree::new(catalog, shape);
        for (RowId { table, key: first }, head) in groups {
            growing.begin(|next| next <= table);
            growing.push(table, first, head);
        }
        growing.finish(catalog, live)
    }

    /// What nodes attest.
    pub fn root(&self) -> Digest {
        self.root
    }

    /// Hashes of its nodes.
    pub fn leaves(&self) -> &[Digest] {
        &self.leaves
    }

    /// How rows are gathered into its nodes.
    pub fn shape(&self) -> TreeShape {
        self.shape
    }

    /// Tables and groups, in order.
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

    /// Digest of the catalog.
    pub(crate) fn catalog(&self) -> Digest {
        self.catalog
    }

    /// Digest of the live ids.
    pub(crate) fn requests(&self) -> Digest {
        self.requests
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
            // Whether it is needed is known when this group has been read.
            Some(StateNode::Group { .. }) if rows.last().is_none_or(|(last, _)| last < key) => {
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
        let ranges = self.ranges(node, rows);
        if rows.get(behind).is_some_and(|(one, _)| one == key) {
            return Some(match self.row_entry(node, rows, ranges.as_ref()?, behind)? {
                Entry::Grouped(row) => Found::Grouped(row),
                Entry::Row(row) => Found::Row(row),
                Entry::Table(_) => return None,
            });
        }
        let before = match behind.checked_sub(1) {
            Some(last) => self.row_entry(node, rows, ranges.as_ref()?, last)?,
            None => self.table_entry(node)?,
        };
        let after = match rows.len() > behind {
            true => Some(self.row_entry(node, rows, ranges.as_ref()?, behind)?),
            false => match self.nodes.get(node + 1) {
                None => None,
                Some(StateNode::Table(_)) => Some(self.table_entry(node + 1)?),
                Some(StateNode::Group { .. }) => {
                    Some(self.row_entry(node + 1, next, &self.ranges(node + 1, next)?, 0)?)
                }
            },
        };
        Some(Found::Nothing { key: key.clone(), before: Box::new(before), after: after.map(Box::new) })
    }

    fn table_entry(&self, node: usize) -> Option<Entry> {
        let StateNode::Table(table) = self.nodes.get(node)? else { return None };
        Some(Entry::Table(TableEntry { table: Table::clone(table), across: self.across(node)? }))
    }

    /// The ranges of a group with these rows; nothing of a table's definition.
    pub(crate) fn ranges(&self, node: usize, rows: &[(Key, Row)]) -> Option<GroupRanges> {
        let StateNode::Group { table, .. } = self.nodes.get(node)? else { return None };
        Some(GroupRanges::new(self.shape, *table, rows))
    }

    fn row_entry(
        &self,
        node: usize,
        rows: &[(Key, Row)],
        ranges: &GroupRanges,
        index: usize,
    ) -> Option<Entry> {
        let StateNode::Group { table, first: group, .. } = self.nodes.get(node)? else { return None };
        let (key, row) = rows.get(index)?.clone();
        let place = ranges.place(index)?;
        let (within, first) = (Path::new(place.rows, place.row)?, place.first.clone());
        let row = RowEntry { table: *table, key, row, within, first, across: self.across(node)? };
        Some(match self.shape {
            TreeShape::Ranges => Entry::Row(row),
            TreeShape::Groups => Entry::Grouped(GroupedRow {
                row,
                ranges: Path::new(&ranges.leaves(), place.range)?,
                group: group.clone(),
            }),
        })
    }

    /// The rows of a group; none of a table's definition.
    ///
    /// # Errors
    /// They cannot be read, or are not those that the tree was made of.
    pub fn rows(&self, snapshot: &dyn Snapshot, node: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let rows = self.read_rows(snapshot, node)?;
        if self.is_made_of(node, &rows) {
            return Ok(rows);
        }
        let table = self.nodes[node].table().0;
        let what = "its rows are not those of the checkpoint's tree";
        Err(StoreError::damaged(format_args!("table number {table}"), what))
    }

    /// Whether these are the rows of a node. A table's definition has none.
    pub(crate) fn is_made_of(&self, node: usize, rows: &[(Key, Row)]) -> bool {
        self.ranges(node, rows).map_or(rows.is_empty(), |ranges| ranges.leaf() == self.leaves[node])
    }

    /// The same, whatever they are.
    pub(crate) fn read_rows(
        &self,
        snapshot: &dyn Snapshot,
        node: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let Some((table, range, rows)) = self.interval(node) else { return Ok(Vec::new()) };
        let mut found = Vec::with_capacity(rows);
        snapshot.scan(table, &range, false, &mut |key, row| {
            found.push((key.clone(), row.clone()));
            // One more shows that there are too many.
            if found.len() <= rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    /// Where the rows of a node stand, and how many there are: the intervals of a table's nodes cover all keys. Nothing of a
    /// definition with groups behind it.
    fn interval(&self, node: usize) -> Option<(TableId, KeyRange, usize)> {
        let table = self.nodes.get(node)?.table();
        let group = |node: Option<usize>| match self.nodes.get(node?)? {
            StateNode::Group { table: of, first, .. } if *of == table => Some(first.clone()),
            _ => None,
        };
        let next = group(Some(node + 1));
        match (group(Some(node)), next) {
            (None, Some(_)) => None,
            (None, None) => Some((table, KeyRange::ALL, 0)),
            (Some(first), next) => {
                let before = group(node.checked_sub(1));
                let start = before.map_or(Bound::Unbounded, |_| Bound::Included(first));
                let end = next.map_or(Bound::Unbounded, Bound::Excluded);
                Some((table, KeyRange { start, end }, self.nodes[node].rows() as usize))
            }
        }
    }
}

/// A tree that gets its rows one by one, in their order.
struct GrowingTree {
    /// Numbers that rows of the tree may have, ascending, with definitions: those that were not begun.
    waiting: VecDeque<(TableId, Option<Arc<Table>>)>,
    /// The table that rows come of, and its groups; `None` before the first.
    open: Option<(TableId, Growing<'static>)>,
    nodes: Vec<StateNode>,
    leaves: Vec<Digest>,
    /// Rows that are not hashed yet.
    read: Vec<(Key, Row)>,
    shape: TreeShape,
}

impl GrowingTree {
    fn new(catalog: &Catalog, shape: TreeShape) -> GrowingTree {
        let mut tables: Vec<(TableId, Option<Arc<Table>>)> =
            catalog.tables.values().map(|table| (table.id, Some(table.clone()))).collect();
        tables.extend(catalog.kept_besides_tables().map(|(table, _)| (table, None)));
        tables.sort_unstable_by_key(|(id, _)| *id);
        let (nodes, leaves, read) = (Vec::new(), Vec::new(), Vec::new());
        GrowingTree { waiting: tables.into(), open: None, nodes, leaves, read, shape }
    }

    fn is_open(&self, table: TableId) -> bool {
        self.open.as_ref().is_some_and(|(open, _)| *open == table)
    }

    /// The next row; those of tables that the tree does not have are left out.
    fn add(&mut self, table: TableId, key: Key, row: Row) {
        if !self.is_open(table) {
            self.begin(|next| next <= table);
        }
        if !self.is_open(table) {
            return;
        }
        self.read.push((key, row));
        if self.read.len() == READ_ROWS {
            self.hash();
        }
    }

    fn finish(mut self, catalog: &Catalog, live: &LiveContent) -> StateTree {
        self.begin(|_| true);
        let (catalog, requests) = (catalog.digest(), requests_root(live));
        let root = state_root(&merkle_root(&self.leaves), &catalog, &requests);
        let GrowingTree { shape, nodes, leaves, .. } = self;
        StateTree { shape, nodes, leaves, root, catalog, requests }
    }

    /// Ends the table, and begins those behind it that `which` names.
    fn begin(&mut self, which: impl Fn(TableId) -> bool) {
        self.hash();
        if let Some((_, growing)) = &mut self.open {
            growing.end();
        }
        self.push_made();
        while let Some((id, definition)) = self.waiting.pop_front_if(|(id, _)| which(*id)) {
            self.open = Some((id, Growing::new(self.shape, id, None)));
            if let Some(table) = definition {
                self.leaves.push(table_leaf(&table));
                self.nodes.push(StateNode::Table(table));
            }
        }
    }

    fn hash(&mut self) {
        let Some((_, growing)) = &mut self.open else { return };
        hash_on_all_threads(&mut self.read).for_each(|row| growing.row(row));
        self.push_made();
    }

    fn push_made(&mut self) {
        let Some((table, growing)) = &mut self.open else { return };
        let (table, made) = (*table, growing.take_made());
        made.for_each(|(first, head)| self.push(table, first, head));
    }

    fn push(&mut self, table: TableId, first: Key, GroupHead { rows, leaf }: GroupHead) {
        self.leaves.push(leaf);
        self.nodes.push(StateNode::Group { table, first, rows });
    }
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
