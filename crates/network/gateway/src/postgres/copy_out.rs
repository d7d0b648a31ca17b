//! COPY TO STDOUT: the rows of a query, written as they are found.
//!
//! ```text
//!  outside of a block, a query that reads: a thread runs it ──parts of the data, a few at a time──▶ the session ─▶ client
//!  anything else (in a block, of temporary tables, RETURNING, the catalogue): its result, then the data
//! ```

use super::copy::{CopySource, CopyTo};
use super::copy_format::{CopyFormat, Layout};
use super::copy_writer::CopyWriter;
use super::script::{Class, Statement, classify, split};
use super::session::{Failure, Session, problem};
use super::statement::{Body, Interest, ParsedStatement, blocking, cancelled, shift, time_is_up};
use crate::{Prepared, StatementKind};
use bytes::{BufMut, BytesMut};
use parking_lot::Mutex;
use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use pgwire::messages::response::CommandComplete;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc;
use types::session_format::within_format;
use types::{SqlError, SqlState};

/// Bytes that travel from the thread that runs a query to its session at once.
const PART_BYTES: usize = 64 * 1024;
/// Such parts that may wait for the client.
const PARTS_WAITING: usize = 4;

/// A COPY TO STDOUT statement that was bound.
pub(super) struct CopyOut {
    query: ParsedStatement,
    format: CopyFormat,
}

impl Session {
    pub(super) async fn parse_copy_out(
        &mut self,
        statement: &Statement<'_>,
        copy: CopyTo<'_>,
    ) -> Result<CopyOut, Failure> {
        let query = match &copy.source {
            CopySource::Query(query) => {
                let class = classify(query, &*self.known_tables()?);
                let parsed = Box::pin(self.parse(query, class, Vec::new())).await;
                parsed.map_err(|failure| shift(failure, statement.text, query.start - statement.start))?
            }
            CopySource::Table(query) => match split(query).as_slice() {
                [query] => Box::pin(self.parse(query, Class::Read, Vec::new())).await?,
                _ => return Err(SqlError::unsupported("COPY of a table without columns").into()),
            },
        };
        if !query.parameters.is_empty() {
            return Err(problem(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        if query.columns.is_empty() {
            let selects = query.sql.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
            let message = match selects {
                true => "COPY (SELECT INTO) is not supported",
                false => "COPY query must have a RETURNING clause",
            };
            return Err(problem(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        // What is wrong in FORCE_QUOTE is said now.
        CopyWriter::new(copy.format.clone(), query.columns.clone())?;
        Ok(CopyOut { query, format: copy.format })
    }

    /// Runs COPY TO STDOUT to its end.
    pub(super) async fn copy_out(&mut self, copy: &CopyOut) -> Result<(), Failure> {
        let mut writer = CopyWriter::new(copy.format.clone(), copy.query.columns.clone())?;
        if let Some(cached) = self.streamed(&copy.query).await? {
            self.wait_for_min_height().await?;
            self.begin_copy_out(copy);
            let mut ran = false;
            while !ran {
                // Where a block has changed the catalog since it was bound, it is bound again.
                let prepared = self.current(&copy.query, cached).await?;
                (ran, writer) = self.copy_as_found(prepared, writer).await?;
            }
        } else {
            let result = self.execute_statement(&copy.query, Vec::new()).await?;
            self.connection.put_notices(&result.notices);
            self.begin_copy_out(copy);
            let format = self.settings.format();
            for row in &result.rows {
                within_format(format, || writer.row(self.connection.output(), row));
                self.connection.flush_if_full().await?;
            }
            writer.finish(self.connection.output());
        }
        self.connection.put(&CopyDone::new());
        self.connection.put(&CommandComplete::new(format!("COPY {}", writer.rows())));
        Ok(())
    }

    fn begin_copy_out(&mut self, copy: &CopyOut) {
        let (columns, binary) = (copy.query.columns.len(), copy.format.layout == Layout::Binary);
        let code = i8::from(binary);
        self.connection.put(&CopyOutResponse::new(code, columns as i16, vec![i16::from(code); columns]));
    }

    /// A query whose rows need not be together in memory: nobody runs it again, and it is no statement of a block.
    async fn streamed<'q>(
        &self,
        query: &'q ParsedStatement,
    ) -> Result<Option<&'q Mutex<Arc<Prepared>>>, SqlError> {
        let Body::Database(cached) = &query.body else { return Ok(None) };
        if self.block.is_some() {
            return Ok(None);
        }
        let prepared = self.current(query, cached).await?;
        let streams = prepared.kind == StatementKind::Read && !prepared.temporary;
        Ok(streams.then_some(cached))
    }

    /// Whether the query ran: it does not where the catalog has changed since it was bound.
    async fn copy_as_found(
        &mut self,
        prepared: Arc<Prepared>,
        mut writer: CopyWriter,
    ) -> Result<(bool, CopyWriter), Failure> {
        let (sender, mut parts) = mpsc::channel::<BytesMut>(PARTS_WAITING);
        let role = self.identity.role.clone();
        let interest = Interest::default();
        let interrupt = interest.interrupt();
        let running = tokio::spawn(blocking(move || {
            let mut part = BytesMut::new();
            let ran = prepared.query.visit_rows(&role, &[], &interrupt, &mut |row| {
                writer.row(&mut part, &row);
                if part.len() < PART_BYTES {
                    return ControlFlow::Continue(());
                }
                // Nobody takes it any more where the client has gone or does not want to wait.
                match sender.blocking_send(std::mem::take(&mut part)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })?;
            if ran.is_none() {
                return Ok((false, writer));
            }
            writer.finish(&mut part);
            // As above.
            let _ = sender.blocking_send(part);
            Ok((true, writer))
        }));
        let cancel = Arc::clone(&self.cancel);
        let user = std::pin::pin!(cancel.notified());
        let late = std::pin::pin!(time_is_up(self.settings.statement_timeout()));
        let (mut user, mut late) = (user, late);
        loop {
            let part = tokio::select! {
                biased;
                () = &mut user => return Err(cancelled("user request").into()),
                () = &mut late => return Err(cancelled("statement timeout").into()),
                part = parts.recv() => part,
            };
            let Some(part) = part else { break };
            self.connection.output().put_slice(&part);
            self.connection.flush_if_full().await?;
        }
        let ended = running.await;
        Ok(ended.map_err(|_| SqlError::new(SqlState::INTERNAL_ERROR, "the query was ended"))??)
    }
}
