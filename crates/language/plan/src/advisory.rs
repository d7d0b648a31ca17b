//! Functions about advisory locks: they run in the execution of their statement.

use sqlparser::ast;
use types::AdvisoryMode::{Exclusive, Shared};
use types::{AdvisoryMode, DataType, ExecutionVersion};

/// A call of one of them stands under its name, with the schema; no function of the ledger has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdvisoryFunction {
    /// `pg_advisory_lock` and `pg_advisory_lock_shared`: the session has the lock from then on.
    Lock(AdvisoryMode),
    /// `pg_try_advisory_lock` and its kind: it says whether it has.
    Try(AdvisoryMode),
    /// `pg_advisory_unlock` and its kind.
    Unlock(AdvisoryMode),
    /// `pg_advisory_unlock_all`
    UnlockAll,
    /// `pg_advisory_xact_lock` and its kind: the transaction has it.
    LockTransaction(AdvisoryMode),
    /// `pg_try_advisory_xact_lock` and its kind.
    TryTransaction(AdvisoryMode),
    /// `entente.renew_advisory_locks()`: the session's locks stay for another while. NULL: it has none.
    Renew,
    /// `entente.advisory_locks_held()`: how many keys the session holds. Reads only.
    Held,
    /// `entente.advisory_locks()`: all that sessions hold, encoded, for `pg_locks`. Reads only, outside of transactions.
    Shown,
}

use AdvisoryFunction::{Held, Lock, LockTransaction, Renew, Shown, Try, TryTransaction, Unlock, UnlockAll};

/// What SQL calls them in the schema `pg_catalog`, with it in front.
const NAMES: [(&str, AdvisoryFunction); 11] = [
    ("pg_catalog.pg_advisory_lock", Lock(Exclusive)),
    ("pg_catalog.pg_advisory_lock_shared", Lock(Shared)),
    ("pg_catalog.pg_try_advisory_lock", Try(Exclusive)),
    ("pg_catalog.pg_try_advisory_lock_shared", Try(Shared)),
    ("pg_catalog.pg_advisory_unlock", Unlock(Exclusive)),
    ("pg_catalog.pg_advisory_unlock_shared", Unlock(Shared)),
    ("pg_catalog.pg_advisory_unlock_all", UnlockAll),
    ("pg_catalog.pg_advisory_xact_lock", LockTransaction(Exclusive)),
    ("pg_catalog.pg_advisory_xact_lock_shared", LockTransaction(Shared)),
    ("pg_catalog.pg_try_advisory_xact_lock", TryTransaction(Exclusive)),
    ("pg_catalog.pg_try_advisory_xact_lock_shared", TryTransaction(Shared)),
];

/// Those that gateways call.
const OWN_NAMES: [(&str, AdvisoryFunction); 3] = [
    ("entente.renew_advisory_locks", Renew),
    ("entente.advisory_locks_held", Held),
    ("entente.advisory_locks", Shown),
];

impl AdvisoryFunction {
    /// The name under which a call stands.
    pub fn name(self) -> &'static str {
        let mut all = NAMES.iter().chain(&OWN_NAMES);
        all.find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// The function whose calls stand under this name.
    pub fn named(name: &str) -> Option<AdvisoryFunction> {
        let mut all = NAMES.iter().chain(&OWN_NAMES);
        all.find(|(known, _)| *known == name).map(|(_, function)| *function)
    }

    /// What SQL calls by this name, without a schema.
    pub(crate) fn called(name: &str, version: ExecutionVersion) -> Option<AdvisoryFunction> {
        let is_it = |known: &str| known.strip_prefix("pg_catalog.") == Some(name);
        let known = version >= ExecutionVersion::V14 && name.contains("advisory");
        NAMES.iter().find(|(known, _)| is_it(known)).filter(|_| known).map(|(_, function)| *function)
    }

    /// The one in the schema `entente` that a call names.
    pub(crate) fn own(function: &ast::Function, version: ExecutionVersion) -> Option<AdvisoryFunction> {
        let name = function.name.to_string().to_ascii_lowercase();
        let known = version >= ExecutionVersion::V14;
        OWN_NAMES.iter().find(|(known, _)| *known == name).filter(|_| known).map(|(_, function)| *function)
    }

    /// Whether a statement that calls it does more than to read.
    pub fn is_transaction(self) -> bool {
        !matches!(self, Held | Shown)
    }

    /// The types of its values, a void one as text.
    pub(crate) fn result(self) -> DataType {
        match self {
            Lock(_) | LockTransaction(_) | UnlockAll => DataType::Text(None),
            Try(_) | TryTransaction(_) | Unlock(_) | Renew => DataType::Boolean,
            Held => DataType::Integer,
            Shown => DataType::Bytea,
        }
    }

    /// What it takes where there are so many arguments; `None`: not so many.
    pub(crate) fn takes(self, count: usize) -> Option<DataType> {
        match (self, count) {
            (UnlockAll | Renew | Held | Shown, 0) => Some(DataType::Unknown),
            (UnlockAll | Renew | Held | Shown, _) => None,
            (_, 1) => Some(DataType::BigInt),
            (_, 2) => Some(DataType::Integer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_from_version_14_on() {
        for (name, function) in NAMES.iter().chain(&OWN_NAMES) {
            assert_eq!((function.name(), AdvisoryFunction::named(name)), (*name, Some(*function)));
            let short = name.strip_prefix("pg_catalog.");
            let called = |version| short.and_then(|short| AdvisoryFunction::called(short, version));
            assert_eq!(called(ExecutionVersion::V14), short.map(|_| *function));
            assert_eq!(called(ExecutionVersion::V13), None);
        }
        assert_eq!(AdvisoryFunction::called("advisory_lock", ExecutionVersion::V14), None);
    }
}
