use crate::indexes::{all_entry_changes, indexes_made, new_entries, tables_dropped};
use crate::{AfterImage, KeyRange, RowId, Snapshot, StoreError, entry_changes};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// What an [`Overlay`] has in front of its snapshot.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Rows and entries of indexes.
    rows: BTreeMap<RowId, Option<Row>>,
    /// Where it is another one than the snapshot's.
    catalog: Option<Arc<Catalog>>,
}

impl Changes {
    /// Nothing but these rows, one change per row, and not the entries of their indexes. Quick where they come by table
    /// and key.
    pub fn of_rows(changes: impl IntoIterator<Item = AfterImage>) -> Changes {
        let rows = changes.into_iter().map(|change| (change.row, change.value)).collect();
        Changes { rows, catalog: None }
    }

    /// Puts a row, and not the entries of its indexes.
    pub fn put(&mut self, row: RowId, value: Row) {
        self.rows.insert(row, Some(value));
    }

    /// Forgets all changes of a table's rows.
    pub fn forget_table(&mut self, table: TableId) {
        self.rows.retain(|row, _| row.table != table);
    }

    /// The catalog that they leave, where they change it.
    pub fn catalog(&self) -> Option<&Arc<Catalog>> {
        self.catalog.as_ref()
    }

    /// Changed rows and entries.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether they change no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The changed rows and entries of indexes, by table and key.
    pub fn into_images(self) -> impl Iterator<Item = AfterImage> {
        self.rows.into_iter().map(|(row, value)| AfterImage { row, value })
    }
}

/// A snapshot with changes in front of it: what the next transaction of a serial run sees, what the statement behind a schema
/// change sees, what a batch has come to so far.
///
/// ```text
///  get, scan ──▶ changes ──▶ after-images of a batch, if any ──▶ snapshot
/// ```
pub struct Overlay<'a> {
    base: Base<'a>,
    changes: Cow<'a, Changes>,
}

/// What stands behind the changes.
enum Base<'a> {
    Snapshot(&'a dyn Snapshot),
    Batch(BatchApplied<'a>),
}

impl<'a> Overlay<'a> {
    /// Nothing changed yet.
    pub fn new(base: &'a dyn Snapshot) -> Overlay<'a> {
        Overlay::with_changes(base, Changes::default())
    }

    /// With these changes.
    pub fn with_changes(base: &'a dyn Snapshot, changes: Changes) -> Overlay<'a> {
        Overlay { base: Base::Snapshot(base), changes: Cow::Owned(changes) }
    }

    /// With these changes, which are lent: they are copied only if more come.
    pub fn lent(base: &'a dyn Snapshot, changes: &'a Changes) -> Overlay<'a> {
        Overlay { base: Base::Snapshot(base), changes: Cow::Borrowed(changes) }
    }

    /// Behind the after-images of a batch, by table and key, one per row, which are lent too. They are no changes of this
    /// overlay.
    ///
    /// # Errors
    /// Rows cannot be read whose entries in indexes change.
    pub fn behind_batch(base: &'a dyn Snapshot, batch: &'a [AfterImage]) -> Result<Overlay<'a>, StoreError> {
        Ok(Overlay { base: Base::Batch(BatchApplied::new(base, batch)?), changes: Cow::default() })
    }

    fn base(&self) -> &dyn Snapshot {
        match &self.base {
            Base::Snapshot(base) => *base,
            Base::Batch(base) => base,
        }
    }

    /// Has these tables and indexes from now on; rows of tables that are gone go, and new indexes get their entries.
    ///
    /// # Errors
    /// Rows cannot be read.
    pub fn change_catalog(&mut self, catalog: Arc<Catalog>) -> Result<(), StoreError> {
        let before = self.catalog().clone();
        let changes = self.changes.to_mut();
        changes.catalog = Some(catalog.clone());
        let dropped = tables_dropped(&before, &catalog);
        changes.rows.retain(|row, _| !dropped.contains(&row.table));
        for (table, index) in indexes_made(&before, &catalog) {
            let entries = new_entries(index, |visit| self.scan(table, &KeyRange::ALL, false, visit))?;
            self.changes.to_mut().rows.extend(entries.into_iter().map(|entry| (entry.row, entry.value)));
        }
        Ok(())
    }

    /// What is in front of the snapshot.
    pub fn changes(self) -> Changes {
        self.changes.into_owned()
    }

    /// The row has this value from now on.
    ///
    /// # Errors
    /// The row cannot be read whose entries in indexes change.
    pub fn set(&mut self, row: RowId, value: Option<Row>) -> Result<(), StoreError> {
        if !self.catalog().indexes_of(row.table).is_empty() {
            let before = self.current(&row)?;
            let catalog = self.catalog().clone();
            for entry in entry_changes(&catalog, &row, before.as_ref(), value.as_ref()) {
                self.changes.to_mut().rows.insert(entry.row, entry.value);
            }
        }
        self.changes.to_mut().rows.insert(row, value);
        Ok(())
    }

    /// The row as it stands.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn current(&self, row: &RowId) -> Result<Option<Row>, StoreError> {
        match self.changes.rows.get(row) {
            Some(value) => Ok(value.clone()),
            None => self.base().get(row.table, &row.key),
        }
    }

    /// The changed rows, by table and key, without the entries of indexes.
    pub fn into_changes(self) -> Vec<AfterImage> {
        let mut changes = self.changes.into_owned();
        let first = RowId { table: TableId::FIRST_INDEX, key: Key::default() };
        drop(changes.rows.split_off(&first));
        changes.into_images().collect()
    }

    /// The changed rows and entries of indexes, by table and key.
    pub fn into_all_changes(self) -> Vec<AfterImage> {
        self.changes.into_owned().into_images().collect()
    }
}

