//! What each transaction of a block has made of the rows that it has changed, for those who keep the history of rows.
//!
//! Protocols say in which order a batch took effect: to run its transactions one after the other in that order gives the same.
//! So their commands, applied in that order to the rows as they were, give every row after every transaction, whatever the
//! protocol is. While blocks are executed, commands are noted; applying them again is left to whoever asks ([`RowHistory::changes`]).
//!
//! ```text
//!  apply a batch ─▶ RowHistory::note: who committed, in which order, with which commands, on which snapshot   (execute)
//!                ─▶ RowHistory::changes: the commands again, one after the other ─▶ ledger::RowHistory: rows-….log, .idx   (record)
//! ```

use crate::VerifiedBlock;
use concurrency::{BatchResult, TransactionOutcome};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use state::{Command, Effects, Endorsed, Footprint, RowId, Simulate, Snapshot, StoreError, apply_command};
use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use types::{Catalog, Index, Principal, Row, SqlError, TableId, TransactionId};

/// A row as a transaction has left it.
#[derive(Clone, Debug, PartialEq)]
pub struct RowChanged {
    /// Position of the transaction in its block.
    pub index: u32,
    /// The transaction.
    pub transaction: TransactionId,
    /// In whose name it ran.
    pub principal: Principal,
    /// Which row.
    pub row: RowId,
    /// The row was there before.
    pub existed: bool,
    /// Its values; `None`: it is gone.
    pub value: Option<Row>,
}

/// What the transactions of a block did to rows.
#[derive(Default)]
pub struct RowHistory {
    batches: Vec<BatchCommands>,
}

/// The commands of the transactions of a batch that have committed, in the order in which they took effect.
struct BatchCommands {
    before: Arc<dyn Snapshot>,
    transactions: Vec<NotedTransaction>,
}

struct NotedTransaction {
    index: u32,
    id: TransactionId,
    principal: Principal,
    commands: Vec<Command>,
}

impl NotedTransaction {
    fn new(block: &VerifiedBlock, index: u32, commands: Vec<Command>) -> Option<NotedTransaction> {
        let transaction = block.transactions[index as usize].as_ref().ok()?;
        let (id, principal) = (transaction.id, transaction.principal.clone());
        (!commands.is_empty()).then_some(NotedTransaction { index, id, principal, commands })
    }
}

impl RowHistory {
    /// The rows that each transaction has changed, in the order in which they took effect. Rows of indexes are left out.
    ///
    /// # Errors
    /// The rows as they were cannot be read.
    pub fn changes(&self) -> Result<Vec<RowChanged>, StoreError> {
        let mut changes = Vec::new();
        for BatchCommands { before, transactions } in &self.batches {
            // The rows as they are now, and which transaction of the batch has come to each last.
            let mut current: FxHashMap<&RowId, (Option<Row>, usize)> = FxHashMap::default();
            for (number, noted) in (1..).zip(transactions) {
                let NotedTransaction { index, id: transaction, principal, commands } = noted;
                // Rows of this transaction, as it has found them, in the order in which it came to them.
                let mut touched: Vec<(&RowId, Option<Row>)> = Vec::new();
                for command in commands {
                    let id = &command.row;
                    let (row, last) = match current.entry(id) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert((before.get(id.table, &id.key)?, 0)),
                    };
                    if std::mem::replace(last, number) != number {
                        touched.push((id, row.clone()));
                    }
                    // What has committed has met no error at its place.
                    if let Ok((after, _)) = apply_command(row.clone(), command) {
                        *row = after;
                    }
                }
                for (id, was) in touched {
                    let value = current.get(id).and_then(|(row, _)| row.clone());
                    if was != value {
                        let (row, existed) = (id.clone(), was.is_some());
                        let (index, transaction, principal) = (*index, *transaction, principal.clone());
                        changes.push(RowChanged { index, transaction, principal, row, existed, value });
                    }
                }
            }
        }
        Ok(changes)
    }

    /// Notes a batch that is about to be applied to `before`. `positions`: of its transactions in the block.
    pub(crate) fn note(
        &mut self,
        block: &VerifiedBlock,
        before: Arc<dyn Snapshot>,
        result: &BatchResult,
        positions: &[u32],
        recorded: &Recorded,
    ) {
        let committed =
            |number: &&u32| matches!(result.outcomes[**number as usize], TransactionOutcome::Committed(_));
        let placed = result.history.placed.iter().map(|number| (number, true));
        let serial = result.history.serial.iter().map(|number| (number, false));
        let mut transactions = Vec::new();
        let entries = entries_of(before.catalog());
        for (number, placed) in placed.chain(serial).filter(|(number, _)| committed(number)) {
            let position = positions[*number as usize];
            let mut commands = recorded.commands(position, placed);
            commands.retain(|command| !entries.contains(&command.row.table));
            transactions.extend(NotedTransaction::new(block, position, commands));
        }
        if !transactions.is_empty() {
            self.batches.push(BatchCommands { before, transactions });
        }
    }

    /// Notes a schema change, which runs alone. Rows that ALTER TABLE writes again under another number of their table have
    /// not changed for anybody.
    pub(crate) fn note_schema_change(
        &mut self,
        block: &VerifiedBlock,
        before: Arc<dyn Snapshot>,
        index: u32,
        commands: &[Command],
        after: Option<&Catalog>,
    ) {
        let copied = |command: &&Command| {
            let table = after.and_then(|after| after.table(command.row.table));
            let known = before.catalog();
            known.table(command.row.table).is_none()
                && table.is_some_and(|table| known.tables.contains_key(&table.name))
        };
        let entries = after.map(entries_of).unwrap_or_default();
        let of_rows = |command: &&Command| {
            command.row.table.is_made() && !entries.contains(&command.row.table) && !copied(command)
        };
        let kept = commands.iter().filter(of_rows);
        let commands: Vec<Command> = kept.cloned().collect();
        if let Some(noted) = NotedTransaction::new(block, index, commands) {
            self.batches.push(BatchCommands { before, transactions: vec![noted] });
        }
    }
}

