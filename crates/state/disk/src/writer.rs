//! The threads that write durable points and merge files.

use crate::core::{Core, Written, WrittenRows};
use crate::files::{FilesAt, Item, WriteError};
use crate::layout::{
    ADMITTED, AdmittedRecord, CATALOG, ChangedList, META, checkpoint_folder, list_key, numbered_key,
    row_bytes, row_key,
};
use crate::merged::whole_table;
use crate::points::Point;
use crossbeam_channel::{Receiver, Sender};
use state::{RowId, StoreError, Version};
use std::collections::BTreeSet;
use std::iter::once;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use types::{Catalog, TableId, encode};

/// Bytes of keys in one part of a list of changes.
const LIST_PART_BYTES: usize = 64 << 10;

/// Writes one durable point after the other, until nobody asks for one any more or something cannot be written.
pub(crate) fn write_points(core: &Core, points: &Receiver<Box<Point>>, merge: &Sender<()>) {
    let mut catalog: Option<Arc<Catalog>> = None;
    let written = catch_unwind(AssertUnwindSafe(|| {
        for mut point in points {
            point.changes.put_in_order();
            if let Some(at) = point.meta.point
                && !core.gate.wait_for(at.header.height, || core.is_closing())
            {
                core.close();
                return Ok(());
            }
            if core.is_closing() {
                return Ok(());
            }
            match core.when_there_is_room(|| write(core, &point, catalog.as_ref())) {
                Ok(Some((files, plan))) => {
                    catalog = Some(point.catalog.clone());
                    done(core, *point, &files, plan);
                    // Full where the merger has heard already.
                    let _ = merge.try_send(());
                }
                Ok(None) | Err(WriteError::TakenOver) => return Ok(()),
                Err(WriteError::NoRoom(failure) | WriteError::Failed(failure)) => return Err(failure),
            }
        }
        Ok(())
    }));
    // Nobody waits for a thread that has gone.
    let panicked = || StoreError::write(core.files.folder().display(), "the thread that writes has panicked");
    if let Err(failure) = written.unwrap_or_else(|_| Err(panicked())) {
        core.fail(failure);
    }
}

/// Merges files whenever something was written.
pub(crate) fn merge(core: &Core, due: &Receiver<()>) {
    for () in due {
        match core.files.merge() {
            // What cannot be merged now is merged later.
            Ok(()) | Err(WriteError::NoRoom(_)) => {}
            Err(WriteError::TakenOver) => return,
            Err(WriteError::Failed(failure)) => return core.fail(failure),
        }
        let _written = core.written.lock();
        core.changed.notify_all();
    }
}

/// What changes in a run beside rows.
struct Plan {
    /// Lists of changes that go: version and parts.
    lists_gone: Vec<(u64, u32)>,
    /// The list of changes that comes, in parts.
    list: Vec<ChangedList>,
    /// Heights whose ids have expired.
    expired: Vec<u64>,
}

impl Plan {
    fn new(written: &Written, point: &Point) -> Plan {
        let from = written.lists_from().map_or(u64::MAX, Version::number);
        let gone = written.lists.iter().filter(|(version, _)| **version <= from);
        // Of what this point announces itself nothing has to be remembered.
        let others = written.announced.values().any(|announced| announced.version < point.version);
        let is_wanted = others || written.tree.is_some();
        let height = height_of(point);
        Plan {
            lists_gone: gone.map(|(version, parts)| (*version, *parts)).collect(),
            list: if is_wanted { list_of(point) } else { Vec::new() },
            expired: written.admitted.iter().filter(|(_, last)| **last < height).map(|(at, _)| *at).collect(),
        }
    }

    /// In the order of keys.
    fn items(&self, point: &Point, catalog: Option<&Arc<Catalog>>) -> Vec<Item> {
        let is_known = catalog.is_some_and(|known| Arc::ptr_eq(known, &point.catalog));
        let mut items = Vec::new();
        items.extend((!is_known).then(|| (CATALOG.to_vec(), Some(encode(&*point.catalog)))));
        for (version, parts) in &self.lists_gone {
            items.extend((0..*parts).map(|part| (list_key(Version::of_number(*version), part), None)));
        }
        let list = (0..).zip(&self.list);
        items.extend(list.map(|(part, list)| (list_key(point.version, part), Some(encode(list)))));
        items.extend(self.expired.iter().map(|height| (numbered_key(ADMITTED, *height), None)));
        items.extend(point.admitted.0.iter().map(|(height, admitted)| {
            (numbered_key(ADMITTED, *height), Some(encode(&AdmittedRecord::of(admitted))))
        }));
        items.push((META.to_vec(), Some(encode(&point.meta))));
        items
    }

