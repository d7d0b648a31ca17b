//! Transactions that wait for a block, oldest first.
//!
//! ```text
//!  submit ─▶ room? ─▶ admission (signatures) ─▶ known? ─▶ queue ─▶ survey, take ─▶ block
//!              │                                  │         ▲          (stays here)  │
//!              ▼                                  ▼         └──── delivered: remove ◀┘
//!             Full                        Ok, nothing added
//! ```
//!
//! A transaction stays until a block that holds it is delivered, so a block that does not become final loses nothing.
//! The ids of the blocks delivered last are remembered: a client that submits again shortly after its transaction was
//! ordered does not get it ordered twice. (Older repetitions are ordered and rejected in execution, by the live ids.)

use crate::{Admission, Arrangement, SubmitError};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use types::{BlockLimits, Place, RejectReason, TransactionId};

/// Time since a fixed moment, from the runtime that the service runs on: the machine's clock, or the simulation's.
pub(crate) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Bytes that a transaction takes in a block beside its own: its length.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Bytes of a transaction that is given to other members before a block: a longer one comes with its block alone, so that what
/// waits to be taken has a bound.
pub(crate) const GIVEN_BYTES_MAX: usize = 256 * 1024;

/// Ids of delivered transactions that are remembered.
const RECENT_MAX: usize = 65_536;

/// How much may wait at one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MempoolLimits {
    /// Transactions.
    pub transactions_max: usize,
    /// Bytes of transactions.
    pub bytes_max: usize,
}

impl Default for MempoolLimits {
    fn default() -> Self {
        MempoolLimits { transactions_max: 50_000, bytes_max: 32 * 1024 * 1024 }
    }
}

/// How much waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Level {
    pub transactions: usize,
    pub bytes: usize,
}

/// Transactions that wait, for another node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    /// Names those that stand in one block; none for those that need not.
    pub group: Option<u64>,
    pub transactions: Vec<Bytes>,
}

/// What the next block could take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Survey {
    /// Transactions that would go in.
    pub transactions: usize,
    /// When the first of them came.
    pub oldest: Duration,
    /// When the last of them came.
    pub newest: Duration,
    /// Nothing more goes in.
    pub full: bool,
    /// Counts arrivals: what has come by now.
    pub arrivals: u64,
}

/// Where transactions that come together may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placing {
    /// In different blocks, too.
    Anywhere,
    /// In one block, in their order, or nowhere: each needs what the others say.
    InOneBlock,
}

/// Who has brought a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A client of this node.
    Client,
    /// Another member, who has given it to whom it gives such.
    Member,
}

struct Entry {
    id: TransactionId,
    bytes: Bytes,
    source: Source,
    arrived: Duration,
    /// Position of the first of those that stand in one block with it, itself among them.
    group: Option<u64>,
}

impl Entry {
    /// Whether other members can be given it before its block.
    fn is_given(&self) -> bool {
        self.group.is_some() || self.bytes.len() <= GIVEN_BYTES_MAX
    }
}

#[derive(Default)]
struct Queue {
    /// By order of arrival.
    entries: BTreeMap<u64, Entry>,
    positions: FxHashMap<TransactionId, u64>,
    next: u64,
    bytes: usize,
    recent: FxHashSet<TransactionId>,
    recent_order: VecDeque<TransactionId>,
    /// All members were given what clients have brought before this position.
    spread: u64,
    closed: bool,
}

impl Queue {
    fn remove(&mut self, id: &TransactionId) {
        if let Some(position) = self.positions.remove(id)
            && let Some(entry) = self.entries.remove(&position)
        {
            self.bytes -= entry.bytes.len();
        }
    }

    /// How many there are of the group of the entry at a position, from it on, and their bytes in a block.
    fn group_from(&self, position: u64, ordered: &FxHashSet<TransactionId>) -> (usize, usize) {
        let group = self.entries.get(&position).and_then(|entry| entry.group);
        let entries = self.entries.range(position..).map(|(_, entry)| entry);
        let same = entries.take_while(|entry| entry.group == group);
        let open = same.filter(|entry| !ordered.contains(&entry.id));
        open.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.bytes.len() + LENGTH_BYTES))
    }
}

/// Whether so many transactions with so many bytes fit into a block.
fn fits(block: &BlockLimits, transactions: usize, bytes: usize) -> bool {
    transactions <= block.transactions_max as usize && bytes <= block.bytes_max as usize
}

/// Transactions that wait for a block.
pub(crate) struct Mempool {
    limits: MempoolLimits,
    clock: Clock,
    queue: Mutex<Queue>,
    /// Wakes asynchronous waiters (`bft`).
    arrival: Notify,
    /// Wakes threads (`solo`).
    arrival_on_thread: Condvar,
}

