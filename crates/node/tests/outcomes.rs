//! Four nodes in one process that agree on outcomes: answers wait for a quorum, and a node whose memory is tampered with
//! is found out, says where, heals and takes part again.

use client::Client;
use node::{Faults, Network, NetworkOptions, Node, NodeFolder, NodeOptions};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use types::{AnswerAt, Charter, Outcome, Payload, Pipeline, Receipt};

const PATIENCE: Duration = Duration::from_secs(90);

struct TestNetwork {
    network: Network,
    port_base: u16,
    nodes: Vec<Option<Node>>,
    _folder: TempDir,
}

fn free_port_base() -> u16 {
    for _ in 0..1_000 {
        let base = 10_000 + rand::random::<u16>() % 20_000;
        let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if [0, 100, 200].iter().all(|offset| (0..4).all(|member| free(base + offset + member))) {
            return base;
        }
    }
    panic!("no free ports");
}

impl TestNetwork {
    fn create(change: impl FnOnce(&mut Charter)) -> TestNetwork {
        TestNetwork::of(4, change)
    }

    fn of(organisations: usize, change: impl FnOnce(&mut Charter)) -> TestNetwork {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut charter = Charter::with_defaults("test", rand::random());
        charter.block.idle_ms = 200;
        change(&mut charter);
        let port_base = free_port_base();
        let options =
            NetworkOptions { organisations, port_base, threads: 1, pipeline: Pipeline::Serial, charter };
        let network = Network::create(folder.path(), &options).expect("an empty folder");
        TestNetwork { network, port_base, nodes: (0..organisations).map(|_| None).collect(), _folder: folder }
    }

    fn start(&mut self, node: usize, options: NodeOptions) {
        let folder = NodeFolder::open(&self.network.folders[node]).expect("what create wrote");
        // A node has runtimes of its own.
        let started = tokio::task::block_in_place(|| Node::start_with(folder, options));
        self.nodes[node] = Some(started.expect("it starts"));
    }

    fn stop(&mut self, node: usize) {
        let running = self.nodes[node].take().expect("it runs");
        tokio::task::block_in_place(|| running.stop());
    }

    fn client(&self, node: usize) -> Client {
        let url = format!("http://127.0.0.1:{}", self.port_base + 200 + node as u16);
        Client::new(&url, self.network.clients[node].clone()).expect("a client")
    }

    async fn status(&self, node: usize) -> client::Status {
        self.client(node).status().await.expect("it answers")
    }

