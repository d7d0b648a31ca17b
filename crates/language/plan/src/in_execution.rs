//! Which functions of the system run in the execution of their statement: they draw something, ask who executes it, note what moves or
//! what is to be said, or are about advisory locks.

use crate::advisory::AdvisoryFunction;
use crate::assets::AssetFunction;
use crate::notify::{NOTIFY, notifies};
use crate::random::RandomFunction;
use crate::sequence::{SERIAL_SEQUENCE, asks_for_sequence, is_sequence_function, looks_at_sequence};
use crate::session_facts::SessionFunction;
use types::ExecutionVersion;

/// Whether calls that stand under this name do. No role needs a right for them, and none of them is a routine of the ledger.
pub fn runs_in_execution(name: &str) -> bool {
    is_sequence_function(name)
        || looks_at_sequence(name)
        || matches!(name, SERIAL_SEQUENCE | NOTIFY)
        || AdvisoryFunction::named(name).is_some()
        || AssetFunction::named(name).is_some()
        || RandomFunction::named(name).is_some()
        || SessionFunction::named(name).is_some()
}

/// Whether SQL calls by this name what draws a random value, notifies, locks, asks who executes the statement, or for the sequence of a
/// column.
pub(crate) fn draws_or_asks(name: &str, version: ExecutionVersion) -> bool {
    version >= ExecutionVersion::V7 && RandomFunction::called(name).is_some()
        || version >= ExecutionVersion::V8 && SessionFunction::called(name).is_some()
        || asks_for_sequence(name, version)
        || notifies(name, version)
        || AdvisoryFunction::called(name, version).is_some()
}
