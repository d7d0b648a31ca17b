//! Blocks as the ledger keeps them, and the layout of one record.

use crate::LedgerError;
use crate::kept::{decode_kept_attested, decode_kept_places};
use crate::layout::{Fields, checksum};
use crate::transaction_index::TransactionLocation;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::Digest;
use std::path::Path;
use types::{
    Attested, Block, BlockDigest, BlockHeader, Outcome, OutcomeHeader, Receipt, TransactionId,
    decode_exactly, encode,
};

/// Bytes of one record: head, block, certificate and outcome.
pub const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a record's head.
pub(crate) const HEAD_BYTES: usize = 416;
/// Those at its end.
const UNUSED_BYTES: usize = 2;
const MAGIC: [u8; 4] = *b"EnB2";
const KIND_BLOCK: u32 = 1;
/// A block whose transactions and receipts are gone.
const KIND_PRUNED: u32 = 2;
/// A block of which single transactions are, with their receipts.
const KIND_REDACTED: u32 = 3;

/// What execution said about a block.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct BlockOutcome {
    /// One receipt per transaction, in the block's order.
    pub receipts: Vec<Receipt>,
    /// What it did to the state, table by table.
    pub digest: BlockDigest,
    /// All of it in one header, which nodes attest.
    pub header: OutcomeHeader,
}

/// A block with the proof that it is final and with what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockRecord {
    /// What was ordered.
    pub block: Block,
    /// The ordering service's proof, opaque to the ledger.
    pub certificate: Bytes,
    /// What execution said.
    pub outcome: BlockOutcome,
}

/// How many transactions of a block ended how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutcomeCounts {
    /// Effects are in the state.
    pub committed: u32,
    /// The contract or a constraint said no.
    pub aborted: u32,
    /// Given up because of a conflict.
    pub conflicts: u32,
    /// Not executed.
    pub rejected: u32,
}

impl OutcomeCounts {
    /// Counts receipts.
    pub fn of(receipts: &[Receipt]) -> OutcomeCounts {
        let mut counts = OutcomeCounts::default();
        for receipt in receipts {
            match receipt.outcome {
                Outcome::Committed(_) => counts.committed += 1,
                Outcome::Aborted(_) => counts.aborted += 1,
                Outcome::Conflict => counts.conflicts += 1,
                Outcome::Rejected(_) => counts.rejected += 1,
            }
        }
        counts
    }
}

/// What the ledger says of a block without reading transactions or receipts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockSummary {
    /// Height, time, proposer and roots.
    pub header: BlockHeader,
    /// What the next header chains.
    pub header_digest: Digest,
    /// What it came to.
    pub outcome: OutcomeHeader,
    /// How the transactions ended.
    pub counts: OutcomeCounts,
    /// Bytes of the encoded block.
    pub block_bytes: u32,
    /// Bytes of the certificate.
    pub certificate_bytes: u32,
    /// Bytes of the encoded outcome.
    pub outcome_bytes: u32,
    /// Its transactions and receipts are gone ([`crate::Ledger::prune`]); the three lengths are those of what stays.
    pub pruned: bool,
    /// Some of its transactions have given up their content ([`crate::Ledger::redact`]).
    pub redacted: bool,
}

/// A part of a record. Of a redacted one block and outcome are what is left of them; of a pruned one the block is its
/// certificates, and the outcome its digests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Block,
    Certificate,
    Outcome,
}

impl Part {
    pub(crate) const ALL: [Part; 3] = [Part::Block, Part::Certificate, Part::Outcome];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Block => "block",
            Part::Certificate => "certificate",
            Part::Outcome => "outcome",
        }
    }
}

/// The fixed head of a record: all that is needed to list blocks and to find and check the parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordHead {
    pub(crate) summary: BlockSummary,
    checksums: [u32; 3],
}

impl RecordHead {
    pub(crate) fn height(&self) -> u64 {
        self.summary.header.height
    }

    fn lengths(&self) -> [u32; 3] {
        [self.summary.block_bytes, self.summary.certificate_bytes, self.summary.outcome_bytes]
    }