    async fn wait(&self, node: usize, what: &str, until: impl Fn(&client::Status) -> bool) -> client::Status {
        let start = Instant::now();
        loop {
            let status = self.status(node).await;
            if until(&status) {
                return status;
            }
            let (height, certified) = (status.height, status.certified_height);
            let (why, told) = (status.not_serving, status.diverged);
            assert!(
                start.elapsed() < PATIENCE,
                "node {node}: {what}; height {height}, certified {certified}, {why:?}, {told:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn run(&self, client: &Client, sql: &str) -> Receipt {
        let height = client.status().await.expect("it answers").height;
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        let signed = client.identity().sign(payload, height + 1_000);
        let receipt = client.execute(&signed).await.expect("a receipt");
        assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{sql}: {:?}", receipt.outcome);
        receipt
    }

    /// All nodes serve, and have the same state at the same height.
    async fn check_agreement(&self) {
        let height = self.status(0).await.height;
        let mut digests = Vec::new();
        for node in 0..4 {
            let healed =
                |status: &client::Status| status.certified_height >= height && status.not_serving.is_none();
            let status = self.wait(node, "it agrees with the others", healed).await;
            let at = status.recent.iter().find(|at| at.height == height);
            digests.push(at.map(|at| at.state_digest.clone()));
        }
        assert!(digests[0].is_some() && digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    }

    fn stop_all(mut self) {
        (0..self.nodes.len()).for_each(|node| self.stop(node));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_wait_for_a_quorum_and_come_earlier_to_those_who_ask_for_that() {
    let mut network = TestNetwork::create(|_| {});
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    for n in 0..20 {
        let receipt = network.run(&client, &format!("INSERT INTO accounts VALUES ({n}, 0)")).await;
        let node = network.nodes[0].as_ref().expect("it runs");
        let certificate = node.outcome_certificate(receipt.height).expect("it was waited for");
        assert!(certificate.statement.height >= receipt.height);
        types::CertificateRules::new(&network.network.charter)
            .check_certificate(&certificate)
            .expect("a quorum's signatures");
        // What proves it to anybody is there when the answer is.
        let proof = node.database().receipt_proof(&receipt.transaction).expect("it is certified");
        let proof = proofs::ReceiptProof::from_json(&proof).expect("a proof");
        assert_eq!(proof.verify(&network.network.charter), Ok(&receipt));
    }

    // Two nodes are away: nothing is certified, and nothing is ordered either, which needs as many.
    network.check_agreement().await;
    let recorded = network.client(1).answered_at(AnswerAt::Recorded);
    network.run(&recorded, "UPDATE accounts SET n = n + 1 WHERE id = 1").await;

    // A restarted node attests what it recorded, and goes on.
    network.stop(3);
    network.run(&client, "UPDATE accounts SET n = n + 1 WHERE id = 2").await;
    network.start(3, NodeOptions::default());
    network.run(&network.client(3), "UPDATE accounts SET n = n + 1 WHERE id = 3").await;
    network.check_agreement().await;
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_of_one_attests_alone() {
    let mut network = TestNetwork::of(1, |charter| {
        charter.ordering = "solo".to_string();
        charter.outcome_lag_blocks = 2;
        charter.block.transactions_max = 1;
    });
    network.start(0, NodeOptions::default());
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    for n in 0..10 {
        let receipt = network.run(&client, &format!("INSERT INTO accounts VALUES ({n}, 0)")).await;
        assert!(network.status(0).await.certified_height >= receipt.height);
    }
    network.stop(0);
    network.start(0, NodeOptions::default());
    let receipt = network.run(&client, "UPDATE accounts SET n = 1").await;
    assert!(network.status(0).await.certified_height >= receipt.height);
    network.stop_all();
}

/// Flips a bit of node 2's row 0 and has somebody change that row, after so many blocks.
async fn tampered_with(checkpoint_blocks: u32, blocks_between: u64) {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = checkpoint_blocks);
    let faults = Arc::new(Faults::default());
    for node in 0..4 {
        let faults = (node == 2).then(|| faults.clone());
        network.start(node, NodeOptions { faults, ..NodeOptions::default() });
    }
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    network.run(&client, "CREATE TABLE others (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    network
        .run(&client, "INSERT INTO accounts VALUES (0, 0), (1, 0); INSERT INTO others VALUES (0, 0)")
        .await;

    faults.flip_in("accounts");
    let begin = network.status(2).await.height;
    let after = |height: u64| move |status: &client::Status| status.height >= height;
    network.wait(2, "blocks pass", after(begin + blocks_between)).await;
    assert!(faults.has_struck());
    network.run(&client, "UPDATE others SET n = n + 1 WHERE id = 0").await;
    let receipt = network.run(&client, "UPDATE accounts SET n = n + 1 WHERE id = 0").await;

    // The others go on; the node says what differs from where on.
    let told = network.wait(2, "it reports", |status| status.diverged.is_some()).await;
    for n in 0..5 {
        network.run(&client, &format!("UPDATE accounts SET n = n + {n} WHERE id = 1")).await;
    }
    let healed =
        |status: &client::Status| status.not_serving.is_none() && status.certified_height >= receipt.height;
    let status = network.wait(2, "it heals", healed).await;
    let text = status.diverged.or(told.diverged).expect("reported");
    assert!(text.contains(&format!("from block {} on", receipt.height)), "{text}, {}", receipt.height);
    assert!(text.contains("in table accounts"), "{text}");
    for node in [0, 1, 3] {
        assert_eq!(network.status(node).await.diverged, None);
    }
    // It takes part again: without one of the others, its attestation is needed.
    network.stop(3);
    let receipt = network.run(&network.client(2), "UPDATE accounts SET n = n + 1 WHERE id = 0").await;
    assert!(network.status(2).await.certified_height >= receipt.height);
    network.start(3, NodeOptions::default());
    network.check_agreement().await;
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_found_named_and_healed_by_replaying_everything() {
    tampered_with(1_000, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_that_stands_in_the_checkpoints_is_healed_from_further_back() {
    tampered_with(4, 12).await;
}
