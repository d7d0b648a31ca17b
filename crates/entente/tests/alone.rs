//! A ledger of one organisation, as somebody makes it who tries Entente out: founded by one command, killed, and there again.

mod support;

use support::{TestNetwork, free_port_base, refuses, says, text};

#[test]
fn several_cannot_order_alone_and_few_cannot_agree() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = folder.path().join("network");
    let refused = |more: &[&str]| refuses(&[&["init", "--dir", text(&place)], more].concat());
    assert!(
        refused(&["--ordering", "solo"])
            .contains("is for one organisation, found 4: choose bft, raft or kafka")
    );
    assert!(refused(&["--orgs", "3"]).contains("4"));
    assert!(refused(&["--orgs", "0"]).contains("1..=100"));
    assert!(refused(&["--orgs", "1", "--ordering", "raft"]).contains("raft"));
    assert!(refuses(&["demo", "--ordering", "solo"]).contains("one organisation"));
    assert!(!place.exists(), "nothing was written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_of_one_organisation_is_founded_by_one_command() {
    let (folder, base) = (tempfile::tempdir().expect("a temporary folder"), free_port_base());
    let ports = base.to_string();
    let more = ["--orgs", "1", "--governance", "any", "--port-base", &ports];
    says(&[&["init", "--dir", text(folder.path())], more.as_slice()].concat());
    let mut network = TestNetwork::of(folder, base);
    assert_eq!(network.network.charter.ordering, "solo");
    network.start_all().await;
    let client = network.session(0).await;
    client
        .batch_execute("CREATE TABLE notes (id integer PRIMARY KEY); INSERT INTO notes VALUES (1), (2)")
        .await
        .expect("done");
    network.kill(0);
    network.start(0);
    network.wait_for_height(0, 1).await;
    let client = network.session(0).await;
    let row = client.query_one("SELECT count(*) FROM notes", &[]).await.expect("a row");
    assert_eq!(row.get::<_, i64>(0), 2);
    network.interrupt(0);
    says(&["verify", text(&network.node_folder(0))]);
}

#[test]
fn output_that_nobody_reads_ends_the_program_without_a_word() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let command = std::process::Command::new(support::ENTENTE)
        .args(["status", "127.0.0.1:1"])
        .stdout(writer)
        .output()
        .expect("it starts");
    assert_eq!(command.status.code(), Some(141), "as shells say of what SIGPIPE ends");
    assert_eq!(String::from_utf8_lossy(&command.stderr), "");
}
