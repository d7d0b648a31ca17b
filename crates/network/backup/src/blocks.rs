//! Pieces with blocks: which of them stay, and writing those that are new.

use crate::error::BackupError;
use crate::manifest::{BLOCKS, BlocksPiece, Manifest, PieceFile};
use crate::node_folder::NodeSource;
use crate::places::Place;
use crypto::Digest;
use ledger::{BlockFile, BlockSummary, LedgerFiles};
use std::collections::BTreeSet;

/// A piece ends with the record that makes it so long.
const PIECE_BYTES: u64 = 16 << 20;
/// A shorter one is small.
const SMALL_BYTES: u64 = PIECE_BYTES / 2;
/// So many small pieces at the end are written again as one, so that a backup every minute does not have ever more of them.
const SMALL_PIECES: usize = 16;

/// What a run has done.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

/// The blocks of a node's folder on their way into a target.
pub(crate) struct BlockPieces<'b> {
    pub(crate) node: &'b NodeSource,
    pub(crate) place: &'b Place,
    pub(crate) files: &'b LedgerFiles,
}

impl BlockPieces<'_> {
    /// All pieces: those of the backup before that stay, and new ones behind them.
    pub(crate) fn write(
        &self,
        before: Option<&Manifest>,
    ) -> Result<(Vec<BlocksPiece>, Written), BackupError> {
        let mut pieces = match before {
            Some(before) => self.kept(before)?,
            None => Vec::new(),
        };
        let first = self.files.first_height();
        let next = pieces.last().map_or(first, |piece| piece.last + 1);
        let reached = before.map_or(0, |before| before.height);
        let mut written = Written::default();
        let mut open: Option<Open> = None;
        for record in self.files.clone().records_from(next) {
            let record = record?;
            let summary = record.summary();
            // A file of blocks has its transactions, or has not.
            if open.as_ref().is_some_and(|open| open.pruned != summary.pruned) {
                pieces.extend(self.close(open.take(), &mut written)?);
            }
            if let Some(last) = pieces.last().filter(|_| open.is_none()) {
                self.follows(last, summary)?;
            }
            written.blocks += u64::from(summary.header.height > reached);
            let piece = open.get_or_insert_with(|| Open::begin(self.node.charter.ledger(), summary));
            piece.file.push(&record);
            piece.last = (summary.header.height, summary.header_digest, summary.outcome.digest());
            if piece.file.bytes() >= PIECE_BYTES {
                pieces.extend(self.close(open.take(), &mut written)?);
            }
        }
        pieces.extend(self.close(open.take(), &mut written)?);
        Ok((pieces, written))
    }

    fn close(&self, open: Option<Open>, written: &mut Written) -> Result<Option<BlocksPiece>, BackupError> {
        let Some(Open { file, first, last: (last, header, outcome), .. }) = open else { return Ok(None) };
        let content = file.into_bytes();
        let file = PieceFile::of(BLOCKS, &format!("{first:020}-{last:020}"), "blocks", &content);
        written.bytes += self.place.write_piece(&file, content)?;
        let (header, outcome) = (header.to_string(), outcome.to_string());
        Ok(Some(BlocksPiece { file, first, last, header, outcome }))
    }

    /// The pieces from the first on that are there and say what the node's ledger says; without small ones at the end where there
    /// are too many.
    fn kept(&self, before: &Manifest) -> Result<Vec<BlocksPiece>, BackupError> {
        let there = self.place.list(BLOCKS)?;
        let is_there =
            |file: &PieceFile| file.name.strip_prefix("blocks/").is_some_and(|name| there.contains(name));
        let mut kept: Vec<BlocksPiece> =
            before.blocks.iter().take_while(|piece| is_there(&piece.file)).cloned().collect();
        let is_whole = kept.len() == before.blocks.len();
        let (first, payloads_from) = (self.files.first_height(), self.files.payloads_from()?);
        // Blocks that the folder does not have any more cannot be written again, nor can their transactions.
        if let Some(lost) = before.blocks.get(kept.len()).filter(|lost| lost.first < payloads_from) {
            let (target, name) = (self.place.address(), lost.file.name.clone());
            return Err(BackupError::Missing { target, name, repaired: false });
        }
        let small = kept.iter().rev().take_while(|piece| piece.file.bytes < SMALL_BYTES).count();
        let merged = kept.len() - small;
        if is_whole && small >= SMALL_PIECES && kept[merged].first >= payloads_from {
            kept.truncate(merged);
        }
        while let Some(last) = kept.last() {
            if last.last + 1 < first {
                return Err(BackupError::Behind {
                    target: self.place.address(),
                    path: self.node.path.clone(),
                    last: last.last,
                    first,
                });
            }
            if self.agrees(last)? {
                break;
            }
            kept.pop();
        }
        Ok(kept)
    }

    /// Whether the last block of a piece has come to the same in the node's ledger. A node may have recorded again what a block came
    /// to that nobody had certified.
    fn agrees(&self, piece: &BlocksPiece) -> Result<bool, BackupError> {
        let Some(record) = self.files.clone().records_from(piece.last).next().transpose()? else {
            return Ok(false);
        };
        let summary = record.summary();
        // The ledger begins behind it: what follows says whether it does.
        if summary.header.height != piece.last {
            return Ok(true);
        }
        self.same(piece, summary.header_digest)?;
        Ok(summary.outcome.digest().to_string() == piece.outcome)
    }

    fn follows(&self, piece: &BlocksPiece, summary: &BlockSummary) -> Result<(), BackupError> {
        self.same(piece, summary.header.previous)
    }

    fn same(&self, piece: &BlocksPiece, found: Digest) -> Result<(), BackupError> {
        let found = found.to_string();
        if found == piece.header {
            return Ok(());
        }
        let (target, path, expected) = (self.place.address(), self.node.path.clone(), piece.header.clone());
        Err(BackupError::Fork { target, path, height: piece.last, expected, found })
    }
}

/// A piece that is being made.
struct Open {
    file: BlockFile,
    first: u64,
    /// Height and digests of the last block.
    last: (u64, Digest, Digest),
    /// Its blocks have no transactions.
    pruned: bool,
}

impl Open {
    fn begin(ledger: Digest, summary: &BlockSummary) -> Open {
        let height = summary.header.height;
        let last = (height, summary.header_digest, summary.outcome.digest());
        Open { file: BlockFile::begin(ledger, height), first: height, last, pruned: summary.pruned }
    }
}

/// Whether a backup has given a file this name. What a folder has while a file is being written has the file's name and something
/// behind.
pub(crate) fn is_ours(name: &str) -> bool {
    name.len() > 20 && name.as_bytes()[..20].iter().all(u8::is_ascii_digit)
}

/// Names of files in a folder of a target that no backup needs.
pub(crate) fn not_needed(there: BTreeSet<String>, folder: &str, needed: &BTreeSet<String>) -> Vec<String> {
    there.into_iter().filter(|name| is_ours(name) && !needed.contains(&format!("{folder}/{name}"))).collect()
}
