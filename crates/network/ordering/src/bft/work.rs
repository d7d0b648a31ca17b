//! "I have work": how transactions come to the leader, and how a leader with nothing to propose learns that another member waits
//! for its turn.
//!
//! A few transactions that arrive are given to whoever leads next, who proposes them with its own. Where there are many, each
//! member proposes its own in its turn: then every turn has a full block, and giving them away would only send them twice.
//!
//! Each member tells the others, in one byte, whether transactions wait in its mempool: at once when the first one
//! arrives, every [`REPEAT`] while some wait, and every [`PRESENCE`] in any case (which also shows who is connected).
//! A leader that hears of work proposes an empty block at once instead of waiting for the idle time. A member that
//! lies makes the network order empty blocks, which it could do in its own turns as well.
//!
//! The same word says in which epoch its sender is. Whoever is in a later one answers with the last height of that
//! epoch, which the sender then fetches: consensus of an epoch that is over tells it nothing any more.

use crate::members::{CONNECTED, Forwarded};
use crate::mempool::{Clock, GIVEN_BYTES_MAX, Mempool};
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::{Handle, Metrics, Spawner};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tracing::debug;
use types::{decode_exactly, encode};

/// How often a member with work repeats itself.
const REPEAT: Duration = Duration::from_millis(100);
/// The least time between two messages: with repetitions fewer than the channel's quota.
const PAUSE: Duration = Duration::from_millis(20);
/// Up to so many transactions are given to the next leader, and bytes of them.
const FEW: usize = 64;
const FEW_BYTES: usize = 32 * 1024;
/// So many are given to all members at once, and bytes of them; a single one may have [`GIVEN_BYTES_MAX`].
const SPREAD: usize = 1_024;
const SPREAD_BYTES: usize = 60 * 1024;
/// Messages with which transactions are given to all members at one time.
const SPREADS: usize = 4;
/// No message that brings transactions is longer.
const MESSAGE_MAX: usize = GIVEN_BYTES_MAX + SPREAD_BYTES + SPREAD * 16 + 16;
/// The first byte of a message that brings transactions.
const TRANSACTIONS: u8 = 3;
/// How often a member without work shows that it is there.
const PRESENCE: Duration = Duration::from_secs(1);
/// How long word of work is believed.
const BELIEVED: Duration = Duration::from_millis(250);

/// What the others said last.
pub(crate) struct Work {
    clock: Clock,
    /// By position in the charter.
    heard: Mutex<BTreeMap<usize, Heard>>,
    changed: Notify,
}

#[derive(Clone, Copy, Default)]
struct Heard {
    last: Option<Duration>,
    work: Option<Duration>,
}

impl Work {
    pub(crate) fn new(clock: Clock) -> Work {
        Work { clock, heard: Mutex::default(), changed: Notify::new() }
    }

    fn hear(&self, member: usize, has_work: bool) {
        let now = (self.clock)();
        self.heard.lock().insert(member, Heard { last: Some(now), work: has_work.then_some(now) });
        if has_work {
            self.changed.notify_waiters();
        }
    }

