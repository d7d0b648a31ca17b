//! Puts one member together from the consensus crates' parts, on any of their runtimes.
//!
//! ```text
//!   votes ─┐
//!   certificates ─┼─▶ Reigns: simplex of an epoch ──asks──▶ Inline ──▶ Application ◀── mempool, admission
//!   resolver ─┘          │ relays          │
//!                        ▼                 ▼
//!   broadcast ─▶ compact ─▶ buffer ─▶ marshal ──final blocks──▶ delivery ──▶ sink
//!   backfill ─▶ resolver ──▶  │
//!   work ─▶ Work          archives on disk
//!   messages, exchange ─▶ Messages ◀── the node
//! ```

use super::application::{Application, Shared};
use super::archives::{Forgetting, Opening};
use super::block::{BlockRules, OrderedBlock};
use super::compact;
use super::config::{Timing, channel, memory};
use super::delivery::{self, Acknowledgements};
use super::reigns::Reigns;
use super::work::{self, Giving, KnownEpochs};
use crate::members::{Epochs, Forwarded, Peers, forwarding, messages};
use crate::mempool::Source;
use crate::sink::Sink;
use commonware_broadcast::buffered;
use commonware_consensus::marshal::standard::{Inline, Standard};
use commonware_consensus::marshal::{self, core::Actor as Marshal, resolver::p2p as marshal_resolver};
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_consensus::types::{Height, ViewDelta};
use commonware_cryptography::{Digested, Digestible as _, ed25519::PublicKey};
use commonware_p2p::{Blocker, Provider, Receiver, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::buffer::paged::CacheRef;
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage};
use commonware_utils::{NZU16, NZU64, NZUsize, NonZeroDuration, vec::NonEmptyVec};
use rand_core::CryptoRng;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::time::Duration;
use tokio::sync::mpsc;

pub(crate) type MarshalMailbox = marshal::core::Mailbox<Scheme, Standard<OrderedBlock>>;

/// A member's end of every channel, in the order of [`channel::ALL`].
pub(crate) type Channels<S, R> = [(S, R); channel::ALL.len()];

/// What differs between members and runtimes.
pub(crate) struct Parts<B, P, S, R> {
    pub shared: Arc<Shared>,
    pub blocker: B,
    pub peers: P,
    pub tracked: Box<dyn Peers>,
    pub channels: Channels<S, R>,
    pub acknowledgements: Arc<Acknowledgements>,
    /// Everything up to here is durable in the node's ledger.
    pub start: u64,
    /// If the node prunes.
    pub forgetting: Option<Arc<Forgetting>>,
}

/// A running member.
pub(crate) struct Member {
    pub marshal: MarshalMailbox,
    /// Ends when consensus ends.
    pub consensus: Handle<()>,
    /// Without any of them nothing goes on: what stores blocks, what delivers them, what sends them. A disk that is full
    /// ends the first, and the others would wait for it for ever.
    pub tasks: [Handle<()>; 3],
}

