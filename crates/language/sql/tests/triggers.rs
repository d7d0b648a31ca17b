//! Triggers beyond what their answers show: what they register, who may do what, what COPY and endorsement make of them.

mod support;

use support::{Database, texts};
use types::{ColumnSet, Payload, Principal, SqlError, TableId, Value};

/// A table with a trigger that counts its changes, and one without.
fn database() -> Database {
    let mut database = Database::with(&[
        "CREATE TABLE counted (id int PRIMARY KEY, a int, b int)",
        "CREATE TABLE plain (id int PRIMARY KEY, a int, b int)",
        "CREATE TABLE log (n int)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO log VALUES (NEW.a);
            RETURN NEW;
        END $$",
        "CREATE FUNCTION derive() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.a = 13 THEN RETURN NULL; END IF;
            NEW.b := NEW.a * 2;
            RETURN NEW;
        END $$",
        "CREATE TRIGGER note AFTER INSERT OR UPDATE ON counted FOR EACH ROW EXECUTE FUNCTION note()",
        "CREATE ROLE clerk LOGIN",
    ]);
    database.run("INSERT INTO plain VALUES (1, 1, 1)").expect("rows");
    database.run("INSERT INTO counted VALUES (1, 1, 1)").expect("rows");
    database.run("DELETE FROM log").expect("rows");
    database
}

fn act(database: &mut Database, role: &str, sql: &str) -> Result<Vec<Vec<String>>, SqlError> {
    database.principal = Principal::new(0, role);
    let results = database.gateway(sql);
    database.principal = Principal::default();
    results.map(|results| results.last().map_or_else(Vec::new, texts))
}

fn table(database: &Database, name: &str) -> TableId {
    database.library.catalog().tables[name].id
}

#[test]
fn a_row_that_triggers_get_is_read_as_a_whole() {
    let database = database();
    let effects = database.script_effects("UPDATE plain SET a = a + 1 WHERE id = 1");
    assert!(effects.reads.is_empty(), "{:?}", effects.reads);
    let effects = database.script_effects("UPDATE counted SET a = a + 1 WHERE id = 1");
    let counted = table(&database, "counted");
    let reads: Vec<_> = effects.reads.iter().filter(|read| read.row.table == counted).collect();
    assert!(reads.iter().any(|read| read.columns == ColumnSet::ALL), "{reads:?}");
    // The row and the line of the log.
    assert_eq!(effects.commands.len(), 2, "{:?}", effects.commands);
    // A DELETE fires nothing, so it stays what it was.
    let effects = database.script_effects("DELETE FROM counted WHERE id = 1");
    assert!(effects.reads.is_empty(), "{:?}", effects.reads);
}

#[test]
fn triggers_cost_the_steps_of_their_functions() {
    let database = database();
    let steps = |sql: &str| database.script_effects(sql).steps;
    let plain = steps("INSERT INTO plain VALUES (2, 1, 1), (3, 1, 1)");
    let counted = steps("INSERT INTO counted VALUES (2, 1, 1), (3, 1, 1)");
    assert!(counted >= plain + 2 * 4, "{plain} and {counted}");
}

#[test]
fn a_change_that_fires_triggers_is_not_fused() {
    let mut database = database();
    for (table, fused) in [("plain", true), ("counted", false)] {
        let sql = format!(
            "CREATE PROCEDURE raise_{table}(k int) LANGUAGE plpgsql AS $$ DECLARE v int; BEGIN
                SELECT a INTO v FROM {table} WHERE id = k;
                IF v < 10 THEN UPDATE {table} SET a = a + 1 WHERE id = k; END IF;
            END $$"
        );
        database.run(&sql).expect("it compiles");
        let lines = database.rows(&format!("EXPLAIN CALL raise_{table}(1)")).concat().join("\n");
        assert_eq!(!lines.contains("fires triggers"), fused, "{lines}");
        let effects = database.effects(Payload::Call {
            procedure: format!("raise_{table}"),
            arguments: vec![Value::Integer(1)],
        });
        assert_eq!(effects.reads.is_empty(), fused, "{:?}", effects.reads);
    }
}

#[test]
fn explain_names_the_triggers() {
    let mut database = database();
    database
        .run("CREATE TRIGGER derive BEFORE UPDATE OF a ON counted FOR EACH ROW WHEN (NEW.a > 1) EXECUTE FUNCTION derive()")
        .expect("a trigger");
    let lines = database.rows("EXPLAIN UPDATE counted SET a = 1 WHERE id = 1").concat();
    assert_eq!(
        lines,
        [
            "Update counted: commands that write a",
            "  Row by key WHERE id = 1; registers a read of all columns",
            "  Trigger derive: before UPDATE of each row runs derive(), where its WHEN holds",
            "  Trigger note: after UPDATE of each row runs note()",
        ]
    );
    let lines = database.rows("EXPLAIN INSERT INTO counted VALUES (1)").concat();
    assert_eq!(
        lines.last().map(String::as_str),
        Some("  Trigger note: after INSERT of each row runs note()")
    );
}

