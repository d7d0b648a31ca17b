use crate::{
    AfterImage, CheckpointHeader, CheckpointProgress, KeptState, LiveContent, LiveRequest, LiveRequests,
    Simulate, Snapshot, StateTree, StoreError, Version,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use proofs::state::TreeShape;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use types::{Catalog, TableId};

/// Where the rows of one ledger's state are kept.
///
/// One thread writes, any number read snapshots, all through a shared reference. Whoever works with a store knows nothing of how
/// it keeps rows: it is held as `Arc<dyn Store>`, its snapshots as `Arc<dyn Snapshot>`. `conformance` has what every store
/// must do as tests.
///
/// **A store may fail, and failing is never an outcome.** After an error of [`Store::apply`] the state is what nobody knows:
/// the node stops, and its successor makes the state again from what is on the disk.
pub trait Store: Send + Sync {
    /// The newest version.
    fn version(&self) -> Version;

    /// Tables and procedures at the newest version.
    fn catalog(&self) -> Arc<Catalog>;

    /// Digest of [`Store::catalog`], computed once per change.
    fn catalog_digest(&self) -> Digest;

    /// How many rows `table` has at the newest version.
    fn rows(&self, table: TableId) -> u64;

    /// The newest version, to be read for as long as the snapshot is held.
    fn snapshot(&self) -> Arc<dyn Snapshot>;

    /// The state at `version`, where it is still there: the newest version, the one before it, and those that some snapshot
    /// holds.
    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>>;

    /// These transactions run soon. A store whose rows are on the disk reads beside everything else what they will touch, as far
    /// as that is known before they run, so that nobody waits for one row after the other. Nothing but times depends on that.
    fn prefetch(&self, transactions: &[Arc<dyn Simulate>]) {
        let _ = transactions;
    }

    /// Makes `version` the newest one: the after-images of one batch, by table and key, one per row; with `catalog` the
    /// tables and procedures from now on. Rows of tables that are no longer in the catalog go. Entries of indexes follow from
    /// the rows. Snapshots that others take see all of it or nothing. Uses rayon's current pool; the result does not depend
    /// on it.
    ///
    /// # Errors
    /// Something cannot be read or written.
    ///
    /// # Panics
    /// Where `version` is not above the newest version or `changes` are not in order: mistakes of the caller, who made both.
    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError>;

    /// A block has ended whose batches were all applied. A store that outlives the process may come back here, and keeps what
    /// belongs to the state beside its rows.
    ///
    /// # Errors
    /// Something cannot be written.
    fn end_block(&self, end: BlockEnd) -> Result<(), StoreError> {
        let _ = end;
        Ok(())
    }

    /// Makes what was applied survive the end of the process, where the store has files of its own. Gives the height of the last
    /// block that it would come back behind; `None`: it does not come back.
    ///
    /// # Errors
    /// Something cannot be written.
    fn durable_point(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// The state at a checkpoint with its tree; [`Store::end_block`] has announced it, and `snapshot` are its rows. A store that
    /// keeps the tree up hashes what has changed since the checkpoint before. From now on a store that outlives the process can
    /// come back at this checkpoint, until [`Stores::keep_checkpoints`] lets it go. Uses rayon's current pool; one thread at a
    /// time. Nothing where the store is being closed.
    ///
    /// # Errors
    /// Rows cannot be read, or what is kept cannot be written.
    fn keep_checkpoint(
        &self,
        header: &CheckpointHeader,
        snapshot: Arc<dyn Snapshot>,
        live: LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        let tree = StateTree::new(snapshot.as_ref(), &live, shape)?;
        Ok(Some(KeptState::new(*header, snapshot, live, tree)))
    }

    /// What it has and what it has done.
    fn statistics(&self) -> StoreStatistics {
        StoreStatistics::default()
    }
}

/// The end of a block, and what of the state is not in rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockEnd {
    /// Where the state stands, and what nodes say of it.
    pub point: ResumePoint,
    /// The ids that the block has admitted, in its order.
    pub admitted: Vec<LiveRequest>,
    /// Whoever executes blocks can go on here knowing nothing of the blocks before.
    pub is_resumable: bool,
    /// Every node makes a checkpoint of this state.
    pub is_checkpoint: bool,
    /// Whoever executes blocks wants to be able to go on here, also where little has changed; only where that is possible.
    pub is_due: bool,
}

/// Where whoever executes blocks can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct ResumePoint {
    /// The state behind a block.
    pub header: CheckpointHeader,
    /// How far it is to the next checkpoint.
    pub progress: CheckpointProgress,
}

