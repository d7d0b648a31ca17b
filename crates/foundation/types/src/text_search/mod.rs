//! Full text search: documents as `tsvector`, what is looked for as `tsquery`, as in PostgreSQL 15 (chapter 12, 8.11).
//!
//! How texts become such values stands in the crate `values`.

mod configuration;
mod encoding;
mod order;
mod query;
mod query_text;
#[cfg(test)]
mod tests;
mod vector;
mod vector_text;
mod word;

pub use configuration::Configuration;
pub use order::checksum;
pub(crate) use order::{push_query_key, push_vector_key};
pub use query::{QueryItem, QuerySyntax, TsQuery, Weights};
pub use query_text::{ReadOperand, distance_out_of_range, parse_query};
pub(crate) use query_text::{format_query, parse_tsquery, query_text_bytes};
pub use vector::{Lexeme, Position, Positions, TsVector, Weight};
pub(crate) use vector_text::{format_vector, parse_tsvector, vector_text_bytes};

/// Bytes of a lexeme, as in PostgreSQL.
pub const LEXEME_BYTES_MAX: usize = 2_046;
/// Positions of a lexeme in one document, as in PostgreSQL; those behind are not kept.
pub const POSITIONS_MAX: usize = 256;
/// The last position that a document has, as in PostgreSQL; what is behind has this one, too.
pub const POSITION_MAX: u16 = 16_383;
/// Bytes of the lexemes and positions of a document, as PostgreSQL counts them.
const VECTOR_BYTES_MAX: usize = (1 << 20) - 1;
