//! A node without threads and sockets, for the simulation of a whole network: everything else is what a node runs, but for
//! scrubbing.

use crate::attesting::Message;
use crate::charters::DecidedCharters;
use crate::core::{self, Core, Member, NodeParts, OrderingStart};
use crate::database::is_proposal;
use crate::endorsing::{Aborted, Endorser, Gather, Others, Sources};
use crate::pipeline::Inline;
use crate::private::simulated::PrivateTurns;
use crate::store_choice::StoreKind;
use crate::submission::{Submitted, Submitter};
use crate::{Faults, Join, NodeConfig, NodeError, NodeOptions};
use bytes::Bytes;
use crypto::{Digest, PublicKey, SecretKey};
use futures::FutureExt;
use ledger::Ledger;
use ordering::{Admission, Delivery, Services};
use parking_lot::Mutex;
use state::Stores;
use std::future::ready;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};
use std::time::Duration;
use tokio::sync::mpsc;
use types::{
    AnswerAt, Attestation, BlockHeader, Charter, Charters, CheckpointRoot, Identity, Organisation,
    OutcomeHeader, PartSubmission, Pipeline, ProposalReply, ProposalRequest, SchemaOutcome, SqlError,
    SubmissionReply, TransactionId, Value,
};

pub use crate::private::simulated::{
    EndedAtMember, Liar, PrivateWord, SchemaAtMember, ask_for_part, ask_to_hold, held_alone, hold_these,
    private_word, say_held, with_other_outcome, with_other_parts,
};

/// Steps that a query may take.
const QUERY_STEPS_MAX: u64 = 10_000_000;

/// Whose node is simulated.
pub struct SimulatedMember {
    /// Where ledger and checkpoints are.
    pub folder: PathBuf,
    /// The ledger's charter.
    pub charter: Arc<Charter>,
    /// Signs what blocks came to, and what it endorses.
    pub node_key: SecretKey,
    /// Signs the transactions with which it brings members' votes into the ledger.
    pub session: Identity,
    /// Position of its organisation in the charter, or where that will be once it has come in.
    pub organisation: u16,
    /// How validation is scheduled.
    pub pipeline: Pipeline,
    /// Megabytes of the history of rows; 0 keeps none.
    pub row_history_megabytes: u64,
    /// So many blocks behind it joins from another node's checkpoint; `None`: it executes every block.
    pub join_behind_blocks: Option<u64>,
    /// What goes wrong in memory.
    pub faults: Arc<Faults>,
    /// What goes wrong with the disk.
    pub disk: Arc<ledger::Faults>,
    /// What makes its store; `None`: what makes a node's.
    pub stores: Option<Arc<dyn Stores>>,
}

/// A node that does nothing but when it is called.
pub struct SimulatedNode {
    pipeline: Inline,
    parts: NodeParts,
    submitter: Arc<Submitter>,
    /// What it does for schemas with members.
    private: PrivateTurns,
    /// Where transactions are executed before they are ordered.
    endorsing: Option<Endorsing>,
    /// Why it stopped for good.
    stopped: Option<String>,
}

/// Asks the node of another organisation to endorse; says why it does not answer.
pub type Ask<'a> = &'a dyn Fn(&Organisation, &ProposalRequest) -> Result<ProposalReply, String>;

/// What a node does for endorsements.
struct Endorsing {
    gather: Gather,
    own_key: PublicKey,
    /// Counts submissions, so that the others are asked in turn.
    turn: AtomicUsize,
    /// Their clients hear of it when the state that they failed on is recorded.
    aborted: Mutex<Vec<Aborted>>,
}

/// The other endorsers of a height, each a call away.
struct Asked<'a> {
    charter: Arc<Charter>,
    names: Vec<String>,
    preference: Vec<u16>,
    ask: Ask<'a>,
}

