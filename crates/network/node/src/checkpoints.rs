//! Writes checkpoints beside the pipeline: the pipeline hands over a snapshot and goes on. What was written is read again,
//! which gives the root of the state: of the memory, and of the file.
//!
//! Proofs of rows and pieces for nodes that join are read from the file, one range at a time, and compared with the
//! tree. So there is no second state in memory.

use crate::NodeError;
use crate::attesting::Input;
use crate::metrics::{CHECKPOINT_ROOT, CHECKPOINT_WRITE, NodeMetrics};
use crate::published::Published;
use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};
use ledger::CheckpointStore;
use state::{CheckpointError, CheckpointHeader, LiveContent, Snapshot, Store, StoredState, Watched};
use std::io::{self, Read};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After so many bytes whoever reads a checkpoint rests for as long as that has taken: half a core is left to others.
const BREATH_BYTES: usize = 1 << 20;
/// It rests no longer than this.
const REST_MAX: Duration = Duration::from_millis(200);

/// A state to be written down.
pub(crate) struct CheckpointRequest {
    pub(crate) header: CheckpointHeader,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) snapshot: Arc<dyn Snapshot>,
    pub(crate) live: LiveContent,
}

/// What the thread works with.
#[derive(Clone)]
pub(crate) struct CheckpointParts {
    pub(crate) store: Arc<CheckpointStore>,
    pub(crate) published: Arc<Published>,
    pub(crate) metrics: Arc<NodeMetrics>,
    /// Who attests roots; `None` where nobody does.
    pub(crate) attest: Option<Sender<Input>>,
}

/// The thread that writes checkpoints, one at a time.
pub(crate) struct Checkpoints {
    requests: Sender<CheckpointRequest>,
}

impl Checkpoints {
    /// Starts the thread, which first reads the checkpoints that are there and not known yet. It ends when the returned value
    /// is dropped, and reads nothing any more once `stopped` disconnects.
    pub(crate) fn start(
        parts: CheckpointParts,
        stopped: Receiver<()>,
    ) -> Result<(Checkpoints, JoinHandle<()>), NodeError> {
        let (checkpoints, writer) = Checkpoints::new(parts, stopped)?;
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_string())
            .spawn(move || writer.run())
            .map_err(failed)?;
        Ok((checkpoints, thread))
    }

    /// The same without the thread: the work is for whoever drives the writer.
    pub(crate) fn new(
        parts: CheckpointParts,
        stopped: Receiver<()>,
    ) -> Result<(Checkpoints, CheckpointWriter), NodeError> {
        let (requests, asked) = bounded(1);
        // What is hashed is hashed by one thread.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).thread_name(|_| "root".to_string()).build();
        let pool = pool.map_err(|build| failed(io::Error::other(build)))?;
        Ok((Checkpoints { requests }, CheckpointWriter { parts, requests: asked, stopped, pool }))
    }

    /// Hands over a state. If the previous checkpoint is still being written this one is left out: recovery then
    /// replays more blocks, and the pipeline never waits.
    pub(crate) fn request(&self, request: CheckpointRequest) {
        if let Err(TrySendError::Full(request)) = self.requests.try_send(request) {
            let height = request.header.height;
            tracing::warn!(height, "checkpoint left out, the previous one is still being written");
        }
    }
}

fn failed(error: io::Error) -> NodeError {
    NodeError::Thread { name: "checkpoint", error }
}

/// What the thread does.
pub(crate) struct CheckpointWriter {
    parts: CheckpointParts,
    requests: Receiver<CheckpointRequest>,
    stopped: Receiver<()>,
    pool: rayon::ThreadPool,
}

impl CheckpointWriter {
    fn run(&self) {
        self.read_known();
        self.requests.iter().for_each(|request| self.take(request));
    }

    /// Writes what is asked for at the moment.
    #[cfg(feature = "simulation")]
    pub(crate) fn write_asked(&self) {
        self.requests.try_iter().for_each(|request| self.take(request));
    }

    fn take(&self, request: CheckpointRequest) {
        let height = request.header.height;
        if self.write(request) && self.parts.attest.is_some() {
            self.read_again(height);
        }
    }

