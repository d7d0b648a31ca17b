//! The content of a transaction goes from a network of four by consent: who is asked, what is refused, what is left, and how nodes
//! come back, join and are verified behind it.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{TestNetwork, error, refuses, rows, says};
use tokio_postgres::Client;

/// What the law says must go.
const CONTENT: &str = "Anna Schmidt of 12 Elm Street";

async fn value(client: &Client, sql: &str) -> String {
    let found = rows(client, sql).await;
    found.first().and_then(|row| row.first()).cloned().unwrap_or_default()
}

/// A file in the folder, or in one of its folders, that has the content.
fn content_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.map(|entry| entry.expect("an entry").path()).find_map(|path| {
        if path.is_dir() {
            return content_in(&path);
        }
        let content = std::fs::read(&path).unwrap_or_default();
        content.windows(CONTENT.len()).any(|part| part == CONTENT.as_bytes()).then_some(path)
    })
}

/// Asks until the answer is the expected one.
async fn wait_for(client: &Client, sql: &str, expected: &str) {
    let start = Instant::now();
    loop {
        let found = value(client, sql).await;
        if found == expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{sql}: {found}, not {expected}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A checkpoint as soon as the ledger may have one, and a transaction behind it.
async fn checkpoint(client: &Client) {
    let start = Instant::now();
    loop {
        let asked = client.batch_execute("CHECKPOINT").await;
        client.batch_execute("UPDATE people SET seen = seen + 1 WHERE id = 2").await.expect("updates");
        let Err(error) = asked else { return };
        let message = error.as_db_error().expect("an error of the database").message().to_string();
        assert!(message.contains("CHECKPOINT_BLOCKS_MIN"), "{message}");
        assert!(start.elapsed() < Duration::from_secs(60), "{message}");
    }
}

/// Proposes until nodes could do without the transaction.
async fn propose(client: &Client, id: &str) -> String {
    let call = format!("SELECT entente.redact('{id}', 'Article 17, case 4711')");
    let start = Instant::now();
    loop {
        match client.simple_query(&call).await {
            Ok(_) => break,
            Err(error) => {
                let message = error.as_db_error().expect("an error of the database").message().to_string();
                assert!(message.contains("the newest certified checkpoint"), "{message}");
                assert!(start.elapsed() < Duration::from_secs(60), "{message}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
    value(client, "SELECT max(number) FROM entente.proposals").await
}

async fn filled(network: &TestNetwork, sessions: &[Client]) -> String {
    let [first, second, third, _] = sessions else { panic!("four") };
    let create = "CREATE TABLE people (id bigint PRIMARY KEY, name text, seen bigint)";
    first.batch_execute(create).await.expect("a proposal");
    for session in [second, third] {
        network.wait_until_level_with(0, &[1, 2]).await;
        session.batch_execute("SELECT entente.approve(1)").await.expect("an approval");
    }
    network.wait_until_level_with(2, &[0]).await;
    let insert = format!("INSERT INTO people VALUES (1, '{CONTENT}', 0), (2, 'Bea', 0)");
    first.batch_execute(&insert).await.expect("inserts");
    value(first, "SELECT id FROM entente.transactions WHERE call LIKE 'INSERT INTO people%'").await
}

/// What cannot go is refused by name, and nothing is lost.
async fn refused(sessions: &[Client], id: &str) {
    let first = &sessions[0];
    let of = |id: &str| format!("SELECT entente.redact('{id}', 'a reason')");
    let (code, message) = error(first, &of(id)).await;
    assert_eq!(code, "55000", "{message}");
    assert!(message.contains("the newest certified checkpoint"), "{message}");
    let (code, message) = error(first, &of(&"0".repeat(64))).await;
    assert_eq!(code, "P0002", "{message}");
    let schema = value(first, "SELECT id FROM entente.transactions WHERE call LIKE 'CREATE TABLE%'").await;
    let (code, message) = error(first, &of(&schema)).await;
    assert_eq!(code, "55000", "{message}");
    assert!(message.contains("it changes schema or charter"), "{message}");
    let (code, message) = error(first, &of("4711")).await;
    assert_eq!((code.as_str(), message.contains("64 hexadecimal digits")), ("22023", true), "{message}");
    let call = format!("SELECT entente.redact('{id}', '')");
    assert_eq!(error(first, &call).await.0, "22023");
    assert_eq!(value(first, "SELECT max(number) FROM entente.proposals").await, "1", "nothing was proposed");
}

/// What is left of it on a node, once the node has carried it out.
async fn is_redacted(network: &TestNetwork, node: usize, id: &str, proposal: &str) {
    let session = network.session(node).await;
    let call = format!("SELECT call FROM entente.transactions WHERE id = '{id}'");
    wait_for(&session, &call, &format!("redacted by proposal {proposal}")).await;
    let shown = format!("SELECT outcome FROM entente.transactions WHERE id = '{id}'");
    assert_eq!(value(&session, &shown).await, "committed");
    let (code, message) = error(&session, &format!("SELECT entente.proof('{id}')")).await;
    assert_eq!(code, "55000", "{message}");
    assert!(message.contains(&format!("is redacted by proposal {proposal}")), "{message}");
    let (code, message) = error(&session, &format!("SELECT entente.redact('{id}', 'again')")).await;
    assert_eq!(code, "55000", "{message}");
    assert!(message.contains("redacted already"), "{message}");
    let folder = network.node_folder(node);
    for part in ["ledger", "history"] {
        assert_eq!(content_in(&folder.join(part)), None, "node {node}");
    }
    for path in ["receipts", "proofs/receipts"] {
        let url = format!("http://127.0.0.1:{}/v1/{path}/{id}", network.port_base + 200 + node as u16);
        let answer = reqwest::get(&url).await.expect("it answers");
        let text = answer.text().await.expect("a text");
        assert!(text.contains(&format!("is redacted by proposal {proposal}")), "{text}");
    }
}

fn verified(folder: &Path) {
    let folder = folder.to_str().expect("a plain name");
    let said = says(&["verify", folder]);
    assert!(said.contains("1 transactions up to height"), "{said}");
    let said = says(&["verify", "--replay", folder]);
    assert!(said.contains("the members have agreed to each"), "{said}");
    assert!(said.contains("blocks could not be executed again because of them"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_goes_by_consent_and_hash_and_place_stay() {
    let mut network = TestNetwork::create(|charter| charter.governance = "majority".to_string());
    network.start_all().await;
    let mut sessions = Vec::new();
    for node in 0..4 {
        sessions.push(network.session(node).await);
    }
    let id = filled(&network, &sessions).await;
    refused(&sessions, &id).await;
    let [first, second, third, _] = &sessions[..] else { panic!("four") };
    // What stands in rows is the business of ordinary statements.
    first.batch_execute("UPDATE people SET name = 'erased' WHERE id = 1").await.expect("updates");
    checkpoint(first).await;
    let proposal = propose(first, &id).await;
    let (_, message) = error(first, &format!("SELECT entente.redact('{id}', 'again')")).await;
    assert!(message.contains(&format!("proposal {proposal} is to redact transaction")), "{message}");
    network.wait_until_level_with(0, &[1, 2]).await;
    second.batch_execute(&format!("SELECT entente.approve({proposal})")).await.expect("an approval");
    assert!(content_in(&network.node_folder(0).join("ledger")).is_some(), "two of four are no majority");
    network.kill(3);
    network.wait_until_level_with(1, &[2]).await;
    third.batch_execute(&format!("SELECT entente.approve({proposal})")).await.expect("the last approval");
    network.kill(2);
    network.start(2);
    network.wait_for_height(2, 1).await;
    checkpoint(first).await;
    checkpoint(first).await;
    for node in 0..3 {
        is_redacted(&network, node, &id, &proposal).await;
    }
    // One that was away meanwhile has the block, and takes its content away once it knows.
    network.start(3);
    network.wait_for_height(3, 1).await;
    is_redacted(&network, 3, &id, &proposal).await;
    verified(&network.node_folder(0));
    come_back_and_join(&mut network, &id, &proposal).await;
}

/// Nodes start again, one begins with nothing, and all are verified.
async fn come_back_and_join(network: &mut TestNetwork, id: &str, proposal: &str) {
    // Ordering keeps the newest blocks whatever it is told, and 320 of those that it has voted for.
    let session = network.session(0).await;
    let height = network.client(0).status().await.expect("it answers").height;
    while network.client(0).status().await.expect("it answers").height < height + 340 {
        let update = "UPDATE people SET seen = seen + 1 WHERE id = 2";
        session.batch_execute(update).await.expect("updates");
    }
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    for node in 0..4 {
        network.kill(node);
        network.start(node);
        network.wait_for_height(node, height).await;
        is_redacted(network, node, id, proposal).await;
        assert_eq!(content_in(&network.node_folder(node).join("ordering")), None, "node {node}");
    }
    // Nobody has the block any more, so a node that has lost all but its votes joins from a checkpoint.
    network.kill(3);
    for folder in ["ledger", "checkpoints", "state", "history"] {
        std::fs::remove_dir_all(network.node_folder(3).join(folder)).expect("it was there");
    }
    network.start(3);
    network.wait_for_height(3, height).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let joined = network.node_folder(3);
    assert_eq!(content_in(&joined.join("ledger")), None);
    let said = says(&["verify", joined.to_str().expect("a plain name")]);
    assert!(said.contains("anchored in the certified checkpoint"), "{said}");
    verified(&network.node_folder(1));
    // Blocks alone do not say what the state was behind the redacted one.
    let copy = tempfile::tempdir().expect("a folder");
    let (ledger, beside) = (network.node_folder(1).join("ledger"), copy.path().join("ledger"));
    std::fs::create_dir(&beside).expect("new");
    for entry in std::fs::read_dir(ledger).expect("a folder") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, beside.join(path.file_name().expect("a file"))).expect("copies");
    }
    std::fs::copy(network.node_folder(1).join("charter.toml"), copy.path().join("charter.toml"))
        .expect("copies");
    let refused = refuses(&["verify", "--replay", copy.path().to_str().expect("a plain name")]);
    assert!(refused.contains("there is no certified checkpoint at or behind it"), "{refused}");
}
