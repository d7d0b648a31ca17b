//! What a node is made of, but for network, threads and sockets: the same for one that runs and for one that is simulated.

use crate::admission::VerifierAdmission;
use crate::attesting::{Attestations, Attester, Certified, Clock, Heal, Input, Limits, OwnOutcome, Roots};
use crate::charters::{self, Amendments, DecidedCharters};
use crate::checkpoints::CheckpointParts;
use crate::endorsing::{Proposer, RecentStates};
use crate::folder::Join;
use crate::holders::Holders;
use crate::joining::{Exchange, Wanted};
use crate::key_watch::KeyWatch;
use crate::live::Live;
use crate::metrics::NodeMetrics;
use crate::node::NodeOptions;
use crate::own_database::OwnDatabase;
use crate::past::HISTORY_HEIGHTS;
use crate::pipeline::{
    self, AnswerStage, Attest, Audience, Exchanging, ExecuteStage, RecordStage, Restore, Stages, Takeover,
    VerifyStage,
};
use crate::private::{Asking, Holding, PartStore, Patience, PrivateSchemas, SchemaStores, SchemasNode};
use crate::pruning::{Keeps, Pruning};
use crate::published::Published;
use crate::receipts::Receipts;
use crate::recovery::{Recovered, Recovery, attestable};
use crate::redaction::Redacting;
use crate::row_history::KeptRows;
use crate::scrub::Scrub;
use crate::store_choice::StoreChoice;
use crate::store_failure::StoreHealth;
use crate::submission::Submitter;
use crate::traces::Traces;
use crate::{Faults, NodeConfig, NodeError};
use bytes::Bytes;
use columns::WithColumns;
use crossbeam_channel::{Sender, bounded};
use crypto::SecretKey;
use engine::Verifier;
use gateway::Notifier;
use ledger::{Anchor, CheckpointStore, Disk, Ledger, LedgerOptions, OpenReport};
use ordering::{Admission, CertificateVerifier, Ordering, Services};
use parking_lot::Mutex;
use state::Stores;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use types::{BlockHeader, Charter, Charters, ExecutionModel};

/// Messages about schemas that may wait.
const QUEUE_SCHEMAS: usize = 1_024;
/// So many blocks behind a node joins from a checkpoint of others, where `node.toml` says nothing else.
const JOIN_BEHIND_BLOCKS: u64 = 1_000;

/// Whose node it is, and how it works.
pub(crate) struct Member<'a> {
    pub(crate) folder: &'a Path,
    /// The founding charter.
    pub(crate) charter: &'a Arc<Charter>,
    pub(crate) node_key: SecretKey,
    pub(crate) config: &'a NodeConfig,
    /// Settings that may change while the node runs.
    pub(crate) live: Arc<Live>,
    pub(crate) options: NodeOptions,
    pub(crate) clock: Clock,
}

impl Member<'_> {
    /// What sends traces of transactions, where `node.toml` says so.
    fn traces(&self) -> Result<Option<Arc<Traces>>, NodeError> {
        let key = self.node_key.public_key();
        let name = match self.charter.member(&key) {
            Some(position) => self.charter.organisations[position].name.clone(),
            None => key.to_string(),
        };
        Ok(Traces::of(self.config, self.folder, &name)?.map(Arc::new))
    }

    /// How whoever waits for other members of schemas knows the time.
    fn patience(&self) -> Patience {
        match self.options.is_simulated {
            true => Patience::Simulated(self.clock.clone()),
            false => Patience::real(),
        }
    }

    /// What makes the stores of schemas.
    fn schema_stores(&self) -> SchemaStores {
        let (kind, memory_megabytes) = (self.config.store, self.config.memory_megabytes);
        match &self.options.stores {
            Some(_) => SchemaStores::in_memory(),
            None => SchemaStores::of(StoreChoice { kind, memory_megabytes }, &self.folder.join("schemas")),
        }
    }

    /// What makes the store of the state, with copies of tables in columns where somebody reads them.
    fn stores(&self) -> Result<Arc<dyn Stores>, NodeError> {
        let (kind, memory_megabytes) = (self.config.store, self.config.memory_megabytes);
        let stores = match &self.options.stores {
            Some(stores) => stores.clone(),
            None => StoreChoice { kind, memory_megabytes }.open(&self.folder.join("state"))?,
        };
        let bytes = &self.live.column_bytes;
        // Columns are of rows that stand here: around holders' stores nobody would hear what changes there.
        Ok(match self.options.fragments.is_some() && bytes.load(Relaxed) > 0 {
            true => {
                let columns = WithColumns::sharing(stores, bytes.clone()).kept_up();
                Arc::new(columns.map_err(|error| NodeError::Thread { name: "columns", error })?)
            }
            false => stores,
        })
    }
}

