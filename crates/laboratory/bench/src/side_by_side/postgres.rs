//! PostgreSQL with all rows in its own memory, asked by simple queries over a local socket.

use super::files::Files;
use super::system::{Answer, Rows, System};
use super::table::Table;
use crate::LaboratoryError;
use crate::postgres::{PostgresError, connect, execute, postgres_server};
use bytes::Bytes;
use futures::SinkExt;
use servers::PostgresServer;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, SimpleQueryMessage};

pub(crate) const NAME: &str = "postgres";

/// Bytes of a file that are sent at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A server of our own.
pub(super) struct Postgres {
    runtime: Runtime,
    client: Client,
    // Behind the client: it is stopped last.
    _server: PostgresServer,
}

impl Postgres {
    /// Starts it with one thread for a query, without compilation at run time, and with so much memory for rows.
    pub(super) fn start(megabytes: u64) -> Result<Postgres, PostgresError> {
        let server = postgres_server(&settings(megabytes))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| PostgresError::System { action: "start tokio".to_string(), error })?;
        let client = runtime.block_on(connect(&server.socket_folder()))?;
        Ok(Postgres { runtime, client, _server: server })
    }

    pub(super) fn load(self, tables: &[Table], files: &Files) -> Result<Postgres, LaboratoryError> {
        for table in tables {
            let path = files.path(table);
            self.runtime.block_on(async {
                execute(&self.client, table.definition).await?;
                copy(&self.client, table.name, &path).await?;
                for index in table.postgres_indexes {
                    execute(&self.client, index).await?;
                }
                execute(&self.client, &format!("VACUUM ANALYZE {}", table.name)).await?;
                Ok::<(), LaboratoryError>(())
            })?;
        }
        self.runtime.block_on(execute(&self.client, "CHECKPOINT"))?;
        Ok(self)
    }
}

impl System for Postgres {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, sql: &str, limit: Option<Duration>) -> Result<Answer, LaboratoryError> {
        // Zero is no limit.
        let timeout = limit.map_or(0, |limit| limit.as_millis().max(1));
        self.runtime.block_on(execute(&self.client, &format!("SET statement_timeout = {timeout}")))?;
        let start = Instant::now();
        let messages = self.runtime.block_on(self.client.simple_query(sql));
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let messages = messages.map_err(|error| LaboratoryError::Answer {
            system: NAME,
            request: sql.to_string(),
            error: error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string),
        })?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_string)).collect())
            }
            _ => None,
        });
        Ok(Answer { ms, rows: Rows::exact(rows.collect()), from: None })
    }
}

fn settings(megabytes: u64) -> Vec<String> {
    vec![
        format!("shared_buffers={megabytes}MB"),
        "work_mem=1GB".to_string(),
        "default_transaction_isolation=read committed".to_string(),
        "max_parallel_workers_per_gather=0".to_string(),
        "jit=off".to_string(),
    ]
}

async fn copy(client: &Client, table: &str, path: &Path) -> Result<(), LaboratoryError> {
    let statement = format!("COPY {table} FROM STDIN (FORMAT csv)");
    let refused = |error| PostgresError::Statement { statement: statement.clone(), error };
    let mut sink = pin!(client.copy_in(&statement).await.map_err(refused)?);
    let mut file = File::open(path).map_err(LaboratoryError::file("read", path))?;
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece);
        if read.map_err(LaboratoryError::file("read", path))? == 0 {
            break;
        }
        sink.send(Bytes::from(piece)).await.map_err(refused)?;
    }
    sink.finish().await.map_err(refused)?;
    Ok(())
}
