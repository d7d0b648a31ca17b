//! Reads ordering's deliveries; fills the queue of `execute`.

use crate::NodeError;
use crate::metrics::{NodeMetrics, VERIFY};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, TryRecvError, select};
use engine::{VerifiedBlock, Verifier};
use ordering::{CertificateVerifier, Delivery, Ordering};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::time::Instant;
use types::Block;

/// A block whose certificate and signatures are judged.
pub(super) struct Verified {
    pub(super) block: Block,
    pub(super) certificate: Bytes,
    pub(super) verified: VerifiedBlock,
}

/// What the stage needs.
#[derive(Clone)]
pub(crate) struct VerifyStage {
    pub(crate) ordering: Arc<dyn Ordering>,
    /// With the charters that verified blocks name.
    pub(crate) certificates: Arc<Mutex<CertificateVerifier>>,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) pool: Arc<rayon::ThreadPool>,
    pub(crate) metrics: Arc<NodeMetrics>,
    /// Set where blocks are missing that only a checkpoint makes up for; `None` where the node does not join by itself.
    pub(crate) gap: Option<Arc<AtomicBool>>,
}

/// Takes blocks in height order, each once: ordering delivers at least once, and may start above the ledger's tip if
/// the ledger lost its tail, or if blocks were taken back; what lies between ordering still has.
pub(super) struct Verifying {
    stage: VerifyStage,
    next_height: u64,
}

impl VerifyStage {
    /// The block of this height is the next one.
    pub(super) fn from(&self, next_height: u64) -> Verifying {
        Verifying { stage: self.clone(), next_height }
    }

    /// Blocks are missing that ordering does not have: the node joins, where it does so by itself.
    pub(super) fn tell_gap(&self) -> bool {
        self.gap.as_ref().inspect(|gap| gap.store(true, Atomic::Release)).is_some()
    }
}

impl Verifying {
    /// Heights that must come before what was delivered.
    pub(super) fn missing(&self, delivered: u64) -> Range<u64> {
        self.next_height..delivered
    }

    /// Judges the next block; nothing comes of one that was taken before.
    pub(super) fn step(&mut self, delivery: Delivery) -> Result<Option<Verified>, NodeError> {
        let VerifyStage { certificates, verifier, pool, metrics, .. } = &self.stage;
        let start = Instant::now();
        let Delivery { block, certificate } = delivery;
        let height = block.header.height;
        if height < self.next_height {
            return Ok(None);
        }
        if height > self.next_height {
            return Err(NodeError::Gap { ledger: self.next_height - 1, delivered: height });
        }
        let mut certificates = certificates.lock();
        let checked = certificates.verify_block(&block, &certificate);
        let followed = checked.and_then(|()| certificates.follow(&block.attested));
        followed.map_err(|error| NodeError::Certificate { height, reason: error.to_string() })?;
        let charters = certificates.charters().clone();
        drop(certificates);
        let verified = pool.install(|| verifier.verify_block(&charters, &block));
        metrics.worked_on(VERIFY, [height], start);
        self.next_height += 1;
        Ok(Some(Verified { block, certificate, verified }))
    }

    /// Works until ordering or the next stage has ended, or until `stopped` disconnects. Ordering ends by itself only where
    /// something failed.
    pub(super) fn run(
        mut self,
        stopped: &Receiver<()>,
        verified: &Sender<Verified>,
    ) -> Result<(), NodeError> {
        let VerifyStage { ordering, metrics, .. } = self.stage.clone();
        loop {
            let delivery = select! {
                recv(stopped) -> _ => return Ok(()),
                recv(ordering.deliveries()) -> delivery => match delivery {
                    Ok(delivery) => delivery,
                    Err(_) => {
                        return Err(ordering.failure().map_or(NodeError::OrderingEnded, NodeError::Ordering));
                    }
                },
            };
            metrics.waiting(VERIFY, ordering.deliveries().len());
            let missing = self.missing(delivery.block.header.height);
            let read = missing.map_while(|height| ordering.read(height));
            for delivery in read.chain([delivery]) {
                // There may be many.
                if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                    return Ok(());
                }
                let next = match self.step(delivery) {
                    Err(NodeError::Gap { ledger, delivered }) if self.stage.gap.is_some() => {
                        self.wait_for_join(stopped, (ledger, delivered));
                        return Ok(());
                    }
                    step => step?,
                };
                let Some(next) = next else { continue };
                if verified.send(next).is_err() {
                    return Ok(());
                }
            }
        }
    }

    /// Ordering has no longer, or never had, the blocks behind the ledger's tip: it began at a checkpoint, and the ledger was
    /// lost. The node joins anew; blocks that come meanwhile ordering has.
    fn wait_for_join(&self, stopped: &Receiver<()>, (ledger, delivered): (u64, u64)) {
        tracing::warn!(
            ledger,
            delivered,
            "blocks between these heights are not here: the node joins from a checkpoint"
        );
        self.stage.tell_gap();
        loop {
            select! {
                recv(stopped) -> _ => return,
                recv(self.stage.ordering.deliveries()) -> delivery => if delivery.is_err() {
                    return;
                },
            }
        }
    }
}
