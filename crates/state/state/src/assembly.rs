//! A state that is put together from pieces, which are checked one by one against an attested root: from several nodes, in
//! any order, and resumed where it was left.
//!
//! ```text
//!  StateOutline: catalog, live ids, leaves ──verify(root)──▶ StateAssembly ◀──add── StatePiece: the rows of one group
//!                                                               └──finish──▶ Checkpoint
//! ```

use crate::indexes::{in_order, taken_keys};
use crate::{
    AfterImage, Checkpoint, CheckpointHeader, Filling, LiveRequest, LiveRequests, RowId, StateOutline,
    StatePiece, StoreError, Stores, Version,
};
use crypto::Digest;
use proofs::state::{TreeShape, table_leaf};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// There are fewer heights than this.
const HEIGHTS: u64 = 1 << 48;

/// Why a state cannot be put together.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PieceError {
    /// Somebody has sent another outline than the one that was attested.
    #[error("expected the outline of the state with root {expected}, found one of {found}; ask another node")]
    Outline {
        /// The attested root.
        expected: Digest,
        /// That of the outline.
        found: Digest,
    },
    /// There is no piece of this number.
    #[error("expected the number of a group below {nodes}, found {found}")]
    Number {
        /// Leaves of the tree.
        nodes: usize,
        /// The number.
        found: usize,
    },
    /// Somebody has sent other rows.
    #[error("piece {number}: expected rows that hash to {expected}, found {found}; ask another node")]
    Rows {
        /// Number of the piece.
        number: usize,
        /// The leaf in the outline.
        expected: Digest,
        /// That of the rows.
        found: Digest,
    },
    /// What was attested is no state; no honest node has.
    #[error("what was attested is no state: {0}")]
    Content(String),
    /// The store that it is put together in cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Pieces are still missing.
    #[error("{0} pieces are missing")]
    Incomplete(usize),
}

/// A state that is being put together.
pub struct StateAssembly {
    filling: Box<dyn Filling>,
    catalog: Arc<Catalog>,
    live: LiveRequests,
    shape: TreeShape,
    leaves: Vec<Digest>,
    missing: BTreeSet<usize>,
    /// Columns of each table that has rows of its own.
    columns: BTreeMap<TableId, usize>,
}

impl StateAssembly {
    /// Begins with an outline of the state at `height` whose root a certificate proves, in a store that `stores` makes.
    ///
    /// # Errors
    /// [`PieceError::Outline`], [`PieceError::Content`] and [`PieceError::Store`].
    pub fn new(
        outline: StateOutline,
        height: u64,
        root: Digest,
        stores: &dyn Stores,
    ) -> Result<StateAssembly, PieceError> {
        if height >= HEIGHTS {
            return Err(PieceError::Content(format!("height {height}, the limit is {HEIGHTS}")));
        }
        let mut live = LiveRequests::at(height);
        live.reserve(outline.requests.len());
        for request in &outline.requests {
            let restored = live.restore(&LiveRequest::from(*request));
            restored.map_err(|error| PieceError::Content(format!("live ids: {error}")))?;
        }
        let found = outline.root(&live.content());
        if found != root {
            return Err(PieceError::Outline { expected: root, found });
        }
        let catalog = Arc::new(outline.catalog);
        let shape = TreeShape::at(&catalog, height);
        let tables: BTreeSet<Digest> = catalog.tables.values().map(|table| table_leaf(table)).collect();
        let groups = outline.leaves.iter().enumerate().filter(|(_, leaf)| !tables.contains(*leaf));
        let missing = groups.map(|(number, _)| number).collect();
        let mut columns: BTreeMap<TableId, usize> =
            catalog.tables.values().map(|table| (table.id, table.columns.len())).collect();
        columns.extend(catalog.kept_besides_tables());
        let filling = stores.begin(Version::after_block(height), catalog.clone())?;
        Ok(StateAssembly { filling, catalog, live, shape, leaves: outline.leaves, missing, columns })
    }

    /// Numbers of the pieces that are still missing, ascending.
    pub fn missing(&self) -> impl Iterator<Item = usize> + '_ {
        self.missing.iter().copied()
    }

    /// What the piece of this number must hash to; nothing where there is no such number.
    pub fn leaf(&self, number: usize) -> Option<Digest> {
        self.leaves.get(number).copied()
    }

    /// Checks a piece and adds it; one that is there already changes nothing.
    ///
    /// # Errors
    /// [`PieceError::Number`], [`PieceError::Rows`] and [`PieceError::Content`]; the state is as before. [`PieceError::Store`]: the
    /// piece stays missing, and nothing more can come of this state.
    pub fn add(&mut self, number: usize, piece: &StatePiece) -> Result<(), PieceError> {
        let nodes = self.leaves.len();
        let expected = *self.leaves.get(number).ok_or(PieceError::Number { nodes, found: number })?;
        let limit = self.shape.group_rows_max();
        if piece.rows.len() > limit {
            let what = format!("a group of {} rows, the limit is {limit}", piece.rows.len());
            return Err(PieceError::Content(what));
        }
        let found = piece.leaf(self.shape);
        if found != expected {
            return Err(PieceError::Rows { number, expected, found });
        }
        let columns = self.columns.get(&piece.table);
        let fits = piece.rows.iter().all(|(_, row)| columns == Some(&row.len()));
        if !fits || !piece.rows.is_sorted_by(|(one, _), (other, _)| one < other) {
            return Err(PieceError::Content(format!("rows of table {} do not fit", piece.table.0)));
        }
        if self.missing.contains(&number) {
            let image = |(key, row): &(Key, Row)| AfterImage {
                row: RowId { table: piece.table, key: key.clone() },
                value: Some(row.clone()),
            };
            self.filling.add(&piece.rows.iter().map(image).collect::<Vec<_>>())?;
            // They are rows of the state, but follow from those that are attested.
            let catalog = &self.catalog;
            let taken = piece.rows.iter().flat_map(|(_, row)| taken_keys(catalog, piece.table, row));
            self.filling.add(&in_order(taken.collect()))?;
            // Not before: what the store has refused is not there.
            self.missing.remove(&number);
        }
        Ok(())
    }

    /// The whole state. `header`: what the certificate says of it.
    ///
    /// # Errors
    /// [`PieceError::Incomplete`] and [`PieceError::Store`].
    pub fn finish(self, header: CheckpointHeader) -> Result<Checkpoint, PieceError> {
        match self.missing.len() {
            0 => Ok(Checkpoint { header, state: self.filling.finish()?, live: self.live }),
            missing => Err(PieceError::Incomplete(missing)),
        }
    }
}