impl Mempool {
    pub(crate) fn new(limits: MempoolLimits, clock: Clock) -> Mempool {
        Mempool {
            limits,
            clock,
            queue: Mutex::default(),
            arrival: Notify::new(),
            arrival_on_thread: Condvar::new(),
        }
    }

    /// A verdict per transaction, in their order. What finds no room is refused before its signature is looked at.
    pub(crate) fn submit(
        &self,
        admission: &dyn Admission,
        place: Place<'_>,
        (mut transactions, placing, source): (Vec<Bytes>, Placing, Source),
    ) -> Vec<Result<TransactionId, SubmitError>> {
        let level = self.level();
        if self.queue.lock().closed {
            return transactions.iter().map(|_| Err(SubmitError::Stopped)).collect();
        }
        if placing == Placing::InOneBlock
            && let Err(error) = self.fit_together(&transactions, (level, &place.charter().block))
        {
            return transactions.iter().map(|_| Err(error.clone())).collect();
        }
        let room = self.limits.transactions_max.saturating_sub(level.transactions);
        let refused = transactions.len().saturating_sub(room);
        transactions.truncate(room);
        let limit = place.charter().block.transaction_bytes_max;
        let too_long: Vec<bool> = transactions.iter().map(|bytes| bytes.len() > limit as usize).collect();
        for (bytes, _) in transactions.iter_mut().zip(&too_long).filter(|(_, too_long)| **too_long) {
            bytes.clear();
        }
        let verdicts = admission.check(place, &transactions);
        assert_eq!(verdicts.len(), transactions.len(), "admission gives a verdict per transaction");
        let mut queue = self.queue.lock();
        let group = (placing == Placing::InOneBlock).then_some(queue.next);
        let mut answers: Vec<_> = transactions
            .iter()
            .zip(verdicts)
            .zip(too_long)
            .map(|((bytes, verdict), too_long)| match verdict {
                _ if too_long => Err(SubmitError::Rejected(oversized(limit))),
                Err(reason) => Err(SubmitError::Rejected(reason)),
                Ok(id) => self.insert(&mut queue, id, (bytes, group, source)),
            })
            .collect();
        drop(queue);
        let full = SubmitError::Full { pending: level.transactions, limit: self.limits.transactions_max };
        answers.extend(std::iter::repeat_n(Err(full), refused));
        if answers.iter().any(Result::is_ok) {
            self.arrival.notify_waiters();
            self.arrival_on_thread.notify_all();
        }
        answers
    }

    /// Whether transactions fit into one block, and there is room for all.
    fn fit_together(
        &self,
        transactions: &[Bytes],
        (level, block): (Level, &BlockLimits),
    ) -> Result<(), SubmitError> {
        let bytes = transactions.iter().map(|bytes| bytes.len() + LENGTH_BYTES).sum();
        let (transactions_max, bytes_max) = (block.transactions_max, block.bytes_max);
        let (pending, limit) = (level.transactions, self.limits.transactions_max);
        if !fits(block, transactions.len(), bytes) {
            let transactions = transactions.len();
            return Err(SubmitError::TooManyTogether { transactions, bytes, transactions_max, bytes_max });
        }
        if pending + transactions.len() > limit {
            return Err(SubmitError::Full { pending, limit });
        }
        let (pending, limit) = (level.bytes, self.limits.bytes_max);
        match pending + bytes > limit {
            true => Err(SubmitError::FullBytes { pending, limit }),
            false => Ok(()),
        }
    }

    fn insert(
        &self,
        queue: &mut Queue,
        id: TransactionId,
        (bytes, group, source): (&Bytes, Option<u64>, Source),
    ) -> Result<TransactionId, SubmitError> {
        // One of a group may have stood in a block and been refused for what the others said then.
        let was_delivered = group.is_none() && queue.recent.contains(&id);
        if queue.positions.contains_key(&id) || was_delivered {
            return Ok(id);
        }
        let (pending, limit) = (queue.entries.len(), self.limits.transactions_max);
        if pending >= limit {
            return Err(SubmitError::Full { pending, limit });
        }
        let (pending, limit) = (queue.bytes, self.limits.bytes_max);
        if pending + bytes.len() > limit {
            return Err(SubmitError::FullBytes { pending, limit });
        }
        // A copy, so that what waits does not keep the whole request alive that it came in.
        let bytes = Bytes::copy_from_slice(bytes);
        queue.bytes += bytes.len();
        let position = queue.next;
        queue.next += 1;
        queue.positions.insert(id, position);
        queue.entries.insert(position, Entry { id, bytes, source, arrived: (self.clock)(), group });
        Ok(id)
    }

    /// How much waits.
    pub(crate) fn level(&self) -> Level {
        let queue = self.queue.lock();
        Level { transactions: queue.entries.len(), bytes: queue.bytes }
    }

