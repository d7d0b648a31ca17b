//! `entente bench protocols` and `entente bench ablation`, small: from the file of experiments to what is written.

use bench::{
    ExperimentArguments, LaboratoryArguments, LaboratoryCommand, LaboratoryError, Measurement, laboratory,
};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Every key of a record, as the issue that asked for them names them.
const KEYS: [&str; 12] = [
    "block_size",
    "committed_tps",
    "conflict_abort_rate",
    "dangerous_structure_rate",
    "executions_per_transaction",
    "false_abort_rate",
    "latency_ms",
    "protocol",
    "reexecuted_rate",
    "skew",
    "threads",
    "workload",
];

fn arguments(folder: &Path, experiments: Option<&str>) -> LaboratoryArguments {
    let experiments = experiments.map(|text| {
        let path = folder.join("experiments.toml");
        fs::write(&path, text).expect("a writable folder");
        path
    });
    LaboratoryArguments {
        run: ExperimentArguments {
            seed: 1,
            only: Vec::new(),
            quick: false,
            json: Some(folder.join("records.json")),
            out: folder.join("out"),
            experiments,
            rounds: Some(1),
            seconds: Some(0.05),
        },
        clients: None,
        rate: None,
        delay: 0.0,
        resubmit: false,
    }
}

fn run(
    command: LaboratoryCommand,
    arguments: &LaboratoryArguments,
) -> Result<Vec<Measurement>, LaboratoryError> {
    laboratory(command, arguments, &mut |_| {})
}

/// One experiment of ours over the protocols that this build has.
fn experiment(more: &str) -> String {
    format!(
        "[[experiment]]\nid = \"small\"\npaper = \"entente\"\nnumber = \"Small\"\ntitle = \"A small one\"\n\
         status = \"done\"\ncommand = \"protocols\"\nrows = 400\nplots = [\"committed_tps\", \"conflict_abort_rate\"]\n{more}"
    )
}

fn failure(toml: &str) -> String {
    let folder = TempDir::new().expect("a temporary folder");
    let arguments = arguments(folder.path(), Some(toml));
    run(LaboratoryCommand::Protocols, &arguments).expect_err("it must be refused").to_string()
}

#[test]
fn every_protocol_runs_every_workload_and_the_results_have_every_series() {
    let folder = TempDir::new().expect("a temporary folder");
    let protocols = format!("{:?}", concurrency::IDS);
    // 400 warehouses would be 200 million rows; `entente bench tpcc` has tests of its own.
    let workloads: Vec<&str> = workloads::WORKLOADS.into_iter().filter(|id| *id != "tpcc").collect();
    let toml = experiment(&format!(
        "protocols = {protocols}\nworkloads = {workloads:?}\nskews = [0.5]\nblock_sizes = [50]\nthreads = [2]\n"
    ));
    let arguments = arguments(folder.path(), Some(&toml));
    let measurements = run(LaboratoryCommand::Protocols, &arguments).expect("it runs");
    assert_eq!(measurements.len(), concurrency::IDS.len() * workloads.len());
    let text = fs::read_to_string(folder.path().join("records.json")).expect("it was written");
    let records: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(records.len(), measurements.len());
    for record in &records {
        let mut keys: Vec<&str> = record.as_object().expect("an object").keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, KEYS);
        assert!(record["committed_tps"].as_f64() > Some(0.0), "{record}");
        assert!(record["latency_ms"]["p50"].as_f64() <= record["latency_ms"]["p99"].as_f64());
        assert!(record["false_abort_rate"].as_f64() <= record["conflict_abort_rate"].as_f64());
    }
    let page = fs::read_to_string(arguments.run.out.join("report.html")).expect("it was written");
    for id in concurrency::IDS {
        assert!(page.contains(&format!("{id} at 0.5:")), "{id} is in no plot");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "the page must need no network");
    let csv = fs::read_to_string(arguments.run.out.join("measurements.csv")).expect("it was written");
    assert_eq!(csv.lines().count(), measurements.len() + 1);
    assert!(arguments.run.out.join("measurements.md").exists());
}

