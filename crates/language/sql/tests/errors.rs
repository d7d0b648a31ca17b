//! What is wrong, where, and what to do about it.

mod support;

use proptest::prelude::*;
use sql::prepare;
use support::Database;
use types::{Payload, SqlError, Value, limits};

fn database() -> Database {
    Database::with(&["CREATE TABLE account (id bigint PRIMARY KEY, balance bigint, name text)"])
}

/// Script, SQLSTATE, message, position in characters from 1.
type Row = (&'static str, &'static str, &'static str, Option<u32>);

#[test]
fn errors_have_postgresqls_state_message_and_position() {
    let table: &[Row] = &[
        ("SELEC 1", "42601", "syntax error at or near \"SELEC\"", Some(1)),
        ("SELECT 1 FROM", "42601", "syntax error at end of input", Some(14)),
        ("SELECT (1", "42601", "syntax error at end of input", Some(10)),
        ("SELECT 1 2", "42601", "syntax error at or near \"2\"", Some(10)),
        ("SELECT 'a", "42601", "syntax error: Unterminated string literal", Some(8)),
        ("SELECT nothing FROM account", "42703", "column \"nothing\" does not exist", Some(8)),
        ("SELECT\n  'é', nothing\nFROM account", "42703", "column \"nothing\" does not exist", Some(15)),
        ("SELECT * FROM nothing", "42P01", "relation \"nothing\" does not exist", Some(15)),
        ("INSERT INTO nothing VALUES (1)", "42P01", "relation \"nothing\" does not exist", Some(13)),
        ("SELECT x.id FROM account", "42P01", "missing FROM-clause entry for table \"x\"", Some(8)),
        ("SELECT nothing(1)", "42883", "function nothing(integer) does not exist", Some(8)),
        (
            "SELECT id FROM account WHERE id",
            "42804",
            "argument of WHERE must be type boolean, not type bigint",
            Some(30),
        ),
        (
            "INSERT INTO account (id, nothing) VALUES (1, 2)",
            "42703",
            "column \"nothing\" of relation \"account\" does not exist",
            Some(26),
        ),
        (
            "UPDATE account SET balance = true",
            "42804",
            "column \"balance\" is of type bigint but expression is of type boolean",
            Some(30),
        ),
        ("SELECT $0", "42P02", "there is no parameter $0", Some(8)),
        ("CALL nothing(1)", "42883", "procedure nothing(integer) does not exist", None),
        ("DROP PROCEDURE nothing", "42883", "could not find a procedure named \"nothing\"", None),
        ("DROP PROCEDURE nothing(integer)", "42883", "procedure nothing(integer) does not exist", None),
        ("CREATE PROCEDURE p( LANGUAGE plpgsql AS ''", "42601", "syntax error at or near \"AS\"", Some(38)),
        ("CREATE PROCEDURE p() AS ''", "42P13", "no language specified", None),
        ("CREATE PROCEDURE p() LANGUAGE plpgsql", "42P13", "no function body specified", None),
        (
            "CREATE PROCEDURE p(a integer, a integer) LANGUAGE plpgsql AS 'BEGIN END'",
            "42P13",
            "parameter name \"a\" used more than once",
            None,
        ),
    ];
    let mut wrong = Vec::new();
    for (sql, state, message, position) in table {
        let error = database().error(sql);
        if (error.state.to_string().as_str(), error.message.as_str(), error.position)
            != (*state, *message, *position)
        {
            wrong.push(format!("{sql}\n  {} {} at {:?}", error.state, error.message, error.position));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn refused(sql: &str) -> SqlError {
    database().error(sql)
}

#[test]
fn what_is_too_deep_or_too_long_names_its_limit() {
    let sum = format!("SELECT 1{}", " + 1".repeat(5_000));
    let parentheses = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let nots = format!("SELECT {} true", "NOT ".repeat(5_000));
    let cases = format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(5_000), " END".repeat(5_000));
    let casts = format!("SELECT 1{}", "::integer".repeat(5_000));
    let minus = format!("SELECT {}1", "- ".repeat(5_000));
    for sql in [sum, parentheses, nots, cases, casts, minus] {
        let error = refused(&sql);
        assert_eq!(error.state.to_string(), "54001", "{}: {error:?}", &sql[..20]);
        assert!(error.message.contains("_MAX"), "{}", error.message);
    }
    let accepted = format!("SELECT {}1{}", "(".repeat(50), ")".repeat(50));
    assert!(database().gateway(&accepted).is_ok());
    let chain = format!("SELECT true{}", " AND true".repeat(200));
    assert!(database().gateway(&chain).is_ok());
    let sum = format!("SELECT id{} FROM account", " + 1".repeat(240));
    assert!(database().gateway(&sum).is_ok(), "walking and dropping it needs little stack");
    let cases = format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(50), " END".repeat(50));
    assert!(database().gateway(&cases).is_ok());
    let list = format!("SELECT {}1", "1, ".repeat(2_000));
    assert_eq!(refused(&list).state.to_string(), "54011");
    let long = format!("SELECT '{}'", "x".repeat(limits::TRANSACTION_BYTES_MAX));
    assert_eq!(refused(&long).state.to_string(), "54000");
    assert_eq!(refused("SELECT repeat('x', 1000000000)").state.to_string(), "54000");
    assert_eq!(refused("SELECT replace(repeat('x', 300000), 'x', 'yyyy')").state.to_string(), "54000");
    let columns = (0..=limits::COLUMNS_MAX).map(|c| format!("c{c} integer")).collect::<Vec<_>>().join(", ");
    assert_eq!(refused(&format!("CREATE TABLE wide ({columns})")).state.to_string(), "54011");
    let key = "k".repeat(limits::KEY_BYTES_MAX + 1);
    let mut keyed = Database::with(&["CREATE TABLE keyed (k text PRIMARY KEY)"]);
    assert_eq!(keyed.error(&format!("INSERT INTO keyed VALUES ('{key}')")).state.to_string(), "54000");
    assert!(keyed.rows(&format!("SELECT k FROM keyed WHERE k = '{key}'")).is_empty());
}

#[test]
fn a_transaction_returns_a_bounded_number_of_rows() {
    let mut database = Database::with(&["CREATE TABLE log (line integer)"]);
    let rows = vec![vec![Value::Integer(1)]; limits::RESULT_ROWS_MAX + 1];
    let insert = Payload::Insert { table: "log".into(), columns: vec!["line".into()], rows };
    database.execute(insert).expect("many rows");
    let error = database.script_effects("SELECT * FROM log").result.expect_err("too many rows");
    assert_eq!(error.state.to_string(), "54000");
    assert!(error.message.contains("RESULT_ROWS_MAX"));
    assert_eq!(database.rows("SELECT * FROM log").len(), limits::RESULT_ROWS_MAX + 1, "a plain read may");
}

#[test]
fn refusals_say_what_to_use_instead() {
    for (sql, hint) in [
        ("SELECT setseed(0.5)", "Pass a random number as an argument."),
        ("SELECT timeofday()", "Use now(), the time of the block."),
        ("SELECT uuid_generate_v1()", "Pass the identifier as an argument."),
    ] {
        let error = refused(sql);
        assert_eq!((error.state.to_string().as_str(), error.hint.as_deref()), ("0A000", Some(hint)), "{sql}");
    }
}

#[test]
fn wrong_calls_and_parameters_are_told() {
    let mut database = database();
    database
        .run("CREATE PROCEDURE p(a bigint, INOUT b text) LANGUAGE plpgsql AS $$ BEGIN b := b || a; END $$")
        .expect("a procedure");
    let results = database.call("p", vec![Value::Integer(1), Value::text("x")]).expect("a call");
    assert_eq!(results[0].rows, vec![vec![Value::text("x1")]]);
    assert_eq!(results[0].columns[0].name, "b");
    assert_eq!(database.rows("CALL p(2, 'y')"), vec![vec!["y2".to_string()]]);
    let states = [
        database.call("p", vec![Value::Integer(1)]),
        database.call("p", vec![Value::Boolean(true), Value::text("x")]),
        database.call("nothing", vec![]),
        database.run("CALL p(1)"),
        database.run("CALL p(true, 'x')"),
    ];
    for result in states {
        assert_eq!(result.expect_err("no such procedure").state.to_string(), "42883");
    }
    let error = database.run_with("SELECT $1::integer", vec![]).expect_err("a missing parameter");
    assert_eq!(error.state.to_string(), "08P01");
    let rows =
        database.run_with("SELECT $1 + 1, $2", vec![Value::Integer(4), Value::text("t")]).expect("rows");
    assert_eq!(rows[0].rows, vec![vec![Value::Integer(5), Value::text("t")]]);
}

/// Words that statements are made of.
fn token() -> impl Strategy<Value = String> {
    let words = "SELECT INSERT UPDATE DELETE FROM WHERE INTO VALUES SET AND OR NOT NULL IS IN LIKE BETWEEN CASE WHEN \
        THEN ELSE END GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT AS CREATE TABLE PROCEDURE DROP PRIMARY KEY CHECK \
        DEFAULT CALL LANGUAGE plpgsql account id balance name t count sum avg coalesce abs lower now RETURNING \
        integer bigint text numeric boolean timestamptz true false 0 1 42 -1 2.5 1e400 99999999999999999999 'x' '' \
        $$b$$ $1 $999999 ( ) , ; . * + - / % = <> < > <= :: || @ # ! ? [ ] { } \" ' é \u{0} FOR WITH UNION JOIN ON \
        EXISTS ANY ALL CAST EXTRACT SUBSTRING TRIM POSITION INTERVAL ARRAY COPY STDIN BEGIN IF LOOP RAISE";
    let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
    prop_oneof![9 => prop::sample::select(words), 1 => "\\PC{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn token_soup_never_panics(tokens in prop::collection::vec(token(), 0..24)) {
        let database = database();
        let sql = tokens.join(" ");
        if let Ok(prepared) = prepare(&database.library, &sql, &[]) {
            let parameters = vec![Value::Null; prepared.parameters().len()];
            let _ = prepared.query(&database.state, &parameters, 1_000, 0);
            let _ = database.effects(Payload::Script { sql, parameters });
        }
    }

    #[test]
    fn soup_in_an_expression_never_panics(tokens in prop::collection::vec(token(), 0..12)) {
        let mut database = database();
        let _ = database.gateway(&format!("SELECT {} FROM account", tokens.join(" ")));
        let _ = database.run(&format!("UPDATE account SET balance = {} WHERE id = 1", tokens.join(" ")));
        let _ = database.run(&format!(
            "CREATE PROCEDURE p(a integer) LANGUAGE plpgsql AS $body$ BEGIN {} ; END $body$",
            tokens.join(" ")
        ));
    }

    #[test]
    fn any_text_never_panics(sql in "\\PC{0,60}") {
        let _ = database().gateway(&sql);
    }
}

#[test]
fn a_recursion_without_an_end_is_stopped() {
    let mut database = database();
    let error = database
        .error("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i FROM n) SELECT count(*) FROM n");
    assert_eq!(error.state.to_string(), "57014", "{error:?}");
    let error =
        database.error("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b");
    assert_eq!(error.state.to_string(), "57014", "{error:?}");
}

#[test]
fn nested_queries_are_looked_through_once() {
    let mut database = database();
    // Every level stands in the output and again in the order: three lines of the plan for each, not twice those below.
    let nested = (0..14).fold("SELECT 1".to_string(), |inner, _| format!("SELECT ({inner}) ORDER BY 1"));
    assert_eq!(database.rows(&nested), [["1"]]);
    assert_eq!(database.rows(&format!("EXPLAIN {nested}")).len(), 1 + 14 * 3);
}

/// Around `x`, so many times.
fn around(times: usize, before: &str, behind: &str) -> String {
    format!("{}balance{}", before.repeat(times), behind.repeat(times))
}

#[test]
fn operands_that_are_compared_several_times_do_not_multiply_without_end() {
    for (before, behind) in [
        ("(", " BETWEEN 0 AND 1)::int"),
        ("((", ", 1) < (2, 3))::int"),
        ("((", ", 1) IN ((2, 3), (4, 5)))::int"),
        ("(", " IN (id + 0.5, id, 7))::int"),
        ("CASE ", " WHEN 1 THEN 2 WHEN 2 THEN 3 END"),
    ] {
        let few = format!("SELECT {} FROM account", around(3, before, behind));
        prepare(&database().library, &few, &[]).unwrap_or_else(|error| panic!("{few}: {error:?}"));
        let many = format!("SELECT {} FROM account", around(25, before, behind));
        let error = refused(&many);
        assert_eq!(error.state.to_string(), "54001", "{many}: {error:?}");
        assert!(error.message.ends_with("(COPIES_MAX)"), "{many}: {error:?}");
    }
    // Many that stand side by side are fine.
    let wide = vec!["balance BETWEEN id AND 7"; 80].join(" OR ");
    prepare(&database().library, &format!("SELECT id FROM account WHERE {wide}"), &[]).expect("a condition");
}

#[test]
fn a_query_that_several_nodes_have_is_explained_once() {
    let nested = (0..20).fold("SELECT 1".to_string(), |query, _| format!("SELECT ({query}) ORDER BY 1"));
    let lines = database().rows(&format!("EXPLAIN (LOGICAL) {nested}"));
    assert!(lines.len() < 1_000, "{} lines", lines.len());
    assert!(lines.iter().any(|line| line[0].trim() == "Subquery, as above"), "{lines:?}");
}

#[test]
fn checks_that_wait_have_a_limit() {
    let mut database = Database::with(&[
        "CREATE TABLE parent (id integer PRIMARY KEY)",
        "CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
    ]);
    database.step_limit = 1_000_000_000;
    let most = limits::DEFERRED_CHECKS_MAX;
    let insert =
        |count: usize| format!("INSERT INTO child SELECT n, 1 FROM generate_series(1, {count}) AS g (n)");
    let error = database.error(&insert(most + 1));
    assert_eq!(error.state.to_string(), "54000", "{error:?}");
    assert!(error.message.contains("250000 checks of constraints (DEFERRED_CHECKS_MAX)"), "{error:?}");
    // They are checked in between, or the key is there.
    let parted = format!(
        "INSERT INTO parent VALUES (1); {}; SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO child VALUES (0, 1)",
        insert(1_000)
    );
    database.run(&parted).expect("fewer");
}
