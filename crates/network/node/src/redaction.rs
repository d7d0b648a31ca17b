//! Takes the content of transactions out of the ledger that its members have agreed to redact; hash and place stay.
//!
//! ```text
//!  the catalog: redactions that are agreed to ─▶ where their bytes stand ─▶ does this node need those blocks itself?
//!        not yet: later again       ◀──────────────────────────────────────────────┘
//!        no: the ledger's file ─▶ the history of rows ─▶ ordering forgets its copies of blocks
//! ```
//!
//! What is agreed is in the state of every node; when a node carries it out is its own affair, because nothing that nodes agree on
//! depends on that. A block of which something is redacted can be given to nobody: whoever lacks it joins from a checkpoint.

use crate::NodeError;
use crate::charters::DecidedCharters;
use crate::metrics::NodeMetrics;
use crate::published::Published;
use crate::row_history::KeptRows;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use ledger::{CheckpointStore, KeptTransaction, Ledger, LedgerError};
use ordering::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use types::{
    Catalog, Charters, ExecutionModel, ExecutionVersion, Payload, SignedTransaction, SqlError, SqlState,
    TransactionId,
};

/// How often it is looked whether there is anything to redact.
const LOOK: Duration = Duration::from_secs(2);
/// Ordering keeps so many blocks in a file at most, and forgets whole files.
const ORDERED_BLOCKS_PER_FILE: u64 = 4_096;
/// Checkpoints that a node must be able to come back at: should the newest be damaged there is another one.
const CHECKPOINTS_MIN: usize = 2;

/// Why a transaction stays, whoever agrees.
fn needed(bytes: &[u8], version: ExecutionVersion) -> Option<&'static str> {
    let signed = SignedTransaction::from_bytes(bytes).ok()?;
    let payload = &signed.transaction.payload;
    match payload {
        Payload::Parts { .. } | Payload::Agreed(_) => {
            Some("it has parts in schemas with members, which commit to it")
        }
        Payload::SchemaOutcomes { .. } | Payload::MovingOutcomes { .. } | Payload::HeldParts { .. } => {
            Some("it brings what members of a schema have signed")
        }
        _ if sql::is_schema_change(payload, version) => {
            Some("it changes schema or charter, or agrees to that, and says who did")
        }
        _ => None,
    }
}

/// Height from which on members of schemas may have to execute blocks again.
fn schemas_from(catalog: &Catalog) -> u64 {
    let members = catalog.schemas.values().filter_map(|schema| schema.members.as_ref());
    members.map(|members| members.since).min().unwrap_or(u64::MAX)
}

fn version_at(charters: &Charters, height: u64) -> ExecutionVersion {
    let number = charters.at(height).charter.execution_version;
    ExecutionVersion::of_number(number).unwrap_or(ExecutionVersion::NEWEST)
}

/// Why nobody should agree to redact a transaction through this node.
pub(crate) fn refusal(
    id: &TransactionId,
    (ledger, charters): (&Ledger, &Charters),
    catalog: &Catalog,
    checkpoint: Option<u64>,
) -> Option<SqlError> {
    let refused = |why: String, hint: &str| {
        let message = format!("transaction {id} cannot be redacted: {why}");
        Some(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(hint.to_string()))
    };
    if charters.founding().execution == ExecutionModel::WhateverThenAgree {
        return refused(
            "where databases execute scripts (whatever-then-agree) all blocks are kept".to_string(),
            "A database that is lost is made again from them.",
        );
    }
    let (height, index) = match ledger.locate(id) {
        Ok(Some(place)) => place,
        // A node without all blocks cannot know: others do.
        Ok(None) if ledger.payloads_from() > 1 => return None,
        Ok(None) => {
            let message = format!("no transaction {id} here: it is not final, or was never sent");
            let error = SqlError::new(SqlState::NO_DATA_FOUND, message);
            return Some(error.hint("entente.transactions has the ids of those that are."));
        }
        Err(error) => return Some(unreadable(&error)),
    };
    let kept = match ledger.transactions(height) {
        Ok(kept) => kept.and_then(|kept| kept.into_iter().nth(index as usize)),
        Err(error) => return Some(unreadable(&error)),
    };
    match kept {
        None => {}
        Some(KeptTransaction::Redacted(redacted)) => {
            return refused(
                format!("it is redacted already, by proposal {}", redacted.proposal),
                "Its hash and place are what is left of it.",
            );
        }
        Some(KeptTransaction::Whole(bytes, _)) => {
            if let Some(why) = needed(&bytes, version_at(charters, height)) {
                return refused(why.to_string(), "The ledger needs it for ever.");
            }
        }
    }
    let schemas = schemas_from(catalog);
    if height >= schemas {
        return refused(
            format!(
                "the ledger has had schemas with members since height {schemas}, and it stands at {height}"
            ),
            "Members may have to execute blocks from there on again.",
        );
    }
    match checkpoint {
        Some(certified) if height <= certified => None,
        certified => refused(
            format!(
                "it stands at height {height}, and the newest certified checkpoint at {}: nodes need it to come back",
                certified.unwrap_or(0)
            ),
            "CHECKPOINT makes one now; ask again once it is certified.",
        ),
    }
}

