//! Waiting for what other sessions hold: advisory locks, and rows that blocks have locked.
//!
//! ```text
//!  a statement ─▶ would it be kept from a lock, on the newest state? ─┬▶ yes: wait for a block, or the end of a lease, and ask again
//!                                                                    └▶ no: ordered; if it is refused at its place, ask again
//! ```
//!
//! Nothing is ordered while a session waits. What a statement would do is run on the newest state and thrown away, so that a lock that a routine
//! takes deep inside is waited for like others.
//!
//! A row is waited for by the first statement of a block, which ends without having come to anything then. Its block goes, and begins anew once
//! nobody has the row.

use super::script::{self, Statement};
use super::session::Session;
use super::statement::{Interest, blocking, cancelled};
use crate::limits;
use std::time::Duration;
use tokio::time::Instant;
use types::{
    ExecutionVersion, Payload, ScriptSettings, SessionStep, SqlError, SqlState, StatementResult,
    says_lock_is_held, says_row_is_held, split_settings,
};

/// Until when a statement waits for a lock.
struct Deadlines {
    statement: Option<Instant>,
    lock: Option<Instant>,
}

/// When it looks next whether a lock is free.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Now,
    /// Behind the block of this height.
    Behind(u64),
    LaterOn,
}

impl Deadlines {
    /// The time that is up first, and the error then.
    async fn passed(&self) -> SqlError {
        let at = |at: Option<Instant>| async move {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = at(self.lock) => SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"),
            () = at(self.statement) => cancelled("statement timeout"),
        }
    }
}

impl Session {
    /// Has a transaction ordered as [`Session::write`] does. Where it cannot have a lock, it is ordered again once the lock is free. `waits`: it
    /// is asked before whether it would have it.
    pub(super) async fn write_waiting(
        &mut self,
        payload: Payload,
        waits: bool,
    ) -> Result<Vec<StatementResult>, SqlError> {
        if self.version() < ExecutionVersion::V14 {
            return self.write(payload).await;
        }
        let deadlines = self.deadlines();
        let (mut waits, mut refused) = (waits, false);
        loop {
            if waits {
                self.wait_until_free(steps_of(&payload), &deadlines, refused).await?;
            }
            let changed = self.changing_locks();
            let written = self.write(payload.clone()).await;
            drop(changed);
            if written.as_ref().is_err_and(says_lock_is_held) {
                (waits, refused) = (true, true);
                continue;
            }
            self.look_at_locks(written.as_ref().err()).await;
            return written;
        }
    }

    /// Runs a step of the open block. If it is the first and cannot have a lock, the block begins once the lock is free.
    pub(super) async fn run_in_block_waiting(
        &mut self,
        step: SessionStep,
    ) -> Result<StatementResult, SqlError> {
        let deadlines = self.deadlines();
        loop {
            let is_first = self.open_statements().is_none();
            let result = self.run_in_block(step.clone()).await;
            if result.as_ref().is_err_and(says_row_is_held) {
                self.wait_for_rows(&deadlines).await?;
                continue;
            }
            if !result.as_ref().is_err_and(says_lock_is_held) || self.version() < ExecutionVersion::V14 {
                return result;
            }
            self.wait_until_free(vec![step.clone()], &deadlines, false).await?;
            if !is_first {
                let message = "could not serialize access: the advisory lock was given back behind the block's snapshot";
                return Err(SqlError::new(SqlState::SERIALIZATION_FAILURE, message).hint(
                    "The transaction might succeed if retried: run the whole block again, and lock first.",
                ));
            }
            self.begin_block_anew();
        }
    }

    /// Waits until nobody has the rows that the first step of the open block wants. The block goes before, and with it what it has locked.
    async fn wait_for_rows(&mut self, deadlines: &Deadlines) -> Result<(), SqlError> {
        let rows = self.open_statements().and_then(|running| Some(running.lock().as_mut()?.awaited_rows()));
        let rows = rows.unwrap_or_default();
        self.begin_block_anew();
        let asked_to_end = self.cancel.notified();
        tokio::pin!(asked_to_end);
        asked_to_end.as_mut().enable();
        let mut left = self.database.rows_left();
        while self.database.are_rows_locked(&rows) {
            tokio::select! {
                biased;
                () = &mut asked_to_end => return Err(cancelled("user request")),
                error = deadlines.passed() => return Err(error),
                _ = left.changed() => {}
            }
        }
        Ok(())
    }

