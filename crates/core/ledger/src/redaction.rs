//! Single transactions give up their content by consent of the ledger's members: what they said and what came of it goes, and
//! their hashes and places stay.
//!
//! ```text
//!  a record of a block               the same record, redacted
//!  transactions  a  b  c             a  –  c        b: id, contract, leaf in the transactions' root,
//!  receipts      A  B  C             A  ·  C           leaf in the receipts' root, how it ended, number of the proposal
//! ```
//!
//! So both roots still follow from what is there, and with them the header and the outcome that a quorum has signed. The file is
//! written anew and renamed over the old one, as in pruning; the file that is being written ends before. The note `REDACTED` says
//! from which height on blocks can be executed again; it is written first, so that it never says too little.

use crate::kept::KeptTransaction;
use crate::ledger::Ledger;
use crate::{LedgerError, redaction_note};
use std::collections::BTreeMap;

impl Ledger {
    /// Height of the first block from which on all can be executed again: none of them is pruned or redacted.
    pub fn executable_from(&self) -> u64 {
        self.payloads_from().max(self.redacted_to() + 1)
    }

    /// The transactions of a block with their receipts, or what is left of them where they are redacted; nothing above the tip.
    ///
    /// # Errors
    /// As [`Ledger::read`], without [`LedgerError::Redacted`].
    pub fn transactions(&self, height: u64) -> Result<Option<Vec<KeptTransaction>>, LedgerError> {
        let segment = self.segment_with_payload(height)?;
        let kept = segment.map_or(Ok(None), |segment| segment.kept(height))?;
        Ok(kept.map(|kept| kept.transactions))
    }

    /// Takes the content of transactions of a block away: `proposals` has the number of the agreed proposal by position. Durable when
    /// it returns. Blocks may be appended and read meanwhile. Says whether anything was there to be taken away.
    ///
    /// That nobody needs the block any more is for the caller to know: it can neither be executed again nor be given to other nodes.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] where a record in the file is: it stays as it is. [`LedgerError::DiskFull`] and
    /// [`LedgerError::Io`] leave the file as it was. [`LedgerError::NotKept`] and [`LedgerError::Pruned`] where there is no such
    /// content.
    pub fn redact(&self, height: u64, proposals: &BTreeMap<u32, u64>) -> Result<bool, LedgerError> {
        let rewriting = self.rewriting();
        let Some(segment) = self.segment_with_payload(height)? else { return Ok(false) };
        let Some(mut kept) = segment.kept(height)? else { return Ok(false) };
        self.note_redacted(height)?;
        if !kept.redact(proposals) {
            return Ok(false);
        }
        if self.active_file_from() == Some(segment.first_height) {
            self.begin_file()?;
        }
        rewriting.put(&segment, None, &segment.bytes_with(height, kept.to_bytes())?)
    }

    /// Durable before anything is taken away.
    fn note_redacted(&self, height: u64) -> Result<(), LedgerError> {
        let mut noted = self.redacted_to.write();
        if *noted >= height {
            return Ok(());
        }
        redaction_note::write(&self.disk, &self.folder, height)?;
        *noted = height;
        Ok(())
    }
}
