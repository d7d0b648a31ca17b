//! COPY FROM STDIN against a gateway in front of a database in memory.

mod fake;
mod talk;

use fake::started_at;
use futures::SinkExt;
use std::pin::pin;
use std::sync::atomic::Ordering;
use talk::{Talk, message};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use types::{PackedRows, Payload, SessionStep, Value};

fn code(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.code().code().to_string())
}

async fn copy(client: &Client, sql: &str, data: impl AsRef<[u8]>) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(sql).await?;
    let mut sink = Box::pin(sink);
    for chunk in data.as_ref().chunks(50_000) {
        sink.send(bytes::Bytes::copy_from_slice(chunk)).await?;
    }
    sink.as_mut().finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_becomes_chunks_of_rows() {
    let (fake, client, _) = started_at().await;
    let data: String = (0..20_000).map(|n| format!("{n}\towner {n}\t{n}.25\t\\N\n")).collect();
    let count =
        copy(&client, "COPY accounts (id, owner, balance, active) FROM STDIN", &data).await.expect("copied");
    assert_eq!(count, 20_000);
    let mut rows = fake.rows.lock().expect("no panic").clone();
    rows.sort_by_key(|row| format!("{:?}", row[0]).len());
    assert_eq!(rows.len(), 20_000);
    assert!(rows.iter().all(|row| row.len() == 4 && row[3].is_null()));
    let payloads = fake.payloads.lock().expect("no panic").clone();
    assert!(payloads.len() > 5, "{} chunks", payloads.len());
    for payload in &payloads {
        let bytes = types::encode(payload).len();
        assert!(bytes < types::limits::TRANSACTION_BYTES_MAX, "{bytes}");
    }
    let count =
        copy(&client, "COPY \"Log\" FROM STDIN WITH (FORMAT csv, HEADER)", "line\n\"a,\nb\"\nlast").await;
    assert_eq!(count.expect("copied"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_errors_name_the_line_and_count_the_rows() {
    let (fake, client, _) = started_at().await;
    let error =
        copy(&client, "COPY accounts (id, owner) FROM STDIN", "1\ta\nx\tb\n").await.expect_err("no number");
    let error = error.as_db_error().expect("from the server");
    assert_eq!(
        (error.code().code(), error.where_()),
        ("22P02", Some("COPY accounts, line 2, column id: \"x\""))
    );
    assert!(error.detail().expect("a detail").contains("0 rows"));
    for (data, message) in
        [("1\n", "missing data for column \"owner\""), ("1\ta\tb\n", "extra data after last expected column")]
    {
        let error = copy(&client, "COPY accounts (id, owner) FROM STDIN", data).await.expect_err("bad data");
        let error = error.as_db_error().expect("from the server");
        assert_eq!((error.code().code(), error.message()), ("22P04", message));
    }
    fake.payloads.lock().expect("no panic").clear();
    fake.failing_insert.store(2, Ordering::SeqCst);
    let data: String = (0..20_000).map(|n| format!("{n}\towner {n}\n")).collect();
    let error = copy(&client, "COPY accounts (id, owner) FROM STDIN", &data).await.expect_err("a duplicate");
    let error = error.as_db_error().expect("from the server");
    assert_eq!(error.code().code(), "23505");
    let rows = fake.rows.lock().expect("no panic").len();
    assert!(error.detail().expect("a detail").contains(&format!("{rows} rows")), "{:?}", error.detail());
    assert_eq!(code(&copy(&client, "COPY nothing FROM STDIN", "").await.expect_err("no table")), "42P01");
    client.batch_execute("select 1").await.expect("the session goes on");
}

/// Rows of `accounts (id, owner)` as a driver sends them in binary.
async fn copy_binary(client: &Client, sql: &str, rows: i64) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(sql).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT8, Type::VARCHAR]));
    for id in 0..rows {
        let owner = (id % 2 == 0).then(|| format!("owner {id}"));
        let row: [&(dyn ToSql + Sync); 2] = [&id, &owner];
        writer.as_mut().write(&row).await?;
    }
    writer.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_data_becomes_chunks_of_rows() {
    let (fake, client, _) = started_at().await;
    for (round, sql) in [
        "COPY accounts (id, owner) FROM STDIN (FORMAT binary)",
        "COPY accounts (id, owner) FROM STDIN WITH BINARY",
        "COPY BINARY accounts (id, owner) FROM STDIN",
        // As pgx says it.
        "copy \"accounts\" ( \"id\", \"owner\" ) from stdin binary;",
    ]
    .into_iter()
    .enumerate()
    {
        let count = if round == 0 { 20_000 } else { 3 };
        fake.rows.lock().expect("no panic").clear();
        assert_eq!(copy_binary(&client, sql, count).await.expect(sql), count as u64, "{sql}");
        let mut rows = fake.rows.lock().expect("no panic").clone();
        rows.sort_by_key(|row| if let Value::BigInt(id) = row[0] { id } else { -1 });
        let expected = (0..count).map(|id| {
            let owner = if id % 2 == 0 { Value::text(format!("owner {id}")) } else { Value::Null };
            vec![Value::BigInt(id), owner]
        });
        assert!(rows.into_iter().eq(expected), "{sql}");
    }
    let payloads = fake.payloads.lock().expect("no panic").clone();
    assert!(payloads.len() > 5, "{} chunks", payloads.len());
    for payload in &payloads {
        let bytes = types::encode(payload).len();
        assert!(bytes < types::limits::TRANSACTION_BYTES_MAX, "{bytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_binary_data_is_named_and_the_session_goes_on() {
    let (fake, client, _) = started_at().await;
    let sql = "COPY accounts (id, owner) FROM STDIN BINARY";
    let head = &b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..];
    let row = &b"\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x03ada"[..];
    let short = &b"\0\x02\0\0\0\x02\0\x08\0\0\0\x03ada"[..];
    for (data, code, message, context) in [
        (b"1\tada\n".to_vec(), "22P04", "COPY file signature not recognized", None),
        (
            [head, row, b"\0\x01"].concat(),
            "22P04",
            "row field count is 1, expected 2",
            Some("COPY accounts, line 2"),
        ),
        (
            [head, row, short].concat(),
            "22P03",
            "incorrect binary data format",
            Some("COPY accounts, line 2, column id"),
        ),
        (
            [head, row, &row[..20]].concat(),
            "22P04",
            "unexpected EOF in COPY data",
            Some("COPY accounts, line 2, column owner"),
        ),
    ] {
        let error = copy(&client, sql, &data).await.expect_err(message);
        let error = error.as_db_error().expect("from the server");
        assert_eq!((error.code().code(), error.message(), error.where_()), (code, message, context));
        assert!(error.detail().expect("a detail").contains("0 rows"));
    }
    for (options, code) in [
        ("(FORMAT binary, DELIMITER ',')", "42601"),
        ("(FORMAT binary, NULL 'x')", "42601"),
        ("(FORMAT binary, HEADER)", "0A000"),
        ("(FORMAT binary, QUOTE '\"')", "0A000"),
        ("BINARY CSV", "42601"),
    ] {
        let error = copy(&client, &format!("COPY accounts FROM STDIN {options}"), "").await;
        assert_eq!(self::code(&error.expect_err(options)), code, "{options}");
    }
    fake.rows.lock().expect("no panic").clear();
    assert_eq!(copy(&client, sql, [head, row].concat()).await.expect("the session goes on"), 1);
    assert_eq!(*fake.rows.lock().expect("no panic"), [[Value::BigInt(7), Value::text("ada")]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_data_in_a_block_is_a_step_of_it() {
    let (fake, _, port) = started_at().await;
    let mut talk = Talk::start(port).await;
    talk.check(&[("BEGIN", "BEGIN, T")]).await;
    talk.send(&[message(b'Q', b"COPY accounts (id, owner) FROM STDIN BINARY\0")]).await;
    // Everything is in binary, each column too.
    assert_eq!(talk.read().await, Some((b'G', vec![1, 0, 2, 0, 1, 0, 1])));
    let data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x03ada\xff\xff";
    talk.send(&data.iter().map(|byte| message(b'd', &[*byte])).collect::<Vec<_>>()).await;
    talk.send(&[message(b'c', b"")]).await;
    assert_eq!(talk.answer().await, "COPY 1, T");
    assert_eq!(talk.query("COMMIT").await, "entente.last_height=8, COMMIT, I");
    let payloads = fake.payloads.lock().expect("no panic").clone();
    let [Payload::Session { steps, .. }] = payloads.as_slice() else { panic!("{payloads:?}") };
    let rows = PackedRows::pack([vec![Value::BigInt(7), Value::text("ada")]]).expect("rows");
    let columns = vec!["id".to_string(), "owner".to_string()];
    assert_eq!(*steps, [SessionStep::Insert { table: "accounts".to_string(), columns, rows }]);
}
