//! Temporary tables as a gateway drives them, and schema changes that write rows.

mod support;

use sql::{StatementKind, TemporaryTables};
use state::Simulate;
use support::{Database, START_MS, STEP_LIMIT, texts};
use types::{ExecutionVersion, Payload, SqlError, StatementResult, TableId, Value};

fn run(
    temporary: &mut TemporaryTables,
    database: &Database,
    payload: &Payload,
) -> Option<Result<Vec<StatementResult>, SqlError>> {
    let context = sql::Context { step_limit: STEP_LIMIT, ..database.context() };
    let ran = temporary.run(&database.principal, &database.library, &database.state, payload, context);
    ran.map(|ran| ran.map(|local| local.results))
}

fn script(sql: &str) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters: Vec::new() }
}

fn database() -> Database {
    Database::with(&[
        "CREATE TABLE accounts (id integer PRIMARY KEY, balance integer)",
        "INSERT INTO accounts VALUES (1, 10), (2, 20)",
    ])
}

fn rows(temporary: &mut TemporaryTables, database: &Database, sql: &str) -> Vec<Vec<String>> {
    let results = run(temporary, database, &script(sql)).expect("ours").expect("rows");
    texts(results.last().expect("a result"))
}

#[test]
fn what_does_not_concern_them_is_left_to_the_ledger() {
    let database = database();
    let mut temporary = TemporaryTables::default();
    for sql in [
        "SELECT 1",
        "INSERT INTO accounts VALUES (3, 1)",
        "CREATE TABLE temperature (a integer)",
        "SELEC temp",
    ] {
        assert!(run(&mut temporary, &database, &script(sql)).is_none(), "{sql}");
    }
    run(&mut temporary, &database, &script("CREATE TEMP TABLE mine (a integer)"))
        .expect("ours")
        .expect("made");
    let left = [
        "SELECT count(*) FROM accounts",
        "INSERT INTO accounts VALUES (3, 1)",
        "CREATE TABLE yours (mine integer)",
        "UPDATE accounts SET balance = 1 WHERE id = 1 AND 'mine' = 'mine'",
        "CREATE INDEX mine_index ON accounts (balance)",
    ];
    for sql in left {
        assert!(run(&mut temporary, &database, &script(sql)).is_none(), "{sql}");
    }
}

#[test]
fn a_copy_is_what_a_rolled_back_transaction_returns_to() {
    let database = database();
    let mut temporary = TemporaryTables::default();
    run(&mut temporary, &database, &script("CREATE TEMP TABLE mine (a integer)"))
        .expect("ours")
        .expect("made");
    let before = temporary.clone();
    run(&mut temporary, &database, &script("INSERT INTO mine VALUES (1)")).expect("ours").expect("inserted");
    run(&mut temporary, &database, &script("CREATE TEMP TABLE more (a integer)"))
        .expect("ours")
        .expect("made");
    assert_eq!(rows(&mut temporary, &database, "SELECT a FROM mine"), [["1"]]);
    let mut temporary = before;
    assert_eq!(rows(&mut temporary, &database, "SELECT a FROM mine"), [[""; 0]; 0]);
    assert_eq!(temporary.catalog().tables.len(), 1);
    temporary.clear();
    assert!(temporary.is_empty());
}

