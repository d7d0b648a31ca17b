//! What a peer is given of a transaction: what its parts read, at which versions, and what they write.

use crate::parts::LedgerPosition;
use state::{AfterImage, KeyRange, RowId};
use std::collections::{BTreeMap, BTreeSet};
use types::{Key, TableId};

/// Names a contract of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContractId(pub u32);

/// The transaction that wrote a row last. Rows that stood there at first have height 0.
pub type Version = LedgerPosition;

/// A row that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadVersion {
    /// Which.
    pub row: RowId,
    /// At which version; `None`: it did not exist.
    pub version: Option<Version>,
}

/// An interval that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntervalVersions {
    /// Of which table.
    pub table: TableId,
    /// Which keys.
    pub range: KeyRange,
    /// What was found in it, ascending by key.
    pub result: Vec<(Key, Version)>,
}

impl IntervalVersions {
    /// Whether a row would be in it.
    pub(super) fn contains(&self, row: &RowId) -> bool {
        row.table == self.table && self.range.contains(&row.key)
    }

    /// The version at which a row was found in it.
    pub(super) fn found(&self, key: &Key) -> Option<Version> {
        let at = self.result.binary_search_by(|(found, _)| found.cmp(key)).ok()?;
        self.result.get(at).map(|(_, version)| *version)
    }
}

/// What a transaction does in one contract. Contracts share no rows.
#[derive(Clone, PartialEq, Debug)]
pub struct ContractPart {
    /// The row with the contract's endorsement policy, at the version that the endorsements fulfil: who hands the part over has
    /// verified that. A policy changes by a write of its row.
    pub policy: ReadVersion,
    /// Other rows that it read.
    pub reads: Vec<ReadVersion>,
    /// Intervals that it read.
    pub intervals: Vec<IntervalVersions>,
    /// What it writes.
    pub writes: Vec<AfterImage>,
}

/// A transaction in the order of the ledger, as a peer sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct SparseTransaction {
    /// Where it stands.
    pub position: LedgerPosition,
    /// All contracts that it invokes.
    pub contracts: BTreeSet<ContractId>,
    /// What it does in those that the peer holds; in others, too, where the block is a whole one.
    pub parts: BTreeMap<ContractId, ContractPart>,
}

impl SparseTransaction {
    /// The same, with what it does in these contracts alone.
    #[must_use]
    pub fn under(mut self, filter: &BTreeSet<ContractId>) -> SparseTransaction {
        self.parts.retain(|contract, _| filter.contains(contract));
        self
    }

    pub(super) fn reads(&self) -> impl Iterator<Item = &ReadVersion> {
        self.parts.values().flat_map(|part| std::iter::once(&part.policy).chain(&part.reads))
    }

    pub(super) fn intervals(&self) -> impl Iterator<Item = &IntervalVersions> {
        let intervals = self.parts.values().flat_map(|part| &part.intervals);
        intervals.filter(|interval| !interval.range.is_empty())
    }

    pub(super) fn writes(&self) -> impl Iterator<Item = &AfterImage> {
        self.parts.values().flat_map(|part| &part.writes)
    }
}
