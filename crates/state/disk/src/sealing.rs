//! The tree over a checkpoint, kept up in the files.

use crate::core::{Announced, Core};
use crate::files::{Files, FilesAt, Run, WriteError};
use crate::files_snapshot::{FilesSnapshot, read_catalog, read_live};
use crate::layout::{
    CHANGED, ChangedList, TREE, TreeRecord, all_groups, group_key, group_of, number_of, value_of,
};
use crate::reopening::read_announced;
use proofs::state::TreeShape;
use state::{
    GroupChange, GroupRecord, GroupRecords, Groups, KeptState, LiveContent, ResumePoint, RowId, Snapshot,
    StateTree, StoreError, Version, bring_up,
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
            None => Err(StoreError::read(
                folder.display(),
                "a group of the tree is missing; the tree is made again at the next start",
            )),
        }
    }
}

impl Core {
    /// Brings the tree up to a checkpoint that was announced; nothing where its rows are not written any more. `snapshot_of` gives
    /// the rows that these files have.
    pub(crate) fn seal(
        &self,
        height: u64,
        snapshot_of: &dyn Fn(&Arc<FilesAt>) -> Arc<dyn Snapshot>,
        live: &LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        let Some((version, point, files)) = self.wait_for_announced(height)? else { return Ok(None) };
        let snapshot = snapshot_of(&files);
        let (known, mut groups) = self.groups_before(&files, shape)?;
        let tree = TreeRecord::new(shape, version);
        if known != Some(tree) {
            match self.write_tree(&files, (version, tree), snapshot.as_ref(), known, &mut groups) {
                Err(WriteError::TakenOver) => return Ok(None),
                done => done.map_err(WriteError::into_store_error)?,
            }
        }
        let mut written = self.written.lock();
        // Those below were left out.
        written.announced.retain(|announced, _| *announced > height);
        written.tree = Some(tree);
        drop(written);
        let leaves = groups.iter().map(|(id, head)| (id.clone(), *head));
        let root = StateTree::of_groups(snapshot.catalog(), live, shape, leaves);
        *self.groups.lock() = Some((tree, groups));
        Ok(Some(KeptState::new(point.header, snapshot, live.clone(), root)))
    }

    fn wait_for_announced(
        &self,
        height: u64,
    ) -> Result<Option<(Version, ResumePoint, Arc<FilesAt>)>, StoreError> {
        let mut written = self.written.lock();
        loop {
            match written.announced.get(&height) {
                None => return Ok(None),
                Some(Announced { version, point, files: Some(files) }) => {
                    return Ok(Some((*version, *point, files.clone())));
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

    /// Which tree there is, and its groups; nothing where it has another shape.
    fn groups_before(
        &self,
        files: &Arc<FilesAt>,
        shape: TreeShape,
    ) -> Result<(Option<TreeRecord>, Groups), StoreError> {
        let known = self.written.lock().tree.filter(|tree| tree.shape == shape);
        let Some(known) = known else { return Ok((None, Groups::new())) };
        match self.groups.lock().take() {
            Some((of, groups)) if of == known => Ok((Some(known), groups)),
            _ => Ok((Some(known), read_groups(files, shape)?)),
        }
    }

    fn write_tree(
        &self,
        files: &Arc<FilesAt>,
        (version, tree): (Version, TreeRecord),
        snapshot: &dyn Snapshot,
        known: Option<TreeRecord>,
        groups: &mut Groups,
    ) -> Result<(), WriteError> {
        let (before, mut run) = (self.files.now(), self.files.begin()?);
        let shape = tree.shape;
        run.put((TREE.to_vec(), Some(encode(&tree))))?;
        // Groups of another shape go.
        let mut stale: BTreeSet<RowId> = match known {
            Some(_) => BTreeSet::new(),
            None => read_groups(&before, shape)?.into_keys().collect(),
        };
        let mut failed = None;
        let records = InFiles(&before);
        let mut changed: Box<dyn Iterator<Item = Result<RowId, StoreError>>> = match known {
            Some(tree) => Box::new(changed_rows(files, tree.version(), version)?),
            None => Box::new(every_table(snapshot).into_iter().map(Ok)),
        };
        let mut write = |change: GroupChange| put_group(&mut run, &mut stale, change, &mut failed);
        let brought = bring_up(shape, groups, snapshot, &records, &mut *changed, &mut write);
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
    let core = Core::new(files, Arc::default(), read_announced(&now, last_live, point)?);
    let in_files = |files: &Arc<FilesAt>| FilesSnapshot::of(files.clone(), catalog.clone());
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
            let damaged = || StoreError::read(files.folder().display(), "a key of it is that of no group");
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
    tables.chain(catalog.counters().map(|counter| counter.table)).map(row).collect()
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
                bytes.ok_or_else(|| StoreError::read(folder.display(), "a list of changes is missing"))?;
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
