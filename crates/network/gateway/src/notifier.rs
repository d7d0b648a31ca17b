//! Who listens, and what they are told: what transactions notify, block by block in the ledger's order, once the node answers for
//! their outcome.

use crate::limits;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;
use types::{Notification, TransactionId};

/// Knows all sessions of a node that listen. The node tells it what is notified; it waits for nobody.
#[derive(Default)]
pub struct Notifier {
    by_channel: Mutex<HashMap<String, Vec<Arc<Listener>>>>,
}

/// A notification, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) transaction: TransactionId,
    pub(crate) notification: Notification,
}

/// More waits for a session than may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// What waits for one session.
#[derive(Default)]
struct Listener {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    told: VecDeque<Told>,
    bytes: usize,
    is_lost: bool,
}

impl Notifier {
    /// Nobody listens yet.
    pub fn new() -> Notifier {
        Notifier::default()
    }

    /// A transaction whose outcome is certain says this.
    pub fn publish(&self, transaction: TransactionId, said: &[Notification]) {
        if said.is_empty() {
            return;
        }
        let by_channel = self.by_channel.lock();
        // Endorsers may have signed any bytes. A zero byte would end a text of the protocol early.
        let is_text = |said: &&Notification| !said.channel.contains('\0') && !said.payload.contains('\0');
        for notification in said.iter().filter(is_text) {
            let listeners = by_channel.get(&*notification.channel);
            for listener in listeners.into_iter().flatten() {
                listener.add(Told { transaction, notification: notification.clone() });
            }
        }
    }
}

impl Listener {
    fn add(&self, told: Told) {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes + told.notification.bytes() + limits::NOTIFICATION_SPACE;
        if waiting.is_lost || bytes > limits::LISTENER_BYTES_MAX {
            // Whoever misses one must know it: the session ends.
            *waiting = Waiting { is_lost: true, ..Waiting::default() };
        } else {
            waiting.bytes = bytes;
            waiting.told.push_back(told);
        }
        drop(waiting);
        self.arrived.notify_one();
    }
}

/// The channels that a session listens on; dropped with it.
pub(crate) struct Listening {
    notifier: Arc<Notifier>,
    listener: Arc<Listener>,
    channels: BTreeSet<String>,
}

/// A change of the channels, made where its transaction commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenCommand {
    Listen(String),
    Unlisten(String),
    UnlistenAll,
}

impl Listening {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Listening {
        Listening { notifier, listener: Arc::default(), channels: BTreeSet::new() }
    }

    pub(crate) fn channels(&self) -> impl Iterator<Item = &str> {
        self.channels.iter().map(String::as_str)
    }

    pub(crate) fn apply(&mut self, command: &ListenCommand) {
        match command {
            ListenCommand::Listen(channel) => {
                if self.channels.insert(channel.clone()) {
                    let mut by_channel = self.notifier.by_channel.lock();
                    by_channel.entry(channel.clone()).or_default().push(Arc::clone(&self.listener));
                }
            }
            ListenCommand::Unlisten(channel) => {
                if self.channels.remove(channel) {
                    self.leave(channel);
                }
            }
            ListenCommand::UnlistenAll => {
                for channel in std::mem::take(&mut self.channels) {
                    self.leave(&channel);
                }
            }
        }
    }

    fn leave(&self, channel: &str) {
        let mut by_channel = self.notifier.by_channel.lock();
        let Some(listeners) = by_channel.get_mut(channel) else { return };
        listeners.retain(|listener| !Arc::ptr_eq(listener, &self.listener));
        if listeners.is_empty() {
            by_channel.remove(channel);
        }
    }

    /// Waits until something may have arrived. Can be cancelled.
    pub(crate) async fn arrived(&self) {
        self.listener.arrived.notified().await;
    }

    /// What has arrived on channels that are still listened on.
    pub(crate) fn take(&mut self) -> Result<Vec<Told>, TooMany> {
        let mut waiting = self.listener.waiting.lock();
        if waiting.is_lost {
            return Err(TooMany);
        }
        let told = std::mem::take(&mut *waiting).told;
        drop(waiting);
        let is_wanted = |told: &Told| self.channels.contains(&*told.notification.channel);
        Ok(told.into_iter().filter(is_wanted).collect())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.apply(&ListenCommand::UnlistenAll);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSACTION: TransactionId = TransactionId(crypto::Digest([7; 32]));

    fn said(channel: &str, payload: &str) -> Notification {
        Notification::new(channel, payload).expect("short")
    }

    fn told(listening: &mut Listening) -> Vec<String> {
        let told = listening.take().expect("not too many");
        told.into_iter()
            .map(|told| format!("{}:{}", told.notification.channel, told.notification.payload))
            .collect()
    }

    #[test]
    fn who_listens_is_told_in_order_and_nobody_else() {
        let notifier = Arc::new(Notifier::new());
        let mut both = Listening::new(Arc::clone(&notifier));
        let mut one = Listening::new(Arc::clone(&notifier));
        let listen = |channel: &str| ListenCommand::Listen(channel.to_string());
        for channel in ["a", "b", "a"] {
            both.apply(&listen(channel));
        }
        one.apply(&listen("b"));
        notifier.publish(
            TRANSACTION,
            &[said("a", "1"), said("b", "2"), said("c", "3"), said("a", "4"), said("a", "\0")],
        );
        assert_eq!(told(&mut both), ["a:1", "b:2", "a:4"]);
        assert_eq!(told(&mut one), ["b:2"]);
        notifier.publish(TRANSACTION, &[said("a", "5"), said("b", "6")]);
        both.apply(&ListenCommand::Unlisten("a".to_string()));
        assert_eq!(told(&mut both), ["b:6"], "nobody waits for the other any more");
        assert_eq!(both.channels().collect::<Vec<_>>(), ["b"]);
        one.apply(&ListenCommand::UnlistenAll);
        drop(both);
        assert!(notifier.by_channel.lock().is_empty(), "a session that has gone holds nothing");
    }

    #[test]
    fn who_does_not_take_what_waits_loses_all_of_it_and_no_memory_grows() {
        let notifier = Arc::new(Notifier::new());
        let mut slow = Listening::new(Arc::clone(&notifier));
        slow.apply(&ListenCommand::Listen("a".to_string()));
        let long = said("a", &"x".repeat(7_999));
        for _ in 0..2 * limits::LISTENER_BYTES_MAX / long.bytes() {
            notifier.publish(TRANSACTION, std::slice::from_ref(&long));
        }
        assert_eq!(slow.take(), Err(TooMany));
        assert!(slow.listener.waiting.lock().told.is_empty());
        assert_eq!(slow.take(), Err(TooMany), "it stays so");
    }
}
