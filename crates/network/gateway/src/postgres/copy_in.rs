//! The conversation of COPY FROM STDIN: data comes in, transactions go out, a few at a time; in a transaction block one
//! step of it.

use super::connection::ReadError;
use super::copy::CopyStatement;
use super::copy_format::Layout;
use super::copy_reader::{CopyError, CopyReader, CopyRow};
use super::message::{Malformed, Message};
use super::session::{Failure, Session};
use crate::limits;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use pgwire::messages::copy::CopyInResponse;
use pgwire::messages::response::CommandComplete;
use std::sync::Arc;
use types::schema_of;
use types::session_format::within_format;
use types::{
    CompositeTypes, PackedRows, Payload, RequestId, SessionStep, SqlError, SqlState, Value, ValueLimits,
};

/// A chunk that was sent: its lines, its rows, how it ended.
struct Sent {
    lines: (u64, u64),
    rows: u64,
    /// The height at which it stands.
    result: Result<u64, SqlError>,
}

/// Rows that wait to be sent and chunks that wait to be final.
struct RunningCopy {
    statement: Arc<CopyStatement>,
    rows: Vec<Vec<Value>>,
    /// Those of a step of a transaction block.
    packed: PackedRows,
    lines: (u64, u64),
    bytes: usize,
    in_flight: FuturesUnordered<BoxFuture<'static, Sent>>,
    committed: u64,
    /// The rows become a step of a transaction block.
    in_block: bool,
    /// Nothing is sent before all rows are there: in a transaction block they are a step of it, and temporary tables take
    /// all or none.
    whole: bool,
    /// Bytes that all its rows may have then, packed.
    whole_bytes_max: usize,
    /// Bytes of a chunk, at most.
    chunk_bytes: usize,
    /// The greatest height at which a chunk stands.
    height: u64,
}

impl Session {
    /// Runs COPY to its end, whatever the end is.
    ///
    /// Unlike PostgreSQL's, a COPY that fails leaves in the table what its earlier chunks have committed; the error
    /// says how many rows.
    pub(super) async fn copy_in(&mut self, statement: Arc<CopyStatement>) -> Result<(), Failure> {
        if !statement.temporary {
            self.check_may_write("COPY FROM")?;
        }
        let columns = statement.columns.len();
        let format = i16::from(statement.format.layout == Layout::Binary);
        self.connection.put(&CopyInResponse::new(format as i8, columns as i16, vec![format; columns]));
        self.connection.flush().await?;
        let has_members = self.known_schema().members_of(schema_of(&statement.table)).is_some();
        let chunk_bytes =
            if has_members { limits::PRIVATE_COPY_CHUNK_BYTES } else { limits::COPY_CHUNK_BYTES };
        let mut progress = RunningCopy {
            chunk_bytes,
            statement: Arc::clone(&statement),
            rows: Vec::new(),
            packed: PackedRows::default(),
            lines: (0, 0),
            bytes: 0,
            in_flight: FuturesUnordered::new(),
            committed: 0,
            in_block: self.block.is_some(),
            whole: self.block.is_some() || statement.temporary,
            whole_bytes_max: self.database.transaction_bytes_max(),
            height: 0,
        };
        let outcome = self.receive(&mut progress).await;
        let outcome = match outcome {
            Ok(()) if progress.whole => self.insert_whole(&mut progress).await,
            Ok(()) => progress.drain().await,
            Err(Failure::Closed) => return Err(Failure::Closed),
            Err(failure) => {
                // What is under way becomes final or not; the client is told of the first error, and of the count.
                let _ = progress.drain().await;
                Err(failure)
            }
        };
        self.committed_at(progress.height);
        match outcome {
            Ok(()) => {
                self.connection.put(&CommandComplete::new(format!("COPY {}", progress.committed)));
                Ok(())
            }
            Err(failure) if progress.whole => Err(failure),
            Err(Failure::Problem(mut error, context)) => {
                let rows = progress.committed;
                let count = format!(
                    "{rows} rows of this COPY are in the table: each chunk is a transaction of its own."
                );
                error.detail = Some(error.detail.map_or(count.clone(), |detail| format!("{detail} {count}")));
                Err(Failure::Problem(error, context))
            }
            Err(Failure::Closed) => Err(Failure::Closed),
        }
    }

    /// All rows at once.
    async fn insert_whole(&mut self, progress: &mut RunningCopy) -> Result<(), Failure> {
        let (rows, (first, last)) = (std::mem::take(&mut progress.rows), progress.lines);
        let packed = std::mem::take(&mut progress.packed);
        let count = rows.len().max(packed.len()) as u64;
        let columns = progress.statement.columns.iter().map(|(name, _)| name.clone()).collect();
        let table = progress.statement.table.clone();
        let inserted = match &self.block {
            Some(_) => {
                let step = SessionStep::Insert { table, columns, rows: packed };
                self.run_in_block(step).await.map(drop)
            }
            None => self.run_temporary(Payload::Insert { table, columns, rows }).await.map(drop),
        };
        if let Err(error) = inserted {
            let context = format!("COPY {}, lines {first} to {last}", progress.statement.table);
            return Err(Failure::Problem(Box::new(error), Some(context)));
        }
        progress.committed = count;
        Ok(())
    }

