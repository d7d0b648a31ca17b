//! A connection to a server of one's own.

use super::PostgresError;
use std::path::Path;
use tokio_postgres::{Client, Config, NoTls};

/// Connects through the socket in this folder.
pub(crate) async fn connect(socket: &Path) -> Result<Client, PostgresError> {
    let mut config = Config::new();
    config.host_path(socket).user("postgres").dbname("postgres");
    let (client, connection) = config
        .connect(NoTls)
        .await
        .map_err(|error| PostgresError::Statement { statement: "a connection".to_string(), error })?;
    // It ends when its client is dropped; an error shows in the client's next call.
    tokio::spawn(connection);
    Ok(client)
}

/// Runs statements that give nothing.
pub(crate) async fn execute(client: &Client, statement: &str) -> Result<(), PostgresError> {
    client.batch_execute(statement).await.map_err(|error| {
        let statement = statement.chars().take(200).collect();
        PostgresError::Statement { statement, error }
    })
}
