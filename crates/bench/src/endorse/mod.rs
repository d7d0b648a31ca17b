//! `entente bench endorse`: the experiments of the papers on execute–order–validate.
//!
//! ```text
//!  docs/endorse.toml ──Experiments──▶ Points ──▶ rounds over all points: a fresh Network each ──▶ EndorseMeasurement
//!  (figures as data)   checked,                  (clients, endorsers, orderer, committer,         ─▶ JSON, CSV,
//!                      filtered                   or the committer alone)                            Markdown, HTML
//! ```
//!
//! `docs/laboratory.md` says how a point is measured and defines every figure that comes out.

mod experiments;
mod filter;
mod measurement;
mod network;
mod point;
mod report;
mod run;
mod system;

pub use measurement::{EndorseMeasurement, EndorseRecord};
pub use run::endorse;
