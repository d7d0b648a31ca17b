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
use crate::points::Point;
use crate::writer;
use state::StoreError;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Writes durable points and keeps checkpoints, on threads of its own.
pub(crate) struct Durable {
    pub(crate) core: Arc<Core>,
    /// Takes points; `None` at the end.
    points: Option<crossbeam_channel::Sender<Box<Point>>>,
    threads: Vec<JoinHandle<()>>,
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

    /// Waits until all that was handed over is written. Gives the height of the newest durable point, where that is the end of a
    /// block.
    pub(crate) fn newest_point(&self) -> Result<Option<u64>, StoreError> {
        self.core.wait_for_points(0)?;
        Ok(self.core.written.lock().durable.and_then(|(_, height)| height))
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