    /// What a block could take that must not hold `ordered`: ids of blocks that are on their way.
    pub(crate) fn survey(&self, block: &BlockLimits, ordered: &FxHashSet<TransactionId>) -> Survey {
        let mut survey = Survey { arrivals: self.queue.lock().next, ..Survey::default() };
        survey.full = self.walk(block, ordered, |entry| {
            if survey.transactions == 0 {
                survey.oldest = entry.arrived;
            }
            survey.newest = entry.arrived;
            survey.transactions += 1;
        });
        survey
    }

    /// What [`Mempool::survey`] counted, as the node arranges it. It stays in the mempool until it is delivered; what the
    /// node drops goes at once.
    pub(crate) fn take(
        &self,
        admission: &dyn Admission,
        block: &BlockLimits,
        ordered: &FxHashSet<TransactionId>,
    ) -> (Vec<TransactionId>, Vec<Bytes>) {
        let (mut ids, mut transactions) = (Vec::new(), Vec::new());
        self.walk(block, ordered, |entry| {
            ids.push(entry.id);
            transactions.push(entry.bytes.clone());
        });
        let Arrangement { order, dropped } = admission.arrange(&transactions);
        if !dropped.is_empty() {
            let mut queue = self.queue.lock();
            dropped.iter().for_each(|position| queue.remove(&ids[*position as usize]));
        }
        let arranged = order.into_iter().map(|position| position as usize);
        arranged.map(|position| (ids[position], transactions[position].clone())).unzip()
    }

    /// Visits what fits into a block, oldest first; says whether the block is then full. What does not fit ends the
    /// block even if something smaller behind it would: the order of arrival is kept. Those that belong together come together.
    fn walk(
        &self,
        block: &BlockLimits,
        ordered: &FxHashSet<TransactionId>,
        mut visit: impl FnMut(&Entry),
    ) -> bool {
        let queue = self.queue.lock();
        let (mut count, mut bytes, mut group, mut too_large) = (0, 0, None, None);
        for (position, entry) in queue.entries.iter().filter(|(_, entry)| !ordered.contains(&entry.id)) {
            if entry.group.is_some() && entry.group != group {
                let (more, more_bytes) = queue.group_from(*position, ordered);
                if entry.group == too_large || !fits(block, more, more_bytes) {
                    // The charter was changed since it came: it stands in no block any more.
                    too_large = entry.group;
                    continue;
                }
                if !fits(block, count + more, bytes + more_bytes) {
                    return true;
                }
                group = entry.group;
            }
            if entry.bytes.len() > block.transaction_bytes_max as usize {
                // The charter was changed since it came, here too.
                continue;
            }
            bytes += entry.bytes.len() + LENGTH_BYTES;
            if bytes > block.bytes_max as usize {
                return true;
            }
            visit(entry);
            count += 1;
            if count >= block.transactions_max as usize {
                return true;
            }
        }
        false
    }

    /// Takes out what a delivered block holds, and remembers it for a while.
    pub(crate) fn delivered(&self, ids: &[TransactionId]) {
        let mut queue = self.queue.lock();
        for id in ids {
            queue.remove(id);
            if queue.recent.insert(*id) {
                queue.recent_order.push_back(*id);
            }
        }
        while queue.recent_order.len() > RECENT_MAX {
            if let Some(old) = queue.recent_order.pop_front() {
                queue.recent.remove(&old);
            }
        }
    }

    /// Transactions from a position on, of at most so many bytes and so many at once, and where to go on: those that belong
    /// together in one group each, the others together in one.
    pub(crate) fn since(&self, position: u64, most: (usize, usize)) -> (Vec<Waiting>, u64) {
        self.since_of(position, most, |_| true)
    }

    /// The same of those that this node's clients have brought, which all members are to have: they count as spread then.
    pub(crate) fn spread(&self, position: u64, most: (usize, usize)) -> (Vec<Waiting>, u64) {
        let is_mine = |entry: &Entry| entry.source == Source::Client && entry.is_given();
        let (waiting, next) = self.since_of(position, most, is_mine);
        self.queue.lock().spread = next;
        (waiting, next)
    }

    fn since_of(
        &self,
        position: u64,
        (count, bytes): (usize, usize),
        of: impl Fn(&Entry) -> bool,
    ) -> (Vec<Waiting>, u64) {
        let queue = self.queue.lock();
        let (mut waiting, mut next) = (Vec::<Waiting>::new(), position);
        let (mut taken, mut taken_bytes) = (0, 0);
        for (position, entry) in queue.entries.range(position..) {
            if !of(entry) {
                next = position + 1;
                continue;
            }
            let goes_on =
                entry.group.is_some() && waiting.last().is_some_and(|last| last.group == entry.group);
            let more = match entry.group {
                Some(_) if !goes_on => queue.group_from(*position, &FxHashSet::default()).1,
                _ => entry.bytes.len(),
            };
            if !goes_on && taken > 0 && (taken >= count || taken_bytes + more > bytes) {
                break;
            }
            (taken, taken_bytes, next) = (taken + 1, taken_bytes + entry.bytes.len(), position + 1);
            match waiting.last_mut().filter(|last| last.group == entry.group) {
                Some(last) => last.transactions.push(entry.bytes.clone()),
                None => waiting.push(Waiting { group: entry.group, transactions: vec![entry.bytes.clone()] }),
            }
        }
        (waiting, next)
    }

