//! Tables that an organisation keeps in a database of its own, too: what the node gives to whoever writes them there.
//!
//! ```text
//!  execute ─▶ OwnChanges ─▶ record: OwnDatabase::record ─▶ ledger::Outbox          net changes, before the ledger has the block
//!  attest ──▶ certified height ─┐                               │
//!                               └──▶ Agreed ◀───────────────────┘ ─▶ KeepOwnDatabase::follow, a thread of its own
//! ```
//!
//! The database sees what a quorum has certified, and nothing else. It may be slow or away: the node never waits for it.

use crate::NodeError;
use crate::published::Published;
use crypto::{Digest, PublicKey};
use gateway::OwnDatabaseStatus;
use ledger::{BlockNetChanges, NetChange, Outbox};
use serde::{Deserialize, Serialize};
use state::{AfterImage, Snapshot, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use types::{Catalog, Charter, Table};

/// Bytes that waiting changes may have on the disk where `node.toml` says nothing else, in units of 1,048,576.
const OUTBOX_MEGABYTES: u64 = 1024;
/// How long the end of a node waits for a statement of the database.
const STOP_MAX: Duration = Duration::from_secs(5);

/// `[database]` in `node.toml`: where the organisation's own copy of tables stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnDatabaseConfig {
    /// `postgres://user@host:port/database`, `mariadb://…` or `mysql://…`, without the password.
    pub url: String,
    /// A file with the password alone, from the node's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The tables, by name; those of a schema by `schema.*`. Where scripts are executed there it has all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Seconds from the begin of one comparison of all rows to that of the next; 60 where nothing is said, 0: rows are compared
    /// at the start only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_seconds: Option<u64>,
    /// Rows that the database had before it was a copy, and that differ, are replaced by the ledger's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_ledger_rows: bool,
    /// Changes that wait for the database may have so much on the disk, in units of 1,048,576 bytes; 1024 where nothing is said.
    /// A database that was away for longer is compared row by row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_megabytes: Option<u64>,
    /// Where scripts are executed there: connections that run them, 16 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
}

/// Keeps tables of the ledger in a database of the organisation's own.
pub trait KeepOwnDatabase: Send + Sync {
    /// Those of a catalog's tables that it keeps, in the order of their names.
    fn tables(&self, catalog: &Catalog) -> Vec<Arc<Table>>;

    /// Brings them up, again and again, until [`Agreed::is_over`].
    fn follow(&self, agreed: Agreed);

    /// How far it is, and what it has found.
    fn status(&self) -> OwnDatabaseStatus;
}

/// What a block did, as far as it is known when the block was executed.
pub(crate) struct OwnChanges {
    before: Arc<dyn Snapshot>,
    after: Arc<dyn Snapshot>,
    images: Vec<AfterImage>,
}

impl OwnChanges {
    pub(crate) fn new(
        before: Arc<dyn Snapshot>,
        after: Arc<dyn Snapshot>,
        images: Vec<AfterImage>,
    ) -> OwnChanges {
        OwnChanges { before, after, images }
    }

    /// One change per row of the tables that are kept.
    fn net(self, height: u64, keeper: &dyn KeepOwnDatabase) -> Result<BlockNetChanges, StoreError> {
        let OwnChanges { before, after, images } = self;
        let tables = keeper.tables(after.catalog());
        let reshaped =
            !Arc::ptr_eq(before.catalog(), after.catalog()) && keeper.tables(before.catalog()) != tables;
        let kept = |image: &AfterImage| tables.iter().any(|table| table.id == image.row.table);
        let (rows, values): (Vec<_>, Vec<_>) =
            images.into_iter().filter(kept).map(|image| (image.row, image.value)).unzip();
        let old = before.get_many(&rows)?;
        let changes = rows.into_iter().zip(values).zip(old).filter(|((_, new), old)| new != old);
        let changes = changes.map(|((row, new), old)| NetChange { table: row.table, key: row.key, old, new });
        Ok(BlockNetChanges { height, reshaped, changes: changes.collect() })
    }
}

/// The organisation's own database, as the node's stages see it.
pub(crate) struct OwnDatabase {
    keeper: Arc<dyn KeepOwnDatabase>,
    outbox: Arc<Outbox>,
}

