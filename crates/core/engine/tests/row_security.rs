//! Policies of rows under every protocol: random transactions end as in a serial run, and what policies refuse or hide follows from the
//! state at the transaction's place.

mod support;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{library, run_random_histories_with_refusals};
use support::script;
use types::{Payload, SqlError};

const HISTORIES: u64 = 200;

/// The administrator of the first organisation runs everything, and policies are forced on it.
const SCHEMA: [&str; 13] = [
    "CREATE TABLE team (id int PRIMARY KEY, size int)",
    "CREATE TABLE task (id int PRIMARY KEY, owner text, n int, team int REFERENCES team ON DELETE CASCADE)",
    "CREATE INDEX ON task (n)",
    "CREATE VIEW tasks AS SELECT id, n FROM task",
    "CREATE FUNCTION is_large(wanted int) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN
        RETURN EXISTS (SELECT 1 FROM team WHERE id = wanted AND size > 1); END $$",
    "CREATE POLICY own ON task USING (owner = current_user OR n < 3)",
    "CREATE POLICY add ON task FOR INSERT WITH CHECK (n < 5)",
    "CREATE POLICY large ON task AS RESTRICTIVE FOR UPDATE USING (n <> 2) WITH CHECK (team IS NULL OR is_large(team))",
    "CREATE POLICY large ON team USING (size > 0)",
    "ALTER TABLE task ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    "ALTER TABLE team ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    "CREATE PROCEDURE raises(wanted int) LANGUAGE plpgsql AS $$ DECLARE old int; BEGIN
        SELECT n INTO old FROM task WHERE id = wanted;
        IF old IS NOT NULL THEN UPDATE task SET n = old + 1 WHERE id = wanted; END IF; END $$",
    "CREATE PROCEDURE adds(wanted int) LANGUAGE plpgsql AS $$ BEGIN
        UPDATE task SET n = n + 1 WHERE id = wanted;
        IF NOT FOUND THEN INSERT INTO task VALUES (wanted, current_user, 1, NULL); END IF; END $$",
];

/// Statements with small numbers in the place of `#`, and somebody's name in that of `@`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO team VALUES (#, #)",
        "UPDATE team SET size = # WHERE id = #",
        "UPDATE team SET size = size - 1",
        "DELETE FROM team WHERE id = #",
        "INSERT INTO task VALUES (#, @, #, NULL)",
        "INSERT INTO task VALUES (#, @, #, #)",
        "INSERT INTO task VALUES (#, @, #, NULL) ON CONFLICT (id) DO UPDATE SET n = excluded.n, owner = @",
        "INSERT INTO task SELECT id + 4, @, n + 1, team FROM task WHERE n < #",
        "UPDATE task SET n = n + 1 WHERE id = #",
        "UPDATE task SET n = # WHERE n = #",
        "UPDATE task SET owner = @ WHERE id = #",
        "UPDATE task SET team = # WHERE id = #",
        "UPDATE task SET id = # WHERE id = #",
        "UPDATE tasks SET n = # WHERE id = #",
        "DELETE FROM task WHERE id = #",
        "DELETE FROM task WHERE n > #",
        "SELECT id, n FROM task WHERE n >= # ORDER BY id",
        "SELECT t.id, k.n FROM team t LEFT JOIN task k ON k.team = t.id ORDER BY 1, 2",
        "CALL raises(#)",
        "CALL adds(#)",
    ];
    let template = templates.choose(random).expect("there are some");
    let mut text = String::new();
    for character in template.chars() {
        match character {
            '#' => text.push_str(&random.random_range(1..=5).to_string()),
            '@' => text.push_str(if random.random_bool(0.6) { "current_user" } else { "'somebody'" }),
            other => text.push(other),
        }
    }
    Arc::new(script(&text))
}

#[test]
fn random_transactions_under_policies_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    let is_refusal = |error: &SqlError| error.state.to_string() == "42501";
    run_random_histories_with_refusals(&library, (HISTORIES, 20), transaction, is_refusal, (1_000, 100));
}
