//! Transaction blocks: run for a client on a snapshot, and again at the transaction's place.

mod support;

use sql::{Context, Session};
use state::{RowChange, Simulate, Snapshot};
use support::blocks::{begin, begin_as, run, sql, step, steps};
use support::{Database, START_MS, STEP_LIMIT};
use types::{
    ColumnSet, PackedRows, Payload, SessionResults, SessionStep, SqlError, SqlState, StatementResult,
    TransactionId, Value,
};

const TABLES: [&str; 4] = [
    "CREATE TABLE account (id integer PRIMARY KEY, balance bigint CHECK (balance >= 0), step bigint, name text)",
    "CREATE TABLE log (line text, at timestamptz DEFAULT now())",
    "CREATE FUNCTION today() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RETURN now(); END $$",
    "INSERT INTO account VALUES (1, 100, 10, 'a'), (2, 200, 20, 'b')",
];

fn database() -> Database {
    Database::with(&TABLES)
}

fn commit(database: &mut Database, session: Session) -> Result<Vec<StatementResult>, SqlError> {
    database.execute(session.finish().payload.expect("it has changed something"))
}

fn commits(database: &mut Database, session: Session) {
    let results = commit(database, session).expect("nothing has changed");
    assert_eq!(results, [StatementResult { tag: "COMMIT".to_string(), ..StatementResult::default() }]);
}

fn conflicts(database: &mut Database, session: Session) {
    let error = commit(database, session).expect_err("something has changed");
    assert_eq!(error, types::results_have_changed());
}

#[test]
fn a_block_runs_on_one_snapshot_and_sees_its_own_writes() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT balance FROM account WHERE id = 1", "100"),
            ("UPDATE account SET balance = balance + 5 WHERE id = 1", "UPDATE 1"),
            ("SELECT balance FROM account WHERE id = 1", "105"),
            ("INSERT INTO account VALUES (3, 1, 1, 'c') RETURNING id", "3"),
            ("DELETE FROM account WHERE id = 1", "DELETE 1"),
            ("SELECT id FROM account ORDER BY id", "2;3"),
        ],
    );
    // Another transaction in between, which the block does not see and which it has not looked at.
    database.run("UPDATE account SET step = 7 WHERE id = 2").expect("a change");
    steps(&mut session, &[("SELECT count(*), sum(balance) FROM account", "2,201")]);
    commits(&mut database, session);
    assert_eq!(database.rows("SELECT id, step FROM account ORDER BY id"), [["2", "7"], ["3", "1"]]);
}

#[test]
fn a_block_that_would_be_given_something_else_does_not_commit() {
    let mut database = database();
    for (change, looks, changes) in [
        ("UPDATE account SET balance = 1 WHERE id = 1", "SELECT balance FROM account WHERE id = 1", true),
        ("INSERT INTO account VALUES (9, 9, 9, 'z')", "SELECT count(*) FROM account", true),
        ("UPDATE account SET name = 'q' WHERE id = 2", "UPDATE account SET step = 1 WHERE name = 'b'", true),
        ("UPDATE account SET name = 'r' WHERE id = 2", "SELECT step FROM account WHERE id = 2", false),
    ] {
        let mut session = begin(&database);
        run(&mut session, looks);
        run(&mut session, "INSERT INTO log (line) VALUES ('x')");
        database.run(change).expect("a change");
        let before = database.rows("SELECT count(*) FROM log");
        if changes {
            conflicts(&mut database, session);
            assert_eq!(database.rows("SELECT count(*) FROM log"), before, "{looks}");
        } else {
            commits(&mut database, session);
        }
    }
}

#[test]
fn additions_to_a_row_that_nobody_looked_at_commit_whatever_it_is_meanwhile() {
    let mut database = database();
    let mut session = begin(&database);
    steps(&mut session, &[("UPDATE account SET step = step + 1 WHERE id = 1", "UPDATE 1")]);
    database.run("UPDATE account SET step = 1000 WHERE id = 1").expect("a change");
    commits(&mut database, session);
    assert_eq!(database.rows("SELECT step FROM account WHERE id = 1"), [["1001"]]);
}

