//! Where clients connect: psql and every Postgres driver through the Postgres wire protocol, clients with their own key
//! and monitoring through HTTP.
//!
//! The gateway executes nothing. It speaks protocols and asks a [`Database`], which the node implements:
//!
//! ```text
//! psql, drivers ──▶ serve_postgres ─┬─ SET, SHOW, …                ▶ the session's settings
//!                                   ├─ pg_catalog, entente.blocks  ▶ the catalogue, which is read like tables
//!                                   ├─ SELECT                      ▶ Database::prepare, BoundQuery::run
//!                                   └─ INSERT, CALL, DDL, COPY     ▶ Database::prepare, Database::execute
//! client keys ────▶ serve_http ─────┬─ POST /v1/transactions       ▶ Database::submit
//! monitoring ─────▶                 └─ /health /status /metrics    ▶ Database::status, Database::metrics
//! ```
//!
//! - [`bind`] listens on an address, with an error that names a busy port and what to do.
//! - [`serve_postgres`] and [`serve_http`] serve a listener until their future is dropped; [`PostgresServer`] serves one
//!   connection over any stream.
//! - [`Database`] is what they need of a node; its rows and statuses are plain data.
//! - [`limits`] are all stated limits.
//!
//! What differs from PostgreSQL for its users:
//!
//! - Outside of BEGIN a statement is a transaction, and so is a query string of several statements with a write among
//!   them. In the extended protocol every Execute is one.
//! - Between BEGIN and COMMIT statements run on one snapshot; COMMIT has them run again by every node and fails with
//!   `40001` where they would have given something else. Every block is serializable, whatever level it asks for.
//! - COPY outside of BEGIN sends its rows in chunks of [`limits::COPY_CHUNK_BYTES`], each a transaction; the error says
//!   how many rows are in the table.
//! - A cancelled write may still commit: cancelling ends the wait, not the transaction.
//! - [`Access`] says who may connect: clients of other machines need TLS and a password (SCRAM-SHA-256). The database can have
//!   any name. The port of HTTP speaks TLS as well, and plain text with whom [`PlainHttp`] says.
//! - A query that names `pg_catalog`, `information_schema` or `entente` is answered by the crate `catalogue` and cannot read
//!   tables of the ledger at the same time.
//! - Without a filter on `height` or `id`, `entente.blocks` and `entente.transactions` show the newest
//!   [`::catalogue::ROWS_MAX`] rows.

mod accepting;
mod access;
mod catalogue;
mod database;
mod error;
mod http;
mod http_server;
pub mod limits;
mod notifier;
mod postgres;
mod starting;

pub use access::{
    Access, Authentication, Certificate, CertificateError, HttpAccess, HttpTls, PasswordError, Passwords,
    PlainHttp, SharedAccess, Verifier,
};
pub use database::{
    Binding, BlockRow, BoundQuery, Database, Executed, FinishedBlock, Formats, HolderStatus, NodeRow,
    NodeStatus, OwnDatabaseStatus, PeerStatus, Prepared, StateAt, StatementKind, StoreStatus,
    TemporaryTables, TransactionBlock, TransactionFilter, TransactionOutcome, TransactionRow,
};
pub use error::{GatewayError, bind};
pub use http_server::serve_http;
pub use notifier::Notifier;
pub use postgres::{PostgresServer, serve_postgres};
