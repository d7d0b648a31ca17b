//! A state in pieces, as a node hands it over to one that comes late ([`crate::StateAssembly`]).

use crate::group_ranges::GroupRanges;
use crate::tree::requests_root;
use crate::{LiveContent, LiveRequest, Snapshot, StateNode, StateTree, StoreError};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, merkle_root};
use proofs::state::{TreeShape, state_root};
use types::{Catalog, ClientId, Key, Row, TableId, TransactionId};

/// Everything of a state but its rows, and what each piece of them must hash to.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct StateOutline {
    /// Tables and procedures.
    pub catalog: Catalog,
    /// The ids that may not come again, by expiry height and then in the order of the ledger.
    pub requests: Vec<OutlinedRequest>,
    /// Leaves of the tree over tables and groups, in order. Its shape follows from the charters in the catalog.
    pub leaves: Vec<Digest>,
}

/// A live id: [`LiveRequest`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct OutlinedRequest {
    client: ClientId,
    id: TransactionId,
    height: u64,
    index: u32,
    expires_at: u64,
}

/// The rows of one group.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct StatePiece {
    /// Their table.
    pub table: TableId,
    /// The rows, by key.
    pub rows: Vec<(Key, Row)>,
}

impl From<LiveRequest> for OutlinedRequest {
    fn from(LiveRequest { client, id, height, index, expires_at }: LiveRequest) -> OutlinedRequest {
        OutlinedRequest { client, id, height, index, expires_at }
    }
}

impl From<OutlinedRequest> for LiveRequest {
    fn from(OutlinedRequest { client, id, height, index, expires_at }: OutlinedRequest) -> LiveRequest {
        LiveRequest { client, id, height, index, expires_at }
    }
}

impl StateOutline {
    /// The outline of a state. `live`: its live ids.
    pub fn new(tree: &StateTree, snapshot: &dyn Snapshot, live: &LiveContent) -> StateOutline {
        StateOutline {
            catalog: Catalog::clone(snapshot.catalog()),
            requests: live.iter().map(OutlinedRequest::from).collect(),
            leaves: tree.leaves().to_vec(),
        }
    }

    /// The root of the state. `live`: its live ids.
    pub(crate) fn root(&self, live: &LiveContent) -> Digest {
        state_root(&merkle_root(&self.leaves), &self.catalog.digest(), &requests_root(live))
    }
}

impl StatePiece {
    /// The rows of node `number` of a tree; nothing where that is no group.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn new(
        tree: &StateTree,
        snapshot: &dyn Snapshot,
        number: usize,
    ) -> Result<Option<StatePiece>, StoreError> {
        let Some(StateNode::Group { table, .. }) = tree.nodes().get(number) else { return Ok(None) };
        Ok(Some(StatePiece { table: *table, rows: tree.rows(snapshot, number)? }))
    }

    pub(crate) fn leaf(&self, shape: TreeShape) -> Digest {
        GroupRanges::new(shape, self.table, &self.rows).leaf()
    }
}
