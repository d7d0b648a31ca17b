//! PL/pgSQL: from text to syntax trees.

pub mod ast;
pub mod conditions;
pub mod parse;
pub mod tokens;

pub use parse::parse;
