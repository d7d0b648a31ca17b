//! Transaction blocks and scripts that change the schema among other statements, and temporary tables in blocks.

mod support;

use sql::{Context, Session};
use state::PlainState;
use std::sync::Arc;
use support::{Database, START_MS, STEP_LIMIT, run_step, step};
use types::{Commented, Payload, Principal, SqlError, SqlState, StatementResult, TransactionId};

fn database() -> Database {
    Database::with(&[
        "CREATE TABLE account (id integer PRIMARY KEY, balance bigint NOT NULL, name text)",
        "INSERT INTO account VALUES (1, 100, 'a'), (2, 200, 'b')",
    ])
}

fn begin(database: &Database) -> Session {
    let context = Context {
        height: u64::MAX,
        timestamp_ms: START_MS - 3_600_000,
        index: u32::MAX,
        transaction: TransactionId::default(),
        step_limit: STEP_LIMIT,
    };
    Session::begin(
        database.library.clone(),
        Arc::new(database.state.clone()),
        context,
        database.principal.clone(),
        2 * STEP_LIMIT,
        false,
        database.temporary.clone(),
    )
}

/// Runs steps and checks what each gives: its rows, its tag where it has none, or its SQLSTATE.
fn steps(session: &mut Session, expected: &[(&str, &str)]) {
    for (text, given) in expected {
        assert_eq!(run_step(session, text), *given, "{text}");
    }
}

/// COMMIT: orders what the block is, and keeps its temporary tables.
fn commit(database: &mut Database, session: Session) -> Result<Vec<StatementResult>, SqlError> {
    let finished = session.finish();
    let result = finished.payload.map_or(Ok(Vec::new()), |payload| database.execute(payload));
    if result.is_ok() {
        database.temporary = finished.temporary;
    }
    result
}

#[test]
fn statements_run_on_the_schema_that_those_before_them_have_left() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("UPDATE account SET balance = balance + 1 WHERE id = 1", "UPDATE 1"),
            ("CREATE TABLE log (id integer PRIMARY KEY, line text)", "CREATE TABLE"),
            ("INSERT INTO log VALUES (1, 'x'), (2, 'y')", "INSERT 0 2"),
            ("ALTER TABLE account ADD COLUMN note text DEFAULT 'none'", "ALTER TABLE"),
            ("SELECT id, balance, note FROM account ORDER BY id", "1,101,none;2,200,none"),
            ("UPDATE account SET note = 'z' WHERE id = 2", "UPDATE 1"),
            ("CREATE UNIQUE INDEX log_line ON log (line)", "CREATE INDEX"),
            ("INSERT INTO log VALUES (3, 'w')", "INSERT 0 1"),
            ("SELECT id FROM log WHERE line = 'w'", "3"),
            ("SELECT id FROM log WHERE line = 'x'", "1"),
            (
                "CREATE FUNCTION lines() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM log); END $$",
                "CREATE FUNCTION",
            ),
            ("SELECT lines()", "3"),
            ("CREATE VIEW v AS SELECT line FROM log WHERE id > 1", "CREATE VIEW"),
            ("SELECT * FROM v ORDER BY line", "w;y"),
            ("CREATE TABLE copy AS SELECT * FROM log", "SELECT 3"),
            ("SELECT count(*) FROM copy", "3"),
            ("DROP TABLE copy", "DROP TABLE"),
        ],
    );
    commit(&mut database, session).expect("nothing has changed meanwhile");
    assert_eq!(
        database.rows("SELECT * FROM account ORDER BY id"),
        [["1", "101", "a", "none"], ["2", "200", "b", "z"]]
    );
    assert_eq!(database.rows("SELECT id FROM log WHERE line = 'y'"), [["2"]]);
    assert_eq!(database.rows("SELECT lines()"), [["3"]]);
    assert_eq!(database.error("SELECT * FROM copy").state, SqlState::UNDEFINED_TABLE);
    let duplicate = database.error("INSERT INTO log VALUES (9, 'w')");
    assert_eq!(duplicate.state, SqlState::UNIQUE_VIOLATION);
}

#[test]
fn an_index_made_in_a_block_knows_what_the_block_has_written_before() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("INSERT INTO account VALUES (3, 200, 'c')", "INSERT 0 1"),
            ("SAVEPOINT s", "SAVEPOINT"),
            (
                "CREATE UNIQUE INDEX account_balance ON account (balance)",
                "23505 could not create unique index \"account_balance\"",
            ),
            (
                "SELECT 1",
                "25P02 current transaction is aborted, commands ignored until end of transaction block",
            ),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("DELETE FROM account WHERE id = 2", "DELETE 1"),
            ("CREATE UNIQUE INDEX account_balance ON account (balance)", "CREATE INDEX"),
            ("SELECT id FROM account WHERE balance = 200", "3"),
        ],
    );
    commit(&mut database, session).expect("nothing has changed meanwhile");
    assert_eq!(database.rows("SELECT id FROM account WHERE balance = 200"), [["3"]]);
    assert_eq!(database.error("INSERT INTO account VALUES (4, 100, 'd')").state, SqlState::UNIQUE_VIOLATION);
}

