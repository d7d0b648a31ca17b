//! Domains in routines, names that are looked for when a statement runs, and words for the block's day: what version 9 knows, and how
//! version 8 refuses it.

mod support;

use support::{Database, prepared, shown};
use types::{ExecutionVersion, Payload, Severity, Value};

#[test]
fn version_8_refuses_what_version_9_knows() {
    let before = &[
        "CREATE DOMAIN amount AS integer CHECK (VALUE >= 0)",
        "CREATE TYPE pair AS (a integer, b integer)",
        "CREATE TABLE t (id integer PRIMARY KEY, day date, at timestamptz)",
    ];
    let cases = [
        (
            "CREATE FUNCTION f(x amount) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
            "0A000 the domain amount here is not supported",
            "CREATE FUNCTION",
        ),
        (
            "CREATE FUNCTION f() RETURNS amount LANGUAGE sql AS $$ SELECT 1 $$",
            "0A000 the domain amount here is not supported",
            "CREATE FUNCTION",
        ),
        (
            "CREATE DOMAIN ordered AS pair CHECK ((VALUE).a <= (VALUE).b)",
            "0A000 a domain of type pair is not supported",
            "CREATE DOMAIN",
        ),
        (
            "CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM later); END $$",
            "42P01 relation \"later\" does not exist",
            "CREATE FUNCTION",
        ),
        (
            "CREATE TABLE o (id integer PRIMARY KEY) WITHOUT OIDS",
            "42601 Expected: end of statement, found: WITHOUT",
            "CREATE TABLE",
        ),
        (
            "INSERT INTO t VALUES (1, 'today', 'now')",
            "0A000 'today' as a value of type date is not supported",
            "INSERT 0 1",
        ),
    ];
    for (sql, version_8, version_9) in cases {
        let found = shown(prepared(ExecutionVersion::V8, before).run(sql));
        assert!(found.starts_with(&version_8[..5]), "{sql}: {found}");
        if !version_8.starts_with("42601") {
            assert_eq!(found, version_8, "{sql}");
        }
        assert_eq!(shown(prepared(ExecutionVersion::V9, before).run(sql)), version_9, "{sql}");
        let mut over = prepared(ExecutionVersion::V8, before);
        over.go_over_to(ExecutionVersion::V9);
        assert_eq!(shown(over.run(sql)), version_9, "{sql}, gone over");
    }
}