/// Where ordering begins for a node that joins it.
pub(crate) struct OrderingStart {
    /// The ledger is durable up to here.
    pub(crate) height: u64,
    /// The header of that block.
    pub(crate) last: Option<BlockHeader>,
    /// What proves that block.
    pub(crate) certificate: Option<Bytes>,
    /// What the node has recorded, for other members.
    pub(crate) ledger: Arc<Ledger>,
    /// Whether the ledger begins behind that block, from a checkpoint.
    pub(crate) joined: bool,
    /// The charters that its blocks name.
    pub(crate) charters: Charters,
}

/// The parts, put together; nothing runs.
pub(crate) struct Core {
    pub(crate) parts: NodeParts,
    pub(crate) services: Services,
    pub(crate) stages: Stages,
    pub(crate) recovered: Recovered,
    pub(crate) attest: Option<Attest>,
    pub(crate) exchanging: Exchanging,
    /// Answers other members of schemas.
    pub(crate) holding: Holding,
    pub(crate) submitter: Arc<Submitter>,
    /// What was repaired or left out on the way.
    pub(crate) repairs: Vec<String>,
}

/// What several of a node's parts use. Each takes of it what it needs, when the node is put together.
#[derive(Clone)]
pub(crate) struct NodeParts {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) checkpoints: Arc<CheckpointStore>,
    /// Makes the store of the state.
    pub(crate) stores: Arc<dyn Stores>,
    pub(crate) verifier: Arc<Verifier>,
    /// Those that the state has decided on.
    pub(crate) charters: Arc<DecidedCharters>,
    /// Says when keys expire.
    pub(crate) keys: Arc<KeyWatch>,
    pub(crate) published: Arc<Published>,
    receipts: Arc<Receipts>,
    /// Tells sessions what transactions notify.
    pub(crate) notifier: Arc<Notifier>,
    /// Where transactions are executed before they are ordered: the states that they are executed on.
    pub(crate) states: Option<Arc<RecentStates>>,
    /// What this node does as proposer, if not what everybody does.
    pub(crate) proposer: Option<Arc<Proposer>>,
    /// The organisation's own database, where there is one.
    pub(crate) own_database: Option<Arc<OwnDatabase>>,
    /// Other nodes of the organisation that hold schemas.
    pub(crate) holders: Option<Arc<Holders>>,
    /// Schemas that the organisation is a member of; `None` until ordering is there.
    pub(crate) private: Option<Arc<PrivateSchemas>>,
    pub(crate) metrics: Arc<NodeMetrics>,
}

