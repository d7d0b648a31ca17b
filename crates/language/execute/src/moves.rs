//! What a transaction moves between schemas with members, and what its execution knows of who agrees to that.

use plan::assets::AssetFunction;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use types::{Move, Policy, Signers, SqlError, SqlState, limits};

/// What one part of a transaction moves between its schema and the others, as its execution finds it.
#[derive(Debug)]
pub struct Moves {
    schema: String,
    /// The other schemas of the transaction with which this one can compare what moves.
    others: BTreeSet<String>,
    found: Mutex<Vec<Move>>,
}

impl Moves {
    /// Nothing moves yet between a schema and these others.
    pub fn new(schema: &str, others: impl IntoIterator<Item = String>) -> Moves {
        Moves { schema: schema.to_string(), others: others.into_iter().collect(), found: Mutex::default() }
    }

    /// The part is executed, perhaps again.
    pub fn begin(&self) {
        self.locked().clear();
    }

    /// What the last execution has moved.
    pub fn found(&self) -> Vec<Move> {
        self.locked().clone()
    }

    /// How many things the last execution has moved.
    pub fn count(&self) -> usize {
        self.locked().len()
    }

    /// What an error has undone has not moved.
    pub(crate) fn truncate(&self, count: usize) {
        self.locked().truncate(count);
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Move>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, function: AssetFunction, other: &str, what: String) -> Result<(), SqlError> {
        if !self.others.contains(other) {
            let message = format!("the transaction has no part in schema \"{other}\"");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(
                "What leaves one schema comes into another one: send the statements of both together.",
            ));
        }
        let (here, there) = (self.schema.clone(), other.to_string());
        let moved = match function {
            AssetFunction::TakeOver => Move { from: there, to: here, what },
            _ => Move { from: here, to: there, what },
        };
        let mut found = self.locked();
        let bytes: usize = found.iter().map(|one| one.what.len()).sum();
        if found.len() >= limits::MOVES_MAX || bytes + moved.what.len() > limits::MOVES_BYTES_MAX {
            let message = format!(
                "a transaction moves at most {} things between schemas (MOVES_MAX), of {} bytes together (MOVES_BYTES_MAX)",
                limits::MOVES_MAX,
                limits::MOVES_BYTES_MAX
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Split it."));
        }
        found.push(moved);
        Ok(())
    }
}

/// What an execution in a schema with members knows of the transaction.
#[derive(Default)]
pub(crate) struct Assets<'a> {
    /// Who has signed it; `None`: nobody's signature is asked for.
    pub(crate) signers: Option<Arc<Signers>>,
    /// Where what it moves is noted.
    pub(crate) moves: Option<&'a Moves>,
    /// Policies of the procedures that are running, the innermost last.
    pub(crate) policies: Vec<Arc<Policy>>,
    /// Routines of the catalog that are running inside of one another: they alone say what moves, and clients do not.
    pub(crate) routines: usize,
}
