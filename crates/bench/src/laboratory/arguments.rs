use super::LaboratoryError;
use clap::Args;
use std::path::PathBuf;

/// Which of the harness's commands runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaboratoryCommand {
    /// Protocols × workloads × skew, block size, threads.
    Protocols,
    /// Harmony with and without its optimisations.
    Ablation,
}

impl LaboratoryCommand {
    /// As experiments name it.
    pub fn name(self) -> &'static str {
        match self {
            LaboratoryCommand::Protocols => "protocols",
            LaboratoryCommand::Ablation => "ablation",
        }
    }
}

/// Options of `entente bench protocols` and `entente bench ablation`.
#[derive(Args, Clone, Debug)]
pub struct LaboratoryArguments {
    /// Seed of the workloads
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only points with these values, such as `protocol=harmony,skew=0.6`: keys are experiment, protocol, variant,
    /// workload, skew, block_size, threads; of one key several values may be given
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
    /// Experiments instead of the built-in docs/experiments.toml
    #[arg(long, value_name = "FILE")]
    pub experiments: Option<PathBuf>,
    /// Rounds over all points; the figures are medians over them [default: 5, with --quick 3]
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Seconds of a point in a round [default: 1, with --quick 0.3]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Closed loop: clients, each waiting for its answer [default: twice the transactions of a block]
    #[arg(long)]
    pub clients: Option<usize>,
    /// Open loop: transactions per second, whether answered or not
    #[arg(long, conflicts_with = "clients")]
    pub rate: Option<f64>,
    /// Milliseconds that a client waits between an answer and what it submits next
    #[arg(long, default_value_t = 0.0)]
    pub delay: f64,
    /// Submit what was given up because of a conflict again until it commits
    #[arg(long)]
    pub resubmit: bool,
}

impl LaboratoryArguments {
    pub(super) fn check(&self) -> Result<(), LaboratoryError> {
        let wrong =
            |option, expected, found: String| Err(LaboratoryError::Option { option, expected, found });
        let positive = |value: Option<f64>, most| value.is_none_or(|value| value > 0.0 && value <= most);
        if self.rounds.is_some_and(|rounds| !(1..=1_000).contains(&rounds)) {
            return wrong("--rounds", "1 to 1000", format!("{:?}", self.rounds.unwrap_or_default()));
        }
        if !positive(self.seconds, 3_600.0) {
            return wrong(
                "--seconds",
                "more than 0, at most 3600",
                format!("{:?}", self.seconds.unwrap_or_default()),
            );
        }
        if !positive(self.rate, 1e7) {
            return wrong(
                "--rate",
                "more than 0, at most 10000000",
                format!("{:?}", self.rate.unwrap_or_default()),
            );
        }
        if self.clients.is_some_and(|clients| !(1..=1_000_000).contains(&clients)) {
            return wrong("--clients", "1 to 1000000", format!("{:?}", self.clients.unwrap_or_default()));
        }
        if !(0.0..=60_000.0).contains(&self.delay) {
            return wrong("--delay", "0 to 60000 milliseconds", self.delay.to_string());
        }
        Ok(())
    }

    pub(super) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.3 } else { 1.0 })
    }
}
