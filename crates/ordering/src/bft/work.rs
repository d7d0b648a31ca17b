//! "I have work": how a leader with nothing to propose learns that another member waits for its turn.
//!
//! Each member tells the others, in one byte, whether transactions wait in its mempool: at once when the first one
//! arrives, every [`REPEAT`] while some wait, and every [`PRESENCE`] in any case (which also shows who is connected).
//! A leader that hears of work proposes an empty block at once instead of waiting for the idle time. A member that
//! lies makes the network order empty blocks, which it could do in its own turns as well.

use crate::mempool::{Clock, Mempool};
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::{Handle, Metrics, Spawner};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tracing::debug;

/// How often a member with work repeats itself.
const REPEAT: Duration = Duration::from_millis(100);
/// The least time between two messages.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a member without work shows that it is there.
const PRESENCE: Duration = Duration::from_secs(1);
/// How long word of work is believed.
const BELIEVED: Duration = Duration::from_millis(250);
/// How long a silent member counts as connected.
const CONNECTED: Duration = Duration::from_millis(3_500);

/// What the others said last.
pub(crate) struct Work {
    clock: Clock,
    heard: Mutex<Vec<Heard>>,
    changed: Notify,
}

#[derive(Clone, Copy, Default)]
struct Heard {
    last: Option<Duration>,
    work: Option<Duration>,
}

impl Work {
    pub(crate) fn new(members: usize, clock: Clock) -> Work {
        Work { clock, heard: Mutex::new(vec![Heard::default(); members]), changed: Notify::new() }
    }

    fn hear(&self, member: usize, has_work: bool) {
        let now = (self.clock)();
        if let Some(heard) = self.heard.lock().get_mut(member) {
            *heard = Heard { last: Some(now), work: has_work.then_some(now) };
        }
        if has_work {
            self.changed.notify_waiters();
        }
    }

    /// A block of this member is on its way: what it said before no longer counts.
    pub(crate) fn proposed(&self, member: usize) {
        if let Some(heard) = self.heard.lock().get_mut(member) {
            heard.work = None;
        }
    }

    /// Whether another member waits for its turn.
    pub(crate) fn others_wait(&self) -> bool {
        self.within(BELIEVED, |heard| heard.work) > 0
    }

    /// Members heard from lately.
    pub(crate) fn connected(&self) -> usize {
        self.within(CONNECTED, |heard| heard.last)
    }

    fn within(&self, time: Duration, of: impl Fn(&Heard) -> Option<Duration>) -> usize {
        let now = (self.clock)();
        self.heard
            .lock()
            .iter()
            .filter(|heard| of(heard).is_some_and(|at| now.saturating_sub(at) < time))
            .count()
    }

    /// Resolves when somebody says after the call that it has work.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

/// Sends and hears. `member_of` gives a peer's position in the charter.
pub(crate) fn start<E, S, R>(
    context: E,
    (mut sender, mut receiver): (S, R),
    work: Arc<Work>,
    mempool: Arc<Mempool>,
    member_of: impl Fn(&S::PublicKey) -> Option<usize> + Send + 'static,
) -> Handle<()>
where
    E: Spawner + Metrics + commonware_runtime::Clock,
    S: Sender,
    R: Receiver<PublicKey = S::PublicKey>,
{
    context.spawn(move |context| async move {
        let (mut due, mut pause_until) = (Duration::ZERO, Duration::ZERO);
        loop {
            // Created before the look at the mempool, so that no arrival is missed.
            let arrival = mempool.arrival();
            let has_work = mempool.level().transactions > 0;
            let now = (work.clock)();
            if now >= due {
                sender.send(Recipients::All, vec![u8::from(has_work)], false);
                pause_until = now + PAUSE;
                due = now + if has_work { REPEAT } else { PRESENCE };
            }
            select! {
                message = receiver.recv() => match message {
                    Ok((peer, message)) => hear(&work, member_of(&peer), message.as_ref()),
                    Err(_) => return,
                },
                _ = arrival => if !has_work { due = pause_until; },
                _ = context.sleep(due.saturating_sub(now)) => {},
            }
        }
    })
}

fn hear(work: &Work, member: Option<usize>, message: &[u8]) {
    match (member, message) {
        (Some(member), [byte @ (0 | 1)]) => work.hear(member, *byte == 1),
        _ => debug!(?member, bytes = message.len(), "ignored what is no word about work"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn word_of_work_counts_until_its_sender_proposes_or_time_passes() {
        let time = Arc::new(AtomicU64::new(0));
        let clock = time.clone();
        let work = Work::new(4, Arc::new(move || Duration::from_millis(clock.load(Ordering::Relaxed))));
        assert_eq!((work.others_wait(), work.connected()), (false, 0));
        hear(&work, Some(1), &[1]);
        hear(&work, Some(2), &[0]);
        hear(&work, Some(3), &[7]);
        hear(&work, Some(9), &[1]);
        hear(&work, None, &[1]);
        assert_eq!((work.others_wait(), work.connected()), (true, 2));
        work.proposed(1);
        assert!(!work.others_wait());
        hear(&work, Some(1), &[1]);
        time.store(250, Ordering::Relaxed);
        assert_eq!((work.others_wait(), work.connected()), (false, 2));
        time.store(4_000, Ordering::Relaxed);
        assert_eq!(work.connected(), 0);
    }
}
