//! Transaction blocks: what a session did between BEGIN and COMMIT, as the transaction that COMMIT submits.

use crate::step_given::NOTHING;
use crate::{PackedRows, SqlError, SqlState, StatementResult, StepGiven, Value, encode};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};

const RESULTS_DOMAIN: &[u8] = b"entente session results 1\0";

/// One thing that a session did in a transaction block. Those of a block run in order, each seeing what those before it
/// have left.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum SessionStep {
    /// Runs one SQL statement.
    Run {
        /// The statement.
        sql: String,
        /// Values of `$1`, `$2`, …
        parameters: Vec<Value>,
    },
    /// Inserts rows: what COPY becomes.
    Insert {
        /// The table.
        table: String,
        /// The columns that `rows` give, in their order.
        columns: Vec<String>,
        /// The rows.
        rows: PackedRows,
    },
    /// SAVEPOINT.
    Savepoint(String),
    /// ROLLBACK TO SAVEPOINT: what was done since the savepoint is undone; the savepoint stays.
    RollbackTo(String),
    /// RELEASE SAVEPOINT: it and those after it are forgotten, what was done since stays.
    Release(String),
    /// Runs one SQL statement with what the session alone knows: from execution version 15 on. So `SKIP LOCKED` leaves out at every node what
    /// it has left out at the gateway, and rows of temporary tables are there. It is the session's word, as literals in the statement
    /// would be.
    RunGiven {
        /// What is said with it.
        #[borsh(deserialize_with = "crate::step_given::read_given")]
        given: StepGiven,
        /// The statement.
        sql: String,
        /// Values of `$1`, `$2`, …
        parameters: Vec<Value>,
    },
}

impl SessionStep {
    /// The SQL statement that it runs, and its parameters, where it runs one.
    pub fn statement(&self) -> Option<(&str, &[Value])> {
        match self {
            SessionStep::Run { sql, parameters } | SessionStep::RunGiven { sql, parameters, .. } => {
                Some((sql, parameters))
            }
            SessionStep::Insert { .. }
            | SessionStep::Savepoint(_)
            | SessionStep::RollbackTo(_)
            | SessionStep::Release(_) => None,
        }
    }

    /// What is said with it.
    pub fn given(&self) -> &StepGiven {
        match self {
            SessionStep::RunGiven { given, .. } => given,
            _ => &NOTHING,
        }
    }
}

/// The digest over everything that the steps of a block gave their client, in order: rows, tags, messages and errors.
///
/// Whoever runs the same steps again and comes to the same digest has given the client nothing else than it has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionResults(Digest);

impl SessionResults {
    /// The next step has given this.
    pub fn add(&mut self, result: &Result<StatementResult, SqlError>) {
        self.0 = sha256(&[RESULTS_DOMAIN, &self.0.0, &encode(result)]);
    }

    /// The digest over all so far.
    pub fn digest(&self) -> Digest {
        self.0
    }
}

/// What a transaction block ends with that would have given its client something else than the client has seen.
pub fn results_have_changed() -> SqlError {
    SqlError::new(SqlState::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update")
        .detail("At its place in the order a statement of the transaction block gives another result than the client was given.")
        .hint("The transaction might succeed if retried: run the whole block again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_tells_results_their_order_and_errors_apart() {
        let tag = |tag: &str| Ok(StatementResult { tag: tag.to_string(), ..StatementResult::default() });
        let digest = |results: &[Result<StatementResult, SqlError>]| {
            let mut all = SessionResults::default();
            results.iter().for_each(|result| all.add(result));
            all.digest()
        };
        let error = |message: &str| Err(SqlError::new(SqlState::DIVISION_BY_ZERO, message));
        let different = [
            digest(&[]),
            digest(&[tag("UPDATE 1")]),
            digest(&[tag("UPDATE 0")]),
            digest(&[tag("UPDATE 1"), tag("UPDATE 0")]),
            digest(&[tag("UPDATE 0"), tag("UPDATE 1")]),
            digest(&[tag("UPDATE 1"), error("division by zero")]),
            digest(&[tag("UPDATE 1"), error("another")]),
        ];
        for (position, one) in different.iter().enumerate() {
            assert!(!different[position + 1..].contains(one), "{position}");
        }
        assert_eq!(digest(&[tag("UPDATE 1")]), different[1]);
    }
}
