//! Transactions of sessions in several time zones, under every protocol: random ones end as in a serial run, and what is changed at its
//! place is changed in the zone of its script.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{self, History, PROTOCOLS, after, library, numbered, run_random_histories};
use support::script;
use types::Payload;

const HISTORIES: u64 = 60;

const SCHEMA: [&str; 3] = [
    "CREATE TABLE event (id int PRIMARY KEY, at timestamptz NOT NULL, day date, said text)",
    "CREATE INDEX ON event (at)",
    "CREATE PROCEDURE move(which int) LANGUAGE plpgsql AS $$ BEGIN
        UPDATE event SET at = at + interval '1 day', day = at::date WHERE id = which; END $$",
];

/// Statements of sessions, with small numbers in the place of `#`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let zones = [
        "",
        "SET TIME ZONE 'Europe/Berlin';",
        "SET TIME ZONE 'Asia/Kathmandu';",
        "SET TIME ZONE '<-03>+03';",
    ];
    let templates = [
        "INSERT INTO event VALUES (#, '2026-03-2# 23:30', '2026-03-2#')",
        "UPDATE event SET at = at + interval '1 day' WHERE id = #",
        "UPDATE event SET day = at::date, said = at::text WHERE id = #",
        "UPDATE event SET at = date_trunc('day', at) WHERE id < # AND at::date >= '2026-03-2#'",
        "DELETE FROM event WHERE at::date = '2026-03-2#' AND id = #",
        "CALL move(#)",
        "SELECT id, at::date, to_json(at) FROM event WHERE at < '2026-03-2# 12:00' ORDER BY id",
    ];
    let template = templates.choose(random).expect("there are some");
    let zone = zones.choose(random).expect("there are some");
    let text = [zone, numbered(template, random, 5..=9).as_str()].concat();
    Arc::new(script(&text))
}

#[test]
fn random_transactions_of_several_zones_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    let mut committed = [0; PROTOCOLS.len()];
    run_random_histories(&library, (HISTORIES, 10), transaction, |place, result| {
        committed[place] += usize::from(result.is_ok());
    });
    assert!(committed.iter().all(|count| *count > 300), "{committed:?}");
}

#[test]
fn what_is_changed_at_its_place_is_changed_in_the_zone_of_its_script() {
    let library = library(&SCHEMA);
    let of = |sql: &str| Arc::new(script(sql));
    let initial = after(
        &library,
        [of("INSERT INTO event VALUES (5, '2026-03-28 12:00+00'), (6, '2026-03-28 12:00+00')")],
    );
    let berlin = "SET TIME ZONE 'Europe/Berlin';UPDATE event SET at = at + interval '1 day'";
    // In one batch, so that the second one is made on what the first has left.
    let history: History = vec![
        vec![
            of(&format!("{berlin} WHERE id = 5")),
            of(&format!("{berlin} WHERE id = 5")),
            of("CALL move(6)"),
        ],
        vec![of("UPDATE event SET said = at::text")],
    ];
    for id in &PROTOCOLS {
        let ran = histories::run(id, &library, &initial, &history);
        let shown = format!("{:?}", ran.state);
        let (moved, in_utc) = ("2026-03-30 11:00:00+00", "2026-03-29 12:00:00+00");
        // Protocols that do not take both changes into one batch abort one.
        let once = "2026-03-29 11:00:00+00";
        assert!((shown.contains(moved) || shown.contains(once)) && shown.contains(in_utc), "{id}: {shown}");
    }
}
