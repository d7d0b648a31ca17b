//! The port of HTTP: TLS and plain text on one port, told apart by the first byte, with limits on how many connect and how slowly.
//!
//! ```text
//! connection ─▶ first byte ─┬ 0x16: TLS ─┬ the client asks for the node's key (ALPN) ─▶ certificate of the node key ─┬▶ requests
//!                           │            └ it does not ────────────────────────────────▶ the company's certificate ──┤
//!                           └ others: plain text, where `PlainHttp` allows it ────────────────────────────────────────┘
//! ```

use crate::accepting::accept;
use crate::http::router;
use crate::starting::Starting;
use crate::{Database, GatewayError, PlainHttp, SharedAccess, limits};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;

/// The first byte of TLS: a handshake.
const TLS_HANDSHAKE: u8 = 0x16;
/// So much of what a refused client still sends is read, so that the refusal arrives.
const DRAINED_BYTES_MAX: u64 = 1 << 20;
const DRAINED_WITHIN: Duration = Duration::from_millis(500);
const PLAIN_REFUSED: &str = "this node answers other machines over TLS alone: ask with https://, and make sure who answers by the node's key \
                             in the charter or by its tls.crt (plain_http in node.toml says who may do without)";

/// Bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Serves HTTP to everybody who connects to `listener` and whom `access` lets in, until the future is dropped, which ends all
/// connections.
///
/// # Errors
/// [`GatewayError::Listener`] where the listener fails for good.
pub async fn serve_http(
    listener: TcpListener,
    database: Arc<dyn Database>,
    access: impl Into<SharedAccess>,
) -> Result<(), GatewayError> {
    let server = Arc::new(HttpServer {
        router: router(database),
        access: access.into(),
        starting: Starting::default(),
        connections: Semaphore::new(limits::HTTP_CONNECTIONS_MAX),
    });
    let serve = move |stream, peer| {
        let server = Arc::clone(&server);
        async move { server.serve(stream, peer).await }
    };
    accept(listener, "HTTP", serve).await
}

/// What all connections share.
struct HttpServer {
    router: Router,
    access: SharedAccess,
    starting: Starting,
    connections: Semaphore,
}

impl HttpServer {
    async fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        let place = self.starting.enter(limits::STARTING_MAX);
        let begun = tokio::select! {
            biased;
            () = place.lost() => return,
            begun = tokio::time::timeout(limits::STARTUP_TIME_MAX, self.begin(stream, peer)) => begun,
        };
        drop(place);
        let Ok(Some(stream)) = begun else { return };
        // Counted from here on: who only begins takes no connection from anybody.
        let Ok(_connection) = self.connections.try_acquire() else {
            let most = limits::HTTP_CONNECTIONS_MAX;
            let message = format!("too many connections: at most {most} (HTTP_CONNECTIONS_MAX)");
            return refuse(stream, "503 Service Unavailable", &message).await;
        };
        let service = TowerToHyperService::new(self.router.clone());
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::HTTP_IDLE_TIME_MAX)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = serving.await {
            tracing::debug!(%error, %peer, "a connection over HTTP ended");
        }
    }

    /// Finds out what a client speaks; `None` where nothing is left to say.
    async fn begin(&self, stream: TcpStream, peer: SocketAddr) -> Option<Box<dyn Stream>> {
        let mut first = [0];
        if stream.peek(&mut first).await.ok()? == 0 {
            return None;
        }
        let http = self.access.get().http.clone();
        if first[0] != TLS_HANDSHAKE {
            let is_near = peer.ip().to_canonical().is_loopback();
            if http.plain == PlainHttp::Everybody || http.plain == PlainHttp::Loopback && is_near {
                return Some(Box::new(stream));
            }
            refuse(stream, "403 Forbidden", PLAIN_REFUSED).await;
            return None;
        }
        let Some(tls) = &http.tls else {
            tracing::debug!(%peer, "a client speaks TLS, and this port has none");
            return None;
        };
        let begun = match LazyConfigAcceptor::new(Acceptor::default(), stream).await {
            Ok(begun) => begun,
            Err(error) => {
                tracing::debug!(%error, %peer, "what came is no handshake of TLS");
                return None;
            }
        };
        let config = tls.for_client(&begun.client_hello());
        match begun.into_stream(config).await {
            Ok(stream) => Some(Box::new(stream)),
            Err(error) => {
                tracing::debug!(%error, %peer, "a TLS handshake failed");
                None
            }
        }
    }
}

/// Answers whatever is asked with one text, and closes.
async fn refuse(mut stream: impl Stream, status: &str, message: &str) {
    let length = message.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{message}\n"
    );
    let answering = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(DRAINED_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // Whether the client closes in time does not matter.
    let _ = tokio::time::timeout(DRAINED_WITHIN, answering).await;
}
