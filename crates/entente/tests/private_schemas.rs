//! Schemas with members (`CREATE SCHEMA … MEMBERS`): two of four organisations trade, and the others learn that something happened, and
//! not what.

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{ENTENTE, TestNetwork};
use tokio_postgres::{Client, SimpleQueryMessage};

/// Values that nobody but members may have, in whatever form they are stored or sent.
const CANARIES: [&str; 3] = ["CANARY-price-918273", "canary_table_4711", "canary_column_4712"];

/// The values of a query's rows, as text.
async fn rows(session: &Client, sql: &str) -> Vec<Vec<String>> {
    let messages = session.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_string()).collect())
        }
        _ => None,
    };
    messages.iter().filter_map(row).collect()
}

/// The SQLSTATE and the text of what a statement ends with.
async fn error(session: &Client, sql: &str) -> (String, String) {
    let error = session.batch_execute(sql).await.expect_err(sql);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: the connection broke"));
    let text = format!("{} {}", error.message(), error.hint().unwrap_or_default());
    (error.code().code().to_string(), text)
}

/// A schema of the first two organisations with a table, a procedure and a row.
async fn create_deal(network: &TestNetwork) -> Client {
    let session = network.session(0).await;
    session.batch_execute("CREATE SCHEMA deal MEMBERS (org1, org2)").await.expect("created");
    session
        .batch_execute(
            "CREATE TABLE deal.canary_table_4711 (id int PRIMARY KEY, canary_column_4712 text, n bigint NOT NULL DEFAULT 0);
             CREATE PROCEDURE deal.raise_price(key int, by bigint) LANGUAGE plpgsql AS $$
             BEGIN UPDATE deal.canary_table_4711 SET n = n + by WHERE id = key; END $$",
        )
        .await
        .expect("defined");
    session
        .batch_execute("INSERT INTO deal.canary_table_4711 VALUES (1, 'CANARY-price-918273', 10)")
        .await
        .expect("inserted");
    session
}

/// Every file under a folder that has one of the canaries.
fn files_with_canaries(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_with_canaries(&path, found);
            continue;
        }
        let content = std::fs::read(&path).unwrap_or_default();
        for canary in CANARIES {
            if content.windows(canary.len()).any(|window| window == canary.as_bytes()) {
                found.push(format!("{canary} in {}", path.display()));
            }
        }
    }
}

const ROWS: &str = "SELECT id, canary_column_4712, n FROM deal.canary_table_4711 ORDER BY id";

