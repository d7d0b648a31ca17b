//! The experiments on execute–order–validate: they run, their records and reports have what is promised, mistakes are
//! said.

use bench::{EndorseMeasurement, EndorseRecord, ExperimentArguments, LaboratoryError, endorse};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn arguments(folder: &Path, toml: Option<&str>, only: &[&str]) -> ExperimentArguments {
    let experiments = toml.map(|text| {
        let path = folder.join("experiments.toml");
        fs::write(&path, text).expect("a writable folder");
        path
    });
    ExperimentArguments {
        seed: 3,
        only: only.iter().map(|text| text.to_string()).collect(),
        quick: false,
        json: Some(folder.join("records.json")),
        out: folder.join("out"),
        experiments,
        rounds: Some(1),
        seconds: Some(0.4),
    }
}

fn run(toml: &str, only: &[&str]) -> Result<Vec<EndorseRecord>, LaboratoryError> {
    let folder = TempDir::new().expect("a temporary folder");
    let measurements = endorse(&arguments(folder.path(), Some(toml), only), &mut |_| {})?;
    let text = fs::read_to_string(folder.path().join("records.json")).expect("it was written");
    let json: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json.len(), measurements.len());
    for key in KEYS {
        assert!(json.iter().all(|record| record.get(key).is_some()), "{key}");
    }
    Ok(measurements.into_iter().map(|measurement| measurement.record).collect())
}

/// The keys of a record that the issue names.
const KEYS: [&str; 7] = [
    "experiment",
    "system",
    "parameters",
    "committed_tps",
    "nominal_tps",
    "conflict_abort_rate",
    "latency_ms",
];

const SMALL: &str = r#"
[[experiment]]
id = "small"
paper = "entente"
number = "Small"
title = "Two accounts that everybody wants"
systems = ["occ", "fabric++", "fabric-sharp", "xox", "xox+commands"]
workload = "contention"
rows = 100
clients = 50
block_sizes = [25]
block_ms = 10
skews = [1.0]
"#;

/// The same for systems whose transactions can be validated along the graph of their conflicts.
fn only_with_a_graph() -> String {
    SMALL.replace("\"fabric-sharp\", ", "")
}

#[test]
fn every_system_runs_and_xox_loses_nothing() {
    let records = run(SMALL, &[]).expect("it runs");
    let of = |system: &str| records.iter().find(|record| record.system == system).expect("a record");
    for record in &records {
        assert!(record.committed_tps > Some(0.0) && record.committed_tps <= record.nominal_tps, "{record:?}");
        assert!(record.latency_ms.is_some_and(|latency| latency.p50 > 0.0 && latency.p50 <= latency.p99));
        assert!((0.0..=1.0).contains(&record.conflict_abort_rate), "{record:?}");
    }
    assert_eq!(of("xox").conflict_abort_rate, 0.0);
    assert!(of("xox").ran_again_rate > 0.5 && of("occ").conflict_abort_rate > 0.5);
    assert_eq!(run(SMALL, &["system=occ", "system=xox", "skew=1"]).expect("it runs").len(), 2);
}

