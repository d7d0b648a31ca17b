use crate::core::{self, Core, Member, NodeParts, OrderingStart};
use crate::database::{Endorsing, NodeDatabase, Who};
use crate::endorsing::{Collector, Endorser, OracleSources, Peers, Sources};
use crate::fragments::CountedFragments;
use crate::holders::Holders;
use crate::kafka::{self, LedgerBlocks};
use crate::live::Live;
use crate::local::LocalExecution;
use crate::own_database::{Following, KeepOwnDatabase};
use crate::own_execution::OwnExecution;
use crate::own_judgement::JudgeScripts;
use crate::pipeline;
use crate::private::PrivateSchemas;
use crate::pruning;
use crate::published::Published;
use crate::recovery::Recovered;
use crate::reload::{Reloaded, Reloading};
use crate::submission::Submitter;
use crate::{Faults, NodeConfig, NodeError, NodeFolder, access, twin};
use crypto::{Digest, PublicKey, SecretKey};
use gateway::{Database, SharedAccess};
use ledger::Ledger;
use ordering::bft::{self, BftConfig};
use ordering::raft::{self, RaftConfig};
use ordering::solo::{self, SoloConfig};
use ordering::{Admission, MempoolLimits, Ordering, Services};
use sql::RunFragments;
use state::Stores;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use types::{Charter, CheckpointCertificate, KnownVersions, OutcomeCertificate};

/// Threads that serve clients.
const GATEWAY_THREADS: usize = 2;
/// How long stopping waits for clients' connections.
const GATEWAY_STOP: Duration = Duration::from_millis(500);

/// What `node.toml` does not say: who runs fragments of large queries, and what only tests and measurements choose.
#[derive(Clone, Default)]
pub struct NodeOptions {
    /// Outcomes are not attested, to measure what that costs: on a ledger whose ordering may be far ahead of what is
    /// certified, and for clients that are answered when transactions are recorded.
    pub attests_nothing: bool,
    /// The rules of execution that the node knows: fewer than it does, where it stands for an older program.
    pub known_versions: KnownVersions,
    /// What goes wrong in memory.
    pub faults: Option<Arc<Faults>>,
    /// What goes wrong with the disk of ledger, checkpoints and parts of schemas.
    pub disk: Option<Arc<ledger::Faults>>,
    /// What makes the store of the state; `None`: what `node.toml` names.
    pub stores: Option<Arc<dyn Stores>>,
    /// Runs fragments of large queries on copies of tables in columns; `None`: there are no such copies, and queries run
    /// row by row.
    pub fragments: Option<Arc<dyn RunFragments>>,
    /// Keeps tables in a database of the organisation's own; `None`: nobody does.
    pub own_database: Option<Arc<dyn KeepOwnDatabase>>,
    /// Executes scripts in a database of the organisation's own; `None`: the node does, where the ledger has scripts.
    pub own_execution: Option<Arc<dyn OwnExecution>>,
    /// Judges scripts before they are ordered; `None`: the organisation agrees to none that it is asked about.
    pub judge: Option<Arc<dyn JudgeScripts>>,
    /// Nobody waits on threads of the node: time goes on where the clock of its network says so.
    pub is_simulated: bool,
}

/// What starting a node found.
#[derive(Clone, Debug)]
pub struct StartReport {
    /// Height of the checkpoint that was loaded; 0 for none.
    pub checkpoint: u64,
    /// Blocks executed again.
    pub replayed: u64,
    /// Height at which the node stands.
    pub height: u64,
    /// Schemas that the organisation is a member of, and the block behind which each goes on: those behind it were executed again.
    pub schemas: Vec<(String, u64)>,
    /// What was repaired or left out on the way: torn records, checkpoints that could not be used.
    pub repairs: Vec<String>,
    /// How long it took.
    pub time: Duration,
}

impl StartReport {
    fn of(
        recovered: &Recovered,
        (schemas, repairs): (&PrivateSchemas, Vec<String>),
        start: Instant,
    ) -> StartReport {
        let Recovered { checkpoint, replayed, executor, .. } = recovered;
        let (checkpoint, replayed, height) = (*checkpoint, *replayed, executor.height());
        StartReport { checkpoint, replayed, height, schemas: schemas.began(), repairs, time: start.elapsed() }
    }
}

