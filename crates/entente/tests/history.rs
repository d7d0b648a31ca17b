//! What became of rows, on a network of real processes: `entente.history`, AS OF HEIGHT, COPY TO STDOUT and cursors; the same on
//! every node, after `kill -9` too.

mod support;

use futures::StreamExt;
use support::TestNetwork;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The rows of a query, their values with a space between.
async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL").to_string());
            Some(values.collect::<Vec<_>>().join(" "))
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

async fn run(client: &Client, sql: &str) -> u64 {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let height = rows(client, "SHOW entente.last_height").await;
    height[0].parse().unwrap_or(0)
}

fn code(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.code().code().to_string())
}

const CHANGES: &str =
    "SELECT organisation, role, operation, id, owner, balance FROM entente.history('accounts', 7)";

/// Of each transaction that changed the row: who signed it, what it did, what the row was then.
async fn each_change_is_told(ada: &Client) {
    let changes = rows(ada, CHANGES).await;
    let without_signer: Vec<&str> =
        changes.iter().map(|row| row.split_once("  ").map_or(row.as_str(), |(_, change)| change)).collect();
    assert_eq!(
        without_signer,
        [
            "INSERT 7 ann 10",
            "UPDATE 7 ann 22",
            "UPDATE 7 ann 122",
            "UPDATE 7 ann 222",
            "DELETE 7 NULL NULL",
            "INSERT 7 cid 1"
        ],
        "{changes:?}"
    );
    let organisations: Vec<&str> = changes.iter().filter_map(|row| row.split(' ').next()).collect();
    assert_eq!((organisations[0], organisations[1], organisations[5]), ("org1", "org1", "org1"));
    let mut added = organisations[2..4].to_vec();
    added.sort_unstable();
    assert_eq!(added, ["org1", "org3"]);
}

/// The transactions are those of the ledger, and it asks for the table's privileges.
async fn is_a_relation(ada: &Client, inserted: u64, last: u64) {
    let joined =
        "SELECT h.n, h.height FROM (SELECT 1 AS a, 'x' AS b) k, LATERAL entente.history('pairs', k.a, k.b) h";
    assert_eq!(rows(ada, joined).await, [format!("5 {last}")]);
    let id =
        rows(ada, "SELECT transaction FROM entente.history('accounts', 7) ORDER BY height LIMIT 1").await;
    let found = rows(ada, &format!("SELECT height FROM entente.transactions WHERE id = '{}'", id[0])).await;
    assert_eq!(found, [inserted.to_string()]);
    for (sql, expected) in [
        ("SELECT * FROM entente.history('nothing', 7)", "42P01"),
        ("SELECT * FROM entente.history('pairs', 7)", "42883"),
        ("SELECT * FROM entente.history('accounts', 'x')", "22P02"),
        ("INSERT INTO accounts SELECT 9, 'x', balance FROM entente.history('accounts', 7)", "0A000"),
        ("CREATE VIEW v AS SELECT height FROM entente.history('accounts', 7)", "0A000"),
    ] {
        let error = ada.batch_execute(sql).await.expect_err(sql);
        assert_eq!(code(&error), expected, "{sql}");
    }
}

