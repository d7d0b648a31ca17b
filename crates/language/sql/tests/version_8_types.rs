//! Enums, domains and generated columns: what version 8 answers, and what version 7 did, whose ledgers go on with it.

mod support;

use support::{prepared, shown};
use types::{ExecutionVersion, limits};

#[test]
fn version_7_answers_as_it_did() {
    let before = &[
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN good AS mood CHECK (VALUE <> 'sad')",
        "CREATE DOMAIN low AS integer CHECK (VALUE < 10); CREATE DOMAIN lower AS integer CHECK (VALUE::low < 5)",
        "CREATE TABLE g (id integer PRIMARY KEY, m good); INSERT INTO g VALUES (1, 'ok')",
        "CREATE TABLE p (id integer PRIMARY KEY)",
        "CREATE TABLE r (v low); CREATE TABLE u (x r)",
        "CREATE SCHEMA s; CREATE TYPE s.level AS ENUM ('low')",
        "CREATE ROLE owner",
    ];
    let cases = [
        ("SELECT 1::lower", "42704 cache lookup failed for type 2", "SELECT 1"),
        (
            "INSERT INTO u VALUES (ROW(20)::r)",
            "INSERT 0 1",
            "23514 value for domain low violates check constraint \"low_check\"",
        ),
        (
            "CREATE TABLE c (a integer, b integer GENERATED ALWAYS AS (a) STORED REFERENCES p ON UPDATE CASCADE)",
            "CREATE TABLE",
            "42601 invalid ON UPDATE action for foreign key constraint containing generated column",
        ),
        (
            "CREATE TABLE i (a mood, b text GENERATED ALWAYS AS (a::text) STORED)",
            "CREATE TABLE",
            "42P17 generation expression is not immutable",
        ),
        (
            "SET search_path TO s; ALTER TABLE public.p ADD COLUMN l level",
            "42704 type \"level\" does not exist",
            "ALTER TABLE",
        ),
        ("ALTER DOMAIN low OWNER TO owner", "0A000 an owner of a domain is not supported", "ALTER DOMAIN"),
        ("ALTER TYPE nope OWNER TO owner", "ALTER TYPE", "42704 type \"nope\" does not exist"),
        (
            "ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'",
            "ALTER TYPE",
            "0A000 renaming the value 'sad', which domain good names is not supported",
        ),
    ];
    for (sql, version_7, version_8) in cases {
        assert_eq!(shown(prepared(ExecutionVersion::V7, before).run(sql)), version_7, "{sql}");
        assert_eq!(shown(prepared(ExecutionVersion::V8, before).run(sql)), version_8, "{sql}");
        let mut over = prepared(ExecutionVersion::V7, before);
        over.go_over_to(ExecutionVersion::V8);
        assert_eq!(shown(over.run(sql)), version_8, "{sql}, gone over");
    }
}

#[test]
fn what_version_7_has_stored_goes_on() {
    let mut database = prepared(
        ExecutionVersion::V7,
        &[
            "CREATE TYPE mood AS ENUM ('sad', 'ok')",
            "CREATE TABLE i (a mood, b text GENERATED ALWAYS AS (a::text) STORED)",
            "CREATE TABLE p (id integer PRIMARY KEY); INSERT INTO p VALUES (1), (2)",
            "CREATE TABLE c (a integer, b integer GENERATED ALWAYS AS (a) STORED REFERENCES p ON UPDATE CASCADE)",
            "INSERT INTO c VALUES (1)",
        ],
    );
    database.go_over_to(ExecutionVersion::V8);
    database.run("INSERT INTO i (a) VALUES ('ok')").expect("it is generated");
    database.run("ALTER TABLE i ADD COLUMN note text").expect("the column is not a new one");
    assert_eq!(database.rows("SELECT a, b FROM i"), [["ok", "ok"]]);
    // The action cannot change the column, so the key stays.
    let error = database.error("UPDATE p SET id = 5 WHERE id = 1");
    assert_eq!(error.state.to_string(), "23503", "{error:?}");
    database.run("UPDATE p SET id = 6 WHERE id = 2").expect("nothing references it");
}

