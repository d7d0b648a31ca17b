//! Rows that are loaded into a temporary table and merged into the ledger from there, on a network of real processes.

mod support;

use bytes::Bytes;
use futures::SinkExt;
use std::pin::pin;
use support::{TestNetwork, error, rows, wait_for_rows};
use tokio_postgres::Client;

const STOCK: &str = "\
    CREATE TABLE stock (id integer PRIMARY KEY, name text NOT NULL, amount bigint NOT NULL CHECK (amount >= 0));
    INSERT INTO stock SELECT g, 'old ' || g, 10 FROM generate_series(1, 1000) AS s (g)";

const MERGE: &str = "\
    INSERT INTO stock SELECT * FROM incoming ON CONFLICT (id) \
    DO UPDATE SET name = excluded.name, amount = stock.amount + excluded.amount";

async fn load(session: &Client, from: i32, count: i32) {
    let sink = session.copy_in::<_, Bytes>("COPY incoming FROM STDIN").await.expect("COPY begins");
    let mut sink = pin!(sink);
    let lines: String = (from..from + count).map(|id| format!("{id}\tnew {id}\t1\n")).collect();
    sink.send(Bytes::from(lines)).await.expect("sent");
    assert_eq!(sink.finish().await.expect("copied"), count as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_copied_into_a_temporary_table_is_merged_at_every_node() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (ada, bob) = (network.session(0).await, network.session(1).await);
    ada.batch_execute(STOCK).await.expect("a table");
    network.wait_until_level_with(0, &[1, 2, 3]).await;

    // In a block, as tools do it.
    bob.batch_execute("BEGIN; CREATE TEMP TABLE incoming (LIKE stock) ON COMMIT DROP")
        .await
        .expect("a table");
    load(&bob, 501, 1000).await;
    assert_eq!(bob.execute(MERGE, &[]).await.expect("merged"), 1000);
    let sums = "SELECT count(*), sum(stock.amount) FROM stock JOIN incoming USING (id)";
    assert_eq!(rows(&bob, sums).await, [["1000", "6000"]], "it sees what the block has written");
    let moved = "DELETE FROM stock USING incoming WHERE incoming.id = stock.id AND stock.id > $1";
    assert_eq!(bob.execute(moved, &[&1400_i32]).await.expect("deleted"), 100);
    bob.batch_execute("COMMIT").await.expect("nobody else writes");
    assert_eq!(error(&bob, "SELECT * FROM incoming").await.0, "42P01");
    let expected: &[&[&str]] = &[&["1400", "500"]];
    let found = "SELECT count(*), count(*) FILTER (WHERE name LIKE 'old%') FROM stock";
    for node in 0..4 {
        wait_for_rows(&network.session(node).await, found, expected).await;
    }

    // Alone, by several sessions at several nodes at once, on the same rows.
    let mut loading = Vec::new();
    for node in [0, 1, 2, 3, 0, 2] {
        let session = network.session(node).await;
        loading.push(tokio::spawn(async move {
            session.batch_execute("CREATE TEMP TABLE incoming (LIKE stock)").await.expect("a table");
            load(&session, 1, 50).await;
            for _ in 0..3 {
                assert_eq!(session.execute(MERGE, &[]).await.expect("nobody has to try again"), 50);
            }
            // With another statement in one string, prepared, and with what it returns.
            session
                .batch_execute(&format!("{MERGE}; DELETE FROM incoming WHERE id > 25"))
                .await
                .expect("both");
            let returned = format!("{MERGE} RETURNING stock.id, stock.amount > $1");
            let returned = session.query(&returned, &[&1_i64]).await.expect("rows");
            assert_eq!(returned.len(), 25);
            assert!(returned.iter().all(|row| row.get::<_, bool>(1)));
        }));
    }
    for one in loading {
        one.await.expect("no panic");
    }
    // Six sessions, with four rounds of all rows, and one of half of them.
    let amounts = "SELECT DISTINCT amount FROM stock WHERE id <= 50 AND id > 25 UNION ALL SELECT DISTINCT amount FROM stock WHERE id <= 25";
    wait_for_rows(&ada, amounts, &[&["34"], &["40"]]).await;

    // Mistakes are told, and leave the session as it was.
    bob.batch_execute("CREATE TEMP TABLE incoming AS SELECT 1 AS id, 'x' AS name, -100 AS amount")
        .await
        .expect("its own");
    assert_eq!(error(&bob, MERGE).await.0, "23514");
    assert_eq!(
        error(&bob, "UPDATE stock SET name = NULL FROM incoming WHERE stock.id = incoming.id").await.0,
        "23502"
    );
    assert_eq!(rows(&bob, "SELECT count(*) FROM incoming").await, [["1"]]);
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// As migrations and clean-ups do it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_block_has_put_aside_from_the_ledger_decides_what_it_changes() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (ada, bob, late) = (network.session(0).await, network.session(1).await, network.session(3).await);
    ada.batch_execute(STOCK).await.expect("a table");
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    bob.batch_execute("BEGIN; CREATE TEMP TABLE old ON COMMIT DROP AS SELECT id FROM stock WHERE id > 600")
        .await
        .expect("filled");
    assert_eq!(
        bob.execute("DELETE FROM stock USING old WHERE old.id = stock.id", &[]).await.expect("deleted"),
        400
    );
    bob.batch_execute("COMMIT").await.expect("nobody has changed what it has read");
    bob.batch_execute("BEGIN; CREATE TEMP TABLE old ON COMMIT DROP AS SELECT id FROM stock WHERE id < 3")
        .await
        .expect("filled");
    assert_eq!(
        bob.execute("DELETE FROM stock USING old WHERE old.id = stock.id", &[]).await.expect("deleted"),
        2
    );
    late.batch_execute("INSERT INTO stock VALUES (0, 'late', 0)").await.expect("at another node");
    assert_eq!(error(&bob, "COMMIT").await.0, "40001", "it has read what is not all any more");
    wait_for_rows(&ada, "SELECT count(*) FROM stock", &[&["601"]]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
