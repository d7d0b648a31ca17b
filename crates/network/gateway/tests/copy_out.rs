//! COPY TO STDOUT against a gateway in front of a database in memory. What is expected, byte for byte, PostgreSQL 15 has
//! written for the same rows (`SET timezone = 'UTC'`).

mod fake;

use fake::started_at;
use futures::{StreamExt, pin_mut};
use std::process::Command;
use std::sync::atomic::Ordering;
use tokio_postgres::{Client, NoTls};

/// The messages of a COPY, each as bytes.
async fn copy(client: &Client, sql: &str) -> Result<Vec<Vec<u8>>, tokio_postgres::Error> {
    let stream = client.copy_out(sql).await?;
    pin_mut!(stream);
    let mut messages = Vec::new();
    while let Some(message) = stream.next().await {
        messages.push(message?.to_vec());
    }
    Ok(messages)
}

async fn text(client: &Client, sql: &str) -> String {
    let messages = copy(client, sql).await.expect(sql);
    // A row is a message: drivers rely on it.
    assert!(messages.iter().all(|message| message.ends_with(b"\n")), "{sql}");
    String::from_utf8(messages.concat()).expect("text")
}

fn state(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.code().code().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_written_as_postgresql_writes_them() {
    let (_, client, _) = started_at().await;
    assert_eq!(
        text(&client, "COPY (select every_type) TO STDOUT").await,
        "t\t-7\t1099511627776\t-12345.678\t0.1\tnaïve\\ttext\tshort\t2000-01-02 00:00:00+00\tunknown\t-2\t0.1\t1999-12-31\t\
         2000-01-02 00:00:00.000001\t01:00:00\t1 year 2 mons -3 days +00:00:00.000001\ta  \t\\\\x00ff\t\
         a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0\t{1,NULL}\t{\"a b\",\"NULL\"}\n\
         \\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n"
    );
    assert_eq!(
        text(&client, "COPY (select every_type) TO STDOUT (FORMAT csv, HEADER)").await,
        "b,i,l,n,d,t,v,z,u,s,r,a,p,m,e,c,y,q,ia,ta\n\
         t,-7,1099511627776,-12345.678,0.1,naïve\ttext,short,2000-01-02 00:00:00+00,unknown,-2,0.1,1999-12-31,\
         2000-01-02 00:00:00.000001,01:00:00,1 year 2 mons -3 days +00:00:00.000001,a  ,\\x00ff,\
         a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0,\"{1,NULL}\",\"{\"\"a b\"\",\"\"NULL\"\"}\"\n\
         ,,,,,,,,,,,,,,,,,,,\n"
    );
    assert_eq!(
        text(
            &client,
            "COPY (select every_type) TO STDOUT (FORMAT csv, FORCE_QUOTE *, NULL 'x', DELIMITER ';')"
        )
        .await,
        "\"t\";\"-7\";\"1099511627776\";\"-12345.678\";\"0.1\";\"naïve\ttext\";\"short\";\"2000-01-02 00:00:00+00\";\
         \"unknown\";\"-2\";\"0.1\";\"1999-12-31\";\"2000-01-02 00:00:00.000001\";\"01:00:00\";\
         \"1 year 2 mons -3 days +00:00:00.000001\";\"a  \";\"\\x00ff\";\"a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0\";\
         \"{1,NULL}\";\"{\"\"a b\"\",\"\"NULL\"\"}\"\n\
         x;x;x;x;x;x;x;x;x;x;x;x;x;x;x;x;x;x;x;x\n"
    );
    let binary = copy(&client, "COPY (select every_type) TO STDOUT (FORMAT binary)").await.expect("binary");
    // Head and first row come together, the end by itself.
    assert_eq!(binary.len(), 3);
    let hexadecimal: String = binary.concat().iter().map(|byte| format!("{byte:02x}")).collect();
    let nulls = "ff".repeat(4 * 20);
    assert_eq!(
        hexadecimal,
        format!(
            "5047434f50590aff0d0a0000000000000000000014000000010100000004fffffff90000000800000100000000000000000e0003000140\
             000003000109291a7c000000083fb999999999999a0000000b6e61c3af766509746578740000000573686f727400000008000000141dd7\
             600000000007756e6b6e6f776e00000002fffe000000043dcccccd00000004ffffffff00000008000000141dd760010000000800000000\
             d693a400000000100000000000000001fffffffd0000000e000000036120200000000200ff00000010a0a0a0a0a0a0a0a0a0a0a0a0a0a0\
             a0a00000002000000001000000010000001700000002000000010000000400000001ffffffff0000002300000001000000000000001900\
             0000020000000100000003612062000000044e554c4c0014{nulls}ffff"
        )
    );
    let empty = copy(&client, "COPY (select series 0) TO STDOUT (FORMAT binary)").await.expect("binary");
    assert_eq!(empty, [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\xff\xff".to_vec()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_copied_wherever_it_runs() {
    let (fake, client, _) = started_at().await;
    assert_eq!(text(&client, "COPY (select series 3) TO STDOUT").await, "1\n2\n3\n");
    assert_eq!(text(&client, "COPY \"Log\" (line) TO STDOUT").await, "1\n");
    // In a block it is a step of it.
    client.batch_execute("BEGIN").await.expect("a block");
    assert_eq!(text(&client, "COPY (select series 2) TO STDOUT (FORMAT csv, HEADER)").await, "n\n1\n2\n");
    client.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(fake.begun.load(Ordering::SeqCst), 1);
    assert_eq!(
        text(&client, "COPY (SELECT 7 AS x, 'a,b' FROM pg_catalog.pg_class LIMIT 1) TO STDOUT csv").await,
        "7,\"a,b\"\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_copied_is_said() {
    let (_, client, _) = started_at().await;
    for (sql, expected) in [
        ("COPY nothing TO STDOUT", "42P01"),
        ("COPY \"Log\" (missing) TO STDOUT", "42703"),
        ("COPY \"Log\" TO '/tmp/log'", "0A000"),
        ("COPY (insert into log values (1)) TO STDOUT", "0A000"),
        ("COPY (select missing) TO STDOUT", "42703"),
        ("COPY (select $1) TO STDOUT", "42P02"),
        ("COPY (select series 1) TO STDOUT (FORMAT csv, FORCE_QUOTE (m))", "42P10"),
    ] {
        assert_eq!(state(&copy(&client, sql).await.expect_err(sql)), expected, "{sql}");
    }
    let error = copy(&client, "COPY  (select missing) TO STDOUT").await.expect_err("no such column");
    let position = error.as_db_error().and_then(|error| error.position().cloned());
    assert_eq!(position, Some(tokio_postgres::error::ErrorPosition::Original(15)));
    assert_eq!(text(&client, "COPY (select series 1) TO STDOUT").await, "1\n", "the session goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_gone_is_given_no_more() {
    let (fake, client, _) = started_at().await;
    {
        let stream = client.copy_out("COPY (select series 500000) TO STDOUT").await.expect("a stream");
        pin_mut!(stream);
        assert!(stream.next().await.expect("a row").is_ok());
        client.cancel_token().cancel_query(NoTls).await.expect("sent");
        let error = loop {
            match stream.next().await.expect("it was cancelled") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(state(&error), "57014");
    }
    for _ in 0..1_000 {
        if fake.stopped.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the query went on");
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_copies_a_table_to_a_file() {
    if !test_machine::required("psql") {
        return;
    }
    let (_, _client, port) = started_at().await;
    let file = std::env::temp_dir().join(format!("entente-copy-{}", std::process::id()));
    let command = format!("\\copy (select every_type) to '{}' csv", file.display());
    let psql = tokio::task::spawn_blocking(move || {
        let port = port.to_string();
        let mut psql = Command::new("psql");
        psql.args(["-X", "-h", "127.0.0.1", "-U", "ada", "-d", "any", "-p", &port, "-c", &command]).output()
    });
    let output = psql.await.expect("no panic").expect("psql runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "COPY 2\n", "{output:?}");
    let written = std::fs::read_to_string(&file).expect("the file");
    std::fs::remove_file(&file).expect("removed");
    assert!(written.starts_with("t,-7,") && written.ends_with(",,,\n"), "{written}");
}
