//! Proposed blocks without the transactions that their readers have already.
//!
//! In a network of many members each transaction is given to all of them when it comes ([`super::work`]), so that its bytes travel
//! once and are sent by its own node. A leader then sends a block as its head and eight bytes for each transaction (FastFabric,
//! section 3.2.2, O-I: the orderer sees ids only). Whoever lacks some asks the leader for them, and for all if what was found does not come to the
//! block's root. Consensus sees whole blocks and knows nothing of this.
//!
//! ```text
//!  leader                                       member
//!  block ─▶ head, short ids, what nobody has ──▶ found in the mempool? ── all ─▶ block
//!           the others  ◀── which are missing ──────────┘ some               ▲
//!             └──────────────────────────────────────────────────────────────┘
//! ```

use super::application::Shared;
use super::block::OrderedBlock;
use super::work::Giving;
use crate::computation::off_the_reactor;
use crate::mempool::Mempool;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use commonware_actor::{Feedback, Unreliable};
use commonware_codec::Encode as _;
use commonware_cryptography::ed25519::PublicKey;
use commonware_macros::select;
use commonware_p2p::{CheckedSender, LimitedSender, Message, Receiver, Recipients, Sender};
use commonware_runtime::{Clock, IoBuf, IoBufs, Metrics, Spawner};
use crypto::Digest;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tracing::debug;
use types::{Attested, Block, BlockHeader, TransactionId, decode_exactly, encode, limits};

/// The first byte of what is no whole block: a block begins with its length, which is less than 2^24.
const COMPACT: u8 = 1;
/// Own blocks that others may ask for.
const SENT: usize = 4;
/// Blocks of one member whose transactions are asked for.
const INCOMPLETE: usize = 2;

/// Short ids of transactions, other ones in every block: nobody can make two transactions that have the same in a block that is
/// not there yet.
struct ShortIds([u64; 4]);

impl ShortIds {
    /// Those of a block with this digest.
    fn of(block: &Digest) -> ShortIds {
        ShortIds(words(&block.0))
    }

    /// A universal hash: two ids have the same with a probability of 2^-61.
    fn short(&self, id: &TransactionId) -> u64 {
        const PRIME: u128 = (1 << 61) - 1;
        let product = |(key, word): (&u64, u64)| u128::from(*key) * u128::from(word) % PRIME;
        (self.0.iter().zip(words(&id.0.0)).map(product).sum::<u128>() % PRIME) as u64
    }
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    std::array::from_fn(|word| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * word + byte])))
}

/// What is sent beside whole blocks.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
enum Word {
    /// A block: short ids of its transactions, and those that others do not have, with their positions.
    Block { head: Box<Head>, ids: Vec<u64>, new: Vec<(u32, Vec<u8>)> },
    /// Its transactions at these positions are missing; all of them where none is named.
    Missing { block: Digest, positions: Vec<u32> },
    /// They are these.
    Found { block: Digest, transactions: Vec<(u32, Vec<u8>)> },
}

/// What stands in front of a block's transactions.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
struct Head {
    header: BlockHeader,
    attested: Attested,
}

impl Word {
    fn to_bytes(&self) -> Vec<u8> {
        [&[COMPACT][..], &encode(self)].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Word> {
        decode_exactly(bytes.strip_prefix(&[COMPACT])?).ok()
    }
}

/// How often one member is answered about a block: for what is missing, and for all of it.
const ANSWERS: usize = 2;
/// Transactions that are missing may be on their way: so long they are waited for before the leader is asked.
const PATIENCE: Duration = Duration::from_millis(25);
/// Arrivals within this time are looked at together.
const ARRIVALS: Duration = Duration::from_millis(2);

/// Own blocks that others may ask for, the newest last, and who has asked.
#[derive(Default)]
struct Sent(Mutex<VecDeque<SentBlock>>);

type SentBlock = (Digest, Arc<Block>, Vec<PublicKey>);

impl Sent {
    fn remember(&self, digest: Digest, block: Block) {
        let mut sent = self.0.lock();
        if sent.iter().all(|(known, ..)| *known != digest) {
            sent.push_back((digest, Arc::new(block), Vec::new()));
        }
        if sent.len() > SENT {
            sent.pop_front();
        }
    }