/// The rows at a height, joined with those of now, in blocks that read.
async fn is_read_as_it_was(ada: &Client, inserted: u64) {
    let past = format!("SELECT id, balance FROM accounts AS OF HEIGHT {inserted} ORDER BY id");
    assert_eq!(rows(ada, &past).await, ["7 10", "8 20"]);
    let difference = format!(
        "SELECT now.id, now.balance - was.balance FROM accounts now JOIN accounts AS OF HEIGHT {inserted} was USING (id) ORDER BY 1"
    );
    assert_eq!(rows(ada, &difference).await, ["7 -9", "8 -20"]);
    ada.batch_execute("BEGIN READ ONLY").await.expect("a block");
    assert_eq!(rows(ada, &past).await, ["7 10", "8 20"]);
    ada.batch_execute("COMMIT; BEGIN").await.expect("another block");
    let error = ada.batch_execute(&past).await.expect_err("other nodes may not keep it");
    assert_eq!(code(&error), "0A000");
    ada.batch_execute("ROLLBACK").await.expect("rolled back");
    let error = ada.batch_execute("SELECT 1 FROM accounts AS OF HEIGHT 1000000").await.expect_err("not yet");
    assert!(
        error.as_db_error().is_some_and(|error| error.message().contains("this node keeps heights")),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_have_a_history_that_is_the_same_everywhere_and_survives() {
    let mut network = TestNetwork::create(|_| ());
    for node in 0..4 {
        // Idle blocks are heights too.
        let path = network.node_folder(node).join("node.toml");
        let config = std::fs::read_to_string(&path).expect("a configuration");
        std::fs::write(&path, format!("history_heights = 1000\n{config}")).expect("written");
    }
    network.start_all().await;
    let (ada, bob) = (network.session(0).await, network.session(2).await);
    run(&ada, "CREATE TABLE accounts (id bigint PRIMARY KEY, owner text, balance int); CREATE TABLE pairs (a int, b text, n int, PRIMARY KEY (a, b))").await;
    run(&ada, "CREATE ROLE clerk; GRANT SELECT ON pairs TO clerk").await;
    let inserted = run(&ada, "INSERT INTO accounts VALUES (7, 'ann', 10), (8, 'bob', 20)").await;
    // Two statements of one transaction are one change.
    run(&ada, "UPDATE accounts SET balance = balance + 1 WHERE id = 7; UPDATE accounts SET balance = balance * 2 WHERE id = 7").await;
    run(&bob, &format!("SET entente.min_height = {inserted}")).await;
    run(&bob, "UPDATE accounts SET balance = 0 WHERE id = 8").await;
    // Of several in one block each has its row; a block that fails has none.
    let both = tokio::join!(
        ada.batch_execute("UPDATE accounts SET balance = balance + 100 WHERE id = 7"),
        bob.batch_execute("UPDATE accounts SET balance = balance + 100 WHERE id = 7"),
    );
    both.0.expect("added");
    both.1.expect("added");
    ada.batch_execute("INSERT INTO accounts VALUES (7, 'x', 0)").await.expect_err("it exists");
    run(&ada, "BEGIN; UPDATE accounts SET owner = 'nobody' WHERE id = 7; ROLLBACK").await;
    run(&ada, "DELETE FROM accounts WHERE id = 7").await;
    let last =
        run(&ada, "INSERT INTO accounts VALUES (7, 'cid', 1); INSERT INTO pairs VALUES (1, 'x', 5)").await;

    each_change_is_told(&ada).await;
    is_a_relation(&ada, inserted, last).await;
    is_read_as_it_was(&ada, inserted).await;

    // Another node says the same, before and after it was killed; it has replayed blocks and kept nothing twice.
    run(&bob, &format!("SET entente.min_height = {last}")).await;
    let all = "SELECT * FROM entente.history('accounts', 7)";
    let expected = rows(&ada, all).await;
    assert_eq!(rows(&bob, all).await, expected);
    network.kill(2);
    network.start(2);
    network.wait_for_height(2, last).await;
    let bob = network.session(2).await;
    assert_eq!(rows(&bob, all).await, expected);
    let again = run(&bob, "UPDATE accounts SET balance = 2 WHERE id = 7").await;
    let after = rows(&bob, all).await;
    assert_eq!(after[..expected.len()], expected);
    assert_eq!(after.len(), expected.len() + 1);
    assert!(after[expected.len()].starts_with(&format!("{again} ")), "{after:?}");
    run(&ada, &format!("SET entente.min_height = {again}")).await;
    assert_eq!(rows(&ada, all).await, after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_copied_out_and_cursors_are_held_against_what_they_gave() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (ada, mut bob) = (network.session(0).await, network.session(2).await);
    run(&ada, "CREATE TABLE t (id int PRIMARY KEY, \"Text\" text); CREATE VIEW v AS SELECT id FROM t").await;
    run(&ada, "CREATE ROLE clerk LOGIN").await;
    let height = run(&ada, "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 9000) i").await;
    run(&bob, &format!("SET entente.min_height = {height}")).await;
    let copied = async |client: &Client, sql: &str| {
        let mut stream =
            Box::pin(client.copy_out(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")));
        let mut text = String::new();
        while let Some(part) = stream.next().await {
            text.push_str(std::str::from_utf8(&part.expect("a row")).expect("text"));
        }
        text
    };
    let all = copied(&bob, "COPY t TO STDOUT").await;
    assert_eq!((all.lines().count(), all.lines().nth(8999)), (9000, Some("9000\trow 9000")));
    let some = copied(
        &bob,
        "COPY (SELECT \"Text\", id FROM t WHERE id <= 4 LIMIT 2 OFFSET 1) TO STDOUT (FORMAT csv, HEADER)",
    )
    .await;
    assert_eq!(some, "Text,id\nrow 2,2\nrow 3,3\n");
    assert_eq!(
        copied(&bob, "COPY (SELECT id FROM t ORDER BY id DESC LIMIT 2) TO STDOUT").await,
        "9000\n8999\n"
    );
    assert_eq!(
        copied(&bob, "COPY (UPDATE t SET \"Text\" = 'x' WHERE id = 5 RETURNING id, \"Text\") TO STDOUT")
            .await,
        "5\tx\n"
    );
    // In a block it sees the block's writes, and temporary tables.
    bob.batch_execute("BEGIN; INSERT INTO t VALUES (0, 'mine')").await.expect("inserted");
    assert!(copied(&bob, "COPY t (\"Text\") TO STDOUT").await.starts_with("mine\nrow 1\n"));
    for sql in ["ROLLBACK", "CREATE TEMPORARY TABLE own (a int, b text)", "INSERT INTO own VALUES (1, NULL)"]
    {
        bob.batch_execute(sql).await.expect(sql);
    }
    assert_eq!(copied(&bob, "COPY own TO STDOUT").await, "1\t\\N\n");
    let refused = async |sql: &str| code(&bob.copy_out(sql).await.err().expect(sql));
    assert_eq!(refused("COPY v TO STDOUT").await, "42809");

    // A cursor's rows are in the digest of its block.
    let reader = bob.transaction().await.expect("BEGIN");
    reader
        .batch_execute("DECLARE c CURSOR FOR SELECT id, \"Text\" FROM t WHERE id < 4")
        .await
        .expect("declared");
    let row = reader.query_one("FETCH 1 FROM c", &[]).await.expect("fetched");
    assert_eq!(row.get::<_, i32>(0), 1);
    reader.execute("INSERT INTO t VALUES (-1, 'seen')", &[]).await.expect("inserted");
    run(&ada, "UPDATE t SET \"Text\" = 'other' WHERE id = 3").await;
    let error = reader.commit().await.expect_err("another row than the cursor had");
    assert_eq!(code(&error), "40001");
}