impl<'a> Asked<'a> {
    /// This node comes first, the others in turn, beginning behind it with the one of number `turn`.
    fn at(height: u64, charters: &DecidedCharters, own: &PublicKey, turn: usize, ask: Ask<'a>) -> Asked<'a> {
        let charter = charters.at(height);
        let count = charter.organisations.len();
        let own = charter.member(own).filter(|position| charter.signs_at(*position, height));
        let first = own.unwrap_or(0) + 1 + turn % count.saturating_sub(1).max(1);
        let others = (0..count).map(|offset| (first + offset) % count);
        let others = others.filter(|position| Some(*position) != own && charter.signs_at(*position, height));
        let preference = own.into_iter().chain(others).map(|position| position as u16).collect();
        let names = charter.organisations.iter().map(|organisation| organisation.name.clone()).collect();
        Asked { names, preference, charter, ask }
    }
}

impl Others for Asked<'_> {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn preference(&self) -> Vec<u16> {
        self.preference.clone()
    }

    fn ask(
        &self,
        organisation: u16,
        request: &ProposalRequest,
    ) -> impl Future<Output = Result<ProposalReply, String>> + Send {
        ready((self.ask)(&self.charter.organisations[usize::from(organisation)], request))
    }

    /// Whoever has failed is asked again at its next turn: how long ago that was is a matter of the node's clock.
    fn avoid(&self, _organisation: u16) {}
}

impl SimulatedNode {
    /// Recovers the state from the folder. `join` gives the node its services, with ordering above the block that it is told, with the
    /// charters that blocks up to there name.
    ///
    /// # Errors
    /// As [`Node::start`](crate::Node::start).
    pub fn open(
        member: SimulatedMember,
        clock: Arc<dyn Fn() -> Duration + Send + Sync>,
        join: impl FnOnce(Option<BlockHeader>, Charters, Arc<dyn Admission>) -> Services,
    ) -> Result<SimulatedNode, NodeError> {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let config = NodeConfig {
            listen: nowhere,
            postgres: nowhere,
            http: nowhere,
            authentication: gateway::Authentication::default(),
            plain_http: gateway::PlainHttp::default(),
            tls_certificate: None,
            tls_key: None,
            connections_max: None,
            threads: 1,
            store: StoreKind::default(),
            memory_megabytes: None,
            history_heights: None,
            row_history_megabytes: Some(member.row_history_megabytes),
            payload_blocks: None,
            payload_days: None,
            client_transactions_per_second: None,
            query_memory_megabytes: None,
            query_disk_megabytes: None,
            column_memory_megabytes: None,
            log_filter: None,
            trace_endpoint: None,
            scrub_megabytes_per_second: Some(0),
            pipeline: member.pipeline,
            answer_at: AnswerAt::default(),
            join: if member.join_behind_blocks.is_some() { Join::Checkpoint } else { Join::Replay },
            join_behind_blocks: member.join_behind_blocks,
            oracles: Default::default(),
            schemas: None,
            kafka: None,
            database: None,
            holders: Vec::new(),
        };
        let options = NodeOptions {
            faults: Some(member.faults),
            disk: Some(member.disk),
            stores: member.stores,
            is_simulated: true,
            ..NodeOptions::default()
        };
        let whose = Member {
            folder: &member.folder,
            charter: &member.charter,
            node_key: member.node_key.clone(),
            config: &config,
            live: crate::live::Live::of(&config),
            options,
            clock: clock.clone(),
        };
        let join = |OrderingStart { last, charters, .. }, admission| Ok(join(last, charters, admission));
        let Core { parts, services, stages, recovered, attest, exchanging, holding, submitter, .. } =
            core::open(whose, join)?;
        let private = PrivateTurns::new(holding, member.session, submitter.clone(), clock.clone());
        let endorsing = endorsing(&parts, &submitter, member.node_key, member.organisation)?;
        let pipeline = Inline::new(stages, recovered, attest, exchanging, services.messages, clock)?;
        Ok(SimulatedNode { pipeline, parts, submitter, private, endorsing, stopped: None })
    }

    /// Heights that ordering is to give before what it has delivered.
    pub fn missing(&self, delivered: u64) -> Range<u64> {
        self.pipeline.missing(delivered)
    }

    /// Takes a final block: verifies and executes it, and says to the others what it came to.
    pub fn deliver(&mut self, delivery: Delivery) {
        if self.stopped.is_none() {
            self.stopped = self.pipeline.deliver(delivery).err().map(|error| error.to_string());
        }
    }

