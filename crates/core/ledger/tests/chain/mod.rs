//! Blocks that follow one another, for the tests of this folder.
#![allow(dead_code, missing_docs)]

use bytes::Bytes;
use crypto::{Digest, merkle_root, sha256};
use ledger::{BlockOutcome, BlockRecord, Ledger, LedgerOptions, OpenReport};
use std::path::{Path, PathBuf};
use types::{
    Attested, Block, BlockDigest, BlockHeader, Outcome, OutcomeHeader, Receipt, RejectReason, SqlError,
    SqlState, StatementResult, TransactionId, transactions_root,
};

/// A folder that goes when it is dropped; in memory where that exists, because tests flush thousands of times.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

pub fn network() -> Digest {
    sha256(&[b"a charter"])
}

/// The id of the transaction that a [`Chain`] with this salt puts at a place.
pub fn id(salt: u8, height: u64, index: u32) -> TransactionId {
    TransactionId(sha256(&[&[salt], &height.to_le_bytes(), &index.to_le_bytes()]))
}

/// A record that continues `previous`.
pub fn record(previous: Digest, height: u64, transactions: u32, salt: u8) -> BlockRecord {
    let bodies: Vec<Bytes> = (0..transactions)
        .map(|index| Bytes::from(format!("{salt}/{height}/{index} {}", "x".repeat(40))))
        .collect();
    let header = BlockHeader {
        ledger: network(),
        height,
        timestamp_ms: 1_000 + height,
        previous,
        transactions_root: transactions_root(&bodies),
        transactions,
        proposer: (height % 4) as u16,
        certified_height: 0,
        attested: Attested::default().digest(),
        charters: network(),
    };
    let receipts: Vec<Receipt> = (0..transactions)
        .map(|index| Receipt { transaction: id(salt, height, index), height, index, outcome: outcome(index) })
        .collect();
    let leaves: Vec<Digest> = receipts.iter().map(Receipt::leaf).collect();
    let outcome = BlockOutcome {
        receipts,
        digest: BlockDigest::default(),
        header: OutcomeHeader {
            ledger: network(),
            height,
            block: header.digest(),
            previous: sha256(&[b"outcome", &(height - 1).to_le_bytes(), &[salt]]),
            receipts_root: merkle_root(&leaves),
            state_digest: sha256(&[b"state", &height.to_le_bytes(), &[salt]]),
            charters: network(),
        },
    };
    let certificate = Bytes::from(format!("certificate of {height}"));
    BlockRecord {
        block: Block { header, attested: Attested::default(), transactions: bodies },
        certificate,
        outcome,
    }
}

fn outcome(index: u32) -> Outcome {
    match index % 4 {
        0 | 1 => Outcome::Committed(vec![StatementResult { tag: "CALL".into(), ..Default::default() }]),
        2 => Outcome::Aborted(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")),
        _ => Outcome::Rejected(RejectReason::BlockBudget),
    }
}

/// Records in their order.
pub struct Chain {
    pub height: u64,
    pub previous: Digest,
    pub salt: u8,
}

impl Chain {
    pub fn new() -> Chain {
        Chain { height: 0, previous: network(), salt: 0 }
    }

    /// Continues a ledger, with other transactions where `salt` differs.
    pub fn after(ledger: &Ledger, salt: u8) -> Chain {
        let (height, previous) = ledger.tip().unwrap_or((0, network()));
        Chain { height, previous, salt }
    }

    pub fn next(&mut self, transactions: u32) -> BlockRecord {
        self.height += 1;
        let record = record(self.previous, self.height, transactions, self.salt);
        self.previous = record.block.header.digest();
        record
    }
}

pub fn options(segment_bytes: u64) -> LedgerOptions {
    LedgerOptions { segment_bytes, ..LedgerOptions::default() }
}

pub fn open(folder: &Path, segment_bytes: u64) -> (Ledger, OpenReport) {
    Ledger::open_with(folder, network(), options(segment_bytes)).expect("a good folder opens")
}

/// A ledger of `blocks` blocks, flushed, with its indexes, closed.
pub fn build(folder: &Path, segment_bytes: u64, blocks: u64, transactions: u32) -> Vec<BlockRecord> {
    let (ledger, _) = open(folder, segment_bytes);
    let mut chain = Chain::new();
    let records: Vec<_> = (0..blocks).map(|_| chain.next(transactions)).collect();
    records.iter().for_each(|record| ledger.append(record).expect("appends"));
    ledger.flush().expect("flushes");
    ledger.settle_indexes();
    records
}

/// Files of a folder with an extension, sorted.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("creates");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copies");
    }
}
