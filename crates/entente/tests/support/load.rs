//! Clients that submit until they have an answer, and what they were told: to be held against the ledgers afterwards.

use super::TestNetwork;
use client::Client;
use ledger::Ledger;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use types::{Outcome, Payload, Receipt, SignedTransaction, TransactionId, Value};

const NODES: usize = 4;
/// Transactions of one submission.
const BATCH: i64 = 20;
/// Every transaction adds one to its client's row, so that one which takes effect twice shows.
const TRANSACTION: &str = "INSERT INTO numbers VALUES ($1); UPDATE counters SET n = n + 1 WHERE id = $2";
const TABLES: &str = "CREATE TABLE numbers (n bigint PRIMARY KEY);
    CREATE TABLE counters (id bigint PRIMARY KEY, n bigint NOT NULL);
    INSERT INTO counters VALUES (0, 0), (1, 0), (2, 0), (3, 0)";

/// A number from the environment.
pub fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// What the loads and the test tell one another.
#[derive(Default)]
struct LoadProgress {
    stop: AtomicBool,
    receipts: AtomicUsize,
}

/// What clients were told.
#[derive(Default)]
pub struct Told {
    pub receipts: Vec<Receipt>,
    /// Submissions whose receipts had to be asked for again.
    pub repeated: usize,
}

/// A client per node that submits without end.
pub struct Load {
    progress: Arc<LoadProgress>,
    clients: Vec<JoinHandle<Told>>,
    /// Of those that have ended.
    told: Told,
}

impl Load {
    /// Makes the tables and begins.
    pub async fn start(network: &TestNetwork) -> Load {
        network.session(0).await.batch_execute(TABLES).await.expect("created");
        let progress = Arc::new(LoadProgress::default());
        let clients: Vec<_> = (0..NODES).map(|node| network.client(node)).collect();
        let start = |home| tokio::spawn(insert_until(clients.clone(), home, progress.clone()));
        Load { clients: (0..NODES).map(start).collect(), progress, told: Told::default() }
    }

    /// Ends the load: whatever was begun has its answer.
    pub async fn settle(&mut self) {
        self.progress.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let one = client.await.expect("the load ends");
            self.told.receipts.extend(one.receipts);
            self.told.repeated += one.repeated;
        }
    }

    /// Receipts that have come.
    pub fn receipts(&self) -> usize {
        self.progress.receipts.load(Ordering::Relaxed)
    }

    /// Counts the receipts that have come, for somebody else.
    pub fn counting(&self) -> impl Fn() -> usize + Send + use<> {
        let progress = self.progress.clone();
        move || progress.receipts.load(Ordering::Relaxed)
    }

    /// Waits until so many more receipts have come.
    pub async fn wait_for(&self, more: usize, what: &str) {
        let (start, from) = (Instant::now(), self.receipts());
        while self.receipts() < from + more {
            assert!(start.elapsed() < Duration::from_secs(90), "{what}: no {more} receipts in time");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Ends the load, stops the nodes, and holds what clients were told against every node's tables and ledger: every
    /// receipt stands as it was given, every transaction took effect once.
    pub async fn finish(mut self, network: &mut TestNetwork) -> Told {
        self.settle().await;
        let told = self.told;
        network.assert_agreement(&[0, 1, 2, 3]).await;
        let is_committed = |receipt: &&Receipt| matches!(receipt.outcome, Outcome::Committed(_));
        let committed = told.receipts.iter().filter(is_committed).count() as i64;
        for node in 0..NODES {
            let counts = "SELECT (SELECT count(*) FROM numbers), (SELECT sum(n)::bigint FROM counters)";
            let row = network.session(node).await.query_one(counts, &[]).await.expect("a SELECT");
            let found: (i64, i64) = (row.get(0), row.get(1));
            assert_eq!(found, (committed, committed), "node {node}: each took effect once");
        }
        (0..NODES).for_each(|node| network.kill(node));
        for node in 0..NODES {
            assert_receipts_stand(network, node, &told.receipts);
        }
        told
    }
}

/// Inserts numbers until told to stop. What gets no answer, because its node is gone, is submitted again
/// as it is, at this node or another one, until there is an answer.
async fn insert_until(clients: Vec<Client>, home: usize, progress: Arc<LoadProgress>) -> Told {
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
    progress: &LoadProgress,
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
