//! Indexes, UNIQUE and FOREIGN KEY under every protocol that executes after ordering: random transactions end as in a
//! serial run, constraints hold, and rows are found by indexes as they are found without.

mod support;

use rand::rngs::StdRng;
use state::PlainState;
use support::constraints::check_constraints;
use support::histories::library;
use support::without_indexes::{self, Histories};

const HISTORIES: u64 = 400;

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
        "UPDATE h SET u = (SELECT last_value FROM drawn) WHERE v = #",
        "SELECT last_value, is_called FROM drawn",
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
    without_indexes::statement(random, &templates, ["'x'", "'y'", "'z'"])
}

#[test]
fn random_transactions_keep_constraints_and_end_as_in_a_serial_run() {
    let plain = library(&TABLES);
    let indexed = library(&[TABLES.as_slice(), &INDEXES].concat());
    let histories = Histories {
        count: HISTORIES,
        plain,
        indexed,
        statement: &statement,
        check: &|state: &PlainState| check_constraints(state),
    };
    for (committed, aborted) in histories.run() {
        assert!(committed > 1_000 && aborted > 500, "{committed} committed, {aborted} aborted");
    }
}