/// A running node.
pub struct Node {
    ordering: Arc<dyn Ordering>,
    database: Arc<NodeDatabase>,
    published: Arc<Published>,
    stages: Vec<JoinHandle<()>>,
    gateway: Option<tokio::runtime::Runtime>,
    own_database: Option<Following>,
    own_execution: Option<Arc<dyn OwnExecution>>,
    holders: Option<Arc<Holders>>,
    reloading: Reloading,
    report: StartReport,
}

impl Node {
    /// Recovers the state from the folder, joins the network and serves clients. Returns when the node listens, not
    /// when it has caught up.
    ///
    /// # Errors
    /// Whatever keeps the node from starting, with what to do; nothing runs then.
    pub fn start(folder: NodeFolder) -> Result<Node, NodeError> {
        Node::start_with(folder, NodeOptions::default())
    }

    /// As [`Node::start`], with a choice that only measurements have.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start_with(folder: NodeFolder, options: NodeOptions) -> Result<Node, NodeError> {
        let start = Instant::now();
        let NodeFolder { path, charter, organisation, config, node_key, session } = folder;
        let charter = Arc::new(charter);
        let (access, certificate) = access::of_node(&path, &config, &node_key)?;
        // Before the ports, so that whoever starts a folder twice is told of that, and not of a port.
        check_unused(&path)?;
        let gateway = gateway_runtime()?;
        let (postgres, http) = gateway.block_on(listen(&charter, &node_key, &config))?;
        let (member_key, began, fragments) = (node_key.clone(), Instant::now(), options.fragments.clone());
        let has_columns = fragments.is_some() && config.column_memory_megabytes != Some(0);
        let live = Live::of(&config);
        let (own_execution, judge) = (options.own_execution.clone(), options.judge.clone());
        let member = Member {
            folder: &path,
            charter: &charter,
            node_key: node_key.clone(),
            config: &config,
            live: live.clone(),
            options,
            clock: Arc::new(move || began.elapsed()),
        };
        let join = |start, admission| start_services(start, admission, &charter, member_key, &path, &config);
        let Core { parts, services, stages, recovered, attest, exchanging, holding, submitter, repairs } =
            core::open(member, join)?;
        let report = StartReport::of(&recovered, (&holding.schemas, repairs), start);
        let (ordering, published, attests) = (services.ordering, parts.published.clone(), attest.is_some());
        let mut stages = pipeline::start(stages, recovered, attest, exchanging)?;
        let schemas = (holding.asking.clone(), holding.schemas.clone());
        stages.push(holding.start(&session, &submitter, &published)?);
        let whose = (charter.ledger(), node_key.public_key());
        let own = parts.own_database.as_ref();
        let following = own.map(|own| own.start(whose, published.clone(), attests)).transpose()?;
        let whom = Who { process: Digest(crypto::random_bytes()), node_key: node_key.clone() };
        let who = (organisation as u16, node_key);
        let endorsing = endorsing(&parts, who, (&config, &path, judge), &submitter, gateway.handle())?;
        let session_key = session.public_key();
        let local = local_execution((organisation, session_key), &parts, (&config, &path), fragments);
        let shared = (local.query_memory.clone(), has_columns);
        let reloading =
            Reloading::new((path.clone(), &config), (access.clone(), certificate), live.clone(), shared);
        let database = Arc::new(NodeDatabase {
            charters: parts.charters,
            keys: parts.keys,
            organisation,
            folder: path.clone(),
            session,
            ordering: ordering.clone(),
            ledger: parts.ledger,
            published: published.clone(),
            stores: parts.stores.clone(),
            submitter,
            endorsing,
            own_database: parts.own_database,
            schemas,
            own_execution: own_execution.clone(),
            holders: parts.holders,
            metrics: parts.metrics,
            notifier: parts.notifier,
            live,
            who: whom,
            started: Instant::now(),
            local: Arc::new(local),
        });
        serve(&gateway, &database, postgres, access, http);
        let report = StartReport { time: start.elapsed(), ..report };
        let (gateway, own_database, holders) = (Some(gateway), following, database.holders.clone());
        Ok(Node {
            ordering,
            database,
            published,
            stages,
            gateway,
            own_database,
            own_execution,
            holders,
            reloading,
            report,
        })
    }

    /// What starting found.
    pub fn report(&self) -> &StartReport {
        &self.report
    }

    /// Reads `node.toml` again, and the files that it names, and takes up what can change while the node runs. `check`: what else must
    /// be right with it.
    ///
    /// # Errors
    /// What is wrong with which file; nothing has changed then.
    pub fn reload(
        &self,
        check: impl FnOnce(&NodeConfig) -> Result<(), String>,
    ) -> Result<Reloaded, NodeError> {
        self.reloading.reload(check)
    }

    /// What clients are answered with.
    pub fn database(&self) -> Arc<dyn Database> {
        self.database.clone()
    }

    /// A certificate that answers for the outcome of the block at `height`: of this height or of one above it. Nodes keep
    /// the newest thousand; older ones stand in blocks.
    pub fn outcome_certificate(&self, height: u64) -> Option<OutcomeCertificate> {
        self.published.certified().covering(height)
    }

    /// Proves the root of the newest checkpoint of this node that a quorum has attested.
    pub fn checkpoint_certificate(&self) -> Option<CheckpointCertificate> {
        Some(self.published.certified().checkpoint()?.certificate.clone())
    }

    /// Why the node does not serve, if so.
    pub fn not_serving(&self) -> Option<String> {
        self.published.not_serving()
    }

    /// Stops in good order: no more clients, no more blocks, everything that was ordered is recorded.
    pub fn stop(mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.shutdown_timeout(GATEWAY_STOP);
        }
        if let Some(following) = self.own_database.take() {
            following.stop();
        }
        if let Some(execution) = &self.own_execution {
            execution.stop();
        }
        // The stages let go of it.
        let store = self.database.stores.newest();
        self.published.stop();
        if let Some(holders) = self.holders.as_ref().filter(|_| self.published.not_serving().is_some()) {
            // The node may be waiting for one of them.
            holders.stop();
        }
        self.ordering.stop();
        for stage in self.stages.drain(..) {
            // A stage that panicked has said so in `not_serving`.
            let _ = stage.join();
        }
        if self.published.not_serving().is_none()
            && let Some(store) = store
            && let Err(failure) = store.durable_point()
        {
            // What is missing is executed again at the next start.
            tracing::warn!(%failure, "the state could not be made durable at the end");
        }
        if let Some(holders) = &self.holders {
            holders.stop();
        }
        self.database.metrics.end();
    }
}

