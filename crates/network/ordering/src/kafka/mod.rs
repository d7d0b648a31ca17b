//! Ordering by a topic of Kafka: the members trust whoever runs its brokers with the order, and nobody with anything else.
//!
//! ```text
//!   mempool ─▶ offering ─▶ signed records ─▶ topic ─▶ reading ─▶ rule ─▶ blocks ─▶ node
//!                 ▲                                                │
//!                 └──────────── how far this node has read ────────┘
//!   other members' ledgers ─▶ backfill ─▶ blocks that the topic does not have any more
//! ```
//!
//! Members put signed records into one partition: transactions, certificates, the wish that a block be cut. Every node reads all
//! records and cuts the same blocks from them (`rule`). A block's certificate has the signatures under its records, and the offset
//! where the next block begins: so a ledger proves who has offered what, and a node that starts needs nothing beside it.
//!
//! # Restarts
//!
//! Nothing is kept beside the node's ledger and the topic. A node looks at the topic's settings before it believes anything of it, and
//! whether it has the record that the last block's certificate names.

mod backfill;
mod config;
mod due;
mod offering;
mod proof;
mod reading;
mod record;
mod rule;
mod shared;
mod topic;

pub(crate) use proof::{Proof, one_record};
pub use topic::{create_topic, creation, leader};

use crate::cutting::Parent;
use crate::members::committee;
use crate::members::messages;
use crate::members::network::{self as connections, Connection};
use crate::mempool::Placing;
use crate::running::{Ready, Running};
use crate::{
    Admission, CertificateError, CertificateVerifier, Delivery, MempoolLimits, Ordering, OrderingError,
    OrderingStatus, Services, SubmitError,
};
use backfill::Asking;
use bytes::Bytes;
use commonware_runtime::{Spawner as _, Supervisor as _, tokio as runtime};
use config::FIRST_WAIT;
use crossbeam_channel::Receiver;
use crypto::SecretKey;
use offering::Offering;
use parking_lot::Mutex;
use reading::Reading;
use rule::Rule;
use shared::Shared;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use topic::{Look, Stand};
use types::{BlockHeader, Charters, TransactionId};

/// How long a service that is asked to end waits for its tasks.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// Members that are asked for a block before it counts as not to be had.
const ASKED_FOR_ONE: usize = 6;

/// Where the topic is. Organisations reach the same brokers under different names, so this is each node's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KafkaSettings {
    /// Brokers to begin with, `host:port` with commas between.
    pub brokers: String,
    /// The topic's name.
    pub topic: String,
    /// How many brokers must keep it at least.
    pub replicas_min: u16,
    /// Whether records may go after a while: nodes that lack them get the blocks from other members.
    pub finite_retention: bool,
}

impl KafkaSettings {
    /// Of a topic that three brokers keep for ever.
    pub fn new(brokers: &str, topic: &str) -> KafkaSettings {
        let (brokers, topic) = (brokers.to_string(), topic.to_string());
        KafkaSettings { brokers, topic, replicas_min: 3, finite_retention: false }
    }

    fn check(&self) -> Result<(), OrderingError> {
        let good = |broker: &str| {
            let (host, port) = broker.trim().rsplit_once(':')?;
            (!host.is_empty() && port.parse::<u16>().is_ok()).then_some(())
        };
        if let Some(wrong) = self.brokers.split(',').find(|broker| good(broker).is_none()) {
            let what =
                format!("kafka.brokers in node.toml must be host:port with commas between, found `{wrong}`");
            return Err(OrderingError::Settings(what));
        }
        let of = |one: char| one.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&one);
        if self.topic.is_empty() || self.topic.len() > 249 || !self.topic.chars().all(of) {
            let what = format!(
                "kafka.topic in node.toml must be 1 to 249 letters, digits, dots, underscores or hyphens, found `{}`",
                self.topic
            );
            return Err(OrderingError::Settings(what));
        }
        Ok(())
    }
}

/// Blocks that the node has recorded, for members that the topic does not bring them to.
pub trait RecordedBlocks: Send + Sync {
    /// The block of a height with its certificate, if it is there. Reads from disk.
    fn block(&self, height: u64) -> Option<Delivery>;
}

