//! A network of real processes goes over to the next execution version while clients write: `docs/execution-versions.md`.
#![allow(missing_docs)]

mod support;

use std::process::Command;
use support::load::Load;
use support::{ENTENTE, TestNetwork};

/// The execution version of a node's next block, and the newest that its program knows.
async fn versions(network: &TestNetwork, node: usize) -> (u64, u64) {
    let url = format!("http://127.0.0.1:{}/status", network.port_base + 200 + node as u16);
    let text = reqwest::get(&url).await.expect("answered").text().await.expect("text");
    let status: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |name: &str| status[name].as_u64().unwrap_or_else(|| panic!("{name}: {status}"));
    (number("execution_version"), number("execution_version_known"))
}

/// The amendment is decided, and holds.
async fn goes_over_to(network: &TestNetwork, governor: &tokio_postgres::Client, version: u32) {
    let amendment = format!("SELECT entente.set_charter('execution_version', '{version}')");
    governor.batch_execute(&amendment).await.expect("the next one");
    let height = network.client(1).status().await.expect("it answers").height;
    network.wait_for_height(1, height + 25).await;
}

/// The one in which what moves between schemas is compared: also in a schema that is older.
async fn goes_over_to_version_6(network: &TestNetwork, governor: &tokio_postgres::Client) {
    goes_over_to(network, governor, 6).await;
    for statement in [
        "CREATE SCHEMA other MEMBERS (org1, org2)",
        "CREATE TABLE other.t (id int PRIMARY KEY)",
        "CREATE PROCEDURE deal.go(n int) LANGUAGE plpgsql AS $$ BEGIN
             DELETE FROM deal.t WHERE id = n; PERFORM entente.hand_over('other', n); END $$",
        "CREATE PROCEDURE other.come(n int) LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO other.t VALUES (n); PERFORM entente.take_over('deal', n); END $$",
    ] {
        governor.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let wrong =
        governor.batch_execute("CALL deal.go(1); CALL other.come(2)").await.expect_err("not the same");
    assert_eq!(wrong.code().map(|code| code.code()), Some("23000"), "{wrong:?}");
    governor.batch_execute("CALL deal.go(1); CALL other.come(1)").await.expect("the same");
}

/// The one with the types and functions that applications bring: also in a schema that is older.
async fn goes_over_to_version_7(network: &TestNetwork, governor: &tokio_postgres::Client) {
    goes_over_to(network, governor, 7).await;
    for statement in [
        "CREATE TYPE status AS ENUM ('new', 'paid')",
        "CREATE TABLE orders (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), state status DEFAULT 'new', data jsonb,
             size int GENERATED ALWAYS AS (length(data::text)) STORED)",
        "INSERT INTO orders (data) VALUES ('{\"a\": 1}'), (to_jsonb(random() < 2))",
        "BEGIN",
        "INSERT INTO orders (data) SELECT '[]' FROM generate_series(1, 3)",
        "UPDATE orders SET state = 'paid' WHERE random() < 2",
        "COMMIT",
        "CREATE TYPE deal.kind AS ENUM ('one', 'other')",
        "CREATE TABLE deal.kinds (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), kind deal.kind, data jsonb)",
        "INSERT INTO deal.kinds (kind, data) VALUES ('other', '{\"b\": [1, 2]}'), ('one', 'null')",
    ] {
        governor.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let rows = "SELECT count(DISTINCT id), bool_and(state = 'paid') FROM orders";
    let row = governor.query_one(rows, &[]).await.expect("a row");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (5, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_goes_over_to_the_next_version_while_clients_write() {
    let mut network = TestNetwork::create(|charter| {
        charter.found_with_version(2);
        // Changes take effect 20 blocks after they are decided.
        charter.outcome_lag_blocks = 10;
        charter.block.idle_ms = 100;
        charter.checkpoint_blocks = 20;
    });
    network.start_all().await;
    let load = Load::start(&network).await;
    load.wait_for(200, "version 2").await;
    assert_eq!(versions(&network, 0).await, (2, 16));
    let governor = network.session(1).await;
    let switch = "SELECT entente.set_charter('execution_version', '3')";
    let switched = governor.simple_query(switch).await;
    switched.expect("the next one");
    let height = network.client(1).status().await.expect("it answers").height;
    // One is away when it happens.
    network.kill(2);
    network.wait_for_height(0, height + 25).await;
    load.wait_for(200, "version 3").await;
    network.start(2);
    let wait = network.wait_for_height(2, height + 25);
    wait.await;
    // One comes in behind it.
    let (fifth, add) = network.newcomer("emma");
    network.start(fifth);
    governor.simple_query(&add).await.expect("a good acceptance");
    let height = network.client(1).status().await.expect("it answers").height;
    network.wait_for_height(fifth, height).await;
    load.wait_for(100, "five nodes").await;
    // One executes again what it has.
    network.kill(3);
    for folder in ["checkpoints", "history"] {
        std::fs::remove_dir_all(network.node_folder(3).join(folder)).expect("it was there");
    }
    network.start(3);
    network.wait_for_height(3, height).await;
    network.assert_agreement(&[0, 1, 2, 3, fifth]).await;
    for node in [0, 1, 2, 3, fifth] {
        assert_eq!(versions(&network, node).await, (3, 16), "node {node}");
    }
    // And to the one behind it, in which schemas may have members.
    let create = "CREATE SCHEMA deal MEMBERS (org1, org2)";
    let error = governor.batch_execute(create).await.expect_err("not yet");
    assert_eq!(error.code().map(|code| code.code()), Some("42601"), "{error:?}");
    goes_over_to(&network, &governor, 4).await;
    governor.batch_execute(create).await.expect("version 4");
    governor.batch_execute("CREATE TABLE deal.t (id int PRIMARY KEY)").await.expect("at both members");
    // To the one in which members say otherwise that they hold parts.
    governor
        .batch_execute("SELECT entente.set_charter('execution_version', '5')")
        .await
        .expect("the next one");
    governor.batch_execute("INSERT INTO deal.t VALUES (1)").await.expect("before it holds");
    let height = network.client(1).status().await.expect("it answers").height;
    network.wait_for_height(1, height + 25).await;
    governor.batch_execute("INSERT INTO deal.t VALUES (2)").await.expect("version 5");
    assert_eq!(versions(&network, 1).await, (5, 16));
    goes_over_to_version_6(&network, &governor).await;
    assert_eq!(versions(&network, 1).await, (6, 16));
    goes_over_to_version_7(&network, &governor).await;
    assert_eq!(versions(&network, 1).await, (7, 16));
    for next in 8..=16 {
        goes_over_to(&network, &governor, next).await;
        assert_eq!(versions(&network, 1).await, (next.into(), 16));
    }
    network.assert_agreement(&[0, 1, 2, 3, fifth]).await;
    load.finish(&mut network).await;
    for node in 0..4 {
        let output =
            Command::new(ENTENTE).args(["verify", "--replay"]).arg(network.node_folder(node)).output();
        let output = output.expect("the program runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "node {node}: {}", String::from_utf8_lossy(&said));
    }
}
