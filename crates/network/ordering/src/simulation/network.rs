//! Runs a network: members wired as over TCP, on the deterministic runtime, each with a process beside it that takes final
//! blocks, as a node's pipeline does.

use super::adversary::Adversary;
use super::machines::{Contents, Machines};
use super::service::{SimulatedBft, SimulatedService};
use super::wire::{End, Place, ends};
use super::{Scenario, node_key};
use crate::bft::{self, Acknowledgements, Forgetting, Parts, Shared};
use crate::members::{Peers, committee};
use crate::mempool::Clock;
use crate::raft;
use crate::sink::ChannelSink;
use crate::{Admission, Delivery, MempoolLimits, Services};
use commonware_consensus::types::{Epoch, Height, Round, View};
use commonware_cryptography::ed25519::PublicKey;
use commonware_glue::simulate::action::{Action, Crash, Schedule};
use commonware_glue::simulate::engine::{EngineDefinition, InitContext};
use commonware_glue::simulate::exit::ExitCondition;
use commonware_glue::simulate::plan::PlanBuilder;
use commonware_glue::simulate::processed::ProcessedHeight;
use commonware_glue::simulate::reporter::MonitorReporter;
use commonware_glue::simulate::tracker::{FinalizationUpdate, ProgressTracker};
use commonware_p2p::simulated::Link;
use commonware_runtime::{
    Clock as _, Handle, Quota, Spawner as _, Storage as _, Supervisor as _, deterministic::Context,
};
use commonware_utils::{NZU64, Probability};
use crypto::{Digest, sha256};
use parking_lot::Mutex;
use std::future::Future;
use std::num::NonZeroU64;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::mpsc;
use types::{BlockHeader, Charter, Charters};

/// The longest pause between two turns of a process.
const TURN_MS: u64 = 12;
/// The pause where the network is measured.
const MEASURED_TURN: Duration = Duration::from_millis(1);
/// Channels of BFT ordering: of votes, of certificates of views, of proposed blocks.
const VOTES: usize = 0;
const CERTIFICATES: usize = 1;
const PROPOSED_BLOCKS: usize = 4;
/// Blocks of a node that prunes, or entries of a Raft log, which share files: few, so that runs are short.
const BLOCKS_PER_FILE: NonZeroU64 = NZU64!(16);
/// A channel that no member listens on.
const NOBODYS: u64 = 99;
/// How often clients get their turn.
const CLIENTS: Duration = Duration::from_millis(5);

/// Gives a process that starts its services: with ordering above which block, with which charters known up to there, and what
/// ordering must know about transactions.
pub type Join<'a> = &'a mut dyn FnMut(Option<BlockHeader>, Charters, Arc<dyn Admission>) -> Services;

/// What runs beside ordering: the rest of each node, and the clients. Everything is called on one thread.
pub trait Process: Send + Sync + 'static {
    /// Node number `node` starts, for the first time, after it was killed, or instead of being killed. It calls `join`
    /// once.
    fn start(&self, node: usize, clock: Arc<dyn Fn() -> Duration + Send + Sync>, join: Join<'_>);

    /// Heights that the node needs before it takes a block of height `delivered`.
    fn missing(&self, _node: usize, _delivered: u64) -> Range<u64> {
        0..0
    }

    /// Whether the node prunes, as it starts: the first height whose payload it has. By default it keeps everything.
    fn keeps_from(&self, _node: usize) -> Option<u64> {
        None
    }

    /// Whether [`Process::stored`] is wanted.
    fn measures_storage(&self) -> bool {
        false
    }

    /// So many bytes of blocks and what proves them are in the files of the node's ordering, which starts and has none of them open.
    fn stored(&self, _node: usize, _bytes: u64) {}

    /// A final block for the node, at least once, in height order.
    fn deliver(&self, node: usize, delivery: Delivery);

    /// A few milliseconds have passed at the node.
    fn turn(&self, node: usize);

    /// The node is killed; nothing of it is called until it starts again.
    fn crash(&self, node: usize);

    /// A few milliseconds have passed at the clients.
    fn clients(&self, _now: Duration) {}

    /// The height up to which the node has recorded blocks.
    fn height(&self, node: usize) -> u64;

    /// Whether the run may end, well or not.
    fn is_done(&self) -> bool;
}