/// What [`start`] needs.
pub struct KafkaConfig {
    /// The ledger's charters as far as the node knows them; what later blocks say the service reads itself.
    pub charters: Charters,
    /// Signs records and proves to the other members who we are. While it is no member's, the service follows.
    pub node_key: SecretKey,
    /// Folder for the runtime; nothing of worth is in it.
    pub storage: PathBuf,
    /// Where to listen for the other members.
    pub listen: SocketAddr,
    /// The last block in the node's ledger with its certificate, the header alone; `None` for an empty one.
    pub last: Option<(BlockHeader, Bytes)>,
    /// Where the topic is.
    pub settings: KafkaSettings,
    /// What the node has recorded.
    pub recorded: Arc<dyn RecordedBlocks>,
    /// How much may wait at this node.
    pub mempool: MempoolLimits,
    /// Threads for the network between members.
    pub worker_threads: usize,
}

/// The service of this organisation's node.
pub struct Kafka {
    shared: Arc<Shared>,
    deliveries: Receiver<Delivery>,
    running: Running,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Starts this organisation's node. Returns when it listens and has looked at the topic, or has waited for brokers in vain: then it
/// goes on when they answer.
///
/// # Errors
/// [`OrderingError`] where charter, settings and topic do not fit, or the port is busy; nothing has been started then.
pub fn start(config: KafkaConfig, admission: Arc<dyn Admission>) -> Result<Arc<Kafka>, OrderingError> {
    let found = &config.charters.founding().ordering;
    if found != "kafka" {
        return Err(OrderingError::OtherService { expected: "kafka", found: found.clone() });
    }
    config.settings.check()?;
    connections::check_port(config.listen)?;
    for reign in config.charters.reigns() {
        committee::addresses(&reign.charter)?;
    }
    let storage = |error: std::io::Error| {
        let (path, reason) = (config.storage.clone(), error.to_string());
        OrderingError::Storage { path, reason }
    };
    std::fs::create_dir_all(&config.storage).map_err(storage)?;
    let (asking, asked) = Asking::new();
    let KafkaConfig { charters, node_key, .. } = &config;
    let shared = Shared::new(charters.clone(), node_key, config.mempool, admission, asking);
    let (rule, stand) = begin(&shared, config.last.as_ref())?;
    let reader = match topic::look(&config.settings, &stand, FIRST_WAIT)? {
        Look::Ready(reader) => Some(reader),
        Look::Truncated { .. } => None,
        Look::Later(reason) => {
            shared.say(Some(reason));
            None
        }
    };
    let settings = config.settings.clone();
    let (reading, deliveries) = Reading::new(shared.clone(), settings.clone(), (rule, stand), reader);
    let offering = Offering::new(shared.clone(), settings);
    let runtime = runtime::Config::new()
        .with_worker_threads(config.worker_threads.max(1))
        .with_storage_directory(&config.storage);
    let node = Node { config, shared: shared.clone(), asked };
    let ((), running) = Running::start("members of kafka", runtime, |context, ready, stopped| {
        node.run(context, ready, stopped)
    })?;
    let threads =
        [thread("kafka reading", move || reading.run())?, thread("kafka offering", move || offering.run())?];
    let threads = Mutex::new(threads.into());
    Ok(Arc::new(Kafka { shared, deliveries, running, threads }))
}

/// Where the rule begins, and what is looked for in the topic.
fn begin(shared: &Shared, last: Option<&(BlockHeader, Bytes)>) -> Result<(Rule, Stand), OrderingError> {
    let mut rule = Rule::new(shared.ledger, shared.members.epochs.clone(), shared.admission.clone());
    let mut stand = Stand { ledger: shared.ledger, height: 0, next: 0, last: None, block_bytes_max: 0 };
    if let Some((header, certificate)) = last {
        let proof = Shared::proof_of(certificate).map_err(|error| {
            let height = header.height;
            OrderingError::Ended(format!(
                "the certificate of block {height} says nothing of a topic: {error}"
            ))
        })?;
        rule.begin_behind(Parent::block(header), proof.next);
        stand.behind(header.height, &proof);
    }
    let (parent, next) = (*rule.parent(), rule.next());
    stand.block_bytes_max = shared.members.epochs.charter_at(parent.height + 1).block.bytes_max;
    shared.acknowledge(parent.height);
    let certified = rule.certified();
    shared.publish(|tip| (tip.parent, tip.next, tip.certified) = (parent, next, certified));
    Ok((rule, stand))
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OrderingError> {
    let started = std::thread::Builder::new().name(name.to_string()).spawn(work);
    started.map_err(|error| OrderingError::Ended(error.to_string()))
}

/// What moves into the runtime's thread: the network between members.
struct Node {
    config: KafkaConfig,
    shared: Arc<Shared>,
    asked: mpsc::Receiver<(u64, usize)>,
}

impl Node {
    async fn run(self, context: runtime::Context, ready: Ready<()>, stopped: oneshot::Receiver<()>) {
        let Node { config, shared, asked } = self;
        let KafkaConfig { charters, node_key, listen, recorded, .. } = config;
        let connection = Connection { charters: &charters, node_key: &node_key, listen };
        let (network, oracle, [backfill, all, one]) =
            connections::join(&context, &connection, config::quotas(), config::max_message_size());
        let tracked = connections::tracked(oracle, &charters);
        messages::start_both(&context, &shared.members, all, one);
        let answering =
            backfill::start(context.child("backfill"), backfill, shared.clone(), (recorded, tracked), asked);
        let network = network.start();
        if !ready.started((), context.child("metrics")) {
            return;
        }
        commonware_macros::select! {
            _ = stopped => {},
            _ = answering => tracing::error!("blocks for other members are not read any more; the ordering service ends"),
            _ = network => tracing::error!("the network ended; the ordering service ends with it"),
        }
        shared.stop();
        if context.stop(0, Some(STOP_WAIT)).await.is_err() {
            tracing::debug!("some tasks of the ordering service were cut off");
        }
    }
}

impl Kafka {
    /// Everything that a node is given of this service.
    pub fn services(self: &Arc<Self>) -> Services {
        self.shared.members.with(self.clone())
    }
}

impl Ordering for Kafka {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.put(transactions, Placing::Anywhere)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.shared.put(transactions, Placing::InOneBlock)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        &self.deliveries
    }

    fn acknowledge(&self, height: u64) {
        self.shared.acknowledge(height);
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        CertificateVerifier::new(self.shared.members.epochs.charters())?.verify_own(header, certificate)?;
        let proof = Shared::proof_of(certificate)?;
        *self.shared.skip.lock() = Some((Box::new(header.clone()), proof));
        self.acknowledge(header.height);
        tracing::info!(height = header.height, "blocks up to this height are not read");
        Ok(())
    }

    /// Another member has it: the topic has records, and which of them make a block only the blocks before it say.
    fn read(&self, height: u64) -> Option<Delivery> {
        if height == 0 || height > self.shared.height() {
            return None;
        }
        let verifier = CertificateVerifier::new(self.shared.members.epochs.charters()).ok()?;
        (0..ASKED_FOR_ONE).take_while(|_| !self.shared.is_stopped()).find_map(|_| {
            let found = self.shared.asking.ask(height)?.into_iter().next()?;
            let is_it = found.block.header.height == height;
            (is_it && verifier.verify_block(&found.block, &found.certificate).is_ok()).then_some(found)
        })
    }

    fn status(&self) -> OrderingStatus {
        let (level, now) = (self.shared.mempool.level(), self.shared.now());
        let tip = self.shared.tip();
        OrderingStatus {
            pending_transactions: level.transactions,
            pending_bytes: level.bytes,
            final_height: tip.parent.height,
            view: tip.next,
            connected_peers: self.shared.heard.connected(now),
        }
    }

    fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().clone()
    }