impl OwnDatabase {
    /// Opens what waits for the database. `newest`: the ledger's newest height.
    pub(crate) fn open(
        folder: &Path,
        charter: &Charter,
        newest: u64,
        config: Option<&OwnDatabaseConfig>,
        keeper: Option<&Arc<dyn KeepOwnDatabase>>,
    ) -> Result<Option<Arc<OwnDatabase>>, NodeError> {
        let Some(keeper) = keeper else { return Ok(None) };
        let megabytes = config.and_then(|config| config.waiting_megabytes).unwrap_or(OUTBOX_MEGABYTES);
        let bytes = megabytes.saturating_mul(1024 * 1024);
        let outbox = Outbox::open(folder.join("outbox"), charter.ledger(), newest, bytes)?;
        Ok(Some(Arc::new(OwnDatabase { keeper: keeper.clone(), outbox: Arc::new(outbox) })))
    }

    /// Keeps what a block did until the database has it. Before the ledger has the block, so that whatever the ledger has is here.
    pub(crate) fn record(&self, height: u64, changes: OwnChanges) -> Result<(), NodeError> {
        if height <= self.outbox.tip() {
            return Ok(());
        }
        let block = changes.net(height, &*self.keeper)?;
        Ok(self.outbox.append(&block)?)
    }

    /// Forgets what blocks above `height` did: they will be executed again.
    pub(crate) fn take_back(&self, height: u64) -> Result<(), NodeError> {
        Ok(self.outbox.take_back(height)?)
    }

    pub(crate) fn status(&self) -> OwnDatabaseStatus {
        self.keeper.status()
    }

    /// Starts the thread that brings the database up.
    pub(crate) fn start(
        &self,
        whose: (Digest, PublicKey),
        published: Arc<Published>,
        attests: bool,
    ) -> Result<Following, NodeError> {
        let over = Arc::new(AtomicBool::new(false));
        let (ledger, node) = whose;
        let (outbox, stop) = (self.outbox.clone(), over.clone());
        let agreed = Agreed { ledger, node, outbox, published, attests, over: stop };
        let keeper = self.keeper.clone();
        let thread = std::thread::Builder::new()
            .name("own database".to_string())
            .spawn(move || keeper.follow(agreed))
            .map_err(|error| NodeError::Thread { name: "own database", error })?;
        Ok(Following { over, thread })
    }
}

/// The thread that brings the database up.
pub(crate) struct Following {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Following {
    /// Ends it: what the database does not have waits in the outbox. Where the database does not answer nobody waits for it.
    pub(crate) fn stop(self) {
        self.over.store(true, Ordering::Release);
        let start = Instant::now();
        while !self.thread.is_finished() {
            if start.elapsed() > STOP_MAX {
                tracing::warn!(
                    "the organisation's own database does not answer; its connection ends with the node"
                );
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.thread.join().is_err() {
            tracing::error!("what writes to the organisation's own database broke an invariant");
        }
    }
}

/// What a quorum has agreed on, for whoever keeps a copy of it.
pub struct Agreed {
    ledger: Digest,
    node: PublicKey,
    outbox: Arc<Outbox>,
    published: Arc<Published>,
    attests: bool,
    over: Arc<AtomicBool>,
}

impl Agreed {
    /// The ledger.
    pub fn ledger(&self) -> Digest {
        self.ledger
    }

    /// Whose node this is: two nodes must not write to one database.
    pub fn node(&self) -> PublicKey {
        self.node
    }

    /// The node stops.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The newest height that is recorded here and certified by a quorum.
    pub fn height(&self) -> u64 {
        let (recorded, _) = self.published.newest();
        match self.attests {
            true => recorded.min(self.published.certified().height()),
            false => recorded,
        }
    }

    /// The state digest behind the block at `height`, if that is one of the last thousand.
    pub fn digest(&self, height: u64) -> Option<Digest> {
        let recent = self.published.recent();
        recent.iter().find(|(known, _)| *known == height).map(|(_, digest)| *digest)
    }

    /// The state behind the block at `height`, where it is kept: that of the newest heights is.
    pub fn state(&self, height: u64) -> Option<Arc<dyn Snapshot>> {
        self.published.state_at(height)
    }

    /// What blocks behind `height` did, up to `last` and about so many bytes. `None`: not all of that is known any more.
    ///
    /// # Errors
    /// Errors of the node's disk, for people.
    pub fn behind(
        &self,
        height: u64,
        last: u64,
        bytes_max: u64,
    ) -> Result<Option<Vec<BlockNetChanges>>, String> {
        self.outbox.behind(height, last, bytes_max).map_err(|error| error.to_string())
    }

    /// Whether all of that is known up to `last`, row by row, and no table has another shape since.
    pub fn tells_all(&self, height: u64, last: u64) -> bool {
        self.outbox.tells_all(height, last)
    }

    /// The database has everything up to here.
    pub fn taken(&self, height: u64) {
        if let Err(error) = self.outbox.taken(height) {
            tracing::warn!(%error, "changes that the organisation's own database has are still kept");
        }
    }
}
