//! What execution versions answer differently: each difference as version 1 has it, as version 2 has it, and in a ledger that
//! goes over from the one to the other. What version 1 answers is what the last program without versions answered.

mod support;

use support::{Database, texts};
use types::{ExecutionVersion, SqlError, StatementResult};

/// A statement that versions answer differently.
struct Case {
    what: &'static str,
    before: &'static [&'static str],
    run: &'static str,
    /// What is asked afterwards; nothing where it is empty.
    then: &'static str,
    /// What both come to: rows, the tag of a command, or the error.
    version_1: [&'static str; 2],
    version_2: [&'static str; 2],
}

const NUMBERS: &[&str] = &[
    "CREATE TABLE whole (a integer PRIMARY KEY, b bigint); CREATE TABLE exact (n numeric PRIMARY KEY, m numeric(10, 2))",
    "INSERT INTO whole VALUES (1, 1), (2, 20), (3, NULL); INSERT INTO exact VALUES (1, 1), (2.5, 20.00)",
];

const TEXTS: &[&str] = &[
    "CREATE TABLE padded (id integer PRIMARY KEY, c char(4), v varchar(4)); INSERT INTO padded VALUES (1, 'a', 'a'), (2, 'b', 'b ')",
];

const CASES: &[Case] = &[
    Case {
        what: "a FOREIGN KEY that is the whole primary key",
        before: &[
            "CREATE TABLE p (id integer PRIMARY KEY); CREATE TABLE c (id integer PRIMARY KEY REFERENCES p); INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (1)",
        ],
        run: "DELETE FROM p WHERE id = 2",
        then: "SELECT id FROM p",
        version_1: [
            "XX000 an invariant of the SQL executor is broken: a search where nothing is searched",
            "1; 2",
        ],
        version_2: ["DELETE 1", "1"],
    },
    Case {
        what: "an action over a FOREIGN KEY that is the whole primary key",
        before: &[
            "CREATE TABLE p (id integer PRIMARY KEY); CREATE TABLE c (id integer PRIMARY KEY REFERENCES p ON UPDATE CASCADE); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1)",
        ],
        run: "UPDATE p SET id = 5",
        then: "SELECT id FROM c",
        version_1: [
            "XX000 an invariant of the SQL executor is broken: a search where nothing is searched",
            "1",
        ],
        version_2: ["UPDATE 1", "5"],
    },
    Case {
        what: "TRUNCATE of a parent",
        before: &[
            "CREATE TABLE p (id integer PRIMARY KEY); CREATE TABLE c (id integer PRIMARY KEY REFERENCES p); INSERT INTO p VALUES (1)",
        ],
        run: "TRUNCATE p, c",
        then: "SELECT id FROM p",
        version_1: [
            "XX000 an invariant of the SQL executor is broken: a search where nothing is searched",
            "1",
        ],
        version_2: ["TRUNCATE TABLE", ""],
    },
    Case {
        what: "RESTRICT and rows of the same statement",
        before: &[
            "CREATE TABLE t (id integer PRIMARY KEY, up integer REFERENCES t ON DELETE RESTRICT); INSERT INTO t VALUES (1, NULL), (2, 1)",
        ],
        run: "DELETE FROM t",
        then: "SELECT count(*) FROM t",
        version_1: [
            "23503 update or delete on table \"t\" violates foreign key constraint \"t_up_fkey\" on table \"t\"",
            "2",
        ],
        version_2: ["DELETE 2", "0"],
    },
    Case {
        what: "tables that reference each other",
        before: &[
            "CREATE TABLE one (id integer PRIMARY KEY, other integer)",
            "CREATE TABLE two (id integer PRIMARY KEY REFERENCES one ON UPDATE CASCADE); ALTER TABLE one ADD FOREIGN KEY (other) REFERENCES two ON UPDATE CASCADE",
            "INSERT INTO one VALUES (1, NULL)",
            "INSERT INTO two VALUES (1)",
            "UPDATE one SET other = 1",
        ],
        run: "UPDATE one SET id = 5, other = 5",
        then: "SELECT id, other FROM one",
        version_1: [
            "23503 insert or update on table \"one\" violates foreign key constraint \"one_other_fkey\"",
            "1, 1",
        ],
        version_2: ["UPDATE 1", "5, 5"],
    },
    Case {
        what: "tables that reference each other by other columns",
        before: &[
            "CREATE TABLE one (id integer PRIMARY KEY, key integer UNIQUE, other integer)",
            "CREATE TABLE two (id integer PRIMARY KEY, key integer UNIQUE REFERENCES one (key) ON UPDATE CASCADE)",
            "ALTER TABLE one ADD FOREIGN KEY (other) REFERENCES two (key) ON UPDATE CASCADE",
            "INSERT INTO one VALUES (1, 1, NULL); INSERT INTO two VALUES (1, 1)",
            "UPDATE one SET other = 1",
        ],
        run: "UPDATE one SET key = 5, other = 5",
        then: "SELECT id, key, other FROM one",
        version_1: [
            "23503 insert or update on table \"one\" violates foreign key constraint \"one_other_fkey\"",
            "1, 1, 1",
        ],
        version_2: ["UPDATE 1", "1, 5, 5"],
    },
    Case {
        what: "a reference that its row has no more",
        before: &[
            "CREATE TABLE p (id integer PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE c (id integer PRIMARY KEY, p integer REFERENCES p)",
            "CREATE FUNCTION mend() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE c SET p = 1 WHERE p = 9; RETURN NULL; END $$",
            "CREATE TRIGGER a AFTER INSERT ON c FOR EACH ROW EXECUTE FUNCTION mend()",
        ],
        run: "INSERT INTO c VALUES (1, 1), (2, 9)",
        then: "SELECT p FROM c",
        version_1: ["23503 insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\"", ""],
        version_2: ["INSERT 0 2", "1; 1"],
    },
    Case {
        what: "EXPLAIN (LOGICAL)",
        before: &[],
        run: "EXPLAIN (LOGICAL) SELECT 1",
        then: "",
        version_1: ["0A000 EXPLAIN is not supported", ""],
        version_2: [
            "Logical plan, as bound;   Project 1 as ?column?;     One row; Rules that change it; Logical plan, as run;   Project 1 as ?column?;     One row",
            "",
        ],
    },
    Case {
        what: "IN with a query",
        before: NUMBERS,
        run: "UPDATE whole SET b = 0 WHERE a IN (SELECT n FROM exact)",
        then: "SELECT a, b FROM whole ORDER BY a",
        version_1: ["UPDATE 0", "1, 1; 2, 20; 3, NULL"],
        version_2: ["UPDATE 1", "1, 0; 2, 20; 3, NULL"],
    },
    Case {
        what: "NOT IN with a query",
        before: NUMBERS,
        run: "DELETE FROM exact WHERE n NOT IN (SELECT a FROM whole)",
        then: "SELECT n FROM exact ORDER BY n",
        version_1: ["DELETE 2", ""],
        version_2: ["DELETE 1", "1"],
    },
    Case {
        what: "ANY",
        before: NUMBERS,
        run: "SELECT count(*) FROM whole WHERE b = ANY (SELECT m FROM exact)",
        then: "",
        version_1: ["0", ""],
        version_2: ["2", ""],
    },
    Case {
        what: "ALL",
        before: NUMBERS,
        run: "SELECT count(*) FROM whole WHERE a > ALL (SELECT n FROM exact)",
        then: "",
        version_1: ["0", ""],
        version_2: ["1", ""],
    },
    Case {
        what: "rows IN a query",
        before: NUMBERS,
        run: "SELECT count(*) FROM whole WHERE (a, b) IN (SELECT n, m FROM exact)",
        then: "",
        version_1: ["0", ""],
        version_2: ["1", ""],
    },
    Case {
        what: "a double precision value and a query",
        before: NUMBERS,
        run: "SELECT count(*) FROM whole WHERE a::double precision IN (SELECT n FROM exact)",
        then: "",
        version_1: [
            "0A000 a double precision value compared with a query of exact numbers is not supported",
            "",
        ],
        version_2: ["1", ""],
    },
    Case {
        what: "a row and a query",
        before: NUMBERS,
        run: "SELECT a FROM whole WHERE (a, b) = (SELECT n, m FROM exact WHERE n = 1)",
        then: "",
        version_1: ["42601 subquery must return only one column", ""],
        version_2: ["1", ""],
    },
    Case {
        what: "ARRAY of a query in the WHERE of a change",
        before: NUMBERS,
        run: "DELETE FROM whole WHERE a = ANY (ARRAY(SELECT b::integer FROM whole WHERE b = 1))",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["0A000 a subquery here is not supported", "1; 2; 3"],
        version_2: ["DELETE 1", "2; 3"],
    },
    Case {
        what: "USING",
        before: &[
            "CREATE TABLE l (k integer); CREATE TABLE r (k numeric); INSERT INTO l VALUES (3), (1); INSERT INTO r VALUES (1.5), (3.00)",
        ],
        run: "SELECT k FROM l FULL JOIN r USING (k) ORDER BY k",
        then: "",
        version_1: ["1; 3; 1.5", ""],
        version_2: ["1; 1.5; 3", ""],
    },
    Case {
        what: "the type of a column of USING",
        before: &[
            "CREATE TABLE l (k integer); CREATE TABLE r (k numeric); INSERT INTO l VALUES (3), (1); INSERT INTO r VALUES (1.5), (3.00)",
        ],
        run: "CREATE TABLE j AS SELECT k FROM l JOIN r USING (k)",
        then: "SELECT k FROM j",
        version_1: ["SELECT 1", "3"],
        version_2: ["SELECT 1", "3.00"],
    },
    Case {
        what: "varchar without a length",
        before: &[],
        run: "CREATE TABLE plain (v varchar, w character varying DEFAULT 'a', t text); INSERT INTO plain VALUES ('a', DEFAULT, 'a')",
        then: "SELECT pg_typeof(v), pg_typeof(w), pg_typeof(t), pg_typeof(v || t), pg_typeof(coalesce(v, t)), v = t FROM plain",
        version_1: ["INSERT 0 1", "text, text, text, text, text, t"],
        version_2: ["INSERT 0 1", "character varying, character varying, text, text, text, t"],
    },
    Case {
        what: "a cast to varchar, and UNION",
        before: &[],
        run: "SELECT pg_typeof(x) FROM (SELECT 'a'::varchar AS x UNION ALL SELECT 'b'::varchar) u LIMIT 1",
        then: "SELECT pg_typeof(3::varchar), 3::varchar || 'a'",
        version_1: ["text", "text, 3a"],
        version_2: ["character varying", "character varying, 3a"],
    },
    Case {
        what: "a new column of varchar",
        before: &[
            "CREATE TABLE plain (id integer); ALTER TABLE plain ADD COLUMN v varchar, ADD COLUMN t text; INSERT INTO plain VALUES (1, 'é', 'é')",
        ],
        run: "ALTER TABLE plain ADD COLUMN w varchar; ALTER TABLE plain ALTER COLUMN t TYPE varchar",
        then: "SELECT pg_typeof(w), pg_typeof(t), t, v = t FROM plain",
        version_1: ["ALTER TABLE", "text, text, é, t"],
        version_2: ["ALTER TABLE", "character varying, character varying, é, t"],
    },
    Case {
        what: "varchar in CREATE TABLE AS",
        before: &[],
        run: "CREATE TABLE made AS SELECT 'a'::varchar AS v",
        then: "SELECT pg_typeof(v) FROM made",
        version_1: ["SELECT 1", "text"],
        version_2: ["SELECT 1", "character varying"],
    },
    Case {
        what: "varchar in PL/pgSQL",
        before: &[
            "CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ DECLARE v varchar := 'x'; BEGIN RETURN pg_typeof(v); END $$",
        ],
        run: "SELECT f()",
        then: "",
        version_1: ["text", ""],
        version_2: ["character varying", ""],
    },
    Case {
        what: "char and varchar without a length",
        before: &[],
        run: "CREATE TABLE padded (id integer PRIMARY KEY, c char(4), v varchar); INSERT INTO padded VALUES (1, 'a', 'a'), (2, 'b', 'b ')",
        then: "SELECT id FROM padded WHERE c = v ORDER BY id",
        version_1: ["INSERT 0 2", "1"],
        version_2: ["INSERT 0 2", "1; 2"],
    },
    Case {
        what: "char and varchar",
        before: TEXTS,
        run: "SELECT id FROM padded WHERE c = v ORDER BY id",
        then: "",
        version_1: ["1", ""],
        version_2: ["1; 2", ""],
    },
    Case {
        what: "a list of columns of several types",
        before: NUMBERS,
        run: "SELECT a FROM whole, exact WHERE '2.5' IN (a, n) ORDER BY a",
        then: "",
        version_1: ["1; 2; 3", ""],
        version_2: ["22P02 invalid input syntax for type integer: \"2.5\"", ""],
    },
    Case {
        what: "CASE and a char",
        before: TEXTS,
        run: "SELECT CASE 'a ' WHEN c THEN 'yes' ELSE 'no' END FROM padded ORDER BY id",
        then: "",
        version_1: ["yes; no", ""],
        version_2: ["no; no", ""],
    },
    Case {
        what: "WITH that changes rows in front of SELECT",
        before: NUMBERS,
        run: "WITH gone AS (DELETE FROM whole RETURNING a) SELECT 7 AS seven",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["7", "1; 2; 3"],
        version_2: ["7", ""],
    },
    Case {
        what: "WITH that changes rows and is read",
        before: NUMBERS,
        run: "WITH gone AS (DELETE FROM whole RETURNING a) SELECT a FROM gone",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["0A000 this form of query is not supported", "1; 2; 3"],
        version_2: ["1; 2; 3", ""],
    },
    Case {
        what: "WITH in front of INSERT",
        before: NUMBERS,
        run: "WITH new AS (SELECT 9 AS a) INSERT INTO whole (a) SELECT a FROM new",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["0A000 this form of query is not supported", "1; 2; 3"],
        version_2: ["INSERT 0 1", "1; 2; 3; 9"],
    },
    Case {
        what: "WITH that changes rows in INSERT",
        before: NUMBERS,
        run: "INSERT INTO whole WITH gone AS (DELETE FROM exact) SELECT 9, 9",
        then: "SELECT count(*) FROM exact",
        version_1: ["INSERT 0 1", "2"],
        version_2: ["0A000 WITH clause containing a data-modifying statement must be at the top level", "2"],
    },
    Case {
        what: "WITH in front of VALUES",
        before: NUMBERS,
        run: "INSERT INTO whole WITH new AS (SELECT 9 AS a) VALUES ((SELECT a FROM new), 9)",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["42P01 relation \"new\" does not exist", "1; 2; 3"],
        version_2: ["INSERT 0 1", "1; 2; 3; 9"],
    },
    Case {
        what: "FETCH behind VALUES",
        before: NUMBERS,
        run: "INSERT INTO whole VALUES (8, 8), (9, 9) FETCH FIRST 1 ROW ONLY",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["INSERT 0 2", "1; 2; 3; 8; 9"],
        version_2: ["INSERT 0 1", "1; 2; 3; 8"],
    },
    Case {
        what: "WITH that changes rows in a view",
        before: NUMBERS,
        run: "CREATE VIEW v AS WITH gone AS (DELETE FROM whole) SELECT 7 AS seven",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["CREATE VIEW", "1; 2; 3"],
        version_2: ["0A000 views must not contain data-modifying statements in WITH", "1; 2; 3"],
    },
    Case {
        what: "WITH that changes rows in CREATE TABLE AS",
        before: NUMBERS,
        run: "CREATE TABLE made AS WITH gone AS (DELETE FROM whole) SELECT 7 AS seven",
        then: "SELECT seven FROM made",
        version_1: ["SELECT 1", "7"],
        version_2: [
            "0A000 a WITH query that changes rows in CREATE TABLE AS is not supported",
            "42P01 relation \"made\" does not exist",
        ],
    },
    Case {
        what: "WITH that changes rows in a subquery",
        before: NUMBERS,
        run: "SELECT (WITH gone AS (DELETE FROM whole) SELECT 7)",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["7", "1; 2; 3"],
        version_2: [
            "0A000 WITH clause containing a data-modifying statement must be at the top level",
            "1; 2; 3",
        ],
    },
    Case {
        what: "WITH that changes rows in a procedure",
        before: &[
            NUMBERS[0],
            NUMBERS[1],
            "CREATE PROCEDURE w(INOUT n integer) LANGUAGE plpgsql AS $$ BEGIN WITH gone AS (DELETE FROM whole) SELECT 7 INTO n; END $$",
        ],
        run: "CALL w(0)",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["7", "1; 2; 3"],
        version_2: ["7", ""],
    },
    Case {
        what: "WITH that changes rows in a function in SQL",
        before: &[
            NUMBERS[0],
            NUMBERS[1],
            "CREATE FUNCTION w() RETURNS integer LANGUAGE sql AS $$ WITH gone AS (DELETE FROM whole) SELECT 7 $$",
        ],
        run: "SELECT w()",
        then: "SELECT a FROM whole ORDER BY a",
        version_1: ["7", "1; 2; 3"],
        version_2: ["7", ""],
    },
    Case {
        what: "what stands behind IS DISTINCT FROM",
        before: &[],
        run: "SELECT true IS DISTINCT FROM false AND false AS it",
        then: "",
        version_1: ["t", ""],
        version_2: ["f", ""],
    },
    Case {
        what: "what stands behind IS NOT DISTINCT FROM",
        before: &[],
        run: "SELECT false IS NOT DISTINCT FROM true OR true AS it",
        then: "",
        version_1: ["f", ""],
        version_2: ["t", ""],
    },
    Case {
        what: "types behind IS DISTINCT FROM",
        before: NUMBERS,
        run: "SELECT a FROM whole WHERE a IS DISTINCT FROM b AND a < 3",
        then: "",
        version_1: ["42804 argument of AND must be type boolean, not type bigint", ""],
        version_2: ["2", ""],
    },
    Case {
        what: "IS DISTINCT FROM in a CHECK",
        before: &["CREATE TABLE k (a boolean, b boolean, c boolean, CHECK (a IS DISTINCT FROM b AND c))"],
        run: "INSERT INTO k VALUES (true, false, false)",
        then: "SELECT count(*) FROM k",
        version_1: ["INSERT 0 1", "1"],
        version_2: ["23514 new row for relation \"k\" violates check constraint \"k_check\"", "0"],
    },
    Case {
        what: "IS DISTINCT FROM in PL/pgSQL",
        before: &[
            "CREATE PROCEDURE d(INOUT it boolean) LANGUAGE plpgsql AS $$ BEGIN it := it IS DISTINCT FROM false AND false; END $$",
        ],
        run: "CALL d(true)",
        then: "",
        version_1: ["t", ""],
        version_2: ["f", ""],
    },
    Case {
        what: "IS DISTINCT FROM in a DEFAULT",
        before: &[
            "CREATE TABLE k (id integer PRIMARY KEY, it boolean DEFAULT true IS DISTINCT FROM false AND false)",
        ],
        run: "INSERT INTO k VALUES (1)",
        then: "SELECT it FROM k",
        version_1: ["INSERT 0 1", "t"],
        version_2: ["INSERT 0 1", "f"],
    },
    Case {
        what: "IS DISTINCT FROM in WHEN of a trigger",
        before: &[
            "CREATE TABLE k (a boolean, b boolean, c boolean, fired boolean)",
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.fired := true; RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON k FOR EACH ROW WHEN (NEW.a IS DISTINCT FROM NEW.b AND NEW.c) EXECUTE FUNCTION f()",
        ],
        run: "INSERT INTO k VALUES (true, false, false)",
        then: "SELECT fired FROM k",
        version_1: ["INSERT 0 1", "t"],
        version_2: ["INSERT 0 1", "NULL"],
    },
    Case {
        what: "IS DISTINCT FROM in a view",
        before: &["CREATE VIEW v AS SELECT true IS DISTINCT FROM false AND false AS it"],
        run: "SELECT it FROM v",
        then: "",
        version_1: ["t", ""],
        version_2: ["f", ""],
    },
];

/// Values have commas between them, rows semicolons.
fn shown(result: Result<Vec<StatementResult>, SqlError>) -> String {
    match result.map(|results| results.into_iter().next_back()) {
        Ok(Some(result)) if !result.columns.is_empty() => {
            texts(&result).iter().map(|row| row.join(", ")).collect::<Vec<_>>().join("; ")
        }
        Ok(result) => result.map_or_else(String::new, |result| result.tag),
        Err(error) => format!("{} {}", error.state, error.message),
    }
}

impl Case {
    fn prepared(&self, version: ExecutionVersion) -> Database {
        let mut database = Database::of_version(version);
        for script in self.before {
            database.run(script).unwrap_or_else(|error| panic!("{}: {script}: {error:?}", self.what));
        }
        database
    }

    /// In a transaction, as a ledger has it.
    fn answers(&self, mut database: Database) -> [String; 2] {
        let answer = shown(database.run(self.run));
        [answer, if self.then.is_empty() { String::new() } else { shown(database.run(self.then)) }]
    }
}

fn assert_answers(found: Vec<(&str, [String; 2], [&str; 2])>) {
    let wrong: Vec<_> = found.into_iter().filter(|(_, found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "found and expected: {wrong:#?}");
}

/// What version 7 has brought, and the words of version 6.
const REFUSED_BY_VERSION_6: &[(&str, &str)] = &[
    ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "0A000 CREATE TYPE … AS ENUM is not supported"),
    ("ALTER TYPE pair ADD VALUE 'x'", "0A000 ALTER TYPE … ADD VALUE is not supported"),
    ("ALTER TYPE pair RENAME VALUE 'x' TO 'y'", "0A000 ALTER TYPE … RENAME VALUE is not supported"),
    ("ALTER TYPE pair RENAME TO two", "0A000 ALTER TYPE … RENAME TO is not supported"),
    ("ALTER TYPE public.pair SET SCHEMA s", "0A000 ALTER TYPE … SET SCHEMA is not supported"),
    (
        "CREATE TABLE g (a integer, c integer GENERATED ALWAYS AS (a * 2) STORED)",
        "0A000 GENERATED ALWAYS AS (…) STORED is not supported",
    ),
    ("CREATE DOMAIN positive AS integer CHECK (VALUE > 0)", "0A000 CREATE DOMAIN is not supported"),
    ("DROP DOMAIN positive", "0A000 DROP DOMAIN is not supported"),
    ("SELECT enum_first(NULL)", "42883 function enum_first(unknown) does not exist"),
    ("SELECT enum_range(NULL::pair)", "42883 function enum_range(pair) does not exist"),
];

#[test]
fn version_6_refuses_by_its_words_what_version_7_has() {
    let mut database = Database::of_version(ExecutionVersion::V6);
    database.run("CREATE TYPE pair AS (a integer, b text)").expect("a type");
    let hints: Vec<Option<String>> = REFUSED_BY_VERSION_6
        .iter()
        .map(|(sql, expected)| {
            assert_eq!(shown(database.run(sql)), *expected);
            database.error(sql).hint.map(|hint| hint.to_string())
        })
        .collect();
    assert_eq!(hints[0].as_deref(), Some("Use text with a CHECK."));
    let other = "Create another type, and go over to it: ALTER TABLE … ALTER COLUMN … TYPE … USING ROW(…)::…";
    assert!(hints[1..5].iter().all(|hint| hint.as_deref() == Some(other)));
    let types = database.rows("SELECT ROW(1, 'a')::pair");
    database.go_over_to(ExecutionVersion::V7);
    assert_eq!(database.rows("SELECT ROW(1, 'a')::pair"), types);
    database.run(REFUSED_BY_VERSION_6[0].0).expect("version 7 has enums");
    assert_eq!(database.rows("SELECT 'ok'::mood > 'sad'"), [["t"]]);
}

/// What version 6 says of functions that are named like those of the system which give rows, and of other things that are
/// read otherwise since version 7: what the last program said that knew no version 7.
const AS_EVER_IN_VERSION_6: &[(&str, &str)] = &[
    ("SELECT unnest(3)", "0A000 set-returning functions are not allowed in this place"),
    (
        "SET search_path = app, public; CREATE TABLE app.d (x text DEFAULT generate_series('d'::text))",
        "CREATE TABLE",
    ),
    (
        "SET search_path = app, public; CREATE VIEW app.v AS SELECT v FROM generate_series('a'::text) AS g (v)",
        "CREATE VIEW",
    ),
    ("SELECT v FROM app.v", "own a"),
    ("SELECT single.single FROM unnest(ARRAY[ROW(7)]::one[]) AS single", "7"),
    ("COMMENT ON DOMAIN one IS 'x'", "0A000 COMMENT ON DOMAIN is not supported"),
    (
        "CREATE INDEX ON plain (a jsonb_ops)",
        "0A000 the operator class jsonb_ops of an index is not supported",
    ),
    (
        "ALTER TABLE plain ADD UNIQUE (a jsonb_ops)",
        "0A000 the operator class jsonb_ops of an index is not supported",
    ),
    (
        "CREATE TABLE u (a text, UNIQUE (a jsonb_ops))",
        "0A000 the operator class jsonb_ops of an index is not supported",
    ),
    ("CREATE SEQUENCE s AS json", "0A000 the type json is not supported"),
    ("DROP FUNCTION unnest(jsonb)", "0A000 the type jsonb is not supported"),
];

#[test]
fn version_6_answers_as_ever_where_version_7_reads_otherwise() {
    let mut database = Database::of_version(ExecutionVersion::V6);
    for script in [
        "CREATE SCHEMA app; CREATE TYPE one AS (a integer); CREATE TABLE plain (a text)",
        "CREATE FUNCTION unnest(x integer) RETURNS integer LANGUAGE sql AS 'SELECT x'",
        "CREATE FUNCTION app.generate_series(x text) RETURNS text LANGUAGE sql AS 'SELECT ''own '' || x'",
    ] {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    for (sql, expected) in AS_EVER_IN_VERSION_6 {
        assert_eq!(shown(database.run(sql)), *expected, "{sql}");
    }
}

#[test]
fn version_1_answers_as_the_programs_without_versions() {
    let answers = |case: &Case| case.answers(case.prepared(ExecutionVersion::V1));
    assert_answers(CASES.iter().map(|case| (case.what, answers(case), case.version_1)).collect());
}

#[test]
fn version_2_answers_rightly() {
    let answers = |case: &Case| case.answers(case.prepared(ExecutionVersion::V2));
    assert_answers(CASES.iter().map(|case| (case.what, answers(case), case.version_2)).collect());
    assert!(CASES.iter().all(|case| case.version_1 != case.version_2));
}

#[test]
fn a_ledger_of_version_1_answers_rightly_once_it_has_gone_over() {
    let answers = |case: &Case| {
        let mut database = case.prepared(ExecutionVersion::V1);
        database.go_over_to(ExecutionVersion::V2);
        case.answers(database)
    };
    assert_answers(CASES.iter().map(|case| (case.what, answers(case), case.version_2)).collect());
}

#[test]
fn what_only_version_1_can_read_keeps_its_meaning_or_says_so_where_it_is_used() {
    let mut database = Database::of_version(ExecutionVersion::V1);
    database.run("CREATE TABLE plain (id integer PRIMARY KEY)").expect("a table");
    // Version 2 compares a boolean with an integer here.
    let check = "CREATE TABLE k (flag boolean, n integer, it boolean DEFAULT true IS DISTINCT FROM 1 IS NULL, \
                 CHECK (flag IS DISTINCT FROM n IS NULL))";
    database.run(check).expect("version 1 reads it");
    database.run("CREATE VIEW v AS WITH gone AS (DELETE FROM plain) SELECT 7 AS seven").expect("a view");
    database.run("CREATE FUNCTION f() RETURNS boolean LANGUAGE sql AS $$ SELECT true IS DISTINCT FROM 1 IS NULL $$").expect("a function");
    database.go_over_to(ExecutionVersion::V2);
    database.run("INSERT INTO k VALUES (true, 1)").expect("it keeps the CHECK");
    assert_eq!(
        shown(database.run("INSERT INTO k VALUES (false, 1)")).split_once(' ').expect("an error").0,
        "23514"
    );
    assert_eq!(database.rows("SELECT it FROM k"), [["t"]]);
    database.run("ALTER TABLE plain ADD COLUMN note text").expect("another table");
    for change in [
        "ADD COLUMN note text",
        "ALTER COLUMN n TYPE bigint",
        "ADD CHECK (n < 5)",
        "ALTER COLUMN n SET DEFAULT 1",
        "DROP COLUMN note",
    ] {
        database
            .run(&format!("ALTER TABLE k {change}"))
            .unwrap_or_else(|error| panic!("{change}: {error:?}"));
    }
    for change in [
        "ADD COLUMN x boolean DEFAULT true IS DISTINCT FROM 1 IS NULL",
        "ADD CHECK (flag IS DISTINCT FROM n IS NULL)",
    ] {
        assert_eq!(database.error(&format!("ALTER TABLE k {change}")).state.to_string(), "42883", "{change}");
    }
    assert_eq!(database.error("SELECT seven FROM v").state.to_string(), "0A000");
    database.run("DROP VIEW v").expect("it is there");
    assert_eq!(database.error("SELECT f()").state.to_string(), "42883");
    assert_eq!(
        shown(database.run(&check.replace("TABLE k", "TABLE l"))).split_once(' ').expect("an error").0,
        "42883"
    );
    database.run("DROP TABLE k; DROP TABLE plain").expect("they are there");
}

/// What version 7 brings, and what version 6 says of it, with the hint.
const SINCE_VERSION_7: &[(&str, &str, Option<&str>)] = &[
    (
        "SELECT random()",
        "0A000 the function random() is not supported",
        Some("Pass a random number as an argument."),
    ),
    (
        "SELECT gen_random_uuid()",
        "0A000 the function gen_random_uuid() is not supported",
        Some("Pass the identifier as an argument."),
    ),
    ("SELECT gen_random_bytes(3)", "42883 function gen_random_bytes(integer) does not exist", None),
    (
        "SELECT clock_timestamp()",
        "0A000 the function clock_timestamp() is not supported",
        Some("Use now(), the time of the block."),
    ),
    (
        "SELECT exp(1)",
        "0A000 exp of double precision, whose last digits differ between machines, is not supported",
        Some("Cast the argument to numeric."),
    ),
    ("CREATE EXTENSION pgcrypto", "0A000 CREATE EXTENSION is not supported", None),
    ("SELECT md5('a')", "42883 function md5(unknown) does not exist", None),
];

/// What version 8 brings to indexes, behind a table, and what version 7 says of it.
const INDEXES_SINCE_VERSION_8: &[(&str, &str)] = &[
    ("CREATE INDEX i ON t ((a + 1))", "0A000 an index on an expression is not supported"),
    ("CREATE INDEX i ON t ((a))", "0A000 an index on an expression is not supported"),
    ("CREATE INDEX i ON t (a) WHERE a > 0", "0A000 a partial index (WHERE) is not supported"),
    ("CREATE INDEX i ON t (a) INCLUDE (b)", "0A000 INCLUDE is not supported"),
    ("CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT", "0A000 NULLS NOT DISTINCT is not supported"),
    (
        "CREATE TABLE u (a integer, UNIQUE NULLS NOT DISTINCT (a))",
        "0A000 NULLS NOT DISTINCT is not supported",
    ),
    ("ALTER TABLE t ADD UNIQUE NULLS NOT DISTINCT (a)", "0A000 NULLS NOT DISTINCT is not supported"),
    (
        "INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) WHERE a > 0 DO NOTHING",
        "42601 syntax error at or near \"WHERE\"",
    ),
    (
        "INSERT INTO t VALUES (1, 'x') ON CONFLICT (lower(b)) DO NOTHING",
        "42601 syntax error at or near \"(\"",
    ),
];

#[test]
fn version_7_refuses_indexes_as_ever_and_keeps_its_catalog() {
    let table = "CREATE TABLE t (a integer UNIQUE, b text)";
    let index = "CREATE INDEX i ON t (a DESC NULLS LAST, b text_pattern_ops)";
    let [mut seven, mut eight] = [ExecutionVersion::V7, ExecutionVersion::V8].map(Database::of_version);
    for database in [&mut seven, &mut eight] {
        database.run(table).expect("a table");
        database.run(index).expect("an index");
    }
    for (sql, refused) in INDEXES_SINCE_VERSION_8 {
        assert_eq!(shown(seven.run(sql)), *refused, "{sql}");
    }
    let details = |database: &Database| {
        let catalog = database.library.catalog();
        let index = catalog.indexes.values().flatten().find(|index| index.name == "i").expect("it is there");
        index.details.clone()
    };
    assert_eq!(details(&seven), types::IndexDetails::default(), "its bytes are those of version 7");
    assert_eq!(details(&eight).written.len(), 2);
    let class = "CREATE INDEX j ON t (a text_ops)";
    seven.run(class).expect("version 7 does not look");
    assert_eq!(
        shown(eight.run(class)),
        "42804 operator class \"text_ops\" does not accept data type integer"
    );
    seven.go_over_to(ExecutionVersion::V8);
    seven.run("INSERT INTO t VALUES (1, 'X'), (2, 'x')").expect("rows");
    seven.run("CREATE UNIQUE INDEX k ON t (lower(b)) WHERE a > 1").expect("version 8 has them");
    let conflict = "INSERT INTO t VALUES (3, 'X') ON CONFLICT (lower(b)) WHERE a > 1 DO UPDATE SET b = 'y' RETURNING a, b";
    assert_eq!(seven.rows(conflict), [["2", "y"]]);
}

#[test]
fn what_version_7_brings_is_refused_before_in_the_same_words_as_ever() {
    for (sql, refused, hint) in SINCE_VERSION_7 {
        let error = Database::of_version(ExecutionVersion::V6).error(sql);
        assert_eq!(format!("{} {}", error.state, error.message), *refused, "{sql}");
        assert_eq!(error.hint.as_deref().filter(|_| hint.is_some()), *hint, "{sql}");
        Database::of_version(ExecutionVersion::V7)
            .run(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

/// What version 8 brings, and what version 7 says of it.
const SINCE_VERSION_8: &[(&str, &str)] = &[
    ("SELECT current_user", "0A000 the function current_user() is not supported"),
    ("SELECT session_user", "0A000 the function session_user() is not supported"),
    ("SELECT current_schema()", "0A000 the function current_schema() is not supported"),
    ("SELECT 1 AS one FOR UPDATE", "0A000 FOR UPDATE and FOR SHARE is not supported"),
    (
        "SELECT now() AT TIME ZONE 'Europe/Berlin'",
        "0A000 AT TIME ZONE with another zone than 'UTC' is not supported",
    ),
    (
        "SELECT timezone('UTC', now())",
        "42883 function timezone(unknown, timestamp with time zone) does not exist",
    ),
    ("SELECT current_setting('TimeZone')", "42883 function current_setting(unknown) does not exist"),
];

#[test]
fn what_version_8_brings_is_refused_before_in_the_same_words_as_ever() {
    for (sql, refused) in SINCE_VERSION_8 {
        for version in [ExecutionVersion::V1, ExecutionVersion::V7] {
            let error = Database::of_version(version).error(sql);
            assert_eq!(format!("{} {}", error.state, error.message), *refused, "{sql}");
        }
        Database::of_version(ExecutionVersion::V8)
            .run(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[test]
fn a_script_has_as_many_parameters_as_the_protocol_counts_from_version_8_on() {
    let insert = |count: usize| {
        let rows: Vec<String> = (1..=count).map(|number| format!("(${number})")).collect();
        format!("INSERT INTO numbers VALUES {}", rows.join(", "))
    };
    let values = |count: usize| (0..count as i32).map(types::Value::Integer).collect::<Vec<_>>();
    let mut older = Database::of_version(ExecutionVersion::V7);
    let mut newer = Database::of_version(ExecutionVersion::V8);
    for database in [&mut older, &mut newer] {
        database.run("CREATE TABLE numbers (n integer PRIMARY KEY)").expect("a table");
    }
    let refused = older.run_with(&insert(1_001), values(1_001)).expect_err("too many");
    assert_eq!(
        (refused.state.to_string(), refused.message),
        ("42P02".into(), "there is no parameter $1001".into())
    );
    newer.run_with(&insert(20_000), values(20_000)).expect("fewer than 65,535");
    assert_eq!(newer.rows("SELECT count(*), sum(n) FROM numbers"), [["20000", "199990000"]]);
    assert_eq!(newer.run_with("SELECT $65535::int", values(65_535)).expect("the last one").len(), 1);
    let refused = newer.error("SELECT $65536::int");
    assert_eq!(
        (refused.state.to_string(), refused.message),
        ("42P02".into(), "there is no parameter $65536".into())
    );
}

#[test]
fn columns_called_like_what_version_8_asks_the_session_stay_columns() {
    let mut database = Database::of_version(ExecutionVersion::V7);
    database
        .run("CREATE TABLE t (id integer PRIMARY KEY, current_schema text CHECK (current_schema <> 'public'), current_role text)")
        .expect("words like others");
    database.go_over_to(ExecutionVersion::V8);
    database
        .run("INSERT INTO t (id, current_schema, current_role) VALUES (1, 'a', 'b')")
        .expect("the column is checked");
    let error = database.error("INSERT INTO t VALUES (2, 'public', 'b')");
    assert_eq!(error.state.to_string(), "23514", "{error:?}");
    database
        .run("ALTER TABLE t RENAME COLUMN id TO k; ALTER TABLE t RENAME TO u")
        .expect("the CHECK follows");
    assert_eq!(
        database.rows("SELECT current_schema, current_role, current_schema() FROM u"),
        [["a", "b", "public"]]
    );
    database.run("UPDATE u SET current_role = current_schema WHERE current_role = 'b'").expect("columns");
    assert_eq!(database.rows("SELECT current_role FROM u"), [["a"]]);
}

#[test]
fn json_is_there_from_version_7_on() {
    let refusals = [
        ("CREATE TABLE t (id integer, j jsonb)", "0A000 the type jsonb is not supported"),
        ("SELECT '1'::json", "0A000 the type json is not supported"),
        ("SELECT '{1}'::jsonb[]", "0A000 the type jsonb is not supported"),
        ("SELECT '{1}'::_jsonb", "42704 type \"_jsonb\" does not exist"),
        ("SELECT to_json(1)", "0A000 the function to_json() is not supported"),
        ("SELECT row_to_json(ROW(1))", "0A000 the function row_to_json() is not supported"),
        ("SELECT json_agg(1)", "0A000 the function json_agg() is not supported"),
        ("SELECT jsonb_object_agg('a', 1)", "0A000 the function jsonb_object_agg() is not supported"),
        (
            "SELECT jsonb_set('{}', '{a}', '1')",
            "42883 function jsonb_set(unknown, unknown, unknown) does not exist",
        ),
        ("SELECT jsonb('1')", "42883 function jsonb(unknown) does not exist"),
        (
            "SELECT jsonb_path_query('{}', '$')",
            "42883 function jsonb_path_query(unknown, unknown) does not exist",
        ),
        ("SELECT jsonb_array_elements('[1]')", "42883 function jsonb_array_elements(unknown) does not exist"),
        ("SELECT * FROM json_each('{}')", "42883 function json_each(unknown) does not exist"),
        ("SELECT 'x' -> 'a'", "0A000 the operator -> is not supported"),
        ("SELECT 'x' ->-1", "0A000 the operator ->- is not supported"),
        ("SELECT 'x' ? 'a'", "0A000 the operator ? is not supported"),
    ];
    let mut database = Database::of_version(ExecutionVersion::V6);
    for (sql, refusal) in refusals {
        assert_eq!(shown(database.run(sql)), refusal, "{sql}");
    }
    // A ledger may have functions of these names.
    database
        .run("CREATE FUNCTION to_json(value integer) RETURNS text LANGUAGE sql AS 'SELECT ''own'''")
        .expect("a function");
    assert_eq!(database.rows("SELECT to_json(1)"), [["own"]]);
    database.go_over_to(ExecutionVersion::V7);
    assert_eq!(database.rows("SELECT to_json(1)"), [["1"]], "the system's comes first");
    assert_eq!(database.rows("SELECT jsonb_agg(1), '{\"a\":1}'::jsonb -> 'a'"), [["[1]", "1"]]);
    database.run("CREATE TABLE t (id integer PRIMARY KEY, j jsonb)").expect("a table");
}

/// What version 8 brings about constraints, and what version 7 says of it.
const CONSTRAINTS_SINCE_VERSION_8: &[(&str, &str)] = &[
    ("CREATE TABLE t (id integer UNIQUE DEFERRABLE)", "0A000 DEFERRABLE is not supported"),
    ("CREATE TABLE t (id integer PRIMARY KEY INITIALLY DEFERRED)", "0A000 DEFERRABLE is not supported"),
    ("CREATE TABLE t (id integer REFERENCES p NOT DEFERRABLE)", "0A000 DEFERRABLE is not supported"),
    ("CREATE TABLE t (id integer REFERENCES p MATCH FULL)", "0A000 MATCH FULL is not supported"),
    ("SET CONSTRAINTS ALL DEFERRED", "42601 syntax error at or near \"ALL\""),
    ("DO $$ BEGIN SET CONSTRAINTS ALL DEFERRED; END $$", "0A000 SET in a procedure is not supported"),
    ("ALTER TABLE p ADD CHECK (id > 0) NOT VALID", "0A000 ALTER TABLE is not supported"),
    ("ALTER TABLE p VALIDATE CONSTRAINT p_fk", "0A000 ALTER TABLE is not supported"),
    ("ALTER TABLE p ALTER CONSTRAINT p_fk DEFERRABLE", "42601 syntax error at or near \"p_fk\""),
];

#[test]
fn constraints_wait_from_version_8_on() {
    let prepared = |version| {
        let mut database = Database::of_version(version);
        let tables = "CREATE TABLE p (id integer PRIMARY KEY, p integer, CONSTRAINT p_fk FOREIGN KEY (p) REFERENCES p)";
        database.run(tables).expect("a table");
        database
    };
    for (sql, refusal) in CONSTRAINTS_SINCE_VERSION_8 {
        assert_eq!(shown(prepared(ExecutionVersion::V7).run(sql)), *refusal, "{sql}");
        let mut database = prepared(ExecutionVersion::V8);
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[test]
fn a_column_called_owner_is_renamed_from_version_8_on() {
    for version in [ExecutionVersion::V7, ExecutionVersion::V8] {
        for sql in ["ALTER TABLE t RENAME COLUMN owner TO holder", "ALTER TABLE t RENAME owner TO holder"] {
            let mut database = Database::of_version(version);
            database.run("CREATE TABLE t (id int PRIMARY KEY, owner text)").expect("a table");
            assert_eq!(database.run(sql).is_ok(), version >= ExecutionVersion::V8, "{version:?}: {sql}");
        }
    }
}