#[test]
fn schema_changes_are_undone_with_their_savepoint() {
    let mut database = database();
    let before = database.state.catalog.clone();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SAVEPOINT s", "SAVEPOINT"),
            ("CREATE TABLE t (id integer PRIMARY KEY)", "CREATE TABLE"),
            ("INSERT INTO t VALUES (1)", "INSERT 0 1"),
            ("UPDATE account SET name = 'x' WHERE id = 1", "UPDATE 1"),
            ("ALTER TABLE account DROP COLUMN balance", "ALTER TABLE"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("SELECT name, balance FROM account WHERE id = 1", "a,100"),
            ("SELECT * FROM t", "42P01 relation \"t\" does not exist"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("CREATE TABLE t (id text PRIMARY KEY)", "CREATE TABLE"),
            ("INSERT INTO t VALUES ('one')", "INSERT 0 1"),
            ("RELEASE s", "RELEASE"),
        ],
    );
    commit(&mut database, session).expect("nothing has changed meanwhile");
    assert_eq!(database.rows("SELECT * FROM t"), [["one"]]);
    // A block that undoes everything is no transaction.
    let mut session = begin(&database);
    steps(
        &mut session,
        &[("SAVEPOINT s", "SAVEPOINT"), ("DROP TABLE account", "DROP TABLE"), ("ROLLBACK TO s", "ROLLBACK")],
    );
    assert_eq!(session.finish().payload, None);
    assert_ne!(before.version, database.state.catalog.version);
}

#[test]
fn a_block_with_a_schema_change_commits_only_if_its_client_was_told_the_truth() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("CREATE TABLE t (id integer PRIMARY KEY)", "CREATE TABLE"),
            ("SELECT balance FROM account WHERE id = 1", "100"),
        ],
    );
    database.run("UPDATE account SET balance = 7 WHERE id = 1").expect("a change");
    let before: PlainState = database.state.clone();
    assert_eq!(commit(&mut database, session), Err(types::results_have_changed()));
    assert!(database.state == before);
}

#[test]
fn only_the_administrator_changes_the_schema_in_a_block() {
    let mut database = database();
    database.run("CREATE ROLE clerk LOGIN; GRANT SELECT ON account TO clerk").expect("a role");
    database.principal.role = "clerk".to_string();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT count(*) FROM account", "2"),
            ("CREATE TABLE t (id integer)", "42501 permission denied for schema public"),
        ],
    );
    // A client that signs for itself says the same in a payload.
    let payload = Payload::Session {
        steps: vec![step("CREATE TABLE t (id integer)")],
        now_ms: START_MS,
        results: types::SessionResults::default().digest(),
    };
    assert!(database.execute(payload).is_err());
    assert!(!database.state.catalog.tables.contains_key("t"));
}

#[test]
fn a_query_string_may_change_the_schema_among_other_statements() {
    let mut database = database();
    let script = "INSERT INTO account VALUES (3, 5, 'c');
        CREATE TABLE rich (id integer PRIMARY KEY); CREATE INDEX ON account (name);
        INSERT INTO rich SELECT id FROM account WHERE balance > 50;
        ALTER TABLE rich ADD COLUMN name text;
        UPDATE rich SET name = 'n' || id;
        CREATE TABLE names AS SELECT name FROM rich ORDER BY id;
        SELECT count(*) FROM names";
    let results = database.run(script).expect("one transaction");
    let tags: Vec<&str> = results.iter().map(|result| result.tag.as_str()).collect();
    assert_eq!(
        tags,
        [
            "INSERT 0 1",
            "CREATE TABLE",
            "CREATE INDEX",
            "INSERT 0 2",
            "ALTER TABLE",
            "UPDATE 2",
            "SELECT 2",
            "SELECT 1"
        ]
    );
    assert_eq!(database.rows("SELECT name FROM names ORDER BY name"), [["n1"], ["n2"]]);
    // What ends with an error leaves nothing.
    let before = database.state.clone();
    let error =
        database.run("CREATE TABLE u (id integer); DELETE FROM account; SELECT 1/0").expect_err("zero");
    assert_eq!(error.state, SqlState::DIVISION_BY_ZERO);
    assert!(database.state == before);
}