#[test]
fn savepoints_undo_and_keep() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("UPDATE account SET balance = 1 WHERE id = 1", "UPDATE 1"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("UPDATE account SET balance = 2 WHERE id = 1", "UPDATE 1"),
            ("SAVEPOINT b", "SAVEPOINT"),
            ("UPDATE account SET balance = -1 WHERE id = 1", "23514"),
            ("SELECT 1", "25P02"),
            ("SAVEPOINT c", "25P02"),
            ("ROLLBACK TO nowhere", "3B001"),
            ("SELECT 1", "25P02"),
            ("ROLLBACK TO b", "ROLLBACK"),
            ("SELECT balance FROM account WHERE id = 1", "2"),
            ("INSERT INTO account VALUES (1, 1, 1, 'x')", "23505"),
            ("ROLLBACK TO b", "ROLLBACK"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("DELETE FROM account", "DELETE 2"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("SELECT count(*) FROM account", "2"),
            ("RELEASE a", "RELEASE"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("SELECT balance FROM account WHERE id = 1", "1"),
            ("ROLLBACK TO b", "3B001"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("INSERT INTO account VALUES (4, 4, 4, 'd')", "INSERT 0 1"),
            ("RELEASE a", "RELEASE"),
            ("SELECT sum(balance) FROM account", "205"),
        ],
    );
    commits(&mut database, session);
    assert_eq!(
        database.rows("SELECT id, balance FROM account ORDER BY id"),
        [["1", "1"], ["2", "200"], ["4", "4"]]
    );
}

#[test]
fn what_functions_write_is_there_for_the_next_statement_and_undone_with_their_own() {
    let mut database = Database::with(&[
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "CREATE FUNCTION put(i integer) RETURNS integer LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO t VALUES (i); RETURN i; END $$",
    ]);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT put(1)", "1"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("SELECT put(2)", "2"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("SELECT id FROM t", "1"),
            ("SELECT put(1)", "23505"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("SELECT put(3)", "3"),
            ("SAVEPOINT b", "SAVEPOINT"),
            ("RELEASE a", "RELEASE"),
            ("SELECT id FROM t ORDER BY id", "1;3"),
        ],
    );
    commits(&mut database, session);
    assert_eq!(database.rows("SELECT count(*) FROM t"), [["2"]]);
}

#[test]
fn what_the_client_was_given_before_a_rollback_counts_too() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SAVEPOINT a", "SAVEPOINT"),
            ("SELECT balance FROM account WHERE id = 2", "200"),
            ("SELECT 1 / (step - 20) FROM account WHERE id = 2", "22012"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("INSERT INTO log (line) VALUES ('the account has no step')", "INSERT 0 1"),
        ],
    );
    database.run("UPDATE account SET step = 21 WHERE id = 2").expect("a change");
    conflicts(&mut database, session);
}

#[test]
fn a_block_that_changes_nothing_is_no_transaction() {
    let database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT count(*) FROM account", "2"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("TRUNCATE account", "TRUNCATE TABLE"),
            ("SELECT count(*) FROM account", "0"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("UPDATE account SET step = 1 WHERE step > 1000", "UPDATE 0"),
        ],
    );
    assert_eq!(session.finish().payload, None);
}

