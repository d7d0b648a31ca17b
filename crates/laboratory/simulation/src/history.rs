//! What happened as clients and ledgers tell it, and whether it can have happened: a plain map replays the blocks.

use crate::snapshots::{Committed, by_snapshots};
use crate::workload::{Operation, Table};
use ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use types::{
    AnswerAt, Charter, Charters, ExecutionModel, Outcome, Receipt, SignedTransaction, SqlError, TransactionId,
};

/// Orders of one block that are tried before the checker gives up.
const TRIES_MAX: u32 = 200_000;

/// A transaction that a client has signed.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// What it does.
    pub operation: Operation,
    /// When it was given to a node for the first time.
    pub at: Duration,
    /// What the client was told.
    pub answers: Vec<Answer>,
    /// What the client was told of it instead of a receipt.
    pub refused: Option<Refused>,
}

/// Why a client has no receipt.
#[derive(Clone, Debug)]
pub enum Refused {
    /// It will never be executed.
    Never,
    /// Its contract ended it when it was to be endorsed.
    Aborted(SqlError),
}

/// A receipt that a client got.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What it says.
    pub receipt: Receipt,
    /// Which node has sent it.
    pub node: usize,
    /// Which start of the node that was.
    pub start: u64,
    /// What the client asked for.
    pub answer_at: AnswerAt,
    /// Nobody promises it: the node answered before a quorum had a say, and somebody had changed its memory.
    pub doubtful: bool,
    /// When it came.
    pub at: Duration,
}

/// What a query of a node has read: its height, and the rows.
#[derive(Clone, Debug)]
pub struct NodeRead {
    /// Which node.
    pub node: usize,
    /// The height of the state.
    pub height: u64,
    /// Its rows.
    pub rows: Vec<Vec<i64>>,
}

/// What the transactions of a ledger are serialized by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Serialized {
    /// Block after block.
    Blocks,
    /// The snapshots that they were endorsed on: what was executed before it was ordered may stand in front of earlier
    /// blocks (Fabric#).
    Snapshots {
        /// Additions are endorsed as commands.
        commands: bool,
    },
}

/// Everything that clients know.
#[derive(Debug)]
pub struct History {
    serialized: Serialized,
    /// All transactions.
    pub submitted: BTreeMap<TransactionId, Submitted>,
    /// All reads.
    pub reads: Vec<NodeRead>,
    /// Transactions that clients have signed with parts in schemas.
    pub parts: BTreeSet<TransactionId>,
}

/// What the replay came to.
#[derive(Default, Debug)]
pub struct Replayed {
    /// The table after every block.
    pub tables: BTreeMap<u64, Table>,
    /// Transactions that were executed.
    pub executed: u64,
    /// Those of them that committed.
    pub committed: u64,
    /// Transactions that the blocks hold and that were not executed: repetitions and late ones.
    pub rejected: u64,
}

impl Replayed {
    /// The rows after the block of this height, if there is one.
    pub fn rows_at(&self, height: u64) -> Option<Vec<Vec<i64>>> {
        let row = |(row, (version, balance)): (&i64, &(i64, i64))| vec![*row, *version, *balance];
        self.tables.get(&height).map(|table| table.iter().map(row).collect())
    }
}

/// Whether nodes have made a transaction themselves, of what members of schemas say.
fn is_of_nodes(bytes: &[u8]) -> bool {
    SignedTransaction::from_bytes(bytes).is_ok_and(|signed| signed.transaction.payload.is_brought_by_nodes())
}

impl History {
    /// Of clients of a ledger with this charter, who know nothing yet.
    pub fn of(charter: &Charter) -> History {
        let by_snapshots =
            charter.execution == ExecutionModel::ExecuteOrderValidate && charter.protocol == "fabric-sharp";
        let serialized = match by_snapshots {
            true => Serialized::Snapshots { commands: charter.endorsement.commands },
            false => Serialized::Blocks,
        };
        History { serialized, submitted: BTreeMap::new(), reads: Vec::new(), parts: BTreeSet::new() }
    }

