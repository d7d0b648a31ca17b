//! The Postgres wire protocol, version 3.0.
//!
//! ```text
//! listener ─▶ connection ─▶ startup ─▶ session ─┬▶ simple, extended ─▶ statement ─┬▶ settings     SET, SHOW, …
//!             (messages,    (TLS,               │  (the two protocols)            ├▶ transaction  BEGIN … COMMIT
//!              TLS)          SCRAM)             │                                 ├▶ cursor       rows of queries of the session
//!                                               │                                 ├▶ catalogue
//!                                               │                                 └▶ database     prepare, query, execute
//!                                               ├▶ pipeline                          a block of what comes up to Sync
//!                                               ├▶ listening                         LISTEN, and what arrives
//!                                               ├▶ advisory                          locks of the session: renewing, giving back; lock_waiting
//!                                               ├▶ rows_out                          rows of a query as they are found
//!                                               └▶ copy                              chunks of rows in, a transaction each; rows of a query out
//! ```
//!
//! As in PostgreSQL a query string with several statements is one transaction, and so are all statements up to Sync. Where it differs: a
//! COPY outside of a block is several transactions.

mod about;
mod advisory;
mod advisory_text;
mod authenticate;
mod connection;
mod copy;
mod copy_binary_reader;
mod copy_format;
mod copy_in;
mod copy_line_reader;
mod copy_out;
mod copy_reader;
mod copy_writer;
mod cursor;
mod cursor_command;
mod decode;
mod decode_range;
pub(crate) mod encode;
mod extended;
mod hstore_wire;
mod listening;
mod lock_waiting;
mod message;
mod options;
mod password;
mod pipeline;
mod prepared;
mod prepared_command;
mod rows_out;
pub(crate) mod script;
mod session;
mod session_statement;
mod set_config;
mod setting;
pub(crate) mod settings;
mod simple;
mod statement;
mod text_search_wire;
mod transaction;
mod transaction_command;
mod void_parameters;
mod words;

use crate::accepting::accept;
use crate::catalogue::NodeCatalogue;
use crate::starting::Starting;
use crate::{Access, Authentication as Wanted, Database, GatewayError, SharedAccess, limits};
use authenticate::{Refusal, authenticate};
use connection::{Closed, Connection, ReadError};
use message::{Malformed, Startup};
use parking_lot::Mutex;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use session::{Identity, Session};
use settings::{Circumstances, Settings, WARNING};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use types::{SqlError, SqlState};

/// Serves the Postgres protocol to everybody who connects to `listener` and whom `access` lets in, until the future is
/// dropped, which ends all sessions.
///
/// # Errors
/// [`GatewayError::Listener`] where the listener fails for good.
pub async fn serve_postgres(
    listener: TcpListener,
    database: Arc<dyn Database>,
    access: impl Into<SharedAccess>,
) -> Result<(), GatewayError> {
    let server = Arc::new(PostgresServer::new(database, access.into()));
    let serve = move |stream, peer: SocketAddr| {
        let server = Arc::clone(&server);
        async move { server.serve(stream, peer.ip().to_canonical().is_loopback()).await }
    };
    accept(listener, "the Postgres protocol", serve).await
}

/// What all sessions share: answers connections, wherever they come from.
pub struct PostgresServer {
    database: Arc<dyn Database>,
    catalogue: Arc<NodeCatalogue>,
    access: SharedAccess,
    sessions: AtomicUsize,
    starting: Starting,
    /// By process number: the secret, and who is to be woken.
    cancels: Mutex<HashMap<i32, (i32, Arc<Notify>)>>,
    next_process: AtomicI32,
}

/// A connection that has said what it wants.
struct Negotiated {
    connection: Connection,
    startup: Result<Startup, Malformed>,
    encrypted: bool,
}

/// The protocol's minor version, the session's parameters, its user and the user's role.
type Identified = (u16, Vec<(String, String)>, String, String);

/// A client that may start a session.
struct Admitted {
    connection: Connection,
    minor: u16,
    parameters: Vec<(String, String)>,
    user: String,
    role: String,
}

/// Takes a session out of the list of those that can be cancelled.
struct Registration<'a> {
    server: &'a PostgresServer,
    process: i32,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.server.cancels.lock().remove(&self.process);
    }
}