    /// Records what was executed, hears what the others say, hands out answers. To be called every few milliseconds of
    /// simulated time.
    pub fn turn(&mut self) {
        if self.stopped.is_none() {
            self.stopped = self.pipeline.turn().err().map(|error| error.to_string());
        }
        if self.stopped.is_none() {
            self.private.turn();
        }
        if let Some(Endorsing { aborted, .. }) = &self.endorsing {
            let recorded: Vec<Aborted> =
                aborted.lock().extract_if(.., |one| one.is_recorded(&self.submitter)).collect();
            recorded.into_iter().for_each(|one| one.tell(&self.submitter));
        }
    }

    /// Why the pipeline has ended: it is for an operator to start the node again.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Why clients are not served, if so.
    pub fn not_serving(&self) -> Option<String> {
        self.stopped.clone().or_else(|| self.parts.published.not_serving())
    }

    /// Submits transactions as the gateway does; replies come with [`SimulatedNode::turn`]. What is to be endorsed before it
    /// is ordered is endorsed by those that `ask` reaches.
    pub fn submit(
        &self,
        transactions: Vec<Bytes>,
        answer_at: AnswerAt,
        ask: Ask<'_>,
    ) -> mpsc::Receiver<SubmissionReply> {
        let (replies, receiver) = mpsc::channel(transactions.len().max(1));
        let submitted = (0..).zip(transactions);
        let submitted = submitted.map(|(position, bytes)| Submitted {
            position,
            bytes,
            answer_at,
            replies: replies.clone(),
        });
        let Some(endorsing) = &self.endorsing else {
            self.submitter.submit(submitted.collect());
            return receiver;
        };
        let (execution, library) = (self.parts.charters.newest().execution, self.parts.published.library());
        let (proposals, ready): (Vec<Submitted>, Vec<Submitted>) =
            submitted.partition(|one| is_proposal(execution, &library, &one.bytes));
        if !proposals.is_empty() {
            endorsing.endorse(proposals, &self.parts.charters, ask);
        }
        if !ready.is_empty() {
            self.submitter.submit(ready);
        }
        receiver
    }

    /// Submits a transaction in schemas with members as the gateway does that is given its parts; the reply comes with
    /// [`SimulatedNode::turn`], after this time at the latest once it is ordered.
    pub fn submit_parts(
        &self,
        submission: PartSubmission,
        answer_at: AnswerAt,
        within: Duration,
    ) -> mpsc::Receiver<SubmissionReply> {
        self.private.submit(submission, (answer_at, within), (&self.submitter, &self.parts.published))
    }

    /// The schemas that this node's organisation is a member of.
    pub fn schemas(&self) -> Vec<SchemaAtMember> {
        self.private.schemas()
    }

    /// How parts have ended here, in this order, without the first `before` of them.
    pub fn ended(&self, before: usize) -> Vec<EndedAtMember> {
        self.private.ended(before)
    }

    /// What this member attests of a block in a schema, if its parts did something there.
    pub fn schema_outcome(&self, schema: u32, height: u64) -> Option<SchemaOutcome> {
        self.private.outcome(schema, height)
    }

    /// Endorses what others propose, or says why not. `None`: on this ledger nothing is endorsed.
    pub fn propose(&self, request: ProposalRequest) -> Option<ProposalReply> {
        self.endorsing.as_ref().map(|endorsing| endorsing.gather.endorser.answer_at_once(request))
    }

