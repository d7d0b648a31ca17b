//! Networks whose scripts each organisation's own database executes (`execution = "whatever-then-agree"`): PostgreSQL, MariaDB and
//! nodes without any come to the same, whoever is killed, and an organisation whose database does something else finds its way back.
//!
//! `make test` kills a few times. More often:
//!
//! ```sh
//! OWN_DATABASE_KILLS=100 KILL_SEED=7 cargo test -p entente --test executing_databases -- --nocapture killed
//! ```

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::process::Command;
use std::time::{Duration, Instant};
use support::databases::{Servers, choose, ledger_rows, rows};
use support::load::{Load, variable};
use support::{ENTENTE, TestNetwork};
use tokio_postgres::NoTls;
use types::{Charter, ExecutionModel};

fn of_scripts(charter: &mut Charter) {
    charter.execution = ExecutionModel::WhateverThenAgree;
    charter.protocol = "serial".to_string();
    charter.checkpoint_blocks = 25;
    // Where a node's engine took a block in parts, these would be small.
    charter.block.batch_transactions = 3;
}

fn executes(network: &TestNetwork, node: usize, url: &str) {
    choose(network, node, url, |config| config.connections = Some(4));
}

/// Waits until the node has executed what it is asked for, in its database.
async fn wait_until_executed(network: &TestNetwork, node: usize) {
    // This node may not have heard yet of what others have answered for.
    let mut target = 0;
    for other in 0..4 {
        let status = network.client(other).status().await;
        target = status.map_or(target, |status| status.height.max(target));
    }
    let start = Instant::now();
    loop {
        let database = network.client(node).status().await.expect("it answers").database.expect("it has one");
        if database.height >= target {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(90), "{database:?}\n{}", network.log(node));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_and_databases_that_are_killed_in_the_middle_of_blocks_execute_every_script_once() {
    let (kills, seed) = (variable("OWN_DATABASE_KILLS", 8), variable("KILL_SEED", 1));
    let mut random = StdRng::seed_from_u64(seed);
    let mut servers = Servers::start();
    let urls = servers.urls();
    let mut network = TestNetwork::create(of_scripts);
    executes(&network, 0, &urls[0]);
    executes(&network, 1, &urls[1]);
    network.start_all().await;
    let mut load = Load::start(&network).await;
    for kill in 0..kills {
        load.wait_for(60, &format!("seed {seed}, kill {kill}")).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..400))).await;
        let pause = Duration::from_millis(random.random_range(0..600));
        servers.kill_in_turn(kill, &mut network, pause).await;
    }
    load.wait_for(60, "the end").await;
    load.settle().await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let expected =
        [ledger_rows(&network, 3, "counters", "id").await, ledger_rows(&network, 3, "numbers", "n").await];
    for (node, url) in urls.iter().enumerate() {
        wait_until_executed(&network, node).await;
        assert!(
            rows(url, &["counters", "numbers"]) == expected,
            "seed {seed}: {url} has other rows than the ledger"
        );
        let strange = ["entente.strange_rows", "entente_strange_rows"][node];
        assert_eq!(rows(url, &[strange]), [""], "seed {seed}: no row was ever another one than it had to be");
        assert!(!network.log(node).contains("another outcome"), "seed {seed}: {}", network.log(node));
    }
    let told = load.finish(&mut network).await;
    // Whoever checks the ledger has no database: every block comes to the same here.
    for node in [0, 1] {
        let folder = network.node_folder(node);
        let verified =
            Command::new(ENTENTE).args(["verify", "--replay"]).arg(folder).output().expect("it starts");
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    }
    println!("seed {seed}: {kills} kills, {} receipts, all rows equal", told.receipts.len());
}

