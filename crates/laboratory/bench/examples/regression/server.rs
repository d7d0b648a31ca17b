//! A session on one of the two servers.

use bytes::Bytes;
use futures::SinkExt;
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};

/// How long a statement may take; beyond, it is cancelled and the session begun again.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(20);

/// What a server answered to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Names of the columns, and the rows as text.
    Rows { columns: Vec<String>, rows: Vec<Vec<Option<String>>> },
    /// Rows changed, as the command tag says.
    Done { rows: u64 },
    /// SQLSTATE and message.
    Error { code: String, message: String },
    /// Nothing within the time of a statement, or the connection ended.
    None { why: String },
}

/// A connection that comes back.
pub struct Server {
    config: Config,
    client: Client,
}

impl Server {
    /// Connects.
    ///
    /// # Errors
    /// Of the connection.
    pub async fn connect(connection: &str) -> Result<Self, Error> {
        let config: Config = connection.parse()?;
        let client = session(&config).await?;
        Ok(Server { config, client })
    }

    /// A session of its own for a script.
    ///
    /// # Errors
    /// Of the connection.
    pub async fn reconnect(&mut self) -> Result<(), Error> {
        self.client = session(&self.config).await?;
        Ok(())
    }

    /// Runs one statement, with the data that COPY is to read.
    ///
    /// # Errors
    /// If a connection that ended cannot be made again.
    pub async fn run(&mut self, statement: &str, copy_data: Option<&str>) -> Result<Answer, Error> {
        let answer = match copy_data {
            Some(data) => tokio::time::timeout(STATEMENT_TIME_MAX, copy(&self.client, statement, data)).await,
            None => tokio::time::timeout(STATEMENT_TIME_MAX, ask(&self.client, statement)).await,
        };
        let Ok(answer) = answer else {
            // Whether that is heard or not, the session is left.
            let _ = self.client.cancel_token().cancel_query(NoTls).await;
            self.reconnect().await?;
            return Ok(Answer::None { why: "no answer in time".to_string() });
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => match error.as_db_error() {
                Some(refusal) => Ok(Answer::Error {
                    code: refusal.code().code().to_string(),
                    message: refusal.message().to_string(),
                }),
                None => {
                    self.reconnect().await?;
                    Ok(Answer::None { why: format!("the connection ended: {error}") })
                }
            },
        }
    }
}

async fn session(config: &Config) -> Result<Client, Error> {
    let (client, connection) = config.connect(NoTls).await?;
    // It ends when its client is dropped; an error shows in the client's next call.
    tokio::spawn(connection);
    for setting in ["TimeZone = 'UTC'", "DateStyle = 'ISO, MDY'"] {
        // A server that has nothing else refuses it, and is right.
        let _ = client.batch_execute(&format!("SET {setting}")).await;
    }
    Ok(client)
}

async fn ask(client: &Client, statement: &str) -> Result<Answer, Error> {
    let mut columns = None;
    let mut rows = Vec::new();
    let mut changed = 0;
    for message in client.simple_query(statement).await? {
        match message {
            SimpleQueryMessage::RowDescription(described) => {
                columns = Some(described.iter().map(|column| column.name().to_string()).collect());
            }
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|column| row.get(column).map(str::to_string)).collect());
            }
            SimpleQueryMessage::CommandComplete(count) => changed = count,
            _ => {}
        }
    }
    Ok(match columns {
        Some(columns) => Answer::Rows { columns, rows },
        None => Answer::Done { rows: changed },
    })
}

async fn copy(client: &Client, statement: &str, data: &str) -> Result<Answer, Error> {
    let mut sink = pin!(client.copy_in::<_, Bytes>(statement).await?);
    sink.send(Bytes::from(data.to_string())).await?;
    Ok(Answer::Done { rows: sink.finish().await? })
}
