//! Partitioned tables: what versions before 10 say of them, rows that clients send, and bad input.

mod support;

use support::{Database, prepared, shown, texts};
use types::{ExecutionVersion, Payload, Value};

const TABLE: &str = "CREATE TABLE t (a integer PRIMARY KEY, b text DEFAULT 'none') PARTITION BY RANGE (a)";
const PARTITIONS: [&str; 2] = [
    "CREATE TABLE p PARTITION OF t FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE q PARTITION OF t FOR VALUES FROM (10) TO (20)",
];

#[test]
fn version_9_refuses_what_version_10_knows() {
    let refused = "0A000 PARTITION is not supported";
    for (sql, version_9) in [
        (TABLE, refused),
        ("CREATE TABLE p PARTITION OF t FOR VALUES IN (1)", refused),
        ("CREATE TABLE p (a integer) PARTITION BY LIST (a)", refused),
        ("CREATE TABLE p (a integer) PARTITION BY HASH (a)", refused),
    ] {
        assert_eq!(shown(prepared(ExecutionVersion::V9, &[]).run(sql)), version_9, "{sql}");
    }
    let table = "CREATE TABLE t (a integer)";
    for sql in ["ALTER TABLE t ATTACH PARTITION p FOR VALUES IN (1)", "ALTER TABLE t DETACH PARTITION p"] {
        let found = shown(prepared(ExecutionVersion::V9, &[table]).run(sql));
        assert!(found.starts_with("42601") || found.starts_with("0A000"), "{sql}: {found}");
    }
    let mut over = prepared(ExecutionVersion::V9, &["CREATE TABLE n (a integer)"]);
    over.go_over_to(ExecutionVersion::V10);
    assert_eq!(shown(over.run(TABLE)), "CREATE TABLE");
    assert_eq!(shown(over.run(PARTITIONS[0])), "CREATE TABLE");
    assert_eq!(shown(over.run("INSERT INTO p VALUES (1)")), "INSERT 0 1");
}

fn copy(table: &str, rows: &[i32]) -> Payload {
    let rows = rows.iter().map(|a| vec![Value::Integer(*a)]).collect();
    Payload::Insert { table: table.to_string(), columns: vec!["a".to_string()], rows }
}

