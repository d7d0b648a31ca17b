//! Runs the nodes.

use super::attesting::Attesting;
use super::ledger::Ledger;
use super::{Scenario, charter, node_key};
use crate::bft::{self, Acknowledgements, Full, Parts, Shared, Sink};
use crate::mempool::Clock;
use crate::{Admission, Delivery, MempoolLimits};
use bytes::Bytes;
use commonware_consensus::simplex::mocks::conflicter;
use commonware_cryptography::{Sha256, ed25519::PublicKey};
use commonware_glue::simulate::engine::{ChannelPair, EngineDefinition, InitContext};
use commonware_glue::simulate::exit::ExitCondition;
use commonware_glue::simulate::plan::PlanBuilder;
use commonware_glue::simulate::processed::ProcessedHeight;
use commonware_glue::simulate::reporter::MonitorReporter;
use commonware_glue::simulate::tracker::ProgressTracker;
use commonware_runtime::{Clock as _, Handle, Quota, Spawner as _, Supervisor as _, deterministic::Context};
use crypto::{Digest, sha256};
use parking_lot::Mutex;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use types::Charter;

/// How often a node looks whether there is something to say about outcomes.
const ATTEST: Duration = Duration::from_millis(20);
/// After so long a client submits again what is not ordered yet.
const SUBMIT_AGAIN: Duration = Duration::from_secs(2);
/// More than any scenario needs, in simulated time.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Transaction number `n` of a run, as bytes.
type Transactions = Arc<dyn Fn(usize) -> Bytes + Send + Sync>;

/// A run to be.
#[derive(Clone)]
pub struct Simulation {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// What goes wrong.
    pub scenario: Scenario,
    /// The ledger's charter, one of [`charter`]'s: the nodes sign with [`node_key`].
    pub charter: Arc<Charter>,
    /// How many transactions the clients submit.
    pub transactions: usize,
    /// The clients submit over this time.
    pub duration: Duration,
    /// Meanwhile no node says what blocks came to, so that nothing is certified.
    pub silence: Range<Duration>,
    /// Makes the transaction with this number.
    pub transaction: Transactions,
}

/// A node of a [`Simulation`].
pub struct SimulatedNode {
    admission: Arc<dyn Admission>,
    sink: Box<dyn FnMut(Delivery) + Send>,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The same for two runs only if they were the same: every event, and every node's blocks.
    pub fingerprint: Digest,
    /// How far the nodes came.
    pub height: u64,
    /// How often a node was killed.
    pub crashes: u64,
    /// Up to which height blocks certify outcomes, and checkpoints.
    pub certified: (u64, u64),
}

impl SimulatedNode {
    /// A node that gives every final block once and in order to `sink`.
    pub fn new(admission: Arc<dyn Admission>, sink: impl FnMut(Delivery) + Send + 'static) -> SimulatedNode {
        SimulatedNode { admission, sink: Box::new(sink) }
    }
}

impl Simulation {
    /// Four members, 40 transactions within 6 seconds.
    pub fn new(seed: u64, scenario: Scenario) -> Simulation {
        let mut charter = charter(seed, 4);
        charter.block.idle_ms = 300;
        Simulation {
            seed,
            scenario,
            charter: Arc::new(charter),
            transactions: 40,
            duration: Duration::from_secs(6),
            silence: Duration::ZERO..Duration::ZERO,
            transaction: Arc::new(|number| Bytes::from(format!("transaction {number}"))),
        }
    }