#[test]
fn a_block_that_is_to_read_only_reads() {
    let database = database();
    let mut session = begin_as(&database, true);
    steps(
        &mut session,
        &[
            ("SELECT count(*) FROM account", "2"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("DELETE FROM account", "25006"),
            ("ROLLBACK TO a", "ROLLBACK"),
            ("DO $$ BEGIN PERFORM today(); END $$", "DO"),
        ],
    );
    assert_eq!(session.set_read_only(false).expect_err("too late").state, SqlState::ACTIVE_TRANSACTION);
    let error = session.run(sql("INSERT INTO log (line) VALUES ('x')")).expect_err("a write");
    assert_eq!(error.message, "cannot execute INSERT in a read-only transaction");
    assert_eq!(session.finish().payload, None);
    let mut session = begin(&database);
    steps(&mut session, &[("INSERT INTO log (line) VALUES ('x')", "INSERT 0 1")]);
    session.set_read_only(true).expect("at any time");
    steps(&mut session, &[("INSERT INTO log (line) VALUES ('x')", "25006")]);
}

#[test]
fn a_block_that_reads_only_says_what_it_does_not_run_as_postgresql_does() {
    let mut database = database();
    for sql in [
        "CREATE SEQUENCE s",
        "CREATE VIEW locking AS SELECT id FROM account FOR UPDATE",
        "CREATE VIEW plain AS SELECT id FROM account",
        "CREATE FUNCTION note(wanted boolean) RETURNS integer LANGUAGE plpgsql AS
            $$ BEGIN IF wanted THEN INSERT INTO log (line) VALUES ('x'); END IF; RETURN 1; END $$",
        "CREATE PROCEDURE noted() LANGUAGE plpgsql AS $$ BEGIN UPDATE account SET balance = 1 WHERE id = 1; END $$",
    ] {
        database.run(sql).expect(sql);
    }
    let mut session = begin_as(&database, true);
    for (text, refused) in [
        ("DELETE FROM account WHERE false", Some("DELETE")),
        ("UPDATE account SET name = 'b' WHERE id = 1", Some("UPDATE")),
        ("TRUNCATE log", Some("TRUNCATE TABLE")),
        ("WITH x AS (INSERT INTO log (line) VALUES ('x') RETURNING line) SELECT * FROM x", Some("SELECT")),
        ("SELECT note(true)", Some("INSERT")),
        ("SELECT note(false)", None),
        ("CALL noted()", Some("UPDATE")),
        ("DO $$ BEGIN DELETE FROM log; END $$", Some("DELETE")),
        ("SELECT nextval('s')", Some("nextval()")),
        ("CREATE TABLE IF NOT EXISTS account (id integer)", Some("CREATE TABLE")),
        ("CREATE TABLE copied AS SELECT * FROM account", Some("CREATE TABLE AS")),
        ("DROP TABLE log", Some("DROP TABLE")),
        ("CREATE ROLE clerk", Some("CREATE ROLE")),
        ("CREATE TEMPORARY TABLE mine (id integer)", Some("CREATE TABLE")),
        ("EXPLAIN INSERT INTO log (line) VALUES ('x')", None),
        ("SELECT id FROM account FOR UPDATE", Some("SELECT FOR UPDATE")),
        ("SELECT id FROM account WHERE false FOR NO KEY UPDATE", Some("SELECT FOR NO KEY UPDATE")),
        ("SELECT id FROM account FOR KEY SHARE NOWAIT", Some("SELECT FOR KEY SHARE")),
        (
            "SELECT a.id FROM account AS a, account AS b LIMIT 0 FOR SHARE OF b FOR UPDATE OF a",
            Some("SELECT FOR SHARE"),
        ),
        ("SELECT id FROM (SELECT id FROM account FOR UPDATE) AS x", Some("SELECT FOR UPDATE")),
        (
            "WITH x AS (SELECT id FROM account FOR NO KEY UPDATE) SELECT * FROM x",
            Some("SELECT FOR NO KEY UPDATE"),
        ),
        ("SELECT (SELECT id FROM account LIMIT 1 FOR SHARE)", Some("SELECT FOR SHARE")),
        ("SELECT id FROM locking", Some("SELECT FOR UPDATE")),
        ("SELECT id FROM plain FOR NO KEY UPDATE", Some("SELECT FOR NO KEY UPDATE")),
        (
            "DO $$ DECLARE n integer; BEGIN n := (SELECT id FROM account LIMIT 1 FOR UPDATE); END $$",
            Some("SELECT FOR UPDATE"),
        ),
        (
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM account FOR UPDATE LOOP END LOOP; END $$",
            Some("SELECT FOR UPDATE"),
        ),
        (
            "DO $$ BEGIN PERFORM id FROM account WHERE id = 1; PERFORM id FROM account WHERE id = 1 FOR SHARE; END $$",
            Some("SELECT FOR SHARE"),
        ),
        ("EXPLAIN SELECT id FROM account FOR UPDATE", None),
        ("SELECT id FROM account", None),
        ("SELECT id FROM plain", None),
        ("SELECT n FROM generate_series(1, 2) AS g(n) FOR UPDATE", None),
    ] {
        session.run(step("SAVEPOINT a")).expect("a savepoint");
        let given = session.run(sql(text)).err().map(|error| (error.state, error.message));
        let said = |what: &str| format!("cannot execute {what} in a read-only transaction");
        let expected = refused.map(|what| (SqlState::READ_ONLY_TRANSACTION, said(what)));
        assert_eq!(given, expected, "{text}");
        session.run(step("ROLLBACK TO a")).expect("rolled back");
    }
    let rows = PackedRows::default();
    let insert = SessionStep::Insert { table: "log".to_string(), columns: vec!["line".to_string()], rows };
    let error = session.run(insert).expect_err("a write");
    assert_eq!(error.message, "cannot execute COPY FROM in a read-only transaction");
}

#[test]
fn the_time_is_the_sessions_in_its_statements_and_the_blocks_in_routines() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT now()", "2026-11-20 22:00:00+00"),
            ("INSERT INTO log (line) VALUES ('x') RETURNING at", "2026-11-20 22:00:00+00"),
            ("INSERT INTO log SELECT 'y', today()", "INSERT 0 1"),
            ("SELECT count(*) FROM log WHERE at <= now()", "2"),
        ],
    );
    // The time of a routine was another one: what it says is not to be seen.
    let mut seen = begin(&database);
    steps(
        &mut seen,
        &[
            ("SELECT today()", "2026-11-20 22:00:00+00"),
            ("INSERT INTO log (line) VALUES ('x')", "INSERT 0 1"),
        ],
    );
    conflicts(&mut database, seen);
    // `at <= now()` is false now for what the function has made: the routine's time is not the session's.
    conflicts(&mut database, session);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("INSERT INTO log (line) VALUES ('x') RETURNING at", "2026-11-20 22:00:00+00"),
            ("INSERT INTO log SELECT 'y', today()", "INSERT 0 1"),
        ],
    );
    commits(&mut database, session);
    let at = format!("2026-11-20 23:00:{:02}+00", database.height);
    assert_eq!(
        database.rows("SELECT line, at FROM log ORDER BY line"),
        [["x", "2026-11-20 22:00:00+00"], ["y", at.as_str()]]
    );
}