    /// The newest checkpoint that is certified, and those above it, unless they are known.
    pub(crate) fn read_known(&self) {
        if self.parts.attest.is_none() {
            return;
        }
        let certified = self.parts.store.certified().first().copied().unwrap_or(0);
        let kept = self.parts.published.certified().checkpoint();
        let kept = kept.map_or(0, |kept| kept.certificate.statement.height + 1);
        let mut heights = self.parts.store.newest();
        heights.retain(|height| *height >= certified.max(kept));
        heights.iter().rev().for_each(|height| self.read_again(*height));
    }

    /// Whether it is written.
    fn write(&self, request: CheckpointRequest) -> bool {
        let CheckpointRequest { header, store, snapshot, live } = request;
        let (height, start) = (header.height, Instant::now());
        let watched = Watched::new(snapshot.as_ref());
        let written = self
            .parts
            .store
            .write(height, |writer| state::write_checkpoint(&header, &watched, &live, writer));
        if let Err(failure) = watched.check(()).and_then(|()| store.durable_point()) {
            // The disk of the ledger may be well: this is for an operator all the same.
            tracing::error!(height, %failure, "the store of the state has failed at a checkpoint");
            self.parts.published.store_failure().note(failure);
            return false;
        }
        self.parts.metrics.worked(CHECKPOINT_WRITE, start.elapsed());
        let milliseconds = start.elapsed().as_millis() as u64;
        match &written {
            Ok(bytes) => tracing::info!(height, bytes, milliseconds, "checkpoint written"),
            // The blocks are recorded, so nothing is lost: recovery takes an older checkpoint.
            Err(error) => tracing::error!(height, %error, "checkpoint not written"),
        }
        written.is_ok()
    }

    /// Reads a checkpoint, and hands over its root to be attested. One that is damaged goes: there is an older one, and will
    /// be a newer one.
    fn read_again(&self, height: u64) {
        let start = Instant::now();
        let read = self.pool.install(|| self.read_stored(height));
        self.parts.metrics.worked(CHECKPOINT_ROOT, start.elapsed());
        match read {
            Ok(Some(stored)) => {
                let (root, nodes) = (stored.tree().root(), stored.tree().nodes().len());
                let milliseconds = start.elapsed().as_millis() as u64;
                tracing::info!(height, %root, nodes, milliseconds, "root of the checkpoint computed");
                if let Some(attest) = &self.parts.attest {
                    // It ends after the pipeline only.
                    let _ = attest.send(Input::Checkpoint(Arc::new(stored)));
                }
            }
            Ok(None) => {}
            Err(error) => self.parts.remove_damaged(height, &error),
        }
    }

    /// `None` where it was to stop.
    fn read_stored(&self, height: u64) -> Result<Option<StoredState>, String> {
        let store = &self.parts.store;
        let content = store.content(height).map_err(|error| error.to_string())?;
        let read_at =
            move |place: u64, bytes: &mut [u8]| content.read_at(place, bytes).map_err(io::Error::other);
        let mut reader = store.read(height).map_err(|error| error.to_string())?;
        let resting = Resting { inner: &mut reader, stopped: &self.stopped, read: 0, since: Instant::now() };
        match StoredState::read(resting, Box::new(read_at)) {
            Ok(stored) => reader.finish().map(|_| Some(stored)).map_err(|error| error.to_string()),
            Err(CheckpointError::Read(error)) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl CheckpointParts {
    /// Takes a checkpoint that cannot be read out of use.
    pub(crate) fn remove_damaged(&self, height: u64, error: &str) {
        tracing::error!(
            height,
            error,
            "a checkpoint is damaged; it is removed, and the next one takes its place"
        );
        self.metrics.scrub_found("checkpoint");
        let certified = self.published.certified();
        if certified.checkpoint().is_some_and(|kept| kept.certificate.statement.height == height) {
            certified.keep_checkpoint(None);
        }
        if let Err(error) = self.store.remove(height) {
            tracing::error!(height, %error, "a damaged checkpoint cannot be removed");
        }
    }
}

/// Reads at most half of the time.
struct Resting<'a, R> {
    inner: R,
    stopped: &'a Receiver<()>,
    read: usize,
    since: Instant,
}

impl<R: Read> Read for Resting<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.read >= BREATH_BYTES {
            if self.stopped.try_recv() == Err(TryRecvError::Disconnected) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            std::thread::sleep(self.since.elapsed().min(REST_MAX));
            (self.read, self.since) = (0, Instant::now());
        }
        let read = self.inner.read(bytes)?;
        self.read += read;
        Ok(read)
    }
}