#[test]
fn rows_are_copied_and_statements_prepared_with_parameters() {
    let database = database();
    let mut temporary = TemporaryTables::default();
    let create = "CREATE TEMP TABLE mine (id bigserial, a integer)";
    let prepared = temporary.prepare(&database.library, create, &[]).expect("right").expect("ours");
    assert_eq!(prepared.kind(), StatementKind::SchemaChange);
    run(&mut temporary, &database, &script(create)).expect("ours").expect("made");
    let values = (0..10).map(|number| vec![Value::Integer(number)]).collect();
    let copy = Payload::Insert { table: "mine".to_string(), columns: vec!["a".to_string()], rows: values };
    let results = run(&mut temporary, &database, &copy).expect("ours").expect("copied");
    assert_eq!(results[0].tag, "COPY 10");
    assert_eq!(rows(&mut temporary, &database, "SELECT count(DISTINCT id) FROM mine"), [["10"]]);
    let query = "SELECT a, balance FROM mine JOIN accounts ON a = accounts.id WHERE a > $1";
    let prepared = temporary.prepare(&database.library, query, &[]).expect("right").expect("ours");
    assert_eq!((prepared.columns().len(), prepared.parameters().len()), (2, 1));
    let payload = Payload::Script { sql: query.to_string(), parameters: vec![Value::Integer(1)] };
    let results = run(&mut temporary, &database, &payload).expect("ours").expect("rows");
    assert_eq!(texts(&results[0]), [["2", "20"]]);
}

#[test]
fn they_outlive_a_schema_change_of_the_ledger_until_it_takes_their_name() {
    let mut database = database();
    let mut temporary = TemporaryTables::default();
    run(&mut temporary, &database, &script("CREATE TEMP TABLE mine AS SELECT 1 AS a"))
        .expect("ours")
        .expect("made");
    database.run("ALTER TABLE accounts ADD COLUMN owner text DEFAULT 'ann'").expect("altered");
    let joined = "SELECT a, owner FROM mine JOIN accounts ON a = id";
    assert_eq!(rows(&mut temporary, &database, joined), [["1", "ann"]]);
    database.run("CREATE TABLE mine (b integer)").expect("made");
    let error =
        run(&mut temporary, &database, &script("SELECT * FROM mine")).expect("ours").expect_err("both");
    assert_eq!(error.state.to_string(), "42P07");
}

#[test]
fn a_session_keeps_a_bounded_number_of_bytes() {
    let database = database();
    let mut temporary = TemporaryTables::default();
    run(&mut temporary, &database, &script("CREATE TEMP TABLE mine (a text)")).expect("ours").expect("made");
    let insert = script("INSERT INTO mine SELECT repeat('x', 10000) FROM generate_series(1, 1500)");
    let mut errors = (0..5).filter_map(|_| run(&mut temporary, &database, &insert).expect("ours").err());
    assert_eq!(errors.next().expect("64 MiB at most").state.to_string(), "53200");
    drop(errors);
    let kept = rows(&mut temporary, &database, "SELECT count(*) FROM mine");
    assert_eq!(kept, [["6000"]], "what is refused leaves nothing");
    run(&mut temporary, &database, &script("DELETE FROM mine")).expect("ours").expect("deleted");
    run(&mut temporary, &database, &insert).expect("ours").expect("there is room again");
}

#[test]
fn a_table_whose_rows_change_shape_gets_another_number_and_snapshots_keep_the_old_one() {
    let mut database = database();
    database.run("CREATE INDEX ON accounts (balance)").expect("made");
    let before = database.state.clone();
    let old = before.catalog.tables["accounts"].id;
    database.run("ALTER TABLE accounts ADD COLUMN c integer DEFAULT 7").expect("altered");
    let new = database.state.catalog.tables["accounts"].id;
    assert_ne!(old, new);
    assert!(
        database
            .state
            .tables
            .keys()
            .all(|table| *table != old && database.state.catalog.row_tables().any(|one| one == *table))
    );
    assert_eq!(before.tables[&old].values().next().expect("a row").len(), 2);
    assert_eq!(database.state.tables[&new].values().next().expect("a row").len(), 3);
    assert_eq!(database.rows("SELECT id, c FROM accounts WHERE balance = 20"), [["2", "7"]]);
    let changed: Vec<TableId> = database
        .script_effects("ALTER TABLE accounts DROP COLUMN c")
        .commands
        .iter()
        .map(|one| one.row.table)
        .collect();
    assert!(changed.iter().all(|table| *table != new), "rows of the table as it is stay as they are");
}

