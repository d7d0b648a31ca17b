//! From text to syntax trees: SQL by sqlparser's PostgreSQL grammar behind our limits, what that grammar lacks by our own
//! parsers, and PL/pgSQL.
//!
//! Nothing here knows a catalog: a name is a name, whatever it stands for.

pub mod names;
pub mod parse;
pub mod plpgsql;
pub mod rewrite;
