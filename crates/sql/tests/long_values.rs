//! What a transaction makes in memory is bounded in bytes, however few values those are.

mod support;

use support::Database;

#[track_caller]
fn refused(sql: &str) {
    let mut database = Database::with(&[
        "CREATE TABLE t (id integer PRIMARY KEY, s text)",
        "CREATE FUNCTION long(n integer) RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE s text := '';
         BEGIN
           FOR i IN 1..n LOOP s := left(s || repeat('x', 100), 100000); END LOOP;
           RETURN length(s);
         END $$",
        "CREATE FUNCTION handled() RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE times integer := 0;
         BEGIN
           FOR i IN 1..100 LOOP
             BEGIN
               PERFORM repeat('x', 100000) || g FROM generate_series(1, 3000) AS g;
             EXCEPTION WHEN OTHERS THEN times := times + 1;
             END;
           END LOOP;
           RETURN times;
         END $$",
    ]);
    let error = database.error(sql);
    assert_eq!(error.state.to_string(), "54000", "{sql}: {error:?}");
    assert!(error.message.contains("LONG_VALUES_BYTES_MAX"), "{sql}: {error:?}");
}

#[test]
fn computed_texts() {
    refused("SELECT repeat('x', 100000) || g FROM generate_series(1, 900000) AS g");
    refused(
        "SELECT count(*) FROM (SELECT repeat('x', 100000) || g AS s FROM generate_series(1, 900000) AS g) AS q",
    );
    refused("SELECT g FROM generate_series(1, 900000) AS g ORDER BY repeat('x', 100000) || g");
}

#[test]
fn states_of_aggregates() {
    refused(
        "SELECT g, string_agg(repeat('x', 100000) || g, ',') FROM generate_series(1, 900000) AS g GROUP BY g",
    );
    refused("SELECT count(DISTINCT repeat('x', 100000) || g) FROM generate_series(1, 900000) AS g");
    refused(
        "SELECT max(s) FROM (SELECT max(repeat('x', 100000) || g) OVER () AS s FROM generate_series(1, 900000) AS g) AS q",
    );
}

#[test]
fn other_long_values() {
    refused("SELECT (10::numeric ^ 100000) + g FROM generate_series(1, 900000) AS g");
    refused("SELECT array_fill(g, ARRAY[16000]) FROM generate_series(1, 900000) AS g");
    refused(
        "WITH RECURSIVE n AS (SELECT 1 AS i, repeat('x', 100000) AS s UNION ALL SELECT i + 1, s || '' FROM n WHERE i < 200000) SELECT count(*) FROM n",
    );
}

#[test]
fn rows_that_are_written() {
    refused("INSERT INTO t SELECT g, repeat('x', 100000) || g FROM generate_series(1, 200000) AS g");
}

#[test]
fn functions() {
    refused("SELECT long(100000)");
    // A handler does not make room again: the transaction has a limit, not each of its attempts.
    refused("SELECT long(handled() + 100000)");
}

#[test]
fn work_of_a_usual_size_is_none_of_that() {
    let mut database = Database::with(&["CREATE TABLE t (id integer PRIMARY KEY, s text)"]);
    database
        .run("INSERT INTO t SELECT g, repeat('x', 1000) || g FROM generate_series(1, 10000) AS g")
        .expect("ten megabytes");
    assert_eq!(database.rows("SELECT count(*), sum(length(s || s)) FROM t"), [["10000", "20077788"]]);
}