/// How messages fare on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkQuality {
    /// How long a message takes on average.
    pub latency_ms: u16,
    /// How much that differs.
    pub jitter_ms: u16,
    /// Of a hundred messages so many arrive.
    pub arrive_percent: u8,
}

impl LinkQuality {
    /// 10 ms, and nothing is lost.
    pub const GOOD: LinkQuality = LinkQuality { latency_ms: 10, jitter_ms: 2, arrive_percent: 100 };
    /// Nothing arrives.
    pub const DEAD: LinkQuality = LinkQuality { latency_ms: 10, jitter_ms: 2, arrive_percent: 0 };

    pub(super) fn link(self) -> Link {
        Link {
            latency: Duration::from_millis(self.latency_ms.into()),
            jitter: Duration::from_millis(self.jitter_ms.into()),
            success_rate: Probability::new(self.arrive_percent.min(100).into(), 100)
                .expect("a share of a hundred"),
        }
    }
}

/// What happens to a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A node is killed.
    Crash(usize),
    /// A node starts again.
    Restart(usize),
    /// A link from one node to another changes.
    Link(usize, usize, LinkQuality),
    /// All links are these.
    Links(LinkQuality),
}

/// A network to be run.
#[derive(Clone)]
pub struct Network {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// The founding charter, one of [`charter`](super::charter)'s.
    pub charter: Arc<Charter>,
    /// How many nodes there are, members or not: each signs with its [`node_key`].
    pub nodes: usize,
    /// Links at the beginning.
    pub links: LinkQuality,
    /// What happens when, in the order of time.
    pub events: Vec<(Duration, Event)>,
    /// Something that happens over and over.
    pub scenario: Option<Scenario>,
    /// Members that send what they like instead of running a node.
    pub adversaries: Vec<(usize, Adversary)>,
    /// Members whose proposed blocks reach nobody.
    pub withholding: Vec<usize>,
    /// Members take the certificates in one another's blocks on trust.
    pub trusts_certificates: bool,
    /// A node that takes so long for a block; others take none.
    pub slow: Option<(usize, Duration)>,
    /// It ends with an error after so long.
    pub timeout: Duration,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// The same for two runs only if every event was.
    pub fingerprint: Digest,
    /// How often a node was killed.
    pub crashes: u64,
}

impl Network {
    /// Runs until the process is done.
    ///
    /// # Errors
    /// It did not get there in time.
    pub fn run(&self, process: Arc<dyn Process>) -> Result<Ran, String> {
        let running = Running::new(self, process, None);
        let members = running.0.members.clone();
        let plan = PlanBuilder::new(running.clone())
            .seed(self.seed)
            .timeout(self.timeout)
            .link(self.links.link())
            .exit_condition(running);
        let plan = match self.schedule(&members) {
            Some(schedule) => plan.crash(Crash::Schedule(schedule)),
            None => plan,
        };
        let plan = match self.scenario {
            Some(scenario) => scenario.apply(plan, &members),
            None => plan,
        };
        let results = plan.run()?;
        let result = results.first().ok_or("the simulation ended without a result")?;
        Ok(Ran { fingerprint: sha256(&[result.state.as_bytes()]), crashes: result.crashes })
    }

    fn schedule(&self, members: &[PublicKey]) -> Option<Schedule<PublicKey>> {
        let action = |event: &Event| match *event {
            Event::Crash(node) => Action::Crash(members[node].clone()),
            Event::Restart(node) => Action::Restart(members[node].clone()),
            Event::Link(from, to, quality) => {
                let (from, to) = (members[from].clone(), members[to].clone());
                Action::UpdateLink { from, to, link: quality.link() }
            }
            Event::Links(quality) => Action::Heal(quality.link()),
        };
        let events: Vec<_> = self.events.iter().map(|(time, event)| (*time, action(event))).collect();
        (!events.is_empty()).then_some(Schedule { events })
    }
}

struct RunState {
    network: Network,
    members: Arc<Vec<PublicKey>>,
    process: Arc<dyn Process>,
    /// Where it is measured.
    machines: Option<Arc<Machines>>,
    starts: AtomicU64,
    /// Which start of all is each node's last.
    newest: Vec<AtomicU64>,
}

#[derive(Clone)]
pub(super) struct Running(Arc<RunState>);

pub(super) struct State {
    running: Running,
    index: usize,
}

impl ProcessedHeight for State {
    async fn processed_height(&self) -> u64 {
        self.running.0.process.height(self.index)
    }
}