    /// The block, if this member may still ask about it.
    fn asked(&self, digest: &Digest, peer: &PublicKey) -> Option<Arc<Block>> {
        let mut sent = self.0.lock();
        let (_, block, asked) = sent.iter_mut().find(|(known, ..)| known == digest)?;
        if asked.iter().filter(|other| *other == peer).count() >= ANSWERS {
            return None;
        }
        asked.push(peer.clone());
        Some(block.clone())
    }

    /// What somebody lacks of a block.
    fn answer(&self, peer: &PublicKey, digest: &Digest, positions: &[u32]) -> Option<Word> {
        let block = self.asked(digest, peer)?;
        let all: Vec<u32> = (0..block.transactions.len() as u32).collect();
        let positions = if positions.is_empty() { &all } else { positions };
        let found = |position: &u32| Some((*position, block.transactions.get(*position as usize)?.to_vec()));
        let transactions = positions.iter().take(all.len()).map(found).collect::<Option<_>>()?;
        Some(Word::Found { block: *digest, transactions })
    }
}

/// Wraps a channel of proposed blocks.
pub(crate) fn wrap<E, S, R>(
    context: E,
    shared: Arc<Shared>,
    (sender, receiver): (S, R),
) -> (CompactSender<S>, CompactReceiver)
where
    E: Spawner + Metrics + Clock,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
{
    let (sent, capacity) = (Arc::<Sent>::default(), receiver.capacity());
    let (whole, blocks) = mpsc::channel(capacity.get());
    let rebuilding = Rebuilding {
        shared: shared.clone(),
        sent: sent.clone(),
        sender: sender.clone(),
        whole,
        incomplete: VecDeque::new(),
    };
    context.spawn(move |context| rebuilding.run(context, receiver));
    (CompactSender { inner: sender, shared, sent }, CompactReceiver { blocks, capacity })
}

/// Sends blocks without what the others have.
#[derive(Clone)]
pub(crate) struct CompactSender<S> {
    inner: S,
    shared: Arc<Shared>,
    sent: Arc<Sent>,
}

/// A block for these recipients, before it is sent.
pub(crate) struct CompactChecked<'a, C> {
    inner: C,
    shared: &'a Arc<Shared>,
    sent: &'a Sent,
}

impl<S: Sender<PublicKey = PublicKey>> LimitedSender for CompactSender<S> {
    type PublicKey = PublicKey;
    type Checked<'a> = CompactChecked<'a, S::Checked<'a>>;

    fn check(&mut self, recipients: Recipients<PublicKey>) -> Result<Self::Checked<'_>, SystemTime> {
        let inner = self.inner.check(recipients)?;
        Ok(CompactChecked { inner, shared: &self.shared, sent: &self.sent })
    }
}

impl<C: CheckedSender<PublicKey = PublicKey>> CheckedSender for CompactChecked<'_, C> {
    type PublicKey = PublicKey;

    fn recipients(&self) -> Vec<PublicKey> {
        self.inner.recipients()
    }

    fn send(self, message: impl Into<IoBufs> + Send, priority: bool) -> Unreliable<Feedback> {
        let message = message.into().coalesce();
        match compact(self.shared, self.sent, message.as_ref()) {
            Some(word) => self.inner.send(word.to_bytes(), priority),
            None => self.inner.send(message, priority),
        }
    }
}

/// An own block as others need it; nothing where it had better be sent whole.
fn compact(shared: &Shared, sent: &Sent, whole: &[u8]) -> Option<Word> {
    if shared.giving() != Giving::Everybody {
        return None;
    }
    let block = Block::from_bytes(&Bytes::copy_from_slice(whole.get(4..)?)).ok()?;
    if block.transactions.is_empty() {
        return None;
    }
    let digest = block.header.digest();
    let ids = shared.known_ids(&digest)?;
    let key = ShortIds::of(&digest);
    let new = shared.mempool.not_spread(&ids);
    let new = new.into_iter().map(|position| (position, block.transactions[position as usize].to_vec()));
    let word = Word::Block {
        head: Box::new(Head { header: block.header.clone(), attested: block.attested.clone() }),
        ids: ids.iter().map(|id| key.short(id)).collect(),
        new: new.collect(),
    };
    sent.remember(digest, block);
    Some(word)
}

