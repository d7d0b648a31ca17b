//! What a transaction makes in memory is bounded in bytes, however few values those are.

mod support;

use sql::{Reader, Session, TemporaryTables, prepare};
use std::sync::Arc;
use support::{Database, START_MS};
use types::{MemoryPool, MemoryShare, SessionStep, SqlError};

#[track_caller]
fn refused(sql: &str) {
    let mut database = prepared();
    let error = database.error(sql);
    assert_eq!(error.state.to_string(), "54000", "{sql}: {error:?}");
    assert!(error.message.contains("EXECUTION_BYTES_MAX"), "{sql}: {error:?}");
}

/// A transaction may take 51,200,000 bytes: 512 for each of its steps.
fn prepared() -> Database {
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
           FOR i IN 1..20 LOOP
             BEGIN
               PERFORM repeat('x', 100000) || g FROM generate_series(1, 1000) AS g;
             EXCEPTION WHEN OTHERS THEN times := times + 1;
             END;
           END LOOP;
           RETURN times;
         END $$",
        "CREATE FUNCTION nested(n integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN
           INSERT INTO t VALUES (-n, 'nested');
           IF n > 1 THEN RETURN nested(n - 1); END IF;
           RETURN 0;
         EXCEPTION WHEN division_by_zero THEN RETURN 1;
         END $$",
        "CREATE FUNCTION one_by_one(n integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN
           FOR i IN 1..n LOOP
             BEGIN
               INSERT INTO t VALUES (-i - 100, 'one');
             EXCEPTION WHEN division_by_zero THEN RETURN 1;
             END;
           END LOOP;
           RETURN 0;
         END $$",
        "CREATE FUNCTION looping(n integer) RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE r record; total integer := 0;
         BEGIN
           FOR i IN 1..n LOOP
             FOR r IN SELECT g FROM generate_series(1, 100) AS g LOOP total := total + 1; END LOOP;
           END LOOP;
           RETURN total;
         END $$",
        "CREATE FUNCTION many(n integer) RETURNS SETOF integer LANGUAGE plpgsql AS $$
         BEGIN
           FOR i IN 1..n LOOP RETURN QUERY SELECT g FROM generate_series(1, 100) AS g; END LOOP;
         END $$",
        "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 1000) AS g",
    ]);
    database.step_limit = 100_000;
    database
}

#[test]
fn computed_texts() {
    refused("SELECT repeat('x', 100000) || g FROM generate_series(1, 40000) AS g");
    refused(
        "SELECT count(*) FROM (SELECT repeat('x', 100000) || g AS s FROM generate_series(1, 40000) AS g) AS q",
    );
    refused("SELECT g FROM generate_series(1, 40000) AS g ORDER BY repeat('x', 100000) || g");
}

#[test]
fn states_of_aggregates() {
    refused(
        "SELECT g, string_agg(repeat('x', 100000) || g, ',') FROM generate_series(1, 40000) AS g GROUP BY g",
    );
    refused("SELECT count(DISTINCT repeat('x', 100000) || g) FROM generate_series(1, 40000) AS g");
    refused(
        "SELECT max(s) FROM (SELECT max(repeat('x', 100000) || g) OVER () AS s FROM generate_series(1, 40000) AS g) AS q",
    );
}

#[test]
fn other_long_values() {
    refused("SELECT (10::numeric ^ 100000) + g FROM generate_series(1, 40000) AS g");
    refused("SELECT array_fill(g, ARRAY[16000]) FROM generate_series(1, 40000) AS g");
    refused(
        "WITH RECURSIVE n AS (SELECT 1 AS i, repeat('x', 100000) AS s UNION ALL SELECT i + 1, s || '' FROM n WHERE i < 40000) SELECT count(*) FROM n",
    );
}

#[test]
fn rows_that_are_written() {
    refused("INSERT INTO t SELECT g, repeat('x', 100000) || g FROM generate_series(1, 40000) AS g");
}

#[test]
fn rows_that_are_changed() {
    // What an UPDATE computes from a row is made when its command runs, and again at the command's place.
    refused("UPDATE t SET s = repeat(s, 1000)");
    refused("INSERT INTO t SELECT id, s FROM t ON CONFLICT (id) DO UPDATE SET s = repeat(t.s, 1000)");
}

#[test]
fn rows_that_queries_hold() {
    let columns = |what: &str, count: usize| {
        let columns: Vec<String> =
            (1..=count).map(|number| format!("{what} + {number} AS c{number}")).collect();
        columns.join(", ")
    };
    refused(&format!(
        "SELECT count(*) FROM (SELECT {} FROM generate_series(1, 40000) AS g) AS q",
        columns("g", 60)
    ));
    refused(&format!("SELECT {} FROM generate_series(1, 40000) AS g ORDER BY g", columns("g", 60)));
    let sums: Vec<String> = (1..=8).map(|number| format!("sum(g + {number})")).collect();
    refused(&format!("SELECT {} FROM generate_series(1, 40000) AS g GROUP BY g", sums.join(", ")));
}