#[test]
fn rounds_end_in_a_report_of_three_files() {
    let folder = TempDir::new().expect("a temporary folder");
    let published = "[[experiment.published]]\nseries = \"occ\"\npanel = \"block_size 25\"\nmetric = \"committed_tps\"\n\
                     x = [0.0, 1.0]\ny = [13600.0, 0.0]\n";
    let toml = SMALL.replace("[25]", "[25, 50]").replace("[1.0]", "[0.0, 0.5, 1.0]") + published;
    let two = ["system=occ", "system=xox", "block_size=25"];
    let arguments = ExperimentArguments {
        rounds: Some(3),
        seconds: Some(0.1),
        ..arguments(folder.path(), Some(&toml), &two)
    };
    let mut said = Vec::new();
    let measurements = endorse(&arguments, &mut |text| said.push(text.to_string())).expect("it runs");
    assert_eq!(measurements.len(), 2 * 3);
    for EndorseMeasurement { record, committed_tps_range, .. } in &measurements {
        let (least, most) = committed_tps_range.expect("three rounds");
        let median = record.committed_tps.expect("timed");
        assert!(least <= median && median <= most && least < most, "{record:?}");
    }
    assert_eq!(said.iter().filter(|text| text.starts_with("round ")).count(), 3 * 6);
    assert!(said.iter().any(|text| text.starts_with("round 3/3, point 6/6: small, xox: ")), "{said:?}");
    let read = |name: &str| fs::read_to_string(arguments.out.join(name)).expect("it was written");
    let page = read("report.html");
    for part in [
        "occ at 0.5:",
        "xox at 1:",
        "occ, the paper at 0: 14 k",
        ">block_size 25</text>",
        "3 rounds of 0.1 s",
    ] {
        assert!(page.contains(part), "{part} is not in the report");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "the page must need no network");
    let csv = read("measurements.csv");
    assert_eq!(csv.lines().count(), measurements.len() + 1);
    assert!(
        csv.starts_with("experiment,kind,system,variant,block_size,rows,skew,committed_tps,nominal_tps,"),
        "{csv}"
    );
    let markdown = read("measurements.md");
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| small | ")).count(), measurements.len());
}

#[test]
fn a_committer_alone_commits_all_that_was_endorsed_ahead() {
    let committers = [
        "{ name = \"serial\" }",
        "{ name = \"one thread\", threads = 1, verified_ahead = 1 }",
        "{ name = \"behind\", recorded_behind = true, endorsed_together = 64 }",
        "{ name = \"grouped\", flushed_together = 3, remembered = true }",
        "{ name = \"pipelined\", verified_ahead = 8, recorded_behind = true, flushed_together = 64 }",
        "{ name = \"graph\", verified_ahead = 8, recorded_behind = true, graph = true }",
        "{ name = \"nothing waits\", graph = true }",
    ];
    let ways = ["", "endorsed_behind = 0", "endorsed_behind = 2", "payload_bytes = [0, 300]"];
    for (way, points) in ways.into_iter().zip([7, 7, 7, 14]) {
        let committers = committers.join(", ");
        let toml = only_with_a_graph()
            .replace("clients = 50", &format!("endorsed_ahead = 410\ncommitters = [{committers}]\n{way}"))
            .replace("rows = 100", "rows = 1000")
            .replace("[1.0]", "[0.0]");
        let records = run(&toml, &["system=occ"]).expect("it runs");
        assert_eq!(records.len(), points);
        for record in records {
            assert!(
                record.committed_tps > Some(0.0) && record.committed_tps == record.nominal_tps,
                "{record:?}"
            );
            assert!(record.latency_ms.is_some_and(|latency| latency.p50 > 0.0), "{record:?}");
            assert_eq!(record.kind, "committer");
        }
    }
}

#[test]
fn what_is_endorsed_behind_is_stale_where_wallets_are_hot() {
    let toml = |behind: &str| {
        only_with_a_graph()
            .replace("clients = 50", &format!("endorsed_ahead = 500\n{behind}"))
            .replace("\"contention\"", "\"transfers\"")
            .replace("rows = 100", "rows = 1000")
    };
    let given_up =
        |behind: &str| run(&toml(behind), &["system=occ"]).expect("it runs")[0].conflict_abort_rate;
    let (fresh, behind, once) =
        (given_up("endorsed_behind = 0"), given_up("endorsed_behind = 2"), given_up(""));
    assert!(0.1 < fresh && fresh < behind && behind < once, "{fresh} {behind} {once}");
    let graph = "endorsed_behind = 2\ncommitters = [{ verified_ahead = 8, graph = true }]";
    assert_eq!(given_up(graph), behind);
}

