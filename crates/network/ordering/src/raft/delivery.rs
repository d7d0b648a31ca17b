//! From committed entries to the node: judges them in their order, takes the transactions of blocks out of the mempool, and
//! hands the blocks over. A task of its own, so that the group goes on while signatures are verified.

use super::chain::{Judged, Offer, judge};
use super::config::PENDING_BLOCKS;
use super::shared::Shared;
use super::window::Position;
use crate::computation::off_the_reactor;
use crate::cutting::Parent;
use crate::sink::{Sink, hand_over};
use bytes::Bytes;
use commonware_runtime::{Clock, Spawner};
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use tokio::sync::mpsc;
use tracing::{debug, warn};
use types::BlockHeader;

/// What is next.
pub(super) enum Feed {
    /// A committed entry of the log. One that holds no block is empty.
    Entry { position: Position, bytes: Bytes },
    /// What another member says stands in the log.
    Backfill { bytes: Bytes },
    /// Blocks up to this one are not needed.
    Skip { header: Box<BlockHeader> },
}

/// Runs until nobody feeds it or takes blocks any more.
pub(super) async fn run<E: Spawner + Clock>(
    context: E,
    shared: Arc<Shared>,
    mut feeds: mpsc::Receiver<Feed>,
    mut sink: impl Sink,
) {
    let mut tip = *shared.tip.borrow();
    while let Some(feed) = feeds.recv().await {
        tip.feeds += 1;
        let (bytes, position, in_log) = match feed {
            Feed::Entry { position, bytes } => (bytes, position, true),
            Feed::Backfill { bytes } => (bytes, tip.position, false),
            Feed::Skip { header } => {
                if header.height > tip.parent.height {
                    (tip.parent, tip.is_logged) = (Parent::block(&header), false);
                }
                shared.publish(tip);
                continue;
            }
        };
        tip.position = position;
        let height = Offer::header_of(&bytes).map_or(0, |header| header.height);
        let judged = match bytes.is_empty() {
            true => Judged::Behind,
            false => {
                let (shared, parent) = (shared.clone(), tip.parent);
                off_the_reactor(&context, move || judge(&shared, &parent, &bytes)).await
            }
        };
        match judged {
            Judged::Behind => {
                tip.is_logged |= in_log && height == tip.parent.height;
                shared.publish(tip);
            }
            Judged::Unknown => {
                let height = tip.parent.height;
                *shared.failed.lock() = Some(format!(
                    "the charters that block {height} names are not known here; the node must learn of them"
                ));
                return;
            }
            Judged::Dropped(reason) => {
                warn!(entry = position.index, %reason, "an offered block is dropped by every node");
                if in_log {
                    shared.dropped.lock().push(position.index);
                }
                shared.publish(tip);
            }
            Judged::Block { delivery, ids } => {
                wait_for_room(&shared, height).await;
                shared.mempool.delivered(&ids);
                shared.members.certificates.carried(&delivery.block.attested);
                (tip.parent, tip.is_logged) = (Parent::block(&delivery.block.header), in_log);
                shared.publish(tip);
                if !hand_over(&context, &mut sink, *delivery).await {
                    debug!(height, "nobody takes blocks any more; delivery ends");
                    return;
                }
            }
        }
    }
}

/// Waits while too many blocks are not durable at the node.
async fn wait_for_room(shared: &Shared, height: u64) {
    loop {
        let acknowledged = shared.acknowledgement.notified();
        if height <= shared.acknowledged.load(Atomic::Acquire) + PENDING_BLOCKS {
            return;
        }
        acknowledged.await;
    }
}
