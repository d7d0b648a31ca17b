//! What a block's certificate says where a topic orders: which records the block is made of, and where the next one begins.
//!
//! Offsets are the brokers' word and nobody's signature: they say where a node goes on reading, and prove nothing.

use super::record::{Statement, content, digests};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::{Digest, PublicKey, SecretKey, Signature, SignedMessage, verify_batch};
use types::{Attested, Block, BlockHeader};

/// A record of which the block has something.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Where it stands in the topic.
    pub offset: u64,
    /// What was signed.
    pub statement: Statement,
    /// By the member's node.
    pub signature: Signature,
    /// How many of its transactions stand in the block.
    pub kept: u32,
    /// The others, by position and digest; none where the block has none of its transactions.
    pub left_out: Vec<(u32, Digest)>,
}

/// What a certificate has.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Proof {
    /// In the order of the topic.
    pub parts: Vec<Part>,
    /// The offset from which on records make the next block.
    pub next: u64,
}

/// Why a proof is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProofError {
    #[error("expected at least one record, found none")]
    Empty,
    #[error(
        "expected record {part} of the certificate behind the one before and before offset {next}, found offset {offset}"
    )]
    Order { part: usize, offset: u64, next: u64 },
    #[error(
        "record {part} of the certificate has {transactions} transactions: expected {kept} in the block and the others left out"
    )]
    Counts { part: usize, transactions: u32, kept: u32 },
    #[error(
        "record {part} of the certificate was offered for block {offered}: expected {height} or below, and this very block where it only asks for the cut"
    )]
    Height { part: usize, offered: u64, height: u64 },
    #[error("expected records with {expected} transactions of the block, found {found}")]
    Transactions { expected: u32, found: u64 },
    #[error(
        "expected the last record to be of organisation {expected}, which the header names, found {found}"
    )]
    Proposer { expected: u16, found: u16 },
    #[error(
        "record {part} of the certificate is not signed by organisation {member} of the charter, which is said to have offered it"
    )]
    Signature { part: usize, member: u16 },
    #[error(
        "the transactions of record {part} of the certificate are not those that organisation {member} has signed"
    )]
    Content { part: usize, member: u16 },
}

impl Proof {
    /// Where the last record stands, and who has signed it how: what a node looks for in the topic when it starts.
    pub(crate) fn last(&self) -> Option<(u64, Signature)> {
        self.parts.last().map(|part| (part.offset, part.signature))
    }

    /// Checks everything that needs no transactions: members have signed these records, and they fit the header. `keys` by
    /// position in the charter; none of those that have left.
    pub(crate) fn check(&self, header: &BlockHeader, keys: &[Option<PublicKey>]) -> Result<(), ProofError> {
        let last = self.parts.last().ok_or(ProofError::Empty)?;
        let (expected, found) = (header.proposer, last.statement.member);
        if expected != found {
            return Err(ProofError::Proposer { expected, found });
        }
        let (mut from, nothing) = (0, Attested::default().digest());
        for (part, Part { offset, statement, kept, left_out, .. }) in self.parts.iter().enumerate() {
            if *offset < from || *offset >= self.next {
                return Err(ProofError::Order { part, offset: *offset, next: self.next });
            }
            from = offset + 1;
            let (offered, height) = (statement.height, header.height);
            let only_cuts = *kept == 0 && statement.attested == nothing;
            if offered > height || only_cuts && (offered != height || !statement.cut) {
                return Err(ProofError::Height { part, offered, height });
            }
            let (transactions, left) = (statement.transactions, left_out.len() as u64);
            let fits = match kept {
                0 => left == 0,
                _ => u64::from(*kept) + left == u64::from(transactions),
            };
            let positions = left_out.iter().map(|(position, _)| *position);
            let rise = positions.clone().zip(positions.clone().skip(1)).all(|(one, next)| one < next);
            if !fits || !rise || positions.clone().any(|position| position >= transactions) {
                return Err(ProofError::Counts { part, transactions, kept: *kept });
            }
        }
        let found = self.parts.iter().map(|part| u64::from(part.kept)).sum();
        if found != u64::from(header.transactions) {
            return Err(ProofError::Transactions { expected: header.transactions, found });
        }
        self.check_signatures(&header.ledger, keys)
    }

    fn check_signatures(&self, ledger: &Digest, keys: &[Option<PublicKey>]) -> Result<(), ProofError> {
        let wrong = |part: usize| ProofError::Signature { part, member: self.parts[part].statement.member };
        let messages: Vec<Vec<u8>> = self.parts.iter().map(|part| part.statement.message(ledger)).collect();
        let mut signed = Vec::with_capacity(self.parts.len());
        for (position, (part, message)) in self.parts.iter().zip(&messages).enumerate() {
            let key = keys.get(usize::from(part.statement.member)).copied().flatten();
            let key = key.ok_or_else(|| wrong(position))?;
            signed.push(SignedMessage { key, signature: part.signature, message });
        }
        match verify_batch(&signed).iter().position(|good| !good) {
            Some(part) => Err(wrong(part)),
            None => Ok(()),
        }
    }

    /// Checks, behind [`Proof::check`], that the block's transactions are those that members have signed.
    pub(crate) fn check_content(&self, block: &Block) -> Result<(), ProofError> {
        let mut rest: &[Bytes] = &block.transactions;
        for (position, part) in self.parts.iter().enumerate().filter(|(_, part)| part.kept > 0) {
            let wrong = ProofError::Content { part: position, member: part.statement.member };
            let Some((kept, others)) = rest.split_at_checked(part.kept as usize) else { return Err(wrong) };
            rest = others;
            let (mut kept, mut left_out) = (digests(kept).into_iter(), part.left_out.iter().peekable());
            let all: Vec<Digest> = (0..part.statement.transactions)
                .filter_map(|at| match left_out.next_if(|(position, _)| *position == at) {
                    Some((_, digest)) => Some(*digest),
                    None => kept.next(),
                })
                .collect();
            if content(&all) != part.statement.content {
                return Err(wrong);
            }
        }
        Ok(())
    }
}

/// What proves a block that one member has offered whole, at an offset of its height: for ledgers that no topic has ordered.
pub(crate) fn one_record(block: &Block, key: &SecretKey) -> Proof {
    let header = &block.header;
    let statement = Statement {
        member: header.proposer,
        height: header.height,
        cut: true,
        attested: header.attested,
        transactions: header.transactions,
        content: content(&digests(&block.transactions)),
    };
    let signature = key.sign(&statement.message(&header.ledger));
    let part =
        Part { offset: header.height, statement, signature, kept: header.transactions, left_out: Vec::new() };
    Proof { parts: vec![part], next: header.height + 1 }
}