    /// Which of these, by their place, the other members were not given.
    pub(crate) fn not_spread(&self, ids: &[TransactionId]) -> Vec<u32> {
        let queue = self.queue.lock();
        let is_spread = |id: &TransactionId| {
            let Some(position) = queue.positions.get(id) else { return false };
            let entry = queue.entries.get(position);
            *position < queue.spread && entry.is_some_and(Entry::is_given)
                || entry.is_some_and(|entry| entry.source == Source::Member)
        };
        (0u32..).zip(ids).filter(|(_, id)| !is_spread(id)).map(|(place, _)| place).collect()
    }

    /// Transactions by what `short` makes of their ids; nothing where it makes the same of two.
    pub(crate) fn find(&self, wanted: &[u64], short: impl Fn(&TransactionId) -> u64) -> Vec<Option<Bytes>> {
        let places: FxHashMap<u64, usize> = wanted.iter().copied().zip(0..).collect();
        let (mut found, mut twice) = (vec![None; wanted.len()], Vec::new());
        for entry in self.queue.lock().entries.values() {
            if let Some(place) = places.get(&short(&entry.id))
                && found[*place].replace(entry.bytes.clone()).is_some()
            {
                twice.push(*place);
            }
        }
        twice.into_iter().for_each(|place| found[place] = None);
        found
    }

    /// The position of the next that comes.
    pub(crate) fn end(&self) -> u64 {
        self.queue.lock().next
    }

    /// How many wait that came before a position, counted up to `most`, and when the first of them came.
    pub(crate) fn before(&self, position: u64, most: usize) -> (usize, Option<Duration>) {
        let queue = self.queue.lock();
        let mut before = queue.entries.range(..position).take(most);
        let first = before.next().map(|(_, entry)| entry.arrived);
        (before.count() + usize::from(first.is_some()), first)
    }

    /// Whether there is room for anything.
    pub(crate) fn has_room(&self) -> bool {
        let Level { transactions, bytes } = self.level();
        transactions < self.limits.transactions_max && bytes < self.limits.bytes_max
    }

    /// How many transactions may wait where half of the room is for others.
    pub(crate) fn half(&self) -> usize {
        self.limits.transactions_max / 2
    }

    /// Whether there is room for what other nodes give: half of it is for this node's own clients.
    pub(crate) fn has_room_for_others(&self) -> bool {
        let Level { transactions, bytes } = self.level();
        transactions < self.limits.transactions_max / 2 && bytes < self.limits.bytes_max / 2
    }

    /// Forgets those of these transactions that are refused at a place now, with all that belong together with them; all of
    /// them if none is refused alone: they stood in a block that nobody took.
    pub(crate) fn forget_refused(&self, admission: &dyn Admission, place: Place<'_>, ids: &[TransactionId]) {
        let waiting: Vec<(TransactionId, Option<u64>, Bytes)> = {
            let queue = self.queue.lock();
            let entries = ids.iter().filter_map(|id| queue.entries.get(queue.positions.get(id)?));
            entries.map(|entry| (entry.id, entry.group, entry.bytes.clone())).collect()
        };
        let bytes: Vec<Bytes> = waiting.iter().map(|(_, _, bytes)| bytes.clone()).collect();
        let verdicts = admission.check(place, &bytes);
        let refused: Vec<_> = waiting.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_err()).collect();
        let groups: FxHashSet<u64> = refused.iter().filter_map(|((_, group, _), _)| *group).collect();
        let alone: FxHashSet<TransactionId> = refused.iter().map(|((id, _, _), _)| *id).collect();
        let all = alone.is_empty();
        let mut queue = self.queue.lock();
        for (id, group, _) in &waiting {
            if all || alone.contains(id) || group.is_some_and(|group| groups.contains(&group)) {
                queue.remove(id);
            }
        }
    }

    /// Resolves when something arrives after the call.
    pub(crate) fn arrival(&self) -> tokio::sync::futures::Notified<'_> {
        self.arrival.notified()
    }

    /// Holds the thread until more than `arrivals` have come, `timeout` is over or the mempool is closed.
    pub(crate) fn wait_on_thread(&self, arrivals: u64, timeout: Duration) {
        let mut queue = self.queue.lock();
        if !queue.closed && queue.next == arrivals {
            self.arrival_on_thread.wait_for(&mut queue, timeout);
        }
    }

    /// Has the thread that waits look again.
    pub(crate) fn wake_thread(&self) {
        // Counts as an arrival, so that a thread that has looked and not begun to wait does not wait.
        self.queue.lock().next += 1;
        self.arrival_on_thread.notify_all();
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.arrival.notify_waiters();
        self.arrival_on_thread.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue.lock().closed
    }
}