/// What a store has and has done since it was made or opened. What it does not count is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreStatistics {
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of its files.
    pub file_bytes: u64,
    /// Bytes of what blocks have changed, with keys, as they stand in files: rows, and the ids that are admitted.
    pub changed_bytes: u64,
    /// Bytes that were written to files, with those of merging.
    pub written_bytes: u64,
    /// Rows that were found in the cache.
    pub cache_hits: u64,
    /// Rows that were not.
    pub cache_misses: u64,
    /// Durable points.
    pub durable_points: u64,
    /// The height of the newest one.
    pub durable_height: u64,
    /// How long ago that was written.
    pub durable_age: Option<Duration>,
    /// How long batches have waited for the disk.
    pub waited: Duration,
    /// The disk is full: nothing is written before there is room.
    pub waits_for_room: bool,
}

/// Makes stores. Which kind a node has is chosen where it is given one of these, and nowhere else.
pub trait Stores: Send + Sync {
    /// Begins a store whose first version is `version`: its rows are still to be added.
    ///
    /// # Errors
    /// Something cannot be written.
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError>;

    /// The store that was made or taken up last, while somebody has it; `None` where that is not known.
    fn newest(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// Where states that an earlier process has left here can be taken up, the newest first.
    ///
    /// # Errors
    /// Something cannot be read.
    fn left(&self) -> Result<Vec<ResumePoint>, StoreError> {
        Ok(Vec::new())
    }

    /// Takes a state up that was left ([`Stores::left`]) behind the block of this height. What came behind that block is gone
    /// then.
    ///
    /// # Errors
    /// Something cannot be read or written.
    fn reopen(&self, height: u64) -> Result<Option<Reopened>, StoreError> {
        let _ = height;
        Ok(None)
    }

    /// The newest store that was begun or taken up is the right one: all others that were left may go.
    ///
    /// # Errors
    /// They cannot be removed.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The state at a checkpoint that a store has kept, in an earlier process or this one, with its tree; `None`: there is none.
    ///
    /// # Errors
    /// It cannot be read, or its tree not be kept.
    fn kept_checkpoint(&self, height: u64, shape: TreeShape) -> Result<Option<KeptState>, StoreError> {
        let _ = (height, shape);
        Ok(None)
    }

    /// Of the checkpoints up to the newest one of these only these are needed.
    ///
    /// # Errors
    /// Others cannot be removed.
    fn keep_checkpoints(&self, heights: &[u64]) -> Result<(), StoreError> {
        let _ = heights;
        Ok(())
    }

    /// Blocks above this height are taken back: there are no checkpoints of them.
    ///
    /// # Errors
    /// They cannot be removed.
    fn remove_checkpoints_behind(&self, height: u64) -> Result<(), StoreError> {
        let _ = height;
        Ok(())
    }

    /// Reads the files of states again and compares them with their checksums. `rest` hears after every piece how many bytes were
    /// read, and says whether to go on.
    ///
    /// # Errors
    /// The first file that is damaged, or cannot be read. States that have it are not taken up again.
    fn check_files(&self, rest: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<(), StoreError> {
        let _ = rest;
        Ok(())
    }

    /// Blocks up to this height are in the ledger for good, and none above. A store does not come back above it.
    fn recorded(&self, height: u64) {
        let _ = height;
    }

    /// No more blocks are recorded before [`Stores::recorded`] is called again: nobody waits for that.
    fn recording_ends(&self) {}

    /// A store without rows, at [`Version::GENESIS`].
    ///
    /// # Errors
    /// As [`Stores::begin`].
    fn create(&self, catalog: Arc<Catalog>) -> Result<Arc<dyn Store>, StoreError> {
        self.begin(Version::GENESIS, catalog)?.finish()
    }
}

/// A state that was left and is taken up again.
pub struct Reopened {
    /// Where.
    pub point: ResumePoint,
    /// The tables.
    pub state: Arc<dyn Store>,
    /// The transaction ids that are live.
    pub live: LiveRequests,
}

/// A store that gets the rows of its first version; nobody reads it yet.
pub trait Filling: Send {
    /// Adds rows that were not there, by table and key, in as many parts as there are and in any order of parts. Entries of
    /// indexes follow from them.
    ///
    /// # Errors
    /// Something cannot be written.
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError>;

    /// The store with these rows.
    ///
    /// # Errors
    /// As [`Filling::add`].
    fn finish(self: Box<Self>) -> Result<Arc<dyn Store>, StoreError>;
}
