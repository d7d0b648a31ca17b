//! The log of one Delta table: what is in it, and one commit per checkpoint.

use crate::LakehouseError;
use crate::error::words;
use crate::layout::Layout;
use deltalake_core::DeltaTable;
use deltalake_core::kernel::Action;
use deltalake_core::kernel::transaction::CommitBuilder;
use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::table::state::DeltaTableState;
use object_store::prefix::PrefixStore;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use targets::Target;
use types::Table;

/// The property of a table that names the ledger.
const LEDGER: &str = "entente.ledger";
/// Under this name each commit says the height of its checkpoint (`txn` in the log).
const APPLICATION: &str = "entente";
/// The log is summed up after so many versions, so that readers read less.
const SUMMED_VERSIONS: u64 = 50;

/// The log of a table.
pub(crate) struct DeltaLog<'t> {
    target: &'t Target,
    folder: String,
    log: LogStoreRef,
    /// `None`: there is no table yet.
    state: Option<DeltaTableState>,
}

/// A data file in the log.
#[derive(Clone, Debug)]
pub(crate) struct LoggedFile {
    pub(crate) path: String,
    pub(crate) bytes: i64,
    /// Somebody has taken rows out of it without writing it again.
    pub(crate) has_deletions: bool,
}

/// A data file that was written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenFile {
    pub(crate) path: String,
    pub(crate) bytes: usize,
    pub(crate) rows: u64,
}

/// What a commit changes.
pub(crate) struct Change<'c> {
    pub(crate) table: &'c Table,
    pub(crate) layout: &'c Layout,
    pub(crate) ledger: String,
    pub(crate) height: u64,
    pub(crate) state_root: String,
    pub(crate) removed: Vec<LoggedFile>,
    pub(crate) added: Vec<WrittenFile>,
}

/// Where the table in this folder has its log.
fn log_store(target: &Target, folder: &str) -> LogStoreRef {
    let mut url = target.url().clone();
    let path = format!("{}/{folder}/", url.path().trim_end_matches('/'));
    url.set_path(&path);
    let prefixed = PrefixStore::new(target.store().clone(), target.path(folder));
    default_logstore(Arc::new(prefixed), target.store().clone(), &url, &StorageConfig::default())
}