impl ExitCondition<PublicKey, State> for Running {
    fn name(&self) -> &str {
        "the process is done"
    }

    fn requires_polling(&self) -> bool {
        true
    }

    fn reached<'a>(
        &'a self,
        _: &'a ProgressTracker<PublicKey>,
        _: &'a [&'a State],
        _: usize,
    ) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>> {
        Box::pin(async { Ok(self.0.process.is_done()) })
    }
}

impl EngineDefinition for Running {
    type PublicKey = PublicKey;
    type Engine = Handle<()>;
    type State = State;

    fn participants(&self) -> Vec<PublicKey> {
        self.0.members.to_vec()
    }

    fn channels(&self) -> Vec<(u64, Quota)> {
        if self.is_raft() {
            return raft::channel::quotas().to_vec();
        }
        let mut channels: Vec<_> = bft::channel::quotas().to_vec();
        // One more, for what is to reach nobody.
        channels.extend(channels.get(PROPOSED_BLOCKS).map(|(_, quota)| (NOBODYS, *quota)));
        channels
    }

    fn max_message_size(&self) -> u32 {
        bft::max_message_size().max(raft::max_message_size())
    }

    async fn init(&self, init: InitContext<'_, PublicKey>) -> (Handle<()>, State) {
        let InitContext { context, index, public_key, oracle, channels, monitor, .. } = init;
        let place = self.0.machines.clone().map(|machines| {
            let place = Place { machines, node: index, keys: self.0.members.clone() };
            (place, if self.is_raft() { raft_holds } else { bft_holds })
        });
        let mut channels = ends(&context, channels, place);
        let nobodys = if self.is_raft() { None } else { channels.pop() };
        if let Some(nobodys) = nobodys
            && self.0.network.withholding.contains(&index)
        {
            channels[PROPOSED_BLOCKS] = nobodys;
        }
        let (blocker, peers) = (oracle.control(public_key.clone()), oracle.manager());
        let (running, public_key) = (self.clone(), public_key.clone());
        let starts = self.0.starts.fetch_add(1, Atomic::Relaxed);
        if starts == 0 {
            // Not below a node, so that they outlive it.
            let clients = self.clone();
            context.child("clients").spawn(move |context| clients.clients(context));
        }
        let adversaries = &self.0.network.adversaries;
        let adversary = adversaries.iter().find(|(node, _)| *node == index).map(|(_, adversary)| *adversary);
        // Everything runs below one task, so that a crash ends everything.
        let handle = match adversary {
            Some(adversary) => context.spawn(move |context| async move {
                let charters = Charters::new(running.0.network.charter.clone());
                let (shared, _) = running.share(&context, index, charters, Arc::new(super::AnyBytes));
                adversary.run(context, running.0.network.seed, shared, channels).await;
            }),
            None if self.is_raft() => context.spawn(move |context| async move {
                let killed = Killed { running: running.clone(), index, starts };
                running.0.newest[index].store(starts, Atomic::Relaxed);
                running.clone().run_raft(&context, (index, starts), (public_key, monitor), channels).await;
                drop(killed);
            }),
            None => {
                let wrap = move |reporter| MonitorReporter::new(public_key, monitor, reporter);
                context.spawn(move |context| async move {
                    let killed = Killed { running: running.clone(), index, starts };
                    running.0.newest[index].store(starts, Atomic::Relaxed);
                    running.measure_storage(&context, index).await;
                    let Some(Joined { shared, acknowledgements, start, sink, ordering }) =
                        running.join_bft(&context, index)
                    else {
                        return;
                    };
                    let forgetting = ordering.forgetting.clone();
                    let Ok(channels) = channels.try_into() else {
                        unreachable!("as many channels as quotas")
                    };
                    let tracked = Box::new(AllAreLinked);
                    let parts = Parts {
                        shared,
                        blocker,
                        peers,
                        tracked,
                        channels,
                        acknowledgements,
                        start,
                        forgetting,
                    };
                    let prefix = format!("node{index}");
                    let member = bft::start_member(context.child("member"), &prefix, parts, sink, wrap).await;
                    let service = SimulatedService::Bft(ordering, member.marshal);
                    running.drive(&context, (index, starts), service, |_| {}).await;
                    drop(killed);
                })
            }
        };
        (handle, State { running: self.clone(), index })
    }

    fn start(engine: Handle<()>) -> Handle<()> {
        engine
    }
}

/// The simulated network links all nodes from the beginning.
struct AllAreLinked;

