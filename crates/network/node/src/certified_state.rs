//! A certified state out of a node's folder, whether the node runs or not: for whoever cannot execute all blocks up to it.

use crate::NodeError;
use engine::Engine;
use ledger::certificates_from;
use state::{CheckpointProgress, KeptState, PieceError, StateAssembly, Stores};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Charter, CheckpointCertificate, KnownVersions, decode_exactly};

/// A state, and what says which one it is. Who has signed that is for the caller to check.
pub struct CertifiedState {
    certificate: CheckpointCertificate,
    kept: KeptState,
    /// Where the rows are read from; the last to go.
    _links: Links,
}

/// Links to a checkpoint's files, for as long as this is held.
struct Links(PathBuf);

impl Drop for Links {
    fn drop(&mut self) {
        // What stays is a folder that no node looks at.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl CertifiedState {
    /// The lowest state at or above a height that the node's folder has with a certificate. Its files are linked into a folder of
    /// their own beside those of the node, which is removed at the end.
    ///
    /// # Errors
    /// Files cannot be read or linked.
    pub fn find(folder: &Path, height: u64) -> Result<Option<CertifiedState>, NodeError> {
        for (height, bytes) in certificates_from(&folder.join("checkpoints"), height)? {
            let certificate: CheckpointCertificate = decode_exactly(&bytes)
                .map_err(|error| NodeError::Certificate { height, reason: error.to_string() })?;
            let links = Links(folder.join(format!("verifying-{}", std::process::id())));
            if let Some(kept) = disk::copied_checkpoint(&folder.join("state"), height, &links.0)? {
                return Ok(Some(CertifiedState { certificate, kept, _links: links }));
            }
        }
        Ok(None)
    }

    /// What says which state it is.
    pub fn certificate(&self) -> &CheckpointCertificate {
        &self.certificate
    }

    /// The engine that stands at it. Every row is held against the root in the certificate.
    ///
    /// # Errors
    /// It is another state than the certified one, or cannot be read.
    pub fn engine(&self, charter: &Arc<Charter>, stores: &dyn Stores) -> Result<Engine, NodeError> {
        let statement = &self.certificate.statement;
        let (height, header) = (statement.height, *self.kept.header());
        let refused = |reason: String| NodeError::Certificate { height, reason };
        if header.outcome != statement.outcome {
            let (expected, found) = (statement.outcome, header.outcome);
            return Err(refused(format!("the state is behind the outcome {found}, certified is {expected}")));
        }
        let of_piece = |error: PieceError| refused(error.to_string());
        let assembly = StateAssembly::new(self.kept.outline(), height, statement.state_root, stores);
        let mut assembly = assembly.map_err(of_piece)?;
        let missing: Vec<usize> = assembly.missing().collect();
        for number in missing {
            if let Some(piece) = self.kept.piece(number)? {
                assembly.add(number, &piece).map_err(of_piece)?;
            }
        }
        let checkpoint = assembly.finish(header).map_err(of_piece)?;
        let at = (&header, CheckpointProgress::at(height));
        let state = (checkpoint.state, checkpoint.live);
        Ok(Engine::continued(charter.clone(), at, state, KnownVersions::default())?)
    }
}