#[test]
fn what_names_a_label_or_a_type_keeps_it() {
    let before = [
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TABLE t (id integer PRIMARY KEY, note text)",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    ];
    let users = [
        (
            "CREATE FUNCTION d(m text DEFAULT 'sad'::mood::text) RETURNS text LANGUAGE sql AS 'SELECT m'",
            "function d",
        ),
        (
            "CREATE TRIGGER fires BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.note::mood > 'sad'::mood) EXECUTE FUNCTION f()",
            "trigger fires on table t",
        ),
        ("CREATE DOMAIN dom AS text CHECK (VALUE::mood > 'sad'::mood)", "domain dom"),
    ];
    for (user, called) in users {
        let mut database = prepared(ExecutionVersion::V8, &before);
        database.run(user).unwrap_or_else(|error| panic!("{user}: {error:?}"));
        let renaming = database.error("ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'");
        let expected = format!("renaming the value 'sad', which {called} names is not supported");
        assert_eq!(renaming.message, expected, "{renaming:?}");
        database.run("ALTER TYPE mood RENAME VALUE 'happy' TO 'great'").expect("nobody names it");
        let dropping = database.error("DROP TYPE mood");
        assert_eq!(dropping.state.to_string(), "2BP01", "{user}: {dropping:?}");
        assert!(dropping.detail.as_deref().is_some_and(|detail| detail.contains(called)), "{dropping:?}");
        assert_eq!(database.error("DROP TYPE mood CASCADE").state.to_string(), "0A000");
        database.run("ALTER TYPE mood RENAME TO feeling").expect("names follow");
        database.run("CREATE SCHEMA s; ALTER TYPE feeling SET SCHEMA s").expect("names follow");
        database.run("INSERT INTO t VALUES (1, 'ok')").expect("a trigger reads its condition");
    }
}

#[test]
fn domains_are_bounded_and_metered() {
    for version in [ExecutionVersion::V7, ExecutionVersion::V8] {
        let mut database = prepared(version, &["CREATE DOMAIN d1 AS integer CHECK (VALUE > 0)"]);
        for number in 2..=limits::DOMAIN_NESTING_MAX {
            let above = number - 1;
            database
                .run(&format!("CREATE DOMAIN d{number} AS d{above} CHECK (VALUE <> {number})"))
                .expect("not too deep");
        }
        let error = database.error(&format!("CREATE DOMAIN e AS d{}", limits::DOMAIN_NESTING_MAX));
        assert_eq!(error.state.to_string(), "54001", "{error:?}");
        assert!(error.message.contains("DOMAIN_NESTING_MAX"), "{error:?}");
        let checks = vec!["CHECK (VALUE > 0)"; limits::DOMAIN_CHECKS_MAX].join(" ");
        database.run(&format!("CREATE DOMAIN wide AS integer {checks}")).expect("as many as there may be");
        for statement in
            ["ALTER DOMAIN wide ADD CHECK (VALUE > 1)", "CREATE DOMAIN wider AS wide CHECK (VALUE > 1)"]
        {
            let error = database.error(statement);
            assert!(error.message.contains("DOMAIN_CHECKS_MAX"), "{statement}: {error:?}");
        }
    }
    let mut database = prepared(ExecutionVersion::V8, &["CREATE DOMAIN c0 AS integer CHECK (VALUE > 0)"]);
    let nest = |number: usize| {
        format!("CREATE DOMAIN c{number} AS integer CHECK (VALUE::c{0} > 0 AND VALUE::c{0} < 9)", number - 1)
    };
    for number in 1..=7 {
        database.run(&nest(number)).expect("few conditions");
    }
    assert!(database.error(&nest(8)).message.contains("DOMAIN_CHECKS_MAX"));
    assert_eq!(database.rows("SELECT 5::c7"), [["5"]]);
    assert_eq!(database.error("SELECT 0::c7").state.to_string(), "23514");
    // A circle, and one over a domain between.
    for around in ["c0", "c1"] {
        let error = database.error(&format!("ALTER DOMAIN c0 ADD CHECK (VALUE::{around} > 0)"));
        assert_eq!(error.state.to_string(), "54001", "{error:?}");
    }
    database.run("CREATE TABLE t (id integer PRIMARY KEY, a c7)").expect("a table");
    database.step_limit = 20;
    let error = database.error("INSERT INTO t SELECT n, 5 FROM generate_series(1, 5) AS n");
    assert_eq!(error.state.to_string(), "57014", "{error:?}");
}

#[test]
fn types_that_stand_in_others_many_times_are_looked_at_once() {
    for version in [ExecutionVersion::V6, ExecutionVersion::V8] {
        let mut database = prepared(version, &["CREATE TYPE c1 AS (f1 integer)"]);
        for number in 2..=limits::COMPOSITE_NESTING_MAX {
            let fields: Vec<String> = (1..=40).map(|field| format!("f{field} c{}", number - 1)).collect();
            database.run(&format!("CREATE TYPE c{number} AS ({})", fields.join(", "))).expect("not too deep");
        }
        let last = limits::COMPOSITE_NESTING_MAX;
        let error = database.error(&format!("CREATE TYPE d AS (f1 c{last})"));
        assert_eq!(error.state.to_string(), "42P16", "{error:?}");
        database.run(&format!("CREATE TABLE t (c c{})", last - 1)).expect("a table");
    }
}