impl Peers for AllAreLinked {
    fn track(&mut self, _: &Charters, _: u64) {}
}

/// What a process has joined.
struct Joined {
    shared: Arc<Shared>,
    acknowledgements: Arc<Acknowledgements>,
    start: u64,
    sink: ChannelSink,
    ordering: Arc<SimulatedBft>,
}

/// How long a process pauses: nodes are not equally fast, nor always.
struct Pace {
    seed: u64,
    start: u64,
    turns: u64,
    /// Measured nodes are equally fast.
    measured: bool,
}

impl Pace {
    fn next(&mut self) -> Duration {
        if self.measured {
            return MEASURED_TURN;
        }
        self.turns += 1;
        let chance =
            sha256(&[&self.seed.to_le_bytes(), &self.start.to_le_bytes(), &(self.turns / 16).to_le_bytes()]);
        let byte = chance.0[(self.turns % 16) as usize];
        Duration::from_millis(1 + u64::from(byte) % TURN_MS)
    }
}

/// Tells the process that its node is killed, whenever that is.
struct Killed {
    running: Running,
    index: usize,
    starts: u64,
}

impl Drop for Killed {
    fn drop(&mut self) {
        // A node that is started again while it runs may be told to end only then.
        if self.running.0.newest[self.index].load(Atomic::Relaxed) == self.starts {
            self.running.0.process.crash(self.index);
        }
    }
}

/// Votes are signed; a certificate has a quorum's signatures. What else is signed the process verifies.
fn bft_holds(channel: usize, members: usize) -> Contents {
    let quorum = members - (members - 1) / 3;
    match channel {
        VOTES => Contents { signatures: 1, block: false },
        CERTIFICATES => Contents { signatures: quorum, block: false },
        // It carries a certificate of an outcome.
        PROPOSED_BLOCKS => Contents { signatures: quorum, block: true },
        _ => Contents::default(),
    }
}

/// Every message may bring a block.
fn raft_holds(channel: usize, _: usize) -> Contents {
    Contents { signatures: 0, block: channel == 0 }
}

impl Running {
    pub(super) fn new(
        network: &Network,
        process: Arc<dyn Process>,
        machines: Option<Arc<Machines>>,
    ) -> Running {
        let key = |index| {
            committee::public_key(&node_key(index).public_key()).expect("a secret key has a public key")
        };
        let members: Vec<PublicKey> = (0..network.nodes).map(key).collect();
        let newest = members.iter().map(|_| AtomicU64::new(0)).collect();
        let (network, members) = (network.clone(), Arc::new(members));
        Running(Arc::new(RunState { network, members, process, machines, starts: AtomicU64::new(0), newest }))
    }

