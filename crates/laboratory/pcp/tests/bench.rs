//! The command's experiments: every one gives its figures, and bad options are named.

use clap::Parser;
use pcp::{PcpArguments, PcpRecord, VARIANTS, bench, pcp_table};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: PcpArguments,
}

fn run(options: &str) -> Result<Vec<PcpRecord>, String> {
    let words = std::iter::once("pcp").chain(options.split_whitespace());
    let arguments = Arguments::try_parse_from(words).map_err(|error| error.to_string())?;
    bench(&arguments.bench, &mut |_| ()).map_err(|error| error.to_string())
}

#[test]
fn every_experiment_has_its_figures_and_the_thesis_s_where_it_prints_some() {
    let records = run("--quick --transactions 20 --cases 300").expect("it runs");
    let find = |experiment: &str, system: &str, point: &str, metric: &str| {
        let mut own = records.iter().filter(|record| {
            (record.experiment, record.metric) == (experiment, metric) && record.system == system
        });
        own.find(|record| record.point.starts_with(point))
            .unwrap_or_else(|| panic!("{experiment}, {system}, {point}"))
    };
    for system in ["pcp", "two-phase"] {
        let share = find("figure-5-11", system, "just-in-time, 5", "share_of_one_proposal");
        assert!(share.value > 0.0 && share.paper == Some(0.2), "{share:?}");
        assert!(find("figure-5-11", system, "pre-endorsed, 5", "committed_tps").value > 0.0);
    }
    let ring = |metric| find("figure-5-12", "pcp", "ring, 5", metric);
    assert!((4.0..=5.0).contains(&ring("rounds").value) && ring("ms_of_a_further_round").paper == Some(2.0));
    let chain = |metric| find("figure-5-12", "pcp", "chain, 3", metric).value;
    assert!(chain("messages") >= 4.0 && chain("last_shard_ms") > 0.0);
    assert_eq!(find("rounds", "corrected", "ring, 4", "limit").value, 4.0);
    for variant in VARIANTS {
        let violations = find("variants", variant.name, "300", "violations").value;
        assert!(violations == 0.0 || variant.is_wrong, "{}: {violations}", variant.name);
    }
    assert!(find("liar", "pcp", "300", "torn").value > 0.0);
    assert_eq!(find("liar", "schemas with members", "300", "torn").value, 0.0);
    assert!(find("liar", "schemas with members", "300", "committed").value > 0.0);
    assert!(find("secrets", "without secrets", "300", "participants_learned").value > 0.0);
    assert_eq!(find("secrets", "with secrets", "300", "participants_learned").value, 0.0);
    assert!(pcp_table(&records).contains("figure-5-12 (the thesis's figures in brackets)"));
    let json = serde_json::to_value(&records[0]).expect("JSON");
    assert_eq!((json["experiment"].as_str(), json["paper"].is_null()), (Some("figure-5-11"), true));
}

#[test]
fn what_is_counted_follows_from_the_seed() {
    let options = "--cases 100 --experiment variants,liar,secrets,figure-5-12";
    assert_eq!(run(options), run(options));
    assert_ne!(run(options), run(&format!("{options} --seed 2")));
}

#[test]
fn options_that_make_no_sense_are_named() {
    let said = |options: &str| run(options).expect_err("it makes no sense");
    assert_eq!(said("--transactions 0"), "--transactions: expected 1 to 1000000, found 0");
    assert_eq!(said("--cases 0"), "--cases: expected 1 to 1000000, found 0");
    assert_eq!(said("--delay-ms NaN"), "--delay-ms: expected 0.001 to 10000, found NaN");
    let names = "figure-5-11, figure-5-12, rounds, variants, liar, secrets";
    assert_eq!(said("--experiment x"), format!("--experiment: expected some of {names}, found `x`"));
}
