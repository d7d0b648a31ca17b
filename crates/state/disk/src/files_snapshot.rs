//! A state as it stands in the files at one moment, with nothing newer in front of it.

use crate::cache::RowCache;
use crate::files::{FilesAt, Interval};
use crate::layout::{
    ADMITTED, AdmittedRecord, CATALOG, META, Meta, meta_of, number_of, primary_key, row_key, row_of, value_of,
};
use crate::merged::bytes_of;
use state::{KeyRange, LiveRequest, LiveRequests, Snapshot, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// The rows of one durable point.
pub(crate) struct FilesSnapshot {
    files: Arc<FilesAt>,
    catalog: Arc<Catalog>,
    /// Rows that were read before, and the epoch there that begins with these files.
    cache: Option<(Arc<RowCache>, u64)>,
}

impl FilesSnapshot {
    /// `catalog`: the one of that moment.
    pub(crate) fn of(files: Arc<FilesAt>, catalog: Arc<Catalog>) -> Arc<dyn Snapshot> {
        Arc::new(FilesSnapshot { files, catalog, cache: None })
    }

    /// The same for the store that has written them: rows that it reads often are in memory.
    pub(crate) fn with_cache(
        files: Arc<FilesAt>,
        catalog: Arc<Catalog>,
        cache: (Arc<RowCache>, u64),
    ) -> Arc<dyn Snapshot> {
        Arc::new(FilesSnapshot { files, catalog, cache: Some(cache) })
    }
}

impl Snapshot for FilesSnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        match &self.cache {
            Some((cache, epoch)) => cache.get(*epoch, table, key, || read_row(&self.files, table, key)),
            None => Ok(read_row(&self.files, table, key)?.0),
        }
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let folder = self.files.folder();
        for item in self.files.range(bytes_of(table, range), reverse) {
            let (key, value) = item?;
            let key = primary_key(&key)
                .ok_or_else(|| StoreError::damaged(folder.display(), "a key of it is that of no row"))?;
            if visit(&key, &row_of(&value, folder)?).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn scan_many(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        visit: &mut dyn FnMut(usize, Key, Row),
    ) -> Result<(), StoreError> {
        let folder = self.files.folder();
        let intervals: Vec<Interval> = ranges.iter().map(|range| bytes_of(table, range)).collect();
        self.files.intervals(&intervals, &mut |number, key, value| {
            let key = primary_key(key)
                .ok_or_else(|| StoreError::damaged(folder.display(), "a key of it is that of no row"))?;
            visit(number, key, row_of(value, folder)?);
            Ok(())
        })
    }
}

/// The row with this primary key, and how many bytes its values have.
pub(crate) fn read_row(
    files: &FilesAt,
    table: TableId,
    key: &Key,
) -> Result<(Option<Row>, usize), StoreError> {
    let found = files.get(&row_key(table, key))?;
    let bytes = found.as_ref().map_or(0, |bytes| bytes.len());
    Ok((found.map(|bytes| row_of(&bytes, files.folder())).transpose()?, bytes))
}

/// What the rows are; `None`: nothing was ever written.
pub(crate) fn read_meta(files: &FilesAt) -> Result<Option<Meta>, StoreError> {
    files.get(META)?.map(|bytes| meta_of(&bytes, files.folder())).transpose()
}

/// Tables and procedures.
pub(crate) fn read_catalog(files: &FilesAt) -> Result<Arc<Catalog>, StoreError> {
    let folder = files.folder();
    let bytes = files.get(CATALOG)?;
    let bytes = bytes.ok_or_else(|| StoreError::damaged(folder.display(), "its catalog is missing"))?;
    value_of(&bytes, "the catalog", folder).map(Arc::new)
}

/// Heights whose ids are in the files, with the last height at which one of them is live.
pub(crate) type LastLive = Vec<(u64, u64)>;

/// The ids that are live behind the block of this height.
pub(crate) fn read_live(files: &FilesAt, height: u64) -> Result<(LiveRequests, LastLive), StoreError> {
    let folder = files.folder();
    let (mut found, mut last_live): (Vec<LiveRequest>, LastLive) = (Vec::new(), Vec::new());
    for item in files.kind(ADMITTED) {
        let (key, value) = item?;
        let record: AdmittedRecord = value_of(&value, "ids that a block has admitted", folder)?;
        let of = number_of(&key).unwrap_or(0);
        let damaged =
            || StoreError::damaged(folder.display(), "ids that a block has admitted are of no client");
        let requests = record.requests(of).ok_or_else(damaged)?;
        let last = requests.iter().map(|request| request.expires_at).max().unwrap_or(0);
        last_live.push((of, last));
        found.extend(requests.into_iter().filter(|request| request.expires_at >= height));
    }
    found.sort_unstable_by_key(|request| (request.expires_at, request.height, request.index));
    let live = LiveRequests::restored(height, &found);
    let live =
        live.map_err(|what| StoreError::damaged(folder.display(), format_args!("its live ids: {what}")))?;
    Ok((live, last_live))
}