    fn clock(&self, context: &Context) -> Clock {
        let time = context.child("clock");
        Arc::new(move || time.current().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn share(
        &self,
        context: &Context,
        index: usize,
        charters: Charters,
        admission: Arc<dyn Admission>,
    ) -> (Arc<Shared>, Arc<Acknowledgements>) {
        let (key, limits) = (node_key(index), MempoolLimits::default());
        let mut shared = bft::shared(charters, &key, limits, admission, self.clock(context));
        if let Some(shared) = Arc::get_mut(&mut shared) {
            shared.checks_certificates = !self.0.network.trusts_certificates;
        }
        (shared, Arc::new(Acknowledgements::default()))
    }

    fn is_raft(&self) -> bool {
        self.0.network.charter.ordering == "raft"
    }

    /// A node of a Raft group, until it is killed.
    async fn run_raft(
        self,
        context: &Context,
        (index, starts): (usize, u64),
        (key, monitor): (PublicKey, mpsc::UnboundedSender<FinalizationUpdate<PublicKey>>),
        channels: AllChannels,
    ) {
        self.measure_storage(context, index).await;
        let mut joined = None;
        let join: Join<'_> = &mut |last, charters, admission| {
            let (key, limits, clock) = (node_key(index), MempoolLimits::default(), self.clock(context));
            let clocks = [clock.clone(), clock];
            let shared = raft::Shared::new(charters, &key, limits, clocks, admission, last.as_ref());
            let (sink, deliveries) = ChannelSink::new(bft::memory::PENDING_BLOCKS.get());
            let (raft, requests) = raft::Raft::new(shared.clone(), deliveries);
            let raft = Arc::new(raft);
            joined = Some((shared, last, sink, requests, raft.clone()));
            raft.services()
        };
        self.0.process.start(index, self.clock(context), join);
        let Some((shared, last, sink, requests, raft)) = joined else { return };
        let Ok(channels) = channels.try_into() else { unreachable!("as many channels as quotas") };
        let (tracked, joined, entries_per_file) = (Box::new(AllAreLinked), false, BLOCKS_PER_FILE);
        let parts = raft::Parts {
            shared,
            tracked,
            channels,
            last,
            joined,
            keeps_from: self.0.process.keeps_from(index),
            entries_per_file,
            requests,
        };
        let member = raft::start_member(context.child("member"), &format!("node{index}"), parts, sink).await;
        let member = member.unwrap_or_else(|failed| panic!("node {index} does not start: {failed}"));
        let delivered = move |delivery: &Delivery| {
            let header = &delivery.block.header;
            let _ = monitor.send(FinalizationUpdate {
                pk: key.clone(),
                round: Round::new(Epoch::zero(), View::new(header.height)),
                height: Height::new(header.height),
                block_digest: header.digest().0.to_vec(),
            });
        };
        commonware_macros::select! {
            ended = member => if let Ok(reason) = ended {
                panic!("node {index} ended: {reason}");
            },
            _ = self.drive(context, (index, starts), SimulatedService::Raft(raft), delivered) => {},
        }
    }

    /// Starts the process of a node; nothing where that did not join ordering.
    fn join_bft(&self, context: &Context, index: usize) -> Option<Joined> {
        let mut joined = None;
        let join: Join<'_> = &mut |last, charters, admission| {
            let start = last.map_or(0, |last| last.height);
            let (shared, acknowledgements) = self.share(context, index, charters, admission);
            let (sink, deliveries) = ChannelSink::new(bft::memory::PENDING_BLOCKS.get());
            let keeps = |from| Arc::new(Forgetting::new(from, BLOCKS_PER_FILE));
            let ordering = Arc::new(SimulatedBft {
                shared: shared.clone(),
                acknowledgements: acknowledgements.clone(),
                deliveries,
                floor: Mutex::default(),
                forgetting: self.0.process.keeps_from(index).map(keeps),
                forgotten: Mutex::default(),
            });
            let services = shared.members.with(ordering.clone());
            joined = Some(Joined { shared, acknowledgements, start, sink, ordering });
            services
        };
        self.0.process.start(index, self.clock(context), join);
        joined
    }

    /// The rest of the node, until it is killed.
    async fn drive(
        self,
        context: &Context,
        (index, start): (usize, u64),
        service: SimulatedService,
        delivered: impl Fn(&Delivery),
    ) {
        let mut pace =
            Pace { seed: self.0.network.seed, start, turns: 0, measured: self.0.machines.is_some() };
        let process = &self.0.process;
        let slow = self.0.network.slow.filter(|(node, _)| *node == index);
        let (block_time, mut busy_until) = (slow.map_or(Duration::ZERO, |(_, time)| time), UNIX_EPOCH);
        loop {
            context.sleep(pace.next()).await;
            service.skip();
            while context.current() >= busy_until
                && let Ok(delivery) = service.deliveries().try_recv()
            {
                busy_until = context.current() + block_time;
                for height in process.missing(index, delivery.block.header.height) {
                    let Some(missing) = service.read(height).await else { break };
                    process.deliver(index, missing);
                    busy_until += block_time;
                }
                delivered(&delivery);
                process.deliver(index, delivery);
            }
            process.turn(index);
        }
    }

    /// Measures a node's files of blocks and what proves them, where that is wanted.
    async fn measure_storage(&self, context: &Context, index: usize) {
        if !self.0.process.measures_storage() {
            return;
        }
        let prefix = format!("node{index}");
        let mut bytes = 0;
        let partitions = if self.is_raft() { raft::partitions(&prefix) } else { bft::partitions(&prefix) };
        for partition in partitions {
            for file in context.scan(&partition).await.unwrap_or_default() {
                let opened = context.open(&partition, &file).await;
                bytes += opened.map_or(0, |(_, size)| size);
            }
        }
        self.0.process.stored(index, bytes);
    }

    async fn clients(self, context: Context) {
        loop {
            context.sleep(CLIENTS).await;
            let now = context.current().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.0.process.clients(now);
        }
    }
}

/// A member's end of all channels.
pub(super) type AllChannels = Vec<End>;