#[test]
fn counted_rates_follow_from_the_seed() {
    let toml = experiment(
        "protocols = [\"harmony\"]\nworkloads = [\"ycsb\"]\nskews = [0.9]\nblock_sizes = [25]\n\
         measures = [\"rates\"]\noptions = { consistency = \"serializable\", granularity = \"row\" }\n",
    );
    let rates = |seed| {
        let folder = TempDir::new().expect("a temporary folder");
        let mut arguments = arguments(folder.path(), Some(&toml));
        arguments.run.seed = seed;
        run(LaboratoryCommand::Protocols, &arguments).expect("it runs").remove(0).record
    };
    let first = rates(1);
    assert_eq!(first, rates(1));
    assert_ne!(first, rates(2));
    assert!(first.dangerous_structure_rate > Some(0.1) && first.committed_tps.is_none(), "{first:?}");
}

#[test]
fn an_open_loop_keeps_its_rate_and_its_clients_wait() {
    let toml = experiment(
        "protocols = [\"harmony\"]\nworkloads = [\"smallbank\"]\nskews = [0.0]\nblock_sizes = [100]\n\
         measures = [\"throughput\"]\n",
    );
    let folder = TempDir::new().expect("a temporary folder");
    let mut open = LaboratoryArguments {
        rate: Some(500.0),
        delay: 1.0,
        resubmit: true,
        ..arguments(folder.path(), Some(&toml))
    };
    open.run.seconds = Some(0.5);
    let record = run(LaboratoryCommand::Protocols, &open).expect("it runs").remove(0).record;
    let tps = record.committed_tps.expect("it was timed");
    // A loaded machine may fall behind the rate; nothing runs ahead of it.
    assert!(tps > 0.0 && tps <= 510.0, "{record:?}");
    let few = LaboratoryArguments { clients: Some(3), delay: 2.0, ..arguments(folder.path(), Some(&toml)) };
    let record = run(LaboratoryCommand::Protocols, &few).expect("it runs").remove(0).record;
    // Three clients that each wait 2 ms between calls cannot have more than 1,500 answers per second.
    assert!(record.committed_tps.is_some_and(|tps| tps > 0.0 && tps < 1_600.0), "{record:?}");
}

#[test]
fn who_is_offered_again_many_times_ran_again_once() {
    let folder = TempDir::new().expect("a temporary folder");
    let toml = experiment(
        "protocols = [\"aria\"]\nworkloads = [\"ycsb-hotspot\"]\nskews = [1.0]\nblock_sizes = [25]\n\
         options = { on_conflict = \"requeue\", granularity = \"row\" }\n",
    );
    let arguments = arguments(folder.path(), Some(&toml));
    let record = run(LaboratoryCommand::Protocols, &arguments).expect("it runs").remove(0).record;
    assert!(record.executions_per_transaction > Some(2.0), "{record:?}");
    assert!(record.reexecuted_rate > Some(0.5) && record.reexecuted_rate <= Some(1.0), "{record:?}");
}

#[test]
fn more_clients_than_a_few_blocks_hold_all_come_back() {
    let folder = TempDir::new().expect("a temporary folder");
    let toml =
        experiment("protocols = [\"serial\"]\nworkloads = [\"smallbank\"]\nskews = [0]\nblock_sizes = [5]\n");
    let mut arguments = LaboratoryArguments { clients: Some(2_000), ..arguments(folder.path(), Some(&toml)) };
    arguments.run.seconds = Some(0.2);
    let record = run(LaboratoryCommand::Protocols, &arguments).expect("it runs").remove(0).record;
    let (tps, latency) = (record.committed_tps.expect("timed"), record.latency_ms.expect("timed").p50);
    // Little's law; a few blocks hold dozens. The first answers come before all have submitted, and the machine may be busy.
    assert!(tps * latency / 1_000.0 > 200.0, "{record:?}");
}

