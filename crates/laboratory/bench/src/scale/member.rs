//! One node of a network: what it has executed, what it says about it, and what the others have said.

use super::costs::NodeCosts;
use super::ledger::{Executed, ScaleLedger};
use bytes::Bytes;
use crypto::SecretKey;
use ordering::simulation::{Machines, Words, node_key};
use ordering::{Admission, Services};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use types::{Attestation, OutcomeHeader, Place, RejectReason, TransactionId, decode_exactly, encode};

/// Tells the time of the network.
pub(super) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Where a node is, and what it is charged.
#[derive(Clone)]
pub(super) struct Machine {
    pub machines: Arc<Machines>,
    pub node: usize,
    pub costs: NodeCosts,
}

impl Machine {
    fn work(&self, now: Duration, nanoseconds: f64) {
        self.machines.work(self.node, now, Duration::from_nanos(nanoseconds as u64));
    }
}

/// Every node verifies every transaction once; the code that does so runs when its block is executed.
pub(super) struct ChargedAdmission {
    pub ledger: Arc<ScaleLedger>,
    pub machine: Machine,
    pub clock: Clock,
    /// A bit for each that was verified here.
    pub verified: Mutex<Vec<u64>>,
}

impl Admission for ChargedAdmission {
    fn check(&self, _: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
        let (mut verified, mut new) = (self.verified.lock(), 0);
        let mut judge = |bytes: &Bytes| {
            let (id, number) =
                self.ledger.known(bytes).ok_or_else(|| RejectReason::Malformed("no client's".into()))?;
            let (word, bit) = (number as usize / 64, 1 << (number % 64));
            if verified.len() <= word {
                verified.resize(word + 1, 0);
            }
            new += u64::from(verified[word] & bit == 0);
            verified[word] |= bit;
            Ok(id)
        };
        let verdicts = transactions.iter().map(&mut judge).collect();
        let NodeCosts { messages, verify, .. } = self.machine.costs;
        // What is asked about stands in a block, mostly, which was decoded before.
        let bytes: usize = transactions.iter().map(Bytes::len).sum();
        self.machine.work((self.clock)(), new as f64 * verify + bytes as f64 * messages.block_byte);
        verdicts
    }
}

pub(super) struct Member {
    machine: Machine,
    key: SecretKey,
    pub clock: Clock,
    pub services: Services,
    /// Blocks that were delivered, until they are executed.
    executing: VecDeque<(Duration, Arc<Executed>)>,
    executor_busy: Duration,
    pub height: u64,
    certified: u64,
    words: Words,
    /// Executed, and not certified.
    uncertified: VecDeque<Arc<Executed>>,
}

impl Member {
    pub(super) fn new(machine: Machine, clock: Clock, services: Services) -> Member {
        Member {
            key: node_key(machine.node),
            machine,
            clock,
            services,
            executing: VecDeque::new(),
            executor_busy: Duration::ZERO,
            height: 0,
            certified: 0,
            words: Words::default(),
            uncertified: VecDeque::new(),
        }
    }

    /// A block has come, the next one.
    pub(super) fn take(&mut self, executed: Arc<Executed>) {
        let time = executed.transactions.len() as f64 * self.machine.costs.execute;
        let begins = self.executor_busy.max((self.clock)());
        self.executor_busy = begins + Duration::from_nanos(time as u64);
        self.height = executed.outcome.height;
        self.executing.push_back((self.executor_busy, executed));
    }

    /// Says what blocks came to, hears the others; gives the blocks that are certified now.
    pub(super) fn turn(&mut self, ledger: &ScaleLedger) -> Vec<Arc<Executed>> {
        let now = (self.clock)();
        while let Some((_, executed)) = self.executing.pop_front_if(|(done, _)| *done <= now) {
            self.services.ordering.acknowledge(executed.outcome.height);
            let member = self.machine.node as u16;
            let said = Attestation::sign(executed.outcome.clone(), member, &self.key);
            self.machine.work(now, self.machine.costs.messages.signature);
            self.services.messages.broadcast(Bytes::from(encode(&said)));
            self.uncertified.push_back(executed);
            self.hear(ledger, said);
        }
        let services = self.services.clone();
        for (sender, bytes) in services.messages.messages().try_iter() {
            self.machine.work(now, self.machine.costs.messages.signature);
            if let Ok(said) = decode_exactly::<Attestation<OutcomeHeader>>(&bytes)
                && said.organisation == sender
            {
                self.hear(ledger, said);
            }
        }
        let mut certified = Vec::new();
        while let Some(executed) =
            self.uncertified.pop_front_if(|executed| executed.outcome.height <= self.certified)
        {
            certified.push(executed);
        }
        certified
    }

    fn hear(&mut self, ledger: &ScaleLedger, said: Attestation<OutcomeHeader>) {
        let height = said.statement.height;
        if height <= self.certified {
            return;
        }
        // Whether signatures are right has been charged; here nobody lies.
        if let Some(certificate) = self.words.take(ledger.charters(), said) {
            self.services.certifying.certify(certificate);
            self.certified = height;
            self.words.certified(height);
        }
    }
}
