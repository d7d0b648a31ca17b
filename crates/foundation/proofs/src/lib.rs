//! What a client checks with nothing but the charter: that a transaction ended so ([`ReceiptProof`]), that a row was so, or
//! was not there, at a checkpoint ([`RowProof`]), that whole tables had these rows there ([`TablesProof`]); and of schemas with members,
//! whose other content stays hidden, that a transaction ended so ([`SchemaReceiptProof`]), or that a block left a row so
//! ([`SchemaRowProof`]).
//!
//! ```text
//!  receipt ─path─▶ receipts root, in the outcome header of its height
//!                     │ chained by digests
//!                     ▼
//!                  outcome header that a quorum has signed: certificate
//! ```
//!
//! Every byte of a proof counts: one that verifies cannot be changed into another one that does. Proofs have a canonical
//! encoding ([`ReceiptProof::to_bytes`]) and a form for people and other languages ([`ReceiptProof::to_json`], [`RowProof::to_json`]).
//!
//! Nothing is kept for a proof beside the ledger: certificates stand in blocks, and outcome headers are a chain. A
//! path says for each sibling on which side it stands, instead of giving position and number of leaves, because every
//! byte of a proof must be bound and those two only shape the way. Where a receipt stands, the receipt itself says.

mod error;
mod handovers;
mod json;
mod json_row;
mod json_schema;
mod path;
mod receipt;
mod row;
pub mod salted;
mod schema;
pub mod state;
mod tables;

pub use error::ProofError;
pub use json_schema::is_of_schema;
pub use path::{Path, Sibling};
pub use receipt::ReceiptProof;
pub use row::{Entry, Found, GroupedRow, RowEntry, RowProof, TableEntry};
pub use schema::{ProvedInSchema, SchemaEvidence, SchemaReceiptProof, SchemaRowProof};
pub use tables::{Behind, ProvedTable, TableGroups, TablesProof};

/// Bytes of an encoded proof.
pub const PROOF_BYTES_MAX: usize = 32 << 20;
/// Outcome headers between a receipt and a certificate: twice as far as a charter lets ordering be ahead of certificates.
pub const HEADERS_MAX: usize = 20_000;
