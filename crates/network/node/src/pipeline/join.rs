//! Going on from a certified checkpoint that was fetched from other nodes, instead of executing the blocks up to there.

use super::answer::Answerable;
use super::execute_block::ExecutedState;
use crate::NodeError;
use crate::attesting::Input;
use crate::charters::Amendments;
use crate::checkpoints::keep_checkpoint;
use crate::endorsing::RecentStates;
use crate::joining::{Fetched, Staging};
use crate::private::PrivateSchemas;
use crate::published::Published;
use crate::receipts::Receipts;
use crate::recovery::{Recovered, Recovery, closed_meanwhile, end_at_checkpoint};
use crossbeam_channel::Sender;
use engine::EngineError;
use ledger::Anchor;
use ordering::{CertificateVerifier, CertifyOutcomes, Ordering};
use parking_lot::Mutex;
use state::{Checkpoint, CheckpointHeader, LiveRequests, Manifest, Store};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use types::encode;

/// What joining needs.
pub(crate) struct Takeover {
    pub(crate) recovery: Recovery,
    pub(crate) audience: Audience,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) certifying: Arc<dyn CertifyOutcomes>,
    /// With the charters that verified blocks name.
    pub(crate) certificates: Arc<Mutex<CertificateVerifier>>,
    pub(crate) receipts: Arc<Receipts>,
    /// Where outcomes are attested; `None` where they are not.
    pub(crate) attest: Option<Sender<Input>>,
    /// Set where blocks are missing that only a checkpoint makes up for; `None` where the node does not join by itself.
    pub(crate) gap: Option<Arc<AtomicBool>>,
    /// Where pieces of a checkpoint are kept until all are there.
    pub(crate) staging: PathBuf,
}

/// Who sees the state that a node stands on.
pub(crate) struct Audience {
    pub(crate) amendments: Amendments,
    pub(crate) published: Arc<Published>,
    /// Schemas that the organisation is a member of.
    pub(crate) private: Option<Arc<PrivateSchemas>>,
    /// Where transactions are executed before they are ordered: the states that they are executed on.
    pub(crate) states: Option<Arc<RecentStates>>,
}

impl Audience {
    /// Shows a state that was made anew. `timestamp_ms`: time of the last block.
    pub(super) fn show(&self, state: &dyn ExecutedState, timestamp_ms: u64) {
        self.amendments.tell(state);
        let publish = |(snapshot, library)| {
            self.published.replace(snapshot, library, state.height(), state.state_digest());
        };
        match &self.private {
            Some(private) => private.show(state, publish),
            None => publish((state.snapshot(), state.library().clone())),
        }
        if let Some(states) = &self.states {
            states.replace(state.endorsement_basis(timestamp_ms));
        }
    }
}

impl Takeover {
    /// Joins: the node was behind, the stages are stopped, and the state is further than the ledger.
    pub(super) fn join(
        &self,
        fetched: Fetched,
        answers: &Sender<Answerable>,
    ) -> Result<Recovered, NodeError> {
        let (height, behind) = (fetched.anchor.height(), self.recovery.tip());
        tracing::info!(height, behind, "the node goes on from another node's certified checkpoint");
        // What was executed and not recorded: blocks in front of the checkpoint never will be.
        let _ = answers.send(Answerable::TakenBack(behind + 1));
        let recovered = self.take_over(fetched, behind)?;
        if let Some(gap) = &self.gap {
            gap.store(false, Atomic::Release);
        }
        Ok(recovered)
    }

    /// Installs the state and tells everybody who has to know.
    pub(super) fn take_over(&self, fetched: Fetched, tip: u64) -> Result<Recovered, NodeError> {
        let anchor = fetched.anchor.clone();
        let recovered = self.install(fetched)?;
        self.show(&*recovered.executor)?;
        if anchor.height() > tip {
            self.receipts.give_up();
            let refused = |reason| NodeError::Certificate { height: anchor.height(), reason };
            let charters = anchor.charters(&self.recovery.charter).map_err(refused)?;
            let adopted = self.certificates.lock().adopt(&charters);
            adopted.map_err(|error| refused(error.to_string()))?;
            self.certifying.follow(&charters);
            skip(&*self.ordering, &anchor)?;
            if let Some(attest) = &self.attest {
                // It ends after the pipeline only.
                let _ = attest.send(Input::Joined(Box::new(anchor)));
            }
        }
        Ok(recovered)
    }

    /// Makes the fetched state this node's: the checkpoint's file first, then the ledger, which makes it count. A crash
    /// leaves the node where it was or where it is to be. Where the ledger goes further than the checkpoint, the blocks behind
    /// it are executed again and nothing else changes.
    fn install(&self, fetched: Fetched) -> Result<Recovered, NodeError> {
        let Recovery { ledger, checkpoints, rows, stores, .. } = &self.recovery;
        let Fetched { anchor, checkpoint } = fetched;
        let height = anchor.height();
        let known_versions = self.recovery.known_versions;
        let refused = |reason| NodeError::Certificate { height, reason };
        let charters = anchor.charters(&self.recovery.charter).map_err(refused)?;
        if let Some(unknown) = known_versions.unknown(&charters).filter(|unknown| unknown.first <= height + 1)
        {
            // Before anything is written: a newer program begins where this one stood.
            return Err(EngineError::UnknownVersion(unknown).into());
        }
        // Whoever ends before the ledger begins behind it takes up what was there before.
        stores.recorded(height);
        let Checkpoint { header, state, live } = checkpoint;
        let (state, live) = self.keep(&header, (state, live))?;
        checkpoints.certify(height, &encode(&anchor.checkpoint))?;
        if self.recovery.tip() < height {
            ledger.begin_behind(anchor)?;
        }
        if let Some(rows) = rows {
            rows.reach(height)?;
        }
        stores.recorded(self.recovery.tip());
        let recovered = self.recovery.begin_with(Checkpoint { header, state, live })?;
        self.recovery.settle()?;
        Staging::remove(&self.staging)?;
        Ok(recovered)
    }

    /// The store keeps the state, and a file says which it is.
    fn keep(
        &self,
        header: &CheckpointHeader,
        state: (Arc<dyn Store>, LiveRequests),
    ) -> Result<(Arc<dyn Store>, LiveRequests), NodeError> {
        let height = header.height;
        end_at_checkpoint(header, &state)?;
        let (store, live) = &state;
        let kept = self
            .recovery
            .pool
            .install(|| keep_checkpoint(header, store, store.snapshot(), live.content()))?;
        let kept = kept.ok_or_else(closed_meanwhile)?;
        let manifest = Manifest { header: *header, root: kept.tree().root() };
        self.recovery.checkpoints.write(height, |writer| writer.write_all(&manifest.to_bytes()))?;
        Ok(state)
    }

    /// Shows the state that was made anew to everybody.
    pub(super) fn show(&self, state: &dyn ExecutedState) -> Result<(), NodeError> {
        let header = self.recovery.ledger.header(state.height())?;
        self.audience.show(state, header.map_or(0, |header| header.timestamp_ms));
        Ok(())
    }
}

/// Blocks up to the anchor are not needed from ordering.
pub(crate) fn skip(ordering: &dyn Ordering, anchor: &Anchor) -> Result<(), NodeError> {
    let height = anchor.height();
    ordering.acknowledge(height);
    let skipped = ordering.skip_to(&anchor.header, &anchor.certificate);
    skipped.map_err(|error| NodeError::Certificate { height, reason: error.to_string() })
}
