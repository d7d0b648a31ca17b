//! What a node is made of, but for network, threads and sockets: the same for one that runs and for one that is simulated.

use crate::admission::VerifierAdmission;
use crate::attesting::{Attestations, Attester, Certified, Clock, Input, Limits, Roots};
use crate::charters::{self, DecidedCharters};
use crate::endorsing::{Proposer, RecentStates};
use crate::folder::Join;
use crate::joining::{Exchange, Fetched};
use crate::key_watch::KeyWatch;
use crate::metrics::NodeMetrics;
use crate::node::NodeOptions;
use crate::past::HISTORY_HEIGHTS;
use crate::pipeline::{self, Attest, Shared};
use crate::published::Published;
use crate::rate_limit::RateLimit;
use crate::receipts::Receipts;
use crate::recovery::{Recovered, Recovery, attestable};
use crate::row_history::KeptRows;
use crate::submission::Submitter;
use crate::{NodeConfig, NodeError};
use crossbeam_channel::{Receiver, bounded};
use crypto::SecretKey;
use engine::Verifier;
use ledger::{CheckpointStore, Ledger, LedgerOptions, OpenReport};
use ordering::{Admission, CertificateVerifier, Services};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use types::{BlockHeader, Charter, Charters, ExecutionModel};

/// So many blocks behind a node joins from a checkpoint of others, where `node.toml` says nothing else.
const JOIN_BEHIND_BLOCKS: u64 = 1_000;

/// Whose node it is, and how it works.
pub(crate) struct Member<'a> {
    pub(crate) folder: &'a Path,
    /// The founding charter.
    pub(crate) charter: &'a Arc<Charter>,
    pub(crate) node_key: SecretKey,
    pub(crate) config: &'a NodeConfig,
    pub(crate) options: NodeOptions,
    pub(crate) clock: Clock,
}

/// Where a node stands that joins ordering.
pub(crate) struct Standing {
    /// The ledger is durable up to here.
    pub(crate) height: u64,
    /// The header of that block.
    pub(crate) last: Option<BlockHeader>,
    /// The charters that its blocks name.
    pub(crate) charters: Charters,
}

/// The parts, put together; nothing runs.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) recovered: Recovered,
    pub(crate) attest: Option<Attest>,
    /// Fetches checkpoints of other members and hands out this node's; `None` where there are no others.
    pub(crate) exchange: Option<Exchange>,
    /// What it has fetched.
    pub(crate) joined: Receiver<Box<Fetched>>,
    pub(crate) submitter: Arc<Submitter>,
    /// What was repaired or left out on the way.
    pub(crate) repairs: Vec<String>,
}

