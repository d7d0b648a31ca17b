//! Reads ordering's deliveries; fills the queue of `execute`.

use super::Shared;
use crate::NodeError;
use crate::metrics::VERIFY;
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, select};
use engine::VerifiedBlock;
use ordering::Delivery;
use std::time::Instant;
use types::Block;

/// A block whose certificate and signatures are judged.
pub(super) struct Verified {
    pub(super) block: Block,
    pub(super) certificate: Bytes,
    pub(super) verified: VerifiedBlock,
}

/// Takes blocks in height order, each once: ordering delivers at least once, and may start above the ledger's tip if
/// the ledger lost its tail, or if blocks were taken back; what lies between ordering still has. Ends early when
/// `stopped` disconnects.
pub(super) fn run(
    shared: &Shared,
    mut next_height: u64,
    stopped: &Receiver<()>,
    verified: &Sender<Verified>,
) -> Result<(), NodeError> {
    loop {
        let delivery = select! {
            recv(stopped) -> _ => return Ok(()),
            recv(shared.ordering.deliveries()) -> delivery => match delivery {
                Ok(delivery) => delivery,
                Err(_) => return Ok(()),
            },
        };
        shared.metrics.waiting(VERIFY, shared.ordering.deliveries().len());
        let height = delivery.block.header.height;
        while next_height < height {
            let gap = NodeError::Gap { ledger: next_height - 1, delivered: height };
            let missing = shared.ordering.read(next_height).ok_or(gap)?;
            if !verify(shared, missing, verified)? {
                return Ok(());
            }
            next_height += 1;
        }
        if height < next_height {
            continue;
        }
        if !verify(shared, delivery, verified)? {
            return Ok(());
        }
        next_height += 1;
    }
}

/// False where the next stage has ended.
fn verify(shared: &Shared, delivery: Delivery, verified: &Sender<Verified>) -> Result<bool, NodeError> {
    let start = Instant::now();
    let Delivery { block, certificate } = delivery;
    shared
        .certificates
        .verify(&block.header, &certificate)
        .map_err(|error| NodeError::Certificate { height: block.header.height, reason: error.to_string() })?;
    let judged = shared.pool.install(|| shared.verifier.verify_block(&block));
    shared.metrics.worked(VERIFY, start.elapsed());
    Ok(verified.send(Verified { block, certificate, verified: judged }).is_ok())
}
