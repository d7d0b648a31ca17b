//! What one record says by itself: digests, counts, certificates' signatures.

use crate::error::{Fault, Part, differs, equal};
use crypto::{Digest, Sha256Batch, merkle_root};
use ledger::{Anchor, BlockRecord, BlockSummary, Ended, OutcomeCounts, RedactedTransaction};
use ordering::{CertificateError, CertificateVerifier};
use types::{
    AttestationError, Attested, BlockError, Charters, Receipt, SignedTransaction, TransactionId, encode,
    transaction_leaf, transactions_root_of_leaves,
};

/// What records of one ledger are checked against.
pub(crate) struct ContentRules {
    ledger: Digest,
    /// With the charters of all heights that it is asked about.
    ordering: CertificateVerifier,
}

impl ContentRules {
    pub(crate) fn new(charters: &Charters) -> Result<ContentRules, CertificateError> {
        let (ledger, ordering) = (charters.ledger(), CertificateVerifier::new(charters.clone())?);
        Ok(ContentRules { ledger, ordering })
    }

    /// Checks what proves the block that the ledger begins behind; that its parts fit together, who has read it has checked.
    pub(crate) fn check_anchor(&self, anchor: &Anchor) -> Result<(), Fault> {
        let certified = self.ordering.verify(&anchor.header, &anchor.certificate);
        certified.map_err(|error| (Part::OrderingCertificate, error.to_string()))?;
        let rules = &self.ordering.charters().at(anchor.height()).rules;
        let certified = rules.check_certificate(&anchor.checkpoint);
        certified.map_err(|error| (Part::CheckpointCertificate, error.to_string()))
    }

    /// Checks everything but the clients' signatures. Gives the transactions' ids.
    pub(crate) fn check(
        &self,
        summary: &BlockSummary,
        record: &BlockRecord,
    ) -> Result<Vec<TransactionId>, Fault> {
        self.check_block(summary, record)?;
        self.check_certificates(record)?;
        let ids = SignedTransaction::ids_of(&record.block.transactions);
        self.check_outcome(summary, record, &ids)?;
        Ok(ids)
    }

    /// As [`ContentRules::check`] for a block without transactions and receipts: header, certificates and outcome header. That
    /// these say what the transactions came to a quorum has signed, which [`crate::chain`] holds against them.
    pub(crate) fn check_pruned(&self, summary: &BlockSummary, record: &BlockRecord) -> Result<(), Fault> {
        self.check_header(summary, record)?;
        let (block, attested) = (&record.block.header, &record.block.attested);
        let (expected, found) = (block.attested, attested.digest());
        if expected != found {
            return Err((certificates_part(attested), BlockError::Attested { expected, found }.to_string()));
        }
        let certified = self.ordering.verify(block, &record.certificate);
        certified.map_err(|error| (Part::OrderingCertificate, error.to_string()))?;
        self.check_certificates(record)?;
        let counts = summary.counts;
        let counted = counts.committed + counts.aborted + counts.conflicts + counts.rejected;
        equal(Part::Receipts, "in the record's head a count of", block.transactions, counted)?;
        self.check_outcome_header(summary, record)
    }

    /// As [`ContentRules::check`] for a block of which some transactions are redacted: both roots follow from what is there and from
    /// the hashes of what is not. Gives the ids of those that are there.
    pub(crate) fn check_redacted(
        &self,
        summary: &BlockSummary,
        record: &BlockRecord,
        redacted: &[RedactedTransaction],
    ) -> Result<Vec<TransactionId>, Fault> {
        self.check_pruned(summary, record)?;
        let (header, outcome) = (&record.block.header, &record.outcome);
        let ids = SignedTransaction::ids_of(&record.block.transactions);
        let count = ids.len() + redacted.len();
        equal(Part::Transactions, "a count of", header.transactions as usize, count)?;
        let is_redacted = |index: &u32| redacted.iter().any(|one| one.index == *index);
        let positions = (0..header.transactions).filter(|index| !is_redacted(index));
        let whole = record.block.transactions.iter().zip(&outcome.receipts).zip(&ids).zip(positions);
        let mut leaves: Vec<(u32, &str, Digest, Digest)> = Vec::with_capacity(count);
        for (((bytes, receipt), id), index) in whole {
            let part = Part::Receipt(index);
            equal(part, "one for transaction", *id, receipt.transaction)?;
            let place = |(height, index): (u64, u32)| format!("{height}/{index}");
            let (expected, found) = ((header.height, index), (receipt.height, receipt.index));
            equal(part, "one for height/position", place(expected), place(found))?;
            let contract = SignedTransaction::contract_of(bytes);
            leaves.push((index, contract, transaction_leaf(index, bytes), receipt.leaf()));
        }
        leaves.extend(
            redacted.iter().map(|one| (one.index, one.contract.as_str(), one.leaf, one.receipt_leaf)),
        );
        leaves.sort_unstable_by_key(|(index, ..)| *index);
        let found =
            transactions_root_of_leaves(leaves.iter().map(|(_, contract, leaf, _)| (*contract, *leaf)));
        equal(
            Part::Transactions,
            "with the hashes of what is redacted the root",
            header.transactions_root,
            found,
        )?;
        let receipts: Vec<Digest> = leaves.iter().map(|(.., leaf)| *leaf).collect();
        let (expected, found) = (outcome.header.receipts_root, merkle_root(&receipts));
        equal(Part::Receipts, "with the hashes of what is redacted the root", expected, found)?;
        let (expected, found) = (counts_with(&outcome.receipts, redacted), summary.counts);
        if expected != found {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Err(differs(Part::Receipts, "in the record's head", expected, found));
        }
        Ok(ids)
    }

