//! A node's ends of the channels. Where the network is measured, messages wait for processors and lines ([`Machines`]); else
//! they go as they are.

use super::machines::{Contents, Machines};
use commonware_actor::{Feedback, Unreliable};
use commonware_cryptography::ed25519::PublicKey;
use commonware_glue::simulate::engine::ChannelPair;
use commonware_macros::select;
use commonware_p2p::{CheckedSender, LimitedSender, Message, Receiver, Recipients, Sender as _, simulated};
use commonware_runtime::{Clock as _, IoBufs, Spawner as _, Supervisor as _, deterministic::Context};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// A node's end of a channel.
pub(super) type End = (WireSender, WireReceiver);

type Inner = simulated::Sender<PublicKey, Context>;

/// A message that leaves at its time: when, in which order of those that leave together, for whom, what.
type Leaving = (Duration, u64, Recipients<PublicKey>, Vec<u8>, bool);

/// Where a node stands in a measured network.
#[derive(Clone)]
pub(super) struct Place {
    pub machines: Arc<Machines>,
    pub node: usize,
    /// Of all nodes.
    pub keys: Arc<Vec<PublicKey>>,
}

/// What a message on a channel of a service holds, in a network of so many members.
pub(super) type Holds = fn(channel: usize, members: usize) -> Contents;

/// Sends on a channel.
#[derive(Clone)]
pub(super) struct WireSender {
    inner: Inner,
    measured: Option<Measured>,
}

#[derive(Clone)]
pub(super) struct Measured {
    place: Place,
    contents: Contents,
    clock: Arc<Context>,
    leaving: mpsc::UnboundedSender<Leaving>,
    /// When the last message for each node leaves: what follows on this channel does not overtake it.
    last: Arc<Mutex<BTreeMap<PublicKey, Duration>>>,
}

/// Hears on a channel.
#[derive(Debug)]
pub(super) struct WireReceiver {
    inner: simulated::Receiver<PublicKey>,
    measured: Option<Taking>,
}

struct Taking {
    place: Place,
    contents: Contents,
    clock: Arc<Context>,
    /// Has come and is being taken, until then.
    coming: Option<(Message<PublicKey>, SystemTime)>,
}

impl std::fmt::Debug for Taking {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Taking").field("node", &self.place.node).finish_non_exhaustive()
    }
}

/// The ends of a node that stands at `place` where the network is measured.
pub(super) fn ends(
    context: &Context,
    channels: Vec<ChannelPair<PublicKey>>,
    place: Option<(Place, Holds)>,
) -> Vec<End> {
    let end = |(channel, (sender, receiver)): (usize, ChannelPair<PublicKey>)| {
        let Some((place, holds)) = &place else {
            let sender = WireSender { inner: sender, measured: None };
            return (sender, WireReceiver { inner: receiver, measured: None });
        };
        let clock = Arc::new(context.child("line"));
        let (leaving, queue) = mpsc::unbounded_channel();
        let sends = sender.clone();
        context.child("leaving").spawn(move |context| leave(context, sends, queue));
        let contents = holds(channel, place.keys.len());
        let taking = Taking { place: place.clone(), contents, clock: clock.clone(), coming: None };
        let last = Arc::default();
        let measured = Measured { place: place.clone(), contents, clock, leaving, last };
        (
            WireSender { inner: sender, measured: Some(measured) },
            WireReceiver { inner: receiver, measured: Some(taking) },
        )
    };
    channels.into_iter().enumerate().map(end).collect()
}

fn since_epoch(context: &Context) -> Duration {
    context.current().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Lets messages leave, each at its time.
async fn leave(context: Context, mut sender: Inner, mut queue: mpsc::UnboundedReceiver<Leaving>) {
    // `Recipients` have no order; their messages wait beside it.
    let mut waiting = BinaryHeap::<Reverse<(Duration, u64)>>::new();
    let mut messages = BTreeMap::new();
    loop {
        let now = since_epoch(&context);
        while let Some(Reverse((at, number))) = waiting.peek().copied()
            && at <= now
        {
            waiting.pop();
            if let Some((recipients, message, priority)) = messages.remove(&number) {
                sender.send(recipients, message, priority);
            }
        }
        let next = waiting.peek().map_or(Duration::from_secs(3_600), |Reverse((at, _))| *at - now);
        select! {
            message = queue.recv() => {
                let Some((at, number, recipients, message, priority)) = message else { return };
                waiting.push(Reverse((at, number)));
                messages.insert(number, (recipients, message, priority));
            },
            _ = context.sleep(next) => {},
        }
    }
}

/// A message to these, before it is sent.
pub(super) enum Checked<'a> {
    AsItIs(<Inner as LimitedSender>::Checked<'a>),
    Measured(&'a Measured, Vec<PublicKey>),
}

impl LimitedSender for WireSender {
    type PublicKey = PublicKey;
    type Checked<'a> = Checked<'a>;

    fn check(&mut self, recipients: Recipients<PublicKey>) -> Result<Checked<'_>, SystemTime> {
        let Some(measured) = &self.measured else {
            return self.inner.check(recipients).map(Checked::AsItIs);
        };
        let Place { node, keys, .. } = &measured.place;
        let recipients = match recipients {
            Recipients::All => {
                let others = keys.iter().enumerate().filter(|(other, _)| other != node);
                others.map(|(_, key)| key.clone()).collect()
            }
            Recipients::Some(some) => some,
            Recipients::One(one) => vec![one],
        };
        Ok(Checked::Measured(measured, recipients))
    }
}

impl CheckedSender for Checked<'_> {
    type PublicKey = PublicKey;

    fn recipients(&self) -> Vec<PublicKey> {
        match self {
            Checked::AsItIs(checked) => checked.recipients(),
            Checked::Measured(_, recipients) => recipients.clone(),
        }
    }

    fn send(self, message: impl Into<IoBufs> + Send, priority: bool) -> Unreliable<Feedback> {
        match self {
            Checked::AsItIs(checked) => checked.send(message, priority),
            Checked::Measured(measured, recipients) => {
                measured.send(recipients, message.into().coalesce().as_ref(), priority);
                Unreliable::new(Feedback::Ok)
            }
        }
    }
}

