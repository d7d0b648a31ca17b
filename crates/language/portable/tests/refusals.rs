//! What is refused, with which code and words.

mod samples;

use portable::check_script;
use samples::{NOW_MS, catalog, script, script_with};
use types::{Payload, SqlError, Value};

/// Code, a part of the message, and the script.
type Refusal = (&'static str, &'static str, &'static str);

fn refuse(refusals: &[Refusal]) {
    for (state, message, sql) in refusals {
        let error = match script(sql) {
            Err(error) => error,
            Ok(script) => panic!("{sql}: {script:?}"),
        };
        assert_eq!(error.state.to_string(), *state, "{sql}: {error:?}");
        assert!(error.message.contains(message), "{sql}: {error:?}");
        assert_stated(&error, sql);
    }
}

/// Who is refused something is told where it would be possible, and what to do.
fn assert_stated(error: &SqlError, sql: &str) {
    if error.state.to_string() == "0A000" {
        assert!(
            error.message.ends_with("on a ledger whose databases execute scripts is not supported"),
            "{sql}: {error:?}"
        );
        assert!(error.hint.is_some(), "{sql}: {error:?}");
    }
}

#[test]
fn statements_that_are_not_the_same_everywhere() {
    refuse(&[
        ("0A000", "SELECT in a script", "SELECT 1"),
        ("0A000", "WITH", "WITH x AS (SELECT 1) DELETE FROM account"),
        ("0A000", "TRUNCATE in a script", "TRUNCATE account"),
        ("0A000", "CREATE in a script", "CREATE TABLE x (id bigint PRIMARY KEY)"),
        ("0A000", "a transaction block in a script", "BEGIN; DELETE FROM account; COMMIT"),
        ("0A000", "a statement about materialized views in a script", "REFRESH MATERIALIZED VIEW v"),
        ("0A000", "a statement about databases in a script", "CREATE DATABASE d"),
        ("0A000", "DO in a script", "DO $$BEGIN END$$"),
        ("0A000", "SET in a script", "SET search_path TO s; DELETE FROM entry"),
        ("0A000", "RETURNING", "INSERT INTO account (id) VALUES (1) RETURNING id"),
        ("0A000", "RETURNING", "UPDATE account SET name = 'a' RETURNING id"),
        ("0A000", "RETURNING", "DELETE FROM account RETURNING id"),
        ("0A000", "ON CONFLICT", "INSERT INTO account (id) VALUES (1) ON CONFLICT DO NOTHING"),
        ("0A000", "INSERT of anything but VALUES", "INSERT INTO account SELECT * FROM account"),
        ("0A000", "INSERT of anything but VALUES", "INSERT INTO account (id) VALUES (1) LIMIT 1"),
        ("0A000", "an alias", "INSERT INTO account AS a (id) VALUES (1)"),
        ("0A000", "FROM in UPDATE", "UPDATE account SET name = 'a' FROM serial WHERE account.id = serial.id"),
        ("0A000", "USING in DELETE", "DELETE FROM account USING serial WHERE account.id = serial.id"),
        ("0A000", "JOIN", "UPDATE account JOIN serial ON true SET name = 'a'"),
        ("0A000", "a subscript in SET", "UPDATE account SET name[1] = 'a' WHERE id = 1"),
        ("0A000", "SET (a, b)", "UPDATE account SET (name, code) = ('a', 'b')"),
        ("0A000", "column \"id\" of the primary key", "UPDATE account SET id = 2 WHERE id = 1"),
        ("0A000", "the type double precision", "DELETE FROM double"),
        ("0A000", "the default nextval", "INSERT INTO serial (id) VALUES (1)"),
        ("0A000", "the default nextval", "UPDATE serial SET n = DEFAULT"),
        (
            "0A000",
            "behind an assignment to it",
            "UPDATE account SET balance = 1, whole = 2, amount = balance",
        ),
        ("0A000", "behind an assignment to it", "UPDATE account SET name = code, code = name"),
    ]);
}

#[test]
fn what_postgresql_refuses_has_its_codes() {
    refuse(&[
        ("42601", "syntax error", "DELETE account WHERE"),
        ("42P01", "relation \"missing\" does not exist", "DELETE FROM missing"),
        ("42P01", "relation \"entry\" does not exist", "DELETE FROM entry"),
        ("42P01", "missing FROM-clause entry for table \"other\"", "DELETE FROM account WHERE other.id = 1"),
        (
            "42P01",
            "missing FROM-clause entry for table \"account\"",
            "DELETE FROM account AS a WHERE account.id = 1",
        ),
        ("42703", "column \"x\" of relation \"account\" does not exist", "UPDATE account SET x = 1"),
        ("42703", "column \"x\" of relation \"entry\" does not exist", "INSERT INTO s.entry (x) VALUES (1)"),
        ("42703", "column \"x\" does not exist", "DELETE FROM account WHERE x = 1"),
        ("42701", "specified more than once", "INSERT INTO account (id, id) VALUES (1, 1)"),
        (
            "42601",
            "multiple assignments to same column \"name\"",
            "UPDATE account SET name = 'a', name = 'b'",
        ),
        ("42601", "more expressions than target columns", "INSERT INTO account (id) VALUES (1, 2)"),
        ("42601", "more target columns than expressions", "INSERT INTO account (id, small) VALUES (1)"),
        ("42601", "must all be the same length", "INSERT INTO account (id, small) VALUES (1, 2), (3)"),
        ("42804", "argument of WHERE must be type boolean, not type integer", "DELETE FROM account WHERE id"),
        ("42804", "argument of WHERE must be type boolean, not type integer", "DELETE FROM account WHERE 1"),
        ("42804", "argument of AND must be type boolean", "DELETE FROM account WHERE active AND id"),
        ("42804", "argument of NOT must be type boolean", "DELETE FROM account WHERE NOT id"),
        ("42804", "argument of CASE/WHEN must be", "UPDATE account SET name = CASE WHEN id THEN 'a' END"),
        (
            "42804",
            "column \"born\" is of type date but expression is of type integer",
            "UPDATE account SET born = 5",
        ),
        ("42804", "column \"active\" is of type boolean", "INSERT INTO account (id, active) VALUES (1, 1)"),
        ("42883", "operator does not exist: integer = text", "DELETE FROM account WHERE id = name"),
        ("42883", "operator does not exist: text + integer", "UPDATE account SET name = name + 1"),
        ("42P02", "there is no parameter $1", "DELETE FROM account WHERE id = $1"),
        ("22P02", "invalid input syntax for type integer", "INSERT INTO account (id) VALUES ('x')"),
        ("22P02", "invalid input syntax for type bigint", "DELETE FROM account WHERE balance = 'x'"),
        ("22007", "invalid input syntax for type date", "UPDATE account SET born = 'x'"),
        ("22003", "integer out of range", "INSERT INTO account (id) VALUES (2147483648)"),
        ("22003", "smallint out of range", "UPDATE account SET small = 32768"),
        ("22003", "integer out of range", "DELETE FROM account WHERE id = 2147483648"),
        ("22003", "numeric field overflow", "UPDATE account SET amount = 99999999.995"),
        ("22001", "value too long for type character varying(4)", "UPDATE account SET code = 'abcde'"),
        (
            "22001",
            "value too long for type character varying(4)",
            "INSERT INTO account (id, code) VALUES (1, 'abcd ')",
        ),
        ("22008", "date out of range", "UPDATE account SET born = '0001-12-31 BC'"),
        ("22008", "date out of range", "UPDATE account SET born = '10000-01-01'"),
        ("22008", "date out of range", "DELETE FROM account WHERE born < 'infinity'"),
        ("22008", "timestamp out of range", "UPDATE account SET at = '10000-01-01'"),
        ("22008", "timestamp out of range", "UPDATE account SET seen = '-infinity'"),
        (
            "23502",
            "null value in column \"id\" of relation \"account\"",
            "INSERT INTO account (name) VALUES ('a')",
        ),
    ]);
}

#[test]
fn expressions_that_are_not_the_same_everywhere() {
    refuse(&[
        ("0A000", "the operator /", "UPDATE account SET balance = balance / 2"),
        ("0A000", "the operator %", "UPDATE account SET balance = balance % 2"),
        ("0A000", "the operator ^", "UPDATE account SET balance = balance ^ 2"),
        ("0A000", "the operator ~", "DELETE FROM account WHERE name ~ 'a'"),
        ("0A000", "a minus", "UPDATE account SET balance = -balance"),
        ("0A000", "LIKE", "DELETE FROM account WHERE name LIKE 'a%'"),
        ("0A000", "ILIKE", "DELETE FROM account WHERE name ILIKE 'a%'"),
        ("0A000", "IS DISTINCT FROM", "DELETE FROM account WHERE name IS DISTINCT FROM 'a'"),
        ("0A000", "IS TRUE", "DELETE FROM account WHERE active IS TRUE"),
        ("0A000", "a subquery", "DELETE FROM account WHERE id IN (SELECT 1)"),
        ("0A000", "a subquery", "DELETE FROM account WHERE EXISTS (SELECT 1)"),
        ("0A000", "a subquery", "UPDATE account SET name = (SELECT 'a')"),
        ("0A000", "ANY or ALL", "DELETE FROM account WHERE id = ANY (ARRAY[1])"),
        ("0A000", "COLLATE", "DELETE FROM account WHERE name COLLATE \"C\" = 'a'"),
        ("0A000", "the function upper", "UPDATE account SET name = upper(name)"),
        ("0A000", "the function clock_timestamp", "DELETE FROM account WHERE seen = clock_timestamp()"),
        ("0A000", "CASE with a value", "UPDATE account SET name = CASE id WHEN 1 THEN 'a' END"),
        ("0A000", "COALESCE of constants", "UPDATE account SET name = COALESCE(NULL, 'a')"),
        ("0A000", "with values of types", "UPDATE account SET balance = COALESCE(balance, small)"),
        ("0A000", "with values of types", "UPDATE account SET amount = COALESCE(amount, balance)"),
        ("0A000", "CASE with nothing but NULL", "UPDATE account SET name = CASE WHEN active THEN NULL END"),
        ("0A000", "arithmetic of two constants", "UPDATE account SET balance = 1 + 1"),
        ("0A000", "a comparison of two constants", "DELETE FROM account WHERE 1 = 1"),
        ("0A000", "a constant as a condition", "DELETE FROM account WHERE TRUE"),
        ("0A000", "IS NULL of a constant", "DELETE FROM account WHERE NULL IS NULL"),
        (
            "0A000",
            "|| of texts that may have more than 131072 bytes",
            "UPDATE s.entry SET status = note || 'x' WHERE number = 1",
        ),
        ("0A000", "|| of two constants", "UPDATE account SET name = 'a' || 'b'"),
        ("0A000", "|| with a value of type integer", "UPDATE account SET name = name || id"),
        ("0A000", "NULL in a list", "DELETE FROM account WHERE id IN (1, NULL)"),
        ("0A000", "anything but constants in a list", "DELETE FROM account WHERE id IN (1, whole)"),
        ("0A000", "IN behind a constant", "DELETE FROM account WHERE 1 IN (1, 2)"),
        ("0A000", "the operator < with values of type uuid", "DELETE FROM account WHERE mark < mark"),
        ("0A000", "the operator >= with values of type boolean", "DELETE FROM account WHERE active >= TRUE"),
        (
            "0A000",
            "the operator >= with values of type bytea",
            "DELETE FROM account WHERE bytes BETWEEN '' AND ''",
        ),
        ("0A000", "date = timestamp", "DELETE FROM account WHERE born = at"),
        ("0A000", "arithmetic of dates", "UPDATE account SET born = born + 1"),
        ("0A000", "the expression INTERVAL", "UPDATE account SET at = at + INTERVAL '1 day'"),
        ("0A000", "anything but a constant in VALUES", "INSERT INTO account (id) VALUES (1 + 1)"),
        ("0A000", "the literal", "INSERT INTO account (id, bytes) VALUES (1, X'00')"),
        ("0A000", "the type double precision", "UPDATE account SET amount = 1::double precision"),
        ("0A000", "the type json", "UPDATE account SET name = '{}'::json"),
        ("0A000", "this cast to integer", "UPDATE account SET whole = 1.5::integer"),
        ("0A000", "a cast to integer", "UPDATE account SET whole = balance::integer"),
        ("0A000", "a cast to bigint", "UPDATE account SET balance = (whole + 1)::bigint"),
        ("0A000", "the number NaN", "UPDATE account SET amount = 'NaN'"),
    ]);
}

#[test]
fn numbers_that_databases_compute_differently() {
    refuse(&[
        ("0A000", "for column \"whole\" of type integer", "UPDATE account SET whole = balance"),
        ("0A000", "for column \"whole\" of type integer", "UPDATE account SET whole = amount"),
        ("0A000", "for column \"whole\" of type integer", "UPDATE account SET whole = 1.5"),
        ("0A000", "for column \"small\" of type smallint", "UPDATE account SET small = small + 1"),
        ("0A000", "for column \"name\" of type character varying(100)", "UPDATE account SET name = id"),
        ("0A000", "for column \"at\" of type timestamp", "UPDATE account SET at = now()"),
        (
            "0A000",
            "arithmetic of integer that is not the whole value",
            "UPDATE account SET balance = whole + 1",
        ),
        (
            "0A000",
            "arithmetic of integer that is not the whole value",
            "UPDATE account SET whole = whole + 1 + 1",
        ),
        (
            "0A000",
            "arithmetic of smallint that is not the whole value",
            "UPDATE account SET whole = small + small",
        ),
        (
            "0A000",
            "arithmetic of integer that is not the whole value",
            "UPDATE account SET balance = (whole + 1) * balance",
        ),
        (
            "0A000",
            "arithmetic of integer that is not the whole value",
            "UPDATE account SET whole = COALESCE(whole + 1, 0)",
        ),
        (
            "0A000",
            "arithmetic of integer that is not the whole value",
            "DELETE FROM account WHERE id = 1 AND whole + 1 > 5",
        ),
        ("0A000", "arithmetic in WHERE", "DELETE FROM account WHERE balance + 1 > 5"),
        ("0A000", "arithmetic in WHERE", "DELETE FROM account WHERE id IN (1, 2) AND balance + 1 > 5"),
        ("0A000", "arithmetic in WHERE", "DELETE FROM account WHERE id = 1 AND balance + 1 > 5 AND active"),
        ("0A000", "arithmetic in WHERE", "DELETE FROM account WHERE id = 1 AND (balance + 1 > 5 OR active)"),
        (
            "0A000",
            "arithmetic in a condition",
            "UPDATE account SET name = CASE WHEN balance + 1 > 5 THEN 'a' END",
        ),
        ("0A000", "arithmetic in a condition", "UPDATE account SET active = amount * 2 > 5"),
        ("0A000", "120 digits, 40 of them after the point", "UPDATE account SET rate = rate * rate"),
        ("0A000", "a number of 66 digits", DIGITS),
    ]);
}

const DIGITS: &str =
    "UPDATE account SET rate = rate + 123456789012345678901234567890123456789012345678901234567890123456";

#[test]
fn depth_has_a_limit() {
    let nested = |depth: usize| {
        let (open, close) = ("COALESCE(balance, ".repeat(depth), ")".repeat(depth));
        script(&format!("UPDATE account SET balance = {open}0{close}"))
    };
    assert!(nested(40).is_ok());
    assert_eq!(nested(80).expect_err("too deep").state.to_string(), "54001");
    let added = script(&format!("UPDATE account SET balance = balance{}", " + 1".repeat(70)));
    assert_eq!(added.expect_err("too deep").state.to_string(), "54001");
    assert!(
        script(&format!("DELETE FROM account WHERE id = 1{}", " OR id = 1".repeat(80))).is_ok(),
        "no depth at all"
    );
}

#[test]
fn parameters_of_other_types_are_refused() {
    for (state, value) in [
        ("0A000", Value::Double(1.0)),
        ("0A000", Value::Time(0)),
        ("0A000", Value::Char("a".into())),
        ("22008", Value::Date(i32::MAX)),
        ("22021", Value::text("\0")),
        ("42804", Value::Boolean(true)),
    ] {
        let error =
            script_with("INSERT INTO account (id, balance) VALUES (1, $1)", &[value]).expect_err("refused");
        assert_eq!(error.state.to_string(), state, "{error:?}");
        assert_stated(&error, "INSERT");
    }
}

#[test]
fn errors_say_where_they_are() {
    let position = |sql: &str| script(sql).expect_err("refused").position;
    assert_eq!(position("DELETE FROM account WHERE x = 1"), Some(27));
    assert_eq!(position("DELETE FROM account;\nUPDATE account SET id = 5"), Some(41));
    assert_eq!(position("INSERT INTO account (id) VALUES (1), ('x')"), Some(39));
}

#[test]
fn only_scripts_and_copy_are_possible() {
    let check = |payload: &Payload| check_script(&catalog(), payload, NOW_MS).expect_err("refused");
    let call = check(&Payload::Call { procedure: "pay".to_string(), arguments: Vec::new() });
    assert_eq!(call.hint.as_deref(), Some("Write the statements as a script."));
    let digest = types::SessionResults::default().digest();
    let session = check(&Payload::Session { steps: Vec::new(), now_ms: NOW_MS, results: digest });
    assert_eq!(session.hint.as_deref(), Some("Send the statements as one script, without BEGIN and COMMIT."));
    for error in [call, session] {
        assert_eq!(error.state.to_string(), "0A000");
        assert_stated(&error, "a payload");
    }
}
