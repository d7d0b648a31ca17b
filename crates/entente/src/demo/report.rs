//! What a demo came to: the table, the checks, the JSON record, the lines to paste.

use super::DemoArguments;
use super::prepare::{connect, explain};
use crate::CommandError;
use bench::{LatencyMs, LoadReport};
use client::{Client, Status};
use comfy_table::{Table, presets};
use node::Network;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use workloads::smallbank::Smallbank;

/// How long nodes may take to reach a common height after the load.
const AGREE_WITHIN: Duration = Duration::from_secs(60);

/// The record of a run; its keys are an interface.
#[derive(Serialize)]
pub(crate) struct DemoResult {
    nodes: u64,
    protocol: String,
    customers: u64,
    skew: f64,
    seconds: f64,
    committed: u64,
    business_aborts: u64,
    conflict_aborts: u64,
    throughput_tps: f64,
    latency_ms: LatencyMs,
    height: u64,
    state_digests: Vec<String>,
    invariant_holds: bool,
    #[serde(skip)]
    unanswered: u64,
    #[serde(skip)]
    memory_bytes: Vec<u64>,
}

impl DemoResult {
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
        Ok(())
    }
}

/// Waits for a common height, compares digests there, and adds up the money on every node.
pub(crate) async fn check(
    arguments: &DemoArguments,
    network: &Network,
    clients: &[Client],
    gateways: &[SocketAddr],
    load: LoadReport,
) -> Result<DemoResult, CommandError> {
    let (height, state_digests, memory_bytes) = common_height(clients).await?;
    let smallbank = Smallbank::new(arguments.customers, arguments.skew)?;
    let expected = smallbank.initial_total() + load.money_change;
    let mut invariant_holds = load.unanswered == 0;
    for gateway in gateways {
        invariant_holds &= total(*gateway).await? == expected;
    }
    Ok(DemoResult {
        nodes: arguments.orgs,
        protocol: network.charter.protocol.clone(),
        customers: arguments.customers,
        skew: arguments.skew,
        seconds: load.seconds,
        committed: load.committed,
        business_aborts: load.business_aborts,
        conflict_aborts: load.conflict_aborts,
        throughput_tps: load.throughput_tps,
        latency_ms: load.latency_ms,
        height,
        state_digests,
        invariant_holds,
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
            statuses.push(client.status().await?);
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
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn total(gateway: SocketAddr) -> Result<i128, CommandError> {
    let client = connect(gateway).await?;
    let mut total = 0;
    for table in ["savings", "checking"] {
        let statement = format!("SELECT sum(balance) FROM {table}");
        let rows = client.simple_query(&statement).await.map_err(|error| explain(&statement, &error))?;
        let sum = rows.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
            _ => None,
        });
        total += sum.ok_or("the sum is NULL")?.parse::<i128>()?;
    }
    Ok(total)
}

pub(crate) fn print(result: &DemoResult) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    let number = bench::grouped;
    let memory: Vec<String> =
        result.memory_bytes.iter().map(|bytes| (bytes / 1_000_000).to_string()).collect();
    let rows = [
        ("committed", number(result.committed)),
        ("business aborts", number(result.business_aborts)),
        ("conflict aborts", number(result.conflict_aborts)),
        ("without receipt", number(result.unanswered)),
        ("throughput", format!("{} tps", number(result.throughput_tps as u64))),
        ("latency p50 / p99", format!("{:.1} / {:.1} ms", result.latency_ms.p50, result.latency_ms.p99)),
        ("memory per node", format!("{} MB", memory.join(" / "))),
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
    ];
    for (name, value) in rows {
        table.add_row([name.to_string(), value]);
    }
    println!("{table}");
}

pub(crate) fn write_json(result: &DemoResult, path: &Path) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(result)? + "\n";
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

pub(crate) fn print_invitation(network: &Network, gateways: &[SocketAddr], exit: bool) {
    if exit {
        return;
    }
    println!("\nEach organisation answers psql; paste one of these into another terminal:");
    for (organisation, gateway) in network.charter.organisations.iter().zip(gateways) {
        println!("  psql -h {} -p {} -U {} entente", gateway.ip(), gateway.port(), organisation.name);
    }
    println!("Then try:  \\d   CALL send_payment(1, 2, 300);   SELECT * FROM entente.nodes;");
    println!(
        "Governance is permissive here: any one organisation may change the schema (`governance = \"any\"`)."
    );
    println!("Ctrl-C stops the nodes.");
}
