//! Partitioned tables under every protocol: random transactions end as in a serial run, and whether a partition takes a row follows from
//! the state at the transaction's place.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{library, numbered, run_random_histories_with_refusals};
use support::script;
use types::{Payload, SqlError};

const HISTORIES: u64 = 100;

const SCHEMA: [&str; 13] = [
    "CREATE TABLE reading (day int, id int, n int DEFAULT 0, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)",
    "CREATE TABLE early PARTITION OF reading FOR VALUES FROM (1) TO (3)",
    "CREATE TABLE late PARTITION OF reading FOR VALUES FROM (3) TO (5)",
    "CREATE INDEX ON reading (n)",
    "CREATE VIEW low AS SELECT day, id, n FROM early WHERE n < 4",
    "CREATE TABLE kind (k text, n int) PARTITION BY LIST (k)",
    "CREATE TABLE kind_some PARTITION OF kind FOR VALUES IN ('1', '2', NULL)",
    "CREATE TABLE kind_rest PARTITION OF kind DEFAULT PARTITION BY RANGE (n)",
    "CREATE TABLE kind_small PARTITION OF kind_rest FOR VALUES FROM (MINVALUE) TO (4)",
    "CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO kind VALUES (NEW.id::text, NEW.n); RETURN NEW; END $$",
    "CREATE TRIGGER follows AFTER INSERT ON reading FOR EACH ROW EXECUTE FUNCTION follow()",
    "CREATE PROCEDURE moves(wanted int) LANGUAGE plpgsql AS $$ BEGIN
        UPDATE reading SET day = day + 1 WHERE id = wanted; END $$",
    "CREATE PROCEDURE adds(wanted int) LANGUAGE plpgsql AS $$ BEGIN
        UPDATE late SET n = n + 1 WHERE id = wanted;
        IF NOT FOUND THEN INSERT INTO late VALUES (3, wanted, 1); END IF; END $$",
];

/// Statements with small numbers in the place of `#`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO reading VALUES (#, #, #)",
        "INSERT INTO early VALUES (#, #, #)",
        "INSERT INTO late (day, id) VALUES (#, #), (#, #)",
        "INSERT INTO reading VALUES (#, #, #) ON CONFLICT (day, id) DO UPDATE SET n = excluded.n",
        "INSERT INTO early VALUES (#, #, #) ON CONFLICT (day, id) DO UPDATE SET day = excluded.n",
        "INSERT INTO late SELECT day + 2, id, n FROM early WHERE n < #",
        "UPDATE reading SET n = n + 1 WHERE day = # AND id = #",
        "UPDATE reading SET day = # WHERE day = # AND id = #",
        "UPDATE reading SET day = day + 1 WHERE n = #",
        "UPDATE early SET n = # WHERE id = #",
        "UPDATE early SET day = # WHERE id = #",
        "UPDATE low SET n = n + 2",
        "DELETE FROM late WHERE id = #",
        "DELETE FROM reading WHERE n > #",
        "INSERT INTO kind VALUES ('#', #)",
        "INSERT INTO kind_rest VALUES ('#', #)",
        "UPDATE kind SET k = '#' WHERE n = #",
        "UPDATE kind_small SET n = n + 1",
        "DELETE FROM kind_some WHERE n = #",
        "SELECT count(*), sum(n) FROM early",
        "SELECT r.day, k.k FROM late r JOIN kind_rest k ON k.n = r.n ORDER BY 1, 2",
        "CALL moves(#)",
        "CALL adds(#)",
    ];
    let template = templates.choose(random).expect("there are some");
    Arc::new(script(&numbered(template, random, 1..=5)))
}

#[test]
fn random_transactions_over_partitions_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    let is_refusal = |error: &SqlError| error.message.contains("partition");
    run_random_histories_with_refusals(&library, (HISTORIES, 20), transaction, is_refusal, (500, 100));
}