    /// Bytes of the whole record.
    pub(crate) fn record_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + self.lengths().iter().map(|&length| u64::from(length)).sum::<u64>()
    }

    /// Where a part starts, counted from the start of the record, and how long it is.
    pub(crate) fn extent(&self, part: Part) -> (u64, usize) {
        let lengths = self.lengths();
        let before: u64 = lengths[..part as usize].iter().map(|&length| u64::from(length)).sum();
        (HEAD_BYTES as u64 + before, lengths[part as usize] as usize)
    }

    /// Whether a part's bytes are those that were written.
    pub(crate) fn check(&self, part: Part, bytes: &[u8]) -> Result<(), String> {
        let (expected, found) = (self.checksums[part as usize], checksum(&[bytes]));
        if expected == found {
            return Ok(());
        }
        Err(format!("expected the {} with checksum {expected:08x}, found {found:08x}", part.name()))
    }

    pub(crate) fn to_bytes(&self) -> [u8; HEAD_BYTES] {
        let summary = &self.summary;
        let counts = summary.counts;
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(self.record_bytes() as u32).to_le_bytes());
        let kind = match (summary.pruned, summary.redacted) {
            (true, _) => KIND_PRUNED,
            (false, true) => KIND_REDACTED,
            (false, false) => KIND_BLOCK,
        };
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&self.height().to_le_bytes());
        let numbers = [counts.committed, counts.aborted, counts.conflicts, counts.rejected];
        for number in self.lengths().into_iter().chain(self.checksums).chain(numbers) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for digest in [
            summary.header_digest,
            summary.outcome.previous,
            summary.outcome.receipts_root,
            summary.outcome.state_digest,
            summary.outcome.charters,
        ] {
            bytes.extend_from_slice(&digest.0);
        }
        bytes.extend_from_slice(&encode(&summary.header));
        bytes.resize(HEAD_BYTES, 0);
        let crc = checksum(&[&bytes[8..]]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes.try_into().expect("resized to this length")
    }

    /// Reads and checks a head.
    ///
    /// # Errors
    /// Says what was expected and what came.
    pub(crate) fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Result<RecordHead, String> {
        let mut fields = Fields(bytes);
        let magic: [u8; 4] = fields.bytes();
        if magic != MAGIC {
            return Err(format!("expected the start of a record, {MAGIC:02x?}, found {magic:02x?}"));
        }
        let (expected, found) = (fields.u32(), checksum(&[&bytes[8..]]));
        if expected != found {
            return Err(format!("expected a record head with checksum {expected:08x}, found {found:08x}"));
        }
        let (record_bytes, kind, height) = (fields.u32(), fields.u32(), fields.u64());
        if ![KIND_BLOCK, KIND_PRUNED, KIND_REDACTED].contains(&kind) {
            return Err(format!(
                "expected a record of kind {KIND_BLOCK}, {KIND_PRUNED} or {KIND_REDACTED}, found kind {kind}"
            ));
        }
        let lengths: [u32; 3] = std::array::from_fn(|_| fields.u32());
        let checksums = std::array::from_fn(|_| fields.u32());
        let counts = OutcomeCounts {
            committed: fields.u32(),
            aborted: fields.u32(),
            conflicts: fields.u32(),
            rejected: fields.u32(),
        };
        let [header_digest, previous, receipts_root, state_digest, charters] =
            std::array::from_fn(|_| fields.digest());
        let header: [u8; BlockHeader::BYTES] = fields.bytes();
        let header: BlockHeader = decode_exactly(&header).map_err(|error| error.to_string())?;
        let unused: [u8; UNUSED_BYTES] = fields.bytes();
        if unused != [0; UNUSED_BYTES] {
            return Err(format!("expected zeros at the end of the head, found {unused:02x?}"));
        }
        let outcome = OutcomeHeader {
            ledger: header.ledger,
            height,
            block: header_digest,
            previous,
            receipts_root,
            state_digest,
            charters,
        };
        let [block_bytes, certificate_bytes, outcome_bytes] = lengths;
        let summary = BlockSummary {
            header,
            header_digest,
            outcome,
            counts,
            block_bytes,
            certificate_bytes,
            outcome_bytes,
            pruned: kind == KIND_PRUNED,
            redacted: kind == KIND_REDACTED,
        };
        let head = RecordHead { summary, checksums };
        if head.record_bytes() != u64::from(record_bytes) || head.height() != height {
            return Err("expected the head's lengths and heights to agree with one another".into());
        }
        if head.record_bytes() > RECORD_BYTES_MAX {
            return Err(format!(
                "expected a record of at most {RECORD_BYTES_MAX} bytes, found {record_bytes}"
            ));
        }
        Ok(head)
    }
}

