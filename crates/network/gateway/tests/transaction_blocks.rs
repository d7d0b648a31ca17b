//! Transaction blocks message by message: tags, errors and what ReadyForQuery says, in both protocols.

mod fake;
mod talk;

use fake::{Fake, serve};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use talk::{Talk, bind, execute, message};
use types::{PackedRows, Payload, SessionStep, Value};

async fn started() -> (Arc<Fake>, Talk, u16) {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(Arc::clone(&fake)).await;
    (fake, Talk::start(port).await, port)
}

fn payloads(fake: &Fake) -> Vec<Payload> {
    fake.payloads.lock().expect("no panic").clone()
}

/// The steps of the only transaction that was submitted.
fn steps(fake: &Fake) -> Vec<SessionStep> {
    match payloads(fake).as_slice() {
        [Payload::Session { steps, .. }] => steps.clone(),
        other => panic!("{other:?}"),
    }
}

fn run(sql: &str) -> SessionStep {
    SessionStep::Run { sql: sql.to_string(), parameters: vec![] }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_one_transaction_that_commit_submits() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("select series 2", "row, row, SELECT 2, T"),
        ("SHOW application_name", "row, SHOW, T"),
        ("select version()", "row, SELECT 1, T"),
        ("update t set a = 1; delete from t", "UPDATE 1, DELETE 1, T"),
    ])
    .await;
    assert!(payloads(&fake).is_empty(), "nothing is ordered before COMMIT");
    talk.check(&[
        ("COMMIT", "entente.last_height=8, COMMIT, I"),
        ("SHOW entente.last_height", "row, SHOW, I"),
    ])
    .await;
    let expected = ["insert into t values (1)", "select series 2", "update t set a = 1", "delete from t"];
    assert_eq!(steps(&fake), expected.map(run));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_reads_or_is_rolled_back_is_no_transaction() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY", "BEGIN, T"),
        ("SHOW transaction_read_only", "row, SHOW, T"),
        ("select series 1", "row, SELECT 1, T"),
        ("END", "COMMIT, I"),
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("ABORT", "ROLLBACK, I"),
        ("BEGIN", "BEGIN, T"),
        ("COMMIT", "COMMIT, I"),
        ("BEGIN READ ONLY", "BEGIN, T"),
        ("insert into t values (1)", "error 25006, E"),
        ("COMMIT", "ROLLBACK, I"),
        ("BEGIN; SET TRANSACTION READ ONLY; select 1", "BEGIN, SET, row, SELECT 1, T"),
        ("insert into t values (1)", "error 25006, E"),
        ("ROLLBACK", "ROLLBACK, I"),
    ])
    .await;
    assert!(payloads(&fake).is_empty());
    assert_eq!(fake.begun.load(Ordering::SeqCst), 4, "a block takes its snapshot with its first statement");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_only_the_end_of_the_block_is_taken() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("insert into fail values (1); select 1", "error 23514, E"),
        ("select 1", "error 25P02, E"),
        ("SHOW application_name", "error 25P02, E"),
        ("select version()", "error 25P02, E"),
        ("SAVEPOINT a", "error 25P02, E"),
        ("BEGIN", "error 25P02, E"),
        ("", "E"),
        ("COMMIT", "ROLLBACK, I"),
        ("select 1", "row, SELECT 1, I"),
        // Whatever fails, even what never ran.
        ("BEGIN", "BEGIN, T"),
        ("selec", "error 42601, E"),
        ("ROLLBACK", "ROLLBACK, I"),
        ("BEGIN; SET nonsense = 1", "BEGIN, error 42704, E"),
        ("ROLLBACK", "ROLLBACK, I"),
    ])
    .await;
    assert!(payloads(&fake).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn savepoints_bring_a_failed_block_back() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("SAVEPOINT a", "error 25P01, I"),
        ("ROLLBACK TO a", "error 25P01, I"),
        ("RELEASE a", "error 25P01, I"),
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("SAVEPOINT a", "SAVEPOINT, T"),
        ("insert into fail values (1)", "error 23514, E"),
        ("ROLLBACK TO nowhere", "error 3B001, E"),
        ("ROLLBACK TO SAVEPOINT a", "ROLLBACK, T"),
        ("insert into t values (2)", "INSERT 0 1, T"),
        ("RELEASE SAVEPOINT a", "RELEASE, T"),
        ("COMMIT", "entente.last_height=8, COMMIT, I"),
    ])
    .await;
    let name = || "a".to_string();
    assert_eq!(
        steps(&fake),
        [
            run("insert into t values (1)"),
            SessionStep::Savepoint(name()),
            run("insert into fail values (1)"),
            SessionStep::RollbackTo("nowhere".to_string()),
            SessionStep::RollbackTo(name()),
            run("insert into t values (2)"),
            SessionStep::Release(name()),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_the_wrong_order_is_warned_of_or_refused() {
    let (_, mut talk, _) = started().await;
    talk.check(&[
        ("COMMIT", "warning 25P01, COMMIT, I"),
        ("ROLLBACK", "warning 25P01, ROLLBACK, I"),
        ("SET TRANSACTION READ ONLY", "warning 25P01, SET, I"),
        ("SET LOCAL application_name = 'x'", "warning 25P01, SET, I"),
        ("BEGIN", "BEGIN, T"),
        ("BEGIN", "warning 25001, BEGIN, T"),
        ("DISCARD ALL", "error 25001, E"),
        ("ROLLBACK", "ROLLBACK, I"),
        ("COMMIT AND CHAIN", "error 25P01, I"),
        ("ROLLBACK AND CHAIN", "error 25P01, I"),
        ("PREPARE TRANSACTION 'x'", "error 0A000, I"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn and_chain_begins_another_block_of_the_same_kind() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("COMMIT AND CHAIN", "entente.last_height=8, COMMIT, T"),
        ("insert into t values (2)", "INSERT 0 1, T"),
        ("ROLLBACK AND CHAIN", "ROLLBACK, T"),
        ("selec", "error 42601, E"),
        ("COMMIT AND CHAIN", "ROLLBACK, T"),
        ("END AND NO CHAIN", "COMMIT, I"),
        ("BEGIN READ ONLY", "BEGIN, T"),
        ("COMMIT AND CHAIN", "COMMIT, T"),
        ("insert into t values (1)", "error 25006, E"),
        ("ROLLBACK", "ROLLBACK, I"),
        (
            "BEGIN; insert into t values (3); COMMIT AND CHAIN",
            "BEGIN, INSERT 0 1, entente.last_height=9, COMMIT, T",
        ),
        ("ROLLBACK", "ROLLBACK, I"),
    ])
    .await;
    assert_eq!(payloads(&fake).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_string_that_makes_a_temporary_table_is_a_block() {
    let (fake, mut talk, _) = started().await;
    // The database in memory names the first two words.
    let sql = "create local temp table own (a int); insert into t values (1); select series 1";
    assert_eq!(talk.query(sql).await, "CREATE LOCAL, INSERT 0 1, row, SELECT 1, entente.last_height=8, I");
    let parts = ["create local temp table own (a int)", "insert into t values (1)", "select series 1"];
    assert_eq!(steps(&fake), parts.map(run));
    assert_eq!(
        talk.query("create temp table own (a int); insert into fail values (1)").await,
        "CREATE TABLE, error 23514, I"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_conflicts_ends_the_block() {
    let (fake, mut talk, _) = started().await;
    fake.conflicting.store(true, Ordering::SeqCst);
    talk.check(&[
        ("BEGIN", "BEGIN, T"),
        ("SET application_name = 'inside'", "application_name=inside, SET, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("COMMIT", "application_name=, error 40001, I"),
        ("select 1", "row, SELECT 1, I"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_in_one_query_string_is_one_script() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        (
            "BEGIN; insert into t values (1); update t set a = 1; COMMIT",
            "BEGIN, entente.last_height=8, INSERT 0 1, UPDATE 1, COMMIT, I",
        ),
        // As in PostgreSQL, the rest of the string is left out, COMMIT too.
        ("BEGIN; insert into fail values (1); update t set a = 1; COMMIT", "BEGIN, error 23514, E"),
        ("select 1", "error 25P02, E"),
        ("ROLLBACK TO a", "error 25P02, E"),
        ("ROLLBACK", "ROLLBACK, I"),
        ("BEGIN; insert into t values (1)", "BEGIN, INSERT 0 1, T"),
        ("insert into t values (2); COMMIT", "INSERT 0 1, entente.last_height=9, COMMIT, I"),
    ])
    .await;
    let kinds: Vec<bool> =
        payloads(&fake).iter().map(|payload| matches!(payload, Payload::Session { .. })).collect();
    assert_eq!(kinds, [false, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_last_as_long_as_postgresql_says() {
    let (_, mut talk, _) = started().await;
    talk.check(&[
        ("SET application_name = 'a'", "application_name=a, SET, I"),
        (
            "BEGIN; SET application_name = 'b'; ROLLBACK",
            "BEGIN, application_name=b, SET, application_name=a, ROLLBACK, I",
        ),
        ("BEGIN; SET application_name = 'b'; COMMIT", "BEGIN, application_name=b, SET, COMMIT, I"),
        (
            "BEGIN; SET LOCAL application_name = 'c'; COMMIT",
            "BEGIN, application_name=c, SET, application_name=b, COMMIT, I",
        ),
        (
            "BEGIN; SET application_name = 'd'; SET LOCAL application_name = 'e'",
            "BEGIN, application_name=d, SET, application_name=e, SET, T",
        ),
        ("SAVEPOINT s; SET application_name = 'f'", "SAVEPOINT, application_name=f, SET, T"),
        ("ROLLBACK TO s", "application_name=e, ROLLBACK, T"),
        ("COMMIT", "application_name=d, COMMIT, I"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_to_read_only_writes_nothing() {
    let (fake, mut talk, port) = started().await;
    for on in [
        "SET default_transaction_read_only = on",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "select set_config('default_transaction_read_only', 'yes', false)",
    ] {
        talk.query(on).await;
        for sql in [
            "insert into t values (1)",
            "insert into t values (1); insert into t values (2)",
            "copy accounts (id, owner) from stdin",
            "create role clerk password 'x'",
            "prepare w as insert into t values (1); execute w",
            "select locked",
        ] {
            let answer = talk.query(sql).await;
            assert!(answer.ends_with("error 25006, I"), "{on}: {sql}: {answer}");
            talk.query("deallocate all").await;
        }
        assert_eq!(talk.extended("insert into t values (1)").await, "error 25006, I", "{on}");
        assert_eq!(talk.extended("select locked").await, "error 25006, I", "{on}");
        talk.check(&[
            ("SHOW transaction_read_only", "row, SHOW, I"),
            ("select series 2", "row, row, SELECT 2, I"),
            ("BEGIN; insert into t values (1); COMMIT", "BEGIN, error 25006, E"),
            ("ROLLBACK", "ROLLBACK, I"),
            // What holds for a block is settled when it begins.
            (
                "BEGIN; SET default_transaction_read_only = off; insert into t values (1)",
                "BEGIN, SET, error 25006, E",
            ),
            ("ROLLBACK", "ROLLBACK, I"),
            ("SET default_transaction_read_only TO DEFAULT", "RESET, I"),
        ])
        .await;
    }
    assert!(payloads(&fake).is_empty());
    talk.query("SET default_transaction_read_only = on").await;
    talk.check(&[
        ("BEGIN READ WRITE; insert into t values (1)", "BEGIN, INSERT 0 1, T"),
        ("COMMIT", "entente.last_height=8, COMMIT, I"),
        ("SET default_transaction_read_only = maybe", "error 22023, I"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION", "error 42601, I"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "SET, I"),
        ("insert into t values (1)", "entente.last_height=9, INSERT 0 1, I"),
    ])
    .await;
    let asks = |parameter: &str| format!("user\0ada\0{parameter}\0\0");
    let mut other = Talk::start_with(port, &asks("default_transaction_read_only\0on")).await;
    assert_eq!(other.query("insert into t values (1)").await, "error 25006, I");
    let mut other = Talk::start_with(port, &asks("options\0-c default_transaction_read_only=true")).await;
    assert_eq!(other.query("insert into t values (1)").await, "error 25006, I");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_reads_only_may_write_again_where_it_has_read_nothing() {
    let (_, mut talk, _) = started().await;
    talk.check(&[
        (
            "BEGIN READ ONLY; SET TRANSACTION READ WRITE; insert into t values (1); ROLLBACK",
            "BEGIN, SET, INSERT 0 1, ROLLBACK, I",
        ),
        (
            "BEGIN READ ONLY; select series 1; SET TRANSACTION READ WRITE",
            "BEGIN, row, SELECT 1, error 25001, E",
        ),
        ("ROLLBACK", "ROLLBACK, I"),
        (
            "BEGIN; select series 1; SET TRANSACTION READ ONLY; SET TRANSACTION READ WRITE",
            "BEGIN, row, SELECT 1, SET, error 25001, E",
        ),
        ("ROLLBACK", "ROLLBACK, I"),
        (
            "BEGIN; select series 1; SET TRANSACTION READ WRITE; ROLLBACK",
            "BEGIN, row, SELECT 1, SET, ROLLBACK, I",
        ),
        (
            "BEGIN READ ONLY; select version(); SET transaction_read_only = off",
            "BEGIN, row, SELECT 1, error 25001, E",
        ),
        ("ROLLBACK", "ROLLBACK, I"),
        ("BEGIN READ ONLY; SAVEPOINT a; SET TRANSACTION READ WRITE", "BEGIN, SAVEPOINT, error 25001, E"),
        ("ROLLBACK", "ROLLBACK, I"),
        // That a part of a block reads only ends with the part.
        ("BEGIN; SAVEPOINT a; SET LOCAL transaction_read_only = on", "BEGIN, SAVEPOINT, SET, T"),
        ("insert into t values (1)", "error 25006, E"),
        ("ROLLBACK TO a; insert into t values (1)", "ROLLBACK, INSERT 0 1, T"),
        ("SET TRANSACTION READ ONLY; RELEASE a; insert into t values (1)", "SET, RELEASE, INSERT 0 1, T"),
        ("ROLLBACK", "ROLLBACK, I"),
        (
            "SET transaction_read_only = on; insert into t values (1)",
            "SET, entente.last_height=8, INSERT 0 1, I",
        ),
        ("BEGIN READ ONLY; COMMIT AND CHAIN; insert into t values (1)", "BEGIN, COMMIT, error 25006, E"),
        ("ROLLBACK", "ROLLBACK, I"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_extended_protocol_has_the_same_blocks() {
    let (fake, mut talk, _) = started().await;
    for (sql, answer) in [
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("SAVEPOINT a", "SAVEPOINT, T"),
        ("insert into fail values (1)", "error 23514, E"),
        ("select 1", "error 25P02, E"),
        ("", "E"),
        ("ROLLBACK TO a", "ROLLBACK, T"),
        ("select series 3", "row, row, row, SELECT 3, T"),
        ("COMMIT", "entente.last_height=8, COMMIT, I"),
        ("COMMIT", "warning 25P01, COMMIT, I"),
    ] {
        assert_eq!(talk.extended(sql).await, answer, "{sql}");
    }
    assert_eq!(steps(&fake).len(), 5);
    // A statement that was prepared before the error is not executed behind it.
    talk.send(&[message(b'P', b"named\0select 1\0\0\0"), message(b'S', b"")]).await;
    assert_eq!(talk.answer().await, "I");
    assert_eq!(talk.query("BEGIN; insert into fail values (1)").await, "BEGIN, error 23514, E");
    talk.send(&[message(b'B', b"\0named\0\0\0\0\0\0\0"), execute(0), message(b'S', b"")]).await;
    assert_eq!(talk.answer().await, "error 25P02, E");
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_live_as_long_as_their_block() {
    let (_, mut talk, _) = started().await;
    assert_eq!(talk.query("BEGIN").await, "BEGIN, T");
    let sync = || message(b'S', b"");
    talk.send(&[message(b'P', b"\0select series 5\0\0\0"), bind(), execute(2), sync()]).await;
    assert_eq!(talk.answer().await, "row, row, suspended, T");
    talk.send(&[execute(2), sync()]).await;
    assert_eq!(talk.answer().await, "row, row, suspended, T");
    talk.send(&[execute(2), sync()]).await;
    assert_eq!(talk.answer().await, "row, SELECT 1, T");
    assert_eq!(talk.query("COMMIT").await, "COMMIT, I");
    talk.send(&[execute(2), sync()]).await;
    assert_eq!(talk.answer().await, "error 34000, I");
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_in_a_block_is_a_step_of_it() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[("BEGIN", "BEGIN, T"), ("COPY accounts (id, owner) FROM STDIN", "copy")]).await;
    talk.send(&[message(b'd', b"1\tada\n2\tbob\n"), message(b'c', b"")]).await;
    assert_eq!(talk.answer().await, "COPY 2, T");
    assert_eq!(talk.query("COMMIT").await, "entente.last_height=8, COMMIT, I");
    let rows = [(1, "ada"), (2, "bob")].map(|(id, owner)| vec![Value::BigInt(id), Value::text(owner)]);
    let columns = vec!["id".to_string(), "owner".to_string()];
    assert_eq!(
        steps(&fake),
        [SessionStep::Insert {
            table: "accounts".to_string(),
            columns,
            rows: PackedRows::pack(rows).expect("rows")
        }]
    );
    // More than a transaction holds, and what is no row.
    talk.check(&[("BEGIN", "BEGIN, T"), ("COPY accounts (id, owner) FROM STDIN", "copy")]).await;
    for thousand in 0..6 {
        let line = |number| format!("1\t{:060}\n", thousand * 1_000 + number);
        talk.send(&[message(b'd', (0..1_000).map(line).collect::<String>().as_bytes())]).await;
    }
    talk.send(&[message(b'c', b"")]).await;
    assert_eq!(talk.answer().await, "error 54000, E");
    talk.check(&[
        ("ROLLBACK", "ROLLBACK, I"),
        ("BEGIN", "BEGIN, T"),
        ("COPY accounts (id, owner) FROM STDIN", "copy"),
    ])
    .await;
    // What goes on as it began is short, however many rows it has.
    for thousand in 0..100 {
        let line = |number| format!("{}\t{}\n", thousand * 1_000 + number, "x".repeat(60));
        talk.send(&[message(b'd', (0..1_000).map(line).collect::<String>().as_bytes())]).await;
    }
    talk.send(&[message(b'c', b"")]).await;
    assert_eq!(talk.answer().await, "COPY 100000, T");
    talk.check(&[
        ("ROLLBACK", "ROLLBACK, I"),
        ("BEGIN", "BEGIN, T"),
        ("COPY accounts (id) FROM STDIN", "copy"),
    ])
    .await;
    talk.send(&[message(b'd', b"one\n"), message(b'c', b"")]).await;
    assert_eq!(talk.answer().await, "error 22P02, E");
    talk.check(&[("COMMIT", "ROLLBACK, I")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_statement_takes_the_block_with_it() {
    let (_, mut talk, _) = started().await;
    talk.check(&[
        ("BEGIN; SAVEPOINT a; SET LOCAL statement_timeout = '100ms'", "BEGIN, SAVEPOINT, SET, T"),
        ("select slow", "error 57014, E"),
        ("ROLLBACK TO a", "error 25P02, E"),
        ("ROLLBACK", "ROLLBACK, I"),
        ("select series 1", "row, SELECT 1, I"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_block_ends_its_session() {
    let (_, mut talk, port) = started().await;
    talk.check(&[("SET idle_in_transaction_session_timeout = '200ms'", "SET, I")]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    talk.check(&[("select 1", "row, SELECT 1, I"), ("BEGIN", "BEGIN, T")]).await;
    assert_eq!(talk.answer().await, "error 25P03");
    assert_eq!(Talk::start(port).await.query("select 1").await, "row, SELECT 1, I");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_ends_where_it_has_said_so() {
    let (_, mut talk, _) = started().await;
    talk.check(&[("SET idle_session_timeout = '200ms'", "SET, I"), ("BEGIN", "BEGIN, T")]).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    talk.check(&[("COMMIT", "COMMIT, I")]).await;
    assert_eq!(talk.answer().await, "error 57P05");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_below_the_level_of_the_client_are_not_sent() {
    let (_, mut talk, _) = started().await;
    talk.check(&[
        ("COMMIT", "warning 25P01, COMMIT, I"),
        ("SET client_min_messages = error; COMMIT", "SET, COMMIT, I"),
        (
            "BEGIN; SET LOCAL client_min_messages = warning; ROLLBACK; COMMIT",
            "BEGIN, SET, ROLLBACK, COMMIT, I",
        ),
        ("RESET client_min_messages; COMMIT", "RESET, warning 25P01, COMMIT, I"),
        ("SET client_min_messages = loud", "error 22023, I"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_keeps_the_catalog_that_it_began_with() {
    let (fake, mut talk, port) = started().await;
    talk.check(&[("BEGIN", "BEGIN, T"), ("insert a", "INSERT 0 1, T")]).await;
    let mut other = Talk::start(port).await;
    assert_eq!(other.query("create table more (a int)").await, "entente.last_height=8, CREATE TABLE, I");
    talk.check(&[("select 1", "row, SELECT 1, T"), ("COMMIT", "entente.last_height=9, COMMIT, I")]).await;
    assert_eq!(payloads(&fake).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_wait_for_the_height_that_they_must_see() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("SET entente.min_height = 9", "SET, I"),
        ("SHOW entente.min_height", "row, SHOW, I"),
        ("SET entente.last_height = 9", "error 55P02, I"),
        ("SET entente.min_height = 'high'", "error 22023, I"),
        ("SET statement_timeout = '200ms'", "SET, I"),
        ("select series 1", "error 57014, I"),
        ("BEGIN; select series 1", "BEGIN, error 57014, E"),
        ("ROLLBACK", "ROLLBACK, I"),
        ("SET statement_timeout = 0", "SET, I"),
    ])
    .await;
    let later = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        fake.height.store(9, Ordering::SeqCst);
    });
    // It is bound at that height too.
    talk.check(&[("select created at 9", "row, SELECT 1, I")]).await;
    later.await.expect("no panic");
    talk.check(&[("BEGIN; select series 1", "BEGIN, row, SELECT 1, T")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_bound_again_where_the_catalog_changes_before_it_runs() {
    let (fake, mut talk, _) = started().await;
    for (query, expected) in
        [("select series 1", "row, SELECT 1, I"), ("COPY (select series 2) TO STDOUT", "COPY 2, I")]
    {
        fake.changes.store(3, Ordering::SeqCst);
        talk.check(&[(query, expected)]).await;
        assert_eq!(fake.changes.load(Ordering::SeqCst), 0, "{query}");
    }
    // Other columns, too, as long as nobody has been told of the first ones.
    fake.changes.store(1, Ordering::SeqCst);
    talk.check(&[("select version", "row, SELECT 1, I")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_height_that_does_not_come_is_an_error() {
    let (_, mut talk, _) = started().await;
    talk.check(&[("SET entente.min_height = 1000", "SET, I"), ("select series 1", "error 57P03, I")]).await;
}

/// What the statement means then the database says.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_too_long_are_told_of() {
    let (_, mut talk, _) = started().await;
    let (long, short) = ("t".repeat(64), "t".repeat(63));
    let insert = |name: &str| format!("insert into {name} values (1)");
    assert_eq!(talk.query(&insert(&long)).await, "warning 42622, entente.last_height=8, INSERT 0 1, I");
    assert_eq!(talk.query(&insert(&short)).await, "entente.last_height=9, INSERT 0 1, I");
    assert_eq!(
        talk.query(&format!("insert into t values ('{long}')")).await,
        "entente.last_height=10, INSERT 0 1, I"
    );
    let two = format!("{}; {}", insert(&format!("\"{long}\"")), insert("t"));
    assert_eq!(talk.query(&two).await, "warning 42622, entente.last_height=11, INSERT 0 1, INSERT 0 1, I");
    assert_eq!(talk.extended(&insert(&long)).await, "warning 42622, entente.last_height=12, INSERT 0 1, I");
}
