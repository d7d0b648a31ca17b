//! An organisation's own PostgreSQL or MariaDB: tables of the ledger are kept there, or scripts of blocks are executed there, and its
//! applications go on reading there with SQL.
//!
//! ```text
//!  node ──Agreed──▶ follow ──▶ write     net changes, each row where it is as it was, with the height, in one transaction
//!                      │          ▲
//!                      │          └── repair     rows that somebody else has changed, kept aside and put right
//!                      └─▶ scan ──▶ compare     digests of ranges on a connection of its own
//! ```
//!
//! Nothing is executed in such a database (of 28 expressions 23 mean something else on MariaDB): it gets what a quorum has
//! certified, so that nothing that is not agreed is ever visible there. It may be slow or away, and delays nobody. What stands in
//! it is the organisation's affair: nothing proves it to others.
//!
//! Ledgers whose charter says `execution = "whatever-then-agree"` are ChainifyDB's: there the database executes scripts itself
//! ([`ScriptDatabase`]), and the organisations agree on what those came to.
//!
//! - [`Address`]: where the database is.
//! - [`ScriptDatabase`]: executes the scripts of blocks.
//! - [`OwnRules`]: says which scripts the organisation agrees to before they are ordered; a [`node::JudgeScripts`].
//! - [`OwnDatabase`]: keeps the tables; a [`node::KeepOwnDatabase`].
//! - [`forget`]: a database is no copy any more.
//! - [`plan`]: what of a database that exists could be kept, and what would have to change.
//! - `dialect`, `shared_table`: all SQL, for both kinds of databases.
//! - `render`: scripts in each database's SQL.
//! - `bookkeeping`, `guard`, `recorder`: what stands in the database beside the tables.

mod address;
mod agree;
mod bookkeeping;
mod compare;
mod dialect;
mod error;
mod follow;
mod forget;
mod guard;
mod inspect;
mod locks;
mod mariadb;
mod plan;
mod postgres;
mod recorder;
mod render;
#[cfg(test)]
mod samples;
mod scan;
mod scripts;
mod session;
mod settle;
mod shared_table;
mod status;
mod tls;
mod write;

pub use address::{Address, Kind, Tls};
pub use agree::{AGREE_FILE, AgreeConfig, AgreeRule, OwnRules, RuleChange, check_rule};
pub use error::{DatabaseError, ErrorKind};
pub use follow::{OwnDatabase, OwnDatabaseOptions};
pub use forget::forget;
pub use plan::{Finding, PlannedTable, plan};
pub use scripts::{CONNECTIONS, ScriptDatabase, ScriptDatabaseOptions};
