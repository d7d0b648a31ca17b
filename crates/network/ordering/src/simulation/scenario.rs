//! What goes wrong, and when.

use commonware_consensus::types::{Epoch, Round, View};
use commonware_glue::simulate::action::{Action, Crash, Schedule};
use commonware_glue::simulate::engine::EngineDefinition;
use commonware_glue::simulate::plan::PlanBuilder;
use std::time::Duration;

use super::network::LinkQuality;

/// What goes wrong in a simulated network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// Nothing.
    Happy,
    /// Every two seconds a node is killed; it restarts a second later from its disk. Its mempool is lost.
    CrashAndRestart,
    /// One message of ten is lost; the others take 50 ms on average.
    Loss,
    /// For some seconds two nodes do not reach the other two: nothing can become final.
    PartitionAndHeal,
    /// A node starts late, with an empty disk.
    LateJoiner,
    /// A node signs two contradicting votes whenever it votes.
    ConflictingVotes,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 6] = [
        Scenario::Happy,
        Scenario::CrashAndRestart,
        Scenario::Loss,
        Scenario::PartitionAndHeal,
        Scenario::LateJoiner,
        Scenario::ConflictingVotes,
    ];

    /// Nodes, from the first, that do not follow the rules.
    pub(super) fn faulty(self) -> usize {
        usize::from(self == Scenario::ConflictingVotes)
    }

    pub(super) fn apply<D: EngineDefinition>(
        self,
        plan: PlanBuilder<D>,
        members: &[D::PublicKey],
    ) -> PlanBuilder<D> {
        match self {
            Scenario::Happy | Scenario::ConflictingVotes => plan,
            Scenario::CrashAndRestart => {
                let (frequency, downtime) = (Duration::from_secs(2), Duration::from_secs(1));
                plan.crash(Crash::Random { frequency, downtime, count: 1 })
            }
            Scenario::Loss => {
                let quality = LinkQuality { latency_ms: 50, jitter_ms: 20, arrive_percent: 90 };
                plan.link(quality.link())
            }
            Scenario::PartitionAndHeal => plan.crash(Crash::Schedule(partition(members))),
            Scenario::LateJoiner => {
                let participants = members.last().cloned().into_iter().collect();
                plan.crash(Crash::DelayRound {
                    participants,
                    round: Round::new(Epoch::zero(), View::new(20)),
                })
            }
        }
    }
}

/// From second 1 to second 9, the first half does not reach the second.
fn partition<P: commonware_cryptography::PublicKey>(members: &[P]) -> Schedule<P> {
    let dead = LinkQuality::DEAD.link();
    let (first, second) = members.split_at(members.len() / 2);
    let mut schedule = Schedule::new();
    for (left, right) in first.iter().flat_map(|left| second.iter().map(move |right| (left, right))) {
        for (from, to) in [(left, right), (right, left)] {
            let (from, to, link) = (from.clone(), to.clone(), dead.clone());
            schedule = schedule.at(Duration::from_secs(1), Action::UpdateLink { from, to, link });
        }
    }
    schedule.at(Duration::from_secs(9), Action::Heal(LinkQuality::GOOD.link()))
}
