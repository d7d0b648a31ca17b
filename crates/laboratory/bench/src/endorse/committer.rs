//! A committer alone: blocks whose transactions were endorsed before the clock started are verified, validated and
//! recorded on a disk as fast as it goes.
//!
//! ```text
//!  blocks ──▶ verify ──verified ahead──▶ validate, apply ──recorded behind──▶ append, flush
//!             (signatures, all threads)  (in block order)                    (many blocks together)
//! ```
//!
//! Each of the three stages may wait for the one before it, or run beside it, so that one sees what each step gains.

use super::invariants::Invariants;
use super::network::{Counts, Network, Parties, record};
use super::system::System;
use crate::EngineBenchError;
use bytes::Bytes;
use crypto::Digest;
use engine::{EndorsementBasis, Engine, VerifiedBlock, Verifier};
use ledger::{BlockRecord, Ledger, LedgerError};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;
use types::{Payload, Pipeline};
use workloads::Workload;

/// Blocks that the engine sees before their turn, at most: as in a node.
const FORESEEN_MAX: usize = 8;
/// Blocks that wait for being recorded, at most.
const RECORDS_WAITING_MAX: usize = 64;

/// How a committer works.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Committer {
    /// Its line in a plot, where there are several.
    pub(super) name: String,
    /// Threads that verify and validate; 0 is as many as the machine has.
    pub(super) threads: usize,
    /// Blocks that are verified before the one in front of them is validated; 0: verification waits for validation.
    pub(super) verified_ahead: usize,
    /// Blocks are recorded on a thread of their own.
    pub(super) recorded_behind: bool,
    /// Blocks that one flush makes durable, at most.
    pub(super) flushed_together: usize,
    /// Proposals that an endorser answers with one signature.
    pub(super) endorsed_together: usize,
    /// Everything was verified before, when clients submitted it, and is remembered.
    pub(super) remembered: bool,
    /// Validation is scheduled on SmartFabric's graph of all that wait, instead of in order.
    pub(super) graph: bool,
}

impl Default for Committer {
    fn default() -> Committer {
        Committer {
            name: String::new(),
            threads: 0,
            verified_ahead: 0,
            recorded_behind: false,
            flushed_together: 1,
            endorsed_together: 1,
            remembered: false,
            graph: false,
        }
    }
}

/// What a committer is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) transactions: u64,
    pub(super) block_size: usize,
    /// Transactions are endorsed on the state so many blocks before their own; without it, on that before all of them.
    pub(super) endorsed_behind: Option<usize>,
    pub(super) seed: u64,
}

/// Runs a committer in a network of its own.
pub(super) fn run(
    committer: &Committer,
    system: &System,
    workload: &dyn Workload,
    load: Load,
) -> Result<Counts, EngineBenchError> {
    let pipeline = if committer.graph { Pipeline::Graph } else { Pipeline::Serial };
    let network = Network::new(system, workload, pipeline)?;
    let blocks = match load.endorsed_behind {
        None => endorsed_at_once(&network, committer, workload, load)?,
        // Another network with the same keys goes the same way, and endorses on it.
        Some(behind) => endorsed_on_the_way(
            Network::new(system, workload, Pipeline::Serial)?,
            committer,
            workload,
            load,
            behind,
        )?,
    };
    let pool = match committer.threads {
        0 => None,
        threads => {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            Some(pool.map_err(|_| EngineBenchError::Threads(threads))?)
        }
    };
    if committer.remembered {
        blocks.iter().for_each(|block| network.remember(block));
    }
    commit(network, committer, pool.as_ref(), &blocks)
}

fn endorsed_at_once(
    network: &Network,
    committer: &Committer,
    workload: &dyn Workload,
    load: Load,
) -> Result<Vec<Vec<Bytes>>, EngineBenchError> {
    let (basis, mut random) = (network.basis(), StdRng::seed_from_u64(load.seed));
    let calls: Vec<Payload> =
        (0..load.transactions).map(|number| workload.call(number, &mut random).into_payload()).collect();
    let endorsed = endorse(&network.parties, &basis, committer, calls)?;
    Ok(endorsed.chunks(load.block_size).map(<[Bytes]>::to_vec).collect())
}