#[test]
fn temporary_tables_of_a_block_are_the_sessions_after_commit() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("CREATE TEMPORARY TABLE t (id integer PRIMARY KEY, n integer)", "CREATE TABLE"),
            ("INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT 0 2"),
            ("SAVEPOINT s", "SAVEPOINT"),
            ("DELETE FROM t", "DELETE 2"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("CREATE TEMPORARY TABLE gone (id integer) ON COMMIT DROP", "CREATE TABLE"),
            ("SELECT sum(n) FROM t", "30"),
            ("SELECT n, balance FROM t JOIN account USING (id) ORDER BY id", "10,100;20,200"),
            ("SELECT id FROM nothing", "42P01 relation \"nothing\" does not exist"),
            (
                "SELECT sum(n) FROM t",
                "25P02 current transaction is aborted, commands ignored until end of transaction block",
            ),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("SELECT sum(n) FROM t", "30"),
        ],
    );
    let finished = session.finish();
    assert_eq!(finished.payload, None, "nothing of it is ordered");
    // Rolled back: the session's own have not changed.
    assert_eq!(database.error("SELECT * FROM t").state, SqlState::UNDEFINED_TABLE);
    database.temporary = finished.temporary;
    assert_eq!(database.rows("SELECT * FROM t ORDER BY id"), [["1", "10"], ["2", "20"]]);
    assert_eq!(database.error("SELECT * FROM gone").state, SqlState::UNDEFINED_TABLE);
}

#[test]
fn what_a_block_has_read_with_temporary_tables_decides_nothing_on_the_ledger() {
    const REFUSED: &str = "0A000 a change of the ledger in a block that reads the ledger and temporary tables in one statement is not supported";
    let mut database = database();
    database.gateway("CREATE TEMPORARY TABLE t AS SELECT 1 AS id").expect("a temporary table");
    // What a temporary table is changed by from the ledger, no other node finds again.
    let mixed = ("UPDATE t SET id = account.id + 5 FROM account WHERE account.id = t.id", "UPDATE 1");
    let change = "UPDATE account SET balance = 0 WHERE id = 1";
    let mut session = begin(&database);
    steps(&mut session, &[mixed, (change, REFUSED)]);
    let mut session = begin(&database);
    steps(&mut session, &[(change, "UPDATE 1"), ("SELECT count(*) FROM t", "1"), (mixed.0, REFUSED)]);
    // Apart they may be in one block.
    let mut session = begin(&database);
    steps(
        &mut session,
        &[("SELECT id FROM t", "1"), (change, "UPDATE 1"), ("INSERT INTO t VALUES (7)", "INSERT 0 1")],
    );
    commit(&mut database, session).expect("nothing has changed meanwhile");
    assert_eq!(database.rows("SELECT count(*) FROM t"), [["2"]]);
    assert_eq!(database.rows("SELECT balance FROM account WHERE id = 1"), [["0"]]);
    // What a query reads of both is found again: the rows come with it.
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT balance, t.id FROM t JOIN account USING (id)", "0,1"),
            ("UPDATE account SET balance = 5 WHERE id = 1", "UPDATE 1"),
            ("SELECT balance, t.id FROM t JOIN account USING (id)", "5,1"),
        ],
    );
    commit(&mut database, session).expect("nothing has changed meanwhile");
    assert_eq!(database.rows("SELECT balance FROM account WHERE id = 1"), [["5"]]);
}

#[test]
fn a_block_makes_a_schema_and_looks_for_names_there() {
    let mut database = database();
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("CREATE SCHEMA app", "CREATE SCHEMA"),
            ("SET search_path TO app, public;CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE"),
            ("SET search_path TO app;INSERT INTO item VALUES (7)", "INSERT 0 1"),
            ("SELECT * FROM app.item", "7"),
            ("SELECT * FROM item", "42P01 relation \"item\" does not exist"),
        ],
    );
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("CREATE SCHEMA app", "CREATE SCHEMA"),
            ("SET search_path TO app, public;CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE"),
            ("SET search_path TO app;INSERT INTO item VALUES (7)", "INSERT 0 1"),
            (
                "SET search_path TO app, public;SELECT item.id, name FROM item, account WHERE account.id = 1",
                "7,a",
            ),
        ],
    );
    commit(&mut database, session).expect("the same again");
    assert_eq!(database.rows("SELECT * FROM app.item"), [["7"]]);
    // All statements of a script look in the same schemas.
    let script = "SET search_path TO app;CREATE TABLE other (a int);INSERT INTO other VALUES (1);CREATE VIEW seen AS SELECT * FROM other";
    database.run(script).expect("a script");
    assert_eq!(database.rows("SELECT * FROM app.seen"), [["1"]]);
}

