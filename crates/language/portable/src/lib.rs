//! The common dialect: scripts that mean the same here, in PostgreSQL and in MariaDB, checked before they are executed anywhere.
//!
//! Networks whose scripts each organisation's own database executes (`execution = "whatever-then-agree"`) can agree only on what
//! all of these databases do alike: of 28 expressions 23 mean something else on MariaDB than on PostgreSQL. What is not proven to
//! be the same is refused by name.
//!
//! - [`check_script`]: a transaction to a [`Script`]: statements with types, about one table each.
//! - [`Script::proposed_changes`]: what its text alone says about rows, for whoever has to agree to it before.
//! - [`check_catalog`]: whether all tables of a catalog can stand in every such database.
//! - [`table_checks`]: the CHECK constraints of a table, for whoever writes it down elsewhere.
//!
//! Source: ChainifyDB (paper 002, sections 4.5.1 and 4.6.3); what differs was found with `oracle/chainify/semantics.py`.

mod access;
mod arithmetic;
mod bind;
mod catalog;
mod change;
mod choice;
mod condition;
mod constant;
mod data_type;
mod expression;
mod fit;
mod insert;
mod place;
mod proposed;
mod refusal;
mod script;
mod statement;
mod table;
mod written;

pub use catalog::{check_catalog, table_checks};
pub use expression::{Expression, Operator, Term};
pub use proposed::{ChangeKind, ProposedChange};
pub use script::check_script;
pub use statement::{Access, Action, Script, Statement};
pub use values::Comparison;
