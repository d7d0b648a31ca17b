//! What expressions cost: work that grows with the values is charged by what it goes over, the same on every node.

mod support;

use support::Database;
use types::{Payload, SqlState};

const LONG: usize = 100_000;

fn database() -> Database {
    Database::with(&[
        "CREATE TABLE t (id integer PRIMARY KEY, s text, n numeric, a text[])",
        "CREATE TABLE checked (id integer PRIMARY KEY, s text CHECK (s !~ '(b|ab)+c'))",
        "CREATE FUNCTION searched(s text) RETURNS boolean LANGUAGE plpgsql AS $$
         DECLARE found boolean;
         BEGIN
           found := s ~ '(b|ab)+c';
           RETURN found;
         END $$",
        "CREATE PROCEDURE change(which integer) LANGUAGE plpgsql AS $$
         DECLARE known text;
         BEGIN
           SELECT s INTO known FROM t WHERE id = which;
           IF known ~ '(b|ab)+c' THEN
             UPDATE t SET s = 'found' WHERE id = which;
           END IF;
         END $$",
        // A short row, and a long one.
        "INSERT INTO t VALUES (1, 'aaaa', 7, ARRAY['a', 'b'])",
        &format!(
            "INSERT INTO t VALUES (2, repeat('a', {LONG}), repeat('7', 30000)::numeric,
             (SELECT array_agg(g::text) FROM generate_series(1, 10000) AS g))"
        ),
    ])
}

/// Steps of a script.
fn steps(database: &Database, sql: &str) -> u64 {
    let effects = database.script_effects(sql);
    assert!(effects.result.is_ok(), "{sql}: {:?}", effects.result);
    effects.steps
}

/// What grows with the value, for each row of `t`; and about how many steps it may take for the long one.
const GROWING: &[(&str, std::ops::Range<u64>)] = &[
    ("s ~ 'b'", 90..1_000),
    ("s ~* 'b'", 90..1_000),
    ("s SIMILAR TO '%b%'", 200..20_000),
    ("s ~ '(b|ab){1,200}c'", 20_000..500_000),
    ("regexp_like(s, 'b')", 90..1_000),
    ("regexp_count(s, 'ab')", 90..1_000),
    ("regexp_replace(s, '(b)', 'c', 'g')", 90..1_000),
    ("regexp_match(s, 'b')", 90..1_000),
    ("regexp_split_to_array(s, 'b')", 90..1_000),
    ("substring(s from 'b')", 90..1_000),
    ("s LIKE '%b%'", 90..1_000),
    ("s LIKE '%' || repeat('a', 1000) || 'b%'", 20_000..50_000),
    ("replace(s, 'b', 'c')", 90..1_000),
    ("translate(s, repeat('b', 100), 'c')", 9_000..20_000),
    ("btrim(s, repeat('b', 100))", 9_000..20_000),
    ("strpos(s, 'b')", 90..1_000),
    ("reverse(s)", 90..1_000),
    ("upper(s)", 90..1_000),
    ("s || 'b'", 90..1_000),
    ("concat(s, 'b')", 90..1_000),
    ("format('%s', s)", 90..1_000),
    ("sha256(s::bytea)", 90..1_000),
    ("repeat('x', length(s))", 90..1_000),
    ("lpad('x', length(s))", 90..1_000),
    ("string_to_array(s, 'b')", 90..1_000),
    ("a @> ARRAY['no']", 50..2_000),
    ("a && a", 90..2_000_000),
    ("a @> a", 300_000..2_000_000),
    ("array_append(a, 'b')", 30..1_000),
    ("array_position(a, 'no')", 30..1_000),
    ("array_to_string(a, ',')", 30..1_000),
    ("'no' = ANY (a)", 30..1_000),
    ("n * n", 500..50_000),
    ("n / 3", 100..50_000),
    ("n::text", 100..50_000),
    ("trunc(n)", 100..50_000),
    ("n::text::numeric", 1_000..50_000),
];

