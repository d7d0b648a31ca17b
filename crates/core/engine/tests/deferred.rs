//! Constraints that are held at the end of the transaction, under every protocol: random transactions end as in a serial run, and
//! whatever commits leaves no row that references nothing, and no key twice.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use support::constraints::check_constraints;
use support::endorsing::Network;
use support::histories::{PROTOCOLS, after, library, random_history, run_as_serial};
use support::script;
use types::{Outcome, Payload};

const HISTORIES: u64 = 300;

const SCHEMA: [&str; 7] = [
    "CREATE TABLE p (id int PRIMARY KEY, code int UNIQUE, n int)",
    "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p DEFERRABLE INITIALLY DEFERRED, \
     code int CONSTRAINT c_code REFERENCES p (code) DEFERRABLE)",
    "CREATE TABLE t (id int PRIMARY KEY, parent int REFERENCES t DEFERRABLE INITIALLY DEFERRED, \
     p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED)",
    "CREATE TABLE u (k int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v int CONSTRAINT u_v UNIQUE DEFERRABLE, \
     a int, b int, FOREIGN KEY (a, b) REFERENCES w MATCH FULL DEFERRABLE INITIALLY DEFERRED)",
    "CREATE INDEX c_p ON c (p)",
    "CREATE PROCEDURE tries(n int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO c VALUES (n, n, NULL); \
     BEGIN SET CONSTRAINTS ALL IMMEDIATE; EXCEPTION WHEN foreign_key_violation THEN INSERT INTO p VALUES (n, NULL, 0); END; END $$",
    "CREATE PROCEDURE swaps(x int, y int) LANGUAGE plpgsql AS $$ BEGIN \
     BEGIN UPDATE u SET k = x WHERE v = y; SET CONSTRAINTS u_pkey IMMEDIATE; \
     EXCEPTION WHEN unique_violation THEN DELETE FROM u WHERE k = x; UPDATE u SET k = x WHERE v = y; END; END $$",
];

/// Statements that break a constraint for a while, with small numbers in the place of `#`; `$` is the same number all over.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO c VALUES (#, #, NULL)",
        "INSERT INTO c VALUES (#, $, NULL); INSERT INTO p VALUES ($, #, 0)",
        "INSERT INTO c VALUES (#, $, #); DELETE FROM c WHERE p = $",
        "INSERT INTO p VALUES (#, #, #)",
        "INSERT INTO p VALUES (#, #, #) ON CONFLICT DO NOTHING",
        "DELETE FROM p WHERE id = #",
        "DELETE FROM p WHERE id = $; INSERT INTO p VALUES ($, #, 1)",
        "DELETE FROM p WHERE id = $; DELETE FROM c WHERE p = $",
        "UPDATE p SET id = # WHERE id = $; UPDATE c SET p = # WHERE p = $",
        "UPDATE p SET code = # WHERE id = #",
        "UPDATE p SET n = n + 1 WHERE id = #",
        "UPDATE c SET p = # WHERE id = #",
        "UPDATE c SET id = # WHERE id = #",
        "UPDATE c SET id = 5 - id, p = # WHERE p = #",
        "SET CONSTRAINTS c_code DEFERRED; UPDATE p SET code = # WHERE code = $; UPDATE c SET code = # WHERE code = $",
        "SET CONSTRAINTS ALL DEFERRED; INSERT INTO c VALUES (#, #, $); INSERT INTO p VALUES (#, $, 0)",
        "INSERT INTO c VALUES (#, #, NULL); SET CONSTRAINTS ALL IMMEDIATE",
        "INSERT INTO t VALUES (#, $, #), ($, NULL, #)",
        "INSERT INTO t VALUES (#, #, NULL)",
        "UPDATE t SET id = id + 1",
        "UPDATE t SET id = 5 - id; UPDATE t SET parent = 5 - parent",
        "DELETE FROM t WHERE id = #",
        "DELETE FROM t WHERE id = $; UPDATE t SET parent = NULL WHERE parent = $",
        "INSERT INTO u VALUES (#, #, NULL, NULL)",
        "INSERT INTO u VALUES (#, #, #, #)",
        "INSERT INTO u VALUES ($, #, NULL, NULL); DELETE FROM u WHERE k = $ AND v < #",
        "INSERT INTO w VALUES (#, #)",
        "DELETE FROM w WHERE a = #",
        "UPDATE u SET a = #, b = # WHERE k = #",
        "UPDATE u SET a = NULL WHERE k = $; UPDATE u SET b = NULL WHERE k = $",
        "UPDATE u SET k = k + 1",
        "UPDATE u SET v = v + 1",
        "UPDATE u SET v = # WHERE v = #",
        "UPDATE u SET k = 9 WHERE k = $; UPDATE u SET k = $ WHERE k = #; UPDATE u SET k = # WHERE k = 9",
        "SET CONSTRAINTS ALL DEFERRED; UPDATE u SET v = # WHERE k = $; UPDATE u SET v = # WHERE k = #",
        "DELETE FROM u WHERE v = #",
        "SELECT k, v FROM u WHERE k = # ORDER BY v",
        "SELECT c.id, p.n FROM c JOIN p ON p.id = c.p WHERE c.p = # ORDER BY c.id",
        "CALL tries(#)",
        "CALL swaps(#, #)",
    ];
    let template = templates.choose(random).expect("there are some");
    let same = random.random_range(1..=4).to_string();
    let mut text = String::new();
    for character in template.chars() {
        match character {
            '#' if random.random_bool(0.03) => text.push_str("NULL"),
            '#' => text.push_str(&random.random_range(1..=4).to_string()),
            '$' => text.push_str(&same),
            other => text.push(other),
        }
    }
    Arc::new(script(&text))
}

