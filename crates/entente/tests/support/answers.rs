//! What query strings give, as text.

use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{Client, SimpleQueryMessage};

/// What a query string gives: the values of its rows, or the error with its position.
pub async fn run(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(messages) => {
            let shown = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
                    Some(values.collect::<Vec<_>>().join("|"))
                }
                _ => None,
            };
            messages.iter().filter_map(shown).collect::<Vec<_>>().join(" ")
        }
        Err(error) => {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}"));
            let at = match error.position() {
                Some(ErrorPosition::Original(at)) => format!(" at {at}"),
                _ => String::new(),
            };
            format!("{} {}{at}", error.code().code(), error.message())
        }
    }
}

/// That each query string gives this.
pub async fn check(client: &Client, expected: &[(&str, &str)]) {
    for (sql, answer) in expected {
        assert_eq!(run(client, sql).await, *answer, "{sql}");
    }
}
