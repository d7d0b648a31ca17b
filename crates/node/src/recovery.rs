//! From the files of a node's folder to an engine at the ledger's tip: the newest good checkpoint, then the blocks
//! after it.

use crate::NodeError;
use crate::attesting::OwnOutcome;
use crate::row_history::KeptRows;
use engine::{Engine, Verifier};
use ledger::{BlockRecord, CheckpointStore, Ledger, LedgerError};
use state::CheckpointHeader;
use std::sync::Arc;
use types::{Charter, Pipeline};

/// An engine at the ledger's tip, and how it got there.
pub struct Recovered {
    /// The engine.
    pub engine: Engine,
    /// Height of the checkpoint that was loaded; 0 where everything was replayed.
    pub checkpoint: u64,
    /// Blocks executed again.
    pub replayed: u64,
    /// Checkpoints that could not be used, and why.
    pub refused: Vec<String>,
}

/// Loads the newest checkpoint below height `below` that is whole and whose replay agrees with the ledger; falls back to older ones and at
/// last to replaying every block.
///
/// # Errors
/// [`NodeError::Diverged`] where even full replay differs from the record; errors of the ledger's files.
pub fn recover(
    charter: &Arc<Charter>,
    pipeline: Pipeline,
    verifier: &Verifier,
    ledger: &Ledger,
    checkpoints: &CheckpointStore,
    rows: Option<&KeptRows>,
    below: u64,
) -> Result<Recovered, NodeError> {
    let tip = ledger.tip().map_or(0, |(height, _)| height);
    let mut refused = Vec::new();
    for height in checkpoints.newest().into_iter().filter(|height| *height < below) {
        if height > tip {
            refused.push(format!("checkpoint {height} lies above the ledger's tip {tip}"));
            continue;
        }
        if let Some(rows) = rows.filter(|rows| rows.tip() < height) {
            let known = rows.tip();
            refused.push(format!(
                "checkpoint {height} lies above height {known}, where the history of rows ends"
            ));
            continue;
        }
        let attempt = load(charter, ledger, checkpoints, height)
            .and_then(|engine| engine.with_pipeline(pipeline).map_err(|error| error.to_string()))
            .and_then(|engine| replay(engine, verifier, ledger, rows).map_err(|error| error.to_string()));
        match attempt {
            Ok((engine, replayed)) => return Ok(Recovered { engine, checkpoint: height, replayed, refused }),
            Err(reason) => refused.push(format!("checkpoint {height}: {reason}")),
        }
    }
    let (engine, replayed) =
        replay(Engine::new(charter.clone())?.with_pipeline(pipeline)?, verifier, ledger, rows)?;
    Ok(Recovered { engine, checkpoint: 0, replayed, refused })
}

fn load(
    charter: &Arc<Charter>,
    ledger: &Ledger,
    checkpoints: &CheckpointStore,
    height: u64,
) -> Result<Engine, String> {
    let mut reader = checkpoints.read(height).map_err(|error| error.to_string())?;
    let checkpoint = state::read_checkpoint(&mut reader).map_err(|error| error.to_string())?;
    reader.finish().map_err(|error| error.to_string())?;
    let recorded = ledger.summary(height).map_err(|error| error.to_string())?;
    let Some(outcome) = recorded.map(|summary| summary.outcome) else {
        return Err(format!("the ledger has no block {height}"));
    };
    let (state_digest, outcome) = (outcome.state_digest, outcome.digest());
    let expected = CheckpointHeader { ledger: charter.ledger(), height, state_digest, outcome };
    if checkpoint.header != expected {
        return Err(format!("expected the state {expected:?}, found {:?}", checkpoint.header));
    }
    let state = Arc::new(checkpoint.state);
    Engine::at(charter.clone(), &expected, state, checkpoint.live).map_err(|error| error.to_string())
}

/// Executes the blocks that the ledger has above the engine's height and compares every state digest.
fn replay(
    engine: Engine,
    verifier: &Verifier,
    ledger: &Ledger,
    rows: Option<&KeptRows>,
) -> Result<(Engine, u64), NodeError> {
    let mut engine = if rows.is_some() { engine.noting_row_history() } else { engine };
    let mut replayed = 0;
    for record in ledger.blocks_from(engine.height() + 1) {
        let record = record?;
        let block = verifier.trust_block(&record.block, &record.outcome.receipts);
        let executed = engine.execute(&block)?;
        if record.outcome.header != executed.outcome {
            let (expected, found) = (record.outcome.header.state_digest, executed.outcome.state_digest);
            return Err(NodeError::Diverged { height: block.header.height, expected, found });
        }
        if let (Some(rows), Some(history)) = (rows, engine.take_row_history()) {
            rows.record(block.header.height, &history)?;
        }
        replayed += 1;
    }
    Ok((engine, replayed))
}

/// The outcomes of recorded blocks that are not certified by blocks, and the newest that is; in front of them
/// the height up to which outcomes are certified: the newest certificate in a block that the record agrees with.
///
/// # Errors
/// The ledger cannot be read.
pub(crate) fn attestable(ledger: &Ledger) -> Result<(u64, Vec<OwnOutcome>), NodeError> {
    let tip = ledger.tip().map_or(0, |(height, _)| height);
    let mut certified = 0;
    for height in (1..=tip).rev() {
        let header = ledger.header(height)?;
        if header.is_none_or(|header| header.certified_height == 0) {
            break;
        }
        let Some(certificate) = ledger.block(height)?.and_then(|(block, _)| block.attested.outcome) else {
            continue;
        };
        let recorded = ledger.summary(certificate.statement.height)?;
        if recorded.is_some_and(|recorded| recorded.outcome == certificate.statement) {
            certified = certificate.statement.height;
            break;
        }
    }
    let own = |record: Result<BlockRecord, LedgerError>| {
        let BlockRecord { block, outcome, .. } = record?;
        Ok(OwnOutcome { outcome: outcome.header, digest: outcome.digest, attested: block.attested })
    };
    let outcomes: Result<Vec<_>, NodeError> = ledger.blocks_from(certified.max(1)).map(own).collect();
    Ok((certified, outcomes?))
}