/// Writes the whole record into `buffer`, whatever that held before.
pub(crate) fn encode_record(record: &BlockRecord, buffer: &mut Vec<u8>) -> Result<RecordHead, LedgerError> {
    let header = record.block.header.clone();
    let (block, outcome) = (record.block.to_bytes(), encode(&record.outcome));
    let parts = [block.as_slice(), record.certificate.as_ref(), outcome.as_slice()];
    let found = HEAD_BYTES as u64 + parts.iter().map(|part| part.len() as u64).sum::<u64>();
    if found > RECORD_BYTES_MAX {
        return Err(LedgerError::TooLarge { found, limit: RECORD_BYTES_MAX });
    }
    let summary = BlockSummary {
        header_digest: header.digest(),
        header,
        outcome: record.outcome.header.clone(),
        counts: OutcomeCounts::of(&record.outcome.receipts),
        block_bytes: block.len() as u32,
        certificate_bytes: record.certificate.len() as u32,
        outcome_bytes: outcome.len() as u32,
        pruned: false,
        redacted: false,
    };
    let head = RecordHead { summary, checksums: parts.map(|part| checksum(&[part])) };
    buffer.clear();
    append_record(&head, parts, buffer);
    Ok(head)
}

fn append_record(head: &RecordHead, parts: [&[u8]; Part::ALL.len()], buffer: &mut Vec<u8>) {
    let start = buffer.len();
    buffer.extend_from_slice(&head.to_bytes());
    parts.iter().for_each(|part| buffer.extend_from_slice(part));
    assert_eq!((buffer.len() - start) as u64, head.record_bytes(), "the head says how long the record is");
}

/// Appends what stays of a record when it is pruned.
pub(crate) fn append_pruned(
    head: &RecordHead,
    (attested, certificate, digest): (&Attested, &Bytes, &BlockDigest),
    buffer: &mut Vec<u8>,
) {
    let (attested, digest) = (encode(attested), encode(digest));
    let parts = [attested.as_slice(), certificate.as_ref(), digest.as_slice()];
    let summary = BlockSummary {
        block_bytes: attested.len() as u32,
        outcome_bytes: digest.len() as u32,
        pruned: true,
        redacted: false,
        ..head.summary.clone()
    };
    append_record(&RecordHead { summary, checksums: parts.map(|part| checksum(&[part])) }, parts, buffer);
}

/// Appends what stays of a record when transactions of it are redacted.
pub(crate) fn append_redacted(
    head: &RecordHead,
    parts: [&[u8]; Part::ALL.len()],
    buffer: &mut Vec<u8>,
) -> Result<(), LedgerError> {
    let [block, _, outcome] = parts;
    let summary = BlockSummary {
        block_bytes: block.len() as u32,
        outcome_bytes: outcome.len() as u32,
        redacted: true,
        ..head.summary.clone()
    };
    let head = RecordHead { summary, checksums: parts.map(|part| checksum(&[part])) };
    let found = head.record_bytes();
    if found > RECORD_BYTES_MAX {
        return Err(LedgerError::TooLarge { found, limit: RECORD_BYTES_MAX });
    }
    append_record(&head, parts, buffer);
    Ok(())
}

/// Where a record stands, for errors.
#[derive(Clone, Copy)]
pub(crate) struct RecordPlace<'a> {
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
    pub(crate) height: u64,
}

