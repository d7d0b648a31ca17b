//! Checks a ledger's folder from the charter alone: nobody has to be believed, least of all the node that wrote it.
//!
//! ```text
//!  files ─▶ reader ─▶ pieces of ~8,000 transactions ─▶ all cores: content, certificates, signatures ─┐
//!           (thread)   (so many at a time)                                                            │ in order
//!                                      report ◀─ outcome by execution, if asked ◀─ chain ◀────────────┘
//! ```
//!
//! What one record says by itself is checked in parallel (`content`, `signatures`), what it says of others in the order
//! of heights (`chain`), and what it came to is executed again by a [`Replay`], which brings the engine: this crate
//! does without it. The first error is that of the lowest height; behind it nothing is read.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let charter = types::Charter::from_toml(&std::fs::read_to_string("node1/charter.toml")?)?;
//! let report = audit::audit(&charter, "node1/ledger", audit::Options::default(), &mut |_| ())?;
//! assert!(report.error.is_none(), "{report:?}");
//! # Ok(())
//! # }
//! ```
//!
//! An audit reads files by itself ([`ledger::LedgerFiles`]): no lock, no index, no repair; or it is given records that stand
//! elsewhere ([`audit_records`]). With a [`Replay`],
//! receipts that call a transaction malformed or badly signed are judged again to the letter. Signatures are verified
//! over many blocks at once, because a signature costs the less the larger the batch is and the fewer keys it has.
//! Credentials and endorsers' signatures are verified once; good ones are remembered.
//!
//! Of schemas with members (`schemas`) an audit checks who has signed what they came to. A member's folder has their parts, too
//! ([`HeldParts`]): they are held against the ledger's commitments, and a [`Replay`] executes them.

mod chain;
mod content;
mod error;
mod pipeline;
mod schemas;
mod signatures;

pub use error::{AuditError, Part, RecordLocation};
pub use pipeline::{AuditProgress, Ledger, Options, RecordSource, Replay, Report, audit, audit_records};
pub use schemas::{HeldParts, Named, SchemasReport};
