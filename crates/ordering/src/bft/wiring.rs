//! Puts one member together from the consensus crates' parts, on any of their runtimes.
//!
//! ```text
//!   votes ─┐
//!   certificates ─┼─▶ simplex ──asks──▶ Inline ──▶ Application ◀── mempool, admission
//!   resolver ─┘          │ relays          │
//!                        ▼                 ▼
//!   broadcast ─▶ buffer ─▶ marshal ──final blocks──▶ delivery ──▶ sink
//!   backfill ─▶ resolver ──▶  │
//!   work ─▶ Work          archives on disk
//!   messages ─▶ Messages ◀── the node
//! ```

use super::application::{Application, Shared};
use super::block::{BlockRules, OrderedBlock};
use super::config::{Timing, channel, memory};
use super::delivery::{self, Acknowledgements, Sink};
use super::{committee, messages, work};
use commonware_broadcast::buffered;
use commonware_consensus::marshal::standard::{Inline, Standard};
use commonware_consensus::marshal::{self, core::Actor as Marshal, resolver::p2p as marshal_resolver};
use commonware_consensus::simplex::config::{Floor, ForwardPolicy, SkipPolicy};
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_consensus::simplex::{self, SkipBudget, elector::RoundRobin};
use commonware_consensus::types::{Epoch, FixedEpocher, ViewDelta};
use commonware_cryptography::certificate::{ConstantProvider, Verifier as _};
use commonware_cryptography::{Digestible as _, Sha256, ed25519::PublicKey};
use commonware_p2p::{Blocker, Provider, Receiver, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::buffer::paged::CacheRef;
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage};
use commonware_storage::archive::immutable;
use commonware_utils::{NZU16, NZU64, NZUsize, NonZeroDuration, ordered::Set};
use rand_core::CryptoRng;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::time::Duration;

pub(crate) type MarshalMailbox = marshal::core::Mailbox<Scheme, Standard<OrderedBlock>>;

/// A member's end of every channel, in the order of [`channel::ALL`].
pub(crate) type Channels<S, R> = [(S, R); channel::ALL.len()];

/// What differs between members and runtimes.
pub(crate) struct Parts<B, P, S, R> {
    pub shared: Arc<Shared>,
    pub scheme: Scheme,
    pub blocker: B,
    pub peers: P,
    pub channels: Channels<S, R>,
    pub acknowledgements: Arc<Acknowledgements>,
    /// Everything up to here is durable in the node's ledger.
    pub start: u64,
}

/// A running member.
pub(crate) struct Member {
    pub marshal: MarshalMailbox,
    /// Ends when consensus ends.
    pub consensus: Handle<()>,
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
    let Parts { shared, scheme, blocker, peers, channels, acknowledgements, start } = parts;
    let [votes, certificates, resolver, backfill, broadcast, work_channel, message_channel] = channels;
    let me = shared.members[shared.organisation as usize].clone();
    let timing = Timing::of(&shared.charter.block);
    let rules = BlockRules { ledger: shared.ledger, limits: shared.charter.block };
    let genesis = OrderedBlock::genesis(shared.ledger);
    let page_cache = CacheRef::new(NZU16!(4096), memory::CACHE_PAGES);
    let epocher = FixedEpocher::new(NZU64!(u64::MAX));

    let backfill = marshal_resolver::init(
        context.child("backfill"),
        marshal_resolver::Config {
            public_key: me.clone(),
            peer_provider: peers.clone(),
            blocker: blocker.clone(),
            mailbox_size: memory::MAILBOX,
            fetch_timeout: NonZeroDuration::new_panic(timing.fetch),
            fetch_retry_delay: timing.fetch_retry,
            priority_requests: false,
            priority_responses: false,
        },
        backfill,
    );
    let (engine, buffer) = buffered::Engine::new(
        context.child("broadcast"),
        buffered::Config {
            public_key: me,
            mailbox_size: memory::MAILBOX,
            deque_size: memory::BUFFERED_BLOCKS,
            priority: false,
            codec_config: rules.clone(),
            peer_provider: peers,
            strategy: Sequential,
        },
    );
    engine.start(broadcast);

