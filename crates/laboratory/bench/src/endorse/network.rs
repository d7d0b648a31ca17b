//! A network of execute–order–validate in one process: endorsers, an orderer and a committer, each on a thread, with
//! real signatures; no wire and no disk.
//!
//! ```text
//!  arrivals ──▶ simulate, sign ──▶ waiting ──▶ drop, reorder, cut ──▶ verify, validate, apply ──▶ answers
//!               (newest state)                                        │
//!                     ▲──────────────── state, what was written ◀─────┘
//! ```

use super::system::System;
use crate::EngineBenchError;
use bytes::Bytes;
use concurrency::endorsed::{EarlyAbort, Orderer, PendingTransaction};
use crypto::{Digest, SecretKey};
use engine::{BlockStatistics, EndorsementBasis, Engine, ExecutedBlock, Judged, VerifiedBlock, Verifier};
use hdrhistogram::Histogram;
use ledger::{BlockOutcome, BlockRecord};
use rand::SeedableRng;
use rand::rngs::StdRng;
use state::Effects;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use types::{
    Block, BlockHeader, Charter, Charters, Credential, EndorsedEffects, EndorsedSimulation, Endorsement,
    ExecutionModel, Organisation, Outcome, Payload, Pipeline, Place, RequestId, SignedTransaction,
    Transaction, TransactionId, endorse, transactions_root,
};
use workloads::Workload;

/// Organisations; any two of them endorse.
const ORGANISATIONS: u8 = 4;
/// Who endorses here.
const ENDORSERS: [u8; 2] = [0, 1];
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
    effects: Arc<Effects>,
    snapshot: u64,
    arrived: Instant,
}

/// Clients and endorsers: who needs keys.
pub(super) struct Parties {
    pub(super) charter: Arc<Charter>,
    client: SecretKey,
    credential: Credential,
    nodes: Vec<SecretKey>,
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

    /// One signature of each endorser under all of these; their endorsements by transaction.
    fn sign(&self, basis: &EndorsementBasis, found: &[(TransactionId, Digest)]) -> Vec<Vec<Endorsement>> {
        let ledger = self.charter.ledger();
        let mut by_transaction: Vec<Vec<Endorsement>> =
            vec![Vec::with_capacity(ENDORSERS.len()); found.len()];
        for endorser in ENDORSERS {
            let key = &self.nodes[usize::from(endorser)];
            let endorsements = endorse(key, u16::from(endorser), &ledger, basis.height, found);
            by_transaction.iter_mut().zip(endorsements).for_each(|(of, endorsement)| of.push(endorsement));
        }
        by_transaction
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

    /// Proposals with their endorsements, those that the contract does not refuse.
    pub(super) fn endorse_all(
        &self,
        basis: &EndorsementBasis,
        proposals: Vec<(SignedTransaction, Instant)>,
    ) -> Vec<Endorsed> {
        if self.charter.execution == ExecutionModel::OrderExecute {
            let nothing = Arc::new(no_effects());
            let as_it_is = |(signed, arrived): (SignedTransaction, Instant)| Endorsed {
                bytes: signed.to_bytes().into(),
                effects: nothing.clone(),
                snapshot: basis.height,
                arrived,
            };
            return proposals.into_iter().map(as_it_is).collect();
        }
        let mut found: Vec<(SignedTransaction, Instant, TransactionId, EndorsedEffects)> = Vec::new();
        for (signed, arrived) in proposals {
            let id = signed.transaction.id();
            if let Ok(effects) = basis.simulate(
                id,
                &types::Principal::default(),
                &Arc::new(signed.transaction.payload.clone()),
            ) {
                found.push((signed, arrived, id, effects));
            }
        }
        let digests: Vec<(TransactionId, Digest)> =
            found.iter().map(|(_, _, id, effects)| (*id, effects.digest())).collect();
        let endorsements = self.sign(basis, &digests);
        found
            .into_iter()
            .zip(endorsements)
            .filter_map(|((mut signed, arrived, _, effects), endorsements)| {
                let plain = state::effects_of(&effects, |write| Ok(state::write_command(write))).ok()?;
                signed.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
                let (bytes, snapshot) = (signed.to_bytes().into(), basis.height);
                Some(Endorsed { bytes, effects: Arc::new(plain), snapshot, arrived })
            })
            .collect()
    }
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
            engine: Engine::new(charter.clone())?.with_pipeline(pipeline)?,
            verifier: Verifier::new(&charter),
            tip: (0, ledger),
            set_up: Vec::new(),
            parties: Arc::new(Parties {
                credential: Credential::issue(&key(100), 0, &ledger, &client.public_key()),
                client,
                nodes: (0..ORGANISATIONS).map(|number| key(110 + number)).collect(),
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
        let mut signed = self.parties.propose(payload);
        if endorsed {
            let id = signed.transaction.id();
            let basis = self.basis();
            let effects = basis
                .simulate(id, &types::Principal::default(), &Arc::new(signed.transaction.payload.clone()))
                .map_err(|error| {
                    let outcome = Box::new(Outcome::Aborted(error));
                    EngineBenchError::SetUp { statement: statement.clone(), outcome }
                })?;
            let endorsements = self.parties.sign(&basis, &[(id, effects.digest())]).remove(0);
            signed.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
        }
        let bytes = [Bytes::from(signed.to_bytes())];
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
            let submitting = scope.spawn(|| clients.submit());
            let shared = &shared;
            let ordering = scope.spawn(move || order(shared, options, &sender));
            let mut counts = Counts::nothing();
            for endorsed in blocks {
                self.commit(&endorsed, shared, &mut counts)?;
            }
            ordering.join().expect("the orderer does not panic");
            (counts.submitted, counts.refused) = submitting.join().expect("clients do not panic");
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

/// Clients and endorsers.
struct ClientSide<'a> {
    parties: &'a Parties,
    workload: &'a dyn Workload,
    options: &'a RunOptions,
    shared: &'a Shared,
    start: Instant,
}

impl ClientSide<'_> {
    /// Until the time is up. Calls made, and those that the contract refused.
    fn submit(&self) -> (u64, u64) {
        let mut random = StdRng::seed_from_u64(self.options.seed);
        let (mut made, mut refused) = (0u64, 0u64);
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
            let count = proposals.len() as u64;
            let basis = lock(&self.shared.basis).clone();
            let endorsed = self.parties.endorse_all(&basis, proposals);
            made += count;
            refused += count - endorsed.len() as u64;
            self.shared.under_way.fetch_add(endorsed.len(), Ordering::Relaxed);
            lock(&self.shared.waiting).extend(endorsed);
        }
        self.shared.done.store(true, Ordering::Release);
        (made, refused)
    }
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
