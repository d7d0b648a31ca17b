//! From marshal's final blocks to the node: adds the certificate, takes the transactions out of the mempool, hands
//! over, and keeps marshal's acknowledgements until the node has made the blocks durable.

use super::application::Shared;
use super::block::OrderedBlock;
use super::wiring::MarshalMailbox;
use crate::Delivery;
use crate::certificate::{Certificate, HEADERS_MAX};
use crate::sink::{Sink, hand_over};
use bytes::Bytes;
use commonware_actor::Feedback;
use commonware_codec::Encode as _;
use commonware_consensus::{Reporter, marshal::Update, types::Height};
use commonware_cryptography::Digested;
use commonware_runtime::{Clock, Handle, Metrics, Spawner};
use commonware_utils::acknowledgement::{Acknowledgement as _, Exact};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::{debug, error, warn};

/// How long delivery waits before it looks again for a certificate that is not on the disk.
const CERTIFICATE_AGAIN: Duration = Duration::from_millis(100);

/// Marshal's acknowledgements of blocks that the node has not made durable yet. Dropping one would stop marshal.
#[derive(Default)]
pub(crate) struct Acknowledgements(Mutex<Outstanding>);

#[derive(Default)]
struct Outstanding {
    waiting: BTreeMap<u64, Exact>,
    durable: u64,
}

impl Acknowledgements {
    /// Everything up to `height` is durable.
    pub(crate) fn durable(&self, height: u64) {
        let mut outstanding = self.0.lock();
        outstanding.durable = outstanding.durable.max(height);
        let durable = outstanding.durable;
        let above = outstanding.waiting.split_off(&(durable + 1));
        let done = std::mem::replace(&mut outstanding.waiting, above);
        done.into_values().for_each(Exact::acknowledge);
    }

    fn is_durable(&self, height: u64) -> bool {
        height <= self.height()
    }

    /// Everything up to there is durable.
    pub(crate) fn height(&self) -> u64 {
        self.0.lock().durable
    }

    /// Whether the node has blocks that it has not made durable.
    pub(crate) fn are_awaited(&self) -> bool {
        !self.0.lock().waiting.is_empty()
    }

    fn keep(&self, height: u64, acknowledgement: Exact) {
        self.0.lock().waiting.insert(height, acknowledgement);
        self.durable(0);
    }
}

/// Hears from marshal. Called on marshal's own task: only passes on.
#[derive(Clone)]
pub(crate) struct DeliveryReporter {
    shared: Arc<Shared>,
    /// Unbounded, but marshal has at most `max_pending_acks` blocks under way.
    blocks: mpsc::UnboundedSender<(Digested<OrderedBlock>, Exact)>,
}

impl Reporter for DeliveryReporter {
    type Activity = Update<OrderedBlock>;

    fn report(&mut self, update: Update<OrderedBlock>) -> Feedback {
        match update {
            Update::Tip(round, height, _) => {
                self.shared.final_height.fetch_max(height.get(), Atomic::AcqRel);
                self.shared.final_view.fetch_max(round.view().get(), Atomic::AcqRel);
                self.shared.lacking.there(height.get(), (self.shared.clock)());
                Feedback::Ok
            }
            Update::Block(block, acknowledgement) => match self.blocks.send((block, acknowledgement)) {
                Ok(()) => Feedback::Ok,
                Err(_) => Feedback::Closed,
            },
        }
    }
}

/// Starts the delivery of final blocks into `sink`.
pub(crate) fn start<E: Spawner + Clock + Metrics>(
    context: E,
    shared: Arc<Shared>,
    marshal: MarshalMailbox,
    acknowledgements: Arc<Acknowledgements>,
    sink: impl Sink,
) -> (DeliveryReporter, Handle<()>) {
    let (blocks, queue) = mpsc::unbounded_channel();
    let reporter = DeliveryReporter { shared: shared.clone(), blocks };
    let handle =
        context.spawn(move |context| deliver(context, shared, marshal, acknowledgements, sink, queue));
    (reporter, handle)
}

async fn deliver<E: Spawner + Clock>(
    context: E,
    shared: Arc<Shared>,
    marshal: MarshalMailbox,
    acknowledgements: Arc<Acknowledgements>,
    mut sink: impl Sink,
    mut queue: mpsc::UnboundedReceiver<(Digested<OrderedBlock>, Exact)>,
) {
    while let Some((block, acknowledgement)) = queue.recv().await {
        let height = block.inner().0.header.height;
        match shared.ids(&context, &block).await {
            Ok(ids) => shared.mempool.delivered(&ids),
            Err(fault) => {
                error!(height, %fault, "more than f members agreed on a block with a wrong transaction")
            }
        }
        let attested = &block.inner().0.attested;
        shared.members.certificates.carried(attested);
        if let Err(error) = shared.members.epochs.learn(attested) {
            error!(height, %error, "more than f members agreed on a block with charters that cannot follow");
        }
        shared.delivered.fetch_max(height, Atomic::AcqRel);
        shared.reached.send_replace(height);
        shared.lacking.have(height, (shared.clock)());
        let durable = height == 0 || acknowledgements.is_durable(height);
        acknowledgements.keep(height, acknowledgement);
        if durable {
            acknowledgements.durable(height);
            continue;
        }
        let certificate = await_certificate(&context, &marshal, &block).await;
        let delivery = Delivery { block: block.inner().0.clone(), certificate };
        if !hand_over(&context, &mut sink, delivery).await {
            debug!(height, "nobody takes blocks any more; delivery ends");
            return;
        }
    }
}

/// What proves that `block` is final. A node that was killed may have stored a final block and not yet what proves it:
/// then it waits for a block that builds on this one to become final.
async fn await_certificate<E: Clock>(
    context: &E,
    marshal: &MarshalMailbox,
    block: &Digested<OrderedBlock>,
) -> Bytes {
    let mut waited = false;
    loop {
        if let Some(certificate) = certificate(marshal, block).await {
            return certificate;
        }
        if !std::mem::replace(&mut waited, true) {
            let height = block.inner().0.header.height;
            warn!(height, "a final block has no certificate on this node's disk; waiting for the next ones");
        }
        context.sleep(CERTIFICATE_AGAIN).await;
    }
}

/// What proves that `block` is final. Nearly always n − f members finalized it; else they finalized a block that
/// builds on it, which marshal has stored before it delivered this one.
async fn certificate(marshal: &MarshalMailbox, block: &Digested<OrderedBlock>) -> Option<Bytes> {
    let mut height = Height::new(block.inner().0.header.height);
    let mut headers = Vec::new();
    while headers.len() <= HEADERS_MAX {
        if let Some(finalization) = marshal.get_finalization(height).await {
            let finalization = finalization.encode().to_vec();
            return Some(Certificate::Bft { headers, finalization }.to_bytes());
        }
        height = height.next();
        headers.push(marshal.get_block(height).await?.inner().0.header.clone());
    }
    None
}

/// A final block from this node's storage.
pub(crate) async fn read(marshal: &MarshalMailbox, height: u64) -> Option<Delivery> {
    let block = marshal.get_block(Height::new(height)).await?;
    let certificate = certificate(marshal, &block).await?;
    (height > 0).then(|| Delivery { block: block.inner().0.clone(), certificate })
}
