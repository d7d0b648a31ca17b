//! A database for tests: transactions one after the other on a plain state.

use sql::{Context, Invocation, Library};
use state::{AfterImage, Effects, PlainState, RowChange, Simulate};
use std::sync::Arc;
use types::{Payload, SqlError, StatementResult, TransactionId};

/// Transactions one after the other on a plain state.
pub struct Database {
    state: PlainState,
    library: Arc<Library>,
    height: u64,
}

impl Database {
    /// No tables, no procedures.
    pub fn new() -> Database {
        let state = PlainState::default();
        let library = Arc::new(Library::new(state.catalog.clone()).expect("an empty catalog compiles"));
        Database { state, library, height: 0 }
    }

    /// What the statement would do, without doing it.
    pub fn simulate(&self, sql: &str) -> Effects {
        let context = Context {
            height: self.height,
            timestamp_ms: 1_700_000_000_000,
            index: 0,
            transaction: TransactionId::default(),
            step_limit: 100_000,
        };
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        let invocation = Invocation::new(self.library.clone(), context, payload);
        let effects = invocation.simulate(&self.state).expect("memory can be read");
        // Whatever a program touches must be inside of its footprint.
        if let Ok(footprint) = invocation.footprint(&self.state.catalog) {
            assert!(footprint.covers(&effects), "{sql}: {footprint:#?} and {effects:#?}");
        }
        effects
    }

    /// Runs one statement as a transaction of its own.
    pub fn execute(&mut self, sql: &str) -> Result<Vec<StatementResult>, SqlError> {
        self.height += 1;
        let effects = self.simulate(sql);
        if let Some(catalog) = effects.catalog {
            self.library =
                Arc::new(Library::new(catalog.clone()).expect("a catalog that a change made compiles"));
            self.state.catalog = catalog;
        }
        let result = effects.result?;
        for command in effects.commands {
            let tables = &self.state.tables;
            let current = tables.get(&command.row.table).and_then(|rows| rows.get(&command.row.key));
            let change =
                command.function.apply(current).expect("nothing stands between simulation and place");
            if let Some(matched) = command.guard {
                assert_eq!(matched, change != RowChange::Unmatched, "a guard says what was seen: {sql}");
            }
            let value = match change {
                RowChange::Unmatched => continue,
                RowChange::Put(row) => Some(row),
                RowChange::Delete => None,
            };
            self.state.apply(&AfterImage { row: command.row, value });
        }
        Ok(result)
    }
}
