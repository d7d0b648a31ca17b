//! Schemas with members: what this organisation holds of them, executes, and agrees on with the other members.
//!
//! ```text
//!  session ─▶ routing: which schemas? ─▶ asking: Parts, commitments ─▶ holding: members store it and sign that (held)
//!                                                                          │ a quorum of them: collecting
//!             ordering ◀── many Payload::Parts, and one HeldParts ◀────────┘
//!                │
//!                ▼ block: everybody executes it, and sees commitments
//!             PrivateSchemas::follow ─▶ SchemaExecutor, one for each schema of ours: an engine with rows of its own
//!                │                         └─ a part is missing: the schema waits, and asks the members; others go on
//!                ├─▶ view: what this node's clients see, the ledger's tables and those of our schemas together
//!                ├─▶ opened_store: what blocks came to, ready to be shown piece by piece ─▶ proving
//!                └─▶ agreeing: members compare what a block came to; a quorum of equal digests ─▶ the client's answer
//! ```
//!
//! `announcing` brings the word of a quorum into the ledger as a transaction, so that members can prove to outsiders what has happened.
//! A transaction may have parts in several schemas. Its members' votes are part of what they say a block came to, and `undecided` counts
//! those that stand in the ledger. So all members decide alike.
//!
//! The ledger says which parts there are, in which order, and that enough members hold each. So a schema's state follows from the
//! ledger and the parts that are stored here. A node that starts goes on where the schema's store stands (`coming_back`, `schema_stores`, `opened_store`),
//! or makes it again from both. Nobody else executes, stores or sees a part.
//! Rules: `oracle/shards/PROTOCOLS.md`, section 3; decisions 0039 to 0045.

mod agreed;
mod agreeing;
mod announcing;
mod asking;
mod audited;
mod block;
mod collecting;
mod coming_back;
mod ended;
mod executor;
#[cfg(test)]
mod four_members;
#[cfg(test)]
mod going_on;
mod held;
mod holding;
mod message;
mod offering;
mod opened;
mod opened_store;
mod part_store;
mod patience;
mod proving;
mod records;
mod routing;
mod schema_stores;
mod schemas;
#[cfg(feature = "simulation")]
pub(crate) mod simulated;
mod undecided;
mod view;
mod waiters;

pub(crate) use asking::{AnswerWhen, Asking};
pub use audited::{FolderParts, ReplayedSchema, SchemaReplay};
pub(crate) use collecting::Bundle;
pub(crate) use held::no_member;
pub(crate) use holding::Holding;
pub(crate) use message::is_private;
pub(crate) use offering::AskedOfOffer;
pub(crate) use part_store::PartStore;
pub(crate) use patience::Patience;
pub(crate) use routing::{Routed, route};
pub(crate) use schema_stores::SchemaStores;
pub(crate) use schemas::{PrivateSchemas, SchemasNode, Shown};
