use super::committer::{self, Load};
use super::experiments::{self, Experiment};
use super::filter::Filter;
use super::measurement::{EndorseMeasurement, Rounds, compare_with};
use super::network::{Counts, Network};
use super::point::{Measured, Point};
use super::report::{Context, report};
use crate::report::write_json;
use crate::{EngineBenchError, ExperimentArguments, LaboratoryError, machine};
use std::time::{Duration, Instant};
use types::Pipeline;

/// The experiments that are built in.
pub(super) const BUILT_IN: &str = include_str!("../../../../../docs/endorse.toml");

/// Share of a point's seconds for which a reordering is repeated: it takes milliseconds.
const REORDERING_SHARE: f64 = 0.04;

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
    let mut measurements: Vec<EndorseMeasurement> =
        all.map(|((experiment, point), rounds)| rounds.measurement(&experiment.id, point)).collect();
    let mut compared = "";
    for (experiment, _) in points {
        if let Some(baseline) = &experiment.baseline
            && compared != experiment.id
        {
            compared = &experiment.id;
            let records = measurements.iter_mut().map(|measurement| &mut measurement.record);
            let mut its: Vec<_> = records.filter(|record| record.experiment == experiment.id).collect();
            compare_with(baseline, &mut its);
        }
    }
    Ok(measurements)
}

/// One round of a point, in a network of its own.
fn run(experiment: &Experiment, point: &Point, seconds: f64, seed: u64) -> Result<Counts, EngineBenchError> {
    let (shape, step) = match &point.measured {
        Measured::Network => {
            let workload = point.workload()?;
            let mut network = Network::new(&point.system, workload.as_ref(), Pipeline::Serial)?;
            let options = point.options(experiment, seconds, seed);
            return network.run(&point.system, workload.as_ref(), &options);
        }
        Measured::Committer(committer) => {
            let load = Load {
                transactions: experiment.endorsed_ahead.unwrap_or_default(),
                block_size: point.block_size,
                endorsed_behind: point.endorsed_behind,
                seed,
            };
            return committer::run(committer, &point.system, point.workload()?.as_ref(), load);
        }
        Measured::Reordering(shape, step) => (shape, *step),
    };
    let time = Duration::from_secs_f64(REORDERING_SHARE * seconds);
    Ok(shape.run(point.block_size, step, point.system.orderer.reordering, time))
}
