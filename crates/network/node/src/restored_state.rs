//! Puts a certified state from a backup into a folder whose ledger was restored, so that the node begins behind it instead of
//! executing every block.

use crate::checkpoints::keep_checkpoint;
use crate::recovery::{closed_meanwhile, end_at_checkpoint};
use crate::row_history::KeptRows;
use crate::{NodeConfig, NodeError, StoreChoice};
use crypto::Digest;
use ledger::Ledger;
use state::{Checkpoint, CheckpointHeader, Manifest, PieceError, StateAssembly, StateOutline, Stores};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use types::{Charter, CheckpointCertificate, encode};

/// A state in pieces, and what proves it; that a quorum has signed the certificate the caller has checked.
pub struct StateOfBackup {
    /// A quorum's word for its root.
    pub certificate: CheckpointCertificate,
    /// Everything but its rows.
    pub outline: StateOutline,
}

/// Puts a state into the folder, whose ledger has the block that the state is behind. `pieces` gives every piece that the assembly
/// lacks to the closure that it is called with; they are checked one by one against the certificate.
///
/// # Errors
/// The state is not the one that is certified, or the ledger has another block there; files cannot be written. What `pieces` says.
pub fn put_state<E: From<NodeError> + From<PieceError>>(
    folder: &Path,
    charter: &Arc<Charter>,
    config: &NodeConfig,
    state: StateOfBackup,
    pieces: impl FnOnce(&mut StateAssembly) -> Result<(), E>,
) -> Result<(), E> {
    let StateOfBackup { certificate, outline } = state;
    let (height, root) = (certificate.statement.height, certificate.statement.state_root);
    let (ledger, _) = Ledger::open(folder.join("ledger"), charter.ledger()).map_err(NodeError::from)?;
    let header = header_of(&ledger, &certificate)?;
    let choice = StoreChoice { kind: config.store, memory_megabytes: config.memory_megabytes };
    let stores = choice.open(&folder.join("state"))?;
    stores.recorded(height);
    let mut assembly = StateAssembly::new(outline, height, root, &*stores)?;
    pieces(&mut assembly)?;
    let state = assembly.finish(header)?;
    keep(folder, charter.ledger(), &*stores, (state, &certificate))?;
    let newest = ledger.tip().map_or(0, |(height, _)| height);
    let megabytes = if config.holders.is_empty() { config.row_history_megabytes } else { Some(0) };
    if let Some(rows) = KeptRows::open(folder, charter, newest, megabytes)? {
        rows.reach(height)?;
    }
    Ok(())
}

/// Which state the ledger has recorded where the certificate is.
fn header_of(ledger: &Ledger, certificate: &CheckpointCertificate) -> Result<CheckpointHeader, NodeError> {
    let statement = &certificate.statement;
    let height = statement.height;
    let refused = |reason: String| NodeError::Certificate { height, reason };
    let recorded = ledger.outcome_header(height)?;
    let outcome = recorded.ok_or_else(|| refused("the ledger has no such block".to_string()))?;
    let (expected, found) = (statement.outcome, outcome.digest());
    if expected != found {
        return Err(refused(format!(
            "the checkpoint's certificate is for the outcome {expected}, the ledger recorded {found}"
        )));
    }
    Ok(CheckpointHeader {
        ledger: statement.ledger,
        height,
        state_digest: outcome.state_digest,
        outcome: found,
    })
}

/// The store keeps the state, and files say which it is and who has certified it.
fn keep(
    folder: &Path,
    network: Digest,
    stores: &dyn Stores,
    (state, certificate): (Checkpoint, &CheckpointCertificate),
) -> Result<(), NodeError> {
    let Checkpoint { header, state, live } = state;
    let state = (state, live);
    end_at_checkpoint(&header, &state)?;
    let (store, live) = &state;
    let kept = keep_checkpoint(&header, store, store.snapshot(), live.content())?;
    let kept = kept.ok_or_else(closed_meanwhile)?;
    let (expected, found) = (certificate.statement.state_root, kept.tree().root());
    if expected != found {
        return Err(NodeError::State { height: header.height, expected, found });
    }
    let checkpoints = ledger::CheckpointStore::open(folder.join("checkpoints"), network)?;
    let manifest = Manifest { header, root: found };
    checkpoints.write(header.height, |writer| writer.write_all(&manifest.to_bytes()))?;
    checkpoints.certify(header.height, &encode(certificate))?;
    store.durable_point()?;
    Ok(stores.settle()?)
}
