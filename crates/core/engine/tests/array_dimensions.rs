//! Arrays of several dimensions in rows, keys and indexes: under every protocol random transactions end as in a serial run.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{library, numbered, run_random_histories_with_refusals};
use support::script;
use types::{Payload, SqlError, SqlState};

const HISTORIES: u64 = 60;

const SCHEMA: [&str; 5] = [
    "CREATE TABLE board (id integer PRIMARY KEY, cells integer[][] DEFAULT '{{1,2},{3,4}}', names text[], hits integer NOT NULL DEFAULT 0)",
    "CREATE INDEX ON board (cells)",
    "CREATE INDEX ON board USING gin (names)",
    "CREATE TABLE found (cells integer[] PRIMARY KEY, other integer[] UNIQUE, n integer)",
    "CREATE FUNCTION turned(cells integer[]) RETURNS integer[] LANGUAGE plpgsql AS $$
     DECLARE
         line integer[];
         turned integer[];
     BEGIN
         FOREACH line SLICE 1 IN ARRAY cells LOOP
             turned := ARRAY[line] || turned;
         END LOOP;
         RETURN turned;
     END $$",
];

/// Statements with small numbers in the place of `#`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO board (id, names) VALUES (#, '{{a,#},{b,#}}')",
        "INSERT INTO board VALUES (#, '[0:1]={#,#}', '{{x}}') ON CONFLICT (id) DO UPDATE SET cells = excluded.cells",
        "INSERT INTO board (id) VALUES (#) ON CONFLICT (id) DO UPDATE SET cells[1][2] = board.hits + #",
        "UPDATE board SET cells[#][1] = #, hits = hits + 1 WHERE id = #",
        "UPDATE board SET cells[0] = #, names[#] = 'n#' WHERE array_ndims(cells) = 1",
        "UPDATE board SET cells[1:2][1] = '{#,#}' WHERE cells > '{{1,2},{#,4}}'",
        "UPDATE board SET cells = turned(cells) WHERE id <> #",
        "UPDATE board SET names = names || '{{c,#}}' WHERE names @> '{a}'",
        "DELETE FROM board WHERE cells = '{{1,2},{#,#}}'",
        "DELETE FROM board WHERE names && '{#,x}' AND hits > #",
        "INSERT INTO found SELECT array_agg(cells), NULL, count(*) FROM board WHERE array_dims(cells) = '[1:2][1:2]' HAVING count(*) > 0",
        "INSERT INTO found VALUES ('{{1,#}}', '{1,#}', 0) ON CONFLICT (cells) DO UPDATE SET n = found.n + 1",
        "INSERT INTO found VALUES ('{1,#}', '{{1,#}}', 0) ON CONFLICT (other) DO UPDATE SET n = found.n + #",
        "UPDATE found SET cells = '{{#},{#}}' WHERE cells = '{{1,#}}'",
        "DELETE FROM found WHERE cells < '{1,#}' OR other = '{{1,#}}'",
        "SELECT id, cells, cells[2][1], to_jsonb(names) FROM board WHERE cells >= '{{1,#}}' ORDER BY cells DESC, id",
        "SELECT cells, other FROM found ORDER BY cells LIMIT #",
    ];
    let template = templates.choose(random).expect("there are some");
    Arc::new(script(&numbered(template, random, 1..=4)))
}

#[test]
fn random_transactions_over_arrays_of_several_dimensions_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    // Keys that exist; subscripts outside of several dimensions, arrays that do not go together, NULL that is gone through.
    let is_refusal = |error: &SqlError| {
        error.state.0.starts_with(b"23")
            || [SqlState::ARRAY_SUBSCRIPT_ERROR, SqlState::NULL_VALUE_NOT_ALLOWED].contains(&error.state)
    };
    run_random_histories_with_refusals(&library, (HISTORIES, 12), transaction, is_refusal, (300, 100));
}
