//! Questions and answers over TLS: four bytes of length, lowest first, then as many bytes. A connection carries one question at
//! a time; as many are opened as are asked at the same time.

use super::HolderConfig;
use super::tls::Own;
use crate::NodeError;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use socket2::{SockRef, TcpKeepalive};
use sparse::{Link, LinkFailure};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a question or of an answer.
const FRAME_MAX: usize = 1 << 30;
/// Bytes that are taken on trust before the rest of a frame is there.
const FRAME_BEGIN: usize = 1 << 20;
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// Between two attempts to reach a holder.
const RETRY: Duration = Duration::from_millis(300);
/// Between two words in the log about a holder that cannot be reached.
const TELL: Duration = Duration::from_secs(10);
/// A connection of which nothing is heard for so long is looked into, and so often before it counts as lost.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

type Connection = StreamOwned<ClientConnection, TcpStream>;

/// The way to a holder.
pub(super) struct TcpLink {
    name: String,
    address: SocketAddr,
    config: Arc<ClientConfig>,
    idle: Mutex<Vec<Connection>>,
    stopped: AtomicBool,
    told: Mutex<Option<Instant>>,
    sent: AtomicU64,
    received: AtomicU64,
}

impl TcpLink {
    pub(super) fn new(holder: &HolderConfig, own: &Own) -> Result<TcpLink, NodeError> {
        let config = own.client(&holder.certificate);
        let config =
            config.map_err(|error| NodeError::Options(format!("the certificate for holders: {error}")))?;
        Ok(TcpLink {
            name: holder.name.clone(),
            address: holder.address,
            config,
            idle: Mutex::default(),
            stopped: AtomicBool::new(false),
            told: Mutex::default(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        })
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.idle.lock().clear();
    }

    /// Bytes of questions, and of answers.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }

    fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT)?;
        prepare(&stream)?;
        let name = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(self.config.clone(), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }

    fn ask_on(&self, connection: &mut Connection, question: &[u8]) -> io::Result<Vec<u8>> {
        write_frame(connection, question)?;
        let answer = read_frame(connection)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.sent.fetch_add(question.len() as u64, Ordering::Relaxed);
        self.received.fetch_add(answer.len() as u64, Ordering::Relaxed);
        Ok(answer)
    }
}

/// What both sides want of a connection: no waiting for more bytes, and an end when the other machine is gone.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (time, interval, retries) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(time).with_interval(interval).with_retries(retries);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

pub(super) fn write_frame(stream: &mut impl Write, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).ok().filter(|length| *length as usize <= FRAME_MAX);
    let length = length.ok_or_else(|| io::Error::other(format!("{} bytes are too many", content.len())))?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(content)?;
    stream.flush()
}

/// The next frame; `None` where the other side has ended between two.
pub(super) fn read_frame(stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_MAX {
        return Err(io::Error::other(format!("expected at most {FRAME_MAX} bytes, found {length}")));
    }
    let mut content = Vec::with_capacity(length.min(FRAME_BEGIN));
    stream.take(length as u64).read_to_end(&mut content)?;
    if content.len() == length { Ok(Some(content)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

impl Link for TcpLink {
    fn ask(&self, question: &[u8]) -> Result<Vec<u8>, LinkFailure> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(LinkFailure("this node stops".to_string()));
        }
        let idle = self.idle.lock().pop();
        let connection = idle.map_or_else(|| self.connect(), Ok);
        let asked =
            connection.and_then(|mut connection| Ok((self.ask_on(&mut connection, question)?, connection)));
        match asked {
            Ok((answer, connection)) => {
                self.idle.lock().push(connection);
                Ok(answer)
            }
            Err(error) => {
                // The others were opened to the same process.
                self.idle.lock().clear();
                Err(LinkFailure(format!("{} does not answer: {error}", self.address)))
            }
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn try_again(&self, failure: &LinkFailure) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        let mut told = self.told.lock();
        if told.is_none_or(|told| told.elapsed() > TELL) {
            *told = Some(Instant::now());
            tracing::warn!(
                holder = self.name,
                address = %self.address,
                reason = failure.0,
                "this node waits for a holder of schemas: start it with `entente node`, or put its schemas elsewhere with `entente place`"
            );
        }
        drop(told);
        std::thread::sleep(RETRY);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_torn_or_endless_ones_are_errors() {
        let mut bytes = Vec::new();
        for content in [&b"question"[..], b"", &[7; 100_000]] {
            write_frame(&mut bytes, content).expect("memory");
        }
        let mut stream = &bytes[..];
        assert_eq!(read_frame(&mut stream).expect("whole"), Some(b"question".to_vec()));
        assert_eq!(read_frame(&mut stream).expect("whole"), Some(Vec::new()));
        assert_eq!(read_frame(&mut stream).expect("whole").map(|content| content.len()), Some(100_000));
        assert_eq!(read_frame(&mut stream).expect("the end"), None);
        assert!(read_frame(&mut &bytes[..10]).is_err(), "torn");
        let endless = u32::MAX.to_le_bytes();
        assert!(read_frame(&mut &endless[..]).expect_err("endless").to_string().contains("expected at most"));
    }
}
