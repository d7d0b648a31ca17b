use crate::Faults;
use crate::admission::VerifierAdmission;
use crate::attesting::{Attestations, Attester, Certified, Input};
use crate::database::{Endorsing, NodeDatabase, query_memory};
use crate::endorsing::{Collector, Endorser, OracleSources, Peers, Proposer, RecentStates};
use crate::metrics::NodeMetrics;
use crate::past::HISTORY_HEIGHTS;
use crate::pipeline::{self, Attest, Shared};
use crate::published::Published;
use crate::rate_limit::RateLimit;
use crate::receipts::Receipts;
use crate::recovery::{attestable, recover};
use crate::row_history::KeptRows;
use crate::submission::Submitter;
use crate::{NodeError, NodeFolder, access};
use crossbeam_channel::bounded;
use engine::Verifier;
use gateway::{Access, Database};
use ledger::{CheckpointStore, Ledger, OpenReport};
use ordering::bft::{self, BftConfig};
use ordering::solo::{self, SoloConfig};
use ordering::{Admission, CertificateVerifier, MempoolLimits, Ordering};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use types::{CertificateRules, ExecutionModel, OutcomeCertificate};

/// Threads that serve clients.
const GATEWAY_THREADS: usize = 2;
/// How long stopping waits for clients' connections.
const GATEWAY_STOP: Duration = Duration::from_millis(500);

/// What only tests and measurements choose.
#[derive(Clone, Default)]
pub struct NodeOptions {
    /// Outcomes are not attested, to measure what that costs: on a ledger whose ordering may be far ahead of what is
    /// certified, and for clients that are answered when transactions are recorded.
    pub attests_nothing: bool,
    /// What goes wrong in memory.
    pub faults: Option<Arc<Faults>>,
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
    /// What was repaired or left out on the way: torn records, checkpoints that could not be used.
    pub repairs: Vec<String>,
    /// How long it took.
    pub time: Duration,
}

/// A running node.
pub struct Node {
    ordering: Arc<dyn Ordering>,
    database: Arc<NodeDatabase>,
    published: Arc<Published>,
    stages: Vec<JoinHandle<()>>,
    gateway: Option<tokio::runtime::Runtime>,
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
        let access = access::open(&path, &config)?;
        let gateway = gateway_runtime()?;
        let (postgres, http) = gateway.block_on(async {
            let postgres = gateway::bind(config.postgres, "the Postgres protocol").await?;
            let http = gateway::bind(config.http, "HTTP").await?;
            Ok::<_, NodeError>((postgres, http))
        })?;

        let (ledger, opened) = Ledger::open(path.join("ledger"), charter.ledger())?;
        let ledger = Arc::new(ledger);
        let checkpoints = Arc::new(CheckpointStore::open(path.join("checkpoints"), charter.ledger())?);
        let verifier = Arc::new(Verifier::new(&charter));
        let pool = threads("core", config.threads)?;
        let newest = ledger.tip().map_or(0, |(height, _)| height);
        let rows = KeptRows::open(&path, &charter, newest, config.row_history_megabytes)?;
        let recovered = pool.install(|| {
            recover(&charter, config.pipeline, &verifier, &ledger, &checkpoints, rows.as_deref(), u64::MAX)
        })?;
        let (engine, checkpoint, replayed) = (&recovered.engine, recovered.checkpoint, recovered.replayed);
        let mut repairs = recovered.refused.clone();
        repairs.extend(ledger_repairs(&opened));

        let height = engine.height();
        let last = ledger.header(height)?;
        let states = (charter.execution == ExecutionModel::ExecuteOrderValidate).then(|| {
            let timestamp_ms = last.as_ref().map_or(0, |last| last.timestamp_ms);
            Arc::new(RecentStates::new(engine.endorsement_basis(timestamp_ms)))
        });
        let receipts = Arc::new(Receipts::new());
        let proposer = states.as_ref().and_then(|states| {
            Proposer::new(&charter, verifier.clone(), receipts.clone(), states.clone()).map(Arc::new)
        });
        let admission: Arc<dyn Admission> =
            Arc::new(VerifierAdmission { verifier: verifier.clone(), proposer: proposer.clone() });
        let (endorser_key, attesting_key) = (node_key.clone(), node_key.clone());
        let ordering = match charter.ordering.as_str() {
            "solo" => {
                let mempool = MempoolLimits::default();
                solo::start(SoloConfig { charter: charter.clone(), node_key, last, mempool }, admission)?
            }
            _ => bft::start(
                BftConfig {
                    charter: charter.clone(),
                    organisation,
                    node_key,
                    storage: path.join("ordering"),
                    listen: config.listen,
                    start: height,
                    mempool: MempoolLimits::default(),
                    worker_threads: 2,
                },
                admission,
            )?,
        };