fn oversized(limit: u32) -> RejectReason {
    RejectReason::Malformed(format!(
        "the transaction is longer than {limit} bytes (block.transaction_bytes_max of the charter); split it"
    ))
}

/// Takes everything, under the digest of its bytes.
#[cfg(test)]
pub(crate) struct AnyId;

#[cfg(test)]
impl Admission for AnyId {
    fn check(&self, _: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
        transactions.iter().map(|bytes| Ok(TransactionId(crypto::sha256(&[bytes])))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::sha256;
    use std::sync::atomic::{AtomicU64, Ordering};
    use types::{Charter, Charters};

    /// Refuses what begins with `bad`; counts what it was asked about.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Admission for Counting {
        fn check(&self, _: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
            self.0.fetch_add(transactions.len() as u64, Ordering::Relaxed);
            let verdict = |bytes: &Bytes| match bytes.starts_with(b"bad") {
                true => Err(RejectReason::Unsigned("bad".to_string())),
                false => Ok(id(bytes)),
            };
            transactions.iter().map(verdict).collect()
        }
    }

    const BLOCK: BlockLimits = BlockLimits {
        transactions_max: 3,
        bytes_max: 100,
        transaction_bytes_max: 100,
        fill_ms: 20,
        idle_ms: 1_000,
        batch_transactions: 1,
    };

    fn id(bytes: &[u8]) -> TransactionId {
        TransactionId(sha256(&[bytes]))
    }

    fn mempool(transactions_max: usize, bytes_max: usize) -> Mempool {
        let time = AtomicU64::new(0);
        let clock = move || Duration::from_millis(time.fetch_add(1, Ordering::Relaxed));
        Mempool::new(MempoolLimits { transactions_max, bytes_max }, Arc::new(clock))
    }

    fn submit(mempool: &Mempool, texts: &[&str]) -> Vec<Result<TransactionId, SubmitError>> {
        let transactions = texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
        submit_to(mempool, &Counting::default(), transactions)
    }

    fn submit_to(
        mempool: &Mempool,
        admission: &dyn Admission,
        transactions: Vec<Bytes>,
    ) -> Vec<Result<TransactionId, SubmitError>> {
        let charters = Charters::new(Arc::new(Charter::with_defaults("test", 1)));
        mempool.submit(
            admission,
            Place { charters: &charters, height: 1 },
            (transactions, Placing::Anywhere, Source::Client),
        )
    }

    fn submit_together(mempool: &Mempool, texts: &[&str]) -> Vec<Result<TransactionId, SubmitError>> {
        let mut charter = Charter::with_defaults("test", 1);
        charter.block = BLOCK;
        let charters = Charters::new(Arc::new(charter));
        let transactions = texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
        let place = Place { charters: &charters, height: 1 };
        mempool.submit(&Counting::default(), place, (transactions, Placing::InOneBlock, Source::Client))
    }

    fn none() -> FxHashSet<TransactionId> {
        FxHashSet::default()
    }

    #[test]
    fn what_finds_no_room_is_refused_without_a_look_at_its_signature() {
        let (mempool, admission) = (mempool(2, 1_000), Counting::default());
        let transactions = ["a", "b", "c", "d"].map(|text| Bytes::from_static(text.as_bytes())).to_vec();
        let answers = submit_to(&mempool, &admission, transactions);
        let full = Err(SubmitError::Full { pending: 0, limit: 2 });
        assert_eq!(answers, vec![Ok(id(b"a")), Ok(id(b"b")), full.clone(), full]);
        assert_eq!(admission.0.load(Ordering::Relaxed), 2);
        assert_eq!(submit(&mempool, &["e"]), vec![Err(SubmitError::Full { pending: 2, limit: 2 })]);
        mempool.delivered(&[id(b"a")]);
        assert_eq!(submit(&mempool, &["e"]), vec![Ok(id(b"e"))]);
    }

    #[test]
    fn bytes_are_limited_too() {
        let mempool = mempool(10, 10);
        let full = Err(SubmitError::FullBytes { pending: 8, limit: 10 });
        assert_eq!(
            submit(&mempool, &["12345678", "123", "12"]),
            vec![Ok(id(b"12345678")), full, Ok(id(b"12"))]
        );
        assert_eq!(mempool.level(), Level { transactions: 2, bytes: 10 });
        mempool.delivered(&[id(b"12345678"), id(b"12"), id(b"never seen")]);
        assert_eq!(mempool.level(), Level::default());
    }

    #[test]
    fn a_verdict_comes_for_every_transaction_in_its_place() {
        let mempool = mempool(10, 1_000_000);
        let long = "x".repeat(Charter::with_defaults("test", 1).block.transaction_bytes_max as usize + 1);
        let answers = submit(&mempool, &["a", "bad", &long, "b"]);
        assert_eq!(answers[0], Ok(id(b"a")));
        assert_eq!(answers[1], Err(SubmitError::Rejected(RejectReason::Unsigned("bad".to_string()))));
        assert!(
            matches!(&answers[2], Err(SubmitError::Rejected(RejectReason::Malformed(text))) if text.contains("block.transaction_bytes_max"))
        );
        assert_eq!(answers[3], Ok(id(b"b")));
        assert_eq!(mempool.level().transactions, 2);
    }

    #[test]
    fn long_transactions_come_with_their_block_alone() {
        let mempool = mempool(10, 10_000_000);
        let long = "x".repeat(GIVEN_BYTES_MAX + 1);
        let ids = [id(b"a"), id(long.as_bytes()), id(b"b")];
        assert_eq!(submit(&mempool, &["a", &long, "b"]), ids.map(Ok));
        let (given, next) = mempool.spread(0, (10, 1_000));
        let given: Vec<Bytes> = given.into_iter().flat_map(|waiting| waiting.transactions).collect();
        assert_eq!((given, next), (vec![Bytes::from("a"), Bytes::from("b")], 3));
        assert_eq!(mempool.not_spread(&ids), [1]);
    }

    #[test]
    fn what_an_amendment_makes_too_long_holds_nobody_up() {
        let mempool = mempool(10, 1_000);
        submit(&mempool, &["123456789", "1", "2"]);
        let shorter = BlockLimits { transaction_bytes_max: 8, ..BLOCK };
        let (_, taken) = mempool.take(&AnyId, &shorter, &none());
        assert_eq!(taken, [Bytes::from("1"), Bytes::from("2")]);
        assert_eq!(mempool.take(&AnyId, &BLOCK, &none()).1.len(), 3);
    }

    #[test]
    fn submitting_twice_waits_once_also_shortly_after_delivery() {
        let mempool = mempool(10, 1_000);
        assert_eq!(submit(&mempool, &["a", "a"]), vec![Ok(id(b"a")); 2]);
        assert_eq!(submit(&mempool, &["a"]), vec![Ok(id(b"a"))]);
        assert_eq!(mempool.level().transactions, 1);
        mempool.delivered(&[id(b"a")]);
        assert_eq!(submit(&mempool, &["a"]), vec![Ok(id(b"a"))]);
        assert_eq!(mempool.level().transactions, 0);
    }

    #[test]
    fn only_so_many_delivered_ids_are_remembered() {
        let mempool = mempool(10, 1_000);
        let ids: Vec<_> = (0..RECENT_MAX as u32 + 1).map(|number| id(&number.to_le_bytes())).collect();
        mempool.delivered(&ids);
        let queue = mempool.queue.lock();
        assert_eq!((queue.recent.len(), queue.recent_order.len()), (RECENT_MAX, RECENT_MAX));
        assert!(!queue.recent.contains(&ids[0]) && queue.recent.contains(&ids[1]));
    }

    #[test]
    fn blocks_take_the_oldest_within_the_charters_limits_and_leave_them_until_delivery() {
        let mempool = mempool(10, 1_000);
        submit(&mempool, &["a", "b", "c", "d"]);
        let survey = mempool.survey(&BLOCK, &none());
        assert_eq!((survey.transactions, survey.full), (3, true));
        assert_eq!(mempool.take(&Counting::default(), &BLOCK, &none()).0, vec![id(b"a"), id(b"b"), id(b"c")]);
        let ordered = [id(b"a"), id(b"b"), id(b"c")].into_iter().collect();
        assert_eq!(mempool.take(&Counting::default(), &BLOCK, &ordered).0, vec![id(b"d")]);
        assert!(!mempool.survey(&BLOCK, &ordered).full);
        assert_eq!(mempool.level().transactions, 4);

        // 4 bytes for each length: two of these fit into 100 bytes, and nothing overtakes the third.
        let mempool = super::tests::mempool(10, 1_000);
        let (x, y, z) = ("x".repeat(46), "y".repeat(46), "z".repeat(46));
        submit(&mempool, &[&x, &y, &z, "s"]);
        assert_eq!(
            mempool.take(&Counting::default(), &BLOCK, &none()).0,
            vec![id(x.as_bytes()), id(y.as_bytes())]
        );
        assert!(mempool.survey(&BLOCK, &none()).full);
    }

    #[test]
    fn what_belongs_together_stands_in_one_block() {
        let (mempool, admission) = (mempool(20, 1_000), Counting::default());
        let take = |ordered: &[&str]| {
            let ordered = ordered.iter().map(|text| id(text.as_bytes())).collect();
            let survey = mempool.survey(&BLOCK, &ordered);
            let (_, taken) = mempool.take(&admission, &BLOCK, &ordered);
            assert_eq!(survey.transactions, taken.len());
            (
                taken.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect::<Vec<_>>(),
                survey.full,
            )
        };
        submit(&mempool, &["a", "b"]);
        submit_together(&mempool, &["word", "c", "d"]);
        submit_together(&mempool, &["another word", "e"]);
        submit(&mempool, &["f"]);
        let of = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        assert_eq!(take(&[]), (of(&["a", "b"]), true), "three have no room behind two");
        assert_eq!(take(&["a", "b"]), (of(&["word", "c", "d"]), true));
        assert_eq!(take(&["a", "b", "c"]), (of(&["word", "d"]), true), "one of them was ordered elsewhere");
        let ordered = ["a", "b", "word", "c", "d"];
        assert_eq!(take(&ordered), (of(&["another word", "e", "f"]), true));
        mempool.delivered(&ordered.map(|text| id(text.as_bytes())));
        assert_eq!(take(&[]), (of(&["another word", "e", "f"]), true));
        // What was refused for what the others said then comes again.
        submit_together(&mempool, &["a third word", "c"]);
        assert_eq!(take(&["another word", "e", "f"]), (of(&["a third word", "c"]), false));
        let narrow = BlockLimits { transactions_max: 1, ..BLOCK };
        assert_eq!(mempool.take(&admission, &narrow, &none()).1, ["f"], "a charter that has become narrower");
    }

    /// Refuses what is named: what stands in a block that everybody drops.
    struct RefusesNow(&'static [&'static str]);

