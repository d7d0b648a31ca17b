//! Cursors that functions leave open, used by the statements of the transaction block behind them. Answers are those of PostgreSQL 15.

mod support;

use sql::Session;
use support::Database;
use support::blocks::{begin, begin_as, run, step, steps};
use types::{ExecutionVersion, Payload, SqlError, results_have_changed};

const TABLES: [&str; 9] = [
    "CREATE TABLE t (id integer PRIMARY KEY, v text)",
    "CREATE TABLE log (line text)",
    "INSERT INTO t VALUES (1, 'v1'), (2, 'v2'), (3, 'v3'), (4, 'v4'), (5, 'v5')",
    "CREATE FUNCTION f() RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor;
     BEGIN OPEN c FOR SELECT * FROM t ORDER BY id; RETURN c; END $$",
    "CREATE FUNCTION named(n refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
     BEGIN OPEN n FOR SELECT id FROM t ORDER BY id; RETURN n; END $$",
    "CREATE FUNCTION forward_only(n refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
     BEGIN OPEN n NO SCROLL FOR SELECT id FROM t ORDER BY id; RETURN n; END $$",
    "CREATE FUNCTION next_of(n refcursor) RETURNS integer LANGUAGE plpgsql AS $$ DECLARE k integer;
     BEGIN FETCH n INTO k; RETURN k; END $$",
    "CREATE FUNCTION said(s text) RETURNS integer LANGUAGE plpgsql AS $$ DECLARE k integer;
     BEGIN EXECUTE s INTO k; RETURN k; END $$",
    "CREATE FUNCTION several() RETURNS SETOF refcursor LANGUAGE plpgsql AS $$ DECLARE a refcursor; b refcursor;
     BEGIN OPEN a FOR SELECT 1 AS x; RETURN NEXT a; OPEN b FOR SELECT 2 AS y, 'z' AS w; RETURN NEXT b; END $$",
];

/// COMMIT, for every node.
fn commit(database: &mut Database, session: Session) -> Result<(), SqlError> {
    database.execute(session.finish().payload.expect("it has changed something")).map(drop)
}

#[test]
fn a_client_goes_through_the_cursor_of_a_function() {
    let mut database = Database::with(&TABLES);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT f()", "<unnamed portal 1>"),
            ("FETCH ALL FROM \"<unnamed portal 1>\"", "1,v1;2,v2;3,v3;4,v4;5,v5"),
            ("FETCH 0 FROM \"<unnamed portal 1>\"", ""),
            ("MOVE BACKWARD 2 IN \"<unnamed portal 1>\"", "MOVE 2"),
            ("FETCH 0 FROM \"<unnamed portal 1>\"", "4,v4"),
            ("FETCH RELATIVE 0 FROM \"<unnamed portal 1>\"", "4,v4"),
            ("FETCH ABSOLUTE -5 FROM \"<unnamed portal 1>\"", "1,v1"),
            ("SELECT f()", "<unnamed portal 2>"),
            ("FETCH \"<unnamed portal 2>\"", "1,v1"),
            ("CLOSE \"<unnamed portal 1>\"", "CLOSE CURSOR"),
            ("SELECT * FROM several()", "<unnamed portal 3>;<unnamed portal 4>"),
            ("FETCH ALL FROM \"<unnamed portal 4>\"", "2,z"),
            ("FETCH NEXT IN \"<unnamed portal 3>\"", "1"),
            ("INSERT INTO log VALUES ('x')", "INSERT 0 1"),
        ],
    );
    let columns = session.cursor_columns("<unnamed portal 4>").expect("an open cursor");
    assert_eq!(columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["y", "w"]);
    assert!(session.cursor_columns("<unnamed portal 1>").is_none(), "it is closed");
    commit(&mut database, session).expect("nothing has changed");
    let mut next = begin(&database);
    assert_eq!(run(&mut next, "FETCH \"<unnamed portal 2>\""), "34000", "COMMIT has closed it");
}

#[test]
fn functions_and_their_client_move_the_same_cursor() {
    let mut database = Database::with(&TABLES);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT named('c')", "c"),
            ("FETCH 2 FROM c", "1;2"),
            ("SELECT next_of('c')", "3"),
            ("FETCH c", "4"),
            ("SELECT said('FETCH c')", "5"),
            ("SELECT said('FETCH 1 FROM c')", "NULL"),
            ("MOVE BACKWARD ALL IN c", "MOVE 5"),
            ("INSERT INTO log SELECT next_of('c')::text", "INSERT 0 1"),
            ("FETCH c", "2"),
        ],
    );
    commit(&mut database, session).expect("nothing has changed");
    assert_eq!(database.rows("SELECT line FROM log"), [["1"]]);
}

