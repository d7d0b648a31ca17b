//! `SELECT set_config(…)` against a gateway in front of a database in memory: what it says holds, as after SET. Answers are those of
//! PostgreSQL 15.

mod fake;

use fake::started;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The first value that a query string gives last, or the error.
async fn run(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(messages) => {
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_string()),
                _ => None,
            });
            rows.last().unwrap_or_default()
        }
        Err(error) => {
            let error = error.as_db_error().expect("an answer");
            format!("{} {}", error.code().code(), error.message())
        }
    }
}

#[tokio::test]
async fn what_it_says_holds_in_the_session() {
    let (_, client) = started().await;
    for (sql, answer) in [
        ("SELECT set_config('application_name', 'books', false)", "books"),
        ("SHOW application_name", "books"),
        ("SELECT pg_catalog.set_config('search_path', '', false)", ""),
        // As dumps begin, whose routines keep the path that they are made with.
        ("SHOW search_path", "\"$user\", public"),
        ("SELECT set_config('search_path', 'a, b', false) AS path", "a, b"),
        ("SHOW search_path", "a, b"),
        ("SELECT set_config('my.own', 'x', false)", "x"),
        ("SHOW my.own", "x"),
        // Local: until the end of the block, and of the statement where there is no block.
        ("SELECT set_config('my.own', 'y', true)", "y"),
        ("SHOW my.own", "x"),
        ("BEGIN; SELECT set_config('my.own', 'y', true); SHOW my.own", "y"),
        ("ROLLBACK; SHOW my.own", "x"),
        ("BEGIN; SELECT set_config('my.own', 'z', false); ROLLBACK; SHOW my.own", "x"),
        // As pg_dump sets what a server has, and no others.
        (
            "SELECT set_config(name, 'C' || 'ET', false) FROM pg_settings WHERE name IN ('TimeZone', 'nothing')",
            "CET",
        ),
        ("SHOW TimeZone", "CET"),
        ("SELECT set_config(NULL, 'x', false)", "22004 SET requires parameter name"),
        ("SELECT set_config('my.own', NULL, false)", ""),
        (
            "SELECT set_config('statement_timeout', 'soon', false)",
            "22023 invalid value for parameter \"statement_timeout\": \"soon\"",
        ),
    ] {
        assert_eq!(run(&client, sql).await, answer, "{sql}");
    }
    let refused = run(&client, "SELECT upper(set_config('my.own', 'x', false))").await;
    assert!(refused.starts_with("0A000 set_config() that is no column"), "{refused}");
}

#[tokio::test]
async fn a_parameter_says_what_is_set() {
    let (_, client) = started().await;
    let row = client.query_one("SELECT set_config('my.own', $1, false)", &[&"p"]).await.expect("a row");
    assert_eq!(row.get::<_, &str>(0), "p");
    assert_eq!(run(&client, "SHOW my.own").await, "p");
}
