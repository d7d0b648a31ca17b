//! Execute–order–validate at a node: it endorses what others propose, and has its clients' transactions endorsed.
//!
//! On ledgers whose databases execute scripts after ordering, an endorser executes nothing: it judges scripts that write tables
//! with a policy ([`JudgeScripts`](crate::JudgeScripts)), and its endorsement, of no effects, says that its organisation agrees.
//!
//! ```text
//!  proposals of other gateways ──▶ Endorser ──▶ effects, one signature
//!                                     ▲ on RecentStates (the pipeline puts each block's state there)
//!  clients ──▶ Collector ──▶ simulate here ──▶ Collection ──▶ ask endorsers (Peers), compare ──▶ Submitter ──▶ ordering
//! ```
//!
//! When this node leads, [`Proposer`] arranges what goes into its block (Fabric++).
//!
//! What is decided is in [`Collection`], which knows no network; [`Gather`](gather::Gather) brings a batch through it;
//! [`Collector`] and [`Peers`] are the async edge.
//!
//! # Rules
//!
//! - **Roles are parts of a node.** An endorser needs states and a key. A gateway needs the policies and the others'
//!   addresses. Validation needs neither. Gateways talk HTTP to endorsers like any client, so an endorser in another
//!   process is an address in the charter (`organisation.gateway`).
//! - **Everybody executes on the height that the gateway names**, so results can be compared byte for byte. An
//!   endorser that agrees answers with its signature alone.
//! - **Every endorser executes in the same context.** Hidden keys come from the transaction's id; the time is that of
//!   the snapshot's block, and is signed.
//! - **An endorser that differs is replaced, not believed.** A transaction fails only if the policy cannot be
//!   satisfied without it. The difference shows in the log and the metrics either way.
//! - **Endorsements count by the charter of their block.** A gateway asks the organisations that count in the next block.
//! - **A request is the transaction.** Its id does not cover the endorsements, so nobody can spoil a request by
//!   putting forged endorsements around it. The same request may wait with several sets of endorsements. Whoever
//!   submitted a set hears what is wrong with it; a commit or an abort is told to all who wait for the request.
//! - **What ordering knows a transaction by does cover its endorsements**, so a request that was rejected for lack of
//!   them can come again with enough.
//! - **Fabric++'s early abort in simulation** (section 5.2.2) is a look at what was written since the snapshot, taken
//!   when the endorsements are there. Simulations run on snapshots, so there is nothing to notice while they run.

mod collection;
mod collector;
mod endorser;
mod gather;
mod oracles;
mod peers;
mod proposer;
mod states;

pub(crate) use collector::Collector;
pub(crate) use endorser::{Endorser, Sources};
#[cfg(feature = "simulation")]
pub(crate) use gather::{Aborted, Gather, Others};
pub(crate) use oracles::OracleSources;
pub(crate) use peers::Peers;
pub(crate) use proposer::Proposer;
pub(crate) use states::RecentStates;
