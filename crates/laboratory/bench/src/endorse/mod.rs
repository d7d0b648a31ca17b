//! `entente bench endorse`: the experiments of the papers on execute–order–validate.
//!
//! ```text
//!  docs/endorse.toml ──Experiments──▶ Points ──▶ rounds over all points:        ──▶ EndorseMeasurement ─▶ JSON, CSV,
//!  (figures as data)   checked,                  network: clients, endorsers,                           Markdown, HTML
//!                      filtered                           orderer, committer
//!                                                committer: alone, with a disk
//!                                                reordering: of a batch
//! ```
//!
//! `docs/laboratory.md` says how a point is measured and defines every figure that comes out.

mod committer;
mod endorsers;
mod experiments;
mod filter;
mod invariants;
mod measurement;
mod network;
mod point;
mod reordering;
mod report;
mod run;
mod system;
mod transfers;

pub use measurement::{EndorseMeasurement, EndorseRecord};
pub use run::endorse;
