use super::experiments::{self, Experiment};
use super::filter::Filter;
use super::measurement::{EndorseMeasurement, Rounds};
use super::network::{Counts, Network};
use super::point::Point;
use super::report::{Context, report};
use crate::report::write_json;
use crate::{EngineBenchError, ExperimentArguments, LaboratoryError, machine};
use std::time::Instant;

/// The experiments that are built in.
pub(super) const BUILT_IN: &str = include_str!("../../../../docs/endorse.toml");

/// Runs experiments, writes the results, and returns them in the order of the file of experiments. `progress` is told
/// what is being done, and what every round came to.
///
/// # Errors
/// Bad options or experiments; a set-up that fails; files that cannot be read or written.
pub fn endorse(
    arguments: &ExperimentArguments,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<EndorseMeasurement>, LaboratoryError> {
    arguments.check()?;
    let experiments = experiments::parse(&arguments.experiments(BUILT_IN)?)?;
    let filter = Filter::parse(&arguments.only, &experiments)?;
    let wanted = experiments.iter().filter(|experiment| experiment.quick || !arguments.quick);
    let points: Vec<(&Experiment, Point)> = wanted
        .flat_map(|experiment| experiment.points().into_iter().map(move |point| (experiment, point)))
        .filter(|(experiment, point)| filter.leaves(experiment, point))
        .collect();
    if points.is_empty() {
        return Err(LaboratoryError::Nothing { command: "endorse", file: "endorse.toml" });
    }
    let machine = machine::describe();
    let (rounds, seconds) = (rounds(arguments), seconds(arguments));
    let start = Instant::now();
    let measurements = measure(&points, rounds, seconds, arguments.seed, progress)?;
    let context = Context { machine, seed: arguments.seed, rounds, seconds, took: start.elapsed() };
    report(&context, &experiments, &measurements).write(&arguments.out)?;
    if let Some(path) = &arguments.json {
        let records: Vec<_> = measurements.iter().map(|measurement| &measurement.record).collect();
        write_json(path, &records)?;
    }
    Ok(measurements)
}

fn rounds(arguments: &ExperimentArguments) -> usize {
    arguments.rounds.unwrap_or(if arguments.quick { 1 } else { 3 })
}

fn seconds(arguments: &ExperimentArguments) -> f64 {
    arguments.seconds.unwrap_or(if arguments.quick { 2.5 } else { 8.0 })
}

/// All points have their turn before any has its second, so that what else the machine does meets all of them.
fn measure(
    points: &[(&Experiment, Point)],
    rounds: usize,
    seconds: f64,
    seed: u64,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<EndorseMeasurement>, LaboratoryError> {
    let mut measured: Vec<Rounds> = points.iter().map(|_| Rounds::none()).collect();
    for round in 0..rounds {
        let mut shown = "";
        for (number, (experiment, point)) in points.iter().enumerate() {
            if shown != experiment.id {
                shown = &experiment.id;
                progress(&format!("{}: {}", experiment.name(), experiment.title));
            }
            progress(&format!(
                "round {}/{rounds}, point {}/{}: {}, {}",
                round + 1,
                number + 1,
                points.len(),
                experiment.id,
                point.describe()
            ));
            let counts = run(experiment, point, seconds, seed)
                .map_err(|error| LaboratoryError::Engine { point: point.describe(), error })?;
            measured[number].add(&counts);
            let mut this = Rounds::none();
            this.add(&counts);
            progress(&format!("  {}", this.measurement(&experiment.id, point).record.summary()));
        }
    }
    let all = points.iter().zip(&measured);
    Ok(all.map(|((experiment, point), rounds)| rounds.measurement(&experiment.id, point)).collect())
}

/// One round of a point, in a network of its own.
fn run(experiment: &Experiment, point: &Point, seconds: f64, seed: u64) -> Result<Counts, EngineBenchError> {
    let workload = point.workload()?;
    let mut network = Network::new(&point.system, workload.as_ref())?;
    match experiment.endorsed_ahead {
        Some(count) => {
            let transactions = network.endorsed_ahead(workload.as_ref(), count, seed);
            network.commit_all(&transactions, point.block_size, experiment.pipelined)
        }
        None => network.run(&point.system, workload.as_ref(), &point.options(experiment, seconds, seed)),
    }
}