    fn done(self, written: &mut Written, point: &Point) {
        for (version, _) in self.lists_gone {
            written.lists.remove(&version);
        }
        if !self.list.is_empty() {
            written.lists.insert(point.version.number(), self.list.len() as u32);
        }
        for height in self.expired {
            written.admitted.remove(&height);
        }
        for (height, admitted) in &point.admitted.0 {
            if let Some(last) = admitted.iter().map(|one| one.expires_at).max() {
                written.admitted.insert(*height, last);
            }
        }
    }
}

fn height_of(point: &Point) -> u64 {
    point.meta.point.map_or(point.version.height(), |at| at.header.height)
}

fn write(
    core: &Core,
    point: &Point,
    catalog: Option<&Arc<Catalog>>,
) -> Result<(Arc<FilesAt>, Plan), WriteError> {
    let (before, changed) = (core.files.now(), AtomicU64::new(0));
    let plan = Plan::new(&core.written.lock(), point);
    let records = plan.items(point, catalog);
    let ids = records.iter().filter(|(key, _)| key.first() == Some(&ADMITTED));
    let ids: usize = ids.map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum();
    let records = records.into_iter().map(Ok);
    let files = core.files.write(core.owner, records.chain(row_items(point, &before, &changed)))?;
    core.changed_bytes.fetch_add(changed.into_inner() + ids as u64, Ordering::Relaxed);
    if let (true, Some(at)) = (point.is_checkpoint, point.meta.point) {
        // Before anything else is written.
        let height = at.header.height;
        let free = (1..).map(|number| checkpoint_folder(core.files.beside(), height, number));
        let folder = free.into_iter().find(|folder| !folder.exists()).expect("there are many numbers");
        core.files.copy_to(&folder)?;
    }
    Ok((files, plan))
}

/// What has changed, in parts.
fn list_of(point: &Point) -> Vec<ChangedList> {
    let mut parts = Vec::new();
    let mut list = ChangedList { dropped: point.dropped.iter().copied().collect(), rows: Vec::new() };
    let mut bytes = 0;
    for RowId { table, key } in point.changes.keys(point.version) {
        if point.dropped.contains(&table) {
            continue;
        }
        bytes += key.as_bytes().len() + 4;
        match list.rows.last_mut().filter(|(last, _)| *last == table) {
            Some((_, keys)) => keys.push(key),
            None => list.rows.push((table, vec![key])),
        }
        if bytes >= LIST_PART_BYTES {
            parts.push(std::mem::take(&mut list));
            bytes = 0;
        }
    }
    if list != ChangedList::default() {
        parts.push(list);
    }
    parts
}

/// Rows as they have become, and those of tables that have gone.
fn row_items<'p>(
    point: &'p Point,
    before: &'p Arc<FilesAt>,
    changed: &'p AtomicU64,
) -> impl Iterator<Item = Result<Item, StoreError>> + 'p {
    let gone = |table: TableId| {
        let rows = before.range(whole_table(table), false);
        rows.map(|item| item.map(|(key, _)| (key.to_vec(), None)))
    };
    let mut dropped: BTreeSet<TableId> = point.dropped.clone();
    let rows = point.changes.rows(point.version).map(Some).chain(once(None));
    rows.flat_map(move |next| -> Box<dyn Iterator<Item = Result<Item, StoreError>> + 'p> {
        let (id, row) = match next {
            Some(Ok(next)) => next,
            Some(Err(error)) => return Box::new(once(Err(error))),
            None => {
                let rest = std::mem::take(&mut dropped);
                return Box::new(rest.into_iter().flat_map(gone));
            }
        };
        let behind = dropped.split_off(&id.table);
        let in_front = std::mem::replace(&mut dropped, behind).into_iter().flat_map(gone);
        if point.dropped.contains(&id.table) {
            return Box::new(in_front);
        }
        let (key, value) = (row_key(id.table, &id.key), row.as_ref().map(row_bytes));
        changed.fetch_add((key.len() + value.as_ref().map_or(0, Vec::len)) as u64, Ordering::Relaxed);
        Box::new(in_front.chain(once(Ok((key, value)))))
    })
}

/// A point is written: what is known of the files changes.
fn done(core: &Core, point: Point, files: &Arc<FilesAt>, plan: Plan) {
    plan.done(&mut core.written.lock(), &point);
    let height = point.meta.point.map(|at| at.header.height);
    let epoch = (point.written)(files);
    core.points_written.fetch_add(1, Ordering::Relaxed);
    let mut written = core.written.lock();
    (written.durable, written.durable_since) = (Some((point.version, height)), Some(Instant::now()));
    if let Some(announced) = height.and_then(|height| written.announced.get_mut(&height)) {
        announced.rows = Some(WrittenRows { files: files.clone(), epoch });
    }
    written.waiting -= 1;
    core.changed.notify_all();
}
