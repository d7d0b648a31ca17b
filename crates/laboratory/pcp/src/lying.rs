//! The same attack on schemas with members ([`concurrency::parts`]): a schema all of whose members lie.
//!
//! A lying shard of pCP tells one caller "commit" and another "discard", and both act on it. A lying schema can sign both votes, too:
//! but votes count where they stand in the ledger, so everybody acts on the same one.

use crate::case::Case;
use crate::message::ShardId;
use concurrency::parts::{Decisions, LedgerPosition, NewPart, PartOutcome, PartsBlock, PartsExecutor, Vote};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use state::{Effects, PlainState, Simulate, Snapshot, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{SqlError, SqlState};

/// Blocks until a transaction is decided at the latest.
const WINDOW: u64 = 6;

/// A part that can commit or cannot.
struct Program {
    is_valid: bool,
}

impl Simulate for Program {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        let (reads, scans, commands) = Default::default();
        let result = match self.is_valid {
            true => Ok(vec![]),
            false => Err(SqlError::new(SqlState::RAISE_EXCEPTION, "the part cannot commit")),
        };
        Ok(Effects { reads, scans, commands, result, steps: 1, catalog: None })
    }
}

/// One organisation for each schema, with its own copy of what follows from the chain.
struct Organisation {
    decisions: Decisions<ShardId>,
    executor: PartsExecutor,
    committed: BTreeMap<LedgerPosition, bool>,
}

/// What became of a case under the attack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attacked {
    /// Honest schemas that committed what another honest one has not committed, transactions counted once.
    pub torn: usize,
    /// Transactions that all honest schemas committed.
    pub committed: usize,
    /// Transactions.
    pub transactions: usize,
}

/// Runs the transactions of a case, whose parts stand for parts in schemas of one member each. The liar votes both ways.
///
/// # Errors
/// The state cannot be read, or an honest schema is told to commit what it has not prepared: that would be the attack's success.
pub fn attack_schemas(
    case: &Case,
    liar: ShardId,
    seed: u64,
) -> Result<Attacked, concurrency::parts::PartsError> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut organisations: Vec<Organisation> = (0..case.shards)
        .map(|_| Organisation {
            decisions: Decisions::new(WINDOW),
            executor: PartsExecutor::default(),
            committed: BTreeMap::new(),
        })
        .collect();
    let last = case.transactions.len() as u64 + WINDOW + 1;
    let mut votes: Vec<Vote<ShardId>> = Vec::new();
    for height in 1..=last {
        votes.shuffle(&mut rng);
        // A proposer takes some of them; the others stand in a later block.
        let left = votes.split_off(rng.random_range(0..=votes.len()));
        let carried = std::mem::replace(&mut votes, left);
        let transaction = case.transactions.get(height as usize - 1);
        for (organisation, schema) in organisations.iter_mut().zip(0..) {
            let schema = ShardId(schema);
            let schemas = transaction.map(|transaction| (0, transaction.parts.keys().copied().collect()));
            let decisions: Vec<_> =
                organisation.decisions.block(height, &carried, schemas).unwrap_or_default();
            let position = LedgerPosition { height, index: 0 };
            let part = transaction.and_then(|transaction| transaction.parts.get(&schema));
            let parts = part.map(|part| NewPart {
                moved: None,
                position,
                part: Arc::new(Program { is_valid: part.is_endorsed || schema == liar }),
                crossing: transaction.is_some_and(|transaction| transaction.parts.len() > 1),
            });
            let mine = |at: &LedgerPosition| {
                let of = case.transactions.get(at.height as usize - 1);
                of.is_some_and(|transaction| transaction.parts.contains_key(&schema))
            };
            let decisions = decisions.into_iter().filter(|decided| mine(&decided.transaction)).collect();
            let block = PartsBlock { height, decisions, parts: parts.into_iter().collect(), steps: u64::MAX };
            let executed = organisation.executor.execute(block, &PlainState::default())?;
            for (position, outcome) in executed.outcomes {
                organisation.committed.insert(position, matches!(outcome, PartOutcome::Committed(_)));
            }
            for (transaction, yes) in executed.votes {
                votes.push(Vote { transaction, schema, yes, moves: BTreeMap::new() });
                if schema == liar {
                    votes.push(Vote { transaction, schema, yes: !yes, moves: BTreeMap::new() });
                }
            }
        }
    }
    Ok(judge(case, liar, &organisations))
}

fn judge(case: &Case, liar: ShardId, organisations: &[Organisation]) -> Attacked {
    let mut attacked = Attacked { transactions: case.transactions.len(), ..Attacked::default() };
    for (transaction, height) in case.transactions.iter().zip(1..) {
        let position = LedgerPosition { height, index: 0 };
        let honest = transaction.parts.keys().filter(|schema| **schema != liar);
        let outcomes: BTreeSet<Option<bool>> =
            honest.map(|schema| organisations[schema.0 as usize].committed.get(&position).copied()).collect();
        attacked.torn += usize::from(outcomes.len() > 1);
        attacked.committed += usize::from(outcomes == BTreeSet::from([Some(true)]));
    }
    attacked
}
