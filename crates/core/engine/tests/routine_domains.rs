//! Routines whose variables, parameters and results are of domains, and whose errors are handled, under every protocol: random transactions
//! end as in a serial run.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{PROTOCOLS, library, numbered, run_random_histories};
use support::script;
use types::Payload;

const HISTORIES: u64 = 100;

const SCHEMA: [&str; 10] = [
    "CREATE DOMAIN amount AS numeric(4, 1) CHECK (VALUE >= 0)",
    "CREATE TYPE span AS (low int, high int)",
    "CREATE DOMAIN ordered AS span CHECK ((VALUE).low <= (VALUE).high)",
    "CREATE TABLE account (id int PRIMARY KEY, n numeric NOT NULL, said text)",
    // Its table comes later.
    "CREATE FUNCTION known(wanted int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM noted WHERE id = wanted); END $$",
    "CREATE TABLE noted (id int PRIMARY KEY, low int, high int)",
    "CREATE FUNCTION left_of(which int, take amount) RETURNS amount LANGUAGE plpgsql AS $$ BEGIN
        RETURN (SELECT n FROM account WHERE id = which) - take; END $$",
    "CREATE PROCEDURE take(which int, how_much amount) LANGUAGE plpgsql AS $$ DECLARE rest amount := 0; BEGIN
        SELECT n INTO rest FROM account WHERE id = which;
        UPDATE account SET n = left_of(which, how_much) WHERE id = which; END $$",
    "CREATE PROCEDURE tries(which int, how_much numeric) LANGUAGE plpgsql AS $$ DECLARE context text; BEGIN
        CALL take(which, how_much);
    EXCEPTION WHEN check_violation THEN
        GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
        UPDATE account SET said = SQLERRM || context WHERE id = which; END $$",
    "CREATE PROCEDURE note(which int, a int, b int) LANGUAGE plpgsql AS $$ DECLARE x ordered; BEGIN
        x.low := a; x.high := b;
        IF known(which) > 0 THEN UPDATE noted SET low = x.low, high = x.high WHERE id = which;
        ELSE INSERT INTO noted VALUES (which, x.low, x.high); END IF; END $$",
];

/// Statements with small numbers in the place of `#`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO account VALUES (#, #)",
        "UPDATE account SET n = n + # WHERE id = #",
        "UPDATE account SET n = left_of(id, #) WHERE id < #",
        "DELETE FROM account WHERE id = #",
        "CALL take(#, #)",
        "CALL take(#, #.25)",
        "CALL tries(#, #)",
        "CALL tries(#, # - 3)",
        "CALL note(#, #, #)",
        "DELETE FROM noted WHERE id = #",
        "SELECT id, left_of(id, 0), said FROM account ORDER BY id",
        "SELECT known(#), sum(high - low) FROM noted",
    ];
    let template = templates.choose(random).expect("there are some");
    Arc::new(script(&numbered(template, random, 1..=5)))
}

#[test]
fn random_transactions_with_domains_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    let mut counts = [(0, 0, 0); PROTOCOLS.len()];
    run_random_histories(&library, (HISTORIES, 20), transaction, |place, result| match result {
        Ok(results) => {
            counts[place].0 += 1;
            let shows = |row: &Vec<types::Value>| format!("{row:?}").contains("PL/pgSQL function");
            counts[place].2 += usize::from(results.iter().flat_map(|result| &result.rows).any(shows));
        }
        Err(error) => counts[place].1 += usize::from(error.state.to_string() == "23514"),
    });
    eprintln!(
        "{PROTOCOLS:?}: {counts:?} committed, refused by domains, and showing where a handled error came from"
    );
    for (committed, refused, shown) in counts {
        assert!(committed > 500 && refused > 100 && shown > 10, "{committed}, {refused}, {shown}");
    }
}
