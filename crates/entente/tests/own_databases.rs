//! Organisations with databases of their own: the demo of a newcomer, the command that adopts a database, and nodes and databases
//! that are killed in the middle of blocks.
//!
//! `make test` kills a few times. More often:
//!
//! ```sh
//! OWN_DATABASE_KILLS=100 KILL_SEED=7 cargo test -p entente --test own_databases -- --nocapture killed
//! ```

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use servers::PostgresServer;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::databases::{Servers, choose, ledger_rows, rows};
use support::load::{Load, variable};
use support::{ENTENTE, TestNetwork, free_port_base};
use tokio_postgres::NoTls;

fn entente(arguments: &[&str]) -> Output {
    Command::new(ENTENTE).args(arguments).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_demo_fills_and_compares_everybodys_own_database() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (json, port) = (folder.path().join("demo.json"), free_port_base().to_string());
    let json_path = json.to_str().expect("a path");
    let output = entente(&[
        "demo",
        "--exit",
        "--customers",
        "2000",
        "--seconds",
        "4",
        "--port-base",
        &port,
        "--json",
        json_path,
        "--database",
        "postgres,mariadb,postgres,none",
    ]);
    assert!(output.status.success(), "{}", text(&output));
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    let databases = record["databases"].as_array().expect("a list");
    let kinds: Vec<&str> = databases.iter().filter_map(|database| database["kind"].as_str()).collect();
    assert_eq!(kinds, ["postgres", "mariadb", "postgres", "none"]);
    for (number, database) in (1..).zip(databases) {
        assert_eq!(database["organisation"], format!("org{number}"));
        assert_eq!(database["rows_equal"], true, "{}", text(&output));
        assert!(database["writer_lag_blocks"].is_u64());
    }
    let too_many = entente(&["demo", "--exit", "--database", "none,none,none,none,postgres"]);
    assert!(text(&too_many).contains("expected at most one for each of 4 organisations, found 5"));
}

/// A connection of an organisation's applications.
async fn postgres(server: &PostgresServer) -> tokio_postgres::Client {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(server.port()).user("postgres").dbname("postgres");
    let (client, connection) = config.connect(NoTls).await.expect("it answers");
    tokio::spawn(connection);
    client
}

fn keep(network: &TestNetwork, node: usize, url: &str, tables: &[&str]) {
    choose(network, node, url, |config| {
        config.tables = tables.iter().map(ToString::to_string).collect();
        config.scan_seconds = Some(5);
    });
}

/// Waits until a node's database has all that the node has executed, whether others have attested it yet or not.
async fn wait_until_level(network: &TestNetwork, node: usize) -> client::OwnDatabaseStatus {
    let (start, mut target) = (Instant::now(), 0);
    loop {
        let status = network.client(node).status().await.expect("it answers");
        if target == 0 {
            target = status.height;
        }
        let database = status.database.expect("it has one");
        if database.height >= target && database.state == "following" {
            return database;
        }
        assert!(start.elapsed() < Duration::from_secs(90), "{database:?}\n{}", network.log(node));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_and_databases_that_are_killed_in_the_middle_of_blocks_lose_and_repeat_nothing() {
    const TABLES: [&str; 2] = ["counters", "numbers"];
    let (kills, seed) = (variable("OWN_DATABASE_KILLS", 8), variable("KILL_SEED", 1));
    let mut random = StdRng::seed_from_u64(seed);
    let mut servers = Servers::start();
    let urls = servers.urls();
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 25);
    keep(&network, 0, &urls[0], &TABLES);
    keep(&network, 1, &urls[1], &TABLES);
    network.start_all().await;
    let mut load = Load::start(&network).await;
    for kill in 0..kills {
        load.wait_for(60, &format!("seed {seed}, kill {kill}")).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..400))).await;
        let pause = Duration::from_millis(random.random_range(0..600));
        servers.kill_in_turn(kill, &mut network, pause).await;
    }
    load.wait_for(60, "the end").await;
    load.settle().await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    for (node, url) in urls.iter().enumerate() {
        wait_until_level(&network, node).await;
        // Whatever a process that was killed had found stands there.
        let strange = ["entente.strange_rows", "entente_strange_rows"][node];
        assert_eq!(rows(url, &[strange]), [""], "seed {seed}: no row was ever another one than it had to be");
        let log = network.log(node);
        // When the two tables were made; later on changes are known row by row.
        assert!(log.matches("comparing all rows").count() <= 2, "seed {seed}:\n{log}");
    }
    let expected =
        [ledger_rows(&network, 0, "counters", "id").await, ledger_rows(&network, 0, "numbers", "n").await];
    for url in &urls {
        assert!(rows(url, &TABLES) == expected, "seed {seed}: {url} has other rows than the ledger");
    }
    let told = load.finish(&mut network).await;
    println!("seed {seed}: {kills} kills, {} receipts, all rows equal", told.receipts.len());
}

