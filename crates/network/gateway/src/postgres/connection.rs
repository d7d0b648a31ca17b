//! A socket as a sequence of messages.

use super::about::About;
use super::message::{Malformed, Message, Startup, decode, decode_startup};
use crate::limits;
use bytes::{Buf, Bytes, BytesMut};
use pgwire::error::ErrorInfo;
use pgwire::messages::Message as Encode;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use types::{Notice, Severity, SqlError, SqlState};

/// Output is sent when it has grown to this many bytes.
const FLUSH_BYTES: usize = 64 * 1024;
/// A Sync that is farther behind is not looked for.
const LOOKED_AT_BYTES_MAX: usize = 64 * 1024;
/// A Flush has no body.
const FLUSH_MESSAGE_BYTES: usize = 5;
/// Longer texts of errors are cut.
const ERROR_TEXT_BYTES_MAX: usize = 8 * 1024;

/// Why no message came.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The connection is gone.
    Closed,
    /// What came is no message.
    Malformed(Malformed),
}

/// The connection is gone: nothing can be answered any more.
#[derive(Debug)]
pub(super) struct Closed;

impl From<std::io::Error> for Closed {
    fn from(_: std::io::Error) -> Closed {
        Closed
    }
}

/// What bytes come from and go to: a socket, or TLS over one.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

/// A client's socket with what was read and not decoded, and what was encoded and not sent.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    input: BytesMut,
    output: BytesMut,
    /// Notices and warnings below this level are not sent.
    least: MessageLevel,
}

/// What `client_min_messages` tells apart of what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MessageLevel {
    /// Also what is said to find mistakes.
    Debug,
    /// What a server's log has.
    Log,
    #[default]
    Notice,
    Warning,
    /// Nothing but errors, and what somebody has asked for.
    Error,
}

impl MessageLevel {
    /// Of a value of `client_min_messages`.
    pub(super) fn from_name(name: &str) -> MessageLevel {
        match name {
            "log" => MessageLevel::Log,
            "notice" => MessageLevel::Notice,
            "warning" => MessageLevel::Warning,
            "error" => MessageLevel::Error,
            _ => MessageLevel::Debug,
        }
    }
}

impl Connection {
    pub(super) fn new(stream: impl Stream + 'static) -> Connection {
        Connection {
            stream: Box::new(stream),
            input: BytesMut::new(),
            output: BytesMut::new(),
            least: MessageLevel::default(),
        }
    }

    /// Agrees to TLS and goes on inside of it.
    pub(super) async fn encrypt(mut self, acceptor: &TlsAcceptor) -> Result<Connection, ReadError> {
        // What was sent before the handshake nobody has protected: it must not count as sent inside of it.
        if !self.input.is_empty() {
            return Err(ReadError::Malformed(Malformed::Violation(
                "received unencrypted data after SSL request".to_string(),
            )));
        }
        self.output.extend_from_slice(b"S");
        self.flush().await.map_err(|_| ReadError::Closed)?;
        let stream = acceptor.accept(self.stream).await.map_err(|error| {
            tracing::debug!(%error, "a TLS handshake failed");
            ReadError::Closed
        })?;
        Ok(Connection::new(stream))
    }