    let certificate_codec = Scheme::certificate_codec_config_unbounded();
    let finalizations = archive(prefix, "finalizations", &page_cache, certificate_codec);
    let finalizations = immutable::Archive::init(context.child("finalizations"), finalizations)
        .await
        .expect("the archive of finalizations opens; what is damaged on disk cannot be used");
    let blocks = archive(prefix, "blocks", &page_cache, rules.clone());
    let blocks = immutable::Archive::init(context.child("blocks"), blocks)
        .await
        .expect("the archive of blocks opens; what is damaged on disk cannot be used");
    let (actor, marshal, floor) = Marshal::<_, Standard<OrderedBlock>, _, _, _, _, _>::init(
        context.child("marshal"),
        finalizations,
        blocks,
        marshal::Config {
            provider: ConstantProvider::new(scheme.clone()),
            epocher: epocher.clone(),
            start: marshal::Start::Genesis(genesis.clone().digested()),
            partition_prefix: format!("{prefix}-marshal"),
            mailbox_size: memory::MAILBOX,
            view_retention: ViewDelta::new(64),
            prunable_items_per_section: NZU64!(256),
            page_cache: page_cache.clone(),
            replay_buffer: memory::FILE_BUFFER,
            key_write_buffer: memory::FILE_BUFFER,
            value_write_buffer: memory::FILE_BUFFER,
            block_codec_config: rules,
            max_repair: NZUsize!(32),
            max_pending_acks: memory::PENDING_BLOCKS,
            strategy: Sequential,
        },
    )
    .await;

    let processed = floor.processed().map_or(0, |processed| processed.height().get());
    shared.delivered.store(processed.max(start), Atomic::Release);
    shared.final_height.fetch_max(processed, Atomic::AcqRel);
    acknowledgements.durable(start);
    let (reporter, _) =
        delivery::start(context.child("delivery"), shared.clone(), marshal.clone(), acknowledgements, sink);
    let members = shared.members.clone();
    messages::start(context.child("messages"), message_channel, shared.messages.clone(), move |key| {
        members.iter().position(|member| member == key)
    });
    let members = shared.members.clone();
    work::start(
        context.child("work"),
        work_channel,
        shared.work.clone(),
        shared.mempool.clone(),
        move |key| members.iter().position(|member| member == key),
    );
    let inline = Inline::new(context.child("inline"), Application(shared), marshal.clone(), epocher);
    actor.start(wrap(reporter), buffer, backfill);
    let engine = simplex::Engine::new(
        context.child("simplex"),
        simplex::Config {
            scheme,
            elector: RoundRobin::<Sha256>::default(),
            blocker,
            automaton: inline.clone(),
            relay: inline.clone(),
            reporter: inline,
            strategy: Sequential,
            partition: format!("{prefix}-simplex"),
            mailbox_size: memory::MAILBOX,
            epoch: Epoch::zero(),
            floor: Floor::Genesis(genesis.digest()),
            replay_buffer: memory::FILE_BUFFER,
            write_buffer: memory::FILE_BUFFER,
            page_cache,
            leader_timeout: timing.leader,
            certification_timeout: timing.certification,
            timeout_retry: timing.retry,
            view_retention: ViewDelta::new(64),
            skip: SkipPolicy::Enabled { timeout: timing.skip, budget: SkipBudget::Participants },
            fetch_timeout: NonZeroDuration::new_panic(timing.fetch),
            fetch_retry_delay: timing.fetch_retry,
            forward: ForwardPolicy::SilentVoters,
            track_historical_votes: false,
        },
    );
    Member { marshal, consensus: engine.start(votes, certificates, resolver) }
}

/// Signs votes for one member; `None` if the key is none of a member's.
pub(crate) fn signer(shared: &Shared, key: &crypto::SecretKey) -> Option<Scheme> {
    let members = Set::from_iter_dedup(shared.members.iter().cloned());
    Scheme::signer(&committee::namespace(&shared.charter), members, committee::private_key(key))
}

fn archive<C>(prefix: &str, name: &str, page_cache: &CacheRef, codec_config: C) -> immutable::Config<C> {
    immutable::Config {
        metadata_partition: format!("{prefix}-{name}-metadata"),
        freezer_table_partition: format!("{prefix}-{name}-table"),
        freezer_table_initial_size: 1024,
        freezer_table_resize_frequency: 4,
        freezer_table_resize_chunk_size: 1024,
        freezer_key_partition: format!("{prefix}-{name}-key"),
        freezer_key_page_cache: page_cache.clone(),
        freezer_value_partition: format!("{prefix}-{name}-value"),
        freezer_value_target_size: memory::ARCHIVE_FILE_BYTES,
        freezer_value_compression: None,
        ordinal_partition: format!("{prefix}-{name}-ordinal"),
        items_per_section: NZU64!(1024),
        freezer_key_write_buffer: memory::FILE_BUFFER,
        freezer_value_write_buffer: memory::FILE_BUFFER,
        ordinal_write_buffer: memory::FILE_BUFFER,
        replay_buffer: memory::FILE_BUFFER,
        codec_config,
    }
}

/// How long a member that is asked to end waits for its tasks.
pub(crate) const STOP_WAIT: Duration = Duration::from_secs(2);
