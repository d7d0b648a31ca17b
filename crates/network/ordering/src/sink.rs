//! Where final blocks leave a service: the queue in front of the node's pipeline.

use crate::Delivery;
use commonware_runtime::Clock;
use std::time::Duration;

/// How long delivery waits before it offers a block again to a consumer whose queue is full.
const OFFER_AGAIN: Duration = Duration::from_millis(2);

/// Where final blocks go.
pub(crate) trait Sink: Send + 'static {
    /// Takes the block, or gives it back if there is no room now.
    fn offer(&mut self, delivery: Delivery) -> Result<(), Full>;
}

/// Why a sink did not take a block.
pub(crate) enum Full {
    /// No room now.
    Later(Box<Delivery>),
    /// The consumer is gone.
    Never,
}

/// The consumer's end of a bounded channel.
pub(crate) struct ChannelSink(crossbeam_channel::Sender<Delivery>);

impl ChannelSink {
    /// With the other end, and room for so many blocks.
    pub(crate) fn new(blocks: usize) -> (ChannelSink, crossbeam_channel::Receiver<Delivery>) {
        let (sender, deliveries) = crossbeam_channel::bounded(blocks);
        (ChannelSink(sender), deliveries)
    }
}

impl Sink for ChannelSink {
    fn offer(&mut self, delivery: Delivery) -> Result<(), Full> {
        use crossbeam_channel::TrySendError;
        self.0.try_send(delivery).map_err(|error| match error {
            TrySendError::Full(delivery) => Full::Later(Box::new(delivery)),
            TrySendError::Disconnected(_) => Full::Never,
        })
    }
}

/// Offers a block until it is taken; `false` where nobody takes blocks any more.
pub(crate) async fn hand_over(context: &impl Clock, sink: &mut impl Sink, mut delivery: Delivery) -> bool {
    loop {
        match sink.offer(delivery) {
            Ok(()) => return true,
            Err(Full::Later(back)) => delivery = *back,
            Err(Full::Never) => return false,
        }
        context.sleep(OFFER_AGAIN).await;
    }
}