#[test]
fn comments_follow_what_they_are_about_and_go_with_it() {
    let mut database = database();
    for sql in [
        "CREATE SCHEMA app",
        "CREATE TABLE app.item (id integer PRIMARY KEY, name text CONSTRAINT named CHECK (name <> ''))",
        "CREATE INDEX by_name ON app.item (name)",
        "CREATE FUNCTION app.f(a integer) RETURNS integer LANGUAGE sql AS 'SELECT a'",
        "COMMENT ON SCHEMA app IS 'schema'",
        "COMMENT ON TABLE app.item IS 'table'",
        "COMMENT ON COLUMN app.item.name IS 'column'",
        "COMMENT ON CONSTRAINT named ON app.item IS 'constraint'",
        "COMMENT ON INDEX app.by_name IS 'index'",
        "COMMENT ON FUNCTION app.f(integer) IS 'function'",
        "COMMENT ON TABLE account IS 'account'",
        "ALTER TABLE app.item RENAME COLUMN name TO called",
        "ALTER TABLE app.item RENAME TO thing",
        "ALTER SCHEMA app RENAME TO program",
    ] {
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let comments = |database: &Database| -> Vec<(Commented, String)> {
        let comments = database.library.catalog().comments.clone();
        comments.into_iter().collect()
    };
    let name = |text: &str| text.to_string();
    let expected = [
        (Commented::Relation(name("account")), name("account")),
        (Commented::Relation(name("program.by_name")), name("index")),
        (Commented::Relation(name("program.thing")), name("table")),
        (Commented::Column(name("program.thing"), name("called")), name("column")),
        (Commented::Routine(name("program.f")), name("function")),
        (Commented::Schema(name("program")), name("schema")),
        (Commented::Constraint(name("program.thing"), name("named")), name("constraint")),
    ];
    assert_eq!(comments(&database), expected);
    database.run("ALTER TABLE program.thing SET SCHEMA public").expect("moved");
    let moved = comments(&database);
    assert!(moved.contains(&(Commented::Relation(name("by_name")), name("index"))), "{moved:?}");
    assert!(moved.contains(&(Commented::Column(name("thing"), name("called")), name("column"))), "{moved:?}");
    database.run("ALTER TABLE thing DROP COLUMN called").expect("dropped");
    database.run("DROP SCHEMA program CASCADE").expect("dropped");
    let left = [
        (Commented::Relation(name("account")), name("account")),
        (Commented::Relation(name("thing")), name("table")),
    ];
    assert_eq!(comments(&database), left);
    database.run("COMMENT ON TABLE thing IS NULL").expect("forgotten");
    assert_eq!(comments(&database).len(), 1);
    let long = "x".repeat(types::limits::COMMENT_BYTES_MAX + 1);
    let error = database.run(&format!("COMMENT ON TABLE thing IS '{long}'")).expect_err("too long");
    assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
}

#[test]
fn roles_grant_and_read_columns_in_blocks() {
    let mut database = database();
    for sql in [
        "CREATE ROLE ann",
        "CREATE ROLE bob",
        "GRANT SELECT (id), UPDATE (name) ON account TO ann WITH GRANT OPTION",
    ] {
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    database.principal = Principal::new(0, "ann");
    let mut session = begin(&database);
    steps(
        &mut session,
        &[
            ("SELECT id FROM account ORDER BY id", "1;2"),
            ("GRANT SELECT (id) ON account TO bob", "GRANT"),
            ("UPDATE account SET name = 'z' WHERE id = 2", "UPDATE 1"),
            ("SAVEPOINT s", "SAVEPOINT"),
            ("UPDATE account SET name = 'z' WHERE balance = 2", "42501 permission denied for table account"),
            ("ROLLBACK TO s", "ROLLBACK"),
            ("CREATE TABLE mine (a int)", "42501 permission denied for schema public"),
            ("ROLLBACK TO s", "ROLLBACK"),
        ],
    );
    commit(&mut database, session).expect("committed");
    database.principal = Principal::new(0, "bob");
    assert_eq!(database.rows("SELECT id FROM account ORDER BY id"), [["1"], ["2"]]);
    assert_eq!(database.error("SELECT name FROM account").state, SqlState::INSUFFICIENT_PRIVILEGE);
    database.principal = Principal::default();
    assert_eq!(database.rows("SELECT name FROM account WHERE id = 2"), [["z"]]);
}
