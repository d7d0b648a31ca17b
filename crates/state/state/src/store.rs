use crate::{AfterImage, Snapshot, StoreError, Version};
use crypto::Digest;
use std::sync::Arc;
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

    /// Makes what was applied survive the end of the process, where the store has files of its own. Gives the version that it
    /// would come back with, which is the newest one or an earlier one; `None`: it comes back from a checkpoint only.
    ///
    /// # Errors
    /// Something cannot be written.
    fn durable_point(&self) -> Result<Option<Version>, StoreError>;
}

/// Makes stores. Which kind a node has is chosen where it is given one of these, and nowhere else.
pub trait Stores: Send + Sync {
    /// Begins a store whose first version is `version`: its rows are still to be added.
    ///
    /// # Errors
    /// Something cannot be written.
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError>;

    /// A store without rows, at [`Version::GENESIS`].
    ///
    /// # Errors
    /// As [`Stores::begin`].
    fn create(&self, catalog: Arc<Catalog>) -> Result<Arc<dyn Store>, StoreError> {
        self.begin(Version::GENESIS, catalog)?.finish()
    }
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
