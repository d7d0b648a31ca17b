//! What is left of a block of which transactions are redacted, and its encoding.

use crate::transaction_index::TransactionLocation;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::Digest;
use std::collections::BTreeMap;
use types::{
    Attested, Block, BlockDigest, Outcome, Receipt, RejectReason, SignedTransaction, TransactionId,
    decode_exactly, encode, transaction_leaf,
};

/// How a redacted transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Ended {
    /// Its effects are in the state.
    Committed,
    /// The contract or a constraint said no.
    Aborted,
    /// Given up because of a conflict.
    Conflict,
    /// Not executed.
    Rejected,
    /// Not executed, because it stood in the ledger already.
    Duplicate,
}

impl Ended {
    fn of(outcome: &Outcome) -> Ended {
        match outcome {
            Outcome::Committed(_) => Ended::Committed,
            Outcome::Aborted(_) => Ended::Aborted,
            Outcome::Conflict => Ended::Conflict,
            Outcome::Rejected(RejectReason::Duplicate { .. }) => Ended::Duplicate,
            Outcome::Rejected(_) => Ended::Rejected,
        }
    }

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Committed => "committed",
            Ended::Aborted | Ended::Conflict => "aborted",
            Ended::Rejected | Ended::Duplicate => "rejected",
        }
    }
}

/// What is left of a transaction whose content is gone, and of its receipt.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct RedactedTransaction {
    /// Its position in the block.
    pub index: u32,
    /// Its id.
    pub transaction: TransactionId,
    /// The procedure that it called, under which it is grouped in the transactions' root; empty where it called none.
    pub contract: String,
    /// Its leaf there.
    pub leaf: Digest,
    /// Leaf of its receipt in the receipts' root.
    pub receipt_leaf: Digest,
    /// How it ended.
    pub ended: Ended,
    /// The proposal to which the members agreed.
    pub proposal: u64,
}

impl RedactedTransaction {
    fn of(bytes: &[u8], receipt: &Receipt, proposal: u64) -> RedactedTransaction {
        RedactedTransaction {
            index: receipt.index,
            transaction: receipt.transaction,
            contract: SignedTransaction::contract_of(bytes).to_string(),
            leaf: transaction_leaf(receipt.index, bytes),
            receipt_leaf: receipt.leaf(),
            ended: Ended::of(&receipt.outcome),
            proposal,
        }
    }

    pub(crate) fn location(&self, height: u64) -> Option<TransactionLocation> {
        let rejected = match self.ended {
            Ended::Duplicate => return None,
            Ended::Rejected => true,
            Ended::Committed | Ended::Aborted | Ended::Conflict => false,
        };
        Some(TransactionLocation::at(height, self.index, rejected))
    }
}

/// A transaction of a block with its receipt, or what is left of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeptTransaction {
    /// Everything.
    Whole(Bytes, Receipt),
    /// Its hash and place.
    Redacted(RedactedTransaction),
}

impl KeptTransaction {
    /// Its id.
    pub fn id(&self) -> TransactionId {
        match self {
            KeptTransaction::Whole(_, receipt) => receipt.transaction,
            KeptTransaction::Redacted(redacted) => redacted.transaction,
        }
    }

    /// Leaf of its receipt in the receipts' root.
    pub fn receipt_leaf(&self) -> Digest {
        match self {
            KeptTransaction::Whole(_, receipt) => receipt.leaf(),
            KeptTransaction::Redacted(redacted) => redacted.receipt_leaf,
        }
    }
}

/// First part of a redacted record. Of transactions that are redacted nothing is here.
#[derive(BorshSerialize, BorshDeserialize)]
struct RedactedBlock {
    attested: Attested,
    transactions: Vec<Option<Vec<u8>>>,
}

/// Its last part.
#[derive(BorshSerialize, BorshDeserialize)]
struct RedactedOutcome {
    receipts: Vec<KeptReceipt>,
    digest: BlockDigest,
}

#[derive(BorshSerialize, BorshDeserialize)]
enum KeptReceipt {
    Whole(Receipt),
    Redacted(RedactedTransaction),
}

/// The parts of a redacted record.
pub(crate) struct KeptParts {
    pub(crate) attested: Attested,
    pub(crate) transactions: Vec<KeptTransaction>,
    pub(crate) digest: BlockDigest,
}

