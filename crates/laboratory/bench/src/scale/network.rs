use super::clients::{Clients, Found};
use super::costs::NodeCosts;
use super::ledger::{Made, ScaleLedger};
use super::member::{ChargedAdmission, Clock, Machine, Member};
use ordering::Delivery;
use ordering::simulation::{Join, Machines, Process};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Nodes and clients of a network that is measured.
pub(super) struct Members {
    ledger: Arc<ScaleLedger>,
    machines: Arc<Machines>,
    costs: NodeCosts,
    members: Vec<Mutex<Option<Member>>>,
    clients: Mutex<Clients>,
    traffic: Mutex<Traffic>,
}

/// What was sent while the network was busy.
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    began: Option<Sent>,
    ended: Option<Sent>,
}

/// Up to a moment.
#[derive(Clone, Copy, Default)]
struct Sent {
    blocks: u64,
    all: u64,
    transactions: u64,
}

impl Traffic {
    /// Bytes for a transaction: of the blocks that leaders send, and of everything that all members send.
    pub(super) fn per_transaction(&self) -> (f64, f64) {
        let (Some(began), Some(ended)) = (self.began, self.ended) else { return (0.0, 0.0) };
        let transactions = (ended.transactions - began.transactions).max(1) as f64;
        let each = |of: fn(&Sent) -> u64| (of(&ended) - of(&began)) as f64 / transactions;
        (each(|sent| sent.blocks), each(|sent| sent.all))
    }
}

impl Members {
    pub(super) fn new(
        ledger: Arc<ScaleLedger>,
        machines: Arc<Machines>,
        (members, costs): (usize, NodeCosts),
        load: (usize, Duration),
    ) -> Members {
        Members {
            clients: Mutex::new(Clients::new(&ledger, members, load)),
            ledger,
            machines,
            costs,
            members: (0..members).map(|_| Mutex::default()).collect(),
            traffic: Mutex::default(),
        }
    }

    pub(super) fn found(&self) -> (Found, Traffic) {
        (self.clients.lock().found().clone(), *self.traffic.lock())
    }

    /// What went wrong first.
    pub(super) fn violation(&self) -> Option<String> {
        self.ledger.violation()
    }

    fn sent(&self, transactions: u64) -> Sent {
        Sent { blocks: self.machines.sent_in_blocks(), all: self.machines.sent(), transactions }
    }

    fn watch(&self, clients: &Clients) {
        let (sent, is_measured) = (self.sent(clients.transactions()), clients.is_measured());
        let mut traffic = self.traffic.lock();
        match (is_measured, traffic.began, traffic.ended) {
            (true, None, _) => traffic.began = Some(sent),
            (false, Some(_), None) => traffic.ended = Some(sent),
            _ => {}
        }
    }
}

impl Process for Members {
    fn start(&self, node: usize, clock: Clock, join: Join<'_>) {
        let machine = Machine { machines: self.machines.clone(), node, costs: self.costs };
        let admission = ChargedAdmission {
            ledger: self.ledger.clone(),
            machine: machine.clone(),
            clock: clock.clone(),
            verified: Mutex::default(),
        };
        let services = join(None, self.ledger.charters().clone(), Arc::new(admission));
        *self.members[node].lock() = Some(Member::new(machine, clock, services));
    }

    fn deliver(&self, node: usize, delivery: Delivery) {
        let mut member = self.members[node].lock();
        let Some(member) = member.as_mut().filter(|member| delivery.block.header.height == member.height + 1)
        else {
            return;
        };
        if let Some(executed) = self.ledger.deliver(&delivery.block) {
            member.take(executed);
        }
    }

    fn turn(&self, node: usize) {
        let mut member = self.members[node].lock();
        let Some(member) = member.as_mut() else { return };
        let certified = member.turn(&self.ledger);
        if !certified.is_empty() {
            let (mut clients, now) = (self.clients.lock(), (member.clock)());
            for block in certified {
                clients.answered(node, &block, now);
            }
        }
    }

    fn crash(&self, node: usize) {
        *self.members[node].lock() = None;
    }

    fn clients(&self, now: Duration) {
        let mut clients = self.clients.lock();
        clients.turn(now, &self.ledger, &mut |node, calls: &[Made]| {
            let services = self.members[node].lock().as_ref().map(|member| member.services.clone());
            let Some(services) = services else { return vec![false; calls.len()] };
            let bytes = calls.iter().map(|made| made.bytes.clone()).collect();
            services.ordering.submit(bytes).iter().map(Result::is_ok).collect()
        });
        self.watch(&clients);
    }

    fn height(&self, node: usize) -> u64 {
        self.members[node].lock().as_ref().map_or(0, |member| member.height)
    }

    fn is_done(&self) -> bool {
        self.ledger.violation().is_some() || self.clients.lock().is_done()
    }
}
