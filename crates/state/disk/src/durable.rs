//! What makes a state durable: points that are written one after the other, and checkpoints that are kept.
//!
//! ```text
//!  end of a block ──Point──▶ (waits until the ledger has the block) ──one run──▶ files ──▶ merged, beside everything else
//!  checkpoint     ──Point──▶ …                                       ──────────▶ files, held ──▶ tree ──one run──▶ kept
//! ```
//!
//! Whoever keeps rows in memory, all of them or the newest, says what has changed; this file knows nothing else of it.

use crate::files::{Files, FilesAt};
use crate::gate::Gate;
use crate::layout::{Meta, TreeRecord};
use crate::writer;
use parking_lot::{Condvar, Mutex};
use state::{
    FirstFailure, Groups, KeyRange, LiveRequest, ResumePoint, RowId, Snapshot, StoreError, StoreStatistics,
    Version,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use types::{Catalog, Row, TableId};
use versioned::VersionedRows;

/// What has changed since the durable point before.
pub(crate) enum Changes {
    /// All that these rows know.
    Layer(Arc<VersionedRows>),
    /// These rows, by table and key, each once; their values are those of the snapshot.
    Rows(Arc<dyn Snapshot>, Vec<RowId>),
}

/// Ids that blocks have admitted, by height.
#[derive(Default)]
pub(crate) struct Admitted(pub(crate) BTreeMap<u64, Vec<LiveRequest>>);

impl Admitted {
    pub(crate) fn add(&mut self, admitted: Vec<LiveRequest>) {
        for request in admitted {
            self.0.entry(request.height).or_default().push(request);
        }
    }
}

/// What happens when a point is written.
pub(crate) type WhenWritten = Box<dyn FnOnce(&Arc<FilesAt>) + Send>;

/// A row, with what has become of it.
pub(crate) type ChangedRow = Result<(RowId, Option<Row>), StoreError>;

/// What becomes durable at once.
pub(crate) struct Point {
    pub(crate) version: Version,
    pub(crate) changes: Changes,
    /// Tables that have gone since then.
    pub(crate) dropped: BTreeSet<TableId>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) meta: Meta,
    /// Ids that blocks have admitted since then, by height.
    pub(crate) admitted: Admitted,
    /// The state is that of a checkpoint.
    pub(crate) is_checkpoint: bool,
    /// What happens when it is written.
    pub(crate) written: WhenWritten,
}

/// A checkpoint that was announced and has no tree yet.
pub(crate) struct Announced {
    pub(crate) version: Version,
    pub(crate) point: ResumePoint,
    /// Its rows, once they are durable.
    pub(crate) files: Option<Arc<FilesAt>>,
}

/// What is in the files beside rows.
#[derive(Default)]
pub(crate) struct Written {
    /// The newest durable point: its version, and the height where it is the end of a block.
    pub(crate) durable: Option<(Version, Option<u64>)>,
    pub(crate) durable_since: Option<Instant>,
    pub(crate) announced: BTreeMap<u64, Announced>,
    /// Lists of what has changed, by version, with the number of their parts.
    pub(crate) lists: BTreeMap<u64, u32>,
    /// Heights whose ids are there, with the last height at which one of them is live.
    pub(crate) admitted: BTreeMap<u64, u64>,
    /// Which state the groups are of.
    pub(crate) tree: Option<TreeRecord>,
    /// Points that were handed over and are not written.
    pub(crate) waiting: usize,
    /// There is no room on the disk.
    pub(crate) is_full: bool,
}

/// Writes durable points and keeps checkpoints, on threads of its own.
pub(crate) struct Durable {
    pub(crate) core: Arc<Core>,
    /// Takes points; `None` at the end.
    points: Option<crossbeam_channel::Sender<Box<Point>>>,
    threads: Vec<JoinHandle<()>>,
}

/// What its threads, the store and its snapshots have in common.
pub(crate) struct Core {
    pub(crate) files: Arc<Files>,
    /// As whom it writes.
    pub(crate) owner: u64,
    pub(crate) gate: Arc<Gate>,
    /// Where checkpoints are kept.
    pub(crate) checkpoints: PathBuf,
    pub(crate) written: Mutex<Written>,
    /// Something was written, or cannot be.
    pub(crate) changed: Condvar,
    pub(crate) failure: FirstFailure,
    pub(crate) is_closing: AtomicBool,
    /// The groups of the newest tree, once somebody has read them.
    pub(crate) groups: Mutex<Option<(TreeRecord, Groups)>>,
    pub(crate) changed_bytes: AtomicU64,
    pub(crate) points_written: AtomicU64,
}

