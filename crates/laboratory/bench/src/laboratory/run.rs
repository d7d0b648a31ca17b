use super::arguments::{LaboratoryArguments, LaboratoryCommand};
use super::counting::{self, Rates};
use super::experiments::{self, Experiment};
use super::measurement::{Measurement, Record};
use super::plan::{Filter, Planned, Point, plan};
use super::report::{Context, report};
use super::timing::{self, Arrival, Pace, Timed};
use crate::median::{median, range};
use crate::postgres::{self, Postgres};
use crate::report::write_json;
use crate::{LaboratoryError, LatencyMs, machine};
use std::time::{Duration, Instant};

/// The experiments that are built in.
pub(super) const BUILT_IN: &str = include_str!("../../../../../docs/experiments.toml");

/// PostgreSQL looks for deadlocks after a second: a shorter round would see none of them end.
const POSTGRES_SECONDS: f64 = 1.2;
/// Its rounds with `--quick`: each takes several seconds, with the set-up and the wait for the last deadlocks.
const POSTGRES_QUICK_ROUNDS: usize = 2;

/// Runs the experiments of a command, writes the results, and returns them in the order of the file of experiments.
/// `progress` is told, from time to time, what is being done.
///
/// # Errors
/// Bad options, experiments that cannot be run, a broken invariant, files that cannot be written.
pub fn run(
    command: LaboratoryCommand,
    arguments: &LaboratoryArguments,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Measurement>, LaboratoryError> {
    arguments.check()?;
    let text = arguments.run.experiments(BUILT_IN)?;
    let experiments = experiments::parse(&text)?;
    let filter = Filter::parse(&arguments.run.only, &experiments)?;
    let wanted = |experiment: &&Experiment| {
        experiment.runs_with(command.name()) && (experiment.quick || !arguments.run.quick)
    };
    let planned = plan(experiments.iter().filter(wanted), &filter, machine::cores());
    if planned.is_empty() {
        return Err(LaboratoryError::Nothing { command: command.name(), file: "experiments.toml" });
    }
    let machine = machine::describe();
    let start = Instant::now();
    let measurements = measure(command, &planned, arguments, progress)?;
    let context = Context {
        command: command.name(),
        machine,
        seed: arguments.run.seed,
        rounds: arguments.rounds(),
        seconds: arguments.seconds(),
        pace: pace_for_people(arguments),
        postgres: measurements
            .iter()
            .any(|measurement| measurement.point.is_postgres())
            .then(|| postgres_for_people(arguments)),
        took: start.elapsed(),
    };
    report(&context, &experiments, &measurements).write(&arguments.run.out)?;
    if let Some(path) = &arguments.run.json {
        let records: Vec<&Record> = measurements.iter().map(|measurement| &measurement.record).collect();
        write_json(path, &records)?;
    }
    Ok(measurements)
}

fn pace(arguments: &LaboratoryArguments) -> Pace {
    Pace {
        arrival: match arguments.rate {
            Some(rate) => Arrival::Open { rate },
            None => Arrival::Closed { clients: arguments.clients },
        },
        delay: Duration::from_secs_f64(arguments.delay / 1_000.0),
        resubmit: arguments.resubmit,
    }
}

fn pace_for_people(arguments: &LaboratoryArguments) -> String {
    let arrival = match (arguments.rate, arguments.clients) {
        (Some(rate), _) => format!("open loop, {rate} transactions per second"),
        (None, Some(clients)) => format!("closed loop, {clients} clients"),
        (None, None) => "closed loop, twice as many clients as a block has transactions".to_string(),
    };
    let resubmit = if arguments.resubmit { "submitted again" } else { "not submitted again" };
    format!("{arrival}, {} ms delay, conflict aborts {resubmit}", arguments.delay)
}

/// Rounds of PostgreSQL's points and the seconds of each: it needs longer ones, and fewer of them.
fn postgres_rounds(arguments: &LaboratoryArguments) -> (usize, f64) {
    let rounds = if arguments.run.quick { POSTGRES_QUICK_ROUNDS } else { usize::MAX };
    (rounds.min(arguments.rounds()), arguments.seconds().max(POSTGRES_SECONDS))
}

fn postgres_for_people(arguments: &LaboratoryArguments) -> String {
    let (rounds, seconds) = postgres_rounds(arguments);
    format!(
        "{rounds} rounds of {seconds} s, closed loop, {} clients, conflict aborts submitted again",
        postgres::CLIENTS
    )
}

/// Counts every point, then times them round by round.
fn measure(
    command: LaboratoryCommand,
    planned: &[Planned],
    arguments: &LaboratoryArguments,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Measurement>, LaboratoryError> {
    let mut rates: Vec<Option<Rates>> = Vec::with_capacity(planned.len());
    for (number, Planned { point, rates: wanted, .. }) in planned.iter().enumerate() {
        if !*wanted || point.is_postgres() {
            rates.push(None);
            continue;
        }
        progress(&format!("counting {}/{}: {}", number + 1, planned.len(), point.describe()));
        let workload = workload(point)?;
        let compares_protocols = command == LaboratoryCommand::Protocols;
        let counted = counting::count(point, compares_protocols, workload.as_ref(), arguments.run.seed)
            .map_err(|error| LaboratoryError::Engine { point: point.describe(), error })?;
        rates.push(Some(counted));
    }
    let rounds = time(planned, arguments, progress)?;
    Ok(planned
        .iter()
        .zip(rates)
        .zip(rounds)
        .map(|((planned, rates), rounds)| measurement(planned, rates, &rounds))
        .collect())
}

/// By point, one run per round. All points have their turn before any has its second, so that what else the machine
/// does meets all of them.
fn time(
    planned: &[Planned],
    arguments: &LaboratoryArguments,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Vec<Timed>>, LaboratoryError> {
    let mut timed: Vec<Vec<Timed>> = vec![Vec::new(); planned.len()];
    let mut postgres: Option<Postgres> = None;
    let seconds = arguments.seconds();
    let (postgres_rounds, postgres_seconds) = postgres_rounds(arguments);
    for round in 0..arguments.rounds() {
        for (number, planned) in planned.iter().enumerate().filter(|(_, planned)| planned.throughput) {
            let point = &planned.point;
            if point.is_postgres() && round >= postgres_rounds {
                continue;
            }
            progress(&format!("round {}/{}: {}", round + 1, arguments.rounds(), point.describe()));
            let workload = workload(point)?;
            let run = if point.is_postgres() {
                if postgres.is_none() {
                    postgres = Some(Postgres::start()?);
                }
                let postgres = postgres.as_ref().expect("started above");
                postgres.round(workload.as_ref(), postgres_seconds, arguments.run.seed)?
            } else {
                timing::round(point, workload.as_ref(), pace(arguments), seconds, arguments.run.seed)
                    .map_err(|error| LaboratoryError::Engine { point: point.describe(), error })?
            };
            if !run.invariant_holds {
                return Err(LaboratoryError::Invariant { point: point.describe() });
            }
            timed[number].push(run);
        }
    }
    Ok(timed)
}

fn workload(point: &Point) -> Result<Box<dyn workloads::Workload>, LaboratoryError> {
    workloads::workload(&point.workload, point.rows, point.skew)
        .map_err(|error| LaboratoryError::Engine { point: point.describe(), error: error.into() })
}

fn measurement(planned: &Planned, rates: Option<Rates>, rounds: &[Timed]) -> Measurement {
    let point = &planned.point;
    let tps: Vec<f64> = rounds.iter().map(Timed::committed_tps).collect();
    let mut all = Timed::nothing();
    rounds.iter().for_each(|round| all.add(round));
    let timed = !rounds.is_empty();
    let share = |count: u64| timed.then(|| count as f64 / all.transactions.max(1) as f64);
    // PostgreSQL gives up in the run itself: a share of the attempts, because each of them is tried again.
    let given_up = all.conflict_aborts as f64 / all.executions.max(1) as f64;
    let given_up = (timed && point.is_postgres()).then_some(given_up);
    let record = Record {
        protocol: point.protocol.clone(),
        variant: (!point.variant.is_empty()).then(|| point.variant.clone()),
        store: point.store.has_files().then(|| point.store.name()),
        memory_megabytes: point.store.has_files().then_some(point.memory_megabytes),
        workload: point.workload.clone(),
        skew: point.skew,
        block_size: point.block_size,
        threads: point.threads,
        committed_tps: median(&tps),
        latency_ms: timed.then(|| LatencyMs::of(&all.latency)),
        conflict_abort_rate: rates.map(|rates| rates.conflict_aborts).or(given_up),
        false_abort_rate: rates.map(|rates| rates.false_aborts),
        dangerous_structure_rate: rates.map(|rates| rates.rejected).filter(|_| point.protocol == "harmony"),
        reexecuted_rate: share(all.reexecuted),
        executions_per_transaction: share(all.executions),
    };
    Measurement {
        record,
        committed_tps_range: range(&tps),
        cpu_cores: timed.then(|| all.cpu_seconds / all.seconds.max(1e-9)),
        business_abort_rate: share(all.business_aborts),
        point: point.clone(),
        experiments: planned.experiments.clone(),
    }
}
