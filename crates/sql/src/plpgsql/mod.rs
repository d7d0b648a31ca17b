//! PL/pgSQL, the language of contracts, in PostgreSQL 15's dialect.
//!
//! ```text
//! text ──parse──▶ ast::Body ──compile──▶ CompiledProcedure ──call──▶ INOUT and OUT values
//!                               │ binds expressions and statements        │ runs on an Execution
//! ```
//!
//! A contract that is accepted gives the same result on a real PostgreSQL; what cannot is refused when the procedure
//! is created, by name, with SQLSTATE 0A000.

pub mod ast;
mod conditions;
mod parse;
mod parse_statement;
mod tokens;

pub use parse::parse;
