//! Advisory locks of sessions: waiting for them, keeping them, giving them back.

mod fake;
mod talk;

use fake::{Fake, serve, started as connected};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use talk::Talk;
use tokio_postgres::NoTls;
use types::{Payload, SessionStep};

async fn started() -> (Arc<Fake>, Talk, u16) {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(Arc::clone(&fake)).await;
    (fake, Talk::start(port).await, port)
}

/// What has been ordered, without settings.
fn ordered(fake: &Fake) -> Vec<String> {
    let payloads = fake.payloads.lock().expect("nobody panics with it");
    let text = |payload: &Payload| match payload {
        Payload::Script { sql, .. } => sql.rsplit(';').next().unwrap_or_default().to_string(),
        Payload::Session { steps, .. } => format!("a block of {}", steps.len()),
        other => format!("{other:?}"),
    };
    payloads.iter().map(text).collect()
}

/// Waits until it is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const LOCK: &str = "SELECT pg_advisory_lock(1)";
const UNLOCK: &str = "SELECT pg_advisory_unlock(1)";

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_orders_nothing_and_has_the_lock_once_it_is_free() {
    let (fake, mut first, port) = started().await;
    first
        .check(&[
            (LOCK, "entente.last_height=8, row, SELECT 1, I"),
            (LOCK, "entente.last_height=9, row, SELECT 1, I"),
        ])
        .await;
    let waiting = tokio::spawn(async move {
        let mut second = Talk::start(port).await;
        let answer = second.query(LOCK).await;
        (second, answer)
    });
    until("it looks", || fake.lock.looks.load(SeqCst) > 3).await;
    first.check(&[(UNLOCK, "entente.last_height=10, row, SELECT 1, I")]).await;
    let looks = fake.lock.looks.load(SeqCst);
    until("it looks again", || fake.lock.looks.load(SeqCst) > looks + 1).await;
    assert_eq!(ordered(&fake), [LOCK, LOCK, UNLOCK], "the other has ordered nothing");
    first.check(&[(UNLOCK, "entente.last_height=11, row, SELECT 1, I")]).await;
    let (mut second, answer) = waiting.await.expect("no panic");
    assert_eq!(answer, "entente.last_height=12, row, SELECT 1, I");
    first
        .check(&[
            (UNLOCK, "entente.last_height=13, warning 01000, row, SELECT 1, I"),
            ("SELECT pg_try_advisory_lock(1)", "entente.last_height=14, row, SELECT 1, I"),
        ])
        .await;
    assert_eq!(second.extended(UNLOCK).await, "entente.last_height=15, row, SELECT 1, I");
    assert!(fake.lock.is_free());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_its_time_and_with_a_cancel() {
    let (fake, client) = connected().await;
    fake.lock.held_elsewhere(true);
    let state =
        |error: &tokio_postgres::Error| error.code().map(|code| code.code().to_string()).unwrap_or_default();
    client.batch_execute("SET lock_timeout = '100ms'").await.expect("set");
    for sql in [
        LOCK,
        "SELECT pg_advisory_xact_lock(1)",
        "BEGIN; SELECT pg_advisory_xact_lock(1)",
        "SELECT 1; SELECT pg_advisory_lock(1)",
    ] {
        let error = client.batch_execute(sql).await.expect_err("it is held");
        assert_eq!(state(&error), "55P03", "{sql}");
        let message = error.as_db_error().map(|error| error.message().to_string());
        assert_eq!(message.as_deref(), Some("canceling statement due to lock timeout"), "{sql}");
        client.batch_execute("ROLLBACK").await.expect("none is open");
    }
    client.batch_execute("SET lock_timeout = 0; SET statement_timeout = '100ms'").await.expect("set");
    assert_eq!(state(&client.batch_execute(LOCK).await.expect_err("it is held")), "57014");
    client.batch_execute("SET statement_timeout = 0").await.expect("set");
    let (cancel, looks) = (client.cancel_token(), fake.lock.looks.load(SeqCst));
    let waiting = tokio::spawn(async move { (client.batch_execute(LOCK).await, client) });
    until("it looks", || fake.lock.looks.load(SeqCst) > looks).await;
    cancel.cancel_query(NoTls).await.expect("asked");
    let (cancelled, client) = waiting.await.expect("no panic");
    assert_eq!(state(&cancelled.expect_err("cancelled")), "57014");
    assert_eq!(ordered(&fake), [""; 0], "nothing was ordered all the time");
    // It can go on.
    fake.lock.held_elsewhere(false);
    client.batch_execute(LOCK).await.expect("it is free");
    assert!(!fake.lock.is_free());
    drop(client);
    until("it is given back", || fake.lock.is_free()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_in_a_block_is_no_part_of_it() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("BEGIN", "BEGIN, T"),
        (LOCK, "entente.last_height=8, row, SELECT 1, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        (LOCK, "entente.last_height=9, row, SELECT 1, T"),
        ("ROLLBACK", "ROLLBACK, I"),
    ])
    .await;
    assert_eq!(ordered(&fake), [LOCK, LOCK]);
    talk.check(&[
        ("BEGIN READ ONLY", "BEGIN, T"),
        (UNLOCK, "entente.last_height=10, row, SELECT 1, T"),
        ("COMMIT", "COMMIT, I"),
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
        (UNLOCK, "entente.last_height=11, row, SELECT 1, T"),
        ("COMMIT", "entente.last_height=12, COMMIT, I"),
    ])
    .await;
    assert!(fake.lock.is_free());
    let payloads = fake.payloads.lock().expect("nobody panics with it");
    let Some(Payload::Session { steps, .. }) = payloads.last() else { panic!("{payloads:?}") };
    assert!(
        matches!(steps.as_slice(), [SessionStep::Run { sql, .. }] if sql.ends_with("insert into t values (1)")),
        "{steps:?}"
    );
}

/// Two calls are a statement of the block.
const IN_BLOCK: &str = "SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(1)";

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_begins_with_a_lock_begins_once_it_is_free() {
    let (fake, mut talk, _) = started().await;
    fake.lock.held_elsewhere(true);
    talk.check(&[("BEGIN", "BEGIN, T")]).await;
    let waiting = tokio::spawn(async move {
        let answer = talk.query(IN_BLOCK).await;
        (talk, answer)
    });
    until("it looks", || fake.lock.looks.load(SeqCst) > 2).await;
    fake.lock.held_elsewhere(false);
    let (mut talk, answer) = waiting.await.expect("no panic");
    assert_eq!(answer, "row, SELECT 1, T");
    talk.check(&[
        ("ROLLBACK", "ROLLBACK, I"),
        ("BEGIN", "BEGIN, T"),
        ("insert into t values (1)", "INSERT 0 1, T"),
    ])
    .await;
    // The block's snapshot is from before: it waits, and is to be run again.
    fake.lock.held_elsewhere(true);
    let looks = fake.lock.looks.load(SeqCst);
    let waiting = tokio::spawn(async move {
        let answer = talk.query(IN_BLOCK).await;
        (talk, answer)
    });
    until("it looks", || fake.lock.looks.load(SeqCst) > looks + 2).await;
    fake.lock.held_elsewhere(false);
    let (mut talk, answer) = waiting.await.expect("no panic");
    assert_eq!(answer, "error 40001, E");
    talk.check(&[("ROLLBACK", "ROLLBACK, I")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_block_keeps_others_out_until_the_block_has_ended() {
    let (fake, mut talk, port) = started().await;
    let mut other = Talk::start(port).await;
    for (end, answer) in [("COMMIT", "COMMIT, I"), ("ROLLBACK", "ROLLBACK, I")] {
        talk.query("BEGIN").await;
        assert!(talk.query("SELECT pg_advisory_xact_lock(1)").await.ends_with("row, SELECT 1, T"));
        talk.check(&[("select 1", "row, SELECT 1, T")]).await;
        other.query("BEGIN").await;
        assert!(other.query("SELECT pg_try_advisory_xact_lock(1)").await.ends_with("row, SELECT 1, T"));
        other.query("COMMIT").await;
        assert!(!fake.lock.is_free(), "the other has not had it");
        talk.check(&[(end, answer)]).await;
        until("it is given back", || fake.lock.is_free()).await;
    }
    // Who is gone has ended its block.
    talk.query("BEGIN").await;
    talk.query("SELECT pg_advisory_xact_lock(1)").await;
    drop(talk);
    until("it is given back", || fake.lock.is_free()).await;
    let sessions = ordered(&fake);
    assert!(sessions.iter().all(|sql| !sql.contains("xact") && !sql.contains("block")), "{sessions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_holds_is_given_back_and_nothing_is_ordered_for_who_holds_nothing() {
    let (fake, mut talk, port) = started().await;
    for sql in ["SELECT pg_advisory_unlock_all()", "SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD ALL"]
    {
        talk.query(sql).await;
    }
    assert_eq!(ordered(&fake), [""; 0]);
    for sql in [
        "DISCARD ALL",
        "SELECT pg_advisory_unlock_all()",
        "select pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL",
    ] {
        talk.query(LOCK).await;
        assert!(!fake.lock.is_free());
        talk.query(sql).await;
        assert!(fake.lock.is_free(), "{sql}");
    }
    let mut other = Talk::start(port).await;
    other.query(LOCK).await;
    drop(other);
    until("it is given back", || fake.lock.is_free()).await;
    // Several statements in one string: the first is the session's, what follows one transaction.
    let before = ordered(&fake).len();
    talk.query("SELECT pg_advisory_lock(1); insert into t values (1); insert into t values (2)").await;
    assert_eq!(ordered(&fake).len() - before, 2);
    assert!(!fake.lock.is_free());
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_are_renewed_and_who_has_lost_them_is_told() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("SET entente.advisory_lease = '4s'", "error 22023, I"),
        ("SET entente.advisory_lease = '5s'", "SET, I"),
        (LOCK, "entente.last_height=8, row, SELECT 1, I"),
    ])
    .await;
    let renewals = || ordered(&fake).iter().filter(|sql| sql.contains("renew_advisory_locks")).count();
    until("it is renewed", || renewals() >= 1).await;
    fake.lock.held_elsewhere(true);
    let before = renewals();
    until("it is renewed once more", || renewals() > before).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    talk.check(&[("select 1", "warning 01000, row, SELECT 1, I"), ("select 1", "row, SELECT 1, I")]).await;
    assert!(talk.query(UNLOCK).await.ends_with("warning 01000, row, SELECT 1, I"));
    assert!(!fake.lock.is_free(), "somebody else has it");
}
