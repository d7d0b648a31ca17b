//! What drivers see: tokio-postgres against a gateway in front of a database in memory.

mod fake;

use fake::{Fake, connect, serve_with, started};
use gateway::Access;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use types::Payload;

/// Rows of a simple query as text, and its tags' counts.
async fn simple(client: &Client, sql: &str) -> (Vec<Vec<Option<String>>>, Vec<u64>) {
    let (mut rows, mut counts) = (Vec::new(), Vec::new());
    for message in client.simple_query(sql).await.expect(sql) {
        match message {
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|column| row.get(column).map(ToString::to_string)).collect());
            }
            SimpleQueryMessage::CommandComplete(count) => counts.push(count),
            _ => {}
        }
    }
    (rows, counts)
}

fn code(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.code().code().to_string())
}

/// A value as the bytes of its binary form.
#[derive(Debug, PartialEq)]
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }
    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut bytes::BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    to_sql_checked!();
}

/// `numeric_send(-12345.678)` of PostgreSQL 15.
const NUMERIC: [u8; 14] = [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c];

#[tokio::test(flavor = "multi_thread")]
async fn text_results_are_what_postgresql_prints() {
    let (_, client) = started().await;
    let (rows, counts) = simple(&client, "select every_type").await;
    let row: Vec<&str> = rows[0].iter().map(|value| value.as_deref().expect("no NULL")).collect();
    assert_eq!(row[..7], ["t", "-7", "1099511627776", "-12345.678", "0.1", "naïve\ttext", "short"]);
    assert_eq!(row[7..12], ["2000-01-02 00:00:00+00", "unknown", "-2", "0.1", "1999-12-31"]);
    assert_eq!(
        row[12..15],
        ["2000-01-02 00:00:00.000001", "01:00:00", "1 year 2 mons -3 days +00:00:00.000001"]
    );
    assert_eq!(row[15..17], ["a  ", "\\x00ff"]);
    assert_eq!(row[17..], ["a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0", "{1,NULL}", "{\"a b\",\"NULL\"}"]);
    assert!(rows[1].iter().all(Option::is_none));
    assert_eq!(counts, [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_results_have_the_types_that_are_described() {
    let (_, client) = started().await;
    let statement = client.prepare("select every_type").await.expect("prepared");
    let types: Vec<&str> = statement.columns().iter().map(|column| column.type_().name()).collect();
    assert_eq!(
        types,
        [
            "bool",
            "int4",
            "int8",
            "numeric",
            "float8",
            "text",
            "varchar",
            "timestamptz",
            "text",
            "int2",
            "float4",
            "date",
            "timestamp",
            "time",
            "interval",
            "bpchar",
            "bytea",
            "uuid",
            "_int4",
            "_text"
        ]
    );
    let rows = client.query(&statement, &[]).await.expect("rows");
    let row = &rows[0];
    assert_eq!((row.get::<_, bool>(0), row.get::<_, i32>(1), row.get::<_, i64>(2)), (true, -7, 1 << 40));
    assert_eq!(row.get::<_, Raw>(3).0, NUMERIC);
    assert_eq!(
        (row.get::<_, f64>(4), row.get::<_, &str>(5), row.get::<_, &str>(6)),
        (0.1, "naïve\ttext", "short")
    );
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800 + 86_400);
    assert_eq!((row.get::<_, SystemTime>(7), row.get::<_, &str>(8)), (time, "unknown"));
    assert_eq!((row.get::<_, i16>(9), row.get::<_, f32>(10)), (-2, 0.1));
    assert_eq!(row.get::<_, Raw>(11).0, (-1_i32).to_be_bytes());
    let timestamp = SystemTime::UNIX_EPOCH + Duration::from_micros(946_771_200_000_001);
    assert_eq!(row.get::<_, SystemTime>(12), timestamp);
    assert_eq!(row.get::<_, Raw>(13).0, 3_600_000_000_i64.to_be_bytes());
    // SELECT encode(interval_send('1 year 2 mons -3 days 00:00:00.000001'), 'hex') on PostgreSQL 15.
    assert_eq!(row.get::<_, Raw>(14).0, [0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 14]);
    assert_eq!((row.get::<_, &str>(15), row.get::<_, &[u8]>(16)), ("a  ", &[0, 255][..]));
    assert_eq!(row.get::<_, Raw>(17).0, [0xa0; 16]);
    assert_eq!(row.get::<_, Vec<Option<i32>>>(18), [Some(1), None]);
    assert_eq!(row.get::<_, Vec<&str>>(19), ["a b", "NULL"]);
    assert_eq!(rows[1].get::<_, Option<i64>>(2), None);
    assert_eq!(rows[1].get::<_, Option<Vec<i32>>>(18), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_parameters_of_the_later_types_come_back_as_they_were() {
    let (_, client) = started().await;
    let types =
        [Type::INT2, Type::FLOAT4, Type::DATE, Type::TIMESTAMP, Type::TIME, Type::INTERVAL, Type::BPCHAR];
    let statement =
        client.prepare_typed("select $1, $2, $3, $4, $5, $6, $7", &types).await.expect("prepared");
    let raw = |bytes: &[u8]| Raw(bytes.to_vec());
    let (date, time) = (raw(&9_820_i32.to_be_bytes()), raw(&1_i64.to_be_bytes()));
    let interval = raw(&[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff]);
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let parameters: [&(dyn ToSql + Sync); 7] = [&-3_i16, &0.25_f32, &date, &at, &time, &interval, &"ab "];
    let row = client.query_one(&statement, &parameters).await.expect("a row");
    assert_eq!((row.get::<_, i16>(0), row.get::<_, f32>(1)), (-3, 0.25));
    assert_eq!((row.get::<_, Raw>(2), row.get::<_, SystemTime>(3)), (date, at));
    assert_eq!((row.get::<_, Raw>(4), row.get::<_, Raw>(5), row.get::<_, &str>(6)), (time, interval, "ab "));

    let types = [Type::BYTEA, Type::UUID, Type::INT4_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY];
    let statement = client.prepare_typed("select $1, $2, $3, $4, $5", &types).await.expect("prepared");
    let uuid = raw(&[7; 16]);
    let numbers = vec![Some(1_i32), None, Some(-5)];
    let texts = vec!["a", "", "NULL"];
    let none: Vec<i64> = Vec::new();
    let bytes: &[u8] = &[0, 1, 255];
    let row = client.query_one(&statement, &[&bytes, &uuid, &numbers, &texts, &none]).await.expect("a row");
    assert_eq!((row.get::<_, &[u8]>(0), row.get::<_, Raw>(1)), (bytes, uuid));
    assert_eq!(row.get::<_, Vec<Option<i32>>>(2), numbers);
    assert_eq!((row.get::<_, Vec<&str>>(3), row.get::<_, Vec<i64>>(4)), (texts, none));
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_parameters_arrive_as_values_of_their_types() {
    let (_, client) = started().await;
    let types =
        [Type::BOOL, Type::INT2, Type::INT8, Type::NUMERIC, Type::FLOAT8, Type::TEXT, Type::TIMESTAMPTZ];
    let sql = "select $1, $2, $3, $4, $5, $6, $7";
    let statement = client.prepare_typed(sql, &types).await.expect("prepared");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let numeric = Raw(NUMERIC.to_vec());
    let parameters: [&(dyn ToSql + Sync); 7] = [&true, &3_i16, &(-5_i64), &numeric, &1.5_f64, &"text", &time];
    let row = client.query_one(&statement, &parameters).await.expect("a row");
    assert_eq!((row.get::<_, bool>(0), row.get::<_, i16>(1), row.get::<_, i64>(2)), (true, 3, -5));
    assert_eq!((row.get::<_, Raw>(3), row.get::<_, f64>(4)), (numeric, 1.5));
    assert_eq!((row.get::<_, &str>(5), row.get::<_, SystemTime>(6)), ("text", time));

    let unknown = client.prepare("select $1").await.expect("prepared");
    assert_eq!(unknown.params()[0].name(), "text");
    assert_eq!(client.query_one(&unknown, &[&"as text"]).await.expect("a row").get::<_, &str>(0), "as text");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_state_detail_hint_and_position() {
    let (fake, client) = started().await;
    let error = client.simple_query("select 1; select missing").await.expect_err("no such column");
    let error = error.as_db_error().expect("from the server");
    assert_eq!((error.code().code(), error.message()), ("42703", "column \"missing\" does not exist"));
    assert_eq!(error.hint(), Some("name another"));
    // Position 8 of the second statement, which starts at character 11.
    assert_eq!(error.position(), Some(&tokio_postgres::error::ErrorPosition::Original(18)));

    let error = client.execute("call fail()", &[]).await.expect_err("aborted");
    let error = error.as_db_error().expect("from the server");
    assert_eq!((error.code().code(), error.detail()), ("23514", Some("Failing row contains (1).")));

    let before = fake.payloads.lock().expect("no panic").len();
    assert_eq!(
        code(&client.simple_query("insert into t values (1); selec 1").await.expect_err("syntax")),
        "42601"
    );
    assert_eq!(fake.payloads.lock().expect("no panic").len(), before, "a syntax error is not ordered");
    assert_eq!(code(&client.query("select 1; select 2", &[]).await.expect_err("two statements")), "42601");
    // The session goes on.
    assert_eq!(simple(&client, "select series 3").await.0.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_string_with_a_write_is_one_transaction() {
    let (fake, client) = started().await;
    let sql = "insert into t values (1), (2); select 1; update t set a = 1";
    let (rows, counts) = simple(&client, sql).await;
    assert_eq!((rows.len(), counts), (1, vec![2, 1, 1]));
    let scripts = |fake: &Fake| -> Vec<String> {
        let payloads = fake.payloads.lock().expect("no panic");
        let scripts = payloads.iter().filter_map(|payload| match payload {
            Payload::Script { sql, .. } => Some(sql.clone()),
            _ => None,
        });
        scripts.collect()
    };
    assert_eq!(scripts(&fake), [sql]);
    simple(&client, "select 1; select 2").await;
    assert_eq!(scripts(&fake).len(), 1, "reads are no transactions");
    simple(&client, "BEGIN; insert into t values (1); delete from t; COMMIT;").await;
    assert_eq!(scripts(&fake)[1], "insert into t values (1); delete from t");
    simple(&client, "set application_name = 'x'; insert into t values (1); select version()").await;
    assert_eq!(scripts(&fake)[2], "insert into t values (1)");
    let affected = client.execute("insert into t values (1), (2), (3)", &[]).await.expect("a write");
    assert_eq!(affected, 3);
    let row = client.query_one("call out(1)", &[]).await.expect("a row of OUT parameters");
    assert_eq!(row.get::<_, i32>(0), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_answered_by_the_session() {
    let (fake, client) = started().await;
    assert_eq!(simple(&client, "SHOW application_name").await.0, [[Some("tests".to_string())]]);
    simple(
        &client,
        "SET statement_timeout TO '100ms'; SET client_encoding TO 'UTF8'; SET extra_float_digits = 3",
    )
    .await;
    assert_eq!(code(&client.simple_query("select slow").await.expect_err("too slow")), "57014");
    simple(&client, "RESET statement_timeout; DISCARD ALL").await;
    assert_eq!(
        simple(&client, "SHOW transaction isolation level").await.0,
        [[Some("serializable".to_string())]]
    );
    assert!(simple(&client, "SHOW ALL").await.0.len() > 20);
    assert_eq!(code(&client.simple_query("SHOW nonsense").await.expect_err("unknown")), "42704");
    assert_eq!(
        client.query_one("SHOW server_version_num", &[]).await.expect("a row").get::<_, &str>(0),
        "150000"
    );
    assert!(fake.payloads.lock().expect("no panic").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_give_as_many_rows_as_asked() {
    let (_, client) = started().await;
    let statement = client.prepare("select series 5").await.expect("prepared");
    // tokio-postgres binds portals in transactions only; its statements are enough to see the whole result.
    assert_eq!(client.query(&statement, &[]).await.expect("rows").len(), 5);
    assert!(client.query("", &[]).await.expect("an empty query").is_empty());
    let messages = client.simple_query(" ; -- nothing").await.expect("an empty query");
    assert!(matches!(messages.as_slice(), [SimpleQueryMessage::CommandComplete(0)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn results_take_no_more_memory_than_all_have_together() {
    let (fake, mut client) = started().await;
    // 72 megabytes, where all have 64: the rows of a step of a block are in memory at once.
    client.batch_execute("BEGIN").await.expect("a block");
    let error = client.simple_query("select series 1000000").await.expect_err("too many rows");
    assert_eq!(code(&error), "53200");
    client.batch_execute("ROLLBACK").await.expect("the end");
    // Those of another query are not, but what waits for the client takes something.
    assert_eq!(simple(&client, "select series 1000000").await.1, [1_000_000]);
    fake.memory.set_most(100_000);
    let error = client.simple_query("select series 1000000").await.expect_err("no memory at all");
    assert_eq!(code(&error), "53200");
    fake.memory.set_most(64 << 20);
    assert_eq!(simple(&client, "select 1").await.1, [1]);
    // A suspended portal keeps what it has not given.
    let block = client.transaction().await.expect("a block");
    let portal = block.bind("select series 10000", &[]).await.expect("bound");
    assert_eq!(block.query_portal(&portal, 10).await.expect("some rows").len(), 10);
    assert!(fake.memory.taken() > 500_000, "{}", fake.memory.taken());
    block.rollback().await.expect("the end");
    assert_eq!(fake.memory.taken(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_survive_a_change_of_the_catalog() {
    let (_, client) = started().await;
    let statement = client.prepare("select series 2").await.expect("prepared");
    let catalogue = client.prepare("select count(*) from pg_catalog.pg_tables where schemaname = $1").await;
    let catalogue = catalogue.expect("prepared");
    let tables = client.query_one(&catalogue, &[&"public"]).await.expect("a row").get::<_, i64>(0);
    simple(&client, "create table fresh (a int primary key)").await;
    assert_eq!(client.query(&statement, &[]).await.expect("rows").len(), 2);
    let row = client.query_one(&catalogue, &[&"public"]).await.expect("a row");
    assert_eq!(row.get::<_, i64>(0), tables + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_the_wait() {
    let (fake, client) = started().await;
    let cancel = client.cancel_token();
    let started = std::time::Instant::now();
    let waiting = tokio::spawn(async move { (client.simple_query("select slow").await.map(drop), client) });
    // What is cancelled before it has begun is not.
    while !waiting.is_finished() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel_query(NoTls).await.expect("sent");
    }
    let (result, client) = waiting.await.expect("no panic");
    assert_eq!(code(&result.expect_err("cancelled")), "57014");
    // The last request may come late, and meets whatever runs then, as in PostgreSQL.
    while let Err(error) = client.simple_query("select 1").await {
        assert!(code(&error) == "57014" && started.elapsed() < Duration::from_secs(50), "{error}");
    }
    // Not only the wait has ended, but also the work, which takes a minute when nobody interrupts it.
    while fake.interrupted.load(Ordering::Relaxed) == 0 {
        assert!(started.elapsed() < Duration::from_secs(50), "the query goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_sleeps_until_it_is_cancelled() {
    let (fake, client) = started().await;
    let row = client.query_one("SELECT pg_sleep(0.01)", &[]).await.expect("a row");
    assert_eq!(row.columns()[0].name(), "pg_sleep");
    simple(&client, "BEGIN; SELECT * FROM pg_catalog.pg_sleep('0'); COMMIT").await;
    assert_eq!(code(&client.simple_query("SELECT pg_sleep('x')").await.expect_err("no number")), "22P02");
    simple(&client, "SET statement_timeout = '50ms'").await;
    assert_eq!(code(&client.simple_query("SELECT pg_sleep(1000)").await.expect_err("too long")), "57014");
    simple(&client, "RESET statement_timeout").await;
    let cancel = client.cancel_token();
    let waiting = tokio::spawn(async move { client.simple_query("SELECT pg_sleep(1000)").await.map(drop) });
    while !waiting.is_finished() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel_query(NoTls).await.expect("sent");
    }
    assert_eq!(code(&waiting.await.expect("no panic").expect_err("cancelled")), "57014");
    assert!(fake.payloads.lock().expect("no panic").is_empty(), "nobody else waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_statement_on_temporary_tables_keeps_nobody_waiting() {
    let (fake, client) = started().await;
    let token = client.cancel_token();
    let cancel = async {
        // What is cancelled before it has begun is not.
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            token.cancel_query(NoTls).await.expect("sent");
        }
    };
    let slow = tokio::select! {
        slow = client.simple_query("temp slow") => slow,
        () = cancel => unreachable!("it goes on until it is dropped"),
    };
    assert_eq!(code(&slow.expect_err("cancelled")), "57014");
    assert_eq!(code(&client.simple_query("select 1").await.expect_err("it still runs")), "55006");
    fake.released.store(true, Ordering::SeqCst);
    let start = std::time::Instant::now();
    while let Err(error) = client.simple_query("select 1").await {
        assert!(code(&error) == "55006" && start.elapsed() < Duration::from_secs(50), "{error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_beyond_the_limit_are_refused() {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve_with(fake, Access { connections_max: 20, ..Access::default() }).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(connect(port).await);
    }
    let config = format!("host=127.0.0.1 port={port} user=ada");
    let error = tokio_postgres::connect(&config, NoTls).await.map(drop).expect_err("too many");
    assert_eq!(code(&error), "53300");
    clients.pop();
    let start = std::time::Instant::now();
    while let Err(error) = tokio_postgres::connect(&config, NoTls).await.map(drop) {
        assert!(code(&error) == "53300" && start.elapsed() < Duration::from_secs(50), "{error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