    /// The rows of a query on the newest applied state, and its height.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub fn query(&self, sql: &str) -> Result<(u64, Vec<Vec<Value>>), SqlError> {
        let (library, snapshot) = self.parts.published.at_one_height();
        let prepared = sql::prepare(&library, sql, &[])?;
        let reader = sql::Reader {
            principal: types::Principal::new(0, ""),
            step_limit: QUERY_STEPS_MAX,
            timestamp_ms: 0,
            seed: TransactionId::default(),
            interrupt: Arc::default(),
            memory: None,
            scratch: None,
            fragments: None,
            row_locks: None,
        };
        // Nothing is applied meanwhile: it is one thread.
        let height = self.parts.published.applied_height();
        let results = prepared.query_as(&reader, &self.parts.published.with_past(snapshot), &[])?;
        Ok((height, results.into_iter().next_back().unwrap_or_default().rows))
    }

    /// The blocks on this node's disk.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.parts.ledger
    }

    /// Height and state digest of the newest recorded block.
    pub fn newest(&self) -> (u64, Digest) {
        self.parts.published.newest()
    }

    /// The outcomes of this node up to here are those of a quorum, as far as it knows.
    pub fn certified_height(&self) -> u64 {
        self.parts.published.certified().height()
    }

    /// The charters that this node's blocks have decided on, in force or not yet.
    pub fn charters(&self) -> Charters {
        self.parts.charters.all()
    }

    /// The last time that this node's outcomes differed from those of a quorum.
    pub fn reported(&self) -> Option<String> {
        self.parts.published.certified().reported()
    }

    /// Heights of the checkpoints on this node's disk, the newest first.
    pub fn checkpoints(&self) -> Vec<u64> {
        self.parts.checkpoints.newest()
    }
}

impl Endorsing {
    /// Has these endorsed and handed to ordering. The others answer at once, so nothing is left to wait for.
    fn endorse(&self, proposals: Vec<Submitted>, charters: &DecidedCharters, ask: Ask<'_>) {
        let (executed, aborted) = self.gather.execute(proposals);
        self.aborted.lock().extend(aborted);
        let Some(executed) = executed else { return };
        let turn = self.turn.fetch_add(1, Atomic::Relaxed);
        let others = Asked::at(executed.next_height(), charters, &self.own_key, turn, ask);
        let endorsed = self.gather.endorse(executed, &others).now_or_never();
        endorsed.expect("nobody is waited for who answers at once");
    }
}

/// What a node does for endorsements, under charters that ask for them.
fn endorsing(
    parts: &NodeParts,
    submitter: &Arc<Submitter>,
    key: SecretKey,
    organisation: u16,
) -> Result<Option<Endorsing>, NodeError> {
    let Some(states) = parts.states.clone() else { return Ok(None) };
    let (charters, verifier) = (parts.charters.clone(), parts.verifier.clone());
    let (own_key, pool) = (key.public_key(), core::threads("endorse", 1)?);
    let endorser = Endorser::new((organisation, key), charters, verifier, states, Sources::default(), pool);
    let gather = Gather {
        endorser: Arc::new(endorser),
        proposer: parts.proposer.clone(),
        submitter: submitter.clone(),
        metrics: parts.metrics.clone(),
        simulated_within: Duration::MAX,
    };
    Ok(Some(Endorsing { gather, own_key, turn: AtomicUsize::new(0), aborted: Mutex::default() }))
}

/// What a node would say that found other outcomes and roots: its attestations signed anew, certificates and headers changed.
/// `None` for what is no message about outcomes or roots.
pub fn retell(
    message: &[u8],
    key: &SecretKey,
    change: impl Fn(&mut OutcomeHeader),
    change_root: impl Fn(&mut CheckpointRoot),
) -> Option<Bytes> {
    let mut message = Message::from_bytes(message)?;
    match &mut message {
        Message::Attestations { attestations, .. } => {
            for attestation in attestations {
                let mut statement = attestation.statement.clone();
                change(&mut statement);
                *attestation = Attestation::sign(statement, attestation.organisation, key);
            }
        }
        Message::Roots { attestations, .. } => {
            for attestation in attestations {
                let mut statement = attestation.statement.clone();
                change_root(&mut statement);
                *attestation = Attestation::sign(statement, attestation.organisation, key);
            }
        }
        Message::RootCertificate(certificate) => change_root(&mut certificate.statement),
        Message::Certificate(certificate) => change(&mut certificate.statement),
        Message::Headers(headers) => headers.iter_mut().for_each(change),
        Message::Digest { .. } | Message::AskHeaders { .. } | Message::AskDigest { .. } => {}
    }
    message.to_bytes()
}
