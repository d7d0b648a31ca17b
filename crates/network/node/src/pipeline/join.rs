//! Going on from a certified checkpoint that was fetched from other nodes, instead of executing the blocks up to there.

use super::Shared;
use super::answer::Answerable;
use crate::NodeError;
use crate::attesting::Input;
use crate::joining::{Fetched, Staging};
use crate::recovery::{Known, Recovered};
use crossbeam_channel::Sender;
use engine::{Engine, EngineError};
use ledger::Anchor;
use ordering::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use types::encode;

/// Makes the fetched state this node's: the checkpoint's file first, then the ledger, which makes it count. A crash
/// leaves the node where it was or where it is to be. Where the ledger goes further than the checkpoint, the blocks behind
/// it are executed again and nothing else changes.
fn install(shared: &Shared, fetched: Fetched) -> Result<Recovered, NodeError> {
    let Fetched { anchor, checkpoint } = fetched;
    let (header, height) = (checkpoint.header, anchor.height());
    let known_versions = shared.charters.known_versions();
    let refused = |reason| NodeError::Certificate { height, reason };
    let charters = anchor.charters(&shared.charter).map_err(refused)?;
    if let Some(unknown) = known_versions.unknown(&charters).filter(|unknown| unknown.first <= height + 1) {
        // Before anything is written: a newer program begins where this one stood.
        return Err(EngineError::UnknownVersion(unknown).into());
    }
    let content = checkpoint.live.content();
    shared.checkpoints.write(height, |writer| {
        state::write_checkpoint(&header, checkpoint.state.snapshot().as_ref(), &content, writer)
    })?;
    shared.checkpoints.certify(height, &encode(&anchor.checkpoint))?;
    let tip = shared.ledger.tip().map_or(0, |(height, _)| height);
    if tip < height {
        shared.ledger.begin_behind(anchor)?;
    }
    if let Some(rows) = &shared.rows {
        rows.reach(height)?;
    }
    let state = (Arc::new(checkpoint.state), checkpoint.live);
    let engine = Engine::continued(shared.charter.clone(), &header, state, known_versions)?;
    let engine = engine.with_pipeline(shared.pipeline)?;
    let (engine, replayed) = shared.pool.install(|| shared.recovery().replay(engine, &Known::NOTHING))?;
    Staging::remove(&shared.staging)?;
    Ok(Recovered { engine, checkpoint: height, replayed, refused: Vec::new() })
}

/// Joins: the node was behind, the stages are stopped, and the state is further than the ledger.
pub(super) fn join(
    shared: &Shared,
    fetched: Fetched,
    answers: &Sender<Answerable>,
) -> Result<Recovered, NodeError> {
    let (anchor, behind) = (fetched.anchor.clone(), shared.ledger.tip().map_or(0, |(height, _)| height));
    tracing::info!(
        height = anchor.height(),
        behind,
        "the node goes on from another node's certified checkpoint"
    );
    // What was executed and not recorded: blocks in front of the checkpoint never will be.
    let _ = answers.send(Answerable::TakenBack(behind + 1));
    let recovered = take_over(shared, fetched, behind)?;
    if let Some(gap) = &shared.gap {
        gap.store(false, Atomic::Release);
    }
    Ok(recovered)
}

/// Installs the state and tells everybody who has to know.
pub(super) fn take_over(shared: &Shared, fetched: Fetched, tip: u64) -> Result<Recovered, NodeError> {
    let anchor = fetched.anchor.clone();
    let recovered = install(shared, fetched)?;
    follow(shared, &recovered.engine)?;
    if anchor.height() > tip {
        shared.receipts.give_up();
        let refused = |reason| NodeError::Certificate { height: anchor.height(), reason };
        let charters = anchor.charters(&shared.charter).map_err(refused)?;
        let adopted = shared.certificates.lock().adopt(&charters);
        adopted.map_err(|error| refused(error.to_string()))?;
        shared.certifying.follow(&charters);
        skip(shared.ordering.as_ref(), &anchor)?;
        if let Some(attest) = &shared.attest {
            // It ends after the pipeline only.
            let _ = attest.send(Input::Joined(Box::new(anchor)));
        }
    }
    Ok(recovered)
}

/// Blocks up to the anchor are not needed from ordering.
pub(crate) fn skip(ordering: &dyn Ordering, anchor: &Anchor) -> Result<(), NodeError> {
    let height = anchor.height();
    ordering.acknowledge(height);
    let skipped = ordering.skip_to(&anchor.header, &anchor.certificate);
    skipped.map_err(|error| NodeError::Certificate { height, reason: error.to_string() })
}

/// Shows the state that was made anew to everybody.
pub(super) fn follow(shared: &Shared, engine: &Engine) -> Result<(), NodeError> {
    shared.follow_charters(engine);
    let (snapshot, library) = (engine.state().snapshot(), engine.library().clone());
    shared.published.replace(snapshot, library, engine.height(), engine.state_digest());
    if let Some(states) = &shared.states {
        let header = shared.ledger.header(engine.height())?;
        states.replace(engine.endorsement_basis(header.map_or(0, |header| header.timestamp_ms)));
    }
    Ok(())
}