    fn deadlines(&self) -> Deadlines {
        let now = Instant::now();
        let at = |time: Option<Duration>| time.and_then(|time| now.checked_add(time));
        Deadlines { statement: at(self.settings.statement_timeout()), lock: at(self.settings.lock_timeout()) }
    }

    /// Waits as long as these statements would not have a lock on the newest state. Nothing is ordered meanwhile. `refused`: at their place in
    /// the order they have not had it, so that there is no hurry.
    async fn wait_until_free(
        &self,
        steps: Vec<SessionStep>,
        deadlines: &Deadlines,
        refused: bool,
    ) -> Result<(), SqlError> {
        // Also what comes between two looks counts.
        let asked_to_end = self.cancel.notified();
        tokio::pin!(asked_to_end);
        asked_to_end.as_mut().enable();
        let mut next = if refused { Look::LaterOn } else { Look::Now };
        loop {
            let (look, database) = (next, &self.database);
            let pause = async move {
                tokio::time::sleep(limits::LOCK_ASKED_AGAIN_MIN).await;
                match look {
                    Look::Behind(height) => database.wait_for_height(height + 1).await,
                    Look::LaterOn => tokio::time::sleep(limits::LOCK_REFUSED_PAUSE).await,
                    Look::Now => {}
                }
            };
            if next != Look::Now {
                tokio::select! {
                    biased;
                    () = &mut asked_to_end => return Err(cancelled("user request")),
                    error = deadlines.passed() => return Err(error),
                    () = pause => {}
                    // A lease may have run out without a block.
                    () = tokio::time::sleep(limits::LOCK_ASKED_AGAIN_MAX) => {}
                }
            }
            next = Look::Behind(self.database.height());
            if !self.would_wait(steps.clone()).await? {
                return Ok(());
            }
        }
    }

    /// Runs statements on the newest state, and forgets what they did: whether a session has a lock that they want.
    async fn would_wait(&self, steps: Vec<SessionStep>) -> Result<bool, SqlError> {
        let mut block = self.temporary()?.begin_trial(&self.identity.role)?;
        let _interest = Interest::of(block.interrupt());
        let run = move || {
            for step in steps {
                match block.run(step) {
                    Ok(_) => {}
                    // Rows are waited for later on.
                    Err(error) => return Ok(says_lock_is_held(&error)),
                }
            }
            Ok(false)
        };
        self.wait(blocking(run), false).await
    }
}

/// The statements of a script, each with the settings of all.
fn steps_of(payload: &Payload) -> Vec<SessionStep> {
    let Payload::Script { sql, parameters } = payload else { return Vec::new() };
    let (settings, source) =
        split_settings(sql, ExecutionVersion::NEWEST).unwrap_or((ScriptSettings::default(), sql));
    let statements = script::split(source);
    let step = |statement: Statement<'_>| SessionStep::Run {
        sql: settings.in_front_of(statement.text).into_owned(),
        parameters: parameters.clone(),
    };
    statements.into_iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_a_script_has_its_settings() {
        let sql = "SET TIME ZONE 'Europe/Berlin';SELECT pg_advisory_lock(1); INSERT INTO t VALUES (';')";
        let steps = steps_of(&Payload::Script { sql: sql.to_string(), parameters: Vec::new() });
        let texts: Vec<String> = steps
            .into_iter()
            .filter_map(|step| match step {
                SessionStep::Run { sql, .. } => Some(sql),
                _ => None,
            })
            .collect();
        let zone = texts[0].strip_suffix("SELECT pg_advisory_lock(1)").expect("the statement");
        assert!(zone.contains("Berlin") && zone.ends_with(';'), "{zone}");
        assert_eq!(texts[1], format!("{zone}INSERT INTO t VALUES (';')"));
    }
}