/// A session that counts as long as it lasts.
struct Counted<'a>(&'a AtomicUsize);

impl Counted<'_> {
    /// One more, where there are fewer than `most`.
    fn one_of(sessions: &AtomicUsize, most: usize) -> Option<Counted<'_>> {
        let more = |count: usize| (count < most).then_some(count + 1);
        sessions.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Counted(sessions))
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl PostgresServer {
    /// Answers for `database` to whom `access` lets in.
    pub fn new(database: Arc<dyn Database>, access: impl Into<SharedAccess>) -> PostgresServer {
        PostgresServer {
            catalogue: Arc::new(NodeCatalogue::new(Arc::clone(&database))),
            database,
            sessions: AtomicUsize::new(0),
            access: access.into(),
            starting: Starting::default(),
            cancels: Mutex::default(),
            next_process: AtomicI32::new(1),
        }
    }

    /// Answers one connection until it ends. `loopback`: its client is on this machine.
    pub async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static,
        loopback: bool,
    ) {
        let place = self.starting.enter(limits::STARTING_MAX);
        let admitted = tokio::select! {
            biased;
            () = place.lost() => return,
            admitted = tokio::time::timeout(limits::STARTUP_TIME_MAX, self.admit(Connection::new(stream), loopback)) => admitted,
        };
        drop(place);
        let Ok(Some(Admitted { connection, minor, parameters, user, role })) = admitted else { return };
        // Counted from here on: who only holds connections takes no session from anybody.
        let most = self.access.get().connections_max;
        let Some(_session) = Counted::one_of(&self.sessions, most) else {
            let message = format!("sorry, too many clients already: at most {most} (connections_max)");
            let error = SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message);
            let error = error.hint("close sessions that are not needed, or pool connections");
            return connection.close_with(&error).await;
        };
        self.start(connection, minor, (user, role), &parameters).await;
    }

    /// Finds out who a client is and whether it may start a session; `None` where nothing is left to say.
    async fn admit(&self, connection: Connection, loopback: bool) -> Option<Admitted> {
        let Negotiated { mut connection, startup, encrypted } = self.negotiate(connection).await.ok()?;
        let error = match self.identify(&mut connection, startup, encrypted, loopback).await {
            Ok(Some((minor, parameters, user, role))) => {
                return Some(Admitted { connection, minor, parameters, user, role });
            }
            Ok(None) => return None,
            Err(error) => error,
        };
        connection.close_with(&error).await;
        None
    }

    /// Who a client is, and as which role it acts; `None` where it wanted no session, or has gone.
    async fn identify(
        &self,
        connection: &mut Connection,
        startup: Result<Startup, Malformed>,
        encrypted: bool,
        loopback: bool,
    ) -> Result<Option<Identified>, SqlError> {
        let (minor, parameters) = match startup {
            Ok(Startup::Session { minor, parameters }) => (minor, parameters),
            Ok(Startup::Cancel { process, secret }) => {
                self.cancel(process, secret);
                return Ok(None);
            }
            Ok(Startup::Ssl | Startup::Gss) => {
                let what = "encryption was answered already; start the session";
                return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, what));
            }
            Err(Malformed::Violation(what) | Malformed::Encoding { message: what, .. }) => {
                return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, what));
            }
        };
        let access = self.access.get();
        let user = refuse(&access, loopback, encrypted, &parameters)?;
        if !loopback || access.authentication == Wanted::ScramSha256 {
            match authenticate(connection, &access, &user, encrypted).await {
                Ok(()) => {}
                Err(Refusal::Problem(error)) => {
                    tracing::info!(user, %error, "a client is not let in");
                    return Err(error);
                }
                Err(Refusal::Closed) => return Ok(None),
            }
        }
        // Asked last, so that only those who have proved who they are learn what there is.
        let role = self.database.role_of(&user)?;
        Ok(Some((minor, parameters, user, role)))
    }

    /// Reads first messages until one starts a session or cancels.
    async fn negotiate(&self, mut connection: Connection) -> Result<Negotiated, Closed> {
        let mut encrypted = false;
        for _ in 0..3 {
            let startup = match connection.read_startup().await {
                Ok(startup) => Ok(startup),
                Err(ReadError::Closed) => return Err(Closed),
                Err(ReadError::Malformed(malformed)) => Err(malformed),
            };
            match (startup, &self.access.get().certificate) {
                (Ok(Startup::Ssl), Some(certificate)) if !encrypted => {
                    connection = match connection.encrypt(&certificate.acceptor).await {
                        Ok(connection) => connection,
                        Err(_) => return Err(Closed),
                    };
                    encrypted = true;
                }
                (Ok(Startup::Ssl | Startup::Gss), _) => {
                    connection.put_refusal_of_encryption();
                    connection.flush().await?;
                }
                (startup, _) => return Ok(Negotiated { connection, startup, encrypted }),
            }
        }
        Ok(Negotiated { connection, startup: Ok(Startup::Ssl), encrypted })
    }

    async fn start(
        &self,
        mut connection: Connection,
        minor: u16,
        (user, role): (String, String),
        parameters: &[(String, String)],
    ) {
        let access = self.access.get();
        let (settings, warnings) = match Settings::new(
            &user,
            parameters,
            Circumstances {
                answer_at: self.database.answer_at(),
                formats: self.database.formats(),
                sessions_max: access.connections_max,
                has_certificate: access.certificate.is_some(),
                is_administrator: role.is_empty(),
            },
        ) {
            Ok(settings) => settings,
            Err(error) => return connection.close_with(&error).await,
        };
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
        warnings.iter().for_each(|warning| connection.put_warning(WARNING, warning));
        let identity = Identity { user, process, role };
        let (database, catalogue) = (Arc::clone(&self.database), Arc::clone(&self.catalogue));
        let passwords = Arc::clone(&self.access.get().passwords);
        Session::new(connection, database, catalogue, identity, settings, passwords, cancel).run().await;
    }

    fn cancel(&self, process: i32, secret: i32) {
        if let Some((expected, cancel)) = self.cancels.lock().get(&process)
            && *expected == secret
        {
            cancel.notify_waiters();
        }
    }
}

