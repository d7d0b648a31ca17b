//! DECLARE, FETCH, MOVE and CLOSE against a gateway in front of a database in memory.

mod fake;

use fake::started;
use tokio_postgres::{Client, SimpleQueryMessage};
use types::{Payload, SessionStep};

/// The first column of what a query string gives, or its SQLSTATE.
async fn run(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(messages) => {
            let row = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(ToString::to_string),
                _ => None,
            };
            messages.iter().filter_map(row).collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.as_db_error().expect("an answer").code().code().to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_fetched_in_every_direction() {
    let (_, client) = started().await;
    for (sql, expected) in [
        ("BEGIN", ""),
        ("DECLARE c SCROLL CURSOR FOR select series 5", ""),
        ("FETCH c", "1"),
        ("FETCH FORWARD 2 FROM c", "2 3"),
        ("FETCH PRIOR FROM c", "2"),
        ("MOVE LAST IN c", ""),
        ("FETCH 0 FROM c", "5"),
        ("FETCH BACKWARD ALL IN c", "4 3 2 1"),
        ("FETCH ABSOLUTE -2 FROM c", "4"),
        ("FETCH RELATIVE -2 FROM c", "2"),
        ("FETCH ALL c", "3 4 5"),
        ("FETCH NEXT c", ""),
        ("DECLARE \"Other C\" CURSOR FOR select series 2", ""),
        ("FETCH ALL FROM \"Other C\"", "1 2"),
        ("CLOSE c", ""),
        ("FETCH \"Other C\"", ""),
        ("CLOSE ALL", ""),
        ("FETCH \"Other C\"", "34000"),
        ("ROLLBACK", ""),
    ] {
        assert_eq!(run(&client, sql).await, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_live_as_long_as_their_block() {
    let (_, client) = started().await;
    for (sql, expected) in [
        ("DECLARE c CURSOR FOR select series 2", "25P01"),
        ("BEGIN", ""),
        ("DECLARE c CURSOR FOR select series 3", ""),
        ("SAVEPOINT s", ""),
        ("DECLARE d CURSOR FOR select series 3", ""),
        ("DECLARE c CURSOR FOR select series 3", "42P03"),
        ("ROLLBACK TO s", ""),
        ("FETCH d", "34000"),
        ("ROLLBACK TO s", ""),
        ("FETCH c", "1"),
        ("COMMIT", ""),
        ("FETCH c", "34000"),
        ("BEGIN", ""),
        ("DECLARE h NO SCROLL CURSOR WITH HOLD FOR select series 3", ""),
        ("FETCH h", "1"),
        ("COMMIT", ""),
        ("FETCH h", "2"),
        ("FETCH PRIOR FROM h", "55000"),
        ("DECLARE g CURSOR WITH HOLD FOR select series 3", ""),
        ("BEGIN", ""),
        ("DECLARE k CURSOR WITH HOLD FOR select series 3", ""),
        ("ROLLBACK", ""),
        ("FETCH k", "34000"),
        ("FETCH ALL FROM g", "1 2 3"),
        ("DISCARD ALL", ""),
        ("FETCH h", "34000"),
    ] {
        assert_eq!(run(&client, sql).await, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cursor_can_give_is_in_the_digest_of_its_block() {
    let (fake, client) = started().await;
    run(&client, "BEGIN").await;
    run(&client, "DECLARE c CURSOR FOR select series 3").await;
    assert_eq!(run(&client, "FETCH 2 FROM c").await, "1 2");
    run(&client, "insert into t values (1)").await;
    run(&client, "CLOSE c").await;
    run(&client, "COMMIT").await;
    let payloads = fake.payloads.lock().expect("no panic");
    let [Payload::Session { steps, .. }] = payloads.as_slice() else { panic!("one block: {payloads:?}") };
    let step = |sql: &str| SessionStep::Run { sql: sql.to_string(), parameters: Vec::new() };
    assert_eq!(*steps, [step("select series 3"), step("insert into t values (1)")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_extended_protocol_declares_with_parameters_and_describes_what_is_fetched() {
    let (_, mut client) = started().await;
    let block = client.transaction().await.expect("a block");
    // Its parameters are those of the query; this database gives one row in a block whatever they are.
    let declare = "DECLARE c CURSOR FOR select $1";
    let statement = block.prepare_typed(declare, &[tokio_postgres::types::Type::INT4]).await.expect("bound");
    block.execute(&statement, &[&7_i32]).await.expect("declared");
    let rows = block.query("FETCH FORWARD 10 FROM c", &[]).await.expect("fetched");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].columns()[0].name(), "n");
    assert_eq!(rows[0].get::<_, i32>(0), 1);
    assert_eq!(block.query("FETCH FORWARD 10 FROM c", &[]).await.expect("fetched").len(), 0);
    let error = block.execute("DECLARE w CURSOR FOR DELETE FROM t", &[]).await.expect_err("no query");
    assert_eq!(error.code().map(|code| code.code()), Some("42601"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_functions_leave_open_is_fetched_by_steps_of_the_block() {
    let (fake, client) = started().await;
    for (sql, expected) in [
        ("FETCH f", "34000"),
        ("BEGIN", ""),
        ("FETCH f", "34000"),
        ("ROLLBACK", ""),
        ("BEGIN", ""),
        ("SELECT leave_open f 5", "f"),
        ("fetch 2 in F", "1 2"),
        ("DECLARE c CURSOR FOR select series 3", ""),
        ("FETCH c", "1"),
        ("MOVE LAST FROM f", ""),
        ("FETCH BACKWARD 1 FROM f", "4"),
        ("FETCH c", "2"),
        ("CLOSE c", ""),
        ("FETCH PRIOR f", "3"),
        ("CLOSE f", ""),
        ("insert into t values (1)", ""),
        ("COMMIT", ""),
        ("FETCH f", "34000"),
    ] {
        assert_eq!(run(&client, sql).await, expected, "{sql}");
    }
    let payloads = fake.payloads.lock().expect("no panic");
    let [Payload::Session { steps, .. }] = payloads.as_slice() else { panic!("one block: {payloads:?}") };
    let said: Vec<&str> = steps.iter().filter_map(|step| step.statement()).map(|(sql, _)| sql).collect();
    let expected = [
        "SELECT leave_open f 5",
        "fetch 2 in F",
        "select series 3",
        "MOVE LAST FROM f",
        "FETCH BACKWARD 1 FROM f",
        "FETCH PRIOR f",
        "CLOSE f",
        "insert into t values (1)",
    ];
    assert_eq!(said, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_of_the_session_and_of_functions_have_different_names() {
    let (_, client) = started().await;
    for (sql, expected) in [
        ("BEGIN", ""),
        ("SELECT leave_open f 5", "f"),
        ("SAVEPOINT s", ""),
        ("DECLARE f CURSOR FOR select series 3", "42P03"),
        ("ROLLBACK TO s", ""),
        ("DECLARE c CURSOR FOR select series 3", ""),
        ("CLOSE ALL", ""),
        ("SAVEPOINT s", ""),
        ("FETCH f", "34000"),
        ("ROLLBACK TO s", ""),
        ("FETCH c", "34000"),
        ("ROLLBACK", ""),
        ("BEGIN", ""),
        ("DECLARE c CURSOR WITH HOLD FOR select series 3", ""),
        ("COMMIT", ""),
        ("BEGIN", ""),
        ("SELECT leave_open c 5", "42P03"),
        ("FETCH c", "25P02"),
        ("ROLLBACK", ""),
        ("FETCH c", "1"),
    ] {
        assert_eq!(run(&client, sql).await, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_extended_protocol_describes_what_functions_leave_open() {
    let (_, mut client) = started().await;
    let block = client.transaction().await.expect("a block");
    // Before there is a cursor nobody knows what it gives.
    let early = block.prepare("FETCH ALL FROM f").await.expect("parsed");
    assert_eq!(early.columns().len(), 0);
    block.simple_query("SELECT leave_open f 25").await.expect("opened");
    let fetch = block.prepare("FETCH FORWARD 20 FROM f").await.expect("parsed");
    assert_eq!(fetch.columns()[0].name(), "at");
    // A portal gives them in parts, and goes on with the cursor closed.
    let portal = block.bind(&fetch, &[]).await.expect("bound");
    let first = block.query_portal(&portal, 15).await.expect("rows");
    assert_eq!(
        first.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(),
        (1..=15).collect::<Vec<_>>()
    );
    assert_eq!(block.query("FETCH FORWARD 3 FROM f", &[]).await.expect("rows")[0].get::<_, i32>(0), 21);
    block.execute("CLOSE f", &[]).await.expect("closed");
    let rest = block.query_portal(&portal, 15).await.expect("rows");
    assert_eq!(
        rest.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(),
        (16..=20).collect::<Vec<_>>()
    );
    let error = block.query("FETCH ALL FROM f", &[]).await.expect_err("it is closed");
    assert_eq!(error.code().map(|code| code.code()), Some("34000"));
}