/// Recovers the state from the folder; `join` starts the services once it is known where ordering begins.
///
/// # Errors
/// Whatever keeps the node from starting, with what to do.
pub(crate) fn open(
    member: Member<'_>,
    join: impl FnOnce(OrderingStart, Arc<dyn Admission>) -> Result<Services, NodeError>,
) -> Result<Core, NodeError> {
    let files = Files::open(&member)?;
    let recovery = files.recovery(&member)?;
    let recovered = recovery.recover()?;
    let tip = Tip::of(&files, &recovered)?;
    let traces = member.traces()?;
    let mut parts = NodeParts::of(&member, &files, &recovery, &recovered, &tip, traces);
    let repairs = parts.repairs(&member, &files.opened, &recovered.refused);
    let services = join(tip.ordering_start(&files), parts.admission())?;
    services.certifying.decided(parts.charters.all());
    if let Some(anchor) = &files.anchor {
        // The node may have ended before ordering knew it.
        pipeline::skip(&*services.ordering, anchor)?;
    }
    let private = parts.private_schemas(&member, &services, &recovery)?;
    private.show(&*recovered.executor, |(snapshot, library)| parts.published.refresh(snapshot, library));
    parts.private = Some(private.clone());
    let (attest, attesting) = parts.attesting(&member, &services, tip);
    let (holding, told) = parts.holding(&member, private);
    let height = recovered.executor.height();
    let (exchanging, joining) = parts.exchanging(&member, &services, height, Some(told));
    let submitter = parts.submitter(&member, services.ordering.clone());
    let stages = parts.stages(&member, recovery, &services, files.charters, attesting, joining)?;
    Ok(Core { parts, services, stages, recovered, attest, exchanging, holding, submitter, repairs })
}

/// What lies in a node's folder.
struct Files {
    ledger: Arc<Ledger>,
    /// What was repaired in it.
    opened: OpenReport,
    /// Where the ledger begins, if not at its first block.
    anchor: Option<Arc<Anchor>>,
    /// The charters that its blocks name.
    charters: Charters,
    checkpoints: Arc<CheckpointStore>,
    /// The history of rows, where it is kept.
    rows: Option<Arc<KeptRows>>,
    /// The organisation's own database, where there is one.
    own_database: Option<Arc<OwnDatabase>>,
}

impl Files {
    fn open(member: &Member<'_>) -> Result<Files, NodeError> {
        let Member { folder, charter, config, options, .. } = member;
        let ledger_options = LedgerOptions { faults: options.disk.clone(), ..LedgerOptions::default() };
        let (ledger, opened) = Ledger::open_with(folder.join("ledger"), charter.ledger(), ledger_options)?;
        let folder_of_checkpoints = folder.join("checkpoints");
        let disk = options.disk.clone();
        let checkpoints = CheckpointStore::open_with(folder_of_checkpoints, charter.ledger(), disk)?;
        let charters = charters::named(&ledger, charter)?;
        let newest = ledger.tip().map_or(0, |(height, _)| height);
        let megabytes = if config.holders.is_empty() { config.row_history_megabytes } else { Some(0) };
        let rows = KeptRows::open(folder, charter, newest, megabytes)?;
        let anchor = ledger.anchor();
        if let (Some(rows), Some(anchor)) = (&rows, &anchor) {
            rows.reach(anchor.height())?;
        }
        let (own, keeper) = (config.database.as_ref(), options.own_database.as_ref());
        let own_database = OwnDatabase::open(folder, charter, newest, own, keeper)?;
        let (ledger, checkpoints) = (Arc::new(ledger), Arc::new(checkpoints));
        Ok(Files { ledger, opened, anchor, charters, checkpoints, rows, own_database })
    }

    fn recovery(&self, member: &Member<'_>) -> Result<Recovery, NodeError> {
        let stores = member.stores()?;
        let holders = Holders::open(member.folder, member.charter, member.config, &stores)?;
        let stores = holders.as_ref().map_or(stores, |holders| holders.stores.clone() as Arc<dyn Stores>);
        Ok(Recovery {
            charter: member.charter.clone(),
            pipeline: member.config.pipeline,
            verifier: Arc::new(Verifier::new(member.charter)),
            ledger: self.ledger.clone(),
            checkpoints: self.checkpoints.clone(),
            stores,
            holders,
            rows: self.rows.clone(),
            own_database: self.own_database.clone(),
            own_execution: member.options.own_execution.clone(),
            pool: Arc::new(threads("core", member.config.threads)?),
            faults: member.options.faults.clone(),
            known_versions: member.options.known_versions,
        })
    }
}

