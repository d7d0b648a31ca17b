//! The rows that a batch writes, numbered: everything after simulation works on small numbers.

use rustc_hash::FxHashMap;
use state::{Effects, RowId};
use types::{Key, TableId};

/// The rows that the commands of a batch name, numbered in the order in which transactions and programs name them.
pub(crate) struct WrittenRows<'a> {
    numbers: FxHashMap<&'a RowId, u32>,
    rows: Vec<&'a RowId>,
    /// Row of every command, transaction by transaction.
    commands: Vec<u32>,
    /// Where a transaction's part of `commands` begins; one more entry than transactions.
    first: Vec<u32>,
}

impl<'a> WrittenRows<'a> {
    pub(crate) fn new(effects: &'a [Option<Effects>]) -> WrittenRows<'a> {
        let count = effects.iter().flatten().map(|effects| effects.commands.len()).sum();
        let mut numbers = FxHashMap::with_capacity_and_hasher(count, Default::default());
        let mut rows = Vec::with_capacity(count);
        let mut commands = Vec::with_capacity(count);
        let mut first = Vec::with_capacity(effects.len() + 1);
        first.push(0);
        for effects in effects {
            for command in effects.iter().flat_map(|effects| &effects.commands) {
                let number = *numbers.entry(&command.row).or_insert_with(|| {
                    rows.push(&command.row);
                    rows.len() as u32 - 1
                });
                commands.push(number);
            }
            first.push(commands.len() as u32);
        }
        WrittenRows { numbers, rows, commands, first }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row with this number.
    pub(crate) fn row(&self, number: u32) -> &'a RowId {
        self.rows[number as usize]
    }

    /// The number of a row, if any command names it.
    pub(crate) fn number(&self, row: &RowId) -> Option<u32> {
        self.numbers.get(row).copied()
    }

    /// All rows by table and key.
    pub(crate) fn ordered(&self) -> Vec<u32> {
        // Most comparisons end at the table and the first bytes of the key, which are here together.
        let mut ordered: Vec<(TableId, u64, u32)> = self
            .rows
            .iter()
            .zip(0..)
            .map(|(row, number)| (row.table, first_bytes(&row.key), number))
            .collect();
        ordered.sort_unstable_by(|a, b| {
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| self.row(a.2).key.cmp(&self.row(b.2).key))
        });
        ordered.into_iter().map(|(.., number)| number).collect()
    }

    /// The rows of a transaction's commands, command by command.
    pub(crate) fn of_transaction(&self, transaction: usize) -> &[u32] {
        &self.commands[self.first[transaction] as usize..self.first[transaction + 1] as usize]
    }
}

/// The first eight bytes of a key as a number that orders as they do; what is missing counts as zeros, so equal numbers
/// say nothing.
fn first_bytes(key: &Key) -> u64 {
    let bytes = key.as_bytes();
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use state::{Command, CommandKind, RowChange, RowFunction};
    use std::sync::Arc;
    use types::{ColumnSet, Row, SqlError};

    struct Nothing;

    impl RowFunction for Nothing {
        fn apply(&self, _: Option<&Row>) -> Result<RowChange, SqlError> {
            Ok(RowChange::Unmatched)
        }
    }

    fn effects(rows: &[RowId]) -> Option<Effects> {
        let commands = rows.iter().map(|row| Command {
            row: row.clone(),
            function: Arc::new(Nothing),
            kind: CommandKind::Delete,
            uses: ColumnSet::EXISTS,
            writes: ColumnSet::ALL,
            guard: None,
            can_fail: false,
            addition: None,
        });
        let (reads, scans, commands) = (vec![], vec![], commands.collect());
        Some(Effects { reads, scans, commands, result: Ok(vec![]), steps: 1, catalog: None })
    }

    proptest! {
        #[test]
        fn rows_are_found_by_number_and_come_in_key_order(
            batch in prop::collection::vec(prop::collection::vec((0..2u32, prop::collection::vec(0..3u8, 0..11)), 0..4), 0..9),
        ) {
            let row_id = |(table, key): &(u32, Vec<u8>)| RowId { table: TableId(*table), key: Key::from_bytes(key) };
            let named: Vec<Vec<RowId>> = batch.iter().map(|rows| rows.iter().map(row_id).collect()).collect();
            let effects: Vec<Option<Effects>> = named.iter().map(|rows| effects(rows)).collect();
            let rows = WrittenRows::new(&effects);
            for (transaction, named) in named.iter().enumerate() {
                let numbers = rows.of_transaction(transaction);
                prop_assert_eq!(numbers.iter().map(|number| rows.row(*number)).collect::<Vec<_>>(), named.iter().collect::<Vec<_>>());
                prop_assert!(named.iter().zip(numbers).all(|(row, number)| rows.number(row) == Some(*number)));
            }
            let mut expected: Vec<&RowId> = named.iter().flatten().collect();
            expected.sort();
            expected.dedup();
            prop_assert_eq!(rows.ordered().into_iter().map(|number| rows.row(number)).collect::<Vec<_>>(), expected);
        }
    }
}
