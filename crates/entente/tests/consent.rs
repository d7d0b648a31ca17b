//! Consent on a network of real processes: a table that the majority has to agree to, over psql's protocol and the command
//! line, and what clients are told on the way.

mod support;

use std::process::Command;
use support::TestNetwork;
use tokio_postgres::{Client, SimpleQueryMessage};

const ENTENTE: &str = env!("CARGO_BIN_EXE_entente");

/// The first value of a query's first row; empty where there is none.
async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.unwrap_or_default().to_string()
}

fn error(error: &tokio_postgres::Error) -> (String, String) {
    let error = error.as_db_error().expect("an error of the database");
    (error.code().code().to_string(), error.message().to_string())
}

/// Waits until a node shows what another one has ordered.
async fn follow(reader: &Client, writer: &Client) {
    let height = value(writer, "SHOW entente.last_height").await;
    reader.batch_execute(&format!("SET entente.min_height = {height}")).await.expect("set");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_waits_for_the_majority() {
    if !test_machine::required("psql") {
        return;
    }
    let mut network = TestNetwork::create(|charter| charter.governance = "majority".to_string());
    network.start_all().await;
    let mut sessions = Vec::new();
    for node in 0..4 {
        sessions.push(network.session(node).await);
    }
    proposed_with_psql(&network, &sessions[0]).await;
    approved_by_administrators(&network, &sessions).await;
    refused_where_nobody_may_wait(&sessions).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    a_newcomer_is_a_member_from_a_height_on(&network, &sessions).await;
}

/// The statement waits, and changes nothing.
async fn proposed_with_psql(network: &TestNetwork, first: &Client) {
    // psql shows what has become of the statement, and who is asked.
    let psql = Command::new("psql")
        .args([
            "-X",
            "-h",
            "127.0.0.1",
            "-p",
            &(network.port_base + 100).to_string(),
            "-U",
            "org1",
            "entente",
        ])
        .args(["-c", "CREATE TABLE t (id bigint PRIMARY KEY)"])
        .output()
        .expect("psql runs");
    let (said, warned) = (String::from_utf8_lossy(&psql.stdout), String::from_utf8_lossy(&psql.stderr));
    assert_eq!((psql.status.success(), said.as_ref()), (true, "PROPOSE\n"), "{warned}");
    assert_eq!(
        warned,
        "WARNING:  proposal 1 waits for the consent of 2 of (org2, org3, org4): nothing has changed yet\n\
         HINT:  Their administrators approve it with SELECT entente.approve(1).\n"
    );
    let missing = first.batch_execute("INSERT INTO t VALUES (1)").await.expect_err("there is no table");
    assert_eq!(error(&missing).0, "42P01");
}

async fn approved_by_administrators(network: &TestNetwork, sessions: &[Client]) {
    let [first, second, third, fourth] = sessions else { panic!("four") };
    // A role of an organisation does not speak for it, whatever it has been granted.
    second.batch_execute("CREATE ROLE clerk LOGIN").await.expect("its own affair");
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(network.port_base + 101).user("clerk").dbname("entente");
    let (clerk, connection) = config.connect(tokio_postgres::NoTls).await.expect("a role that may log in");
    tokio::spawn(connection);
    let refused = clerk.simple_query("SELECT entente.approve(1)").await.expect_err("no administrator");
    assert_eq!(error(&refused).0, "42501");

    // Drivers that prepare are told the column before they run it.
    let row = second.query_one("SELECT entente.approve(1)", &[]).await.expect("an approval");
    assert_eq!(row.get::<_, String>("approve"), "waits for the consent of org3 OR org4");
    follow(third, second).await;
    let shown =
        "SELECT state || ', ' || missing || ', ' || array_to_string(approved_by, '+') || ', ' || statement
                 FROM entente.proposals";
    assert_eq!(
        value(third, shown).await,
        "open, org3 OR org4, org1+org2, CREATE TABLE t (id bigint PRIMARY KEY)"
    );
    let port = (network.port_base + 102).to_string();
    let address = format!("127.0.0.1:{port}");
    let listed =
        Command::new(ENTENTE).args(["proposals", "--connect", &address]).output().expect("it starts");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("org3 OR org4"), "{listed:?}");
    let approved =
        Command::new(ENTENTE).args(["approve", "1", "--connect", &address]).output().expect("it starts");
    assert!(String::from_utf8_lossy(&approved.stdout).contains("done"), "{approved:?}");
    let again =
        Command::new(ENTENTE).args(["approve", "1", "--connect", &address]).output().expect("it starts");
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("proposal 1 is closed: done"), "{again:?}");

    third.batch_execute("INSERT INTO t VALUES (7)").await.expect("the table is there");
    for session in [first, second, fourth] {
        follow(session, third).await;
        assert_eq!(value(session, "SELECT sum(id) FROM t").await, "7");
    }
}