impl Measured {
    fn send(&self, recipients: Vec<PublicKey>, message: &[u8], priority: bool) {
        let Place { machines, node, .. } = &self.place;
        let now = since_epoch(&self.clock);
        let times = machines.send(*node, now, (message.len(), recipients.len()), self.contents);
        let mut last = self.last.lock();
        for (at, recipient) in times.into_iter().zip(recipients) {
            let last = last.entry(recipient.clone()).or_default();
            let at = at.max(*last);
            *last = at;
            let number = machines.number();
            let one = Recipients::One(recipient);
            // Nobody is there to send once the node was killed.
            let _ = self.leaving.send((at, number, one, message.to_vec(), priority));
        }
    }
}

impl Receiver for WireReceiver {
    type Error = simulated::Error;
    type PublicKey = PublicKey;

    /// What was begun to be taken is kept where the caller waits for something else meanwhile.
    async fn recv(&mut self) -> Result<Message<PublicKey>, simulated::Error> {
        let Some(taking) = &mut self.measured else {
            return self.inner.recv().await;
        };
        if taking.coming.is_none() {
            let message = self.inner.recv().await?;
            let (now, bytes) = (since_epoch(&taking.clock), message.1.len());
            let taken = taking.place.machines.take(taking.place.node, now, bytes, taking.contents);
            taking.coming = Some((message, UNIX_EPOCH + taken));
        }
        if let Some((_, taken)) = &taking.coming {
            taking.clock.sleep_until(*taken).await;
        }
        Ok(taking.coming.take().expect("it was put there").0)
    }

    fn capacity(&self) -> NonZeroUsize {
        self.inner.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::committee;
    use crate::simulation::{Costs, node_key};
    use commonware_p2p::simulated::Link;
    use commonware_p2p::{Manager as _, TrackedPeers};
    use commonware_runtime::{Quota, Runner as _, deterministic};
    use commonware_utils::{NZU32, NZUsize, Probability, ordered::Set};

    /// Two nodes with lines of 8 Mbit/s, and what the second one hears: how long messages are, and when they have come.
    async fn heard(context: &Context, lengths: &[usize]) -> Vec<(usize, Duration)> {
        let key = |node| committee::public_key(&node_key(node).public_key()).expect("a good key");
        let keys = Arc::new(vec![key(0), key(1)]);
        let config = simulated::Config {
            max_size: 1 << 20,
            max_peers_per_set: NZUsize!(2),
            disconnect_on_block: true,
            tracked_peer_sets: NZUsize!(1),
        };
        let (network, oracle) = simulated::Network::new(context.child("network"), config);
        network.start();
        oracle.manager().track(0, TrackedPeers::primary(Set::from_iter_dedup(keys.iter().cloned())));
        let latency = Duration::from_millis(10);
        let link =
            Link { latency, jitter: Duration::ZERO, success_rate: Probability::new(1, 1).expect("all") };
        oracle.add_link(keys[0].clone(), keys[1].clone(), link).await.expect("both are there");
        let costs = Costs::default();
        let machines = Arc::new(Machines::new(2, move |_, _| latency, 8_000_000, costs));
        let mut both = Vec::new();
        for node in 0..2 {
            let quota = Quota::per_second(NZU32!(64));
            let control = oracle.control(keys[node].clone());
            let channel = control.register(0, quota).await.expect("a channel");
            let place = Place { machines: machines.clone(), node, keys: keys.clone() };
            both.extend(ends(context, vec![channel], Some((place, |_, _| Contents::default()))));
        }
        context.sleep(Duration::from_millis(10)).await;
        let began = since_epoch(context);
        let [(sender, _), (_, receiver)] = &mut both[..] else { unreachable!("two nodes") };
        for length in lengths {
            sender.send(Recipients::All, vec![1; *length], false);
        }
        let mut heard = Vec::new();
        for _ in lengths {
            let (_, message) = receiver.recv().await.expect("the network goes on");
            heard.push((message.len(), since_epoch(context) - began));
        }
        heard
    }

    #[test]
    fn messages_take_the_time_of_lines_and_ways_and_do_not_overtake_one_another() {
        deterministic::Runner::timed(Duration::from_secs(60)).start(|context| async move {
            let heard = heard(&context, &[100_000, 100]).await;
            assert_eq!(heard.iter().map(|(length, _)| *length).collect::<Vec<_>>(), [100_000, 100]);
            // 100 ms out, 10 ms on the way, 100 ms in; the runtime adds a millisecond here and there.
            let (expected, slack) = (Duration::from_millis(210), Duration::from_millis(15));
            assert!((expected..expected + slack).contains(&heard[0].1), "{heard:?}");
        });
    }
}
