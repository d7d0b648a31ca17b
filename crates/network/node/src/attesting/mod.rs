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
//!
//! # Rules
//!
//! - **The chain answers for all heights.** Outcome headers are a chain, so one certificate covers every height below
//!   it. A node compares the newest certificate with its own header at that height, wherever the certificate comes
//!   from: its own counting, a message, or a block.
//! - **The last word of a member counts**, because a node that has healed says something else than before. Two
//!   different signed statements of one member about one height are kept as a proof in the log.
//! - **A member takes room from itself only.** Both kinds of statements are collected by the same code. A member that
//!   attests heights without end pushes out its own words and nobody else's.
//! - **Blocks carry certificates.** A member refuses a block for ever if its certificate is not signed by a quorum,
//!   is not above what was certified before, or is not below the block. A proposer takes what ordering's
//!   `Certificates` give it, which is never refused.
//! - **Answers wait beside the flush.** This stage gets an outcome before anything else is done with the executed
//!   block, so certificates come while the block is being flushed.
//! - **A restarted node speaks again.** It attests what its ledger has recorded above the newest certificate in a
//!   block that the record agrees with. A record that does not agree diverges then, as it would have before the
//!   restart.
//! - **The charter and the catalog say which heights are checkpoints.** CHECKPOINT changes the catalog, so it runs
//!   alone, and every node comes to the same heights, also one that starts again.

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