    fn connected(&self) -> Vec<u16> {
        self.shared.heard.connected_members(self.shared.now())
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        let (shared, tip) = (&self.shared, self.shared.tip());
        let (read, offered) =
            (shared.records_read.load(Atomic::Relaxed), shared.records_offered.load(Atomic::Relaxed));
        let count = |text: &mut String, name: &str, help: &str, kind: &str, value: u64| {
            let name = format!("entente_kafka_{name}");
            // Writing to a string does not fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        };
        count(&mut text, "records_read_total", "Records that were read.", "counter", read);
        count(&mut text, "records_offered_total", "Records of this node.", "counter", offered);
        count(&mut text, "next_offset", "The offset of the next record.", "gauge", tip.next);
        let dropped = self.shared.dropped.lock();
        if !dropped.is_empty() {
            let name = "entente_kafka_records_dropped_total";
            let _ = write!(
                text,
                "# HELP {name} Records that are in no block, by reason.\n# TYPE {name} counter\n"
            );
            for (reason, count) in dropped.iter() {
                let _ = writeln!(text, "{name}{{reason=\"{reason}\"}} {count}");
            }
        }
        text + &self.running.metrics()
    }

    fn stop(&self) {
        self.shared.stop();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the ordering service panicked");
            }
        }
        self.running.stop();
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.stop();
    }
}
