//! One shard's work on one transaction: Algorithm 1.

use crate::message::{Answer, Number, Request, Secret, ShardId};
use crate::rules::{Rounds, Rules};
use std::collections::{BTreeMap, BTreeSet};

/// Hashes of a transaction. Bogus ones cost a round each where dependencies are cyclic.
pub const HASHES_MAX: u32 = 64;

/// What a shard knows of a transaction: the pre-images behind its hashes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnPart {
    /// Hashes of the whole transaction, bogus ones among them.
    pub hashes: u32,
    /// Whom its proposals depend on, with the secret of each dependency.
    pub dependencies: BTreeMap<ShardId, Secret>,
    /// Secrets of those who depend on it.
    pub callers: BTreeSet<Secret>,
    /// The stakeholders of its pre-images have signed the transaction, and its program agrees.
    pub is_endorsed: bool,
    /// Keys that were read, with their versions: 0, or 1 more than the number of the transaction that wrote them.
    pub reads: BTreeMap<u64, u64>,
    /// Keys that are written.
    pub writes: BTreeSet<u64>,
}

impl OwnPart {
    /// Whether two parts of a shard must be validated one after the other.
    pub(crate) fn meets(&self, other: &OwnPart) -> bool {
        let writes = |one: &OwnPart, other: &OwnPart| {
            one.writes.iter().any(|key| other.writes.contains(key) || other.reads.contains_key(key))
        };
        writes(self, other) || writes(other, self)
    }
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Something before it is not decided.
    Waiting,
    /// It asks its dependencies.
    Asking,
    /// It has decided.
    Done,
}

/// Algorithm 1 as a state machine. Belief and round are stored together, and survive a crash with the phase.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) own: OwnPart,
    dependencies: BTreeMap<ShardId, Secret>,
    phase: Phase,
    /// What others are told: the round that has begun, and the belief at its beginning.
    stored_round: u32,
    stored_belief: bool,
    limit: u32,
    /// Rounds that were begun, those after a crash again.
    pub(crate) rounds: u32,
    belief: bool,
    all_final: bool,
    asked: Option<ShardId>,
    to_ask: Vec<ShardId>,
    /// Calls so far, where rounds are counted.
    calls: BTreeMap<ShardId, u32>,
}

impl Part {
    pub(crate) fn new(own: OwnPart) -> Part {
        Part {
            dependencies: own.dependencies.clone(),
            own,
            phase: Phase::Waiting,
            stored_round: 0,
            stored_belief: false,
            limit: 0,
            rounds: 0,
            belief: false,
            all_final: false,
            asked: None,
            to_ask: Vec::new(),
            calls: BTreeMap::new(),
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Whether it commits, once that is known.
    pub(crate) fn decision(&self) -> Option<bool> {
        (self.phase == Phase::Done).then_some(self.stored_belief)
    }

    /// The rounds that it may take.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Its own part is valid or not.
    pub(crate) fn begin(&mut self, shard: ShardId, is_valid: bool, rules: &Rules) {
        self.belief = is_valid;
        let others = self.own.hashes.saturating_sub(1);
        if rules.checks_dependencies {
            self.dependencies.remove(&shard);
            self.belief &= self.dependencies.len() <= others as usize && self.own.hashes <= HASHES_MAX;
        }
        let spare = u32::from(rules.has_spare_round);
        self.limit = (self.own.hashes.saturating_add(spare)).saturating_sub(self.dependencies.len() as u32);
        if self.dependencies.is_empty() || !self.belief { self.end() } else { self.next_round() }
    }

    fn next_round(&mut self) {
        if self.stored_round >= self.limit {
            return self.end();
        }
        self.phase = Phase::Asking;
        self.stored_round += 1;
        self.rounds += 1;
        self.stored_belief = self.belief;
        self.all_final = true;
        self.to_ask = self.dependencies.keys().rev().copied().collect();
        self.asked = self.to_ask.pop();
    }

    fn end(&mut self) {
        self.phase = Phase::Done;
        self.stored_belief = self.belief;
        self.asked = None;
    }

    /// What it waits for an answer to.
    pub(crate) fn request(&self, shard: ShardId, transaction: Number) -> Option<Request> {
        let to = self.asked?;
        let secret = *self.dependencies.get(&to)?;
        Some(Request { from: shard, to, transaction, round: self.stored_round, secret })
    }

    /// Whether the answer says something that it waits for.
    pub(crate) fn hear(&mut self, answer: &Answer, rules: &Rules) -> bool {
        let is_old = rules.rounds == Rounds::Named && answer.round != self.stored_round && !answer.is_final;
        if self.phase != Phase::Asking || self.asked != Some(answer.from) || is_old {
            return false;
        }
        self.all_final &= answer.is_final;
        self.belief &= answer.belief;
        self.asked = self.to_ask.pop();
        if !self.belief || (self.asked.is_none() && self.all_final) {
            self.end();
        } else if self.asked.is_none() {
            self.next_round();
        }
        true
    }

    /// Algorithm 2: belief and whether it is final; `None`: the caller waits.
    pub(crate) fn pull(&mut self, caller: ShardId, round: u32, rules: &Rules) -> Option<(bool, bool)> {
        let is_final = self.phase == Phase::Done;
        let calls = self.calls.entry(caller).or_default();
        let is_behind = match rules.rounds {
            Rounds::Named => self.stored_round < round,
            Rounds::Counted => self.stored_round <= *calls,
        };
        if self.phase == Phase::Waiting || (is_behind && !is_final) {
            return None;
        }
        *calls += 1;
        Some((self.stored_belief, is_final))
    }

    /// After a crash it goes on in the round that it had stored.
    pub(crate) fn restart(&mut self) {
        if self.phase == Phase::Asking {
            self.stored_round -= 1;
            self.belief = true;
            self.next_round();
        }
    }
}