impl RecordPlace<'_> {
    pub(crate) fn damaged(&self, what: impl Into<String>) -> LedgerError {
        LedgerError::damaged(self.path, self.offset, self.height, what)
    }
}

/// Whoever wants all of a block does not get it where something of it is redacted.
fn check_whole(head: &RecordHead) -> Result<(), LedgerError> {
    match head.summary.redacted {
        true => Err(LedgerError::RedactedBlock { height: head.height() }),
        false => Ok(()),
    }
}

/// Reads a block whose checksum was right, without copying its transactions; of a pruned one what there is, without any.
pub(crate) fn decode_block(
    head: &RecordHead,
    bytes: &Bytes,
    place: RecordPlace<'_>,
) -> Result<Block, LedgerError> {
    check_whole(head)?;
    if head.summary.pruned {
        let attested = decode_attested(head, bytes, place)?;
        return Ok(Block { header: head.summary.header.clone(), attested, transactions: Vec::new() });
    }
    let block = Block::from_bytes(bytes).map_err(|error| place.damaged(error.to_string()))?;
    if block.header != head.summary.header {
        return Err(place.damaged("expected the same block header in the record's head and in the block"));
    }
    Ok(block)
}

/// Reads a block's certificates, from the whole block or from what stays of it.
pub(crate) fn decode_attested(
    head: &RecordHead,
    bytes: &Bytes,
    place: RecordPlace<'_>,
) -> Result<Attested, LedgerError> {
    if head.summary.redacted {
        return decode_kept_attested(bytes).map_err(|what| place.damaged(what));
    }
    if !head.summary.pruned {
        return Ok(decode_block(head, bytes, place)?.attested);
    }
    decode_exactly(bytes)
        .map_err(|error| place.damaged(format!("expected the certificates of a pruned block: {error}")))
}

/// Reads an outcome whose checksum was right; of a pruned one what there is, without any receipt.
pub(crate) fn decode_outcome(
    head: &RecordHead,
    bytes: &[u8],
    place: RecordPlace<'_>,
) -> Result<BlockOutcome, LedgerError> {
    check_whole(head)?;
    if head.summary.pruned {
        let digest = decode_exactly(bytes)
            .map_err(|error| place.damaged(format!("expected the digests of a pruned block: {error}")))?;
        return Ok(BlockOutcome { receipts: Vec::new(), digest, header: head.summary.outcome.clone() });
    }
    let outcome: BlockOutcome = decode_exactly(bytes)
        .map_err(|error| place.damaged(format!("expected the encoding of an outcome: {error}")))?;
    if outcome.header != head.summary.outcome {
        return Err(place.damaged("expected the same outcome header in the record's head and in the outcome"));
    }
    Ok(outcome)
}

/// Where the transactions of a record stand, by their ids.
pub(crate) fn decode_places(
    head: &RecordHead,
    bytes: &[u8],
    place: RecordPlace<'_>,
) -> Result<Vec<(TransactionId, Option<TransactionLocation>)>, LedgerError> {
    if head.summary.redacted {
        return decode_kept_places(head.height(), bytes).map_err(|what| place.damaged(what));
    }
    let receipts = decode_outcome(head, bytes, place)?.receipts;
    Ok(receipts.iter().map(|receipt| (receipt.transaction, TransactionLocation::of(receipt))).collect())
}

/// Reads one receipt of an encoded outcome, and no receipt behind it.
pub(crate) fn decode_receipt(
    bytes: &[u8],
    index: u32,
    place: RecordPlace<'_>,
) -> Result<Option<Receipt>, LedgerError> {
    let malformed =
        |error: std::io::Error| place.damaged(format!("expected the encoding of an outcome: {error}"));
    let mut rest = bytes;
    let count = u32::deserialize(&mut rest).map_err(malformed)?;
    if index >= count {
        return Ok(None);
    }
    for _ in 0..index {
        Receipt::deserialize(&mut rest).map_err(malformed)?;
    }
    Receipt::deserialize(&mut rest).map(Some).map_err(malformed)
}
