//! `entente export` beside nodes that run, with rows in memory and on the disk, under two charters; and whoever reads what it
//! has written: `docs/lakehouse.md`.
#![allow(missing_docs)]

mod support;

use node::{StoreChoice, StoreKind, convert_store};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::load::Load;
use support::{ENTENTE, TestNetwork};

fn entente(arguments: &[&str]) -> Output {
    Command::new(ENTENTE).args(arguments).output().expect("the program runs")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

/// What it says, and whether it went well.
fn said(output: &Output) -> (bool, String) {
    let all = [&output.stdout[..], &output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&all).to_string())
}

/// Exports a node's newest certified checkpoint, and proves what is there.
fn export_and_verify(node: &Path, target: &Path) -> String {
    let (success, exported) = said(&entente(&["export", "--dir", text(node), "--to", text(target)]));
    assert!(success, "{exported}");
    verify(node, target)
}

fn verify(node: &Path, target: &Path) -> String {
    let charter = node.join("charter.toml");
    let (success, verified) =
        said(&entente(&["verify", "--export", text(target), "--charter", text(&charter)]));
    assert!(success, "{verified}");
    verified
}

/// Height in `latest.json`.
fn exported_height(target: &Path) -> Option<u64> {
    let latest = std::fs::read_to_string(target.join("_entente/latest.json")).ok()?;
    serde_json::from_str::<serde_json::Value>(&latest).expect("JSON")["height"].as_u64()
}

/// Ends with the test.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn follow(node: &Path, target: &Path) -> Follower {
    let child = Command::new(ENTENTE)
        .args(["export", "--follow", "--dir", text(node), "--to", text(target)])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Follower(child.expect("the program starts"))
}

async fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

