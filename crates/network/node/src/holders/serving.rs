//! A holder's process: it listens for its validator, and answers.

use super::folder::HolderFolder;
use super::link::{prepare, read_frame, write_frame};
use super::tls::Own;
use crate::NodeError;
use crate::core::threads;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sparse::{Holder, Placement};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at the same time: more than a validator opens.
const CONNECTIONS_MAX: usize = 256;
/// How long a connection may take to show its certificate.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A running holder.
pub struct HolderNode {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    accepting: Option<std::thread::JoinHandle<()>>,
}

/// What connections share.
struct Serving {
    holder: Holder,
    pool: rayon::ThreadPool,
    config: Arc<ServerConfig>,
    stopping: Arc<AtomicBool>,
    connections: AtomicUsize,
}

impl HolderNode {
    /// Opens the holder's store and listens.
    ///
    /// # Errors
    /// Whatever keeps it from starting, with what to do.
    pub fn start(folder: &HolderFolder) -> Result<HolderNode, NodeError> {
        let options = &folder.options;
        let own = Own::read(&folder.path)?;
        let config = own.server(&options.validator);
        let config =
            config.map_err(|error| NodeError::Options(format!("the certificate of the holder: {error}")))?;
        let stores = folder.store().open(&folder.path.join("state"))?;
        let listen = |error| {
            NodeError::Options(format!(
                "holder.toml: listen = \"{}\" cannot be listened on: {error}; choose another address, in the validator's node.toml too",
                options.listen
            ))
        };
        let listener = TcpListener::bind(options.listen).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let placement = Placement::of_schemas(vec![options.schemas.clone()]);
        let serving = Arc::new(Serving {
            holder: Holder::new(stores, placement, 0),
            pool: threads("holder", options.threads)?,
            config,
            stopping: stopping.clone(),
            connections: AtomicUsize::new(0),
        });
        let accept = move || accept(&serving, &listener);
        let accepting = std::thread::Builder::new().name("holder".into()).spawn(accept);
        let accepting = accepting.map_err(|error| NodeError::Thread { name: "holder", error })?;
        Ok(HolderNode { address, stopping, accepting: Some(accepting) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens no more. Connections end with the process, or with their validator.
    pub fn stop(mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        // Wakes whoever waits for the next connection.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(serving: &Arc<Serving>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if serving.stopping.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if serving.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            serving.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let of_connection = serving.clone();
        let serve = move || {
            let peer = stream.peer_addr();
            if let Err(error) = serve(&of_connection, stream) {
                tracing::info!(?peer, %error, "a connection has ended");
            }
            of_connection.connections.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().name("holder connection".into()).spawn(serve).is_err() {
            serving.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Answers until the other side has ended.
fn serve(serving: &Serving, stream: TcpStream) -> std::io::Result<()> {
    prepare(&stream)?;
    stream.set_read_timeout(Some(HANDSHAKE))?;
    let connection = ServerConnection::new(serving.config.clone()).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    stream.conn.complete_io(&mut stream.sock)?;
    stream.sock.set_read_timeout(None)?;
    while let Some(question) = read_frame(&mut stream)? {
        let answer = serving.pool.install(|| serving.holder.answer(&question));
        write_frame(&mut stream, &answer)?;
    }
    Ok(())
}