/// Whose session it is, or why it cannot be.
fn refuse(
    access: &Access,
    loopback: bool,
    encrypted: bool,
    parameters: &[(String, String)],
) -> Result<String, SqlError> {
    if !loopback && !encrypted {
        let message = "clients of other machines must use TLS";
        let hint = match access.certificate {
            Some(_) => "connect with sslmode=require, or better verify-full",
            None => {
                "give the node a certificate (tls_certificate and tls_key in node.toml), or connect from its machine"
            }
        };
        return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION, message).hint(hint));
    }
    let parameter = |name: &str| parameters.iter().find(|(other, _)| other == name).map(|(_, value)| value);
    let user = parameter("user").filter(|user| !user.is_empty()).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_AUTHORIZATION, "no PostgreSQL user name specified in startup packet")
    })?;
    let replication = parameter("replication");
    if replication.is_some_and(|value| !matches!(value.as_str(), "false" | "off" | "no" | "0")) {
        return Err(SqlError::unsupported("the replication protocol"));
    }
    Ok(user.clone())
}

/// An unpredictable number from the operating system, by way of the standard library's hash keys.
fn random() -> i32 {
    std::collections::hash_map::RandomState::new().build_hasher().finish() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(loopback: bool, encrypted: bool, parameters: &[(&str, &str)]) -> Result<String, String> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let parameters: Vec<_> = parameters.iter().map(owned).collect();
        refuse(&Access::default(), loopback, encrypted, &parameters).map_err(|error| error.message)
    }

    #[test]
    fn clients_of_other_machines_must_use_tls() {
        let user = [("user", "ada"), ("database", "entente")];
        assert_eq!(refused(true, false, &user), Ok("ada".to_string()));
        assert_eq!(refused(false, true, &user), Ok("ada".to_string()));
        let error = refused(false, false, &user).expect_err("plain text");
        assert!(error.contains("must use TLS"), "{error}");
        assert!(refused(true, false, &[("user", "")]).is_err());
        assert!(refused(true, false, &[("user", "ada"), ("replication", "database")]).is_err());
    }
}