/// Starts a member. Names of its files begin with `prefix`.
pub(crate) async fn start<E, B, P, S, R, K, W>(
    context: E,
    prefix: &str,
    parts: Parts<B, P, S, R>,
    sink: K,
    wrap: impl FnOnce(delivery::DeliveryReporter) -> W,
) -> Member
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    B: Blocker<PublicKey = PublicKey>,
    P: Provider<PublicKey = PublicKey>,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
    K: Sink,
    W: commonware_consensus::Reporter<Activity = marshal::Update<OrderedBlock>>,
{
    let Parts { shared, blocker, peers, tracked, channels, acknowledgements, start, forgetting } = parts;
    let [votes, certificates, resolver, backfill, broadcast, work_channel, to_all, to_one] = channels;
    let rules = BlockRules::of(shared.ledger);
    let genesis = OrderedBlock::genesis(shared.ledger);
    let page_cache = CacheRef::new(NZU16!(4096), memory::CACHE_PAGES);

    let fetching = backfill_config(&shared, start, peers.clone(), blocker.clone());
    let backfill = marshal_resolver::init(context.child("backfill"), fetching, backfill);
    let sending = broadcast_config(&shared, peers);
    let (engine, buffer) = buffered::Engine::new(context.child("broadcast"), sending);
    let broadcasting = engine.start(compact::wrap(context.child("compact"), shared.clone(), broadcast));

    let opening =
        Opening { prefix, page_cache: &page_cache, rules, forgetting: forgetting.as_deref(), start };
    let (finalizations, blocks) =
        opening.open(&context).await.expect("the archives open; what is damaged on disk cannot be used");
    // What marshal has stored may be ahead of what the node knows of its ledger.
    shared.members.epochs.read(&blocks).await.expect("the archive of blocks can be read");
    let (actor, marshal, floor) = Marshal::<_, Standard<OrderedBlock>, _, _, _, _, _>::init(
        context.child("marshal"),
        finalizations,
        blocks,
        marshal_config(&shared, prefix, &page_cache),
    )
    .await;

    let processed = floor.processed().map_or(0, |processed| processed.height().get());
    shared.delivered.store(processed.max(start), Atomic::Release);
    shared.final_height.fetch_max(processed, Atomic::AcqRel);
    // The blocks after it come again, and with the last of an epoch the next one begins.
    shared.reached.send_replace(processed);
    shared.lacking.have(processed.max(start), (shared.clock)());
    acknowledgements.durable(start);
    let (reporter, delivering) =
        delivery::start(context.child("delivery"), shared.clone(), marshal.clone(), acknowledgements, sink);
    messages::start_both(&context, &shared.members, to_all, to_one);
    let progress = Reached { shared: shared.clone(), marshal: marshal.clone() };
    let words = (shared.work.clone(), shared.mempool.clone());
    let taken = take_from_others(context.child("taking"), &shared);
    work::start(context.child("work"), work_channel, words, taken, progress);
    let epochs = shared.members.epochs.clone();
    let inline = Inline::new(context.child("inline"), Application(shared.clone()), marshal.clone(), epochs);
    let storing = actor.start(wrap(reporter), buffer, backfill);
    if let Some(below) = forgetting.and_then(|kept| kept.below(kept.from, start)) {
        marshal.prune(below);
    }
    let reigns = Reigns {
        shared,
        marshal: marshal.clone(),
        blocker,
        automaton: inline,
        peers: tracked,
        prefix: prefix.to_string(),
        page_cache,
        genesis: genesis.digest(),
    };
    let consensus = reigns.start(context.child("consensus"), [votes, certificates, resolver]);
    let tasks = [storing, delivering, broadcasting];
    Member { marshal, consensus, tasks }
}

/// Puts into this node's mempool what other members give it. What is refused here its own node refuses, too.
fn take_from_others<E: Spawner>(context: E, shared: &Arc<Shared>) -> mpsc::Sender<Forwarded> {
    let taking = shared.clone();
    let put = move |transactions, placing| drop(taking.submit(transactions, placing, Source::Member));
    let room = shared.clone();
    let has_room = move || match room.giving() {
        // Everybody's own clients keep to their half.
        Giving::Everybody => room.mempool.has_room(),
        Giving::NextLeader | Giving::Nobody => room.mempool.has_room_for_others(),
    };
    forwarding::start(context, has_room, put)
}

/// How far this node is, for the words of others.
struct Reached {
    shared: Arc<Shared>,
    marshal: MarshalMailbox,
}

impl KnownEpochs<PublicKey> for Reached {
    fn member(&self, peer: &PublicKey) -> Option<usize> {
        self.shared.members.epochs.member(peer)
    }

    fn epoch(&self) -> u64 {
        self.shared.members.epochs.epoch_at(*self.shared.reached.borrow() + 1)
    }

