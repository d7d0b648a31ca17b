//! The tutorial `docs/assets.md`, at four organisations: each statement in it, and the errors that it shows.
#![allow(missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::TestNetwork;
use tokio_postgres::SimpleQueryMessage;

/// A statement of the tutorial.
struct Said {
    /// Position of the node, from 0.
    node: usize,
    sql: String,
    /// Its answer is kept in a variable.
    keeps: bool,
    error: Option<String>,
}

/// The statements behind `org1=>` in blocks of consoles.
fn statements(text: &str) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("console\n"));
    for line in blocks.flat_map(str::lines) {
        let prompt = line.strip_prefix("org").and_then(|rest| rest.split_once("=> "));
        match (prompt, line.strip_prefix("ERROR:  ")) {
            (Some((node, sql)), _) => {
                let node = node.parse::<usize>().expect("a number") - 1;
                said.push(Said { node, sql: sql.to_string(), keeps: false, error: None });
            }
            (None, Some(error)) => said.last_mut().expect("a statement").error = Some(error.to_string()),
            (None, None) => said.last_mut().expect("a statement").sql.extend(["\n", line]),
        }
    }
    for one in &mut said {
        if let Some(sql) = one.sql.strip_suffix("\\gset") {
            (one.sql, one.keeps) = (sql.to_string(), true);
        }
    }
    said
}

/// Asks until what it is about is there: a member that missed a part of a transaction asks the others for it, and is behind meanwhile.
async fn asked(
    session: &tokio_postgres::Client,
    sql: &str,
) -> Result<Vec<SimpleQueryMessage>, tokio_postgres::Error> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answered = session.simple_query(sql).await;
        let is_behind = |error: &tokio_postgres::Error| {
            error.as_db_error().is_some_and(|error| error.message().contains("does not exist"))
        };
        if !answered.as_ref().err().is_some_and(is_behind) || Instant::now() > deadline {
            return answered;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn wait_for(session: &tokio_postgres::Client, sql: &str, expected: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let found = asked(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        if matches!(&found[1], SimpleQueryMessage::Row(row) if row.get(0) == Some(expected)) {
            return;
        }
        assert!(Instant::now() < deadline, "{sql}: expected {expected}, found {found:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tutorial_about_assets_does_what_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/assets.md");
    let said = statements(&std::fs::read_to_string(path).expect("the tutorial"));
    assert!(said.len() > 30, "{} statements", said.len());
    let mut network = TestNetwork::create(|charter| charter.governance = "any".to_string());
    network.start_all().await;
    let mut sessions = Vec::new();
    for node in 0..4 {
        sessions.push(network.session(node).await);
    }
    let mut kept = BTreeMap::new();
    for Said { node, sql, keeps, error } in said {
        let sql = kept.iter().fold(sql, |sql, (name, value): (&String, &String)| {
            sql.replace(&format!(":'{name}'"), &format!("'{value}'"))
        });
        let answered = asked(&sessions[node], &sql).await;
        match (answered, error) {
            (Err(found), Some(expected)) => {
                let found = found.as_db_error().unwrap_or_else(|| panic!("{sql}: {found}"));
                assert_eq!(found.message(), expected, "{sql}");
            }
            (Ok(_), Some(expected)) => panic!("{sql}: expected {expected}"),
            (Err(found), None) => panic!("{sql}: {found:?}"),
            (Ok(messages), None) => {
                let row = messages.into_iter().find_map(|message| match message {
                    SimpleQueryMessage::Row(row) => Some(row),
                    _ => None,
                });
                if keeps {
                    let row = row.expect("an answer");
                    let (name, value) = (row.columns()[0].name(), row.get(0).expect("a text"));
                    kept.insert(name.to_string(), value.to_string());
                }
            }
        }
        // What one node has answered the next one may not have executed yet.
        let height = network.client(node).status().await.expect("it answers").height;
        for other in 0..4 {
            network.wait_for_height(other, height).await;
        }
    }
    wait_for(&sessions[1], "SELECT balance FROM south.account", "10").await;
    wait_for(&sessions[2], "SELECT stakeholders FROM coins.coin", "{org2}").await;
    assert!(sessions[2].simple_query("SELECT * FROM promises.promise").await.is_err(), "org3 is none");
    // Drivers ask with parameters.
    let offer = "CALL north.withdraw(1, 5); CALL south.deposit(1, 5)";
    let row = sessions[0].query_one("SELECT entente.offer($1)", &[&offer]).await.expect("an offer");
    let offer: String = row.get(0);
    let row = sessions[1].query_one("SELECT entente.offered($1) AS what", &[&offer]).await.expect("shown");
    let shown: String = row.get("what");
    assert!(shown.contains("in north: CALL north.withdraw(1, 5)"), "{shown}");
    assert!(shown.contains("signed by nobody yet"), "{shown}");
    let elsewhere = sessions[1].query_one("SELECT entente.submit($1)", &[&offer]).await;
    let elsewhere = elsewhere.expect_err("it is org1's").as_db_error().expect("said").message().to_string();
    assert!(elsewhere.contains("another client"), "{elsewhere}");
    let row = sessions[0].query_one("SELECT entente.submit($1)", &[&offer]).await.expect("submitted");
    assert!(row.get::<_, String>(0).contains("in north, south"), "{row:?}");
    // What is ordered everybody reads: an offer is not.
    let beside = sessions[1].simple_query(&format!("SELECT upper(entente.sign('{offer}'))")).await;
    let beside = beside.expect_err("refused").as_db_error().expect("said").message().to_string();
    assert_eq!(beside, "entente.sign() beside something else is not supported");
    let ordered = sessions[3].simple_query("SELECT call FROM entente.transactions").await.expect("all");
    let shows = |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(row) if row.get(0).is_some_and(|call| call.contains("entente.")));
    assert!(!ordered.iter().any(shows), "an offer was ordered");
    let again = sessions[0].query_one("SELECT entente.submit($1)", &[&offer]).await.expect("the same answer");
    assert_eq!(again.get::<_, String>(0), row.get::<_, String>(0), "it was executed once");
    let signed = sessions[1].query_one("SELECT entente.sign($1)", &[&offer]).await.expect("signed");
    let signed: String = signed.get(0);
    let later = sessions[0].query_one("SELECT entente.submit($1)", &[&signed]).await.expect_err("used up");
    let later = later.as_db_error().expect("said").message().to_string();
    assert_eq!(later, "the offer was submitted before");
    wait_for(&sessions[1], "SELECT balance FROM south.account", "15").await;
}
