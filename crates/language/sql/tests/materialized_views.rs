//! What of materialized views `slt/materialized_views.slt` does not show: what versions before say, who may do what, and transaction
//! blocks.

mod support;

use support::{Database, prepared, shown};
use types::{ExecutionVersion, Principal};

const TABLES: [&str; 4] = [
    "CREATE TABLE t (a integer PRIMARY KEY, b text)",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two')",
    "CREATE ROLE ann",
    "CREATE VIEW named (x, y) AS SELECT a, b FROM t",
];

#[test]
fn version_10_refuses_what_version_11_knows() {
    let cases = [
        (
            "CREATE MATERIALIZED VIEW v AS SELECT a FROM t",
            "0A000 CREATE MATERIALIZED VIEW is not",
            "SELECT 2",
        ),
        ("REFRESH MATERIALIZED VIEW v", "42601", "42P01 relation \"v\" does not exist"),
        ("DROP MATERIALIZED VIEW v", "0A000", "42P01 materialized view \"v\" does not exist"),
        ("ALTER MATERIALIZED VIEW v RENAME TO w", "42601", "42P01 relation \"v\" does not exist"),
        ("COMMENT ON MATERIALIZED VIEW v IS 'x'", "0A000", "42P01 relation \"v\" does not exist"),
        ("ALTER MATERIALIZED VIEW v OWNER TO ann", "0A000", "42P01 relation \"v\" does not exist"),
        ("CREATE DATABASE d", "0A000 CREATE DATABASE is not", "CREATE DATABASE"),
        ("DROP DATABASE d", "0A000 DROP DATABASE is not", "3D000 database \"d\" does not exist"),
        ("UPDATE t SET b[1] = 'x'", "42601", "42804 cannot subscript type text because it does not"),
    ];
    for (sql, version_10, version_11) in cases {
        let found = shown(prepared(ExecutionVersion::V10, &TABLES).run(sql));
        assert!(found.starts_with(version_10), "{sql}: {found}");
        let found = shown(prepared(ExecutionVersion::V11, &TABLES).run(sql));
        assert!(found.starts_with(version_11), "{sql}: {found}");
        let mut over = prepared(ExecutionVersion::V10, &TABLES);
        over.go_over_to(ExecutionVersion::V11);
        let found = shown(over.run(sql));
        assert!(found.starts_with(version_11), "{sql}, gone over: {found}");
    }
}

#[test]
fn administrators_make_and_refresh_them_and_roles_read_what_they_were_granted() {
    let mut database = prepared(ExecutionVersion::CURRENT, &TABLES);
    database.run("CREATE MATERIALIZED VIEW v AS SELECT a FROM t").expect("made");
    let by_ann = |database: &mut Database, sql: &str| {
        database.principal = Principal::new(0, "ann");
        let found = shown(database.gateway(sql));
        database.principal = Principal::default();
        found
    };
    assert!(by_ann(&mut database, "SELECT * FROM v").starts_with("42501"));
    assert!(by_ann(&mut database, "REFRESH MATERIALIZED VIEW v").starts_with("42501"));
    assert!(by_ann(&mut database, "CREATE MATERIALIZED VIEW w AS SELECT 1").starts_with("42501"));
    database.run("GRANT SELECT ON v TO ann").expect("granted");
    // What it was made from stays its owner's.
    assert_eq!(by_ann(&mut database, "SELECT * FROM v"), "SELECT 2");
    assert!(by_ann(&mut database, "SELECT * FROM t").starts_with("42501"));
    database.run("REFRESH MATERIALIZED VIEW v").expect("refreshed");
    assert_eq!(by_ann(&mut database, "SELECT * FROM v"), "SELECT 2");
}

