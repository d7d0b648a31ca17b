//! Advisory locks on a network of real processes: sessions of all organisations keep one another from what only one may do at a time.

mod support;

use std::time::{Duration, Instant};
use support::{TestNetwork, error, rows, wait_for_rows};
use tokio_postgres::Client;

const ROUNDS: i64 = 12;
const LEASE: Duration = Duration::from_secs(5);

async fn short_lease(network: &TestNetwork, node: usize) -> Client {
    let session = network.session(node).await;
    session.batch_execute("SET entente.advisory_lease = '5s'").await.expect("set");
    session
}

async fn got(session: &Client, sql: &str) -> bool {
    rows(session, sql).await == [["t"]]
}

/// Reads, waits, and writes what it has computed: only who is alone does no harm. Each second round in a block that begins with the lock.
async fn count(session: Client) {
    for round in 0..ROUNDS {
        let in_block = round % 2 == 0;
        if in_block {
            session.batch_execute("BEGIN").await.expect("no block is open");
        }
        session.batch_execute("SELECT pg_advisory_lock(72707369)").await.expect("it waits");
        let n: i64 = session.query_one("SELECT n FROM counter", &[]).await.expect("a row").get(0);
        tokio::time::sleep(Duration::from_millis(5)).await;
        session.execute("UPDATE counter SET n = $1", &[&(n + 1)]).await.expect("it is alone");
        if in_block {
            session.batch_execute("COMMIT").await.expect("nobody else has changed it");
        }
        assert!(got(&session, "SELECT pg_advisory_unlock(72707369)").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_of_all_organisations_has_a_lock_at_a_time() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let ada = network.session(0).await;
    ada.batch_execute("CREATE TABLE counter (n bigint NOT NULL); INSERT INTO counter VALUES (0)")
        .await
        .expect("a table");
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    let mut clients = Vec::new();
    for node in [0, 1, 2, 3, 1, 2] {
        clients.push(tokio::spawn(count(network.session(node).await)));
    }
    for client in clients {
        client.await.expect("no panic");
    }
    let total = (6 * ROUNDS).to_string();
    wait_for_rows(&ada, "SELECT n FROM counter", &[&[&total]]).await;

    // What tools ask, at nodes of different organisations.
    let (first, second) = (network.session(1).await, network.session(2).await);
    assert!(got(&first, "SELECT pg_try_advisory_lock(7, -8) AS \"lockObtained\"").await);
    assert!(!got(&second, "SELECT pg_try_advisory_lock(7, -8)").await);
    assert!(!got(&second, "SELECT pg_try_advisory_xact_lock_shared(7, -8)").await);
    assert!(
        got(&second, "SELECT pg_try_advisory_lock($1, $2)".replace("$1", "7").replace("$2", "8").as_str())
            .await
    );
    let prepared: bool = second
        .query_one("SELECT pg_catalog.pg_try_advisory_lock($1)", &[&7_i64])
        .await
        .expect("a key")
        .get(0);
    assert!(prepared);
    let shown = "SELECT locktype, classid, objid, objsubid, mode, granted, virtualtransaction LIKE 'org2/%', pid IS NULL FROM pg_locks WHERE locktype = 'advisory' AND classid = 7 AND objid = -8";
    wait_for_rows(&second, shown, &[&["advisory", "7", "4294967288", "2", "ExclusiveLock", "t", "t", "t"]])
        .await;
    assert_eq!(rows(&first, "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()").await, [["1"]]);
    second.batch_execute("SET lock_timeout = '200ms'").await.expect("set");
    assert_eq!(error(&second, "SELECT pg_advisory_lock(7, -8)").await.0, "55P03");
    // Who goes gives back what it has, long before its lease is over.
    drop(first);
    let start = Instant::now();
    second
        .batch_execute("SET lock_timeout = '20s'; SELECT pg_advisory_lock(7, -8)")
        .await
        .expect("it is free soon");
    assert!(start.elapsed() < Duration::from_secs(20));
    second.batch_execute("DISCARD ALL").await.expect("all is given back");
    wait_for_rows(&ada, "SELECT count(*) FROM pg_locks", &[&["0"]]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_node_that_is_killed_is_free_once_its_lease_is_over() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (owner, other) = (short_lease(&network, 1).await, short_lease(&network, 2).await);
    owner.batch_execute("SELECT pg_advisory_lock(1)").await.expect("it is free");
    // As long as its node lives it is renewed.
    let start = Instant::now();
    while start.elapsed() < LEASE + Duration::from_secs(2) {
        assert!(!got(&other, "SELECT pg_try_advisory_lock(1)").await);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    network.kill(1);
    let start = Instant::now();
    assert!(!got(&other, "SELECT pg_try_advisory_lock(1)").await, "nobody knows yet that it has gone");
    other
        .batch_execute("SET lock_timeout = '60s'; SELECT pg_advisory_lock(1)")
        .await
        .expect("its lease is over");
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(1) && waited < LEASE + Duration::from_secs(15), "{waited:?}");
    network.start(1);
    network.wait_until_level_with(0, &[1]).await;
    let owner = network.session(1).await;
    assert!(!got(&owner, "SELECT pg_try_advisory_lock(1)").await);
    assert!(!got(&owner, "SELECT pg_advisory_unlock(1)").await);
    assert!(got(&other, "SELECT pg_advisory_unlock(1)").await);
    assert!(got(&owner, "SELECT pg_try_advisory_lock(1)").await);
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// A ledger that older rules execute knows none, and takes them once its members have amended it.
#[tokio::test(flavor = "multi_thread")]
async fn older_rules_have_no_advisory_locks() {
    let mut network = TestNetwork::create(|charter| charter.found_with_version(13));
    network.start_all().await;
    let ada = network.session(0).await;
    for sql in ["SELECT pg_advisory_lock(1)", "SELECT pg_catalog.pg_try_advisory_xact_lock(1, 2)"] {
        assert_eq!(error(&ada, sql).await.0, "42883", "{sql}");
    }
    ada.batch_execute("SELECT pg_advisory_unlock_all()").await.expect("there is nothing to give back");
    ada.batch_execute("SELECT entente.set_charter('execution_version', '14')")
        .await
        .expect("governance = any");
    let mut tries = 0;
    while ada.batch_execute("SELECT pg_advisory_lock(1)").await.is_err() {
        tries += 1;
        assert!(tries < 300, "the network does not go over");
        // Blocks come by themselves.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let other = network.session(3).await;
    network.wait_until_level_with(0, &[3]).await;
    assert!(!got(&other, "SELECT pg_try_advisory_lock(1)").await);
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
