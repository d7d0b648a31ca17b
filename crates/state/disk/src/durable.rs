//! What makes a state durable: points that are written one after the other, and checkpoints that are kept.
//!
//! ```text
//!  end of a block ──Point──▶ (waits until the ledger has the block) ──one run──▶ files ──▶ merged, beside everything else
//!  checkpoint     ──Point──▶ …                                       ──────────▶ files, held ──▶ tree ──one run──▶ kept
//! ```
//!
//! Whoever keeps rows in memory, all of them or the newest, says what has changed; this file knows nothing else of it.

use crate::core::{Announced, Core, Written};
use crate::files::Files;
use crate::gate::Gate;
use crate::options::{Budget, RowsIn};
use crate::points::Point;
use crate::sealing::SnapshotOf;
use crate::writer;
use proofs::state::TreeShape;
use rayon::{ThreadPool, ThreadPoolBuilder};
use state::{KeptState, LiveContent, StoreError};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Threads that read for roots where rows are on the disk: most of the time each of them waits for it.
const READERS: usize = 8;

/// Writes durable points and keeps checkpoints, on threads of its own.
pub(crate) struct Durable {
    pub(crate) core: Arc<Core>,
    /// Threads that read for roots; `None`: whoever asks for one reads.
    readers: Option<ThreadPool>,
    /// Takes points; `None` at the end.
    points: Option<crossbeam_channel::Sender<Box<Point>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Durable {
    /// Goes on from what is in the files.
    pub(crate) fn start(
        files: Arc<Files>,
        gate: Arc<Gate>,
        written: Written,
        (rows_in, budget): (RowsIn, Budget),
    ) -> Result<Durable, StoreError> {
        let core = Arc::new(Core::new(files, gate, written, budget.range_rows));
        let (points, waiting) = crossbeam_channel::unbounded();
        // One merge follows for any number of points.
        let (merge, due) = crossbeam_channel::bounded(1);
        let writing = core.clone();
        let write = spawn(&core, "disk-writer", move || writer::write_points(&writing, &waiting, &merge))?;
        let merging = core.clone();
        let merge = spawn(&core, "disk-merger", move || writer::merge(&merging, &due))?;
        let readers = match rows_in {
            RowsIn::Memory => None,
            RowsIn::Disk => Some(readers(&core)?),
        };
        Ok(Durable { core, readers, points: Some(points), threads: vec![write, merge] })
    }

    /// Hands a point over to be written.
    pub(crate) fn hand_over(&self, point: Point) {
        let mut written = self.core.written.lock();
        written.waiting += 1;
        if let (true, Some(at)) = (point.is_checkpoint, point.meta.point) {
            let announced = Announced { version: point.version, point: at, rows: None };
            written.announced.insert(at.header.height, announced);
        }
        drop(written);
        // The writer ends only where something has failed, which is noted.
        if let Some(points) = &self.points {
            let _ = points.send(Box::new(point));
        }
    }

    /// Brings the tree up to a checkpoint ([`Core::seal`]).
    pub(crate) fn seal(
        &self,
        height: u64,
        snapshot_of: &SnapshotOf<'_>,
        live: &LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        let seal = || self.core.seal(height, snapshot_of, live, shape);
        match &self.readers {
            None => seal(),
            Some(readers) => readers.install(seal),
        }
    }

    /// Waits until all that was handed over is written. Gives the height of the newest durable point, where that is the end of a
    /// block.
    pub(crate) fn newest_point(&self) -> Result<Option<u64>, StoreError> {
        self.core.wait_for_points(0)?;
        Ok(self.core.written.lock().durable.and_then(|(_, height)| height))
    }
}

fn readers(core: &Core) -> Result<ThreadPool, StoreError> {
    let pool = ThreadPoolBuilder::new().num_threads(READERS);
    let pool = pool.thread_name(|number| format!("disk-reader-{number}")).build();
    pool.map_err(|error| StoreError::write(core.files.folder().display(), error))
}

fn spawn(
    core: &Core,
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|error| StoreError::write(core.files.folder().display(), error))
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
