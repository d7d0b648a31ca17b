//! `entente demo --chaos`: kills nodes (`kill -9`) one after the other while clients use the network.

use super::prepare;
use super::supervision::{Cause, Supervisor};
use super::turn::{self, await_turn};
use crate::CommandError;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long all nodes are up before the next one is killed.
const BETWEEN: Duration = Duration::from_secs(2);
/// How long a node's turn to lead is waited for; with idle turns of half a second it comes much earlier.
const TURN_WITHIN: Duration = Duration::from_secs(3);

/// Kills a node each time that all are level, in turn, every other one when its turn to lead comes, until `until`; where nodes
/// do not take turns, every other time the one that leads. The supervisor starts them again.
pub(crate) async fn kill_in_turn(
    supervisor: &Supervisor,
    (gateways, takes_turns): (&[SocketAddr], bool),
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
        let mut leads = kill.is_multiple_of(2);
        if leads && takes_turns {
            leads = leads_next(supervisor, gateways, victim).await.is_ok();
        } else if leads {
            match leader(supervisor, gateways[victim]).await {
                Ok(found) => victim = found,
                Err(_) => leads = false,
            }
        }
        let cause = if leads { Cause::Leader } else { Cause::Chaos };
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
