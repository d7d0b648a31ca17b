//! Byzantine fault-tolerant ordering: n organisations of which ⌊(n − 1)/3⌋ may do anything.
//!
//! Simplex consensus with one leader per view, in turn. A leader proposes a block from its own mempool; n − f votes
//! notarize it, n − f more make it final. `marshal` stores final blocks, fetches missed ones from the other members
//! and delivers all in height order. Certificates hold Ed25519 signatures of the node keys in the charter; no key
//! ceremony is needed.
//!
//! # Restarts
//!
//! The folder holds this node's votes and the final blocks. It must never be lost, copied or rolled back: a node that
//! forgets its votes could vote twice. After `kill -9` the service resumes from it, joins the other members again
//! within seconds and fetches what it missed. Marshal delivers again from the first height that was not acknowledged.
//! If the node's ledger ends before that (it lost its tail), the node reads the gap with
//! [`Ordering::read`]; if it ends after it, the service leaves out what the ledger has.
//!
//! # What is forgotten
//!
//! Marshal stores every final block beside the node's ledger, and keeps all of them unless the node prunes
//! (`archives`). Then it keeps those that the ledger has ([`Ordering::forget_below`]). Whoever asks for older ones
//! gets nothing and asks others, and whoever finds nobody that has them says so ([`Ordering::unobtainable`]).
//!
//! # Threads
//!
//! The consensus crates run on a tokio runtime of their own, in threads of their own; the rest of the node meets them
//! through the mempool, the channel of deliveries, and mailboxes.

mod application;
mod archives;
mod block;
mod compact;
mod config;
mod delivery;
mod epochs;
mod finalization;
mod network;
mod own_votes;
mod reigns;
mod wiring;
mod work;

#[cfg(feature = "simulation")]
pub(crate) use {
    application::Shared,
    archives::{Forgetting, partitions},
    block::{BlockRules, OrderedBlock},
    config::{channel, memory},
    delivery::{Acknowledgements, read},
    finalization::Floor,
    wiring::{MarshalMailbox, Parts, start as start_member},
};

pub(crate) use finalization::{FinalizationSigner, FinalizationVerifier};
#[cfg(feature = "simulation")]
pub(crate) use network::{max_message_size, shared};

use crate::members::committee;
use crate::members::folder::{self, Claim};
use crate::members::network::{self as connections, Connection};
use crate::mempool::{Clock, Placing, Source};
use crate::running::{Ready, Running};
use crate::sink::ChannelSink;
use crate::{
    Admission, CertificateError, Delivery, MempoolLimits, Ordering, OrderingError, OrderingStatus, Services,
    SubmitError,
};
use bytes::Bytes;
use commonware_runtime::{Clock as _, Spawner as _, Supervisor as _, tokio as runtime};
use crossbeam_channel::Receiver;
use crypto::SecretKey;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;
use types::{BlockHeader, Charters, TransactionId};

/// What [`start`] needs.
pub struct BftConfig {
    /// The ledger's charters as far as the node knows them; what later blocks say the service reads itself.
    pub charters: Charters,
    /// Signs votes and proves to the other members who we are. While it is no member's, the service follows without
    /// voting.
    pub node_key: SecretKey,
    /// Folder of this node's votes and final blocks; nothing else may write there.
    pub storage: PathBuf,
    /// Where to listen for the other members.
    pub listen: SocketAddr,
    /// Height up to which the node's ledger is durable; blocks up to there are not delivered.
    pub start: u64,
    /// Of a node that prunes, the first height whose payload its ledger has: what is stored below is forgotten, and more as the
    /// node says ([`Ordering::forget_below`]). `None`: everything is kept for ever. A node that starts with the other
    /// setting than last time first moves what it keeps to other files, which takes as long as copying it.
    pub keeps_from: Option<u64>,
    /// How much may wait at this node.
    pub mempool: MempoolLimits,
    /// Threads for network and agreement; 2 are enough for most, as signatures are verified elsewhere.
    pub worker_threads: usize,
}

/// How often a service that is busy opening its folder says so.
const OPENING_AGAIN: Duration = Duration::from_secs(10);

/// The running service of this organisation's node.
pub struct Bft {
    shared: Arc<application::Shared>,
    acknowledgements: Arc<delivery::Acknowledgements>,
    marshal: wiring::MarshalMailbox,
    deliveries: Receiver<Delivery>,
    running: Running,
    /// If the node prunes.
    forgetting: Option<Arc<archives::Forgetting>>,
    /// Of this node's votes.
    folder: PathBuf,
}

