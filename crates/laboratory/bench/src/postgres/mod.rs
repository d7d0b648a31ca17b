//! PostgreSQL as the database beside the protocols: the same schema, procedures, rows and calls, SERIALIZABLE,
//! `synchronous_commit = on`, 32 clients that try again what PostgreSQL gives up.
//!
//! - [`server`]: finds or installs it, runs a server of its own in a temporary folder, and stops it.
//! - [`connection`]: a connection to it.
//! - [`clients`]: set-up of a workload and its calls over the wire.

mod clients;
mod connection;
mod server;

use crate::laboratory::Timed;
pub(crate) use connection::{connect, execute};
pub use server::Server;
use std::path::PathBuf;
use std::time::Duration;
use workloads::Workload;

/// Clients, each waiting for its answer.
pub(crate) const CLIENTS: usize = 32;

/// Why PostgreSQL cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Not there and not installable.
    #[error(
        "expected PostgreSQL in /usr/lib/postgresql/*/bin or in PATH, found none ({0}); install it \
         (apt-get install postgresql), or leave it out with --only protocol=… or --systems …"
    )]
    Missing(String),
    /// It does not start.
    #[error("PostgreSQL does not start: {what}; its log says:\n{log}")]
    Start {
        /// What failed.
        what: String,
        /// Last lines of the server's log.
        log: String,
    },
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

/// A running server.
pub(crate) struct Postgres {
    server: Server,
    runtime: tokio::runtime::Runtime,
}

impl Postgres {
    /// Installs PostgreSQL if it is missing, and starts a server in a temporary folder.
    pub(crate) fn start() -> Result<Postgres, PostgresError> {
        let server = Server::start()?;
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
        let cpu = || self.server.processor_seconds();
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
        let cpu = || self.server.processor_seconds();
        self.runtime.block_on(clients::run(&self.server.socket_folder(), workload, time, seed, &cpu))
    }

    /// Where its socket is, while it lives.
    pub(crate) fn socket_folder(&self) -> PathBuf {
        self.server.socket_folder()
    }
}