/// What whoever asks for a redacted transaction hears.
pub(crate) fn told(error: &LedgerError) -> Option<SqlError> {
    let LedgerError::Redacted { transaction, height, index, proposal } = error else { return None };
    let message = format!(
        "transaction {transaction} is redacted by proposal {proposal}: its hash and place are kept, height {height}, position {index}"
    );
    let hint = "The members have agreed that its content goes from every node; entente.proposals says why.";
    Some(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(hint))
}

fn unreadable(error: &LedgerError) -> SqlError {
    tracing::error!(%error, "the ledger cannot be read");
    SqlError::new(SqlState::INTERNAL_ERROR, "the ledger cannot be read; the node's log says more")
}

/// What carries out redactions.
#[derive(Clone)]
pub(crate) struct Redacting {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) checkpoints: Arc<CheckpointStore>,
    pub(crate) charters: Arc<DecidedCharters>,
    /// Whether outcomes are certified at all.
    pub(crate) attests: bool,
    pub(crate) published: Arc<Published>,
    pub(crate) rows: Option<Arc<KeptRows>>,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) metrics: Arc<NodeMetrics>,
}

/// How far it was looked for the bytes of each transaction.
#[derive(Default)]
struct Looked {
    /// Everything below this height is done.
    below: BTreeMap<TransactionId, u64>,
    /// What stays and was told of.
    told: BTreeSet<(u64, u32)>,
    /// The ledger's newest height then. A node that takes blocks back fetches them whole.
    tip: u64,
}

