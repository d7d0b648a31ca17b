//! `kill -9` of one to four of four nodes at random instants under load, again and again: every receipt that a client was
//! given stands in every node's ledger, as it was given, and every transaction has taken effect once.
//!
//! `make test` runs a few cycles. Many, with another build of the program:
//!
//! ```sh
//! cargo build --release && KILL_CYCLES=200 KILL_SEED=7 ENTENTE_PROGRAM=$PWD/target/release/entente \
//!     cargo test -p entente --test kill_cycles -- --nocapture
//! ```

mod support;

use client::Client;
use ledger::Ledger;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::TestNetwork;
use types::{Outcome, Payload, Receipt, SignedTransaction, TransactionId, Value};

const NODES: usize = 4;
/// Transactions of one submission.
const BATCH: i64 = 20;
/// Every transaction adds one to its client's row, so that one which takes effect twice shows.
const TRANSACTION: &str = "INSERT INTO numbers VALUES ($1); UPDATE counters SET n = n + 1 WHERE id = $2";

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// What the loads and the test tell one another.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    receipts: AtomicUsize,
}

/// What a load was told and what it could not find out.
#[derive(Default)]
struct Told {
    receipts: Vec<Receipt>,
    /// Submissions whose receipts had to be asked for again.
    repeated: usize,
}

/// Inserts numbers from `first` on until told to stop. What gets no answer, because its node is gone, is submitted again
/// as it is, at this node or another one, until there is an answer.
async fn insert_until(clients: Vec<Client>, home: usize, progress: Arc<Progress>) -> Told {
    let mut told = Told::default();
    let mut next = home as i64 * 1_000_000_000;
    let mut at = home;
    while !progress.stop.load(Ordering::Relaxed) {
        let Some(height) = height_anywhere(&clients).await else { continue };
        let mut open: HashMap<TransactionId, SignedTransaction> = (next..next + BATCH)
            .map(|number| {
                let parameters = vec![Value::BigInt(number), Value::BigInt(home as i64)];
                let payload = Payload::Script { sql: TRANSACTION.into(), parameters };
                let signed = clients[home].identity().sign(payload, height + 50_000);
                (signed.transaction.id(), signed)
            })
            .collect();
        next += BATCH;
        loop {
            submit(&clients[at], &mut open, &mut told.receipts, &progress).await;
            if open.is_empty() {
                break;
            }
            told.repeated += 1;
            at = (at + 1) % NODES;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        at = home;
    }
    told
}

async fn height_anywhere(clients: &[Client]) -> Option<u64> {
    for client in clients {
        if let Ok(status) = client.status().await {
            return Some(status.height);
        }
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    None
}

/// Submits what has no receipt yet and takes what is answered off it.
async fn submit(
    client: &Client,
    open: &mut HashMap<TransactionId, SignedTransaction>,
    receipts: &mut Vec<Receipt>,
    progress: &Progress,
) {
    let signed: Vec<_> = open.values().cloned().collect();
    let Ok(mut replies) = client.submit(&signed).await else { return };
    // A node that is alive but cut off answers nothing; another one may.
    while let Ok(Ok(Some(reply))) = tokio::time::timeout(Duration::from_secs(20), replies.next()).await {
        if let Ok(receipt) = reply.result {
            open.remove(&receipt.transaction);
            receipts.push(receipt);
            progress.receipts.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits until so many more receipts have come than `from`.
async fn wait_for_receipts(progress: &Progress, from: usize, more: usize, what: &str) {
    let start = Instant::now();
    while progress.receipts.load(Ordering::Relaxed) < from + more {
        assert!(start.elapsed() < Duration::from_secs(90), "{what}: no {more} receipts in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receipt_survives_kills_at_random_instants() {
    let (cycles, seed) = (variable("KILL_CYCLES", 4), variable("KILL_SEED", 1));
    let mut random = StdRng::seed_from_u64(seed);
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 25);
    network.start_all().await;
    let session = network.session(0).await;
    let tables = "CREATE TABLE numbers (n bigint PRIMARY KEY);
        CREATE TABLE counters (id bigint PRIMARY KEY, n bigint NOT NULL);
        INSERT INTO counters VALUES (0, 0), (1, 0), (2, 0), (3, 0)";
    session.batch_execute(tables).await.expect("created");
    let progress = Arc::new(Progress::default());
    let clients: Vec<_> = (0..NODES).map(|node| network.client(node)).collect();
    let loads: Vec<_> =
        (0..NODES).map(|home| tokio::spawn(insert_until(clients.clone(), home, progress.clone()))).collect();

    let mut kills = [0; NODES + 1];
    for cycle in 0..cycles {
        let before = progress.receipts.load(Ordering::Relaxed);
        wait_for_receipts(&progress, before, 100, &format!("seed {seed}, cycle {cycle}")).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await;
        let mut nodes: Vec<usize> = (0..NODES).collect();
        nodes.shuffle(&mut random);
        nodes.truncate(random.random_range(1..=NODES));
        kills[nodes.len()] += 1;
        for &node in &nodes {
            network.kill(node);
            tokio::time::sleep(Duration::from_millis(random.random_range(0..60))).await;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..1_000))).await;
        nodes.iter().for_each(|&node| network.start(node));
        for &node in &nodes {
            network.wait_for_height(node, 1).await;
        }
        network.assert_agreement(&[0, 1, 2, 3]).await;
        if cycle % 20 == 19 {
            println!("{} cycles, {} receipts", cycle + 1, progress.receipts.load(Ordering::Relaxed));
        }
    }
    progress.stop.store(true, Ordering::Relaxed);
    let (mut receipts, mut repeated) = (Vec::new(), 0);
    for load in loads {
        let told = load.await.expect("the load ends");
        receipts.extend(told.receipts);
        repeated += told.repeated;
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let committed =
        receipts.iter().filter(|receipt| matches!(receipt.outcome, Outcome::Committed(_))).count();
    assert!(committed >= 100 * cycles as usize, "{committed} of {} receipts", receipts.len());
    for node in 0..NODES {
        let counts = "SELECT (SELECT count(*) FROM numbers), (SELECT sum(n)::bigint FROM counters)";
        let row = network.session(node).await.query_one(counts, &[]).await.expect("a SELECT");
        let found: (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(found, (committed as i64, committed as i64), "node {node}: each took effect once");
    }
    (0..NODES).for_each(|node| network.kill(node));
    for node in 0..NODES {
        assert_receipts_stand(&network, node, &receipts);
    }
    println!(
        "seed {seed}: {cycles} cycles (of one to four nodes: {:?}), {} receipts, {repeated} submissions repeated, \
         none lost or contradicted",
        &kills[1..],
        receipts.len()
    );
}

/// Asserts that the ledger on this node's disk has every receipt as it was given.
fn assert_receipts_stand(network: &TestNetwork, node: usize, receipts: &[Receipt]) {
    let folder = network.node_folder(node).join("ledger");
    let (ledger, _) = Ledger::open(folder, network.network.charter.ledger()).expect("a ledger");
    let mut blocks: HashMap<u64, Vec<Receipt>> = HashMap::new();
    for receipt in receipts {
        let of_block = blocks.entry(receipt.height).or_insert_with(|| {
            let outcome = ledger.outcome(receipt.height).expect("a whole ledger");
            outcome.map_or_else(Vec::new, |outcome| outcome.receipts)
        });
        let found = of_block.get(receipt.index as usize);
        assert_eq!(found, Some(receipt), "node {node}, height {}", receipt.height);
    }
}
