//! Keeps checkpoints beside the pipeline: the pipeline hands over a snapshot and goes on. The store keeps the state and its tree
//! up; what is hashed is what has changed since the checkpoint before. A file says which state it is, and its root.
//!
//! Proofs of rows and pieces for nodes that join are read from the store, as it was at the checkpoint. Whether rows are still
//! those of the tree is looked at again and again ([`crate::scrub`]).

use crate::NodeError;
use crate::attesting::Input;
use crate::metrics::{CHECKPOINT_ROOT, CHECKPOINT_WRITE, NodeMetrics};
use crate::published::Published;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use ledger::CheckpointStore;
use proofs::state::TreeShape;
use state::{CheckpointHeader, KeptState, LiveContent, Manifest, Snapshot, Store, StoreError, Stores};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

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
    /// Makes the store of the state.
    pub(crate) stores: Arc<dyn Stores>,
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
    /// is dropped.
    pub(crate) fn start(parts: CheckpointParts) -> Result<(Checkpoints, JoinHandle<()>), NodeError> {
        let (checkpoints, writer) = Checkpoints::new(parts)?;
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_string())
            .spawn(move || writer.run())
            .map_err(failed)?;
        Ok((checkpoints, thread))
    }

    /// The same without the thread: the work is for whoever drives the writer.
    pub(crate) fn new(parts: CheckpointParts) -> Result<(Checkpoints, CheckpointWriter), NodeError> {
        let (requests, asked) = bounded(1);
        // What is hashed is hashed by one thread.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).thread_name(|_| "root".to_string()).build();
        let pool = pool.map_err(|build| failed(io::Error::other(build)))?;
        Ok((Checkpoints { requests }, CheckpointWriter { parts, requests: asked, pool }))
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

    /// Whether somebody waits for a checkpoint.
    #[cfg(feature = "simulation")]
    pub(crate) fn is_asked(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Keeps a checkpoint, and hands over its root to be attested.
    fn take(&self, request: CheckpointRequest) {
        let CheckpointRequest { header, store, snapshot, live } = request;
        let (height, start) = (header.height, Instant::now());
        let kept = self.pool.install(|| keep_checkpoint(&header, &store, snapshot, live));
        let kept = match kept {
            Ok(Some(kept)) => kept,
            Ok(None) => return,
            Err(failure) => {
                // The disk of the ledger may be well: this is for an operator all the same.
                tracing::error!(height, %failure, "the store of the state has failed at a checkpoint");
                self.parts.published.store_health().note(failure);
                return;
            }
        };
        self.parts.metrics.worked(CHECKPOINT_ROOT, start.elapsed());
        let start = Instant::now();
        let manifest = Manifest { header, root: kept.tree().root() };
        match self.parts.store.write(height, |writer| writer.write_all(&manifest.to_bytes())) {
            Ok(_) => {}
            Err(error) => {
                // The blocks are recorded, so nothing is lost: recovery takes an older state.
                tracing::error!(height, %error, "checkpoint not written");
                return;
            }
        }
        self.parts.keep_needed();
        self.parts.metrics.worked(CHECKPOINT_WRITE, start.elapsed());
        self.hand_over(kept);
    }

    fn hand_over(&self, kept: KeptState) {
        let (height, root, nodes) = (kept.header().height, kept.tree().root(), kept.tree().nodes().len());
        tracing::info!(height, %root, nodes, "the checkpoint is kept");
        if let Some(attest) = &self.parts.attest {
            // It ends after the pipeline only.
            let _ = attest.send(Input::Checkpoint(Arc::new(kept)));
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

    /// Reads a checkpoint of an earlier run. One that is damaged goes: there is an older one, and will be a newer one.
    fn read_again(&self, height: u64) {
        match self.pool.install(|| self.parts.read(height)) {
            Ok(Some(kept)) => self.hand_over(kept),
            // Its rows are in its file: an older program has written it.
            Ok(None) => {}
            Err(error) => self.parts.remove_damaged(height, &error),
        }
    }
}

/// The state at a checkpoint with its tree, as the store keeps it; nothing where that is being closed. `snapshot`: its rows.
pub(crate) fn keep_checkpoint(
    header: &CheckpointHeader,
    store: &Arc<dyn Store>,
    snapshot: Arc<dyn Snapshot>,
    live: LiveContent,
) -> Result<Option<KeptState>, StoreError> {
    let shape = TreeShape::at(snapshot.catalog(), header.height);
    store.keep_checkpoint(header, snapshot, live, shape)
}

impl CheckpointParts {
    /// A checkpoint that is on the disk; nothing where the store does not have it.
    fn read(&self, height: u64) -> Result<Option<KeptState>, String> {
        let mut bytes = Vec::new();
        let mut reader = self.store.read(height).map_err(|error| error.to_string())?;
        let limit = Manifest::length() as u64 + 1;
        reader.by_ref().take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let Some(manifest) = Manifest::from_bytes(&bytes).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let shape = TreeShape::at(self.published.library().catalog(), height);
        let kept = self.stores.kept_checkpoint(height, shape).map_err(|error| error.to_string())?;
        let Some(kept) = kept else { return Ok(None) };
        let found = Manifest { header: *kept.header(), root: kept.tree().root() };
        match found == manifest {
            true => Ok(Some(kept)),
            false => Err(format!("expected the state {manifest:?}, found {found:?}")),
        }
    }

    /// The store lets those checkpoints go that have no file any more.
    pub(crate) fn keep_needed(&self) {
        if let Err(error) = self.stores.keep_checkpoints(&self.store.newest()) {
            tracing::error!(%error, "checkpoints that nobody needs cannot be removed");
        }
    }

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
        self.keep_needed();
    }
}
