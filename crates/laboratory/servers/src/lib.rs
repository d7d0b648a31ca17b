//! Servers of databases and brokers of one's own: installed if they are missing, started in temporary folders as a user other than root,
//! and stopped.
//!
//! - [`PostgresServer`], [`MariaDbServer`]: a server; dropping it stops it, and so does the end of this process.
//! - [`KafkaServers`]: brokers, which lead a topic in turn; the same holds for them.
//! - [`ServerError`]: what is missing or does not work.

mod error;
mod install;
mod kafka;
mod mariadb;
mod postgres;
mod process;

pub use error::ServerError;
pub use kafka::KafkaServers;
pub use mariadb::MariaDbServer;
pub use postgres::PostgresServer;
