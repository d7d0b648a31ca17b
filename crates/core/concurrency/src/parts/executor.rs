//! The parts of one schema, at one of its members.

use super::locks::{may_meet, meet, meet_writes};
use super::touching::{Touched, Touching};
use super::{Decided, Decision, LedgerPosition};
use crate::execution::{Budget, apply_now};
use state::{AfterImage, Effects, Footprint, Overlay, Simulate, Snapshot, StoreError};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Of how many of them its members say what moves, as it was simulated last; `None`: of none.
    pub moved: Option<Moved>,
}

/// Counts the other schemas of which a part's members say what moves.
pub type Moved = Arc<dyn Fn() -> usize + Send + Sync>;

/// What members say of moves in one block, so that it fits into a message with their votes: a part behind that waits for the next block.
/// One is 48 bytes long.
const MOVES_SAID_MAX: usize = 40 * 1024 / 48;

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
    moved: Option<Moved>,
    /// What it came to when it was tried last. Whoever comes behind it in the ledger and would meet that waits behind it.
    tried: Option<Effects>,
    /// What it may come to, whatever it finds. `None`: nobody knows.
    footprint: Option<Arc<Footprint>>,
}

impl Waiting {
    fn new(part: Arc<dyn Simulate>, crossing: bool, catalog: &Catalog) -> Waiting {
        let footprint = part.footprint(catalog).ok().map(Arc::new);
        Waiting { part, crossing, moved: None, tried: None, footprint }
    }

    /// The rows by which others find it.
    fn touched(&self) -> Touched {
        self.footprint.as_ref().map_or_else(Touched::anything, |footprint| Touched::within(footprint))
    }
}

/// A part that was executed, voted for, and is not decided.
#[derive(Clone)]
struct Prepared {
    part: Arc<dyn Simulate>,
    effects: Effects,
}

/// What became of a part in a block.
enum Attempt {
    /// It does not wait any more.
    Ended,
    /// It waits, for what this meets.
    Blocked(Effects),
    /// The block's steps are spent.
    NoSteps,
}

