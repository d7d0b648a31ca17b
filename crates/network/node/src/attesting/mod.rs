//! Agreement on outcomes: after each block a node signs what the block came to and tells the others; a quorum that says
//! the same is a certificate. The same of the whole state's root at each checkpoint, when it is computed.
//!
//! ```text
//!  execute ──outcome──▶ attest ──Attestations──▶ certificates ──▶ ordering (the next block carries the newest)
//!                         │  ▲                        │
//!  checkpoint ───root─────┤  ▲                        ├──▶ Certified ──▶ answer: clients that wait, /status, proofs of rows
//!        others' nodes ◀──┴──┘ messages               └──▶ Divergence: this node came to something else
//! ```
//!
//! [`Attestations`] collects one kind of statement and [`Search`] finds where outcomes begin to differ; both are state machines without clock,
//! threads or network. [`run`] is the thread around them.

mod attestations;
mod certified;
mod heal;
mod message;
mod roots;
mod search;
mod stage;
#[cfg(test)]
mod tests;

pub(crate) use attestations::{Attestations, Limits};
pub(crate) use certified::{Certified, Divergence};
pub(crate) use heal::Heal;
#[cfg(feature = "simulation")]
pub(crate) use message::Message;
pub(crate) use roots::Roots;
pub(crate) use stage::{Attester, Clock, Input, OwnOutcome, run};
