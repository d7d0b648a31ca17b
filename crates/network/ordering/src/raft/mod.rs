//! Ordering by Raft: the members trust whoever leads to put transactions into an order, and a majority of them to be there.
//!
//! The group agrees on a log with the `raft` crate, whose state machine has no clock, threads or disk of its own. Entries are
//! blocks that the leader has signed, so a ledger proves who has ordered what. What blocks come to, members
//! attest and certify as under BFT: a leader that lies about the present is found out, and one that wants to can keep
//! transactions out or choose their order.
//!
//! # Restarts
//!
//! The folder holds this member's log and what it has promised. As under BFT it must never be lost, copied or rolled back. A
//! member that lacks blocks which the leader has forgotten is told where the log begins for it, and gets the blocks before from
//! any other.
//!
//! # What is forgotten
//!
//! A log keeps what it has, unless the node prunes: then its beginning follows that of the node's ledger
//! ([`Ordering::forget_below`]), as if the log had begun there. Who lacks blocks asks all members in turn, and the leader if nobody
//! else gives any; who finds nobody that has them says so ([`Ordering::unobtainable`]), and stops nobody.
//!
//! # Members
//!
//! The charter says who votes. Its amendments become changes of the group (joint consensus, Ongaro's thesis, section 4.3),
//! which the leader offers once the amendment is in force.

mod backfill;
mod chain;
mod config;
mod delivery;
mod disk;
mod forwarding;
mod group;
mod leading;
mod member;
mod shared;
mod window;
mod wire;

#[cfg(feature = "simulation")]
pub(crate) use config::channel;
pub(crate) use config::max_message_size;
pub(crate) use member::{Parts, start as start_member};
pub(crate) use shared::Shared;

use crate::lacking;
use crate::members::committee;
use crate::members::folder::{self, Claim};
use crate::members::network::{self as connections, Connection};
use crate::mempool::{Clock, Placing, Source};
use crate::running::{Ready, Running};
use crate::sink::ChannelSink;
use crate::{
    Admission, CertificateError, CertificateVerifier, Delivery, MempoolLimits, Ordering, OrderingError,
    OrderingStatus, Services, SubmitError,
};
use bytes::Bytes;
use commonware_runtime::{Spawner as _, Supervisor as _, tokio as runtime};
use crossbeam_channel::Receiver;
use crypto::SecretKey;
use member::Request;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use types::{BlockHeader, Charters, TransactionId};

/// Names of the folders of all files of a member's log.
#[cfg(feature = "simulation")]
pub(crate) fn partitions(prefix: &str) -> Vec<String> {
    ["data", "offsets-blobs"].map(|files| format!("{prefix}-log_{files}")).to_vec()
}

/// Requests that wait for the member.
const REQUESTS: usize = 16;
/// How long a member that is asked to end waits for its tasks.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// What [`start`] needs.
pub struct RaftConfig {
    /// The ledger's charters as far as the node knows them; what later blocks say the service reads itself.
    pub charters: Charters,
    /// Signs offered blocks and proves to the other members who we are. While it is no member's, the service follows.
    pub node_key: SecretKey,
    /// Folder of this node's log; nothing else may write there.
    pub storage: PathBuf,
    /// Where to listen for the other members.
    pub listen: SocketAddr,
    /// Header of the last block in the node's ledger; `None` for an empty one.
    pub last: Option<BlockHeader>,
    /// Whether the ledger begins behind that block, from a checkpoint.
    pub joined: bool,
    /// Of a node that prunes, the first height whose payload its ledger has: the log forgets what is below, and more as the node
    /// says ([`Ordering::forget_below`]). `None`: the log keeps what it has.
    pub keeps_from: Option<u64>,
    /// How much may wait at this node.
    pub mempool: MempoolLimits,
    /// Threads for network and agreement.
    pub worker_threads: usize,
}

/// The service of this organisation's node.
pub struct Raft {
    shared: Arc<Shared>,
    deliveries: Receiver<Delivery>,
    requests: mpsc::Sender<Request>,
    /// Where it runs, unless somebody else runs it.
    running: Option<Running>,
}

/// Starts this organisation's node. Returns when it listens and has opened its folder, not when it has found the
/// others.
///
/// # Errors
/// [`OrderingError`] where charter and key do not fit, the port is busy, or the folder cannot be used; nothing has
/// been started then.
pub fn start(config: RaftConfig, admission: Arc<dyn Admission>) -> Result<Arc<Raft>, OrderingError> {
    let found = &config.charters.founding().ordering;
    if found != "raft" {
        return Err(OrderingError::OtherService { expected: "raft", found: found.clone() });
    }
    connections::check_port(config.listen)?;
    for reign in config.charters.reigns() {
        committee::addresses(&reign.charter)?;
    }
    let RaftConfig { storage: folder, charters, node_key, last, .. } = &config;
    let start = last.as_ref().map_or(0, |last| last.height);
    folder::claim(&Claim { folder, charters, node_key, start })?;
    // Not the runtime's clocks: whatever holds on to the runtime's context keeps the folder from the next service.
    let began = Instant::now();
    let clock: Clock = Arc::new(move || began.elapsed());
    let wall_clock: Clock = Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let (clocks, last) = ([clock, wall_clock], config.last.as_ref());
    let shared = Shared::new(charters.clone(), node_key, config.mempool, clocks, admission, last);
    let (sink, deliveries) = ChannelSink::new(config::FED_ENTRIES);
    let (mut raft, requests) = Raft::new(shared.clone(), deliveries);
    let settings = runtime::Config::new()
        .with_worker_threads(config.worker_threads.max(1))
        .with_storage_directory(&config.storage);
    let node = Node { config, shared, requests, sink };
    let ((), running) = Running::start("raft ordering", settings, |context, ready, stopped| {
        node.run(context, ready, stopped)
    })?;
    raft.running = Some(running);
    Ok(Arc::new(raft))
}