/// The statements that make the schema.
fn schema() -> Vec<&'static str> {
    ["CREATE TABLE w (a int, b int, PRIMARY KEY (a, b))"].into_iter().chain(SCHEMA).collect()
}

#[test]
fn random_transactions_put_checks_off_and_end_as_in_a_serial_run() {
    let library = library(&schema());
    let mut counts = [(0, 0); PROTOCOLS.len()];
    for seed in 0..HISTORIES {
        let mut random = StdRng::seed_from_u64(seed);
        let initial = after(&library, (0..20).map(|_| transaction(&mut random)));
        check_constraints(&initial);
        let history = random_history(&mut random, &transaction);
        for (id, count) in PROTOCOLS.iter().zip(&mut counts) {
            let state = run_as_serial(id, &library, &initial, &history, |result| {
                count.0 += usize::from(result.is_ok());
                count.1 += usize::from(result.is_err());
            });
            check_constraints(&state);
        }
    }
    eprintln!("{PROTOCOLS:?}: {counts:?} committed and aborted");
    for (committed, aborted) in counts {
        assert!(committed > 1_000 && aborted > 500, "{committed} committed, {aborted} aborted");
    }
}

#[test]
fn endorsed_transactions_leave_nothing_that_references_nothing() {
    for protocol in concurrency::VALIDATION_IDS {
        let mut random = StdRng::seed_from_u64(7);
        let mut network = Network::new(protocol, |_| {});
        for sql in schema() {
            let change = network.proposal(script(sql));
            let outcomes = network.outcomes(vec![change]);
            assert!(matches!(outcomes[0], Outcome::Committed(_)), "{sql}: {outcomes:?}");
        }
        let (mut committed, mut given_up) = (0, 0);
        for _ in 0..60 {
            let basis = network.basis();
            let mut block = Vec::new();
            for _ in 0..5 {
                let payload = Payload::clone(&transaction(&mut random));
                let proposal = network.proposal(payload);
                // What breaks a constraint endorsers see themselves.
                block.extend(network.endorse(&basis, proposal, &[0, 1]));
            }
            if block.is_empty() {
                continue;
            }
            for outcome in network.outcomes(block) {
                match outcome {
                    Outcome::Committed(_) => committed += 1,
                    Outcome::Conflict | Outcome::Aborted(_) => given_up += 1,
                    other => panic!("{protocol}: {other:?}"),
                }
            }
            check_constraints(network.engine.state().snapshot().as_ref());
        }
        assert!(committed > 30 && given_up > 0, "{protocol}: {committed} committed, {given_up} given up");
    }
}