#[test]
fn values_of_sequences_in_a_block_are_those_that_its_client_was_given() {
    let mut database = database();
    database
        .run("CREATE TABLE item (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text); CREATE SEQUENCE s")
        .expect("a table");
    let mut session = begin(&database);
    let id = run(&mut session, "INSERT INTO item (name) VALUES ('a') RETURNING id");
    steps(
        &mut session,
        &[
            ("SELECT currval('item_id_seq') - lastval()", "0"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("INSERT INTO item (name) VALUES ('gone')", "INSERT 0 1"),
            ("ROLLBACK TO a", "ROLLBACK"),
        ],
    );
    let other = run(&mut session, "INSERT INTO item (name) VALUES ('b') RETURNING id");
    let (id, other): (i64, i64) = (id.parse().expect("a number"), other.parse().expect("a number"));
    assert!(id > 1 << 62 && other > id, "{id}, {other}");
    // Drawing outside of blocks, in between, takes nothing away.
    database.run("INSERT INTO item (name) VALUES ('c')").expect("a row");
    commits(&mut database, session);
    let (id, other) = (id.to_string(), other.to_string());
    assert_eq!(
        database.rows("SELECT id, name FROM item WHERE name <> 'c' ORDER BY id"),
        [[id.as_str(), "a"], [other.as_str(), "b"]]
    );
    assert_eq!(database.rows("SELECT name FROM item ORDER BY id LIMIT 1"), [["c"]]);
}

#[test]
fn what_is_no_part_of_a_block_is_refused() {
    let database = database();
    let refused = |text: &str| begin(&database).run(sql(text)).expect_err(text);
    assert_eq!(refused("COPY account FROM STDIN").state, SqlState::FEATURE_NOT_SUPPORTED);
    assert_eq!(refused("SELECT 1; SELECT 2").state, SqlState::SYNTAX_ERROR);
    assert_eq!(refused("SELECT $1").state, SqlState::PROTOCOL_VIOLATION);
    assert_eq!(begin(&database).run(sql("")), Ok(StatementResult::default()));
}

#[test]
fn rows_of_copy_are_a_step_like_others() {
    let mut database = database();
    let mut session = begin(&database);
    let insert = |values: &[(i32, i64)]| SessionStep::Insert {
        table: "account".to_string(),
        columns: vec!["id".to_string(), "balance".to_string()],
        rows: PackedRows::pack(
            values.iter().map(|(id, balance)| vec![Value::Integer(*id), Value::BigInt(*balance)]),
        )
        .expect("rows"),
    };
    assert_eq!(session.run(insert(&[(5, 5), (6, 6)])).expect("new rows").tag, "COPY 2");
    steps(
        &mut session,
        &[("SELECT sum(balance) FROM account WHERE id > 2", "11"), ("SAVEPOINT a", "SAVEPOINT")],
    );
    assert_eq!(
        session.run(insert(&[(7, 7), (5, 5)])).expect_err("it exists").state,
        SqlState::UNIQUE_VIOLATION
    );
    steps(&mut session, &[("ROLLBACK TO a", "ROLLBACK"), ("SELECT max(id) FROM account", "6")]);
    commits(&mut database, session);
    assert_eq!(database.rows("SELECT count(*) FROM account"), [["4"]]);
}

#[test]
fn blocks_have_limits() {
    let database = database();
    let mut session = begin(&database);
    for _ in 0..types::limits::SAVEPOINTS_MAX {
        assert_eq!(run(&mut session, "SAVEPOINT s"), "SAVEPOINT");
    }
    assert_eq!(run(&mut session, "SAVEPOINT s"), "54000");
    steps(
        &mut session,
        &[("ROLLBACK TO s", "ROLLBACK"), ("RELEASE s", "RELEASE"), ("SAVEPOINT s", "SAVEPOINT")],
    );

    let mut session = begin(&database);
    for _ in 0..types::limits::SESSION_STEPS_MAX {
        session.run(sql("SELECT 1")).expect("a short one");
    }
    let error = session.run(sql("SELECT 1")).expect_err("one too many");
    assert_eq!(error.message, "a transaction block has at most 100000 statements (SESSION_STEPS_MAX)");

    let long = format!("SELECT '{}'", "x".repeat(100_000));
    let mut session = begin(&database).of_at_most(256 * 1024);
    steps(&mut session, &[("DELETE FROM account WHERE id = 1", "DELETE 1")]);
    session.run(sql(&long)).expect("there is room");
    session.run(sql(&long)).expect("there is room");
    assert_eq!(run(&mut session, &long), "54000");
    // What only reads from the first has no such limits: nobody runs it again.
    let mut session = begin_as(&database, true);
    for _ in 0..5 {
        session.run(sql(&long)).expect("there is room");
    }

    // A block is metered like a transaction, but not as long as it only reads.
    let series = format!("SELECT count(*) FROM generate_series(1, {})", STEP_LIMIT * 2 / 3);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[(&series, "666666"), (&series, "666666"), ("DELETE FROM account WHERE id = 1", "57014")],
    );
    // Savepoints cost what they keep.
    let mut session = begin(&database);
    let rows = "INSERT INTO account SELECT g, 1, 1, 'x' FROM generate_series(10, 100009) AS g";
    steps(&mut session, &[(rows, "INSERT 0 100000")]);
    let savepoints = (0..10).take_while(|_| run(&mut session, "SAVEPOINT s") == "SAVEPOINT").count();
    assert!((5..10).contains(&savepoints), "{savepoints}");
}

