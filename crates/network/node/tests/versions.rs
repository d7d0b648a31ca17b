//! A network that goes over to another execution version at a height, with a node whose program does not know it.
#![allow(missing_docs)]

mod network;

use gateway::{Binding, Prepared};
use network::TestNetwork;
use node::{Node, NodeFolder, NodeOptions};
use std::sync::Arc;
use types::{ExecutionVersion, KnownVersions, Payload};

const SWITCH: &str = "SELECT entente.set_charter('execution_version', '2')";

fn older() -> NodeOptions {
    NodeOptions { known_versions: KnownVersions::up_to(ExecutionVersion::V1), ..NodeOptions::default() }
}

fn create() -> TestNetwork {
    TestNetwork::create(|charter| {
        charter.found_with_version(1);
        charter.checkpoint_blocks = 10;
        charter.block.idle_ms = 100;
        // Amendments hold 30 blocks after they are decided.
        charter.outcome_lag_blocks = 20;
    })
}

impl TestNetwork {
    fn prepare(&self, node: usize, sql: &str) -> Prepared {
        let database = self.nodes[node].as_ref().expect("it runs").database();
        database.prepare(sql, &[]).expect("a query")
    }

    fn binding(&self, node: usize) -> Binding {
        self.nodes[node].as_ref().expect("it runs").database().binding()
    }
}

/// Why the node does not start with these options.
fn refusal(network: &TestNetwork, node: usize, options: NodeOptions) -> String {
    let folder = NodeFolder::open(&network.network.folders[node]).expect("a good folder");
    let started = tokio::task::block_in_place(|| Node::start_with(folder, options));
    started.err().expect("it does not start").to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_program_says_so_early_stops_at_the_height_and_a_newer_one_goes_on() {
    let mut network = create();
    (0..3).for_each(|node| network.start(node, NodeOptions::default()));
    network.start(3, older());
    let client = network.client(0);
    network.run(&client, "CREATE TABLE entries (id bigint PRIMARY KEY)").await;
    assert!(network.status(3).await.warnings.is_empty());

    // Nobody agrees through a node that would stop.
    let late = network.client(3);
    let payload = Payload::Script { sql: SWITCH.to_string(), parameters: Vec::new() };
    let signed = late.identity().sign(payload, network.status(3).await.height + 100);
    let refused = late.execute(&signed).await.expect_err("it is refused").to_string();
    assert!(
        refused.contains("knows execution versions 1 to 1") && refused.contains("version 2"),
        "{refused}"
    );

    let decided = network.run(&client, SWITCH).await.height;
    let first = decided + 30;
    let says =
        format!("execution version 2 is needed from height {first} on, this program knows versions 1 to 1");
    let warns = |status: &client::Status| status.warnings.iter().any(|warning| warning.starts_with(&says));
    let status = network.wait(3, "it warns as soon as it is decided", warns).await;
    assert!(status.height < first && status.not_serving.is_none(), "{status:?}");
    assert!(network.status(0).await.warnings.is_empty(), "a newer one needs nothing");
    for id in 0..5 {
        network.run(&network.client(id % 4), &format!("INSERT INTO entries VALUES ({id})")).await;
    }
    let sum = network.prepare(0, "SELECT sum(id) FROM entries");
    let before = sum.query.run("", &[], &Arc::default()).expect("it runs");
    assert!(before.is_some(), "what it is bound to holds");

    let stops = |status: &client::Status| status.not_serving.is_some();
    let status = network.wait(3, "it stops", stops).await;
    assert_eq!(status.height, first - 1, "before the block");
    let why = status.not_serving.unwrap_or_default();
    assert!(why.contains(&says) && why.contains("install a newer version of Entente"), "{why}");
    // The others go on without.
    network.run(&client, "INSERT INTO entries VALUES (100)").await;
    network.wait(0, "they are behind it", |status| status.certified_height > first).await;
    // The catalog is the same, the rules are not: what was prepared is to be prepared again.
    let after = sum.query.run("", &[], &Arc::default()).expect("it runs");
    assert!(after.is_none(), "it would read with the rules of version 1: {after:?}");
    let again = network.prepare(0, "SELECT sum(id) FROM entries");
    assert_eq!(again.binding.catalog_version, sum.binding.catalog_version);
    assert_eq!(again.binding.execution_version, ExecutionVersion::V2);
    assert_eq!(network.binding(0), again.binding, "what the gateway compares with");
    assert!(again.query.run("", &[], &Arc::default()).expect("it runs").is_some());
    drop((sum, again));
    network.stop(3);
    let why = refusal(&network, 3, older());
    assert!(why.starts_with(&says), "{why}");

    // The program is replaced.
    network.start(3, NodeOptions::default());
    network.check_agreement().await;
    network.run(&network.client(3), "INSERT INTO entries VALUES (101)").await;
    network.stop(1);
    network.start(1, NodeOptions::default());
    network.check_agreement().await;

    // An older one on a ledger, or a checkpoint of others, that a newer one has written.
    network.stop(3);
    let why = refusal(&network, 3, older());
    assert!(why.starts_with(&says), "{why}");
    for folder in ["ledger", "checkpoints", "history"] {
        std::fs::remove_dir_all(network.network.folders[3].join(folder)).expect("it was there");
    }
    network.start(3, older());
    let status = network.wait(3, "it stops, wherever it begins", stops).await;
    assert!(status.height < first, "{status:?}");
    let why = status.not_serving.unwrap_or_default();
    assert!(why.contains(&says), "{why}");
    network.stop(3);
    network.start(3, NodeOptions::default());
    network.check_agreement().await;
    network.stop_all();
}