/// Waits until a query of this node gives these rows.
async fn wait_for_rows(session: &Client, expected: &[&[&str]]) {
    let start = Instant::now();
    loop {
        let found = match session.simple_query(ROWS).await {
            Ok(_) => rows(session, ROWS).await,
            Err(_) => Vec::new(),
        };
        if found == expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "expected {expected:?}, found {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_trade_and_the_others_see_that_something_happened_and_not_what() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let first = create_deal(&network).await;
    assert_eq!(rows(&first, ROWS).await, [["1", "CANARY-price-918273", "10"]]);
    let second = network.session(1).await;
    wait_for_rows(&second, &[&["1", "CANARY-price-918273", "10"]]).await;
    second.batch_execute("CALL deal.raise_price(1, 5)").await.expect("called");
    let changed = second
        .execute("UPDATE deal.canary_table_4711 SET n = n + $1 WHERE id = 1", &[&7_i64])
        .await
        .expect("with a parameter");
    assert_eq!(changed, 1, "the member's client hears what it came to");
    assert_eq!(rows(&second, ROWS).await, [["1", "CANARY-price-918273", "22"]], "its own write");
    wait_for_rows(&first, &[&["1", "CANARY-price-918273", "22"]]).await;
    // Together with what everybody sees, where it is only read.
    first.batch_execute("CREATE TABLE parts (id int PRIMARY KEY, name text)").await.expect("created");
    first.batch_execute("INSERT INTO parts VALUES (1, 'wheel')").await.expect("inserted");
    let joined = "SELECT p.name, t.n FROM parts p JOIN deal.canary_table_4711 t ON t.id = p.id";
    assert_eq!(rows(&first, joined).await, [["wheel", "22"]]);

    network.wait_until_level_with(0, &[2, 3]).await;
    let third = network.session(2).await;
    assert_eq!(error(&third, ROWS).await.0, "42P01", "it does not exist there");
    let (state, text) = error(&third, "CREATE TABLE deal.mine (id int PRIMARY KEY)").await;
    assert!(state == "42501" && text.contains("no member of schema \"deal\""), "{state} {text}");
    let seen = rows(&third, "SELECT call FROM entente.transactions WHERE call LIKE 'PARTS%'").await;
    assert_eq!(seen.len(), 4, "two definitions, an insert, a call and an update: {seen:?}");
    assert!(seen.iter().all(|call| call[0].starts_with("PARTS deal ")), "{seen:?}");
    let tables = rows(&third, "SELECT count(*) FROM pg_class WHERE relname LIKE 'canary%'").await;
    assert_eq!(tables, [["0"]]);
    assert_eq!(
        rows(&second, "SELECT count(*) FROM pg_class WHERE relname = 'canary_table_4711'").await,
        [["1"]]
    );
    network.assert_agreement(&[0, 1, 2, 3]).await;
    for node in [2, 3] {
        let mut found = Vec::new();
        files_with_canaries(&network.node_folder(node), &mut found);
        assert!(found.is_empty(), "{found:?}");
        let status =
            reqwest::get(format!("http://127.0.0.1:{}/metrics", network.port_base + 200 + node as u16));
        let metrics = status.await.expect("it answers").text().await.expect("text");
        assert!(!CANARIES.iter().any(|canary| metrics.contains(canary)), "{metrics}");
    }
    let mut held = Vec::new();
    files_with_canaries(&network.node_folder(0), &mut held);
    assert!(!held.is_empty(), "the search finds them where they are");
    for node in 0..4 {
        network.kill(node);
        let verified = Command::new(ENTENTE)
            .args(["verify", "--replay"])
            .arg(network.node_folder(node))
            .output()
            .expect("it starts");
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_are_killed_come_back_with_the_same_rows() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    create_deal(&network).await;
    for round in 0..4 {
        let member = round % 2;
        let session = network.session(member).await;
        session.batch_execute("CALL deal.raise_price(1, 1)").await.expect("called");
        network.kill(member);
        let other = network.session(1 - member).await;
        // Of two members both must hold a part: nothing is ordered meanwhile, and nothing is lost.
        let waiting = tokio::spawn(async move { other.batch_execute("CALL deal.raise_price(1, 1)").await });
        tokio::time::sleep(Duration::from_millis(700)).await;
        network.start(member);
        waiting.await.expect("it ends").expect("held, ordered and executed");
        let expected = (12 + 2 * round).to_string();
        network.wait_until_level_with(2, &[member]).await;
        for node in [0, 1] {
            wait_for_rows(&network.session(node).await, &[&["1", "CANARY-price-918273", &expected]]).await;
        }
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_misses_parts_asks_for_them_and_others_go_on_meanwhile() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let first = network.session(0).await;
    first.batch_execute("CREATE SCHEMA deal MEMBERS (org1, org2, org3)").await.expect("created");
    first.batch_execute("CREATE TABLE deal.t (id int PRIMARY KEY, n int)").await.expect("created");
    first.batch_execute("INSERT INTO deal.t VALUES (1, 0)").await.expect("inserted");
    network.kill(2);
    // Two of three hold it: that is enough.
    for _ in 0..5 {
        first.batch_execute("UPDATE deal.t SET n = n + 1").await.expect("two of three");
    }
    std::fs::remove_file(network.node_folder(2).join("schemas/parts.log")).expect("it had parts");
    network.start(2);
    network.wait_until_level_with(0, &[2]).await;
    let third = network.session(2).await;
    let start = Instant::now();
    while third.simple_query("SELECT n FROM deal.t").await.is_err()
        || rows(&third, "SELECT n FROM deal.t").await != [["5"]]
    {
        assert!(start.elapsed() < Duration::from_secs(30), "{}", network.log(2));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(network.log(2).contains("a part is missing"), "{}", network.log(2));
    third.batch_execute("UPDATE deal.t SET n = n * 2").await.expect("it takes part again");
    assert_eq!(rows(&third, "SELECT n FROM deal.t").await, [["10"]]);
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_becomes_a_member_sees_everything_and_who_leaves_nothing_more() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let first = create_deal(&network).await;
    for _ in 0..20 {
        first.batch_execute("CALL deal.raise_price(1, 1)").await.expect("called");
    }
    network.wait_until_level_with(0, &[2, 3]).await;
    let regulator = network.session(3).await;
    assert_eq!(error(&regulator, ROWS).await.0, "42P01");
    let (state, text) = error(&regulator, "ALTER SCHEMA deal ADD MEMBER org4").await;
    assert!(state == "42501" && text.contains("only a member"), "{state} {text}");
    first.batch_execute("ALTER SCHEMA deal ADD MEMBER org4").await.expect("by a member");
    wait_for_rows(&regulator, &[&["1", "CANARY-price-918273", "30"]]).await;
    regulator.batch_execute("CALL deal.raise_price(1, 100)").await.expect("it is a member like others");
    wait_for_rows(&first, &[&["1", "CANARY-price-918273", "130"]]).await;

    first.batch_execute("ALTER SCHEMA deal DROP MEMBER org2").await.expect("by another one");
    first.batch_execute("CALL deal.raise_price(1, 1000)").await.expect("the two others go on");
    network.wait_until_level_with(0, &[1, 3]).await;
    let second = network.session(1).await;
    assert_eq!(error(&second, ROWS).await.0, "42P01", "its node shows it no longer");
    assert_eq!(error(&second, "CALL deal.raise_price(1, 1)").await.0, "42883");
    network.kill(3);
    network.start(3);
    network.wait_until_level_with(0, &[3]).await;
    wait_for_rows(&network.session(3).await, &[&["1", "CANARY-price-918273", "1130"]]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let mut found = Vec::new();
    files_with_canaries(&network.node_folder(2), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_named() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let session = create_deal(&network).await;
    let cases = [
        ("CREATE SCHEMA x MEMBERS (org1, org9)", "22023", "\"org9\" is no member of this ledger"),
        ("CREATE SCHEMA x MEMBERS (org1, org1)", "22023", "named twice"),
        ("CREATE SCHEMA x MEMBERS (org2, org3)", "42501", "must be one of its members"),
        ("CREATE SCHEMA x MEMBERS ()", "42601", ""),
        ("ALTER SCHEMA deal ADD MEMBER org2", "22023", "is a member already"),
        ("ALTER SCHEMA deal DROP MEMBER org3", "22023", "is no member of schema"),
        ("ALTER SCHEMA deal ADD MEMBER org9", "22023", "\"org9\" is no member of this ledger"),
        ("ALTER SCHEMA public ADD MEMBER org1", "22023", "has no members"),
        ("ALTER SCHEMA deal ADD MEMBER", "42601", ""),
        ("ALTER SCHEMA deal RENAME TO other", "0A000", "renaming a schema that has members"),
        ("CREATE TABLE deal.canary_table_4711 (id int PRIMARY KEY)", "42P07", "already exists"),
        (
            "CREATE TABLE deal.t (id int PRIMARY KEY); CREATE TABLE t (id int PRIMARY KEY)",
            "0A000",
            "\"t\" does not stand in schema \"deal\"",
        ),
        ("CREATE VIEW v AS SELECT * FROM deal.canary_table_4711", "0A000", "\"v\" does not stand in schema"),
        ("INSERT INTO deal.canary_table_4711 VALUES (1, 'again', 1)", "23505", "duplicate key"),
        ("UPDATE deal.canary_table_4711 SET n = (SELECT count(*) FROM nothing)", "42P01", "nothing"),
    ];
    for (sql, state, text) in cases {
        let found = error(&session, sql).await;
        assert!(
            found.0 == state && found.1.contains(text),
            "{sql}: expected {state} {text}, found {found:?}"
        );
        let _ = session.batch_execute("ROLLBACK").await;
    }
    session.batch_execute("BEGIN").await.expect("begun");
    session.batch_execute("UPDATE deal.canary_table_4711 SET n = 0").await.expect("on this node's snapshot");
    let (state, text) = error(&session, "COMMIT").await;
    assert!(state == "0A000" && text.contains("transaction block"), "{state} {text}");
    session.batch_execute("CREATE SCHEMA other MEMBERS (org1)").await.expect("of one");
    session.batch_execute("CREATE TABLE other.t (id int PRIMARY KEY)").await.expect("created");
    session.batch_execute("INSERT INTO other.t VALUES (1)").await.expect("one member is enough");
    let both = "UPDATE deal.canary_table_4711 SET n = 0; DELETE FROM other.t";
    let (state, text) = error(&session, both).await;
    assert!(state == "0A000" && text.contains("\"deal\" and \"other\""), "{state} {text}");
    let long = format!("INSERT INTO deal.canary_table_4711 VALUES (2, '{}', 0)", "x".repeat(50_000));
    let (state, text) = error(&session, &long).await;
    assert!(state == "54000" && text.contains("PART_BYTES_MAX"), "{state} {text}");
    session
        .batch_execute("SET search_path TO deal; UPDATE canary_table_4711 SET n = 99")
        .await
        .expect("by the path");
    assert_eq!(rows(&session, "SELECT n FROM canary_table_4711").await, [["99"]]);
    let stranger = network.session(3).await;
    let (state, text) = error(&stranger, "DROP SCHEMA deal").await;
    assert!(state == "42501" && text.contains("only a member"), "{state} {text}");
    session.batch_execute("SET search_path TO public; DROP SCHEMA deal").await.expect("a member drops it");
    assert_eq!(error(&session, ROWS).await.0, "42P01");
    session.batch_execute("CREATE SCHEMA deal MEMBERS (org1, org4)").await.expect("another one of its name");
    session.batch_execute("CREATE TABLE deal.t (id int PRIMARY KEY)").await.expect("empty as it is");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
