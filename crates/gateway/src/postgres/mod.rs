//! The Postgres wire protocol, version 3.0.
//!
//! ```text
//! listener ─▶ connection ─▶ startup ─▶ session ─┬▶ simple, extended ─▶ statement ─┬▶ settings     SET, SHOW, …
//!             (messages)                        │  (the two protocols)            ├▶ transaction  BEGIN … COMMIT
//!                                               │                                 ├▶ catalogue    DataFusion
//!                                               │                                 └▶ database     prepare, query, execute
//!                                               └▶ copy                              chunks of rows, a transaction each
//! ```
//!
//! Where it differs from PostgreSQL: outside of a transaction block a query string with several statements is one
//! transaction, and in the extended protocol every Execute is; a COPY outside of a block is several transactions; there are
//! no passwords yet, which is why only loopback addresses may connect.

mod connection;
mod copy;
mod copy_in;
mod decode;
pub(crate) mod encode;
mod extended;
mod message;
pub(crate) mod script;
mod session;
mod session_statement;
pub(crate) mod settings;
mod simple;
mod statement;
mod transaction;
mod transaction_command;

use crate::catalog::Catalogue;
use crate::{Database, GatewayError, limits};
use connection::{Connection, ReadError};
use message::{Malformed, Startup};
use parking_lot::Mutex;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use session::{Identity, Session};
use settings::Settings;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use types::{SqlError, SqlState};

/// Serves the Postgres protocol to everybody who connects to `listener`, until the future is dropped, which ends all
/// sessions.
///
/// # Errors
/// [`GatewayError::Listener`] where the listener fails for good.
pub async fn serve_postgres(listener: TcpListener, database: Arc<dyn Database>) -> Result<(), GatewayError> {
    let server = Arc::new(Server {
        catalogue: Arc::new(Catalogue::new(Arc::clone(&database))),
        database,
        sessions: Semaphore::new(limits::CONNECTIONS_MAX),
        refusals: Semaphore::new(limits::REFUSALS_MAX),
        cancels: Mutex::default(),
        next_process: AtomicI32::new(1),
    });
    let mut tasks = JoinSet::new();
    let mut failures = 0_u32;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a session ended unexpectedly");
                }
                continue;
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                failures = 0;
                let server = Arc::clone(&server);
                tasks.spawn(async move { server.serve(stream, peer.ip().is_loopback()).await });
            }
            // Out of file descriptors, or a connection that was gone before it was accepted: neither is for good.
            Err(source) if failures >= 100 => {
                return Err(GatewayError::Listener { purpose: "the Postgres protocol", source });
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// What all sessions share.
struct Server {
    database: Arc<dyn Database>,
    catalogue: Arc<Catalogue>,
    sessions: Semaphore,
    refusals: Semaphore,
    /// By process number: the secret, and who is to be woken.
    cancels: Mutex<HashMap<i32, (i32, Arc<Notify>)>>,
    next_process: AtomicI32,
}

/// Takes a session out of the list of those that can be cancelled.
struct Registration<'a> {
    server: &'a Server,
    process: i32,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.server.cancels.lock().remove(&self.process);
    }
}

impl Server {
    async fn serve(&self, stream: TcpStream, loopback: bool) {
        // Answers are flushed where they end; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        let permit = self.sessions.try_acquire();
        let refusal = if permit.is_err() { self.refusals.try_acquire().ok() } else { None };
        if permit.is_err() && refusal.is_none() {
            return;
        }
        let mut connection = Connection::new(stream);
        let startup = tokio::time::timeout(limits::STARTUP_TIME_MAX, negotiate(&mut connection)).await;
        let (minor, parameters) = match startup {
            Ok(Ok(Startup::Session { minor, parameters })) => (minor, parameters),
            Ok(Ok(Startup::Cancel { process, secret })) => return self.cancel(process, secret),
            Ok(Ok(Startup::Ssl | Startup::Gss)) | Ok(Err(ReadError::Closed)) | Err(_) => return,
            Ok(Err(ReadError::Malformed(
                Malformed::Violation(what) | Malformed::Encoding { message: what, .. },
            ))) => {
                return connection.close_with(&SqlError::new(SqlState::PROTOCOL_VIOLATION, what)).await;
            }
        };
        if let Some(error) = refuse(loopback, permit.is_err(), &parameters) {
            return connection.close_with(&error).await;
        }
        self.start(connection, minor, &parameters).await;
    }