/// Gives whole blocks, whether they came so or not.
#[derive(Debug)]
pub(crate) struct CompactReceiver {
    blocks: mpsc::Receiver<Message<PublicKey>>,
    capacity: NonZeroUsize,
}

/// The channel is closed.
#[derive(Debug, thiserror::Error)]
#[error("the network has ended")]
pub(crate) struct Ended;

impl Receiver for CompactReceiver {
    type Error = Ended;
    type PublicKey = PublicKey;

    async fn recv(&mut self) -> Result<Message<PublicKey>, Ended> {
        self.blocks.recv().await.ok_or(Ended)
    }

    fn capacity(&self) -> NonZeroUsize {
        self.capacity
    }
}

/// A block some of whose transactions are missing.
struct Incomplete {
    peer: PublicKey,
    digest: Digest,
    header: BlockHeader,
    attested: Attested,
    ids: Vec<u64>,
    transactions: Vec<Option<Bytes>>,
    /// When its leader is asked for them; nothing once it was.
    ask: Option<SystemTime>,
    /// Everything was asked for: nothing is left to be tried.
    asked_for_all: bool,
}

/// What came of the transactions that were found.
enum Rebuilt {
    Whole(Vec<u8>),
    Missing(Vec<u32>),
    /// They do not come to the block's root.
    Wrong,
}

impl Incomplete {
    /// From what a leader has sent, without its transactions; nothing where that is no block.
    fn of(
        peer: PublicKey,
        (header, attested): (BlockHeader, Attested),
        (ids, new): (Vec<u64>, Vec<(u32, Vec<u8>)>),
        ask: SystemTime,
    ) -> Option<Incomplete> {
        let count = header.transactions;
        if count > limits::BLOCK_TRANSACTIONS_MAX || ids.len() != count as usize {
            return None;
        }
        let (transactions, digest) = (vec![None; ids.len()], header.digest());
        let (ask, asked_for_all) = (Some(ask), false);
        let mut incomplete =
            Incomplete { peer, digest, header, attested, ids, transactions, ask, asked_for_all };
        incomplete.fill(new)?;
        Some(incomplete)
    }

    /// Puts transactions at their places; nothing where there is none.
    fn fill(&mut self, transactions: Vec<(u32, Vec<u8>)>) -> Option<()> {
        for (position, transaction) in transactions {
            *self.transactions.get_mut(position as usize)? = Some(Bytes::from(transaction));
        }
        Some(())
    }

    /// Takes what the mempool has.
    fn look(&mut self, mempool: &Mempool) {
        let places = self.transactions.iter_mut().zip(&self.ids);
        let wanted: Vec<_> = places.filter(|(place, _)| place.is_none()).collect();
        let (key, ids) = (ShortIds::of(&self.digest), wanted.iter().map(|(_, id)| **id));
        let found = mempool.find(&ids.collect::<Vec<u64>>(), |id| key.short(id));
        for ((place, _), found) in wanted.into_iter().zip(found) {
            *place = found;
        }
    }

    fn rebuild(&self) -> Rebuilt {
        let missing = (0u32..).zip(&self.transactions).filter(|(_, transaction)| transaction.is_none());
        let missing: Vec<u32> = missing.map(|(position, _)| position).collect();
        if !missing.is_empty() {
            return Rebuilt::Missing(missing);
        }
        let transactions = self.transactions.iter().flatten().cloned().collect();
        let block = Block { header: self.header.clone(), attested: self.attested.clone(), transactions };
        match block.check_content() {
            Ok(()) => Rebuilt::Whole(OrderedBlock(block).encode().to_vec()),
            Err(_) => Rebuilt::Wrong,
        }
    }
}

/// Makes blocks whole.
struct Rebuilding<S> {
    shared: Arc<Shared>,
    sent: Arc<Sent>,
    sender: S,
    whole: mpsc::Sender<Message<PublicKey>>,
    /// The newest last.
    incomplete: VecDeque<Incomplete>,
}

