use crate::LaboratoryError;
use crate::arguments::{ExperimentArguments, check_positive};
use clap::Args;

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
    /// Which experiments, how often, and where to.
    #[command(flatten)]
    pub run: ExperimentArguments,
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
        self.run.check()?;
        check_positive("--rate", self.rate, 1e7, "more than 0, at most 10000000")?;
        if let Some(clients) = self.clients.filter(|clients| !(1..=1_000_000).contains(clients)) {
            return Err(LaboratoryError::option("--clients", "1 to 1000000", clients));
        }
        if !(0.0..=60_000.0).contains(&self.delay) {
            return Err(LaboratoryError::option("--delay", "0 to 60000 milliseconds", self.delay));
        }
        Ok(())
    }

    pub(super) fn rounds(&self) -> usize {
        self.run.rounds.unwrap_or(if self.run.quick { 3 } else { 5 })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.run.seconds.unwrap_or(if self.run.quick { 0.3 } else { 1.0 })
    }
}