/// Starts this organisation's node. Returns when it listens and has opened its folder, not when it has found the
/// others.
///
/// # Errors
/// [`OrderingError`] where charter and key do not fit, the port is busy, or the folder cannot be used; nothing has
/// been started then.
pub fn start(config: BftConfig, admission: Arc<dyn Admission>) -> Result<Arc<Bft>, OrderingError> {
    network::check_service(&config)?;
    connections::check_port(config.listen)?;
    for reign in config.charters.reigns() {
        committee::addresses(&reign.charter)?;
    }
    let BftConfig { storage: folder, charters, node_key, start, .. } = &config;
    folder::claim(&Claim { folder, charters, node_key, start: *start })?;
    let acknowledgements = Arc::new(delivery::Acknowledgements::default());
    let (sink, deliveries) = ChannelSink::new(config::memory::PENDING_BLOCKS.get());
    let settings = runtime::Config::new()
        .with_worker_threads(config.worker_threads.max(1))
        .with_max_blocking_threads(config::memory::BLOCKING_THREADS)
        .with_storage_directory(&config.storage);
    // Not the runtime's clock: whatever holds on to the runtime's context keeps the folder from the next service.
    let clock: Clock = Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let (charters, folder) = (config.charters.clone(), config.storage.clone());
    let shared = network::shared(charters, &config.node_key, config.mempool, admission, clock);
    let keeps = |from| Arc::new(archives::Forgetting::new(from, archives::Forgetting::BLOCKS_PER_FILE));
    let forgetting = config.keeps_from.map(keeps);
    let node = Node {
        config,
        shared: shared.clone(),
        acknowledgements: acknowledgements.clone(),
        forgetting: forgetting.clone(),
        sink,
    };
    let (marshal, running) = Running::start("bft ordering", settings, |context, ready, stopped| {
        node.run(context, ready, stopped)
    })?;
    Ok(Arc::new(Bft { shared, acknowledgements, marshal, deliveries, running, forgetting, folder }))
}

impl Bft {
    /// Everything that a node is given of this service.
    pub fn services(self: &Arc<Self>) -> Services {
        self.shared.members.with(self.clone())
    }
}

/// What moves into the runtime's thread.
struct Node {
    config: BftConfig,
    shared: Arc<application::Shared>,
    acknowledgements: Arc<delivery::Acknowledgements>,
    forgetting: Option<Arc<archives::Forgetting>>,
    sink: ChannelSink,
}

impl Node {
    async fn run(
        self,
        context: runtime::Context,
        ready: Ready<wiring::MarshalMailbox>,
        stopped: oneshot::Receiver<()>,
    ) {
        let Node { config, shared, acknowledgements, forgetting, sink } = self;
        let connection =
            Connection { charters: &config.charters, node_key: &config.node_key, listen: config.listen };
        let (network, oracle, channels) =
            connections::join(&context, &connection, config::channel::quotas(), network::max_message_size());
        let parts = wiring::Parts {
            shared: shared.clone(),
            blocker: oracle.clone(),
            peers: oracle.clone(),
            tracked: connections::tracked(oracle, &config.charters),
            channels,
            acknowledgements,
            start: config.start,
            forgetting,
        };
        let starting = wiring::start(context.child("member"), "bft", parts, sink, |reporter| reporter);
        let mut starting = std::pin::pin!(starting);
        let member = loop {
            // Blocks may have to be moved.
            commonware_macros::select! {
                member = &mut starting => break member,
                _ = context.sleep(OPENING_AGAIN) => ready.opening(),
            }
        };
        let network = network.start();
        if !ready.started(member.marshal, context.child("metrics")) {
            return;
        }
        commonware_macros::select! {
            _ = stopped => {},
            found = shared.own_votes.contradicted() => {
                tracing::error!(found, "somebody else votes with this node's key; the ordering service ends with it");
                if let Err(error) = folder::note_other_voter(&config.storage, &config.node_key, &found) {
                    tracing::error!(%error, "this cannot be noted for the next start");
                }
            },
            _ = futures::future::select_all(member.tasks) => {
                tracing::error!("a part of the ordering service failed; the service ends with it");
            },
            _ = member.consensus => tracing::error!("consensus ended; the ordering service ends with it"),
            _ = network => tracing::error!("the network ended; the ordering service ends with it"),
        }
        shared.mempool.close();
        // Tasks get time to bring what they write to an end; a node that is killed here recovers as well.
        if context.stop(0, Some(wiring::STOP_WAIT)).await.is_err() {
            tracing::debug!("some tasks of the ordering service were cut off");
        }
    }
}

impl Ordering for Bft {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.submit(transactions, Placing::Anywhere, Source::Client)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.submit(transactions, Placing::InOneBlock, Source::Client)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, height: u64) {
        self.acknowledgements.durable(height);
        self.shared.lacking.pause((self.shared.clock)());
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        if let Some(floor) = self.shared.skip_to(&self.acknowledgements, header, certificate)? {
            self.marshal.set_floor(floor);
        }
        tracing::info!(height = header.height, "blocks up to this height are not fetched");
        Ok(())
    }

    fn read(&self, height: u64) -> Option<Delivery> {
        futures::executor::block_on(delivery::read(&self.marshal, height))
    }

    fn status(&self) -> OrderingStatus {
        self.shared.status()
    }

    fn forget_below(&self, height: u64) {
        let forgetting = self.forgetting.as_ref();
        if let Some(below) = forgetting.and_then(|kept| kept.below(height, self.acknowledgements.height())) {
            self.marshal.prune(below);
        }
    }

    fn unobtainable(&self) -> Option<RangeInclusive<u64>> {
        self.shared.unobtainable(&self.acknowledgements)
    }

    fn trouble(&self) -> Option<String> {
        self.shared.trouble(&self.acknowledgements)
    }

    fn failure(&self) -> Option<OrderingError> {
        let found = self.shared.own_votes.contradiction()?;
        Some(OrderingError::OtherVoter { path: folder::other_voter(&self.folder), found })
    }

    fn connected(&self) -> Vec<u16> {
        self.shared.work.connected_members()
    }

    fn metrics(&self) -> String {
        self.running.metrics()
    }

    fn stop(&self) {
        self.running.stop();
    }
}
