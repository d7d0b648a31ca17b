//! What a member does with its clients' transactions that does not lead: gives them to the leader, and keeps them until a block has
//! them.

use super::config::{FORWARD_AGAIN, FORWARD_BYTES, FORWARD_PAUSE, FORWARDED, TICK};
use super::disk::Runtime;
use super::member::{Forwarding, Member};
use crate::members::Forwarded;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Recipients, Sender};
use std::time::Duration;
use tracing::debug;
use types::{decode_exactly, encode};

impl<E, S> Member<E, S>
where
    E: Runtime,
    S: Sender<PublicKey = PublicKey>,
{
    /// Gives the leader what waits in this node's mempool; gives when to do it again.
    pub(super) fn forward(&mut self) -> Duration {
        let (now, term) = (self.shared.now(), self.group.term());
        let leader = self.group.leader().and_then(|id| self.keys.1.get(&id)).cloned();
        let Some(leader) = leader.filter(|_| self.shared.mempool.level().transactions > 0) else {
            return now + TICK;
        };
        if self.forwarding.term != term {
            self.forwarding = Forwarding { term, ..Forwarding::default() };
        }
        let next = self.forwarding.last + FORWARD_PAUSE;
        if now < next {
            return next;
        }
        let (waiting, first) = self.shared.mempool.before(self.forwarding.next, FORWARDED);
        let is_late = first.is_some_and(|at| now > at + FORWARD_AGAIN);
        let gives_again = is_late && now > self.forwarding.again + FORWARD_AGAIN;
        if gives_again {
            (self.forwarding.next, self.forwarding.again) = (0, now);
        }
        let room = if gives_again { FORWARDED } else { FORWARDED.saturating_sub(waiting) };
        if room == 0 {
            return now + TICK;
        }
        let (waiting, next) = self.shared.mempool.since(self.forwarding.next, (room, FORWARD_BYTES));
        if waiting.is_empty() {
            return now + TICK;
        }
        let forwarded = Forwarded::of(waiting);
        self.forwarding.last = now;
        if !self.forward.send(Recipients::One(leader), encode(&forwarded), false).is_empty() {
            self.forwarding.next = next;
        }
        now + FORWARD_PAUSE
    }

    pub(super) fn hear_forwarded(&mut self, peer: &PublicKey, message: &[u8]) {
        let Some(member) = self.shared.members.epochs.member(peer) else { return };
        self.shared.hear(member);
        // A member that leads no more is not the right one; the sender learns of it.
        if self.group.is_leader()
            && let Ok(forwarded) = decode_exactly::<Forwarded>(message)
            && forwarded.transactions() <= FORWARDED
            && self.taken.try_send(forwarded).is_err()
        {
            debug!(member, "too many transactions come at once; some are dropped, and come again");
        }
    }
}
