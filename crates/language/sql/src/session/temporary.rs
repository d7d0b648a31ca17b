//! The session's temporary tables in a transaction block: its own copy, of which COMMIT makes the session's.

use crate::temporary::TemporaryTables;
use types::{SessionStep, SqlError, SqlState};

/// Bytes that the copies of temporary tables may have which a block's savepoints keep.
const SAVED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The temporary tables of a block.
pub(super) struct Temporary {
    tables: TemporaryTables,
    savepoints: Vec<(String, TemporaryTables)>,
    /// A statement has read the ledger and them at once: the client knows what no other node will find again.
    reads_ledger: bool,
}

impl Temporary {
    pub fn new(tables: TemporaryTables) -> Temporary {
        Temporary { tables, savepoints: Vec::new(), reads_ledger: false }
    }

    pub fn tables(&mut self) -> &mut TemporaryTables {
        &mut self.tables
    }

    /// A statement has read the ledger and them at once.
    pub fn note_read_of_ledger(&mut self) {
        self.reads_ledger = true;
    }

    pub fn has_read_ledger(&self) -> bool {
        self.reads_ledger
    }

    /// Does what a step does that has gone well: a savepoint keeps them, and what undoes brings them back.
    pub fn follow(&mut self, step: &SessionStep) {
        let savepoints = &mut self.savepoints;
        let find = |savepoints: &[(String, TemporaryTables)], name: &str| {
            savepoints.iter().rposition(|(known, _)| known == name)
        };
        match step {
            SessionStep::Savepoint(name) => savepoints.push((name.clone(), self.tables.clone())),
            SessionStep::RollbackTo(name) => {
                if let Some(position) = find(savepoints, name) {
                    savepoints.truncate(position + 1);
                    self.tables = savepoints[position].1.clone();
                }
            }
            SessionStep::Release(name) => {
                if let Some(position) = find(savepoints, name) {
                    savepoints.truncate(position);
                }
            }
            SessionStep::Run { .. } | SessionStep::RunGiven { .. } | SessionStep::Insert { .. } => {}
        }
    }

    /// Them as COMMIT leaves them.
    pub fn commit(mut self) -> TemporaryTables {
        self.tables.commit();
        self.tables
    }

    /// Refuses copies that are too large together.
    ///
    /// # Errors
    /// `53200`, with what to do.
    pub fn check_saved(&self) -> Result<(), SqlError> {
        if self.saved_bytes() <= SAVED_BYTES_MAX {
            return Ok(());
        }
        let message = format!(
            "the savepoints of a block keep at most {SAVED_BYTES_MAX} bytes of temporary tables (SAVED_BYTES_MAX)"
        );
        Err(SqlError::new(SqlState(*b"53200"), message).hint("Release some of them."))
    }

    /// Bytes of the copies that savepoints keep.
    fn saved_bytes(&self) -> usize {
        let all = self.savepoints.iter().map(|(_, tables)| tables).chain([&self.tables]);
        let mut bytes = 0;
        let mut before: Option<&TemporaryTables> = None;
        for tables in all {
            // One that nothing has changed since is the same in memory.
            if !before.is_some_and(|before| tables.shares_rows_with(before)) {
                bytes += tables.bytes();
            }
            before = Some(tables);
        }
        bytes
    }
}

/// A block reads the ledger and temporary tables at once, and changes the ledger.
pub(super) fn reads_unseen() -> SqlError {
    let what =
        "a change of the ledger in a block that reads the ledger and temporary tables in one statement";
    SqlError::unsupported(what).hint(
        "No other node can run that statement again: say it in a block or a statement of its own, or fill the temporary table by INSERT … SELECT.",
    )
}
