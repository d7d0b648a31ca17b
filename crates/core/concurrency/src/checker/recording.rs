use state::{
    Effects, EndorsedForm, Footprint, Read, Scan, Simulate, Snapshot, StoreError, effects_of,
    endorsed_effects, write_command,
};
use std::sync::{Arc, Mutex};
use types::{Catalog, Row, SqlError};

/// One execution of a transaction and what it saw.
#[derive(Clone, Debug)]
pub struct Execution {
    /// What it came to.
    pub effects: Effects,
    /// By read: the row on the snapshot.
    pub read: Vec<Option<Row>>,
    /// By scan, by key of its result: the row on the snapshot.
    pub scanned: Vec<Vec<Option<Row>>>,
}

impl Execution {
    /// Runs a transaction and looks up what it saw.
    pub(super) fn run(transaction: &dyn Simulate, snapshot: &dyn Snapshot) -> Result<Execution, StoreError> {
        Execution::of(transaction.simulate(snapshot)?, snapshot)
    }

    fn of(effects: Effects, snapshot: &dyn Snapshot) -> Result<Execution, StoreError> {
        let read = effects.reads.iter().map(|Read { row, .. }| snapshot.get(row.table, &row.key));
        let read = read.collect::<Result<_, _>>()?;
        let rows = |scan: &Scan| scan.result.iter().map(|key| snapshot.get(scan.table, key)).collect();
        let scanned = effects.scans.iter().map(rows).collect::<Result<_, _>>()?;
        Ok(Execution { effects, read, scanned })
    }
}

/// A transaction that keeps what its executions found, so that a protocol can be checked without knowing how it
/// works. The last execution is the one that counts.
pub struct RecordingTransaction {
    transaction: Arc<dyn Simulate>,
    executions: Mutex<Vec<Execution>>,
}

impl RecordingTransaction {
    /// Not executed yet.
    pub fn new(transaction: Arc<dyn Simulate>) -> Arc<RecordingTransaction> {
        Arc::new(RecordingTransaction { transaction, executions: Mutex::new(Vec::new()) })
    }

    /// Executes it ahead of ordering, and keeps what endorsers make of that.
    ///
    /// # Errors
    /// What it ends with.
    pub fn endorse(&self, snapshot: &dyn Snapshot, form: EndorsedForm) -> Result<Effects, SqlError> {
        let endorsed = endorsed_effects(&self.unrecorded().simulate(snapshot)?, snapshot, 0, form)?;
        let effects = effects_of(&endorsed, |write| Ok(write_command(write)))?;
        self.lock().push(Execution::of(effects.clone(), snapshot)?);
        Ok(effects)
    }

    /// The transaction itself; who runs this leaves no record.
    pub fn unrecorded(&self) -> &dyn Simulate {
        self.transaction.as_ref()
    }

    /// Every execution so far.
    pub fn executions(&self) -> Vec<Execution> {
        self.lock().clone()
    }

    /// The last execution.
    pub fn last(&self) -> Option<Execution> {
        self.lock().last().cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Execution>> {
        self.executions.lock().expect("nobody panics while holding the record")
    }
}

impl Simulate for RecordingTransaction {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let execution = Execution::run(self.unrecorded(), snapshot)?;
        let effects = execution.effects.clone();
        self.lock().push(execution);
        Ok(effects)
    }

    fn footprint(&self, catalog: &Catalog) -> Result<Footprint, SqlError> {
        self.unrecorded().footprint(catalog)
    }
}
