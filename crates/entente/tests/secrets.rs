//! Secrets stay where they belong: a node that logs all it can, and everything that the nodes store, show neither passwords
//! nor keys. Nothing has a password that nobody chose.

mod support;

use std::path::{Path, PathBuf};
use support::TestNetwork;
use tokio_postgres::NoTls;

/// Files that hold secrets, readable by their owner only.
const KEPT: [&str; 4] = ["node.key", "root.key", "client.key", "tls.key"];
/// Verifiers of passwords, from which nobody gets the passwords back.
const PASSWORDS: &str = "passwords";

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name")
}

/// Bytes as characters, one for each: text is searched quickly.
fn characters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_logs_nor_other_files_show_secrets() {
    const CHOSEN: [&str; 4] =
        ["Kq7-first-choice", "Kq7-second-choice", "Kq7-slip-of-a-pen", "Kq7-in-a-block"];
    let mut network = TestNetwork::create(|_| ());
    for folder in network.network.folders.clone() {
        let made = files(&folder);
        assert!(!made.iter().any(|path| name(path) == PASSWORDS), "a password that nobody chose");
        for secret in made.iter().filter(|path| KEPT.contains(&name(path))) {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = secret.metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} is for its owner only", secret.display());
        }
    }

    (0..4).for_each(|node| network.start_with(node, &[("RUST_LOG", Path::new("trace"))]));
    for node in 0..4 {
        network.wait_for_height(node, 1).await;
    }
    let session = network.session(0).await;
    let [first, second, slip, in_block] = CHOSEN;
    session.batch_execute(&format!("CREATE ROLE ada LOGIN PASSWORD '{first}'")).await.expect("created");
    session.batch_execute(&format!("ALTER ROLE ada PASSWORD '{second}'")).await.expect("altered");
    session
        .batch_execute(&format!("ALTER ROLE nobody PASSWORD '{slip}'"))
        .await
        .expect_err("there is no such role");
    let block = format!("BEGIN; CREATE ROLE bob LOGIN PASSWORD '{in_block}'; COMMIT");
    // Whether that is allowed or not.
    let _ = session.batch_execute(&block).await;
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(network.port_base + 100).user("ada").password(second).dbname("entente");
    let (ada, connection) = config.connect(NoTls).await.expect("the node answers");
    tokio::spawn(connection);
    ada.batch_execute("SELECT 1").await.expect("a query");
    let height = network.client(0).status().await.expect("it answers").height;
    network.wait_for_height(3, height).await;
    (0..4).for_each(|node| network.kill(node));

    let everything = files(network.folder());
    let mut secrets: Vec<(String, Vec<u8>)> = CHOSEN
        .iter()
        .map(|password| (format!("the password {password}"), password.as_bytes().to_vec()))
        .collect();
    for path in everything.iter().filter(|path| KEPT.contains(&name(path))) {
        let text = std::fs::read_to_string(path).expect("a file of text");
        // Of a file of lines the longest says enough.
        let line = text.lines().map(str::trim).max_by_key(|line| line.len()).expect("a line").to_string();
        assert!(line.len() >= 32, "{}", path.display());
        if let Ok(key) = crypto::SecretKey::from_hex(&line) {
            secrets.push((format!("the key of {}", path.display()), key.to_bytes().to_vec()));
        }
        secrets.push((path.display().to_string(), line.into_bytes()));
    }
    assert!(secrets.len() > 4 * 4, "{} secrets", secrets.len());
    let mut logged = 0;
    for path in everything.iter().filter(|path| !KEPT.contains(&name(path))) {
        let content = characters(&std::fs::read(path).expect("it can be read"));
        for (what, secret) in &secrets {
            let shown = content.find(&characters(secret));
            let around = shown.map(|at| content[..at].chars().rev().take(300).collect::<Vec<char>>());
            let around = around.map(|before| before.into_iter().rev().collect::<String>());
            assert!(
                around.is_none(),
                "{} shows {what} after {:?}",
                path.display(),
                around.unwrap_or_default()
            );
        }
        if name(path) == "node.log" {
            logged += content.len();
        }
    }
    assert!(logged > 100_000, "the nodes log much: {logged} bytes");
}
