//! A node whose store fails, in mid-block, at a checkpoint and at its start: it stops serving and says which file and why, no
//! transaction gets an outcome from it, the others go on, and it agrees with them once it is started on a store that is well.

mod network;

use gateway::Database;
use memory::Memory;
use network::{PATIENCE, TestNetwork};
use node::{Node, NodeFolder, NodeOptions};
use state::conformance::{CAUSE, FILE, FailingStores, Failures, Operation};
use std::sync::Arc;
use std::time::Instant;
use types::{Payload, SessionStep, SqlError, SqlState};

fn failing(failures: &Arc<Failures>) -> NodeOptions {
    let stores = FailingStores::new(Arc::new(Memory), failures.clone());
    NodeOptions { stores: Some(Arc::new(stores)), ..NodeOptions::default() }
}

async fn with_rows(checkpoint_blocks: u32, failures: &Arc<Failures>) -> TestNetwork {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = checkpoint_blocks);
    (0..3).for_each(|node| network.start(node, NodeOptions::default()));
    network.start(3, failing(failures));
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    let rows = "SELECT number, 0 FROM generate_series(0, 99) AS number";
    network.run(&client, &format!("INSERT INTO accounts {rows}")).await;
    network.check_agreement().await;
    network
}

impl TestNetwork {
    /// Node 3 says that its store has failed.
    async fn stops(&self) {
        let start = Instant::now();
        loop {
            let why = self.status(3).await.not_serving;
            if why.as_ref().is_some_and(|why| why.contains(FILE) && why.contains(CAUSE)) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "node 3 goes on: {why:?}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// The others have gone on; node 3 starts again on a store that is well, and has everything.
    async fn starts_again(&mut self) {
        self.starts_again_on(NodeOptions::default()).await;
    }

    async fn starts_again_on(&mut self, options: NodeOptions) {
        let client = self.client(1);
        self.run(&client, "UPDATE accounts SET n = n + 10 WHERE id < 50").await;
        self.stop(3);
        self.start(3, options);
        self.check_agreement().await;
        self.run(&self.client(3), "UPDATE accounts SET n = n + 1 WHERE id = 99").await;
        self.check_agreement().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_read_a_row_in_mid_block_stops_and_comes_back() {
    let failures = Arc::new(Failures::default());
    let mut network = with_rows(1_000, &failures).await;
    failures.fail(Operation::Read, 30);
    let height = network.status(3).await.height;
    network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id >= 20").await;
    network.stops().await;
    assert!(failures.have_struck());
    let status = network.status(3).await;
    assert_eq!(status.diverged, None, "it has not come to something else: it has come to nothing");
    assert!(status.height <= height + 20);
    network.starts_again().await;
    network.stop_all();
}

/// In mid-block, for a reader, and at a checkpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_meets_a_damaged_file_makes_its_state_again_and_goes_on() {
    let failures = Arc::new(Failures::default());
    let network = with_rows(20, &failures).await;
    for (round, meet) in ["a block", "a query", "a checkpoint"].into_iter().enumerate() {
        failures.fail(Operation::ReadDamaged, 5);
        match meet {
            "a block" => {
                network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id >= 20").await;
            }
            "a query" => {
                let sum = network.nodes[3].as_ref().expect("it runs").database().prepare(SUM, &[]);
                let error = sum.expect("a query").query.run("", &[], &Arc::default()).expect_err("no answer");
                assert!(error.message.contains(FILE) && error.message.contains(CAUSE), "{error}");
            }
            // The next one reads what has changed: nothing was told of it yet, for the query above.
            _ => {
                let update = "UPDATE accounts SET n = n + 1 WHERE id = 1";
                network.run(&network.client(0), update).await;
                network.run(&network.client(0), "CHECKPOINT").await;
            }
        }
        let found = format!("entente_scrub_found_total{{what=\"state\"}} {}", round + 1);
        let healed = |status: &client::Status| {
            let metrics = network.nodes[3].as_ref().expect("it runs").database().metrics();
            metrics.contains(&found)
                && status.not_serving.is_none()
                && status.diverged.as_ref().is_some_and(|text| text.contains(FILE) && text.contains(CAUSE))
        };
        network.wait(3, meet, healed).await;
        network.check_agreement().await;
        network.run(&network.client(3), "UPDATE accounts SET n = n + 1 WHERE id = 99").await;
        network.check_agreement().await;
    }
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_write_a_batch_stops_and_comes_back() {
    let failures = Arc::new(Failures::default());
    let mut network = with_rows(1_000, &failures).await;
    failures.fail(Operation::Apply, 0);
    network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id >= 20").await;
    network.stops().await;
    network.starts_again().await;
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_store_fails_for_a_reader_stops() {
    let failures = Arc::new(Failures::default());
    let mut network = with_rows(1_000, &failures).await;
    for reads in READERS {
        failures.fail(Operation::Read, 5);
        // Nothing of the node is held on to: its folder is free once it has stopped.
        let error = reads(&*network.nodes[3].as_ref().expect("it runs").database());
        assert_eq!(error.state, SqlState::IO_ERROR);
        assert!(error.message.contains(FILE) && error.message.contains(CAUSE), "{error}");
        network.stops().await;
        failures.mend();
        network.starts_again_on(failing(&failures)).await;
    }
    network.stop_all();
}

const SUM: &str = "SELECT sum(n) FROM accounts";

/// Those who read where no block is executed, and what they are told of a row that cannot be read.
const READERS: [fn(&dyn Database) -> SqlError; 4] = [
    |database| {
        let sum = database.prepare(SUM, &[]).expect("a query");
        sum.query.run("", &[], &Arc::default()).expect_err("no answer")
    },
    |database| read_in_block(database, false),
    |database| read_in_block(database, true),
    read_beside_temporary_table,
];

fn read_in_block(database: &dyn Database, read_only: bool) -> SqlError {
    let mut block = database.temporary_tables().begin("", read_only).expect("it begins");
    let mut sum = || block.run(SessionStep::Run { sql: SUM.to_string(), parameters: Vec::new() });
    let error = sum().expect_err("no answer");
    let next = sum().expect_err("the node serves nobody");
    assert_eq!(next.state, SqlState::CANNOT_CONNECT_NOW, "{next}");
    error
}

fn read_beside_temporary_table(database: &dyn Database) -> SqlError {
    let mut tables = database.temporary_tables();
    let mut run = |sql: &str| {
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        tables.run("", &payload).expect("it is about a temporary table")
    };
    run("CREATE TEMPORARY TABLE sums (sum numeric)").expect("it reads nothing");
    let error = run(&format!("INSERT INTO sums {SUM}")).expect_err("no answer");
    let next = run("SELECT * FROM sums").expect_err("the node serves nobody");
    assert_eq!(next.state, SqlState::CANNOT_CONNECT_NOW, "{next}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_store_fails_at_a_checkpoint_stops_and_comes_back() {
    for operation in [Operation::Read, Operation::DurablePoint] {
        let failures = Arc::new(Failures::default());
        let mut network = with_rows(20, &failures).await;
        // Nobody sends anything: blocks are empty, and read nothing.
        failures.fail(operation, 0);
        network.stops().await;
        network.starts_again().await;
        network.stop_all();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_store_fails_at_its_start_says_so_and_starts_when_it_is_well() {
    let failures = Arc::new(Failures::default());
    let mut network = with_rows(5, &failures).await;
    for (operation, times) in [(Operation::Begin, 0), (Operation::Apply, 0)] {
        network.stop(3);
        network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id = 7").await;
        failures.fail(operation, times);
        let folder = NodeFolder::open(&network.network.folders[3]).expect("what create wrote");
        let started = tokio::task::block_in_place(|| Node::start_with(folder, failing(&failures)));
        match started {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains(FILE) && error.contains(CAUSE), "{operation:?}: {error}");
                failures.mend();
                network.start(3, failing(&failures));
            }
            // There was no block to execute again: it fails at the first one that comes.
            Ok(node) => {
                assert_eq!(operation, Operation::Apply, "a store is begun at every start");
                network.nodes[3] = Some(node);
                network.run(&network.client(0), "UPDATE accounts SET n = n + 1 WHERE id = 8").await;
                network.stops().await;
                failures.mend();
                network.stop(3);
                network.start(3, failing(&failures));
            }
        }
        network.check_agreement().await;
    }
    network.stop_all();
}
