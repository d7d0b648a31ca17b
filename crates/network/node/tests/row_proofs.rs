//! Rows are proved by what a quorum of nodes has attested at a checkpoint, to those who may read them.

mod network;

use client::Client;
use gateway::Database;
use network::{PATIENCE, TestNetwork};
use node::NodeOptions;
use proofs::RowProof;
use std::sync::Arc;
use std::time::Instant;
use types::{Charter, SqlError, SqlState};

const NOT_CERTIFIED: SqlState = SqlState(*b"55000");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_proved_at_checkpoints() {
    let mut network = TestNetwork::create(|charter| {
        charter.checkpoint_blocks = 1_000;
        // Amendments hold 14 blocks after they are decided.
        charter.outcome_lag_blocks = 4;
    });
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    for sql in [
        "CREATE TABLE accounts (id bigint, name text, n numeric(10, 2), PRIMARY KEY (name, id))",
        "CREATE TABLE keyless (n int)",
        "CREATE VIEW seen AS SELECT id FROM accounts",
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id int PRIMARY KEY, at date)",
        "CREATE ROLE reader LOGIN",
        "GRANT SELECT ON accounts TO reader",
        "INSERT INTO accounts SELECT number, 'O''Neil', number FROM generate_series(0, 999) AS number",
        "INSERT INTO sales.orders VALUES (1, '2024-02-29')",
    ] {
        network.run(&client, sql).await;
    }
    let database = network.nodes[1].as_ref().expect("it runs").database();
    let asked = Asked(database);
    let height = proved_at_the_first_checkpoint(&network, &client, &asked).await;
    refused_to_who_may_not_read_and_where_nothing_can_be_asked_for(&asked);
    granted_to_everybody(&network, &client, &asked, height).await;
    proved_under_amended_charters(&mut network, &client, &asked).await;
    network.stop_all();
}

/// A node that is asked for proofs.
struct Asked(Arc<dyn Database>);

impl Asked {
    fn proof(&self, role: &str, table: &str, key: &[&str]) -> Result<String, SqlError> {
        let key: Vec<String> = key.iter().map(|value| value.to_string()).collect();
        let path = ["public".to_string()];
        tokio::task::block_in_place(|| self.0.row_proof(role, table, &path, &key))
    }

    fn refused(&self, role: &str, table: &str, key: &[&str]) -> SqlError {
        self.proof(role, table, key).expect_err("refused")
    }
}

/// The values of a row that a good proof of this height proves; `None` where it proves that there is none.
fn proved(charter: &Charter, height: u64, text: &str) -> Option<Vec<String>> {
    let proof = RowProof::from_json(text).expect("a proof");
    assert_eq!(proof.certificate.statement.height, height);
    let found = proof.verify(charter).expect("a good one").is_some();
    let named = proof
        .named_values()
        .map(|values| values.into_iter().map(|(_, value)| value.unwrap_or_default()).collect::<Vec<_>>());
    assert_eq!(found, named.is_some());
    named
}

/// The checkpoint's height.
async fn proved_at_the_first_checkpoint(network: &TestNetwork, client: &Client, asked: &Asked) -> u64 {
    let error = asked.refused("", "accounts", &["O'Neil", "7"]);
    assert_eq!(error.state, NOT_CERTIFIED);
    assert!(error.hint.is_some_and(|hint| hint.contains("CHECKPOINT")));
    let receipt = network.run(client, "CHECKPOINT").await;
    let start = Instant::now();
    let first = loop {
        match asked.proof("", "accounts", &["O'Neil", "7"]) {
            Ok(proof) => break proof,
            Err(error) => assert!(error.state == NOT_CERTIFIED && start.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let proved = |text: &str| proved(&network.network.charter, receipt.height, text);
    assert_eq!(proved(&first), Some(vec!["7".to_string(), "O'Neil".to_string(), "7.00".to_string()]));
    for (table, key) in
        [("accounts", ["O'Neil", "1000"]), ("Accounts", ["", "0"]), ("public.accounts", ["zzz", "-1"])]
    {
        assert_eq!(proved(&asked.proof("reader", table, &key).expect("nothing is proved")), None, "{key:?}");
    }
    let order = asked.proof("", "Sales.orders", &["1"]).expect("a proof");
    assert_eq!(proved(&order), Some(vec!["1".to_string(), "2024-02-29".to_string()]));
    receipt.height
}

fn refused_to_who_may_not_read_and_where_nothing_can_be_asked_for(asked: &Asked) {
    for (role, table, key, state) in [
        ("reader", "sales.orders", &["1"][..], SqlState::INSUFFICIENT_PRIVILEGE),
        ("public", "accounts", &["a", "1"], SqlState::INSUFFICIENT_PRIVILEGE),
        ("", "nothing", &["1"], SqlState::UNDEFINED_TABLE),
        ("", "orders", &["1"], SqlState::UNDEFINED_TABLE),
        ("", "seen", &["1"], SqlState(*b"42809")),
        ("", "keyless", &["1"], SqlState(*b"42809")),
        ("", "accounts", &["1"], SqlState::INVALID_PARAMETER_VALUE),
        ("", "accounts", &["a", "b"], SqlState::INVALID_TEXT_REPRESENTATION),
    ] {
        let error = asked.refused(role, table, key);
        assert_eq!(error.state, state, "{role} {table} {key:?}: {error}");
    }
}

async fn granted_to_everybody(network: &TestNetwork, client: &Client, asked: &Asked, height: u64) {
    network.run(client, "GRANT SELECT ON accounts TO PUBLIC").await;
    network.run(client, "CREATE TABLE newer (id int PRIMARY KEY)").await;
    network.run(&network.client(1), "INSERT INTO newer VALUES (1)").await;
    let everybodys = asked.proof("public", "accounts", &["O'Neil", "8"]).expect("everybody may");
    let values = proved(&network.network.charter, height, &everybodys);
    assert_eq!(values.map(|values| values[0].clone()), Some("8".to_string()));
    let error = asked.refused("", "newer", &["1"]);
    assert!(error.state == NOT_CERTIFIED && error.message.contains("newer than"), "{error}");
}

/// With another node key: the founding charter is enough all the same.
async fn proved_under_amended_charters(network: &mut TestNetwork, client: &Client, asked: &Asked) {
    let replaced = network.replace_key(2, None);
    network.run(client, &replaced.statement).await;
    let height = network.status(0).await.height + 60;
    network.wait(0, "the amendment holds", |status| status.height >= height).await;
    network.stop(2);
    replaced.take();
    network.start(2, NodeOptions::default());
    let receipt = network.run(client, "CHECKPOINT").await;
    let start = Instant::now();
    let proof = loop {
        let text = asked.proof("", "newer", &["1"]).unwrap_or_default();
        match RowProof::from_json(&text).ok().filter(|one| one.certificate.statement.height == receipt.height)
        {
            Some(proof) => break proof,
            None => assert!(start.elapsed() < PATIENCE, "{text}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let charter = &network.network.charter;
    assert_eq!(proof.handovers.len(), 1);
    assert!(proof.verify(charter).expect("a good one").is_some());
    // The founding charter alone does not know the member's new key.
    let mut without = proof;
    without.handovers.clear();
    let signed_anew = without.certificate.signatures.iter().any(|(member, _)| *member == 2);
    let told = without.verify(charter);
    assert_eq!(matches!(told, Err(proofs::ProofError::Certificate(_))), signed_anew, "{told:?}");
    assert_eq!(told.is_ok(), !signed_anew, "{told:?}");
}
