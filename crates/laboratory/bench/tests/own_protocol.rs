//! The tutorial of `docs/laboratory.md`: a protocol in one file, and it is in the report.

#[path = "../examples/own_protocol/first_wins.rs"]
mod first_wins;

use bench::{LaboratoryArguments, LaboratoryCommand, laboratory};
use clap::Parser;
use first_wins::FirstWins;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

#[test]
fn a_protocol_in_one_file_is_in_the_report() {
    concurrency::register("first-wins", |_| Box::new(FirstWins::default()));
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let experiments = "examples/own_protocol/experiments.toml";
    let out = folder.path().join("out");
    let arguments = Arguments::parse_from([
        "own_protocol",
        "--experiments",
        experiments,
        "--rounds=1",
        "--seconds=0.05",
        "--out",
        out.to_str().expect("a plain path"),
    ]);
    // The laboratory checks the workload's invariant after every round.
    let measurements = laboratory(LaboratoryCommand::Protocols, &arguments.laboratory, &mut |_| {});
    let measurements = measurements.expect("it runs");
    assert_eq!(measurements.len(), 3 * 2);
    let record = |protocol: &str, skew: f64| {
        let found = measurements.iter().map(|measurement| &measurement.record);
        found.into_iter().find(|record| record.protocol == protocol && record.skew == skew).expect("a record")
    };
    assert!(record("first-wins", 0.0).committed_tps > Some(0.0));
    assert!(record("first-wins", 1.0).conflict_abort_rate > record("harmony", 1.0).conflict_abort_rate);
    let page = std::fs::read_to_string(out.join("report.html")).expect("it was written");
    assert!(page.contains("first-wins at 1:"), "it has a line in the plots");
}
