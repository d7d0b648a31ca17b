//! Sparse peers: one organisation spreads validation over several peers, each of which holds some of the contracts (SmartFabric,
//! sections 3.1, 4.1, 4.3 and 4.4, with the corrections of `oracle/shards/PROTOCOLS.md`, section 1; the model is `sparse.py` beside it).
//! The peers trust one another. They crash, and their messages are lost.
//!
//! ```text
//!  blocks, in one order ─▶ receive ─▶ graph: who waits for whom ─▶ validate: own part against judged rows, then the store
//!                                        ▲                            ├─ invalid ─▶ tell, remove
//!        what other peers say ─▶ hear ───┘                            ├─ valid, all contracts held ─▶ judged rows, remove
//!        who waits asks ─▶ open_questions, answer                     └─ valid, others concerned ─▶ tell, wait in the graph
//!                                                                                                     │ all say valid, or one invalid
//!  commit: a block is recorded without what nobody has decided; that is deferred ─────────────────────▶ recorded once it is decided
//! ```
//!
//! A transaction of several contracts is valid when each contract's holder finds its part valid. Verdicts are those of a peer
//! that holds everything and validates one transaction after the other. Nothing is promised about the moment: a block is
//! committed without its deferred transactions, so a height says what is visible only where nothing below is undecided.
//!
//! | rule | why |
//! | --- | --- |
//! | A transaction waits for every earlier one in the graph that it conflicts with, whatever else has left meanwhile | what was removed says nothing about those before it |
//! | It also waits for whoever wrote the version that it read: an endorser may be ahead of this peer | else it would look stale |
//! | A valid one makes those invalid which read an older version of what it writes, and no others | who read its own version is judged |
//! | Whatever waits when its block commits is deferred, whatever it waits for | its verdict is not known |
//! | What is heard before its block comes is kept | it is not said again |
//! | Who waits asks again, and the answer also comes from what is recorded | messages are lost, and peers start again |
//! | A deferred one is in the store before it leaves the graph | who comes behind it reads the store |
//! | A new peer gets what is undecided together with the rows | the verdict comes later |
//!
//! **Efficiency.** The graph has queues of readers and writers by row, and no edges: a transaction remembers the last one before it
//! that it meets, and looks for another one when that leaves. So one that waits costs as much as it touches rows.

mod early;
mod graph;
mod judged_rows;
mod peer;
mod store;
mod transaction;
mod verdict;

pub use early::EARLY_VERDICTS_MAX;
pub use peer::{CommittedBlock, HandOver, SparseError, SparsePeer};
pub use store::{Record, SparseStore};
pub use transaction::{ContractId, ContractPart, IntervalVersions, ReadVersion, SparseTransaction, Version};
pub use verdict::{Question, Said, Told, Verdict};
