//! Ten thousand rows in one transaction and values of a mebibyte, on a network of real processes that restarts and goes on.

mod support;

use bytes::Bytes;
use futures::SinkExt;
use std::pin::pin;
use support::TestNetwork;
use tokio_postgres::Client;

const ROWS: i32 = 10_000;

fn code(error: &tokio_postgres::Error) -> (String, String) {
    let error = error.as_db_error().expect("from the server");
    (error.code().code().to_string(), error.message().to_string())
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
}

/// All rows one by one, as drivers send what is called `executemany`.
async fn insert_one_by_one(client: &mut Client) {
    let block = client.transaction().await.expect("BEGIN");
    let insert = block
        .prepare("INSERT INTO orders (id, customer, cents) VALUES ($1, $2, $3)")
        .await
        .expect("prepared");
    for number in 0..ROWS {
        let customer = format!("customer {}", number % 97);
        block.execute(&insert, &[&number, &customer, &i64::from(number)]).await.expect("a row");
    }
    block.commit().await.expect("10,000 rows");
}

async fn copy_in_a_block(client: &mut Client) {
    let block = client.transaction().await.expect("BEGIN");
    let mut sink = pin!(block.copy_in("COPY orders (id, customer, cents) FROM STDIN").await.expect("begun"));
    for number in ROWS..2 * ROWS {
        let line = format!("{number}\tcustomer {}\t{}\n", number.wrapping_mul(7919) % 9_973, number);
        sink.as_mut().send(Bytes::from(line)).await.expect("sent");
    }
    assert_eq!(sink.as_mut().finish().await.expect("copied"), ROWS as u64);
    block.commit().await.expect("10,000 more");
}

fn page() -> Vec<u8> {
    (0..1024 * 1024).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A page of a mebibyte, a text, and a document that an UPDATE makes: the other node shows them.
async fn write_long_values(ada: &Client, bob: &Client, page: &[u8]) {
    let said = "é".repeat(400_000);
    ada.execute("INSERT INTO scans (id, page) VALUES (1, $1)", &[&page]).await.expect("a page");
    ada.execute("INSERT INTO scans (id, said) VALUES (2, $1)", &[&said]).await.expect("a text");
    ada.batch_execute(
        "UPDATE scans SET document = jsonb_build_object('pages', repeat('p', 1000000)) WHERE id = 1",
    )
    .await
    .expect("a document");
    let height: String = ada.query_one("SHOW entente.last_height", &[]).await.expect("it is known").get(0);
    bob.batch_execute(&format!("SET entente.min_height = {height}")).await.expect("set");
    let row = bob.query_one("SELECT page FROM scans WHERE id = 1", &[]).await.expect("it is there");
    assert!(row.get::<_, Vec<u8>>(0) == page);
    let row =
        bob.query_one("SELECT said, md5(said) FROM scans WHERE id = 2", &[]).await.expect("it is there");
    assert!(row.get::<_, String>(0) == said);
    assert_eq!(
        count(bob, "SELECT length(document->>'pages')::bigint FROM scans WHERE id = 1").await,
        1_000_000
    );
}

/// With the limit that it exceeds; the session goes on.
async fn refuse_what_is_too_long(ada: &Client, page: &[u8], three: &str) {
    let longer = [page, &[1]].concat();
    let error = ada
        .execute("INSERT INTO scans (id, page) VALUES (3, $1)", &[&longer])
        .await
        .expect_err("a byte too many");
    let expected = "the limit is 1048576 (TEXT_BYTES_MAX)";
    assert!(code(&error).0 == "54000" && code(&error).1.contains(expected), "{error:?}");
    let two = "INSERT INTO scans (id, page, said) VALUES (3, $1, $2)";
    let (long, text) = (&page[..1_000_000].to_vec(), "t".repeat(1_000_000));
    ada.execute(two, &[long, &text]).await.expect("just below two mebibytes");
    let error = ada.execute(three, &[long, long, long]).await.expect_err("three megabytes");
    let expected = "the limit is 2097152 (block.transaction_bytes_max of the charter)";
    assert!(code(&error).0 == "54000" && code(&error).1.contains(expected), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_rows_are_one_transaction_and_values_have_a_mebibyte() {
    let mut network = TestNetwork::create(|charter| charter.outcome_lag_blocks = 10);
    // Two of them have their tables on the disk.
    for node in [2, 3] {
        let settings = network.node_folder(node).join("node.toml");
        let text = std::fs::read_to_string(&settings).expect("settings");
        std::fs::write(settings, format!("store = \"disk\"\n{text}")).expect("written");
    }
    network.start_all().await;
    let (mut ada, bob) = (network.session(0).await, network.session(2).await);
    ada.batch_execute(
        "CREATE TABLE orders (id integer PRIMARY KEY, customer text, cents bigint);
         CREATE TABLE scans (id integer PRIMARY KEY, page bytea, said text, document jsonb)",
    )
    .await
    .expect("created");
    insert_one_by_one(&mut ada).await;
    copy_in_a_block(&mut ada).await;
    assert_eq!(count(&ada, "SELECT count(*) FROM orders").await, i64::from(2 * ROWS));

    let page = page();
    write_long_values(&ada, &bob, &page).await;
    let long = &page[..1_000_000].to_vec();
    let three = "INSERT INTO scans (id, page) VALUES (4, $1), (5, $2), (6, $3)";
    refuse_what_is_too_long(&ada, &page, three).await;

    // Members may agree to more.
    ada.batch_execute("SELECT entente.set_charter('block.transaction_bytes_max', '4000000')")
        .await
        .expect("decided");
    let mut tries = 0;
    while let Err(error) = ada.execute(three, &[long, long, long]).await {
        assert!(tries < 200 && code(&error).0 == "54000", "{error:?}");
        ada.batch_execute("INSERT INTO orders VALUES (-1, '', 0) ON CONFLICT DO NOTHING")
            .await
            .expect("a block");
        tries += 1;
    }
    assert_eq!(pages_of(&ada).await, [1, 3, 4, 5, 6]);

    ada.batch_execute("CHECKPOINT").await.expect("a checkpoint");
    network.kill(3);
    network.start(3);
    let height: u64 = {
        let row = ada.query_one("SHOW entente.last_height", &[]).await.expect("it is known");
        row.get::<_, String>(0).parse().expect("a number")
    };
    for node in 0..4 {
        network.wait_for_height(node, height).await;
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

async fn pages_of(client: &Client) -> Vec<i32> {
    let rows =
        client.query("SELECT id FROM scans WHERE page IS NOT NULL ORDER BY id", &[]).await.expect("read");
    rows.iter().map(|row| row.get(0)).collect()
}
