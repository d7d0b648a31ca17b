//! Execute–order–validate at a node: it endorses what others propose, and has its clients' transactions endorsed.
//!
//! ```text
//!  proposals of other gateways ──▶ Endorser ──▶ effects, one signature
//!                                     ▲ on RecentStates (the pipeline puts each block's state there)
//!  clients ──▶ Collector ──▶ simulate here ──▶ Collection ──▶ ask endorsers (Peers), compare ──▶ Submitter ──▶ ordering
//! ```
//!
//! When this node leads, [`Proposer`] arranges what goes into its block (Fabric++).
//!
//! What is decided is in [`Collection`], which knows no network; [`Collector`] and [`Peers`] are the async edge.

mod collection;
mod collector;
mod endorser;
mod oracles;
mod peers;
mod proposer;
mod states;

pub(crate) use collector::Collector;
pub(crate) use endorser::Endorser;
pub(crate) use oracles::OracleSources;
pub(crate) use peers::Peers;
pub(crate) use proposer::Proposer;
pub(crate) use states::RecentStates;
