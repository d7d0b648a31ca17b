//! What version 8 brings to indexes, constraints, sessions and scripts, and how version 7 refuses it.

mod support;

use support::{Database, shown};
use types::ExecutionVersion;

/// What version 8 brings to indexes, behind a table, and what version 7 says of it.
const INDEXES_SINCE_VERSION_8: &[(&str, &str)] = &[
    ("CREATE INDEX i ON t ((a + 1))", "0A000 an index on an expression is not supported"),
    ("CREATE INDEX i ON t ((a))", "0A000 an index on an expression is not supported"),
    ("CREATE INDEX i ON t (a) WHERE a > 0", "0A000 a partial index (WHERE) is not supported"),
    ("CREATE INDEX i ON t (a) INCLUDE (b)", "0A000 INCLUDE is not supported"),
    ("CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT", "0A000 NULLS NOT DISTINCT is not supported"),
    (
        "CREATE TABLE u (a integer, UNIQUE NULLS NOT DISTINCT (a))",
        "0A000 NULLS NOT DISTINCT is not supported",
    ),
    ("ALTER TABLE t ADD UNIQUE NULLS NOT DISTINCT (a)", "0A000 NULLS NOT DISTINCT is not supported"),
    (
        "INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) WHERE a > 0 DO NOTHING",
        "42601 syntax error at or near \"WHERE\"",
    ),
    (
        "INSERT INTO t VALUES (1, 'x') ON CONFLICT (lower(b)) DO NOTHING",
        "42601 syntax error at or near \"(\"",
    ),
];

#[test]
fn version_7_refuses_indexes_as_ever_and_keeps_its_catalog() {
    let table = "CREATE TABLE t (a integer UNIQUE, b text)";
    let index = "CREATE INDEX i ON t (a DESC NULLS LAST, b text_pattern_ops)";
    let [mut seven, mut eight] = [ExecutionVersion::V7, ExecutionVersion::V8].map(Database::of_version);
    for database in [&mut seven, &mut eight] {
        database.run(table).expect("a table");
        database.run(index).expect("an index");
    }
    for (sql, refused) in INDEXES_SINCE_VERSION_8 {
        assert_eq!(shown(seven.run(sql)), *refused, "{sql}");
    }
    let details = |database: &Database| {
        let catalog = database.library.catalog();
        let index = catalog.indexes.values().flatten().find(|index| index.name == "i").expect("it is there");
        index.details.clone()
    };
    assert_eq!(details(&seven), types::IndexDetails::default(), "its bytes are those of version 7");
    assert_eq!(details(&eight).written.len(), 2);
    let class = "CREATE INDEX j ON t (a text_ops)";
    seven.run(class).expect("version 7 does not look");
    assert_eq!(
        shown(eight.run(class)),
        "42804 operator class \"text_ops\" does not accept data type integer"
    );
    seven.go_over_to(ExecutionVersion::V8);
    seven.run("INSERT INTO t VALUES (1, 'X'), (2, 'x')").expect("rows");
    seven.run("CREATE UNIQUE INDEX k ON t (lower(b)) WHERE a > 1").expect("version 8 has them");
    let conflict = "INSERT INTO t VALUES (3, 'X') ON CONFLICT (lower(b)) WHERE a > 1 DO UPDATE SET b = 'y' RETURNING a, b";
    assert_eq!(seven.rows(conflict), [["2", "y"]]);
}

/// What version 8 brings, and what version 7 says of it.
const SINCE_VERSION_8: &[(&str, &str)] = &[
    ("SELECT current_user", "0A000 the function current_user() is not supported"),
    ("SELECT session_user", "0A000 the function session_user() is not supported"),
    ("SELECT current_schema()", "0A000 the function current_schema() is not supported"),
    ("SELECT 1 AS one FOR UPDATE", "0A000 FOR UPDATE and FOR SHARE is not supported"),
    (
        "SELECT now() AT TIME ZONE 'Europe/Berlin'",
        "0A000 AT TIME ZONE with another zone than 'UTC' is not supported",
    ),
    (
        "SELECT timezone('UTC', now())",
        "42883 function timezone(unknown, timestamp with time zone) does not exist",
    ),
    ("SELECT current_setting('TimeZone')", "42883 function current_setting(unknown) does not exist"),
];