#[test]
fn rewriting_a_table_costs_a_step_per_row() {
    let mut database = Database::with(&["CREATE TABLE t (id integer PRIMARY KEY)"]);
    database.run("INSERT INTO t SELECT n FROM generate_series(1, 1000) AS n").expect("inserted");
    let context = sql::Context {
        height: 9,
        timestamp_ms: START_MS,
        index: 0,
        transaction: Default::default(),
        step_limit: 900,
    };
    let change = script("ALTER TABLE t ADD COLUMN a integer");
    let effects = sql::Invocation::new(database.library.clone(), context, change)
        .simulate(&database.state)
        .expect("memory can be read");
    assert_eq!(effects.result.expect_err("too many rows").state.to_string(), "57014");
    assert!(effects.catalog.is_none() && effects.commands.is_empty());
}

#[test]
fn an_interrupt_ends_what_runs_on_them() {
    let mut database = Database::default();
    database.gateway("CREATE TEMPORARY TABLE t (a integer)").expect("created");
    database.gateway("INSERT INTO t VALUES (1)").expect("inserted");
    let interrupt = database.temporary.interrupt();
    interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = database.error("SELECT count(*) FROM t, generate_series(1, 100000) AS g");
    assert_eq!(error.state.to_string(), "57014", "{error:?}");
    // The next one is another one's.
    let _ = database.temporary.interrupt();
    assert_eq!(database.rows("SELECT a FROM t"), [["1"]]);
}

#[test]
fn a_session_has_temporary_tables_beside_schemas() {
    for version in [ExecutionVersion::V6, ExecutionVersion::CURRENT] {
        let mut database = Database::of_version(version);
        database.run("CREATE SCHEMA app; CREATE TABLE app.t (id integer PRIMARY KEY)").expect("a schema");
        database.gateway("CREATE TEMP TABLE mine (id integer)").expect("a table of the session");
        database.gateway("INSERT INTO mine VALUES (1)").expect("a row");
        database.gateway("CREATE TEMP TABLE yours AS SELECT 2 AS id").expect("another one");
        assert_eq!(database.rows("SELECT * FROM mine, yours"), [["1", "2"]]);
    }
}

