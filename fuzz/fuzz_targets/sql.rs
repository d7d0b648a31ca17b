//! Any text as a script: every check that the tests hold a statement against holds here too.
#![no_main]

#[path = "../../crates/sql/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::Database;

const SCHEMA: [&str; 5] = [
    "CREATE TABLE account (id bigint PRIMARY KEY, balance numeric(12, 2) NOT NULL CHECK (balance >= 0), owner text, \
     opened date, tags text[], UNIQUE (owner))",
    "CREATE TABLE line (id integer, account bigint REFERENCES account, at timestamp, note varchar(10))",
    "CREATE INDEX line_at ON line (at)",
    "CREATE FUNCTION twice(n numeric) RETURNS numeric LANGUAGE plpgsql AS 'BEGIN RETURN 2 * n; END'",
    "CREATE PROCEDURE pay(a bigint, b bigint, n numeric) LANGUAGE plpgsql AS \
     'BEGIN UPDATE account SET balance = balance - n WHERE id = a; UPDATE account SET balance = balance + n WHERE id = b; END'",
];

fuzz_target!(|sql: &str| {
    let mut database = Database::with(&SCHEMA);
    database
        .run("INSERT INTO account VALUES (1, 10, 'ada', '2026-01-31', '{a,b}'), (2, 0.5, NULL, NULL, NULL)")
        .expect("rows");
    let _ = database.gateway(sql);
});
