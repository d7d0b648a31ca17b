//! Proofs for outsiders: a member shows one receipt or one row of a schema, and nothing else of it.
//!
//! ```text
//!  receipt or row ─ salt, path ─▶ what its block came to ─ chain ─▶ certificate of a quorum of the members, in the ledger
//!                                                                      └─ receipt of the transaction that brought it: who they are
//! ```

use super::held::no_member;
use super::opened::OpenedBlock;
use super::opened_store::{CertifiedAt, OpenedBlocks};
use super::schemas::{PrivateSchemas, Schema};
use crate::{NodeError, proving};
use ledger::LedgerError;
use proofs::{HEADERS_MAX, SchemaEvidence, SchemaReceiptProof, SchemaRowProof};
use state::RowId;
use types::{
    Key, OutcomeCertificate, Payload, Receipt, Row, SchemaCertificate, SignedTransaction, SqlError, SqlState,
    Table, TransactionId, decode_exactly, encode,
};

/// The object is not in the state that it must be in.
const NOT_CERTIFIED: SqlState = SqlState(*b"55000");

/// Windows within which a transaction ends, whatever it waits for: one, and some room for changes of the schema, which stand alone.
const WAITED_WINDOWS: u64 = 8;

/// What leads from a block of a schema to a certificate that stands in the ledger.
struct Certified {
    blocks: OpenedBlocks,
    at: CertifiedAt,
}

impl PrivateSchemas {
    /// Proves how a transaction has ended in a schema. `covering`: a certificate of the ledger's outcomes that stands in no block yet.
    ///
    /// # Errors
    /// `42501` where this organisation is no member; `P0002` where the transaction has no part there; `55000` where it has not ended,
    /// or that is not certified yet.
    pub(crate) fn receipt_proof(
        &self,
        (id, schema): (&TransactionId, &str),
        covering: impl Fn(u64) -> Option<OutcomeCertificate>,
    ) -> Result<SchemaReceiptProof, SqlError> {
        let members = self.members(schema).ok_or_else(|| no_member(schema))?;
        let placed = self.placed(id, schema)?.filter(|placed| *placed > members.since);
        let placed = placed.ok_or_else(|| {
            let message = format!("no transaction {id} with a part in schema \"{schema}\" here");
            SqlError::new(SqlState::NO_DATA_FOUND, message)
        })?;
        // It ends in the block that it stands in, or soon after what it waits for was decided.
        let charters = &self.node.charters;
        let window = charters.at(placed).window_blocks.max(charters.newest().window_blocks);
        let to = placed + WAITED_WINDOWS * u64::from(window);
        let behind = self.opened(members.number, |schema| schema.opened.blocks(placed, to))?;
        let opened = behind.read().find_map(|block| match block {
            Ok(block) => block.receipt_of(id).is_some().then_some(Ok(block)),
            Err(error) => Some(Err(error)),
        });
        let Some(opened) = opened.transpose().map_err(unreadable)? else {
            let message = format!("transaction {id} has not ended in schema \"{schema}\" yet");
            return Err(SqlError::new(NOT_CERTIFIED, message).hint(
                "Ask again in a moment. Of what was executed with execution version 4 there are no proofs.",
            ));
        };
        let shown = opened.receipt_of(id).ok_or_else(damaged)?;
        let receipt: Receipt = decode_exactly(shown.content).map_err(|_| damaged())?;
        let (salt, path) = (shown.salt, shown.path);
        let evidence = self.evidence((members.number, &opened), (salt, path), covering)?;
        let proof = SchemaReceiptProof { receipt, evidence };
        // Files may be damaged.
        proof.verify(&self.node.charters.founding()).map(|_| proof).map_err(|error| wrong(&error))
    }

    /// Proves how a block has left a row that has written it last. `table`: as this node's catalog has it.
    ///
    /// # Errors
    /// `42501` where this organisation is no member; `P0002` where no block has ever written such a row; `55000` where that is not
    /// certified yet.
    pub(crate) fn row_proof(
        &self,
        (schema, table): (&str, &Table),
        key: &Key,
        covering: impl Fn(u64) -> Option<OutcomeCertificate>,
    ) -> Result<SchemaRowProof, SqlError> {
        let members = self.members(schema).ok_or_else(|| no_member(schema))?;
        let row = RowId { table: table.id, key: key.clone() };
        let (blocks, definitions) = self.opened(members.number, |schema| {
            let blocks = schema.opened.written(&row).map(|height| schema.opened.blocks(height, height));
            (blocks, schema.executor.definitions_of(table.id))
        })?;
        let none = || {
            let message =
                format!("no block has written a row of table \"{}\" under that key", table.object_name());
            SqlError::new(SqlState::NO_DATA_FOUND, message)
                .hint("Of what was executed with execution version 4, and of rows that never were, there are no proofs.")
        };
        let opened =
            blocks.ok_or_else(none)?.read().next().transpose().map_err(unreadable)?.ok_or_else(damaged)?;
        let begins = definitions.iter().map(|definition| [&definition.0, encode(key).as_slice()].concat());
        let (definition, shown) = definitions
            .iter()
            .zip(begins)
            .find_map(|(definition, begin)| Some((definition, opened.row_of(&begin)?)))
            .ok_or_else(damaged)?;
        let values = shown.content.get(32 + encode(key).len()..).ok_or_else(damaged)?;
        let row: Option<Row> = decode_exactly(values).map_err(|_| damaged())?;
        let table = self.opened(members.number, |schema| schema.executor.definition(definition))?;
        let table = Table::clone(&*table.ok_or_else(damaged)?);
        let (salt, path) = (shown.salt, shown.path);
        let evidence = self.evidence((members.number, &opened), (salt, path), covering)?;
        let proof = SchemaRowProof { table, key: key.clone(), row, evidence };
        proof.verify(&self.node.charters.founding()).map(|_| proof).map_err(|error| wrong(&error))
    }