#[test]
fn what_is_assigned_to_a_domain_is_held_against_it() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE DOMAIN amount AS integer CHECK (VALUE >= 0); CREATE DOMAIN there AS integer NOT NULL",
            "CREATE TYPE pair AS (a integer, b integer)",
            "CREATE DOMAIN ordered AS pair CHECK ((VALUE).a <= (VALUE).b)",
            "CREATE DOMAIN few AS integer[] CHECK (cardinality(VALUE) < 3)",
            "CREATE TABLE t (id integer PRIMARY KEY, n integer); INSERT INTO t VALUES (1, 5), (2, -5)",
        ],
    );
    let negative = "23514 value for domain amount violates check constraint \"amount_check\"";
    let order = "23514 value for domain ordered violates check constraint \"ordered_check\"";
    let cases = [
        ("DECLARE x amount := 5; BEGIN x := x + 1; END", "DO"),
        ("DECLARE x amount := -5; BEGIN END", negative),
        ("DECLARE x amount; BEGIN x := -1; END", negative),
        ("DECLARE x amount; y x%TYPE; BEGIN y := -1; END", negative),
        ("DECLARE x amount; BEGIN SELECT n INTO x FROM t WHERE id = 1; END", "DO"),
        ("DECLARE x amount; BEGIN SELECT n INTO x FROM t WHERE id = 2; END", negative),
        ("DECLARE x amount; BEGIN EXECUTE 'SELECT -1' INTO x; END", negative),
        ("DECLARE x amount; BEGIN EXECUTE 'SELECT ''7''' INTO x; END", "DO"),
        (
            "DECLARE x amount; c CURSOR FOR SELECT n FROM t ORDER BY id; BEGIN OPEN c; FETCH c INTO x; FETCH c INTO x; END",
            negative,
        ),
        ("DECLARE x amount; BEGIN FOR x IN SELECT n FROM t ORDER BY id LOOP NULL; END LOOP; END", negative),
        ("DECLARE x amount; BEGIN UPDATE t SET n = 0 - n WHERE id = 1 RETURNING n INTO x; END", negative),
        ("DECLARE x amount; BEGIN FOREACH x IN ARRAY ARRAY[1, -1] LOOP NULL; END LOOP; END", negative),
        ("DECLARE x there; BEGIN END", "23502 domain there does not allow null values"),
        ("DECLARE x there := 1; BEGIN x := NULL; END", "23502 domain there does not allow null values"),
        (
            "DECLARE x there := 1; BEGIN SELECT n INTO x FROM t WHERE id = 9; END",
            "23502 domain there does not allow null values",
        ),
        ("DECLARE x ordered := ROW(1, 2); BEGIN x.b := 5; END", "DO"),
        ("DECLARE x ordered := ROW(1, 2); BEGIN x.a := 5; END", order),
        ("DECLARE x ordered; BEGIN x := ROW(2, 1); END", order),
        ("DECLARE x ordered; BEGIN SELECT 2, 1 INTO x; END", order),
        ("DECLARE x few := ARRAY[1, 2]; BEGIN x[2] := 5; END", "DO"),
        (
            "DECLARE x few := ARRAY[1, 2]; BEGIN x[3] := 5; END",
            "23514 value for domain few violates check constraint \"few_check\"",
        ),
    ];
    for (block, expected) in cases {
        assert_eq!(shown(database.run(&format!("DO $$ {block} $$"))), expected, "{block}");
    }
}

#[test]
fn parameters_and_results_are_held_against_their_domains() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE DOMAIN amount AS integer CHECK (VALUE >= 0)",
            "CREATE FUNCTION taken(x amount) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
            "CREATE FUNCTION taken_sql(x amount) RETURNS integer LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION given(x integer) RETURNS amount LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
            "CREATE FUNCTION given_sql(x integer) RETURNS amount LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION many(x integer) RETURNS SETOF amount LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; RETURN QUERY SELECT x; END $$",
            "CREATE FUNCTION listed(x integer) RETURNS TABLE (a amount) LANGUAGE plpgsql AS $$ BEGIN a := 1; RETURN NEXT; RETURN QUERY SELECT x; END $$",
            "CREATE FUNCTION out_of(x integer, OUT a amount) LANGUAGE plpgsql AS $$ BEGIN a := x; END $$",
            "CREATE PROCEDURE called(x amount, INOUT y amount) LANGUAGE plpgsql AS $$ BEGIN y := y - x; END $$",
            "CREATE FUNCTION any_of(x anyelement, y amount) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
            "CREATE TABLE t (id integer PRIMARY KEY, a amount DEFAULT given(3)); INSERT INTO t VALUES (1)",
        ],
    );
    let negative = "23514 value for domain amount violates check constraint \"amount_check\"";
    for call in [
        "SELECT taken(-1)",
        "SELECT taken_sql(-1)",
        "SELECT given(-1)",
        "SELECT given_sql(-1)",
        "SELECT * FROM many(-1)",
        "SELECT * FROM listed(-1)",
        "SELECT out_of(-1)",
        "CALL called(-1, 1)",
        "CALL called(2, 1)",
        "SELECT any_of('x'::text, -1)",
        "SELECT taken(n) FROM (VALUES (1), (-1)) AS v (n)",
    ] {
        assert_eq!(shown(database.run(call)), negative, "{call}");
    }
    assert_eq!(
        database.rows("SELECT taken(1) + taken_sql('2') + given(3) + given_sql(4) + out_of(5), any_of(7, 1)"),
        [["15", "7"]]
    );
    assert_eq!(database.rows("SELECT * FROM many(2)"), [["1"], ["2"]]);
    assert_eq!(database.rows("SELECT a FROM listed(2)"), [["1"], ["2"]]);
    assert_eq!(database.rows("SELECT a FROM t"), [["3"]]);
    let second = "CREATE FUNCTION taken(x integer) RETURNS integer LANGUAGE sql AS $$ SELECT x $$";
    assert!(
        shown(database.run(second)).starts_with("0A000 a routine that differs from"),
        "{}",
        shown(database.run(second))
    );
    let dropped = "2BP01 cannot drop type amount because other objects depend on it";
    assert_eq!(shown(database.run("DROP DOMAIN amount")), dropped);
    database.run("ALTER DOMAIN amount DROP CONSTRAINT amount_check").expect("no value breaks it");
    assert_eq!(database.rows("SELECT taken(-1)"), [["-1"]]);
}

