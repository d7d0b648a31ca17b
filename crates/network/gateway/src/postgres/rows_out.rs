//! The rows of a query, on their way from the thread that finds them to the client.
//!
//! ```text
//!  a thread: query ─▶ WriteRows ─▶ parts of 64 KiB ──a few at a time──▶ the session ─▶ client
//! ```
//!
//! A part is sent once it is full, or the query has ended: a small result is one part, and what fails before is an error without
//! rows. However large the result is, and however slowly the client reads, only a few parts are in memory. Meanwhile the
//! query waits.

use super::encode::{data_row, row_description};
use super::session::{Failure, Session};
use super::statement::{Body, Interest, ParsedStatement, blocking, cancelled, time_is_up};
use crate::{Prepared, StatementKind};
use bytes::{BufMut, BytesMut};
use parking_lot::Mutex;
use pgwire::messages::Message as Encode;
use pgwire::messages::data::RowDescription;
use pgwire::messages::response::CommandComplete;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc;
use types::session_format::{SessionFormat, within_format};
use types::{MemoryShare, Notice, SqlError, Value};

/// Bytes that travel from the thread that runs a query to its session at once.
const PART_BYTES: usize = 64 * 1024;
/// Such parts that may wait for the client.
const PARTS_WAITING: usize = 4;
/// What a result takes that does not fit into one part: the parts that wait, that which is made, and that which is sent.
const STREAM_BYTES: u64 = ((PARTS_WAITING + 3) * PART_BYTES) as u64;

/// Writes rows as messages.
pub(super) trait WriteRows: Send + 'static {
    /// Appends a row, behind what comes before the first.
    fn row(&mut self, output: &mut BytesMut, row: &[Value]);

    /// Appends what comes behind the last row.
    fn finish(&mut self, output: &mut BytesMut);
}

/// A query that has ended.
pub(super) struct Ended<W> {
    pub(super) writer: W,
    pub(super) parameters: Vec<Value>,
    /// Whether it ran: it does not where the catalog has changed since it was bound.
    pub(super) ran: bool,
}

/// Makes DataRow messages, behind the RowDescription where one is asked for.
struct RowWriter {
    description: Option<RowDescription>,
    /// Has the columns.
    prepared: Arc<Prepared>,
    formats: Vec<i16>,
    format: SessionFormat,
    rows: u64,
}

impl RowWriter {
    fn begin(&mut self, output: &mut BytesMut) {
        // pgwire refuses nothing but messages beyond its length limits, which the limits of the gateway stay below.
        if let Some(Err(error)) = self.description.take().map(|description| description.encode(output)) {
            tracing::error!(%error, "a message could not be encoded");
        }
    }
}

impl WriteRows for RowWriter {
    fn row(&mut self, output: &mut BytesMut, row: &[Value]) {
        self.begin(output);
        self.rows += 1;
        within_format(self.format, || data_row(output, &self.prepared.columns, row, &self.formats));
    }

    fn finish(&mut self, output: &mut BytesMut) {
        self.begin(output);
    }
}

impl Session {
    /// A query whose rows need not be together in memory: nobody runs it again, and it is no statement of a block.
    pub(super) async fn streamed<'q>(
        &self,
        query: &'q ParsedStatement,
    ) -> Result<Option<&'q Mutex<Arc<Prepared>>>, SqlError> {
        let Body::Database(cached) = &query.body else { return Ok(None) };
        let explains = query.sql.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain"));
        if self.block.is_some() || !query.returns_rows || explains {
            return Ok(None);
        }
        let prepared = self.current(query, cached).await?;
        // What seems to write, because it locks, is refused where it would run.
        let is_refused = prepared.lock.is_some() && self.reads_only();
        let streams = prepared.kind == StatementKind::Read && !prepared.temporary && !is_refused;
        Ok(streams.then_some(cached))
    }

    /// Runs such a query and sends its rows. `describes`: behind a description of them.
    pub(super) async fn send_rows(
        &mut self,
        statement: &ParsedStatement,
        cached: &Mutex<Arc<Prepared>>,
        mut parameters: Vec<Value>,
        (describes, formats): (bool, &[i16]),
    ) -> Result<(), Failure> {
        self.wait_for_min_height().await?;
        loop {
            // Where a block has changed the catalog since it was bound, it is bound again.
            let prepared = self.current(statement, cached).await?;
            let description = describes.then(|| row_description(&prepared.columns, &statement.told, formats));
            let (formats, format) = (formats.to_vec(), self.settings.format());
            let writer = RowWriter { description, prepared: Arc::clone(&prepared), formats, format, rows: 0 };
            let ended = self.send_as_found(prepared, parameters, writer).await?;
            if ended.ran {
                self.connection.put(&CommandComplete::new(format!("SELECT {}", ended.writer.rows)));
                return Ok(());
            }
            parameters = ended.parameters;
        }
    }

    /// Runs a query and sends what is written of its rows, and its messages.
    pub(super) async fn send_as_found<W: WriteRows>(
        &mut self,
        prepared: Arc<Prepared>,
        parameters: Vec<Value>,
        writer: W,
    ) -> Result<Ended<W>, Failure> {
        let (sender, mut parts) = mpsc::channel::<BytesMut>(PARTS_WAITING);
        let interest = Interest::default();
        let query = Query {
            prepared,
            role: self.identity.role.clone(),
            parameters,
            writer,
            interest: interest.interrupt(),
        };
        let mut share = MemoryShare::of(&self.database.query_memory());
        let cancel = Arc::clone(&self.cancel);
        let timeout = self.settings.statement_timeout();
        let mut user = std::pin::pin!(cancel.notified());
        let mut late = std::pin::pin!(time_is_up(timeout));
        let mut running = std::pin::pin!(blocking(move || query.run(&sender)));
        let (ended, rest, notices) = loop {
            let part = tokio::select! {
                biased;
                () = &mut user => return Err(cancelled("user request").into()),
                () = &mut late => return Err(cancelled("statement timeout").into()),
                Some(part) = parts.recv() => part,
                ended = &mut running => break ended?,
            };
            share.grow_to(STREAM_BYTES)?;
            self.connection.output().put_slice(&part);
            tokio::select! {
                biased;
                () = &mut user => return Err(cancelled("user request").into()),
                () = &mut late => return Err(cancelled("statement timeout").into()),
                sent = self.connection.flush_if_full() => sent?,
            }
        };
        // Those that it had handed over when it ended.
        while let Some(part) = parts.recv().await {
            self.connection.output().put_slice(&part);
            self.connection.flush_if_full().await?;
        }
        share.grow_to(rest.len() as u64)?;
        self.connection.put_notices(&notices);
        self.connection.output().put_slice(&rest);
        self.connection.flush_if_full().await?;
        Ok(ended)
    }
}

/// A query that a thread runs.
struct Query<W> {
    prepared: Arc<Prepared>,
    role: String,
    parameters: Vec<Value>,
    writer: W,
    interest: Arc<std::sync::atomic::AtomicBool>,
}

impl<W: WriteRows> Query<W> {
    /// Gives what was not sent, and the messages of the query.
    fn run(self, sender: &mpsc::Sender<BytesMut>) -> Result<(Ended<W>, BytesMut, Vec<Notice>), SqlError> {
        let Query { prepared, role, parameters, mut writer, interest } = self;
        let mut part = BytesMut::new();
        let notices = prepared.query.visit_rows(&role, &parameters, &interest, &mut |row| {
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
        let ran = notices.is_some();
        if ran {
            writer.finish(&mut part);
        }
        Ok((Ended { writer, parameters, ran }, part, notices.unwrap_or_default()))
    }
}
