//! What a node has on its disk: the blocks with their certificates and outcomes, where each transaction stands, and
//! checkpoints.
//!
//! - [`Ledger`]: append-only files of [`BlockRecord`]s. One thread appends and flushes, any number read.
//! - [`CheckpointStore`]: the two newest snapshots, checked chunk by chunk.
//! - [`LedgerFiles`]: the records of a folder that somebody else may have open, for audits.
//! - [`BlockFile`]: such a file in memory, for backups.
//! - [`RowHistory`]: what became of rows, found by table and key; follows from the blocks.
//! - [`Ledger::prune`]: old blocks give up their transactions and receipts.
//! - [`Ledger::redact`]: single transactions give up their content by consent.
//! - [`Outbox`]: what blocks did to tables that an organisation keeps in a database of its own, until that has it.
//! - [`LedgerError`]: everything that can go wrong, with what to do.
//!
//! ```
//! use bytes::Bytes;
//! use crypto::{merkle_root, sha256};
//! use ledger::{BlockOutcome, BlockRecord, Ledger};
//! use types::{Attested, Block, BlockDigest, BlockHeader, OutcomeHeader, transactions_root};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let charter = sha256(&[b"charter"]);
//! let (ledger, report) = Ledger::open(folder.path(), charter)?;
//! assert_eq!(report.tip, None);
//! let header = BlockHeader {
//!     ledger: charter,
//!     height: 1,
//!     timestamp_ms: 1_700_000_000_000,
//!     previous: charter,
//!     transactions_root: transactions_root(&[]),
//!     transactions: 0,
//!     proposer: 0,
//!     certified_height: 0,
//!     attested: Attested::default().digest(),
//!     charters: charter,
//! };
//! let outcome = OutcomeHeader {
//!     ledger: charter,
//!     height: 1,
//!     block: header.digest(),
//!     previous: charter,
//!     receipts_root: merkle_root(&[]),
//!     state_digest: BlockDigest::default().chain(charter, 1),
//!     charters: charter,
//! };
//! let record = BlockRecord {
//!     block: Block { header, attested: Attested::default(), transactions: vec![] },
//!     certificate: Bytes::from_static(b"proof"),
//!     outcome: BlockOutcome { receipts: vec![], digest: BlockDigest::default(), header: outcome },
//! };
//! ledger.append(&record)?; // visible to readers
//! ledger.flush()?; // durable, with everything appended before
//! assert_eq!(ledger.read(1)?, Some(record));
//! # Ok(())
//! # }
//! ```
//!
//! # Durability
//!
//! ```text
//!  append, append, append ──▶ page cache ──flush──▶ disk         (readers see blocks from append on)
//!        │ file has 64 MiB: flush it, begin the next
//!        └──▶ indexer thread ──▶ blocks-….idx, blocks-….txi      (never flushed; made again when missing or wrong)
//! ```
//!
//! Assumed of the disk: what was flushed stays; what was not may be there, be missing, or be there in part, in any
//! order. So the end of the last file may be torn after a crash, and opening cuts it. It must not cut what was
//! flushed: the file `LEDGER` holds a *mark*, the height up to which blocks have been flushed. Opening reads the last
//! file whole. At the first record that is wrong it
//! - cuts, if the record reaches the end of the file or past it, or if the mark is not above its height;
//! - refuses with [`LedgerError::Damaged`] otherwise: blocks that were flushed follow, so that no crash explains it.
//!
//! Blocks that the mark promises and that are missing at the end are reported ([`OpenReport::flushed_lost`]). The mark
//! is written after each flush but not flushed itself; an older one makes opening more lenient, never wrong. Other
//! files are flushed before the next one is begun, and there every wrong byte is [`LedgerError::Damaged`], when it is
//! read. After a write or flush that failed nothing is written any more until the ledger is opened again, because a
//! flush that is repeated may succeed without having written anything.
//!
//! # Files
//!
//! Integers are little-endian; `crc` is CRC-32 as in zip; `height20` is a height with 20 decimal digits. Format
//! version 2. Names that end in `.tmp` are unfinished and removed on opening. `LOCK` is locked by the process that
//! has the folder open and holds its number.
//!
//! `LEDGER`, 64 bytes:
//!
//! | at | bytes | content |
//! | --: | --: | --- |
//! | 0 | 8 | `EnLedger` |
//! | 8 | 4 | format version |
//! | 12 | 32 | digest of the charter |
//! | 44 | 4 | crc of 0..44 |
//! | 48 | 8 | mark: height up to which blocks have been flushed |
//! | 56 | 4 | crc of 48..56 |
//! | 60 | 4 | unused |
//!
//! `blocks-height20.log`, named after its first height: a head of 64 bytes, then records without gaps.
//!
//! | at | bytes | file head |
//! | --: | --: | --- |
//! | 0 | 8 | `EnBlocks` (in a checkpoint `EnCheckp`) |
//! | 8 | 4 | format version |
//! | 12 | 4 | zero |
//! | 16 | 32 | digest of the charter |
//! | 48 | 8 | first height (in a checkpoint its height) |
//! | 56 | 4 | zero |
//! | 60 | 4 | crc of 0..60 |
//!
//! | at | bytes | record |
//! | --: | --: | --- |
//! | 0 | 4 | `EnB2` |
//! | 4 | 4 | crc of 8..416 |
//! | 8 | 4 | length of the whole record, at most [`RECORD_BYTES_MAX`] |
//! | 12 | 4 | kind: 1, a block; 2, one that is pruned; 3, one of which transactions are redacted |
//! | 16 | 8 | height |
//! | 24 | 12 | lengths of block, certificate and outcome |
//! | 36 | 12 | crc of block, of certificate and of outcome |
//! | 48 | 16 | how many transactions were committed, aborted, given up for a conflict, rejected |
//! | 64 | 32 | digest of the block's header |
//! | 96 | 32 | digest of the outcome header before |
//! | 128 | 32 | receipts root |
//! | 160 | 32 | state digest |
//! | 192 | 32 | what names the decided charters |
//! | 224 | 190 | canonical encoding of the block's header |
//! | 414 | 2 | zero |
//! | 416 | … | block ([`types::Block::to_bytes`]) |
//! | … | … | certificate |
//! | … | … | canonical encoding of the [`BlockOutcome`] |
//!
//! Of a pruned block there are, instead of block and outcome, the canonical encodings of its [`types::Attested`] and of its
//! [`types::BlockDigest`]. A file is pruned as a whole, and never the last one; files in front of a pruned one are pruned.
//!
//! Of a redacted block there are instead the canonical encodings of its [`types::Attested`] with its transactions, each as it is or
//! nothing, and of its receipts, each as it is or as a [`RedactedTransaction`], with its [`types::BlockDigest`].
//!
//! `blocks-height20.idx`, where the records of a finished file start:
//!
//! | at | bytes | content |
//! | --: | --: | --- |
//! | 0 | 8 | `EnHeight` |
//! | 8 | 32 | digest of the charter |
//! | 40 | 8 | first height |
//! | 48 | 4 | n, number of records |
//! | 52 | 4 | crc of all other bytes |
//! | 56 | 4 n | offset of each record |
//!
//! `blocks-height20.txi`, where the transactions of a finished file stand, by the first 16 bytes of their ids:
//!
//! | at | bytes | content |
//! | --: | --: | --- |
//! | 0 | 8 | `EnTxIdx1` |
//! | 8 | 32 | digest of the charter |
//! | 40 | 32 | digest of the header of the file's last block |
//! | 72 | 8 | first height |
//! | 80 | 4 | n, number of pages |
//! | 84 | 4 | crc of the directory |
//! | 88 | 4 | zero |
//! | 92 | 4 | crc of 0..92 |
//! | 96 | 8 n | directory: per page the first 8 bytes of its first id, as a big-endian number |
//! | 96 + 8 n | 4096 n | pages |
//!
//! | at | bytes | page |
//! | --: | --: | --- |
//! | 0 | 4 | crc of the page's number (8 bytes) and 4..4096 |
//! | 4 | 4 | m, number of entries, at most 146 |
//! | 8 | 28 m | entries by id: 16 bytes of the id, height (8), position in the block (4, highest bit: rejected) |
//!
//! `ANCHOR`, where the ledger begins behind a certified checkpoint and not at height 1: `EnAnchor`, format version (4),
//! digest of the charter (32), length of what follows behind the checksum (4), crc of all other bytes (4), canonical encoding
//! of the [`Anchor`]. Files of blocks in front of it are in a folder `before-height20`.
//!
//! `REDACTED`, where anything is: `EnRedact`, height of the newest block of which something is (8), crc of both (4).
//!
//! `checkpoint-height20.state`: a head as above, then chunks, then the trailer, which is a chunk with length 0.
//!
//! | at | bytes | chunk |
//! | --: | --: | --- |
//! | 0 | 4 | length, at most 1 MiB; 0 in the trailer |
//! | 4 | 4 | crc of the chunk's number (8 bytes), its length (4) and content |
//! | 8 | … | content; in the trailer: length of all content (8), height (8), SHA-256 of all content (32) |
//!
//! `checkpoint-height20.certificate`: the certificate of its root, as whoever has collected it hands it over.