/// Where a recovered node stands.
struct Tip {
    height: u64,
    /// The header of that block.
    last: Option<BlockHeader>,
    /// What proves it.
    certificate: Option<Bytes>,
    /// Up to here outcomes are certified.
    certified_height: u64,
    /// What the blocks above that came to, and the newest that is certified.
    uncertified: Vec<OwnOutcome>,
}

impl Tip {
    fn of(files: &Files, recovered: &Recovered) -> Result<Tip, NodeError> {
        let height = recovered.executor.height();
        let (certified_height, uncertified) = attestable(&files.ledger)?;
        let certificate = match files.ledger.anchor().filter(|anchor| anchor.height() == height) {
            Some(anchor) => Some(anchor.certificate.clone().into()),
            None => files.ledger.certificates(height)?.map(|(_, certificate)| certificate),
        };
        Ok(Tip { height, last: files.ledger.header(height)?, certificate, certified_height, uncertified })
    }

    fn ordering_start(&self, files: &Files) -> OrderingStart {
        let joined = files.ledger.anchor().is_some_and(|anchor| anchor.height() == self.height);
        OrderingStart {
            height: self.height,
            last: self.last.clone(),
            certificate: self.certificate.clone(),
            ledger: files.ledger.clone(),
            joined,
            charters: files.charters.clone(),
        }
    }
}

/// Where the stages tell what is to be attested.
struct ToAttest {
    inputs: Sender<Input>,
    /// Where blocks are asked to be taken back.
    heal: Sender<Heal>,
}

/// What the stages have to do with joining.
struct ToJoin {
    /// Where another node's checkpoint is asked for; `None` where there is no other node.
    wanted: Option<Sender<Wanted>>,
    /// Set where blocks are missing that only a checkpoint makes up for; `None` where the node does not join by itself.
    gap: Option<Arc<AtomicBool>>,
    /// Where pieces of a checkpoint are kept until all are there.
    staging: PathBuf,
}

impl NodeParts {
    fn of(
        member: &Member<'_>,
        files: &Files,
        recovery: &Recovery,
        recovered: &Recovered,
        tip: &Tip,
        traces: Option<Arc<Traces>>,
    ) -> NodeParts {
        let (charter, executor) = (member.charter, &*recovered.executor);
        let Recovery { ledger, checkpoints, verifier, rows, own_database, .. } = recovery;
        let charters =
            Arc::new(DecidedCharters::of(executor, files.charters.clone(), member.options.known_versions));
        let receipts = Arc::new(Receipts::new().with_traces(traces.clone()));
        let store_health = Arc::<StoreHealth>::default();
        let states = (charter.execution != ExecutionModel::OrderExecute).then(|| {
            let timestamp_ms = tip.last.as_ref().map_or(0, |last| last.timestamp_ms);
            Arc::new(RecentStates::new(executor.endorsement_basis(timestamp_ms), store_health.clone()))
        });
        let proposer = states.as_ref().and_then(|states| {
            Proposer::new(charters.clone(), verifier.clone(), receipts.clone(), states.clone()).map(Arc::new)
        });
        let certified = Arc::new(Certified::new(tip.certified_height, charter.organisations.len()));
        let heights = member.config.history_heights.unwrap_or(HISTORY_HEIGHTS);
        let published = Published::new(
            executor.snapshot(),
            executor.library().clone(),
            (heights, rows.clone()),
            executor.height(),
            executor.state_digest(),
            certified,
            store_health,
        );
        NodeParts {
            ledger: ledger.clone(),
            checkpoints: checkpoints.clone(),
            stores: recovery.stores.clone(),
            verifier: verifier.clone(),
            keys: Arc::new(KeyWatch::new(ledger.clone(), charters.clone())),
            charters,
            published: Arc::new(published),
            receipts,
            notifier: Arc::default(),
            states,
            proposer,
            own_database: own_database.clone(),
            holders: recovery.holders.clone(),
            private: None,
            metrics: Arc::new(NodeMetrics::new().with_traces(traces)),
        }
    }