#[test]
fn scripts_of_several_refreshes_and_of_changes_behind_them_work() {
    let mut database = prepared(ExecutionVersion::CURRENT, &TABLES);
    let script = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t WITH NO DATA; CREATE INDEX ON v (a); \
                  CREATE MATERIALIZED VIEW w AS SELECT a FROM v WITH NO DATA; REFRESH MATERIALIZED VIEW v; \
                  REFRESH MATERIALIZED VIEW w";
    assert_eq!(shown(database.run(script)), "REFRESH MATERIALIZED VIEW");
    assert_eq!(database.rows("SELECT a FROM w ORDER BY a"), [["1"], ["2"]]);
    // What is not in there when a statement of the script fails is not there behind it.
    let script = "INSERT INTO t VALUES (3, 'three'); REFRESH MATERIALIZED VIEW v; SELECT 1 / 0";
    assert!(shown(database.run(script)).starts_with("22012"));
    assert_eq!(database.rows("SELECT count(*) FROM v"), [["2"]]);
    let script =
        "INSERT INTO t VALUES (3, 'three'); REFRESH MATERIALIZED VIEW v; REFRESH MATERIALIZED VIEW w";
    database.run(script).expect("it sees what the script has written");
    assert_eq!(database.rows("SELECT count(*) FROM w"), [["3"]]);
    database.run("REFRESH MATERIALIZED VIEW v WITH NO DATA").expect("emptied");
    assert!(shown(database.gateway("SELECT count(*) FROM w")).starts_with("SELECT"));
    assert!(shown(database.gateway("SELECT count(*) FROM v")).starts_with("55000"));
    assert!(shown(database.gateway("SELECT a FROM v WHERE a = 1")).starts_with("55000"));
}

#[test]
fn views_with_names_of_their_own_are_written_with_them() {
    let query = |version| {
        let database = prepared(version, &TABLES);
        database.library.catalog().views["named"].query.clone()
    };
    assert_eq!(query(ExecutionVersion::V10), "SELECT a, b FROM t");
    assert_eq!(query(ExecutionVersion::V11), "SELECT a AS \"x\", b AS \"y\" FROM t");
    let mut database = prepared(ExecutionVersion::CURRENT, &TABLES);
    assert_eq!(database.rows("SELECT x, y FROM named ORDER BY x")[1], ["2", "two"]);
    let mut stored = |columns: &str, query: &str| {
        database.run(&format!("CREATE VIEW v {columns} AS {query}")).expect(query);
        let stored = database.library.catalog().views["v"].query.clone();
        let rows = database.rows("SELECT * FROM v");
        database.run("DROP VIEW v").expect("dropped");
        (stored, rows)
    };
    for (columns, query, written, first) in [
        ("(x)", "SELECT a FROM t ORDER BY a DESC", "SELECT a AS \"x\" FROM t ORDER BY a DESC", "2"),
        ("(x)", "SELECT t.a FROM t ORDER BY t.a DESC", "SELECT t.a AS \"x\" FROM t ORDER BY t.a DESC", "2"),
        (
            "(x, n)",
            "SELECT a, count(*) FROM t GROUP BY a ORDER BY 1 DESC",
            "SELECT a AS \"x\", count(*) AS \"n\" FROM t GROUP BY a ORDER BY 1 DESC",
            "2",
        ),
        ("(x)", "SELECT 1 AS k UNION ALL SELECT 2", "SELECT 1 AS \"x\" UNION ALL SELECT 2", "1"),
    ] {
        let (stored, rows) = stored(columns, query);
        assert_eq!((stored.as_str(), rows[0][0].as_str()), (written, first), "{query}");
    }
    // Where a name decides on the order or the groups, the query stays as it was given.
    for (columns, query, first) in [
        ("(x)", "SELECT a AS k FROM t ORDER BY k DESC", "2"),
        ("(a, b)", "SELECT b, a FROM t ORDER BY a DESC", "two"),
        ("(x)", "SELECT -a AS a FROM t ORDER BY a", "-2"),
        ("(a)", "SELECT b FROM t ORDER BY a DESC", "two"),
        ("(a)", "SELECT -a AS k FROM t ORDER BY a DESC", "-2"),
        ("(x, y)", "SELECT DISTINCT ON (k) a % 1 AS k, a FROM t ORDER BY k, 2 DESC", "0"),
        ("(k, n)", "SELECT a % 1 AS z, count(*) AS k FROM t GROUP BY z ORDER BY 1", "0"),
        ("(x)", "SELECT a AS k FROM t UNION ALL SELECT 3 ORDER BY k DESC", "3"),
    ] {
        let (stored, rows) = stored(columns, query);
        assert_eq!((stored.as_str(), rows[0][0].as_str()), (query, first), "{query}");
    }
    // Version 11 writes the name, and sorts by another column.
    let mut before = prepared(ExecutionVersion::V11, &TABLES);
    before.run("CREATE VIEW v (x) AS SELECT -a AS a FROM t ORDER BY a").expect("made");
    let stored = &before.library.catalog().views["v"].query;
    assert_eq!(stored, "SELECT -a AS \"x\" FROM t ORDER BY a");
}

