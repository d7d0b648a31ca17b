//! Timed runs in the engine: real blocks, wall time, clients that wait.

use super::plan::Point;
use crate::chain::{Chain, EngineBenchError};
use crate::machine::process_seconds;
use engine::{ExecutedBlock, VerifiedTransaction};
use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Outcome, Payload};
use workloads::{Invariant, Workload};

/// A consensus block has about so many transactions...
const BLOCK_TRANSACTIONS: usize = 4_000;
/// ...and at most so many execution batches.
const BLOCK_BATCHES: usize = 20;
/// How long a block that is not full waits for more, as in a new charter.
const FILL: Duration = Duration::from_millis(20);
/// Blocks whose transactions are made at a time, while the clock stands: enough that it seldom does, so few that they
/// are still in the processor's caches when they are executed, as they are behind the verification of a node.
const BLOCKS_AHEAD: usize = 4;
/// Blocks that a round executes to get warm, before its time begins.
const WARM_UP_BLOCKS: usize = 1;

/// How transactions come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    pub(crate) arrival: Arrival,
    /// What a client waits between an answer and what it submits next.
    pub(crate) delay: Duration,
    /// Whether what was given up because of a conflict is submitted again.
    pub(crate) resubmit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrival {
    /// So many clients, each waiting for its answer; by default twice the transactions of a block.
    Closed { clients: Option<usize> },
    /// So many transactions per second, whether answered or not.
    Open { rate: f64 },
}

/// What a round, or several of them together, came to.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub(crate) transactions: u64,
    pub(crate) committed: u64,
    pub(crate) business_aborts: u64,
    /// Times that a transaction was given up; one that is submitted again may be several times.
    pub(crate) conflict_aborts: u64,
    pub(crate) reexecuted: u64,
    pub(crate) executions: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// Microseconds from the first submission to the end of the block that committed it.
    pub(crate) latency: Histogram<u64>,
    /// Committed calls by procedure.
    pub(crate) calls: BTreeMap<String, u64>,
    pub(crate) invariant_holds: bool,
}

impl Timed {
    pub(crate) fn nothing() -> Timed {
        Timed {
            transactions: 0,
            committed: 0,
            business_aborts: 0,
            conflict_aborts: 0,
            reexecuted: 0,
            executions: 0,
            seconds: 0.0,
            cpu_seconds: 0.0,
            // Microseconds up to ten minutes, three digits.
            latency: Histogram::new_with_bounds(1, 600_000_000, 3).expect("valid bounds"),
            calls: BTreeMap::new(),
            invariant_holds: true,
        }
    }

    pub(crate) fn committed_tps(&self) -> f64 {
        self.committed as f64 / self.seconds.max(1e-9)
    }

    /// A call of this procedure has committed.
    pub(crate) fn count_call(&mut self, procedure: &str) {
        match self.calls.get_mut(procedure) {
            Some(count) => *count += 1,
            None => drop(self.calls.insert(procedure.to_string(), 1)),
        }
    }

    pub(crate) fn add(&mut self, other: &Timed) {
        self.transactions += other.transactions;
        self.committed += other.committed;
        self.business_aborts += other.business_aborts;
        self.conflict_aborts += other.conflict_aborts;
        self.reexecuted += other.reexecuted;
        self.executions += other.executions;
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
        self.latency.add(&other.latency).expect("the same bounds");
        for (procedure, count) in &other.calls {
            *self.calls.entry(procedure.clone()).or_default() += count;
        }
        self.invariant_holds &= other.invariant_holds;
    }
}