    fn over(&self, epoch: u64) -> Option<u64> {
        self.shared.members.epochs.last_of(epoch).filter(|_| epoch < self.epoch())
    }

    fn giving(&self) -> Giving {
        self.shared.giving()
    }

    fn next_leader(&self) -> Option<PublicKey> {
        let leader = self.shared.leader.lock().clone()?;
        let next = self.shared.members.epochs.after(*self.shared.reached.borrow() + 1, &leader)?;
        (next != *self.shared.members.epochs.own_key()).then_some(next)
    }

    fn fetch(&self, last: u64, peer: &PublicKey) {
        if last > *self.shared.reached.borrow() && self.shared.members.epochs.epoch_at(last) == self.epoch() {
            self.hear_of(last, peer);
            self.marshal.hint_finalized(Height::new(last), NonEmptyVec::new(peer.clone()));
        }
    }
}

impl Reached {
    /// Consensus of an epoch that is over says nothing of how far blocks go.
    fn hear_of(&self, last: u64, peer: &PublicKey) {
        let Some(member) = self.member(peer) else { return };
        let members = self.shared.members.epochs.charter_at(last).members().count();
        self.shared.lacking.said((member, last), members.saturating_sub(1) / 3, (self.shared.clock)());
    }
}

/// How blocks that are missing are fetched. `start`: everything up to there is here.
fn backfill_config<B, P>(
    shared: &Shared,
    start: u64,
    peers: P,
    blocker: B,
) -> marshal_resolver::Config<PublicKey, P, B>
where
    B: Blocker<PublicKey = PublicKey>,
    P: Provider<PublicKey = PublicKey>,
{
    let timing = Timing::of(&shared.members.epochs.charter_at(start + 1).block);
    marshal_resolver::Config {
        public_key: shared.members.epochs.own_key().clone(),
        peer_provider: peers,
        blocker,
        mailbox_size: memory::MAILBOX,
        fetch_timeout: NonZeroDuration::new_panic(timing.fetch_block),
        fetch_retry_delay: timing.fetch_retry,
        priority_requests: false,
        priority_responses: false,
    }
}

/// How proposed blocks are sent to everybody.
fn broadcast_config<P>(shared: &Shared, peers: P) -> buffered::Config<PublicKey, BlockRules, P, Sequential>
where
    P: Provider<PublicKey = PublicKey>,
{
    buffered::Config {
        public_key: shared.members.epochs.own_key().clone(),
        mailbox_size: memory::MAILBOX,
        deque_size: memory::BUFFERED_BLOCKS,
        priority: false,
        codec_config: BlockRules::of(shared.ledger),
        peer_provider: peers,
        strategy: Sequential,
    }
}

/// How final blocks are stored and put into their order.
fn marshal_config(
    shared: &Shared,
    prefix: &str,
    page_cache: &CacheRef,
) -> marshal::Config<Epochs, Epochs, Sequential, OrderedBlock, Digested<OrderedBlock>> {
    marshal::Config {
        provider: shared.members.epochs.clone(),
        epocher: shared.members.epochs.clone(),
        start: marshal::Start::Genesis(OrderedBlock::genesis(shared.ledger).digested()),
        partition_prefix: format!("{prefix}-marshal"),
        mailbox_size: memory::MAILBOX,
        view_retention: ViewDelta::new(64),
        prunable_items_per_section: NZU64!(256),
        page_cache: page_cache.clone(),
        replay_buffer: memory::FILE_BUFFER,
        key_write_buffer: memory::FILE_BUFFER,
        value_write_buffer: memory::FILE_BUFFER,
        block_codec_config: BlockRules::of(shared.ledger),
        max_repair: NZUsize!(32),
        max_pending_acks: memory::PENDING_BLOCKS,
        strategy: Sequential,
    }
}

/// How long a member that is asked to end waits for its tasks.
pub(crate) const STOP_WAIT: Duration = Duration::from_secs(2);
