//! Scans: rows in memory and rows of the files, in one order.

use crate::files::{Bytes, Interval};
use crate::layout::{behind_table, primary_key, row_key, row_of, table_key};
use crate::view::View;
use state::{KeyRange, StoreError};
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow};
use types::{Key, Row, TableId};

/// Visits the rows of an interval in key order (backwards if `reverse`), until `visit` breaks.
pub(crate) fn scan(
    view: &View,
    table: TableId,
    range: &KeyRange,
    reverse: bool,
    visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let (folder, version) = (view.files.folder(), view.version);
    let layers = std::iter::once(&view.newest).chain(&view.writing);
    let mut layers: Vec<_> =
        layers.map(|rows| rows.scan(version, table, range, reverse).peekable()).collect();
    let mut files = view
        .files
        .range(bytes_of(table, range), reverse)
        .map(|item| -> Result<(Key, Bytes), StoreError> {
            let (key, value) = item?;
            let key = primary_key(&key)
                .ok_or_else(|| StoreError::damaged(folder.display(), "a key of it is that of no row"))?;
            Ok((key, value))
        })
        .peekable();
    loop {
        let on_disk = match files.peek() {
            Some(Err(error)) => return Err(error.clone()),
            Some(Ok((key, _))) => Some(key),
            None => None,
        };
        let keys = layers.iter_mut().filter_map(|rows| rows.peek()).map(|(key, _)| key).chain(on_disk);
        let Some(key) = (if reverse { keys.max() } else { keys.min() }).cloned() else { return Ok(()) };
        // Of each place, so that all go on behind this key; the first that knows it has the newest value.
        let mut known = None;
        for rows in &mut layers {
            known = known.or(take(rows, &key));
        }
        let bytes = match files.next_if(|item| item.as_ref().is_ok_and(|(other, _)| *other == key)) {
            Some(Ok((_, bytes))) => Some(bytes),
            _ => None,
        };
        let row = match (known, bytes) {
            (Some(known), _) => known,
            (None, Some(bytes)) => Some(row_of(&bytes, folder)?),
            (None, None) => None,
        };
        if let Some(row) = row
            && visit(&key, &row).is_break()
        {
            return Ok(());
        }
    }
}

/// What a place has of this key, if that comes next.
fn take<I: Iterator<Item = (Key, Option<Row>)>>(rows: &mut Peekable<I>, key: &Key) -> Option<Option<Row>> {
    rows.next_if(|(other, _)| other == key).map(|(_, known)| known)
}

/// The same interval in the files.
pub(crate) fn bytes_of(table: TableId, range: &KeyRange) -> Interval {
    let bound = |bound: &Bound<Key>, open: Bound<Vec<u8>>| match bound {
        Bound::Included(key) => Bound::Included(row_key(table, key)),
        Bound::Excluded(key) => Bound::Excluded(row_key(table, key)),
        Bound::Unbounded => open,
    };
    let (first, last) = (Bound::Included(table_key(table)), Bound::Excluded(behind_table(table)));
    (bound(&range.start, first), bound(&range.end, last))
}

/// All rows of a table in the files.
pub(crate) fn whole_table(table: TableId) -> Interval {
    bytes_of(table, &KeyRange::ALL)
}