/// Recovers the state from the folder; `join` starts ordering once it is known where.
///
/// # Errors
/// Whatever keeps the node from starting, with what to do.
pub(crate) fn open(
    member: Member<'_>,
    join: impl FnOnce(Standing, Arc<dyn Admission>) -> Result<Services, NodeError>,
) -> Result<Core, NodeError> {
    let Member { folder, charter, node_key, config, options, clock } = member;
    let disk = options.disk;
    let ledger_options = LedgerOptions { faults: disk.clone(), ..LedgerOptions::default() };
    let (ledger, opened) = Ledger::open_with(folder.join("ledger"), charter.ledger(), ledger_options)?;
    let ledger = Arc::new(ledger);
    let checkpoints =
        Arc::new(CheckpointStore::open_with(folder.join("checkpoints"), charter.ledger(), disk)?);
    let named = charters::named(&ledger, charter)?;
    let verifier = Arc::new(Verifier::new(charter));
    let pool = threads("core", config.threads)?;
    let newest = ledger.tip().map_or(0, |(height, _)| height);
    let rows = KeptRows::open(folder, charter, newest, config.row_history_megabytes)?;
    let anchor = ledger.anchor();
    if let (Some(rows), Some(anchor)) = (&rows, &anchor) {
        rows.reach(anchor.height())?;
    }
    let recovery = Recovery {
        charter,
        pipeline: config.pipeline,
        verifier: &verifier,
        ledger: &ledger,
        checkpoints: &checkpoints,
        rows: rows.as_deref(),
        known_versions: options.known_versions,
    };
    let recovered = pool.install(|| recovery.recover())?;
    let engine = &recovered.engine;
    let mut repairs = recovered.refused.clone();
    repairs.extend(ledger_repairs(&opened));
    let decided = Arc::new(DecidedCharters::of(engine, named.clone(), options.known_versions));
    let organisation = decided.newest().member(&node_key.public_key());
    if organisation.is_none() {
        repairs.push(format!(
            "node key {} is that of no member: this node follows without voting until the charter names it",
            node_key.public_key()
        ));
    }

    let height = engine.height();
    let last = ledger.header(height)?;
    let states = (charter.execution == ExecutionModel::ExecuteOrderValidate).then(|| {
        let timestamp_ms = last.as_ref().map_or(0, |last| last.timestamp_ms);
        Arc::new(RecentStates::new(engine.endorsement_basis(timestamp_ms)))
    });
    let receipts = Arc::new(Receipts::new());
    let proposer = states.as_ref().and_then(|states| {
        Proposer::new(decided.clone(), verifier.clone(), receipts.clone(), states.clone()).map(Arc::new)
    });
    let admission: Arc<dyn Admission> =
        Arc::new(VerifierAdmission { verifier: verifier.clone(), proposer: proposer.clone() });
    let services = join(Standing { height, last, charters: named.clone() }, admission)?;
    let Services { ordering, certifying, messages } = services.clone();
    certifying.decided(decided.all());
    if let Some(anchor) = &anchor {
        // The node may have ended before ordering knew it.
        pipeline::skip(ordering.as_ref(), anchor)?;
    }

    let keys = KeyWatch::new(ledger.clone(), decided.clone());
    let (certified_height, outcomes) = attestable(&ledger)?;
    let certified = Arc::new(Certified::new(certified_height, charter.organisations.len()));
    let snapshot = engine.state().snapshot();
    let heights = config.history_heights.unwrap_or(HISTORY_HEIGHTS);
    let library = engine.library().clone();
    let published =
        Published::new(snapshot, library, (heights, rows.clone()), height, engine.state_digest(), certified);
    let published = Arc::new(published);
    let metrics = Arc::new(NodeMetrics::new());
    let certificates = CertificateVerifier::new(named)
        .map_err(|error| NodeError::Certificate { height: 0, reason: error.to_string() })?;
    let (attest, to_attest) = bounded(pipeline::QUEUE_OUTCOMES);
    let attest = (!options.attests_nothing).then_some(attest);
    let mut asking_to_heal = None;
    let attesting = attest.is_some().then(|| {
        let (answers, certified) = bounded(1);
        let (asking, heal) = bounded(1);
        asking_to_heal = Some(asking.clone());
        let roots = Attestations::new(decided.all(), Limits::ROOTS, node_key.clone(), 0);
        let roots = Roots::new(roots, checkpoints.clone());
        let attestations =
            Attestations::new(decided.all(), Limits::OUTCOMES, node_key.clone(), certified_height);
        let network = (certifying.clone(), messages.clone());
        let parts = (ledger.clone(), published.clone(), metrics.clone());
        let outcomes = outcomes.into_iter().map(|own| Input::Executed(Box::new(own)));
        let attester =
            Attester::new((attestations, roots), network, parts, (answers, asking), clock, outcomes);
        Attest { attester, inputs: to_attest, certified, heal }
    });
    let (want, wanted) = bounded(1);
    let (join, joined) = bounded(1);
    let (staging, gap) = (folder.join("joining"), Arc::new(AtomicBool::new(false)));
    let behind_blocks = match config.join {
        Join::Checkpoint => Some(config.join_behind_blocks.unwrap_or(JOIN_BEHIND_BLOCKS).max(1)),
        Join::Replay => None,
    };
    let exchange = (charter.organisations.len() > 1).then(|| Exchange {
        charter: charter.clone(),
        organisation: organisation.map_or(u16::MAX, |position| position as u16),
        services,
        ledger: ledger.clone(),
        published: published.clone(),
        metrics: metrics.clone(),
        staging: staging.clone(),
        behind_blocks,
        empty: height == 0,
        gap: gap.clone(),
        wanted,
        join,
    });
    let shared = Arc::new(Shared {
        charter: charter.clone(),
        charters: decided.clone(),
        keys: Arc::new(keys),
        pipeline: config.pipeline,
        ordering: ordering.clone(),
        certifying,
        messages,
        ledger: ledger.clone(),
        checkpoints,
        attest,
        heal: asking_to_heal,
        scrub_bytes_per_second: config.scrub_megabytes_per_second.map(|megabytes| megabytes << 20),
        faults: options.faults,
        verifier: verifier.clone(),
        certificates: Mutex::new(certificates),
        published: published.clone(),
        receipts: receipts.clone(),
        states,
        proposer,
        rows,
        metrics,
        pool,
        gap: (exchange.is_some() && behind_blocks.is_some()).then_some(gap),
        wanted: exchange.is_some().then_some(want),
        staging,
    });
    let submitter = Arc::new(Submitter {
        charters: decided,
        ordering,
        ledger,
        verifier,
        published,
        receipts,
        rate_limit: config.client_transactions_per_second.map(RateLimit::new),
        started: Instant::now(),
    });
    Ok(Core { shared, recovered, attest: attesting, exchange, joined, submitter, repairs })
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

/// Threads of their own for work that many cores can share.
pub(crate) fn threads(name: &'static str, count: usize) -> Result<rayon::ThreadPool, NodeError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count.max(1))
        .thread_name(move |number| format!("{name} {number}"))
        .build()
        .map_err(|error| NodeError::Thread { name, error: std::io::Error::other(error) })
}
