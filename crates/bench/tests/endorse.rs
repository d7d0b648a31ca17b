//! The experiments on execute–order–validate: they run, their records have what is promised, mistakes are said.

use bench::{EndorseArguments, EndorseError, EndorseRecord, endorse};
use std::fs;
use tempfile::TempDir;

fn run(toml: &str, only: &[&str]) -> Result<Vec<EndorseRecord>, EndorseError> {
    let folder = TempDir::new().expect("a temporary folder");
    let experiments = folder.path().join("experiments.toml");
    fs::write(&experiments, toml).expect("a writable folder");
    let arguments = EndorseArguments {
        seed: 3,
        only: only.iter().map(|text| text.to_string()).collect(),
        quick: false,
        json: Some(folder.path().join("records.json")),
        seconds: Some(0.4),
        experiments: Some(experiments),
    };
    let records = endorse(&arguments, &mut |_| {})?;
    let text = fs::read_to_string(folder.path().join("records.json")).expect("it was written");
    let json: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json.len(), records.len());
    for key in [
        "experiment",
        "system",
        "parameters",
        "committed_tps",
        "nominal_tps",
        "conflict_abort_rate",
        "latency_ms",
    ] {
        assert!(json.iter().all(|record| record.get(key).is_some()), "{key}");
    }
    Ok(records)
}

const SMALL: &str = r#"
[[experiment]]
id = "small"
title = "Two accounts that everybody wants"
systems = ["occ", "fabric++", "fabric-sharp", "xox", "xox+commands"]
workload = "contention"
rows = 100
clients = 50
block_sizes = [25]
block_ms = 10
skews = [1.0]
"#;

#[test]
fn every_system_runs_and_xox_loses_nothing() {
    let records = run(SMALL, &[]).expect("it runs");
    let of = |system: &str| records.iter().find(|record| record.system == system).expect("a record");
    for record in &records {
        assert!(record.committed_tps > 0.0 && record.committed_tps <= record.nominal_tps, "{record:?}");
        assert!(record.latency_ms.is_some_and(|latency| latency.p50 > 0.0 && latency.p50 <= latency.p99));
        assert!((0.0..=1.0).contains(&record.conflict_abort_rate), "{record:?}");
    }
    assert_eq!(of("xox").conflict_abort_rate, 0.0);
    assert!(of("xox").ran_again_rate > 0.5 && of("occ").conflict_abort_rate > 0.5);
    assert_eq!(run(SMALL, &["system=occ,system=xox", "skew=1"]).map(|records| records.len()).ok(), None);
    assert_eq!(run(SMALL, &["system=occ", "system=xox", "skew=1"]).expect("it runs").len(), 2);
}

#[test]
fn a_committer_alone_commits_all_that_was_endorsed_ahead() {
    for pipelined in [false, true] {
        let toml = format!(
            "[[experiment]]\nid = \"alone\"\ntitle = \"\"\nsystems = [\"occ\"]\nworkload = \"contention\"\nrows = 1000\n\
             endorsed_ahead = 400\nblock_sizes = [50]\npipelined = {pipelined}\n"
        );
        let records = run(&toml, &[]).expect("it runs");
        assert!(records[0].committed_tps > 0.0 && records[0].committed_tps == records[0].nominal_tps);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let message = |toml: &str, only: &[&str]| run(toml, only).expect_err("it must be refused").to_string();
    let found = message(&SMALL.replace("\"occ\"", "\"raft\""), &[]);
    assert!(
        found.contains("small: expected systems of harmony, ") && found.ends_with("found `raft`"),
        "{found}"
    );
    let found = message(&SMALL.replace("clients = 50", ""), &[]);
    assert!(found.contains("one of `rate`, `clients` and `endorsed_ahead`"), "{found}");
    let found = message(&SMALL.replace("[1.0]", "[1.5]"), &[]);
    assert!(found.contains("a share or probability"), "{found}");
    assert!(message(SMALL, &["system"]).contains("key=value"));
    assert!(message(SMALL, &["system=nobody"]).contains("no experiment has a point"));
    assert!(message("experiment = 1", &[]).contains("cannot be run"));
}

#[test]
fn the_built_in_experiments_are_good() {
    let arguments = EndorseArguments {
        seed: 1,
        only: vec!["experiment=none".to_string()],
        quick: false,
        json: None,
        seconds: None,
        experiments: None,
    };
    // Everything is read and checked before points are chosen.
    assert!(matches!(endorse(&arguments, &mut |_| {}), Err(EndorseError::Nothing)));
}