fn endorsed_on_the_way(
    mut network: Network,
    committer: &Committer,
    workload: &dyn Workload,
    load: Load,
    behind: usize,
) -> Result<Vec<Vec<Bytes>>, EngineBenchError> {
    let mut random = StdRng::seed_from_u64(load.seed);
    let mut bases = VecDeque::from([network.basis()]);
    let mut blocks = Vec::new();
    for first in (0..load.transactions).step_by(load.block_size) {
        let numbers = first..load.transactions.min(first + load.block_size as u64);
        let calls = numbers.map(|number| workload.call(number, &mut random).into_payload()).collect();
        let block = endorse(&network.parties, &bases[0], committer, calls)?;
        let verified = network.block(&block);
        network.engine.execute(&verified)?;
        network.verifier.forget(&verified);
        bases.push_back(network.basis());
        if bases.len() > behind + 1 {
            bases.pop_front();
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Proposals that are signed by their client and endorsed, some with one signature of each endorser.
fn endorse(
    parties: &Parties,
    basis: &EndorsementBasis,
    committer: &Committer,
    calls: Vec<Payload>,
) -> Result<Vec<Bytes>, EngineBenchError> {
    let mut calls = calls.into_iter();
    let mut endorsed = Vec::with_capacity(calls.len());
    while calls.len() > 0 {
        let together = calls.by_ref().take(committer.endorsed_together);
        let proposals = together.map(|call| (parties.propose(call), Instant::now())).collect();
        endorsed.extend(parties.endorse_all(basis, proposals)?.into_iter().map(|endorsed| endorsed.bytes));
    }
    Ok(endorsed)
}

/// A verified block, its transactions, and when the committer took it up.
type Taken<'a> = (VerifiedBlock, &'a [Bytes], Instant);

fn commit(
    network: Network,
    committer: &Committer,
    pool: Option<&ThreadPool>,
    blocks: &[Vec<Bytes>],
) -> Result<Counts, EngineBenchError> {
    let Network { parties, mut engine, verifier, tip, set_up, mut invariants } = network;
    let folder = tempfile::tempdir().map_err(EngineBenchError::Folder)?;
    let (ledger, _) = Ledger::open(folder.path(), parties.charter.ledger())?;
    for record in set_up {
        ledger.append(&record)?;
    }
    ledger.flush()?;
    let mut counts = Counts::nothing();
    let start = Instant::now();
    let verification = Verification { parties: &parties, verifier: &verifier, pool };
    let recorder =
        Recorder { ledger: &ledger, together: committer.flushed_together, latencies_us: Vec::new() };
    let latencies_us = std::thread::scope(|scope| -> Result<Vec<u64>, EngineBenchError> {
        let taken = verification.start(scope, committer.verified_ahead, tip, blocks);
        if committer.recorded_behind {
            let (executed, records) = sync_channel(RECORDS_WAITING_MAX);
            let recording = scope.spawn(move || recorder.record_all(&records));
            let totals = (&mut counts, &mut invariants);
            validate(&mut engine, pool, taken, totals, |one| Ok(executed.send(one).is_ok()))?;
            drop(executed);
            return Ok(recording.join().expect("recording does not panic")?);
        }
        let mut recorder = recorder;
        let mut unflushed = Vec::new();
        validate(&mut engine, pool, taken, (&mut counts, &mut invariants), |one| {
            recorder.append(one, &mut unflushed)?;
            Ok(true)
        })?;
        recorder.flush(&mut unflushed)?;
        Ok(recorder.latencies_us)
    })?;
    counts.seconds = start.elapsed().as_secs_f64();
    invariants.check(&engine)?;
    latencies_us.into_iter().for_each(|latency| counts.latency.saturating_record(latency));
    Ok(counts)
}

/// Executes blocks and hands them on until nobody takes them any more. An engine that looks ahead is shown those that
/// wait, as a node does it; another one refuses them.
fn validate<'a>(
    engine: &mut Engine,
    pool: Option<&ThreadPool>,
    mut verified: Verified<'a>,
    (counts, invariants): (&mut Counts, &mut Invariants),
    mut hand_on: impl FnMut((BlockRecord, Instant)) -> Result<bool, EngineBenchError>,
) -> Result<(), EngineBenchError> {
    let mut waiting: VecDeque<Taken<'a>> = VecDeque::new();
    // Of those that wait, how many the engine has seen.
    let mut foreseen = 0;
    loop {
        if waiting.is_empty() {
            waiting.extend(verified.next());
        }
        while foreseen < FORESEEN_MAX {
            if waiting.len() <= foreseen {
                waiting.extend(verified.ready());
            }
            let Some((block, ..)) = waiting.get(foreseen) else { break };
            if !on(pool, || engine.foresee(block)) {
                break;
            }
            foreseen += 1;
        }
        let Some((block, bytes, since)) = waiting.pop_front() else { return Ok(()) };
        foreseen = foreseen.saturating_sub(1);
        let executed = on(pool, || engine.execute(&block))?;
        counts.validated(bytes.len(), &executed.statistics);
        invariants.executed(&block, &executed);
        if !hand_on((record(block, bytes, executed), since))? {
            return Ok(());
        }
    }
}

/// On the threads of a pool, or on those of the process.
fn on<R: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> R + Send) -> R {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// What it takes to verify blocks.
#[derive(Clone, Copy)]
struct Verification<'a> {
    parties: &'a Parties,
    verifier: &'a Verifier,
    pool: Option<&'a ThreadPool>,
}

