//! psql loads what pg_dump 15 has written into a network of four organisations.

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::TestNetwork;

/// Runs psql against the first node.
fn psql(network: &TestNetwork, arguments: &[&str]) -> Output {
    let mut command = Command::new("psql");
    command
        .args(["-h", "127.0.0.1", "-U", "org1", "-p", &(network.port_base + 100).to_string()])
        .args(arguments)
        .env("PGCONNECT_TIMEOUT", "10")
        .env("PGDATABASE", "entente")
        .env("LC_ALL", "C.UTF-8");
    tokio::task::block_in_place(|| command.output()).expect("psql runs")
}

fn printed(output: &Output) -> String {
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{}\n{out}\n{errors}", output.status);
    out
}

/// What a query gives, without a header.
fn query(network: &TestNetwork, sql: &str) -> String {
    let output = psql(network, &["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    printed(&output).trim_end().to_string()
}

async fn load(dump: &str) {
    if !test_machine::required("psql") {
        return;
    }
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps").join(dump);
    let path = path.to_str().expect("a path in UTF-8");
    printed(&psql(&network, &["-X", "-q", "-c", "CREATE ROLE keeper"]));
    printed(&psql(&network, &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path]));
    let cases = [
        (
            "SELECT id, name, price, tags FROM item ORDER BY id",
            "1|pen|1.50|{a,b}\n2|ink|12.00|\n3|tab\tback\\slash|0.00|{}",
        ),
        ("SELECT id, line, note FROM orders ORDER BY id, line", "1|1|FIRST\n1|2|\n2|1|TWO\nLINES"),
        ("SELECT at, data FROM log ORDER BY at", "2026-02-03|\\xdeadbeef\n|"),
        ("SELECT * FROM totals ORDER BY customer", "100|16.50\n110|7.50"),
        ("SELECT who, owes FROM kept ORDER BY who", "100|16.50\n110|7.50"),
        ("SELECT who FROM above", "100"),
        ("SELECT total_of(100), add(2, 3)", "16.50|5"),
        ("INSERT INTO item (name) VALUES ('new') RETURNING id, price", "4|0.00"),
        ("INSERT INTO customer (email) VALUES ('new@b.c') RETURNING id", "120"),
        ("SELECT nextval('tickets')", "15"),
        ("UPDATE item SET id = 50 WHERE id = 1; SELECT DISTINCT item FROM orders ORDER BY item", "2\n50"),
        ("DELETE FROM customer WHERE id = 100; SELECT count(*) FROM orders", "1"),
        ("CALL rename_item(50, 'renamed'); SELECT name FROM item WHERE id = 50", "renamed"),
    ];
    for (sql, expected) in cases {
        assert_eq!(query(&network, sql), expected, "{sql}");
    }
    let refused = psql(&network, &["-X", "-q", "-c", "INSERT INTO orders VALUES (3, 1, 999, 1)"]);
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("violates foreign key constraint \"orders_customer_fkey\""), "{refused}");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_is_loaded() {
    load("shop.sql").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_of_inserts_is_loaded() {
    load("shop_inserts.sql").await;
}