    /// The schemas that the organisation is a member of.
    fn private_schemas(
        &self,
        member: &Member<'_>,
        services: &Services,
        recovery: &Recovery,
    ) -> Result<Arc<PrivateSchemas>, NodeError> {
        Ok(Arc::new(PrivateSchemas::new(SchemasNode {
            node_key: member.node_key.clone(),
            charters: self.charters.clone(),
            verifier: self.verifier.clone(),
            ledger: self.ledger.clone(),
            messages: services.messages.clone(),
            stores: member.schema_stores(),
            disk: Disk::new(member.options.disk.clone()),
            parts: PartStore::open(&member.folder.join("schemas"), Disk::new(member.options.disk.clone()))?,
            only: member.config.schemas.clone(),
            metrics: self.metrics.clone(),
            pool: recovery.pool.clone(),
            faults: recovery.faults.clone(),
        })))
    }

    /// What answers other members of schemas, and where it is handed what they say.
    fn holding(&self, member: &Member<'_>, schemas: Arc<PrivateSchemas>) -> (Holding, Sender<(u16, Bytes)>) {
        let (tell, told) = bounded(QUEUE_SCHEMAS);
        let asking = Arc::new(Asking::new(schemas.clone(), member.patience()));
        (Holding { schemas, asking, published: self.published.clone(), told }, tell)
    }

    /// What was repaired or left out on the way, and what the operator should know.
    fn repairs(&self, member: &Member<'_>, opened: &OpenReport, refused: &[String]) -> Vec<String> {
        let mut repairs = refused.to_vec();
        repairs.extend(ledger_repairs(opened));
        let key = member.node_key.public_key();
        if self.charters.newest().member(&key).is_none() {
            repairs.push(format!(
                "node key {key} is that of no member: this node follows without voting until the charter names it"
            ));
        }
        repairs
    }

    /// What ordering asks about transactions.
    fn admission(&self) -> Arc<dyn Admission> {
        Arc::new(VerifierAdmission { verifier: self.verifier.clone(), proposer: self.proposer.clone() })
    }

    /// What attests outcomes, and where the stages tell them; nothing where outcomes are not attested.
    fn attesting(
        &self,
        member: &Member<'_>,
        services: &Services,
        tip: Tip,
    ) -> (Option<Attest>, Option<ToAttest>) {
        if member.options.attests_nothing {
            return (None, None);
        }
        let (to_attest, inputs) = bounded(pipeline::QUEUE_OUTCOMES);
        let (answers, certified) = bounded(1);
        let (asking, heal) = bounded(1);
        let (charters, key) = (self.charters.all(), &member.node_key);
        let roots = Attestations::new(charters.clone(), Limits::ROOTS, key.clone(), 0);
        let roots = Roots::new(roots, self.checkpoints.clone());
        let outcomes = Attestations::new(charters, Limits::OUTCOMES, key.clone(), tip.certified_height);
        let network = (services.certifying.clone(), services.messages.clone());
        let parts = (self.ledger.clone(), self.published.clone(), self.metrics.clone());
        let uncertified = tip.uncertified.into_iter().map(|own| Input::Executed(Box::new(own)));
        let (queues, clock) = ((answers, asking.clone()), member.clock.clone());
        let attester = Attester::new((outcomes, roots), network, parts, queues, clock, uncertified);
        let attest = Attest { attester, inputs, certified, heal };
        (Some(attest), Some(ToAttest { inputs: to_attest, heal: asking }))
    }

