//! Peers of one organisation under a random schedule: messages arrive in any order or not at all, peers crash, and new ones join.

use super::durable::Durable;
use concurrency::parts::LedgerPosition;
use concurrency::sparse::{ContractId, SparsePeer, SparseTransaction, Verdict};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use state::RowId;
use std::collections::{BTreeMap, BTreeSet};

/// What happened, so that a test can tell whether anything did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Happened {
    pub deferred: usize,
    pub crashes: usize,
    pub lost: usize,
    pub joined: usize,
    pub asked: usize,
}

/// How much of it may happen.
#[derive(Clone, Copy)]
pub struct Faults {
    pub losses: usize,
    pub crashes: usize,
    pub joins: usize,
}

impl Faults {
    pub const NONE: Faults = Faults { losses: 0, crashes: 0, joins: 0 };

    pub fn random(rng: &mut StdRng) -> Faults {
        Faults {
            losses: rng.random_range(0..=4),
            crashes: rng.random_range(0..=3),
            joins: rng.random_range(0..=2),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Receive,
    Validate,
    Deliver,
    Lose,
    Commit,
    Crash,
    Join,
}

pub struct Network {
    rng: StdRng,
    blocks: Vec<Vec<SparseTransaction>>,
    /// `None` while a peer is being restarted.
    pub peers: Vec<Option<SparsePeer<Durable>>>,
    messages: Vec<(usize, Verdict)>,
    left: Faults,
    pub happened: Happened,
}

impl Network {
    /// `initial`: the rows that stood there at first, of all contracts.
    pub fn new(
        seed: u64,
        blocks: Vec<Vec<SparseTransaction>>,
        filters: &[BTreeSet<ContractId>],
        initial: &[RowId],
    ) -> Network {
        let mut rng = StdRng::seed_from_u64(seed);
        let open = |filter: &BTreeSet<ContractId>| {
            let held = initial.iter().filter(|row| filter.contains(&ContractId(row.table.0)));
            SparsePeer::open(filter.clone(), Durable::with(held.cloned())).ok()
        };
        let peers = filters.iter().map(open).collect();
        let left = Faults::random(&mut rng);
        Network { rng, blocks, peers, messages: Vec::new(), left, happened: Happened::default() }
    }

    pub fn without_faults(mut self) -> Network {
        self.left = Faults::NONE;
        self
    }

    fn peer(&mut self, peer: usize) -> &mut SparsePeer<Durable> {
        self.peers[peer].as_mut().expect("it runs")
    }

    /// Goes on until nobody has anything to do. Panics where that takes too long: then something goes round in circles.
    pub fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step() && !self.ask() {
                return;
            }
        }
        panic!("the peers find no end");
    }

    fn step(&mut self) -> bool {
        let mut steps = vec![Step::Receive, Step::Validate, Step::Deliver, Step::Deliver, Step::Commit];
        if self.left.losses > 0 {
            steps.push(Step::Lose);
        }
        if self.left.crashes > 0 && self.rng.random_bool(0.1) {
            steps.push(Step::Crash);
        }
        if self.left.joins > 0 && self.rng.random_bool(0.1) {
            steps.push(Step::Join);
        }
        steps.shuffle(&mut self.rng);
        steps.into_iter().any(|step| match step {
            Step::Deliver => self.deliver(true),
            Step::Lose => self.deliver(false),
            Step::Join => self.join(),
            Step::Receive | Step::Validate | Step::Commit | Step::Crash => {
                let mut peers: Vec<usize> = (0..self.peers.len()).collect();
                peers.shuffle(&mut self.rng);
                peers.into_iter().any(|peer| self.of_peer(step, peer))
            }
        })
    }

