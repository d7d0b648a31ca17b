//! Members, keys and parameters change while a network of real processes runs: nothing is lost, and whoever has the
//! founding charter can check everything.

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{ENTENTE, TestNetwork};

/// Somebody who inserts rows one after the other at one node.
struct Writer {
    stop: Arc<AtomicBool>,
    rows: Arc<AtomicU64>,
    /// The longest that it has waited for an answer, in milliseconds.
    longest_ms: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Writer {
    async fn start(network: &TestNetwork, node: usize) -> Writer {
        let session = network.session(node).await;
        let (stop, rows, longest_ms) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default(), Arc::default());
        let shared = (stop.clone(), rows.clone(), Arc::<AtomicU64>::clone(&longest_ms));
        let task = tokio::spawn(async move {
            let (stop, rows, longest) = shared;
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                let row = rows.load(Ordering::Relaxed) + 1;
                let inserted = session.batch_execute(&format!("INSERT INTO entries VALUES ({row})")).await;
                inserted.expect("every row is inserted");
                rows.store(row, Ordering::Relaxed);
                longest.fetch_max(start.elapsed().as_millis() as u64, Ordering::Relaxed);
            }
        });
        Writer { stop, rows, longest_ms, task }
    }

    /// Waits until it has inserted some more.
    async fn goes_on(&self, what: &str) {
        let enough = self.rows.load(Ordering::Relaxed) + 5;
        let start = Instant::now();
        while self.rows.load(Ordering::Relaxed) < enough {
            assert!(start.elapsed() < Duration::from_secs(90), "nothing is written: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Waits until what was decided by now holds on these nodes.
async fn holds(network: &TestNetwork, decided_at: usize, nodes: &[usize]) {
    let height = network.client(decided_at).status().await.expect("it answers").height + 30;
    for node in nodes {
        network.wait_for_height(*node, height).await;
    }
}

/// What the program says of a proof to somebody who has the founding charter, and whether it is good.
fn check_proof(network: &TestNetwork, option: &str, proof: &str) -> (bool, String) {
    let file = network.folder().join("proof.json");
    std::fs::write(&file, proof).expect("written");
    let (file, charter) = (file.as_os_str(), network.node_folder(1).join("charter.toml"));
    let checked = Command::new(ENTENTE)
        .args(["verify".as_ref(), option.as_ref(), file, "--charter".as_ref(), charter.as_os_str()])
        .output()
        .expect("the program starts");
    (
        checked.status.success(),
        String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).to_string(),
    )
}

/// Whichever three of the four members signed, the founding charter knows at most two of their keys; with the handovers it is
/// enough to check them all.
async fn proofs_need_handovers(network: &TestNetwork, own: &tokio_postgres::Client) {
    let row: String = network.row_proofs(own, "SELECT entente.proof('entries', -1)").await.get(0);
    let proof = own
        .query_one("SELECT entente.proof(id) FROM entente.transactions ORDER BY height DESC LIMIT 1", &[])
        .await;
    let receipt: String = proof.expect("it was answered").get(0);
    for (option, proof) in [("--row", &row), ("--receipt", &receipt)] {
        let (good, said) = check_proof(network, option, proof);
        assert!(good && !said.contains("org1"), "{option}: {said}");
        let mut json: serde_json::Value = serde_json::from_str(proof).expect("JSON");
        let handovers = json["handovers"].as_array_mut().expect("a list");
        assert!(!handovers.is_empty(), "charters were amended");
        handovers.clear();
        let (good, said) = check_proof(network, option, &json.to_string());
        assert!(!good, "{option} without handovers: {said}");
    }
}

/// `entente verify --replay` finds nothing wrong in a node's folder.
fn verifies(network: &TestNetwork, node: usize) {
    let verified = Command::new(ENTENTE)
        .args(["verify", "--replay"])
        .arg(network.node_folder(node))
        .output()
        .expect("the program starts");
    let said = [verified.stdout, verified.stderr].concat();
    assert!(verified.status.success(), "node {node}: {}", String::from_utf8_lossy(&said));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_and_keys_are_replaced_while_clients_write() {
    let mut network = TestNetwork::create(|charter| {
        // Changes take effect 20 blocks after they are decided.
        charter.outcome_lag_blocks = 10;
        charter.block.idle_ms = 100;
    });
    network.start_all().await;
    let governor = network.session(1).await;
    governor
        .batch_execute("CREATE TABLE entries (id bigint PRIMARY KEY)")
        .await
        .expect("governance is `any`");
    let writer = Writer::start(&network, 1).await;
    writer.goes_on("four members").await;

    // A fifth organisation comes in. Its node is there before it is a member, and follows.
    let (fifth, add) = network.newcomer("emma");
    network.start(fifth);
    governor.simple_query(&add).await.expect("a good acceptance");
    holds(&network, 1, &[0, 1, 2, 3, fifth]).await;
    writer.goes_on("five members").await;
    network.assert_agreement(&[0, 1, 2, 3, fifth]).await;

    // The first leaves; then the network does without another one, which takes the fifth's votes.
    governor.simple_query("SELECT entente.remove_organisation('org1')").await.expect("a member");
    holds(&network, 1, &[1, 2, 3, fifth]).await;
    network.kill(0);
    network.kill(3);
    writer.goes_on("the fifth votes").await;
    network.start(3);
    network.wait_for_height(3, 1).await;

    // Another key for the third; its node is stopped, gets the key, and goes on from its folder.
    let key = crypto::SecretKey::generate();
    let replace = format!("SELECT entente.replace_node_key('org3', '{}')", key.public_key());
    governor.simple_query(&replace).await.expect("a member");
    holds(&network, 1, &[1, 3, fifth]).await;
    network.kill(2);
    std::fs::write(network.node_folder(2).join("node.key"), key.to_hex()).expect("written");
    network.start(2);
    holds(&network, 1, &[1, 2, 3, fifth]).await;
    network.kill(3);
    writer.goes_on("the new key votes").await;
    network.start(3);
    governor.simple_query("SELECT entente.set_charter('block.idle_ms', '200')").await.expect("in range");
    holds(&network, 1, &[1, 2, 3, fifth]).await;

    writer.stop.store(true, Ordering::Relaxed);
    let Writer { rows, longest_ms, task, .. } = writer;
    task.await.expect("every row was inserted");
    network.assert_agreement(&[1, 2, 3, fifth]).await;
    let rows = rows.load(Ordering::Relaxed);
    println!("{rows} rows, the longest wait {} ms", longest_ms.load(Ordering::Relaxed));
    for node in [2, fifth] {
        let counted = network.session(node).await.query_one("SELECT count(*) FROM entries", &[]).await;
        assert_eq!(counted.expect("a table").get::<_, i64>(0) as u64, rows);
    }
    // A client of the fifth organisation writes through its own node.
    let own = network.session(fifth).await;
    own.batch_execute("INSERT INTO entries VALUES (-1)").await.expect("a member");

    proofs_need_handovers(&network, &own).await;
    for node in [0, 1, 2, fifth] {
        verifies(&network, node);
    }
}
