//! Old blocks give up their transactions and receipts; headers, certificates and digests stay for ever.
//!
//! ```text
//!  blocks-…1.log   blocks-…9.log   blocks-…17.log        (the last file is never touched)
//!      pruned          │
//!        ▲             └─▶ without payloads: a file of its own, or, where the pruned one in front of it is small, behind what
//!        └──────────────── that has: written, flushed ─▶ index files removed ─▶ renamed over the old one ─▶ 9 removed
//! ```
//!
//! A crash leaves the old files or the new one, or the new one and a file whose blocks it has, which opening removes. Who reads an
//! old file goes on reading it: renaming and removing leave it to them.

use crate::LedgerError;
use crate::file_head::FILE_HEAD_BYTES;
use crate::ledger::Ledger;
use crate::segment::Segment;
use std::sync::Arc;

/// Pruned files are put together up to so many bytes: a node has each file open.
const PUT_TOGETHER_BYTES: u64 = 16 << 20;

/// What pruning has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Files that were rewritten.
    pub files: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Bytes of these files before.
    pub bytes_before: u64,
    /// And now.
    pub bytes_now: u64,
}

impl Pruned {
    /// Adds what was done besides.
    pub fn add(&mut self, other: Pruned) {
        self.files += other.files;
        self.blocks += other.blocks;
        self.bytes_before += other.bytes_before;
        self.bytes_now += other.bytes_now;
    }
}

impl Ledger {
    /// Height of the first block that has its transactions and receipts, or will have: [`Ledger::first_height`] where nothing
    /// is pruned.
    pub fn payloads_from(&self) -> u64 {
        let segments = self.segments();
        // The oldest ones are.
        let pruned = segments.partition_point(|segment| segment.pruned);
        match pruned.checked_sub(1).and_then(|last| segments.get(last)) {
            Some(last) => last.next_height(),
            None => self.first_height(),
        }
    }

    /// Height of the first block in the file that is being written; nothing without such a file.
    pub fn active_file_from(&self) -> Option<u64> {
        let segments = self.segments();
        segments.last().filter(|segment| !segment.pruned).map(|segment| segment.first_height)
    }

    /// How many blocks [`Ledger::prune`] would prune, and the bytes of their files.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn prunable(&self, height: u64) -> Result<(u64, u64), LedgerError> {
        let (mut blocks, mut bytes) = (0, 0);
        for segment in self.prunable_segments(height) {
            blocks += segment.next_height() - segment.first_height;
            bytes += file_bytes(&segment)?;
        }
        Ok((blocks, bytes))
    }

    /// Finished files, all of whose blocks are below a height.
    fn prunable_segments(&self, height: u64) -> Vec<Arc<Segment>> {
        let segments = self.segments();
        let finished = segments.split_last().map_or(&[][..], |(_, finished)| finished);
        let old = finished.iter().filter(|segment| !segment.pruned && segment.next_height() <= height);
        old.cloned().collect()
    }

    /// Takes the transactions and receipts off all blocks of the next file whose blocks are all below `height`: one file at a
    /// time, so that whoever calls may stop in between. Durable when it returns; `None` where there is no such file. Blocks may
    /// be appended and read meanwhile.
    ///
    /// What this node needs of the blocks is for the caller to know: they can neither be executed again nor be given to other
    /// nodes, and their transactions are found no more.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] where a record in the file is: it stays as it is. [`LedgerError::DiskFull`] and
    /// [`LedgerError::Io`] leave the file as it was, and nothing else is affected.
    pub fn prune(&self, height: u64) -> Result<Option<Pruned>, LedgerError> {
        let rewriting = self.rewriting();
        let Some(segment) = self.prunable_segments(height).into_iter().next() else { return Ok(None) };
        let (bytes_before, blocks) = (file_bytes(&segment)?, segment.next_height() - segment.first_height);
        let bytes = segment.pruned_bytes()?;
        let bytes_now = (bytes.len() - FILE_HEAD_BYTES) as u64;
        let before = self.small_pruned_before(&segment, bytes_now)?;
        let bytes = match &before {
            Some(before) => [&before.whole_file()?, &bytes[FILE_HEAD_BYTES..]].concat(),
            None => bytes,
        };
        let is_put = rewriting.put(&segment, before.as_ref(), &bytes)?;
        Ok(is_put.then_some(Pruned { files: 1, blocks, bytes_before, bytes_now }))
    }

    /// The pruned file in front of this one, where both together are small.
    fn small_pruned_before(
        &self,
        segment: &Segment,
        bytes: u64,
    ) -> Result<Option<Arc<Segment>>, LedgerError> {
        let segments = self.segments();
        let before = segments.iter().find(|before| before.next_height() == segment.first_height);
        let Some(before) = before.filter(|before| before.pruned) else { return Ok(None) };
        Ok((file_bytes(before)? + bytes <= PUT_TOGETHER_BYTES).then(|| before.clone()))
    }

    /// Ends the file that is being written, so that its blocks can be pruned before it is full. Nothing happens where it holds
    /// no block.
    ///
    /// # Errors
    /// As [`Ledger::append`].
    pub fn begin_file(&self) -> Result<(), LedgerError> {
        let mut writer = self.writer.lock();
        writer.check_usable()?;
        if !writer.has_blocks_in_file() {
            return Ok(());
        }
        let begun = self.begin_segment(&mut writer);
        writer.poison(begun).map(drop)
    }
}

fn file_bytes(segment: &Segment) -> Result<u64, LedgerError> {
    let metadata = segment.file.metadata();
    metadata.map(|metadata| metadata.len()).map_err(|error| LedgerError::io("read", &segment.path, error))
}