const TABLES: &str = "
    CREATE SCHEMA sales;
    CREATE TABLE kinds (id bigint PRIMARY KEY, b boolean, s smallint, i integer, r real, d double precision,
        n numeric(12,2), m numeric, t text, v varchar(10), c char(4), y bytea, on_day date, at_moment timestamptz,
        at_local timestamp, of_day time, lasts interval, u uuid, list integer[]);
    INSERT INTO kinds VALUES
        (1, true, -1, 2, 1.5, -1e300, 12.50, 1.500, 'Zürich', 'abc', 'ab', '\\x00ff', '2026-11-25',
         '2026-11-25 10:00+01', '2026-11-25 10:00', '24:00', '1 month 2 days', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,NULL}'),
        (2, NULL, NULL, NULL, 'NaN', 'Infinity', 'NaN', 'Infinity', '', NULL, NULL, NULL, 'infinity',
         '-infinity', '294276-12-31', NULL, NULL, NULL, '{}');
    CREATE TABLE sales.\"Order lines\" (what text, pieces bigint);
    INSERT INTO sales.\"Order lines\" SELECT 'copper', n FROM generate_series(1, 3000) AS n;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_exported_beside_running_nodes_and_proved_under_every_charter() {
    let mut network = TestNetwork::create(|charter| {
        charter.found_with_version(2);
        charter.outcome_lag_blocks = 10;
        charter.block.idle_ms = 100;
        charter.checkpoint_blocks = 20;
    });
    let disk = StoreChoice { kind: StoreKind::Disk, memory_megabytes: None };
    convert_store(&network.node_folder(1), disk).expect("a new node");
    network.start_all().await;
    let session = network.session(0).await;
    session.batch_execute(TABLES).await.expect("it is made");
    let load = Load::start(&network).await;
    load.wait_for(200, "version 2").await;
    let proof = "SELECT entente.proof('kinds', 1)";
    network.row_proofs(&session, proof).await;
    let lakes = tempfile::tempdir().expect("a folder");
    let targets: Vec<_> = (0..2).map(|node| lakes.path().join(format!("lake{node}"))).collect();
    for (node, target) in targets.iter().enumerate() {
        let folder = network.node_folder(node);
        wait_for("the table is in a checkpoint of each node", || {
            entente(&["export", "--dir", text(&folder), "--to", text(target)]);
            target.join("sales/Order~20lines").exists()
        })
        .await;
        let verified = export_and_verify(&network.node_folder(node), target);
        assert!(verified.contains("kinds, version 0: 2 rows"), "{verified}");
        assert!(verified.contains("sales.Order lines, version 0: 3,000 rows"), "{verified}");
        assert!(verified.contains("attested by org"), "{verified}");
    }
    // Another tree, and a certificate of later members' charter.
    let switched =
        network.session(1).await.simple_query("SELECT entente.set_charter('execution_version', '3')").await;
    switched.expect("the next one");
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(0, height + 45).await;
    load.wait_for(200, "version 3").await;
    session.batch_execute("DELETE FROM sales.\"Order lines\" WHERE pieces = 77").await.expect("it is there");
    network.row_proofs(&session, proof).await;
    for (node, target) in targets.iter().enumerate() {
        let reached = exported_height(target);
        let folder = network.node_folder(node);
        wait_for("a checkpoint under the new charter", || {
            export_and_verify(&folder, target);
            exported_height(target) > reached.map(|reached| reached + 45)
        })
        .await;
        wait_for("the row has gone", || export_and_verify(&folder, target).contains("2,999 rows")).await;
        let at_first = format!("{}", reached.expect("it was exported"));
        let charter = folder.join("charter.toml");
        let old = ["verify", "--export", text(target), "--charter", text(&charter), "--height", &at_first];
        let (success, verified) = said(&entente(&old));
        assert!(success && verified.contains("3,000 rows"), "{verified}");
    }
    load.finish(&mut network).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_follows_and_transactions_go_on_whatever_becomes_of_its_target() {
    let mut network = TestNetwork::create(|charter| {
        charter.block.idle_ms = 100;
        charter.checkpoint_blocks = 10;
    });
    network.start_all().await;
    let session = network.session(0).await;
    session.batch_execute("CREATE TABLE accounts (id bigint PRIMARY KEY, cents bigint)").await.expect("new");
    session.batch_execute("INSERT INTO accounts VALUES (1, 100), (2, 200)").await.expect("there is room");
    let lakes = tempfile::tempdir().expect("a folder");
    let (node, target) = (network.node_folder(2), lakes.path().join("lake"));
    // Before anything is certified somebody may be told so, and may wait.
    let follower = follow(&node, &target);
    wait_for("the first checkpoint", || target.join("public/accounts").exists()).await;
    let (success, refused) = said(&entente(&["export", "--dir", text(&node), "--to", text(&target)]));
    assert!(!success && refused.contains("another export from"), "{refused}");
    // The node is killed and comes back; the export goes on.
    network.kill(2);
    let height = network.client(0).status().await.expect("it answers").height;
    network.start(2);
    network.wait_for_height(2, height).await;
    let reached = exported_height(&target);
    wait_for("a checkpoint behind the kill", || exported_height(&target) > reached).await;
    // The target vanishes, transactions go on, it comes back.
    let elsewhere = lakes.path().join("elsewhere");
    std::fs::rename(&target, &elsewhere).expect("it can be moved");
    let reached = exported_height(&elsewhere);
    session.batch_execute("INSERT INTO accounts VALUES (3, 300)").await.expect("transactions go on");
    let height = network.client(2).status().await.expect("it answers").height;
    network.wait_for_height(2, height + 25).await;
    assert!(!target.join("public").exists(), "nothing is written where nothing is mounted");
    std::fs::rename(&elsewhere, &target).expect("it can be moved");
    wait_for("it goes on where it was", || exported_height(&target) > reached).await;
    wait_for("the new row", || verify(&node, &target).contains("3 rows")).await;
    drop(follower);
    // Another network's tables do not come in between.
    let other = TestNetwork::create(|_| ());
    let (success, refused) =
        said(&entente(&["export", "--dir", text(&other.node_folder(0)), "--to", text(&target)]));
    assert!(!success && refused.contains("holds the tables of the ledger"), "{refused}");
    let charter = other.node_folder(0).join("charter.toml");
    let (success, refused) =
        said(&entente(&["verify", "--export", text(&target), "--charter", text(&charter)]));
    assert!(!success && refused.contains("holds the tables of the ledger"), "{refused}");
    // A node of the same network does not either.
    let neighbour = network.node_folder(3);
    let (success, refused) = said(&entente(&["export", "--dir", text(&neighbour), "--to", text(&target)]));
    assert!(!success && refused.contains("is written from another node's folder"), "{refused}");
    let over = ["export", "--take-over", "--dir", text(&neighbour), "--to", text(&target)];
    let (success, taken) = said(&entente(&over));
    assert!(success, "{taken}");
    verify(&node, &target);
}

#[test]
fn a_target_that_cannot_be_written_and_a_folder_that_is_no_nodes_are_named() {
    let network = TestNetwork::create(|_| ());
    let folder = tempfile::tempdir().expect("a folder");
    let node = network.node_folder(0);
    let refused = |to: &str| said(&entente(&["export", "--dir", text(&node), "--to", to]));
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("there is room");
    for (to, words) in [
        (text(&file), "it is no folder"),
        ("ftp://somewhere/lake", "ftp:// is not known"),
        ("/proc/lake", "/proc/lake"),
    ] {
        let (success, refused) = refused(to);
        assert!(!success && refused.contains(words), "{to}: {refused}");
    }
    // Nothing is certified in a network that never ran.
    let (success, nothing) = refused(text(&folder.path().join("lake")));
    assert!(!success && nothing.contains("CHECKPOINT makes one"), "{nothing}");
    let (success, none) = said(&entente(&["export", "--dir", text(folder.path()), "--to", "lake"]));
    assert!(!success && none.contains("charter.toml"), "{none}");
    let charter = node.join("charter.toml");
    let (success, nothing) =
        said(&entente(&["verify", "--export", text(folder.path()), "--charter", text(&charter)]));
    assert!(!success && nothing.contains("was not written by an export"), "{nothing}");
}
