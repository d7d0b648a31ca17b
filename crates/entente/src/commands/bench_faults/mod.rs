//! `entente bench faults`: what clients and nodes notice when one of four nodes ends and comes back. The nodes are processes,
//! each with a fixed share of the processors, and end by `kill -9`.
//!
//! ```text
//! round: all up ─▶ load ─▶ kill ─▶ load ─▶ open load ──────────▶ … ─▶ next round, another node
//!                                             └▶ start ─▶ catch up
//! then:  all up ─▶ open load at each moment of answering
//! then:  open load at three ─▶ its turn: kill ─▶ pauses ─▶ start ─▶ … , the next one
//! ```

mod network;
mod record;
mod shares;

use super::figures::median;
use crate::CommandError;
use crate::model::OrderingArguments;
use crate::store::StoreArguments;
use clap::Args;
use network::FaultsNetwork;
use record::{CatchUpRecord, FaultsRecord, LatencyRecord, PauseRecord, ThroughputRecord, ThroughputRound};
use std::path::PathBuf;
use std::time::Duration;
use types::AnswerAt;

/// Submissions under way at all gateways together, whoever is up, and transactions of each.
const SUBMISSIONS: usize = 12;
const SUBMISSION_TRANSACTIONS: usize = 200;
/// Load before what is measured with all nodes up.
const WARM_UP: Duration = Duration::from_secs(2);
/// Load after a kill before throughput is measured: the pause is measured by itself.
const SETTLE: Duration = Duration::from_secs(8);

/// Measure what happens when a node ends and comes back.
///
/// Four nodes and the load generator run on this machine, each with a fixed share of its processors. Measured are throughput
/// with one node down, how fast it catches up under an open load, how long clients of the others wait when the leader
/// is killed, and latencies with all nodes up.
///
/// Example: entente bench faults --quick --json faults.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct FaultsArguments {
    /// Customers of Smallbank
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    customers: u64,
    /// Rounds of throughput and catching up; each with another node down [default: 4, with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Seconds of each load [default: 10, with --quick 5]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// How often a leader is killed [default: 30, with --quick 4]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    kills: Option<u64>,
    /// Transactions per second of open loads; by default a quarter of what the network does with all nodes up
    #[arg(long)]
    rate: Option<f64>,
    #[command(flatten)]
    ordering: OrderingArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// First port of the network: Postgres is 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7500)]
    port_base: u16,
    /// What runs as nodes, such as another build of this program; this one by default
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Few and short loads: two to three minutes
    #[arg(long)]
    quick: bool,
    /// Where to write the record
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A load of which the open ones are this part of what the network does.
const OPEN_PART: f64 = 0.25;

pub(crate) fn run(arguments: &FaultsArguments) -> Result<(), CommandError> {
    if arguments.rate.is_some_and(|rate| !(1.0..=1e6).contains(&rate)) {
        return Err("--rate: expected 1 to 1000000 transactions per second".into());
    }
    let folder = tempfile::tempdir()?;
    let mut network = FaultsNetwork::start(
        folder.path(),
        (arguments.port_base, arguments.customers, arguments.store.choice()),
        &arguments.ordering,
        arguments.program.as_deref(),
    )?;
    let measured = measure(arguments, &mut network);
    if measured.is_err() {
        network.print_logs();
    }
    let record = measured?;
    println!("{}", record::table(&record));
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&record)? + "\n";
        std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

fn measure(arguments: &FaultsArguments, network: &mut FaultsNetwork) -> Result<FaultsRecord, CommandError> {
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 1 } else { 4 });
    let time = Duration::from_secs(arguments.seconds.unwrap_or(if arguments.quick { 5 } else { 10 }));
    let kills = arguments.kills.unwrap_or(if arguments.quick { 4 } else { 30 });
    let (mut throughputs, mut catching_up) = (Vec::<ThroughputRound>::new(), Vec::new());
    let mut rate = arguments.rate.unwrap_or_default();
    for round in 0..rounds {
        let node = round as usize % network.nodes();
        network.closed_load(None, WARM_UP)?;
        let normal = network.closed_load(None, time)?;
        let height = network.height(node)?;
        network.kill(node)?;
        network.closed_load(Some(node), SETTLE)?;
        let one_down = network.closed_load(Some(node), time)?;
        let throughput = ThroughputRound {
            node,
            normal_tps: normal.tps,
            one_down_tps: one_down.tps,
            load_busy: normal.busy.zip(one_down.busy).map(|(normal, one_down)| [normal, one_down]),
        };
        eprintln!(
            "round {}: {:.0} tps, with node {} down {:.0} tps: {:.2}",
            round + 1,
            throughput.normal_tps,
            node + 1,
            throughput.one_down_tps,
            throughput.one_down_tps / throughput.normal_tps
        );
        throughputs.push(throughput);
        if arguments.rate.is_none() {
            rate = OPEN_PART * median(throughputs.iter().map(|round| round.normal_tps).collect());
        }
        let round_catching_up = network.catch_up(node, height, rate)?;
        eprintln!(
            "round {}: {} transactions behind, caught up after {:.1} s, {:.1} times faster than {:.0} tps arrive ({:.1} from \
             its first answer)",
            round + 1,
            bench::grouped(round_catching_up.transactions_behind),
            round_catching_up.caught_up_seconds,
            round_catching_up.ratio,
            round_catching_up.arriving_tps,
            round_catching_up.ratio_once_answering
        );
        catching_up.push(round_catching_up);
    }
    let mut latency = Vec::new();
    for moment in [AnswerAt::Attested, AnswerAt::Recorded] {
        let latency_ms = network.open_load(moment, rate, time)?;
        eprintln!("answers at {}: {:.0} / {:.0} ms", moment.name(), latency_ms.p50, latency_ms.p99);
        latency.push(LatencyRecord { answer_at: moment.name(), rate_tps: rate, latency_ms });
    }
    let mut pauses = Vec::new();
    for kill in 0..kills {
        let pause = network.kill_leader(kill as usize % network.nodes(), rate)?;
        pauses.push(pause.as_secs_f64() * 1e3);
        eprintln!("leader killed, {} of {kills}: a pause of {:.2} s", kill + 1, pause.as_secs_f64());
    }
    Ok(FaultsRecord {
        nodes: network.nodes(),
        customers: arguments.customers,
        store: arguments.store.choice().kind.name(),
        shares: network.shares(),
        throughput: ThroughputRecord::of(throughputs),
        catch_up: CatchUpRecord::of(catching_up),
        leader_failure: PauseRecord::of(rate, pauses),
        latency,
        state_digest: network.agreed()?,
    })
}
