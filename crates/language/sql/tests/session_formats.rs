//! Scripts of sessions in other time zones than UTC, and with other forms of values: what they mean, and what stays as it is for everybody.
#![allow(missing_docs)]

mod support;

use support::Database;
use types::{ExecutionVersion, SqlState};

const BERLIN: &str = "SET TIME ZONE 'Europe/Berlin';";

/// What a query gives, with values as a session in UTC would show them.
fn rows(database: &mut Database, sql: &str) -> String {
    let rows: Vec<String> = database.rows(sql).iter().map(|row| row.join("|")).collect();
    rows.join("\n")
}

fn events() -> Database {
    Database::with(&[
        "CREATE TABLE events (id int PRIMARY KEY, at timestamptz, day date, note text)",
        "CREATE INDEX ON events (at)",
    ])
}

#[test]
fn a_script_reads_and_writes_instants_in_its_zone() {
    let mut database = events();
    // Summer and winter; a time that clocks never show, and one that they show twice.
    for (id, local) in
        ["2026-07-01 00:30", "2026-12-01 00:30", "2026-03-29 02:30", "2026-10-25 02:30"].iter().enumerate()
    {
        let insert = format!(
            "{BERLIN}INSERT INTO events VALUES ({id}, '{local}', timestamptz '{local}', timestamptz '{local}')"
        );
        database.run(&insert).expect("inserted");
    }
    assert_eq!(
        rows(&mut database, "SELECT id, at, day, note FROM events ORDER BY id"),
        "0|2026-06-30 22:30:00+00|2026-07-01|2026-07-01 00:30:00+02\n\
         1|2026-11-30 23:30:00+00|2026-12-01|2026-12-01 00:30:00+01\n\
         2|2026-03-29 01:30:00+00|2026-03-29|2026-03-29 03:30:00+02\n\
         3|2026-10-25 01:30:00+00|2026-10-25|2026-10-25 02:30:00+01"
    );
    let by_index = format!("{BERLIN}SELECT id FROM events WHERE at = '2026-07-01 00:30'");
    assert_eq!(rows(&mut database, &by_index), "0");
    let by_day = format!("{BERLIN}SELECT id FROM events WHERE at::date = '2026-12-01'");
    assert_eq!(rows(&mut database, &by_day), "1");
    assert_eq!(rows(&mut database, "SELECT id FROM events WHERE at::date = '2026-12-01'"), "");
    let setting = format!("{BERLIN}SELECT current_setting('TimeZone')");
    assert_eq!(rows(&mut database, &setting), "Europe/Berlin");
}

#[test]
fn changes_that_are_made_later_are_made_in_the_zone_of_their_script() {
    let mut database = events();
    database
        .run("INSERT INTO events VALUES (1, '2026-03-28 12:00+00'), (2, '2026-03-28 23:30+00')")
        .expect("inserted");
    database
        .run(&format!("{BERLIN}UPDATE events SET at = at + interval '1 day', note = at::text"))
        .expect("updated");
    assert_eq!(
        rows(&mut database, "SELECT id, at, note FROM events ORDER BY id"),
        "1|2026-03-29 11:00:00+00|2026-03-28 13:00:00+01\n2|2026-03-29 22:30:00+00|2026-03-29 00:30:00+01"
    );
    // By the day there, not by that of UTC.
    database
        .run(&format!("{BERLIN}UPDATE events SET note = 'found' WHERE id = 2 AND at::date = '2026-03-30'"))
        .expect("updated");
    database
        .run(&format!("{BERLIN}DELETE FROM events WHERE id = 1 AND at::time = '13:00'"))
        .expect("deleted");
    assert_eq!(rows(&mut database, "SELECT id, note FROM events"), "2|found");
}