#[test]
fn reorderings_have_counts_and_milliseconds_and_no_throughput() {
    let toml = r#"
[[experiment]]
id = "cycles"
paper = "fabricplusplus"
number = "Figure 16"
title = "Length of cycles"
systems = ["occ", "fabric++"]
reordering = "cycles"
steps = [2, 16]
block_sizes = [256]
x = "cycle_length"
plots = ["valid", "cut_ms"]
"#;
    let records = run(toml, &[]).expect("it runs");
    let valid: Vec<Option<f64>> = records.iter().map(|record| record.valid).collect();
    assert_eq!(valid, [128.0, 128.0, 128.0, 240.0].map(Some));
    for record in &records {
        assert_eq!((record.kind, record.committed_tps, record.nominal_tps), ("reordering", None, None));
        assert_eq!(record.cut_ms.is_some(), record.system == "fabric++");
        assert_eq!(record.conflict_abort_rate, 1.0 - record.valid.expect("counted") / 256.0);
        assert_eq!(record.parameters.keys().collect::<Vec<_>>(), ["block_size", "cycle_length"]);
    }
    for (from, to, said) in [
        ("[2, 16]", "[]", "at least one value in `steps`"),
        ("[2, 16]", "[1]", "expected steps from 2 to 256, found 1"),
        ("\"cycles\"\nsteps", "\"knots\"\nsteps", "`knots`"),
        ("reordering = \"cycles\"", "clients = 1", "`steps` only beside `reordering`"),
        ("x = \"cycle_length\"", "", "expected as x one of block_size, cycle_length, found `skew`"),
    ] {
        let found = run(&toml.replace(from, to), &[]).expect_err("it must be refused").to_string();
        assert!(found.contains(said), "{to}: {found}");
    }
}

#[test]
fn overhead_is_what_is_lost_to_the_baseline() {
    let toml = SMALL.replace("block_ms = 10", "block_ms = 10\nbaseline = \"occ\"");
    let records = run(&toml, &["system=occ", "system=xox"]);
    let records = records.expect("it runs");
    let [occ, xox] = records.as_slice() else { panic!("{records:?}") };
    let lost = 1.0 - xox.nominal_tps.expect("timed") / occ.nominal_tps.expect("timed");
    assert_eq!((occ.overhead, xox.overhead), (None, Some(lost)));
    let found = run(&SMALL.replace("block_ms = 10", "baseline = \"harmony\""), &[]).expect_err("refused");
    assert!(found.to_string().contains("expected as `baseline` one of its systems: occ, "), "{found}");
}

#[test]
fn what_is_wrong_with_experiments_is_said() {
    let message = |toml: &str| run(toml, &[]).expect_err("it must be refused").to_string();
    let found = message(&SMALL.replace("\"occ\"", "\"raft\""));
    assert!(found.contains("experiment `small`: expected as system one of harmony, "), "{found}");
    assert!(found.contains("found `raft`"), "{found}");
    let published =
        "[[experiment.published]]\nseries = \"occ\"\nmetric = \"committed_tps\"\nx = [1.0]\ny = [1.0]\n";
    for (from, to, said) in [
        ("clients = 50", "", "expected one of `rate`, `clients`, `endorsed_ahead`, `reordering`, found none"),
        ("clients = 50", "endorsed_ahead = 0", "expected endorsed_ahead from 1 to 10000000, found 0"),
        (
            "clients = 50",
            "endorsed_ahead = 9000",
            "expected `endorsed_behind` where there are more than 250 blocks",
        ),
        (
            "clients = 50",
            "clients = 5\nendorsed_behind = 2",
            "`endorsed_behind` only beside `endorsed_ahead`",
        ),
        ("clients = 50", "clients = 5\ncommitters = [{}]", "`committers` only beside `endorsed_ahead`"),
        (
            "clients = 50",
            "endorsed_ahead = 9\ncommitters = [{ flushed_together = 0 }]",
            "flushed_together from 1 to 1000",
        ),
        ("clients = 50", "endorsed_ahead = 9\ncommitters = [{ speed = 9 }]", "`speed`"),
        (
            "clients = 50",
            "endorsed_ahead = 9\ncommitters = [{ graph = true }]",
            "beside `graph` systems that validate with one of occ, fabric++, xox: others are judged in order all the \
             same, found `fabric-sharp`",
        ),
        (
            "clients = 50",
            "endorsed_ahead = 9\npayload_bytes = [99999]",
            "payload_bytes from 0 to 16384, found 99999",
        ),
        ("clients = 50", "clients = 50\nrate = 1.0", "found rate and clients"),
        ("clients = 50", "rate = -1.0", "expected a `rate` above 0, at most 10000000, found -1"),
        ("[1.0]", "[1.5]", "a share or probability"),
        ("[1.0]", "[]", "at least one value"),
        ("[25]", "[0]", "expected block_sizes from 1 to 65000, found 0"),
        (
            "[25]",
            "[25, 25]",
            "expected points that a record can tell apart, found twice occ: block_size 25, ",
        ),
        ("block_ms = 10", "x = \"moon\"", "expected as x one of skew, "),
        ("block_ms = 10", "plots = [\"beauty\"]", "`beauty`"),
        ("block_ms = 10", "blok_ms = 10", "`blok_ms`"),
        ("paper = \"entente\"", "paper = \"times\"", "`times`"),
    ] {
        let found = message(&SMALL.replace(from, to));
        assert!(found.contains(said), "{to}: {found}");
    }
    for (from, to, said) in [
        ("\"occ\"", "\"serial\"", "expected as series in `published` one of `fabric++`, "),
        ("metric", "panel = \"x\"\nmetric", "expected as panel in `published` one of ``, found `x`"),
        ("\"committed_tps\"", "\"beauty\"", "metric in `published`"),
        ("y = [1.0]", "y = []", "found 1 and 0"),
    ] {
        let found = message(&format!("{SMALL}{}", published.replace(from, to)));
        assert!(found.contains(said), "{to}: {found}");
    }
    let twice = format!("{SMALL}{SMALL}");
    assert!(message(&twice).contains("an id of its own"));
    assert!(message("experiment = 1").contains("cannot be read"));
}