impl Snapshot for Overlay<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.changes.catalog.as_ref().unwrap_or_else(|| self.base().catalog())
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        // An overlay that nothing has changed is asked as often as one that has.
        if !self.changes.rows.is_empty()
            && let Some(value) = self.changes.rows.get(&RowId { table, key: key.clone() })
        {
            return Ok(value.clone());
        }
        self.base().get(table, key)
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
        let changed = self.changes.rows.range(range.of_table(table));
        scan_changed(self.base(), table, range, reverse, changed, visit)
    }
}

/// A snapshot with the after-images of one batch in front of it.
struct BatchApplied<'a> {
    base: &'a dyn Snapshot,
    changes: &'a [AfterImage],
    /// Of indexes, by table and key.
    entries: Vec<AfterImage>,
}

impl<'a> BatchApplied<'a> {
    fn new(base: &'a dyn Snapshot, changes: &'a [AfterImage]) -> Result<BatchApplied<'a>, StoreError> {
        debug_assert!(changes.is_sorted_by(|a, b| a.row < b.row), "after-images stand by table and key");
        let entries = all_entry_changes(base.catalog(), changes, |table, key| base.get(table, key))?;
        Ok(BatchApplied { base, changes, entries })
    }

    fn changes_of(&self, table: TableId) -> &[AfterImage] {
        if table.is_index() { &self.entries } else { self.changes }
    }
}

impl Snapshot for BatchApplied<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.base.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        let changes = self.changes_of(table);
        match changes.binary_search_by(|change| (change.row.table, &change.row.key).cmp(&(table, key))) {
            Ok(found) => Ok(changes[found].value.clone()),
            Err(_) => self.base.get(table, key),
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
        let (start, end) = range.of_table(table);
        let changes = self.changes_of(table);
        let first = changes.partition_point(|change| match &start {
            Bound::Included(row) => change.row < *row,
            Bound::Excluded(row) => change.row <= *row,
            Bound::Unbounded => false,
        });
        let count = changes[first..].partition_point(|change| match &end {
            Bound::Included(row) => change.row <= *row,
            Bound::Excluded(row) => change.row < *row,
            Bound::Unbounded => true,
        });
        let changed = changes[first..first + count].iter().map(|change| (&change.row, &change.value));
        scan_changed(self.base, table, range, reverse, changed, visit)
    }
}

