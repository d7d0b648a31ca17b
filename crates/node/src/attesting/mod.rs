//! Agreement on outcomes: after each block a node signs what the block came to and tells the others; a quorum that says
//! the same is a certificate.
//!
//! ```text
//!  execute ──outcome──▶ attest ──Attestations──▶ certificates ──▶ ordering (the next block carries the newest)
//!                         │  ▲                        │
//!        others' nodes ◀──┴──┘ messages               ├──▶ Certified ──▶ answer: clients that wait, /status
//!                                                     └──▶ Divergence: this node came to something else
//! ```
//!
//! [`Attestations`] collects and [`Search`] finds where outcomes begin to differ; both are state machines without clock,
//! threads or network. [`run`] is the thread around them.

mod attestations;
mod certified;
mod message;
mod search;
mod stage;
#[cfg(test)]
mod tests;

pub(crate) use attestations::Attestations;
pub(crate) use certified::Certified;
pub(crate) use stage::{Attester, Input, OwnOutcome, run};
