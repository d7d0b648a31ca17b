//! The state at a checkpoint, for others: its tree in memory, its rows where the store has them at that version.

use crate::{
    CheckpointHeader, LiveContent, Snapshot, StateNode, StateOutline, StatePiece, StateTree, StoreError,
};
use proofs::RowProof;
use std::sync::Arc;
use types::{Catalog, CheckpointCertificate, Key, TableId};

/// A state that is kept for proofs of its rows, and for nodes that join. Memory: that of its tree and of its live ids; and what
/// the store needs to show rows as they were.
pub struct KeptState {
    header: CheckpointHeader,
    snapshot: Arc<dyn Snapshot>,
    live: LiveContent,
    tree: StateTree,
}

impl KeptState {
    /// `snapshot`: the rows; `tree`: the one over them and `live`.
    pub fn new(
        header: CheckpointHeader,
        snapshot: Arc<dyn Snapshot>,
        live: LiveContent,
        tree: StateTree,
    ) -> KeptState {
        KeptState { header, snapshot, live, tree }
    }

    /// Where the state stands.
    pub fn header(&self) -> &CheckpointHeader {
        &self.header
    }

    /// Tables and procedures.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.snapshot.catalog()
    }

    /// Its rows.
    pub fn snapshot(&self) -> &Arc<dyn Snapshot> {
        &self.snapshot
    }

    /// The ids that were live.
    pub fn live(&self) -> &LiveContent {
        &self.live
    }

    /// Its tree.
    pub fn tree(&self) -> &StateTree {
        &self.tree
    }

    /// Names a table, for people.
    pub fn table_name(&self, id: TableId) -> String {
        match self.catalog().table(id) {
            Some(table) => format!("table {}", table.name),
            None => format!("table number {}", id.0),
        }
    }

    /// Everything but its rows.
    pub fn outline(&self) -> StateOutline {
        StateOutline::new(&self.tree, self.snapshot.as_ref(), &self.live)
    }

    /// The rows of node `number` of the tree; nothing where that has none.
    ///
    /// # Errors
    /// They cannot be read, or are not those that the tree was made of.
    pub fn piece(&self, number: usize) -> Result<Option<StatePiece>, StoreError> {
        StatePiece::new(&self.tree, self.snapshot.as_ref(), number)
    }

    /// The first node from `number` on, up to `end`, whose rows are not those that the tree was made of.
    ///
    /// # Errors
    /// Rows cannot be read.
    pub fn find_damage(&self, numbers: std::ops::Range<usize>) -> Result<Option<StateNode>, StoreError> {
        for number in numbers {
            if !self.tree.is_made_of(number, &self.tree.read_rows(self.snapshot.as_ref(), number)?) {
                return Ok(self.tree.nodes().get(number).cloned());
            }
        }
        Ok(None)
    }

    /// The proof of the row of `table` under `key`, or that there is none; nothing where there is no such table.
    ///
    /// # Errors
    /// Rows cannot be read, or are not those that the tree was made of.
    pub fn prove(
        &self,
        table: TableId,
        key: &Key,
        certificate: CheckpointCertificate,
    ) -> Result<Option<RowProof>, StoreError> {
        self.tree.prove(self.snapshot.as_ref(), table, key, certificate)
    }
}
