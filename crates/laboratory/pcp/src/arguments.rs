//! The options of `entente bench pcp`.

use crate::PcpError;
use clap::Args;
use std::path::PathBuf;

/// The experiments, in the order of their records.
pub(crate) const NAMES: [&str; 6] = ["figure-5-11", "figure-5-12", "rounds", "variants", "liar", "secrets"];

/// Repeat the figures of TNG's private transactions (Gorenflo, section 5.5), and count what its atomic commit comes to under each rule.
///
/// Shards run in this process, without a network. Throughput is that of the work with signatures, hashes and versions; latencies are
/// those of messages that take `--delay-ms` each. What the thesis says stands in brackets beside ours; what it only plots is not there.
///
/// Example: entente bench pcp --quick --json pcp.json
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct PcpArguments {
    /// What is measured: figure-5-11, figure-5-12, rounds, variants, liar, secrets [default: all]
    #[arg(long, value_delimiter = ',')]
    pub experiment: Vec<String>,
    /// Transactions of each run of figure-5-11; 10000 in the thesis [default: 10000, with --quick 500]
    #[arg(long)]
    pub transactions: Option<usize>,
    /// Random transactions for each variant, liar and shape [default: 10000, with --quick 1000]
    #[arg(long)]
    pub cases: Option<usize>,
    /// Milliseconds that a message takes on average in figure-5-12
    #[arg(long, default_value_t = 0.5)]
    pub delay_ms: f64,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Fewer transactions: seconds
    #[arg(long)]
    pub quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What is measured, checked.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) experiments: Vec<&'static str>,
    pub(crate) transactions: usize,
    pub(crate) cases: usize,
    pub(crate) delay_ms: f64,
    pub(crate) seed: u64,
}

impl PcpArguments {
    pub(crate) fn plan(&self) -> Result<Plan, PcpError> {
        let wrong = |option, expected: &str, found: String| PcpError::Option {
            option,
            expected: expected.to_string(),
            found,
        };
        let count = |option, given: Option<usize>, usual: usize, quick: usize| {
            let count = given.unwrap_or(if self.quick { quick } else { usual });
            let fits = (1..=1_000_000).contains(&count);
            fits.then_some(count).ok_or_else(|| wrong(option, "1 to 1000000", count.to_string()))
        };
        let named = |name: &String| {
            let known = NAMES.into_iter().find(|known| known == name);
            let expected = format!("some of {}", NAMES.join(", "));
            known.ok_or_else(|| wrong("--experiment", &expected, format!("`{name}`")))
        };
        let mut experiments = self.experiment.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        if experiments.is_empty() {
            experiments = NAMES.to_vec();
        }
        if !(0.001..=10_000.0).contains(&self.delay_ms) {
            return Err(wrong("--delay-ms", "0.001 to 10000", self.delay_ms.to_string()));
        }
        Ok(Plan {
            experiments,
            transactions: count("--transactions", self.transactions, 10_000, 500)?,
            cases: count("--cases", self.cases, 10_000, 1_000)?,
            delay_ms: self.delay_ms,
            seed: self.seed,
        })
    }
}