#[test]
fn they_have_indexes_on_expressions_and_of_some_rows() {
    let database = database();
    let mut temporary = TemporaryTables::default();
    let mut ask = |sql: &str| run(&mut temporary, &database, &script(sql)).expect("ours");
    for sql in [
        "CREATE TEMP TABLE mine (id integer PRIMARY KEY, a text)",
        "INSERT INTO mine VALUES (1, 'X')",
        "CREATE UNIQUE INDEX mine_lower ON mine (lower(a)) WHERE id < 10",
        "INSERT INTO mine VALUES (2, 'y'), (11, 'x')",
    ] {
        ask(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let error = ask("INSERT INTO mine VALUES (3, 'x')").expect_err("it is taken");
    assert_eq!(error.detail.as_deref(), Some("Key (lower(a))=(x) already exists."));
    ask("UPDATE mine SET id = id + 10 WHERE id = 1").expect_err("no: 11 is taken");
    ask("DELETE FROM mine WHERE lower(a) = 'x' AND id < 5").expect("one row");
    let left = ask("SELECT id FROM mine WHERE lower(a) > 'a' AND id < 10").expect("rows");
    assert_eq!(texts(left.last().expect("a result")), [["2"]]);
}

#[test]
fn constraints_of_temporary_tables_do_not_wait() {
    let database = database();
    let mut temporary = TemporaryTables::default();
    for sql in [
        "CREATE TEMP TABLE mine (a integer UNIQUE DEFERRABLE)",
        "CREATE TEMP TABLE mine (a integer PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TEMP TABLE mine (a integer PRIMARY KEY, b integer REFERENCES mine DEFERRABLE)",
    ] {
        let error = run(&mut temporary, &database, &script(sql)).expect("ours").expect_err("refused");
        assert_eq!(error.message, "a DEFERRABLE constraint of a temporary table is not supported", "{sql}");
        assert!(temporary.is_empty(), "{sql}");
    }
}

#[test]
fn views_of_a_session_read_its_tables_and_those_of_the_ledger() {
    let mut database = database();
    let mut temporary = TemporaryTables::default();
    let mut ask = |database: &Database, sql: &str| run(&mut temporary, database, &script(sql)).expect("ours");
    for sql in [
        "CREATE TEMP VIEW rich AS SELECT id, balance FROM accounts WHERE balance > 15",
        "CREATE TEMP TABLE mine (id integer PRIMARY KEY, a text)",
        "INSERT INTO mine VALUES (1, 'x'), (2, 'y')",
        "CREATE TEMPORARY VIEW both_of_us AS SELECT mine.a, rich.balance FROM mine JOIN rich USING (id)",
        "CREATE OR REPLACE TEMP VIEW rich AS SELECT id, balance FROM accounts WHERE balance >= 10",
    ] {
        ask(&database, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let found = |results: Result<Vec<StatementResult>, SqlError>| {
        texts(results.unwrap_or_else(|error| panic!("{error:?}")).last().expect("a result"))
    };
    assert_eq!(
        found(ask(&database, "SELECT a, balance FROM both_of_us ORDER BY a")),
        [["x", "10"], ["y", "20"]]
    );
    // The ledger has its own changes in between.
    database.run("UPDATE accounts SET balance = 11 WHERE id = 1").expect("changed");
    assert_eq!(found(ask(&database, "SELECT max(balance), min(balance) FROM rich")), [["20", "11"]]);
    for (sql, message) in [
        ("CREATE TEMP VIEW rich AS SELECT 1 AS a", "relation \"rich\" already exists"),
        ("CREATE TEMP VIEW accounts AS SELECT 1 AS a", "relation \"accounts\" already exists"),
        ("CREATE VIEW ours AS SELECT a FROM mine", "a view of a temporary table is not supported"),
        ("DROP TABLE mine", "cannot drop table mine because other objects depend on it"),
        (
            "INSERT INTO accounts SELECT id + 10, balance FROM rich",
            "a change of the ledger that reads a temporary view is not supported",
        ),
        (
            "CREATE TEMP VIEW one AS SELECT 1 AS a; SELECT 1",
            "CREATE TEMPORARY TABLE or VIEW among other statements is not supported",
        ),
    ] {
        let error = ask(&database, sql).expect_err(sql);
        assert_eq!(error.message, message, "{sql}");
    }
    ask(&database, "DROP VIEW both_of_us").expect("dropped");
    assert!(run(&mut temporary, &database, &script("SELECT a FROM both_of_us")).is_none(), "it is gone");
}

#[test]
fn a_view_of_a_session_goes_with_what_it_reads() {
    let mut database = database();
    let mut temporary = TemporaryTables::default();
    for sql in [
        "CREATE TEMP TABLE mine (a integer) ON COMMIT DROP",
        "CREATE TEMP VIEW seen AS SELECT a FROM mine",
        "CREATE TEMP VIEW twice AS SELECT a FROM seen",
        "CREATE TEMP VIEW rich AS SELECT id FROM accounts",
    ] {
        run(&mut temporary, &database, &script(sql))
            .expect("ours")
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    temporary.commit();
    assert_eq!(temporary.catalog().views.keys().collect::<Vec<_>>(), ["rich"]);
    // Nobody asks the session before the ledger drops a table.
    database.run("DROP TABLE accounts; CREATE TABLE others (a integer PRIMARY KEY)").expect("dropped");
    run(&mut temporary, &database, &script("SELECT id FROM rich"))
        .expect("ours")
        .expect_err("nothing to read");
    run(&mut temporary, &database, &script("CREATE TEMP TABLE more (a integer)"))
        .expect("ours")
        .expect("made");
    run(&mut temporary, &database, &script("DROP VIEW rich")).expect("ours").expect("dropped");
    temporary.clear();
    assert!(temporary.is_empty());
}
