//! What is known of the database, for `/status`, metrics and SQL.

use crate::bookkeeping::StrangeRow;
use crate::error::{DatabaseError, ErrorKind};
use gateway::OwnDatabaseStatus;
use parking_lot::Mutex;
use std::time::Duration;

/// The status that several threads bring up.
#[derive(Default)]
pub(crate) struct Status(Mutex<OwnDatabaseStatus>);

impl Status {
    pub(crate) fn new(status: OwnDatabaseStatus) -> Status {
        Status(Mutex::new(status))
    }

    pub(crate) fn shown(&self) -> OwnDatabaseStatus {
        self.0.lock().clone()
    }

    pub(crate) fn reach(&self, height: u64, rows: u64) {
        let mut status = self.0.lock();
        status.height = height;
        status.rows_written += rows;
    }

    pub(crate) fn state(&self, state: &str) {
        let mut status = self.0.lock();
        if status.state != state {
            tracing::info!(state, "the organisation's own database");
            status.state = state.to_string();
        }
    }

    /// The copy is brought up, and there is this to be said, if anything.
    pub(crate) fn follows(&self, problem: Option<String>) {
        self.state("following");
        let mut status = self.0.lock();
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
        let mut status = self.0.lock();
        if status.problem.as_ref() != Some(&error.message) {
            tracing::warn!(state, problem = error.message, "the organisation's own database");
        }
        (status.state, status.problem) = (state.to_string(), Some(error.message.clone()));
    }

    pub(crate) fn strange(&self, rows: &[StrangeRow]) {
        let Some(last) = rows.last() else { return };
        let mut status = self.0.lock();
        status.strange_rows += rows.len() as u64;
        status.last_strange = Some(last.shown());
        tracing::warn!(rows = rows.len(), last = last.shown(), "rows were changed behind the ledger's back");
    }

    pub(crate) fn scanned(&self, rows: u64, time: Duration) {
        let mut status = self.0.lock();
        status.scans += 1;
        status.scanned_rows = rows;
        status.scan_ms = time.as_millis() as u64;
    }

    pub(crate) fn tables(&self, tables: Vec<String>) {
        self.0.lock().tables = tables;
    }
}