        let (certified_height, outcomes) = attestable(&ledger)?;
        let certified = Arc::new(Certified::new(certified_height, charter.organisations.len()));
        let state = engine.state().clone();
        let heights = config.history_heights.unwrap_or(HISTORY_HEIGHTS);
        let library = engine.library().clone();
        let published =
            Published::new(state, library, (heights, rows.clone()), height, engine.state_digest(), certified);
        let published = Arc::new(published);
        let metrics = Arc::new(NodeMetrics::new());
        let certificates = CertificateVerifier::new(&charter)
            .map_err(|error| NodeError::Certificate { height: 0, reason: error.to_string() })?;
        let (attest, to_attest) = bounded(pipeline::QUEUE_OUTCOMES);
        let attest = (!options.attests_nothing).then_some(attest);
        let attesting = attest.is_some().then(|| {
            let (answers, certified) = bounded(1);
            let (asking, heal) = bounded(1);
            let (rules, position) = (CertificateRules::new(&charter), organisation as u16);
            let attestations = Attestations::new(rules, position, attesting_key, certified_height);
            let parts = (ordering.clone(), ledger.clone(), published.clone(), metrics.clone());
            let outcomes = outcomes.into_iter().map(|own| Input::Executed(Box::new(own)));
            let attester = Attester::new(attestations, parts, (answers, asking), outcomes);
            Attest { attester, inputs: to_attest, certified, heal }
        });
        let shared = Arc::new(Shared {
            charter: charter.clone(),
            pipeline: config.pipeline,
            ordering: ordering.clone(),
            ledger: ledger.clone(),
            checkpoints,
            attest,
            faults: options.faults,
            verifier: verifier.clone(),
            certificates,
            published: published.clone(),
            receipts: receipts.clone(),
            states: states.clone(),
            proposer: proposer.clone(),
            rows,
            metrics: metrics.clone(),
            pool,
        });
        let stages = pipeline::start(shared, recovered, attesting)?;
        let submitter = Arc::new(Submitter {
            charter: charter.clone(),
            ordering: ordering.clone(),
            ledger: ledger.clone(),
            verifier: verifier.clone(),
            published: published.clone(),
            receipts,
            rate_limit: config.client_transactions_per_second.map(RateLimit::new),
            started: Instant::now(),
        });
        let endorsing = match states {
            None => None,
            Some(states) => {
                let (position, ledger) = (organisation as u16, charter.ledger());
                let oracles = OracleSources::new(&config.oracles, &path, gateway.handle().clone())?;
                let (oracles, pool) = (Arc::new(oracles), threads("endorse", config.threads)?);
                let (key, asked) = (endorser_key, verifier.clone());
                let endorser = Endorser::new(position, ledger, key, asked, states, oracles, pool);
                let endorser = Arc::new(endorser);
                let peers = Peers::new(&charter, organisation)?;
                let (runtime, asked) = (gateway.handle(), endorser.clone());
                let (submitter, metrics) = (submitter.clone(), metrics.clone());
                let collector =
                    Collector::start(runtime, &charter, asked, peers, submitter, proposer, metrics);
                Some(Endorsing { endorser, collector })
            }
        };
        let database = Arc::new(NodeDatabase {
            charter,
            organisation,
            session,
            ordering: ordering.clone(),
            ledger,
            published: published.clone(),
            submitter,
            endorsing,
            metrics,
            answer_at: config.answer_at,
            started: Instant::now(),
            newest_block_ms: AtomicU64::new(0),
            query_memory: query_memory(config.query_memory_megabytes),
        });
        serve(&gateway, &database, postgres, access, http);
        let report = StartReport { checkpoint, replayed, height, repairs, time: start.elapsed() };
        Ok(Node { ordering, database, published, stages, gateway: Some(gateway), report })
    }

    /// What starting found.
    pub fn report(&self) -> &StartReport {
        &self.report
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

    /// Why the node does not serve, if so.
    pub fn not_serving(&self) -> Option<String> {
        self.published.not_serving()
    }

    /// Stops in good order: no more clients, no more blocks, everything that was ordered is recorded.
    pub fn stop(mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.shutdown_timeout(GATEWAY_STOP);
        }
        self.ordering.stop();
        for stage in self.stages.drain(..) {
            // A stage that panicked has said so in `not_serving`.
            let _ = stage.join();
        }
    }
}

fn serve(
    gateway: &tokio::runtime::Runtime,
    database: &Arc<NodeDatabase>,
    postgres: tokio::net::TcpListener,
    access: Access,
    http: tokio::net::TcpListener,
) {
    let asked: Arc<dyn Database> = database.clone();
    let published = database.published.clone();
    gateway.spawn(async move {
        if let Err(error) = gateway::serve_postgres(postgres, asked, access).await {
            published.stop_serving(error.to_string());
        }
    });
    let asked: Arc<dyn Database> = database.clone();
    let published = database.published.clone();
    gateway.spawn(async move {
        if let Err(error) = gateway::serve_http(http, asked).await {
            published.stop_serving(error.to_string());
        }
    });
}

fn ledger_repairs(opened: &OpenReport) -> Vec<String> {
    let mut repairs = Vec::new();
    if opened.bytes_cut > 0 {
        repairs.push(format!("{} bytes of a torn block were cut off the ledger", opened.bytes_cut));
    }
    if let Some(height) = opened.flushed_lost {
        repairs.push(format!("the ledger once reached height {height}; what is missing is fetched again"));
    }
    if opened.indexes_rebuilt > 0 {
        repairs.push(format!("{} index files of the ledger are made again", opened.indexes_rebuilt));
    }
    repairs
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

fn threads(name: &'static str, count: usize) -> Result<rayon::ThreadPool, NodeError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count.max(1))
        .thread_name(move |number| format!("{name} {number}"))
        .build()
        .map_err(|error| NodeError::Thread { name, error: std::io::Error::other(error) })
}
