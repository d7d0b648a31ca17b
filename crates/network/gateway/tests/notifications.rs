//! LISTEN and UNLISTEN, and when a session is told what is notified.

mod fake;
mod talk;

use fake::{Fake, serve};
use std::sync::Arc;
use std::time::{Duration, Instant};
use talk::{Talk, bind, execute, message, notified};
use types::{Notification, TransactionId};

async fn started() -> (Arc<Fake>, Talk, u16) {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(Arc::clone(&fake)).await;
    (fake, Talk::start(port).await, port)
}

fn publish(fake: &Fake, said: &[(&str, &str)]) {
    let said = said.iter().map(|(channel, payload)| Notification::new(channel, payload).expect("short"));
    fake.notifier.publish(TransactionId::default(), &said.collect::<Vec<_>>());
}

/// What arrives at an idle session without being asked for.
async fn arrives(talk: &mut Talk) -> String {
    let (kind, body) =
        tokio::time::timeout(Duration::from_secs(10), talk.read()).await.expect("in time").expect("open");
    assert_eq!(kind, b'A');
    notified(&body)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_is_told_at_once_and_others_are_not() {
    let (fake, mut talk, port) = started().await;
    let mut other = Talk::start(port).await;
    talk.check(&[
        ("LISTEN news", "LISTEN, I"),
        ("LISTEN \"News\"", "LISTEN, I"),
        ("LISTEN news", "LISTEN, I"),
    ])
    .await;
    other.check(&[("LISTEN other", "LISTEN, I")]).await;
    publish(&fake, &[("news", "1"), ("nobody", "2"), ("News", ""), ("news", "é")]);
    for expected in ["0 says news:1", "0 says News:", "0 says news:é"] {
        assert_eq!(arrives(&mut talk).await, expected);
    }
    other.check(&[("insert into t values (1)", "entente.last_height=8, INSERT 0 1, I")]).await;
    talk.check(&[
        ("select pg_listening_channels()", "row, row, SELECT 2, I"),
        ("UNLISTEN news", "UNLISTEN, I"),
    ])
    .await;
    publish(&fake, &[("news", "3"), ("News", "4")]);
    assert_eq!(arrives(&mut talk).await, "0 says News:4");
    talk.check(&[("DISCARD ALL", "DISCARD ALL, I"), ("select pg_listening_channels()", "SELECT 0, I")]).await;
    publish(&fake, &[("News", "5")]);
    talk.check(&[
        ("SHOW application_name", "row, SHOW, I"),
        ("select pg_notification_queue_usage()", "row, SELECT 1, I"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_not_disturbed_and_listening_begins_when_it_commits() {
    let (fake, mut talk, _) = started().await;
    talk.check(&[
        ("LISTEN a", "LISTEN, I"),
        ("BEGIN", "BEGIN, T"),
        ("LISTEN b", "LISTEN, T"),
        ("UNLISTEN a", "UNLISTEN, T"),
    ])
    .await;
    publish(&fake, &[("a", "1"), ("b", "not yet")]);
    talk.check(&[
        ("insert into t values (1)", "INSERT 0 1, T"),
        ("SAVEPOINT s", "SAVEPOINT, T"),
        ("LISTEN c", "LISTEN, T"),
        ("UNLISTEN *", "UNLISTEN, T"),
        ("ROLLBACK TO s", "ROLLBACK, T"),
        ("COMMIT", "entente.last_height=8, COMMIT, I"),
    ])
    .await;
    publish(&fake, &[("a", "2"), ("b", "3"), ("c", "4")]);
    assert_eq!(arrives(&mut talk).await, "0 says b:3");
    talk.check(&[("BEGIN", "BEGIN, T"), ("UNLISTEN b", "UNLISTEN, T"), ("LISTEN a", "LISTEN, T")]).await;
    publish(&fake, &[("b", "5")]);
    talk.check(&[("ROLLBACK", "ROLLBACK, 0 says b:5, I")]).await;
    // After an error nothing is changed.
    talk.check(&[
        ("BEGIN", "BEGIN, T"),
        ("insert fail", "error 23514, E"),
        ("LISTEN a", "error 25P02, E"),
        ("COMMIT", "ROLLBACK, I"),
    ])
    .await;
    publish(&fake, &[("a", "6"), ("b", "7")]);
    assert_eq!(arrives(&mut talk).await, "0 says b:7");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_up_to_sync_is_not_disturbed() {
    let (fake, mut talk, _) = started().await;
    assert_eq!(talk.extended("LISTEN a").await, "LISTEN, I");
    let parse = message(b'P', b"\0select series 2\0\0\0");
    talk.send(&[parse, bind(), execute(0), message(b'H', b"")]).await;
    let mut seen = Vec::new();
    while !seen.contains(&b'C') {
        seen.push(talk.read().await.expect("answers").0);
    }
    publish(&fake, &[("a", "1")]);
    let silent = tokio::time::timeout(Duration::from_millis(200), talk.read()).await;
    assert!(silent.is_err(), "the client has not said Sync: {silent:?}");
    talk.send(&[message(b'S', b"")]).await;
    assert_eq!(talk.answer().await, "0 says a:1, I");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_is_ended_and_who_is_told_is_idle_all_the_same() {
    let (fake, mut talk, port) = started().await;
    talk.check(&[("LISTEN a", "LISTEN, I"), ("BEGIN", "BEGIN, T")]).await;
    let long = "x".repeat(7_000);
    for _ in 0..2 * gateway::limits::LISTENER_BYTES_MAX / long.len() {
        publish(&fake, &[("a", &long)]);
    }
    talk.check(&[("COMMIT", "COMMIT, I")]).await;
    assert_eq!(talk.answer().await, "error 53400");
    let mut idle = Talk::start(port).await;
    idle.check(&[("SET idle_session_timeout = 600", "SET, I"), ("LISTEN a", "LISTEN, I")]).await;
    let begin = Instant::now();
    let mut ended = false;
    while !ended && begin.elapsed() < Duration::from_secs(20) {
        publish(&fake, &[("a", "1")]);
        while let Ok(read) = tokio::time::timeout(Duration::from_millis(50), idle.read()).await {
            match read {
                Some((b'A', _)) => {}
                Some((b'E', body)) => ended = talk::field(&body, b'C') == "57P05",
                _ => break,
            }
        }
    }
    assert!(ended, "notifications do not make a client busy");
    let mut many = Talk::start(port).await;
    for number in 0..gateway::limits::CHANNELS_MAX {
        assert_eq!(many.query(&format!("LISTEN c{number}")).await, "LISTEN, I");
    }
    many.check(&[
        ("LISTEN more", "error 54000, I"),
        ("UNLISTEN *", "UNLISTEN, I"),
        ("LISTEN more", "LISTEN, I"),
    ])
    .await;
    many.query("BEGIN").await;
    for _ in 0..gateway::limits::CHANNELS_MAX {
        assert_eq!(many.query("UNLISTEN *").await, "UNLISTEN, T");
    }
    many.check(&[("UNLISTEN *", "error 54000, E"), ("ROLLBACK", "ROLLBACK, I")]).await;
}