#[test]
fn a_routine_may_be_there_before_what_it_uses() {
    let mut database = prepared(ExecutionVersion::V9, &[]);
    let created = database
        .run(
            "CREATE FUNCTION counted(really boolean) RETURNS bigint LANGUAGE plpgsql AS $$
             DECLARE n bigint := 0; r record;
             BEGIN
                 IF really THEN
                     SELECT count(*) INTO n FROM later;
                     n := n + helper(1);
                 END IF;
                 FOR r IN SELECT * FROM later LOOP n := n + r.id; END LOOP;
                 RETURN n;
             EXCEPTION WHEN undefined_table THEN RETURN -1;
             END $$",
        )
        .expect("it is created");
    let warnings: Vec<&str> =
        created[0].notices.iter().map(|notice| notice.report.message.as_str()).collect();
    assert!(created[0].notices.iter().all(|notice| notice.severity == Severity::Warning));
    assert_eq!(
        warnings,
        [
            "counted, line 5: relation \"later\" does not exist",
            "counted, line 6: function helper(integer) does not exist",
        ]
    );
    assert_eq!(database.rows("SELECT counted(false), counted(true)"), [["-1", "-1"]]);
    database
        .run("CREATE TABLE later (id integer PRIMARY KEY); INSERT INTO later VALUES (10), (20)")
        .expect("now");
    assert_eq!(database.rows("SELECT counted(false)"), [["30"]]);
    assert_eq!(shown(database.run("SELECT counted(true)")), "42883 function helper(integer) does not exist");
    database
        .run("CREATE FUNCTION helper(x integer) RETURNS integer LANGUAGE sql AS $$ SELECT x $$")
        .expect("now");
    assert_eq!(database.rows("SELECT counted(true)"), [["33"]]);
    database.run("DROP TABLE later").expect("no routine keeps a table");
    assert_eq!(database.rows("SELECT counted(true)"), [["-1"]]);
}

#[test]
fn what_no_later_change_mends_is_said_at_once() {
    let mut database = prepared(ExecutionVersion::V9, &["CREATE TABLE t (id integer PRIMARY KEY)"]);
    let function =
        |body: &str| format!("CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ {body} $$");
    for (body, expected) in [
        ("BEGIN RETURN 1", "42601"),
        ("DECLARE x missing; BEGIN RETURN 1; END", "42704"),
        ("DECLARE x missing.id%TYPE; BEGIN RETURN 1; END", "42P01"),
        ("DECLARE x missing%ROWTYPE; BEGIN RETURN 1; END", "42P01"),
        ("BEGIN DECLARE x missing; BEGIN END; RETURN 1; END", "42704"),
        ("BEGIN y := 1; RETURN 1; END", "42601"),
        ("BEGIN RETURN NEXT 1; END", "42804"),
    ] {
        assert_eq!(&shown(database.run(&function(body)))[..5], expected, "{body}");
    }
    let sql = "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM missing $$";
    assert_eq!(&shown(database.run(sql))[..5], "42P01");
    assert_eq!(
        shown(database.run(&function("DECLARE x integer := missing(); BEGIN RETURN x; END"))),
        "CREATE FUNCTION"
    );
    assert_eq!(&shown(database.run("SELECT f()"))[..5], "42883");
}

