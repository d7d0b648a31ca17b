//! Rows of network addresses, strings of bits, times with zones and ranges, which are keys and entries of indexes, too: under every
//! protocol random transactions end as in a serial run.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;
use support::histories::{library, numbered, run_random_histories_with_refusals};
use support::script;
use types::{Payload, SqlError};

const HISTORIES: u64 = 60;

const SCHEMA: [&str; 5] = [
    "CREATE TABLE host (
        net cidr, address inet, up tstzrange, ports int4multirange, flags bit(4) NOT NULL DEFAULT B'0000', more varbit,
        at timetz, card macaddr[], PRIMARY KEY (address))",
    "CREATE UNIQUE INDEX ON host (flags, more)",
    "CREATE INDEX ON host (up)",
    "CREATE INDEX ON host (at) WHERE flags = B'0001'",
    "CREATE TABLE lease (during int4range, of inet REFERENCES host, PRIMARY KEY (during, of))",
];

/// Statements with small numbers in the place of `#`.
fn transaction(random: &mut StdRng) -> Arc<Payload> {
    let templates = [
        "INSERT INTO host (address, flags, more, ports) VALUES ('10.0.0.#/8', #::bit(4), '1', '{[#,9),[20,2#)}')",
        "INSERT INTO host (address, net, more) VALUES ('::#', '2001:db8:#::/48', #::bit(7)) ON CONFLICT (address) DO UPDATE SET at = '0#:00+01'",
        "UPDATE host SET flags = flags | B'0001', more = more || B'1' WHERE address = '10.0.0.#/8'",
        "UPDATE host SET up = tstzrange('2026-01-0#', '2026-02-0#'), card = '{08:00:2b:01:02:0#}' WHERE address << '10.0.0.0/8'",
        "UPDATE host SET ports = ports + int4multirange(int4range(#, 1#)) WHERE ports @> # OR ports IS NULL",
        "UPDATE host SET at = '1#:00-0#' WHERE flags = B'0001' AND at < '12:00+0#'",
        "DELETE FROM host WHERE address = '10.0.0.#/8' AND NOT EXISTS (SELECT FROM lease WHERE of = address)",
        "INSERT INTO lease VALUES ('[#,9]', '10.0.0.#/8')",
        "DELETE FROM lease WHERE during && '[#,#]'",
        "UPDATE lease SET during = during * '[2,7)' WHERE lower(during) = #",
        "SELECT address, up, ports FROM host WHERE up && '[2026-01-0#,)' OR address > '10.0.0.#' ORDER BY address",
    ];
    let template = templates.choose(random).expect("there are some");
    Arc::new(script(&numbered(template, random, 1..=7)))
}

#[test]
fn random_transactions_over_addresses_bits_and_ranges_end_as_in_a_serial_run() {
    let library = library(&SCHEMA);
    // Keys that exist, and references that would lead nowhere.
    let is_refusal = |error: &SqlError| error.state.0.starts_with(b"23");
    run_random_histories_with_refusals(&library, (HISTORIES, 12), transaction, is_refusal, (500, 50));
}
