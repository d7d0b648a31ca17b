//! Schemas with members in a run: which there are, who writes into them, how their members lie, and what must be true.
//!
//! ```text
//!  plan: schemas, members, changes ─▶ clients: parts with canaries ─▶ SimulatedNode::submit_parts
//!                                          │                              │ messages, transactions: watch looks for canaries
//!                                          ▼                              ▼
//!                                      known: what was signed ◀─ compare ─ members: how parts have ended, at every turn
//!                                          └─ replay: who has voted what, by the blocks alone; one serial order for each schema
//! ```

mod clients;
mod known;
mod liar;
mod plan;
mod replay;
mod statements;
mod watch;

pub(crate) use clients::PrivateClients;
pub(crate) use known::Known;
pub use known::PrivateCounts;
pub(crate) use liar::PartLies;
pub(crate) use plan::{Able, any_schemas};
pub use plan::{MemberChange, PlannedSchema};
pub(crate) use watch::{Watch, WatchedServices};
