//! Reads ordering's deliveries; fills the queue of `execute`.

use super::Shared;
use crate::NodeError;
use crate::metrics::VERIFY;
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, TryRecvError, select};
use engine::VerifiedBlock;
use ordering::Delivery;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;
use types::Block;

/// A block whose certificate and signatures are judged.
pub(super) struct Verified {
    pub(super) block: Block,
    pub(super) certificate: Bytes,
    pub(super) verified: VerifiedBlock,
}

/// Takes blocks in height order, each once: ordering delivers at least once, and may start above the ledger's tip if
/// the ledger lost its tail, or if blocks were taken back; what lies between ordering still has.
pub(super) struct Verify {
    next_height: u64,
}

impl Verify {
    pub(super) fn new(next_height: u64) -> Verify {
        Verify { next_height }
    }

    /// Heights that must come before what was delivered.
    pub(super) fn missing(&self, delivered: u64) -> Range<u64> {
        self.next_height..delivered
    }

    /// Judges the next block; nothing comes of one that was taken before.
    pub(super) fn step(
        &mut self,
        shared: &Shared,
        delivery: Delivery,
    ) -> Result<Option<Verified>, NodeError> {
        let start = Instant::now();
        let Delivery { block, certificate } = delivery;
        let height = block.header.height;
        if height < self.next_height {
            return Ok(None);
        }
        if height > self.next_height {
            return Err(NodeError::Gap { ledger: self.next_height - 1, delivered: height });
        }
        let mut certificates = shared.certificates.lock();
        let checked = certificates.verify(&block.header, &certificate);
        let followed = checked.and_then(|()| certificates.follow(&block.attested));
        followed.map_err(|error| NodeError::Certificate { height, reason: error.to_string() })?;
        let charters = certificates.charters().clone();
        drop(certificates);
        let verified = shared.pool.install(|| shared.verifier.verify_block(&charters, &block));
        shared.metrics.worked(VERIFY, start.elapsed());
        self.next_height += 1;
        Ok(Some(Verified { block, certificate, verified }))
    }
}

/// Works until ordering or the next stage has ended, or until `stopped` disconnects. Ordering ends by itself only where
/// something failed.
pub(super) fn run(
    shared: &Shared,
    next_height: u64,
    stopped: &Receiver<()>,
    verified: &Sender<Verified>,
) -> Result<(), NodeError> {
    let mut verify = Verify::new(next_height);
    loop {
        let delivery = select! {
            recv(stopped) -> _ => return Ok(()),
            recv(shared.ordering.deliveries()) -> delivery => match delivery {
                Ok(delivery) => delivery,
                Err(_) => return Err(NodeError::OrderingEnded),
            },
        };
        shared.metrics.waiting(VERIFY, shared.ordering.deliveries().len());
        let missing = verify.missing(delivery.block.header.height);
        let read = missing.map_while(|height| shared.ordering.read(height));
        for delivery in read.chain([delivery]) {
            // There may be many.
            if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                return Ok(());
            }
            let next = match verify.step(shared, delivery) {
                Err(NodeError::Gap { ledger, delivered }) if shared.gap.is_some() => {
                    return wait_for_join(shared, stopped, (ledger, delivered));
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
fn wait_for_join(
    shared: &Shared,
    stopped: &Receiver<()>,
    (ledger, delivered): (u64, u64),
) -> Result<(), NodeError> {
    tracing::warn!(
        ledger,
        delivered,
        "blocks between these heights are not here: the node joins from a checkpoint"
    );
    if let Some(gap) = &shared.gap {
        gap.store(true, Ordering::Release);
    }
    loop {
        select! {
            recv(stopped) -> _ => return Ok(()),
            recv(shared.ordering.deliveries()) -> delivery => if delivery.is_err() {
                return Ok(());
            },
        }
    }
}