    /// Checks what clients know against the blocks of a ledger, and the blocks against the model.
    ///
    /// # Errors
    /// The first promise that was not kept.
    pub fn check(&self, ledger: &Ledger) -> Result<Replayed, String> {
        let mut replayed = Replayed::default();
        let mut executed: BTreeMap<TransactionId, Receipt> = BTreeMap::new();
        let mut blocks = Vec::new();
        for record in ledger.blocks_from(1) {
            let record = record.map_err(|error| format!("a ledger cannot be read: {error}"))?;
            let height = record.block.header.height;
            let mut took_effect = Vec::new();
            for (receipt, bytes) in record.outcome.receipts.iter().zip(&record.block.transactions) {
                if is_of_nodes(bytes) || self.is_part(bytes, receipt) {
                    continue;
                }
                let Some(submitted) = self.submitted.get(&receipt.transaction) else {
                    return Err(format!("block {height} holds a transaction that no client has signed"));
                };
                let outcome = match &receipt.outcome {
                    Outcome::Rejected(_) => {
                        replayed.rejected += 1;
                        continue;
                    }
                    outcome => outcome.clone(),
                };
                if let Some(first) = executed.insert(receipt.transaction, receipt.clone()) {
                    return Err(format!(
                        "exactly once: {:?} was executed at {}/{} and at {height}/{}",
                        submitted.operation, first.height, first.index, receipt.index
                    ));
                }
                replayed.executed += 1;
                replayed.committed += u64::from(matches!(outcome, Outcome::Committed(_)));
                if outcome != Outcome::Conflict {
                    let (operation, snapshot) = (&submitted.operation, snapshot_of(bytes));
                    took_effect.push(Committed { height, operation, outcome, snapshot });
                }
            }
            blocks.push((height, took_effect));
        }
        replayed.tables = match self.serialized {
            Serialized::Blocks => by_blocks(&blocks)?,
            Serialized::Snapshots { commands } => by_snapshots(&blocks, commands)?,
        };
        self.check_refusals(&replayed)?;
        self.check_answers(&executed)?;
        self.check_real_time()?;
        for read in &self.reads {
            let Some(expected) = replayed.rows_at(read.height) else { continue };
            if expected != read.rows {
                let NodeRead { node, height, rows } = read;
                return Err(format!("node {node} read {rows:?} at height {height}, expected {expected:?}"));
            }
        }
        Ok(replayed)
    }

    /// A transaction with parts that a client has signed, or that the ledger has refused.
    fn is_part(&self, bytes: &[u8], receipt: &Receipt) -> bool {
        let is_known = || self.parts.contains(&receipt.transaction);
        SignedTransaction::has_parts(bytes) && (is_known() || matches!(receipt.outcome, Outcome::Rejected(_)))
    }