    fn check_block(&self, summary: &BlockSummary, record: &BlockRecord) -> Result<(), Fault> {
        self.check_header(summary, record)?;
        record.block.check_content().map_err(|error| {
            let part = match error {
                BlockError::Root { .. } => Part::Transactions,
                BlockError::Attested { .. } => certificates_part(&record.block.attested),
                BlockError::Malformed(_) => Part::OutcomeCertificate,
            };
            (part, error.to_string())
        })?;
        let certified = self.ordering.verify_block(&record.block, &record.certificate);
        certified.map_err(|error| (Part::OrderingCertificate, error.to_string()))
    }

    fn check_header(&self, summary: &BlockSummary, record: &BlockRecord) -> Result<(), Fault> {
        let header = &record.block.header;
        equal(Part::Header, "the ledger", self.ledger, header.ledger)?;
        equal(Part::Header, "in the record's head the digest", header.digest(), summary.header_digest)?;
        let charter = &self.ordering.charters().at(header.height).charter;
        let proposer = charter.organisations.get(usize::from(header.proposer));
        if proposer.is_none_or(|proposer| proposer.removed) {
            let expected = format!("of a member, below {}", charter.organisations.len());
            return Err(differs(Part::Header, "a proposer's number", expected, header.proposer));
        }
        let transactions_max = charter.block.transactions_max;
        if header.transactions > transactions_max {
            let expected = format!("{transactions_max} at most");
            return Err(differs(Part::Header, "a count of transactions of", expected, header.transactions));
        }
        Ok(())
    }

    fn check_certificates(&self, record: &BlockRecord) -> Result<(), Fault> {
        let attested = &record.block.attested;
        let fault = |part| move |error: AttestationError| (part, error.to_string());
        if let Some(certificate) = &attested.outcome {
            let rules = &self.ordering.charters().at(certificate.statement.height).rules;
            rules.check_certificate(certificate).map_err(fault(Part::OutcomeCertificate))?;
        }
        if let Some(certificate) = &attested.checkpoint {
            let rules = &self.ordering.charters().at(certificate.statement.height).rules;
            rules.check_certificate(certificate).map_err(fault(Part::CheckpointCertificate))?;
        }
        Ok(())
    }

    fn check_outcome(
        &self,
        summary: &BlockSummary,
        record: &BlockRecord,
        ids: &[TransactionId],
    ) -> Result<(), Fault> {
        let (block, outcome) = (&record.block.header, &record.outcome);
        equal(Part::Receipts, "a count of", ids.len(), outcome.receipts.len())?;
        for ((receipt, id), index) in outcome.receipts.iter().zip(ids).zip(0u32..) {
            let part = Part::Receipt(index);
            equal(part, "one for transaction", *id, receipt.transaction)?;
            let place = |(height, index): (u64, u32)| format!("{height}/{index}");
            let (expected, found) = ((block.height, index), (receipt.height, receipt.index));
            equal(part, "one for height/position", place(expected), place(found))?;
        }
        equal(Part::Receipts, "the root", receipts_root(&outcome.receipts), outcome.header.receipts_root)?;
        let (expected, found) = (OutcomeCounts::of(&outcome.receipts), summary.counts);
        if expected != found {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Err(differs(Part::Receipts, "in the record's head", expected, found));
        }
        self.check_outcome_header(summary, record)
    }

    fn check_outcome_header(&self, summary: &BlockSummary, record: &BlockRecord) -> Result<(), Fault> {
        let (block, outcome) = (&record.block.header, &record.outcome.header);
        equal(Part::OutcomeHeader, "the ledger", self.ledger, outcome.ledger)?;
        equal(Part::OutcomeHeader, "the height", block.height, outcome.height)?;
        equal(Part::OutcomeHeader, "the block", summary.header_digest, outcome.block)
    }
}

/// Which of the certificates that a block carries is named where they are not those of the header.
fn certificates_part(attested: &Attested) -> Part {
    if attested.checkpoint.is_some() { Part::CheckpointCertificate } else { Part::OutcomeCertificate }
}

/// How the transactions of a block ended, those among them that are redacted.
fn counts_with(receipts: &[Receipt], redacted: &[RedactedTransaction]) -> OutcomeCounts {
    let mut counts = OutcomeCounts::of(receipts);
    for one in redacted {
        match one.ended {
            Ended::Committed => counts.committed += 1,
            Ended::Aborted => counts.aborted += 1,
            Ended::Conflict => counts.conflicts += 1,
            Ended::Rejected | Ended::Duplicate => counts.rejected += 1,
        }
    }
    counts
}

fn receipts_root(receipts: &[Receipt]) -> Digest {
    let mut leaves = Sha256Batch::new();
    receipts.iter().for_each(|receipt| leaves.push_leaf(&encode(receipt)));
    merkle_root(&leaves.finish())
}
