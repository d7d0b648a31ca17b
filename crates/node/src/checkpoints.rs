//! Writes checkpoints beside the pipeline: the pipeline hands over a snapshot and goes on.

use crate::NodeError;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use ledger::CheckpointStore;
use state::{CheckpointHeader, LiveContent, StateSnapshot};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A state to be written down.
pub(crate) struct CheckpointRequest {
    pub(crate) header: CheckpointHeader,
    pub(crate) snapshot: Arc<StateSnapshot>,
    pub(crate) live: LiveContent,
}

/// The thread that writes checkpoints, one at a time.
pub(crate) struct Checkpoints {
    requests: Sender<CheckpointRequest>,
}

impl Checkpoints {
    /// Starts the thread. It ends when the returned value is dropped.
    pub(crate) fn start(store: Arc<CheckpointStore>) -> Result<(Checkpoints, JoinHandle<()>), NodeError> {
        let (requests, incoming) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_string())
            .spawn(move || write_all(&store, &incoming))
            .map_err(|error| NodeError::Thread { name: "checkpoint", error })?;
        Ok((Checkpoints { requests }, thread))
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

fn write_all(store: &CheckpointStore, requests: &Receiver<CheckpointRequest>) {
    for CheckpointRequest { header, snapshot, live } in requests {
        let height = header.height;
        let written =
            store.write(height, |writer| state::write_checkpoint(&header, snapshot.as_ref(), &live, writer));
        match written {
            Ok(bytes) => tracing::info!(height, bytes, "checkpoint written"),
            // The blocks are recorded, so nothing is lost: recovery takes an older checkpoint.
            Err(error) => tracing::error!(height, %error, "checkpoint not written"),
        }
    }
}
