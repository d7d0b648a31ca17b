//! What of schemas outlives the process: up to where it is kept, and where the next process takes it up (decision 0043).

use super::block::BlockOfParts;
use super::ended::EndedParts;
use super::executor::{Executed, SchemaExecutor};
use super::opened_store::{CameBefore, OpenedStore};
use super::schema_stores::SchemaFiles;
use super::schemas::{PrivateSchemas, Schema};
use crate::NodeError;
use state::Stores;
use std::fmt::Display;
use std::sync::Arc;
use types::{Receipt, SchemaMembers};

/// Of its own outcomes of an earlier process a member says so many again.
const ATTESTED_AGAIN: usize = 1_000;

impl PrivateSchemas {
    /// The ledger has blocks up to this height for good, and none above: rows of schemas may be kept up to there.
    pub(crate) fn recorded(&self, height: u64) {
        for SchemaFiles { opened, stores } in self.files.lock().values() {
            match opened.flush() {
                Ok(true) => stores.recorded(height),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(%error, "what a schema came to cannot be flushed: a node that starts executes more blocks again");
                }
            }
        }
    }

    /// No more blocks are recorded before [`PrivateSchemas::recorded`] is called again.
    pub(crate) fn recording_ends(&self) {
        self.files.lock().values().for_each(|files| files.stores.recording_ends());
    }

    /// A schema where its store stands, at this height or below, or from its beginning.
    pub(super) fn begin(
        &self,
        name: &str,
        members: &Arc<SchemaMembers>,
        height: u64,
        ended: &mut EndedParts,
    ) -> Result<Schema, NodeError> {
        let (charter, known_versions) =
            (self.node.charters.at(members.since), self.node.charters.known_versions());
        let faults = self.node.faults.as_deref();
        let of = Executed { name, members, charter: &charter, known_versions, faults };
        let stores = self.node.stores.of_schema(members.number)?;
        stores.recorded(self.tip());
        let is_distrusted = self.node.stores.is_distrusted(members.number);
        let left = stores.left()?.into_iter().map(|point| point.header.height);
        let mut left = left.filter(|left| *left >= members.since && *left <= height && !is_distrusted);
        let resumed = left.find_map(|left| {
            let resumed = self.resume(of, &*stores, left);
            resumed
                .inspect_err(|why| {
                    tracing::warn!(schema = name, height = left, why, "its state is not taken up")
                })
                .ok()
        });
        let schema = match resumed {
            Some((schema, before)) => {
                let older = before.attested.len().saturating_sub(ATTESTED_AGAIN);
                for outcome in before.attested.into_iter().skip(older) {
                    self.attest(&schema.executor, outcome);
                }
                for Receipt { transaction, height, outcome, .. } in before.ended {
                    ended.note((transaction, schema.executor.name()), (height, outcome));
                }
                schema
            }
            None => {
                let executor = SchemaExecutor::begin(of, &*stores)?;
                let opened =
                    OpenedStore::create((self.node.parts.folder(), &self.node.disk), members.number)?;
                Schema { executor, opened, began: members.since, lacks: None, stopped: None }
            }
        };
        stores.settle()?;
        self.node.stores.trust(members.number);
        let opened = schema.opened.file().clone();
        self.files.lock().insert(members.number, SchemaFiles { opened, stores });
        Ok(schema)
    }

    /// The schema behind a block, as an earlier process has left it, or why it is not to be taken up.
    fn resume(
        &self,
        of: Executed<'_>,
        stores: &dyn Stores,
        height: u64,
    ) -> Result<(Schema, CameBefore), String> {
        let said = |error: &dyn Display| error.to_string();
        let reopened = stores.reopen(height).map_err(|error| said(&error))?;
        let reopened = reopened.ok_or("it is gone")?;
        let place = (self.node.parts.folder(), &self.node.disk);
        let (opened, mut before) =
            OpenedStore::reopen(place, of.members.number, height).map_err(|error| said(&error))?;
        // What was noted last must be the last thing that happened.
        for record in self.node.ledger.blocks_from(before.height.max(of.members.since) + 1) {
            let record = record.map_err(|error| said(&error))?;
            let at = record.block.header.height;
            if at > height {
                break;
            }
            if BlockOfParts::recorded(&record).transactions.iter().any(|ordered| ordered.concerns(of.name)) {
                return Err(format!("what block {at} came to is missing in {}", opened.file().path()));
            }
        }
        let charter_at = |height| self.node.charters.at(height);
        let executor = SchemaExecutor::resume(of, reopened, &mut before, &charter_at)?;
        Ok((Schema { executor, opened, began: height, lacks: None, stopped: None }, before))
    }

    /// The schemas of this organisation, and the block behind which this process has begun to execute each.
    pub(crate) fn began(&self) -> Vec<(String, u64)> {
        let state = self.state.lock();
        let began = state.schemas.values().map(|schema| (schema.executor.name().to_string(), schema.began));
        began.collect()
    }
}