    /// Runs until every node that follows the rules holds all transactions. Nodes that a scenario makes faulty are
    /// the first ones; their sinks hear nothing.
    ///
    /// # Errors
    /// Says which property was violated: that nodes hold the same blocks, without gaps, each with a good certificate,
    /// every transaction exactly once; or that they did not get there within ten minutes of simulated time.
    pub fn run(&self, nodes: Vec<SimulatedNode>) -> Result<Report, String> {
        assert_eq!(nodes.len(), self.charter.organisations.len(), "a node per organisation");
        let members = bft::members(&self.charter).map_err(|error| error.to_string())?;
        let network = Network {
            simulation: self.clone(),
            members: members.clone(),
            nodes: nodes
                .into_iter()
                .map(|SimulatedNode { admission, sink }| SimulatedState {
                    admission,
                    durable: Mutex::new(Durable { ledger: Ledger::new(&self.charter), sink }),
                })
                .collect(),
        };
        let network = Definition(Arc::new(network));
        let plan = PlanBuilder::new(network.clone())
            .seed(self.seed)
            .timeout(TIMEOUT)
            .exit_condition(network.clone());
        let results = self.scenario.apply(plan, &members).run();
        let durable: Vec<_> = network.0.honest().map(|node| node.durable.lock()).collect();
        Ledger::check_agreement(durable.iter().map(|durable| &durable.ledger))?;
        let results = results?;
        let result = results.first().ok_or("the simulation ended without a result")?;
        let mut events = result.state.clone().into_bytes();
        for digest in durable.iter().flat_map(|durable| &durable.ledger.digests) {
            events.extend_from_slice(&digest.0);
        }
        let height = durable.iter().map(|durable| durable.ledger.height()).max().unwrap_or(0);
        let certified = |of: fn(&Ledger) -> u64| durable.iter().map(|durable| of(&durable.ledger)).max();
        let certified = (certified(|ledger| ledger.certified), certified(|ledger| ledger.checkpoint));
        let certified = (certified.0.unwrap_or(0), certified.1.unwrap_or(0));
        Ok(Report { fingerprint: sha256(&[&events]), height, crashes: result.crashes, certified })
    }

    /// The node that gets transaction `number`, and when: one that follows the rules.
    fn injection(&self, number: usize) -> (usize, Duration) {
        let chance = sha256(&[b"injection", &self.seed.to_le_bytes(), &(number as u64).to_le_bytes()]).0;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| chance[at + byte]));
        let (faulty, members) = (self.scenario.faulty(), self.charter.organisations.len());
        let node = faulty + word(0) as usize % (members - faulty);
        (node, Duration::from_millis(word(8) % self.duration.as_millis().max(1) as u64))
    }
}

struct Network {
    simulation: Simulation,
    members: Vec<PublicKey>,
    nodes: Vec<SimulatedState>,
}

struct SimulatedState {
    admission: Arc<dyn Admission>,
    durable: Mutex<Durable>,
}

/// What survives a crash.
struct Durable {
    ledger: Ledger,
    sink: Box<dyn FnMut(Delivery) + Send>,
}

impl Network {
    fn honest(&self) -> impl Iterator<Item = &SimulatedState> {
        self.nodes.iter().skip(self.simulation.scenario.faulty())
    }

    /// Every node that follows the rules holds every transaction, or something went wrong already.
    fn is_complete(&self) -> bool {
        self.honest().all(|node| {
            let ledger = &node.durable.lock().ledger;
            ledger.violation.is_some() || ledger.transactions.len() >= self.simulation.transactions
        })
    }
}

#[derive(Clone)]
struct Definition(Arc<Network>);

/// Gives blocks to a node's ledger, and the new ones to its sink.
struct LedgerSink {
    network: Definition,
    index: usize,
    acknowledgements: Arc<Acknowledgements>,
}

impl Sink for LedgerSink {
    fn offer(&mut self, delivery: Delivery) -> Result<(), Full> {
        let height = delivery.block.header.height;
        let mut durable = self.network.0.nodes[self.index].durable.lock();
        let Durable { ledger, sink } = &mut *durable;
        if ledger.take(&delivery) {
            sink(delivery);
        }
        self.acknowledgements.durable(height);
        Ok(())
    }
}

struct State {
    network: Definition,
    index: usize,
}

impl ProcessedHeight for State {
    async fn processed_height(&self) -> u64 {
        self.network.0.nodes[self.index].durable.lock().ledger.height()
    }
}

impl ExitCondition<PublicKey, State> for Definition {
    fn name(&self) -> &str {
        "every node holds every transaction"
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
        Box::pin(async { Ok(self.0.is_complete()) })
    }
}

impl EngineDefinition for Definition {
    type PublicKey = PublicKey;
    type Engine = Handle<()>;
    type State = State;

    fn participants(&self) -> Vec<PublicKey> {
        self.0.members.clone()
    }

    fn channels(&self) -> Vec<(u64, Quota)> {
        bft::channel::quotas().collect()
    }

    fn max_message_size(&self) -> u32 {
        bft::max_message_size(&self.0.simulation.charter)
    }