/// Runs one round of a point on a fresh engine for about `seconds`.
pub(super) fn round(
    point: &Point,
    workload: &dyn Workload,
    pace: Pace,
    seconds: f64,
    seed: u64,
) -> Result<Timed, EngineBenchError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(point.threads)
        .build()
        .map_err(|_| EngineBenchError::Threads(point.threads))?;
    pool.install(|| {
        // The folder goes behind the chain.
        let (stores, _folder) = point.store.open(point.memory_megabytes)?;
        let mut chain = Chain::on(&*stores, &point.protocol, point.options, point.block_size, seed)?;
        chain.set_up(workload)?;
        let mut source = Source::new(workload, seed);
        run_on(&mut chain, point.block_size, &mut source, pace, seconds)
    })
}

/// Runs calls on a chain that is set up, for about `seconds`, and checks what must hold afterwards.
pub(crate) fn run_on(
    chain: &mut Chain,
    block_size: u32,
    source: &mut Source<'_>,
    pace: Pace,
    seconds: f64,
) -> Result<Timed, EngineBenchError> {
    let size = block_size as usize;
    let block = size * (BLOCK_TRANSACTIONS / size).clamp(1, BLOCK_BATCHES);
    let workload = source.workload;
    let invariant = workload.invariant();
    let before = chain.sum(&invariant);
    source.left = WARM_UP_BLOCKS * block;
    let saturated = Pace {
        arrival: Arrival::Closed { clients: Some(2 * block) },
        delay: Duration::ZERO,
        resubmit: false,
    };
    let (mut warm, change) = Clients::new(chain, saturated, block, source, &invariant).run()?;
    let default = Pace { arrival: Arrival::Closed { clients: None }, ..saturated };
    let holds = |chain: &Chain, change: i128| {
        let expected = before.map(|before| before + change);
        expected.is_some()
            && chain.sum(&invariant) == expected
            && chain.breaks(&workload.conditions()).is_empty()
    };
    if warm.seconds > 2.0 * seconds && pace == default {
        // So slow is only who runs most transactions dozens of times: a second block would tell nothing new.
        warm.invariant_holds = holds(chain, change);
        return Ok(warm);
    }
    let wanted = match pace.arrival {
        Arrival::Closed { .. } => warm.transactions as f64 / warm.seconds * seconds,
        Arrival::Open { rate } => rate * seconds,
    };
    source.left = match pace.arrival {
        Arrival::Closed { .. } => (wanted as usize / block).max(1) * block,
        Arrival::Open { .. } => (wanted as usize).max(1),
    };
    let (mut timed, changed) = Clients::new(chain, pace, block, source, &invariant).run()?;
    timed.invariant_holds = holds(chain, change + changed);
    Ok(timed)
}

/// Calls in the workload's order.
pub(crate) struct Source<'a> {
    workload: &'a dyn Workload,
    random: StdRng,
    number: u64,
    /// How many are still to come.
    left: usize,
}

impl<'a> Source<'a> {
    pub(crate) fn new(workload: &'a dyn Workload, seed: u64) -> Source<'a> {
        Source { workload, random: StdRng::seed_from_u64(seed), number: 0, left: 0 }
    }

    fn prepare(&mut self, chain: &mut Chain, most: usize) -> VecDeque<Arc<VerifiedTransaction>> {
        let count = most.min(self.left);
        self.left -= count;
        let mut next = || {
            let call = self.workload.call(self.number, &mut self.random);
            self.number += 1;
            chain.transaction(call.into_payload())
        };
        (0..count).map(|_| next()).collect()
    }
}

/// Time and CPU time, without what passes while the laboratory does its own work.
struct Clock {
    start: Instant,
    stood: Duration,
    cpu_seconds: f64,
}

impl Clock {
    fn start() -> Clock {
        Clock {
            start: Instant::now(),
            stood: Duration::ZERO,
            cpu_seconds: -process_seconds("self").unwrap_or(0.0),
        }
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed() - self.stood
    }

    /// Does something that does not count.
    fn stand<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (start, cpu) = (Instant::now(), process_seconds("self").unwrap_or(0.0));
        let result = work();
        self.cpu_seconds -= process_seconds("self").unwrap_or(0.0) - cpu;
        self.stood += start.elapsed();
        result
    }