/// A rule that tests switch off, to see what goes wrong without it (`schemas.py` has the same variants).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartsRule {
    /// What is prepared keeps others from what it read and wrote.
    Locks,
    /// It keeps them from what it read, too.
    ReadLocks,
    /// Parts of transactions of several schemas that may meet are prepared in the order of the ledger.
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
    /// Prepared parts and waiting ones, by what they touch.
    locked: Touching,
    queued: Touching,
    /// Of those that wait, the parts of transactions of several schemas.
    crossing: BTreeSet<LedgerPosition>,
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
    /// How much members say of moves.
    moves: usize,
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
            executor.lock(position, Prepared { part, effects });
        }
        for (position, part, crossing) in waiting {
            executor.queue(position, Waiting::new(part, crossing, state.catalog()));
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
            moves: 0,
        };
        for decided in &block.decisions {
            self.decide(*decided, &mut run)?;
        }
        let waited: Vec<LedgerPosition> = self.waiting.keys().copied().collect();
        for position in waited {
            let Some(Waiting { part, crossing, moved, .. }) = self.waiting.get(&position) else { continue };
            let (part, crossing, moved) = (part.clone(), *crossing, moved.clone());
            match self.attempt((position, &part, crossing), moved.as_ref(), &mut run)? {
                Attempt::Ended => drop(self.unqueue(position)),
                Attempt::Blocked(effects) => {
                    self.waiting.get_mut(&position).expect("it waits").tried = Some(effects);
                }
                Attempt::NoSteps => {}
            }
        }
        for NewPart { position, part, crossing, moved } in block.parts {
            let tried = match self.attempt((position, &part, crossing), moved.as_ref(), &mut run)? {
                Attempt::Ended => continue,
                Attempt::Blocked(effects) => Some(effects),
                Attempt::NoSteps => None,
            };
            self.queue(position, Waiting { tried, moved, ..Waiting::new(part, crossing, &run.catalog) });
        }
        let Run { state, budget, mut executed, .. } = run;
        executed.changes = state.into_changes();
        executed.steps = budget.spent();
        Ok(executed)
    }

    /// What was prepared is written or dropped, and its locks go.
    fn decide(&mut self, decided: Decided, run: &mut Run<'_>) -> Result<(), PartsError> {
        let position = decided.transaction;
        let prepared = self.unlock(position);
        self.unqueue(position);
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

    /// Executes a part, unless it has to wait.
    fn attempt(
        &mut self,
        (position, part, crossing): (LedgerPosition, &Arc<dyn Simulate>, bool),
        moved: Option<&Moved>,
        run: &mut Run<'_>,
    ) -> Result<Attempt, PartsError> {
        if run.budget.is_spent() || (crossing && run.executed.votes.len() >= limits::VOTES_MAX) {
            return Ok(Attempt::NoSteps);
        }
        let effects = part.simulate(&run.state)?;
        run.budget.charge(effects.steps);
        if self.is_blocked(position, crossing, &effects, &run.catalog) {
            return Ok(Attempt::Blocked(effects));
        }
        if !crossing {
            run.write(position, effects)?;
            return Ok(Attempt::Ended);
        }
        let moves = moved.map_or(0, |moved| moved());
        if moves > 0 && run.moves + moves > MOVES_SAID_MAX {
            return Ok(Attempt::Blocked(effects));
        }
        run.moves += moves;
        match &effects.result {
            Ok(_) => {
                run.executed.votes.push((position, true));
                self.lock(position, Prepared { part: part.clone(), effects });
            }
            Err(error) => {
                run.executed.votes.push((position, false));
                self.refused.insert(position, error.clone());
            }
        }
        Ok(Attempt::Ended)
    }

    fn lock(&mut self, position: LedgerPosition, prepared: Prepared) {
        self.locked.insert(position, &Touched::by(&prepared.effects));
        self.prepared.insert(position, prepared);
    }

    fn unlock(&mut self, position: LedgerPosition) -> Option<Prepared> {
        let prepared = self.prepared.remove(&position)?;
        self.locked.remove(position, &Touched::by(&prepared.effects));
        Some(prepared)
    }

    fn queue(&mut self, position: LedgerPosition, waiting: Waiting) {
        self.queued.insert(position, &waiting.touched());
        self.crossing.extend(waiting.crossing.then_some(position));
        self.waiting.insert(position, waiting);
    }

    fn unqueue(&mut self, position: LedgerPosition) -> Option<Waiting> {
        let waiting = self.waiting.remove(&position)?;
        self.queued.remove(position, &waiting.touched());
        self.crossing.remove(&position);
        Some(waiting)
    }

    /// Whether a part meets a lock, or a part before it that waits. A part of several schemas overtakes others of several only where
    /// no part that waits before it may meet it once its turn comes: so there is no deadlock (`tests/oracle/overtaking.py`).
    fn is_blocked(
        &self,
        position: LedgerPosition,
        crossing: bool,
        effects: &Effects,
        catalog: &Catalog,
    ) -> bool {
        let has = |rule| self.lacks != Some(rule);
        let locked = |prepared: &Prepared| match self.lacks {
            Some(PartsRule::Locks) => false,
            Some(PartsRule::ReadLocks) => meet_writes(effects, &prepared.effects, catalog),
            _ => meet(effects, &prepared.effects, catalog),
        };
        let overtakes = crossing && self.crossing.first().is_some_and(|first| *first < position);
        let ahead = |waiting: &Waiting| {
            (overtakes && has(PartsRule::FirstInFirstOut) && may_meet(effects, waiting.footprint.as_deref()))
                || (has(PartsRule::Fair)
                    && waiting.tried.as_ref().is_some_and(|tried| meet(effects, tried, catalog)))
        };
        let touched = Touched::by(effects);
        let is_locked = match self.locked.may_meet(&touched) {
            None => self.prepared.values().any(locked),
            Some(few) => few.iter().filter_map(|position| self.prepared.get(position)).any(locked),
        };
        is_locked
            || match self.queued.may_meet(&touched) {
                None => self.waiting.range(..position).any(|(_, waiting)| ahead(waiting)),
                Some(few) => {
                    few.range(..position).filter_map(|position| self.waiting.get(position)).any(ahead)
                }
            }
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