impl<'t> DeltaLog<'t> {
    /// The table in this folder, at its newest version or another one.
    pub(crate) async fn open(
        target: &'t Target,
        folder: &str,
        version: Option<u64>,
    ) -> Result<DeltaLog<'t>, LakehouseError> {
        let log = log_store(target, folder);
        let mut opened = DeltaLog { target, folder: folder.to_string(), log, state: None };
        let exists = opened.log.is_delta_table_location().await;
        if exists.map_err(|error| opened.failed(&words(&error)))? {
            let state = DeltaTableState::try_new(opened.log.as_ref(), version).await;
            opened.state = Some(state.map_err(|error| opened.failed(&words(&error)))?);
        }
        Ok(opened)
    }

    fn failed(&self, what: &dyn Display) -> LakehouseError {
        LakehouseError::Log {
            folder: self.folder.clone(),
            target: self.target.address(),
            what: what.to_string(),
        }
    }

    fn foreign(&self, what: String) -> LakehouseError {
        LakehouseError::NotAnExport { target: self.target.address(), path: self.folder.clone(), what }
    }

    /// The version that was read; `None`: there is no table yet.
    pub(crate) fn version(&self) -> Option<u64> {
        self.state.as_ref().map(DeltaTableState::version)
    }

    /// Checks that an export of this ledger has written the table.
    pub(crate) fn check_ledger(&self, ledger: &str) -> Result<(), LakehouseError> {
        let Some(state) = &self.state else { return Ok(()) };
        let metadata = json(state.metadata());
        match metadata["configuration"][LEDGER].as_str() {
            Some(found) if found == ledger => Ok(()),
            Some(found) => Err(self.foreign(format!("it is a table of the ledger {found}"))),
            None => Err(self.foreign(format!("it has no property {LEDGER}"))),
        }
    }

    /// Its data files.
    pub(crate) fn files(&self) -> Vec<LoggedFile> {
        let Some(state) = &self.state else { return Vec::new() };
        let logged = state.log_data();
        let files = logged.iter().map(|file| LoggedFile {
            path: file.path().into_owned(),
            bytes: file.size(),
            has_deletions: file.deletion_vector_descriptor().is_some(),
        });
        files.collect()
    }

    /// Whether its columns are those of a layout.
    pub(crate) fn has_layout(&self, layout: &Layout) -> bool {
        let Some(state) = &self.state else { return false };
        let metadata = json(state.metadata());
        let schema = metadata["schemaString"].as_str().and_then(|text| serde_json::from_str(text).ok());
        let plain = metadata["partitionColumns"].as_array().is_none_or(Vec::is_empty)
            && metadata["configuration"]["delta.columnMapping.mode"].is_null();
        plain && schema == Some(layout.delta_schema())
    }

    /// Whether its protocol is what a layout needs.
    fn has_protocol(&self, layout: &Layout) -> bool {
        let Some(state) = &self.state else { return false };
        let (found, needed) = (json(state.protocol()), protocol(layout));
        ["minReaderVersion", "minWriterVersion"].iter().all(|field| found[field] == needed[field])
    }

    /// Commits a change as one version; readers see all of it or nothing. Gives the version.
    pub(crate) async fn commit(&mut self, change: &Change<'_>) -> Result<u64, LakehouseError> {
        let actions = self.actions(change).map_err(|error| self.failed(&error))?;
        let said = HashMap::from([
            (LEDGER.to_string(), json!(change.ledger)),
            ("entente.height".to_string(), json!(change.height)),
            ("entente.stateRoot".to_string(), json!(change.state_root)),
        ]);
        let operation =
            DeltaOperation::Write { mode: SaveMode::Overwrite, partition_by: None, predicate: None };
        let commit = CommitBuilder::default()
            .with_actions(actions)
            .with_app_metadata(said)
            // Nobody else writes here: a version that is not ours is no reason to try again.
            .with_max_retries(0);
        let reference = self.state.as_ref().map(|state| state as _);
        let committed = commit.build(reference, self.log.clone(), operation).await;
        let committed = committed.map_err(|error| self.failed(&words(&error)))?;
        let version = committed.version();
        self.target.flush(&format!("{}/_delta_log/{version:020}.json", self.folder))?;
        self.state = Some(committed.snapshot());
        if version > 0 && version.is_multiple_of(SUMMED_VERSIONS) {
            self.sum_up(version).await;
        }
        Ok(version)
    }

    /// The version stands without it.
    async fn sum_up(&self, version: u64) {
        let mut table = DeltaTable::new(self.log.clone());
        let loaded = table.load().await;
        let summed = match loaded {
            Ok(()) => deltalake_core::checkpoints::create_checkpoint(&table, None).await,
            failed => failed,
        };
        if let Err(error) = summed {
            let (folder, error) = (&self.folder, words(&error));
            tracing::warn!(
                folder,
                version,
                error,
                "the log of a table cannot be summed up; it stays as it is"
            );
        }
    }

    fn actions(&self, change: &Change<'_>) -> Result<Vec<Action>, serde_json::Error> {
        let now = milliseconds();
        let mut actions = Vec::new();
        if !self.has_protocol(change.layout) {
            actions.push(json!({"protocol": protocol(change.layout)}));
        }
        if !self.has_layout(change.layout) {
            actions.push(json!({"metaData": self.metadata(change, now)}));
        }
        actions.push(json!({
            "txn": {"appId": APPLICATION, "version": change.height, "lastUpdated": now}
        }));
        actions.extend(change.removed.iter().map(|file| {
            json!({"remove": {
                "path": file.path, "dataChange": true, "deletionTimestamp": now,
                "extendedFileMetadata": true, "partitionValues": {}, "size": file.bytes,
            }})
        }));
        actions.extend(change.added.iter().map(|file| {
            let statistics = json!({"numRecords": file.rows}).to_string();
            json!({"add": {
                "path": file.path, "dataChange": true, "modificationTime": now,
                "partitionValues": {}, "size": file.bytes, "stats": statistics,
            }})
        }));
        actions.into_iter().map(serde_json::from_value).collect()
    }

    fn metadata(&self, change: &Change<'_>, now: u64) -> Json {
        let before = self.state.as_ref().map(|state| json(state.metadata())).unwrap_or_default();
        let text = |field: &str| before[field].as_str().map(str::to_string);
        // The same on every attempt for one table of one ledger.
        let name = crypto::sha256(&[
            b"entente export 1\0",
            change.ledger.as_bytes(),
            change.table.name.as_bytes(),
            &now.to_le_bytes(),
        ])
        .to_string();
        let id =
            format!("{}-{}-{}-{}-{}", &name[..8], &name[8..12], &name[12..16], &name[16..20], &name[20..32]);
        json!({
            "id": text("id").unwrap_or(id),
            "name": change.table.name,
            "description": format!("table {} of the ledger {}", change.table.name, change.ledger),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": change.layout.delta_schema().to_string(),
            "partitionColumns": [],
            "createdTime": before["createdTime"].as_i64().unwrap_or(now as i64),
            "configuration": {
                LEDGER: change.ledger,
                // Versions stay readable until somebody says otherwise.
                "delta.enableExpiredLogCleanup": "false",
            },
        })
    }
}

/// The oldest protocol that has what a layout needs, so that as many readers as possible know it.
fn protocol(layout: &Layout) -> Json {
    match layout.has_local_time() {
        false => json!({"minReaderVersion": 1, "minWriterVersion": 2}),
        true => json!({
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"],
        }),
    }
}

fn json(value: &impl serde::Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