    /// Reads until `length` bytes are there. May be dropped and called again: what was read stays.
    async fn fill(&mut self, length: usize) -> Result<(), ReadError> {
        while self.input.len() < length {
            self.input.reserve((length - self.input.len()).min(FLUSH_BYTES));
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return Err(ReadError::Closed),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Length in the four bytes from `offset`, which counts itself.
    async fn length(&mut self, offset: usize, limit: usize) -> Result<usize, ReadError> {
        self.fill(offset + 4).await?;
        let length = (&self.input[offset..]).get_i32();
        match usize::try_from(length) {
            Ok(length) if (4..=limit).contains(&length) => Ok(length),
            _ => Err(ReadError::Malformed(Malformed::Violation(format!(
                "invalid message length {length}: expected 4 to {limit} bytes"
            )))),
        }
    }

    /// Reads the message that starts a session. Can be cancelled.
    pub(super) async fn read_startup(&mut self) -> Result<Startup, ReadError> {
        let length = self.length(0, limits::STARTUP_BYTES_MAX).await?;
        self.fill(length).await?;
        let body = self.input.split_to(length).freeze().slice(4..);
        decode_startup(body).map_err(ReadError::Malformed)
    }

    /// Reads a message. Can be cancelled: nothing is lost.
    pub(super) async fn read_message(&mut self) -> Result<Message, ReadError> {
        let length = self.length(1, limits::MESSAGE_BYTES_MAX).await?;
        self.fill(length + 1).await?;
        let message = self.input.split_to(length + 1).freeze();
        decode(message[0], message.slice(5..)).map_err(ReadError::Malformed)
    }

    /// Whether Sync is the next message, but for Close, which ends nothing, and a Flush that Sync follows at once. Waits for it; reads
    /// nothing. Can be cancelled.
    pub(super) async fn syncs_next(&mut self) -> Result<bool, Closed> {
        let mut at = 0;
        while at < LOOKED_AT_BYTES_MAX {
            self.fill(at + 1).await.map_err(|_| Closed)?;
            match self.input[at] {
                b'S' => return Ok(true),
                b'C' => match self.length(at + 1, LOOKED_AT_BYTES_MAX).await {
                    Ok(length) => at += 1 + length,
                    Err(ReadError::Closed) => return Err(Closed),
                    Err(ReadError::Malformed(_)) => return Ok(false),
                },
                b'H' if self.input.len() > at + FLUSH_MESSAGE_BYTES => at += FLUSH_MESSAGE_BYTES,
                _ => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Reads the body of a message that answers a question of authentication. Can be cancelled.
    pub(super) async fn read_authentication(&mut self) -> Result<Bytes, ReadError> {
        self.fill(1).await?;
        if self.input[0] != b'p' {
            let found = char::from(self.input[0]).escape_default();
            return Err(ReadError::Malformed(Malformed::Violation(format!(
                "expected a password message ('p'), found '{found}'"
            ))));
        }
        let length = self.length(1, limits::AUTHENTICATION_BYTES_MAX).await?;
        self.fill(length + 1).await?;
        Ok(self.input.split_to(length + 1).freeze().slice(5..))
    }

    /// Appends a message to the output.
    pub(super) fn put(&mut self, message: &impl Encode) {
        // pgwire refuses nothing but messages beyond its length limits, which the limits of the gateway stay below.
        if let Err(error) = message.encode(&mut self.output) {
            tracing::error!(%error, "a message could not be encoded");
        }
    }

    /// Appends the single byte that answers a request for encryption.
    pub(super) fn put_refusal_of_encryption(&mut self) {
        self.output.extend_from_slice(b"N");
    }

    /// The output, for messages that are written in place.
    pub(super) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Appends the error of a statement, and what it is about.
    pub(super) fn put_error(&mut self, error: &SqlError, context: Option<String>, about: About) {
        let mut info = info("ERROR", error, context);
        let cut = |name: Option<String>| name.as_deref().map(cut);
        (info.schema, info.table) = (cut(about.schema), cut(about.table));
        (info.column, info.constraint) = (cut(about.column), cut(about.constraint));
        self.put(&ErrorResponse::from(info));
    }

    /// Appends the messages of a statement.
    pub(super) fn put_notices(&mut self, notices: &[Notice]) {
        let least = self.least;
        let is_sent = |notice: &&Notice| match notice.severity {
            // Whoever writes one wants it to be seen.
            Severity::Info => true,
            Severity::Notice => least <= MessageLevel::Notice,
            Severity::Warning => least <= MessageLevel::Warning,
        };
        for notice in notices.iter().filter(is_sent) {
            let fields = ErrorResponse::from(info(notice.severity.name(), &notice.report, None)).fields;
            self.put(&NoticeResponse::new(fields));
        }
    }

    /// From now on notices and warnings below this level are not sent.
    pub(super) fn send_from(&mut self, least: MessageLevel) {
        self.least = least;
    }

    /// Appends a warning.
    pub(super) fn put_warning(&mut self, state: SqlState, message: &str) {
        if self.least > MessageLevel::Warning {
            return;
        }
        let info = info("WARNING", &SqlError::new(state, message), None);
        let fields = ErrorResponse::from(info).fields;
        self.put(&NoticeResponse::new(fields));
    }

    /// Sends the output if there is much of it.
    pub(super) async fn flush_if_full(&mut self) -> Result<(), Closed> {
        if self.output.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Sends the output. A client that does not read for [`limits::WRITE_TIME_MAX`] is given up.
    pub(super) async fn flush(&mut self) -> Result<(), Closed> {
        let sending = self.stream.write_all_buf(&mut self.output);
        tokio::time::timeout(limits::WRITE_TIME_MAX, sending).await.map_err(|_| Closed)??;
        Ok(())
    }

    /// Sends a last error and closes; what the client still sends is read for a moment, so that the error arrives.
    pub(super) async fn close_with(mut self, error: &SqlError) {
        self.put(&ErrorResponse::from(info("FATAL", error, None)));
        if self.flush().await.is_err() || self.stream.shutdown().await.is_err() {
            return;
        }
        let drain = async {
            let mut sink = [0; 4096];
            for _ in 0..256 {
                if !matches!(self.stream.read(&mut sink).await, Ok(1..)) {
                    break;
                }
            }
        };
        // Whether the client closes in time does not matter.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(500), drain).await;
    }
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(ERROR_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // A zero byte would end the field early.
    text[..end].replace('\0', "\u{fffd}")
}

fn info(severity: &str, error: &SqlError, context: Option<String>) -> ErrorInfo {
    let mut info = ErrorInfo::new(severity.to_string(), error.state.to_string(), cut(&error.message));
    info.severity_nonlocalized = Some(severity.to_string());
    info.detail = error.detail.as_deref().map(cut);
    info.hint = error.hint.as_deref().map(cut);
    info.position = error.position.map(|position| position.to_string());
    info.where_context = context.as_deref().map(cut);
    info
}
