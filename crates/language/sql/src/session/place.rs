//! Where a transaction runs whose statements run one by one.

use crate::library::Library;
use execute::{Context, Execution, RowLocks, SessionPlace, Suspended};
use state::Snapshot;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use types::Principal;

/// Where a transaction runs whose statements run one by one.
pub(crate) struct Place<'p> {
    /// What its first statement sees.
    pub snapshot: &'p dyn Snapshot,
    pub context: Context,
    pub principal: &'p Principal,
    /// Of a transaction block.
    pub session: Option<SessionPlace>,
    /// Ends what runs here, where that is for a client alone.
    pub interrupt: Option<&'p Arc<AtomicBool>>,
    /// It is a read-only transaction of a client; never where a transaction of a block runs.
    pub read_only: bool,
    /// What is known of locks on rows.
    pub row_locks: Option<Rc<dyn RowLocks>>,
}

impl Place<'_> {
    /// Goes on where the transaction was suspended.
    pub fn resume<'a>(
        &self,
        library: &'a Library,
        snapshot: &'a dyn Snapshot,
        suspended: &mut Suspended,
    ) -> Execution<'a> {
        let suspended = std::mem::take(suspended);
        let mut execution = Execution::resume(library, snapshot, self.context, self.principal, suspended)
            .reading_only(self.read_only);
        if let Some(interrupt) = self.interrupt {
            execution = execution.interrupted_by(interrupt);
        }
        if let Some(session) = self.session {
            execution.be_session(session);
        }
        execution.know_row_locks(self.row_locks.clone());
        execution
    }
}
