//! Four nodes of which one comes late, comes back after a long time, or has only others' checkpoints to heal from.
#![allow(missing_docs)]

mod network;

use ledger::{Anchor, LedgerFiles};
use network::{PATIENCE, TestNetwork};
use node::{Faults, NodeOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CHECKPOINT_BLOCKS: u32 = 10;

fn create() -> TestNetwork {
    TestNetwork::create(|charter| {
        charter.checkpoint_blocks = CHECKPOINT_BLOCKS;
        charter.block.idle_ms = 100;
    })
}

fn folder(network: &TestNetwork, node: usize, name: &str) -> PathBuf {
    network.network.folders[node].join(name)
}

/// Where the node's ledger begins, if not with its first block.
fn anchor(network: &TestNetwork, node: usize) -> Option<Anchor> {
    let files = LedgerFiles::open(folder(network, node, "ledger"), network.network.charter.ledger());
    files.expect("a ledger").anchor().cloned()
}

fn configure(network: &TestNetwork, node: usize, line: &str) {
    let path = folder(network, node, "node.toml");
    let text = std::fs::read_to_string(&path).expect("reads");
    std::fs::write(&path, format!("{line}\n{text}")).expect("writes");
}

/// Rows with unique keys, and blocks until there are some checkpoints more.
async fn load(network: &TestNetwork, from: u64, to: u64) {
    let client = network.client(0);
    for n in from..to {
        network.run(&client, &format!("INSERT INTO accounts VALUES ({n}, 'account {n}', 0)")).await;
    }
}

/// Blocks that take longer to execute than to fetch what they come to.
async fn long_blocks(network: &TestNetwork, blocks: u64) {
    let client = network.client(0);
    for _ in 0..blocks {
        network.run(&client, "UPDATE accounts SET n = n + 1 WHERE id >= 1000").await;
    }
}

async fn wait_for_height(network: &TestNetwork, node: usize, height: u64) {
    network.wait(node, "it gets there", |status| status.height >= height).await;
}

async fn wait_for_anchor(network: &TestNetwork, node: usize, above: u64) -> u64 {
    let start = Instant::now();
    loop {
        let anchor = anchor(network, node).filter(|anchor| anchor.height() > above);
        if let Some(anchor) = anchor {
            return anchor.height();
        }
        assert!(start.elapsed() < PATIENCE, "node {node} has joined from no checkpoint above {above}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn gauge(network: &TestNetwork, node: usize, name: &str) -> u64 {
    let metrics = network.nodes[node].as_ref().expect("it runs").database().metrics();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect("it is counted").parse().expect("a number")
}

async fn wait_for_offer(network: &TestNetwork, node: usize) {
    let start = Instant::now();
    while gauge(network, node, "entente_join_offered_height") == 0 {
        assert!(start.elapsed() < PATIENCE, "node {node} offers no checkpoint");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_node_joins_from_a_certified_checkpoint_and_takes_part() {
    let mut network = create();
    (0..3).for_each(|node| network.start(node, NodeOptions::default()));
    let create = "CREATE TABLE accounts (id bigint PRIMARY KEY, name text UNIQUE, n bigint NOT NULL)";
    network.run(&network.client(0), create).await;
    load(&network, 0, 10).await;
    let many = "INSERT INTO accounts SELECT n, 'account ' || n, 0 FROM generate_series(1000, 3999) AS s(n)";
    network.run(&network.client(0), many).await;
    long_blocks(&network, 90).await;
    wait_for_height(&network, 0, 105).await;

    // It has never run, and asks once.
    for node in 0..3 {
        wait_for_offer(&network, node).await;
    }
    network.start(3, NodeOptions::default());
    let first = wait_for_anchor(&network, 3, 0).await;
    assert!(
        first >= u64::from(CHECKPOINT_BLOCKS) && first.is_multiple_of(CHECKPOINT_BLOCKS.into()),
        "{first}"
    );
    load(&network, 10, 15).await;
    network.check_agreement().await;
    // Keys that were taken in front of the checkpoint are taken, and the late node's client is answered.
    let client = network.client(3);
    network.run(&client, "INSERT INTO accounts VALUES (100, 'of the late node', 0)").await;
    let taken = "INSERT INTO accounts VALUES (101, 'account 7', 0) ON CONFLICT DO NOTHING";
    network.run(&client, taken).await;
    network.check_agreement().await;

    // With it, one of the others may be away.
    network.stop(2);
    network.run(&client, "UPDATE accounts SET n = n + 1 WHERE id = 7").await;
    network.start(2, NodeOptions::default());
    network.check_agreement().await;

    // It starts again where it was.
    network.stop(3);
    network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id = 8").await;
    network.start(3, NodeOptions::default());
    network.run(&network.client(3), "UPDATE accounts SET n = n + 1 WHERE id = 9").await;
    network.check_agreement().await;
    assert_eq!(anchor(&network, 3).map(|anchor| anchor.height()), Some(first));

    // It loses everything but its votes.
    network.stop(3);
    for name in ["ledger", "checkpoints", "history"] {
        std::fs::remove_dir_all(folder(&network, 3, name)).expect("it was there");
    }
    let height = network.status(0).await.height;
    wait_for_height(&network, 0, height + 2 * u64::from(CHECKPOINT_BLOCKS)).await;
    network.start(3, NodeOptions::default());
    wait_for_anchor(&network, 3, first).await;
    // A client waits for its receipt as long as a node that is level needs.
    network.check_agreement().await;
    network.run(&network.client(3), "UPDATE accounts SET n = n + 1 WHERE id = 10").await;
    network.check_agreement().await;
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_away_for_long_joins_and_puts_its_blocks_aside() {
    let mut network = create();
    configure(&network, 3, "join_behind_blocks = 15");
    configure(&network, 2, "join = \"replay\"");
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let create = "CREATE TABLE accounts (id bigint PRIMARY KEY, name text UNIQUE, n bigint NOT NULL)";
    network.run(&network.client(0), create).await;
    load(&network, 0, 5).await;
    network.check_agreement().await;
    network.stop(3);
    load(&network, 5, 45).await;
    let height = network.status(0).await.height;
    wait_for_height(&network, 0, height + 2 * u64::from(CHECKPOINT_BLOCKS)).await;
    let height = network.status(0).await.height;
    network.start(3, NodeOptions::default());
    let level = |status: &client::Status| status.height >= height && status.not_serving.is_none();
    network.wait(3, "it is level", level).await;
    network.run(&network.client(3), "UPDATE accounts SET n = n + 1 WHERE id = 30").await;
    network.check_agreement().await;
    // Executing these few blocks may have been quicker.
    if let Some(anchor) = anchor(&network, 3) {
        let before = folder(&network, 3, "ledger").join(format!("before-{:020}", anchor.height()));
        assert!(before.is_dir(), "what it had is kept");
    }
    // One that does not want to join has everything.
    network.stop(2);
    std::fs::remove_dir_all(folder(&network, 2, "ledger")).expect("it was there");
    std::fs::remove_dir_all(folder(&network, 2, "checkpoints")).expect("it was there");
    std::fs::remove_dir_all(folder(&network, 2, "history")).expect("it was there");
    network.start(2, NodeOptions::default());
    network.check_agreement().await;
    assert!(anchor(&network, 2).is_none());
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_checkpoints_are_gone_heals_from_anothers() {
    let mut network = create();
    let faults = Arc::new(Faults::default());
    (0..3).for_each(|node| network.start(node, NodeOptions::default()));
    network.start(3, NodeOptions { faults: Some(faults.clone()), ..NodeOptions::default() });
    let create = "CREATE TABLE accounts (id bigint PRIMARY KEY, name text UNIQUE, n bigint NOT NULL)";
    network.run(&network.client(0), create).await;
    load(&network, 0, 30).await;
    network.check_agreement().await;
    // Checkpoints can be fetched once they are written, certified, and their block has a certificate of its own.
    for node in 0..3 {
        wait_for_offer(&network, node).await;
    }
    faults.lose_checkpoints();
    faults.flip_in("accounts");
    network.run(&network.client(0), "UPDATE accounts SET n = n + 1").await;
    let start = Instant::now();
    while network.status(3).await.diverged.is_none() {
        network.run(&network.client(0), "UPDATE accounts SET n = n + 1").await;
        assert!(start.elapsed() < PATIENCE, "the flipped bit is not found");
    }
    network.check_agreement().await;
    assert!(gauge(&network, 3, "entente_join_height") > 0, "it has fetched another node's checkpoint");
    network.run(&network.client(3), "UPDATE accounts SET n = n + 1").await;
    network.check_agreement().await;
    network.stop_all();
}

/// A node that the charter has been amended for has the founding charter only, and none of the blocks that prove the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_admitted_by_an_amendment_joins_from_a_checkpoint() {
    let mut network = TestNetwork::create(|charter| {
        charter.checkpoint_blocks = CHECKPOINT_BLOCKS;
        charter.block.idle_ms = 100;
        // Amendments hold 14 blocks after they are decided.
        charter.outcome_lag_blocks = 4;
    });
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let create = "CREATE TABLE accounts (id bigint PRIMARY KEY, name text UNIQUE, n bigint NOT NULL)";
    network.run(&network.client(0), create).await;
    load(&network, 0, 10).await;
    // Another key for the second.
    let replaced = network.replace_key(1, None);
    network.run(&network.client(0), &replaced.statement).await;
    wait_for_height(&network, 0, network.status(0).await.height + 20).await;
    network.stop(1);
    replaced.take();
    network.start(1, NodeOptions::default());
    load(&network, 10, 20).await;
    // From now on one member of five is away: the fifth.
    let (fifth, add) = network.newcomer("emma");
    network.run(&network.client(0), &add).await;
    let height = network.status(0).await.height;
    wait_for_height(&network, 0, height + 20).await;
    let height = network.status(0).await.height;
    wait_for_height(&network, 0, height + 2 * u64::from(CHECKPOINT_BLOCKS)).await;

    for node in 0..4 {
        wait_for_offer(&network, node).await;
    }
    network.start(fifth, NodeOptions::default());
    let joined = wait_for_anchor(&network, fifth, 0).await;
    assert!(joined > 20, "{joined}");
    assert_eq!(anchor(&network, fifth).expect("it has joined").handovers.len(), 2);
    network.run(&network.client(0), "INSERT INTO accounts VALUES (100, 'for the fifth', 0)").await;
    network.check_agreement().await;
    // With five members one may be away: the votes of the fifth are needed.
    network.stop(3);
    network.run(&network.client(fifth), "INSERT INTO accounts VALUES (101, 'of the fifth', 0)").await;

    // It starts again from its own files, also without what ordering has kept of the blocks in front.
    network.stop(fifth);
    network.start(3, NodeOptions::default());
    network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id = 7").await;
    network.start(fifth, NodeOptions::default());
    network.run(&network.client(fifth), "UPDATE accounts SET n = n + 1 WHERE id = 8").await;
    network.stop(3);
    network.run(&network.client(fifth), "UPDATE accounts SET n = n + 1 WHERE id = 9").await;
    // Another amendment behind the one that it has joined under.
    network.run(&network.client(fifth), "SELECT entente.set_charter('block.idle_ms', '110')").await;
    let height = network.status(fifth).await.height;
    wait_for_height(&network, fifth, height + 20).await;
    network.start(3, NodeOptions::default());
    network.check_agreement().await;

    // It has lost its ledger: what ordering has begins behind the first blocks, under charters that nobody has told it of.
    network.stop(fifth);
    for name in ["ledger", "checkpoints", "history"] {
        std::fs::remove_dir_all(folder(&network, fifth, name)).expect("it was there");
    }
    let height = network.status(0).await.height;
    wait_for_height(&network, 0, height + 2 * u64::from(CHECKPOINT_BLOCKS)).await;
    network.start(fifth, NodeOptions::default());
    wait_for_anchor(&network, fifth, joined).await;
    assert_eq!(anchor(&network, fifth).expect("it has joined").handovers.len(), 3);
    network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id = 10").await;
    network.check_agreement().await;
    network.run(&network.client(fifth), "UPDATE accounts SET n = n + 1 WHERE id = 10").await;
    network.check_agreement().await;

    network.stop_all();
}