#[test]
fn words_for_the_day_are_told_from_the_block() {
    let mut database =
        prepared(ExecutionVersion::V9, &["CREATE TABLE t (id integer PRIMARY KEY, d date, at timestamptz)"]);
    let same = "SELECT 'today'::date = current_date, date 'tomorrow' - 'yesterday', 'now'::timestamptz = now(), ' Today '::timestamptz = current_date::timestamptz, \
                'tomorrow'::timestamp - 'today'::timestamp = interval '1 day', 'now'::time = localtime";
    assert_eq!(database.rows(same), [["t", "2", "t", "t", "t", "t"]]);
    database.run("INSERT INTO t VALUES (1, 'today', 'now')").expect("words are values");
    assert_eq!(database.rows("SELECT d = at::date FROM t"), [["t"]]);
    // PostgreSQL keeps the moment of the definition, which nobody means.
    assert_eq!(
        &shown(database.run("CREATE TABLE u (id integer PRIMARY KEY, d date DEFAULT 'today')"))[..5],
        "0A000"
    );
    assert_eq!(&shown(database.run("SELECT 'someday'::date"))[..5], "22007");
}

#[test]
fn routines_get_other_names_schemas_and_options() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE SCHEMA other; CREATE ROLE clerk",
            "CREATE FUNCTION twice(x integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 2 * x $$",
            "CREATE FUNCTION over(x integer) RETURNS integer LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION over(x text) RETURNS text LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION single(x integer) RETURNS integer LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION sole(x integer) RETURNS integer LANGUAGE sql AS $$ SELECT x $$",
            "CREATE PROCEDURE done(x integer) LANGUAGE plpgsql AS $$ BEGIN PERFORM x; END $$",
            "CREATE TABLE t (id integer PRIMARY KEY, n integer DEFAULT twice(4)); INSERT INTO t VALUES (1)",
            "CREATE VIEW v AS SELECT id, twice(n) AS n FROM t; GRANT EXECUTE ON FUNCTION twice TO clerk",
            "CREATE FUNCTION calls() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN twice(1); END $$",
        ],
    );
    let cases = [
        ("ALTER FUNCTION twice(integer) RENAME TO doubled", "ALTER FUNCTION"),
        ("SELECT twice(1)", "42883 function twice(integer) does not exist"),
        ("ALTER FUNCTION doubled SET SCHEMA other", "ALTER FUNCTION"),
        ("ALTER FUNCTION other.doubled(integer) STRICT STABLE PARALLEL SAFE COST 10", "ALTER FUNCTION"),
        ("ALTER ROUTINE other.doubled VOLATILE SECURITY DEFINER SET search_path TO other", "ALTER ROUTINE"),
        ("ALTER PROCEDURE done(integer) RENAME TO finished", "ALTER PROCEDURE"),
        ("CALL finished(1)", "CALL"),
        ("ALTER FUNCTION finished(integer) STRICT", "42809 finished is not a function"),
        ("ALTER PROCEDURE finished(integer) STRICT", "42P13 invalid attribute in procedure definition"),
        ("ALTER FUNCTION missing() STRICT", "42883 function missing() does not exist"),
        ("ALTER FUNCTION over RENAME TO under", "42725 function name \"over\" is not unique"),
        (
            "ALTER FUNCTION calls() RENAME TO over",
            "0A000 the name over, which another routine has, is not supported",
        ),
        (
            "ALTER FUNCTION single(integer) RENAME TO sole",
            "42723 function sole already exists in schema \"public\"",
        ),
        ("ALTER FUNCTION calls() SET SCHEMA nowhere", "3F000 schema \"nowhere\" does not exist"),
        ("ALTER FUNCTION calls() RESET search_path", "0A000 RESET in ALTER FUNCTION is not supported"),
    ];
    for (sql, expected) in cases {
        assert_eq!(shown(database.run(sql)), expected, "{sql}");
    }
    for sql in
        ["ALTER FUNCTION calls()", "ALTER FUNCTION calls() LANGUAGE sql", "ALTER FUNCTION calls() RENAME"]
    {
        assert_eq!(&shown(database.run(sql))[..5], "42601", "{sql}");
    }
    let shared = "ALTER FUNCTION over(text) RENAME TO under";
    assert_eq!(&shown(database.run(shared))[..5], "0A000");
    database.run("INSERT INTO t VALUES (2)").expect("the default follows");
    assert_eq!(database.rows("SELECT n FROM v ORDER BY id"), [["16"], ["16"]]);
    assert_eq!(database.rows("SELECT other.doubled(NULL) IS NULL"), [["t"]]);
    assert_eq!(
        &shown(database.run("SELECT calls()"))[..5],
        "42883",
        "bodies do not follow, as in PostgreSQL"
    );
    let mut older = Database::of_version(ExecutionVersion::V8);
    assert!(shown(older.run("ALTER PROCEDURE p() STRICT")).starts_with('4'), "version 8 does not know it");
}