impl Changes {
    /// The rows, with what has become of them, by table and key.
    pub(crate) fn rows(&self, version: Version) -> Box<dyn Iterator<Item = ChangedRow> + '_> {
        match self {
            Changes::Layer(layer) => Box::new(layer.tables().into_iter().flat_map(move |table| {
                let rows = layer.scan(version, table, &KeyRange::ALL, false);
                rows.map(move |(key, row)| Ok((RowId { table, key }, row)))
            })),
            Changes::Rows(snapshot, rows) => {
                Box::new(rows.iter().map(|id| Ok((id.clone(), snapshot.get(id.table, &id.key)?))))
            }
        }
    }

    /// Which rows, by table and key.
    pub(crate) fn keys(&self, version: Version) -> Box<dyn Iterator<Item = RowId> + '_> {
        match self {
            Changes::Layer(layer) => Box::new(layer.tables().into_iter().flat_map(move |table| {
                let rows = layer.scan(version, table, &KeyRange::ALL, false);
                rows.map(move |(key, _)| RowId { table, key })
            })),
            Changes::Rows(_, rows) => Box::new(rows.iter().cloned()),
        }
    }
}

impl Durable {
    /// Goes on from what is in the files.
    pub(crate) fn start(files: Arc<Files>, gate: Arc<Gate>, written: Written) -> Result<Durable, StoreError> {
        let core = Arc::new(Core::new(files, gate, written));
        let (points, waiting) = crossbeam_channel::unbounded();
        // One merge follows for any number of points.
        let (merge, due) = crossbeam_channel::bounded(1);
        let writing = core.clone();
        let write = spawn(&core, "disk-writer", move || writer::write_points(&writing, &waiting, &merge))?;
        let merging = core.clone();
        let merge = spawn(&core, "disk-merger", move || writer::merge(&merging, &due))?;
        Ok(Durable { core, points: Some(points), threads: vec![write, merge] })
    }

    /// Hands a point over to be written.
    pub(crate) fn hand_over(&self, point: Point) {
        let mut written = self.core.written.lock();
        written.waiting += 1;
        if let (true, Some(at)) = (point.is_checkpoint, point.meta.point) {
            let announced = Announced { version: point.version, point: at, files: None };
            written.announced.insert(at.header.height, announced);
        }
        drop(written);
        // The writer ends only where something has failed, which is noted.
        if let Some(points) = &self.points {
            let _ = points.send(Box::new(point));
        }
    }
}

fn spawn(
    core: &Core,
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|error| StoreError::write(core.files.folder().display(), error))
}

impl Core {
    /// Takes the files over.
    pub(crate) fn new(files: Arc<Files>, gate: Arc<Gate>, written: Written) -> Core {
        Core {
            owner: files.take_over(),
            checkpoints: files.folder().parent().map(Path::to_path_buf).unwrap_or_default(),
            files,
            gate,
            written: Mutex::new(written),
            changed: Condvar::new(),
            failure: FirstFailure::default(),
            is_closing: AtomicBool::new(false),
            groups: Mutex::default(),
            changed_bytes: AtomicU64::new(0),
            points_written: AtomicU64::new(0),
        }
    }

    /// # Errors
    /// What could not be written.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Something could not be written: whoever waits for it hears of it, and whoever comes later.
    pub(crate) fn fail(&self, failure: StoreError) {
        self.failure.note(failure);
        let _written = self.written.lock();
        self.changed.notify_all();
    }

    /// Nothing more is written.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.gate.wake();
        let _written = self.written.lock();
        self.changed.notify_all();
    }

    /// Nobody waits for anything any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire) || self.failure.get().is_some()
    }

    /// Waits until so few points wait to be written. Gives how long that took.
    pub(crate) fn wait_for_points(&self, most: usize) -> Result<Duration, StoreError> {
        let began = Instant::now();
        let mut written = self.written.lock();
        while written.waiting > most && !self.is_closing() {
            self.changed.wait(&mut written);
        }
        drop(written);
        self.check()?;
        Ok(began.elapsed())
    }

    /// What it knows of [`StoreStatistics`].
    pub(crate) fn statistics(&self) -> StoreStatistics {
        let written = self.written.lock();
        StoreStatistics {
            file_bytes: self.files.bytes(),
            changed_bytes: self.changed_bytes.load(Ordering::Relaxed),
            written_bytes: self.files.bytes_written(),
            durable_points: self.points_written.load(Ordering::Relaxed),
            durable_height: written.durable.and_then(|(_, height)| height).unwrap_or(0),
            durable_age: written.durable_since.map(|since| since.elapsed()),
            waits_for_room: written.is_full,
            ..StoreStatistics::default()
        }
    }
}

impl Written {
    /// Up to which version lists of changes are of no use for the tree any more. `None`: no list is.
    pub(crate) fn lists_from(&self) -> Option<Version> {
        let announced = self.announced.values().map(|announced| announced.version);
        announced.chain(self.tree.map(|tree| tree.version())).min()
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.core.close();
        self.points = None;
        for thread in self.threads.drain(..) {
            // One that has panicked has said so.
            let _ = thread.join();
        }
    }
}
