//! A network of execute–order–validate in one process: clients, two endorsers, a gateway, an orderer and a committer, each
//! on a thread, with real signatures; no wire and no disk.
//!
//! ```text
//!  arrivals ──▶ simulate, sign ──▶ compare ──▶ waiting ──▶ drop, reorder, cut ──▶ verify, validate, apply ──▶ answers
//!               (newest state,                                                   │
//!                twice)  ▲──────────── state, what was written ◀─────────────────┘
//! ```

use super::endorsers::{Answer, Endorser, Request, gather};
use super::invariants::Invariants;
use super::system::System;
use crate::EngineBenchError;
use bytes::Bytes;
use concurrency::endorsed::{EarlyAbort, Orderer, PendingTransaction};
use crypto::{Digest, SecretKey};
use engine::{BlockStatistics, EndorsementBasis, Engine, ExecutedBlock, Judged, VerifiedBlock, Verifier};
use hdrhistogram::Histogram;
use ledger::{BlockOutcome, BlockRecord};
use memory::Memory;
use rand::SeedableRng;
use rand::rngs::StdRng;
use state::Effects;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use types::{
    Block, BlockHeader, Charter, Charters, ClientId, Credential, ExecutionModel, Organisation, Outcome,
    Payload, Pipeline, Place, RequestId, SignedTransaction, Transaction, transactions_root,
};
use workloads::Workload;

/// Organisations; any two of them endorse.
const ORGANISATIONS: u8 = 4;
/// Who endorses here.
const ENDORSERS: [u8; 2] = [0, 1];
/// Requests that wait at an endorser; whoever has more waits.
const REQUESTS_MAX: usize = 2;
/// Proposals that an endorser answers with one signature.
const PROPOSALS_MAX: usize = 64;
/// A minute: nothing here takes longer.
const LATENCY_MAX_US: u64 = 60_000_000;
/// Blocks of which orderers remember what they wrote.
const WINDOW: u64 = 64;

/// How transactions come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrivals {
    /// So many per second, whatever the network does.
    Rate(f64),
    /// So many clients, each with one transaction under way.
    Clients(usize),
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunOptions {
    pub(super) arrivals: Arrivals,
    pub(super) seconds: f64,
    pub(super) block_transactions: usize,
    /// A block is cut so long after its first transaction came.
    pub(super) block_ms: u64,
    pub(super) seed: u64,
}

/// How a run ended.
pub(super) struct Counts {
    /// Calls made.
    pub(super) submitted: u64,
    /// Calls that the contract refused when they were endorsed.
    pub(super) refused: u64,
    /// Dropped by the orderer because what they read is old.
    pub(super) dropped_stale: u64,
    /// Dropped by the orderer because they close a cycle.
    pub(super) dropped_cycle: u64,
    /// In blocks.
    pub(super) ordered: u64,
    pub(super) committed: u64,
    /// Given up by validation.
    pub(super) conflicts: u64,
    /// Executed again after ordering.
    pub(super) ran_again: u64,
    pub(super) blocks: u64,
    /// 0 where nothing was timed from end to end.
    pub(super) seconds: f64,
    /// Microseconds, of committed transactions, from arrival to the end of their block; of a committer alone, of blocks.
    pub(super) latency: Histogram<u64>,
    /// Milliseconds of the orderer's cuts.
    pub(super) cut_ms: Vec<f64>,
}

/// A transaction with its endorsements on its way.
pub(super) struct Endorsed {
    pub(super) bytes: Bytes,
    pub(super) effects: Arc<Effects>,
    pub(super) snapshot: u64,
    pub(super) arrived: Instant,
}

/// Clients and endorsers: who needs keys.
pub(super) struct Parties {
    pub(super) charter: Arc<Charter>,
    client: SecretKey,
    credential: Credential,
    endorsers: Vec<Endorser>,
    requests: AtomicU64,
}

