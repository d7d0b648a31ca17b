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
//! # Members
//!
//! The charter says who votes. Its amendments become changes of the group (joint consensus, Ongaro's thesis, section 4.3),
//! which the leader offers once the amendment is in force.

mod chain;
mod config;
mod delivery;
mod disk;
mod group;
mod member;
mod shared;
mod window;
mod wire;

#[cfg(feature = "simulation")]
pub(crate) use config::channel;
pub(crate) use member::{Parts, start as start_member};
pub(crate) use shared::{Handle, Shared};

use crate::members::committee;
use crate::members::folder::{self, Claim};
use crate::members::network::{self as connections, Connection};
use crate::mempool::Clock;
use crate::sink::ChannelSink;
use crate::{
    Admission, CertificateError, CertifyOutcomes, Delivery, ExchangeMessages, MempoolLimits, Ordering,
    OrderingError, OrderingStatus, SubmitError,
};
use bytes::Bytes;
use commonware_runtime::{Metrics as _, Runner as _, Spawner as _, Supervisor as _, tokio as runtime};
use crossbeam_channel::{Receiver, Sender};
use crypto::SecretKey;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use types::{BlockHeader, Charters, CheckpointCertificate, OutcomeCertificate, TransactionId};

/// How long opening the folder may take; another process that holds it would keep us waiting for ever.
const START_WAIT: Duration = Duration::from_secs(60);
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
    /// How much may wait at this node.
    pub mempool: MempoolLimits,
    /// Threads for network and agreement.
    pub worker_threads: usize,
}

type Metrics = Box<dyn Fn() -> String + Send + Sync>;

/// The running service of this organisation's node.
pub struct Raft {
    handle: Handle,
    /// Holds on to the runtime, so it goes when the service stops.
    metrics: Mutex<Option<Metrics>>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The longest message between members of any ledger: an offered block with what stands around it. The charter may change
/// while the network runs, so it is what any charter may allow.
pub(crate) fn max_message_size() -> u32 {
    const AROUND: usize = 16 * 1024;
    let head = BlockHeader::BYTES + types::Attested::BYTES_MAX;
    types::limits::BLOCK_BYTES_MAX + (head + AROUND) as u32
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
    // Not the runtime's clock: whatever holds on to the runtime's context keeps the folder from the next service.
    let clock: Clock = Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let shared =
        Shared::new(charters.clone(), node_key, (config.mempool, clock), admission, config.last.as_ref());
    let (sink, deliveries) = ChannelSink::new(config::FED_ENTRIES);
    let (handle, requests) = Handle::new(shared.clone(), deliveries);
    let (ready, started) = crossbeam_channel::bounded(1);
    let (stop, stopped) = oneshot::channel();
    let settings = runtime::Config::new()
        .with_worker_threads(config.worker_threads.max(1))
        .with_storage_directory(&config.storage);
    let node = Node { config, shared, requests, sink, ready };
    let thread = std::thread::Builder::new()
        .name("raft ordering".to_string())
        .spawn(move || runtime::Runner::new(settings).start(|context| node.run(context, stopped)))
        .map_err(|error| OrderingError::Ended(error.to_string()))?;
    let metrics = match started.recv_timeout(START_WAIT) {
        Ok(Ok(metrics)) => Mutex::new(Some(metrics)),
        Ok(Err(reason)) => return Err(OrderingError::Ended(reason)),
        Err(crossbeam_channel::RecvTimeoutError::Timeout) => {
            let what = format!("its folder did not open within {START_WAIT:?}; does another process use it?");
            return Err(OrderingError::Ended(what));
        }
        Err(crossbeam_channel::RecvTimeoutError::Disconnected) => {
            return Err(OrderingError::Ended(crate::error::panic_message(thread)));
        }
    };
    Ok(Arc::new(Raft { handle, metrics, stop: Mutex::new(Some(stop)), thread: Mutex::new(Some(thread)) }))
}

/// What moves into the runtime's thread.
struct Node {
    config: RaftConfig,
    shared: Arc<Shared>,
    requests: mpsc::Receiver<member::Request>,
    sink: ChannelSink,
    ready: Sender<Result<Metrics, String>>,
}

impl Node {
    async fn run(self, context: runtime::Context, stopped: oneshot::Receiver<()>) {
        let Node { config, shared, requests, sink, ready } = self;
        let RaftConfig { charters, node_key, listen, last, joined, .. } = config;
        let connection = Connection { charters: &charters, node_key: &node_key, listen };
        let (network, oracle, channels) =
            connections::join(&context, &connection, config::channel::quotas(), max_message_size());
        let tracked = connections::tracked(oracle, &charters);
        let parts = Parts { shared: shared.clone(), tracked, channels, last, joined, requests };
        let member = match start_member(context.child("member"), "raft", parts, sink).await {
            Ok(member) => member,
            Err(failed) => {
                let _ = ready.send(Err(failed));
                return;
            }
        };
        let network = network.start();
        let metrics = context.child("metrics");
        if ready.send(Ok(Box::new(move || metrics.encode()))).is_err() {
            return;
        }
        drop(ready);
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
        self.handle.submit(transactions)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.handle.submit_together(transactions)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        self.handle.deliveries()
    }

    fn acknowledge(&self, height: u64) {
        self.handle.acknowledge(height);
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        self.handle.skip_to(header, certificate)
    }

    fn read(&self, height: u64) -> Option<Delivery> {
        Ordering::read(&self.handle, height)
    }

    fn status(&self) -> OrderingStatus {
        self.handle.status()
    }

    fn metrics(&self) -> String {
        self.metrics.lock().as_ref().map_or_else(String::new, |metrics| metrics())
    }

    fn stop(&self) {
        self.metrics.lock().take();
        if let Some(stop) = self.stop.lock().take() {
            // Fails only where the runtime has ended already.
            let _ = stop.send(());
        }
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the runtime of the ordering service panicked");
        }
        self.handle.stop();
    }
}

impl CertifyOutcomes for Raft {
    fn certify(&self, certificate: OutcomeCertificate) {
        self.handle.certify(certificate);
    }

    fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        self.handle.certify_checkpoint(certificate);
    }

    fn decided(&self, charters: Charters) {
        self.handle.decided(charters);
    }

    fn charters(&self) -> Charters {
        self.handle.charters()
    }

    fn follow(&self, charters: &Charters) {
        self.handle.follow(charters);
    }
}

impl ExchangeMessages for Raft {
    fn broadcast(&self, message: Bytes) {
        self.handle.broadcast(message);
    }

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        self.handle.messages()
    }

    fn tell(&self, member: u16, message: Bytes) {
        self.handle.tell(member, message);
    }

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        self.handle.told()
    }
}

impl Drop for Raft {
    fn drop(&mut self) {
        self.stop();
    }
}
