//! Random policies, and statements that roles run under them: rows, errors, and what is in the tables afterwards.

use super::entente::Database;
use super::expressions::Sql;
use super::postgres::{Answer, Postgres};
use super::{ask, run};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use types::Principal;

const SCHEMA: [&str; 8] = [
    "CREATE TABLE doc (id int PRIMARY KEY, owner text, level int, note text UNIQUE)",
    "CREATE TABLE part (id int PRIMARY KEY, doc int REFERENCES doc ON DELETE CASCADE, owner text)",
    "CREATE FUNCTION is_low(level int) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN
        RETURN level <= (SELECT count(*) FROM part); END $$",
    "CREATE ROLE ann",
    "CREATE ROLE bob",
    "CREATE ROLE staff",
    "GRANT staff TO ann",
    "GRANT ALL ON doc, part TO ann, bob",
];

const TABLES: [&str; 2] = ["SELECT * FROM doc ORDER BY 1", "SELECT * FROM part ORDER BY 1"];

const CONDITIONS: [&str; 14] = [
    "true",
    "owner = current_user",
    "owner = current_user",
    "level < 3",
    "level > 1 OR owner = 'ann'",
    "note IS NULL",
    "length(note) < 2",
    "is_low(level)",
    "is_low(id) AND owner IN ('ann', 'bob')",
    "owner <> 'bob'",
    "doc.id % 2 = 0",
    "NULL",
    "false",
    "CASE WHEN current_user = 'bob' THEN level = 1 ELSE level > 0 END",
];

fn policy() -> Sql {
    let condition = || select(CONDITIONS.to_vec());
    let whom = select(vec!["PUBLIC", "ann", "bob", "staff", "staff, bob", "PUBLIC"]);
    let kind = select(vec!["PERMISSIVE", "PERMISSIVE", "PERMISSIVE", "RESTRICTIVE"]);
    let clauses = prop_oneof![
        3 => condition().prop_map(|using| ("ALL", format!("USING ({using})"))),
        2 => (condition(), condition()).prop_map(|(using, check)| ("ALL", format!("USING ({using}) WITH CHECK ({check})"))),
        1 => condition().prop_map(|check| ("ALL", format!("WITH CHECK ({check})"))),
        3 => condition().prop_map(|using| ("SELECT", format!("USING ({using})"))),
        2 => condition().prop_map(|check| ("INSERT", format!("WITH CHECK ({check})"))),
        1 => condition().prop_map(|using| ("UPDATE", format!("USING ({using})"))),
        1 => (condition(), condition()).prop_map(|(using, check)| ("UPDATE", format!("USING ({using}) WITH CHECK ({check})"))),
        2 => condition().prop_map(|using| ("DELETE", format!("USING ({using})"))),
    ];
    (kind, whom, clauses, any::<bool>())
        .prop_map(|(kind, whom, (command, clauses), on_part)| {
            // What is_low reads must not ask is_low in turn.
            let is_for_doc = ["level", "note", "doc.", "is_low"].iter().any(|name| clauses.contains(name));
            match on_part && !is_for_doc {
                true => format!("ON part AS {kind} FOR {command} TO {whom} {clauses}"),
                false => format!("ON doc AS {kind} FOR {command} TO {whom} {clauses}"),
            }
        })
        .boxed()
}

fn row() -> Sql {
    let owner = select(vec!["'ann'", "'bob'", "'eve'", "NULL"]);
    let note = select(vec!["'a'", "'b'", "'cc'", "NULL", "NULL"]);
    (1..7i32, owner, 0..4i32, note)
        .prop_map(|(id, owner, level, note)| format!("({id}, {owner}, {level}, {note})"))
        .boxed()
}