impl Redacting {
    /// Looks again and again, until it is stopped.
    pub(crate) fn run(&self, stopped: &Receiver<()>) {
        let mut looked = Looked::default();
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
            if let Err(error) = self.redact(&mut looked) {
                tracing::error!(%error, "what is to be redacted cannot be; this is tried again");
            }
        }
    }

    /// Carries out what is agreed, as far as this node needs the blocks no more.
    fn redact(&self, looked: &mut Looked) -> Result<(), NodeError> {
        let catalog = self.published.library().catalog().clone();
        let agreed: BTreeMap<TransactionId, u64> = catalog
            .governance
            .redactions()
            .map(|(proposal, redaction)| (redaction.transaction, proposal.number))
            .collect();
        if agreed.is_empty() {
            return Ok(());
        }
        let tip = self.ledger.tip().map_or(0, |(height, _)| height);
        if tip < looked.tip {
            looked.below.clear();
        }
        looked.tip = tip;
        let until = self.first_needed(&catalog)?;
        let from = agreed.keys().map(|id| looked.below.get(id).copied().unwrap_or(0)).min().unwrap_or(until);
        let mut executed = BTreeSet::new();
        for id in agreed.keys() {
            executed.extend(self.ledger.locate(id)?.map(|(height, _)| height));
        }
        for height in from.max(self.ledger.payloads_from())..until {
            let Some(summary) = self.ledger.summary(height)? else { continue };
            // Whoever sent it again has had it rejected, in other blocks.
            if !summary.pruned && (summary.counts.rejected > 0 || executed.contains(&height)) {
                self.redact_block(height, &agreed, looked)?;
            }
        }
        for id in agreed.keys() {
            let below = looked.below.entry(*id).or_insert(0);
            *below = (*below).max(until);
        }
        let redacted_to = self.ledger.redacted_to();
        if redacted_to > 0 {
            // Up to the end of its file; what is behind others may still want.
            self.ordering.forget_below(until.min(redacted_to + ORDERED_BLOCKS_PER_FILE));
        }
        Ok(())
    }

    /// The first height that the node may need itself: to come back, to heal, or for schemas with members.
    fn first_needed(&self, catalog: &Catalog) -> Result<u64, LedgerError> {
        let Some((tip, _)) = self.ledger.tip() else { return Ok(0) };
        let checkpoints = self.checkpoints.newest();
        let oldest = checkpoints.iter().min().filter(|_| checkpoints.len() >= CHECKPOINTS_MIN);
        let certified = match self.attests {
            true => self.ledger.header(tip)?.map_or(0, |header| header.certified_height),
            false => u64::MAX,
        };
        let Some(oldest) = oldest else { return Ok(0) };
        Ok((oldest + 1).min(certified).min(schemas_from(catalog)))
    }

    fn redact_block(
        &self,
        height: u64,
        agreed: &BTreeMap<TransactionId, u64>,
        looked: &mut Looked,
    ) -> Result<(), NodeError> {
        let version = version_at(&self.charters.all(), height);
        let (mut marks, mut is_known) = (BTreeMap::new(), false);
        for kept in self.ledger.transactions(height)?.unwrap_or_default() {
            let Some(proposal) = agreed.get(&kept.id()) else { continue };
            let KeptTransaction::Whole(bytes, receipt) = kept else {
                is_known = true;
                continue;
            };
            let Some(why) = needed(&bytes, version) else {
                // The history of rows first: a node that ends in between finds the transaction again.
                if let Some(rows) = &self.rows {
                    rows.redact(height, &receipt.transaction)?;
                }
                marks.insert(receipt.index, *proposal);
                continue;
            };
            if looked.told.insert((height, receipt.index)) {
                tracing::warn!(height, index = receipt.index, proposal, why, "a transaction is not redacted");
            }
        }
        if marks.is_empty() && !is_known {
            return Ok(());
        }
        if self.ledger.redact(height, &marks)? {
            self.metrics.redacted(marks.len() as u64);
            tracing::info!(
                height,
                transactions = marks.len(),
                "transactions are redacted, as the members agreed"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::{SignedLedger, SignedLedgerOptions};
    use types::{Charter, Schema, SchemaMembers};

    fn script(sql: &str) -> Payload {
        Payload::Script { sql: sql.to_string(), parameters: Vec::new() }
    }

    /// A table, and a row in block 2.
    fn filled(folder: &std::path::Path, change: impl FnOnce(&mut Charter)) -> SignedLedger {
        let mut source =
            SignedLedger::create(folder, SignedLedgerOptions::default(), change).expect("an empty folder");
        for sql in ["CREATE TABLE t (id bigint PRIMARY KEY, name text)", "INSERT INTO t VALUES (1, 'Anna')"] {
            let transactions = source.transactions(vec![script(sql)]);
            source.append(transactions, |_| ()).expect("appends");
        }
        source
    }

    fn id_at(source: &SignedLedger, height: u64) -> TransactionId {
        source.ledger().receipt_at(height, 0).expect("reads").expect("is there").transaction
    }

    fn refused(
        source: &SignedLedger,
        id: &TransactionId,
        catalog: &Catalog,
        checkpoint: Option<u64>,
    ) -> String {
        let charters = Charters::new(source.charter().clone());
        let error = refusal(id, (source.ledger(), &charters), catalog, checkpoint);
        error.map_or_else(String::new, |error| format!("{} {}", error.state, error.message))
    }

    #[test]
    fn what_the_ledger_needs_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = filled(folder.path(), |_| ());
        let catalog = Catalog::clone(&source.engine().state().catalog());
        let (schema, row) = (id_at(&source, 1), id_at(&source, 2));
        assert_eq!(refused(&source, &row, &catalog, Some(2)), "");
        let of = |id: &TransactionId, checkpoint| refused(&source, id, &catalog, checkpoint);
        assert!(of(&schema, Some(2)).contains("it changes schema or charter"));
        assert!(of(&TransactionId::default(), Some(2)).starts_with("P0002 no transaction 0000"));
        for (checkpoint, found) in [(None, "at 0"), (Some(1), "at 1")] {
            let refused = of(&row, checkpoint);
            assert!(refused.contains("stands at height 2") && refused.contains(found), "{refused}");
        }
        let mut private = catalog.clone();
        let members = |since| {
            Some(Arc::new(SchemaMembers { number: 1, since, changed: since, organisations: vec![0] }))
        };
        for (since, is_refused) in [(2, true), (3, false)] {
            private.schemas.insert("deal".to_string(), Schema { owner: None, members: members(since) });
            let refused = refused(&source, &row, &private, Some(2));
            assert_eq!(
                refused.contains("has had schemas with members since height 2"),
                is_refused,
                "{refused}"
            );
        }
        source.ledger().redact(2, &BTreeMap::from([(0, 7)])).expect("redacts");
        assert!(of(&row, Some(2)).contains("it is redacted already, by proposal 7"));
        let error = source.ledger().receipt(&row).expect_err("it is gone");
        let told = told(&error).expect("it says so");
        assert!(told.message.contains("is redacted by proposal 7") && told.state == SqlState(*b"55000"));
        assert!(told_of_others().is_none());
    }

    fn told_of_others() -> Option<SqlError> {
        told(&LedgerError::Pruned { height: 1 })
    }

    #[test]
    fn parts_and_what_members_have_signed_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = filled(folder.path(), |_| ());
        let parts = |payload| source.transactions(vec![payload]).remove(0);
        let brought = [
            Payload::Parts { parts: Vec::new() },
            Payload::SchemaOutcomes { certificates: Vec::new() },
            Payload::MovingOutcomes { certificates: Vec::new() },
            Payload::HeldParts { held: Vec::new() },
        ];
        for bytes in brought.map(parts) {
            let why = needed(&bytes, ExecutionVersion::NEWEST).expect("it stays");
            assert!(why.contains("schema"), "{why}");
        }
        assert_eq!(needed(b"no transaction", ExecutionVersion::NEWEST), None);
    }

    #[test]
    fn databases_that_execute_scripts_need_all_blocks() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = filled(folder.path(), |_| ());
        let mut charter = Charter::clone(source.charter());
        charter.execution = ExecutionModel::WhateverThenAgree;
        let charters = Charters::new(Arc::new(charter));
        let catalog = source.engine().state().catalog();
        let error = refusal(&id_at(&source, 2), (source.ledger(), &charters), &catalog, Some(2));
        assert!(error.expect("refused").message.contains("whatever-then-agree"));
    }
}
