//! A small ledger on disk, and its bytes.
#![allow(dead_code, missing_docs, reason = "each test file uses its part")]

use audit::{AuditError, Options, Part, Report, audit};
use bench::{SignedLedger, SignedLedgerOptions};
use bytes::Bytes;
use crypto::sha256;
use ledger::LedgerOptions;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Charter, Payload};

/// Bytes of a file's head, of a record's head, and of what stands in them.
pub const FILE_HEAD: usize = 64;
pub const HEAD: usize = 416;
pub const HEADER: usize = 190;
pub const OUTCOME_HEADER: usize = 200;

/// A folder that goes when it is dropped; in memory where that exists, because tests write thousands of times.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

pub fn script(sql: &str) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters: vec![] }
}

pub fn insert(number: u64) -> Payload {
    script(&format!("INSERT INTO t VALUES ({number}, 'row {number}')"))
}

/// A ledger with a table and no rows.
pub fn create(
    folder: &Path,
    nonce: u64,
    segment_bytes: u64,
    change: impl FnOnce(&mut Charter),
) -> SignedLedger {
    let files = LedgerOptions { segment_bytes, ..LedgerOptions::default() };
    let options = SignedLedgerOptions { nonce, clients: 3, files, ..SignedLedgerOptions::default() };
    let mut ledger = SignedLedger::create(folder, options, change).expect("an empty folder");
    let table = ledger.transactions(vec![script("CREATE TABLE t (id bigint PRIMARY KEY, name text)")]);
    ledger.append(table, |_| ()).expect("appends");
    ledger
}

/// Blocks with so many transactions each.
pub fn fill(ledger: &mut SignedLedger, blocks: &[u64]) {
    for &count in blocks {
        let height = ledger.engine().height();
        // Two of the same key in a block: one commits, one aborts.
        let payloads = (0..count).map(|number| insert(height * 100 + number / 2)).collect();
        let transactions = ledger.transactions(payloads);
        ledger.append(transactions, |_| ()).expect("appends");
    }
}

/// Six blocks in one file, flushed and closed.
pub fn build(folder: &Path, nonce: u64) -> Arc<Charter> {
    let mut ledger = create(folder, nonce, 1 << 20, |_| ());
    fill(&mut ledger, &[3, 0, 5, 1, 2]);
    let charter = ledger.charter().clone();
    ledger.finish().expect("flushes");
    charter
}

pub fn check(charter: &Charter, folder: &Path) -> Report {
    let options = Options { threads: 2, ..Options::default() };
    audit(charter, folder.join("ledger"), options, &mut |_| ()).expect("good keys")
}

/// Height and part that an audit finds wrong.
pub fn wrong(charter: &Charter, folder: &Path) -> (u64, Part, String) {
    match check(charter, folder).error {
        Some(AuditError::Wrong { place, part, what }) => (place.height, part, what),
        other => panic!("{other:?}"),
    }
}

/// Files of blocks, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("ledger")).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == "log"));
    paths.sort();
    paths
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}

/// One record's bytes, and where its parts are in it.
#[derive(Clone, PartialEq)]
pub struct Record {
    pub bytes: Vec<u8>,
    pub lengths: [usize; 3],
}

impl Record {
    /// Where block, certificate and outcome begin, and the end.
    pub fn starts(&self) -> [usize; 4] {
        let [block, certificate, outcome] = self.lengths;
        [HEAD, HEAD + block, HEAD + block + certificate, HEAD + block + certificate + outcome]
    }

    /// Makes the checksums right, as somebody would who wants to go unnoticed.
    pub fn seal(&mut self) {
        let starts = self.starts();
        for part in 0..3 {
            let crc = crc32fast::hash(&self.bytes[starts[part]..starts[part + 1]]);
            self.bytes[36 + 4 * part..40 + 4 * part].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32fast::hash(&self.bytes[8..HEAD]);
        self.bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// Makes copies and digests of the block's header right as well.
    pub fn seal_header(&mut self) {
        let header: Vec<u8> = self.bytes[HEAD..HEAD + HEADER].to_vec();
        self.bytes[224..224 + HEADER].copy_from_slice(&header);
        let digest = sha256(&[b"entente block 1\0", &header]).0;
        self.bytes[64..96].copy_from_slice(&digest);
        let outcome = self.bytes.len() - OUTCOME_HEADER;
        self.bytes[outcome..outcome + 32].copy_from_slice(&header[..32]);
        self.bytes[outcome + 40..outcome + 72].copy_from_slice(&digest);
        self.seal();
    }

    /// Changes lengths so that they fit `parts`.
    pub fn with_parts(&self, parts: [&[u8]; 3]) -> Record {
        let mut bytes = self.bytes[..HEAD].to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        let lengths = parts.map(<[u8]>::len);
        let length = bytes.len() as u32;
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        for (number, length) in lengths.iter().enumerate() {
            bytes[24 + 4 * number..28 + 4 * number].copy_from_slice(&(*length as u32).to_le_bytes());
        }
        let mut record = Record { bytes, lengths };
        record.seal();
        record
    }

    pub fn part(&self, part: usize) -> &[u8] {
        &self.bytes[self.starts()[part]..self.starts()[part + 1]]
    }
}

/// A file of blocks: its head and its records.
#[derive(Clone)]
pub struct File {
    pub head: Vec<u8>,
    pub records: Vec<Record>,
}

impl File {
    pub fn read(path: &Path) -> File {
        let bytes = fs::read(path).expect("reads");
        let (head, mut rest) = bytes.split_at(FILE_HEAD);
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (record, behind) = rest.split_at(u32_at(rest, 8));
            let lengths = [24, 28, 32].map(|at| u32_at(record, at));
            records.push(Record { bytes: record.to_vec(), lengths });
            rest = behind;
        }
        File { head: head.to_vec(), records }
    }

    pub fn write(&self, path: &Path) {
        let mut bytes = self.head.clone();
        self.records.iter().for_each(|record| bytes.extend_from_slice(&record.bytes));
        fs::write(path, bytes).expect("writes");
    }

    /// Writes it with one record changed.
    pub fn write_with(&self, path: &Path, record: usize, change: impl FnOnce(&mut Record)) {
        let mut changed = self.clone();
        change(&mut changed.records[record]);
        changed.write(path);
    }
}

pub fn bytes_of(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}
