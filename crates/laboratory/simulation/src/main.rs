//! `simulation --seeds 200`: runs seeds, says what fails and how to see it again.

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use simulation::{Plan, Report, run_plan};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Runs simulated networks and reports what they came to.
#[derive(Parser)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first one.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// With schemas that have members, who lie about them.
    #[arg(long)]
    private: bool,
    /// Runs at the same time.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Says what each run came to.
    #[arg(long)]
    verbose: bool,
    /// What the nodes' logs say, on standard error: `ordering=debug,commonware_consensus=trace`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

fn main() -> ExitCode {
    let Arguments { seeds, first, private, threads, verbose, log } = Arguments::parse();
    if let Some(filter) = log {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
    let (next, began) = (AtomicU64::new(first), Instant::now());
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} runs, {eta} left").ok();
    let bar = style.map_or_else(ProgressBar::hidden, |style| ProgressBar::new(seeds).with_style(style));
    let work = || {
        let mut results = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return results;
            }
            let plan = if private { Plan::with_schemas(seed) } else { Plan::of(seed) };
            let result = run_plan(seed, plan, None);
            bar.suspend(|| match &result {
                Ok(report) if verbose => println!("{report:?}"),
                Ok(_) => {}
                Err(error) => println!(
                    "seed {seed} FAILS: {error}\n  again: make sim SEED={seed}{}",
                    if private { " PRIVATE=1" } else { "" }
                ),
            });
            bar.inc(1);
            results.push(result);
        }
    };
    let results: Vec<Result<Report, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    bar.finish_and_clear();
    let reports: Vec<&Report> = results.iter().flatten().collect();
    let sum = |of: fn(&Report) -> u64| reports.iter().map(|report| of(report)).sum::<u64>();
    let mut protocols: BTreeMap<&str, u64> = BTreeMap::new();
    reports.iter().for_each(|report| *protocols.entry(&report.protocol).or_default() += 1);
    let protocols: Vec<String> =
        protocols.into_iter().map(|(protocol, runs)| format!("{protocol} {runs}")).collect();
    let failed = seeds - reports.len() as u64;
    println!(
        "{} runs in {:.0} s, {failed} failed; {} blocks, {} transactions executed ({} committed), {} repetitions and late ones, {} receipts; \
         {} crashes, {} writes lost or torn, {} partitions, {} disk faults, {} flipped bits ({} healed), {} adversaries, \
         {} amended charters, {} changes of members, {} checkpoints of other nodes taken over",
        seeds,
        began.elapsed().as_secs_f64(),
        sum(|report| report.blocks),
        sum(|report| report.transactions),
        sum(|report| report.committed),
        sum(|report| report.rejected),
        sum(|report| report.receipts),
        sum(|report| report.crashes),
        sum(|report| report.writes_lost),
        sum(|report| report.counts.partitions),
        sum(|report| report.counts.disk_faults),
        sum(|report| report.counts.memory_faults),
        sum(|report| report.healed),
        sum(|report| report.counts.adversaries),
        sum(|report| report.counts.amendments),
        sum(|report| report.counts.members),
        sum(|report| report.joined),
    );
    println!("runs that kept their promises, by protocol: {}", protocols.join(", "));
    if private {
        println!(
            "{} schemas, {} changes of their members, {} parts, {} transactions in several schemas ({} took effect), {} certificates of votes, \
             {} sights of canaries where they may be",
            sum(|report| report.counts.schemas),
            sum(|report| report.counts.schema_changes),
            sum(|report| report.private.parts),
            sum(|report| report.private.crossing),
            sum(|report| report.private.committed),
            sum(|report| report.private.certificates),
            sum(|report| report.private.canaries),
        );
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