#[test]
fn the_built_in_ablation_has_a_record_per_variant() {
    let folder = TempDir::new().expect("a temporary folder");
    let only = ["workload=smallbank", "skew=1.0", "experiment=harmonybc-figure-20"];
    let mut arguments = arguments(folder.path(), None);
    arguments.run.only = only.map(str::to_string).to_vec();
    arguments.run.quick = true;
    let measurements = run(LaboratoryCommand::Ablation, &arguments).expect("it runs");
    let variants: Vec<&str> =
        measurements.iter().filter_map(|measurement| measurement.record.variant.as_deref()).collect();
    assert_eq!(variants.len(), 6);
    assert!(variants.contains(&"raw") && variants.contains(&"without coalescing"), "{variants:?}");
}

#[test]
fn what_is_wrong_with_experiments_and_filters_is_said() {
    let lists = "protocols = [\"harmony\"]\nworkloads = [\"ycsb\"]\nskews = [0.0]\nblock_sizes = [10]\n";
    let wrong = [
        ("protocols = [\"harmony\"", "harmony"),
        ("protocls = [\"harmony\"]", "`protocls`"),
        ("protocols = [\"magic\"]", "`magic`"),
        ("workloads = [\"tpc-x\"]", "`tpc-x`"),
        ("skews = [-1.0]", "-1"),
        ("block_sizes = []", "`block_sizes`"),
        ("block_sizes = [0]", "found 0"),
        ("plots = [\"beauty\"]", "`beauty`"),
        ("x = \"moon\"", "`moon`"),
        ("options = { consistency = \"lenient\" }", "strict"),
    ];
    for (line, said) in wrong {
        let key = line.split(' ').next().expect("a key");
        let others: String = experiment(lists)
            .lines()
            .filter(|other| !other.starts_with(&format!("{key} =")))
            .fold(String::new(), |text, line| text + line + "\n");
        let message = failure(&format!("{others}{line}\n"));
        assert!(message.contains(said), "{line}: {message}");
    }
    for (only, said) in [
        ("protocol", "key=value"),
        ("planet=mars", "block_size"),
        ("protocol=magic", "harmony"),
        ("skew=much", "number"),
        ("skew=0.123", "at least one point"),
    ] {
        let folder = TempDir::new().expect("a temporary folder");
        let mut arguments = arguments(folder.path(), Some(&experiment(lists)));
        arguments.run.only = vec![only.to_string()];
        let message = run(LaboratoryCommand::Protocols, &arguments).expect_err("refused").to_string();
        assert!(message.contains(said), "{only}: {message}");
    }
    let refused = |change: &dyn Fn(&mut LaboratoryArguments)| {
        let folder = TempDir::new().expect("a temporary folder");
        let mut arguments = arguments(folder.path(), None);
        change(&mut arguments);
        run(LaboratoryCommand::Protocols, &arguments).expect_err("refused").to_string()
    };
    let message = refused(&|arguments| arguments.run.rounds = Some(0));
    assert_eq!(message, "--rounds: expected 1 to 1000, found 0");
    let message = refused(&|arguments| arguments.run.seconds = Some(f64::NAN));
    assert_eq!(message, "--seconds: expected more than 0, at most 3600, found NaN");
    let message = refused(&|arguments| arguments.rate = Some(-1.0));
    assert_eq!(message, "--rate: expected more than 0, at most 10000000, found -1");
}

#[test]
fn rows_may_be_on_a_disk_and_records_say_so() {
    let folder = TempDir::new().expect("a temporary folder");
    let toml = experiment(
        "protocols = [\"harmony\"]\nworkloads = [\"smallbank\"]\nskews = [0.5]\nblock_sizes = [50]\nthreads = [2]\n\
         stores = [\"memory\", \"disk\"]\nmeasures = [\"throughput\"]\n",
    );
    let arguments = arguments(folder.path(), Some(&toml));
    let measurements = run(LaboratoryCommand::Protocols, &arguments).expect("it runs");
    let stores: Vec<_> = measurements
        .iter()
        .map(|measurement| (measurement.record.store, measurement.record.memory_megabytes))
        .collect();
    assert_eq!(stores, [(None, None), (Some("disk"), Some(16))]);
    let page = fs::read_to_string(folder.path().join("out/report.html")).expect("a report");
    assert!(page.contains("harmony, disk"), "{page}");
    let refused = failure(&toml.replace("\"disk\"", "\"tape\""));
    assert!(refused.contains("unknown variant `tape`"), "{refused}");
}
