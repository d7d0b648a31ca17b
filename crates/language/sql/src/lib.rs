//! The door to SQL and PL/pgSQL: transactions, schema changes, sessions and consent.
//!
//! ```text
//!  types::Catalog ──Library::new──▶ Library (tables, procedures, scripts: everything bound)
//!                                      │
//!  types::Payload ──Invocation::new────┤ simulate(snapshot) ──▶ state::Effects ──▶ a protocol
//!  SQL text ───────prepare─────────────┴ Prepared ──query(snapshot)──▶ rows for the client
//! ```
//!
//! - [`Library`]: a catalog with everything compiled. A schema change makes a new catalog and that a new library.
//! - [`Invocation`]: one transaction, ready to run: implements [`state::Simulate`].
//! - [`Session`]: a transaction block that runs for a client, statement by statement, until it becomes a payload.
//! - [`Prepared`]: a script bound for the gateway: its parameters, columns and kind, and reads outside of transactions.
//!
//! PostgreSQL 15 says how everything behaves; what is not supported is refused by name with SQLSTATE `0A000` when it
//! is bound. `tests/effects.rs` says, one test per rule, what registers a read and what becomes a
//! command.

mod bind;
mod consent;
mod ddl;
mod endorsed;
mod fragments;
mod given_tables;
mod governance;
mod insert;
mod involvement;
mod library;
mod prepare;
mod programs;
mod script;
mod session;
mod simulate;
mod temporary;
mod triggers;

pub use endorsed::bind_endorsed;
pub use execute::{Context, Moves, Oracles, RowLocks, Scratch, ScratchFile, SharedRowLocks};
pub use fragments::{Fragment, RunFragments};
pub use governance::{agreed_change, describe_change, describe_state};
pub use library::{Involved, Involvement, Library};
pub use plan::assets::{OfferCall, OfferFunction, is_asset_function, offer_call};
pub use plan::expression::output_name;
pub use plan::written_index::WrittenIndex;
pub use plan::written_sql::Parentheses;
pub use plpgsql::CompileOptions;
pub use prepare::{Prepared, Reader, prepare, prepare_query};
pub use script::{StatementKind, is_schema_change};
pub use session::{Finished, Session};
pub use simulate::Invocation;
pub use syntax::parse::governance::is_governance_function;
pub use syntax::parse::parse_only_statement;
pub use syntax::parse::{qualified_names, statement_texts};
pub use temporary::TemporaryTables;
