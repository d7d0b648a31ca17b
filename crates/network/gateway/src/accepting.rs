//! Connections, as they come to a listener.

use crate::GatewayError;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// So many failures one after the other are for good.
const FAILURES_MAX: u32 = 100;
const WAIT_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Gives every connection to `serve`, until the future is dropped, which ends all of them. `purpose` is for the error.
///
/// # Errors
/// [`GatewayError::Listener`] where the listener fails for good.
pub(crate) async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    purpose: &'static str,
    serve: impl Fn(TcpStream, SocketAddr) -> F,
) -> Result<(), GatewayError> {
    let mut tasks = JoinSet::new();
    let mut failures = 0_u32;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, purpose, "a connection ended unexpectedly");
                }
                continue;
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                failures = 0;
                // Answers are flushed where they end; waiting for more would only delay them.
                let _ = stream.set_nodelay(true);
                tasks.spawn(serve(stream, peer));
            }
            // Out of file descriptors, or a connection that was gone before it was accepted: neither is for good.
            Err(source) if failures >= FAILURES_MAX => {
                return Err(GatewayError::Listener { purpose, source });
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, purpose, "a connection could not be accepted");
                tokio::time::sleep(WAIT_AFTER_FAILURE).await;
            }
        }
    }
}
