//! The parts of one schema, at one of its members.

use super::locks::{meet, meet_writes};
use super::{Decided, Decision, LedgerPosition};
use crate::execution::{Budget, apply_now};
use state::{AfterImage, Effects, Overlay, Simulate, Snapshot, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{Catalog, SqlError, StatementResult, limits};

/// A part that stands in a block.
#[derive(Clone)]
pub struct NewPart {
    /// Where its transaction stands.
    pub position: LedgerPosition,
    /// What it does.
    pub part: Arc<dyn Simulate>,
    /// Its transaction has parts of other schemas, too.
    pub crossing: bool,
}

/// What a block has for a schema.
pub struct PartsBlock {
    /// Its height.
    pub height: u64,
    /// What is decided in it of the transactions that have a part of this schema.
    pub decisions: Vec<Decided>,
    /// The parts in it, by position; those that a change of the schema has kept waiting stand before them.
    pub parts: Vec<NewPart>,
    /// Logical steps that may be spent; what comes behind their end waits for the next block.
    pub steps: u64,
}

/// How a part ended.
#[derive(Clone, Debug, PartialEq)]
pub enum PartOutcome {
    /// Its changes are in the state.
    Committed(Vec<StatementResult>),
    /// Its own program, or a constraint, ended it.
    Aborted(SqlError),
    /// Its transaction was decided against.
    Undone {
        /// How.
        decision: Decision,
        /// Why this schema's members have said no, where they have.
        refusal: Option<SqlError>,
    },
}

/// What a block came to in a schema.
#[derive(Debug, Default)]
pub struct ExecutedParts {
    /// One after-image per changed row, by table and key.
    pub changes: Vec<AfterImage>,
    /// The parts that have ended in it, in the order in which they did.
    pub outcomes: Vec<(LedgerPosition, PartOutcome)>,
    /// What the schema's members say of parts whose transactions have others: whether they can commit.
    pub votes: Vec<(LedgerPosition, bool)>,
    /// Logical steps spent.
    pub steps: u64,
}

/// Why the parts of a schema cannot be executed.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// The state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The chain has decided that a part commits which cannot, as this member found: more members of the schema than may be have
    /// voted wrongly, or this member's state is another one.
    #[error(
        "the chain has committed the transaction at height {}, position {}, but this member's part of it was not prepared; compare \
         the schema's state digest with the other members'",
        .0.height, .0.index
    )]
    NotPrepared(LedgerPosition),
}

/// A part whose turn has not come.
#[derive(Clone)]
struct Waiting {
    part: Arc<dyn Simulate>,
    crossing: bool,
    /// What it came to when it was tried last. Whoever comes behind it in the ledger and would meet that waits behind it.
    tried: Option<Effects>,
}

/// A part that was executed, voted for, and is not decided.
#[derive(Clone)]
struct Prepared {
    part: Arc<dyn Simulate>,
    effects: Effects,
}

/// A rule that tests switch off, to see what goes wrong without it (`schemas.py` has the same variants).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartsRule {
    /// What is prepared keeps others from what it read and wrote.
    Locks,
    /// It keeps them from what it read, too.
    ReadLocks,
    /// Parts of transactions of several schemas are prepared in the order of the ledger.
    FirstInFirstOut,
    /// What meets a part before it that waits waits behind that.
    Fair,
}

/// Executes the parts of one schema block by block. Everything that is not in the state is in here: parts that wait, and parts
/// that are prepared.
#[derive(Clone, Default)]
pub struct PartsExecutor {
    prepared: BTreeMap<LedgerPosition, Prepared>,
    waiting: BTreeMap<LedgerPosition, Waiting>,
    /// Why parts cannot commit that were voted on, until that is decided.
    refused: BTreeMap<LedgerPosition, SqlError>,
    /// What a test has switched off.
    lacks: Option<PartsRule>,
}

/// A block under way.
struct Run<'a> {
    state: Overlay<'a>,
    catalog: Arc<Catalog>,
    budget: Budget,
    executed: ExecutedParts,
}

impl PartsExecutor {
    /// A schema in which something is prepared, or waits: what is needed beside its rows to go on from a checkpoint. The parts that
    /// were prepared are simulated again: what they read and wrote is locked, so they come to the same.
    ///
    /// # Errors
    /// The state cannot be read.
    pub fn resume(
        prepared: impl IntoIterator<Item = (LedgerPosition, Arc<dyn Simulate>)>,
        waiting: impl IntoIterator<Item = (LedgerPosition, Arc<dyn Simulate>, bool)>,
        state: &dyn Snapshot,
    ) -> Result<PartsExecutor, StoreError> {
        let mut executor = PartsExecutor::default();
        for (position, part) in prepared {
            let effects = part.simulate(state)?;
            executor.prepared.insert(position, Prepared { part, effects });
        }
        for (position, part, crossing) in waiting {
            executor.waiting.insert(position, Waiting { part, crossing, tried: None });
        }
        Ok(executor)
    }

    /// The same without one of the rules: for tests alone.
    #[must_use]
    pub fn without(self, rule: PartsRule) -> PartsExecutor {
        PartsExecutor { lacks: Some(rule), ..self }
    }

