//! What transactions notify, and what of it is undone.

mod support;

use sql::{Context, Session};
use std::sync::Arc;
use support::{Database, START_MS, STEP_LIMIT, shown};
use types::{Payload, SessionStep, TransactionId, limits};

const TABLES: &[&str] = &[
    "CREATE TABLE job (id integer PRIMARY KEY, state text NOT NULL)",
    "CREATE FUNCTION job_changed() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN PERFORM pg_notify('jobs', TG_OP || ' ' || NEW.id); RETURN NEW; END $$",
    "CREATE TRIGGER told AFTER INSERT OR UPDATE ON job FOR EACH ROW EXECUTE FUNCTION job_changed()",
    "CREATE PROCEDURE tries(good boolean) LANGUAGE plpgsql AS $$
     BEGIN
       NOTIFY tries, 'before';
       BEGIN
         NOTIFY tries, 'inside';
         INSERT INTO job VALUES (100, CASE WHEN good THEN 'new' END);
       EXCEPTION WHEN not_null_violation THEN
         NOTIFY \"Tries\", $n$it's handled$n$;
       END;
     END $$",
];

fn database() -> Database {
    Database::with(TABLES)
}

/// What a script notifies.
fn said(database: &mut Database, sql: &str) -> Vec<String> {
    database.said.clear();
    database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    std::mem::take(&mut database.said)
}

#[test]
fn statements_functions_and_triggers_notify_in_order_and_nothing_twice() {
    let mut database = database();
    assert_eq!(said(&mut database, "NOTIFY news"), ["news:"]);
    assert_eq!(shown(database.run("NOTIFY news")), "NOTIFY");
    assert_eq!(
        said(&mut database, "NOTIFY News, 'it''s'; NOTIFY \"News\", E'a\\nb'"),
        ["news:it's", "News:a\nb"]
    );
    assert_eq!(
        said(
            &mut database,
            "SELECT pg_notify('a', n::text) FROM generate_series(1, 3) n; NOTIFY a, '2'; NOTIFY a, '4'"
        ),
        ["a:1", "a:2", "a:3", "a:4"]
    );
    assert_eq!(said(&mut database, "SELECT pg_catalog.pg_notify('a', NULL)"), ["a:"]);
    assert_eq!(
        said(&mut database, "INSERT INTO job VALUES (1, 'new'), (2, 'new')"),
        ["jobs:INSERT 1", "jobs:INSERT 2"]
    );
    assert_eq!(
        said(&mut database, "UPDATE job SET state = 'done' WHERE id = 2; INSERT INTO job VALUES (3, 'new')"),
        ["jobs:UPDATE 2", "jobs:INSERT 3"]
    );
    assert_eq!(
        said(&mut database, "DO $$ BEGIN EXECUTE 'NOTIFY dynamic, ''text'''; END $$"),
        ["dynamic:text"]
    );
    assert_eq!(said(&mut database, "SELECT 1 WHERE pg_notify('x', 'y') IS NULL"), ["x:y"]);
}

#[test]
fn what_is_rolled_back_notifies_nothing() {
    let mut database = database();
    assert_eq!(said(&mut database, "CALL tries(true)"), ["tries:before", "tries:inside", "jobs:INSERT 100"]);
    assert_eq!(said(&mut database, "CALL tries(false)"), ["tries:before", "Tries:it's handled"]);
    database.run("NOTIFY a; INSERT INTO job VALUES (100, 'twice')").expect_err("the key is there");
    assert_eq!(database.said, [""; 0]);
}

