//! PostgreSQL's catalogue of a ledger, and the ledger's history: the relations of `pg_catalog`, `information_schema` and
//! `entente`, read by our own operators.
//!
//! ```text
//!  types::Catalog ──▶ objects ──▶ system, information ─┐
//!                                  fixed (types, …) ───┼─▶ view: a snapshot ─┐
//!                                  history (a node) ───┘                     ├─▶ rows
//!  SQL ──▶ normalise ──▶ sql::prepare_query on the library of functions.sql ─┘
//! ```
//!
//! - [`Catalogue`]: prepares and runs queries.
//! - `relations`: names and columns of all relations, which are those of PostgreSQL 15. What a ledger has nothing of is
//!   empty.
//! - `functions.sql`: PostgreSQL's functions that know the catalogue, in our own SQL. They and the relations make a catalog
//!   of their own, which is no part of the ledger: contracts do not see it.

mod cell;
mod comments;
mod defined_types;
mod dependencies;
mod extensions;
mod fixed;
mod governance;
mod history;
mod indexes;
mod information;
mod inheritance;
mod lists;
mod normalise;
mod objects;
mod origin;
mod partitions;
mod privileges;
mod proving;
mod query;
mod relations;
mod routines;
mod row_security;
mod session;
mod system;
mod triggers;
mod view;
mod wire;

pub use history::{History, ROWS_MAX};
pub use origin::ColumnFacts;
pub use query::{Catalogue, Query};
pub use relations::is_relation;
pub use session::{LockFacts, PreparedFacts, SessionFacts, SettingFacts};
pub use sql::{Reader, is_asset_function, is_governance_function};
pub use wire::{type_length, type_modifier};
