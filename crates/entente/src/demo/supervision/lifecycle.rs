//! One node's way from its end to being back, without processes and clocks.

use serde::Serialize;
use std::time::{Duration, Instant};

/// A node that ends so often, without having been level with the others in between, is not started again.
pub(super) const ENDS_MAX: u32 = 5;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Condition {
    /// It has what the others have.
    Level,
    /// It has ended and will be started again.
    Down {
        /// When it ended.
        since: Instant,
        /// When it is started.
        restart_at: Instant,
    },
    /// It runs, and has not shown yet that it has what the others have.
    CatchingUp {
        /// When it was started.
        since: Instant,
        /// Blocks that it lacks, once it answers.
        behind: Option<u64>,
    },
    /// It has ended too often.
    GivenUp,
}

/// Who ended a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cause {
    /// `--chaos`, at any moment.
    Chaos,
    /// `--chaos`, when the node was to propose the next block.
    Leader,
    /// Somebody else, or the node itself.
    Outside,
}

/// What became of a node that ended; part of the JSON record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Failure {
    pub(crate) organisation: String,
    /// `chaos`, `leader` (by `--chaos` when its turn to lead came) or `outside`.
    pub(crate) cause: Cause,
    /// How it ended, for people.
    pub(crate) how: String,
    /// From its end to its next start.
    pub(crate) down_seconds: Option<f64>,
    /// What it lacked when it first answered.
    pub(crate) blocks_behind: Option<u64>,
    /// From its start until it had the others' newest blocks and the same state digest.
    pub(crate) back_seconds: Option<f64>,
}

/// What a node's answer says, held against the others'.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    /// It does not answer yet, does not serve yet, or nobody else answers.
    Unknown,
    /// It lacks so many blocks.
    Behind(u64),
    /// It has another state than the others at this height.
    Differs(u64),
    /// It has the same state digest at this height, which is among the newest.
    Level(u64, String),
}

/// The condition of one node, and what has happened to it.
pub(crate) struct Lifecycle {
    organisation: String,
    condition: Condition,
    /// Since it was level.
    ends: u32,
    failures: Vec<Failure>,
}

impl Lifecycle {
    /// Of a node that is level with the others.
    pub(crate) fn new(organisation: &str) -> Lifecycle {
        let organisation = organisation.to_string();
        Lifecycle { organisation, condition: Condition::Level, ends: 0, failures: Vec::new() }
    }

    pub(crate) fn organisation(&self) -> &str {
        &self.organisation
    }

    pub(crate) fn condition(&self) -> Condition {
        self.condition
    }

    pub(crate) fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The node has ended: it is to be started again after `restart_after`, unless it has ended too often.
    pub(crate) fn ended(&mut self, now: Instant, how: String, cause: Cause, restart_after: Duration) {
        self.ends += 1;
        self.condition = match self.ends < ENDS_MAX {
            true => Condition::Down { since: now, restart_at: now + restart_after },
            false => Condition::GivenUp,
        };
        self.failures.push(Failure {
            organisation: self.organisation.clone(),
            cause,
            how,
            down_seconds: None,
            blocks_behind: None,
            back_seconds: None,
        });
    }

    /// Whether it is to be started now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        matches!(self.condition, Condition::Down { restart_at, .. } if restart_at <= now)
    }

    /// It has been started.
    pub(crate) fn started(&mut self, now: Instant) {
        if let (Condition::Down { since, .. }, Some(failure)) = (self.condition, self.failures.last_mut()) {
            failure.down_seconds = Some((now - since).as_secs_f64());
        }
        self.condition = Condition::CatchingUp { since: now, behind: None };
    }

    /// It has answered, or not. True: it is back.
    pub(crate) fn seen(&mut self, now: Instant, standing: &Standing) -> bool {
        let Condition::CatchingUp { since, behind } = &mut self.condition else { return false };
        let lacks = match standing {
            Standing::Unknown | Standing::Differs(_) => return false,
            Standing::Behind(blocks) => *blocks,
            Standing::Level(..) => 0,
        };
        let since = *since;
        *behind = Some(lacks);
        if let Some(failure) = self.failures.last_mut() {
            failure.blocks_behind.get_or_insert(lacks);
        }
        if !matches!(standing, Standing::Level(..)) {
            return false;
        }
        if let Some(failure) = self.failures.last_mut() {
            failure.back_seconds = Some((now - since).as_secs_f64());
        }
        self.condition = Condition::Level;
        self.ends = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(3);

    fn level() -> Standing {
        Standing::Level(9, "ab".to_string())
    }

    #[test]
    fn a_node_that_ends_is_started_again_and_is_back_once_it_is_level() {
        let (start, mut node) = (Instant::now(), Lifecycle::new("org2"));
        let at = |seconds| start + Duration::from_secs(seconds);
        node.ended(at(1), "by signal 9".to_string(), Cause::Outside, AFTER);
        assert!(!node.is_due(at(3)) && node.is_due(at(4)));
        node.started(at(4));
        assert!(!node.is_due(at(9)), "it runs");
        for standing in [Standing::Unknown, Standing::Behind(57), Standing::Behind(20), Standing::Differs(3)]
        {
            assert!(!node.seen(at(5), &standing), "{standing:?}");
        }
        assert_eq!(node.condition(), Condition::CatchingUp { since: at(4), behind: Some(20) });
        assert!(node.seen(at(6), &level()));
        assert_eq!(node.condition(), Condition::Level);
        assert!(!node.seen(at(7), &level()), "it is back once");
        let expected = Failure {
            organisation: "org2".to_string(),
            cause: Cause::Outside,
            how: "by signal 9".to_string(),
            down_seconds: Some(3.0),
            blocks_behind: Some(57),
            back_seconds: Some(2.0),
        };
        assert_eq!(node.failures(), [expected]);
    }

    #[test]
    fn a_node_that_ends_again_and_again_is_given_up_and_one_that_comes_back_is_not() {
        let (now, mut node) = (Instant::now(), Lifecycle::new("org1"));
        let end = |node: &mut Lifecycle| node.ended(now, String::new(), Cause::Outside, Duration::ZERO);
        for _ in 0..3 * ENDS_MAX {
            end(&mut node);
            assert!(node.is_due(now));
            node.started(now);
            assert!(node.seen(now, &level()));
        }
        for _ in 1..ENDS_MAX {
            end(&mut node);
            assert!(node.is_due(now));
            node.started(now);
            assert!(!node.seen(now, &Standing::Unknown));
        }
        end(&mut node);
        assert_eq!(node.condition(), Condition::GivenUp);
        assert!(!node.is_due(now + Duration::from_secs(3_600)));
    }
}