/// Where the entries of computed indexes stand, which are rows of no table that anybody asks about.
fn entries_of(catalog: &Catalog) -> BTreeSet<TableId> {
    let computed = catalog.indexes.values().flatten().filter(|index| index.is_computed());
    computed.map(Index::computed_entries).collect()
}

/// What is noted of a block that is being executed.
pub(crate) struct Noting {
    pub(crate) recorded: Recorded,
    pub(crate) history: RowHistory,
}

/// The transactions of a block that remember their commands, by position.
#[derive(Default)]
pub(crate) struct Recorded(FxHashMap<u32, Arc<RecordedTransaction>>);

/// A transaction that remembers the commands of its last run, which is the one that counts.
struct RecordedTransaction {
    inner: Arc<dyn Simulate>,
    commands: Mutex<Vec<Command>>,
}

impl Recorded {
    /// The same transactions, which remember.
    pub(crate) fn wrap(
        &mut self,
        positions: &[u32],
        transactions: Vec<Arc<dyn Simulate>>,
    ) -> Vec<Arc<dyn Simulate>> {
        let wrap = |(position, inner): (&u32, Arc<dyn Simulate>)| -> Arc<dyn Simulate> {
            let recorded = Arc::new(RecordedTransaction { inner, commands: Mutex::default() });
            self.0.insert(*position, recorded.clone());
            recorded
        };
        positions.iter().zip(transactions).map(wrap).collect()
    }

    /// The commands of a transaction, those of its endorsed simulation where that counts.
    fn commands(&self, position: u32, endorsed: bool) -> Vec<Command> {
        let Some(recorded) = self.0.get(&position) else { return Vec::new() };
        let of_rows = |commands: &[Command]| {
            commands.iter().filter(|command| command.row.table.is_made()).cloned().collect()
        };
        match recorded.inner.endorsed().filter(|_| endorsed) {
            Some(endorsed) => of_rows(&endorsed.effects.commands),
            None => std::mem::take(&mut *recorded.commands.lock()),
        }
    }
}

impl Simulate for RecordedTransaction {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let effects = self.inner.simulate(snapshot)?;
        let of_rows = effects.commands.iter().filter(|command| command.row.table.is_made());
        *self.commands.lock() = of_rows.cloned().collect();
        Ok(effects)
    }

    fn footprint(&self, catalog: &Catalog) -> Result<Footprint, SqlError> {
        self.inner.footprint(catalog)
    }

    fn endorsed(&self) -> Option<&Endorsed> {
        self.inner.endorsed()
    }
}
