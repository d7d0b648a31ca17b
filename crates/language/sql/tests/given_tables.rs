//! Statements that change the ledger with rows of temporary tables: the rows are given with the statement, and every node finds the same.

mod support;

use sql::{Context, Session};
use std::sync::Arc;
use support::{Database, START_MS, STEP_LIMIT, run_step};
use types::{
    DataType, ExecutionVersion, GivenTable, PackedRows, Payload, SessionResults, SessionStep, SqlError,
    StatementResult, StepGiven, TransactionId, TypeId, Value,
};

const TABLES: [&str; 6] = [
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE TABLE stock (id integer PRIMARY KEY, amount bigint NOT NULL DEFAULT 0 CHECK (amount >= 0), feels mood, \
     tags text[], seen timestamptz)",
    "CREATE TABLE log (line text)",
    "CREATE DOMAIN short AS varchar(4) CHECK (value <> 'none'); CREATE TABLE named (id integer PRIMARY KEY, name short, at time(3))",
    "CREATE SEQUENCE numbers",
    "INSERT INTO stock VALUES (1, 10, 'sad', '{a,b}', '2026-01-01'), (2, 20, NULL, NULL, NULL)",
];

/// A block that begins now.
fn begin(database: &Database) -> Session {
    let context = Context {
        height: u64::MAX,
        timestamp_ms: START_MS,
        index: u32::MAX,
        transaction: TransactionId::default(),
        step_limit: STEP_LIMIT,
    };
    let (library, snapshot) = (database.library.clone(), Arc::new(database.state.clone()));
    let (who, temporary) = (database.principal.clone(), database.temporary.clone());
    Session::begin(library, snapshot, context, who, 2 * STEP_LIMIT, false, temporary)
}

fn commit(database: &mut Database, session: Session) -> Result<Vec<StatementResult>, SqlError> {
    let finished = session.finish();
    let payload = finished.payload.expect("it has changed the ledger");
    let payload = types::decode_exactly(&types::encode(&payload)).expect("what was encoded");
    let committed = database.execute(payload);
    if committed.is_ok() {
        database.temporary = finished.temporary;
    }
    committed
}

/// With a temporary table that looks like the ledger's, and one of its own.
fn database() -> Database {
    let mut database = Database::with(&TABLES);
    for sql in [
        "CREATE TEMPORARY TABLE incoming (LIKE stock INCLUDING DEFAULTS)",
        "INSERT INTO incoming VALUES (2, 5, 'glad', '{c}', '2026-02-01 10:00+00'), (3, 7, NULL, '{}', NULL), (4, 1, 'sad', NULL, NULL)",
        "CREATE TEMPORARY TABLE factors (id integer PRIMARY KEY, factor numeric(4, 1))",
        "INSERT INTO factors VALUES (1, 1.5), (2, 2)",
    ] {
        database.gateway(sql).expect(sql);
    }
    database
}

const UPSERT: &str = "INSERT INTO stock SELECT * FROM incoming ON CONFLICT (id) DO UPDATE SET amount = stock.amount + \
                      excluded.amount, feels = excluded.feels, tags = excluded.tags, seen = excluded.seen";

#[test]
fn rows_that_were_loaded_into_a_temporary_table_are_merged_into_the_ledger() {
    let mut database = database();
    let results = database.gateway(UPSERT).expect("the rows are given with it");
    assert_eq!(results[0].tag, "INSERT 0 3");
    let expected = [
        ["1", "10", "sad", "{a,b}", "2026-01-01 00:00:00+00"],
        ["2", "25", "glad", "{c}", "2026-02-01 10:00:00+00"],
        ["3", "7", "NULL", "{}", "NULL"],
        ["4", "1", "sad", "NULL", "NULL"],
    ];
    assert_eq!(database.rows("SELECT * FROM stock ORDER BY id"), expected);
    assert_eq!(database.rows("SELECT count(*) FROM incoming"), [["3"]], "they are still there");
}

#[test]
fn domains_lengths_and_digits_of_seconds_are_those_of_the_columns() {
    let mut database = database();
    for sql in [
        "CREATE TEMPORARY TABLE names (LIKE named)",
        "INSERT INTO names VALUES (1, 'ann', '10:00:00.1234'), (2, 'bob ', NULL)",
        "INSERT INTO named SELECT * FROM names",
        "UPDATE named SET name = names.name || 'a' FROM names WHERE named.id = names.id AND names.id = 1",
    ] {
        database.gateway(sql).expect(sql);
    }
    let expected = [["1", "anna", "10:00:00.123"], ["2", "bob ", "NULL"]];
    assert_eq!(database.rows("SELECT * FROM named ORDER BY id"), expected);
    for (value, state) in [("names.name || 'abc'", "22001"), ("'none'", "23514")] {
        let sql = format!("UPDATE named SET name = {value} FROM names WHERE named.id = names.id");
        assert_eq!(database.error(&sql).state.to_string(), state);
    }
}

