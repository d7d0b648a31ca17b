//! `entente demo` as a newcomer runs it, in small.

mod support;

use std::process::Command;
use support::{ENTENTE, free_port_base, take_port};

#[test]
fn the_demo_runs_checks_itself_and_writes_its_record() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("demo.json");
    let output = Command::new(ENTENTE)
        .args(["demo", "--exit", "--customers", "2000", "--seconds", "3", "--skew", "0.8"])
        .args(["--port-base", &free_port_base().to_string(), "--json"])
        .arg(&json)
        .output()
        .expect("the program starts");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    let object = record.as_object().expect("one object");
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    let mut expected = vec![
        "nodes",
        "protocol",
        "store",
        "peak_memory_mb",
        "customers",
        "skew",
        "seconds",
        "committed",
        "business_aborts",
        "conflict_aborts",
        "throughput_tps",
        "latency_ms",
        "height",
        "state_digests",
        "invariant_holds",
    ];
    expected.sort_unstable();
    let mut keys = keys;
    keys.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(object["nodes"], 4);
    assert_eq!(object["invariant_holds"], true, "{text}");
    assert_eq!(object["conflict_aborts"], 0);
    assert!(object["committed"].as_u64().is_some_and(|committed| committed > 100), "{text}");
    let digests = object["state_digests"].as_array().expect("a list");
    assert!(digests.len() == 4 && digests.iter().all(|digest| digest == &digests[0]), "{digests:?}");
    assert!(object["latency_ms"]["p50"].is_f64() && object["latency_ms"]["p99"].is_f64());
}

/// Its own brokers order, one of them is killed, and what every node has proves who has offered what.
#[test]
fn the_demo_orders_by_a_topic_of_its_own_brokers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (network, json) = (folder.path().join("network"), folder.path().join("demo.json"));
    let output = Command::new(ENTENTE)
        .args(["demo", "--exit", "--customers", "2000", "--seconds", "12", "--rate", "300", "--chaos"])
        .args(["--ordering", "kafka", "--port-base", &free_port_base().to_string(), "--dir"])
        .arg(&network)
        .arg("--json")
        .arg(&json)
        .output()
        .expect("the program starts");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("the broker that led, at port"), "{text}");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!(record["invariant_holds"], true, "{text}");
    let output = Command::new(ENTENTE).arg("verify").arg(network.join("org3")).output().expect("it starts");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    let without = Command::new(ENTENTE)
        .args(["init", "--ordering", "kafka", "--dir"])
        .arg(folder.path().join("other"))
        .output()
        .expect("the program starts");
    assert!(String::from_utf8_lossy(&without.stderr).contains("expected --kafka-brokers"), "{without:?}");
}

#[test]
fn every_protocol_carries_the_demo() {
    let order_execute = concurrency::IDS.into_iter().filter(|id| *id != "harmony");
    let endorsed = ["serial", "graph"].into_iter().flat_map(|pipeline| {
        let run = move |id| ("execute-order-validate", id, Some(pipeline));
        concurrency::VALIDATION_IDS.into_iter().map(run)
    });
    let models = order_execute.map(|id| ("order-execute", id, None)).chain(endorsed);
    // In turns with the state in memory and on the disk.
    let stores = [["--store", "memory"].as_slice(), &["--store", "disk", "--memory-megabytes", "16"]];
    for ((execution, protocol, pipeline), store) in models.zip(stores.into_iter().cycle()) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let json = folder.path().join("demo.json");
        let output = Command::new(ENTENTE)
            .args(["demo", "--exit", "--customers", "500", "--seconds", "1", "--skew", "0.9"])
            .args([
                "--execution",
                execution,
                "--protocol",
                protocol,
                "--port-base",
                &free_port_base().to_string(),
                "--json",
            ])
            .arg(&json)
            .args(pipeline.into_iter().flat_map(|pipeline| ["--pipeline", pipeline]))
            .args(store)
            .output()
            .expect("the program starts");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{protocol}: {text}\n{errors}");
        let record: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
        assert_eq!((&record["protocol"], &record["invariant_holds"]), (&protocol.into(), &true.into()));
        assert_eq!(record["store"], store[1]);
        assert!(record["peak_memory_mb"].as_f64().is_some_and(|megabytes| megabytes > 10.0), "{record}");
        assert!(record["committed"].as_u64().is_some_and(|committed| committed > 20), "{protocol}: {text}");
        let digests = record["state_digests"].as_array().expect("a list");
        assert!(digests.len() == 4 && digests.iter().all(|digest| digest == &digests[0]), "{digests:?}");
    }
}

