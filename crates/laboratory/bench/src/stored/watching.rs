//! A thread that looks, again and again, at what the process and its store are at.

use super::control_group::JoinedControlGroup;
use super::record::DurablePoint;
use state::{Store, StoreStatistics};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(5);
/// How many times it looks until it looks at what takes longer.
const SELDOM: u64 = 20;
/// The thread of a store that merges files.
const MERGER: &str = "disk-merger";

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Files, sockets and the like that were open at once.
    pub(super) open_files: u64,
    pub(super) page_cache_bytes: u64,
    pub(super) points: Vec<DurablePoint>,
    /// Times that it has looked, and those at which files were being merged.
    pub(super) looked: u64,
    pub(super) looked_while_merging: u64,
}

/// Looks until it is asked what it has seen.
pub(super) struct Watching {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Watching {
    /// `merging` says, from now on, whether files are being merged.
    pub(super) fn start(
        store: Arc<dyn Store>,
        merging: Arc<AtomicBool>,
        group: Option<JoinedControlGroup>,
    ) -> std::io::Result<Watching> {
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let mut look = Look { before: store.statistics(), store, merger: None, seen: Seen::default() };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || {
            while !told.load(Ordering::Relaxed) {
                merging.store(look.at_all(group.as_ref()), Ordering::Relaxed);
                std::thread::sleep(EVERY);
            }
            look.seen
        })?;
        Ok(Watching { ends, thread })
    }

    pub(super) fn finish(self) -> Seen {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

struct Look {
    store: Arc<dyn Store>,
    before: StoreStatistics,
    /// The thread that merges, and the nanoseconds that it has run.
    merger: Option<(String, u64)>,
    seen: Seen,
}

impl Look {
    /// Whether files are being merged.
    fn at_all(&mut self, group: Option<&JoinedControlGroup>) -> bool {
        if self.seen.looked.is_multiple_of(SELDOM) {
            let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
            self.seen.open_files = self.seen.open_files.max(open);
            let cached = group.map_or(0, JoinedControlGroup::page_cache_bytes);
            self.seen.page_cache_bytes = self.seen.page_cache_bytes.max(cached);
            if self.merger.is_none() {
                self.merger = find_thread(MERGER).map(|folder| (folder, 0));
            }
        }
        self.seen.looked += 1;
        self.look_at_points();
        let merging = self.is_merging();
        self.seen.looked_while_merging += u64::from(merging);
        merging
    }

    fn look_at_points(&mut self) {
        let now = self.store.statistics();
        if now.changed_bytes > self.before.changed_bytes {
            self.seen.points.push(DurablePoint {
                changed_bytes: now.changed_bytes - self.before.changed_bytes,
                file_bytes: now.written_bytes - self.before.written_bytes,
            });
        }
        self.before = now;
    }

    /// It has run since the last time.
    fn is_merging(&mut self) -> bool {
        let Some((folder, before)) = &mut self.merger else { return false };
        let text = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
        let ran = text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        std::mem::replace(before, ran) < ran
    }
}

/// Where the system tells of a thread of this process.
fn find_thread(name: &str) -> Option<String> {
    fs::read_dir("/proc/self/task").ok()?.find_map(|entry| {
        let folder = entry.ok()?.path().display().to_string();
        let own = fs::read_to_string(format!("{folder}/comm")).ok()?;
        (own.trim() == name).then_some(folder)
    })
}