#[test]
fn routines_do_the_same_whoever_calls_them_and_blocks_of_a_session_do_not() {
    let mut database = events();
    for script in [
        "CREATE FUNCTION day_of(at timestamptz) RETURNS text LANGUAGE plpgsql AS \
         $$ BEGIN RETURN at::date || ' in ' || current_setting('TimeZone'); END $$",
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := NEW.at::text; RETURN NEW; END $$",
        "CREATE TRIGGER stamp BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION stamp()",
        "CREATE VIEW days AS SELECT id, at::date AS day FROM events",
    ] {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    let called = format!("{BERLIN}SELECT day_of('2026-07-01 00:30'), timestamptz '2026-07-01 00:30'::date");
    assert_eq!(rows(&mut database, &called), "2026-06-30 in UTC|2026-07-01");
    database
        .run(&format!("{BERLIN}INSERT INTO events (id, at) VALUES (1, '2026-07-01 00:30')"))
        .expect("inserted");
    assert_eq!(rows(&mut database, "SELECT note FROM events"), "2026-06-30 22:30:00+00");
    assert_eq!(rows(&mut database, &format!("{BERLIN}SELECT day FROM days")), "2026-07-01");
    assert_eq!(rows(&mut database, "SELECT day FROM days"), "2026-06-30");
    let block = "DO $$ BEGIN \
                   UPDATE events SET note = at::text; \
                   EXECUTE 'UPDATE events SET day = at::date'; \
                 END $$";
    database.run(&format!("{BERLIN}{block}")).expect("done");
    assert_eq!(rows(&mut database, "SELECT note, day FROM events"), "2026-07-01 00:30:00+02|2026-07-01");
}

#[test]
fn a_table_of_a_query_is_filled_in_the_zone_and_definitions_are_in_utc() {
    let mut database = events();
    database.run("INSERT INTO events VALUES (1, '2026-06-30 22:30+00')").expect("inserted");
    database
        .run(&format!(
            "{BERLIN}CREATE TABLE days AS SELECT id, at::date AS day, at::text AS shown FROM events"
        ))
        .expect("created");
    assert_eq!(rows(&mut database, "SELECT day, shown FROM days"), "2026-07-01|2026-07-01 00:30:00+02");
    database
        .run(&format!("{BERLIN}CREATE TABLE d (id int, at timestamptz DEFAULT '2026-07-01 00:30', CHECK (at > '2026-06-30 22:45'))"))
        .expect("created");
    database.run(&format!("{BERLIN}INSERT INTO d VALUES (1)")).expect("the default is later, in UTC");
    assert_eq!(rows(&mut database, "SELECT at FROM d"), "2026-07-01 00:30:00+00");
}

#[test]
fn zones_that_there_are_not_are_refused_and_older_versions_have_none() {
    let mut database = events();
    let wrong = database.run("SET TIME ZONE 'Nowhere';INSERT INTO events VALUES (1)").expect_err("refused");
    assert_eq!(
        (wrong.state, wrong.message.as_str()),
        (SqlState::INVALID_PARAMETER_VALUE, "invalid value for parameter \"TimeZone\": \"Nowhere\"")
    );
    let mut older = Database::of_version(ExecutionVersion::V8);
    older.run("CREATE TABLE t (id int PRIMARY KEY)").expect("created");
    assert!(older.run(&format!("{BERLIN}INSERT INTO t VALUES (1)")).is_err());
}

#[test]
fn dates_intervals_and_doubles_have_the_forms_of_the_session() {
    let mut database = events();
    let front =
        "SET DateStyle TO 'German, DMY';SET IntervalStyle TO 'iso_8601';SET extra_float_digits TO '0';";
    let query = format!(
        "{front}SELECT date '1/2/2026', (date '1/2/2026')::text, (interval '1 day 2 hours')::text, (0.1::float8 + 0.2::float8)::text"
    );
    assert_eq!(rows(&mut database, &query), "2026-02-01|01.02.2026|P1DT2H|0.3");
    database
        .run(&format!("{front}INSERT INTO events VALUES (1, '3/4/2026 12:00', '3/4/2026', date '3/4/2026')"))
        .expect("inserted");
    assert_eq!(
        rows(&mut database, "SELECT at, day, note FROM events"),
        "2026-04-03 12:00:00+00|2026-04-03|03.04.2026"
    );
    let settings = format!(
        "{front}SELECT current_setting('datestyle'), current_setting('IntervalStyle'), to_json(day) FROM events"
    );
    assert_eq!(rows(&mut database, &settings), "German, DMY|iso_8601|\"2026-04-03\"");
}

#[test]
fn what_is_defined_means_the_same_to_everybody_whoever_uses_it_first() {
    let mut database = events();
    for script in [
        "CREATE FUNCTION noon(a anyelement) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RETURN timestamptz '2026-07-01 12:00'; END $$",
        "CREATE FUNCTION later(by interval DEFAULT timestamptz '2026-07-01 12:00' - timestamptz '2026-07-01 00:00+00') RETURNS text \
         LANGUAGE plpgsql AS $$ BEGIN RETURN by::text; END $$",
        "CREATE VIEW since AS SELECT id, at >= '2026-07-01 00:00' AS is_late, date '1/2/2026' AS first FROM events",
        "CREATE DOMAIN late AS timestamptz CHECK (VALUE::date >= '2026-07-01')",
        "CREATE TABLE kept (id int PRIMARY KEY, at timestamptz CHECK (at::date >= '1/7/2026'))",
    ] {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    // The first who asks, and so compiles it, is in another zone.
    let tokyo = "SET TIME ZONE 'Asia/Tokyo';SET DateStyle TO 'DMY';";
    assert_eq!(
        rows(&mut database, &format!("{tokyo}SELECT noon(1) = timestamptz '2026-07-01 12:00+00', later()")),
        "t|12:00:00"
    );
    assert_eq!(rows(&mut database, "SELECT noon(1), later()"), "2026-07-01 12:00:00+00|12:00:00");
    database.run("INSERT INTO events VALUES (1, '2026-06-30 20:00+00')").expect("inserted");
    assert_eq!(rows(&mut database, &format!("{tokyo}SELECT is_late, first FROM since")), "f|2026-01-02");
    // It is the first of July in Tokyo and not where everybody is.
    let early = database
        .run(&format!("{tokyo}INSERT INTO kept VALUES (1, '2026-01-06 08:00')"))
        .expect_err("refused");
    assert_eq!(early.state.to_string(), "23514");
    database.run(&format!("{tokyo}INSERT INTO kept VALUES (1, '1/7/2026 10:00')")).expect("inserted");
    let moved =
        database.run(&format!("{tokyo}UPDATE kept SET at = '2026-01-06 08:00'")).expect_err("refused");
    assert_eq!(moved.state.to_string(), "23514");
    let domain = database.run(&format!("{tokyo}SELECT '1/7/2026 08:00'::late")).expect_err("refused");
    assert_eq!(domain.state.to_string(), "23514");
}

#[test]
fn a_policy_lets_the_same_rows_through_in_every_format() {
    let mut database = events();
    for script in [
        "CREATE ROLE clerk",
        "GRANT SELECT ON events TO clerk",
        "ALTER TABLE events ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY new ON events USING (day >= '5/1/2026')",
        "INSERT INTO events VALUES (1, NULL, '2026-05-02'), (2, NULL, '2026-02-01')",
    ] {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    for front in ["", "SET DateStyle TO 'DMY';"] {
        assert_eq!(database.act("clerk", &format!("{front}SELECT id FROM events")).expect("rows"), [["1"]]);
    }
}

#[test]
fn rows_get_another_type_in_the_zone_of_who_changes_it() {
    let mut database = Database::with(&[
        "CREATE TABLE t (id int PRIMARY KEY, at timestamp)",
        "INSERT INTO t VALUES (1, '2026-07-01 00:30')",
    ]);
    database.run(&format!("{BERLIN}ALTER TABLE t ALTER at TYPE timestamptz")).expect("changed");
    assert_eq!(rows(&mut database, "SELECT at FROM t"), "2026-06-30 22:30:00+00");
    // A text that a routine executes may say its own.
    database
        .run("CREATE FUNCTION told() RETURNS text LANGUAGE plpgsql AS $$ DECLARE told text; BEGIN \
              EXECUTE 'SET TIME ZONE ''Asia/Tokyo'';SELECT (timestamptz ''2026-07-01 00:00'' + interval ''1 hour'')::text' INTO told; \
              RETURN told; END $$")
        .expect("created");
    assert_eq!(rows(&mut database, "SELECT told()"), "2026-07-01 01:00:00+09");
}

#[test]
fn what_is_out_of_range_in_another_zone_is_an_error_and_never_a_change_that_fails_at_its_place() {
    let mut database = Database::with(&[
        "CREATE TABLE t (id int PRIMARY KEY, ts timestamp, at timestamptz, note text)",
        "INSERT INTO t VALUES (1, '294276-12-31 23:59:59')",
    ]);
    let late = database.run("SET TIME ZONE '-15';UPDATE t SET at = ts WHERE id = 1").expect_err("refused");
    assert_eq!(late.state.to_string(), "22008");
    // Nobody but a client of its own making sends such a value.
    for value in [i64::MIN + 1, i64::MAX - 1] {
        let sql = format!(
            "{BERLIN}UPDATE t SET note = $1::timestamptz::text, ts = CASE WHEN $1 IS NULL THEN ts END WHERE id = 1"
        );
        let _ = database.run_with(&sql, vec![types::Value::TimestampTz(value)]);
        let _ = database.run_with(&format!("{BERLIN}SELECT extract(hour FROM $1::timestamptz), date_trunc('day', $1::timestamptz), to_json($1::timestamptz)"), vec![types::Value::TimestampTz(value)]);
    }
}

#[test]
fn triggers_and_rows_that_get_another_type_are_held_against_what_everybody_means() {
    let mut database = Database::with(&[
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz CHECK (at::date <= '2026-07-01'), said text)",
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.said := 'late'; RETURN NEW; END $$",
        "CREATE TRIGGER late BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.at::date > '2026-06-30') EXECUTE FUNCTION stamp()",
    ]);
    let tokyo = "SET TIME ZONE 'Asia/Tokyo';";
    // The first of July there, and the second: in UTC a day before.
    database
        .run(&format!(
            "{tokyo}INSERT INTO t VALUES (1, '2026-07-01 08:00', '1'), (2, '2026-07-02 08:00', '2')"
        ))
        .expect("inserted");
    assert_eq!(rows(&mut database, "SELECT id, said FROM t ORDER BY id"), "1|1\n2|late");
    database.run(&format!("{tokyo}ALTER TABLE t ALTER id TYPE bigint")).expect("the rows keep the CHECK");
}

#[test]
fn who_consents_to_a_change_sees_in_which_zone_it_reads() {
    let change = |sql: &str| sql::describe_change(&types::ProposedChange::Script(sql.to_string()));
    let create = "CREATE TABLE days AS SELECT at::date FROM events";
    assert_eq!(change(&format!("SET search_path TO a;{create}")), create);
    assert_eq!(change(&format!("SET search_path TO a;{BERLIN}{create}")), format!("{BERLIN}{create}"));
}