    /// The parts that hold locks, in the order of the ledger.
    pub fn prepared(&self) -> impl Iterator<Item = (LedgerPosition, &Arc<dyn Simulate>)> {
        self.prepared.iter().map(|(position, prepared)| (*position, &prepared.part))
    }

    /// The parts that wait, in the order of the ledger, and whether their transactions have parts of other schemas.
    pub fn waiting(&self) -> impl Iterator<Item = (LedgerPosition, &Arc<dyn Simulate>, bool)> {
        self.waiting.iter().map(|(position, waiting)| (*position, &waiting.part, waiting.crossing))
    }

    /// Nothing is locked and nothing waits: parts of this schema alone may be executed by any protocol.
    pub fn is_quiet(&self) -> bool {
        self.prepared.is_empty() && self.waiting.is_empty()
    }

    /// Executes a block on the state that the one before it left.
    ///
    /// # Errors
    /// [`PartsError`]; nothing of the block counts then, and this executor is of no more use.
    pub fn execute(&mut self, block: PartsBlock, state: &dyn Snapshot) -> Result<ExecutedParts, PartsError> {
        let mut run = Run {
            state: Overlay::new(state),
            catalog: state.catalog().clone(),
            budget: Budget::new(block.steps),
            executed: ExecutedParts::default(),
        };
        for decided in &block.decisions {
            self.decide(*decided, &mut run)?;
        }
        let waited: Vec<LedgerPosition> = self.waiting.keys().copied().collect();
        for position in waited {
            self.attempt(position, &mut run)?;
        }
        for NewPart { position, part, crossing } in block.parts {
            self.waiting.insert(position, Waiting { part, crossing, tried: None });
            self.attempt(position, &mut run)?;
        }
        let Run { state, budget, mut executed, .. } = run;
        executed.changes = state.into_changes();
        executed.steps = budget.spent();
        Ok(executed)
    }

    /// What was prepared is written or dropped, and its locks go.
    fn decide(&mut self, decided: Decided, run: &mut Run<'_>) -> Result<(), PartsError> {
        let position = decided.transaction;
        let prepared = self.prepared.remove(&position);
        self.waiting.remove(&position);
        let refusal = self.refused.remove(&position);
        if !decided.decision.commits() {
            let outcome = PartOutcome::Undone { decision: decided.decision, refusal };
            run.executed.outcomes.push((position, outcome));
            return Ok(());
        }
        match prepared {
            Some(prepared) => run.write(position, prepared.effects),
            None => Err(PartsError::NotPrepared(position)),
        }
    }

    /// Executes a part that waits, unless it has to wait on.
    fn attempt(&mut self, position: LedgerPosition, run: &mut Run<'_>) -> Result<(), PartsError> {
        if run.budget.is_spent() {
            return Ok(());
        }
        let Some(waiting) = self.waiting.get(&position).cloned() else { return Ok(()) };
        if waiting.crossing && run.executed.votes.len() >= limits::VOTES_MAX {
            return Ok(());
        }
        let effects = waiting.part.simulate(&run.state)?;
        run.budget.charge(effects.steps);
        if self.is_blocked(position, waiting.crossing, &effects, &run.catalog) {
            self.waiting.insert(position, Waiting { tried: Some(effects), ..waiting });
            return Ok(());
        }
        self.waiting.remove(&position);
        if !waiting.crossing {
            return run.write(position, effects);
        }
        match &effects.result {
            Ok(_) => {
                run.executed.votes.push((position, true));
                self.prepared.insert(position, Prepared { part: waiting.part, effects });
            }
            Err(error) => {
                run.executed.votes.push((position, false));
                self.refused.insert(position, error.clone());
            }
        }
        Ok(())
    }

    /// Whether a part meets a lock, or a part before it that waits. Parts of several schemas wait behind all such parts before them.
    fn is_blocked(
        &self,
        position: LedgerPosition,
        crossing: bool,
        effects: &Effects,
        catalog: &Catalog,
    ) -> bool {
        let mut before = self.waiting.range(..position).map(|(_, waiting)| waiting);
        let has = |rule| self.lacks != Some(rule);
        let locked = |prepared: &Prepared| match self.lacks {
            Some(PartsRule::Locks) => false,
            Some(PartsRule::ReadLocks) => meet_writes(effects, &prepared.effects, catalog),
            _ => meet(effects, &prepared.effects, catalog),
        };
        self.prepared.values().any(locked)
            || before.any(|waiting| {
                (crossing && waiting.crossing && has(PartsRule::FirstInFirstOut))
                    || (has(PartsRule::Fair)
                        && waiting.tried.as_ref().is_some_and(|tried| meet(effects, tried, catalog)))
            })
    }
}

impl Run<'_> {
    fn write(&mut self, position: LedgerPosition, effects: Effects) -> Result<(), PartsError> {
        let outcome = match effects.result {
            Ok(results) => match apply_now(&effects.commands, &mut self.state)? {
                Ok(()) => PartOutcome::Committed(results),
                Err(error) => PartOutcome::Aborted(error),
            },
            Err(error) => PartOutcome::Aborted(error),
        };
        self.executed.outcomes.push((position, outcome));
        Ok(())
    }
}
