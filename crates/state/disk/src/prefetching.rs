//! Rows that are read before somebody asks for them: what transactions will touch by key is known before they run, so that their
//! waits for the disk overlap, with each other and with the blocks in front of them.

use crate::cache::RowCache;
use crate::view::View;
use crossbeam_channel::{Receiver, Sender};
use state::{RowId, Simulate, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use types::Catalog;

/// Threads that read. Each waits for the disk most of the time; disks are quickest with many reads at once.
const THREADS: usize = 8;
/// Transactions whose rows one thread reads one after the other.
const CHUNK: usize = 16;
/// Rows that are read of one transaction at most: whoever touches more is not what this is for.
const ROWS_MAX: usize = 64;
/// Chunks that may wait; more are left out, because whoever asks for their rows comes before the threads do.
const WAITING_MAX: usize = 1_024;
/// Where fewer than one in so many rows came from the files, nothing is read ahead.
const WORTH_IT: u64 = 32;

/// Transactions that run soon, and the state that they find.
struct Chunk {
    view: View,
    transactions: Vec<Arc<dyn Simulate>>,
}

/// Threads that read rows into the cache.
pub(crate) struct Prefetcher {
    /// `None` at the end.
    chunks: Option<Sender<Chunk>>,
    threads: Vec<JoinHandle<()>>,
    /// Hits and misses of the cache when it was last judged whether this is worth it.
    judged: [AtomicU64; 2],
}

impl Prefetcher {
    pub(crate) fn start(cache: &Arc<RowCache>) -> Result<Prefetcher, StoreError> {
        let (chunks, waiting) = crossbeam_channel::bounded(WAITING_MAX);
        let start = |number| {
            let (cache, waiting) = (cache.clone(), waiting.clone());
            let thread = std::thread::Builder::new().name(format!("disk-prefetcher-{number}"));
            let thread = thread.spawn(move || read_ahead(&cache, &waiting));
            thread.map_err(|error| StoreError::write("a thread that reads rows", error))
        };
        let threads = (0..THREADS).map(start).collect::<Result<_, StoreError>>()?;
        Ok(Prefetcher { chunks: Some(chunks), threads, judged: Default::default() })
    }

    /// Whether many of the rows that were asked for since the last time came from the files.
    pub(crate) fn is_worth_it(&self, (hits, misses): (u64, u64)) -> bool {
        let [last_hits, last_misses] = &self.judged;
        let since = |last: &AtomicU64, now: u64| now - last.swap(now, Ordering::Relaxed).min(now);
        let (hits, misses) = (since(last_hits, hits), since(last_misses, misses));
        misses * WORTH_IT > hits + misses
    }

    /// Reads what these transactions will touch, beside everything else.
    pub(crate) fn prefetch(&self, view: &View, transactions: &[Arc<dyn Simulate>]) {
        let Some(chunks) = &self.chunks else { return };
        for transactions in transactions.chunks(CHUNK) {
            let chunk = Chunk { view: view.clone(), transactions: transactions.to_vec() };
            if chunks.try_send(chunk).is_err() {
                return;
            }
        }
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.chunks = None;
        for thread in self.threads.drain(..) {
            // What it has read or not makes no difference.
            let _ = thread.join();
        }
    }
}

fn read_ahead(cache: &RowCache, chunks: &Receiver<Chunk>) {
    for Chunk { view, transactions } in chunks {
        for transaction in transactions {
            for RowId { table, key } in rows_of(transaction.as_ref(), &view.catalog) {
                // Whoever needs the row reads it again, and hears of the failure.
                let _ = view.prefetch(cache, table, &key);
            }
        }
    }
}

/// The rows that a transaction will touch, as far as that is known before it runs.
fn rows_of(transaction: &dyn Simulate, catalog: &Catalog) -> Vec<RowId> {
    if let Some(endorsed) = transaction.endorsed() {
        let effects = &endorsed.effects;
        let rows = effects.reads.iter().map(|read| &read.row);
        return rows
            .chain(effects.commands.iter().map(|command| &command.row))
            .take(ROWS_MAX)
            .cloned()
            .collect();
    }
    let Ok(footprint) = transaction.footprint(catalog) else { return Vec::new() };
    let mut rows = Vec::new();
    for region in footprint.reads.iter().chain(&footprint.writes) {
        let Some(key) = region.key() else { continue };
        let row = RowId { table: region.table, key: key.clone() };
        if !rows.contains(&row) {
            rows.push(row);
        }
        if rows.len() == ROWS_MAX {
            break;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use crate::{Disk, DiskOptions};
    use state::{
        AfterImage, Effects, Footprint, Region, RowId, Simulate, Snapshot, Store, StoreError, Stores, Version,
    };
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use types::{Catalog, ColumnSet, Key, SqlError, TableId, Value};

    const TABLE: TableId = TableId(1);

    fn key(number: i64) -> Key {
        Key::encode([&Value::BigInt(number)]).expect("a number is a key")
    }

    /// Touches these rows, or nobody knows what.
    struct Touching(Option<Vec<i64>>);

    impl Simulate for Touching {
        fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
            unreachable!("nobody executes it")
        }

        fn footprint(&self, _: &Catalog) -> Result<Footprint, SqlError> {
            let Some(rows) = &self.0 else { return Err(SqlError::unsupported("a footprint")) };
            let mut footprint = Footprint::default();
            for number in rows {
                footprint.read(Region::row(TABLE, key(*number), ColumnSet::ALL));
                footprint.write(Region::row(TABLE, key(*number), ColumnSet::ALL));
            }
            Ok(footprint)
        }
    }

    fn touching(rows: Option<Vec<i64>>) -> Vec<Arc<dyn Simulate>> {
        vec![Arc::new(Touching(rows))]
    }

    #[test]
    fn what_transactions_will_touch_is_in_memory_before_they_run() {
        let folder = tempfile::tempdir().expect("a folder");
        // Too little for all rows, which would be read without being asked for.
        let options = DiskOptions { memory_bytes: 300_000, ..DiskOptions::default() };
        let stores = Disk::open(folder.path(), options).expect("it opens");
        let mut filling = stores.begin(Version::GENESIS, Arc::default()).expect("it begins");
        let image = |number| {
            let value = Some(Arc::from([Value::BigInt(number)]));
            AfterImage { row: RowId { table: TABLE, key: key(number) }, value }
        };
        filling.add(&(0..1_000).map(image).collect::<Vec<_>>()).expect("it is written");
        let store = filling.finish().expect("it is whole");
        let counts = |store: &dyn Store| (store.statistics().cache_hits, store.statistics().cache_misses);
        store.prefetch(&touching(Some(vec![1])));
        assert_eq!(counts(store.as_ref()), (0, 0), "nobody has missed anything yet");
        let snapshot = store.snapshot();
        let read = |number| snapshot.get(TABLE, &key(number)).expect("it is read").is_some();
        assert!(read(0));
        assert_eq!(counts(store.as_ref()), (0, 1));
        // One that nobody can look into, then rows that are there and one that is not.
        store.prefetch(&[touching(None), touching(Some((0..50).chain([5_000]).collect()))].concat());
        let until = Instant::now() + Duration::from_secs(60);
        while counts(store.as_ref()) != (0, 51) {
            assert!(
                Instant::now() < until,
                "50 rows that were not read before: {:?}",
                counts(store.as_ref())
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!((0..50).all(read) && !read(5_000));
        assert_eq!(counts(store.as_ref()), (51, 51), "nobody has waited for the disk");
    }
}
