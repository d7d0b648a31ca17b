//! Nodes that give up old transactions beside one that keeps all: what they still know, what they can no longer say, and that they
//! come back.

mod network;

use audit::{Options, audit};
use client::Client;
use network::{PATIENCE, TestNetwork};
use node::{Node, NodeFolder, NodeOptions};
use std::time::{Duration, Instant};
use types::{Charter, Receipt};

/// So many of the newest blocks are kept: fewer than a node that runs for people may keep, so that the test is short.
const KEPT: u64 = 70;

fn short(charter: &mut Charter) {
    charter.checkpoint_blocks = 10;
    charter.expiry_blocks_max = 60;
    charter.block.idle_ms = 100;
}

impl TestNetwork {
    fn start_pruning(&mut self, node: usize) {
        let mut folder = NodeFolder::open(&self.network.folders[node]).expect("what create wrote");
        folder.config.payload_blocks = Some(KEPT);
        let started = tokio::task::block_in_place(|| Node::start_with(folder, NodeOptions::default()));
        self.nodes[node] = Some(started.expect("it starts"));
    }

    fn payloads_from(&self, node: usize) -> u64 {
        self.nodes[node].as_ref().expect("it runs").database().status().payloads_from
    }

    async fn pruned_to(&self, node: usize, height: u64) {
        let start = Instant::now();
        while self.payloads_from(node) <= height {
            assert!(start.elapsed() < PATIENCE, "node {node} keeps from {}", self.payloads_from(node));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn insert(&self, client: &Client, number: u64) -> Receipt {
        // The network's own expiry is short, and who has just started is far behind.
        let height = self.status(0).await.height;
        let sql = format!("INSERT INTO notes VALUES ({number})");
        let payload = types::Payload::Script { sql, parameters: Vec::new() };
        client.execute(&client.identity().sign(payload, height + 50)).await.expect("a receipt")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_prune_go_on_and_come_back_and_one_that_keeps_all_knows_the_rest() {
    let mut network = TestNetwork::create(short);
    network.start(0, NodeOptions::default());
    (1..4).for_each(|node| network.start_pruning(node));
    let client = network.client(1);
    let height = client.status().await.expect("it answers").height;
    let table = types::Payload::Script {
        sql: "CREATE TABLE notes (id bigint PRIMARY KEY)".to_string(),
        parameters: vec![],
    };
    client.execute(&client.identity().sign(table, height + 50)).await.expect("a receipt");
    let first = network.insert(&client, 0).await;
    for node in 1..4 {
        network.pruned_to(node, first.height).await;
    }
    assert_eq!(network.payloads_from(0), 1);
    // What is pruned here is there.
    let proof = |network: &TestNetwork, node: usize| {
        let database = network.nodes[node].as_ref().expect("it runs").database();
        database.receipt_proof(&first.transaction)
    };
    let refused = proof(&network, 1).expect_err("it is pruned");
    let hint = refused.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("This node prunes and has receipts from height"), "{refused:?}");
    proof(&network, 0).expect("it is kept");
    // A node that prunes comes back, without a word of what it has given up.
    let before = network.payloads_from(2);
    network.stop(2);
    network.insert(&client, 1).await;
    network.start_pruning(2);
    assert_eq!(network.payloads_from(2), before);
    network.pruned_to(2, before + 20).await;
    network.insert(&network.client(2), 2).await;
    network.check_agreement().await;
    (0..4).for_each(|node| network.stop(node));
    for (node, folder) in network.network.folders.iter().enumerate() {
        let charter = &network.network.charter;
        let report = audit(charter, folder.join("ledger"), Options::default(), &mut |_| ()).expect("keys");
        assert!(report.error.is_none(), "node {node}: {report:?}");
        assert_eq!(report.checked.pruned_blocks > 0, node > 0, "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_away_while_the_others_pruned_catches_up() {
    let mut network = TestNetwork::create(short);
    // Nobody keeps all.
    (0..4).for_each(|node| network.start_pruning(node));
    let client = network.client(1);
    let height = client.status().await.expect("it answers").height;
    let table = types::Payload::Script {
        sql: "CREATE TABLE notes (id bigint PRIMARY KEY)".to_string(),
        parameters: vec![],
    };
    client.execute(&client.identity().sign(table, height + 50)).await.expect("a receipt");
    network.insert(&client, 0).await;
    network.stop(3);
    let away = network.status(0).await.height;
    for node in 0..3 {
        network.pruned_to(node, away + 30).await;
    }
    network.insert(&client, 1).await;
    let mut folder = NodeFolder::open(&network.network.folders[3]).expect("what create wrote");
    (folder.config.payload_blocks, folder.config.join_behind_blocks) = (Some(KEPT), Some(20));
    let started = tokio::task::block_in_place(|| Node::start_with(folder, NodeOptions::default()));
    network.nodes[3] = Some(started.expect("it starts"));
    let height = network.status(0).await.height;
    network.wait(3, "it catches up", |status| status.height >= height).await;
    network.insert(&network.client(3), 2).await;
    network.check_agreement().await;
    network.stop_all();
}
