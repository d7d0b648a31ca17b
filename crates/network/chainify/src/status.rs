//! What is known of the database, for `/status`, metrics and SQL.

use crate::bookkeeping::StrangeRow;
use crate::error::{DatabaseError, ErrorKind};
use gateway::OwnDatabaseStatus;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// A statement that takes longer is worth a word.
const SILENT_MAX: Duration = Duration::from_secs(5);

/// The status that several threads bring up.
#[derive(Default)]
pub(crate) struct Status {
    known: Mutex<OwnDatabaseStatus>,
    /// Since when the database has been asked to write, while it has not answered.
    asked: Mutex<Option<Instant>>,
}

impl Status {
    pub(crate) fn new(status: OwnDatabaseStatus) -> Status {
        Status { known: Mutex::new(status), asked: Mutex::default() }
    }

    pub(crate) fn shown(&self) -> OwnDatabaseStatus {
        let mut status = self.known.lock().clone();
        if let Some(silent) =
            self.asked.lock().map(|since| since.elapsed()).filter(|silent| *silent > SILENT_MAX)
        {
            status.state = "waiting".to_string();
            status.problem = Some(format!("the database has not answered for {} s", silent.as_secs()));
        }
        status
    }

    /// The database is asked to write, or has answered.
    pub(crate) fn asks(&self, is_asked: bool) {
        *self.asked.lock() = is_asked.then(Instant::now);
    }

    pub(crate) fn reach(&self, height: u64, rows: u64) {
        let mut status = self.known.lock();
        status.height = height;
        status.rows_written += rows;
    }

    pub(crate) fn state(&self, state: &str) {
        let mut status = self.known.lock();
        if status.state != state {
            tracing::info!(state, "the organisation's own database");
            status.state = state.to_string();
        }
    }

    /// The copy is brought up, and there is this to be said, if anything.
    pub(crate) fn follows(&self, problem: Option<String>) {
        self.state("following");
        let mut status = self.known.lock();
        if status.problem != problem
            && let Some(problem) = &problem
        {
            tracing::warn!(problem, "the organisation's own database");
        }
        status.problem = problem;
    }

    pub(crate) fn fail(&self, error: &DatabaseError) {
        let state = match error.kind {
            ErrorKind::Access | ErrorKind::Unfit => "refused",
            _ => "waiting",
        };
        let mut status = self.known.lock();
        if status.problem.as_ref() != Some(&error.message) {
            tracing::warn!(state, problem = error.message, "the organisation's own database");
        }
        (status.state, status.problem) = (state.to_string(), Some(error.message.clone()));
    }

    pub(crate) fn strange(&self, rows: &[StrangeRow]) {
        let Some(last) = rows.last() else { return };
        let mut status = self.known.lock();
        status.strange_rows += rows.len() as u64;
        status.last_strange = Some(last.shown());
        tracing::warn!(rows = rows.len(), last = last.shown(), "rows were changed behind the ledger's back");
    }

    pub(crate) fn scanned(&self, rows: u64, time: Duration) {
        let mut status = self.known.lock();
        status.scans += 1;
        status.scanned_rows = rows;
        status.scan_ms = time.as_millis() as u64;
    }

    pub(crate) fn tables(&self, tables: Vec<String>) {
        self.known.lock().tables = tables;
    }
}
