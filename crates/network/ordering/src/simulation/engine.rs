//! Runs ordering alone: each node has a ledger of blocks, and makes up what they came to.

use super::adversary::Adversary;
use super::attesting::Attesting;
use super::ledger::Ledger;
use super::network::{Event, Join, LinkQuality, Network, Process};
use super::{Scenario, charter, node_key};
use crate::{Admission, Delivery, Services};
use bytes::Bytes;
use crypto::{Digest, sha256};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use types::{AmendedCharter, Charter, CharterChange, CharterError, Governance};

/// How often a node looks whether there is something to say about outcomes.
const ATTEST: Duration = Duration::from_millis(20);
/// After so long a client submits again what is not ordered yet.
const SUBMIT_AGAIN: Duration = Duration::from_secs(2);
/// A run goes on for so many blocks under the last charter.
const SETTLED_BLOCKS: u64 = 8;
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
    /// What happens to nodes and links beside that, in the order of time. Only with scenarios that have no times of their own.
    pub events: Vec<(Duration, Event)>,
    /// The ledger's charter, one of [`charter`]'s: the nodes sign with [`node_key`].
    pub charter: Arc<Charter>,
    /// What members agree on, and at which heights: made into amendments one after the other. Nodes beyond the founding
    /// members sign with the next of [`node_key`], whether as new members or as old ones with new keys.
    pub changes: Vec<(u64, CharterChange)>,
    /// How many transactions the clients submit.
    pub transactions: usize,
    /// The clients submit over this time.
    pub duration: Duration,
    /// Meanwhile no node says what blocks came to, so that nothing is certified.
    pub silence: Range<Duration>,
    /// Makes the transaction with this number.
    pub transaction: Transactions,
    /// So many of the newest blocks every node keeps, and forgets the others; all of them where nothing is said.
    pub keeps: Option<u64>,
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
            events: Vec::new(),
            charter: Arc::new(charter),
            changes: Vec::new(),
            transactions: 40,
            duration: Duration::from_secs(6),
            silence: Duration::ZERO..Duration::ZERO,
            transaction: Arc::new(|number| Bytes::from(format!("transaction {number}"))),
            keeps: None,
        }
    }

    /// Runs until every node that follows the rules and is a member in the end holds all transactions, and the last
    /// change is in force. Nodes that a scenario makes faulty are the first ones; their sinks hear nothing.
    ///
    /// # Errors
    /// Says which property was violated: that nodes hold the same blocks, without gaps, each with a good certificate,
    /// every transaction exactly once; or that they did not get there within ten minutes of simulated time.
    pub fn run(&self, nodes: Vec<SimulatedNode>) -> Result<Report, String> {
        let amendments = self.amendments().map_err(|error| error.to_string())?;
        let last = amendments.last().map(|(_, amended)| amended);
        let in_the_end = last.map_or(&*self.charter, |amended| &amended.charter);
        let is_member =
            |charter: &Charter, node: usize| charter.member(&node_key(node).public_key()).is_some();
        let faulty = self.scenario.faulty();
        let ends: Vec<usize> = (faulty..nodes.len()).filter(|node| is_member(in_the_end, *node)).collect();
        let stays = ends.iter().copied().filter(|node| is_member(&self.charter, *node)).collect();
        let height = last.map_or(0, |amended| amended.effective_height + SETTLED_BLOCKS);
        let node = |SimulatedNode { admission, sink }| {
            let durable = Durable { ledger: Ledger::new(&self.charter, amendments.clone()), sink };
            SimulatedState { admission, durable: Mutex::new(durable), running: Mutex::new(None) }
        };
        let nodes: Vec<SimulatedState> = nodes.into_iter().map(node).collect();
        let network = Network {
            seed: self.seed,
            charter: self.charter.clone(),
            nodes: nodes.len(),
            links: LinkQuality::GOOD,
            events: self.events.clone(),
            scenario: Some(self.scenario),
            adversaries: (0..faulty).map(|node| (node, Adversary::ConflictingVotes)).collect(),
            withholding: Vec::new(),
            trusts_certificates: false,
            slow: None,
            timeout: TIMEOUT,
        };
        let states = Arc::new(Nodes { simulation: self.clone(), nodes, stays, ends, height });
        let ran = network.run(states.clone());
        let durable: Vec<_> = states.honest().map(|node| node.durable.lock()).collect();
        Ledger::check_agreement(durable.iter().map(|durable| &durable.ledger))?;
        let ran = ran?;
        let mut events = ran.fingerprint.0.to_vec();
        for digest in durable.iter().flat_map(|durable| &durable.ledger.digests) {
            events.extend_from_slice(&digest.0);
        }
        let height = durable.iter().map(|durable| durable.ledger.height()).max().unwrap_or(0);
        let certified = |of: fn(&Ledger) -> u64| durable.iter().map(|durable| of(&durable.ledger)).max();
        let certified = (certified(|ledger| ledger.certified), certified(|ledger| ledger.checkpoint));
        let certified = (certified.0.unwrap_or(0), certified.1.unwrap_or(0));
        Ok(Report { fingerprint: sha256(&[&events]), height, crashes: ran.crashes, certified })
    }

    /// The changes as amendments.
    fn amendments(&self) -> Result<Vec<(u64, AmendedCharter)>, CharterError> {
        let mut governance = Governance::founded(self.charter.clone());
        let mut amendments = Vec::new();
        for (height, change) in &self.changes {
            let newest = governance.newest_charter().unwrap_or(&self.charter).amended(change)?;
            governance.amend(newest, *height);
            amendments.extend(governance.amendments.last().map(|amended| (*height, (**amended).clone())));
        }
        Ok(amendments)
    }

    /// Which of these nodes gets transaction `number`, and when.
    fn injection(&self, number: usize, nodes: &[usize]) -> (usize, Duration) {
        let chance = sha256(&[b"injection", &self.seed.to_le_bytes(), &(number as u64).to_le_bytes()]).0;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| chance[at + byte]));
        let node = nodes[word(0) as usize % nodes.len()];
        (node, Duration::from_millis(word(8) % self.duration.as_millis().max(1) as u64))
    }
}