#[test]
fn a_block_notifies_what_it_has_not_undone() {
    let mut database = database();
    let begin = |database: &Database, read_only: bool| {
        let context = Context {
            height: u64::MAX,
            timestamp_ms: START_MS,
            index: u32::MAX,
            transaction: TransactionId::default(),
            step_limit: STEP_LIMIT,
        };
        let snapshot = Arc::new(database.state.clone());
        let (library, who) = (database.library.clone(), database.principal.clone());
        Session::begin(library, snapshot, context, who, STEP_LIMIT, read_only, database.temporary.clone())
    };
    let run = |session: &mut Session, sql: &str| {
        let step = match sql.split_once(' ') {
            Some(("SAVEPOINT", name)) => SessionStep::Savepoint(name.to_string()),
            Some(("BACK", name)) => SessionStep::RollbackTo(name.to_string()),
            _ => SessionStep::Run { sql: sql.to_string(), parameters: Vec::new() },
        };
        shown(session.run(step).map(|result| vec![result]))
    };
    let mut session = begin(&database, false);
    for sql in [
        "NOTIFY a, '1'",
        "SAVEPOINT s",
        "NOTIFY a, '2'",
        "INSERT INTO job VALUES (7, 'new')",
        "BACK s",
        "NOTIFY a, '3'",
    ] {
        run(&mut session, sql);
    }
    let payload = session.finish().payload.expect("it notifies, so that it is ordered");
    assert!(matches!(payload, Payload::Session { .. }));
    let results = database.execute(payload).expect("nothing has changed");
    assert_eq!((results.len(), results[0].tag.as_str()), (1, "COMMIT"));
    assert_eq!(database.said, ["a:1", "a:3"]);

    let mut session = begin(&database, false);
    for sql in ["SAVEPOINT s", "NOTIFY a, '4'", "BACK s"] {
        run(&mut session, sql);
    }
    assert!(session.finish().payload.is_none(), "nothing is left of it");

    let mut session = begin(&database, false);
    run(&mut session, "CREATE TABLE other (id integer PRIMARY KEY)");
    run(&mut session, "NOTIFY a, 'changed'");
    database.said.clear();
    database.execute(session.finish().payload.expect("a table")).expect("it changes the schema");
    assert_eq!(database.said, ["a:changed"]);

    let mut session = begin(&database, true);
    for sql in ["NOTIFY a", "SELECT pg_notify('a', 'b')"] {
        assert_eq!(run(&mut session, sql), "25006 cannot execute NOTIFY in a read-only transaction");
        session = begin(&database, true);
    }
}

#[test]
fn what_cannot_be_said_is_an_error() {
    let mut database = database();
    let long = "x".repeat(8_000);
    for (sql, error) in [
        ("NOTIFY".to_string(), "42601"),
        ("NOTIFY a b".to_string(), "42601"),
        ("NOTIFY a, b".to_string(), "42601"),
        ("NOTIFY 'a'".to_string(), "42601"),
        ("SELECT pg_notify('', 'x')".to_string(), "22023 channel name cannot be empty"),
        ("SELECT pg_notify(NULL, 'x')".to_string(), "22023 channel name cannot be empty"),
        (format!("SELECT pg_notify('{}', 'x')", "c".repeat(64)), "22023 channel name too long"),
        (format!("NOTIFY a, '{long}'"), "22023 payload string too long"),
        ("SELECT pg_notify('a')".to_string(), "42883"),
        ("CREATE TABLE t (a integer CHECK (pg_notify('a', 'b') = ''))".to_string(), "0A000"),
        (
            "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'NOTIFY a'".to_string(),
            "0A000 NOTIFY in a function in SQL",
        ),
        ("DO 'BEGIN NOTIFY a, b; END'".to_string(), "42601 NOTIFY takes a literal"),
    ] {
        let found = shown(database.run(&sql));
        assert!(found.starts_with(error), "{}: {found}", &sql[..sql.len().min(80)]);
    }
    let many = format!(
        "SELECT pg_notify('a', n::text) FROM generate_series(1, {}) n",
        limits::NOTIFICATIONS_MAX + 1
    );
    let error = database.run(&many).expect_err("too many");
    assert_eq!(error.state.to_string(), "54000");
    assert!(error.message.contains("NOTIFICATIONS_MAX"), "{error}");
    let in_temporary = ["CREATE TEMPORARY TABLE here (a integer)", "INSERT INTO here VALUES (1)"];
    in_temporary.iter().for_each(|sql| drop(database.gateway(sql).expect(sql)));
    let error = database.error("INSERT INTO here SELECT length(pg_notify('a', a::text)::text) FROM here");
    assert_eq!(error.message, "NOTIFY in a statement about temporary tables is not supported");
}

#[test]
fn a_notification_costs_steps_by_its_length() {
    let database = database();
    let steps = |sql: &str| database.script_effects(sql).steps;
    let (short, long) = (steps("NOTIFY a, 'x'"), steps(&format!("NOTIFY a, '{}'", "x".repeat(6_400))));
    assert!((95..=110).contains(&(long - short)), "{short} and {long}");
}
