//! An organisation's own PostgreSQL or MariaDB, on real servers.

mod agreeing;
mod cluster;
mod following;
mod refusals;
mod scripts;
mod support;
mod tls;
mod types;