    async fn start(&self, mut connection: Connection, minor: u16, parameters: &[(String, String)]) {
        let parameter = |name: &str| {
            let found = parameters.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        let user = parameter("user").unwrap_or_default();
        let settings = Settings::new(&user, parameters);
        let process = self.next_process.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        let (secret, cancel) = (random(), Arc::new(Notify::new()));
        self.cancels.lock().insert(process, (secret, Arc::clone(&cancel)));
        let _registration = Registration { server: self, process };

        let options: Vec<String> = parameters
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| name.starts_with("_pq_."))
            .collect();
        if minor > 0 || !options.is_empty() {
            connection.put(&NegotiateProtocolVersion::new(3 << 16, options));
        }
        connection.put(&Authentication::Ok);
        for (name, value) in settings.reported() {
            connection.put(&ParameterStatus::new(name.to_string(), value));
        }
        connection.put(&BackendKeyData::new(process, SecretKey::I32(secret)));
        let identity = Identity { user, process };
        let (database, catalogue) = (Arc::clone(&self.database), Arc::clone(&self.catalogue));
        Session::new(connection, database, catalogue, identity, settings, cancel).run().await;
    }

    fn cancel(&self, process: i32, secret: i32) {
        if let Some((expected, cancel)) = self.cancels.lock().get(&process)
            && *expected == secret
        {
            cancel.notify_waiters();
        }
    }
}

/// Reads first messages until one starts a session or cancels; encryption is refused as often as it is asked for.
async fn negotiate(connection: &mut Connection) -> Result<Startup, ReadError> {
    for _ in 0..3 {
        match connection.read_startup().await? {
            Startup::Ssl | Startup::Gss => {
                connection.put_refusal_of_encryption();
                connection.flush().await.map_err(|_| ReadError::Closed)?;
            }
            other => return Ok(other),
        }
    }
    Err(ReadError::Malformed(Malformed::Violation(
        "encryption was refused already; start the session".to_string(),
    )))
}

/// Why a session cannot be, if it cannot.
fn refuse(loopback: bool, full: bool, parameters: &[(String, String)]) -> Option<SqlError> {
    if full {
        let message =
            format!("sorry, too many clients already: at most {} (CONNECTIONS_MAX)", limits::CONNECTIONS_MAX);
        let error = SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message);
        return Some(error.hint("close sessions that are not needed, or pool connections"));
    }
    if !loopback {
        let message = "there are no passwords yet, so only clients on the same machine may connect";
        return Some(
            SqlError::new(SqlState::INVALID_AUTHORIZATION, message)
                .hint("connect through 127.0.0.1, or tunnel the port"),
        );
    }
    let has = |name: &str| parameters.iter().any(|(other, value)| other == name && !value.is_empty());
    if !has("user") {
        return Some(SqlError::new(
            SqlState::INVALID_AUTHORIZATION,
            "no PostgreSQL user name specified in startup packet",
        ));
    }
    let replication =
        parameters.iter().find(|(name, _)| name == "replication").map(|(_, value)| value.as_str());
    if replication.is_some_and(|value| !matches!(value, "false" | "off" | "no" | "0")) {
        return Some(SqlError::unsupported("the replication protocol"));
    }
    None
}

/// An unpredictable number from the operating system, by way of the standard library's hash keys.
fn random() -> i32 {
    std::collections::hash_map::RandomState::new().build_hasher().finish() as i32
}