#[test]
fn the_engine_bench_writes_its_record() {
    for store in [["--store", "memory"].as_slice(), &["--store", "disk", "--memory-megabytes", "16"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let json = folder.path().join("engine.json");
        let output = Command::new(ENTENTE)
            .args(["bench", "engine", "--quick", "--customers", "500", "--skew", "1.2", "--threads", "2"])
            .args(["--only", "block_size=100,protocol=harmony,workload=smallbank", "--seed", "4", "--json"])
            .arg(&json)
            .args(store)
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let record: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
        let mut keys: Vec<&str> =
            record.as_object().expect("one object").keys().map(String::as_str).collect();
        keys.sort_unstable();
        let expected = "block business_aborts committed conflict_aborts customers executions_per_transaction \
                    peak_memory_mb protocol reexecuted seconds skew store threads throughput_tps workload";
        assert_eq!(keys.join(" "), expected);
        assert_eq!((&record["block"], &record["customers"]), (&100.into(), &500.into()));
        assert_eq!(record["store"], store[1]);
    }
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    let fails = |arguments: &[&str]| {
        let output = Command::new(ENTENTE).args(arguments).output().expect("the program starts");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).to_string()
    };
    assert!(fails(&["demo", "--orgs", "3"]).contains("4..=16"));
    assert!(
        fails(&["demo", "--skew", "-1", "--exit"]).contains("--skew")
            || fails(&["demo", "--skew=-1"]).contains("Zipf")
    );
    assert!(fails(&["demo", "--protocol", "magic", "--exit"]).contains("harmony"));
    assert!(fails(&["demo", "--protocol", "occ", "--exit"]).contains("order-execute has harmony"));
    let of_scripts = ["demo", "--exit", "--execution", "whatever-then-agree", "--protocol", "harmony"];
    assert!(fails(&of_scripts).contains("whatever-then-agree has serial, block-stm; found harmony"));
    assert!(fails(&["demo", "--exit", "--outcome-quorum", "9"]).contains("outcome_quorum must be 2 to 4"));
    let endorsed = |more: &[&str]| {
        let model = ["demo", "--exit", "--execution", "execute-order-validate"];
        fails(&[model.as_slice(), more].concat())
    };
    assert!(endorsed(&["--protocol", "harmony"]).contains("execute-order-validate has occ"));
    assert!(endorsed(&["--endorsement", "2 of (org1"]).contains("endorsement.policy"));
    assert!(endorsed(&["--endorsement", "org1 AND org9"]).contains("org9"));
    assert!(endorsed(&["--endorsement", "3 of (org1, org2)"]).contains("endorsement.policy"));
    assert!(fails(&["init", "--dir", "/tmp/x", "--endorsement", "org1"]).contains("--execution"));
    let limited = |more: &[&str]| {
        let limit = ["init", "--dir", "/tmp/entente-limited", "--memory-megabytes", "8"];
        fails(&[limit.as_slice(), more].concat())
    };
    assert!(limited(&[]).contains("memory_megabytes needs store = \"disk\""));
    assert!(limited(&["--store", "disk"]).contains("expected 16 or more, found 8"));
    let governed = |rule| fails(&["init", "--dir", "/tmp/entente-governed", "--governance", rule]);
    assert!(governed("2 of (org1, org9)").contains("org9"));
    assert!(governed("most").contains("governance"));
    assert!(fails(&["bench", "engine", "--only", "protocol=magic"]).contains("harmony"));
    assert!(fails(&["bench", "engine", "--only", "skew"]).contains("block_size"));
    assert!(fails(&["bench", "protocols", "--only", "skew=much"]).contains("number"));
    assert!(fails(&["node", "--dir", "/nonexistent"]).contains("/nonexistent/charter.toml"));
    assert!(fails(&["sql", "--connect", "nowhere", "-c", "SELECT 1"]).contains("HOST:PORT"));
    assert!(fails(&["status", "127.0.0.1:1"]).contains("entente node"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("something"), "").expect("written");
    let used = folder.path().to_str().expect("a plain path");
    assert!(fails(&["init", "--dir", used]).contains("not empty"));
}

#[test]
fn a_busy_port_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = free_port_base();
    let taken = take_port(base + 100);
    let network = folder.path().join("network");
    let path = network.to_str().expect("a plain path");
    let init = Command::new(ENTENTE)
        .args(["init", "--dir", path, "--port-base", &base.to_string()])
        .status()
        .expect("the program starts");
    assert!(init.success());
    let output = Command::new(ENTENTE)
        .args(["node", "--dir", network.join("org1").to_str().expect("a plain path")])
        .output()
        .expect("the program starts");
    drop(taken);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains(&format!("{}", base + 100)), "{error}");
}
