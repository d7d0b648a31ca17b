//! The tree over a checkpoint, kept up in the files.

use crate::core::{Announced, Core, NewestTree, WrittenRows};
use crate::files::{Files, FilesAt, Run, WriteError};
use crate::files_snapshot::{FilesSnapshot, read_catalog, read_live};
use crate::layout::{
    CHANGED, ChangedList, TREE, TreeRecord, all_groups, group_key, group_of, number_of, value_of,
};
use crate::reopening::read_announced;
use proofs::state::TreeShape;
use state::{
    GroupChange, GroupRecord, GroupRecords, Groups, KeptState, LiveContent, RangeRows, ResumePoint, RowId,
    Snapshot, StateTree, StoreError, Version, bring_up,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Bound;
use std::sync::Arc;
use types::{Key, TableId, encode};

/// The records of groups as the files have them.
struct InFiles<'a>(&'a FilesAt);

impl GroupRecords for InFiles<'_> {
    fn group(&self, first: &RowId) -> Result<GroupRecord, StoreError> {
        let folder = self.0.folder();
        match self.0.get(&group_key(first))? {
            Some(bytes) => value_of(&bytes, "a group of the tree", folder),
            None => Err(StoreError::damaged(
                folder.display(),
                "a group of the tree is missing; the tree is made again at the next start",
            )),
        }
    }
}

/// Shows rows that are written.
pub(crate) type SnapshotOf<'a> = dyn Fn(&WrittenRows) -> Arc<dyn Snapshot> + Sync + 'a;

impl Core {
    /// Brings the tree up to a checkpoint that was announced; nothing where its rows are not written any more. `snapshot_of` gives
    /// the rows that these files have.
    pub(crate) fn seal(
        &self,
        height: u64,
        snapshot_of: &SnapshotOf<'_>,
        live: &LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        let Some((version, point, rows)) = self.wait_for_announced(height)? else {
            return Ok(None);
        };
        let (snapshot, files) = (snapshot_of(&rows), rows.files);
        let (known, before) = self.tree_before(&files, shape)?;
        let mut newest = NewestTree { of: TreeRecord::new(shape, version), ..before };
        if known != Some(newest.of) {
            match self.write_tree(&files, version, snapshot.as_ref(), known, &mut newest) {
                Err(WriteError::TakenOver) => return Ok(None),
                done => done.map_err(WriteError::into_store_error)?,
            }
        }
        let mut written = self.written.lock();
        // Those below were left out.
        written.announced.retain(|announced, _| *announced > height);
        written.tree = Some(newest.of);
        drop(written);
        let leaves = newest.groups.iter().map(|(id, head)| (id.clone(), *head));
        let tree = StateTree::of_groups(snapshot.catalog(), live, shape, leaves);
        *self.tree.lock() = Some(newest);
        Ok(Some(KeptState::new(point.header, snapshot, live.clone(), tree)))
    }

    fn wait_for_announced(
        &self,
        height: u64,
    ) -> Result<Option<(Version, ResumePoint, WrittenRows)>, StoreError> {
        let mut written = self.written.lock();
        loop {
            match written.announced.get(&height) {
                None => return Ok(None),
                Some(Announced { version, point, rows: Some(rows) }) => {
                    return Ok(Some((*version, *point, rows.clone())));
                }
                Some(_) => {}
            }
            self.check()?;
            if self.is_closing() {
                return Ok(None);
            }
            self.changed.wait(&mut written);
        }
    }

    /// Which tree there is, and what is known of it; nothing where it has another shape.
    fn tree_before(
        &self,
        files: &Arc<FilesAt>,
        shape: TreeShape,
    ) -> Result<(Option<TreeRecord>, NewestTree), StoreError> {
        let known = self.written.lock().tree.filter(|tree| tree.shape == shape);
        // Nobody has it who fails meanwhile.
        let kept = self.tree.lock().take().filter(|kept| Some(kept.of) == known);
        let tree = match (kept, known) {
            (Some(kept), _) => kept,
            (None, Some(of)) => {
                NewestTree { of, groups: read_groups(files, shape)?, rows: self.no_range_rows() }
            }
            (None, None) => {
                let of = TreeRecord::new(shape, Version::GENESIS);
                NewestTree { of, groups: Groups::new(), rows: self.no_range_rows() }
            }
        };
        Ok((known, tree))
    }

    fn write_tree(
        &self,
        files: &Arc<FilesAt>,
        version: Version,
        snapshot: &dyn Snapshot,
        known: Option<TreeRecord>,
        newest: &mut NewestTree,
    ) -> Result<(), WriteError> {
        let NewestTree { of: tree, groups, rows } = newest;
        let (before, mut run) = (self.files.now(), self.files.begin()?);
        let shape = tree.shape;
        run.put((TREE.to_vec(), Some(encode(tree))))?;
        // Groups of another shape go.
        let mut stale: BTreeSet<RowId> = match known {
            Some(_) => BTreeSet::new(),
            None => read_groups(&before, shape)?.into_keys().collect(),
        };
        let mut failed = None;
        let records: (&dyn GroupRecords, &RangeRows) = (&InFiles(&before), rows);
        let mut changed: Box<dyn Iterator<Item = Result<RowId, StoreError>>> = match known {
            Some(tree) => Box::new(changed_rows(files, tree.version(), version)?),
            None => Box::new(every_table(snapshot).into_iter().map(Ok)),
        };
        let mut write = |change: GroupChange| put_group(&mut run, &mut stale, change, &mut failed);
        let brought = bring_up(shape, groups, snapshot, records, &mut *changed, &mut write);
        if let Some(failed) = failed {
            return Err(failed);
        }
        brought?;
        for first in stale {
            run.put((group_key(&first), None))?;
        }
        run.finish(self.owner)
    }
}