    /// A block of this member is on its way: what it said before no longer counts.
    pub(crate) fn proposed(&self, member: usize) {
        if let Some(heard) = self.heard.lock().get_mut(&member) {
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

    /// Who they are.
    pub(crate) fn connected_members(&self) -> Vec<u16> {
        let now = (self.clock)();
        let is_here = |heard: &Heard| heard.last.is_some_and(|at| now.saturating_sub(at) < CONNECTED);
        let heard = self.heard.lock();
        heard.iter().filter(|(_, heard)| is_here(heard)).map(|(member, _)| *member as u16).collect()
    }

    fn within(&self, time: Duration, of: impl Fn(&Heard) -> Option<Duration>) -> usize {
        let now = (self.clock)();
        self.heard
            .lock()
            .values()
            .filter(|heard| of(heard).is_some_and(|at| now.saturating_sub(at) < time))
            .count()
    }

    /// Resolves when somebody says after the call that it has work.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

/// What one member tells another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    /// Whether it has work, and the epoch in which it is.
    Here { has_work: bool, epoch: u64 },
    /// The last height of the epoch in which the other one is.
    Over { last: u64 },
}

impl Word {
    fn to_bytes(self) -> Vec<u8> {
        let (tag, number) = match self {
            Word::Here { has_work, epoch } => (u8::from(has_work), epoch),
            Word::Over { last } => (2, last),
        };
        [&[tag][..], &number.to_le_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Word> {
        let (tag, number) = bytes.split_first()?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        match tag {
            0 | 1 => Some(Word::Here { has_work: *tag == 1, epoch: number }),
            2 => Some(Word::Over { last: number }),
            _ => None,
        }
    }
}

/// Whom a node gives the transactions that its clients bring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Giving {
    Nobody,
    /// If they are few.
    NextLeader,
    Everybody,
}

/// What is known of epochs, for those who hear words of them.
pub(crate) trait KnownEpochs<P>: Send + 'static {
    /// A peer's position in the charter, if it has one.
    fn member(&self, peer: &P) -> Option<usize>;
    /// The epoch in which this node is.
    fn epoch(&self) -> u64;
    /// The last height of an epoch, if it is over.
    fn over(&self, epoch: u64) -> Option<u64>;
    /// Whom transactions are given.
    fn giving(&self) -> Giving;
    /// Who leads next, if that is somebody else and known.
    fn next_leader(&self) -> Option<P>;
    /// A peer says that this node's epoch is over, with this height.
    fn fetch(&self, last: u64, peer: &P);
}

/// Sends and hears.
pub(crate) fn start<E, S, R>(
    context: E,
    (mut sender, mut receiver): (S, R),
    (work, mempool): (Arc<Work>, Arc<Mempool>),
    taken: mpsc::Sender<Forwarded>,
    progress: impl KnownEpochs<S::PublicKey>,
) -> Handle<()>
where
    E: Spawner + Metrics + commonware_runtime::Clock,
    S: Sender,
    R: Receiver<PublicKey = S::PublicKey>,
{
    context.spawn(move |context| async move {
        let (mut due, mut pause_until) = (Duration::ZERO, Duration::ZERO);
        // Where in the mempool transactions begin that nobody was given, and when it is time to give some.
        let (mut given, mut give) = (0, None::<Duration>);
        let mut said_so = false;
        loop {
            // Created before the look at the mempool, so that no arrival is missed.
            let arrival = mempool.arrival();
            let has_work = mempool.level().transactions > 0;
            let now = (work.clock)();
            if give.is_some_and(|at| now >= at) {
                give = None;
                let given_on = give_on(&mut sender, &mempool, &mut given, &progress);
                match given_on {
                    Given::All => (pause_until, due) = (now + PAUSE, due.min(now + REPEAT)),
                    Given::Some => (pause_until, give) = (now + PAUSE, Some(now + PAUSE)),
                    // This node leads next, or has so many that it waits for its turn.
                    Given::Nothing if !said_so => due = due.min(pause_until.max(now)),
                    Given::Nothing => {}
                }
            }
            if now >= due {
                let word = Word::Here { has_work, epoch: progress.epoch() };
                sender.send(Recipients::All, word.to_bytes(), false);
                (pause_until, said_so) = (now + PAUSE, has_work);
                due = now + if has_work { REPEAT } else { PRESENCE };
            }
            select! {
                message = receiver.recv() => match message {
                    Ok((peer, message)) if message.as_ref().first() == Some(&TRANSACTIONS) => {
                        let bytes = &message.as_ref()[1..];
                        let known = bytes.len() <= MESSAGE_MAX && progress.member(&peer).is_some();
                        let forwarded = known.then(|| decode_exactly::<Forwarded>(bytes).ok()).flatten();
                        let forwarded = forwarded.filter(|forwarded| forwarded.transactions() <= SPREAD);
                        if forwarded.is_none_or(|forwarded| taken.try_send(forwarded).is_err()) {
                            debug!("transactions of another member were not taken; its turn comes");
                        }
                    }
                    Ok((peer, message)) => {
                        if let Some(answer) = hear(&work, &progress, &peer, message.as_ref()) {
                            sender.send(Recipients::One(peer), answer.to_bytes(), false);
                        }
                    }
                    Err(_) => return,
                },
                _ = arrival => give = Some(give.unwrap_or(pause_until)),
                _ = context.sleep(give.unwrap_or(due).min(due).saturating_sub(now)) => {},
            }
        }
    })
}

/// How much was given of what has come.
enum Given {
    Nothing,
    Some,
    All,
}

/// Gives what has come from a position on to whom it is to be given, and moves the position.
fn give_on<S: Sender>(
    sender: &mut S,
    mempool: &Mempool,
    from: &mut u64,
    progress: &impl KnownEpochs<S::PublicKey>,
) -> Given {
    let message = |forwarded: &Forwarded| [&[TRANSACTIONS][..], &encode(forwarded)].concat();
    match progress.giving() {
        Giving::Nobody => {
            *from = mempool.end();
            Given::Nothing
        }
        Giving::NextLeader => {
            let (forwarded, next) = few(mempool, *from);
            *from = next;
            match forwarded.and_then(|forwarded| Some((progress.next_leader()?, forwarded))) {
                Some((leader, forwarded)) => {
                    sender.send(Recipients::One(leader), message(&forwarded), true);
                    Given::All
                }
                None => Given::Nothing,
            }
        }
        Giving::Everybody => {
            for _ in 0..SPREADS {
                let (come, next) = mempool.spread(*from, (SPREAD, SPREAD_BYTES));
                *from = next;
                if come.is_empty() {
                    return Given::All;
                }
                sender.send(Recipients::All, message(&Forwarded::of(come)), true);
            }
            Given::Some
        }
    }
}

/// What has come from a position on, if it is little, and where the next begins.
fn few(mempool: &Mempool, from: u64) -> (Option<Forwarded>, u64) {
    let end = mempool.end();
    let (come, next) = mempool.since(from, (FEW + 1, FEW_BYTES));
    let transactions = come.iter().flat_map(|waiting| &waiting.transactions);
    let (count, bytes) = transactions.fold((0, 0), |(count, bytes), one| (count + 1, bytes + one.len()));
    match (1..=FEW).contains(&count) && bytes <= FEW_BYTES && next >= end {
        true => (Some(Forwarded::of(come)), next),
        false => (None, next.max(end)),
    }
}

/// Takes a word; gives the answer to one that is behind.
fn hear<P>(work: &Work, progress: &impl KnownEpochs<P>, peer: &P, message: &[u8]) -> Option<Word> {
    match (progress.member(peer), Word::from_bytes(message)) {
        (member, Some(Word::Here { has_work, epoch })) => {
            if let Some(member) = member {
                work.hear(member, has_work);
            }
            progress.over(epoch).map(|last| Word::Over { last })
        }
        (Some(_), Some(Word::Over { last })) => {
            progress.fetch(last, peer);
            None
        }
        (member, _) => {
            debug!(?member, bytes = message.len(), "ignored what is no word about work");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Peers are their positions; epoch 0 ended with height 20.
    #[derive(Default)]
    struct Known(Mutex<Vec<u64>>);

    impl KnownEpochs<usize> for Known {
        fn member(&self, peer: &usize) -> Option<usize> {
            (*peer < 9).then_some(*peer)
        }

        fn epoch(&self) -> u64 {
            1
        }

        fn over(&self, epoch: u64) -> Option<u64> {
            (epoch == 0).then_some(20)
        }

        fn giving(&self) -> Giving {
            Giving::NextLeader
        }

        fn next_leader(&self) -> Option<usize> {
            None
        }

        fn fetch(&self, last: u64, _: &usize) {
            self.0.lock().push(last);
        }
    }

    fn here(has_work: bool, epoch: u64) -> Vec<u8> {
        Word::Here { has_work, epoch }.to_bytes()
    }

    #[test]
    fn word_of_work_counts_until_its_sender_proposes_or_time_passes() {
        let time = Arc::new(AtomicU64::new(0));
        let clock = time.clone();
        let work = Work::new(Arc::new(move || Duration::from_millis(clock.load(Ordering::Relaxed))));
        assert_eq!((work.others_wait(), work.connected()), (false, 0));
        let known = Known::default();
        let hear = |peer: usize, bytes: &[u8]| super::hear(&work, &known, &peer, bytes);
        hear(1, &here(true, 1));
        hear(2, &here(false, 1));
        hear(3, &[7]);
        hear(9, &here(true, 1));
        assert_eq!((work.others_wait(), work.connected()), (true, 2));
        work.proposed(1);
        assert!(!work.others_wait());
        hear(1, &here(true, 1));
        time.store(250, Ordering::Relaxed);
        assert_eq!((work.others_wait(), work.connected()), (false, 2));
        time.store(4_000, Ordering::Relaxed);
        assert_eq!(work.connected(), 0);
    }

    #[test]
    fn what_has_come_is_given_on_once_where_it_is_little() {
        use crate::mempool::{Placing, Source};
        let mempool = Mempool::new(crate::MempoolLimits::default(), Arc::new(|| Duration::ZERO));
        let charters = types::Charters::new(Arc::new(types::Charter::with_defaults("test", 1)));
        let place = types::Place { charters: &charters, height: 1 };
        let come = |numbers: std::ops::Range<usize>, bytes: usize| {
            let one = |number: usize| bytes::Bytes::from(format!("{number:0bytes$}"));
            let come = numbers.map(one).collect();
            mempool.submit(&crate::mempool::AnyId, place, (come, Placing::Anywhere, Source::Client));
        };
        come(0..3, 9);
        let (given, next) = few(&mempool, 0);
        assert_eq!((given.map(|given| given.transactions()), next), (Some(3), 3));
        assert_eq!(few(&mempool, 3), (None, 3), "nothing more has come");
        // What waits before that does not count.
        come(3..3 + FEW, 9);
        let (given, next) = few(&mempool, 3);
        assert_eq!((given.map(|given| given.transactions()), next), (Some(FEW), 3 + FEW as u64));
        come(100..101 + FEW, 9);
        assert_eq!(few(&mempool, next), (None, mempool.end()), "many");
        let end = mempool.end();
        come(200..203, FEW_BYTES / 2);
        assert_eq!(few(&mempool, end), (None, mempool.end()), "long ones");
    }

    #[test]
    fn whoever_is_behind_is_told_where_its_epoch_ends_and_members_are_asked_for_that() {
        let (work, known) = (Work::new(Arc::new(|| Duration::ZERO)), Known::default());
        assert_eq!(
            hear(&work, &known, &12, &here(false, 0)),
            Some(Word::Over { last: 20 }),
            "a stranger too"
        );
        assert_eq!(hear(&work, &known, &1, &here(false, 1)), None);
        assert_eq!(hear(&work, &known, &1, &Word::Over { last: 33 }.to_bytes()), None);
        assert_eq!(hear(&work, &known, &12, &Word::Over { last: 44 }.to_bytes()), None);
        assert_eq!(*known.0.lock(), [33]);
        assert_eq!(Word::from_bytes(&[2]), None);
    }
}