/// Money goes round between few accounts, so that many a row is at the end of a block what it was at its begin.
async fn go_round(network: &TestNetwork, (first, clients): (usize, usize), rounds: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..clients {
        let session = network.session(first + client % (4 - first)).await;
        tasks.spawn(async move {
            for round in 0..rounds {
                let (from, to) = if (client + round).is_multiple_of(2) { (1, 2) } else { (2, 1) };
                let moved = format!(
                    "UPDATE money SET balance = balance - 1 WHERE id = {from}; UPDATE money SET balance = balance + 1 WHERE id = {to}"
                );
                session.batch_execute(&moved).await.expect("committed");
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("it went round");
    }
}

/// Changes a row in PostgreSQL that the next script looks at and does not change: nothing here can know better than the database,
/// but the others do.
async fn change_behind_the_ledgers_back(
    network: &TestNetwork,
    servers: &Servers,
    session: &tokio_postgres::Client,
) {
    let own = own_connection(servers).await;
    own.batch_execute("SET entente.writer = 'on'; UPDATE money SET balance = 5 WHERE id = 3")
        .await
        .expect("past the trigger");
    let rich = "UPDATE money SET name = 'rich' WHERE id = 3 AND balance > 500";
    assert_eq!(session.execute(rich, &[]).await.expect("committed"), 1, "three organisations of four say so");
    go_round(network, (1, 6), 10).await;
}

/// Waits until the first node makes its state again.
async fn healed(network: &TestNetwork) {
    let start = Instant::now();
    while !network.log(0).contains("the state is made again") {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", network.log(0));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A table of money and its rows, at all nodes.
async fn create_money(network: &TestNetwork) {
    let session = network.session(2).await;
    session
        .batch_execute("CREATE TABLE money (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0), name text)")
        .await
        .expect("created");
    session
        .batch_execute(
            "INSERT INTO money VALUES (1, 1000, 'a'), (2, 1000, 'b'), (3, 1000, 'c'), (4, 1000, 'd')",
        )
        .await
        .expect("filled");
}

/// A connection to the first organisation's PostgreSQL, as its own people have.
async fn own_connection(servers: &Servers) -> tokio_postgres::Client {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(servers.postgres.port()).user("postgres").dbname("postgres");
    let (own, connection) = config.connect(NoTls).await.expect("it answers");
    tokio::spawn(connection);
    own
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_elses_trigger_is_named_and_holds_up_this_organisation_alone() {
    let servers = Servers::start();
    let mut network = TestNetwork::create(of_scripts);
    executes(&network, 0, &servers.urls()[0]);
    network.start_all().await;
    create_money(&network).await;
    wait_until_executed(&network, 0).await;
    // With every statement this trigger gives the third customer something: no other organisation comes to that.
    let own = own_connection(&servers).await;
    own.batch_execute(
        "CREATE FUNCTION gift() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF pg_trigger_depth() = 1 THEN UPDATE money SET balance = balance + 1 WHERE id = 3; END IF; RETURN NULL; END $$;
         CREATE TRIGGER gift AFTER UPDATE ON money FOR EACH STATEMENT EXECUTE FUNCTION gift()",
    )
    .await
    .expect("nobody forbids a trigger for statements");
    go_round(&network, (1, 4), 4).await;
    let start = Instant::now();
    let problem = loop {
        let status = network.client(0).status().await.expect("it answers");
        if let Some(problem) = status.database.and_then(|database| database.problem) {
            break problem;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{}", network.log(0));
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(problem.contains("triggers (gift)") && problem.contains("DROP TRIGGER"), "{problem}");
    own.batch_execute("DROP TRIGGER gift ON money").await.expect("dropped");
    network.wait_until_level_with(2, &[0]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    wait_until_executed(&network, 0).await;
    let expected = ledger_rows(&network, 3, "money", "id").await;
    assert!(expected.contains("3\t1000\tc"), "{expected}");
    assert_eq!(rows(&servers.urls()[0], &["money"]), [expected.as_str()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_organisation_whose_database_does_something_else_finds_its_way_back() {
    let servers = Servers::start();
    let urls = servers.urls();
    let mut network = TestNetwork::create(of_scripts);
    executes(&network, 0, &urls[0]);
    executes(&network, 1, &urls[1]);
    network.start_all().await;
    create_money(&network).await;
    let session = network.session(2).await;
    go_round(&network, (0, 12), 40).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    change_behind_the_ledgers_back(&network, &servers, &session).await;
    healed(&network).await;
    network.wait_until_level_with(2, &[0]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let expected = ledger_rows(&network, 3, "money", "id").await;
    assert!(expected.contains("3\t1000\trich"), "{expected}");
    for (node, url) in urls.iter().enumerate() {
        wait_until_executed(&network, node).await;
        assert_eq!(rows(url, &["money"]), [expected.as_str()], "{url}");
    }
    assert!(!network.log(1).contains("the state is made again"), "{}", network.log(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_waits_for_its_database_at_the_start_can_be_stopped() {
    let mut servers = Servers::start();
    let mut network = TestNetwork::create(of_scripts);
    executes(&network, 0, &servers.urls()[0]);
    network.start_all().await;
    let session = network.session(1).await;
    session.batch_execute("CREATE TABLE money (id int PRIMARY KEY, n int)").await.expect("created");
    session.batch_execute("INSERT INTO money VALUES (1, 1)").await.expect("filled");
    wait_until_executed(&network, 0).await;
    // The node first: otherwise its last words may be about the database that is gone, and the
    // log would seem to say that the next process waits already.
    network.kill(0);
    servers.postgres.kill();
    assert!(!network.log(0).contains("refused"), "{}", network.log(0));
    network.start(0);
    let start = Instant::now();
    while !network.log(0).contains("refused") {
        assert!(start.elapsed() < Duration::from_secs(30), "{}", network.log(0));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    network.interrupt(0);
    assert!(network.log(0).contains("stopped before the node was up"), "{}", network.log(0));
    servers.postgres.start_again().expect("it starts");
    network.start(0);
    network.wait_until_level_with(1, &[0]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
