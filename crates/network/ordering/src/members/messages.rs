//! What the members' nodes tell one another beside ordering: on two channels of its own, one for what all are told and one
//! for what one of them is told, over the same authenticated connections. Nothing here waits: what finds no room is dropped, and whoever needs it says it again.

use super::{Epochs, Members};
use crate::MESSAGE_BYTES_MAX;
use bytes::Bytes;
use commonware_cryptography::ed25519::PublicKey;
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::{Handle, Metrics, Spawner};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::mpsc;
use tracing::debug;

/// Messages that wait to be sent.
const OUTGOING_MAX: usize = 64;
/// Messages that wait for the node. With their greatest length they are 16 MiB.
const INCOMING_MAX: usize = 256;

/// A message, and whom it is for: one member, or all.
type Outgoing = (Option<u16>, Bytes);

/// Both ends of the queues between the node and a channel.
pub(crate) struct Messages {
    outgoing: mpsc::Sender<Outgoing>,
    /// Until the channel starts.
    to_send: Mutex<Option<mpsc::Receiver<Outgoing>>>,
    incoming: crossbeam_channel::Sender<(u16, Bytes)>,
    received: crossbeam_channel::Receiver<(u16, Bytes)>,
}

impl Messages {
    pub(crate) fn new() -> Messages {
        let (outgoing, to_send) = mpsc::channel(OUTGOING_MAX);
        let (incoming, received) = crossbeam_channel::bounded(INCOMING_MAX);
        Messages { outgoing, to_send: Mutex::new(Some(to_send)), incoming, received }
    }

    /// Sends to the node of one member, or to those of all others, if there is room.
    pub(crate) fn send(&self, member: Option<u16>, message: Bytes) {
        if message.len() > MESSAGE_BYTES_MAX {
            debug!(bytes = message.len(), "a message is too long and is not sent");
        } else if self.outgoing.try_send((member, message)).is_err() {
            debug!("too many messages wait to be sent; one is dropped");
        }
    }

    /// What the others have sent.
    pub(crate) fn received(&self) -> &crossbeam_channel::Receiver<(u16, Bytes)> {
        &self.received
    }

    fn hear(&self, member: Option<usize>, message: Bytes) {
        match member {
            Some(member) if message.len() <= MESSAGE_BYTES_MAX => {
                if self.incoming.try_send((member as u16, message)).is_err() {
                    debug!(member, "the node does not keep up with messages; one is dropped");
                }
            }
            _ => debug!(?member, bytes = message.len(), "ignored a message that is too long or a stranger's"),
        }
    }
}

/// Carries what all are told, and what one of them is told.
pub(crate) fn start_both<E, S, R>(context: &E, members: &Members, to_all: (S, R), to_one: (S, R))
where
    E: Spawner + Metrics,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
{
    let channels = [("messages", to_all, &members.messages), ("exchange", to_one, &members.exchange)];
    for (name, channel, messages) in channels {
        start(context.child(name), channel, messages.clone(), members.epochs.clone());
    }
}

/// Sends and hears. `epochs` knows the members' keys.
fn start<E, S, R>(
    context: E,
    (mut sender, mut receiver): (S, R),
    messages: Arc<Messages>,
    epochs: Epochs,
) -> Handle<()>
where
    E: Spawner + Metrics,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
{
    let to_send = messages.to_send.lock().take();
    context.spawn(move |_| async move {
        let Some(mut to_send) = to_send else { return };
        loop {
            select! {
                message = to_send.recv() => match message {
                    Some((member, message)) => {
                        let to = match member.map(|member| epochs.key_of(member)) {
                            None => Recipients::All,
                            Some(Some(member)) => Recipients::One(member),
                            Some(None) => continue,
                        };
                        drop(sender.send(to, message.to_vec(), true));
                    }
                    None => return,
                },
                message = receiver.recv() => match message {
                    Ok((peer, message)) => {
                        messages.hear(epochs.member(&peer), Bytes::copy_from_slice(message.as_ref()));
                    }
                    Err(_) => return,
                },
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_dropped_and_nothing_waits() {
        let messages = Messages::new();
        let long = Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1]);
        messages.send(None, long.clone());
        for number in 0..OUTGOING_MAX + 9 {
            messages.send(Some(2), Bytes::from(vec![number as u8]));
        }
        let mut to_send = messages.to_send.lock().take().expect("not started");
        let sent: Vec<Outgoing> = std::iter::from_fn(|| to_send.try_recv().ok()).collect();
        assert_eq!(sent.len(), OUTGOING_MAX);
        assert_eq!(sent[0], (Some(2), Bytes::from_static(&[0])));

        messages.hear(Some(1), long);
        messages.hear(None, Bytes::from_static(b"a stranger's"));
        for _ in 0..INCOMING_MAX + 9 {
            messages.hear(Some(2), Bytes::from_static(b"word"));
        }
        assert_eq!(messages.received().len(), INCOMING_MAX);
        assert_eq!(messages.received().recv(), Ok((2, Bytes::from_static(b"word"))));
    }
}