    /// Takes data until the client says that it is all, and sends full chunks.
    async fn receive(&mut self, progress: &mut RunningCopy) -> Result<(), Failure> {
        let has_format = !self.settings.format().is_default();
        let types = || CompositeTypes::new(&self.known_catalog());
        let mut reader = CopyReader::new(&progress.statement, has_format, types);
        loop {
            let full = progress.in_flight.len() >= limits::COPY_CHUNKS_IN_FLIGHT;
            let message = tokio::select! {
                biased;
                Some(sent) = progress.in_flight.next() => {
                    progress.note(sent)?;
                    continue;
                }
                () = self.cancel.notified() => {
                    return Err(SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request").into());
                }
                message = self.connection.read_message(), if !full => message,
            };
            let end = match message {
                Ok(Message::CopyData(bytes)) => {
                    // A message may have very many short rows, which take more room as values.
                    for part in bytes.chunks(limits::COPY_CHUNK_BYTES) {
                        self.take_data(progress, |rows| reader.feed(part, rows)).await?;
                    }
                    false
                }
                Ok(Message::CopyDone) => {
                    self.take_data(progress, |rows| reader.finish(rows)).await?;
                    true
                }
                Ok(Message::CopyFail(why)) => {
                    let message = format!("COPY from stdin failed: {why}");
                    return Err(SqlError::new(SqlState::QUERY_CANCELED, message).into());
                }
                Ok(Message::Flush | Message::Sync) => false,
                Ok(Message::Terminate) | Err(ReadError::Closed) => return Err(Failure::Closed),
                Ok(_) => {
                    let message = "unexpected message type during COPY from stdin";
                    return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message).into());
                }
                Err(ReadError::Malformed(
                    Malformed::Violation(what) | Malformed::Encoding { message: what, .. },
                )) => {
                    return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, what).into());
                }
            };
            if end {
                if !progress.whole {
                    self.send_chunk(progress);
                }
                return Ok(());
            }
        }
    }

    /// Reads rows as the session says; those in front of an error count.
    async fn take_data(
        &mut self,
        progress: &mut RunningCopy,
        read: impl FnOnce(&mut Vec<CopyRow>) -> Result<(), CopyError>,
    ) -> Result<(), Failure> {
        let mut rows = Vec::new();
        let limits = ValueLimits::of(self.version());
        let result = limits.within(|| within_format(self.settings.format(), || read(&mut rows)));
        self.take_rows(progress, rows).await?;
        result.map_err(|wrong| Failure::Problem(Box::new(wrong.error), wrong.context))
    }

    /// Adds rows to the chunk; sends it when it is full, and waits while enough are under way.
    async fn take_rows(&mut self, progress: &mut RunningCopy, rows: Vec<CopyRow>) -> Result<(), Failure> {
        for row in rows {
            if progress.whole {
                progress.add(row)?;
                if progress.statement.temporary {
                    let limit = limits::TEMPORARY_COPY_BYTES_MAX;
                    if progress.bytes > limit {
                        let message = format!(
                            "COPY to a temporary table takes at most {limit} bytes (TEMPORARY_COPY_BYTES_MAX)"
                        );
                        let error = SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
                        return Err(error.hint("Send the rows in several COPYs.").into());
                    }
                } else if progress.bytes > progress.whole_bytes_max {
                    let limit = progress.whole_bytes_max;
                    let message = format!(
                        "COPY in a transaction block takes at most {limit} bytes (block.transaction_bytes_max of the charter)"
                    );
                    let error = SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
                    return Err(error.hint("COPY outside of a transaction block has no such limit.").into());
                }
                continue;
            }
            if progress.bytes > 0 && progress.bytes + row.bytes > progress.chunk_bytes {
                while progress.in_flight.len() >= limits::COPY_CHUNKS_IN_FLIGHT {
                    if let Some(sent) = progress.in_flight.next().await {
                        progress.note(sent)?;
                    }
                }
                self.send_chunk(progress);
            }
            progress.add(row)?;
        }
        Ok(())
    }

    fn send_chunk(&self, progress: &mut RunningCopy) {
        let rows = std::mem::take(&mut progress.rows);
        progress.bytes = 0;
        if rows.is_empty() {
            return;
        }
        let (lines, count) = (progress.lines, rows.len() as u64);
        let columns = progress.statement.columns.iter().map(|(name, _)| name.clone()).collect();
        let payload = Payload::Insert { table: progress.statement.table.clone(), columns, rows };
        let (database, role) = (Arc::clone(&self.database), self.identity.role.clone());
        let (answer_at, request) = (self.settings.answer_at(), RequestId(crypto::random_bytes()));
        progress.in_flight.push(Box::pin(async move {
            let result =
                database.execute(&role, payload, request, answer_at).await.map(|executed| executed.height);
            Sent { lines, rows: count, result }
        }));
    }
}

impl RunningCopy {
    fn add(&mut self, row: CopyRow) -> Result<(), SqlError> {
        let is_first = self.rows.is_empty() && self.packed.is_empty();
        self.lines = (if is_first { row.line } else { self.lines.0 }, row.line);
        if !self.in_block {
            self.bytes += row.bytes;
            self.rows.push(row.values);
            return Ok(());
        }
        let packed = self.packed.push(row.values)?;
        self.bytes += if self.statement.temporary { row.bytes } else { packed };
        Ok(())
    }

    fn note(&mut self, sent: Sent) -> Result<(), Failure> {
        match sent.result {
            Ok(height) => {
                self.height = self.height.max(height);
                self.committed += sent.rows;
                Ok(())
            }
            Err(error) => {
                let (first, last) = sent.lines;
                let context = format!("COPY {}, lines {first} to {last}", self.statement.table);
                Err(Failure::Problem(Box::new(error), Some(context)))
            }
        }
    }

    /// Waits for everything that is under way; the first error counts.
    async fn drain(&mut self) -> Result<(), Failure> {
        let mut outcome = Ok(());
        while let Some(sent) = self.in_flight.next().await {
            let noted = self.note(sent);
            if outcome.is_ok() {
                outcome = noted;
            }
        }
        outcome
    }
}
