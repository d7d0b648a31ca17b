//! SQL and PL/pgSQL: parsing, binding, and running transactions on a snapshot into [`state::Effects`].
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
//! is bound. What registers a read and what becomes a command is section 1 of the protocol rules: `command.rs` and
//! `execution/`.

mod aggregate;
mod command;
mod constraint;
mod ddl;
mod endorsed;
mod execution;
mod expand_rows;
mod expression;
mod footprint;
mod governance;
mod library;
mod names;
mod needs;
mod overload;
mod parse;
mod parse_aggregate;
mod parse_comment;
mod parse_create_as;
mod parse_governance;
mod parse_refused;
mod parse_role;
mod parse_routine;
mod parse_sequence;
mod parse_set_schema;
mod parse_trigger;
mod plpgsql;
mod polymorphic;
mod predicate;
mod prepare;
mod rewrite;
mod routines;
mod scope;
mod sequence;
mod session;
mod simulate;
mod statement;
mod table;
mod temporary;
mod trigger;
mod triggers;
mod view;
mod window;

pub use endorsed::bind_endorsed;
pub use execution::{Context, Oracles};
pub use expression::output_name;
pub use governance::{describe_change, describe_state};
pub use library::{Involved, Involvement, Library};
pub use parse::parse_only_statement;
pub use parse_governance::is_governance_function;
pub use plpgsql::CompileOptions;
pub use prepare::{Prepared, Reader, StatementKind, prepare, prepare_query};
pub use session::{Finished, Session};
pub use simulate::{Invocation, is_schema_change};
pub use temporary::TemporaryTables;