impl<S: Sender<PublicKey = PublicKey>> Rebuilding<S> {
    async fn run<E: Spawner + Clock>(
        mut self,
        context: E,
        mut receiver: impl Receiver<PublicKey = PublicKey>,
    ) {
        loop {
            // Created before the look at the mempool, so that no arrival is missed.
            let mempool = self.shared.mempool.clone();
            let arrival = mempool.arrival();
            let next = self.incomplete.iter().filter_map(|incomplete| incomplete.ask).min();
            let wait =
                next.map_or(PATIENCE * 40, |at| at.duration_since(context.current()).unwrap_or_default());
            select! {
                message = receiver.recv() => {
                    let Ok((peer, message)) = message else { return };
                    if self.hear(&context, peer, message).await.is_none() {
                        return;
                    }
                },
                _ = arrival => {
                    if !self.incomplete.is_empty() {
                        context.sleep(ARRIVALS).await;
                        self.look_again(&context).await;
                    }
                },
                _ = context.sleep(wait) => self.look_again(&context).await,
            }
        }
    }

    /// Nothing where nobody takes blocks any more.
    async fn hear<E: Spawner + Clock>(&mut self, context: &E, peer: PublicKey, message: IoBuf) -> Option<()> {
        if message.as_ref().first() != Some(&COMPACT) {
            return self.whole.send((peer, message)).await.ok();
        }
        match Word::from_bytes(message.as_ref()) {
            Some(Word::Block { head, ids, new }) => {
                let Head { header, attested } = *head;
                let ask = context.current() + PATIENCE;
                match Incomplete::of(peer, (header, attested), (ids, new), ask) {
                    Some(incomplete) => self.make_whole(context, incomplete, true).await,
                    None => debug!("ignored a block that contradicts itself"),
                }
            }
            Some(Word::Missing { block, positions }) => {
                if let Some(found) = self.sent.answer(&peer, &block, &positions) {
                    self.sender.send(Recipients::One(peer), found.to_bytes(), true);
                }
            }
            Some(Word::Found { block, transactions }) => {
                let asked = |of: &Incomplete| of.peer == peer && of.digest == block && of.ask.is_none();
                let position = self.incomplete.iter().position(asked);
                if let Some(mut incomplete) = position.and_then(|position| self.incomplete.remove(position)) {
                    match incomplete.fill(transactions) {
                        Some(()) => self.make_whole(context, incomplete, false).await,
                        None => debug!("ignored transactions at places that a block does not have"),
                    }
                }
            }
            None => debug!(bytes = message.len(), "ignored what is no block"),
        }
        Some(())
    }

    /// Something has come into the mempool, or it is time to ask.
    async fn look_again<E: Spawner + Clock>(&mut self, context: &E) {
        for _ in 0..self.incomplete.len() {
            let Some(incomplete) = self.incomplete.pop_front() else { return };
            self.make_whole(context, incomplete, true).await;
        }
    }

    /// Gives the block on if it is whole; else its transactions are waited for, and then asked for.
    async fn make_whole<E: Spawner + Clock>(&mut self, context: &E, mut incomplete: Incomplete, looks: bool) {
        let mempool = self.shared.mempool.clone();
        let work = move || {
            if looks && !incomplete.asked_for_all {
                incomplete.look(&mempool);
            }
            let rebuilt = incomplete.rebuild();
            (incomplete, rebuilt)
        };
        let (mut incomplete, rebuilt) = off_the_reactor(context, work).await;
        let positions = match rebuilt {
            Rebuilt::Whole(block) => {
                // Nobody takes blocks any more where this fails.
                let _ = self.whole.send((incomplete.peer, IoBuf::from(block))).await;
                return;
            }
            Rebuilt::Missing(positions) => positions,
            Rebuilt::Wrong if incomplete.asked_for_all => {
                debug!(height = incomplete.header.height, "a block's transactions are not those of its root");
                return;
            }
            Rebuilt::Wrong => {
                incomplete.asked_for_all = true;
                incomplete.ask = Some(context.current());
                incomplete.transactions.fill(None);
                Vec::new()
            }
        };
        if incomplete.ask.is_some_and(|at| at <= context.current()) {
            debug!(height = incomplete.header.height, missing = positions.len(), "asking for transactions");
            incomplete.ask = None;
            let missing = Word::Missing { block: incomplete.digest, positions };
            self.sender.send(Recipients::One(incomplete.peer.clone()), missing.to_bytes(), true);
        }
        self.keep(incomplete);
    }

