//! What a demo came to: the table, the checks, the JSON record, the lines to paste.

use super::DemoArguments;
use super::databases::CheckedDatabase;
use super::prepare::first_column;
use super::prepare::{connect, explain};
use super::supervision::{Cause, Failure, Supervisor};
use crate::CommandError;
use bench::{LatencyMs, LoadReport};
use client::{Client, Status};
use comfy_table::{Table, presets};
use node::Network;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use types::ExecutionModel;
use workloads::smallbank::Smallbank;

/// How long nodes may take to reach a common height after the load.
const AGREE_WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The record of a run; its keys are an interface.
#[derive(Serialize)]
pub(crate) struct DemoResult {
    nodes: u64,
    protocol: String,
    store: &'static str,
    customers: u64,
    skew: f64,
    seconds: f64,
    committed: u64,
    business_aborts: u64,
    conflict_aborts: u64,
    throughput_tps: f64,
    latency_ms: LatencyMs,
    /// The most memory that one of the nodes has had, in 1,000,000 bytes.
    peak_memory_mb: f64,
    height: u64,
    state_digests: Vec<String>,
    invariant_holds: bool,
    /// Only where organisations have databases of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) databases: Option<Vec<CheckedDatabase>>,
    /// Only where a node ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<Failures>,
    #[serde(skip)]
    unanswered: u64,
    #[serde(skip)]
    memory_bytes: Vec<u64>,
}

/// What the ends of nodes during a run came to.
#[derive(Serialize)]
struct Failures {
    /// The longest time that the clients of one organisation had no answer.
    longest_pause_ms: f64,
    /// Transactions that were submitted again, the same bytes, because the node that had them ended.
    repeated: u64,
    nodes: Vec<Failure>,
}

impl DemoResult {
    /// All nodes have this one.
    pub(crate) fn height(&self) -> u64 {
        self.height
    }

