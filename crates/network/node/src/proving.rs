//! Proofs of receipts, made from what the ledger has: any client can check them with the charter alone.

use crate::redaction;
use crypto::Digest;
use ledger::{KeptTransaction, Ledger, LedgerError};
use proofs::{HEADERS_MAX, ReceiptProof};
use types::{OutcomeCertificate, OutcomeHeader, SqlError, SqlState, TransactionId};

/// The object is not in the state that it must be in.
const NOT_CERTIFIED: SqlState = SqlState(*b"55000");

/// Proves how a transaction has ended. `covering` gives a certificate that stands in no block yet, of a height or a later
/// one.
///
/// # Errors
/// There is no receipt, or it is redacted, or its outcome is not certified yet.
pub fn receipt_proof(
    ledger: &Ledger,
    id: &TransactionId,
    covering: impl Fn(u64) -> Option<OutcomeCertificate>,
) -> Result<ReceiptProof, SqlError> {
    let Some((height, index)) = ledger.locate(id).map_err(unreadable)? else {
        let message = format!("no receipt of transaction {id} here: it is not final, or was never sent");
        let error = SqlError::new(SqlState::NO_DATA_FOUND, message);
        return Err(match (ledger.first_height(), ledger.payloads_from()) {
            (1, 1) => error,
            (first, from) if from > first => error.hint(format!(
                "This node prunes and has receipts from height {from} on: ask one that keeps all for older ones."
            )),
            (first, _) => error.hint(format!(
                "This node joined from a checkpoint and has blocks from height {first} on: ask another one for older \
                 receipts."
            )),
        });
    };
    let tip = ledger.tip().map_or(0, |(height, _)| height);
    let certificate = match certificate_in_block(ledger, height, tip).map_err(unreadable)? {
        Some(certificate) => Some(certificate),
        // One of blocks that this node does not have yet chains headers that it does not have.
        None => covering(height).filter(|one| (height..=tip).contains(&one.statement.height)),
    };
    let Some(certificate) = certificate else {
        let message = format!("the outcome of height {height} is not certified yet");
        return Err(SqlError::new(NOT_CERTIFIED, message)
            .hint("Ask again in a moment: a quorum of organisations has to attest it."));
    };
    let between = certificate.statement.height - height;
    if between > HEADERS_MAX as u64 {
        let message = format!(
            "the proof would have {between} outcome headers, the limit is {HEADERS_MAX} (HEADERS_MAX)"
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let headers: Result<Vec<OutcomeHeader>, LedgerError> = match between {
        0 => Ok(Vec::new()),
        _ => {
            let summaries = ledger.summaries(height..=certificate.statement.height - 1);
            summaries.map(|summary| summary.map(|summary| summary.outcome)).collect()
        }
    };
    let founding = certificate.statement.ledger;
    let handovers = match certificate.statement.charters == founding {
        true => Vec::new(),
        false => ledger.handovers(founding).map_err(unreadable)?,
    };
    let kept = ledger.transactions(height).map_err(unreadable)?.unwrap_or_default();
    let leaves: Vec<Digest> = kept.iter().map(KeptTransaction::receipt_leaf).collect();
    let receipt = ledger.receipt_at(height, index).map_err(told)?;
    let headers = headers.map_err(unreadable)?;
    let proof = receipt.and_then(|receipt| {
        ReceiptProof::of_leaves(&receipt, (leaves.as_slice(), index), headers, certificate)
    });
    let proof = proof.map(|proof| proof.with_handovers(handovers));
    proof.ok_or_else(|| {
        SqlError::new(SqlState::INTERNAL_ERROR, format!("height {height} has no receipt {index}"))
    })
}

/// The certificate in the first block that certifies the outcome of `height`, or of a later one.
fn certificate_in_block(
    ledger: &Ledger,
    height: u64,
    tip: u64,
) -> Result<Option<OutcomeCertificate>, LedgerError> {
    let certifies = |at: u64| -> Result<bool, LedgerError> {
        Ok(ledger.header(at)?.is_some_and(|header| header.certified_height >= height))
    };
    // Certified heights never decrease.
    let (mut low, mut high) = (height + 1, tip + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if certifies(middle)? { high = middle } else { low = middle + 1 }
    }
    if low > tip {
        return Ok(None);
    }
    Ok(ledger.certificates(low)?.and_then(|(attested, _)| attested.outcome))
}

fn told(error: LedgerError) -> SqlError {
    redaction::told(&error).unwrap_or_else(|| unreadable(error))
}

fn unreadable(error: LedgerError) -> SqlError {
    tracing::error!(%error, "the ledger cannot be read");
    SqlError::new(SqlState::INTERNAL_ERROR, "the ledger cannot be read; the node's log says more")
}
