//! PL/pgSQL, the language of contracts, in PostgreSQL 15's dialect.
//!
//! ```text
//! text ──parse──▶ ast::Body ──compile──▶ CompiledProcedure ──call──▶ OUT and INOUT values, or a function's result
//!                               │ binds expressions and statements        │ runs on an Execution
//! ```
//!
//! A contract that is accepted gives the same result on a real PostgreSQL; what cannot is refused when the procedure
//! is created, by name, with SQLSTATE 0A000.

mod ast;
mod coercion;
mod compile;
mod compile_block;
mod compile_branch;
mod compile_cursor;
mod compile_elements;
mod compile_expression;
mod compile_late;
mod compile_loop;
mod compile_place;
mod compile_result;
mod compile_rows;
mod compile_statement;
mod compile_trigger;
mod conditions;
mod explain;
mod footprint;
mod fuse;
mod handle;
mod hoist;
mod interpret;
mod late;
mod parse;
mod parse_control;
mod parse_cursor;
mod parse_diagnostics;
mod parse_raise;
mod parse_statement;
#[cfg(test)]
mod parse_tests;
mod program;
mod raise;
mod records;
mod run_cursor;
mod run_statement;
mod store;
mod tokens;
mod variables;

pub(crate) use ast::NameConflict;
pub(crate) use compile::compile;
pub(crate) use compile_trigger::{check_trigger_function, compile_trigger};
pub(crate) use explain::explain;
pub(crate) use footprint::footprint;
pub(crate) use fuse::{FusedStatement, RowRun};
pub(crate) use interpret::{CallResult, call};
pub use parse::parse;
pub use program::CompiledProcedure;
pub(crate) use program::Described;
