//! Nodes in one process, on a deterministic runtime: the same seed gives the same run, to the last message.
//!
//! The nodes are wired as over TCP; network, clock, disks and scheduling are simulated. A [`Network`] runs any [`Process`]
//! beside ordering. In a [`Simulation`] of ordering alone each node has its own [`Admission`](crate::Admission) and a
//! synchronous sink that gets every final block once and in order, as a node's pipeline does, and attests made-up outcomes
//! of it; members come and go by made-up amendments. Clients submit by a seeded schedule, and submit again what is not
//! ordered after two seconds.
//!
//! ```
//! use ordering::simulation::{AnyBytes, Scenario, SimulatedNode, Simulation};
//! use std::sync::Arc;
//!
//! let simulation = Simulation { transactions: 10, ..Simulation::new(7, Scenario::Happy) };
//! let nodes = (0..4).map(|_| SimulatedNode::new(Arc::new(AnyBytes), |delivery| drop(delivery))).collect();
//! let report = simulation.run(nodes).expect("the nodes agree");
//! assert!(report.height > 0);
//! ```

mod admission;
mod adversary;
mod attesting;
mod costs;
mod engine;
mod ledger;
mod machines;
mod measured;
mod members;
mod network;
mod scenario;
mod service;
mod wire;

pub use admission::AnyBytes;
pub use adversary::Adversary;
pub use attesting::Words;
pub use costs::Costs;
pub use engine::{Report, SimulatedNode, Simulation};
pub use machines::Machines;
pub use members::{charter, node_key, organisation, root_key};
pub use network::{Event, Join, LinkQuality, Network, Process, Ran};
pub use scenario::Scenario;
