//! Measures a network: it runs on [`Machines`], and simulated time says how fast it is.

use super::machines::Machines;
use super::network::{Network, Process, Running};
use commonware_glue::simulate::engine::{EngineDefinition as _, InitContext};
use commonware_p2p::simulated::{self, Link, Oracle};
use commonware_p2p::{Manager as _, TrackedPeers};
use commonware_runtime::{
    Clock as _, Runner as _, Supervisor as _,
    deterministic::{self, Context},
};
use commonware_utils::{NZUsize, Probability, ordered::Set};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How much simulated time passes whenever tasks have run: little beside what a message takes in one room.
const CYCLE: Duration = Duration::from_micros(10);
/// How often it is looked whether the process is done.
const LOOK: Duration = Duration::from_millis(20);

impl Network {
    /// Runs on machines until the process is done. Links, scenario, events and slow nodes of the network are not looked at:
    /// the machines say how messages fare, and nothing fails.
    ///
    /// # Errors
    /// It did not get there in time.
    pub fn measure(&self, process: Arc<dyn Process>, machines: Arc<Machines>) -> Result<(), String> {
        let running = Running::new(self, process.clone(), Some(machines.clone()));
        let config = deterministic::Config::new().with_seed(self.seed).with_cycle(CYCLE);
        let timeout = self.timeout;
        deterministic::Runner::new(config).start(|context| async move {
            let oracle = connect(&context, &running, &machines).await;
            let (monitor, mut finalizations) = mpsc::unbounded_channel();
            let mut nodes = Vec::new();
            for (index, key) in running.participants().iter().enumerate() {
                let mut channels = Vec::new();
                for (channel, quota) in running.channels() {
                    let control = oracle.control(key.clone());
                    channels.push(control.register(channel, quota).await.map_err(|error| error.to_string())?);
                }
                let node = InitContext {
                    context: context.child("node").with_attribute("index", index),
                    index,
                    delayed: false,
                    public_key: key,
                    oracle: &oracle,
                    channels,
                    participants: &running.participants(),
                    monitor: monitor.clone(),
                };
                nodes.push(running.init(node).await);
            }
            let end = context.current() + timeout;
            while !process.is_done() {
                if context.current() >= end {
                    return Err(format!("the process is not done after {} s", timeout.as_secs()));
                }
                context.sleep(LOOK).await;
                while finalizations.try_recv().is_ok() {}
            }
            nodes.into_iter().for_each(|(node, _)| node.abort());
            Ok(())
        })
    }
}

/// Links all nodes.
async fn connect(
    context: &Context,
    running: &Running,
    machines: &Machines,
) -> Oracle<commonware_cryptography::ed25519::PublicKey, Context> {
    let nodes = running.participants();
    let config = simulated::Config {
        max_size: running.max_message_size(),
        max_peers_per_set: NZUsize!(nodes.len()),
        disconnect_on_block: true,
        tracked_peer_sets: NZUsize!(1),
    };
    let (network, oracle) = simulated::Network::new(context.child("network"), config);
    network.start();
    let peers: Set<_> = Set::from_iter_dedup(nodes.iter().cloned());
    oracle.manager().track(0, TrackedPeers::primary(peers));
    for (from, sender) in nodes.iter().enumerate() {
        for (to, receiver) in nodes.iter().enumerate().filter(|(to, _)| *to != from) {
            let latency = machines.latency(from, to);
            // Distances vary by a twentieth.
            let link =
                Link { latency, jitter: latency / 20, success_rate: Probability::new(1, 1).expect("all") };
            oracle.add_link(sender.clone(), receiver.clone(), link).await.expect("both are members");
        }
    }
    oracle
}
