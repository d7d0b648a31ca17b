//! Tables whose keys are of the types hstore and citext, and which have inverted indexes: under every protocol random transactions end as in a
//! serial run.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{library, numbered, run_random_histories_with_refusals};
use support::script;
use types::{Payload, SqlError};

const HISTORIES: u64 = 60;

const SCHEMA: [&str; 6] = [
    "CREATE TABLE users (nick citext PRIMARY KEY, mail citext UNIQUE, tags citext[], hits integer NOT NULL DEFAULT 0)",
    "CREATE TABLE things (id integer PRIMARY KEY, data hstore NOT NULL, owner citext REFERENCES users (nick) ON UPDATE CASCADE ON DELETE SET NULL)",
    "CREATE TABLE stores (store hstore PRIMARY KEY, other hstore UNIQUE, found integer)",
    "CREATE INDEX ON things USING gin (data)",
    "CREATE INDEX ON things (owner)",
    "CREATE INDEX ON users USING gin (tags)",
];

/// Statements with small numbers in the place of `#`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO users (nick, mail, tags) VALUES ('User#', 'Mail#', '{Admin,t#}')",
        "INSERT INTO users (nick, mail) VALUES ('uSER#', 'MAIL#') ON CONFLICT (nick) DO UPDATE SET hits = users.hits + 1",
        "UPDATE users SET nick = 'USER#', hits = hits + 1 WHERE nick = 'user#'",
        "UPDATE users SET nick = upper(nick) WHERE nick = 'user#'",
        "UPDATE users SET mail = 'mail#', tags = tags || 'T#'::citext WHERE nick LIKE 'USER#%'",
        "UPDATE users SET hits = 0 WHERE tags @> '{T#}'",
        "DELETE FROM users WHERE mail ~ '^MAIL#$'",
        "INSERT INTO things VALUES (#, 'a=>#, b#=>NULL', 'uSeR#') ON CONFLICT (id) DO UPDATE SET data = things.data || excluded.data",
        "INSERT INTO things VALUES (#, hstore('k', '#'), NULL)",
        "UPDATE things SET data['a'] = '#' WHERE data @> 'a=>#'",
        "UPDATE things SET data = delete(data, 'a') WHERE data ? 'b#'",
        "UPDATE things SET owner = 'USER#' WHERE data ?| '{b#,k}' AND id < #",
        "DELETE FROM things WHERE owner = 'User#'",
        "INSERT INTO stores SELECT data, hstore('n', min(id)::text), count(*) FROM things WHERE id <= # GROUP BY data ON CONFLICT (store) DO UPDATE SET found = excluded.found",
        "INSERT INTO stores VALUES ('a=>#, b#=>NULL', 'n=>#', 0)",
        "DELETE FROM stores WHERE store -> 'a' = '#' OR other = 'n=>#'",
        "SELECT owner, count(*) FROM things GROUP BY owner ORDER BY owner",
    ];
    let template = templates.choose(random).expect("there are some");
    Arc::new(script(&numbered(template, random, 1..=5)))
}

#[test]
fn random_transactions_with_keys_of_extensions_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    // Keys that exist, and keys that others refer to.
    let is_refusal = |error: &SqlError| error.state.0.starts_with(b"23");
    run_random_histories_with_refusals(&library, (HISTORIES, 12), transaction, is_refusal, (500, 20));
}
