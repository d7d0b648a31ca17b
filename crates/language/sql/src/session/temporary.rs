//! The session's temporary tables in a transaction block: its own copy, of which COMMIT makes the session's.

use crate::session::Session;
use crate::temporary::TemporaryTables;
use types::{Payload, SessionStep, SqlError, SqlState, StatementResult};

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
            SessionStep::Run { .. } | SessionStep::Insert { .. } => {}
        }
    }

    /// Them as COMMIT leaves them.
    pub fn commit(mut self) -> TemporaryTables {
        self.tables.commit();
        self.tables
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
    SqlError::unsupported(what)
        .hint("No other node can run that statement again: read it in a block or a statement of its own.")
}

impl Session {
    /// Runs a step that concerns temporary tables; `None` where it does not.
    pub(super) fn run_temporary(&mut self, step: &SessionStep) -> Option<Result<StatementResult, SqlError>> {
        if self.progress.has_failed() {
            return None;
        }
        let payload = match step {
            SessionStep::Run { sql, parameters } if self.temporary.tables.are_mentioned_in(sql) => {
                Payload::Script { sql: sql.clone(), parameters: parameters.clone() }
            }
            SessionStep::Insert { table, columns, rows } if self.temporary.tables.are_mentioned_in(table) => {
                Payload::Insert {
                    table: table.clone(),
                    columns: columns.clone(),
                    rows: rows.iter().collect(),
                }
            }
            _ => return None,
        };
        let (limit, now_ms) = (self.read_step_limit, self.context.timestamp_ms);
        let stage = self.progress.stage().clone();
        let seen = stage.seen(self.snapshot.as_ref());
        let catalog = self.temporary.tables.catalog().clone();
        self.temporary.tables.be_interrupted_by(&self.interrupt);
        let ran = self.temporary.tables.run(
            &self.principal,
            &stage.library,
            seen.as_snapshot(),
            &payload,
            limit,
            now_ms,
        )?;
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => return Some(Err(error)),
        };
        if !std::sync::Arc::ptr_eq(&catalog, self.temporary.tables.catalog()) {
            self.schema_changes += 1;
            if self.read_only {
                let message = "cannot change the schema in a read-only transaction";
                return Some(Err(SqlError::new(SqlState::READ_ONLY_TRANSACTION, message)));
            }
        }
        if ran.reads_ledger {
            if self.has_written() {
                return Some(Err(reads_unseen()));
            }
            self.temporary.reads_ledger = true;
        }
        if self.temporary.saved_bytes() > SAVED_BYTES_MAX {
            let message = format!(
                "the savepoints of a block keep at most {SAVED_BYTES_MAX} bytes of temporary tables (SAVED_BYTES_MAX)"
            );
            return Some(Err(SqlError::new(SqlState(*b"53200"), message).hint("Release some of them.")));
        }
        Some(Ok(ran.results.into_iter().next_back().unwrap_or_default()))
    }
}