#[test]
fn a_transaction_that_no_gateway_makes_does_not_commit() {
    let mut database = database();
    let failed = || Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    let tag = |tag: &str| Ok(StatementResult { tag: tag.to_string(), ..StatementResult::default() });
    let run = |database: &mut Database, texts: &[&str], given: &[Result<StatementResult, SqlError>]| {
        let mut results = SessionResults::default();
        given.iter().for_each(|result| results.add(result));
        let steps = texts.iter().map(|text| step(text)).collect();
        database.execute(Payload::Session { steps, now_ms: 0, results: results.digest() })
    };
    let delete = "DELETE FROM account WHERE id = 1";
    let fails = "SELECT 1 / 0";
    let changed = types::results_have_changed();
    assert!(run(&mut database, &[fails], &[failed()]).is_err_and(|error| error == changed));
    let texts = [delete, fails];
    assert!(run(&mut database, &texts, &[tag("DELETE 1"), failed()]).is_err_and(|error| error == changed));
    let texts = ["SAVEPOINT a", delete, fails];
    let given = [tag("SAVEPOINT"), tag("DELETE 1"), failed()];
    assert!(run(&mut database, &texts, &given).is_err_and(|error| error == changed));
    assert!(run(&mut database, &["ROLLBACK TO a"], &[tag("ROLLBACK")]).is_err_and(|error| error == changed));
    assert!(run(&mut database, &["DROP TABLE account"], &[]).is_err_and(|error| error == changed));
    assert!(run(&mut database, &[delete], &[]).is_err_and(|error| error == changed));
    assert_eq!(database.rows("SELECT count(*) FROM account"), [["2"]]);
    run(&mut database, &[delete], &[tag("DELETE 1")]).expect("what it would be given");
    assert_eq!(database.rows("SELECT count(*) FROM account"), [["1"]]);
    // A statement may appear again and again, and a script may be none.
    run(&mut database, &[], &[]).expect("nothing is given");
}