/// Refuses a folder that another process has open.
fn check_unused(folder: &Path) -> Result<(), NodeError> {
    match ledger::in_use(&folder.join("ledger"))? {
        Some(process) => {
            Err(NodeError::Ledger(ledger::LedgerError::InUse { path: folder.to_path_buf(), process }))
        }
        None => Ok(()),
    }
}

/// Listens for clients, where no other process has this node's key.
async fn listen(
    charter: &Charter,
    node_key: &SecretKey,
    config: &NodeConfig,
) -> Result<(TcpListener, TcpListener), NodeError> {
    twin::refuse(charter, node_key).await?;
    let postgres = gateway::bind(config.postgres, "the Postgres protocol").await?;
    Ok((postgres, gateway::bind(config.http, "HTTP").await?))
}

/// What runs the statements of sessions. `whose`: the organisation's position, and the key that signs for it.
fn local_execution(
    whose: (usize, PublicKey),
    parts: &NodeParts,
    (config, folder): (&NodeConfig, &Path),
    fragments: Option<Arc<dyn RunFragments>>,
) -> LocalExecution {
    let counted =
        |inner| Arc::new(CountedFragments::new(inner, parts.metrics.clone())) as Arc<dyn RunFragments>;
    let (charters, published) = (parts.charters.clone(), parts.published.clone());
    let room = (config.query_memory_megabytes, config.query_disk_megabytes, folder.join("temporary"));
    LocalExecution::new(whose, charters, published, room, fragments.map(counted))
}