    /// Whether this organisation is a member of a schema.
    pub(crate) fn is_member(&self, schema: &str) -> bool {
        self.members(schema).is_some()
    }

    /// The height of the block in which a transaction with a part in a schema stands, if the ledger has admitted it.
    fn placed(&self, id: &TransactionId, schema: &str) -> Result<Option<u64>, SqlError> {
        let ledger = &self.node.ledger;
        let Some((height, index)) = ledger.locate(id).map_err(ledger_unreadable)? else { return Ok(None) };
        let Some(signed) = self.transaction(height, index)? else { return Ok(None) };
        let has_part = match &signed.transaction.payload {
            Payload::Parts { parts } => parts.iter().any(|part| part.schema == schema),
            _ => false,
        };
        Ok(has_part.then_some(height))
    }

    fn transaction(&self, height: u64, index: u32) -> Result<Option<SignedTransaction>, SqlError> {
        let block = self.node.ledger.block(height).map_err(ledger_unreadable)?;
        let bytes = block.as_ref().and_then(|(block, _)| block.transactions.get(index as usize));
        Ok(bytes.and_then(|bytes| SignedTransaction::from_bytes(bytes).ok()))
    }

    /// Asks the schema of a number something.
    fn opened<T>(&self, number: u32, ask: impl FnOnce(&Schema) -> T) -> Result<T, SqlError> {
        let state = self.state.lock();
        state.schemas.get(&number).map(ask).ok_or_else(|| {
            SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "this node's organisation is no member of it any more",
            )
        })
    }

    /// What leads from a leaf of a block to what members have attested, and to who they are.
    fn evidence(
        &self,
        (number, opened): (u32, &OpenedBlock),
        (salt, path): (crypto::Digest, proofs::Path),
        covering: impl Fn(u64) -> Option<OutcomeCertificate>,
    ) -> Result<SchemaEvidence, SqlError> {
        let (height, tip) = (opened.outcome.height, self.tip());
        let found = self.opened(number, |schema| {
            // The schema executes blocks before the ledger has them.
            let at = schema.opened.covering(height).filter(|at| at.block <= tip)?;
            Some(Certified { blocks: schema.opened.blocks(height, at.height), at })
        })?;
        let Some(Certified { blocks, at }) = found else {
            self.agreeing.lock().ask_for((number, height));
            let message = format!("what block {height} came to in the schema is not certified yet");
            return Err(SqlError::new(NOT_CERTIFIED, message)
                .hint("Ask again in a moment: a quorum of its members has to attest it, and the ledger to take that in."));
        };
        let blocks = blocks.outcomes().map_err(unreadable)?;
        if blocks.len() > HEADERS_MAX {
            let message = format!(
                "the proof would have {} blocks, the limit is {HEADERS_MAX} (HEADERS_MAX)",
                blocks.len()
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let signed = self.transaction(at.block, at.index)?.ok_or_else(damaged)?;
        let members = proving::receipt_proof(&self.node.ledger, &signed.transaction.id(), covering)?;
        let certificate = certificate_of(signed, at.number as usize).ok_or_else(damaged)?;
        Ok(SchemaEvidence { salt, path, blocks, certificate, members })
    }
}

/// The certificate of a number in the transaction that brought it.
fn certificate_of(signed: SignedTransaction, number: usize) -> Option<SchemaCertificate> {
    match signed.transaction.payload {
        Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
            certificates.into_iter().nth(number)
        }
        _ => None,
    }
}

fn damaged() -> SqlError {
    let message =
        "what this node keeps for proofs of the schema is damaged; start the node again, it makes it anew";
    SqlError::new(SqlState::INTERNAL_ERROR, message)
}

fn wrong(error: &proofs::ProofError) -> SqlError {
    tracing::error!(%error, "a proof of what happened in a schema proves nothing");
    damaged()
}

fn unreadable(error: NodeError) -> SqlError {
    tracing::error!(%error, "what is kept for proofs of a schema cannot be read");
    damaged()
}

fn ledger_unreadable(error: LedgerError) -> SqlError {
    tracing::error!(%error, "the ledger cannot be read");
    SqlError::new(SqlState::INTERNAL_ERROR, "the ledger cannot be read; the node's log says more")
}

#[cfg(test)]
mod tests {
    use super::super::going_on::{executed_ahead, written_row};
    use super::*;

    #[test]
    fn a_certificate_in_a_block_that_the_ledger_does_not_have_yet_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let (private, table, key) = written_row(folder.path());
        let ask = || private.row_proof(("deal", &table), &key, |_| None).map_err(|error| error.state);
        assert_eq!(ask().err(), Some(NOT_CERTIFIED), "no certificate");
        executed_ahead(&private);
        assert_eq!(
            ask().err(),
            Some(NOT_CERTIFIED),
            "it stands in a block that is executed and not recorded"
        );
    }
}
