use crate::LaboratoryError;
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// What every command that runs experiments takes.
#[derive(Args, Clone, Debug)]
pub struct ExperimentArguments {
    /// Seed of the workloads
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only points with these values, such as `experiment=harmonybc-figure-14,skew=0.6`: keys are experiment and whatever
    /// names a point in a record; of one key several values may be given
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only the experiments that are marked `quick`, with short rounds: two minutes at most
    #[arg(long)]
    pub quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Folder of report.html, measurements.csv and measurements.md
    #[arg(long, value_name = "FOLDER", default_value = "entente-bench")]
    pub out: PathBuf,
    /// Experiments instead of the built-in docs/experiments.toml (`endorse`: docs/endorse.toml)
    #[arg(long, value_name = "FILE")]
    pub experiments: Option<PathBuf>,
    /// Rounds over all points; the figures are medians over them [default: 5, with --quick 3; `endorse`: 3 and 1]
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Seconds of a point in a round [default: 1, with --quick 0.3; `endorse`: 8 and 2.5]
    #[arg(long)]
    pub seconds: Option<f64>,
}

impl ExperimentArguments {
    /// Refuses values that make no sense.
    pub(crate) fn check(&self) -> Result<(), LaboratoryError> {
        if let Some(rounds) = self.rounds.filter(|rounds| !(1..=1_000).contains(rounds)) {
            return Err(LaboratoryError::option("--rounds", "1 to 1000", rounds));
        }
        check_positive("--seconds", self.seconds, 3_600.0, "more than 0, at most 3600")
    }

    /// The text of the experiments.
    pub(crate) fn experiments(&self, built_in: &str) -> Result<String, LaboratoryError> {
        match &self.experiments {
            Some(path) => fs::read_to_string(path).map_err(LaboratoryError::file("read", path)),
            None => Ok(built_in.to_string()),
        }
    }
}

/// Refuses a value that is not above zero or above `most`; no number is neither.
pub(crate) fn check_positive(
    option: &'static str,
    value: Option<f64>,
    most: f64,
    expected: &'static str,
) -> Result<(), LaboratoryError> {
    match value.filter(|value| !(*value > 0.0 && *value <= most)) {
        Some(value) => Err(LaboratoryError::option(option, expected, value)),
        None => Ok(()),
    }
}
