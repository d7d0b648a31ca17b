//! Scripts that organisations agree to before they are ordered (ChainifyDB, paper 002, section 4.6.1): each asks its own database, next
//! to its private tables, and no node executes what was not agreed to.

mod support;

use client::{EndorseError, Endorser, endorse};
use std::process::Command;
use std::time::{Duration, Instant};
use support::databases::{Servers, choose, ledger_rows, rows};
use support::{ENTENTE, TestNetwork};
use tokio_postgres::NoTls;
use types::{Charter, ExecutionModel, Outcome, Payload, RejectReason};

fn of_scripts(charter: &mut Charter) {
    charter.execution = ExecutionModel::WhateverThenAgree;
    charter.protocol = "serial".to_string();
}

/// How a statement fails: SQLSTATE, message, detail.
async fn failure(session: &tokio_postgres::Client, sql: &str) -> [String; 3] {
    let error = session.batch_execute(sql).await.expect_err("it fails");
    let error = error.as_db_error().unwrap_or_else(|| panic!("{error}")).clone();
    [error.code().code().into(), error.message().into(), error.detail().unwrap_or_default().into()]
}

async fn assert_refused(session: &tokio_postgres::Client, sql: &str, reason: &str) {
    let [state, message, detail] = failure(session, sql).await;
    assert_eq!(state, "23514", "{sql}: {message} {detail}");
    assert!(message.starts_with("the script is not agreed to: its policy is "), "{message}");
    assert!(detail.contains(reason), "{sql}: expected {reason}, found {detail}");
}

