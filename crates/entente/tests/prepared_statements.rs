//! PREPARE and EXECUTE, and rows that go to the client as they are found, on a network of real processes. Answers are those of
//! PostgreSQL 15.

mod support;

use support::TestNetwork;
use support::answers::{check, run};
use tokio_postgres::types::Type;

/// All that PREPARE takes, with what it gives.
const TAKEN: &[(&str, &str)] = &[
    ("PREPARE i AS INSERT INTO items VALUES ($1, $2, $3) RETURNING *", ""),
    ("EXECUTE i(1, 'x', 2)", "1|x|2.00"),
    ("EXECUTE i(1, 'x', 2)", "23505 duplicate key value violates unique constraint \"items_pkey\""),
    ("PREPARE u(int) AS UPDATE items SET price = price + 1 WHERE id = $1", ""),
    ("EXECUTE u(1)", ""),
    ("PREPARE t AS TABLE items", ""),
    ("EXECUTE t", "1|x|3.00"),
    ("PREPARE v AS VALUES (1), ($1)", ""),
    ("EXECUTE v(2)", "1 2"),
    ("PREPARE w AS WITH gone AS (DELETE FROM items WHERE id = $1 RETURNING id) SELECT * FROM gone", ""),
    ("EXECUTE w(1)", "1"),
    ("PREPARE n AS SELECT missing", "42703 column \"missing\" does not exist at 21"),
    ("PREPARE c AS CALL p()", "42601 syntax error at or near \"CALL\" at 14"),
    ("CREATE TABLE k AS EXECUTE t", "0A000 CREATE TABLE … AS EXECUTE is not supported"),
    // What the catalogue answers can be prepared, too, and can be an argument.
    ("PREPARE p AS SELECT count(*) FROM pg_prepared_statements WHERE name = $1", ""),
    ("EXECUTE p('p')", "1"),
    ("EXECUTE e(current_user)", "entente"),
    ("EXECUTE a(nextval('s'))", "0A000 a function that writes in a parameter of EXECUTE is not supported"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_prepared_and_executed_as_in_postgresql() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let session = network.session(0).await;
    check(
        &session,
        &[
            ("CREATE TABLE items (id integer PRIMARY KEY, name varchar(20), price numeric(8,2))", ""),
            ("CREATE TYPE mood AS ENUM ('sad', 'ok')", ""),
            ("CREATE SEQUENCE s", ""),
            // Values are assigned to the types of the parameters.
            ("PREPARE a(int) AS SELECT $1 + 1", ""),
            ("EXECUTE a(1 + 2)", "4"),
            ("EXECUTE a('7')", "8"),
            ("EXECUTE a(1.7::numeric)", "3"),
            ("EXECUTE a(null)", "NULL"),
            ("EXECUTE a(length('abc') - 5)", "-1"),
            ("EXECUTE a('x')", "22P02 invalid input syntax for type integer: \"x\" at 11"),
            (
                "EXECUTE a('1'::text)",
                "42804 parameter $1 of type text cannot be coerced to the expected type integer at 11",
            ),
            (
                "EXECUTE a(true)",
                "42804 parameter $1 of type boolean cannot be coerced to the expected type integer at 11",
            ),
            ("EXECUTE a(id)", "42703 column \"id\" does not exist at 11"),
            ("EXECUTE a((SELECT 1))", "0A000 cannot use subquery in EXECUTE parameter at 11"),
            ("EXECUTE a(count(*))", "42803 aggregate functions are not allowed in EXECUTE parameters at 11"),
            (
                "EXECUTE a(generate_series(1, 2))",
                "0A000 set-returning functions are not allowed in EXECUTE parameters at 11",
            ),
            (
                "EXECUTE a(row_number() OVER ())",
                "42P20 window functions are not allowed in EXECUTE parameters at 11",
            ),
            ("EXECUTE a(nofunc(1))", "42883 function nofunc(integer) does not exist at 11"),
            ("EXECUTE a($1)", "42P02 there is no parameter $1"),
            ("EXECUTE a(1 / 0)", "22012 division by zero"),
            ("EXECUTE a", "42601 wrong number of parameters for prepared statement \"a\""),
            // Types, and their modifiers, which do not count.
            ("PREPARE y(numeric(3,1), int[], text, mood) AS SELECT $1, $2, $3, $4", ""),
            ("EXECUTE y(1.2345, '{1}', 5, 'ok')", "1.2345|{1}|5|ok"),
            ("EXECUTE y(1.2345, ARRAY[1.5], true, 'sad')", "1.2345|{2}|true|sad"),
            ("EXECUTE y(1, '{a}', 'a', 'ok')", "22P02 invalid input syntax for type integer: \"a\" at 14"),
            ("PREPARE f(nosuch) AS SELECT 1", "42704 type \"nosuch\" does not exist"),
            ("PREPARE e AS SELECT $1", ""),
            ("EXECUTE e(1)", "1"),
            ("PREPARE d(date) AS SELECT $1", ""),
            ("EXECUTE d('2026-11-29'::date + 1)", "2026-11-30"),
            ("EXECUTE d('2026-11-29 10:00'::timestamp)", "2026-11-29"),
        ],
    )
    .await;
    check(&session, TAKEN).await;
    assert!(run(&session, "EXPLAIN EXECUTE u(1)").await.contains("items"));
    // Another statement of the same name gives other columns.
    check(&session, &[("ALTER TABLE items ADD COLUMN more integer", "")]).await;
    assert_eq!(run(&session, "EXECUTE t").await, "0A000 cached plan must not change result type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_in_blocks_are_run_by_every_node() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let session = network.session(0).await;
    check(
        &session,
        &[
            ("CREATE TABLE t (id bigint PRIMARY KEY, at timestamptz)", ""),
            ("CREATE SEQUENCE s", ""),
            ("PREPARE i(bigint, timestamptz) AS INSERT INTO t VALUES ($1, $2) RETURNING id", ""),
            ("BEGIN", ""),
            ("EXECUTE i(1, now())", "1"),
            ("EXECUTE i(1 + 1, '2026-01-01')", "2"),
            ("SAVEPOINT s", ""),
            ("EXECUTE i(2, NULL)", "23505 duplicate key value violates unique constraint \"t_pkey\""),
            ("ROLLBACK TO s", ""),
            ("COMMIT", ""),
            ("SELECT count(*), count(at) FROM t", "2|2"),
            ("BEGIN", ""),
        ],
    )
    .await;
    // In a block an argument may write: it is a step of its own.
    assert!(run(&session, "EXECUTE i(nextval('s'), now())").await.parse::<i64>().expect("an id") > 2);
    check(
        &session,
        &[
            ("COMMIT", ""),
            // A query string is one transaction.
            ("EXECUTE i(10, NULL); INSERT INTO t VALUES (11); EXECUTE i(12, NULL)", "10 12"),
            (
                "EXECUTE i(20, NULL); EXECUTE i(10, NULL)",
                "23505 duplicate key value violates unique constraint \"t_pkey\"",
            ),
            ("SELECT id FROM t WHERE id >= 10 AND id < 30 ORDER BY id", "10 11 12"),
            ("PREPARE r(bigint) AS DELETE FROM t WHERE id = $1; EXECUTE r(10); EXECUTE r(11)", ""),
            ("SELECT count(*) FROM t", "4"),
        ],
    )
    .await;
    // A driver binds what PREPARE has made, and the other way round.
    let executing = session.prepare("EXECUTE i(40, NULL)").await.expect("prepared");
    assert_eq!(executing.columns()[0].type_(), &Type::INT8);
    assert_eq!(session.query_one(&executing, &[]).await.expect("a row").get::<_, i64>(0), 40);
    let name = run(&session, "SELECT name FROM pg_prepared_statements WHERE NOT from_sql LIMIT 1").await;
    assert_eq!(run(&session, &format!("DEALLOCATE {name}")).await, "");
    // Two blocks may count the changes that they make to the schema alike, and mean others.
    check(&session, &[("BEGIN; CREATE TABLE made (a integer)", "")]).await;
    let one_column = session.prepare("SELECT * FROM made").await.expect("prepared");
    let seen =
        "SELECT relname, relnatts, relpersistence FROM pg_class WHERE relname IN ('made', 'own') ORDER BY 1";
    check(
        &session,
        &[
            (seen, "made|1|p"),
            ("ROLLBACK", ""),
            (seen, ""),
            ("CREATE TEMPORARY TABLE own (b integer)", ""),
            ("BEGIN; CREATE TABLE made (a integer, b text); INSERT INTO made VALUES (1, 'x')", ""),
            (seen, "made|2|p own|1|t"),
            ("SELECT 'made'::regclass::text, 'own'::regclass::text", "made|own"),
        ],
    )
    .await;
    let error = session.query(&one_column, &[]).await.expect_err("it has two columns now");
    assert_eq!(error.code().map(|code| code.code()), Some("0A000"), "{error:?}");
    check(&session, &[("ROLLBACK", ""), (seen, "own|1|t")]).await;
    assert_eq!(run(&network.session(1).await, seen).await, "", "temporary tables are the session's");
    let height = run(&session, "SHOW entente.last_height").await;
    for node in 1..4 {
        let other = network.session(node).await;
        check(
            &other,
            &[(&format!("SET entente.min_height = {height}"), ""), ("SELECT count(*) FROM t", "5")],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_may_be_larger_than_the_memory_of_queries() {
    let mut network = TestNetwork::create(|_| ());
    let settings = network.node_folder(0).join("node.toml");
    let before = std::fs::read_to_string(&settings).expect("node.toml");
    std::fs::write(&settings, format!("query_memory_megabytes = 16\n{before}")).expect("written");
    network.start_all().await;
    let session = network.session(0).await;
    check(
        &session,
        &[
            ("CREATE TABLE t (id integer PRIMARY KEY)", ""),
            ("INSERT INTO t SELECT g FROM generate_series(1, 1000) AS g", ""),
        ],
    )
    .await;
    let pairs = "SELECT a.id, b.id FROM t AS a CROSS JOIN t AS b";
    let rows = session.query(pairs, &[]).await.expect("a million rows");
    assert_eq!(rows.len(), 1_000_000);
    drop(rows);
    // In a block it is a step, and its rows are in memory.
    check(&session, &[("BEGIN", "")]).await;
    assert!(run(&session, pairs).await.starts_with("53200 "));
    check(&session, &[("ROLLBACK", ""), ("SELECT count(*) FROM t", "1000")]).await;
    // An error comes behind the rows that were sent.
    let error = session.simple_query("SELECT 1 / (600 - a.id) FROM t AS a CROSS JOIN t AS b").await;
    let error = error.expect_err("a division by zero");
    assert_eq!(error.code().map(|code| code.code()), Some("22012"));
    // Messages of the query arrive with its rows.
    check(
        &session,
        &[
            (
                "CREATE FUNCTION noted(n integer) RETURNS integer LANGUAGE plpgsql AS \
                 'BEGIN RAISE NOTICE ''%'', n; RETURN n; END'",
                "",
            ),
            ("SELECT noted(id) FROM t WHERE id < 3 ORDER BY id", "1 2"),
        ],
    )
    .await;
}