/// Scans a snapshot with changed rows, ascending, in front of it.
fn scan_changed<'c>(
    base: &dyn Snapshot,
    table: TableId,
    range: &KeyRange,
    reverse: bool,
    mut changed: impl DoubleEndedIterator<Item = (&'c RowId, &'c Option<Row>)>,
    visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut next = move || if reverse { changed.next_back() } else { changed.next() };
    let mut pending = next();
    let mut stopped = false;
    base.scan(table, range, reverse, &mut |key, row| {
        while let Some((id, value)) = pending {
            let before = if reverse { id.key > *key } else { id.key < *key };
            if !before {
                break;
            }
            pending = next();
            if let Some(value) = value
                && visit(&id.key, value).is_break()
            {
                stopped = true;
                return ControlFlow::Break(());
            }
        }
        let flow = match pending {
            Some((id, value)) if id.key == *key => {
                pending = next();
                value.as_ref().map_or(ControlFlow::Continue(()), |value| visit(key, value))
            }
            _ => visit(key, row),
        };
        stopped |= flow.is_break();
        flow
    })?;
    while let Some((id, value)) = pending.filter(|_| !stopped) {
        pending = next();
        if let Some(value) = value {
            stopped = visit(&id.key, value).is_break();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlainState;
    use proptest::prelude::*;
    use types::Value;

    fn row(value: u8) -> Row {
        Arc::from([Value::Integer(value.into())])
    }

    fn bound(kind: u8, key: u8) -> Bound<Key> {
        match kind % 3 {
            0 => Bound::Included(Key::from_bytes(&[key])),
            1 => Bound::Excluded(Key::from_bytes(&[key])),
            _ => Bound::Unbounded,
        }
    }

    proptest! {
        #[test]
        fn an_overlay_shows_what_the_changed_state_would(
            base in prop::collection::vec((0u8..16, 0u8..9), 0..12),
            changes in prop::collection::vec((0u8..16, prop::option::of(10u8..19)), 0..12),
            start in (0u8..3, 0u8..16), end in (0u8..3, 0u8..16), reverse: bool, limit in 0usize..8,
        ) {
            let mut plain = PlainState::default();
            for (table, key, value) in base.iter().map(|(k, v)| (1, *k, *v)).chain([(0, 3, 1), (2, 3, 1)]) {
                let row_id = RowId { table: TableId(table), key: Key::from_bytes(&[key]) };
                plain.apply(&AfterImage { row: row_id, value: Some(row(value)) });
            }
            let before = plain.clone();
            let mut overlay = Overlay::new(&before);
            for (key, value) in &changes {
                let row_id = RowId { table: TableId(1), key: Key::from_bytes(&[*key]) };
                plain.apply(&AfterImage { row: row_id.clone(), value: value.map(row) });
                overlay.set(row_id, value.map(row)).unwrap();
            }
            let range = KeyRange { start: bound(start.0, start.1), end: bound(end.0, end.1) };
            let collect = |snapshot: &dyn Snapshot| {
                let mut rows = Vec::new();
                snapshot.scan(TableId(1), &range, reverse, &mut |key, row| {
                    rows.push((key.clone(), row.clone()));
                    if rows.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }).unwrap();
                rows
            };
            prop_assert_eq!(collect(&overlay), collect(&plain));
            for key in 0..16 {
                let key = Key::from_bytes(&[key]);
                prop_assert_eq!(overlay.get(TableId(1), &key).unwrap(), plain.get(TableId(1), &key));
            }
            let images = overlay.into_changes();
            let changed = Overlay::behind_batch(&before, &images).unwrap();
            prop_assert_eq!(collect(&changed), collect(&plain));
            for key in 0..16 {
                let key = Key::from_bytes(&[key]);
                prop_assert_eq!(changed.get(TableId(1), &key).unwrap(), plain.get(TableId(1), &key));
            }
        }
    }
}