#[test]
fn a_handler_is_told_where_its_error_has_come_from() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE FUNCTION inside(x integer) RETURNS integer LANGUAGE plpgsql AS $$\nBEGIN\n  RETURN 1 / x;\nEND $$",
            "CREATE FUNCTION middle(x integer) RETURNS integer LANGUAGE plpgsql AS $$\nBEGIN\n  RETURN inside(x);\nEXCEPTION WHEN not_null_violation THEN RETURN 0;\nEND $$",
            "CREATE FUNCTION again(x integer) RETURNS integer LANGUAGE plpgsql AS $$\nBEGIN\n  RETURN middle(x);\nEXCEPTION WHEN others THEN\n  RAISE;\nEND $$",
            "CREATE FUNCTION told(x integer) RETURNS text LANGUAGE plpgsql AS $$\nDECLARE c text; d text;\nBEGIN\n  BEGIN\n    PERFORM again(x);\n  EXCEPTION WHEN others THEN\n\
                GET STACKED DIAGNOSTICS c = PG_EXCEPTION_CONTEXT;\n  END;\n  BEGIN\n    RAISE 'own';\n  EXCEPTION WHEN others THEN\n    GET STACKED DIAGNOSTICS d = PG_EXCEPTION_CONTEXT;\n  END;\n  RETURN c || '|' || d;\nEND $$",
        ],
    );
    // PostgreSQL's lines, without those of the statements of SQL in between.
    let expected = "PL/pgSQL function inside(integer) line 3 at RETURN\n\
                    PL/pgSQL function middle(integer) line 3 at RETURN\n\
                    PL/pgSQL function again(integer) line 3 at RETURN\n\
                    PL/pgSQL function told(integer) line 5 at PERFORM|\
                    PL/pgSQL function told(integer) line 10 at RAISE";
    assert_eq!(database.rows("SELECT told(0)"), [[expected]]);
    // What nobody has handled is forgotten.
    assert_eq!(&shown(database.run("SELECT again(0)"))[..5], "22012");
    assert_eq!(database.rows("SELECT told(0)"), [[expected]]);
    let mut older = Database::of_version(ExecutionVersion::V8);
    let sql = "DO $$ DECLARE c text; BEGIN EXCEPTION WHEN others THEN GET STACKED DIAGNOSTICS c = PG_EXCEPTION_CONTEXT; END $$";
    assert_eq!(
        shown(older.run(sql)),
        "0A000 GET STACKED DIAGNOSTICS … = PG_EXCEPTION_CONTEXT is not supported"
    );
}

