//! What execution versions answer differently: each difference as version 1 has it, as version 2 has it, and in a ledger that
//! goes over from the one to the other. What version 1 answers is what the last program without versions answered.

mod support;

use support::{Database, shown_with_rows};
use types::ExecutionVersion;

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
        let answer = shown_with_rows(database.run(self.run));
        [answer, if self.then.is_empty() { String::new() } else { shown_with_rows(database.run(self.then)) }]
    }
}

fn assert_answers(found: Vec<(&str, [String; 2], [&str; 2])>) {
    let wrong: Vec<_> = found.into_iter().filter(|(_, found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "found and expected: {wrong:#?}");
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
        shown_with_rows(database.run("INSERT INTO k VALUES (false, 1)")).split_once(' ').expect("an error").0,
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
        shown_with_rows(database.run(&check.replace("TABLE k", "TABLE l")))
            .split_once(' ')
            .expect("an error")
            .0,
        "42883"
    );
    database.run("DROP TABLE k; DROP TABLE plain").expect("they are there");
}
