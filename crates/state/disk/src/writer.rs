//! The thread that writes what the newest batches have left, and merges files.

use crate::files::Files;
use crate::layout::{row_bytes, row_key};
use crate::merged::whole_table;
use crate::store::Shared;
use crossbeam_channel::Receiver;
use state::{KeyRange, RowId, StoreError, Version};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use types::{Row, TableId};
use versioned::VersionedRows;

/// What becomes durable at once.
pub(crate) struct DurablePoint {
    pub(crate) version: Version,
    /// What was written since the durable point before.
    pub(crate) rows: Arc<VersionedRows>,
    /// Tables that have gone since then.
    pub(crate) dropped: BTreeSet<TableId>,
}

/// A row as a durable point has changed it, and the bytes of its values.
pub(crate) type Changed = (RowId, Option<Row>, usize);

impl DurablePoint {
    /// Writes it as one run. Gives the rows that it has changed.
    fn write(&self, files: &Arc<Files>) -> Result<Vec<Changed>, StoreError> {
        let (noted, before) = (RefCell::new(Vec::new()), files.now());
        let changed = &noted;
        let tables: BTreeSet<TableId> =
            self.rows.tables().into_iter().chain(self.dropped.iter().copied()).collect();
        let rows = tables.into_iter().flat_map(|table| -> Box<dyn Iterator<Item = Item>> {
            if self.dropped.contains(&table) {
                let gone = before.range(whole_table(table), false);
                return Box::new(gone.map(|item| item.map(|(key, _)| (key.to_vec(), None))));
            }
            Box::new(self.rows.scan(self.version, table, &KeyRange::ALL, false).map(move |(key, row)| {
                let (name, bytes) = (row_key(table, &key), row.as_ref().map(row_bytes));
                let length = bytes.as_ref().map_or(0, Vec::len);
                changed.borrow_mut().push((RowId { table, key }, row, length));
                Ok((name, bytes))
            }))
        });
        files.write(rows)?;
        Ok(noted.into_inner())
    }
}

type Item = Result<(Vec<u8>, Option<Vec<u8>>), StoreError>;

/// Writes one durable point after the other, until nobody asks for one any more or something cannot be written.
pub(crate) fn run(shared: &Shared, points: &Receiver<DurablePoint>) {
    let written =
        catch_unwind(AssertUnwindSafe(|| points.iter().try_for_each(|point| write(shared, &point))));
    // Nobody waits for a thread that has gone.
    let panicked =
        || StoreError::write(shared.files.folder().display(), "the thread that writes has panicked");
    if let Err(failure) = written.unwrap_or_else(|_| Err(panicked())) {
        shared.fail(failure);
    }
}

fn write(shared: &Shared, point: &DurablePoint) -> Result<(), StoreError> {
    let changed = point.write(&shared.files)?;
    shared.is_durable(point, changed);
    shared.files.merge()?;
    shared.read_merged();
    Ok(())
}