#[test]
fn what_a_command_ends_with_at_its_place_is_a_conflict() {
    let database = database();
    let mut session = begin(&database);
    steps(&mut session, &[("UPDATE account SET balance = balance - 50 WHERE id = 1", "UPDATE 1")]);
    let effects = database.effects(session.finish().payload.expect("a change"));
    let command = &effects.commands[0];
    let row = |balance: i64| -> types::Row {
        [Value::Integer(1), Value::BigInt(balance), Value::BigInt(10), Value::text("a")].into()
    };
    assert!(matches!(command.function.apply(Some(&row(70))), Ok(RowChange::Put(_))));
    let error = command.function.apply(Some(&row(40))).expect_err("too little");
    assert_eq!(error, types::results_have_changed());
    // It was not read: others may change it, and it is changed at its place.
    let read = |columns: ColumnSet| effects.reads.iter().any(|read| read.columns.intersects(columns));
    assert!(!read(ColumnSet::column(1)));
}

#[test]
fn what_an_undone_step_used_is_read_and_so_is_what_made_its_row() {
    let database = database();
    let columns = |effects: &state::Effects| {
        effects.reads.iter().fold(ColumnSet::EMPTY, |all, read| all | read.columns)
    };
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            // `balance` is now what it was and `step`; the division looks at both.
            ("UPDATE account SET balance = balance + step WHERE id = 1", "UPDATE 1"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("UPDATE account SET name = (1 / (balance - 110))::text WHERE id = 1", "22012"),
            ("ROLLBACK TO a", "ROLLBACK"),
        ],
    );
    let read = columns(&database.effects(session.finish().payload.expect("a change")));
    assert!(read.intersects(ColumnSet::column(1)) && read.intersects(ColumnSet::column(2)), "{read:?}");

    let handled = "DO $$ BEGIN
        UPDATE account SET balance = balance + step WHERE id = 1;
        BEGIN
            UPDATE account SET name = (1 / (balance - 110))::text WHERE id = 1;
        EXCEPTION WHEN OTHERS THEN NULL;
        END; END $$";
    let read = columns(&database.script_effects(handled));
    assert!(read.intersects(ColumnSet::column(1)) && read.intersects(ColumnSet::column(2)), "{read:?}");
}

#[test]
fn what_a_block_may_run_is_what_its_statements_may() {
    let database = database();
    let mut session = begin(&database);
    steps(&mut session, &[("SELECT count(today())", "1"), ("DELETE FROM account", "DELETE 2")]);
    let payload = session.finish().payload.expect("a change");
    let involved = database.library.involved(&payload).expect("few");
    assert!(involved.statements);
    assert_eq!(involved.procedures.iter().map(|one| one.procedure.as_str()).collect::<Vec<_>>(), ["today"]);
    // The snapshot is not needed to know the tables that it may touch.
    let footprint = database.footprint(payload.clone()).expect("plain statements");
    let invocation = sql::Invocation::new(
        database.library.clone(),
        Context {
            height: 1,
            timestamp_ms: START_MS,
            index: 0,
            transaction: TransactionId::default(),
            step_limit: STEP_LIMIT,
        },
        payload,
    );
    assert!(footprint.covers(&invocation.simulate(&database.state).expect("memory can be read")));
    assert_eq!(database.state.catalog().version, session_version(&database));
}

