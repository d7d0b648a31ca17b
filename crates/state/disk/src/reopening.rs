//! Taking up a state that was left: that of the newest durable point, or of a checkpoint that is kept.

use crate::core::{Announced, Written, WrittenRows};
use crate::files::{Files, FilesAt};
use crate::files_snapshot::{LastLive, read_meta};
use crate::layout::{CHANGED, TREE, TreeRecord, number_of, value_of};
use state::{ResumePoint, StoreError, Version};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the rows of these files are the end of a block.
pub(crate) fn point_of(files: &Arc<Files>) -> Result<Option<ResumePoint>, StoreError> {
    Ok(read_meta(&files.now())?.and_then(|meta| meta.point))
}

/// What is in the files beside rows. `last_live`: of the ids there.
pub(crate) fn read_written(now: &FilesAt, last_live: LastLive) -> Result<Written, StoreError> {
    let mut written = Written { admitted: last_live.into_iter().collect(), ..Written::default() };
    for item in now.kind(CHANGED) {
        let (key, _) = item?;
        *written.lists.entry(number_of(&key).unwrap_or(0)).or_default() += 1;
    }
    let tree = now.get(TREE)?;
    let tree = tree.map(|bytes| value_of::<TreeRecord>(&bytes, "which tree it has", now.folder()));
    written.tree = tree.transpose()?;
    Ok(written)
}

/// The same where the tree is to be brought up to these rows.
pub(crate) fn read_announced(
    now: &Arc<FilesAt>,
    last_live: LastLive,
    point: ResumePoint,
) -> Result<Written, StoreError> {
    let height = point.header.height;
    let rows = WrittenRows { files: now.clone(), epoch: 0 };
    let announced = Announced { version: Version::after_block(height), point, rows: Some(rows) };
    Ok(Written { announced: BTreeMap::from([(height, announced)]), ..read_written(now, last_live)? })
}
