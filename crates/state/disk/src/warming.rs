//! Rows that are read into the cache when a store begins, where memory has room for all of them: so it is soon as quick as one
//! that has been there for long.

use crate::cache::{RowCache, row_memory};
use crate::files_snapshot::FilesSnapshot;
use crate::view::View;
use state::{KeyRange, StoreError};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use types::{Key, TableId};

/// Rows that are read at a time.
const PIECE_ROWS: usize = 4_096;

/// A thread that reads all rows.
pub(crate) struct Warming {
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Whether so many rows are likely to have room in a cache of so many bytes.
pub(crate) fn have_room(counts: &BTreeMap<TableId, u64>, file_bytes: u64, cache_bytes: u64) -> bool {
    let rows: u64 = counts.values().sum();
    // Files have keys, too, and what has been replaced.
    rows.saturating_mul(row_memory(&Key::default(), 0)).saturating_add(3 * file_bytes) <= cache_bytes
}

impl Warming {
    /// Reads these tables into the cache. `newest` shows the newest version.
    pub(crate) fn start(
        cache: Arc<RowCache>,
        tables: Vec<TableId>,
        newest: impl Fn() -> View + Send + 'static,
    ) -> Result<Warming, StoreError> {
        let has_ended = Arc::new(AtomicBool::new(false));
        let is_given_up = has_ended.clone();
        let read = move || {
            for table in tables {
                let mut rest = KeyRange::ALL;
                while !is_given_up.load(Ordering::Relaxed) {
                    // A view is held for one piece only: files that were merged are to go.
                    match read_piece(&cache, &newest(), table, &rest) {
                        Ok(Some(start)) => rest.start = start,
                        Ok(None) => break,
                        // Whoever needs the row reads it again, and hears of the failure.
                        Err(_) => return,
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("disk-warmer".into()).spawn(read);
        let thread = thread.map_err(|error| StoreError::write("a thread that reads rows", error))?;
        Ok(Warming { has_ended, thread: Some(thread) })
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it has read or not makes no difference.
            let _ = thread.join();
        }
    }
}

/// Gives where the next piece begins.
fn read_piece(
    cache: &RowCache,
    view: &View,
    table: TableId,
    rest: &KeyRange,
) -> Result<Option<Bound<Key>>, StoreError> {
    let (mut rows, mut last) = (0, None);
    let files = FilesSnapshot::of(view.files.clone(), view.catalog.clone());
    files.scan(table, rest, false, &mut |key, row| {
        cache.warm(view.epoch, table, key, row);
        rows += 1;
        if rows < PIECE_ROWS {
            return ControlFlow::Continue(());
        }
        last = Some(Bound::Excluded(key.clone()));
        ControlFlow::Break(())
    })?;
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::layout::{row_bytes, row_key};
    use state::{RowId, Version};
    use types::{Row, Value};

    const TABLE: TableId = TableId(1);
    const ROWS: i64 = 3 * PIECE_ROWS as i64 / 2;

    fn key(number: i64) -> Key {
        Key::encode([&Value::BigInt(number)]).expect("a number is a key")
    }

    fn row(number: i64) -> Row {
        Row::from([Value::BigInt(number)])
    }

    #[test]
    fn all_rows_are_in_memory_afterwards_unless_a_durable_point_has_come() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(&folder.path().join("store-1"), 1 << 20).expect("an empty folder");
        let rows = (0..ROWS).map(|number| Ok((row_key(TABLE, &key(number)), Some(row_bytes(&row(number))))));
        files.write(files.take_over(), rows).expect("there is room");
        for has_come in [false, true] {
            let (cache, view) = (
                Arc::new(RowCache::new(64 << 20)),
                View::of_files(Version::GENESIS, Arc::default(), files.now()),
            );
            if has_come {
                let changed = (RowId { table: TABLE, key: key(7) }, Some(row(-7)), 9);
                assert_eq!(cache.begin_epoch(std::iter::once(changed)), 1);
            }
            let mut warming =
                Warming::start(cache.clone(), vec![TABLE], move || view.clone()).expect("a thread");
            warming.thread.take().expect("it was started").join().expect("it ends");
            let mut read = 0;
            for number in 0..ROWS {
                let found = cache.get(0, TABLE, &key(number), || {
                    read += 1;
                    Ok((Some(row(number)), 9))
                });
                assert_eq!(found, Ok(Some(row(number))));
            }
            assert_eq!(read, if has_come { ROWS } else { 0 });
        }
    }

    #[test]
    fn nothing_is_read_ahead_where_rows_would_drive_each_other_out() {
        let counts = BTreeMap::from([(TABLE, 1_000), (TableId(2), 2_000)]);
        assert!(have_room(&counts, 100_000, 1_000_000));
        assert!(!have_room(&counts, 100_000, 700_000));
        assert!(!have_room(&counts, 300_000, 1_000_000));
    }
}