fn session_version(database: &Database) -> u64 {
    begin(database).catalog_version()
}

#[test]
fn checkpoint_stands_alone() {
    let database = database();
    let mut session = begin(&database);
    assert_eq!(run(&mut session, "CHECKPOINT"), "25001");
}

#[test]
fn with_queries_that_change_rows_run_in_blocks() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            (
                "WITH a AS (UPDATE account SET balance = balance + 5 WHERE id = 1 RETURNING balance) SELECT balance FROM a",
                "105",
            ),
            ("WITH a AS (INSERT INTO log (line) VALUES ('unread')) SELECT count(*) FROM log", "0"),
            (
                "WITH a AS (DELETE FROM account WHERE id = 2 RETURNING name) INSERT INTO log (line) SELECT name FROM a",
                "INSERT 0 1",
            ),
            ("SAVEPOINT s", "SAVEPOINT"),
            ("WITH a AS (INSERT INTO account VALUES (1)) SELECT 1", "23505"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("SELECT line FROM log ORDER BY line", "b;unread"),
            ("SELECT id, balance FROM account", "1,105"),
        ],
    );
    commits(&mut database, session);
    assert_eq!(database.rows("SELECT id, balance FROM account"), [["1", "105"]]);
    assert_eq!(database.rows("SELECT line FROM log ORDER BY line"), [["b"], ["unread"]]);

    // What it returns was seen.
    let mut session = begin(&database);
    let text = "WITH a AS (UPDATE account SET step = 1 RETURNING balance) SELECT balance FROM a";
    steps(&mut session, &[(text, "105")]);
    database.run("UPDATE account SET balance = 106 WHERE id = 1").expect("a change");
    conflicts(&mut database, session);
}

fn with_constraints() -> Database {
    let mut database = database();
    let tables = "CREATE TABLE p (id int PRIMARY KEY);
                  CREATE TABLE c (id int PRIMARY KEY, p int CONSTRAINT c_p REFERENCES p DEFERRABLE INITIALLY DEFERRED,
                      u int UNIQUE DEFERRABLE)";
    database.run(tables).expect("tables");
    database
}

/// COMMIT ends with this.
fn violated(database: &mut Database, session: Session, state: &str) {
    let error = commit(database, session).expect_err("it is violated");
    assert_eq!(error.state.to_string(), state, "{error:?}");
}

#[test]
fn what_constraints_put_off_is_held_at_commit() {
    let mut database = with_constraints();
    let mut session = begin(&database);
    let insert = "INSERT INTO c VALUES (1, 1)";
    steps(&mut session, &[(insert, "INSERT 0 1"), ("INSERT INTO p VALUES (1)", "INSERT 0 1")]);
    commits(&mut database, session);

    let mut session = begin(&database);
    steps(&mut session, &[("INSERT INTO c VALUES (2, 2)", "INSERT 0 1"), ("SELECT count(*) FROM c", "2")]);
    violated(&mut database, session, "23503");
    assert_eq!(database.rows("SELECT count(*) FROM c"), [["1"]]);

    // What has been undone needs no check; what undone statements had checked or taken away needs one again.
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SAVEPOINT s", "SAVEPOINT"),
            ("INSERT INTO c VALUES (2, 2)", "INSERT 0 1"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("INSERT INTO c VALUES (3, 3)", "INSERT 0 1"),
            ("SAVEPOINT t", "SAVEPOINT"),
            ("INSERT INTO p VALUES (3)", "INSERT 0 1"),
            ("SET CONSTRAINTS c_p IMMEDIATE", "SET CONSTRAINTS"),
            ("ROLLBACK TO t", "ROLLBACK"),
        ],
    );
    violated(&mut database, session, "23503");

    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("INSERT INTO c VALUES (2, 2)", "INSERT 0 1"),
            ("SAVEPOINT s", "SAVEPOINT"),
            ("SET CONSTRAINTS c_p IMMEDIATE", "23503"),
            ("SELECT 1", "25P02"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("UPDATE c SET p = 1 WHERE id = 2", "UPDATE 1"),
        ],
    );
    commits(&mut database, session);
}