    /// Of each member the newest.
    fn keep(&mut self, incomplete: Incomplete) {
        let of_peer = |other: &Incomplete| other.peer == incomplete.peer;
        if self.incomplete.iter().filter(|other| of_peer(other)).count() >= INCOMPLETE
            && let Some(oldest) = self.incomplete.iter().position(of_peer)
        {
            self.incomplete.remove(oldest);
        }
        self.incomplete.push_back(incomplete);
    }
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::Admission;
    use crate::MempoolLimits;
    use crate::bft::network;
    use crate::cutting::{Parent, assemble};
    use crate::members::committee;
    use crate::mempool::{Placing, Source};
    use crate::simulation::{charter, node_key};
    use commonware_p2p::simulated::{self, Link};
    use commonware_p2p::{Manager as _, TrackedPeers};
    use commonware_runtime::{Quota, Runner as _, Supervisor as _, deterministic};
    use commonware_utils::{NZU32, NZUsize, Probability, ordered::Set};
    use types::{Charters, Place, RejectReason};

    /// Transactions are known by their first letter.
    struct FirstLetter;

    impl Admission for FirstLetter {
        fn check(&self, _: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
            let id = |bytes: &Bytes| Ok(TransactionId(crypto::sha256(&[&bytes[..1]])));
            transactions.iter().map(id).collect()
        }
    }