/// `entente agree` with these options; what it prints, or what it says is wrong.
fn agree(network: &TestNetwork, node: usize, options: &[&str]) -> Result<String, String> {
    let output = Command::new(ENTENTE)
        .arg("agree")
        .arg("--network")
        .arg(network.node_folder(node))
        .args(options)
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

async fn postgres(url: &str) -> tokio_postgres::Client {
    let (own, connection) = tokio_postgres::connect(url, NoTls).await.expect("it answers");
    tokio::spawn(connection);
    own
}

/// The shared table of the tutorial, with the seller's private records in PostgreSQL and the buyer's in MariaDB.
async fn sellers_and_buyers(network: &mut TestNetwork, servers: &Servers) {
    let urls = servers.urls();
    choose(network, 0, &urls[0], |config| config.connections = Some(2));
    choose(network, 1, &urls[1], |config| config.connections = Some(2));
    network.start_all().await;
    let session = network.session(2).await;
    session
        .batch_execute(
            "CREATE TABLE parts_sold (serial varchar(20) PRIMARY KEY, price numeric(10,2) NOT NULL, note varchar(40)) \
             WITH (endorsement_policy = 'org1 AND org2')",
        )
        .await
        .expect("created");
    session.batch_execute("CREATE TABLE free (id int PRIMARY KEY, n int)").await.expect("created");
    let seller = postgres(&urls[0]).await;
    seller
        .batch_execute(
            "CREATE TABLE part (serial text PRIMARY KEY, ready boolean); \
             INSERT INTO part VALUES ('G-1', true), ('G-2', false), ('it''s', true)",
        )
        .await
        .expect("private records");
    servers.in_mariadb(&["CREATE TABLE fund (money decimal(10,2))", "INSERT INTO fund VALUES (100)"]);
    // Each of them asks its own node about the table, which node 2 may have before it.
    network.wait_until_level_with(2, &[0, 1]).await;
    let seller = "SELECT ready FROM part WHERE part.serial = :serial";
    agree(network, 0, &["--table", "parts_sold", "--query", seller, "--reason", "no such part"])
        .expect("a rule");
    let buyer = "SELECT max(money) >= :price FROM fund -- what is left";
    agree(network, 1, &["--table", "parts_sold", "--on", "insert", "--query", buyer]).expect("a rule");
}

/// By every node; and the request is not used up by that.
async fn who_goes_past_the_gateways_is_stopped(network: &TestNetwork) {
    let client = network.client(3);
    let sql = "UPDATE parts_sold SET note = 'sold' WHERE serial = 'G-1'".to_string();
    let height = client.status().await.expect("it answers").height;
    let signed = client.identity().sign(Payload::Script { sql, parameters: vec![] }, height + 100);
    let endorser = |node: u16| {
        Endorser::new(&format!("http://127.0.0.1:{}", network.port_base + 200 + node)).expect("an address")
    };
    let few = endorse(signed.clone(), &[endorser(0)]).await.expect("the seller agrees");
    let refused = client.execute(&few).await.expect("ordered").outcome;
    assert!(matches!(refused, Outcome::Rejected(RejectReason::Endorsement(_))), "{refused:?}");
    let enough = endorse(signed, &[endorser(0), endorser(1)]).await.expect("both agree");
    let receipt = client.execute(&enough).await.expect("a receipt");
    assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
    let none = client.identity().sign(
        Payload::Script { sql: "DELETE FROM parts_sold".to_string(), parameters: vec![] },
        height + 100,
    );
    let refused = endorse(none, &[endorser(0)]).await;
    assert!(matches!(refused, Err(EndorseError::Refused { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_is_sold_only_if_the_private_records_of_seller_and_buyer_say_so() {
    let mut servers = Servers::start();
    let mut network = TestNetwork::create(of_scripts);
    sellers_and_buyers(&mut network, &servers).await;
    let session = network.session(2).await;
    session.batch_execute("INSERT INTO free VALUES (1, 1)").await.expect("nobody is asked");
    // Through every gateway; whoever has no rules asks those who have.
    session.batch_execute("INSERT INTO parts_sold VALUES ('G-1', 60.50, NULL)").await.expect("agreed");
    let own = network.session(0).await;
    own.batch_execute("INSERT INTO parts_sold VALUES ('it''s', 0.01, NULL)").await.expect("agreed");
    for sql in
        ["INSERT INTO parts_sold VALUES ('G-2', 60, NULL)", "INSERT INTO parts_sold VALUES ('G-3', 60, NULL)"]
    {
        assert_refused(&session, sql, "org1: it does not agree: no such part").await;
        assert_refused(&own, sql, "org1: it does not agree: no such part").await;
    }
    let dear = "INSERT INTO parts_sold VALUES ('G-1', 100.01, NULL)";
    assert_refused(&session, dear, "org2: it does not agree: its rule for table parts_sold says no").await;
    let both = "INSERT INTO free VALUES (2, 2); INSERT INTO parts_sold VALUES ('G-9', 1, NULL)";
    assert_refused(&session, both, "no such part").await;
    // What the text of a script does not say nobody can agree to.
    let all = "UPDATE parts_sold SET note = 'x'";
    assert_refused(&session, all, "asks for serial, which the script does not say").await;
    let computed = "UPDATE parts_sold SET note = 'x' WHERE serial = 'G-1'";
    assert_refused(
        &session,
        computed,
        "org2: it does not agree: it has no rule for update of table parts_sold",
    )
    .await;
    agree(&network, 1, &["--table", "parts_sold", "--on", "update", "--query", "SELECT :note <> 'broken'"])
        .expect("a rule");
    session.batch_execute(computed).await.expect("agreed, with the rule that is there now");
    assert_refused(&session, &computed.replace("'x'", "'broken'"), "says no").await;
    assert_refused(&session, &computed.replace("'x'", "NULL"), "says no").await;

    who_goes_past_the_gateways_is_stopped(&network).await;

    // A database that is away agrees to nothing, and the others hear that it cannot say, and nothing else of it.
    servers.postgres.kill();
    let [state, _, detail] = failure(&session, "INSERT INTO parts_sold VALUES ('G-1', 1, NULL)").await;
    assert!(["23514", "57P03"].contains(&state.as_str()), "{state} {detail}");
    assert!(detail.contains("org1: "), "{detail}");
    servers.postgres.start_again().expect("it starts");
    let start = Instant::now();
    let gone = "DELETE FROM parts_sold WHERE serial = 'it''s'";
    agree(&network, 1, &["--table", "parts_sold", "--on", "delete", "--query", "SELECT true"])
        .expect("a rule");
    while let Err(error) = session.batch_execute(gone).await {
        assert!(start.elapsed() < Duration::from_secs(60), "{error:?}\n{}", network.log(0));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let expected = ledger_rows(&network, 3, "parts_sold", "serial").await;
    assert_eq!(expected, "G-1\t60.50\tsold\n");
    let verified = Command::new(ENTENTE)
        .args(["verify", "--replay"])
        .arg(network.node_folder(2))
        .output()
        .expect("it starts");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    for (node, url) in servers.urls().iter().enumerate() {
        network.wait_until_level_with(2, &[node]).await;
        assert_eq!(rows(url, &["parts_sold"]), [expected.as_str()], "{url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_in_rules_are_said_before_they_count() {
    let servers = Servers::start();
    let mut network = TestNetwork::create(of_scripts);
    sellers_and_buyers(&mut network, &servers).await;
    let mistakes: [(&[&str], &str); 9] = [
        (
            &["--table", "nothing", "--query", "SELECT true"],
            "table nothing: relation \"nothing\" does not exist",
        ),
        (&["--table", "free", "--query", "SELECT :colour = 1"], "asks for :colour; there are the columns"),
        (&["--table", "free", "--query", "SELECT :n FROM nowhere"], "the rule for table free: "),
        (&["--table", "free", "--query", "SELECT 1; DROP TABLE part"], "found a semicolon in the middle"),
        (&["--table", "free", "--query", "DELETE FROM part"], "the rule for table free: "),
        (&["--table", "free", "--remove"], "there is no rule for table free"),
        (&["--table", "free"], "--query is missing"),
        (
            &["--table", "free", "--on", "truncate", "--query", "SELECT true"],
            "expected insert, update or delete",
        ),
        (&["--database", "oracle://a@b/c"], "oracle:// is no database"),
    ];
    for (options, expected) in mistakes {
        let error = agree(&network, 0, options).expect_err("refused");
        assert!(error.contains(expected), "{options:?}: expected {expected}, found {error}");
    }
    let unasked = agree(&network, 0, &["--table", "free", "--query", "SELECT true"]).expect("a rule");
    assert!(unasked.contains("nobody asks org1 about table free yet"), "{unasked}");
    agree(&network, 0, &["--table", "free", "--remove"]).expect("removed");
    let again = ["--table", "parts_sold", "--query", "SELECT ready FROM part WHERE part.serial = :serial"];
    let asked = agree(&network, 0, &again).expect("a rule");
    assert!(!asked.contains("nobody asks"), "{asked}");
    let rules = agree(&network, 0, &[]).expect("shown");
    assert!(rules.contains("parts_sold (every change): SELECT ready FROM part"), "{rules}");
    assert!(!rules.contains("free"), "{rules}");
    // A rule that somebody has broken in the file agrees to nothing, and another database of the organisation's own can be asked.
    let session = network.session(2).await;
    let file = network.node_folder(0).join(chainify::AGREE_FILE);
    let good = std::fs::read_to_string(&file).expect("rules");
    std::fs::write(&file, format!("{good}\nrules = 5")).expect("written");
    let sql = "INSERT INTO parts_sold VALUES ('G-1', 1, NULL)";
    assert_refused(&session, sql, "org1: it does not agree: its rules cannot be read").await;
    std::fs::write(&file, good).expect("written");
    agree(&network, 0, &["--table", "parts_sold", "--remove"]).expect("removed");
    assert_refused(&session, sql, "org1: it does not agree: it has no rules").await;
    let maria = &servers.urls()[1];
    agree(
        &network,
        0,
        &["--database", maria, "--table", "parts_sold", "--query", "SELECT :entente.organisation = 'org3'"],
    )
    .expect("a rule");
    session.batch_execute(sql).await.expect("agreed, for organisation 3");
    let own = network.session(0).await;
    assert_refused(&own, "INSERT INTO parts_sold VALUES ('G-2', 1, NULL)", "org1: it does not agree").await;

    // A policy names members, and \d+ shows it.
    let shown = session
        .query_one("SELECT reloptions::text FROM pg_class WHERE relname = 'parts_sold'", &[])
        .await
        .expect("the catalogue");
    assert_eq!(shown.get::<_, String>(0), "{\"endorsement_policy=org1 AND org2\"}");
    let [state, message, _] =
        failure(&session, "CREATE TABLE t (id int PRIMARY KEY) WITH (endorsement_policy = 'org9')").await;
    assert_eq!(state, "22023", "{message}");
}