#[test]
fn own_rows_that_blocks_with_handlers_may_return_to() {
    let mut database = prepared();
    database.step_limit = 150_000;
    let fill = "INSERT INTO t SELECT g, 'x' FROM generate_series(2001, 22000) AS g";
    assert_eq!(database.error(&format!("{fill}; SELECT nested(60)")).state.to_string(), "54000");
    database.run(&format!("{fill}; SELECT nested(2)")).expect("few of them");
    // One after the other is as if there was one.
    database.run("SELECT one_by_one(1500)").expect("one at a time");
}

/// Who shares this memory with all others.
fn reader(database: &Database, memory: &Arc<MemoryPool>) -> Reader {
    Reader { memory: Some(memory.clone()), ..database.reader() }
}

#[test]
fn queries_share_the_memory_of_their_node() {
    let database = prepared();
    let memory = MemoryPool::new(4 << 20);
    let query = |sql: &str| -> Result<usize, SqlError> {
        let prepared = prepare(&database.library, sql, &[])?;
        let results = prepared.query_as(&reader(&database, &memory), &database.state, &[])?;
        Ok(results.last().map_or(0, |result| result.rows.len()))
    };
    let large = "SELECT g FROM generate_series(1, 40000) AS g ORDER BY g DESC";
    let error = query(large).expect_err("too little memory");
    assert_eq!(error.state.to_string(), "53200", "{error:?}");
    assert!(error.hint.is_some(), "{error:?}");
    assert_eq!(memory.taken(), 0, "it is given back after an error, too");
    assert_eq!(query("SELECT id FROM t ORDER BY s, id"), Ok(1000));
    assert_eq!(memory.taken(), 0);
    let mut other = MemoryShare::of(&memory);
    other.grow_to(4 << 20).expect("all of it");
    assert_eq!(
        query("SELECT id FROM t ORDER BY s, id").expect_err("nothing left").state.to_string(),
        "53200"
    );
    drop(other);
    assert_eq!(query("SELECT id FROM t ORDER BY s, id"), Ok(1000));
}

#[test]
fn what_is_gone_does_not_count() {
    let mut database = prepared();
    database.step_limit = 10_000_000;
    let memory = MemoryPool::new(1 << 20);
    for (sql, expected) in [
        ("SELECT looping(500)", 50_000),
        ("SELECT sum(looping(1)) FROM generate_series(1, 500) AS g", 50_000),
        ("SELECT sum((SELECT count(*) FROM many(5) WHERE g > 0)) FROM generate_series(1, 100) AS g", 50_000),
        (
            "SELECT sum((SELECT count(*) FROM t WHERE t.id <= g % 100)) FROM generate_series(1, 500) AS g",
            24_750,
        ),
    ] {
        let prepared = prepare(&database.library, sql, &[]).expect(sql);
        let results = prepared.query_as(&reader(&database, &memory), &database.state, &[]).expect(sql);
        assert_eq!(support::texts(&results[0]), [[expected.to_string()]], "{sql}");
    }
}

#[test]
fn transaction_blocks_share_it_while_their_clients_think() {
    let database = prepared();
    let memory = MemoryPool::new(4 << 20);
    let context = sql::Context {
        height: u64::MAX,
        timestamp_ms: START_MS,
        index: u32::MAX,
        transaction: types::TransactionId::default(),
        step_limit: database.step_limit,
    };
    let mut session = Session::begin(
        database.library.clone(),
        Arc::new(database.state.clone()),
        context,
        database.principal.clone(),
        database.step_limit,
        false,
        TemporaryTables::default(),
    )
    .sharing(MemoryShare::of(&memory));
    let step = |sql: &str| SessionStep::Run { sql: sql.to_string(), parameters: Vec::new() };
    session.run(step("UPDATE t SET s = 'y' WHERE id <= 500")).expect("some rows");
    let taken = memory.taken();
    assert!(taken > 100_000, "{taken}");
    session.run(step("SELECT id FROM t ORDER BY s, id")).expect("some rows");
    for _ in 0..20 {
        session.run(step("SELECT id, s FROM t")).expect("some rows");
    }
    // Their results are the client's.
    assert!(memory.taken() < 1 << 20, "{}", memory.taken());
    let error = session.run(step("SELECT g FROM generate_series(1, 40000) AS g ORDER BY g DESC"));
    assert_eq!(error.expect_err("too little memory").state.to_string(), "53200");
    drop(session);
    assert_eq!(memory.taken(), 0);
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
