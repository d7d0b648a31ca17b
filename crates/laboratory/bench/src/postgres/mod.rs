//! PostgreSQL as the database beside the protocols: the same schema, procedures, rows and calls, SERIALIZABLE,
//! `synchronous_commit = on`, 32 clients that try again what PostgreSQL gives up.
//!
//! - [`postgres_server`]: a server of its own, with the settings of all measurements.
//! - [`connection`]: a connection to it.
//! - [`clients`]: set-up of a workload and its calls over the wire.

mod clients;
mod connection;

use crate::laboratory::Timed;
use crate::machine::process_seconds;
pub(crate) use connection::{connect, execute};
use servers::{PostgresServer, ServerError};
use std::path::PathBuf;
use std::time::Duration;
use workloads::Workload;

/// Clients, each waiting for its answer.
pub(crate) const CLIENTS: usize = 32;

/// Why PostgreSQL cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Not there and not installable, or it does not start.
    #[error("{0}; or leave it out with --only protocol=… or --systems …")]
    Server(#[from] ServerError),
    /// A folder or a process.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The server says no where it must not.
    #[error("PostgreSQL refuses {statement}: {error}")]
    Statement {
        /// What was asked.
        statement: String,
        /// What it says.
        error: tokio_postgres::Error,
    },
    /// A value that the comparator cannot send.
    #[error(
        "expected bigint, integer or text as arguments of {procedure}, found {found}; teach `postgres::clients` the type"
    )]
    Argument {
        /// The procedure.
        procedure: String,
        /// The argument.
        found: String,
    },
}

/// Settings of the server; everything else is PostgreSQL's default.
const SETTINGS: [&str; 4] = [
    "max_connections=64",
    "shared_buffers=256MB",
    "default_transaction_isolation=serializable",
    "synchronous_commit=on",
];

/// A server as all measurements have it, with settings such as `work_mem=1GB`, which go before those. Clients come through a socket.
///
/// # Errors
/// What is missing or does not work.
pub fn postgres_server(settings: &[String]) -> Result<PostgresServer, PostgresError> {
    let settings: Vec<&str> = SETTINGS.into_iter().chain(settings.iter().map(String::as_str)).collect();
    Ok(PostgresServer::start(&settings, false)?)
}

/// What the server's processes have used so far; those that have ended are left out.
fn processor_seconds(server: &PostgresServer) -> f64 {
    let parent = server.process_id().map_or_else(String::new, |id| id.to_string());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let of_server = names.filter(|name| {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{name}/stat")) else { return false };
        let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_whitespace().nth(1) == Some(&parent)
    });
    of_server.filter_map(|name| process_seconds(&name)).sum()
}

/// A running server.
pub(crate) struct Postgres {
    server: PostgresServer,
    runtime: tokio::runtime::Runtime,
}

impl Postgres {
    /// Installs PostgreSQL if it is missing, and starts a server in a temporary folder.
    pub(crate) fn start() -> Result<Postgres, PostgresError> {
        let server = postgres_server(&[])?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| PostgresError::System { action: "start tokio".to_string(), error })?;
        Ok(Postgres { server, runtime })
    }

    /// Runs a workload from its beginning for so many seconds.
    pub(crate) fn round(
        &self,
        workload: &dyn Workload,
        seconds: f64,
        seed: u64,
    ) -> Result<Timed, PostgresError> {
        let socket: PathBuf = self.server.socket_folder();
        let time = Duration::from_secs_f64(seconds);
        let cpu = || processor_seconds(&self.server);
        self.runtime.block_on(clients::round(&socket, workload, time, seed, &cpu))
    }

    /// Loads a workload, for [`Postgres::run`].
    pub(crate) fn load(&self, workload: &dyn Workload) -> Result<(), PostgresError> {
        self.runtime.block_on(clients::load(&self.server.socket_folder(), workload))
    }

    /// Runs a workload that is loaded for so many seconds.
    pub(crate) fn run(
        &self,
        workload: &dyn Workload,
        seconds: f64,
        seed: u64,
    ) -> Result<Timed, PostgresError> {
        let time = Duration::from_secs_f64(seconds);
        let cpu = || processor_seconds(&self.server);
        self.runtime.block_on(clients::run(&self.server.socket_folder(), workload, time, seed, &cpu))
    }

    /// Where its socket is, while it lives.
    pub(crate) fn socket_folder(&self) -> PathBuf {
        self.server.socket_folder()
    }
}
