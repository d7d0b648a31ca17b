//! The newest entries of the log in memory, as the Raft crate asks for them.
//!
//! A member that lacks what is older is sent where the log begins for it, and gets the blocks before from anybody
//! ([`super::member`]). So the group itself never waits for the disk to read.

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot, SnapshotMetadata};
use raft::{Error, GetEntriesContext, RaftState, Result, Storage, StorageError};
use std::collections::VecDeque;

/// Entries and bytes of them that stay although every one of them is delivered here, for members that lag a little.
const ENTRIES_KEPT: usize = 512;
const BYTES_KEPT: usize = 32 * 1024 * 1024;

/// A place in the log: an entry that is there no more, or the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Position {
    pub index: u64,
    pub term: u64,
}

/// What another member's log can begin with.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Point {
    pub position: Position,
    pub voters: ConfState,
    /// Which block it is: for [`super::member`].
    pub data: Vec<u8>,
}

/// The newest entries.
#[derive(Default)]
pub(super) struct Window {
    pub hard: HardState,
    pub voters: ConfState,
    base: Position,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// What is offered to who lacks older entries.
    pub point: Option<Point>,
}

impl Window {
    pub(super) fn new(hard: HardState, voters: ConfState, base: Position) -> Window {
        Window { hard, voters, base, ..Window::default() }
    }

    pub(super) fn base(&self) -> Position {
        self.base
    }

    pub(super) fn last(&self) -> Position {
        self.entries.back().map_or(self.base, |entry| Position { index: entry.index, term: entry.term })
    }

    /// An entry, if it is here.
    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(index.checked_sub(self.base.index + 1)?).ok()?)
    }

    /// Takes entries; what stood at their places and behind them is gone.
    pub(super) fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        while self.last().index >= first.index
            && let Some(entry) = self.entries.pop_back()
        {
            self.bytes -= entry.data.len();
        }
        for entry in entries {
            self.bytes += entry.data.len();
            self.entries.push_back(entry.clone());
        }
    }

    /// The log begins anew behind a position.
    pub(super) fn restart(&mut self, base: Position, voters: ConfState) {
        self.entries.clear();
        self.bytes = 0;
        self.base = base;
        self.voters = voters;
        self.hard.commit = base.index;
        self.hard.term = self.hard.term.max(base.term);
    }

    /// Forgets the oldest entries beyond what is kept, but none behind `index`.
    pub(super) fn trim(&mut self, index: u64) {
        while self.entries.len() > ENTRIES_KEPT || self.bytes > BYTES_KEPT {
            let Some(entry) = self.entries.front().filter(|entry| entry.index <= index) else { return };
            self.base = Position { index: entry.index, term: entry.term };
            self.bytes -= entry.data.len();
            self.entries.pop_front();
        }
    }
}

impl Storage for Window {
    fn initial_state(&self) -> Result<RaftState> {
        Ok(RaftState { hard_state: self.hard.clone(), conf_state: self.voters.clone() })
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> Result<Vec<Entry>> {
        if low <= self.base.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last().index + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let range = (low - self.base.index - 1) as usize..(high - self.base.index - 1) as usize;
        let (limit, mut bytes) = (max_size.into().unwrap_or(u64::MAX), 0);
        let fits = |entry: &&Entry| {
            let first = bytes == 0;
            bytes += entry.data.len() as u64 + 32;
            first || bytes <= limit
        };
        Ok(self.entries.range(range).take_while(fits).cloned().collect())
    }

    fn term(&self, index: u64) -> Result<u64> {
        match index {
            index if index == self.base.index => Ok(self.base.term),
            index if index < self.base.index => Err(Error::Store(StorageError::Compacted)),
            index => match self.get(index) {
                Some(entry) => Ok(entry.term),
                None => Err(Error::Store(StorageError::Unavailable)),
            },
        }
    }

    fn first_index(&self) -> Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> Result<u64> {
        Ok(self.last().index)
    }

    fn snapshot(&self, request_index: u64, _: u64) -> Result<Snapshot> {
        let point = self
            .point
            .as_ref()
            .filter(|point| point.position.index >= request_index && point.position.index >= self.base.index);
        let Some(Point { position, voters, data }) = point else {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        };
        let mut metadata = SnapshotMetadata::default();
        metadata.set_conf_state(voters.clone());
        (metadata.index, metadata.term) = (position.index, position.term);
        let mut snapshot = Snapshot::default();
        snapshot.set_metadata(metadata);
        snapshot.data = data.clone().into();
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(range: std::ops::RangeInclusive<u64>, term: u64) -> Vec<Entry> {
        let entry = |index| {
            let mut entry = Entry::default();
            (entry.index, entry.term) = (index, term);
            entry.data = vec![index as u8; 100].into();
            entry
        };
        range.map(entry).collect()
    }

    fn read(window: &Window, low: u64, high: u64, limit: u64) -> Result<Vec<u64>> {
        let read = window.entries(low, high, limit, GetEntriesContext::empty(false))?;
        Ok(read.iter().map(|entry| entry.index).collect())
    }

    #[test]
    fn entries_are_replaced_from_the_first_that_differs_and_limited_by_their_size() {
        let mut window =
            Window::new(HardState::default(), ConfState::default(), Position { index: 4, term: 1 });
        assert_eq!((window.first_index(), window.last_index()), (Ok(5), Ok(4)));
        window.append(&entries(5..=9, 2));
        window.append(&entries(8..=8, 3));
        assert_eq!(window.last(), Position { index: 8, term: 3 });
        assert_eq!((window.term(4), window.term(7), window.term(8)), (Ok(1), Ok(2), Ok(3)));
        assert_eq!(read(&window, 5, 9, u64::MAX), Ok(vec![5, 6, 7, 8]));
        assert_eq!(read(&window, 5, 9, 300), Ok(vec![5, 6]));
        assert_eq!(read(&window, 5, 9, 0), Ok(vec![5]), "never none");
        assert_eq!(read(&window, 4, 6, 300), Err(Error::Store(StorageError::Compacted)));
        assert_eq!(read(&window, 5, 10, 300), Err(Error::Store(StorageError::Unavailable)));
        assert_eq!(window.term(3), Err(Error::Store(StorageError::Compacted)));
        assert_eq!(window.term(9), Err(Error::Store(StorageError::Unavailable)));
    }

    #[test]
    fn old_entries_go_and_a_snapshot_is_never_older_than_the_window() {
        let mut window = Window::new(HardState::default(), ConfState::default(), Position::default());
        window.append(&entries(1..=2_000, 1));
        window.trim(1_000);
        assert_eq!(window.base().index, 1_000, "no entry behind what is delivered goes");
        window.trim(2_000);
        assert_eq!(window.base().index, 2_000 - ENTRIES_KEPT as u64);
        assert_eq!(window.bytes, ENTRIES_KEPT * 100);
        let unavailable = Error::Store(StorageError::SnapshotTemporarilyUnavailable);
        assert_eq!(window.snapshot(0, 1), Err(unavailable));
        let at = |index| {
            let position = Position { index, term: 1 };
            Some(Point { position, voters: ConfState::default(), data: vec![7] })
        };
        window.point = at(1_000);
        assert!(window.snapshot(0, 1).is_err());
        window.point = at(1_990);
        assert_eq!(window.snapshot(0, 1).map(|snapshot| snapshot.get_metadata().index), Ok(1_990));
        window.restart(Position { index: 3_000, term: 4 }, ConfState::default());
        assert_eq!(
            (window.first_index(), window.last_index(), window.hard.commit),
            (Ok(3_001), Ok(3_000), 3_000)
        );
    }
}
