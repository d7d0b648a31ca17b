//! Four real node processes, `kill -9`, and what has been acknowledged.

mod support;

use client::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use support::TestNetwork;
use types::{Outcome, Payload, Receipt, Value};

/// What loads and the test tell one another.
#[derive(Default)]
struct CrashProgress {
    stop: AtomicBool,
    receipts: AtomicUsize,
}

impl CrashProgress {
    /// Waits until so many receipts have come.
    async fn wait_for(&self, receipts: usize) {
        let start = std::time::Instant::now();
        while self.receipts.load(Ordering::Relaxed) < receipts {
            assert!(start.elapsed() < std::time::Duration::from_secs(90), "no {receipts} receipts in time");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

/// Submits inserts of the numbers `first`, `first + step`, … until told to stop or the node is gone; gives back every
/// receipt.
async fn insert_until(client: Client, first: i64, progress: Arc<CrashProgress>) -> Vec<(i64, Receipt)> {
    let mut receipts = Vec::new();
    let mut next = first;
    while !progress.stop.load(Ordering::Relaxed) {
        let Ok(status) = client.status().await else { break };
        let signed: Vec<_> = (0..20)
            .map(|offset| {
                let parameters = vec![Value::BigInt(next + offset)];
                let payload = Payload::Script { sql: "INSERT INTO numbers VALUES ($1)".into(), parameters };
                client.identity().sign(payload, status.height + 1_000)
            })
            .collect();
        let Ok(mut replies) = client.submit(&signed).await else { break };
        while let Ok(Some(reply)) = replies.next().await {
            if let Ok(receipt) = reply.result {
                receipts.push((next + i64::from(reply.position), receipt));
                progress.receipts.fetch_add(1, Ordering::Relaxed);
            }
        }
        next += 20;
    }
    receipts
}

async fn numbers(network: &TestNetwork, node: usize) -> Vec<i64> {
    let rows =
        network.session(node).await.query("SELECT n FROM numbers ORDER BY n", &[]).await.expect("a SELECT");
    rows.iter().map(|row| row.get(0)).collect()
}

fn committed(receipts: &[(i64, Receipt)]) -> impl Iterator<Item = i64> + '_ {
    let good = receipts.iter().filter(|(_, receipt)| matches!(receipt.outcome, Outcome::Committed(_)));
    good.map(|(number, _)| *number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_go_on_without_the_fourth_which_catches_up() {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 10);
    network.start_all().await;
    network
        .session(0)
        .await
        .batch_execute("CREATE TABLE numbers (n bigint PRIMARY KEY)")
        .await
        .expect("created");

    let progress = Arc::new(CrashProgress::default());
    let load = tokio::spawn(insert_until(network.client(0), 0, progress.clone()));
    progress.wait_for(60).await;
    network.kill(3);
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(0, height + 15).await;
    network.start(3);
    network.wait_for_height(3, height + 15).await;
    progress.stop.store(true, Ordering::Relaxed);
    let receipts = load.await.expect("the load ends");

    network.assert_agreement(&[0, 1, 2, 3]).await;
    let present = numbers(&network, 3).await;
    assert!(committed(&receipts).count() > 50, "{} receipts", receipts.len());
    for number in committed(&receipts) {
        assert!(present.binary_search(&number).is_ok(), "{number} was acknowledged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_receipt_is_lost_when_all_nodes_are_killed() {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 8);
    network.start_all().await;
    network
        .session(1)
        .await
        .batch_execute("CREATE TABLE numbers (n bigint PRIMARY KEY)")
        .await
        .expect("created");
    let progress = Arc::new(CrashProgress::default());
    let loads: Vec<_> = (0..4)
        .map(|node| {
            let client = network.client(node);
            tokio::spawn(insert_until(client, node as i64 * 1_000_000, progress.clone()))
        })
        .collect();
    progress.wait_for(200).await;
    (0..4).for_each(|node| network.kill(node));
    progress.stop.store(true, Ordering::Relaxed);
    let mut receipts = Vec::new();
    for load in loads {
        receipts.extend(load.await.expect("the load ends"));
    }
    assert!(committed(&receipts).count() > 50, "{} receipts", receipts.len());

    network.start_all().await;
    let highest = receipts.iter().map(|(_, receipt)| receipt.height).max().expect("some receipt");
    for node in 0..4 {
        network.wait_for_height(node, highest + 1).await;
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
    for node in 0..4 {
        let present = numbers(&network, node).await;
        for number in committed(&receipts) {
            assert!(present.binary_search(&number).is_ok(), "node {node}: {number} was acknowledged");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_are_named_or_healed() {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 3);
    network.start_all().await;
    network
        .session(0)
        .await
        .batch_execute("CREATE TABLE numbers (n bigint PRIMARY KEY)")
        .await
        .expect("created");
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    for number in 0..10 {
        let insert = format!("INSERT INTO numbers VALUES ({number})");
        network.session(number as usize % 4).await.batch_execute(&insert).await.expect("inserted");
    }
    // Blocks without transactions lie between the inserts, so the height that holds them all is asked for.
    let mut height = 12;
    for node in 0..4 {
        height = height.max(network.client(node).status().await.expect("it answers").height);
    }
    network.wait_for_height(0, height).await;
    network.kill(0);
    flip_middle_byte(&newest_file(&network.node_folder(0).join("checkpoints")));
    network.start(0);
    network.wait_for_height(0, height + 1).await;
    assert!(network.log(0).contains("checkpoint"), "the damaged checkpoint is reported:\n{}", network.log(0));
    assert_eq!(numbers(&network, 0).await.len(), 10);

    network.kill(1);
    let blocks = newest_file(&network.node_folder(1).join("ledger"));
    let length = std::fs::metadata(&blocks).expect("a block file").len();
    std::fs::File::options().write(true).open(&blocks).expect("opened").set_len(length - 7).expect("cut");
    network.start(1);
    network.wait_for_height(1, height + 1).await;
    assert_eq!(numbers(&network, 1).await.len(), 10);
    network.assert_agreement(&[0, 1, 2, 3]).await;

    network.kill(2);
    let mine = network.node_folder(2).join("ledger");
    std::fs::remove_dir_all(&mine).expect("removed");
    let other = TestNetwork::create(|_| {});
    let mut stranger = other;
    stranger.start_all().await;
    stranger.kill(0);
    copy_folder(&stranger.node_folder(0).join("ledger"), &mine);
    network.start(2);
    let start = std::time::Instant::now();
    while !network.has_ended(2) {
        let started = network.client(2).status().await.is_ok();
        assert!(!started, "a node with another network's ledger must not start");
        assert!(start.elapsed() < std::time::Duration::from_secs(90), "it waits:\n{}", network.log(2));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(network.log(2).contains("ledger"), "{}", network.log(2));
}

fn newest_file(folder: &std::path::Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let named = files.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let checkpoint = name.starts_with("checkpoint-") && name.ends_with(".state");
        name.starts_with("blocks-") && name.ends_with(".log") || checkpoint
    });
    named.max().expect("a file")
}

fn flip_middle_byte(path: &std::path::Path) {
    let mut bytes = std::fs::read(path).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).expect("writable");
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}