    fn cpu_seconds(&self) -> f64 {
        self.cpu_seconds + process_seconds("self").unwrap_or(0.0)
    }
}

/// A transaction on its way.
struct Submitted {
    transaction: Arc<VerifiedTransaction>,
    /// When its client submitted it for the first time, from the start.
    at: Duration,
}

/// What a block came to.
struct Answered {
    submitted: Vec<Submitted>,
    executed: ExecutedBlock,
    /// When it was done, from the start.
    at: Duration,
}

/// What happens after a client has waited.
enum Later {
    Next,
    Again(Submitted),
}

/// The clients, the queue in front of the engine, and the engine.
struct Clients<'a, 'w> {
    chain: &'a mut Chain,
    pace: Pace,
    block: usize,
    source: &'a mut Source<'w>,
    prepared: VecDeque<Arc<VerifiedTransaction>>,
    clock: Clock,
    waiting: VecDeque<Submitted>,
    /// By time; every wait is equally long, so what is added last is due last.
    later: VecDeque<(Duration, Later)>,
    /// Open loop: transactions that have arrived.
    arrived: u64,
    /// Executed blocks. What they came to is counted while the clock stands: that is the clients' work.
    answered: Vec<Answered>,
    invariant: &'a Invariant,
    /// By how much the invariant's sum must have changed.
    change: i128,
    timed: Timed,
}

impl<'a, 'w> Clients<'a, 'w> {
    fn new(
        chain: &'a mut Chain,
        pace: Pace,
        block: usize,
        source: &'a mut Source<'w>,
        invariant: &'a Invariant,
    ) -> Clients<'a, 'w> {
        let mut later = VecDeque::new();
        if let Arrival::Closed { clients } = pace.arrival {
            later.extend((0..clients.unwrap_or(2 * block)).map(|_| (Duration::ZERO, Later::Next)));
        }
        Clients {
            chain,
            pace,
            block,
            source,
            prepared: VecDeque::new(),
            clock: Clock::start(),
            waiting: VecDeque::new(),
            later,
            arrived: 0,
            answered: Vec::new(),
            invariant,
            change: 0,
            timed: Timed::nothing(),
        }
    }

    /// Until everything has its answer. Also by how much the invariant's sum must have changed.
    fn run(mut self) -> Result<(Timed, i128), EngineBenchError> {
        self.make_ready();
        self.clock = Clock::start();
        loop {
            if self.prepared.len() < self.block && self.source.left > 0 {
                self.make_ready();
            }
            let now = self.clock.elapsed();
            self.arrive(now);
            let next = self.next_event();
            if self.waiting.len() < self.block
                && let Some(next) = next
                && self.waiting.front().is_none_or(|oldest| next < (oldest.at + FILL).max(now))
            {
                std::thread::sleep(next.saturating_sub(self.clock.elapsed()));
                continue;
            }
            if self.waiting.is_empty() {
                break;
            }
            let taken: Vec<Submitted> = self.waiting.drain(..self.block.min(self.waiting.len())).collect();
            let transactions = taken.iter().map(|submitted| submitted.transaction.clone()).collect();
            let block = self.chain.block(transactions);
            let executed = self.chain.engine.execute(&block)?;
            self.answer(taken, executed, self.clock.elapsed());
        }
        self.timed.seconds = self.clock.elapsed().as_secs_f64();
        self.timed.cpu_seconds = self.clock.cpu_seconds();
        self.count();
        Ok((self.timed, self.change))
    }

    /// Makes transactions for the next blocks, and counts what came of the last ones, while the clock stands.
    fn make_ready(&mut self) {
        let mut clock = std::mem::replace(&mut self.clock, Clock::start());
        clock.stand(|| {
            self.count();
            let more = self.source.prepare(self.chain, BLOCKS_AHEAD * self.block);
            self.prepared.extend(more);
        });
        self.clock = clock;
    }