impl KeptParts {
    pub(crate) fn of_whole(block: Block, receipts: Vec<Receipt>, digest: BlockDigest) -> KeptParts {
        let both = block.transactions.into_iter().zip(receipts);
        let transactions = both.map(|(bytes, receipt)| KeptTransaction::Whole(bytes, receipt)).collect();
        KeptParts { attested: block.attested, transactions, digest }
    }

    /// Takes the content of some transactions away, each by a proposal. Says whether any had it still.
    pub(crate) fn redact(&mut self, proposals: &BTreeMap<u32, u64>) -> bool {
        let mut any = false;
        for kept in &mut self.transactions {
            let KeptTransaction::Whole(bytes, receipt) = &*kept else { continue };
            if let Some(proposal) = proposals.get(&receipt.index) {
                *kept = KeptTransaction::Redacted(RedactedTransaction::of(bytes, receipt, *proposal));
                any = true;
            }
        }
        any
    }

    /// First and last part of the record.
    pub(crate) fn to_bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let transactions = self.transactions.iter().map(|kept| match kept {
            KeptTransaction::Whole(bytes, _) => Some(bytes.to_vec()),
            KeptTransaction::Redacted(_) => None,
        });
        let receipts = self.transactions.iter().map(|kept| match kept {
            KeptTransaction::Whole(_, receipt) => KeptReceipt::Whole(receipt.clone()),
            KeptTransaction::Redacted(redacted) => KeptReceipt::Redacted(redacted.clone()),
        });
        let block = RedactedBlock { attested: self.attested.clone(), transactions: transactions.collect() };
        let outcome = RedactedOutcome { receipts: receipts.collect(), digest: self.digest.clone() };
        (encode(&block), encode(&outcome))
    }

    /// Reads those of a block with so many transactions; what belongs together must be there together, at its place.
    ///
    /// # Errors
    /// What was expected and what came.
    pub(crate) fn of_bytes(transactions: u32, (block, outcome): (&[u8], &[u8])) -> Result<KeptParts, String> {
        let block: RedactedBlock = decode_exactly(block).map_err(malformed)?;
        let outcome: RedactedOutcome = decode_exactly(outcome).map_err(malformed)?;
        let expected = transactions as usize;
        if block.transactions.len() != expected || outcome.receipts.len() != expected {
            let found = (block.transactions.len(), outcome.receipts.len());
            return Err(format!(
                "expected {expected} transactions and receipts, redacted or not, found {} and {}",
                found.0, found.1
            ));
        }
        let both = block.transactions.into_iter().zip(outcome.receipts).zip(0u32..);
        let kept = both.map(|((bytes, receipt), index)| match (bytes, receipt) {
            (Some(bytes), KeptReceipt::Whole(receipt)) => Ok(KeptTransaction::Whole(bytes.into(), receipt)),
            (None, KeptReceipt::Redacted(redacted)) if redacted.index == index => {
                Ok(KeptTransaction::Redacted(redacted))
            }
            _ => Err(format!(
                "expected transaction {index} with its receipt, or that it is redacted, and found neither"
            )),
        });
        let transactions = kept.collect::<Result<_, _>>()?;
        Ok(KeptParts { attested: block.attested, transactions, digest: outcome.digest })
    }
}

fn malformed(error: std::io::Error) -> String {
    format!("expected what is kept of a redacted block: {error}")
}

/// Where the transactions of a redacted record stand, by what its last part has.
///
/// # Errors
/// What was expected and what came.
pub(crate) fn decode_kept_places(
    height: u64,
    outcome: &[u8],
) -> Result<Vec<(TransactionId, Option<TransactionLocation>)>, String> {
    let outcome: RedactedOutcome = decode_exactly(outcome).map_err(malformed)?;
    let locate = |receipt: &KeptReceipt| match receipt {
        KeptReceipt::Whole(receipt) => (receipt.transaction, TransactionLocation::of(receipt)),
        KeptReceipt::Redacted(redacted) => (redacted.transaction, redacted.location(height)),
    };
    Ok(outcome.receipts.iter().map(locate).collect())
}

/// The certificates in a redacted record's first part.
///
/// # Errors
/// What was expected and what came.
pub(crate) fn decode_kept_attested(bytes: &[u8]) -> Result<Attested, String> {
    let block: RedactedBlock = decode_exactly(bytes).map_err(malformed)?;
    Ok(block.attested)
}
