//! Which networks are measured, and what the paper has at each point (paper 002, section 4.8).

use super::network::{ChainifyNetwork, ChainifyNetworkOptions};
use super::record::{NetworkRecord, SigningRecord, ThroughputPoint};
use super::recovery;
use crate::CommandError;
use crate::demo::databases::DatabaseKind;
use DatabaseKind::{Mariadb, None as NoDatabase, Postgres};
use bench::Submit;
use crypto::{SecretKey, SignedMessage};
use std::time::{Duration, Instant};
use types::{Charter, ExecutionModel};

/// As the paper: two PostgreSQL and one of another maker. The fourth organisation has none.
const HETEROGENEOUS: [DatabaseKind; 4] = [Postgres, Mariadb, Postgres, NoDatabase];
/// As the paper's other network: PostgreSQL everywhere.
const HOMOGENEOUS: [DatabaseKind; 4] = [Postgres, Postgres, Postgres, NoDatabase];
/// Zipf's exponents: the paper's, and uniform.
const SKEWS: [f64; 2] = [1.1, 0.0];
/// Clients of all organisations. The paper has 3, 6, 12 and 24 at three organisations.
const CLIENTS: [usize; 4] = [4, 8, 16, 32];
/// The paper's throughput with any 2, at each number of clients (table 4.2).
const PAPER: [(f64, [f64; 4]); 2] =
    [(1.1, [2_757.0, 3_676.0, 4_709.0, 4_812.0]), (0.0, [2_279.0, 3_840.0, 5_774.0, 6_144.0])];
/// What Fabric++ reaches there at most (section 4.8.2: "around 1000").
const PAPER_FABRICPP: f64 = 1_000.0;
/// Transactions of its block there.
const FABRICPP_BLOCK: u32 = 1_024;
/// By how much cryptography decreases the paper's throughput (section 4.8.4).
const PAPER_SIGNING: f64 = 0.07;
/// How long signing and verifying are measured.
const SIGNING_TIME: Duration = Duration::from_millis(500);
const SIGNED: usize = 400;
const WARM_UP: Duration = Duration::from_secs(2);

/// What `--network` measures.
pub(super) struct NetworkExperiments {
    pub(super) customers: u64,
    /// Of each load.
    pub(super) time: Duration,
    pub(super) seed: u64,
    pub(super) quick: bool,
    pub(super) port_base: u16,
}

/// A kind of network.
struct System {
    name: &'static str,
    kinds: &'static [DatabaseKind],
    outcome_quorum: Option<u32>,
    submit: Submit,
    clients: Vec<usize>,
    skews: Vec<f64>,
}

impl System {
    fn apply(&self, charter: &mut Charter) {
        charter.outcome_quorum = self.outcome_quorum;
        if self.submit == Submit::ChainifyScripts {
            charter.execution = ExecutionModel::WhateverThenAgree;
            charter.protocol = "serial".to_string();
        } else {
            charter.execution = ExecutionModel::ExecuteOrderValidate;
            charter.protocol = "fabric++".to_string();
            charter.block.transactions_max = FABRICPP_BLOCK;
        }
    }

    /// What the paper has at a point.
    fn paper(&self, skew: f64, clients: usize) -> Option<f64> {
        if self.submit == Submit::ChainifyCalls {
            return Some(PAPER_FABRICPP).filter(|_| skew > 0.0);
        }
        if self.kinds != HETEROGENEOUS || self.outcome_quorum != Some(2) {
            return None;
        }
        let (_, values) = PAPER.iter().find(|(of, _)| *of == skew)?;
        CLIENTS.iter().position(|of| *of == clients).map(|position| values[position])
    }
}

impl NetworkExperiments {
    /// Figure 4.11a and table 4.2: databases by clients and policy, homogeneous networks, execution in the nodes, Fabric++.
    fn systems(&self) -> Vec<System> {
        let ends = vec![CLIENTS[0], CLIENTS[CLIENTS.len() - 1]];
        let most = vec![CLIENTS[CLIENTS.len() - 1]];
        let clients = if self.quick { ends.clone() } else { CLIENTS.to_vec() };
        let system = |name, kinds, outcome_quorum, clients: &[usize]| System {
            name,
            kinds,
            outcome_quorum,
            submit: Submit::ChainifyScripts,
            clients: clients.to_vec(),
            skews: SKEWS.to_vec(),
        };
        let fabric = System {
            submit: Submit::ChainifyCalls,
            ..system("fabric++", &[], None, if self.quick { &most } else { &ends })
        };
        let mut systems = vec![system("whatever-then-agree", &HETEROGENEOUS, Some(2), &clients), fabric];
        if !self.quick {
            systems.push(system("whatever-then-agree", &HETEROGENEOUS, Some(4), &ends));
            systems.push(system("whatever-then-agree", &HOMOGENEOUS, Some(2), &ends));
            systems.push(system("whatever-then-agree, executed by nodes", &[], None, &most));
        }
        systems
    }