#[test]
fn what_version_8_brings_is_refused_before_in_the_same_words_as_ever() {
    for (sql, refused) in SINCE_VERSION_8 {
        for version in [ExecutionVersion::V1, ExecutionVersion::V7] {
            let error = Database::of_version(version).error(sql);
            assert_eq!(format!("{} {}", error.state, error.message), *refused, "{sql}");
        }
        Database::of_version(ExecutionVersion::V8)
            .run(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[test]
fn a_script_has_as_many_parameters_as_the_protocol_counts_from_version_8_on() {
    let insert = |count: usize| {
        let rows: Vec<String> = (1..=count).map(|number| format!("(${number})")).collect();
        format!("INSERT INTO numbers VALUES {}", rows.join(", "))
    };
    let values = |count: usize| (0..count as i32).map(types::Value::Integer).collect::<Vec<_>>();
    let mut older = Database::of_version(ExecutionVersion::V7);
    let mut newer = Database::of_version(ExecutionVersion::V8);
    for database in [&mut older, &mut newer] {
        database.run("CREATE TABLE numbers (n integer PRIMARY KEY)").expect("a table");
    }
    let refused = older.run_with(&insert(1_001), values(1_001)).expect_err("too many");
    assert_eq!(
        (refused.state.to_string(), refused.message),
        ("42P02".into(), "there is no parameter $1001".into())
    );
    newer.run_with(&insert(20_000), values(20_000)).expect("fewer than 65,535");
    assert_eq!(newer.rows("SELECT count(*), sum(n) FROM numbers"), [["20000", "199990000"]]);
    assert_eq!(newer.run_with("SELECT $65535::int", values(65_535)).expect("the last one").len(), 1);
    let refused = newer.error("SELECT $65536::int");
    assert_eq!(
        (refused.state.to_string(), refused.message),
        ("42P02".into(), "there is no parameter $65536".into())
    );
}

#[test]
fn columns_called_like_what_version_8_asks_the_session_stay_columns() {
    let mut database = Database::of_version(ExecutionVersion::V7);
    database
        .run("CREATE TABLE t (id integer PRIMARY KEY, current_schema text CHECK (current_schema <> 'public'), current_role text)")
        .expect("words like others");
    database.go_over_to(ExecutionVersion::V8);
    database
        .run("INSERT INTO t (id, current_schema, current_role) VALUES (1, 'a', 'b')")
        .expect("the column is checked");
    let error = database.error("INSERT INTO t VALUES (2, 'public', 'b')");
    assert_eq!(error.state.to_string(), "23514", "{error:?}");
    database
        .run("ALTER TABLE t RENAME COLUMN id TO k; ALTER TABLE t RENAME TO u")
        .expect("the CHECK follows");
    assert_eq!(
        database.rows("SELECT current_schema, current_role, current_schema() FROM u"),
        [["a", "b", "public"]]
    );
    database.run("UPDATE u SET current_role = current_schema WHERE current_role = 'b'").expect("columns");
    assert_eq!(database.rows("SELECT current_role FROM u"), [["a"]]);
}

/// What version 8 brings about constraints, and what version 7 says of it.
const CONSTRAINTS_SINCE_VERSION_8: &[(&str, &str)] = &[
    ("CREATE TABLE t (id integer UNIQUE DEFERRABLE)", "0A000 DEFERRABLE is not supported"),
    ("CREATE TABLE t (id integer PRIMARY KEY INITIALLY DEFERRED)", "0A000 DEFERRABLE is not supported"),
    ("CREATE TABLE t (id integer REFERENCES p NOT DEFERRABLE)", "0A000 DEFERRABLE is not supported"),
    ("CREATE TABLE t (id integer REFERENCES p MATCH FULL)", "0A000 MATCH FULL is not supported"),
    ("SET CONSTRAINTS ALL DEFERRED", "42601 syntax error at or near \"ALL\""),
    ("DO $$ BEGIN SET CONSTRAINTS ALL DEFERRED; END $$", "0A000 SET in a procedure is not supported"),
    ("ALTER TABLE p ADD CHECK (id > 0) NOT VALID", "0A000 ALTER TABLE is not supported"),
    ("ALTER TABLE p VALIDATE CONSTRAINT p_fk", "0A000 ALTER TABLE is not supported"),
    ("ALTER TABLE p ALTER CONSTRAINT p_fk DEFERRABLE", "42601 syntax error at or near \"p_fk\""),
];

#[test]
fn constraints_wait_from_version_8_on() {
    let prepared = |version| {
        let mut database = Database::of_version(version);
        let tables = "CREATE TABLE p (id integer PRIMARY KEY, p integer, CONSTRAINT p_fk FOREIGN KEY (p) REFERENCES p)";
        database.run(tables).expect("a table");
        database
    };
    for (sql, refusal) in CONSTRAINTS_SINCE_VERSION_8 {
        assert_eq!(shown(prepared(ExecutionVersion::V7).run(sql)), *refusal, "{sql}");
        let mut database = prepared(ExecutionVersion::V8);
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[test]
fn a_column_called_owner_is_renamed_from_version_8_on() {
    for version in [ExecutionVersion::V7, ExecutionVersion::V8] {
        for sql in ["ALTER TABLE t RENAME COLUMN owner TO holder", "ALTER TABLE t RENAME owner TO holder"] {
            let mut database = Database::of_version(version);
            database.run("CREATE TABLE t (id int PRIMARY KEY, owner text)").expect("a table");
            assert_eq!(database.run(sql).is_ok(), version >= ExecutionVersion::V8, "{version:?}: {sql}");
        }
    }
}
