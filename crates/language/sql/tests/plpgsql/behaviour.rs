//! What programs beside PostgreSQL's cannot show: refusals at creation, limits, and what becomes a guard.

use crate::database::Database;
use state::Effects;
use types::{SqlError, SqlState, Value};

const TABLES: &str = "CREATE TABLE t (k integer PRIMARY KEY, v integer NOT NULL, s text);";

fn database(statements: &[&str]) -> Database {
    let mut database = Database::new();
    database.execute(TABLES).expect("a table");
    for statement in statements {
        database.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    database
}

fn create(body: &str) -> Result<(), SqlError> {
    let statement =
        format!("CREATE PROCEDURE p(id integer, INOUT result text) LANGUAGE plpgsql AS $$ {body} $$");
    database(&[]).execute(&statement).map(drop)
}

fn refused(body: &str, state: &str, message: &str) {
    let error = create(body).expect_err(body);
    assert_eq!(error.state.to_string(), state, "{body}: {error:?}");
    assert!(error.message.contains(message), "{body}: {error:?}");
    assert!(error.position.is_some(), "{body}: {error:?}");
}

/// It is created, with a warning: the error comes when the statement runs.
fn warned(body: &str, state: &str, message: &str) {
    let statement =
        format!("CREATE PROCEDURE p(id integer, INOUT result text) LANGUAGE plpgsql AS $$ {body} $$");
    let mut database = database(&[]);
    let results = database.execute(&statement).expect(body);
    let warnings = &results.first().expect(body).notices;
    assert!(warnings.iter().any(|notice| notice.report.message.contains(message)), "{body}: {warnings:?}");
    assert!(
        warnings.iter().all(|notice| notice.report.message.contains("p, line 1: ")),
        "{body}: {warnings:?}"
    );
    let error = database.execute("CALL p(1, NULL)").expect_err(body);
    assert_eq!(
        (error.state.to_string().as_str(), error.message.contains(message)),
        (state, true),
        "{body}: {error:?}"
    );
}

#[test]
fn names_are_checked_at_creation() {
    refused("BEGIN x := 1; END", "42601", "\"x\" is not a known variable");
    warned("BEGIN result := x; END", "42703", "column \"x\" does not exist");
    refused("BEGIN SELECT v INTO x FROM t; END", "42601", "\"x\" is not a known variable");
    warned("BEGIN SELECT v INTO result FROM missing; END", "42P01", "relation \"missing\" does not exist");
    warned("BEGIN SELECT missing INTO result FROM t; END", "42703", "column \"missing\" does not exist");
    refused("DECLARE x t.missing%TYPE; BEGIN END", "42703", "column \"missing\" of relation \"t\"");
    refused("DECLARE x missing%TYPE; BEGIN END", "42601", "variable \"missing\" does not exist");
    refused("DECLARE x integer; x text; BEGIN END", "42601", "duplicate declaration");
    warned("DECLARE k integer; BEGIN SELECT v INTO k FROM t WHERE k = 1; END", "42702", "\"k\" is ambiguous");
    warned("DECLARE r record; BEGIN result := r.v; END", "55000", "record \"r\" is not assigned yet");
    warned(
        "DECLARE r record; BEGIN SELECT v INTO r FROM t; result := r.w; END",
        "42703",
        "has no field \"w\"",
    );
}

#[test]
fn statements_are_checked_at_creation() {
    refused("BEGIN SELECT v FROM t; END", "42601", "query has no destination for result data");
    refused("BEGIN INSERT INTO t VALUES (1, 1) RETURNING v; END", "42601", "no destination");
    refused("BEGIN UPDATE t SET v = 1 INTO result; END", "42601", "INTO used with a command that cannot");
    refused(
        "DECLARE r record; BEGIN SELECT v, s INTO r, id FROM t; END",
        "42601",
        "record variable cannot be part",
    );
    refused(
        "DECLARE c CONSTANT integer := 1; BEGIN SELECT v INTO c FROM t; END",
        "22005",
        "declared CONSTANT",
    );
    warned("DECLARE r record; BEGIN result := r; END", "55000", "record \"r\" is not assigned yet");
    refused(
        "DECLARE r record; BEGIN IF id > 0 THEN SELECT v INTO r FROM t; ELSE SELECT s INTO r FROM t; END IF; CALL p(r.s); END",
        "0A000",
        "record \"r\" here, whose columns only running tells",
    );
    refused("DECLARE d timestamptz; BEGIN d := true; END", "42804", "is of type");
    refused("BEGIN RETURN 1; END", "42804", "RETURN cannot have a parameter in a procedure");
    refused("BEGIN RETURN NEXT 1; END", "42804", "cannot use RETURN NEXT in a non-SETOF function");
    assert!(create("BEGIN IF id > 0 AND EXISTS (SELECT 1 FROM t) THEN NULL; END IF; END").is_ok());
}

#[test]
fn a_contract_that_loops_for_ever_is_metered_out() {
    for body in [
        "BEGIN LOOP NULL; END LOOP; END",
        "BEGIN WHILE true LOOP END LOOP; END",
        "BEGIN FOR i IN 1..2147483647 LOOP END LOOP; END",
        "BEGIN FOR i IN 1..2147483647 LOOP CONTINUE; END LOOP; END",
        "BEGIN LOOP PERFORM 1; END LOOP; END",
    ] {
        let statement = format!("CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ {body} $$");
        let error = database(&[&statement]).execute("CALL p()").expect_err(body);
        assert_eq!(error.state, SqlState::QUERY_CANCELED, "{body}: {error:?}");
    }
}

#[test]
fn endless_recursion_ends_on_a_small_stack() {
    let calls = || {
        let body = "DECLARE x integer; BEGIN IF n > 0 THEN CALL p(n + 1); END IF; x := n; END";
        let statement = format!("CREATE PROCEDURE p(n integer) LANGUAGE plpgsql AS $$ {body} $$");
        database(&[&statement]).execute("CALL p(1)").expect_err("no end")
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(calls).expect("a thread");
    assert_eq!(thread.join().expect("no overflow").state, SqlState::STATEMENT_TOO_COMPLEX);
}

/// Effects of a call of a procedure with this body, on a table with one row.
fn effects(body: &str) -> Effects {
    let inner =
        "CREATE PROCEDURE touch() LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET v = 0 WHERE k = 7; END $$";
    let statement = format!("CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ DECLARE n integer; {body} $$");
    let effects = database(&["INSERT INTO t VALUES (1, 1, 'x')", inner, &statement]).simulate("CALL p()");
    assert!(effects.result.is_ok(), "{body}: {:?}", effects.result);
    effects
}

fn guards(body: &str) -> Vec<Option<bool>> {
    effects(body).commands.iter().map(|command| command.guard).collect()
}

#[test]
fn a_match_is_guarded_only_where_somebody_looks() {
    let update = "UPDATE t SET v = v + 1 WHERE k";
    assert_eq!(guards(&format!("BEGIN {update} = 1; {update} = 2; END")), [None, None]);
    assert_eq!(
        guards(&format!("BEGIN {update} = 1; {update} = 2; IF FOUND THEN NULL; END IF; END")),
        [None, Some(false)]
    );
    assert_eq!(
        guards(&format!("BEGIN {update} = 1; IF NOT found THEN RAISE 'gone'; END IF; {update} = 2; END")),
        [Some(true), None]
    );
    assert_eq!(guards(&format!("BEGIN {update} = 1; GET DIAGNOSTICS n = ROW_COUNT; END")), [Some(true)]);
    assert_eq!(guards(&format!("BEGIN {update} = 1; PERFORM 1; IF FOUND THEN NULL; END IF; END")), [None]);
    assert_eq!(guards(&format!("BEGIN {update} = 1 RETURNING v INTO n; END")), [Some(true)]);
}

#[test]
fn a_match_before_a_call_is_still_the_one_that_found_means() {
    let body =
        "BEGIN UPDATE t SET v = 5 WHERE k = 1; CALL touch(); IF NOT FOUND THEN RAISE 'wrong'; END IF; END";
    assert_eq!(guards(body), [Some(true), None]);
    let body = "BEGIN UPDATE t SET v = 5 WHERE k = 1; CALL touch(); END";
    assert_eq!(guards(body), [None, None]);
}

#[test]
fn select_into_reads_one_row_and_strict_two() {
    let statement = "CREATE PROCEDURE p(INOUT x integer) LANGUAGE plpgsql AS $$
                     BEGIN SELECT k INTO x FROM t WHERE 6 / (k - 2) < 100 ORDER BY k; END $$";
    let rows = "INSERT INTO t VALUES (1, 1), (2, 2)";
    let result = database(&[rows, statement]).execute("CALL p(0)").expect("the second row is not looked at");
    assert_eq!(result[0].rows, [[Value::Integer(1)]]);
    let strict = statement.replace("INTO x", "INTO STRICT x");
    let error = database(&[rows, &strict]).execute("CALL p(0)").expect_err("the second row divides by zero");
    assert_eq!(error.state, SqlState::DIVISION_BY_ZERO);
}

#[test]
fn the_deepest_body_fits_on_a_small_stack() {
    let expression = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
    let body = move |blocks: usize, levels: usize| {
        format!(
            "{} x := {}; {}",
            "BEGIN IF true THEN ".repeat(blocks / 2),
            expression(levels),
            "END IF; END; ".repeat(blocks / 2)
        )
    };
    let create = move || {
        let mut accepted = 0;
        for (blocks, levels) in [(60, 20), (60, 40), (60, 60), (2, 10_000), (10_000, 2)] {
            let body = format!("DECLARE x integer; BEGIN {} END", body(blocks, levels));
            let statement = format!("CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ {body} $$");
            accepted += usize::from(database(&[]).execute(&statement).is_ok());
        }
        accepted
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(create).expect("a thread");
    assert!(thread.join().expect("no overflow") >= 1);
}