#[test]
fn rows_that_clients_send_find_their_partition() {
    let mut database = Database::with(&[TABLE, PARTITIONS[0], PARTITIONS[1]]);
    assert_eq!(shown(database.execute(copy("t", &[1, 11]))), "COPY 2");
    assert_eq!(shown(database.execute(copy("q", &[12]))), "COPY 1");
    assert_eq!(
        shown(database.execute(copy("t", &[2, 20]))),
        "23514 no partition of relation \"t\" found for row"
    );
    assert_eq!(
        shown(database.execute(copy("q", &[13, 3]))),
        "23514 new row for relation \"q\" violates partition constraint"
    );
    let rows = |database: &mut Database, table: &str| {
        let results = database.run(&format!("SELECT a, b FROM {table} ORDER BY a")).expect("it reads");
        texts(&results[0]).into_iter().map(|row| row.join(" ")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(rows(&mut database, "t"), "1 none, 11 none, 12 none");
    assert_eq!(rows(&mut database, "q"), "11 none, 12 none");
}

#[test]
fn what_fires_sees_the_table_and_bounds_hold_what_it_writes() {
    let mut database = Database::with(&[
        TABLE,
        PARTITIONS[0],
        PARTITIONS[1],
        "CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := NEW.a + 5; RETURN NEW; END $$",
        "CREATE TRIGGER moves BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION move()",
    ]);
    assert_eq!(shown(database.run("INSERT INTO p VALUES (1)")), "INSERT 0 1");
    let outside = "23514 new row for relation \"p\" violates partition constraint";
    assert_eq!(shown(database.run("INSERT INTO p VALUES (7)")), outside);
    assert_eq!(shown(database.run("INSERT INTO t VALUES (7)")), "INSERT 0 1");
    assert_eq!(
        shown(database.run("INSERT INTO t VALUES (17)")),
        "23514 no partition of relation \"t\" found for row"
    );
    let refused = "0A000 this change of the partition \"p\" alone is not supported";
    let trigger = "CREATE TRIGGER one BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION move()";
    assert_eq!(shown(database.run(trigger)), refused);
    assert_eq!(shown(database.run("CREATE INDEX ON p (b)")), refused);
    assert_eq!(shown(database.run("ALTER TABLE p ADD COLUMN c integer")), refused);
}

#[test]
fn bad_input_is_refused_by_name() {
    let mut database = Database::with(&[TABLE, PARTITIONS[0], "CREATE TABLE plain (a integer, b text)"]);
    for (sql, expected) in [
        ("CREATE TABLE h (a integer) PARTITION BY HASH (a)", "0A000 PARTITION BY HASH is not supported"),
        (
            "CREATE TABLE h (a integer) PARTITION BY LIST ((a + 1))",
            "0A000 an expression in PARTITION BY is not supported",
        ),
        (
            "CREATE TABLE h (a json) PARTITION BY LIST (a)",
            "42704 data type json has no default operator class for access method \"btree\"",
        ),
        (
            "CREATE TABLE r PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
            "42P16 invalid bound specification for a range partition",
        ),
        (
            "CREATE TABLE r PARTITION OF t (CHECK (a > 1)) FOR VALUES FROM (1) TO (2)",
            "0A000 a column or a constraint of one partition is not supported",
        ),
        (
            "CREATE TABLE r PARTITION OF t FOR VALUES FROM ((SELECT 1)) TO (20)",
            "0A000 a subquery in an expression is not supported",
        ),
        (
            "ALTER TABLE t DETACH PARTITION p CONCURRENTLY",
            "0A000 DETACH PARTITION CONCURRENTLY is not supported",
        ),
        (
            "CREATE TABLE f (x integer REFERENCES p)",
            "0A000 a FOREIGN KEY that references a partition is not supported",
        ),
        (
            "ALTER TABLE t ATTACH PARTITION p FOR VALUES FROM (50) TO (60)",
            "42809 \"p\" is already a partition",
        ),
    ] {
        assert_eq!(shown(database.run(sql)), expected, "{sql}");
    }
    for sql in [
        "ALTER TABLE t ATTACH",
        "ALTER TABLE t ATTACH PARTITION",
        "ALTER TABLE t ATTACH PARTITION plain",
        "ALTER TABLE t ATTACH PARTITION plain FOR VALUES",
        "ALTER TABLE t ATTACH PARTITION plain FOR VALUES FROM",
        "ALTER TABLE t ATTACH PARTITION plain FOR VALUES FROM (1",
        "ALTER TABLE t ATTACH PARTITION plain FOR VALUES FROM (1) TO",
        "ALTER TABLE t ATTACH PARTITION plain FOR VALUES IN ()",
        "ALTER TABLE t DETACH PARTITION p p",
        "CREATE TABLE r PARTITION OF t",
        "CREATE TABLE r PARTITION OF t FOR VALUES",
    ] {
        let found = shown(database.run(sql));
        assert!(found.starts_with("42601") || found.starts_with("0A000"), "{sql}: {found}");
    }
}

#[test]
fn partitions_follow_schemas_views_and_types() {
    let mut database = Database::with(&[
        "CREATE SCHEMA s",
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TABLE s.t (m mood, n integer) PARTITION BY LIST (m)",
        "CREATE TABLE s.sad PARTITION OF s.t FOR VALUES IN ('sad')",
        "CREATE TABLE rest PARTITION OF s.t DEFAULT",
        "INSERT INTO s.t VALUES ('sad', 1), ('happy', 2), (NULL, 3)",
        "CREATE VIEW v AS SELECT n FROM s.sad",
        "ALTER SCHEMA s RENAME TO z",
    ]);
    let one = |database: &mut Database, sql: &str| {
        let results = database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        texts(&results[0]).concat().join(" ")
    };
    assert_eq!(one(&mut database, "SELECT n FROM z.sad"), "1");
    assert_eq!(one(&mut database, "SELECT n FROM v"), "1");
    assert_eq!(one(&mut database, "SELECT sum(n) FROM rest"), "5");
    assert_eq!(shown(database.run("ALTER TABLE rest SET SCHEMA z")), "ALTER TABLE");
    assert_eq!(one(&mut database, "SELECT sum(n) FROM z.rest"), "5");
    assert_eq!(shown(database.run("ALTER TABLE z.sad RENAME TO blue")), "ALTER TABLE");
    assert_eq!(one(&mut database, "SELECT n FROM v"), "1");
    assert_eq!(shown(database.run("INSERT INTO z.blue VALUES ('sad', 4)")), "INSERT 0 1");
    assert_eq!(one(&mut database, "SELECT sum(n) FROM v"), "5");
    let found = shown(database.run("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'"));
    assert!(found.starts_with("2BP01") || found.starts_with("0A000"), "{found}");
    assert_eq!(shown(database.run("DROP SCHEMA z CASCADE")), "DROP SCHEMA");
}

#[test]
fn tables_of_a_session_may_be_partitioned() {
    let mut database = Database::default();
    let run = |database: &mut Database, sql: &str| shown(database.gateway(sql));
    for sql in [
        "CREATE TEMP TABLE t (a integer PRIMARY KEY, b text) PARTITION BY RANGE (a)",
        "CREATE TEMP TABLE p PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TEMP TABLE q PARTITION OF t DEFAULT",
        "ALTER TABLE t ADD COLUMN c integer DEFAULT 1",
    ] {
        let tag = run(&mut database, sql);
        assert!(tag == "CREATE TABLE" || tag == "ALTER TABLE", "{sql}: {tag}");
    }
    assert_eq!(run(&mut database, "INSERT INTO t VALUES (1, 'one'), (11, 'eleven')"), "INSERT 0 2");
    let outside = "23514 new row for relation \"p\" violates partition constraint";
    assert_eq!(run(&mut database, "INSERT INTO p VALUES (12, 'x')"), outside);
    assert_eq!(run(&mut database, "ALTER TABLE t DETACH PARTITION q"), "ALTER TABLE");
    let results = database.gateway("SELECT a, b, c FROM q").expect("it reads");
    assert_eq!(texts(&results[0]), [["11", "eleven", "1"]]);
    assert_eq!(run(&mut database, "DROP TABLE p"), "DROP TABLE");
    let results = database.gateway("SELECT count(*) FROM t").expect("it reads");
    assert_eq!(texts(&results[0]), [["0"]]);
    assert_eq!(run(&mut database, "DROP TABLE t, q"), "DROP TABLE");
}