mod anchor;
mod block_file;
mod checkpoint;
mod disk;
mod error;
mod file_head;
mod height_index;
mod indexer;
mod kept;
mod layout;
mod ledger;
mod ledger_file;
mod left_open;
mod open;
mod outbox;
mod pruning;
mod reading;
mod record;
mod redaction;
mod redaction_note;
mod rewriting;
mod row_history;
mod segment;
mod transaction_index;
mod writer;

pub use anchor::{Anchor, HANDOVERS_BYTES_MAX, handovers_up_to, prove_charters};
pub use block_file::BlockFile;
pub use checkpoint::{CheckpointReader, CheckpointStore, CheckpointWriter};
pub use disk::{Disk, Faults};
pub use error::LedgerError;
pub use kept::{Ended, KeptTransaction, RedactedTransaction};
pub use ledger::{Blocks, Ledger, LedgerOptions};
pub use left_open::{certificates_from, newest_certificate, read_handovers};
pub use open::{OpenReport, in_use};
pub use outbox::{BlockNetChanges, NetChange, Outbox};
pub use pruning::Pruned;
pub use reading::{LedgerFiles, Records, StoredRecord, TornEnd};
pub use record::{BlockOutcome, BlockRecord, BlockSummary, OutcomeCounts, RECORD_BYTES_MAX};
pub use row_history::{RecordedRow, RowHistory, RowVersion};
