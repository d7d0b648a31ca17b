//! A block of the ledger, as the schemas of this organisation see it.

use concurrency::parts::LedgerPosition;
use engine::{VerifiedBlock, VerifiedTransaction};
use ledger::BlockRecord;
use std::sync::{Arc, OnceLock};
use types::{
    AttestingMembers, BlockHeader, CertificateRules, Charter, Outcome, PartMembers, Payload, Receipt,
    SchemaCertificate, SignedTransaction,
};

/// What a schema's members must know of a block.
pub(crate) struct BlockOfParts {
    pub(super) header: BlockHeader,
    /// The transactions with parts that the ledger has admitted.
    pub(super) transactions: Vec<OrderedParts>,
    /// The outcomes of schemas that the ledger has taken.
    pub(super) certificates: Vec<OrderedCertificate>,
}

/// A transaction with parts, at its place in the ledger.
#[derive(Clone)]
pub(super) struct OrderedParts {
    pub(super) position: LedgerPosition,
    pub(super) transaction: Arc<VerifiedTransaction>,
    /// The members of its schemas there, whose votes count on it; up to execution version 5 nobody's where it has one part.
    pub(super) members: Arc<[PartMembers]>,
}

/// A schema's outcome in the ledger. Whoever has signed the transaction that brought it may have made it up.
pub(super) struct OrderedCertificate {
    pub(super) certificate: SchemaCertificate,
    /// Position of its transaction in the block, and its own in the transaction.
    pub(super) place: (u32, usize),
    /// The schema's members there, from execution version 5 on.
    members: Option<AttestingMembers>,
    /// Looked at once, by the first schema that it concerns.
    is_signed: OnceLock<bool>,
}

impl OrderedParts {
    /// The transaction has a part in this schema.
    pub(super) fn concerns(&self, schema: &str) -> bool {
        match self.transaction.payload.as_ref() {
            Payload::Parts { parts } => parts.iter().any(|part| part.schema == schema),
            _ => false,
        }
    }

    /// It has parts in others, too.
    pub(super) fn is_crossing(&self) -> bool {
        matches!(self.transaction.payload.as_ref(), Payload::Parts { parts } if parts.len() > 1)
    }
}

impl OrderedCertificate {
    pub(super) fn new(
        certificate: SchemaCertificate,
        place: (u32, usize),
        members: Option<AttestingMembers>,
    ) -> OrderedCertificate {
        OrderedCertificate { certificate, place, members, is_signed: OnceLock::new() }
    }

    /// Whether a quorum of those has signed it who were the schema's members, as the ledger says in a block of this height.
    pub(super) fn counts(&self, charter_at: &dyn Fn(u64) -> Arc<Charter>, height: u64) -> bool {
        let were_members = |members: &AttestingMembers| {
            members.were_at(self.certificate.statement.height, height)
                && self.certificate.check_count(&members.organisations).is_ok()
        };
        self.members.as_ref().is_some_and(were_members) && self.is_signed(charter_at, height)
    }

    /// Whether everybody in it has signed it, with the keys of its height.
    pub(super) fn is_signed(&self, charter_at: &dyn Fn(u64) -> Arc<Charter>, height: u64) -> bool {
        *self.is_signed.get_or_init(|| {
            let of = self.certificate.statement.height;
            let rules = || CertificateRules::new(&charter_at(of));
            of <= height && self.certificate.check_signed(&rules()).is_ok()
        })
    }
}

impl BlockOfParts {
    fn empty(header: BlockHeader) -> BlockOfParts {
        BlockOfParts { header, transactions: Vec::new(), certificates: Vec::new() }
    }

    /// Of a block that was executed.
    pub(super) fn of(block: &VerifiedBlock, receipts: &[Receipt]) -> BlockOfParts {
        let mut found = BlockOfParts::empty(block.header.clone());
        for (judged, receipt) in block.transactions.iter().zip(receipts) {
            if let Ok(transaction) = judged {
                found.take(receipt, || Some(transaction.clone()));
            }
        }
        found
    }

    /// Of a block that is recorded. What it came to is certified, so its signatures were verified.
    pub(super) fn recorded(record: &BlockRecord) -> BlockOfParts {
        let mut found = BlockOfParts::empty(record.block.header.clone());
        for (bytes, receipt) in record.block.transactions.iter().zip(&record.outcome.receipts) {
            if SignedTransaction::has_parts(bytes) || SignedTransaction::has_schema_outcomes(bytes) {
                let read = || Some(Arc::new(SignedTransaction::from_bytes(bytes).ok()?.into()));
                found.take(receipt, read);
            }
        }
        found
    }

    /// Takes in a transaction that the ledger has admitted.
    fn take(&mut self, receipt: &Receipt, transaction: impl FnOnce() -> Option<Arc<VerifiedTransaction>>) {
        let Outcome::Committed(results) = &receipt.outcome else { return };
        let Some(transaction) = transaction() else { return };
        match transaction.payload.as_ref() {
            Payload::Parts { .. } => {
                let position = LedgerPosition { height: receipt.height, index: receipt.index };
                let members = PartMembers::of_results(results).into();
                self.transactions.push(OrderedParts { position, transaction, members });
            }
            Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
                let members = AttestingMembers::of_results(results);
                let ordered = certificates.iter().enumerate().map(|(number, certificate)| {
                    let of = |members: &&AttestingMembers| members.number == certificate.statement.schema;
                    let members = members.iter().find(of).cloned();
                    OrderedCertificate::new(certificate.clone(), (receipt.index, number), members)
                });
                self.certificates.extend(ordered);
            }
            _ => {}
        }
    }
}