#[test]
fn what_was_fetched_holds_at_the_place_of_the_block() {
    for (change, holds) in [
        ("UPDATE t SET v = 'other' WHERE id = 5", true),
        ("UPDATE t SET id = 50 WHERE id = 5", false),
        ("INSERT INTO t VALUES (0, 'before all')", false),
    ] {
        let mut database = Database::with(&TABLES);
        let mut session = begin(&database);
        steps(
            &mut session,
            &[
                ("SELECT named('c')", "c"),
                ("MOVE 3 IN c", "MOVE 3"),
                ("FETCH ALL FROM c", "4;5"),
                ("INSERT INTO log VALUES ('x')", "INSERT 0 1"),
            ],
        );
        database.run(change).expect("a change");
        let committed = commit(&mut database, session);
        assert_eq!(committed, if holds { Ok(()) } else { Err(results_have_changed()) }, "{change}");
    }
}

#[test]
fn a_node_that_comes_to_other_rows_does_not_commit() {
    let mut database = Database::with(&TABLES);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[("SELECT named('c')", "c"), ("FETCH c", "1"), ("INSERT INTO log VALUES ('x')", "INSERT 0 1")],
    );
    let Some(Payload::Session { mut steps, now_ms, results }) = session.finish().payload else {
        panic!("a block")
    };
    steps[1] = step("FETCH 2 FROM c");
    let error = database.execute(Payload::Session { steps, now_ms, results }).expect_err("another FETCH");
    assert_eq!(error, results_have_changed());
}

#[test]
fn savepoints_close_the_cursors_behind_them_and_move_none() {
    let mut database = Database::with(&TABLES);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT named('c')", "c"),
            ("SELECT named('e')", "e"),
            ("SAVEPOINT s", "SAVEPOINT"),
            ("FETCH 2 FROM c", "1;2"),
            ("SELECT named('d')", "d"),
            ("CLOSE e", "CLOSE CURSOR"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("FETCH c", "3"),
            ("FETCH d", "34000"),
            ("FETCH c", "25P02"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("FETCH e", "34000"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("SELECT named('c')", "42P03"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("FETCH c", "4"),
            ("CLOSE ALL", "CLOSE CURSOR ALL"),
            ("INSERT INTO log VALUES ('x')", "INSERT 0 1"),
        ],
    );
    assert!(!session.has_cursors());
    commit(&mut database, session).expect("nothing has changed");
}

#[test]
fn one_that_only_goes_forward_says_so() {
    let database = Database::with(&TABLES);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[("SELECT forward_only('c')", "c"), ("FETCH 2 FROM c", "1;2"), ("FETCH PRIOR FROM c", "55000")],
    );
}

#[test]
fn a_block_that_only_reads_fetches_too() {
    let database = Database::with(&TABLES);
    let mut session = begin_as(&database, true);
    steps(
        &mut session,
        &[
            ("SELECT named('c')", "c"),
            ("FETCH 2 FROM c", "1;2"),
            ("SELECT next_of('c')", "3"),
            ("FETCH ALL FROM c", "4;5"),
            ("INSERT INTO log VALUES ('x')", "25006"),
        ],
    );
    assert!(session.finish().payload.is_none());
}

#[test]
fn temporary_tables_have_nothing_to_do_with_names_of_cursors() {
    let mut database = Database::with(&TABLES);
    database.gateway("CREATE TEMPORARY TABLE portal (id integer)").expect("a temporary table");
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT f()", "<unnamed portal 1>"),
            ("FETCH \"<unnamed portal 1>\"", "1,v1"),
            ("INSERT INTO log VALUES ('x')", "INSERT 0 1"),
        ],
    );
    commit(&mut database, session).expect("nothing has changed");
}

#[test]
fn rows_that_are_fetched_take_steps() {
    let mut database = Database::with(&TABLES);
    database.run("INSERT INTO t SELECT n, 'v' FROM generate_series(6, 1000) AS n").expect("rows");
    let steps_of = |fetch: &str| {
        let sql = format!("SELECT named('c'); {fetch}");
        database.script_effects(&sql).steps
    };
    assert_eq!(steps_of("FETCH ALL FROM c") - steps_of("FETCH 1 FROM c"), 999);
    assert_eq!(steps_of("MOVE ALL IN c"), steps_of("MOVE 0 IN c"));
}

#[test]
fn before_version_16_such_statements_are_none_of_a_block() {
    let mut database = Database::of_version(ExecutionVersion::V15);
    for script in TABLES {
        database.run(script).expect("a script");
    }
    for (sql, expected) in [
        ("FETCH ALL FROM c", "0A000 FETCH ALL FROM is not supported"),
        ("MOVE ALL IN c", "42601 syntax error at or near \"MOVE\""),
        ("CLOSE c", "0A000 CLOSE is not supported"),
    ] {
        let mut session = begin(&database);
        assert_eq!(run(&mut session, "SELECT named('c')"), "c");
        assert!(session.cursor_columns("c").is_none());
        assert!(!session.has_cursors());
        let error = session.run(step(sql)).expect_err(sql);
        assert_eq!(format!("{} {}", error.state, error.message), expected, "{sql}");
    }
}