    /// What fetches checkpoints of other members and hands out this node's, and what the stages have to do with it.
    fn exchanging(
        &self,
        member: &Member<'_>,
        services: &Services,
        height: u64,
        private: Option<Sender<(u16, Bytes)>>,
    ) -> (Exchanging, ToJoin) {
        let Member { folder, charter, config, node_key, .. } = member;
        let (want, wanted) = bounded(1);
        let (join, joined) = bounded(1);
        let (staging, gap) = (folder.join("joining"), Arc::new(AtomicBool::new(false)));
        let behind_blocks = match config.join {
            Join::Checkpoint => Some(config.join_behind_blocks.unwrap_or(JOIN_BEHIND_BLOCKS).max(1)),
            Join::Replay => None,
        };
        let organisation = self.charters.newest().member(&node_key.public_key());
        let exchange = (charter.organisations.len() > 1).then(|| Exchange {
            charter: Arc::clone(charter),
            organisation: organisation.map_or(u16::MAX, |position| position as u16),
            services: services.clone(),
            ledger: self.ledger.clone(),
            published: self.published.clone(),
            metrics: self.metrics.clone(),
            staging: staging.clone(),
            stores: self.stores.clone(),
            behind_blocks,
            empty: height == 0,
            gap: gap.clone(),
            wanted,
            private,
            join,
        });
        let to_join = ToJoin {
            wanted: exchange.is_some().then_some(want),
            gap: (exchange.is_some() && behind_blocks.is_some()).then_some(gap),
            staging,
        };
        (Exchanging { exchange, joined }, to_join)
    }

    /// What hands clients' transactions to ordering.
    fn submitter(&self, member: &Member<'_>, ordering: Arc<dyn Ordering>) -> Arc<Submitter> {
        Arc::new(Submitter {
            charters: self.charters.clone(),
            ordering,
            ledger: self.ledger.clone(),
            verifier: self.verifier.clone(),
            published: self.published.clone(),
            receipts: self.receipts.clone(),
            live: member.live.clone(),
            started: Instant::now(),
        })
    }

    /// The stages of the pipeline. `named`: the charters that the ledger's blocks name.
    fn stages(
        &self,
        member: &Member<'_>,
        recovery: Recovery,
        services: &Services,
        named: Charters,
        to_attest: Option<ToAttest>,
        to_join: ToJoin,
    ) -> Result<Stages, NodeError> {
        let certificates = CertificateVerifier::new(named)
            .map_err(|error| NodeError::Certificate { height: 0, reason: error.to_string() })?;
        let certificates = Arc::new(Mutex::new(certificates));
        let (attest, heal) = to_attest.map(|to| (to.inputs, to.heal)).unzip();
        let amendments = Amendments {
            decided: self.charters.clone(),
            certifying: services.certifying.clone(),
            attest: attest.clone(),
        };
        let checkpoints = self.checkpoint_parts(attest.clone());
        Ok(Stages {
            verify: VerifyStage {
                ordering: services.ordering.clone(),
                certificates: certificates.clone(),
                verifier: self.verifier.clone(),
                pool: recovery.pool.clone(),
                metrics: self.metrics.clone(),
                gap: to_join.gap.clone(),
            },
            execute: self.execute(recovery.pool.clone(), amendments.clone(), attest.clone()),
            record: self.record(&recovery, services.ordering.clone()),
            answer: self.answer(attest.is_some(), recovery.faults.clone()),
            scrub: self.scrub(member, services.ordering.clone(), checkpoints.clone(), heal),
            pruning: self.pruning(member, &recovery, services.ordering.clone(), attest.is_some()),
            redacting: self.redacting(&recovery, services.ordering.clone(), attest.is_some()),
            checkpoints,
            restore: Restore {
                takeover: Takeover {
                    audience: Audience {
                        amendments,
                        published: self.published.clone(),
                        private: self.private.clone(),
                        states: self.states.clone(),
                    },
                    recovery,
                    ordering: services.ordering.clone(),
                    certifying: services.certifying.clone(),
                    certificates,
                    receipts: self.receipts.clone(),
                    attest,
                    gap: to_join.gap,
                    staging: to_join.staging,
                },
                wanted: to_join.wanted,
                metrics: self.metrics.clone(),
            },
            published: self.published.clone(),
        })
    }