#[test]
fn what_is_wrong_with_options_is_said() {
    for (only, said) in [
        ("system", "--only: expected key=value, such as system=fabric++, found `system`"),
        ("system=nobody", "expected as system one of harmony, "),
        ("experiment=none", "expected as experiment one of small, found"),
        (
            "planet=mars",
            "expected as key one of experiment, system, variant, block_size, rows, skew, found `planet=mars`",
        ),
        ("skew=much", "expected a number as skew"),
        ("skew=0.123", "expected at least one point to measure"),
    ] {
        let found = run(SMALL, &[only]).expect_err("it must be refused").to_string();
        assert!(found.contains(said), "{only}: {found}");
    }
    let refused = |change: &dyn Fn(&mut ExperimentArguments)| {
        let folder = TempDir::new().expect("a temporary folder");
        let mut arguments = arguments(folder.path(), Some(SMALL), &[]);
        change(&mut arguments);
        endorse(&arguments, &mut |_| {}).expect_err("it must be refused").to_string()
    };
    let found = refused(&|arguments| arguments.rounds = Some(0));
    assert_eq!(found, "--rounds: expected 1 to 1000, found 0");
    let found = refused(&|arguments| arguments.seconds = Some(-2.0));
    assert_eq!(found, "--seconds: expected more than 0, at most 3600, found -2");
    let found = refused(&|arguments| arguments.experiments = Some("/none/at/all.toml".into()));
    assert!(found.starts_with("cannot read /none/at/all.toml: "), "{found}");
}

#[test]
fn the_built_in_experiments_are_good_and_have_points() {
    let text = include_str!("../../../../docs/endorse.toml");
    let file: toml::Table = text.parse().expect("TOML");
    for experiment in file["experiment"].as_array().expect("entries") {
        let id = experiment["id"].as_str().expect("an id");
        let folder = TempDir::new().expect("a temporary folder");
        // Everything is read and checked before points are chosen; rows that nobody has leave none to be measured.
        let only = [format!("experiment={id}"), "rows=123456789".to_string()];
        let arguments = arguments(folder.path(), None, &[&only[0], &only[1]]);
        let refused = endorse(&arguments, &mut |_| {}).expect_err("no point is left");
        assert!(matches!(refused, LaboratoryError::Nothing { .. }), "{id}: {refused}");
    }
}
