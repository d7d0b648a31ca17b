//! psql loads what pg_dump 15 has written into a network of four organisations, and pg_dump takes a ledger out again.

mod support;

use servers::PostgresServer;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::TestNetwork;

/// Where a client connects.
struct Target {
    port: u16,
    user: &'static str,
    database: &'static str,
}

impl Target {
    /// A node of a network.
    fn node(network: &TestNetwork, node: u16) -> Target {
        Target { port: network.port_base + 100 + node, user: "entente", database: "entente" }
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command
            .args(["-h", "127.0.0.1", "-U", self.user, "-p", &self.port.to_string()])
            .args(arguments)
            .env("PGCONNECT_TIMEOUT", "10")
            .env("PGDATABASE", self.database)
            .env("LC_ALL", "C.UTF-8");
        tokio::task::block_in_place(|| command.output()).expect("it runs")
    }

    /// What a query gives, without a header.
    fn query(&self, sql: &str) -> String {
        let output = self.run("psql", &["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        printed(&output).trim_end().to_string()
    }

    fn load(&self, file: &Path) {
        let file = file.to_str().expect("a path in UTF-8");
        printed(&self.run("psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file]));
    }

    /// What pg_dump says, without the word by which psql tells a dump from what may stand in it.
    fn dump(&self, options: &[&str]) -> String {
        let dump = printed(&self.run("pg_dump", options));
        let is_word = |line: &&str| line.starts_with("\\restrict ") || line.starts_with("\\unrestrict ");
        dump.lines().filter(|line| !is_word(line)).map(|line| format!("{line}\n")).collect()
    }
}

fn printed(output: &Output) -> String {
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{}\n{out}\n{errors}", output.status);
    out
}

/// A dump that PostgreSQL's pg_dump has written.
fn recorded(dump: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps").join(dump)
}

async fn load(dump: &str) {
    if !test_machine::required("psql") {
        return;
    }
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let node = Target::node(&network, 0);
    node.query("CREATE ROLE keeper");
    node.load(&recorded(dump));
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
        assert_eq!(node.query(sql), expected, "{sql}");
    }
    let refused = node.run("psql", &["-X", "-q", "-c", "INSERT INTO orders VALUES (3, 1, 999, 1)"]);
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

/// What the recorded dump has nothing of.
const MORE: &[&str] = &[
    "CREATE TYPE mood AS ENUM ('sad', 'it''s fine')",
    "CREATE SCHEMA other; CREATE TYPE other.pair AS (a integer, b text)",
    "CREATE TABLE other.felt (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m mood DEFAULT 'sad', p other.pair, o oid, \
     spans int4range[], grid integer[], doubled integer GENERATED ALWAYS AS (id * 2) STORED, CHECK (id > 0))",
    "INSERT INTO other.felt (m, p, o, spans, grid) VALUES ('it''s fine', '(1,\"x, y\")', 4000000000, '{\"[1,5)\"}', '{{1,2},{3,NULL}}'), (NULL, NULL, 0, '{}', '[0:1]={7,8}')",
    "CREATE TABLE parted (id integer PRIMARY KEY, note text) PARTITION BY RANGE (id)",
    "CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (1) TO (10)",
    "INSERT INTO parted VALUES (3, E'tab\\tand \\\\ and\\nline')",
    "CREATE TABLE drawn (id bigserial PRIMARY KEY, said text)",
    "INSERT INTO drawn (said) VALUES ('a'), ('b')",
    "COMMENT ON COLUMN drawn.said IS 'what was said'",
    "CREATE SEQUENCE other.steps AS smallint START 7 INCREMENT -2 MINVALUE -100 MAXVALUE 7 CYCLE",
    "SELECT nextval('other.steps')",
    "CREATE INDEX ON drawn (lower(said)) WHERE said IS NOT NULL",
    "CREATE INDEX ON other.felt USING gin (grid)",
    "GRANT SELECT, UPDATE ON other.felt TO keeper; GRANT USAGE ON SCHEMA other TO keeper",
];

/// What holds wherever the dump is loaded.
const ASKED: &[&str] = &[
    "SELECT id, name, price, tags FROM item ORDER BY id",
    "SELECT id, line, note FROM orders ORDER BY id, line",
    "SELECT * FROM totals ORDER BY customer",
    "SELECT who, owes FROM kept ORDER BY who",
    "SELECT total_of(100), add(2, 3)",
    "SELECT id, m, p, o, spans, grid, doubled FROM other.felt ORDER BY id",
    "SELECT * FROM parted_low",
    "SELECT said FROM drawn ORDER BY id",
    "SELECT last_value, is_called FROM other.steps",
    "SELECT nextval('tickets')",
    "SELECT nextval('other.steps')",
    "INSERT INTO other.felt (m) VALUES ('sad') RETURNING id, doubled",
    "INSERT INTO item (name) VALUES ('new') RETURNING id, price",
    "INSERT INTO drawn (said) VALUES ('c'); SELECT said FROM drawn ORDER BY id",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pg_dump_takes_out_of_a_ledger_is_loaded_elsewhere() {
    if !test_machine::required("psql") || !test_machine::required("pg_dump") {
        return;
    }
    let (mut first, mut second) = (TestNetwork::create(|_| {}), TestNetwork::create(|_| {}));
    first.start_all().await;
    second.start_all().await;
    let source = Target::node(&first, 0);
    source.query("CREATE ROLE keeper");
    source.load(&recorded("shop.sql"));
    for sql in MORE {
        source.query(sql);
    }
    // Any node has it all.
    first.wait_until_level_with(0, &[2]).await;
    let dump = Target::node(&first, 2).dump(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ledger.sql");
    std::fs::write(&file, &dump).expect("written");
    let other_ledger = Target::node(&second, 1);
    other_ledger.query("CREATE ROLE keeper");
    other_ledger.load(&file);
    assert_eq!(other_ledger.dump(&[]), dump, "what was loaded is what was dumped");
    let server = PostgresServer::start(&[], true).unwrap_or_else(|error| panic!("{error}"));
    let postgres = Target { port: server.port(), user: "postgres", database: "postgres" };
    postgres.query("CREATE ROLE keeper; CREATE ROLE entente SUPERUSER");
    postgres.load(&file);
    let inserts = source.dump(&["--inserts", "--data-only", "--table", "other.felt"]);
    assert!(inserts.contains("INSERT INTO other.felt"), "{inserts}");
    for sql in ASKED {
        let expected = postgres.query(sql);
        assert_eq!(source.query(sql), expected, "{sql}");
        assert_eq!(other_ledger.query(sql), expected, "{sql}");
    }
    // A block that locks sees that the tables are there.
    let missing = source.run("psql", &["-X", "-c", "BEGIN; LOCK TABLE nothing IN ACCESS SHARE MODE"]);
    let missing = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.contains("relation \"nothing\" does not exist"), "{missing}");
    let outside = source.run("psql", &["-X", "-c", "LOCK item IN ACCESS SHARE MODE"]);
    let outside = String::from_utf8_lossy(&outside.stderr).into_owned();
    assert!(outside.contains("LOCK TABLE can only be used in transaction blocks"), "{outside}");
    second.assert_agreement(&[0, 1, 2, 3]).await;
}
