//! The rows that a batch writes, numbered: everything after simulation works on small numbers.

use rustc_hash::FxHashMap;
use state::{Effects, RowId};

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

    /// The rows of a transaction's commands, command by command.
    pub(crate) fn of_transaction(&self, transaction: usize) -> &[u32] {
        &self.commands[self.first[transaction] as usize..self.first[transaction + 1] as usize]
    }
}