    /// Member `member` of `members`, whose mempool has these.
    fn shared(member: usize, members: usize, texts: &[&'static str], source: Source) -> Arc<Shared> {
        let charters = Charters::new(Arc::new(charter(1, members)));
        let clock = Arc::new(|| Duration::ZERO);
        let limits = MempoolLimits::default();
        let shared = network::shared(charters, &node_key(member), limits, Arc::new(FirstLetter), clock);
        let texts = texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        assert!(shared.submit(texts, Placing::Anywhere, source).iter().all(Result::is_ok));
        shared
    }

    /// A block of these as the engine that broadcasts sends it; its builder knows the ids.
    fn block(shared: &Shared, texts: &[&'static str]) -> Bytes {
        let transactions: Vec<Bytes> = texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        let ids = transactions.iter().map(|bytes| TransactionId(crypto::sha256(&[&bytes[..1]])));
        let ids = Arc::new(ids.collect());
        let parent = Parent::charter(shared.ledger);
        let block = assemble(shared.ledger, &parent, 0, 5, Attested::default(), transactions);
        shared.know_ids(block.header.digest(), ids);
        OrderedBlock(block).encode()
    }

    /// What the second member hears when the first one sends a block of these; and how many bytes went to and fro.
    fn heard(leader: &Arc<Shared>, member: &Arc<Shared>, texts: &'static [&'static str]) -> Option<Bytes> {
        let (leader, member) = (leader.clone(), member.clone());
        deterministic::Runner::timed(Duration::from_secs(60)).start(|context| async move {
            let keys: Vec<PublicKey> = [0, 1]
                .map(|node| committee::public_key(&node_key(node).public_key()).expect("a good key"))
                .into();
            let config = simulated::Config {
                max_size: 1 << 20,
                max_peers_per_set: NZUsize!(2),
                disconnect_on_block: true,
                tracked_peer_sets: NZUsize!(1),
            };
            let (network, oracle) = simulated::Network::new(context.child("network"), config);
            network.start();
            oracle.manager().track(0, TrackedPeers::primary(Set::from_iter_dedup(keys.iter().cloned())));
            for (from, to) in [(0, 1), (1, 0)] {
                let (latency, jitter) = (Duration::from_millis(10), Duration::ZERO);
                let link = Link { latency, jitter, success_rate: Probability::new(1, 1).expect("all") };
                oracle.add_link(keys[from].clone(), keys[to].clone(), link).await.expect("members");
            }
            let quota = Quota::per_second(NZU32!(64));
            let mut ends = Vec::new();
            for (key, shared) in keys.iter().zip([leader.clone(), member]) {
                let channel = oracle.control(key.clone()).register(4, quota).await.expect("a channel");
                ends.push(wrap(context.child("compact"), shared, channel));
            }
            context.sleep(Duration::from_millis(50)).await;
            let message = block(&leader, texts);
            let [(sender, _), (_, receiver)] = &mut ends[..] else { unreachable!("two members") };
            sender.send(Recipients::All, message, false);
            select! {
                message = receiver.recv() => message.ok().map(|(_, message)| Bytes::copy_from_slice(message.as_ref())),
                _ = context.sleep(Duration::from_secs(10)) => None,
            }
        })
    }

    #[test]
    fn words_round_trip_and_nothing_else_is_one() {
        let leader = shared(0, 9, &["a", "b"], Source::Member);
        let sent = Sent::default();
        let word = compact(&leader, &sent, &block(&leader, &["a", "b"])).expect("it is sent compactly");
        let Word::Block { ids, new, .. } = &word else { panic!("{word:?}") };
        assert_eq!((ids.len(), new.len()), (2, 0));
        let bytes = word.to_bytes();
        assert_eq!(Word::from_bytes(&bytes), Some(word));
        for length in 0..bytes.len() {
            assert_eq!(Word::from_bytes(&bytes[..length]), None, "{length}");
        }
        let whole = block(&leader, &["a", "b"]);
        assert!(whole[0] != COMPACT && Word::from_bytes(&whole).is_none());
    }

    #[test]
    fn what_nobody_was_given_comes_with_the_block() {
        let leader = shared(0, 9, &["mine"], Source::Client);
        let others = leader.submit(vec![Bytes::from_static(b"others")], Placing::Anywhere, Source::Member);
        assert!(others.iter().all(Result::is_ok));
        let compacted = || compact(&leader, &Sent::default(), &block(&leader, &["mine", "others"]));
        let new = |word: Option<Word>| match word {
            Some(Word::Block { new, .. }) => new,
            other => panic!("{other:?}"),
        };
        assert_eq!(new(compacted()), [(0, b"mine".to_vec())]);
        leader.mempool.spread(0, (10, 1_000));
        assert_eq!(new(compacted()), []);
        // Few members have transactions sooner with the block.
        let few = shared(0, 7, &["mine"], Source::Client);
        assert_eq!(compact(&few, &Sent::default(), &block(&few, &["mine"])), None);
    }

    #[test]
    fn members_have_whole_blocks_whatever_they_lack() {
        const TEXTS: &[&str] = &["a1", "b1", "c1"];
        let leader = shared(0, 9, TEXTS, Source::Member);
        let whole = block(&leader, TEXTS);
        let has_all = shared(1, 9, TEXTS, Source::Member);
        assert_eq!(heard(&leader, &has_all, TEXTS), Some(whole.clone()));
        let lacks_two = shared(1, 9, &["b1"], Source::Member);
        assert_eq!(heard(&leader, &lacks_two, TEXTS), Some(whole.clone()), "it asks for two");
        // A client has signed the same transaction twice, and given each member another one.
        let has_another = shared(1, 9, &["a1", "b2", "c1"], Source::Member);
        assert_eq!(heard(&leader, &has_another, TEXTS), Some(whole), "it asks for all");
    }

    #[test]
    fn short_ids_are_others_in_every_block() {
        let digests = [1u8, 2].map(|block| crypto::sha256(&[&[block]]));
        let short = |digest: &Digest, number: u32| {
            ShortIds::of(digest).short(&TransactionId(crypto::sha256(&[&number.to_le_bytes()])))
        };
        let all: std::collections::BTreeSet<u64> =
            (0..1_000).flat_map(|number| digests.each_ref().map(|digest| short(digest, number))).collect();
        assert_eq!(all.len(), 2_000);
    }

    #[test]
    fn nobody_is_answered_for_ever() {
        let leader = shared(0, 9, &["a", "b"], Source::Member);
        let sent = Sent::default();
        compact(&leader, &sent, &block(&leader, &["a", "b"])).expect("it is sent compactly");
        let digest = sent.0.lock()[0].0;
        let peers = [1, 2].map(|node| committee::public_key(&node_key(node).public_key()).expect("a key"));
        let answered = |peer: &PublicKey, positions: &[u32]| sent.answer(peer, &digest, positions).is_some();
        assert!(!answered(&peers[0], &[2]), "there is no third transaction");
        assert!(answered(&peers[0], &[1]));
        assert!(!answered(&peers[0], &[]), "it has asked twice");
        assert!(answered(&peers[1], &[]));
    }
}
