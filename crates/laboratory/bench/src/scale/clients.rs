//! The clients of a network: first they create the bank, then they keep the network busy, then they ask half of what it did.

use super::ledger::{Executed, ScaleLedger};
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use types::Payload;

/// The network may get into its stride for so long before it is measured, and for so many blocks.
const WARM: Duration = Duration::from_secs(1);
const WARM_BLOCKS: u64 = 4;
/// It is measured over so many blocks at least.
const MEASURED_BLOCKS: u64 = 6;

/// What clients have found.
#[derive(Clone)]
pub(super) struct Found {
    /// Receipts per second while the clients kept the network busy.
    pub throughput_tps: f64,
    /// From the call to the certified receipt at the client's node, in microseconds, at half of that.
    pub latency: Histogram<u64>,
    /// While the network was busy.
    pub blocks_per_second: f64,
}

/// How far a network was at a moment.
#[derive(Clone, Copy)]
struct Seen {
    at: Duration,
    transactions: u64,
    height: u64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    SetUp,
    /// Since when.
    Busy(Duration),
    /// Until all is answered.
    Draining,
    Half(Duration),
    Ending,
    Done,
}

/// What a client waits for.
#[derive(Clone, Copy)]
struct Waiting {
    node: u16,
    since: Duration,
    /// Whether it says something about latency.
    counts: bool,
}

/// Takes calls for a node; how many it has taken.
pub(super) type Submit<'a> = &'a mut dyn FnMut(usize, &[super::ledger::Made]) -> Vec<bool>;

pub(super) struct Clients {
    members: usize,
    duration: Duration,
    phase: Phase,
    set_up: VecDeque<Vec<Payload>>,
    /// By number of the transaction; nothing of those that are answered.
    waiting: BTreeMap<u32, Waiting>,
    /// Calls that wait for an answer, by node.
    outstanding: Vec<usize>,
    /// The last block that is certified at the first node, and the transactions up to it.
    height: u64,
    transactions: u64,
    /// It was this one when the network became busy.
    busy_from: u64,
    /// Calls on their way while the clients keep the network busy.
    calls: usize,
    /// How many of those that are due at half speed were called.
    called: u64,
    /// The first and the last block that was certified during the measurement: when, receipts until then, height.
    seen: Option<[Seen; 2]>,
    is_measured: bool,
    found: Found,
}

impl Clients {
    pub(super) fn new(ledger: &ScaleLedger, members: usize, (calls, duration): (usize, Duration)) -> Clients {
        let latency = Histogram::new(3).expect("three digits are few enough");
        Clients {
            members,
            duration,
            phase: Phase::SetUp,
            set_up: ledger.set_up().into(),
            waiting: BTreeMap::new(),
            outstanding: vec![0; members],
            height: 0,
            transactions: 0,
            busy_from: 0,
            calls,
            called: 0,
            seen: None,
            is_measured: false,
            found: Found { throughput_tps: 0.0, latency, blocks_per_second: 0.0 },
        }
    }

    pub(super) fn found(&self) -> &Found {
        &self.found
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// In blocks that are certified at the first node.
    pub(super) fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Whether the network is measured while it is busy.
    pub(super) fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// The receipts of a block are certified at a node.
    pub(super) fn answered(&mut self, node: usize, block: &Executed, now: Duration) {
        for number in &block.transactions {
            let Some(waiting) = self.waiting.get(number).filter(|waiting| usize::from(waiting.node) == node)
            else {
                continue;
            };
            if waiting.counts {
                let _ = self.found.latency.record((now - waiting.since).as_micros() as u64);
            }
            self.waiting.remove(number);
            self.outstanding[node] -= 1;
        }
        if node == 0 {
            self.see(block, now);
        }
    }

    /// Blocks come far apart: what counts is the time from one to another, not the seconds they fall into.
    fn see(&mut self, block: &Executed, now: Duration) {
        self.transactions += block.transactions.len() as u64;
        self.height = block.outcome.height;
        if self.is_measured {
            let seen = Seen { at: now, transactions: self.transactions, height: block.outcome.height };
            let [first, _] = self.seen.unwrap_or([seen; 2]);
            self.seen = Some([first, seen]);
        }
    }

    /// A few milliseconds have passed.
    pub(super) fn turn(&mut self, now: Duration, ledger: &ScaleLedger, submit: Submit<'_>) {
        match self.phase {
            Phase::SetUp if !self.waiting.is_empty() => {}
            Phase::SetUp => match self.set_up.pop_front() {
                Some(payloads) => {
                    self.call((0, now, false), &ledger.sign(payloads), submit);
                }
                None => (self.phase, self.busy_from) = (Phase::Busy(now), self.height),
            },
            Phase::Busy(since) => self.busy((since, now), ledger, submit),
            Phase::Draining if self.waiting.is_empty() => self.phase = Phase::Half(now),
            Phase::Half(since) => self.half((since, now), ledger, submit),
            Phase::Ending if self.waiting.is_empty() => self.phase = Phase::Done,
            Phase::Draining | Phase::Ending | Phase::Done => {}
        }
    }

    /// Every answer makes room for the next call.
    fn busy(&mut self, (since, now): (Duration, Duration), ledger: &ScaleLedger, submit: Submit<'_>) {
        self.is_measured |= now >= since + WARM && self.height >= self.busy_from + WARM_BLOCKS;
        let enough = |[first, last]: &[Seen; 2]| last.height >= first.height + MEASURED_BLOCKS;
        if now >= since + WARM + self.duration
            && let Some([first, last]) = self.seen.filter(enough)
        {
            let seconds = (last.at - first.at).as_secs_f64();
            let blocks = (last.height - first.height) as f64;
            self.found.throughput_tps = (last.transactions - first.transactions) as f64 / seconds;
            self.found.blocks_per_second = blocks / seconds;
            (self.is_measured, self.phase) = (false, Phase::Draining);
            return;
        }
        for node in 0..self.members {
            let room = (self.calls / self.members).saturating_sub(self.outstanding[node]);
            if room > 0 {
                self.call((node, now, false), &ledger.calls(room), submit);
            }
        }
    }

    /// So many calls as are due, at the nodes in turns.
    fn half(&mut self, (since, now): (Duration, Duration), ledger: &ScaleLedger, submit: Submit<'_>) {
        let passed = now - since;
        if passed >= WARM / 2 + self.duration / 2 {
            self.phase = Phase::Ending;
            return;
        }
        let due = (passed.as_secs_f64() * self.found.throughput_tps / 2.0) as u64;
        let calls = ledger.calls((due - self.called) as usize);
        let mut of_node: Vec<Vec<_>> = vec![Vec::new(); self.members];
        for made in calls {
            of_node[(self.called % self.members as u64) as usize].push(made);
            self.called += 1;
        }
        for (node, calls) in of_node.into_iter().enumerate().filter(|(_, calls)| !calls.is_empty()) {
            self.call((node, now, passed >= WARM / 2), &calls, submit);
        }
    }

    fn call(
        &mut self,
        (node, now, counts): (usize, Duration, bool),
        calls: &[super::ledger::Made],
        submit: Submit<'_>,
    ) {
        let taken = submit(node, calls);
        for (made, _) in calls.iter().zip(taken).filter(|(_, taken)| *taken) {
            self.waiting.insert(made.number, Waiting { node: node as u16, since: now, counts });
            self.outstanding[node] += 1;
        }
    }
}