    /// Every certificate in the blocks is one, and of what these blocks came to, as whoever audits the ledger expects.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_certificates(ledger: &Ledger, founding: &Arc<Charter>) -> Result<(), String> {
        let (mut outcomes, mut charters) = (BTreeMap::new(), Charters::new(founding.clone()));
        for record in ledger.blocks_from(1) {
            let record = record.map_err(|error| format!("a ledger cannot be read: {error}"))?;
            let height = record.block.header.height;
            let wrong = |what: &str| Err(format!("certificates: block {height} carries {what}"));
            if let Some(certificate) = &record.block.attested.outcome {
                let rules = &charters.at(certificate.statement.height).rules;
                if let Err(error) = rules.check_certificate(certificate) {
                    return wrong(&format!("one of an outcome that is none: {error}"));
                }
                if outcomes.get(&certificate.statement.height) != Some(&certificate.statement.digest()) {
                    return wrong("one of an outcome that its block did not come to");
                }
            }
            if let Some(certificate) = &record.block.attested.checkpoint {
                let rules = &charters.at(certificate.statement.height).rules;
                if let Err(error) = rules.check_certificate(certificate) {
                    return wrong(&format!("one of a checkpoint that is none: {error}"));
                }
                if outcomes.get(&certificate.statement.height) != Some(&certificate.statement.outcome) {
                    return wrong("one of a checkpoint behind another outcome");
                }
            }
            if let Err(error) = charters.follow(&record.block.attested) {
                return wrong(&format!("charters that are none: {error}"));
            }
            outcomes.insert(height, record.outcome.header.digest());
        }
        Ok(())
    }

    /// What a contract refused when it was to be endorsed, it refuses on some state that there was.
    fn check_refusals(&self, replayed: &Replayed) -> Result<(), String> {
        for submitted in self.submitted.values() {
            let Some(Refused::Aborted(error)) = &submitted.refused else { continue };
            if !replayed.tables.values().any(|table| submitted.operation.is_refused_on(table)) {
                return Err(format!(
                    "endorsing: {:?} was refused with {error:?}, and there was no state to refuse it on",
                    submitted.operation
                ));
            }
        }
        Ok(())
    }

    /// Every receipt that a client holds is in the ledger, word for word, and nothing that it was told will not be.
    fn check_answers(&self, executed: &BTreeMap<TransactionId, Receipt>) -> Result<(), String> {
        for (id, submitted) in &self.submitted {
            let found = executed.get(id);
            if matches!(submitted.refused, Some(Refused::Never)) && found.is_some() {
                return Err(format!("{:?} was executed, and its client was told never", submitted.operation));
            }
            for answer in &submitted.answers {
                let rejected = matches!(answer.receipt.outcome, Outcome::Rejected(_));
                if !rejected && !answer.doubtful && found != Some(&answer.receipt) {
                    return Err(format!(
                        "durability: node {} gave the receipt {:?}, the ledger says {found:?}",
                        answer.node, answer.receipt
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whoever submits after an answer stands in a later block.
    fn check_real_time(&self) -> Result<(), String> {
        let mut ended: Vec<(Duration, u64)> = Vec::new();
        for submitted in self.submitted.values() {
            let answers = submitted.answers.iter().filter(|answer| !answer.doubtful);
            ended.extend(answers.map(|answer| (answer.at, answer.receipt.height)));
        }
        ended.sort_unstable();
        let mut highest = 0;
        let highest: Vec<(Duration, u64)> = ended
            .into_iter()
            .map(|(at, height)| {
                highest = highest.max(height);
                (at, highest)
            })
            .collect();
        for submitted in self.submitted.values() {
            let before = highest.partition_point(|(at, _)| *at < submitted.at);
            let Some((at, known)) = before.checked_sub(1).map(|last| highest[last]) else { continue };
            let own = submitted.answers.iter().map(|answer| answer.receipt.height).min();
            if own.is_some_and(|own| own <= known) {
                return Err(format!(
                    "strictness: {:?} was submitted at {:?} and stands at {own:?}, and height {known} was answered at {at:?}",
                    submitted.operation, submitted.at
                ));
            }
        }
        Ok(())
    }
}

/// The height of the state that a transaction was endorsed on.
fn snapshot_of(transaction: &[u8]) -> Option<u64> {
    let signed = SignedTransaction::from_bytes(transaction).ok()?;
    Some(signed.endorsed?.endorsements.first()?.snapshot)
}

/// The tables after every block, where what takes effect in one block does so behind all that did in the blocks before.
fn by_blocks(blocks: &[(u64, Vec<Committed<'_>>)]) -> Result<BTreeMap<u64, Table>, String> {
    let (mut tables, mut table) = (BTreeMap::new(), Table::default());
    for (height, took_effect) in blocks {
        let waiting: Vec<(&Operation, &Outcome)> =
            took_effect.iter().map(|one| (one.operation, &one.outcome)).collect();
        let mut tries = TRIES_MAX;
        table = serial(&table, &waiting, &mut tries).ok_or_else(|| {
            let gave_up = if tries == 0 { " among those tried" } else { "" };
            format!("serializability: no order{gave_up} of block {height} explains {waiting:?} on {table:?}")
        })?;
        tables.insert(*height, table.clone());
    }
    Ok(tables)
}

/// The table after some serial order of the operations that explains every outcome; `None` where none does.
pub(crate) fn serial(table: &Table, waiting: &[(&Operation, &Outcome)], tries: &mut u32) -> Option<Table> {
    if waiting.is_empty() {
        return Some(table.clone());
    }
    for (position, (operation, outcome)) in waiting.iter().enumerate() {
        if *tries == 0 {
            return None;
        }
        *tries -= 1;
        let mut after = table.clone();
        let said = operation.apply(&mut after);
        if !operation.is(outcome, &said) {
            continue;
        }
        let mut rest = waiting.to_vec();
        rest.remove(position);
        let found = serial(&after, &rest, tries);
        // What changes nothing can stand here whatever follows.
        if found.is_some() || after == *table {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{BALANCE, Said};
    use types::{StatementResult, Value};

    fn committed(rows: &[&[i64]]) -> Outcome {
        let rows = rows.iter().map(|row| row.iter().copied().map(Value::BigInt).collect()).collect();
        Outcome::Committed(vec![StatementResult { rows, ..StatementResult::default() }])
    }

    #[test]
    fn orders_are_found_and_what_no_order_explains_is_not() {
        let table: Table = [(0, (0, BALANCE)), (1, (0, BALANCE))].into();
        let (first, second) = (committed(&[&[1, 21]]), committed(&[&[3, 23]]));
        let (silent, increment, add) = (committed(&[]), Operation::Increment(0), Operation::Add(0));
        let block = [(&increment, &second), (&add, &silent), (&increment, &first)];
        let after = serial(&table, &block, &mut 100).expect("1, silent 2, 3");
        assert_eq!(after[&0], (3, 23));
        assert_eq!(serial(&table, &[block[0], block[2]], &mut 100), None, "nobody made version 2");
        let (lost, again) = (committed(&[&[1, 21]]), committed(&[&[1, 21]]));
        assert_eq!(serial(&table, &[(&increment, &lost), (&increment, &again)], &mut 100), None);
        assert_eq!(Operation::Transfer(0, 1, 21).apply(&mut table.clone()), Said::Aborted);
    }
}