/// Also what is withdrawn and rejected.
async fn refused_where_nobody_may_wait(sessions: &[Client]) {
    let [first, _, third, fourth] = sessions else { panic!("four") };
    // A transaction block tells its client that the table is there, so it cannot wait.
    first.batch_execute("BEGIN").await.expect("BEGIN");
    let refused = first.batch_execute("CREATE TABLE u (id bigint)").await.expect_err("it would have to wait");
    assert_eq!(error(&refused).0, "55000");
    first.batch_execute("ROLLBACK").await.expect("ROLLBACK");
    // A script of changes alone is one proposal.
    first.batch_execute("CREATE TABLE u (id bigint); CREATE TABLE v (id bigint)").await.expect("a proposal");
    assert_eq!(value(first, "SELECT count(*) FROM entente.proposals WHERE state = 'open'").await, "1");
    assert_eq!(value(first, "SELECT entente.withdraw(2)").await, "withdrawn");
    let founded = first.batch_execute("SELECT entente.set_charter('ordering', 'raft')").await;
    let (code, message) = error(&founded.expect_err("what a ledger is founded with stays"));
    assert_eq!(code, "55000", "{message}");
    assert!(message.contains("what the ledger was founded with"), "{message}");
    assert_eq!(value(first, "SELECT entente.set_charter('governance', 'any')").await, "proposal 3");
    follow(fourth, first).await;
    assert_eq!(
        value(fourth, "SELECT entente.reject(3)").await,
        "waits for the consent of 2 of (org2, org3, org4)"
    );
    follow(third, fourth).await;
    assert_eq!(value(third, "SELECT entente.reject(3)").await, "rejected");
    let charters =
        value(third, "SELECT count(*) || governance FROM entente.charters GROUP BY governance").await;
    assert_eq!(charters, "1majority");
}

async fn a_newcomer_is_a_member_from_a_height_on(network: &TestNetwork, sessions: &[Client]) {
    let [first, second, third, _] = sessions else { panic!("four") };
    // A newcomer accepts, a member proposes, and everybody knows from when on it is one.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let emma = folder.path().join("emma");
    let made = Command::new(ENTENTE)
        .args(["keys", "--network", "test", "--name", "emma", "--threads", "1"])
        .args(["--listen", "127.0.0.1:1", "--postgres", "127.0.0.1:2", "--http", "127.0.0.1:3"])
        .arg("--dir")
        .arg(&emma)
        .output()
        .expect("it starts");
    assert!(made.status.success(), "{made:?}");
    let accepted = Command::new(ENTENTE)
        .args(["accept-membership", "--position", "4", "--dir"])
        .arg(&emma)
        .arg("--charter")
        .arg(network.node_folder(0).join("charter.toml"))
        .output()
        .expect("it starts");
    let proposal = String::from_utf8_lossy(&accepted.stdout).to_string();
    assert_eq!(value(first, &proposal).await, "proposal 4", "{accepted:?}");
    for session in [second, third] {
        follow(session, first).await;
        value(session, "SELECT entente.approve(4)").await;
    }
    let (state, height) = (
        value(third, "SELECT state FROM entente.proposals WHERE number = 4").await,
        value(third, "SELECT effective_height FROM entente.charters WHERE number = 1").await,
    );
    let decided = value(third, "SELECT decided_height FROM entente.proposals WHERE number = 4").await;
    let number = |text: &str| text.parse::<u64>().expect("a height");
    assert_eq!((state.as_str(), number(&height)), ("done", number(&decided) + 110));
    let fifth = "SELECT number || name || member FROM entente.organisations ORDER BY number DESC LIMIT 1";
    assert_eq!(value(third, fifth).await, "4emmatrue");
}