    fn start(&self, system: &System) -> Result<(tempfile::TempDir, ChainifyNetwork), CommandError> {
        let folder = tempfile::tempdir()?;
        let options = ChainifyNetworkOptions {
            folder: folder.path(),
            port_base: self.port_base,
            customers: self.customers,
            kinds: system.kinds,
            submit: system.submit,
            seed: self.seed,
        };
        let network = ChainifyNetwork::start(&options, |charter| system.apply(charter))?;
        Ok((folder, network))
    }
}

/// Everything, one network after the other. After each all rows of all databases are compared.
pub(super) fn run(experiments: &NetworkExperiments) -> Result<NetworkRecord, CommandError> {
    let (mut throughput, mut transaction_us) = (Vec::new(), None);
    for system in experiments.systems() {
        let (_folder, mut network) = experiments.start(&system)?;
        let measured = measure(experiments, &system, &mut network);
        let (points, cost) = network.or_logs(measured)?;
        // The paper's own network, with the most clients, is the first.
        transaction_us.get_or_insert(cost);
        throughput.extend(points);
    }
    let mut recovery = Vec::new();
    let networks = [(&HETEROGENEOUS, 17.0), (&HOMOGENEOUS, 4.0)];
    for (kinds, paper_seconds) in networks.into_iter().take(if experiments.quick { 1 } else { 2 }) {
        let system = System {
            name: "whatever-then-agree",
            kinds,
            outcome_quorum: Some(2),
            submit: Submit::ChainifyScripts,
            clients: Vec::new(),
            skews: Vec::new(),
        };
        let (_folder, mut network) = experiments.start(&system)?;
        let measured = recovery::measure(&mut network, &names(kinds), paper_seconds);
        recovery.push(network.or_logs(measured)?);
    }
    let signing = signing(transaction_us.unwrap_or_default());
    Ok(NetworkRecord { customers: experiments.customers, throughput, signing, recovery })
}

fn measure(
    experiments: &NetworkExperiments,
    system: &System,
    network: &mut ChainifyNetwork,
) -> Result<(Vec<ThroughputPoint>, f64), CommandError> {
    let (mut points, mut cost) = (Vec::new(), 0.0);
    network.load(CLIENTS[0], 0.0, WARM_UP)?;
    for skew in &system.skews {
        for clients in &system.clients {
            let before = processors_busy()?;
            let report = network.load(*clients, *skew, experiments.time)?;
            cost = (processors_busy()? - before).as_secs_f64() * 1e6 / report.committed.max(1) as f64;
            let answered = report.committed + report.business_aborts + report.conflict_aborts;
            let point = ThroughputPoint {
                system: system.name,
                databases: names(system.kinds),
                outcome_quorum: system.outcome_quorum,
                skew: *skew,
                clients: *clients,
                committed_tps: report.throughput_tps,
                conflict_share: report.conflict_aborts as f64 / answered.max(1) as f64,
                p50_ms: report.latency_ms.p50,
                paper_tps: system.paper(*skew, *clients),
            };
            eprintln!(
                "{} {}: Zipf {skew}, {clients} clients: {} tps, {:.0} % given up",
                point.system,
                point.databases,
                bench::grouped(point.committed_tps as u64),
                point.conflict_share * 100.0
            );
            points.push(point);
        }
    }
    network.check()?;
    Ok((points, cost))
}

/// What the processors of this machine have computed since it was started, for whomever.
fn processors_busy() -> Result<Duration, CommandError> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user, nice, system; idle and iowait are not work; irq, softirq.
    let busy: u64 = [0, 1, 2, 5, 6].into_iter().filter_map(|field| ticks.get(field)).sum();
    Ok(Duration::from_millis(busy * 10))
}

fn signing(transaction_us: f64) -> SigningRecord {
    let keys: Vec<SecretKey> = (0..4).map(|_| SecretKey::generate()).collect();
    // As long as a signed script.
    let message = [7_u8; 300];
    let (start, mut signed) = (Instant::now(), 0);
    let mut signatures = Vec::new();
    while start.elapsed() < SIGNING_TIME || signatures.len() < SIGNED {
        let key = &keys[signed % keys.len()];
        signatures.push((key.public_key(), key.sign(&message)));
        signed += 1;
    }
    let sign_us = start.elapsed().as_secs_f64() * 1e6 / signed as f64;
    let messages: Vec<SignedMessage<'_>> = signatures[..SIGNED]
        .iter()
        .map(|(key, signature)| SignedMessage { key: *key, signature: *signature, message: &message })
        .collect();
    let (start, mut verified) = (Instant::now(), 0);
    while start.elapsed() < SIGNING_TIME {
        let valid = crypto::verify_batch(&messages);
        assert!(valid.iter().all(|valid| *valid), "what was signed here is valid");
        verified += SIGNED;
    }
    let verify_us = start.elapsed().as_secs_f64() * 1e6 / verified as f64;
    let share = (sign_us + 4.0 * verify_us) / transaction_us.max(1.0);
    SigningRecord { sign_us, verify_us, transaction_us, share, paper_share: PAPER_SIGNING }
}

fn names(kinds: &[DatabaseKind]) -> String {
    let names = kinds.iter().map(|kind| match kind {
        Postgres => "postgres",
        Mariadb => "mariadb",
        NoDatabase => "none",
    });
    names.collect::<Vec<_>>().join(",")
}
