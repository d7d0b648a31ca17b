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
//! # Threads
//!
//! The consensus crates run on a tokio runtime of their own, in threads of their own; the rest of the node meets them
//! through the mempool, the channel of deliveries, and mailboxes.

mod application;
mod block;
mod config;
mod delivery;
mod epochs;
mod finalization;
mod network;
mod reigns;
mod wiring;
mod work;

#[cfg(feature = "simulation")]
pub(crate) use {
    application::Shared,
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
use crate::mempool::{Clock, Placing};
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
use tokio::sync::oneshot;
use types::{BlockHeader, Charters, CheckpointCertificate, OutcomeCertificate, TransactionId};

/// How long opening the folder may take; another process that holds it would keep us waiting for ever.
const START_WAIT: Duration = Duration::from_secs(60);

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
    /// How much may wait at this node.
    pub mempool: MempoolLimits,
    /// Threads for network and agreement; 2 are enough for most, as signatures are verified elsewhere.
    pub worker_threads: usize,
}

type Metrics = Box<dyn Fn() -> String + Send + Sync>;

/// The running service of this organisation's node.
pub struct Bft {
    shared: Arc<application::Shared>,
    acknowledgements: Arc<delivery::Acknowledgements>,
    marshal: wiring::MarshalMailbox,
    /// Holds on to the runtime, so it goes when the service stops.
    metrics: Mutex<Option<Metrics>>,
    deliveries: Receiver<Delivery>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the runtime's thread hands back once everything runs.
struct Started {
    shared: Arc<application::Shared>,
    marshal: wiring::MarshalMailbox,
    metrics: Metrics,
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
    let (ready, started) = crossbeam_channel::bounded(1);
    let (stop, stopped) = oneshot::channel();
    let settings = runtime::Config::new()
        .with_worker_threads(config.worker_threads.max(1))
        .with_max_blocking_threads(config::memory::BLOCKING_THREADS)
        .with_storage_directory(&config.storage);
    let node = Node { config, admission, acknowledgements: acknowledgements.clone(), sink, ready };
    let thread = std::thread::Builder::new()
        .name("bft ordering".to_string())
        .spawn(move || runtime::Runner::new(settings).start(|context| node.run(context, stopped)))
        .map_err(|error| OrderingError::Ended(error.to_string()))?;
    let Started { shared, marshal, metrics } = match started.recv_timeout(START_WAIT) {
        Ok(started) => started,
        Err(crossbeam_channel::RecvTimeoutError::Timeout) => {
            let what = format!("its folder did not open within {START_WAIT:?}; does another process use it?");
            return Err(OrderingError::Ended(what));
        }
        Err(crossbeam_channel::RecvTimeoutError::Disconnected) => {
            return Err(OrderingError::Ended(crate::error::panic_message(thread)));
        }
    };
    let (stop, thread, metrics) =
        (Mutex::new(Some(stop)), Mutex::new(Some(thread)), Mutex::new(Some(metrics)));
    Ok(Arc::new(Bft { shared, acknowledgements, marshal, metrics, deliveries, stop, thread }))
}

/// What moves into the runtime's thread.
struct Node {
    config: BftConfig,
    admission: Arc<dyn Admission>,
    acknowledgements: Arc<delivery::Acknowledgements>,
    sink: ChannelSink,
    ready: Sender<Started>,
}

impl Node {
    async fn run(self, context: runtime::Context, stopped: oneshot::Receiver<()>) {
        let Node { config, admission, acknowledgements, sink, ready } = self;
        // Not the runtime's clock: whatever holds on to the runtime's context keeps the folder from the next service.
        let clock: Clock = Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let charters = config.charters.clone();
        let shared = network::shared(charters, &config.node_key, config.mempool, admission, clock);
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
        };
        let member = wiring::start(context.child("member"), "bft", parts, sink, |reporter| reporter).await;
        let network = network.start();
        let metrics = context.child("metrics");
        let metrics = Box::new(move || metrics.encode());
        if ready.send(Started { shared: shared.clone(), marshal: member.marshal, metrics }).is_err() {
            return;
        }
        drop(ready);
        commonware_macros::select! {
            _ = stopped => {},
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
        self.shared.submit(transactions, Placing::Anywhere)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.submit(transactions, Placing::InOneBlock)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, height: u64) {
        self.acknowledgements.durable(height);
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
    }
}

impl CertifyOutcomes for Bft {
    fn certify(&self, certificate: OutcomeCertificate) {
        self.shared.certify(certificate);
    }

    fn certify_checkpoint(&self, certificate: CheckpointCertificate) {
        self.shared.certificates.certify_checkpoint(certificate);
    }

    fn decided(&self, charters: Charters) {
        self.shared.certificates.decide(charters);
    }

    fn charters(&self) -> Charters {
        self.shared.epochs.charters()
    }

    fn follow(&self, charters: &Charters) {
        self.shared.epochs.adopt(charters);
    }
}

impl ExchangeMessages for Bft {
    fn broadcast(&self, message: Bytes) {
        self.shared.messages.send(None, message);
    }

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        self.shared.messages.received()
    }

    fn tell(&self, member: u16, message: Bytes) {
        self.shared.exchange.send(Some(member), message);
    }

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        self.shared.exchange.received()
    }
}

impl Drop for Bft {
    fn drop(&mut self) {
        self.stop();
    }
}