#[test]
fn work_is_charged_by_what_it_goes_over() {
    let mut database = database();
    database.step_limit = 10_000_000;
    let plain = steps(&database, "SELECT id IS NULL FROM t WHERE id = 1");
    let mut wrong = Vec::new();
    for (expression, range) in GROWING {
        let of = |id: u32| steps(&database, &format!("SELECT ({expression}) IS NULL FROM t WHERE id = {id}"));
        let (short, long) = (of(1) - plain, of(2) - plain);
        if short > 100 || !range.contains(&long) {
            wrong.push(format!("{expression}: {short} steps of a short value, {long} of a long one"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A function of numbers by the digits that it is to give.
    let digits = |digits: usize, function: &str| {
        let number = format!("1.{}", "3".repeat(digits));
        steps(&database, &format!("SELECT {function}(n / n * {number}) FROM t WHERE id = 1")) - plain
    };
    for function in ["exp", "ln", "sqrt", "log"] {
        assert!(digits(10, function) <= 2, "{function}");
        assert!(digits(1_000, function) > 1_000, "{function}");
    }
}

#[test]
fn work_counts_wherever_it_is_done() {
    let database = database();
    let costs = |sql: &str| {
        let steps = steps(&database, sql);
        assert!(steps > 200, "{sql}: {steps}");
    };
    costs("SELECT count(*) FROM t WHERE s ~ '(b|ab)+c'");
    costs("SELECT id FROM t ORDER BY s ~ '(b|ab)+c'");
    costs("SELECT max(regexp_count(s, '(b|ab)+c')) FROM t GROUP BY s ~ 'c'");
    costs("SELECT (SELECT s ~ '(b|ab)+c') FROM t");
    costs("SELECT searched(s) FROM t");
    costs("UPDATE t SET s = 'found' WHERE s ~ '(b|ab)+c'");
    costs("UPDATE t SET s = regexp_replace(s, '(b|ab)+c', 'found') WHERE id = 2");
    costs("DELETE FROM t WHERE id = 2 AND s ~ '(b|ab)+c'");
    costs("INSERT INTO checked SELECT id, s FROM t");
    costs("CALL change(2)");
    costs("ALTER TABLE t ADD CONSTRAINT c CHECK (s !~ '(b|ab)+c')");
    costs("ALTER TABLE t ALTER COLUMN s TYPE boolean USING s ~ '(b|ab)+c'");
    costs("DO $$ BEGIN FOR i IN 1..2 LOOP PERFORM repeat('ab', 50000 - i) ~ '(b|ab)+c'; END LOOP; END $$");
}

/// What is compiled already, and who runs it, makes no difference.
#[test]
fn work_is_the_same_whatever_has_run_before() {
    let database = database();
    let sql = "SELECT count(*) FROM t WHERE s ~ '(b|ab)+c' OR s ~ '[x-z]{3,7}' OR s LIKE '%b%c%'";
    let first = steps(&database, sql);
    assert_eq!(steps(&database, sql), first);
    for number in 0..40 {
        steps(&database, &format!("SELECT 'x' ~ 'other{number}'"));
    }
    assert_eq!(steps(&database, sql), first);
    let other = database.clone();
    assert_eq!(std::thread::spawn(move || steps(&other, sql)).join().expect("a result"), first);
}

#[test]
fn work_beyond_the_limit_is_refused() {
    let mut database = database();
    database.step_limit = 20_000;
    for sql in [
        "SELECT s ~ '(b|ab){1,200}c' FROM t",
        "SELECT count(*) FROM t, generate_series(1, 100) AS g WHERE s ~ ('(b|ab)+c' || g)",
        "SELECT n * n * n * n FROM t, generate_series(1, 100) AS g",
        "SELECT a @> a FROM t",
        "UPDATE t SET s = 'found' WHERE id = 2 AND s ~ '(b|ab){1,200}c'",
        "DO $$ DECLARE t text := repeat('a', 90000); BEGIN FOR i IN 1..1000 LOOP PERFORM t ~ '(b|ab)+c'; END LOOP; END $$",
        "SELECT repeat('a', 100000) ~ '(b|ab){1,200}c'",
    ] {
        let effects = database.script_effects(sql);
        let error = effects.result.expect_err(sql);
        assert_eq!(error.state, SqlState::QUERY_CANCELED, "{sql}: {error:?}");
        assert!(error.message.contains("more than 20000 steps"), "{sql}: {error:?}");
        assert_eq!(effects.steps, 20_000, "{sql}");
    }
    // Nobody catches it, as nobody catches any other end of the steps.
    let caught = "DO $$ BEGIN PERFORM s ~ '(b|ab){1,200}c' FROM t; EXCEPTION WHEN OTHERS THEN NULL; END $$";
    let payload = Payload::Script { sql: caught.to_string(), parameters: Vec::new() };
    assert_eq!(database.effects(payload).result.expect_err("not caught").state, SqlState::QUERY_CANCELED);
}

#[test]
fn a_text_of_an_array_is_refused_before_it_is_made() {
    let mut database = database();
    let error = database
        .error("SELECT array_to_string(array_fill(NULL::text, ARRAY[16000]), ',', repeat('x', 100000))");
    assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED, "{error:?}");
}
