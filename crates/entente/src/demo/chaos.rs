//! `entente demo --chaos`: kills nodes (`kill -9`) one after the other while clients use the network.

use super::brokers::Brokers;
use super::prepare;
use super::screen::Screen;
use super::supervision::{Cause, Supervisor};
use super::turn::{self, await_turn};
use crate::CommandError;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long all nodes are up before the next one is killed.
const BETWEEN: Duration = Duration::from_secs(2);
/// How long a node's turn to lead is waited for; with idle turns of half a second it comes much earlier.
const TURN_WITHIN: Duration = Duration::from_secs(3);

/// Who puts transactions into an order.
pub(crate) enum Leads<'b> {
    /// One node after the other.
    InTurn,
    /// A node, until it fails.
    UntilItFails,
    /// One of these brokers, which is down for so long when it is killed.
    Broker(&'b Brokers, Duration),
}

/// Kills a node each time that all are level, in turn, every other one when its turn to lead comes, until `until`; where nodes
/// do not take turns, every other time the one that leads, or the broker. The supervisor starts nodes again.
pub(crate) async fn kill_in_turn(
    (supervisor, screen): (&Supervisor, &Screen),
    (gateways, leads): (&[SocketAddr], &Leads<'_>),
    until: Instant,
) {
    for kill in 0_usize.. {
        // A node that does not come back fails the demo elsewhere.
        if supervisor.wait_until_level().await.is_err() {
            return;
        }
        tokio::time::sleep(BETWEEN).await;
        if Instant::now() >= until {
            return;
        }
        let mut victim = kill % gateways.len();
        let mut cause = Cause::Chaos;
        match leads {
            _ if !kill.is_multiple_of(2) => {}
            Leads::InTurn => {
                if leads_next(supervisor, gateways, victim).await.is_ok() {
                    cause = Cause::Leader;
                }
            }
            Leads::UntilItFails => {
                if let Ok(found) = leader(supervisor, gateways[victim]).await {
                    (victim, cause) = (found, Cause::Leader);
                }
            }
            Leads::Broker(brokers, down) => {
                match brokers.kill_leader(*down).await {
                    Ok(killed) => {
                        screen.say(format!("the broker that led, at port {}, is killed", killed.port));
                        if let Err(error) = killed.wait().await {
                            return screen.say(format!("it does not come back: {error}"));
                        }
                        screen.say("the broker is back");
                    }
                    Err(error) => screen.say(format!("no broker is killed: {error}")),
                }
                continue;
            }
        }
        if supervisor.kill(victim, cause).is_err() {
            return;
        }
    }
}

/// Position of the node that leads, as one of them says.
async fn leader(supervisor: &Supervisor, gateway: SocketAddr) -> Result<usize, CommandError> {
    let name = turn::leader(&prepare::connect(gateway).await?).await?;
    let found = supervisor.processes().iter().position(|(organisation, _)| *organisation == name);
    Ok(found.ok_or("expected a leader among the nodes")?)
}

/// Returns when the node at `victim` is to propose the next block.
async fn leads_next(
    supervisor: &Supervisor,
    gateways: &[SocketAddr],
    victim: usize,
) -> Result<(), CommandError> {
    let (name, _) = supervisor.processes().swap_remove(victim);
    let session = prepare::connect(gateways[(victim + 1) % gateways.len()]).await?;
    await_turn(&session, (&name, gateways.len()), TURN_WITHIN).await
}