    /// Moves what is due into the queue.
    fn arrive(&mut self, now: Duration) {
        if let Arrival::Open { rate } = self.pace.arrival {
            while let Some(due) = self.next_arrival(rate).filter(|due| *due <= now) {
                let transaction = self.prepared.pop_front().expect("an arrival is one of them");
                self.arrived += 1;
                // Not the moment in which this loop came round to it: a client does not wait for that.
                self.waiting.push_back(Submitted { transaction, at: due });
            }
        }
        // Who finds nothing to submit waits until more is made.
        let (prepared, left) = (&mut self.prepared, self.source.left);
        let can_come = |(due, later): &mut (Duration, Later), prepared: &VecDeque<_>| {
            *due <= now && (matches!(later, Later::Again(_)) || !prepared.is_empty() || left == 0)
        };
        while let Some((due, later)) = self.later.pop_front_if(|entry| can_come(entry, prepared)) {
            match later {
                Later::Again(submitted) => self.waiting.push_back(submitted),
                Later::Next => {
                    if let Some(transaction) = prepared.pop_front() {
                        self.waiting.push_back(Submitted { transaction, at: due });
                    }
                }
            }
        }
    }

    fn next_arrival(&self, rate: f64) -> Option<Duration> {
        let due = Duration::from_secs_f64(self.arrived as f64 / rate);
        (!self.prepared.is_empty()).then_some(due)
    }

    /// When something may come into the queue, if nothing is executed.
    fn next_event(&self) -> Option<Duration> {
        let arrival = match self.pace.arrival {
            Arrival::Open { rate } => self.next_arrival(rate),
            Arrival::Closed { .. } => None,
        };
        let comes = |later: &Later| matches!(later, Later::Again(_)) || !self.prepared.is_empty();
        let later = self.later.iter().find(|(_, later)| comes(later)).map(|(due, _)| *due);
        arrival.into_iter().chain(later).min()
    }

    /// Clients get their answers, and go on after their delay.
    fn answer(&mut self, submitted: Vec<Submitted>, executed: ExecutedBlock, at: Duration) {
        let due = at + self.pace.delay;
        for (submitted, receipt) in submitted.iter().zip(&executed.receipts) {
            if self.pace.resubmit && receipt.outcome == Outcome::Conflict {
                // Another transaction under a new request, because the ledger answers every request once.
                let transaction = self.chain.transaction(submitted.transaction.payload.as_ref().clone());
                self.later.push_back((due, Later::Again(Submitted { transaction, at: submitted.at })));
            } else if matches!(self.pace.arrival, Arrival::Closed { .. }) {
                self.later.push_back((due, Later::Next));
            }
        }
        self.answered.push(Answered { submitted, executed, at });
    }

    /// Counts the answers since the last time.
    fn count(&mut self) {
        let timed = &mut self.timed;
        for Answered { submitted, executed, at } in self.answered.drain(..) {
            let statistics = &executed.statistics;
            timed.committed += statistics.committed;
            timed.business_aborts += statistics.business_aborts;
            timed.conflict_aborts += statistics.conflict_aborts;
            timed.reexecuted += statistics.reexecuted;
            timed.executions += statistics.executions;
            for (submitted, receipt) in submitted.into_iter().zip(&executed.receipts) {
                if let Payload::Call { procedure, arguments } = submitted.transaction.payload.as_ref() {
                    self.change += (self.invariant.change)(procedure, arguments, &receipt.outcome);
                }
                timed.transactions += u64::from(!self.pace.resubmit || receipt.outcome != Outcome::Conflict);
                if matches!(receipt.outcome, Outcome::Committed(_)) {
                    if let Payload::Call { procedure, .. } = submitted.transaction.payload.as_ref() {
                        timed.count_call(procedure);
                    }
                    timed.latency.saturating_record((at - submitted.at).as_micros() as u64);
                }
            }
        }
    }
}