    fn digests_agree(&self) -> bool {
        self.state_digests.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// An error where a check failed.
    pub(crate) fn verdict(&self) -> Result<(), CommandError> {
        if !self.digests_agree() {
            return Err(
                format!("the nodes differ at height {}: {:?}", self.height, self.state_digests).into()
            );
        }
        if !self.invariant_holds {
            return Err("the sum of all balances is not what the committed transactions say".into());
        }
        if let Some(database) = self.databases.iter().flatten().find(|database| !database.rows_equal) {
            let (organisation, kind) = (&database.organisation, &database.kind);
            return Err(format!("the rows in {organisation}'s {kind} are not those of the ledger").into());
        }
        Ok(())
    }
}

/// Waits until all nodes are level, compares digests at a common height, and adds up the money on every node.
pub(crate) async fn check(
    arguments: &DemoArguments,
    network: &Network,
    (supervisor, clients): (&Supervisor, &[Client]),
    gateways: &[SocketAddr],
    load: LoadReport,
) -> Result<DemoResult, CommandError> {
    supervisor.wait_until_level().await?;
    let (height, state_digests, memory_bytes) = common_height(clients).await?;
    let smallbank = Smallbank::new(arguments.customers, arguments.skew)?;
    let expected = smallbank.initial_total() + load.money_change;
    let mut invariant_holds = load.unanswered == 0;
    for gateway in gateways {
        invariant_holds &= total_at(*gateway, height).await? == expected;
    }
    let nodes = supervisor.failures();
    let failures = (!nodes.is_empty()).then_some(Failures {
        longest_pause_ms: load.longest_pause.as_secs_f64() * 1e3,
        repeated: load.repeated,
        nodes,
    });
    let processes = supervisor.processes().into_iter().filter_map(|(_, process)| process);
    let peak_memory = processes.map(bench::peak_memory_bytes_of).max();
    Ok(DemoResult {
        nodes: arguments.orgs,
        protocol: network.charter.protocol.clone(),
        store: arguments.store.choice().kind.name(),
        customers: arguments.customers,
        skew: arguments.skew,
        seconds: load.seconds,
        committed: load.committed,
        business_aborts: load.business_aborts,
        conflict_aborts: load.conflict_aborts,
        throughput_tps: load.throughput_tps,
        latency_ms: load.latency_ms,
        peak_memory_mb: peak_memory.unwrap_or(0) as f64 / 1e6,
        height,
        state_digests,
        invariant_holds,
        databases: None,
        failures,
        unanswered: load.unanswered,
        memory_bytes,
    })
}

/// The lowest of the nodes' heights that all of them can tell the state digest of, once all have passed the height
/// that the furthest had when we began to wait.
pub(crate) async fn common_height(clients: &[Client]) -> Result<(u64, Vec<String>, Vec<u64>), CommandError> {
    let start = Instant::now();
    let mut target = 0;
    loop {
        let mut statuses: Vec<Status> = Vec::new();
        for client in clients {
            statuses.push(status_of(client, start).await?);
        }
        if target == 0 {
            target = statuses.iter().map(|status| status.height).max().unwrap_or_default();
        }
        let lowest = statuses.iter().map(|status| status.height).min().unwrap_or_default();
        let digest_of = |status: &Status| {
            status.recent.iter().find(|at| at.height == lowest).map(|at| at.state_digest.clone())
        };
        let digests: Option<Vec<String>> = statuses.iter().map(digest_of).collect();
        if let Some(digests) = digests.filter(|_| lowest >= target) {
            let memory = statuses.iter().map(|status| status.resident_bytes).collect();
            return Ok((lowest, digests, memory));
        }
        if start.elapsed() > AGREE_WITHIN {
            let heights: Vec<u64> = statuses.iter().map(|status| status.height).collect();
            return Err(
                format!("the nodes reach no common height within {AGREE_WITHIN:?}: {heights:?}").into()
            );
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The status of a node, which may have ended and come back.
async fn status_of(client: &Client, start: Instant) -> Result<Status, CommandError> {
    loop {
        match client.status().await {
            Ok(status) => return Ok(status),
            Err(error) if start.elapsed() > AGREE_WITHIN => return Err(error.into()),
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// The sum of all balances at a node, which may have ended and come back, once it has this height.
async fn total_at(gateway: SocketAddr, height: u64) -> Result<i128, CommandError> {
    let start = Instant::now();
    loop {
        match total(gateway, height).await {
            Err(error) if start.elapsed() > AGREE_WITHIN => return Err(error),
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            sum => return sum,
        }
    }
}

async fn total(gateway: SocketAddr, height: u64) -> Result<i128, CommandError> {
    let client = connect(gateway).await?;
    let ask = async |statement: String| {
        client.simple_query(&statement).await.map_err(|error| explain(&statement, &error))
    };
    ask(format!("SET entente.min_height = {height}")).await?;
    let mut total = 0;
    for table in ["savings", "checking"] {
        let rows = ask(format!("SELECT sum(balance) FROM {table}")).await?;
        let sum = rows.iter().find_map(first_column);
        total += sum.ok_or("the sum is NULL")?.parse::<i128>()?;
    }
    Ok(total)
}

pub(crate) fn table(result: &DemoResult) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    let number = bench::grouped;
    let memory: Vec<String> =
        result.memory_bytes.iter().map(|bytes| (bytes / 1_000_000).to_string()).collect();
    let mut rows = vec![
        ("committed", number(result.committed)),
        ("business aborts", number(result.business_aborts)),
        ("conflict aborts", number(result.conflict_aborts)),
        ("without receipt", number(result.unanswered)),
        ("throughput", format!("{} tps", number(result.throughput_tps as u64))),
        ("latency p50 / p99", format!("{:.1} / {:.1} ms", result.latency_ms.p50, result.latency_ms.p99)),
        ("memory per node", format!("{} MB", memory.join(" / "))),
    ];
    rows.extend(result.failures.iter().flat_map(failure_rows));
    rows.extend([
        ("common height", number(result.height)),
        (
            "state digests",
            if result.digests_agree() {
                format!("equal: {}…", result.state_digests[0].chars().take(16).collect::<String>())
            } else {
                "DIFFERENT".to_string()
            },
        ),
        ("money invariant", if result.invariant_holds { "holds" } else { "BROKEN" }.to_string()),
    ]);
    for (name, value) in rows {
        table.add_row([name.to_string(), value]);
    }
    for CheckedDatabase { organisation, kind, rows_equal, rows, .. } in result.databases.iter().flatten() {
        let said = match (*rows_equal, kind.as_str()) {
            (false, _) => "DIFFERENT".to_string(),
            (true, "none") => format!("Entente alone: the same {} rows", number(*rows)),
            (true, kind) => format!("{kind}: the same {} rows", number(*rows)),
        };
        table.add_row([format!("database of {organisation}"), said]);
    }
    table
}

/// How often nodes ended, what clients noticed, and how long each node took to be back.
fn failure_rows(failures: &Failures) -> Vec<(&'static str, String)> {
    let by = |cause| failures.nodes.iter().filter(|failure| failure.cause == cause).count();
    let (leaders, others, outside) = (by(Cause::Leader), by(Cause::Chaos), by(Cause::Outside));
    let kinds = [
        (leaders, "leaders killed by --chaos"),
        (others, "others killed by --chaos"),
        (outside, "ended by somebody else"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
    let back = failures.nodes.iter().map(|failure| {
        let seconds = failure.back_seconds.map_or("not".to_string(), |seconds| format!("{seconds:.1} s"));
        format!("{} {seconds}", failure.organisation)
    });
    vec![
        ("nodes that ended", kinds.collect::<Vec<_>>().join(", ")),
        ("longest pause of clients", format!("{:.1} s", failures.longest_pause_ms / 1e3)),
        ("submitted again elsewhere", bench::grouped(failures.repeated)),
        ("same digest after start", back.collect::<Vec<_>>().join(", ")),
    ]
}

pub(crate) fn write_json(result: &impl Serialize, path: &Path) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(result)? + "\n";
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// What to try while the network stays up.
///
/// `statement`: one that writes.
pub(crate) fn invitation(
    network: &Network,
    gateways: &[SocketAddr],
    supervisor: &Supervisor,
    statement: Option<&str>,
) -> String {
    let mut lines =
        vec!["\nEach organisation answers psql; paste one of these into another terminal:".to_string()];
    for (organisation, gateway) in network.charter.organisations.iter().zip(gateways) {
        let (host, port) = (gateway.ip(), gateway.port());
        lines.push(format!("  psql -h {host} -p {port} -U {} entente", organisation.name));
    }
    let write = match (statement, network.charter.execution) {
        (Some(statement), _) => statement,
        (None, ExecutionModel::WhateverThenAgree) => {
            "UPDATE savings SET balance = balance + 5 WHERE customer_id = 2;"
        }
        (None, _) => "CALL send_payment(1, 2, 300);",
    };
    lines.extend([
        format!("Then try:  \\d   {write}   SELECT * FROM entente.nodes;"),
        "Governance is permissive here: any one organisation may change the schema (`governance = \"any\"`)."
            .to_string(),
        "Kill any node; the others go on, and it comes back with the same digest:".to_string(),
    ]);
    for (name, process) in supervisor.processes() {
        lines.extend(process.map(|process| format!("  kill -9 {process}    # {name}")));
    }
    lines.push(
        "A psql session at a node that was killed is over: \\c connects it again once the node is back."
            .to_string(),
    );
    lines.push("Ctrl-C stops the nodes.".to_string());
    lines.join("\n")
}
