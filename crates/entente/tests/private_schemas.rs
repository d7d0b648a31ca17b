//! Schemas with members (`CREATE SCHEMA … MEMBERS`): two of four organisations trade, and the others learn that something happened, and
//! not what.

mod support;

use futures::SinkExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{ENTENTE, TestNetwork, error, rows, wait_for_rows};
use tokio_postgres::Client;
use workloads::smallbank::Smallbank;

/// Values that nobody but members may have, in whatever form they are stored or sent.
const CANARIES: [&str; 3] = ["CANARY-price-918273", "canary_table_4711", "canary_column_4712"];

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_trade_and_the_others_see_that_something_happened_and_not_what() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let first = create_deal(&network).await;
    assert_eq!(rows(&first, ROWS).await, [["1", "CANARY-price-918273", "10"]]);
    let second = network.session(1).await;
    wait_for_rows(&second, ROWS, &[&["1", "CANARY-price-918273", "10"]]).await;
    second.batch_execute("CALL deal.raise_price(1, 5)").await.expect("called");
    let changed = second
        .execute("UPDATE deal.canary_table_4711 SET n = n + $1 WHERE id = 1", &[&7_i64])
        .await
        .expect("with a parameter");
    assert_eq!(changed, 1, "the member's client hears what it came to");
    assert_eq!(rows(&second, ROWS).await, [["1", "CANARY-price-918273", "22"]], "its own write");
    wait_for_rows(&first, ROWS, &[&["1", "CANARY-price-918273", "22"]]).await;
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
            wait_for_rows(&network.session(node).await, ROWS, &[&["1", "CANARY-price-918273", &expected]])
                .await;
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
    wait_for_rows(&regulator, ROWS, &[&["1", "CANARY-price-918273", "30"]]).await;
    regulator.batch_execute("CALL deal.raise_price(1, 100)").await.expect("it is a member like others");
    wait_for_rows(&first, ROWS, &[&["1", "CANARY-price-918273", "130"]]).await;

    first.batch_execute("ALTER SCHEMA deal DROP MEMBER org2").await.expect("by another one");
    first.batch_execute("CALL deal.raise_price(1, 1000)").await.expect("the two others go on");
    network.wait_until_level_with(0, &[1, 3]).await;
    let second = network.session(1).await;
    assert_eq!(error(&second, ROWS).await.0, "42P01", "its node shows it no longer");
    // Nothing of such a statement goes to anybody else.
    assert_eq!(error(&second, "CALL deal.raise_price(1, 1)").await.0, "42501");
    network.kill(3);
    network.start(3);
    network.wait_until_level_with(0, &[3]).await;
    wait_for_rows(&network.session(3).await, ROWS, &[&["1", "CANARY-price-918273", "1130"]]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let mut found = Vec::new();
    files_with_canaries(&network.node_folder(2), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_organisation_that_joins_the_ledger_later_becomes_a_member_and_writes() {
    let mut network = TestNetwork::create(|charter| {
        // Changes take effect 20 blocks after they are decided.
        charter.outcome_lag_blocks = 10;
        charter.block.idle_ms = 100;
    });
    network.start_all().await;
    let first = create_deal(&network).await;
    let (fifth, add) = network.newcomer("emma");
    network.start(fifth);
    first.simple_query(&add).await.expect("a good acceptance");
    let height = network.client(0).status().await.expect("it answers").height + 30;
    for node in [0, 1, fifth] {
        network.wait_for_height(node, height).await;
    }
    first.batch_execute("ALTER SCHEMA deal ADD MEMBER emma").await.expect("by a member");
    let later = network.session(fifth).await;
    wait_for_rows(&later, ROWS, &[&["1", "CANARY-price-918273", "10"]]).await;
    later.batch_execute("CALL deal.raise_price(1, 5)").await.expect("it is a member like others");
    wait_for_rows(&first, ROWS, &[&["1", "CANARY-price-918273", "15"]]).await;
    network.assert_agreement(&[0, 1, 2, 3, fifth]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_statement_never_reads_a_table_that_is_gone() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let session = network.session(0).await;
    for round in 0..6 {
        // Different numbers of changes, so that counted versions of ledger and schema meet again.
        session.batch_execute("CREATE SCHEMA s MEMBERS (org1)").await.expect("created");
        session.batch_execute("CREATE TABLE s.t (id int PRIMARY KEY, n int)").await.expect("created");
        session.batch_execute(&format!("INSERT INTO s.t VALUES (1, {round})")).await.expect("inserted");
        let read = session.prepare("SELECT n FROM s.t").await.expect("it is there");
        let found: i32 = session.query_one(&read, &[]).await.expect("one row").get(0);
        assert_eq!(found, round);
        session.batch_execute("DROP SCHEMA s").await.expect("dropped");
        for table in 0..round {
            session
                .batch_execute(&format!("CREATE TABLE x{round}_{table} (id int PRIMARY KEY)"))
                .await
                .expect("created");
        }
        let gone = session.query(&read, &[]).await.expect_err("it is gone");
        assert_eq!(gone.code().map(tokio_postgres::error::SqlState::code), Some("42P01"), "{gone}");
    }
}

/// Copies more customers than fit into one part.
async fn fill(session: &Client, table: &str) {
    let mut rows = String::new();
    for id in 1..=6_000 {
        rows.push_str(&format!("{id}\t1000000\n"));
    }
    let copy = format!("COPY {table} (customer_id, balance) FROM STDIN");
    let mut sink = Box::pin(session.copy_in(&copy).await.expect("begun"));
    sink.send(bytes::Bytes::from(rows)).await.expect("sent");
    assert_eq!(sink.as_mut().finish().await.expect("copied"), 6_000);
}

/// Smallbank in a schema of three organisations, loaded by COPY, and called by clients that hold their own keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_keys_of_their_own_call_procedures_and_no_cent_is_lost() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let session = network.session(0).await;
    session.batch_execute("CREATE SCHEMA bank MEMBERS (org1, org2, org3)").await.expect("created");
    session.batch_execute("SET search_path TO bank").await.expect("set");
    for statement in Smallbank::statements() {
        session.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    fill(&session, "savings").await;
    fill(&session, "checking").await;
    let members: Vec<client::Client> = (0..3).map(|node| network.client(node)).collect();
    let options = bench::PartsLoadOptions {
        schemas: ["bank".to_string()].into(),
        customers: 6_000,
        skew: 0.9,
        submissions: 2,
        transactions: 50,
        seed: 1,
    };
    let first = bench::parts_load(&members, &options, Duration::from_secs(3)).await.expect("answered");
    assert!(first.committed > 100 && first.unanswered == 0, "{first:?}");
    // A member that is down is not waited for: two of three are enough.
    network.kill(2);
    let options = bench::PartsLoadOptions { seed: 2, ..options };
    let second = bench::parts_load(&members[..2], &options, Duration::from_secs(3)).await.expect("answered");
    assert!(second.committed > 100 && second.unanswered == 0, "{second:?}");
    network.start(2);
    network.wait_until_level_with(0, &[1, 2]).await;
    let expected = (2 * 6_000 * 1_000_000 + first.money_change + second.money_change).to_string();
    let total = "SELECT (SELECT sum(balance) FROM bank.savings) + (SELECT sum(balance) FROM bank.checking)";
    let digest =
        "SELECT string_agg(customer_id || ':' || balance, ',' ORDER BY customer_id) FROM bank.checking";
    let start = Instant::now();
    for node in 0..3 {
        let session = network.session(node).await;
        // Payments leave the sum as it is, so that it says nothing of a node that is still behind.
        while session.simple_query(total).await.is_err()
            || rows(&session, total).await != [[expected.clone()]]
            || rows(&session, digest).await != rows(&network.session(0).await, digest).await
        {
            let found = session.simple_query(total).await;
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "node {node}: expected {expected} and the rows of node 0, found {found:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    // At the node of somebody who is no member.
    let payloads = || [("bank".to_string(), part_payload())];
    let (signed, parts) = network.client(3).identity().sign_parts(payloads(), 10_000);
    let submission = types::PartSubmission { transaction: signed.to_bytes(), parts };
    let refused = |submission: types::PartSubmission, node: usize| {
        let client = network.client(node);
        async move {
            let mut replies = client.submit_parts(&[submission]).await.expect("taken");
            let reply = replies.next().await.expect("read").expect("one reply");
            format!("{:?}", reply.result.expect_err("refused"))
        }
    };
    let error = refused(submission.clone(), 3).await;
    assert!(error.contains("no member of schema"), "{error}");
    let error = refused(submission.clone(), 0).await;
    assert!(error.contains("its client's organisation is no member"), "{error}");
    let (signed, mut parts) = network.client(0).identity().sign_parts(payloads(), 10_000);
    parts.get_mut("bank").expect("its part").salt[0] ^= 1;
    let damaged = types::PartSubmission { transaction: signed.to_bytes(), parts };
    let error = refused(damaged, 0).await;
    assert!(error.contains("is not the one that its client has committed to"), "{error}");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[test]
fn the_demo_shows_what_everybody_sees() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("private.json");
    let output = Command::new(ENTENTE)
        .args([
            "demo",
            "--private",
            "--exit",
            "--port-base",
            &support::free_port_base().to_string(),
            "--json",
        ])
        .arg(&record)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        said.contains("relation \"deal.trades\" does not exist") && said.contains("PARTS deal "),
        "{said}"
    );
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(record).expect("written")).expect("JSON");
    assert_eq!(record["as_promised"], true, "{record}");
    assert_eq!(record["rows_before"], serde_json::json!([2, 2, null, null]));
    assert_eq!(record["rows_after"], serde_json::json!([2, 2, null, 2]));
    let both = Command::new(ENTENTE).args(["demo", "--private", "--chaos"]).output().expect("it starts");
    assert!(!both.status.success(), "there is no load that could be disturbed");
}

fn part_payload() -> types::Payload {
    types::Payload::Script { sql: "UPDATE bank.checking SET balance = 0".into(), parameters: vec![] }
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
        (
            "SELECT * FROM entente.history('deal.canary_table_4711', 1)",
            "0A000",
            "the history of rows in a schema with members",
        ),
        (
            "SELECT entente.proof('deal.canary_table_4711', 2)",
            "P0002",
            "no block has written a row of table \"canary_table_4711\"",
        ),
        (
            "SELECT * FROM deal.canary_table_4711 AS OF HEIGHT 1",
            "0A000",
            "AS OF HEIGHT of a table in a schema",
        ),
        ("SET search_path TO public, deal; UPDATE canary_table_4711 SET n = 1", "0A000", "search_path"),
        ("INSERT INTO deal.canary_table_4711 VALUES (1, 'again', 1)", "23505", "duplicate key"),
        ("UPDATE deal.canary_table_4711 SET n = (SELECT count(*) FROM nothing)", "42P01", "nothing"),
    ];
    for (sql, state, text) in cases {
        let found = error(&session, sql).await;
        assert!(
            found.0 == state && found.1.contains(text),
            "{sql}: expected {state} {text}, found {found:?}"
        );
        let _ = session.batch_execute("ROLLBACK; SET search_path TO public").await;
    }
    session.batch_execute("BEGIN").await.expect("begun");
    session.batch_execute("UPDATE deal.canary_table_4711 SET n = 0").await.expect("on this node's snapshot");
    let (state, text) = error(&session, "COMMIT").await;
    assert!(state == "0A000" && text.contains("transaction block"), "{state} {text}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_split_at_the_boundaries_of_schemas_is_named() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let session = create_deal(&network).await;
    session.batch_execute("CREATE SCHEMA other MEMBERS (org1)").await.expect("of one");
    session.batch_execute("CREATE TABLE other.t (id int PRIMARY KEY)").await.expect("created");
    session.batch_execute("INSERT INTO other.t VALUES (1)").await.expect("one member is enough");
    let both = "UPDATE deal.canary_table_4711 SET n = (SELECT count(*) FROM other.t)";
    let (state, text) = error(&session, both).await;
    assert!(state == "0A000" && text.contains("\"deal\" and \"other\""), "{state} {text}");
    let mixed = "UPDATE deal.canary_table_4711 SET n = 0; CREATE TABLE more (id int PRIMARY KEY); DELETE FROM other.t";
    let (state, text) = error(&session, mixed).await;
    assert!(state == "0A000" && text.contains("(CREATE TABLE more (id int PRIMARY KEY))"), "{state} {text}");
    let change = "UPDATE deal.canary_table_4711 SET n = 0; CREATE TABLE other.u (id int PRIMARY KEY)";
    let (state, text) = error(&session, change).await;
    assert!(state == "0A000" && text.contains("a change of a schema"), "{state} {text}");
    assert_eq!(rows(&session, ROWS).await, [["1", "CANARY-price-918273", "10"]]);
}
