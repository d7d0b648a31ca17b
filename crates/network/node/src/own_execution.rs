//! A database of the organisation's own that executes scripts, as the node sees it.

use engine::ExecuteScripts;
use gateway::OwnDatabaseStatus;

/// Executes the scripts of blocks in a database of the organisation's own, on a ledger whose charter says
/// `execution = "whatever-then-agree"`.
pub trait OwnExecution: ExecuteScripts {
    /// How far it is, and what it has found.
    fn status(&self) -> OwnDatabaseStatus;

    /// The node stops: nobody waits for the database any more.
    fn stop(&self);
}
