//! The command's experiments: every one gives its figures, and bad options are named.

use anker::{AnkerArguments, AnkerRecord, anker_table, bench};
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: AnkerArguments,
}

fn run(options: &str) -> Result<Vec<AnkerRecord>, String> {
    let words = std::iter::once("anker").chain(options.split_whitespace());
    let arguments = Arguments::try_parse_from(words).map_err(|error| error.to_string())?;
    bench(&arguments.bench, &mut |_| ()).map_err(|error| error.to_string())
}

#[test]
fn every_experiment_has_its_figures_and_the_papers() {
    let options = "--quick --seconds 0.2 --every-ms 5 --rows 20000 --column-megabytes 1 --streams-max 2";
    let records = run(options).expect("it runs");
    let names =
        ["table-2-1", "figure-2-4", "figure-2-5", "figure-2-6", "figure-2-8", "figure-2-9", "figure-2-10"];
    for name in names.into_iter().chain(["figure-2-11", "table-2-2"]) {
        let own: Vec<&AnkerRecord> = records.iter().filter(|record| record.experiment == name).collect();
        assert!(own.iter().any(|record| record.value.is_some_and(|value| value > 0.0)), "{name}");
        assert!(own.iter().all(|record| record.value.is_none_or(f64::is_finite)), "{name}");
        let printed = ["figure-2-6", "figure-2-10", "figure-2-11"].contains(&name);
        assert!(
            printed || own.iter().any(|record| record.paper.is_some()),
            "{name} has figures of the paper"
        );
        assert!(anker_table(&records).contains(&format!("{name}: ")), "{name}");
    }
    let quoted = records.iter().filter(|record| record.system == "vm_snapshot");
    assert!(quoted.clone().count() > 2 && quoted.clone().all(|record| record.value.is_none()));
    let json = serde_json::to_value(&records[0]).expect("JSON");
    assert_eq!(json["experiment"], "table-2-1");
    assert_eq!(json["point"]["columns"], 1);
}

#[test]
fn experiments_and_storages_are_chosen_and_figures_follow_the_choice() {
    let options = "--quick --seconds 0.1 --every-ms 5 --storage rewire,see --experiment figure-2-9";
    let records = run(options).expect("it runs");
    assert!(records.iter().all(|record| record.experiment == "figure-2-9"));
    assert!(records.iter().all(|record| ["rewire", "see", "vm_snapshot"].contains(&record.system)));
}

#[test]
fn options_that_make_no_sense_are_named() {
    let said = |options: &str| run(options).expect_err("it makes no sense");
    assert_eq!(said("--threads 0"), "--threads: expected 1 to 1024, found 0");
    assert_eq!(said("--streams 0"), "--streams: expected 1 to 1024, found 0");
    assert_eq!(said("--streams-max 0"), "--streams-max: expected 1 to 1024, found 0");
    assert_eq!(said("--rows 0"), "--rows: expected 1000 to 1000000000, found 0");
    assert_eq!(said("--rounds 0"), "--rounds: expected 1 to 1000, found 0");
    assert_eq!(said("--warehouses 0"), "--warehouses: expected 1 to 1000, found 0");
    assert_eq!(said("--column-megabytes 0"), "--column-megabytes: expected 1 to 10000, found 0");
    assert_eq!(said("--seconds 0"), "--seconds: expected 0.01 to 3600, found 0");
    assert_eq!(said("--seconds NaN"), "--seconds: expected 0.01 to 3600, found NaN");
    assert_eq!(said("--every-ms 3600001"), "--every-ms: expected 0 to 3600000, found 3600001");
    let storages = "columns, copy, fork, rewire, see, see-snapshot, see-uncommitted";
    assert_eq!(said("--storage tape"), format!("--storage: expected some of {storages}, found `tape`"));
    assert!(
        said("--experiment table-2-3").starts_with("--experiment: expected some of table-2-1, figure-2-4,")
    );
}
