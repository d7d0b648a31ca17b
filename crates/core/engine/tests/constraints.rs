//! Indexes, UNIQUE and FOREIGN KEY under every protocol that executes after ordering: random transactions end as in a
//! serial run, constraints hold, and rows are found by indexes as they are found without.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::Library;
use state::{AfterImage, PlainState};
use std::sync::Arc;
use support::constraints::check_constraints;
use support::histories::{History, PROTOCOLS, after, library, replay};
use support::{histories, script};
use types::Payload;

const HISTORIES: u64 = 400;
const BATCHES: usize = 3;
const TRANSACTIONS: u32 = 6;

const TABLES: [&str; 5] = [
    "CREATE TABLE p (id int PRIMARY KEY, code text UNIQUE, a int, b int, UNIQUE (a, b))",
    "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, code text REFERENCES p (code), n int)",
    "CREATE TABLE h (u int UNIQUE, v int, p int DEFAULT 1 REFERENCES p ON DELETE SET NULL ON UPDATE SET DEFAULT)",
    "CREATE TABLE k (p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, n int, v int, PRIMARY KEY (p, n))",
    "CREATE SEQUENCE drawn START WITH 10 INCREMENT BY 3 MAXVALUE 60 CYCLE",
];
const INDEXES: [&str; 5] = [
    "CREATE INDEX p_b ON p (b, code)",
    "CREATE INDEX c_n ON c (n)",
    "CREATE INDEX c_p ON c (p, n)",
    "CREATE INDEX c_code ON c (code, id)",
    "CREATE INDEX h_v ON h (v, u)",
];

/// One statement with small numbers in the place of `#`, texts in that of `@`.
fn statement(random: &mut StdRng) -> String {
    let templates = [
        "INSERT INTO p VALUES (#, @, #, #)",
        "INSERT INTO p VALUES (#, @, #, #)",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT (code) DO UPDATE SET a = p.a + 1",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT (a, b) DO UPDATE SET code = excluded.code",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT DO NOTHING",
        "UPDATE p SET code = @ WHERE id = #",
        "UPDATE p SET a = a + 1, b = # WHERE id = #",
        "UPDATE p SET b = b + 1 WHERE b = #",
        "UPDATE p SET a = # WHERE code = @",
        "UPDATE p SET id = # WHERE id = #",
        "UPDATE p SET id = id + 1 WHERE b = #",
        "INSERT INTO p VALUES (#, @, #, #) ON CONFLICT (code) DO UPDATE SET id = excluded.id, a = # RETURNING id",
        "DELETE FROM p WHERE id = #",
        "DELETE FROM p WHERE b = # AND code = @",
        "INSERT INTO c VALUES (#, #, @, #)",
        "INSERT INTO c VALUES (#, #, @, #)",
        "INSERT INTO c VALUES (#, #, NULL, #), (#, NULL, @, #)",
        "INSERT INTO c SELECT id + 4, id, code, b FROM p WHERE b = #",
        "UPDATE c SET p = # WHERE id = #",
        "UPDATE c SET n = n + 1 WHERE n = #",
        "UPDATE c SET n = n + 1 WHERE id = #",
        "UPDATE c SET code = @ WHERE p = # AND n < #",
        "UPDATE c SET id = # WHERE id = #",
        "UPDATE c SET id = id + 1, n = n + id WHERE n < # RETURNING id, n",
        "UPDATE c SET id = 5 - id WHERE p = #",
        "UPDATE c SET id = p.id + 4 FROM p WHERE c.code = p.code AND p.b = #",
        "INSERT INTO k VALUES (#, #, #)",
        "INSERT INTO k VALUES (#, #, #), (#, #, #)",
        "UPDATE k SET n = n + 1, v = v + # WHERE p = #",
        "UPDATE k SET p = # WHERE p = # AND n = #",
        "UPDATE k SET v = v + 1 WHERE p = # AND n = #",
        "SELECT p, n, v FROM k WHERE p = #",
        "DELETE FROM c WHERE n = #",
        "DELETE FROM c WHERE code = @",
        "INSERT INTO h (u, v) VALUES (#, #)",
        "INSERT INTO h VALUES (#, #, #), (NULL, #, #)",
        "INSERT INTO h VALUES (#, #, #) ON CONFLICT (u) DO UPDATE SET v = h.v + excluded.v RETURNING u, v",
        "UPDATE h SET u = u + 1 WHERE v = #",
        "INSERT INTO h (u, v) VALUES (nextval('drawn'), #) RETURNING u",
        "UPDATE h SET u = nextval('drawn') WHERE v = #",
        "SELECT nextval('drawn')",
        "SELECT setval('drawn', 10 + #, #::int > 2)",
        "UPDATE h SET v = v + 1 WHERE u = #",
        "DELETE FROM h WHERE v > #",
        "SELECT id FROM c WHERE n = # ORDER BY id",
        "SELECT id, n FROM c WHERE p = # ORDER BY n DESC, id DESC LIMIT 1",
        "SELECT n FROM c WHERE p = # ORDER BY n LIMIT 2",
        "SELECT count(*), sum(a) FROM p WHERE b = # AND code > @",
        "SELECT c.id, p.a FROM p JOIN c ON c.code = p.code WHERE p.b = #",
        "SELECT u, v FROM h WHERE v = # ORDER BY u LIMIT 1",
        "SELECT id FROM p WHERE code = @",
        "SELECT code FROM c WHERE code >= @ ORDER BY code, id LIMIT 2",
    ];
    let template = templates.choose(random).expect("there are some");
    let mut text = String::new();
    for character in template.chars() {
        match character {
            '#' if random.random_bool(0.04) => text.push_str("NULL"),
            '#' => text.push_str(&random.random_range(1..=4).to_string()),
            '@' if random.random_bool(0.08) => text.push_str("NULL"),
            '@' => text.push_str(["'x'", "'y'", "'z'"].choose(random).expect("three")),
            other => text.push(other),
        }
    }
    text
}

fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let count = [1, 1, 2, 2, 3].choose(random).expect("five");
    let statements: Vec<String> = (0..*count).map(|_| statement(random)).collect();
    Arc::new(script(&statements.join("; ")))
}

/// Runs a history under a protocol, checks it against the serializability checker, and replays it serially on a ledger
/// without the indexes.
fn run(
    id: &str,
    indexed: &Arc<Library>,
    plain: &Arc<Library>,
    initial: &PlainState,
    history: &History,
) -> (usize, usize) {
    let ran = histories::run(id, indexed, initial, history);
    check_constraints(&ran.state);
    // The same without the indexes, whose numbers come after everything else's.
    let mut serial = PlainState::new(plain.catalog().clone());
    for (table, rows) in &initial.tables {
        for (key, row) in rows.iter().filter(|_| plain.catalog().row_tables().any(|known| known == *table)) {
            if !table.is_index() {
                let row_id = state::RowId { table: *table, key: key.clone() };
                serial.apply(&AfterImage { row: row_id, value: Some(row.clone()) });
            }
        }
    }
    let (mut committed, mut aborted) = (0, 0);
    let serial = replay(&ran, plain, serial, history, |_, result| {
        committed += usize::from(result.is_ok());
        aborted += usize::from(result.is_err());
    });
    for (table, rows) in &serial.tables {
        if !table.is_index() {
            assert_eq!(ran.state.tables.get(table), Some(rows), "{id}: table {}", table.0);
        }
    }
    (committed, aborted)
}

#[test]
fn random_transactions_keep_constraints_and_end_as_in_a_serial_run() {
    let plain = library(&TABLES);
    let indexed = library(&[TABLES.as_slice(), &INDEXES].concat());
    let mut counts = [(0, 0); PROTOCOLS.len()];
    for seed in 0..HISTORIES {
        let mut random = StdRng::seed_from_u64(seed);
        let initial = after(&indexed, (0..12).map(|_| transaction(&mut random)));
        check_constraints(&initial);
        let history: History =
            (0..BATCHES).map(|_| (0..TRANSACTIONS).map(|_| transaction(&mut random)).collect()).collect();
        for (id, count) in PROTOCOLS.iter().zip(&mut counts) {
            let (committed, aborted) = run(id, &indexed, &plain, &initial, &history);
            (count.0, count.1) = (count.0 + committed, count.1 + aborted);
        }
    }
    eprintln!("{PROTOCOLS:?}: {counts:?} committed and aborted");
    for (committed, aborted) in counts {
        assert!(committed > 1_000 && aborted > 500, "{committed} committed, {aborted} aborted");
    }
}
