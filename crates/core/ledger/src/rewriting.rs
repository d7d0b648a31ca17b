//! A finished file of blocks is written anew with less in it, and takes the place of the old one.

use crate::ledger::{Ledger, View};
use crate::segment::Segment;
use crate::{LedgerError, disk};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Whoever has it may write files of blocks anew.
pub(crate) struct Rewriting<'a> {
    ledger: &'a Ledger,
    _turn: MutexGuard<'a, ()>,
}

impl Ledger {
    /// Waits for one's turn; to be taken before a file is read. Those who prune and those who redact may be at the same file, and would
    /// lose what the other one has done.
    pub(crate) fn rewriting(&self) -> Rewriting<'_> {
        Rewriting { ledger: self, _turn: self.rewriting.lock() }
    }
}

impl Rewriting<'_> {
    /// Puts a file of these bytes in the place of `segment`; where they begin with the blocks of the file `before` in front of it, in the
    /// place of both. Durable when it returns. False: the blocks were taken back meanwhile, and nothing has changed.
    ///
    /// # Errors
    /// [`LedgerError::DiskFull`] and [`LedgerError::Io`] leave the file as it was.
    pub(crate) fn put(
        &self,
        segment: &Arc<Segment>,
        before: Option<&Arc<Segment>>,
        bytes: &[u8],
    ) -> Result<bool, LedgerError> {
        let (ledger, target) = (self.ledger, before.unwrap_or(segment));
        let temporary = disk::temporary_name(&target.path);
        let copy = disk::create(&temporary)?;
        ledger.disk.write_at(&copy, &temporary, bytes, 0)?;
        ledger.disk.flush(&copy, &temporary)?;
        // Before, so that appending does not wait for it.
        ledger.settle_indexes();
        // Nothing may be taken back meanwhile, and no index file may be written for the file that goes.
        let writer = ledger.writer.lock();
        writer.check_usable()?;
        ledger.settle_indexes();
        let still_there = ledger.segments().iter().any(|known| Arc::ptr_eq(known, segment));
        if !still_there {
            disk::remove(&temporary)?;
            return Ok(false);
        }
        target.remove_sidecars()?;
        disk::rename(&temporary, &target.path)?;
        ledger.flush_folder()?;
        if before.is_some() {
            segment.remove_sidecars()?;
            disk::remove(&segment.path)?;
            ledger.flush_folder()?;
        }
        let new = Segment::open(&ledger.folder, ledger.ledger, target.first_height)?;
        new.open_finished()?;
        self.replace(target, new, before.is_some().then_some(segment));
        Ok(true)
    }

    /// Readers find the blocks of a file in the one that has taken its place, and those of one that is gone there too.
    fn replace(&self, target: &Arc<Segment>, new: Segment, gone: Option<&Arc<Segment>>) {
        let new = Arc::new(new);
        let mut view = self.ledger.view.write();
        let kept = view.segments.iter().filter(|known| gone.is_none_or(|gone| !Arc::ptr_eq(known, gone)));
        let replaced = kept.map(|known| if Arc::ptr_eq(known, target) { &new } else { known });
        let segments = Arc::new(replaced.cloned().collect());
        *view = View { segments, tip: view.tip, anchor: view.anchor.clone() };
        drop(view);
        self.ledger.indexer.lock().finish(new);
    }
}
