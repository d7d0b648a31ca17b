//! An organisation's own judgement of scripts before they are ordered, as the node asks for it.

use engine::ProposedScript;

/// Says, in the name of the organisation, which scripts it agrees to: those that write tables whose policy mentions it, on a
/// ledger whose charter says `execution = "whatever-then-agree"`.
pub trait JudgeScripts: Send + Sync {
    /// For each script, in order, whether the organisation agrees. Is asked by several threads at once, and may wait for a database.
    ///
    /// # Errors
    /// Inside: why not, in words for the script's client and for all members.
    fn judge(&self, scripts: &[ProposedScript]) -> Vec<Result<(), String>>;
}
