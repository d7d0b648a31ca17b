//! Transaction blocks as their client has them: steps from their texts, and what each gives.

use super::{Database, START_MS, STEP_LIMIT, texts};
use sql::{Context, Session};
use std::sync::Arc;
use types::{SessionStep, TransactionId};

/// A block whose time is an hour before that of the transactions.
pub fn begin_as(database: &Database, read_only: bool) -> Session {
    let context = Context {
        height: u64::MAX,
        timestamp_ms: START_MS - 3_600_000,
        index: u32::MAX,
        transaction: TransactionId::default(),
        step_limit: STEP_LIMIT,
    };
    let snapshot = Arc::new(database.state.clone());
    Session::begin(
        database.library.clone(),
        snapshot,
        context,
        database.principal.clone(),
        2 * STEP_LIMIT,
        read_only,
        database.temporary.clone(),
    )
}

/// One that may write.
pub fn begin(database: &Database) -> Session {
    begin_as(database, false)
}

/// A statement.
pub fn sql(text: &str) -> SessionStep {
    SessionStep::Run { sql: text.to_string(), parameters: vec![] }
}

/// What a step is from its text.
pub fn step(text: &str) -> SessionStep {
    let name = |prefix: &str| text.strip_prefix(prefix).map(ToString::to_string);
    match (name("SAVEPOINT "), name("ROLLBACK TO "), name("RELEASE ")) {
        (Some(name), _, _) => SessionStep::Savepoint(name),
        (_, Some(name), _) => SessionStep::RollbackTo(name),
        (_, _, Some(name)) => SessionStep::Release(name),
        _ => sql(text),
    }
}

/// Runs a step: its rows, its tag where it has none, or its SQLSTATE.
pub fn run(session: &mut Session, text: &str) -> String {
    match session.run(step(text)) {
        Ok(result) if result.columns.is_empty() => result.tag,
        Ok(result) => texts(&result).iter().map(|row| row.join(",")).collect::<Vec<_>>().join(";"),
        Err(error) => error.state.to_string(),
    }
}

/// Runs steps and checks what each gives.
pub fn steps(session: &mut Session, expected: &[(&str, &str)]) {
    for (text, given) in expected {
        assert_eq!(run(session, text), *given, "{text}");
    }
}