    fn of_peer(&mut self, step: Step, peer: usize) -> bool {
        match step {
            Step::Receive => {
                let received = self.peer(peer).received() as usize;
                let Some(mut block) = self.blocks.get(received).cloned() else { return false };
                // Whole blocks or sparse ones: both must do.
                if self.rng.random_bool(0.5) {
                    let filter = self.peer(peer).filter().clone();
                    block = block.into_iter().map(|transaction| transaction.under(&filter)).collect();
                }
                self.peer(peer).receive(received as u64 + 1, block).expect("the next block");
            }
            Step::Validate => {
                let ready: Vec<LedgerPosition> = self.peer(peer).ready().collect();
                let Some(next) = ready.choose(&mut self.rng) else { return false };
                assert!(self.peer(peer).validate(*next).expect("memory"), "it was ready");
            }
            Step::Commit => {
                let Some(committed) = self.peer(peer).commit().expect("memory") else { return false };
                self.happened.deferred += committed.deferred.len();
            }
            Step::Crash => {
                let old = self.peers[peer].take().expect("it runs");
                let (filter, store) = (old.filter().clone(), old.into_store());
                self.peers[peer] = Some(SparsePeer::open(filter, store).expect("memory"));
                self.left.crashes -= 1;
                self.happened.crashes += 1;
            }
            Step::Deliver | Step::Lose | Step::Join => unreachable!("not of one peer"),
        }
        self.tell(peer);
        true
    }

    fn tell(&mut self, sender: usize) {
        for told in self.peer(sender).take_told() {
            for peer in 0..self.peers.len() {
                if peer != sender && !told.contracts.is_disjoint(self.peer(peer).filter()) {
                    self.messages.push((peer, told.verdict.clone()));
                }
            }
        }
    }

    fn deliver(&mut self, arrives: bool) -> bool {
        if self.messages.is_empty() {
            return false;
        }
        let message = self.rng.random_range(0..self.messages.len());
        let (peer, verdict) = self.messages.swap_remove(message);
        if arrives {
            self.peer(peer).hear(&verdict).expect("memory");
            self.tell(peer);
        } else {
            self.left.losses -= 1;
            self.happened.lost += 1;
        }
        true
    }

    /// Who waits asks the others; false: nobody knows anything new.
    fn ask(&mut self) -> bool {
        for peer in 0..self.peers.len() {
            let questions: Vec<_> = self.peer(peer).open_questions().collect();
            for question in questions {
                for other in (0..self.peers.len()).filter(|other| *other != peer) {
                    if question.contracts.is_disjoint(self.peer(other).filter()) {
                        continue;
                    }
                    if let Some(answer) = self.peer(other).answer(question.transaction).expect("memory") {
                        self.messages.push((peer, answer));
                        self.happened.asked += 1;
                        return true;
                    }
                }
            }
        }
        false
    }

    /// A new peer takes one contract over from one that has committed something.
    fn join(&mut self) -> bool {
        let source = self.rng.random_range(0..self.peers.len());
        if self.peer(source).store().height == 0 {
            return false;
        }
        let held: Vec<ContractId> = self.peer(source).filter().iter().copied().collect();
        let filter = BTreeSet::from([held[self.rng.random_range(0..held.len())]]);
        let joined = joined(self.peers[source].as_ref().expect("it runs"), &filter);
        self.peers.push(Some(joined));
        self.left.joins -= 1;
        self.happened.joined += 1;
        true
    }
}

/// A new peer that goes on from where another one is.
pub fn joined(source: &SparsePeer<Durable>, filter: &BTreeSet<ContractId>) -> SparsePeer<Durable> {
    let over = source.hand_over(filter).expect("it holds the contracts");
    let store = source.store();
    let rows = store
        .rows
        .iter()
        .filter(|(row, version)| filter.contains(&ContractId(row.table.0)) && **version < over.before);
    let rows: BTreeMap<_, _> = rows.map(|(row, version)| (row.clone(), *version)).collect();
    let deferred = over.undecided.into_iter().map(|transaction| (transaction.position, transaction));
    let verdicts = store.verdicts.clone();
    let store = Durable { rows, verdicts, deferred: deferred.collect(), height: over.height, is_full: false };
    SparsePeer::open(filter.clone(), store).expect("memory")
}