/// A statement, and who runs it.
fn statement() -> BoxedStrategy<(&'static str, String)> {
    let id = || 1..7i32;
    let returning = || select(vec!["", "", " RETURNING id", " RETURNING *"]);
    let sql = prop_oneof![
        2 => Just("SELECT * FROM doc".to_string()),
        1 => id().prop_map(|id| format!("SELECT owner FROM doc WHERE id = {id}")),
        1 => Just("SELECT id FROM doc WHERE note < 'b' FOR UPDATE".to_string()),
        1 => Just("SELECT d.id, p.id FROM doc d FULL JOIN part p ON p.doc = d.id".to_string()),
        1 => Just("SELECT d.id, p.id FROM part p LEFT JOIN doc d ON p.doc = d.id AND d.level > 0".to_string()),
        1 => Just("SELECT owner, count(*) FROM doc WHERE EXISTS (SELECT 1 FROM part WHERE part.doc = doc.id) GROUP BY owner".to_string()),
        4 => (row(), returning()).prop_map(|(row, returning)| format!("INSERT INTO doc VALUES {row}{returning}")),
        1 => (row(), row()).prop_map(|(one, other)| format!("INSERT INTO doc VALUES {one}, {other}")),
        1 => (row(), returning()).prop_map(|(row, returning)| format!("INSERT INTO doc VALUES {row} ON CONFLICT DO NOTHING{returning}")),
        3 => (row(), returning()).prop_map(|(row, returning)| {
            format!("INSERT INTO doc VALUES {row} ON CONFLICT (id) DO UPDATE SET level = doc.level + 1, owner = excluded.owner{returning}")
        }),
        1 => (id(), id()).prop_map(|(id, doc)| format!("INSERT INTO part VALUES ({id}, {doc}, 'ann')")),
        3 => (id(), returning()).prop_map(|(id, returning)| format!("UPDATE doc SET level = level + 1 WHERE id = {id}{returning}")),
        1 => Just("UPDATE doc SET level = 2".to_string()),
        1 => Just("UPDATE doc SET level = 2 WHERE true".to_string()),
        1 => Just("UPDATE doc SET owner = part.owner FROM part WHERE part.id = 3".to_string()),
        1 => Just("SELECT id FROM doc WHERE 1 / (level - 2) < 9".to_string()),
        1 => Just("UPDATE doc SET note = NULL WHERE 1 / (level - 1) < 9".to_string()),
        1 => (id(), id()).prop_map(|(to, id)| format!("UPDATE doc SET id = {to} WHERE id = {id}")),
        1 => id().prop_map(|id| format!("UPDATE doc SET owner = part.owner FROM part WHERE part.doc = doc.id AND doc.id = {id}")),
        1 => (id(), returning()).prop_map(|(id, returning)| format!("DELETE FROM doc WHERE id = {id}{returning}")),
        1 => Just("DELETE FROM part".to_string()),
        1 => Just("DELETE FROM doc USING part WHERE part.doc = doc.id AND part.id > 3".to_string()),
    ];
    (select(vec!["ann", "bob"]), sql).boxed()
}

fn ask_as(database: &mut Database, role: &str, sql: &str) -> Answer {
    database.principal = Principal::new(0, role);
    let answer = ask(database, sql);
    database.principal = Principal::default();
    answer
}

/// Of several rows that a policy refuses, or that are in error otherwise, either database may come to any of them first.
fn without_message(answer: Answer) -> Answer {
    match answer {
        Answer::Error { state, .. } => Answer::Error { state, message: String::new() },
        rows => rows,
    }
}

#[test]
fn roles_see_and_write_what_policies_let_them_as_in_postgresql() {
    let postgres = Postgres::with(&SCHEMA);
    let initial = Database::with(&SCHEMA);
    let cases = (vec(row(), 1..5), vec(policy(), 0..5), vec(statement(), 1..8));
    let refused = std::cell::Cell::new(0);
    run(600, &cases, |(rows, policies, statements)| {
        let mut database = initial.clone();
        let drop = "DO $$ DECLARE p record; BEGIN FOR p IN SELECT * FROM pg_policies LOOP EXECUTE format('DROP POLICY %I ON %I', p.policyname, p.tablename); END LOOP; END $$";
        postgres.run(&format!("TRUNCATE doc, part; {drop}"));
        let mut setup: Vec<String> =
            rows.iter().map(|row| format!("INSERT INTO doc VALUES {row} ON CONFLICT DO NOTHING")).collect();
        setup.push("INSERT INTO part SELECT id + 1, id, owner FROM doc".to_string());
        setup.extend(["doc", "part"].map(|table| format!("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")));
        setup.extend(
            policies.iter().enumerate().map(|(number, policy)| format!("CREATE POLICY p{number} {policy}")),
        );
        for sql in &setup {
            let (expected, found) = (postgres.ask(sql), ask(&mut database, sql));
            prop_assert_eq!(expected, found, "{}", sql);
        }
        for (role, sql) in &statements {
            let mut expected = postgres.ask(&format!("SET ROLE {role}; {sql}"));
            let _ = postgres.ask("RESET ROLE");
            let mut found = ask_as(&mut database, role, sql);
            expected.sort();
            found.sort();
            refused.set(
                refused.get()
                    + usize::from(matches!(&found, Answer::Error { state, .. } if state == "42501")),
            );
            let is_one_row = sql.contains("VALUES") && !sql.contains("), (");
            if !is_one_row {
                (expected, found) = (without_message(expected), without_message(found));
            }
            prop_assert_eq!(expected, found, "{}: {}", role, sql);
            for table in TABLES {
                prop_assert_eq!(
                    postgres.ask(table),
                    ask(&mut database, table),
                    "{} behind {}: {}",
                    table,
                    role,
                    sql
                );
            }
        }
        Ok(())
    });
    assert!(refused.get() > 300, "policies have refused {} statements", refused.get());
}
