//! Transaction blocks on a network of real processes: two sessions that conflict, reading one's writes on another node, and
//! pgbench's TPC-B script in all its modes.

mod support;

use std::process::Command;
use support::TestNetwork;
use tokio_postgres::{Client, SimpleQueryMessage};
use types::{Outcome, Payload, SubmissionRefusal, Value};

/// The first value of a query's only row.
async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.and_then(|row| row.get(0)).expect("a value").to_string()
}

fn code(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.code().code().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_blocks_that_conflict_exactly_one_commits() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (mut ada, mut bob) = (network.session(0).await, network.session(2).await);
    ada.batch_execute("CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL CHECK (n >= 0))")
        .await
        .expect("created");
    ada.batch_execute("INSERT INTO account VALUES (1, 100), (2, 100)").await.expect("inserted");
    let height = value(&ada, "SHOW entente.last_height").await;

    // The other node shows it to who asks for that height.
    bob.batch_execute(&format!("SET entente.min_height = {height}")).await.expect("set");
    assert_eq!(value(&bob, "SELECT sum(n) FROM account").await, "200");

    // Both read what both change.
    let (first, second) = (ada.transaction().await.expect("BEGIN"), bob.transaction().await.expect("BEGIN"));
    for transaction in [&first, &second] {
        let row =
            transaction.query_one("SELECT n FROM account WHERE id = $1", &[&1_i32]).await.expect("a row");
        let n: i32 = row.get(0);
        assert_eq!(n, 100);
        let changed = transaction.execute("UPDATE account SET n = $1 WHERE id = 1", &[&(n - 60)]).await;
        assert_eq!(changed.expect("a change"), 1);
        let row = transaction.query_one("SELECT n FROM account WHERE id = 1", &[]).await.expect("a row");
        assert_eq!(row.get::<_, i32>(0), 40, "its own write");
    }
    let (first, second) = tokio::join!(first.commit(), second.commit());
    let failed: Vec<String> =
        [first, second].into_iter().filter_map(Result::err).map(|error| code(&error)).collect();
    assert_eq!(failed, ["40001"]);
    assert_eq!(value(&ada, "SELECT n FROM account WHERE id = 1").await, "40");

    // Both add to what neither reads: both commit, savepoints or not.
    let height = value(&ada, "SHOW entente.last_height").await;
    bob.batch_execute(&format!("SET entente.min_height = {height}")).await.expect("set");
    for client in [&ada, &bob] {
        client.batch_execute("BEGIN").await.expect("BEGIN");
        client.batch_execute("SAVEPOINT s").await.expect("SAVEPOINT");
        let error = client.batch_execute("INSERT INTO account VALUES (2, 0)").await.expect_err("it exists");
        assert_eq!(code(&error), "23505");
        client.batch_execute("ROLLBACK TO s").await.expect("ROLLBACK TO");
        client.batch_execute("RELEASE s").await.expect("RELEASE");
        client.batch_execute("UPDATE account SET n = n + 5 WHERE id = 2").await.expect("a change");
    }
    let (first, second) = tokio::join!(ada.batch_execute("COMMIT"), bob.batch_execute("COMMIT"));
    first.expect("nothing conflicts");
    second.expect("nothing conflicts");
    let heights =
        [value(&ada, "SHOW entente.last_height").await, value(&bob, "SHOW entente.last_height").await];
    let newest = heights.iter().map(|height| height.parse::<u64>().expect("a height")).max().expect("two");
    ada.batch_execute(&format!("SET entente.min_height = {newest}")).await.expect("set");
    assert_eq!(value(&ada, "SELECT n FROM account WHERE id = 2").await, "110");
    let call = value(
        &ada,
        "SELECT call FROM entente.transactions WHERE call LIKE 'BEGIN; SAVEPOINT%' ORDER BY height DESC LIMIT 1",
    )
    .await;
    assert_eq!(
        call,
        "BEGIN; SAVEPOINT s; INSERT INTO account VALUES (2, 0); ROLLBACK TO s; RELEASE s; UPDATE account SET n = n + 5 WHERE id = 2; COMMIT"
    );
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// Runs pgbench against the node at `port`, and gives what it prints.
async fn pgbench(port: u16, arguments: &[&str]) -> String {
    let mut pgbench = Command::new("pgbench");
    pgbench
        .args(["-h", "127.0.0.1", "-U", "entente", "-p", &port.to_string()])
        .args(arguments)
        .arg("entente");
    let output =
        tokio::task::spawn_blocking(move || pgbench.output()).await.expect("no panic").expect("it runs");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbench_runs_its_own_script_in_every_mode() {
    if !test_machine::required("pgbench") {
        return;
    }
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let session = network.session(0).await;
    let port = network.port_base + 101;
    // Its rows come by COPY, in one transaction block.
    pgbench(port, &["-i"]).await;
    let height = network.client(1).status().await.expect("it answers").height;
    network.wait_for_height(0, height).await;
    assert_eq!(value(&session, "SELECT count(*) FROM pgbench_accounts").await, "100000");
    for mode in ["simple", "extended", "prepared"] {
        let text = pgbench(port, &["-n", "-M", mode, "-c", "4", "-t", "10", "--max-tries=10"]).await;
        assert!(text.contains("number of transactions actually processed: 40/40"), "{mode}: {text}");
    }
    let height = network.client(1).status().await.expect("it answers").height;
    network.wait_for_height(0, height).await;
    assert_eq!(value(&session, "SELECT count(*) FROM pgbench_history").await, "120");
    let delta = value(&session, "SELECT sum(delta) FROM pgbench_history").await;
    for (table, column) in [("branches", "bbalance"), ("tellers", "tbalance"), ("accounts", "abalance")] {
        let sum = value(&session, &format!("SELECT sum({column}) FROM pgbench_{table}")).await;
        assert_eq!(sum, delta, "{table}");
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_submits_too_much_is_told_and_may_come_again() {
    let mut network = TestNetwork::create(|_| ());
    let settings = network.node_folder(0).join("node.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, format!("client_transactions_per_second = 5\n{text}")).expect("written");
    network.start_all().await;
    network.session(1).await.batch_execute("CREATE TABLE t (n bigint PRIMARY KEY)").await.expect("created");
    let client = network.client(0);
    let height = client.status().await.expect("it answers").height;
    let mut waiting: Vec<_> = (0..12)
        .map(|number| {
            let parameters = vec![Value::BigInt(number)];
            let payload = Payload::Script { sql: "INSERT INTO t VALUES ($1)".into(), parameters };
            client.identity().sign(payload, height + 1_000)
        })
        .collect();
    let mut refused = Vec::new();
    while !waiting.is_empty() {
        let mut later = Vec::new();
        let mut replies = client.submit(&waiting).await.expect("submitted");
        while let Some(reply) = replies.next().await.expect("a reply") {
            match reply.result {
                Ok(receipt) => assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}"),
                Err(SubmissionRefusal::TooFast { per_second: 5 }) => {
                    later.push(waiting[reply.position as usize].clone());
                }
                Err(other) => panic!("{other}"),
            }
        }
        refused.push(later.len());
        waiting = later;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    assert!(refused[0] > 0, "{refused:?}");

    // Sessions are counted by role, and told in SQL.
    let session = network.session(0).await;
    let mut errors = Vec::new();
    for number in 100..130 {
        errors.extend(session.execute(&format!("INSERT INTO t VALUES ({number})"), &[]).await.err());
    }
    assert!(errors.iter().all(|error| code(error) == "53400"), "{errors:?}");
    let inserted: usize = value(&session, "SELECT count(*) FROM t").await.parse().expect("a number");
    assert_eq!(inserted, 12 + 30 - errors.len());
    assert!(network.session(1).await.execute("INSERT INTO t VALUES (200)", &[]).await.is_ok());
}

/// A node that holds nothing takes little, and so do sessions that only wait. (Connections to members had queues for every
/// member that a ledger may ever have: a gigabyte.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sessions_take_little_memory() {
    const SESSIONS: usize = 400;
    const MEGABYTES_MAX: u64 = 200;
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let session = network.session(0).await;
        assert_eq!(value(&session, "SELECT 1 + 1").await, "2");
        sessions.push(session);
    }
    let resident = network.resident_megabytes(0);
    assert!(resident < MEGABYTES_MAX, "{resident} MB with {SESSIONS} idle sessions");
}
