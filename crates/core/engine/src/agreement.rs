//! Agreement before ordering: which organisations have to agree to a script, and to what in it (ChainifyDB, paper 002, section
//! 4.6.1).
//!
//! Where databases execute scripts (`execution = "whatever-then-agree"`), who agrees endorses a script without effects: what those
//! will be nobody knows before. So an organisation judges what the script's text says alone, whatever rows there are.

use portable::{ProposedChange, check_script};
use sql::Library;
use std::collections::BTreeMap;
use types::{Payload, Policy, SqlError, TableId};

/// A script that an organisation is asked to agree to.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedScript {
    /// Name of the client's organisation.
    pub organisation: String,
    /// The role in whose name it runs; empty: the organisation's administrator.
    pub role: String,
    /// What it says of the tables that the organisation is asked about.
    pub changes: Vec<ProposedChange>,
}

/// Name and policy of every table that a script writes and that has one. `now_ms`: the time of the block, as `check_script` takes it.
///
/// # Errors
/// It is no script of the common dialect: it will be refused wherever it runs.
pub(crate) fn policies<'l>(
    library: &'l Library,
    payload: &Payload,
    now_ms: u64,
) -> Result<BTreeMap<TableId, (&'l str, &'l Policy)>, SqlError> {
    if !library.has_table_policies() {
        return Ok(BTreeMap::new());
    }
    let script = check_script(library.catalog(), payload, now_ms)?;
    let tables = script.statements.iter().map(|statement| statement.table.id);
    Ok(tables.filter_map(|table| Some((table, library.table_policy(table)?))).collect())
}

/// What a script says of the tables whose policies mention an organisation.
///
/// # Errors
/// As [`policies`].
pub(crate) fn proposed_to(
    organisation: &str,
    library: &Library,
    payload: &Payload,
    now_ms: u64,
) -> Result<Vec<ProposedChange>, SqlError> {
    let mut changes = check_script(library.catalog(), payload, now_ms)?.proposed_changes();
    changes.retain(|change| {
        let policy = library.table_policy(change.table.id);
        policy.is_some_and(|(_, policy)| policy.organisations().contains(organisation))
    });
    Ok(changes)
}
