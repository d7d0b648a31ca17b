//! Scripts of a block that something else than the engine executes: an organisation's own database (ChainifyDB, paper 002,
//! section 4.5.1). What they came to is put into the state, digested and attested like everything else, so that organisations
//! agree on effects, wherever those were found.

use crypto::Digest;
use portable::{Action, Script};
use state::{AfterImage, Snapshot, StoreError};
use std::sync::Arc;
use types::{Payload, SqlError, SqlState, StatementResult};

/// The scripts of a block.
pub struct BlockScripts {
    /// The ledger.
    pub ledger: Digest,
    /// Height of the block.
    pub height: u64,
    /// The state that they find.
    pub before: Arc<dyn Snapshot>,
    /// Position in the block and what it does, in the order in which they take effect.
    pub scripts: Vec<(u32, Script)>,
}

/// What they came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RanScripts {
    /// Per script, in order: the rows that each of its statements has met; `None`: it failed, and nothing of it took effect.
    pub ends: Vec<Option<Vec<u64>>>,
    /// One per row whose value differs from what it was before, by table and key.
    pub changes: Vec<AfterImage>,
}

/// Executes scripts.
pub trait ExecuteScripts: Send + Sync {
    /// Executes those of one block after the other, of every block, each as if one script ran after the other. Takes as long as
    /// it takes: the node is behind meanwhile. A block may come again, where the node goes on from a state before it.
    ///
    /// # Errors
    /// The node stops meanwhile.
    fn execute(&self, block: &BlockScripts) -> Result<RanScripts, StoreError>;

    /// Others have agreed on something else than what was executed here last: nothing of it counts, whatever stands there now.
    fn distrust(&self);
}

/// How a script ends that fails. Every database has words of its own for why, and organisations can agree only on that it did.
pub(crate) fn failure() -> SqlError {
    SqlError::new(SqlState::EXTERNAL_ROUTINE_EXCEPTION, "the script failed, and nothing of it took effect").hint(
        "A row with this key exists, or a value is NULL, out of range or against a CHECK. Each database says in its own words which: \
         entente.executed (PostgreSQL), entente_executed (MariaDB).",
    )
}

/// What the client of a script is given. `rows`: the rows that each of its statements has met.
pub(crate) fn results(script: &Script, payload: &Payload, rows: &[u64]) -> Vec<StatementResult> {
    let tag = |(statement, rows): (&portable::Statement, &u64)| match (&statement.action, payload) {
        (Action::Insert(_), Payload::Insert { .. }) => format!("COPY {rows}"),
        (Action::Insert(_), _) => format!("INSERT 0 {rows}"),
        (Action::Update { .. }, _) => format!("UPDATE {rows}"),
        (Action::Delete { .. }, _) => format!("DELETE {rows}"),
    };
    let result = |tag| StatementResult { tag, ..StatementResult::default() };
    script.statements.iter().zip(rows).map(tag).map(result).collect()
}
