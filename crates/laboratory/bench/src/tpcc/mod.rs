//! TPC-C in the engine, protocol by protocol, and in PostgreSQL, in one run.
//!
//! Each number of warehouses is loaded once: the protocols take turns on the same ledger, which stays a database of
//! TPC-C, and PostgreSQL has its own. After every turn all consistency conditions are checked
//! (`workloads::Tpcc`). Closed loop, without think times; what a protocol gives up because of a conflict is
//! submitted again.

mod arguments;

pub use arguments::TpccArguments;

use crate::chain::Chain;
use crate::laboratory::{Arrival, Pace, Source, Timed, paper_options, run_on};
use crate::median::median;
use crate::postgres::Postgres;
use crate::report::{Table, grouped, write_json};
use crate::{EngineBenchError, LaboratoryError};
use arguments::POSTGRES;
use serde::Serialize;
use std::time::Duration;
use types::{OnConflict, ProtocolOptions};
use workloads::Tpcc;

/// What `entente bench tpcc --json` promises, one per protocol and number of warehouses.
#[derive(Clone, Debug, Serialize)]
pub struct TpccRecord {
    /// The protocol, or `postgres`.
    pub protocol: String,
    /// Warehouses.
    pub warehouses: u64,
    /// Committed transactions per second, the median over the rounds.
    pub committed_tps: f64,
    /// Committed New-Order transactions per minute, the median over the rounds.
    pub new_orders_per_minute: f64,
    /// Of all attempts, the share that was given up because of a conflict, and tried again: by the client, or, in Aria,
    /// in the next batch.
    pub conflict_abort_rate: f64,
    /// Whether all consistency conditions held after every round.
    pub consistency_holds: bool,
}

/// Runs the benchmark, prints a table, and gives the records. `progress` is told what is being done.
///
/// # Errors
/// Bad options; an engine or PostgreSQL that cannot be measured; a file that cannot be written.
pub fn tpcc(
    arguments: &TpccArguments,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<TpccRecord>, LaboratoryError> {
    arguments.check()?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads())
        .build()
        .map_err(|_| engine_error("tpcc", EngineBenchError::Threads(arguments.threads())))?;
    let mut records = Vec::new();
    for warehouses in &arguments.warehouses {
        let workload = Tpcc::reduced(*warehouses, arguments.customers(), arguments.items())
            .map_err(|error| engine_error("tpcc", error.into()))?;
        records.extend(measure(&workload, arguments, &pool, progress)?);
    }
    if let Some(path) = &arguments.json {
        write_json(path, &records)?;
    }
    Ok(records)
}

/// The records for people.
pub fn tpcc_table(records: &[TpccRecord]) -> String {
    let mut table = Table::new([
        "warehouses",
        "protocol",
        "committed tps",
        "new orders per minute",
        "conflict aborts",
        "consistent",
    ]);
    for record in records {
        table.rows.push(vec![
            record.warehouses.to_string(),
            record.protocol.clone(),
            grouped(record.committed_tps as u64),
            grouped(record.new_orders_per_minute as u64),
            format!("{:.1} %", record.conflict_abort_rate * 100.0),
            if record.consistency_holds { "yes" } else { "NO" }.to_string(),
        ]);
    }
    table.markdown()
}

fn engine_error(point: &str, error: EngineBenchError) -> LaboratoryError {
    LaboratoryError::Engine { point: point.to_string(), error }
}

/// The rounds of one number of warehouses.
fn measure(
    workload: &Tpcc,
    arguments: &TpccArguments,
    pool: &rayon::ThreadPool,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<TpccRecord>, LaboratoryError> {
    let warehouses = workload.warehouses();
    let protocols = &arguments.protocols;
    let mut rounds: Vec<Vec<Timed>> = vec![Vec::new(); protocols.len()];
    let describe = |protocol: &str| format!("tpcc by {protocol}, {warehouses} warehouses");
    let mut chain = None;
    if protocols.iter().any(|protocol| protocol != POSTGRES) {
        progress(&format!("loading {warehouses} warehouses"));
        chain =
            Some(pool.install(|| load(workload, arguments)).map_err(|error| engine_error("tpcc", error))?);
    }
    let mut postgres = None;
    if protocols.iter().any(|protocol| protocol == POSTGRES) {
        progress(&format!("loading {warehouses} warehouses into PostgreSQL"));
        let server = Postgres::start()?;
        server.load(workload)?;
        postgres = Some(server);
    }
    let mut source = Source::new(workload, arguments.seed);
    for round in 0..arguments.rounds() {
        for (protocol, timed) in protocols.iter().zip(&mut rounds) {
            let name = describe(protocol);
            progress(&format!("round {}/{}: {name}", round + 1, arguments.rounds()));
            let run = if let (POSTGRES, Some(server)) = (protocol.as_str(), &postgres) {
                server.run(workload, arguments.seconds(), arguments.seed + round as u64)?
            } else {
                let loaded = chain.take().expect("loaded above");
                let under = loaded.under(protocol, paper_options(protocol));
                let mut current = under.map_err(|error| engine_error(&name, error.into()))?;
                let pace = Pace {
                    arrival: Arrival::Closed { clients: None },
                    delay: Duration::ZERO,
                    resubmit: true,
                };
                let (size, seconds) = (arguments.block_size, arguments.seconds());
                let run = pool.install(|| run_on(&mut current, size, &mut source, pace, seconds));
                chain = Some(current);
                run.map_err(|error| engine_error(&name, error))?
            };
            timed.push(run);
        }
    }
    Ok(protocols.iter().zip(&rounds).map(|(protocol, timed)| record(protocol, warehouses, timed)).collect())
}

fn load(workload: &Tpcc, arguments: &TpccArguments) -> Result<Chain, EngineBenchError> {
    let options = ProtocolOptions::default();
    let mut chain = Chain::new("serial", options, arguments.block_size, arguments.seed)?;
    chain.set_up(workload)?;
    Ok(chain)
}

fn record(protocol: &str, warehouses: u64, rounds: &[Timed]) -> TpccRecord {
    let per_round = |of: &dyn Fn(&Timed) -> f64| {
        let values: Vec<f64> = rounds.iter().map(of).collect();
        median(&values).unwrap_or(0.0)
    };
    let new_orders = |timed: &Timed| timed.calls.get("tpcc_new_order").copied().unwrap_or(0) as f64;
    let mut all = Timed::nothing();
    rounds.iter().for_each(|round| all.add(round));
    // Who requeues executes once more for each time that it gives up.
    let requeues = paper_options(protocol).on_conflict == OnConflict::Requeue;
    let given_up = match requeues {
        true => all.executions.saturating_sub(all.transactions),
        false => all.conflict_aborts,
    };
    let attempts = all.transactions + given_up;
    TpccRecord {
        protocol: protocol.to_string(),
        warehouses,
        committed_tps: per_round(&Timed::committed_tps),
        new_orders_per_minute: per_round(&|timed| new_orders(timed) * 60.0 / timed.seconds.max(1e-9)),
        conflict_abort_rate: given_up as f64 / attempts.max(1) as f64,
        consistency_holds: all.invariant_holds,
    }
}

#[cfg(test)]
mod tests;