#[test]
fn a_domain_says_what_length_and_scale_its_values_have() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE DOMAIN money2 AS numeric(10, 2) CHECK (VALUE >= 0); CREATE DOMAIN short AS varchar(3)",
            "CREATE TABLE store (id integer PRIMARY KEY, m numeric(10, 2), v varchar(3))",
            "CREATE PROCEDURE put(i integer, x money2, y short) LANGUAGE plpgsql AS $$ DECLARE z money2 := x; BEGIN INSERT INTO store VALUES (i, z, y); END $$",
            "CREATE FUNCTION same(x money2) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
            "CREATE FUNCTION made(x numeric) RETURNS money2 LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
            "CREATE FUNCTION made_sql(x numeric) RETURNS money2 LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION texted(x text) RETURNS short LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
            "CREATE FUNCTION defaulted(x money2 DEFAULT 1.005) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$",
        ],
    );
    database.run("CALL put(1, 1.005, 'abc')").expect("it fits");
    assert_eq!(database.rows("SELECT m, v FROM store"), [["1.01", "abc"]]);
    let rounded = "SELECT same(1.005), made(1.005), made_sql(1.005), defaulted()";
    assert_eq!(database.rows(rounded), [["1.01", "1.01", "1.01", "1.01"]]);
    for sql in ["CALL put(2, 1, 'abcd')", "SELECT texted('abcd')"] {
        assert_eq!(shown(database.run(sql)), "22001 value too long for type character varying(3)", "{sql}");
    }
    // Protocols that know beforehand what a call touches look through it.
    let put = Payload::Call {
        procedure: "put".into(),
        arguments: vec![Value::Integer(3), Value::Numeric(types::Numeric::new(2, 0)), Value::text("x")],
    };
    let footprint = database.footprint(put).expect("it is analysed");
    assert_eq!(footprint.writes.len(), 1, "{footprint:?}");
}

#[test]
fn values_become_those_of_a_domain_as_those_of_its_type() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE DOMAIN flag AS boolean CHECK (VALUE); CREATE DOMAIN day AS date CHECK (VALUE > '2000-01-01')",
        ],
    );
    for (block, expected) in [
        ("DECLARE x flag; BEGIN SELECT 1 INTO x; END", "DO"),
        (
            "DECLARE x flag; BEGIN SELECT 0 INTO x; END",
            "23514 value for domain flag violates check constraint \"flag_check\"",
        ),
        ("DECLARE x day; BEGIN SELECT 20150717 INTO x; END", "DO"),
        (
            "DECLARE x day := 'today'; y date := 'yesterday'; BEGIN x := 'tomorrow'; ASSERT x - y = 2; END",
            "DO",
        ),
    ] {
        assert_eq!(shown(database.run(&format!("DO $$ {block} $$"))), expected, "{block}");
    }
}

#[test]
fn cursors_look_for_their_tables_when_they_are_opened() {
    let body = "DECLARE c CURSOR FOR SELECT id FROM later; n integer;
                BEGIN IF really THEN OPEN c; FETCH c INTO n; CLOSE c; END IF; RETURN n; EXCEPTION WHEN undefined_table THEN RETURN -1; END";
    let sql = format!("CREATE FUNCTION f(really boolean) RETURNS integer LANGUAGE plpgsql AS $$ {body} $$");
    let mut database = prepared(ExecutionVersion::V9, &[&sql]);
    assert_eq!(database.rows("SELECT f(false) IS NULL, f(true)"), [["t", "-1"]]);
    database.run("CREATE TABLE later (id integer PRIMARY KEY); INSERT INTO later VALUES (7)").expect("now");
    assert_eq!(database.rows("SELECT f(true)"), [["7"]]);
    database.run("DROP TABLE later").expect("no routine keeps a table");
    assert_eq!(database.rows("SELECT f(false) IS NULL, f(true)"), [["t", "-1"]]);
    let loops = "CREATE FUNCTION g() RETURNS integer LANGUAGE plpgsql AS $$ DECLARE c CURSOR FOR SELECT id FROM later; BEGIN FOR r IN c LOOP RETURN r.id; END LOOP; RETURN 0; END $$";
    assert_eq!(shown(database.run(loops)), "CREATE FUNCTION");
    assert_eq!(&shown(database.run("SELECT g()"))[..5], "42P01");
    let follows = "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT * INTO r FROM later; r := NULL; END $$";
    assert_eq!(shown(database.run(follows)), "CREATE PROCEDURE");
    let alias = "DO $$ BEGIN DECLARE a ALIAS FOR nowhere; BEGIN END; END $$";
    assert_eq!(&shown(database.run(alias))[..5], "42704");
}