    async fn init(&self, init: InitContext<'_, PublicKey>) -> (Handle<()>, State) {
        let InitContext { context, index, public_key, oracle, channels, monitor, .. } = init;
        let (blocker, peers) = (oracle.control(public_key.clone()), oracle.manager());
        let (network, public_key) = (self.clone(), public_key.clone());
        // Everything runs below one task, so that a crash ends everything.
        let handle = if index < self.0.simulation.scenario.faulty() {
            context.spawn(move |context| network.conflict(context, index, channels))
        } else {
            let wrap = move |reporter| MonitorReporter::new(public_key, monitor, reporter);
            context.spawn(move |context| async move {
                let (shared, acknowledgements, start) = network.prepare(&context, index);
                let scheme = bft::signer(&shared, &node_key(index)).expect("the charter holds this key");
                let Ok(channels) = channels.try_into() else { unreachable!("as many channels as quotas") };
                let sink = LedgerSink {
                    network: network.clone(),
                    index,
                    acknowledgements: acknowledgements.clone(),
                };
                let parts = Parts {
                    shared: shared.clone(),
                    scheme,
                    blocker,
                    peers,
                    channels,
                    acknowledgements,
                    start,
                };
                let prefix = format!("node{index}");
                let member = bft::start_member(context.child("member"), &prefix, parts, sink, wrap).await;
                let (attesting, said) = (network.clone(), shared.clone());
                context
                    .child("attesting")
                    .spawn(move |context| async move { attesting.attest(context, index, said).await });
                let client = context.child("client");
                client.spawn(move |context| network.submit(context, index, shared));
                // Ends with the crash of the node only.
                let _ = member.consensus.await;
            })
        };
        (handle, State { network: self.clone(), index })
    }

    fn start(engine: Handle<()>) -> Handle<()> {
        engine
    }
}

impl Definition {
    fn prepare(&self, context: &Context, index: usize) -> (Arc<Shared>, Arc<Acknowledgements>, u64) {
        let time = context.child("clock");
        let clock: Clock = Arc::new(move || time.current().duration_since(UNIX_EPOCH).unwrap_or_default());
        let node = &self.0.nodes[index];
        let (charter, limits) = (&self.0.simulation.charter, MempoolLimits::default());
        let shared = bft::shared(charter, index, limits, node.admission.clone(), clock);
        let start = node.durable.lock().ledger.height();
        (shared, Arc::new(Acknowledgements::default()), start)
    }

    /// One node's part in the agreement on outcomes.
    async fn attest(self, context: Context, index: usize, shared: Arc<Shared>) {
        let mut attesting = Attesting::default();
        loop {
            context.sleep(ATTEST).await;
            if !self.0.simulation.silence.contains(&(shared.clock)()) {
                attesting.work(&shared, &self.0.nodes[index].durable.lock().ledger.outcomes);
            }
        }
    }

    /// The clients of one node: each submits at its time, and again while its transaction is not in this node's
    /// ledger. After a crash of the node they begin again.
    async fn submit(self, context: Context, index: usize, shared: Arc<Shared>) {
        let simulation = &self.0.simulation;
        let mine = |number: &usize| simulation.injection(*number).0 == index;
        let mut waiting: Vec<(Duration, Bytes)> = (0..simulation.transactions)
            .filter(mine)
            .map(|number| (simulation.injection(number).1, (simulation.transaction)(number)))
            .collect();
        while !waiting.is_empty() {
            waiting.sort_by_key(|(due, _)| *due);
            let now = (shared.clock)();
            context.sleep(waiting[0].0.saturating_sub(now)).await;
            let now = (shared.clock)();
            let ordered = |bytes: &Bytes| {
                self.0.nodes[index].durable.lock().ledger.transactions.contains(&sha256(&[bytes]))
            };
            waiting.retain(|(_, bytes)| !ordered(bytes));
            for (due, bytes) in waiting.iter_mut().filter(|(due, _)| *due <= now) {
                // What finds no room comes again.
                let _ = shared.mempool.submit(&*shared.admission, vec![bytes.clone()]);
                *due = now + SUBMIT_AGAIN;
            }
        }
    }

    /// A member that signs two contradicting votes for every vote it hears.
    async fn conflict(self, context: Context, index: usize, mut channels: Vec<ChannelPair<PublicKey>>) {
        let (shared, ..) = self.prepare(&context, index);
        let scheme = bft::signer(&shared, &node_key(index)).expect("the charter holds this key");
        let votes = channels.remove(0);
        let config = conflicter::Config { scheme };
        let adversary = conflicter::Conflicter::<_, _, Sha256>::new(context.child("conflicter"), config);
        // The other channels stay open, and silent.
        let _ = adversary.start(votes).await;
        drop(channels);
    }
}