#[test]
fn what_constraints_put_off_is_held_as_the_rows_and_the_schema_are_then() {
    let mut database = with_constraints();
    database.run("INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1), (2, 1)").expect("rows");
    // A key may be there twice for a while.
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS"),
            ("UPDATE c SET u = 7", "UPDATE 2"),
            ("SELECT id FROM c WHERE u = 7 ORDER BY id", "1;2"),
            ("UPDATE c SET u = 8 WHERE id = 2", "UPDATE 1"),
        ],
    );
    commits(&mut database, session);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[("SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS"), ("UPDATE c SET u = 7", "UPDATE 2")],
    );
    violated(&mut database, session, "23505");

    // It is held at the block's place: its client has been told nothing else.
    let mut session = begin(&database);
    steps(&mut session, &[("INSERT INTO c VALUES (4, 1)", "INSERT 0 1")]);
    database.run("DELETE FROM c; DELETE FROM p").expect("nothing references it");
    violated(&mut database, session, "23503");

    // The schema of a table stays as long as checks of it wait.
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("INSERT INTO c VALUES (5, 5)", "INSERT 0 1"),
            ("SAVEPOINT s", "SAVEPOINT"),
            ("ALTER TABLE c ADD COLUMN x int", "55006"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("CREATE TABLE other (id int)", "CREATE TABLE"),
            ("ALTER TABLE p ADD COLUMN x int", "ALTER TABLE"),
            ("INSERT INTO p VALUES (5, 1)", "INSERT 0 1"),
        ],
    );
    commits(&mut database, session);
    assert_eq!(database.rows("SELECT c.id, x FROM c JOIN p ON p.id = c.p"), [["5", "1"]]);
    let mut session = begin(&database);
    steps(
        &mut session,
        &[("CREATE TABLE another (id int)", "CREATE TABLE"), ("INSERT INTO c VALUES (6, 6)", "INSERT 0 1")],
    );
    violated(&mut database, session, "23503");
}

#[test]
fn scripts_change_the_schema_beside_what_constraints_put_off() {
    let mut database = with_constraints();
    database.run("INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1)").expect("rows");
    for (script, state) in [
        ("INSERT INTO c VALUES (9, 9); ALTER TABLE c ADD COLUMN x int", "55006"),
        ("INSERT INTO c VALUES (9, 9); DROP TABLE c", "55006"),
        ("DELETE FROM p; ALTER TABLE p ADD COLUMN x int", "55006"),
        ("INSERT INTO c VALUES (9, 9); CREATE TABLE other (id int)", "23503"),
        ("CREATE TABLE other (id int); INSERT INTO c VALUES (9, 9)", "23503"),
        ("CREATE TABLE other (id int); INSERT INTO c VALUES (9, 9); SET CONSTRAINTS ALL IMMEDIATE", "23503"),
    ] {
        let error = database.run(script).expect_err("it is violated");
        assert_eq!(error.state.to_string(), state, "{script}");
    }
    assert!(!database.library.catalog().tables.contains_key("other"));
    for script in [
        "INSERT INTO c VALUES (2, 2); ALTER TABLE p ADD COLUMN x int; INSERT INTO p VALUES (2, 0)",
        "INSERT INTO c VALUES (3, 1); SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE c ADD COLUMN y int DEFAULT 7",
        // As Django adds a column that references.
        "ALTER TABLE c ADD COLUMN z int NULL CONSTRAINT c_z REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED; \
         SET CONSTRAINTS c_z IMMEDIATE",
        // A key that nobody else has waits for nothing.
        "SET CONSTRAINTS ALL DEFERRED; UPDATE c SET u = 10 - id; SET CONSTRAINTS c_p, c_z IMMEDIATE; ALTER TABLE c DROP COLUMN y",
    ] {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    assert_eq!(
        database.rows("SELECT id, p, u FROM c ORDER BY id"),
        [["1", "1", "9"], ["2", "2", "8"], ["3", "1", "7"]]
    );
    assert_eq!(database.error("INSERT INTO c VALUES (4, 1, 9)").state.to_string(), "23505");
}