#[test]
fn many_missing_names_give_few_warnings() {
    let mut database = prepared(ExecutionVersion::V9, &[]);
    let calls: String = (0..500).map(|n| format!("PERFORM missing_{n}(); ")).collect();
    let create = |name: usize| {
        format!("CREATE FUNCTION f{name}() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {calls} END $$")
    };
    let created = database.run(&create(0)).expect("it is created");
    assert_eq!(created[0].notices.len(), 16);
    let script: Vec<String> = (1..10).map(create).collect();
    let created = database.run(&script.join("; ")).expect("they are created");
    assert_eq!(created.iter().map(|result| result.notices.len()).sum::<usize>(), 100);
}

#[test]
fn what_names_an_overloaded_routine_follows_its_name() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE TABLE t (id integer PRIMARY KEY, n integer); CREATE ROLE clerk",
            "CREATE FUNCTION g(x integer) RETURNS integer LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := 5; RETURN NEW; END $$",
            "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION g(); DROP FUNCTION g(integer)",
            "CREATE FUNCTION o(x integer) RETURNS integer LANGUAGE sql AS $$ SELECT x $$",
            "CREATE FUNCTION o(x text) RETURNS text LANGUAGE sql AS $$ SELECT x $$",
            "CREATE VIEW v AS SELECT o('a'::text) AS a; DROP FUNCTION o(integer)",
            "ALTER FUNCTION g() RENAME TO h; ALTER FUNCTION o(text) RENAME TO u",
        ],
    );
    database.run("INSERT INTO t VALUES (1)").expect("the trigger fires");
    assert_eq!(database.rows("SELECT n FROM t"), [["5"]]);
    assert_eq!(&shown(database.run("DROP FUNCTION u(text)"))[..5], "2BP01");
    assert_eq!(database.rows("SELECT a FROM v"), [["a"]]);
    database.run("CREATE FUNCTION w() RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$").expect("another one");
    assert_eq!(shown(database.run("ALTER FUNCTION w() RENAME TO x")), "ALTER FUNCTION");
    assert_eq!(&shown(database.run("ALTER FUNCTION x() RENAME TO u"))[..5], "0A000");
}

#[test]
fn a_policy_follows_the_name_of_its_function_and_calls_no_other() {
    let mut database = prepared(
        ExecutionVersion::V9,
        &[
            "CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1), (2)",
            "CREATE FUNCTION fits(x integer) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT x = 1 $$",
            "CREATE POLICY p ON t USING (fits(id))",
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            "ALTER FUNCTION fits(integer) RENAME TO suits",
        ],
    );
    assert_eq!(database.rows("SELECT id FROM t"), [["1"]]);
    database
        .run("CREATE FUNCTION other(x bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$")
        .expect("new");
    assert_eq!(&shown(database.run("ALTER FUNCTION other(bigint) RENAME TO suits"))[..5], "0A000");
    assert_eq!(&shown(database.run("DROP FUNCTION suits(integer)"))[..5], "2BP01");
}