    fn execute(
        &self,
        pool: Arc<rayon::ThreadPool>,
        amendments: Amendments,
        attest: Option<Sender<Input>>,
    ) -> ExecuteStage {
        ExecuteStage {
            pool,
            verifier: self.verifier.clone(),
            amendments,
            keys: self.keys.clone(),
            attest,
            published: self.published.clone(),
            private: self.private.clone(),
            states: self.states.clone(),
            proposer: self.proposer.clone(),
            notes_changes: self.own_database.is_some(),
            metrics: self.metrics.clone(),
        }
    }

    fn record(&self, recovery: &Recovery, ordering: Arc<dyn Ordering>) -> RecordStage {
        RecordStage {
            ledger: self.ledger.clone(),
            stores: self.stores.clone(),
            private: self.private.clone(),
            rows: recovery.rows.clone(),
            own_database: recovery.own_database.clone(),
            ordering,
            published: self.published.clone(),
            metrics: self.metrics.clone(),
            faults: recovery.faults.clone(),
        }
    }

    fn answer(&self, attests: bool, faults: Option<Arc<Faults>>) -> AnswerStage {
        AnswerStage {
            ledger: self.ledger.clone(),
            charters: self.charters.clone(),
            published: self.published.clone(),
            receipts: self.receipts.clone(),
            metrics: self.metrics.clone(),
            notifier: self.notifier.clone(),
            attests,
            faults,
        }
    }

    fn checkpoint_parts(&self, attest: Option<Sender<Input>>) -> CheckpointParts {
        CheckpointParts {
            store: self.checkpoints.clone(),
            stores: self.stores.clone(),
            published: self.published.clone(),
            metrics: self.metrics.clone(),
            attest,
        }
    }

    /// What prunes old blocks, where that is done.
    fn pruning(
        &self,
        member: &Member<'_>,
        recovery: &Recovery,
        ordering: Arc<dyn Ordering>,
        attests: bool,
    ) -> Option<Pruning> {
        Some(Pruning {
            keeps: Keeps::of(member.config)?,
            ledger: self.ledger.clone(),
            checkpoints: self.checkpoints.clone(),
            charters: self.charters.clone(),
            attests,
            published: self.published.clone(),
            rows: recovery.rows.clone(),
            private: self.private.clone(),
            ordering,
            metrics: self.metrics.clone(),
        })
    }

    /// What carries out redactions.
    fn redacting(&self, recovery: &Recovery, ordering: Arc<dyn Ordering>, attests: bool) -> Redacting {
        Redacting {
            ledger: self.ledger.clone(),
            checkpoints: self.checkpoints.clone(),
            charters: self.charters.clone(),
            attests,
            published: self.published.clone(),
            rows: recovery.rows.clone(),
            ordering,
            metrics: self.metrics.clone(),
        }
    }

    /// What reads files again, where that is done.
    fn scrub(
        &self,
        member: &Member<'_>,
        ordering: Arc<dyn Ordering>,
        parts: CheckpointParts,
        heal: Option<Sender<Heal>>,
    ) -> Option<Scrub> {
        let bytes_per_second = member.config.scrub_megabytes_per_second.map(|megabytes| megabytes << 20);
        Some(Scrub {
            charter: member.charter.clone(),
            ledger: self.ledger.clone(),
            ordering,
            parts,
            heal: heal.filter(|_| bytes_per_second != Some(0))?,
            bytes_per_second,
        })
    }
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
