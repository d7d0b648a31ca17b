//! What happened in a schema with members, shown to outsiders with proof; and `entente verify` on folders of members and of others.
#![allow(missing_docs)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::{ENTENTE, TestNetwork, error, rows};
use tokio_postgres::Client;

/// What nobody may learn who is shown something else.
const HIDDEN: &str = "CANARY-hidden-5521";
const IDS: &str = "SELECT id FROM entente.transactions WHERE call LIKE 'PARTS deal%' ORDER BY height, index";

/// A schema of these with a table, two rows, a change of the first, and a transaction that fails.
async fn create_deal(network: &TestNetwork, members: &str) -> Client {
    let session = network.session(0).await;
    let statements = [
        &format!("CREATE SCHEMA deal MEMBERS ({members})"),
        "CREATE TABLE deal.trades (id int PRIMARY KEY, goods text, n bigint)",
        &format!("INSERT INTO deal.trades VALUES (1, 'copper', 10), (2, '{HIDDEN}', 20)"),
        "UPDATE deal.trades SET n = n + 5 WHERE id = 1",
    ];
    for statement in statements {
        session.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let twice = error(&session, "INSERT INTO deal.trades VALUES (1, 'again', 0)").await;
    assert_eq!(twice.0, "23505");
    session
}

/// What a query of a proof gives once it is certified.
async fn proof(session: &Client, query: &str) -> String {
    let start = Instant::now();
    loop {
        match session.query_one(query, &[]).await {
            Ok(found) => return found.get(0),
            Err(error) => {
                let code = error.code().map(|code| code.code().to_string());
                assert_eq!(code.as_deref(), Some("55000"), "{query}: {error:?}");
                assert!(start.elapsed() < Duration::from_secs(60), "{query}: {error:?}");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An outsider, who has the charter and nothing else.
struct Outsider {
    folder: tempfile::TempDir,
}

impl Outsider {
    fn new(network: &TestNetwork) -> Outsider {
        let folder = tempfile::tempdir().expect("a folder");
        let charter = network.node_folder(3).join("charter.toml");
        std::fs::copy(charter, folder.path().join("charter.toml")).expect("copied");
        Outsider { folder }
    }

    fn check(&self, kind: &str, proof: &str, more: &[&str]) -> Output {
        let (file, charter) =
            (self.folder.path().join("proof.json"), self.folder.path().join("charter.toml"));
        std::fs::write(&file, proof).expect("written");
        let mut command = Command::new(ENTENTE);
        command.args(["verify", kind]).arg(file).arg("--charter").arg(charter).args(more);
        command.output().expect("it starts")
    }

    /// What a good proof proves.
    fn read(&self, kind: &str, proof: &str, more: &[&str]) -> String {
        let output = self.check(kind, proof, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).to_string()
    }
}

fn in_schema(id: &str) -> String {
    format!("SELECT entente.proof('{id}', 'deal')")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_shows_a_receipt_and_a_row_to_an_outsider_and_nothing_else() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let first = create_deal(&network, "org1, org2").await;
    let outsider = Outsider::new(&network);
    let ids: Vec<String> = rows(&first, IDS).await.into_iter().map(|mut row| row.remove(0)).collect();
    assert_eq!(ids.len(), 4, "a definition, two changes and a mistake: {ids:?}");
    let changed = proof(&first, &in_schema(&ids[2])).await;
    let said = outsider.read("--receipt", &changed, &[]);
    assert!(said.contains("has committed: UPDATE 1, in schema deal, block "), "{said}");
    assert!(said.contains("attested by org1, org2"), "{said}");
    let failed = proof(&first, &in_schema(&ids[3])).await;
    let said = outsider.read("--receipt", &failed, &[]);
    assert!(said.contains("has aborted") && said.contains("duplicate key"), "{said}");
    // The other member shows the same.
    let second = network.session(1).await;
    let said = outsider.read("--receipt", &proof(&second, &in_schema(&ids[1])).await, &[]);
    assert!(said.contains("has committed: INSERT 0 2"), "{said}");
    let row = proof(&second, "SELECT entente.proof('deal.trades', 1)").await;
    let said = outsider.read("--row", &row, &["--key", "1"]);
    assert!(said.contains("n = 15") && said.contains("attested by org1, org2"), "{said}");
    let other = outsider.check("--row", &row, &["--key", "2"]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("another key"), "{other:?}");
    for shown in [&changed, &failed, &row] {
        let hidden = HIDDEN.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert!(!shown.contains(HIDDEN) && !shown.contains(&hidden), "{shown}");
    }
    let hidden = proof(&first, "SELECT entente.proof('deal.trades', 2)").await;
    assert!(outsider.read("--row", &hidden, &[]).contains(HIDDEN), "the search finds it where it is");
    first.batch_execute("DELETE FROM deal.trades WHERE id = 1").await.expect("deleted");
    let gone = proof(&first, "SELECT entente.proof('deal.trades', 1)").await;
    let said = outsider.read("--row", &gone, &["--key", "1"]);
    assert!(said.contains("was left without a row"), "{said}");
    // Whatever somebody changes is found.
    for at in (0..changed.len()).step_by(changed.len() / 25) {
        let mut bytes = changed.clone().into_bytes();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        let altered = String::from_utf8(bytes).expect("text");
        assert!(!outsider.check("--receipt", &altered, &[]).status.success(), "character {at}");
    }
    who_may_not_ask(&network, &ids[2]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// Others than administrators of members hear nothing.
async fn who_may_not_ask(network: &TestNetwork, id: &str) {
    let third = network.session(2).await;
    for query in [in_schema(id), "SELECT entente.proof('deal.trades', 1)".to_string()] {
        let (state, text) = error(&third, &query).await;
        assert!(state == "42501" && text.contains("no member of schema \"deal\""), "{query}: {state} {text}");
    }
    let first = network.session(0).await;
    for (query, expected) in [
        (in_schema(&"0".repeat(64)), "P0002"),
        ("SELECT entente.proof('deal.trades', 77)".to_string(), "P0002"),
        (format!("SELECT entente.proof('{id}', 'nothing')"), "42501"),
    ] {
        assert_eq!(error(&first, &query).await.0, expected, "{query}");
    }
    let http = network.port_base + 200;
    for path in ["deal.trades/1".to_string(), format!("{id}/deal")] {
        let asked =
            reqwest::get(format!("http://127.0.0.1:{http}/v1/proofs/rows/{path}")).await.expect("it answers");
        assert_eq!(asked.status().as_u16(), 403, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proofs_outlive_restarts_and_changes_of_members_and_idle_schemas_cost_nothing() {
    let mut network = TestNetwork::create(|charter| charter.block.idle_ms = 100);
    network.start_all().await;
    let first = create_deal(&network, "org1, org2, org3").await;
    let outsider = Outsider::new(&network);
    let ids: Vec<String> = rows(&first, IDS).await.into_iter().map(|mut row| row.remove(0)).collect();
    // Nobody asks for it, and it comes.
    let outcomes = "SELECT count(*) FROM entente.transactions WHERE call LIKE 'SCHEMA OUTCOMES%'";
    let count = async || rows(&first, outcomes).await[0][0].parse::<u64>().expect("a number");
    let start = Instant::now();
    while count().await == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no certificate has come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(0, height + 20).await;
    let settled = count().await;
    network.wait_for_height(0, height + 60).await;
    assert_eq!(count().await, settled, "nothing happens, so nothing is certified");

    first.batch_execute("ALTER SCHEMA deal ADD MEMBER org4").await.expect("by a member");
    first.batch_execute("UPDATE deal.trades SET n = 30 WHERE id = 2").await.expect("changed");
    let row = proof(&first, "SELECT entente.proof('deal.trades', 2)").await;
    assert!(outsider.read("--row", &row, &[]).contains("n = 30"));
    first.batch_execute("ALTER SCHEMA deal DROP MEMBER org2").await.expect("by a member");
    let left = network.session(1).await;
    let start = Instant::now();
    while error(&left, &in_schema(&ids[1])).await.0 != "42501" {
        assert!(start.elapsed() < Duration::from_secs(30), "it has left");
    }
    // Something stood in no certificate when the members changed: the new ones attest it.
    network.kill(0);
    network.start(0);
    network.wait_until_level_with(2, &[0, 3]).await;
    for node in [0, 3] {
        let session = network.session(node).await;
        let said = outsider.read("--receipt", &proof(&session, &in_schema(&ids[1])).await, &[]);
        assert!(said.contains("has committed: INSERT 0 2"), "{said}");
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

fn verify(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(ENTENTE).arg("verify").args(arguments).arg(folder).output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).to_string())
}

/// Where the records of a file of parts begin.
fn records(bytes: &[u8]) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(length) = bytes.get(at..at + 4) {
        starts.push(at);
        at += 12 + u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    }
    starts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_checks_what_a_folder_holds_of_schemas_and_says_what_it_cannot() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let first = create_deal(&network, "org1, org2").await;
    let ids: Vec<String> = rows(&first, IDS).await.into_iter().map(|mut row| row.remove(0)).collect();
    proof(&first, &in_schema(&ids[3])).await;
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(3, height + 2).await;
    let folders: Vec<PathBuf> = (0..4).map(|node| network.node_folder(node)).collect();
    for (node, folder) in folders.iter().enumerate() {
        network.kill(node);
        let (success, text) = verify(folder, &["--replay"]);
        assert!(success && text.contains("4 transactions have parts in schemas with members"), "{text}");
        assert!(text.contains(" certificates of what these came to are signed by quorums"), "{text}");
        match node {
            0 | 1 => {
                assert!(text.contains("4 parts of deal are those that their clients have signed"), "{text}");
                assert!(text.contains("schema deal was executed up to height "), "{text}");
                assert!(!text.contains(": 0 certificates say the same"), "{text}");
                assert!(!text.contains("not in the folder"), "{text}");
            }
            _ => assert!(
                text.contains("4 parts of schemas of which the folder has none could not be checked"),
                "{text}"
            ),
        }
    }
    let path = folders[0].join("schemas/parts.log");
    let whole = std::fs::read(&path).expect("readable");
    let starts = records(&whole);
    assert_eq!(starts.len(), 4);
    // A flipped byte.
    for (number, start) in starts.iter().enumerate() {
        let mut bytes = whole.clone();
        bytes[start + 40] ^= 1;
        std::fs::write(&path, bytes).expect("writable");
        for arguments in [&[][..], &["--replay"]] {
            let (success, text) = verify(&folders[0], arguments);
            assert!(!success && text.contains(&format!("parts.log, byte {start}: ")), "{text}");
            assert!(
                text.contains(&format!("the part of transaction {} in schema \"deal\"", ids[number])),
                "{text}"
            );
        }
    }
    // A part that is missing.
    let without = [&whole[..starts[2]], &whole[starts[3]..]].concat();
    std::fs::write(&path, without).expect("writable");
    let (success, text) = verify(&folders[0], &["--replay"]);
    assert!(success && text.contains("1 parts are not in the folder:"), "{text}");
    assert!(
        text.contains(&format!("what is behind could not be executed: the part of transaction {}", ids[2])),
        "{text}"
    );
    // A part that its client has not signed, in a record that is right.
    let mut other = whole.clone();
    let end = *starts.last().expect("some");
    let content = starts[2] + 12;
    let text = other[content..end].windows(5).position(|window| window == b"n + 5").expect("the statement");
    other[content + text + 4] = b'6';
    let checksum = crypto::sha256(&[&other[content..end]]);
    other[starts[2] + 4..content].copy_from_slice(&checksum.0[..8]);
    std::fs::write(&path, &other).expect("writable");
    let (success, text) = verify(&folders[0], &[]);
    assert!(!success && text.contains("is not the one that its client has committed to"), "{text}");
    std::fs::write(&path, &whole).expect("writable");
    assert!(verify(&folders[0], &["--replay"]).0);
}