#[test]
fn blocks_read_and_change_the_ledger_with_temporary_tables() {
    let mut database = database();
    let mut block = begin(&database);
    for (sql, given) in [
        ("SELECT stock.id, factor FROM stock JOIN factors USING (id) ORDER BY id", "1,1.5;2,2.0"),
        (
            "UPDATE stock SET amount = amount * factor FROM factors WHERE factors.id = stock.id RETURNING stock.id, amount",
            "1,15;2,40",
        ),
        // It sees what the block has written, in both.
        ("INSERT INTO factors VALUES (3, 0.5)", "INSERT 0 1"),
        ("SELECT sum(amount * factor) FROM stock JOIN factors USING (id)", "102.5"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("DELETE FROM stock USING factors WHERE stock.id = factors.id", "DELETE 2"),
        ("DELETE FROM factors WHERE id = 1", "DELETE 1"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("DELETE FROM stock WHERE id IN (SELECT id FROM factors WHERE factor > 1.7)", "DELETE 1"),
        (
            "WITH f AS (SELECT id FROM factors) INSERT INTO log SELECT 'f' || f.id FROM f ORDER BY id",
            "INSERT 0 3",
        ),
        ("INSERT INTO log SELECT 'n' || nextval('numbers') > '' FROM factors f WHERE f.id = 1", "INSERT 0 1"),
        ("SELECT line FROM log JOIN factors ON line = 'f' || id ORDER BY 1", "f1;f2;f3"),
    ] {
        assert_eq!(run_step(&mut block, sql), given, "{sql}");
    }
    commit(&mut database, block).expect("nothing has changed meanwhile");
    assert_eq!(database.rows("SELECT id, amount FROM stock"), [["1", "15"]]);
    assert_eq!(database.rows("SELECT id FROM factors ORDER BY id"), [["1"], ["2"], ["3"]]);
}

#[test]
fn what_is_read_of_the_ledger_beside_them_counts() {
    let mut database = database();
    let mut block = begin(&database);
    let sums = "SELECT sum(amount * factor) FROM stock JOIN factors USING (id)";
    assert_eq!(run_step(&mut block, sums), "55.0");
    assert_eq!(run_step(&mut block, "INSERT INTO log VALUES ('55')"), "INSERT 0 1");
    database.run("UPDATE stock SET amount = 11 WHERE id = 1").expect("another transaction");
    assert_eq!(commit(&mut database, block).expect_err("it has changed"), types::results_have_changed());
    // What it was not given does not.
    let mut block = begin(&database);
    assert_eq!(
        run_step(&mut block, "SELECT factor FROM stock JOIN factors USING (id) ORDER BY id"),
        "1.5;2.0"
    );
    assert_eq!(run_step(&mut block, "INSERT INTO log VALUES ('x')"), "INSERT 0 1");
    database.run("UPDATE stock SET amount = 12 WHERE id = 1").expect("another transaction");
    commit(&mut database, block).expect("the same again");
}

#[test]
fn blocks_fill_temporary_tables_from_the_ledger_and_change_it_by_them() {
    let mut database = database();
    let mut block = begin(&database);
    for (sql, given) in [
        ("UPDATE stock SET amount = amount + 1 WHERE id = 1", "UPDATE 1"),
        (
            "CREATE TEMP TABLE few (n, amount) ON COMMIT DROP AS SELECT id, amount FROM stock WHERE amount < 15",
            "SELECT 1",
        ),
        ("SELECT * FROM few", "1,11"),
        (
            "INSERT INTO few SELECT id, amount * factor FROM stock JOIN factors USING (id) WHERE id > 1",
            "INSERT 0 1",
        ),
        ("INSERT INTO few (amount) SELECT count(*) FROM stock", "INSERT 0 1"),
        ("SELECT * FROM few ORDER BY n", "1,11;2,40;NULL,2"),
        ("SELECT id, feels, tags INTO TEMPORARY moods FROM stock WHERE feels IS NOT NULL", "SELECT 1"),
        ("SELECT * FROM moods", "1,sad,{a,b}"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("INSERT INTO moods SELECT id + 100, 'glad' FROM stock", "INSERT 0 2"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("DELETE FROM stock USING few WHERE few.n = stock.id", "DELETE 2"),
        (
            "INSERT INTO stock (id, amount, feels, tags) SELECT id + 10, 3, feels, tags FROM moods",
            "INSERT 0 1",
        ),
        (
            "INSERT INTO few SELECT nextval('numbers') > 0, 1",
            "42804 column \"n\" is of type integer but expression is of type boolean",
        ),
    ] {
        let found = run_step(&mut block, sql);
        if !given.starts_with('4') {
            assert_eq!(found, given, "{sql}");
            continue;
        }
        assert!(found.starts_with("42"), "{sql}: {found}");
        run_step(&mut block, "ROLLBACK TO s");
    }
    assert_eq!(run_step(&mut block, "DELETE FROM stock USING few WHERE few.n = stock.id"), "DELETE 2");
    commit(&mut database, block).expect("nothing has changed meanwhile");
    assert_eq!(database.rows("SELECT count(*) FROM stock"), [["0"]]);
    assert_eq!(database.rows("SELECT id FROM moods"), [["1"]]);
    assert_eq!(database.error("SELECT * FROM few").state.to_string(), "42P01");
}

#[test]
fn what_a_temporary_table_is_filled_with_counts() {
    let mut database = database();
    for (change, is_read) in [
        ("UPDATE stock SET amount = amount + 1 WHERE id = 1", true),
        ("UPDATE stock SET amount = amount + 1 WHERE id = 2", false),
        ("INSERT INTO stock VALUES (0, 1)", true),
    ] {
        let mut block = begin(&database);
        assert_eq!(
            run_step(&mut block, "CREATE TEMP TABLE few AS SELECT amount FROM stock WHERE id < 2"),
            "SELECT 1"
        );
        assert_eq!(run_step(&mut block, "INSERT INTO log SELECT amount FROM few"), "INSERT 0 1");
        database.run(change).expect("another transaction");
        let committed = commit(&mut database, block);
        assert_eq!(committed.is_err(), is_read, "{change}: {committed:?}");
        database.temporary.clear();
    }
    assert_eq!(database.rows("SELECT line FROM log"), [["11"]]);
}

#[test]
fn errors_are_those_of_the_ledger() {
    let mut database = database();
    let both =
        "WITH gone AS (DELETE FROM incoming RETURNING *) INSERT INTO stock SELECT * FROM gone WHERE id > 2";
    assert_eq!(database.error(both).state.to_string(), "0A000");
    database.gateway("UPDATE incoming SET amount = -30 WHERE id = 2").expect("its own");
    assert_eq!(database.error(UPSERT).state.to_string(), "23514");
    assert_eq!(
        database.error("INSERT INTO stock SELECT id, 1 / (amount - 7) FROM incoming").state.to_string(),
        "22012"
    );
    // What it is changed by from the ledger, nobody finds again.
    let mut block = begin(&database);
    let changed = "UPDATE factors SET factor = amount FROM stock WHERE stock.id = factors.id";
    assert_eq!(run_step(&mut block, changed), "UPDATE 2");
    assert!(run_step(&mut block, "INSERT INTO log SELECT factor FROM factors").starts_with("0A000"));
    // Roles need no privileges on what is theirs, and those on the ledger's tables.
    database.run("CREATE ROLE ann; GRANT INSERT ON log TO ann").expect("a role");
    database.act("ann", "INSERT INTO log SELECT factor FROM factors").expect("it may insert");
    assert_eq!(database.act("ann", UPSERT).expect_err("it may not").state.to_string(), "42501");
}

#[test]
fn rows_are_given_within_the_limit_of_a_transaction() {
    let mut database = database();
    database
        .gateway("INSERT INTO incoming (id, tags) SELECT g, ARRAY[repeat(md5(g::text), 30)] FROM generate_series(1001, 6000) AS s (g)")
        .expect("its own");
    let error = database.error(UPSERT);
    assert_eq!(error.state.to_string(), "54000", "{error:?}");
    // Who only reads may read more.
    let mut block = begin(&database);
    assert_eq!(
        run_step(&mut block, "SELECT count(*), min(stock.id) FROM incoming LEFT JOIN stock USING (id)"),
        "5003,2"
    );
}

#[test]
fn before_version_15_such_changes_are_refused() {
    let mut database = Database::of_version(ExecutionVersion::V14);
    for sql in TABLES {
        database.run(sql).expect(sql);
    }
    database.gateway("CREATE TEMPORARY TABLE incoming AS SELECT 5 AS id").expect("its own");
    let refused = database.error("INSERT INTO stock SELECT id FROM incoming");
    assert_eq!(refused.message, "a change of the ledger that uses temporary tables is not supported");
    let mut block = begin(&database);
    assert!(run_step(&mut block, "INSERT INTO stock SELECT id FROM incoming").starts_with("0A000"));
}

/// What could not be kept is given back with the savepoint.
#[test]
fn rows_for_which_there_is_no_room_leave_room_for_others() {
    let mut database = database();
    let mut block = begin(&database);
    assert_eq!(run_step(&mut block, "SAVEPOINT s"), "SAVEPOINT");
    let columns: Vec<(String, DataType)> = (0..120).map(|n| (format!("c{n}"), DataType::Integer)).collect();
    let rows = std::iter::repeat_n(vec![Value::Integer(7); columns.len()], 200_000);
    let rows = PackedRows::pack(rows).expect("rows");
    let tables = vec![GivenTable { name: "many".to_string(), columns, rows }];
    let given = StepGiven { held: Vec::new(), tables };
    let sql = "INSERT INTO log SELECT c1 FROM many".to_string();
    let error = block.run(SessionStep::RunGiven { given, sql, parameters: vec![] }).expect_err("too many");
    assert_eq!(error.state.to_string(), "54000", "{error:?}");
    assert_eq!(run_step(&mut block, "ROLLBACK TO s"), "ROLLBACK");
    assert_eq!(run_step(&mut block, "INSERT INTO log SELECT factor FROM factors"), "INSERT 0 2");
    commit(&mut database, block).expect("it comes to the same");
}

/// Whoever signs a block may say anything of the rows that it gives.
#[test]
fn what_is_no_table_is_an_error_and_nothing_happens() {
    let mut database = Database::with(&TABLES);
    let mut ordered = |tables: Vec<GivenTable>, sql: &str| {
        let given = StepGiven { held: Vec::new(), tables };
        let step = SessionStep::RunGiven { given, sql: sql.to_string(), parameters: vec![] };
        // With the result that its error would be.
        let results = SessionResults::default().digest();
        database.execute(Payload::Session { steps: vec![step], now_ms: START_MS, results })
    };
    let table = |columns: &[(&str, DataType)], rows: Vec<Vec<Value>>| GivenTable {
        name: "incoming".to_string(),
        columns: columns.iter().map(|(name, data_type)| (name.to_string(), *data_type)).collect(),
        rows: PackedRows::pack(rows).expect("rows"),
    };
    let insert = "INSERT INTO log SELECT a FROM incoming";
    let text = DataType::Text(None);
    for tables in [
        // Of another width, of another type, of types that are not there, twice.
        vec![table(&[("a", text)], vec![vec![Value::text("x"), Value::text("y")]])],
        vec![table(&[("a", DataType::Integer)], vec![vec![Value::text("x")]])],
        vec![table(&[("a", DataType::Enum(TypeId(99)))], vec![vec![Value::Null]])],
        vec![table(&[("a", DataType::Composite(TypeId(99)))], vec![vec![Value::Null]])],
        vec![table(&[("a", DataType::Domain(TypeId(99)))], vec![vec![Value::Null]])],
        vec![table(&[], vec![vec![]])],
        vec![table(&[("a", DataType::Text(Some(2)))], vec![vec![Value::text("xyz")]])],
        vec![table(&[("a", text)], vec![vec![Value::Bytea(vec![0; 3].into())]])],
        // As few bytes as can be for as many rows as can be.
        vec![table(&[("a", text)], std::iter::repeat_n(vec![Value::Null], 2_000_000).collect())],
        vec![table(&[("b", text)], vec![vec![Value::text("x")]])],
        vec![],
    ] {
        let error = ordered(tables.clone(), insert).expect_err("it is no table");
        assert_eq!(error, types::results_have_changed(), "{tables:?}");
    }
    // A table of the ledger that is given, too, is the one that is given; and nothing can be written to it.
    let same =
        GivenTable { name: "stock".to_string(), ..table(&[("a", text)], vec![vec![Value::text("x")]]) };
    ordered(vec![same.clone()], "INSERT INTO log SELECT a FROM stock").expect_err("another digest");
    ordered(vec![same], "UPDATE stock SET amount = 1").expect_err("it is given");
    assert_eq!(database.rows("SELECT count(*) FROM log"), [["0"]]);
    assert_eq!(database.rows("SELECT id, amount FROM stock"), [["1", "10"], ["2", "20"]]);
}