impl Raft {
    /// With what the member takes its requests from, for whoever runs that.
    pub(crate) fn new(
        shared: Arc<Shared>,
        deliveries: Receiver<Delivery>,
    ) -> (Raft, mpsc::Receiver<Request>) {
        let (requests, taken) = mpsc::channel(REQUESTS);
        (Raft { shared, deliveries, requests, running: None }, taken)
    }

    /// Everything that a node is given of this service.
    pub fn services(self: &Arc<Self>) -> Services {
        self.shared.members.with(self.clone())
    }

    /// A final block that this member's log has.
    pub(crate) async fn read_stored(&self, height: u64) -> Option<Delivery> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Read { height, answer }).await.ok()?;
        answered.await.ok()?
    }
}

/// What moves into the runtime's thread.
struct Node {
    config: RaftConfig,
    shared: Arc<Shared>,
    requests: mpsc::Receiver<Request>,
    sink: ChannelSink,
}

impl Node {
    async fn run(self, context: runtime::Context, ready: Ready<()>, stopped: oneshot::Receiver<()>) {
        let Node { config, shared, requests, sink } = self;
        let RaftConfig { charters, node_key, listen, last, joined, keeps_from, .. } = config;
        let connection = Connection { charters: &charters, node_key: &node_key, listen };
        let (network, oracle, channels) =
            connections::join(&context, &connection, config::channel::quotas(), max_message_size());
        let tracked = connections::tracked(oracle, &charters);
        let parts = Parts {
            shared: shared.clone(),
            tracked,
            channels,
            last,
            joined,
            keeps_from,
            entries_per_file: disk::ENTRIES_PER_FILE,
            requests,
        };
        let member = match start_member(context.child("member"), "raft", parts, sink).await {
            Ok(member) => member,
            Err(failed) => {
                ready.failed(failed);
                return;
            }
        };
        let network = network.start();
        if !ready.started((), context.child("metrics")) {
            return;
        }
        commonware_macros::select! {
            _ = stopped => {},
            ended = member => {
                let reason = ended.unwrap_or_else(|error| error.to_string());
                tracing::error!(%reason, "the Raft group of this node ended; the ordering service ends with it");
            },
            _ = network => tracing::error!("the network ended; the ordering service ends with it"),
        }
        shared.mempool.close();
        if context.stop(0, Some(STOP_WAIT)).await.is_err() {
            tracing::debug!("some tasks of the ordering service were cut off");
        }
    }
}

impl Ordering for Raft {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.put(transactions, Placing::Anywhere, Source::Client)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.put(transactions, Placing::InOneBlock, Source::Client)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, height: u64) {
        self.shared.acknowledged.fetch_max(height, Atomic::AcqRel);
        self.shared.acknowledgement.notify_waiters();
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        CertificateVerifier::new(self.shared.members.epochs.charters())?.verify_own(header, certificate)?;
        *self.shared.skip.lock() = Some(Box::new(header.clone()));
        self.acknowledge(header.height);
        tracing::info!(height = header.height, "blocks up to this height are not fetched");
        Ok(())
    }

    fn read(&self, height: u64) -> Option<Delivery> {
        futures::executor::block_on(self.read_stored(height))
    }

    fn forget_below(&self, height: u64) {
        self.shared.forget_below.fetch_max(height, Atomic::AcqRel);
    }

    fn unobtainable(&self) -> Option<RangeInclusive<u64>> {
        self.shared.lacking.unobtainable(self.shared.now())
    }

    fn status(&self) -> OrderingStatus {
        let (level, now) = (self.shared.mempool.level(), self.shared.now());
        OrderingStatus {
            pending_transactions: level.transactions,
            pending_bytes: level.bytes,
            final_height: self.shared.height(),
            view: self.shared.term.load(Atomic::Relaxed),
            connected_peers: self.shared.heard.connected(now),
        }
    }

    fn trouble(&self) -> Option<String> {
        if let Some(lacking) = self.unobtainable() {
            return Some(lacking::trouble(&lacking, self.shared.heard.connected(self.shared.now())));
        }
        self.shared.members.trouble_with_clocks(self.shared.height(), (self.shared.wall_clock)())
    }

    fn connected(&self) -> Vec<u16> {
        self.shared.heard.connected_members(self.shared.now())
    }

    fn metrics(&self) -> String {
        self.running.as_ref().map_or_else(String::new, Running::metrics)
    }

    fn stop(&self) {
        self.shared.mempool.close();
        if let Some(running) = &self.running {
            running.stop();
        }
    }
}
