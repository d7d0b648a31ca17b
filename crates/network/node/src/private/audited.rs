//! What a member's folder holds of schemas, for whoever checks it: its parts are read as they are, and what they do is executed again
//! beside a ledger that is.

use super::block::BlockOfParts;
use super::executor::{Executed, SchemaExecutor};
use super::part_store::PartStore;
use crate::NodeError;
use engine::VerifiedBlock;
use memory::Memory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Catalog, Charters, KnownVersions, Part, Receipt, TransactionId};

/// The parts in a node's folder. Nothing is locked, and nothing written.
pub struct FolderParts {
    path: PathBuf,
    store: PartStore,
    schemas: BTreeSet<String>,
    damaged: Vec<u64>,
    torn: Option<u64>,
}

impl FolderParts {
    /// Those of a node's folder; nothing where it has none.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub fn open(folder: &Path) -> Result<Option<FolderParts>, NodeError> {
        let path = folder.join("schemas");
        let read = PartStore::read_only(&path)?;
        Ok(read.map(|(store, found)| FolderParts {
            path: path.join("parts.log"),
            store,
            schemas: found.schemas,
            damaged: found.damaged,
            torn: found.torn,
        }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the schemas of which there are parts.
    pub fn schemas(&self) -> &BTreeSet<String> {
        &self.schemas
    }

    /// Where records begin that are not what was written.
    pub fn damaged(&self) -> &[u64] {
        &self.damaged
    }

    /// Where a record begins that the file ends in: a crash has torn it, or it is being written.
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    /// The part of a transaction in a schema.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub fn part(&self, transaction: &TransactionId, schema: &str) -> Result<Option<Part>, NodeError> {
        self.store.get(transaction, schema)
    }
}

/// How far a schema was executed again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayedSchema {
    /// Its name.
    pub name: String,
    /// Height of the last block.
    pub height: u64,
    /// Certificates in the ledger that say the same.
    pub certificates: u64,
    /// The transaction whose part is missing, so that nothing behind was executed.
    pub lacks: Option<TransactionId>,
}

/// Executes the schemas of which a folder has parts.
pub struct SchemaReplay {
    parts: Arc<FolderParts>,
    /// By number.
    schemas: BTreeMap<u32, Replayed>,
}

struct Replayed {
    executor: SchemaExecutor,
    certificates: u64,
    lacks: Option<TransactionId>,
}

impl SchemaReplay {
    /// Nothing is executed yet.
    pub fn new(parts: Arc<FolderParts>) -> SchemaReplay {
        SchemaReplay { parts, schemas: BTreeMap::new() }
    }

    /// Executes what the ledger's next block has for the schemas. `catalog`: the ledger's behind it.
    ///
    /// # Errors
    /// A schema cannot be executed, or comes to something else than a quorum of its members has attested.
    pub fn follow(
        &mut self,
        (block, receipts): (&VerifiedBlock, &[Receipt]),
        catalog: &Catalog,
        charters: &Charters,
    ) -> Result<(), String> {
        let height = block.header.height;
        let charter_at = |height| charters.at(height).charter.clone();
        for (name, schema) in &catalog.schemas {
            let Some(members) = schema.members.as_ref().filter(|_| self.parts.schemas.contains(name)) else {
                continue;
            };
            if let Some(known) = self.schemas.get_mut(&members.number) {
                known.executor.change_members(members);
                continue;
            }
            let (charter, known_versions) = (&*charter_at(members.since), KnownVersions::default());
            let of = Executed { name, members, charter, known_versions, faults: None };
            let executor =
                SchemaExecutor::begin(of, &Memory).map_err(|error| format!("schema \"{name}\": {error}"))?;
            self.schemas.insert(members.number, Replayed { executor, certificates: 0, lacks: None });
        }
        let of_parts = BlockOfParts::of(block, receipts);
        for replayed in self.schemas.values_mut() {
            if replayed.executor.height() + 1 != height {
                continue;
            }
            match replayed.executor.execute(&of_parts, &self.parts.store, &charter_at) {
                Ok(Ok(executed)) => replayed.certificates += u64::from(executed.certified().is_some()),
                Ok(Err(missing)) => replayed.lacks = Some(missing.id),
                Err(error) => return Err(format!("schema \"{}\": {error}", replayed.executor.name())),
            }
        }
        Ok(())
    }

    /// How far each is.
    pub fn schemas(&self) -> Vec<ReplayedSchema> {
        let schemas = self.schemas.values().map(|replayed| ReplayedSchema {
            name: replayed.executor.name().to_string(),
            height: replayed.executor.height(),
            certificates: replayed.certificates,
            lacks: replayed.lacks,
        });
        schemas.collect()
    }
}
