//! Servers of databases of one's own: installed if they are missing, started in temporary folders as a user other than root,
//! and stopped.
//!
//! - [`PostgresServer`], [`MariaDbServer`]: a server; dropping it stops it, and so does the end of this process.
//! - [`ServerError`]: what is missing or does not work.

mod error;
mod install;
mod mariadb;
mod postgres;
mod process;

pub use error::ServerError;
pub use mariadb::MariaDbServer;
pub use postgres::PostgresServer;