/// What `--plan` says of four tables that were asked for.
fn assert_planned(url: &str) {
    let plan =
        text(&entente(&["chainify", "--plan", "--database", url, "--tables", "parts,orders,heavy,nothing"]));
    for expected in [
        "nothing: it fits",
        "it has no primary key",
        "column kind is point, which the ledger has not; change it to smallint",
        "constraints (orders_part_key) are checked row by row",
        "it is a view: share the tables that it shows",
        "there is no such table in the database",
        "CREATE TABLE \"parts\"",
        "\"weight\" numeric(8,3)",
    ] {
        // Columns of the table on the screen are as wide as they are.
        let flat = |text: &str| {
            text.split_whitespace().filter(|word| *word != "│" && *word != "┆").collect::<String>()
        };
        assert!(flat(&plan).contains(&flat(expected)), "{expected}:\n{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_exists_is_planned_loaded_and_adopted() {
    let server = PostgresServer::start(&[], true).unwrap_or_else(|error| panic!("{error}"));
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let own = postgres(&server).await;
    own.batch_execute(
        "CREATE TABLE parts (number varchar(20) COLLATE \"C\" PRIMARY KEY, weight numeric(8,3), made date, photo bytea);
         INSERT INTO parts SELECT 'p' || i, i / 7.0, date '2026-01-01' + i % 300, decode(lpad(to_hex(i), 8, '0'), 'hex')
         FROM generate_series(1, 25000) i;
         CREATE TABLE orders (id serial, part text UNIQUE, kind point);
         CREATE VIEW heavy AS SELECT * FROM parts WHERE weight > 1000",
    )
    .await
    .expect("made");
    assert_planned(&url);
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let folder = network.node_folder(0);
    let folder = folder.to_str().expect("a path");
    let adopt = ["chainify", "--database", &url, "--network", folder, "--tables"];
    let refused = entente(&[&adopt[..], &["parts,orders"]].concat());
    assert!(
        !refused.status.success() && text(&refused).contains("table orders does not fit yet"),
        "{}",
        text(&refused)
    );
    let loaded = entente(&[&adopt[..], &["parts", "--load"]].concat());
    assert!(
        loaded.status.success() && text(&loaded).contains("25,000 rows are the ledger's"),
        "{}",
        text(&loaded)
    );
    network.interrupt(0);
    network.start(0);
    network.wait_for_height(0, 1).await;
    wait_until_level(&network, 0).await;
    let session = network.session(1).await;
    session
        .batch_execute(
            "UPDATE parts SET weight = 1.5 WHERE number = 'p7'; DELETE FROM parts WHERE number = 'p8'",
        )
        .await
        .expect("written through another organisation");
    network.wait_until_level_with(1, &[0]).await;
    let status = wait_until_level(&network, 0).await;
    assert_eq!((status.kind.as_str(), status.strange_rows), ("postgres", 0));
    let row = own
        .query_one("SELECT weight::text, (SELECT count(*) FROM parts) FROM parts WHERE number = 'p7'", &[])
        .await;
    let row = row.expect("read");
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i64>(1)), ("1.500", 24_999));
    let session = network.session(0).await;
    let shown =
        session.query_one("SELECT kind, state, tables FROM entente.databases", &[]).await.expect("read");
    assert_eq!((shown.get(0), shown.get(1), shown.get(2)), ("postgres", "following", "parts"));
    let refused = entente(&["chainify", "--stop", "--network", folder]);
    assert!(text(&refused).contains("stop the node, and run this again"), "{}", text(&refused));
    assert!(own.batch_execute("DELETE FROM parts").await.is_err(), "the trigger stands");
    network.interrupt(0);
    let stopped = entente(&["chainify", "--stop", "--network", folder]);
    assert!(stopped.status.success(), "{}", text(&stopped));
    assert!(
        !std::fs::read_to_string(network.node_folder(0).join("node.toml"))
            .expect("read")
            .contains("[database]")
    );
    own.batch_execute("DELETE FROM parts WHERE number = 'p7'")
        .await
        .expect("it is the organisation's alone again");
}
