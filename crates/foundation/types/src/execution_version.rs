//! Versions of the rules of execution, and which of them a program knows.
//!
//! Whatever changes a root, a digest, an id or a result of a block is a new version. Blocks are executed with the one that
//! the charter of their height names ([`Charter::execution_version`]), so that a ledger comes to the same for ever, and a network
//! goes over to the next one by an amendment: `docs/execution-versions.md`.

use crate::{Charter, Charters};
use std::fmt;

/// The rules that a block is executed with. Code that differs between versions asks `version >= ExecutionVersion::V2`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ExecutionVersion {
    /// The first, with some wrong answers: `docs/execution-versions.md` lists them.
    V1 = 1,
    /// Mends the answers that `docs/execution-versions.md` lists.
    V2 = 2,
    /// The state's tree has groups of ranges, and checkpoints come by the rows that have changed.
    V3 = 3,
    /// Schemas may have members, who alone know what is in them.
    V4 = 4,
    /// What members of schemas say stands in the ledger for many transactions at once, and shows what it says to outsiders.
    V5 = 5,
    /// Transactions move things between schemas with members, and stakeholders agree to what changes theirs.
    V6 = 6,
    /// Knows the types, functions and definitions that applications bring: `docs/execution-versions.md` lists them.
    V7 = 7,
    /// Mends what version 7 answers wrongly, and knows more of what applications define: `docs/execution-versions.md`.
    V8 = 8,
    /// Domains in routines, and names that are looked for when a statement runs: `docs/execution-versions.md`.
    V9 = 9,
    /// Knows more types and definitions that applications bring: `docs/execution-versions.md`.
    V10 = 10,
    /// Mends what version 10 answers wrongly, and knows more of what applications define: `docs/execution-versions.md`.
    V11 = 11,
    /// Mends what version 11 does wrongly: `docs/execution-versions.md`.
    V12 = 12,
    /// Knows more of the SQL that frameworks send: `docs/execution-versions.md`.
    V13 = 13,
    /// Larger transactions and longer values: `docs/execution-versions.md`.
    V14 = 14,
    /// A statement of a block brings what its session alone knows, such as locked rows: `docs/execution-versions.md`.
    V15 = 15,
    /// Arrays of several dimensions, and cursors that functions leave open: `docs/execution-versions.md`.
    V16 = 16,
}

/// A program that executes blocks knows all versions up to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownVersions {
    newest: ExecutionVersion,
}

/// A version that this program does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "execution version {needed} is needed{}, this program knows versions 1 to {newest}: install a newer version of Entente and \
     start the node again; nothing is lost, it goes on where it stopped",
    if *first > 0 { format!(" from height {first} on") } else { String::new() }
)]
pub struct UnknownVersion {
    /// The version.
    pub needed: u32,
    /// The height of the first block that is to be executed with it; 0: all.
    pub first: u64,
    /// The newest version that the program knows.
    pub newest: ExecutionVersion,
}

impl ExecutionVersion {
    /// All, the oldest first.
    pub const ALL: [ExecutionVersion; 16] = [
        ExecutionVersion::V1,
        ExecutionVersion::V2,
        ExecutionVersion::V3,
        ExecutionVersion::V4,
        ExecutionVersion::V5,
        ExecutionVersion::V6,
        ExecutionVersion::V7,
        ExecutionVersion::V8,
        ExecutionVersion::V9,
        ExecutionVersion::V10,
        ExecutionVersion::V11,
        ExecutionVersion::V12,
        ExecutionVersion::V13,
        ExecutionVersion::V14,
        ExecutionVersion::V15,
        ExecutionVersion::V16,
    ];

    /// What new ledgers begin with.
    pub const CURRENT: ExecutionVersion = ExecutionVersion::V16;

    /// The newest that this program knows; where it is not the current one, ledgers go over to it by an amendment.
    pub const NEWEST: ExecutionVersion = ExecutionVersion::V16;

    /// The version of this number, if this program knows it.
    pub fn of_number(number: u32) -> Option<ExecutionVersion> {
        ExecutionVersion::ALL.into_iter().find(|version| version.number() == number)
    }

    /// As charters write it.
    pub fn number(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for ExecutionVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(formatter)
    }
}

impl Default for KnownVersions {
    /// Those of this program.
    fn default() -> KnownVersions {
        KnownVersions { newest: ExecutionVersion::NEWEST }
    }
}

impl KnownVersions {
    /// Those up to one: an older program, as tests need it.
    pub fn up_to(newest: ExecutionVersion) -> KnownVersions {
        KnownVersions { newest }
    }

    /// The newest of them.
    pub fn newest(self) -> ExecutionVersion {
        self.newest
    }

    /// The version with which the blocks are executed that a charter holds for, from height `first` on.
    ///
    /// # Errors
    /// [`UnknownVersion`].
    pub fn of(self, charter: &Charter, first: u64) -> Result<ExecutionVersion, UnknownVersion> {
        let needed = charter.execution_version;
        let known = ExecutionVersion::of_number(needed).filter(|version| *version <= self.newest);
        known.ok_or(UnknownVersion { needed, first, newest: self.newest })
    }

    /// The first of the charters of a ledger whose version is not known.
    pub fn unknown(self, charters: &Charters) -> Option<UnknownVersion> {
        charters.reigns().iter().find_map(|reign| self.of(&reign.charter, reign.first).err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_knows_versions_up_to_one() {
        let charter = |execution_version| Charter { execution_version, ..Charter::with_defaults("test", 1) };
        let older = KnownVersions::up_to(ExecutionVersion::V1);
        assert_eq!(older.of(&charter(1), 0), Ok(ExecutionVersion::V1));
        let error = older.of(&charter(2), 50).expect_err("it does not know it").to_string();
        assert!(error.contains("version 2 is needed from height 50 on"), "{error}");
        assert!(error.contains("knows versions 1 to 1"), "{error}");
        let this = KnownVersions::default();
        for version in ExecutionVersion::ALL {
            assert_eq!(this.of(&charter(version.number()), 50), Ok(version));
        }
        assert!(this.of(&charter(ExecutionVersion::NEWEST.number() + 1), 0).is_err());
        assert!(this.of(&charter(0), 0).is_err());
        assert_eq!(ExecutionVersion::ALL.last(), Some(&ExecutionVersion::NEWEST));
    }
}
