//! What queries of the catalogue show to one session alone: what its open block has made, and its temporary tables.

mod fake;
mod talk;

use fake::{Fake, connect, serve};
use std::sync::Arc;
use talk::{Talk, execute, message};
use tokio_postgres::{Client, SimpleQueryMessage};

async fn started() -> (Client, Client) {
    let (port, _) = serve(Arc::new(Fake::default())).await;
    (connect(port).await, connect(port).await)
}

/// The rows of the last query, with spaces and commas.
async fn asked(client: &Client, sql: &str) -> String {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")) {
        if let SimpleQueryMessage::Row(row) = message {
            let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    rows.join(", ")
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

async fn code(client: &Client, sql: &str) -> String {
    let error = client.batch_execute(sql).await.expect_err(sql);
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.code().code().to_string())
}

const MADE: &str = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'made%' ORDER BY 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_block_sees_the_tables_that_it_makes_and_drops() {
    let (client, other) = started().await;
    let prepared = client.prepare(MADE).await.expect("a query of the catalogue");
    let columns = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'made'";
    run(&client, "BEGIN; CREATE TABLE made (a int)").await;
    assert_eq!(asked(&client, MADE).await, "made");
    let rows = client.query(&prepared, &[]).await.expect("bound before the table was made");
    assert_eq!(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["made"]);
    assert_eq!(asked(&client, columns).await, "1");
    let oid = asked(&client, "SELECT 'made'::regclass::oid").await;
    assert_eq!(asked(&client, &format!("DECLARE c CURSOR FOR {MADE}; FETCH c")).await, "made");
    assert_eq!(asked(&other, MADE).await, "");
    run(&client, "SAVEPOINT a; CREATE TABLE made_too (a int)").await;
    assert_eq!(asked(&client, MADE).await, "made, made_too");
    run(&client, "ROLLBACK TO a; DROP TABLE accounts").await;
    assert_eq!(asked(&client, MADE).await, "made");
    assert_eq!(asked(&client, "SELECT to_regclass('accounts')").await, "NULL");
    assert_eq!(code(&client, "SELECT 'accounts'::regclass").await, "42P01");
    run(&client, "ROLLBACK TO a; COMMIT").await;
    assert_eq!(asked(&other, MADE).await, "made");
    assert_eq!(asked(&client, "SELECT 'made'::regclass::oid").await, oid, "before and after COMMIT");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_open_blocks_do_not_see_each_other() {
    let (one, two) = started().await;
    // Both count the changes of their schemas from the same number.
    run(&one, "BEGIN; CREATE TABLE made_by_one (a int)").await;
    run(&two, "BEGIN; CREATE TABLE made_by_two (a int)").await;
    for _ in 0..3 {
        assert_eq!(asked(&one, MADE).await, "made_by_one");
        assert_eq!(asked(&two, MADE).await, "made_by_two");
    }
    run(&one, "ROLLBACK; BEGIN; CREATE TABLE made_again (a int)").await;
    assert_eq!(asked(&one, MADE).await, "made_again");
    assert_eq!(asked(&two, MADE).await, "made_by_two");
    run(&two, "ROLLBACK").await;
    assert_eq!(asked(&two, MADE).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_knows_the_types_that_it_makes() {
    let (client, other) = started().await;
    run(&client, "BEGIN; CREATE TYPE pair AS (a int)").await;
    let query = "SELECT t.oid FROM pg_type t WHERE t.typname = 'pair'";
    assert!(asked(&client, query).await.parse::<u32>().is_ok(), "it has a number");
    assert_eq!(asked(&client, "SELECT 'pair'::regtype::text").await, "pair");
    assert_eq!(code(&other, "SELECT 'pair'::regtype").await, "42704");
    run(&client, "ROLLBACK").await;
    assert_eq!(code(&client, "SELECT 'pair'::regtype").await, "42704");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_may_be_of_a_type_that_the_block_makes() {
    let (port, _) = serve(Arc::new(Fake::default())).await;
    let mut talk = Talk::start(port).await;
    talk.check(&[("BEGIN; create type pair as (a int)", "BEGIN, CREATE TYPE, T")]).await;
    // What pg_type shows of the first type of a ledger.
    let parse = [&b"\0select $1\0\0\x01"[..], &1_500_000_002_u32.to_be_bytes()].concat();
    let value = b"\0\0\0\0\0\x01\0\0\0\x03(7)\0\0";
    let messages =
        [message(b'P', &parse), message(b'B', value), message(b'D', b"P\0"), execute(0), message(b'S', b"")];
    talk.send(&messages).await;
    assert_eq!(talk.answer().await, "row, SELECT 1, T");
    talk.check(&[("ROLLBACK", "ROLLBACK, I")]).await;
    talk.send(&messages).await;
    assert_eq!(talk.answer().await, "error 42704, I", "nothing is left of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_tables_are_shown_to_their_session() {
    let (client, other) = started().await;
    let facts = "SELECT relpersistence, relnamespace = pg_my_temp_schema(), pg_table_is_visible(oid) FROM pg_class \
                 WHERE relname = 'made'";
    assert_eq!(asked(&client, "SELECT pg_my_temp_schema()").await, "0");
    run(&client, "CREATE TEMP TABLE made (a int)").await;
    assert_eq!(asked(&client, facts).await, "t t t");
    let kind = "SELECT table_type FROM information_schema.tables WHERE table_name = 'made'";
    assert_eq!(asked(&client, kind).await, "LOCAL TEMPORARY");
    assert_eq!(asked(&client, "SELECT 'made'::regclass = 'pg_temp.made'::regclass").await, "t");
    assert_eq!((asked(&other, facts).await, asked(&other, MADE).await), Default::default());
    run(&client, "BEGIN; CREATE TEMP TABLE made_in_block (a int)").await;
    assert_eq!(asked(&client, MADE).await, "made, made_in_block");
    run(&client, "ROLLBACK").await;
    assert_eq!(asked(&client, MADE).await, "made");
    run(&client, "DISCARD TEMP").await;
    assert_eq!(asked(&client, MADE).await, "");
    assert_eq!(asked(&client, "SELECT pg_my_temp_schema()").await, "0");
}