/// A checkpoint that was kept, from its folder: its tree is brought up there, if it was not before.
pub(crate) fn kept_state(
    files: Arc<Files>,
    point: ResumePoint,
    shape: TreeShape,
) -> Result<KeptState, StoreError> {
    let (now, height) = (files.now(), point.header.height);
    let (catalog, (live, last_live)) = (read_catalog(&now)?, read_live(&now, height)?);
    let folder = files.folder().to_path_buf();
    let core = Core::new(files, Arc::default(), read_announced(&now, last_live, point)?, 0);
    let in_files = |rows: &WrittenRows| FilesSnapshot::of(rows.files.clone(), catalog.clone());
    let kept = core.seal(height, &in_files, &live.content(), shape)?;
    kept.ok_or_else(|| StoreError::read(folder.display(), "somebody else writes there; ask again"))
}

fn put_group(
    run: &mut Run<'_>,
    stale: &mut BTreeSet<RowId>,
    (first, group): GroupChange,
    failed: &mut Option<WriteError>,
) -> Result<(), StoreError> {
    let behind = stale.split_off(&first);
    let gone = std::mem::replace(stale, behind).into_iter().map(|first| (group_key(&first), None));
    stale.remove(&first);
    let item = (group_key(&first), group.map(|group| encode(&group)));
    for item in gone.chain([item]) {
        if let Err(error) = run.put(item) {
            let told = match &error {
                WriteError::NoRoom(failure) | WriteError::Failed(failure) => failure.clone(),
                WriteError::TakenOver => StoreError::write("a store", "another one has taken its place"),
            };
            *failed = Some(error);
            return Err(told);
        }
    }
    Ok(())
}

/// All groups of a tree, as the files have them.
fn read_groups(files: &FilesAt, shape: TreeShape) -> Result<Groups, StoreError> {
    let (first, last) = all_groups();
    let found = files.range((Bound::Included(first), Bound::Excluded(last)), false);
    found
        .map(|item| {
            let (key, value) = item?;
            let damaged = || StoreError::damaged(files.folder().display(), "a key of it is that of no group");
            let id = group_of(&key).ok_or_else(damaged)?;
            let record: GroupRecord = value_of(&value, "a group of the tree", files.folder())?;
            let head = record.head(shape, id.table).ok_or_else(damaged)?;
            Ok((id, head))
        })
        .collect()
}

/// One row of every table, which need not be there: where there are no groups yet, all rows are read.
fn every_table(snapshot: &dyn Snapshot) -> BTreeSet<RowId> {
    let row = |table: TableId| RowId { table, key: Key::default() };
    let catalog = snapshot.catalog();
    let tables = catalog.tables.values().map(|table| table.id);
    tables.chain(catalog.kept_besides_tables().map(|(table, _)| table)).map(row).collect()
}

/// The rows that have changed behind one version and up to another, ascending, each once.
pub(crate) fn changed_rows(
    files: &Arc<FilesAt>,
    behind: Version,
    up_to: Version,
) -> Result<impl Iterator<Item = Result<RowId, StoreError>> + use<>, StoreError> {
    let mut lists: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for item in files.kind(CHANGED) {
        let (key, _) = item?;
        let version = number_of(&key).unwrap_or(0);
        if version > behind.number() && version <= up_to.number() {
            lists.entry(version).or_default().push(key.to_vec());
        }
    }
    let mut merging = Merging { heap: BinaryHeap::new(), lists: Vec::new(), last: None };
    for parts in lists.into_values() {
        merging.lists.push(ListRows {
            files: files.clone(),
            parts: parts.into_iter(),
            rows: Vec::new().into_iter(),
        });
        merging.refill(merging.lists.len() - 1)?;
    }
    Ok(merging)
}

/// The rows of one list, part by part.
struct ListRows {
    files: Arc<FilesAt>,
    parts: std::vec::IntoIter<Vec<u8>>,
    rows: std::vec::IntoIter<RowId>,
}

impl ListRows {
    fn next(&mut self) -> Result<Option<RowId>, StoreError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let Some(part) = self.parts.next() else { return Ok(None) };
            let folder = self.files.folder();
            let bytes = self.files.get(&part)?;
            let bytes =
                bytes.ok_or_else(|| StoreError::damaged(folder.display(), "a list of changes is missing"))?;
            let list: ChangedList = value_of(&bytes, "a list of changes", folder)?;
            let rows = list.rows.into_iter();
            let rows = rows.flat_map(|(table, keys)| keys.into_iter().map(move |key| RowId { table, key }));
            self.rows = rows.collect::<Vec<_>>().into_iter();
        }
    }
}

/// Lists merged into one, by table and key.
struct Merging {
    heap: BinaryHeap<Reverse<(RowId, usize)>>,
    lists: Vec<ListRows>,
    last: Option<RowId>,
}

impl Merging {
    fn refill(&mut self, list: usize) -> Result<(), StoreError> {
        if let Some(row) = self.lists[list].next()? {
            self.heap.push(Reverse((row, list)));
        }
        Ok(())
    }
}

impl Iterator for Merging {
    type Item = Result<RowId, StoreError>;

    fn next(&mut self) -> Option<Result<RowId, StoreError>> {
        loop {
            let Reverse((row, list)) = self.heap.pop()?;
            if let Err(error) = self.refill(list) {
                return Some(Err(error));
            }
            if self.last.as_ref() != Some(&row) {
                self.last = Some(row.clone());
                return Some(Ok(row));
            }
        }
    }
}
