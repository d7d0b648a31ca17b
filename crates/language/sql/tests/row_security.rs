//! Row security: a role sees and writes what policies let it, by PostgreSQL 15's rules and with its messages. Random policies and
//! statements are compared with PostgreSQL itself in `bench --test differential`.

mod support;

use sql::Library;
use state::PlainState;
use std::sync::Arc;
use support::Database;
use types::{Catalog, Charter, Payload, Principal, SchemaMembers, Value};

/// Two roles of the first organisation and a table of documents, one of which each of them owns.
fn database(policies: &[&str]) -> Database {
    let mut database = Database::with(&[
        "CREATE TABLE doc (id int PRIMARY KEY, owner text, level int, note text)",
        "CREATE TABLE part (id int PRIMARY KEY, doc int REFERENCES doc ON DELETE CASCADE)",
        "CREATE VIEW docs AS SELECT id, owner, level FROM doc",
        "CREATE FUNCTION may_see(level int) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN
            RETURN level <= (SELECT count(*) FROM part); END $$",
        "CREATE ROLE ann LOGIN",
        "CREATE ROLE bob LOGIN",
        "CREATE ROLE staff",
        "GRANT staff TO ann",
        "GRANT ALL ON doc, part, docs TO ann, bob",
    ]);
    database
        .run("INSERT INTO doc VALUES (1, 'ann', 1, 'a'), (2, 'bob', 2, 'b'), (3, 'eve', 3, 'c')")
        .expect("rows");
    database.run("INSERT INTO part VALUES (1, 1), (2, 2)").expect("rows");
    for sql in policies {
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    database
}

/// The ids that a role gets.
fn ids(database: &mut Database, role: &str, sql: &str) -> Vec<String> {
    let rows = database.act(role, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

fn refusal(database: &mut Database, role: &str, sql: &str) -> String {
    let error = database.act(role, sql).expect_err(sql);
    format!("{}: {}", error.state, error.message)
}

const ENABLE: &str = "ALTER TABLE doc ENABLE ROW LEVEL SECURITY";
const OWN: &str = "CREATE POLICY own ON doc USING (owner = current_user)";

#[test]
fn without_a_policy_a_role_sees_nothing_and_an_administrator_everything() {
    let mut database = database(&[ENABLE]);
    assert!(ids(&mut database, "ann", "SELECT id FROM doc").is_empty());
    assert_eq!(database.rows("SELECT id FROM doc ORDER BY id"), [["1"], ["2"], ["3"]]);
    let message = "42501: new row violates row-level security policy for table \"doc\"";
    assert_eq!(refusal(&mut database, "ann", "INSERT INTO doc VALUES (4, 'ann')"), message);
    // Nobody asks policies that do not count.
    database.run("ALTER TABLE doc DISABLE ROW LEVEL SECURITY").expect("the administrator's");
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM doc").len(), 3);
}

#[test]
fn every_way_to_a_table_asks_its_policies() {
    let mut database = database(&[ENABLE, OWN]);
    for sql in [
        "SELECT id FROM doc",
        "SELECT doc.id FROM doc JOIN part ON part.doc = doc.id",
        "SELECT doc.id FROM part LEFT JOIN doc ON part.doc = doc.id WHERE doc.id IS NOT NULL",
        "SELECT doc.id FROM part RIGHT JOIN doc ON part.doc = doc.id",
        "SELECT a.id FROM doc a, doc b WHERE a.id = b.id",
        "SELECT id FROM docs",
        "SELECT id FROM doc FOR UPDATE",
        "WITH d AS (SELECT * FROM doc) SELECT id FROM d",
        "SELECT (SELECT max(id) FROM doc)",
        "SELECT id FROM (SELECT DISTINCT id FROM doc) d",
        "SELECT count(*) FROM doc",
        "SELECT id FROM doc WHERE id IN (1, 2, 3)",
        "SELECT id FROM doc UNION SELECT id FROM doc",
        "UPDATE doc SET note = 'x' RETURNING id",
        "UPDATE doc SET note = part.id::text FROM part WHERE part.doc = doc.id RETURNING doc.id",
        "UPDATE docs SET level = 7 RETURNING id",
        "WITH changed AS (UPDATE doc SET note = 'y' RETURNING id) SELECT id FROM changed",
        "DELETE FROM part USING doc WHERE part.doc = doc.id AND false OR part.doc = doc.id RETURNING part.id",
        "DELETE FROM docs RETURNING id",
    ] {
        assert_eq!(ids(&mut database, "ann", sql), ["1"], "{sql}");
    }
    assert!(ids(&mut database, "ann", "SELECT id FROM doc WHERE id = 2").is_empty());
    assert!(ids(&mut database, "ann", "DELETE FROM doc RETURNING id").is_empty());
    assert_eq!(database.rows("SELECT id FROM doc ORDER BY id"), [["2"], ["3"]]);
}

#[test]
fn a_row_that_a_role_cannot_see_tells_nothing_by_errors_of_conditions() {
    let mut database = database(&[ENABLE, OWN, "ALTER TABLE doc ALTER COLUMN level SET NOT NULL"]);
    // Of this row the policy gives NULL.
    database.run("INSERT INTO doc VALUES (4, NULL, 2, 'secret')").expect("the administrator's");
    assert!(ids(&mut database, "ann", "SELECT id FROM doc WHERE note <> 'a' AND note::int = 1").is_empty());
    assert!(
        ids(&mut database, "ann", "DELETE FROM doc WHERE note <> 'a' AND note::int = 1 RETURNING id")
            .is_empty()
    );
    // 1 / (level - 2) fails on bob's row alone.
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM doc WHERE 1 / (level - 2) < 9"), ["1"]);
    assert_eq!(
        refusal(&mut database, "bob", "SELECT id FROM doc WHERE 1 / (level - 2) < 9"),
        "22012: division by zero"
    );
    let mut database =
        self::database(&[ENABLE, "CREATE POLICY seen ON doc USING (may_see(level) AND owner <> 'bob')"]);
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM doc WHERE 1 / (level - 2) < 9"), ["1"]);
    assert_eq!(
        ids(&mut database, "ann", "UPDATE doc SET note = (1 / (level - 2))::text RETURNING id"),
        ["1"]
    );
}

#[test]
fn written_rows_keep_what_policies_ask() {
    let mut database = database(&[
        ENABLE,
        "CREATE POLICY all_see ON doc FOR SELECT USING (true)",
        "CREATE POLICY own ON doc USING (owner = current_user) WITH CHECK (owner = current_user AND level < 5)",
        "CREATE POLICY no_nine ON doc AS RESTRICTIVE FOR INSERT TO staff WITH CHECK (id <> 9)",
    ]);
    let plain = "42501: new row violates row-level security policy for table \"doc\"";
    let using = "42501: new row violates row-level security policy (USING expression) for table \"doc\"";
    for (sql, expected) in [
        ("INSERT INTO doc VALUES (4, 'bob', 1)", plain),
        ("INSERT INTO doc VALUES (4, 'ann', 5)", plain),
        (
            "INSERT INTO doc VALUES (9, 'ann', 1)",
            "42501: new row violates row-level security policy \"no_nine\" for table \"doc\"",
        ),
        ("INSERT INTO doc SELECT 4, 'bob', 1", plain),
        ("INSERT INTO docs VALUES (4, 'bob', 1)", plain),
        ("UPDATE doc SET owner = 'bob'", plain),
        ("UPDATE doc SET level = 9 WHERE id = 1", plain),
        ("UPDATE doc SET id = 8, level = 9 WHERE id = 1", plain),
        ("INSERT INTO doc VALUES (2, 'ann', 1) ON CONFLICT (id) DO UPDATE SET note = 'x'", using),
        ("INSERT INTO doc VALUES (1, 'ann', 1) ON CONFLICT (id) DO UPDATE SET owner = 'bob'", plain),
        // The policy comes before constraints.
        ("INSERT INTO doc VALUES (2, 'bob', 1)", plain),
        (
            "INSERT INTO doc VALUES (2, 'ann', 1)",
            "23505: duplicate key value violates unique constraint \"doc_pkey\"",
        ),
    ] {
        assert_eq!(refusal(&mut database, "ann", sql), expected, "{sql}");
    }
    assert_eq!(ids(&mut database, "ann", "UPDATE doc SET note = 'mine' RETURNING id"), ["1"]);
    assert!(database.act("ann", "INSERT INTO doc VALUES (4, 'ann', 4)").is_ok());
    // The restrictive one is not for bob.
    assert!(database.act("bob", "INSERT INTO doc VALUES (9, 'bob', 4)").is_ok());
    assert!(
        database
            .act(
                "ann",
                "INSERT INTO doc VALUES (1, 'ann', 2) ON CONFLICT (id) DO UPDATE SET level = excluded.level"
            )
            .is_ok()
    );
    assert_eq!(database.rows("SELECT level FROM doc WHERE id = 1"), [["2"]]);
}

#[test]
fn triggers_come_first_and_cascades_ask_no_policy() {
    let mut database = database(&[
        ENABLE,
        OWN,
        "ALTER TABLE part ENABLE ROW LEVEL SECURITY",
        "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.owner := current_user; RETURN NEW; END $$",
        "CREATE TRIGGER take BEFORE INSERT ON doc FOR EACH ROW EXECUTE FUNCTION take()",
        "CREATE POLICY add ON part FOR INSERT WITH CHECK (true)",
    ]);
    assert!(database.act("ann", "INSERT INTO doc VALUES (7, 'eve', 1)").is_ok());
    // The document that a part references is not ann's.
    assert!(database.act("ann", "INSERT INTO part VALUES (9, 3)").is_ok());
    assert!(database.act("ann", "DELETE FROM doc WHERE id = 1").is_ok());
    assert_eq!(database.rows("SELECT id, doc FROM part ORDER BY id"), [["2", "2"], ["9", "3"]]);
    assert_eq!(database.rows("SELECT owner FROM doc WHERE id = 7"), [["ann"]]);
}

#[test]
fn procedures_act_as_who_calls_them_unless_their_definer_is_trusted() {
    let mut database = database(&[
        ENABLE,
        OWN,
        "CREATE PROCEDURE raise(wanted int) LANGUAGE plpgsql AS $$ BEGIN
            UPDATE doc SET level = level + 10 WHERE id = wanted; END $$",
        "CREATE PROCEDURE trusted(wanted int) LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN CALL raise(wanted); END $$",
        "CREATE PROCEDURE read_and_raise(wanted int) LANGUAGE plpgsql AS $$ DECLARE old int; BEGIN
            SELECT level INTO old FROM doc WHERE id = wanted;
            UPDATE doc SET level = old + 10 WHERE id = wanted; END $$",
    ]);
    for sql in [
        "CALL raise(1)",
        "CALL raise(2)",
        "CALL read_and_raise(1)",
        "CALL read_and_raise(2)",
        "CALL trusted(3)",
    ] {
        database.act("ann", sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    assert_eq!(database.rows("SELECT level FROM doc ORDER BY id"), [["21"], ["2"], ["13"]]);
}

#[test]
fn forced_policies_bind_administrators_by_the_names_of_their_organisations() {
    let mut database = database(&[ENABLE, "ALTER TABLE doc FORCE ROW LEVEL SECURITY"]);
    let administrator = database.rows("SELECT current_user")[0][0].clone();
    assert!(database.rows("SELECT id FROM doc").is_empty());
    database.run(OWN).expect("the administrator's");
    database.run(&format!("INSERT INTO doc VALUES (5, '{administrator}')")).expect("its own");
    assert_eq!(database.rows("SELECT id FROM doc"), [["5"]]);
    let error = database.run("INSERT INTO doc VALUES (6, 'ann')").expect_err("not its own");
    assert_eq!(error.state.to_string(), "42501");
    database.principal = Principal::new(1, "");
    assert!(database.rows("SELECT id FROM doc").is_empty(), "another organisation's");
    database.principal = Principal::default();
    database.run("ALTER TABLE doc NO FORCE ROW LEVEL SECURITY").expect("the administrator's");
    assert_eq!(database.rows("SELECT count(*) FROM doc"), [["4"]]);
}

#[test]
fn policies_are_defined_and_refused_as_in_postgresql() {
    let mut database =
        database(&[ENABLE, OWN, "CREATE POLICY noted ON doc AS RESTRICTIVE USING (note IS NOT NULL)"]);
    for (sql, expected) in [
        ("CREATE POLICY own ON doc USING (true)", "42710: policy \"own\" for table \"doc\" already exists"),
        ("CREATE POLICY p ON nowhere USING (true)", "42P01: relation \"nowhere\" does not exist"),
        (
            "CREATE POLICY p ON doc USING (1)",
            "42804: argument of POLICY must be type boolean, not type integer",
        ),
        ("CREATE POLICY p ON doc USING (size > 1)", "42703: column \"size\" does not exist"),
        (
            "CREATE POLICY p ON doc USING (count(*) > 1)",
            "42803: aggregate functions are not allowed in policy expressions",
        ),
        (
            "CREATE POLICY p ON doc FOR INSERT USING (true)",
            "42601: only WITH CHECK expression allowed for INSERT",
        ),
        (
            "CREATE POLICY p ON doc FOR DELETE WITH CHECK (true)",
            "42601: WITH CHECK cannot be applied to SELECT or DELETE",
        ),
        ("CREATE POLICY p ON doc TO nobody USING (true)", "42704: role \"nobody\" does not exist"),
        (
            "CREATE POLICY p ON doc USING (id IN (SELECT doc FROM part))",
            "0A000: a query in a policy is not supported",
        ),
        ("DROP POLICY p ON doc", "42704: policy \"p\" for table \"doc\" does not exist"),
        ("ALTER POLICY p ON doc USING (true)", "42704: policy \"p\" for table \"doc\" does not exist"),
        ("ALTER POLICY p ON doc RENAME TO q", "42704: policy \"p\" for table \"doc\" does not exist"),
        (
            "ALTER TABLE doc DROP COLUMN owner",
            "2BP01: cannot drop column owner of table doc because other objects depend on it",
        ),
        (
            "ALTER TABLE doc ALTER note TYPE varchar(9)",
            "0A000: cannot alter type of a column used in a policy definition",
        ),
    ] {
        let error = database.run(sql).expect_err(sql);
        assert_eq!(format!("{}: {}", error.state, error.message), expected, "{sql}");
    }
    database
        .run("DROP POLICY IF EXISTS p ON doc; DROP POLICY IF EXISTS p ON nowhere")
        .expect("nothing to drop");
    assert_eq!(refusal(&mut database, "ann", "DROP POLICY own ON doc").get(..5), Some("42501"));

    // What names something follows it, and goes with it.
    database.run("DROP POLICY noted ON doc; DROP VIEW docs").expect("dropped");
    database
        .run("CREATE POLICY seen ON doc FOR SELECT TO staff, bob USING (may_see(doc.level))")
        .expect("a function");
    for sql in ["ALTER TABLE doc RENAME COLUMN owner TO holder", "ALTER TABLE doc RENAME TO paper"] {
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM paper"), ["1", "2"]);
    database
        .run("ALTER POLICY seen ON paper RENAME TO shown; ALTER POLICY shown ON paper TO bob")
        .expect("altered");
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM paper"), ["1"]);
    let error = database.run("DROP ROLE bob").expect_err("a policy is for it");
    assert!(error.detail.is_some_and(|detail| detail.contains("target of policy shown on table paper")));
    let error = database.run("DROP FUNCTION may_see").expect_err("a policy calls it");
    assert_eq!(error.state.to_string(), "2BP01");
    database.run("DROP FUNCTION may_see CASCADE").expect("with the policy");
    database.run("ALTER TABLE paper DROP COLUMN holder CASCADE").expect("with the policy");
    assert!(ids(&mut database, "ann", "SELECT id FROM paper").is_empty(), "no policy is left");
}

#[test]
fn rows_do_not_come_around_policies() {
    let mut database = database(&[ENABLE, OWN]);
    assert!(database.act("ann", "CREATE TEMPORARY TABLE mine AS SELECT * FROM doc").is_ok());
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM mine"), ["1"]);
    // What COPY sends asks no policy, so it is refused where policies count, and nowhere else.
    let copy = || Payload::Insert {
        table: "doc".to_string(),
        columns: vec!["id".to_string(), "owner".to_string()],
        rows: vec![vec![Value::Integer(9), Value::text("ann")]],
    };
    database.principal = Principal::new(0, "ann");
    let error = database.execute(copy()).expect_err("policies count");
    assert_eq!(error.message, "COPY FROM not supported with row-level security");
    database.principal = Principal::default();
    database.run("ALTER TABLE doc FORCE ROW LEVEL SECURITY").expect("the administrator's");
    assert!(database.execute(copy()).is_err(), "policies count for administrators too");
    database.run("ALTER TABLE doc NO FORCE ROW LEVEL SECURITY").expect("the administrator's");
    database.execute(copy()).expect("an administrator's");
    database.gateway("CREATE TEMPORARY TABLE t (id int)").expect("the session's");
    // TRUNCATE neither.
    let truncation = "0A000: TRUNCATE of a table with row-level security is not supported";
    assert_eq!(refusal(&mut database, "ann", "TRUNCATE doc CASCADE"), truncation);
    database.run("ALTER TABLE doc FORCE ROW LEVEL SECURITY").expect("the administrator's");
    assert!(database.run("TRUNCATE doc CASCADE").is_err(), "policies count for administrators too");
    database.run("ALTER TABLE doc NO FORCE ROW LEVEL SECURITY").expect("the administrator's");
    database.run("TRUNCATE doc CASCADE").expect("an administrator's");
    let error = database.gateway("ALTER TABLE t ENABLE ROW LEVEL SECURITY").expect_err("nobody else sees it");
    assert_eq!(error.state.to_string(), "0A000");
}

#[test]
fn a_policy_that_asks_itself_ends_with_an_error() {
    let mut database = database(&[
        ENABLE,
        "CREATE FUNCTION knows(wanted int) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN
            RETURN EXISTS (SELECT 1 FROM doc WHERE id = wanted); END $$",
        "CREATE POLICY known ON doc USING (knows(id))",
    ]);
    // Threads that tests and nodes run on have so much.
    let asks = move || refusal(&mut database, "ann", "SELECT id FROM doc").get(..5).map(str::to_string);
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(asks).expect("a thread");
    assert_eq!(thread.join().expect("no overflow").as_deref(), Some("54001"));
}

#[test]
fn policies_that_are_for_others_ask_nothing() {
    let mut database = database(&[
        ENABLE,
        "CREATE FUNCTION fails() RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RAISE 'nobody knows you'; END $$",
        "CREATE POLICY known ON doc TO bob USING (owner = fails())",
        "CREATE POLICY own ON doc TO staff USING (owner = current_user)",
        "REVOKE ALL ON FUNCTION fails FROM PUBLIC",
    ]);
    assert_eq!(database.rows("SELECT count(*) FROM doc"), [["3"]]);
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM doc"), ["1"]);
    assert_eq!(ids(&mut database, "ann", "UPDATE doc SET note = 'x' RETURNING id"), ["1"]);
    assert_eq!(refusal(&mut database, "bob", "SELECT id FROM doc"), "P0001: nobody knows you");
}

#[test]
fn what_a_statement_does_not_read_asks_no_policy_of_select() {
    let mut database = database(&[
        ENABLE,
        "CREATE POLICY change ON doc FOR UPDATE USING (id < 3)",
        "CREATE POLICY remove ON doc FOR DELETE USING (id < 2)",
        "CREATE POLICY own ON doc FOR SELECT USING (owner = current_user)",
    ]);
    let changed = |database: &mut Database, sql: &str| {
        database.principal = Principal::new(0, "bob");
        let results = database.gateway(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        database.principal = Principal::default();
        results.last().expect("one").tag.clone()
    };
    assert_eq!(changed(&mut database, "UPDATE doc SET level = 1"), "UPDATE 2");
    assert_eq!(changed(&mut database, "UPDATE doc SET level = 1 WHERE true"), "UPDATE 2");
    assert_eq!(changed(&mut database, "UPDATE doc SET level = part.id FROM part"), "UPDATE 2");
    assert_eq!(changed(&mut database, "UPDATE doc SET level = level"), "UPDATE 1");
    assert_eq!(changed(&mut database, "DELETE FROM doc WHERE id > 0"), "DELETE 0");
    assert_eq!(changed(&mut database, "DELETE FROM doc"), "DELETE 1");
    // FOR UPDATE asks what an UPDATE does, through a view too.
    assert_eq!(ids(&mut database, "bob", "SELECT id FROM docs FOR UPDATE"), ["2"]);
    database.run("ALTER POLICY change ON doc USING (id > 2)").expect("altered");
    assert!(ids(&mut database, "bob", "SELECT id FROM docs FOR UPDATE").is_empty());
    assert!(ids(&mut database, "bob", "SELECT id FROM doc FOR SHARE").is_empty());
}

#[test]
fn a_change_does_not_break_a_policy_or_let_it_call_something_else() {
    let mut database = database(&[
        ENABLE,
        "DROP VIEW docs",
        "CREATE FUNCTION fits(d doc) RETURNS boolean STABLE LANGUAGE sql AS 'SELECT true'",
        "CREATE FUNCTION allowed(level bigint) RETURNS boolean STABLE LANGUAGE sql AS 'SELECT false'",
        "CREATE POLICY called ON doc USING (allowed(level))",
    ]);
    let overload = "CREATE FUNCTION allowed(level int) RETURNS boolean STABLE LANGUAGE sql AS 'SELECT true'";
    let error = database.run(overload).expect_err("the policy would call it");
    let message =
        "a change behind which policy called on table doc would call another function is not supported";
    assert_eq!(error.message, message);
    assert!(ids(&mut database, "ann", "SELECT id FROM doc").is_empty());
    database
        .run("DROP POLICY called ON doc; CREATE POLICY whole ON doc USING (fits(doc))")
        .expect("another one");
    let error = database.run("ALTER TABLE doc RENAME TO paper").expect_err("the policy names it as a row");
    assert_eq!(
        error.message,
        "a change behind which policy whole on table paper could not be read is not supported"
    );
    assert_eq!(ids(&mut database, "ann", "SELECT id FROM doc").len(), 3);
}

#[test]
fn a_procedure_that_reads_a_table_with_policies_is_not_fused() {
    let mut database = database(&[]);
    for (sql, is_fused) in [("SELECT 1", true), (ENABLE, false)] {
        database.gateway(sql).expect("the administrator's");
        database
            .run(
                "CREATE OR REPLACE PROCEDURE raises(k int) LANGUAGE plpgsql AS $$ DECLARE v int; BEGIN
                     SELECT level INTO v FROM doc WHERE id = k;
                     IF v < 10 THEN UPDATE doc SET level = level + 1 WHERE id = k; END IF; END $$",
            )
            .expect("it compiles");
        let lines = database.rows("EXPLAIN CALL raises(1)").concat().join("\n");
        assert_eq!(lines.contains("Fused"), is_fused, "{lines}");
        let call = Payload::Call { procedure: "raises".to_string(), arguments: vec![Value::Integer(1)] };
        assert_eq!(database.effects(call).reads.is_empty(), is_fused);
    }
}

#[test]
fn a_table_has_a_bounded_number_of_policies() {
    let mut database = database(&[]);
    let all: Vec<String> =
        (0..64).map(|number| format!("CREATE POLICY p{number} ON doc USING (id = {number})")).collect();
    database.run(&all.join(";")).expect("so many");
    let error = database.run("CREATE POLICY more ON doc USING (true)").expect_err("one too many");
    assert_eq!(error.message, "a table has at most 64 policies (POLICIES_MAX)");
}

#[test]
fn a_schema_with_members_has_no_policies() {
    let members = SchemaMembers { number: 1, since: 1, changed: 1, organisations: vec![0] };
    let charter = Arc::new(Charter::with_defaults("test", 1));
    let catalog = Arc::new(Catalog::of_schema("deal", &members, charter));
    let library = Arc::new(Library::new(catalog.clone()).expect("it compiles"));
    let mut database = Database { library, state: PlainState::new(catalog), ..Database::default() };
    database.run("CREATE TABLE deal.t (id int PRIMARY KEY)").expect("a table");
    for sql in ["ALTER TABLE deal.t ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON deal.t USING (true)"] {
        let error = database.run(sql).expect_err(sql);
        assert_eq!(error.message, "row-level security in a schema with members is not supported", "{sql}");
    }
}