    impl Admission for RefusesNow {
        fn check(&self, _: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
            let refused = |bytes: &Bytes| self.0.iter().any(|text| text.as_bytes() == bytes);
            let verdict = |bytes: &Bytes| match refused(bytes) {
                true => Err(RejectReason::Unsigned("not any more".to_string())),
                false => Ok(id(bytes)),
            };
            transactions.iter().map(verdict).collect()
        }
    }

    #[test]
    fn what_a_dropped_block_held_is_forgotten_as_far_as_it_is_refused() {
        let charters = Charters::new(Arc::new(Charter::with_defaults("test", 1)));
        let place = Place { charters: &charters, height: 9 };
        let left = |refused: &'static [&'static str], block: &[&str]| {
            let mempool = mempool(100, 10_000);
            submit(&mempool, &["one", "two"]);
            submit_together(&mempool, &["three", "four"]);
            submit(&mempool, &["five"]);
            let block: Vec<TransactionId> = block.iter().map(|text| id(text.as_bytes())).collect();
            mempool.forget_refused(&RefusesNow(refused), place, &block);
            mempool.level().transactions
        };
        assert_eq!(left(&["one"], &["one", "two", "three", "four"]), 4);
        assert_eq!(left(&["three"], &["one", "three", "four"]), 3, "with all that belong together");
        assert_eq!(left(&[], &["one", "two"]), 3, "all, where none is refused alone");
        assert_eq!(left(&["five"], &["one", "nine"]), 4, "what did not stand in the block stays");
    }

    #[test]
    fn room_for_others_ends_earlier_than_for_own_clients() {
        let mempool = mempool(4, 10_000);
        submit(&mempool, &["one"]);
        assert!(mempool.has_room_for_others());
        submit(&mempool, &["two"]);
        assert!(!mempool.has_room_for_others());
        assert_eq!(submit(&mempool, &["three"]), vec![Ok(id(b"three"))]);
    }

    #[test]
    fn what_is_given_to_another_node_goes_on_where_it_ended_and_groups_stay_whole() {
        let mempool = mempool(100, 10_000);
        submit(&mempool, &["one", "two", "three"]);
        submit_together(&mempool, &["four", "five"]);
        submit(&mempool, &["six"]);
        let taken = |from, count, bytes| {
            let (waiting, next) = mempool.since(from, (count, bytes));
            let texts = waiting.iter().map(|waiting| {
                waiting.transactions.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
            });
            (texts.collect::<Vec<Vec<String>>>(), next)
        };
        assert_eq!(taken(0, 2, 100), (vec![vec!["one".into(), "two".into()]], 2));
        assert_eq!(taken(2, 9, 12), (vec![vec!["three".into()]], 3), "the group does not fit beside it");
        assert_eq!(
            taken(3, 1, 1),
            (vec![vec!["four".into(), "five".into()]], 5),
            "never less than one group"
        );
        assert_eq!(taken(5, 9, 100), (vec![vec!["six".into()]], 6));
        assert_eq!((taken(6, 9, 100), mempool.end()), ((vec![], 6), 6));
        assert_eq!(mempool.before(4, 9).0, 4);
        assert_eq!(mempool.before(4, 2).0, 2);
    }

    #[test]
    fn what_cannot_stand_in_one_block_or_finds_no_room_is_refused_together() {
        let mempool = mempool(5, 60);
        let error = submit_together(&mempool, &["a", "b", "c", "d"]).pop().expect("four verdicts");
        assert_eq!(
            error,
            Err(SubmitError::TooManyTogether {
                transactions: 4,
                bytes: 20,
                transactions_max: 3,
                bytes_max: 100
            })
        );
        submit(&mempool, &["1", "2", "3"]);
        let full = Err(SubmitError::Full { pending: 3, limit: 5 });
        assert_eq!(submit_together(&mempool, &["a", "b", "c"]), [full.clone(), full.clone(), full]);
        let long = "x".repeat(50);
        let full = Err(SubmitError::FullBytes { pending: 3, limit: 60 });
        assert_eq!(submit_together(&mempool, &["a", &long]), [full.clone(), full]);
        assert_eq!(mempool.level().transactions, 3);
    }

    /// Orders what comes backwards, drops every `x…` and leaves every `w…` waiting.
    struct Backwards;

    impl Admission for Backwards {
        fn check(&self, _: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
            transactions.iter().map(|bytes| Ok(id(bytes))).collect()
        }

        fn arrange(&self, transactions: &[Bytes]) -> Arrangement {
            let of = |wanted: fn(u8) -> bool| {
                (0..transactions.len() as u32).filter(move |at| wanted(transactions[*at as usize][0]))
            };
            let order = of(|first| !b"xw".contains(&first)).rev().collect();
            Arrangement { order, dropped: of(|first| first == b'x').collect() }
        }
    }

    #[test]
    fn the_node_arranges_what_is_taken_and_what_it_drops_goes_at_once() {
        let mempool = mempool(10, 1_000);
        submit(&mempool, &["a", "x1", "b", "w1", "c", "x2"]);
        let block = BlockLimits { transactions_max: 5, ..BLOCK };
        let (ids, transactions) = mempool.take(&Backwards, &block, &none());
        assert_eq!(ids, [id(b"c"), id(b"b"), id(b"a")]);
        assert_eq!(transactions, ["c", "b", "a"]);
        assert_eq!(mempool.level().transactions, 5, "x1 has gone; x2 was not looked at");
        assert!(mempool.take(&Backwards, &block, &ids.into_iter().collect()).0.is_empty());
        assert_eq!(mempool.level().transactions, 4, "w1 waits on");
        assert_eq!(submit(&mempool, &["x1"]), [Ok(id(b"x1"))], "it may come again");
        assert_eq!(mempool.level().transactions, 5);
    }

    #[test]
    fn what_clients_bring_is_given_to_all_and_what_others_bring_is_not_given_back() {
        let mempool = mempool(10, 1_000);
        let charters = types::Charters::new(Arc::new(types::Charter::with_defaults("test", 1)));
        let place = Place { charters: &charters, height: 1 };
        let bring = |text: &'static str, source| {
            let come = (vec![Bytes::from_static(text.as_bytes())], Placing::Anywhere, source);
            mempool.submit(&AnyId, place, come).remove(0).expect("there is room")
        };
        let ids = [
            bring("client's", Source::Client),
            bring("member's", Source::Member),
            bring("later", Source::Client),
        ];
        assert_eq!(mempool.not_spread(&ids), [0, 2]);
        let (given, next) = mempool.spread(0, (1, 1_000));
        assert_eq!(given[0].transactions, ["client's"]);
        assert_eq!(mempool.not_spread(&ids), [2]);
        let (given, next) = mempool.spread(next, (9, 1_000));
        assert_eq!((given[0].transactions.as_slice(), next), (&[Bytes::from_static(b"later")][..], 3));
        assert!(mempool.not_spread(&ids).is_empty());
        // What is gone was in a block, and nobody knows any more who has it.
        mempool.delivered(&ids[..1]);
        assert_eq!(mempool.not_spread(&ids), [0]);
    }

    #[test]
    fn transactions_are_found_by_short_ids_where_only_one_has_them() {
        let mempool = mempool(10, 1_000);
        let ids: Vec<TransactionId> = submit(&mempool, &["one", "two", "three"])
            .into_iter()
            .map(|id| id.expect("there is room"))
            .collect();
        let short = |id: &TransactionId| if *id == ids[0] { 1 } else { 2 };
        let one = Some(Bytes::from_static(b"one"));
        assert_eq!(mempool.find(&[2, 7, 1], short), [None, None, one], "two have the second");
    }

    #[test]
    fn a_closed_mempool_takes_nothing() {
        let mempool = mempool(10, 1_000);
        mempool.close();
        assert_eq!(submit(&mempool, &["a"]), vec![Err(SubmitError::Stopped)]);
        mempool.wait_on_thread(0, Duration::from_secs(100));
    }
}
