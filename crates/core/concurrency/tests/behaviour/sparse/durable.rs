//! A store that keeps everything in maps, and short words for transactions.

use concurrency::parts::LedgerPosition;
use concurrency::sparse::{
    ContractId, ContractPart, IntervalVersions, ReadVersion, Record, SparseStore, SparseTransaction, Version,
};
use state::{AfterImage, KeyRange, RowId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use types::{Key, TableId};

/// Row 0 of a contract holds its policy.
pub const POLICY: u8 = 0;

/// A contract's rows are those of the table with its number.
pub fn row(contract: u32, key: u8) -> RowId {
    RowId { table: TableId(contract), key: Key::from_bytes(&[key]) }
}

/// What stood there at first.
pub const INITIAL: Version = LedgerPosition { height: 0, index: 0 };

pub fn at(height: u64, index: u32) -> LedgerPosition {
    LedgerPosition { height, index }
}

/// The durable state of a peer.
#[derive(Clone, Debug, Default)]
pub struct Durable {
    pub rows: BTreeMap<RowId, Version>,
    pub verdicts: BTreeMap<LedgerPosition, bool>,
    pub deferred: BTreeMap<LedgerPosition, SparseTransaction>,
    pub height: u64,
    /// The next record fails.
    pub is_full: bool,
}

impl Durable {
    pub fn with(rows: impl IntoIterator<Item = RowId>) -> Durable {
        Durable { rows: rows.into_iter().map(|row| (row, INITIAL)).collect(), ..Durable::default() }
    }
}

impl SparseStore for Durable {
    fn version(&self, row: &RowId) -> Result<Option<Version>, StoreError> {
        Ok(self.rows.get(row).copied())
    }

    fn versions(
        &self,
        table: TableId,
        range: &KeyRange,
        each: &mut dyn FnMut(&Key, Version) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        for (row, version) in self.rows.range(range.of_table(table)) {
            if each(&row.key, *version).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn verdict(&self, transaction: LedgerPosition) -> Result<Option<bool>, StoreError> {
        Ok(self.verdicts.get(&transaction).copied())
    }

    fn height(&self) -> u64 {
        self.height
    }

    fn deferred(&self) -> Result<Vec<SparseTransaction>, StoreError> {
        Ok(self.deferred.values().cloned().collect())
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), StoreError> {
        if std::mem::take(&mut self.is_full) {
            return Err(StoreError::write("the store", "no space left on device"));
        }
        if let Some(block) = record.block {
            assert_eq!(block, self.height + 1, "blocks are committed one after the other");
            self.height = block;
        }
        for (position, valid) in &record.verdicts {
            self.deferred.remove(position);
            assert_eq!(self.verdicts.insert(*position, *valid), None, "decided once");
        }
        for (version, AfterImage { row, value }) in &record.changes {
            match value {
                Some(_) => drop(self.rows.insert(row.clone(), *version)),
                None => drop(self.rows.remove(row)),
            }
        }
        for transaction in &record.deferred {
            self.deferred.insert(transaction.position, (*transaction).clone());
        }
        Ok(())
    }
}

/// A transaction that is put together step by step.
#[derive(Clone)]
pub struct Build(SparseTransaction);

/// A transaction of these contracts, whose policies nobody has changed.
pub fn transaction(position: LedgerPosition, contracts: &[u32]) -> Build {
    let part = |contract: &u32| {
        let policy = ReadVersion { row: row(*contract, POLICY), version: Some(INITIAL) };
        (ContractId(*contract), ContractPart { policy, reads: vec![], intervals: vec![], writes: vec![] })
    };
    let parts: BTreeMap<ContractId, ContractPart> = contracts.iter().map(part).collect();
    Build(SparseTransaction { position, contracts: parts.keys().copied().collect(), parts })
}

impl Build {
    fn part(&mut self, contract: u32) -> &mut ContractPart {
        self.0.parts.get_mut(&ContractId(contract)).expect("one of its contracts")
    }

    pub fn policy(mut self, contract: u32, version: Option<Version>) -> Build {
        self.part(contract).policy.version = version;
        self
    }

    pub fn reads(mut self, contract: u32, key: u8, version: Option<Version>) -> Build {
        self.part(contract).reads.push(ReadVersion { row: row(contract, key), version });
        self
    }

    pub fn scans(mut self, contract: u32, first: u8, last: u8, result: &[(u8, Version)]) -> Build {
        let bound = |key: u8| Bound::Included(Key::from_bytes(&[key]));
        let range = KeyRange { start: bound(first), end: bound(last) };
        let result = result.iter().map(|(key, version)| (Key::from_bytes(&[*key]), *version)).collect();
        let table = TableId(contract);
        self.part(contract).intervals.push(IntervalVersions { table, range, result });
        self
    }

    pub fn writes(mut self, contract: u32, key: u8) -> Build {
        let value = Some([types::Value::Boolean(true)].into());
        self.part(contract).writes.push(AfterImage { row: row(contract, key), value });
        self
    }

    pub fn deletes(mut self, contract: u32, key: u8) -> Build {
        self.part(contract).writes.push(AfterImage { row: row(contract, key), value: None });
        self
    }

    pub fn done(self) -> SparseTransaction {
        self.0
    }
}

pub fn contracts(numbers: &[u32]) -> BTreeSet<ContractId> {
    numbers.iter().copied().map(ContractId).collect()
}