/// Starts what the charter's ordering names; it gives everything that a node needs of the network.
fn start_services(
    OrderingStart { height, last, certificate, ledger, joined, charters }: OrderingStart,
    admission: Arc<dyn Admission>,
    charter: &Charter,
    node_key: SecretKey,
    folder: &Path,
    config: &NodeConfig,
) -> Result<Services, NodeError> {
    let mempool = MempoolLimits::default();
    if charter.ordering == "solo" {
        let config = SoloConfig { charters, node_key, last, mempool };
        return Ok(Services::of(solo::start(config, admission)?));
    }
    let (storage, listen, worker_threads) = (folder.join("ordering"), config.listen, 2);
    let own_blocks = OwnBlocks { is_new: !storage.exists(), height, ledger: ledger.clone() };
    // Blocks up to the newest one of which something is redacted nobody is given any more.
    let forgets = pruning::is_wanted(config) || ledger.redacted_to() > 0;
    let keeps_from = forgets.then(|| ledger.executable_from());
    if charter.ordering == "raft" {
        let config = RaftConfig {
            charters,
            node_key,
            storage,
            listen,
            last,
            joined,
            keeps_from,
            mempool,
            worker_threads,
        };
        return own_blocks.are_not_fetched(raft::start(config, admission)?.services());
    }
    if charter.ordering == "kafka" {
        let settings = kafka::settings(config.kafka.as_ref(), &charter.ledger())?;
        let (last, recorded) = (last.zip(certificate), Arc::new(LedgerBlocks(ledger)));
        let config = ordering::kafka::KafkaConfig {
            charters,
            node_key,
            storage,
            listen,
            last,
            settings,
            recorded,
            mempool,
            worker_threads,
        };
        return Ok(ordering::kafka::start(config, admission)?.services());
    }
    let config =
        BftConfig { charters, node_key, storage, listen, start: height, keeps_from, mempool, worker_threads };
    own_blocks.are_not_fetched(bft::start(config, admission)?.services())
}

/// The blocks of a node whose ordering has none of them.
struct OwnBlocks {
    /// Ordering has no folder yet.
    is_new: bool,
    height: u64,
    ledger: Arc<Ledger>,
}

/// So many of the newest blocks are looked at for one that was finalized by itself.
const OWN_FINALIZATION_BLOCKS: u64 = 64;

impl OwnBlocks {
    /// A node that was restored from a backup has blocks, and ordering none: it goes on behind the newest one that was finalized
    /// by itself, instead of fetching all of them from other members again. Where there is none among the newest, it fetches them.
    fn are_not_fetched(self, services: Services) -> Result<Services, NodeError> {
        if !self.is_new || self.height == 0 {
            return Ok(services);
        }
        let oldest = self.height.saturating_sub(OWN_FINALIZATION_BLOCKS).max(self.ledger.executable_from());
        for height in (oldest..=self.height).rev() {
            let Some((block, certificate)) = self.ledger.block(height)? else { break };
            if services.ordering.skip_to(&block.header, &certificate).is_ok() {
                break;
            }
        }
        Ok(services)
    }
}

/// What endorses, where transactions are executed before they are ordered.
fn endorsing(
    parts: &NodeParts,
    whose: (u16, SecretKey),
    (config, folder, judge): (&NodeConfig, &Path, Option<Arc<dyn JudgeScripts>>),
    submitter: &Arc<Submitter>,
    runtime: &tokio::runtime::Handle,
) -> Result<Option<Endorsing>, NodeError> {
    let NodeParts { charters, verifier, published, proposer, metrics, states, .. } = parts;
    let Some(states) = states.clone() else { return Ok(None) };
    let oracles = OracleSources::new(&config.oracles, folder, runtime.clone())?;
    let pool = core::threads("endorse", config.threads)?;
    let sources = Sources { oracles: Some(Arc::new(oracles)), judge };
    let (organisation, own_key) = (whose.0, whose.1.public_key());
    let endorser = Endorser::new(whose, charters.clone(), verifier.clone(), states, sources, pool);
    let endorser = Arc::new(endorser);
    let peers = Peers::new(charters.clone(), (organisation, own_key), published.newest().0);
    let (asked, submitter) = (endorser.clone(), submitter.clone());
    let collector = Collector::start(runtime, asked, peers, submitter, proposer.clone(), metrics.clone());
    Ok(Some(Endorsing { endorser, collector }))
}

fn serve(
    gateway: &tokio::runtime::Runtime,
    database: &Arc<NodeDatabase>,
    postgres: TcpListener,
    access: SharedAccess,
    http: TcpListener,
) {
    let asked: Arc<dyn Database> = database.clone();
    let (published, shared) = (database.published.clone(), access.clone());
    gateway.spawn(async move {
        if let Err(error) = gateway::serve_postgres(postgres, asked, shared).await {
            published.stop_serving(error.to_string());
        }
    });
    let asked: Arc<dyn Database> = database.clone();
    let published = database.published.clone();
    gateway.spawn(async move {
        if let Err(error) = gateway::serve_http(http, asked, access).await {
            published.stop_serving(error.to_string());
        }
    });
}

fn gateway_runtime() -> Result<tokio::runtime::Runtime, NodeError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(GATEWAY_THREADS)
        .max_blocking_threads(16)
        .thread_name("gateway")
        .enable_all()
        .build()
        .map_err(|error| NodeError::Thread { name: "gateway", error })
}
