//! `pg_notify`: it runs in the execution of its statement, and what it says stands in the transaction's receipt.

use types::ExecutionVersion;

/// The name under which a call stands; no function of the ledger has it.
pub const NOTIFY: &str = "pg_catalog.pg_notify";

/// Whether SQL calls it by this name.
pub(crate) fn notifies(name: &str, version: ExecutionVersion) -> bool {
    version >= ExecutionVersion::V14 && name == "pg_notify"
}
