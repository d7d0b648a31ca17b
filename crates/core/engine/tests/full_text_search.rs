//! Documents, arrays and JSON with inverted indexes: under every protocol random transactions end as in a serial run, those that look for words
//! beside those that change them.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{library, numbered, run_random_histories_with_refusals};
use support::script;
use types::{Payload, SqlError};

const HISTORIES: u64 = 60;

const SCHEMA: [&str; 6] = [
    "CREATE TABLE posts (
        id integer PRIMARY KEY, title text, body text, tags text[], facts jsonb, hits integer NOT NULL DEFAULT 0,
        search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', coalesce(title, '')), 'A') || to_tsvector('english', coalesce(body, '')))
            STORED)",
    "CREATE INDEX ON posts USING gin (search)",
    "CREATE INDEX ON posts USING gin (tags)",
    "CREATE INDEX ON posts USING gin (facts) WHERE hits < 3",
    "CREATE INDEX ON posts USING gin (to_tsvector('simple', title))",
    "CREATE TABLE asked (query tsquery PRIMARY KEY, words tsvector UNIQUE, found integer)",
];

/// Statements with small numbers in the place of `#`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO posts (id, title, body, tags) VALUES (#, 'Cats and dogs #', 'word#a word#b', '{a,#}')",
        "INSERT INTO posts (id, body, facts) VALUES (#, 'The fat cats ran # times', '{\"k\": #, \"l\": [\"x#\"]}') ON CONFLICT (id) DO UPDATE SET facts = excluded.facts",
        "UPDATE posts SET body = body || ' word#a', tags = tags || '#'::text WHERE id = #",
        "UPDATE posts SET title = 'Elephants #' WHERE search @@ to_tsquery('english', 'word#a | #')",
        "UPDATE posts SET hits = hits + 1 WHERE search @@ websearch_to_tsquery('english', 'cats -word#b')",
        "UPDATE posts SET hits = 0, tags = '{#,b}' WHERE tags && '{#,#}'",
        "UPDATE posts SET facts = jsonb_set(facts, '{k}', '#') WHERE facts @> '{\"k\": #}' AND hits < 3",
        "UPDATE posts SET id = # WHERE id = # AND NOT EXISTS (SELECT FROM posts WHERE id = #)",
        "DELETE FROM posts WHERE to_tsvector('simple', title) @@ 'cats & #'::tsquery",
        "DELETE FROM posts WHERE tags @> '{#,b}'",
        "INSERT INTO asked SELECT q, to_tsvector('word#a word#b'), count(*) FROM posts, plainto_tsquery('english', 'cat #') AS q WHERE search @@ q GROUP BY q",
        "INSERT INTO asked VALUES ('word#a & !#', 'word#:#A', 0) ON CONFLICT (query) DO UPDATE SET found = asked.found + 1",
        "DELETE FROM asked WHERE words @@ 'word#:*'",
        "SELECT id, ts_rank(search, q), ts_headline('english', body, q) FROM posts, to_tsquery('english', 'cat | word#a') AS q WHERE search @@ q ORDER BY 2 DESC, 1",
        "SELECT query, words FROM asked WHERE query > 'word#a'::tsquery OR words < 'word#a:#' ORDER BY query",
    ];
    let template = templates.choose(random).expect("there are some");
    Arc::new(script(&numbered(template, random, 1..=5)))
}

#[test]
fn random_transactions_that_look_for_words_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    // Keys that exist.
    let is_refusal = |error: &SqlError| error.state.0.starts_with(b"23");
    run_random_histories_with_refusals(&library, (HISTORIES, 12), transaction, is_refusal, (500, 20));
}
