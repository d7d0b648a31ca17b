//! What one step of a transaction block is told of rows that other blocks have locked.

use execute::{RowLocks, SharedRowLocks};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use types::{HeldRow, Key, RowLockMode, SessionStep, StepGiven, TableId, limits};

/// The locks of a gateway, as one step sees them: what is held once is held as long as the step runs.
#[derive(Debug)]
pub(super) struct StepLocks {
    shared: SharedRowLocks,
    /// The rows that the step was told are held.
    told: RefCell<BTreeSet<HeldRow>>,
    /// The rows that it waits for, if it may wait.
    awaited: Option<RefCell<Vec<HeldRow>>>,
}

impl StepLocks {
    /// Of a step that is to run. `may_wait`: nothing has run before it, so that its block can begin anew.
    pub fn new(shared: &SharedRowLocks, may_wait: bool) -> Rc<StepLocks> {
        let awaited = may_wait.then(RefCell::default);
        Rc::new(StepLocks { shared: shared.clone(), told: RefCell::default(), awaited })
    }

    /// The rows that it waits for: what it has come to does not count.
    pub fn awaited(&self) -> Vec<HeldRow> {
        self.awaited.as_ref().map(RefCell::take).unwrap_or_default()
    }

    /// The step as others are to run it again: with what it was told.
    pub fn told(&self, step: SessionStep) -> SessionStep {
        let held: Vec<HeldRow> = self.told.take().into_iter().collect();
        match step {
            step if held.is_empty() => step,
            SessionStep::Run { sql, parameters } => {
                let given = StepGiven { held, tables: Vec::new() };
                SessionStep::RunGiven { given, sql, parameters }
            }
            SessionStep::RunGiven { given, sql, parameters } => {
                let given = StepGiven { held, ..given };
                SessionStep::RunGiven { given, sql, parameters }
            }
            step => step,
        }
    }

    /// Whether the step was told of a row, or may be told of no more.
    fn is_settled(&self, row: &HeldRow) -> Option<bool> {
        let told = self.told.borrow();
        match told.contains(row) {
            true => Some(true),
            false if told.len() >= limits::HELD_ROWS_MAX => Some(false),
            false => None,
        }
    }
}

impl RowLocks for StepLocks {
    fn is_held(&self, table: TableId, key: &Key, mode: RowLockMode) -> bool {
        let row = HeldRow { table, key: key.clone() };
        let is_held = self.is_settled(&row).unwrap_or_else(|| self.shared.is_held(table, key, mode));
        if is_held {
            self.told.borrow_mut().insert(row);
        }
        is_held
    }

    fn hold(&self, table: TableId, key: &Key, mode: RowLockMode, alone: bool) -> bool {
        if !alone {
            // Asked and held at once: of all that wake together one gets the row.
            let is_ours = self.shared.hold(table, key, mode, self.awaited.is_some());
            if !is_ours && let Some(awaited) = &self.awaited {
                awaited.borrow_mut().push(HeldRow { table, key: key.clone() });
            }
            return true;
        }
        let row = HeldRow { table, key: key.clone() };
        let is_ours = match self.is_settled(&row) {
            Some(true) => false,
            Some(false) => self.shared.hold(table, key, mode, false),
            None => self.shared.hold(table, key, mode, true),
        };
        if !is_ours {
            self.told.borrow_mut().insert(row);
        }
        is_ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use types::Value;

    /// A row that looks free to all who wake at once, and that only the first of them gets.
    #[derive(Debug, Default)]
    struct Contended(AtomicBool);

    impl RowLocks for Contended {
        fn is_held(&self, _: TableId, _: &Key, _: RowLockMode) -> bool {
            false
        }

        fn hold(&self, _: TableId, _: &Key, _: RowLockMode, alone: bool) -> bool {
            !self.0.swap(true, Relaxed) || !alone
        }
    }

    #[test]
    fn of_two_that_wake_together_one_waits_again() {
        let shared: SharedRowLocks = Arc::new(Contended::default());
        let key = Key::encode([&Value::Integer(1)]).expect("a key");
        let (one, other) = (StepLocks::new(&shared, true), StepLocks::new(&shared, true));
        for step in [&one, &other] {
            assert!(step.hold(TableId(7), &key, RowLockMode::Update, false));
        }
        assert_eq!(one.awaited(), []);
        assert_eq!(other.awaited(), [HeldRow { table: TableId(7), key }]);
    }
}
