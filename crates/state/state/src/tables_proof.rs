//! Proofs of whole tables, made from the tree over a state.

use crate::{KeptState, StateNode, StoreError};
use proofs::{Behind, TableGroups, TablesProof};
use types::{CheckpointCertificate, Table, TableId};

impl KeptState {
    /// Proves all rows of these tables, in any order; those that are not there are left out.
    ///
    /// # Errors
    /// Rows cannot be read.
    pub fn prove_tables(
        &self,
        tables: &[TableId],
        certificate: CheckpointCertificate,
    ) -> Result<TablesProof, StoreError> {
        let tree = self.tree();
        let mut proved = Vec::with_capacity(tables.len());
        for (place, node) in tree.nodes().iter().enumerate() {
            let StateNode::Table(definition) = node else { continue };
            if !tables.contains(&definition.id) {
                continue;
            }
            let behind = tree.nodes()[place + 1..].iter();
            let groups = behind.take_while(|node| node.table() == definition.id).count();
            proved.push(TableGroups {
                definition: Table::clone(definition),
                place: place as u64,
                groups: groups as u64,
                behind: self.behind(place + 1 + groups)?,
            });
        }
        Ok(TablesProof {
            tables: proved,
            leaves: tree.leaves().to_vec(),
            catalog: tree.catalog(),
            requests: tree.requests(),
            certificate,
            handovers: Vec::new(),
        })
    }

    /// What stands at this place of the tree.
    fn behind(&self, node: usize) -> Result<Behind, StoreError> {
        let tree = self.tree();
        match tree.nodes().get(node) {
            None => Ok(Behind::Nothing),
            Some(StateNode::Table(table)) => Ok(Behind::Table(Table::clone(table))),
            Some(StateNode::Group { table, .. }) => {
                let rows = tree.rows(self.snapshot().as_ref(), node)?;
                let damaged =
                    || StoreError::damaged("the tree of the state", "one of its groups has no ranges");
                let ranges = tree.ranges(node, &rows).ok_or_else(damaged)?;
                let (first, content) = ranges.content();
                Ok(Behind::Group { table: *table, first, content })
            }
        }
    }
}