#[test]
fn a_column_with_another_name_has_it_in_the_query_too() {
    let mut database = prepared(ExecutionVersion::CURRENT, &TABLES);
    database.run("CREATE MATERIALIZED VIEW v (x) AS SELECT a, b FROM t ORDER BY a").expect("made");
    let mut renamed = |from: &str, to: &str| {
        let sql = format!("ALTER MATERIALIZED VIEW v RENAME COLUMN {from} TO {to}");
        database.run(&sql).expect("another name");
        database.run("REFRESH MATERIALIZED VIEW v").expect("refreshed");
        assert_eq!(database.rows(&format!("SELECT {to} FROM v")).len(), 2);
        let catalog = database.library.catalog();
        catalog.materialized_view("v").expect("there").1.view.query.clone()
    };
    assert_eq!(renamed("x", "y"), "SELECT a AS \"y\", b FROM t ORDER BY a");
    assert_eq!(renamed("b", "z"), "SELECT a AS \"y\", b AS \"z\" FROM t ORDER BY a");
    // The order would be another one.
    assert_eq!(renamed("z", "a"), "SELECT a AS \"y\", b AS \"z\" FROM t ORDER BY a");
}

#[test]
fn a_database_is_a_schema_that_nobody_else_is_asked_about() {
    let mut database = prepared(ExecutionVersion::CURRENT, &TABLES);
    let create = "CREATE DATABASE shop WITH TEMPLATE = template0 ENCODING 'UTF8' LC_COLLATE 'C' OWNER ann CONNECTION LIMIT -1";
    assert_eq!(shown(database.run(create)), "CREATE DATABASE");
    database.run("CREATE TABLE shop.t (a integer)").expect("a table");
    for (sql, expected) in [
        ("CREATE DATABASE shop", "42P04 database \"shop\" already exists"),
        ("CREATE DATABASE entente", "42P04 database \"entente\" already exists"),
        ("CREATE DATABASE pg_x", "42939"),
        ("CREATE DATABASE other TEMPLATE shop", "0A000 TEMPLATE shop of a database is not supported"),
        ("CREATE DATABASE other LOCALE 'de_DE.UTF-8'", "0A000 LOCALE de_DE.UTF-8 of a database"),
        ("CREATE DATABASE other ENCODING latin1", "0A000 ENCODING latin1"),
        ("CREATE DATABASE other WITH COLOUR red", "42601"),
        ("DROP DATABASE public", "3D000 database \"public\" does not exist"),
        ("DROP DATABASE entente", "55006"),
        ("DROP DATABASE other", "3D000 database \"other\" does not exist"),
        ("DROP DATABASE IF EXISTS other", "DROP DATABASE"),
        ("DROP DATABASE shop WITH (FORCE)", "DROP DATABASE"),
        ("SELECT * FROM shop.t", "42P01"),
    ] {
        let found = shown(database.gateway(sql));
        assert!(found.starts_with(expected), "{sql}: {found}");
    }
}