/// A ledger with everybody's keys.
pub(super) struct Network {
    pub(super) parties: Arc<Parties>,
    pub(super) engine: Engine,
    pub(super) verifier: Verifier,
    /// Height and digest of the last header.
    pub(super) tip: (u64, Digest),
    /// The blocks of the set-up, as a ledger records them.
    pub(super) set_up: Vec<BlockRecord>,
    /// What must hold of the state.
    pub(super) invariants: Invariants,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Parties {
    pub(super) fn propose(&self, payload: Payload) -> SignedTransaction {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut request = [0; 16];
        request[..8].copy_from_slice(&number.to_be_bytes());
        let (ledger, client, expires_at) = (self.charter.ledger(), self.client.public_key(), 90_000);
        Transaction { ledger, client, request: RequestId(request), expires_at, role: String::new(), payload }
            .sign(&self.client, self.credential)
    }

    /// What a verifier says of transactions in the block of this height.
    fn judged(&self, verifier: &Verifier, height: u64, transactions: &[Bytes]) -> Vec<Judged> {
        let charters = Charters::new(self.charter.clone());
        verifier.check(Place { charters: &charters, height }, transactions)
    }

    /// The next block behind `tip` (height and digest of a header), which becomes it, verified.
    pub(super) fn block(
        &self,
        verifier: &Verifier,
        tip: &mut (u64, Digest),
        transactions: &[Bytes],
    ) -> VerifiedBlock {
        let (height, previous) = (tip.0 + 1, tip.1);
        let header = BlockHeader {
            ledger: self.charter.ledger(),
            height,
            timestamp_ms: 1_800_000_000_000 + height,
            previous,
            transactions_root: transactions_root(transactions),
            transactions: transactions.len() as u32,
            proposer: 0,
            certified_height: 0,
            attested: types::Attested::default().digest(),
            charters: self.charter.ledger(),
        };
        let digest = header.digest();
        *tip = (height, digest);
        let transactions = self.judged(verifier, height, transactions);
        VerifiedBlock { digest, header, transactions }
    }

    /// Whether transactions are endorsed at all.
    fn endorses(&self) -> bool {
        self.charter.execution == ExecutionModel::ExecuteOrderValidate
    }

    /// Proposals with their endorsements, those that the contract does not refuse. One endorser after the other executes
    /// them: this is for what is done before a clock starts.
    ///
    /// # Errors
    /// The endorsers found different effects.
    pub(super) fn endorse_all(
        &self,
        basis: &EndorsementBasis,
        proposals: Vec<(SignedTransaction, Instant)>,
    ) -> Result<Vec<Endorsed>, EngineBenchError> {
        let request = Request { basis: basis.clone(), proposals: Arc::new(proposals) };
        if !self.endorses() {
            return Ok(as_they_are(&request));
        }
        let answers = self.endorsers.iter().map(|one| (one.organisation, one.answer(&request))).collect();
        gather(&request, answers)
    }
}

/// Under order–execute nobody endorses anything.
fn as_they_are(request: &Request) -> Vec<Endorsed> {
    let nothing = Arc::new(no_effects());
    let as_it_is = |(signed, arrived): &(SignedTransaction, Instant)| Endorsed {
        bytes: signed.to_bytes().into(),
        effects: nothing.clone(),
        snapshot: request.basis.height,
        arrived: *arrived,
    };
    request.proposals.iter().map(as_it_is).collect()
}

impl Network {
    /// With the workload's tables, contracts and rows.
    pub(super) fn new(
        system: &System,
        workload: &dyn Workload,
        pipeline: Pipeline,
    ) -> Result<Network, EngineBenchError> {
        let key = |number: u8| SecretKey::from_bytes([number; 32]);
        let mut charter = Charter::with_defaults("bench", 1);
        charter.governance = "any".to_string();
        charter.execution = system.execution;
        charter.protocol = system.protocol.to_string();
        charter.endorsement.commands = system.commands;
        charter.endorsement.run_again = system.run_again;
        charter.checkpoint_blocks = 1_000_000;
        if system.execution == ExecutionModel::ExecuteOrderValidate {
            charter.block.batch_transactions = 65_535;
        }
        for number in 0..ORGANISATIONS {
            charter.organisations.push(Organisation {
                name: format!("org{}", number + 1),
                root_key: key(100 + number).public_key(),
                node_key: key(110 + number).public_key(),
                address: String::new(),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        let charter = Arc::new(charter);
        let (ledger, client) = (charter.ledger(), key(99));
        let mut network = Network {
            engine: Engine::new(charter.clone(), &Memory)?.with_pipeline(pipeline)?,
            verifier: Verifier::new(&charter),
            tip: (0, ledger),
            set_up: Vec::new(),
            invariants: Invariants::of(workload),
            parties: Arc::new(Parties {
                credential: Credential::issue(&key(100), 0, &ledger, &client.public_key()),
                client,
                endorsers: ENDORSERS
                    .map(|number| Endorser { organisation: number.into(), key: key(110 + number), ledger })
                    .into(),
                charter,
                requests: AtomicU64::new(0),
            }),
        };
        for sql in workload.set_up() {
            let payload = Payload::Script { sql: sql.to_string(), parameters: vec![] };
            network.set_up_with(payload, false)?;
        }
        for rows in workload.portions() {
            let payload = Payload::Insert {
                table: rows.table.to_string(),
                columns: rows.columns.iter().map(|column| column.to_string()).collect(),
                rows: rows.rows,
            };
            network.set_up_with(payload, system.execution == ExecutionModel::ExecuteOrderValidate)?;
        }
        Ok(network)
    }

    fn set_up_with(&mut self, payload: Payload, endorsed: bool) -> Result<(), EngineBenchError> {
        let statement: String = format!("{payload:?}").chars().take(500).collect();
        let signed = self.parties.propose(payload);
        let bytes = match endorsed {
            false => [Bytes::from(signed.to_bytes())],
            true => [self.endorsed(signed, &statement)?],
        };
        let block = self.block(&bytes);
        let executed = self.engine.execute(&block)?;
        match &executed.receipts[0].outcome {
            Outcome::Committed(_) => {
                self.set_up.push(record(block, &bytes, executed));
                Ok(())
            }
            outcome => Err(EngineBenchError::SetUp { statement, outcome: Box::new(outcome.clone()) }),
        }
    }

    /// A transaction of the set-up with its endorsements.
    fn endorsed(&self, signed: SignedTransaction, statement: &str) -> Result<Bytes, EngineBenchError> {
        let basis = self.basis();
        if let Some(endorsed) =
            self.parties.endorse_all(&basis, vec![(signed.clone(), Instant::now())])?.pop()
        {
            return Ok(endorsed.bytes);
        }
        let (id, payload) = (signed.transaction.id(), Arc::new(signed.transaction.payload));
        let found = basis.simulate((id, ClientId::default()), &types::Principal::default(), &payload);
        let outcome = Box::new(Outcome::Aborted(found.expect_err("its endorsers have refused it")));
        Err(EngineBenchError::SetUp { statement: statement.to_string(), outcome })
    }

    pub(super) fn basis(&self) -> EndorsementBasis {
        self.engine.endorsement_basis(1_800_000_000_000 + self.engine.height())
    }

    pub(super) fn block(&mut self, transactions: &[Bytes]) -> VerifiedBlock {
        self.parties.block(&self.verifier, &mut self.tip, transactions)
    }

    /// Verifies transactions, so that they need not be verified in their block.
    pub(super) fn remember(&self, transactions: &[Bytes]) {
        self.parties.judged(&self.verifier, self.tip.0 + 1, transactions);
    }

    /// Runs the whole network.
    pub(super) fn run(
        &mut self,
        system: &System,
        workload: &dyn Workload,
        options: &RunOptions,
    ) -> Result<Counts, EngineBenchError> {
        self.set_up = Vec::new();
        let shared = Shared {
            basis: Mutex::new(self.basis()),
            waiting: Mutex::default(),
            orderer: Mutex::new(Orderer::new(system.orderer, WINDOW)),
            under_way: AtomicUsize::new(0),
            done: AtomicBool::new(false),
            dropped: Mutex::default(),
            validated: AtomicU64::new(0),
            cut_ms: Mutex::default(),
        };
        let start = Instant::now();
        let (sender, blocks) = sync_channel::<Vec<Endorsed>>(1);
        let parties = self.parties.clone();
        let clients = ClientSide { parties: &parties, workload, options, shared: &shared, start };
        let mut counts = std::thread::scope(|scope| -> Result<Counts, EngineBenchError> {
            let shared = &shared;
            let (pending, gathering) = channel();
            let (mut asked, mut answering) = (Vec::new(), Vec::new());
            for endorser in parties.endorsers.iter().filter(|_| parties.endorses()) {
                let (request, requests) = sync_channel::<Request>(REQUESTS_MAX);
                let (answer, answers) = channel::<Answer>();
                scope.spawn(move || endorser.serve(&requests, &answer));
                asked.push(request);
                answering.push((endorser.organisation, answers));
            }
            let submitting = scope.spawn(move || clients.submit(&asked, &pending));
            let gateway = scope.spawn(move || gateway(shared, &gathering, &answering));
            let ordering = scope.spawn(move || order(shared, options, &sender));
            let mut counts = Counts::nothing();
            for endorsed in blocks {
                self.commit(&endorsed, shared, &mut counts)?;
            }
            ordering.join().expect("the orderer does not panic");
            counts.submitted = submitting.join().expect("clients do not panic");
            counts.refused = gateway.join().expect("the gateway does not panic")?;
            Ok(counts)
        })?;
        counts.seconds = start.elapsed().as_secs_f64();
        for why in lock(&shared.dropped).drain(..) {
            match why {
                EarlyAbort::Stale => counts.dropped_stale += 1,
                EarlyAbort::Cycle => counts.dropped_cycle += 1,
            }
        }
        counts.cut_ms = std::mem::take(&mut *lock(&shared.cut_ms));
        self.invariants.check(&self.engine)?;
        Ok(counts)
    }

    fn commit(
        &mut self,
        endorsed: &[Endorsed],
        shared: &Shared,
        counts: &mut Counts,
    ) -> Result<(), EngineBenchError> {
        let bytes: Vec<Bytes> = endorsed.iter().map(|one| one.bytes.clone()).collect();
        let block = self.block(&bytes);
        let executed = self.engine.execute(&block)?;
        let now = Instant::now();
        let committed = |outcome: &Outcome| matches!(outcome, Outcome::Committed(_));
        let held = endorsed.iter().zip(&executed.receipts);
        let held = held
            .filter(|(_, receipt)| committed(&receipt.outcome))
            .map(|(one, _)| PendingTransaction { effects: &one.effects, snapshot: one.snapshot });
        lock(&shared.orderer).validated(block.header.height, held);
        *lock(&shared.basis) = self.basis();
        shared.validated.store(block.header.height, Ordering::Release);
        counts.validated(endorsed.len(), &executed.statistics);
        for (one, receipt) in endorsed.iter().zip(&executed.receipts) {
            if committed(&receipt.outcome) {
                counts.latency.saturating_record((now - one.arrived).as_micros() as u64);
            }
        }
        shared.under_way.fetch_sub(endorsed.len(), Ordering::Relaxed);
        self.invariants.executed(&block, &executed);
        self.verifier.forget(&block);
        Ok(())
    }
}

impl Counts {
    pub(super) fn nothing() -> Counts {
        Counts {
            submitted: 0,
            refused: 0,
            dropped_stale: 0,
            dropped_cycle: 0,
            ordered: 0,
            committed: 0,
            conflicts: 0,
            ran_again: 0,
            blocks: 0,
            seconds: 0.0,
            latency: Histogram::new_with_max(LATENCY_MAX_US, 3).expect("bounds that make sense"),
            cut_ms: Vec::new(),
        }
    }

    /// Adds a block of so many transactions.
    pub(super) fn validated(&mut self, transactions: usize, statistics: &BlockStatistics) {
        self.blocks += 1;
        self.ordered += transactions as u64;
        self.committed += statistics.committed;
        self.conflicts += statistics.conflict_aborts;
        self.ran_again += statistics.reexecuted;
    }

    /// Adds another run of the same point.
    pub(super) fn add(&mut self, other: &Counts) {
        self.submitted += other.submitted;
        self.refused += other.refused;
        self.dropped_stale += other.dropped_stale;
        self.dropped_cycle += other.dropped_cycle;
        self.ordered += other.ordered;
        self.committed += other.committed;
        self.conflicts += other.conflicts;
        self.ran_again += other.ran_again;
        self.blocks += other.blocks;
        self.seconds += other.seconds;
        self.latency.add(&other.latency).expect("the same bounds");
        self.cut_ms.extend_from_slice(&other.cut_ms);
    }
}

/// What the threads share.
struct Shared {
    basis: Mutex<EndorsementBasis>,
    waiting: Mutex<VecDeque<Endorsed>>,
    orderer: Mutex<Orderer>,
    /// Transactions without an answer.
    under_way: AtomicUsize,
    /// No client comes any more.
    done: AtomicBool,
    dropped: Mutex<Vec<EarlyAbort>>,
    /// Height of the last block that the orderer knows of.
    validated: AtomicU64,
    cut_ms: Mutex<Vec<f64>>,
}

/// Clients.
struct ClientSide<'a> {
    parties: &'a Parties,
    workload: &'a dyn Workload,
    options: &'a RunOptions,
    shared: &'a Shared,
    start: Instant,
}

impl ClientSide<'_> {
    /// Until the time is up. Calls made; every endorser is asked about them, and the gateway is told what was asked.
    fn submit(&self, endorsers: &[SyncSender<Request>], pending: &Sender<Request>) -> u64 {
        let mut random = StdRng::seed_from_u64(self.options.seed);
        let mut made = 0u64;
        loop {
            let now = self.start.elapsed().as_secs_f64();
            if now >= self.options.seconds {
                break;
            }
            let due = match self.options.arrivals {
                Arrivals::Rate(rate) => (now * rate) as u64 - made,
                Arrivals::Clients(clients) => {
                    clients.saturating_sub(self.shared.under_way.load(Ordering::Relaxed)) as u64
                }
            };
            if due == 0 {
                std::thread::sleep(Duration::from_micros(300));
                continue;
            }
            let proposals: Vec<(SignedTransaction, Instant)> = (0..due.min(PROPOSALS_MAX as u64))
                .map(|ahead| {
                    let call = self.workload.call(made + ahead, &mut random);
                    let arrived = match self.options.arrivals {
                        // Not the moment in which this loop comes round to it.
                        Arrivals::Rate(rate) => {
                            self.start + Duration::from_secs_f64((made + ahead) as f64 / rate)
                        }
                        Arrivals::Clients(_) => Instant::now(),
                    };
                    (self.parties.propose(call.into_payload()), arrived)
                })
                .collect();
            made += proposals.len() as u64;
            self.shared.under_way.fetch_add(proposals.len(), Ordering::Relaxed);
            let basis = lock(&self.shared.basis).clone();
            let request = Request { basis, proposals: Arc::new(proposals) };
            let asked = endorsers.iter().all(|endorser| endorser.send(request.clone()).is_ok());
            if !asked || pending.send(request).is_err() {
                // The gateway has found something that ends the run.
                break;
            }
        }
        made
    }
}

/// Puts together what the endorsers say, request after request, until no more come. Calls that the contract refused.
fn gateway(
    shared: &Shared,
    pending: &Receiver<Request>,
    endorsers: &[(u16, Receiver<Answer>)],
) -> Result<u64, EngineBenchError> {
    let mut refused = 0;
    let mut gathered = || -> Result<(), EngineBenchError> {
        for request in pending {
            let answer = |(organisation, answers): &(u16, Receiver<Answer>)| {
                Some((*organisation, answers.recv().ok()?))
            };
            let ready = match endorsers.iter().map(answer).collect::<Option<Vec<_>>>() {
                // An endorser has panicked, and its thread says so.
                None => return Ok(()),
                Some(answers) if answers.is_empty() => as_they_are(&request),
                Some(answers) => gather(&request, answers)?,
            };
            let gone = request.proposals.len() - ready.len();
            refused += gone as u64;
            shared.under_way.fetch_sub(gone, Ordering::Relaxed);
            lock(&shared.waiting).extend(ready);
        }
        Ok(())
    };
    let gathered = gathered();
    shared.done.store(true, Ordering::Release);
    gathered.map(|()| refused)
}

/// What a ledger records of a block.
pub(super) fn record(block: VerifiedBlock, transactions: &[Bytes], executed: ExecutedBlock) -> BlockRecord {
    BlockRecord {
        block: Block {
            header: block.header,
            attested: types::Attested::default(),
            transactions: transactions.to_vec(),
        },
        certificate: Bytes::new(),
        outcome: BlockOutcome {
            receipts: executed.receipts,
            digest: executed.digest,
            header: executed.outcome,
        },
    }
}

fn no_effects() -> Effects {
    let (reads, scans, commands) = Default::default();
    Effects { reads, scans, commands, result: Ok(Vec::new()), steps: 0, catalog: None }
}

/// Cuts blocks until no more come.
fn order(shared: &Shared, options: &RunOptions, blocks: &SyncSender<Vec<Endorsed>>) {
    let mut own: VecDeque<Endorsed> = VecDeque::new();
    let mut judged = 0;
    let patience = Duration::from_millis(options.block_ms);
    loop {
        let done = shared.done.load(Ordering::Acquire);
        own.append(&mut lock(&shared.waiting));
        // Who cannot commit any more makes room before the block is full.
        let validated = shared.validated.load(Ordering::Acquire);
        if std::mem::replace(&mut judged, validated) != validated {
            let orderer = lock(&shared.orderer);
            let before = own.len();
            own.retain(|one| {
                !orderer.drops(&PendingTransaction { effects: &one.effects, snapshot: one.snapshot })
            });
            let dropped = before - own.len();
            shared.under_way.fetch_sub(dropped, Ordering::Relaxed);
            lock(&shared.dropped).extend(std::iter::repeat_n(EarlyAbort::Stale, dropped));
        }
        let full = own.len() >= options.block_transactions;
        let late = own.front().is_some_and(|first| first.arrived.elapsed() >= patience);
        if !(full || late || done && !own.is_empty()) {
            if done {
                return;
            }
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        let start = Instant::now();
        let waiting: Vec<PendingTransaction<'_>> = own
            .iter()
            .map(|one| PendingTransaction { effects: &one.effects, snapshot: one.snapshot })
            .collect();
        let cut = lock(&shared.orderer).cut(&waiting, options.block_transactions);
        lock(&shared.cut_ms).push(start.elapsed().as_secs_f64() * 1_000.0);
        let mut taken: Vec<Option<Endorsed>> = own.drain(..cut.taken).map(Some).collect();
        let block: Vec<Endorsed> =
            cut.order.iter().filter_map(|position| taken[*position as usize].take()).collect();
        shared.under_way.fetch_sub(cut.dropped.len(), Ordering::Relaxed);
        lock(&shared.dropped).extend(cut.dropped.into_iter().map(|(_, why)| why));
        if !block.is_empty() && blocks.send(block).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::named;
    use super::*;
    use types::Value;
    use workloads::{HotAccounts, workload};

    fn run(workload: &dyn Workload, system: &str) -> Network {
        let system = named(system).expect("a system");
        let mut network = Network::new(&system, workload, Pipeline::Serial).expect("a network");
        let options = RunOptions {
            arrivals: Arrivals::Clients(40),
            seconds: 0.3,
            block_transactions: 20,
            block_ms: 10,
            seed: 5,
        };
        let counts = network.run(&system, workload, &options).expect("its invariant holds");
        assert!(counts.committed > 0, "{}", system.name);
        network
    }

    /// Behind everybody's back a row is another one.
    fn tamper(network: &Network, table: &str) {
        let snapshot = network.engine.state().snapshot();
        let table = snapshot.catalog().tables[table].id;
        let mut changed = None;
        snapshot
            .scan(table, &state::KeyRange::ALL, false, &mut |key, row| {
                let mut values = row.to_vec();
                if let Some(Value::BigInt(number)) = values.last_mut() {
                    // More than any call writes: several of one block write a hot account, and each may have been the last.
                    *number += 1_000_000;
                }
                let row = state::RowId { table, key: key.clone() };
                changed = Some(state::AfterImage { row, value: Some(values.into()) });
                std::ops::ControlFlow::Break(())
            })
            .expect("memory can be read");
        drop(snapshot);
        let version = state::Version::after_block(network.engine.height());
        network.engine.state().apply(version, &[changed.expect("a row")], None).expect("memory");
    }

    #[test]
    fn an_update_that_nobody_made_is_found_whatever_the_workload() {
        let hot =
            HotAccounts { accounts: 200, operations: 4, hot_reads: 0.4, hot_writes: 0.4, hot_share: 0.05 };
        let workloads: [(Box<dyn Workload>, &str); 3] = [
            (Box::new(hot.check().expect("valid")), "hot_accounts"),
            (workload("smallbank", 200, 0.5).expect("valid"), "savings"),
            (workload("contention", 200, 0.5).expect("valid"), "wallets"),
        ];
        for (workload, table) in workloads {
            for system in ["harmony", "occ", "fabric++", "fabric-sharp", "xox+commands"] {
                let network = run(workload.as_ref(), system);
                tamper(&network, table);
                let error = network.invariants.check(&network.engine).expect_err("somebody changed a row");
                assert!(matches!(error, EngineBenchError::Invariant(_)), "{system} on {table}: {error}");
            }
        }
    }

    #[test]
    fn endorsers_that_find_something_else_end_the_run() {
        let workload = workload("contention", 200, 0.5).expect("valid");
        let network = run(workload.as_ref(), "occ");
        let call = workload.call(7, &mut StdRng::seed_from_u64(1)).into_payload();
        let request = |basis: EndorsementBasis| {
            let proposals = Arc::new(vec![(network.parties.propose(call.clone()), Instant::now())]);
            Request { basis, proposals }
        };
        let (mut other, here) = (network.basis(), request(network.basis()));
        other.timestamp_ms += 1;
        let there = Request { basis: other, proposals: here.proposals.clone() };
        let [one, two] = &network.parties.endorsers[..] else { panic!("two endorsers") };
        let answers = |second: &Request| vec![(0, one.answer(&here)), (1, two.answer(second))];
        assert_eq!(gather(&here, answers(&here)).expect("they agree").len(), 1);
        let error = gather(&here, answers(&there)).err().expect("they do not");
        assert!(matches!(error, EngineBenchError::Diverging { first: 0, second: 1 }), "{error}");
    }
}
