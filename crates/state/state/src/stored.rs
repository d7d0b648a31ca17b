//! The state in a checkpoint that is read where it is needed: its tree in memory, its rows where they were written.

use crate::checkpoint::{Source, read_begin, read_live_requests, read_rows, read_tables};
use crate::groups::GroupRanges;
use crate::tree::{GrowingTree, TreePosition};
use crate::{
    CheckpointError, CheckpointHeader, KeyRange, LiveRequests, Snapshot, StateNode, StateOutline, StatePiece,
    StateTree, StoreError,
};
use parking_lot::Mutex;
use proofs::RowProof;
use proofs::state::TreeShape;
use std::io::{self, Read};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{Catalog, CheckpointCertificate, Counter, Key, Row, TableId};

/// Reads bytes of a checkpoint from a place of its stream on; tells how many, none at the end.
pub type ReadCheckpointAt = dyn Fn(u64, &mut [u8]) -> io::Result<usize> + Send + Sync;

/// A state as a checkpoint holds it: what others need of it is read from there. Memory: that of its tree and catalog.
pub struct StoredState {
    header: CheckpointHeader,
    catalog: Arc<Catalog>,
    tree: StateTree,
    /// Of each node of the tree: where its first row stands.
    places: Vec<u64>,
    /// Where the live ids begin.
    live: u64,
    read_at: Box<ReadCheckpointAt>,
}

impl StoredState {
    /// Reads a whole checkpoint and checks it, as [`crate::read_checkpoint`] does, and computes its tree on the threads of
    /// the current rayon pool. `read_at` reads the same bytes later.
    ///
    /// # Errors
    /// As [`crate::read_checkpoint`].
    pub fn read(source: impl Read, read_at: Box<ReadCheckpointAt>) -> Result<StoredState, CheckpointError> {
        let mut source = Source::new(source, 0);
        let (header, catalog) = read_begin(&mut source)?;
        let mut growing = GrowingTree::new(&catalog, TreeShape::at(&catalog, header.height));
        read_tables(&mut source, &catalog, &mut |image, place| {
            if let Some(row) = image.value {
                growing.add(image.row.table, image.row.key, row, place);
            }
        })?;
        let live_place = source.place;
        let live = read_live_requests(&mut source, header.height)?;
        source.check_end()?;
        let (tree, places) = growing.finish(&catalog, &live.content());
        Ok(StoredState { header, catalog, tree, places, live: live_place, read_at })
    }

    /// Where the state stands.
    pub fn header(&self) -> &CheckpointHeader {
        &self.header
    }

    /// Tables and procedures.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Its tree.
    pub fn tree(&self) -> &StateTree {
        &self.tree
    }

    /// Everything but its rows. Memory: that of all live ids.
    ///
    /// # Errors
    /// The checkpoint cannot be read any more.
    pub fn outline(&self) -> Result<StateOutline, CheckpointError> {
        let mut source = Source::new(At { stored: self, place: self.live }, self.live);
        let live: LiveRequests = read_live_requests(&mut source, self.header.height)?;
        Ok(StateOutline::new(&self.tree, &Reading::new(self), &live.content()))
    }

    /// The rows of node `number` of the tree; nothing where that is no group.
    ///
    /// # Errors
    /// The checkpoint cannot be read any more.
    pub fn piece(&self, number: usize) -> Result<Option<StatePiece>, CheckpointError> {
        let reading = Reading::new(self);
        let piece = StatePiece::new(&self.tree, &reading, number);
        reading.result(piece)
    }

    /// The proof of the row of `table` under `key`, or that there is none; nothing where there is no such table.
    ///
    /// # Errors
    /// The checkpoint cannot be read any more.
    pub fn prove(
        &self,
        table: TableId,
        key: &Key,
        certificate: CheckpointCertificate,
    ) -> Result<Option<RowProof>, CheckpointError> {
        let reading = Reading::new(self);
        let proof = self.tree.prove(&reading, table, key, certificate);
        reading.result(proof)
    }

    /// Reads the rows of a group again. They are those of the tree.
    fn rows(&self, number: usize) -> Result<Vec<(Key, Row)>, CheckpointError> {
        let Some(StateNode::Group { table, rows, .. }) = self.tree.nodes().get(number) else {
            return Ok(Vec::new());
        };
        let columns = match self.catalog.table(*table) {
            Some(table) => table.columns.len(),
            None => Counter::COLUMNS,
        };
        let place = self.places[number];
        let mut source = Source::new(At { stored: self, place }, place);
        let found = read_rows(&mut source, *table, columns, *rows as usize)?;
        let leaf = GroupRanges::new(self.tree.shape(), *table, &found).leaf();
        let expected = self.tree.leaves()[number];
        match leaf == expected {
            true => Ok(found),
            false => Err(CheckpointError::Damaged {
                expected: "the rows of a group as they were",
                found: format!("others, from byte {place} of the content on"),
            }),
        }
    }
}

/// Reads on from a place.
struct At<'a> {
    stored: &'a StoredState,
    place: u64,
}

impl Read for At<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = (self.stored.read_at)(self.place, bytes)?;
        self.place += read as u64;
        Ok(read)
    }
}

/// The state as a snapshot. What is wrong with the checkpoint is asked for afterwards.
struct Reading<'a> {
    stored: &'a StoredState,
    error: Mutex<Option<CheckpointError>>,
}

impl<'a> Reading<'a> {
    fn new(stored: &'a StoredState) -> Reading<'a> {
        Reading { stored, error: Mutex::new(None) }
    }

    fn result<T>(self, found: Result<T, StoreError>) -> Result<T, CheckpointError> {
        found.map_err(|failed| {
            let error = self.error.into_inner();
            error.unwrap_or_else(|| CheckpointError::Read(io::Error::other(failed)))
        })
    }
}

impl Snapshot for Reading<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.stored.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        let range = KeyRange { start: Bound::Included(key.clone()), end: Bound::Included(key.clone()) };
        let mut found = None;
        self.scan(table, &range, false, &mut |_, row| {
            found = Some(row.clone());
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let nodes = self.stored.tree.nodes();
        let before = |place: TreePosition<'_>| nodes.partition_point(|node| node.place() <= place);
        let start = match &range.start {
            Bound::Included(key) | Bound::Excluded(key) => before((table, Some(key))).saturating_sub(1),
            Bound::Unbounded => before((table, None)).saturating_sub(1),
        };
        let end = match (&range.end, table.0.checked_add(1)) {
            (Bound::Included(key) | Bound::Excluded(key), _) => before((table, Some(key))),
            (Bound::Unbounded, Some(next)) => {
                nodes.partition_point(|node| node.place() < (TableId(next), None))
            }
            (Bound::Unbounded, None) => nodes.len(),
        };
        let mut numbers: Vec<usize> =
            (start..end).filter(|number| nodes[*number].place().0 == table).collect();
        if reverse {
            numbers.reverse();
        }
        for number in numbers {
            let mut rows = match self.stored.rows(number) {
                Ok(rows) => rows,
                Err(error) => {
                    let failed = StoreError::read("its checkpoint", &error);
                    self.error.lock().get_or_insert(error);
                    return Err(failed);
                }
            };
            if reverse {
                rows.reverse();
            }
            for (key, row) in rows.iter().filter(|(key, _)| range.contains(key)) {
                if visit(key, row).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