#[test]
fn rows_that_a_client_sends_fire_triggers() {
    let mut database = database();
    database
        .run("CREATE TRIGGER derive BEFORE INSERT ON counted FOR EACH ROW EXECUTE FUNCTION derive()")
        .expect("a trigger");
    database
        .run("CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (-1); RETURN NULL; END'")
        .expect("a function");
    database.run("CREATE TRIGGER once AFTER INSERT ON counted EXECUTE FUNCTION once()").expect("a trigger");
    let rows = [[2, 5], [3, 13], [4, 6]].map(|row| row.map(Value::Integer).to_vec()).to_vec();
    let columns = vec!["id".to_string(), "a".to_string()];
    let results =
        database.execute(Payload::Insert { table: "counted".to_string(), columns, rows }).expect("rows");
    assert_eq!(results[0].tag, "COPY 2");
    assert_eq!(
        database.rows("SELECT id, a, b FROM counted WHERE id > 1"),
        [["2", "5", "10"], ["4", "6", "12"]]
    );
    assert_eq!(database.rows("SELECT n FROM log").concat(), ["5", "6", "-1"]);
}

#[test]
fn a_trigger_acts_as_who_changes_the_table() {
    let mut database = database();
    database.run("GRANT INSERT ON counted TO clerk").expect("granted");
    let error = act(&mut database, "clerk", "INSERT INTO counted VALUES (2, 2, 2)").expect_err("no log");
    assert_eq!(
        (error.state.to_string().as_str(), error.message.as_str()),
        ("42501", "permission denied for table log")
    );
    // Nobody needs EXECUTE on the function, which only the trigger calls.
    database.run("REVOKE EXECUTE ON FUNCTION note FROM PUBLIC").expect("revoked");
    database.run("GRANT INSERT ON log TO clerk").expect("granted");
    act(&mut database, "clerk", "INSERT INTO counted VALUES (2, 2, 2)").expect("allowed");
    database.run("REVOKE INSERT ON log FROM clerk").expect("revoked");
    database
        .run(
            "CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
                INSERT INTO log VALUES (NEW.a);
                RETURN NEW;
            END $$",
        )
        .expect("replaced");
    act(&mut database, "clerk", "INSERT INTO counted VALUES (3, 3, 3)").expect("the definer may");
    assert_eq!(database.rows("SELECT n FROM log").concat(), ["2", "3"]);
    let error = act(&mut database, "clerk", "DROP TRIGGER note ON counted").expect_err("no administrator");
    assert_eq!(error.state.to_string(), "42501");
}

#[test]
fn whose_consent_is_needed_counts_triggers() {
    let mut database = database();
    database
        .run("CREATE FUNCTION helper(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN n; END'")
        .expect("a function");
    database
        .run(
            "CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO log VALUES (helper(NEW.a));
                RETURN NEW;
            END $$",
        )
        .expect("replaced");
    database
        .run("CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM helper(1); RETURN OLD; END'")
        .expect("a function");
    database
        .run("CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES plain ON DELETE CASCADE)")
        .expect("a table");
    database
        .run("CREATE TRIGGER derive BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION gone()")
        .expect("a trigger");
    let names = |sql: &str| -> Vec<String> {
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        let involved = database.library.involved(&payload).expect("few");
        involved.procedures.iter().map(|one| one.procedure.clone()).collect()
    };
    assert_eq!(names("UPDATE counted SET a = 1"), ["helper", "note"]);
    assert_eq!(names("DELETE FROM plain"), ["gone", "helper"]);
    assert!(names("INSERT INTO log VALUES (1)").is_empty());
}

#[test]
fn temporary_tables_have_no_triggers() {
    let mut database = database();
    database.gateway("CREATE TEMPORARY TABLE mine (id int PRIMARY KEY, a int)").expect("made");
    let error =
        database.error("CREATE TRIGGER note AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION note()");
    assert_eq!(error.message, "a trigger on a temporary table is not supported");
    database.gateway("INSERT INTO mine VALUES (1, 1)").expect("a row");
    database.run("INSERT INTO counted VALUES (9, 9, 9)").expect("the ledger's fire");
    assert_eq!(database.rows("SELECT n FROM log").concat(), ["9"]);
}

#[test]
fn recursion_ends_with_an_error() {
    let mut database = database();
    database
        .run(
            "CREATE FUNCTION deeper() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO plain VALUES (NEW.id + 1, 0, 0);
                RETURN NEW;
            END $$",
        )
        .expect("a function");
    database
        .run("CREATE TRIGGER deeper BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION deeper()")
        .expect("a trigger");
    let error = database.error("INSERT INTO plain VALUES (10, 0, 0)");
    assert_eq!(error.state.to_string(), "54001", "{error:?}");
    assert_eq!(database.rows("SELECT count(*) FROM plain").concat(), ["1"]);
}