struct Nodes {
    simulation: Simulation,
    nodes: Vec<SimulatedState>,
    /// Those that follow the rules and are members all the time.
    stays: Vec<usize>,
    /// Those that follow the rules and are members in the end.
    ends: Vec<usize>,
    /// They must all get there.
    height: u64,
}

struct SimulatedState {
    admission: Arc<dyn Admission>,
    durable: Mutex<Durable>,
    running: Mutex<Option<RunningNode>>,
}

/// What survives a crash.
struct Durable {
    ledger: Ledger,
    sink: Box<dyn FnMut(Delivery) + Send>,
}

/// What does not.
struct RunningNode {
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
    services: Services,
    attesting: Attesting,
    attested: Duration,
    /// What its clients wait for, and when they submit it next.
    waiting: Vec<(Duration, Bytes)>,
}

impl Nodes {
    fn honest(&self) -> impl Iterator<Item = &SimulatedState> {
        self.nodes.iter().skip(self.simulation.scenario.faulty())
    }
}

impl Process for Nodes {
    fn start(&self, node: usize, clock: Arc<dyn Fn() -> Duration + Send + Sync>, join: Join<'_>) {
        let (simulation, state) = (&self.simulation, &self.nodes[node]);
        let (last, charters) = {
            let durable = state.durable.lock();
            (durable.ledger.last.clone(), durable.ledger.charters().clone())
        };
        let services = join(last, charters, state.admission.clone());
        let injection = |number: usize| simulation.injection(number, &self.stays);
        let mine = |number: &usize| injection(*number).0 == node;
        let waiting = (0..simulation.transactions)
            .filter(mine)
            .map(|number| (injection(number).1, (simulation.transaction)(number)))
            .collect();
        let attesting = Attesting::default();
        *state.running.lock() =
            Some(RunningNode { clock, services, attesting, attested: Duration::ZERO, waiting });
    }

    fn keeps_from(&self, node: usize) -> Option<u64> {
        let height = self.nodes[node].durable.lock().ledger.height();
        self.simulation.keeps.map(|keeps| (height + 1).saturating_sub(keeps))
    }

    fn deliver(&self, node: usize, delivery: Delivery) {
        let height = delivery.block.header.height;
        let mut durable = self.nodes[node].durable.lock();
        let Durable { ledger, sink } = &mut *durable;
        if ledger.take(&delivery) {
            sink(delivery);
        }
        if let Some(running) = &*self.nodes[node].running.lock() {
            running.services.ordering.acknowledge(height);
            if let Some(keeps) = self.simulation.keeps {
                running.services.ordering.forget_below((height + 1).saturating_sub(keeps));
            }
        }
    }

    /// Attests outcomes. The clients of a node submit each at its time, and again while their transaction is not in this
    /// node's ledger; after a crash of the node they begin again.
    fn turn(&self, node: usize) {
        let (state, mut running) = (&self.nodes[node], self.nodes[node].running.lock());
        let Some(RunningNode { clock, services, attesting, attested, waiting }) = &mut *running else {
            return;
        };
        let (now, durable) = (clock(), state.durable.lock());
        if now >= *attested + ATTEST && !self.simulation.silence.contains(&now) {
            let Ledger { outcomes, decided, .. } = &durable.ledger;
            attesting.work((services, now), outcomes, decided, &node_key(node));
            *attested = now;
        }
        waiting.retain(|(_, bytes)| !durable.ledger.transactions.contains(&sha256(&[bytes])));
        for (due, bytes) in waiting.iter_mut().filter(|(due, _)| *due <= now) {
            // What finds no room comes again.
            let _ = services.ordering.submit(vec![bytes.clone()]);
            *due = now + SUBMIT_AGAIN;
        }
    }

    fn crash(&self, node: usize) {
        *self.nodes[node].running.lock() = None;
    }

    fn height(&self, node: usize) -> u64 {
        self.nodes[node].durable.lock().ledger.height()
    }

    /// Every node that follows the rules and is a member in the end holds every transaction, or something went wrong
    /// already.
    fn is_done(&self) -> bool {
        self.ends.iter().all(|node| {
            let ledger = &self.nodes[*node].durable.lock().ledger;
            let complete = ledger.transactions.len() >= self.simulation.transactions;
            ledger.violation.is_some() || complete && ledger.height() >= self.height
        })
    }
}