impl<'a> Verification<'a> {
    fn verify(self, tip: &mut (u64, Digest), bytes: &'a [Bytes]) -> Taken<'a> {
        let since = Instant::now();
        (on(self.pool, || self.parties.block(self.verifier, tip, bytes)), bytes, since)
    }

    /// Verified blocks, so many of them ahead of whoever takes them.
    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        ahead: usize,
        mut tip: (u64, Digest),
        blocks: &'a [Vec<Bytes>],
    ) -> Verified<'a>
    where
        'a: 'scope,
    {
        if ahead == 0 {
            return Verified::WhenTaken { verification: self, tip, blocks: blocks.iter() };
        }
        // One block is in the verifying thread's hands, the others in the queue.
        let (sender, verified) = sync_channel(ahead - 1);
        let _: ScopedJoinHandle<()> = scope.spawn(move || {
            for bytes in blocks {
                if sender.send(self.verify(&mut tip, bytes)).is_err() {
                    return;
                }
            }
        });
        Verified::Ahead(verified)
    }
}

/// Blocks in order, verified when they are taken or before.
enum Verified<'a> {
    WhenTaken { verification: Verification<'a>, tip: (u64, Digest), blocks: std::slice::Iter<'a, Vec<Bytes>> },
    Ahead(Receiver<Taken<'a>>),
}

impl<'a> Verified<'a> {
    /// The next one, waiting for it; nothing behind the last.
    fn next(&mut self) -> Option<Taken<'a>> {
        match self {
            Verified::WhenTaken { verification, tip, blocks } => {
                blocks.next().map(|bytes| verification.verify(tip, bytes))
            }
            Verified::Ahead(verified) => verified.recv().ok(),
        }
    }

    /// The next one if it is verified already.
    fn ready(&mut self) -> Option<Taken<'a>> {
        match self {
            Verified::WhenTaken { .. } => None,
            Verified::Ahead(verified) => verified.try_recv().ok(),
        }
    }
}

/// Writes blocks into a ledger.
struct Recorder<'a> {
    ledger: &'a Ledger,
    /// Blocks of one flush, at most.
    together: usize,
    /// Per block, from when the committer took it up until it was durable.
    latencies_us: Vec<u64>,
}

impl Recorder<'_> {
    /// As many blocks as wait are flushed together.
    fn record_all(mut self, records: &Receiver<(BlockRecord, Instant)>) -> Result<Vec<u64>, LedgerError> {
        let mut unflushed = Vec::new();
        while let Ok(first) = records.recv() {
            self.append(first, &mut unflushed)?;
            while !unflushed.is_empty()
                && let Ok(next) = records.try_recv()
            {
                self.append(next, &mut unflushed)?;
            }
            self.flush(&mut unflushed)?;
        }
        Ok(self.latencies_us)
    }

    fn append(
        &mut self,
        (record, since): (BlockRecord, Instant),
        unflushed: &mut Vec<Instant>,
    ) -> Result<(), LedgerError> {
        self.ledger.append(&record)?;
        unflushed.push(since);
        if unflushed.len() >= self.together { self.flush(unflushed) } else { Ok(()) }
    }

    fn flush(&mut self, unflushed: &mut Vec<Instant>) -> Result<(), LedgerError> {
        if !unflushed.is_empty() {
            self.ledger.flush()?;
            self.latencies_us.extend(unflushed.drain(..).map(|since| since.elapsed().as_micros() as u64));
        }
        Ok(())
    }
}
