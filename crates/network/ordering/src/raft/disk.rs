//! The log on disk: entries in a journal, and beside it what this member has promised.
//!
//! | partition | what | when it is flushed |
//! | --- | --- | --- |
//! | `…-log` | every entry, at the position of its index | before anybody is told that this member has it |
//! | `…-state` | [`State`]: term and vote, who votes, where the log begins | before a vote is sent; else now and then |
//!
//! Members that are behind get blocks from here, so nothing is removed, unless the node prunes: then the floor rises, and the
//! files that end before it go ([`Disk::forget`]).

use super::chain::Offer;
use super::config::max_message_size;
use super::window::{Position, Window};
use super::wire::{Voters, WireEntry};
use borsh::{BorshDeserialize, BorshSerialize};
use commonware_codec::{EncodeSize, Error as CodecError, Read, Write};
use commonware_runtime::buffer::paged::CacheRef;
use commonware_runtime::{Buf, BufMut, Clock, Metrics, Spawner, Storage};
use commonware_storage::journal::contiguous::{Contiguous as _, Many, variable};
use commonware_storage::metadata::{self, Metadata};
use commonware_utils::{NZU16, NZU64, NZUsize, sequence::U64};
use crypto::Digest;
use raft::eraftpb::{Entry, HardState};
use std::collections::BTreeSet;
use std::num::{NonZeroU64, NonZeroUsize};
use types::{BlockHeader, decode_exactly, encode};

/// Entries of a file: always, as files are named for it. Files are removed whole.
pub(super) const ENTRIES_PER_FILE: NonZeroU64 = NZU64!(4_096);
const BUFFER: NonZeroUsize = NZUsize!(64 * 1024);
/// Pages of 4 KiB that stay in memory.
const CACHE_PAGES: NonZeroUsize = NZUsize!(256);
/// When a journal opens it reads again what was written since it noted its end: so many entries at most.
const ENTRIES_UNMARKED: usize = 256;
/// Committed entries that come back into memory at a start.
const ENTRIES_READ: u64 = 128;

/// What a member has promised, and how its log begins.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub term: u64,
    /// Whom it has voted for in this term; 0 for nobody.
    pub vote: u64,
    /// Entries up to there are known to be committed: at least.
    pub commit: u64,
    /// Who votes since which entry.
    pub voters: Voters,
    pub voters_since: u64,
    /// Entries up to there are not in the log.
    pub floor: Floor,
    /// Blocks come from elsewhere, so that the node's ledger may be ahead of the log.
    pub follows: bool,
    /// Committed entries that are no block.
    pub dropped: BTreeSet<u64>,
}

/// The block up to which the log holds none, because it began behind it, or has forgotten those before.
#[derive(BorshSerialize, BorshDeserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Floor {
    pub index: u64,
    pub term: u64,
    pub height: u64,
    /// Of the block's header; of the charter at height 0.
    pub block: Digest,
}

/// An entry in the journal.
struct Item(Vec<u8>);

impl Write for Item {
    fn write(&self, buffer: &mut impl BufMut) {
        buffer.put_u32_le(self.0.len() as u32);
        buffer.put_slice(&self.0);
    }
}

impl EncodeSize for Item {
    fn encode_size(&self) -> usize {
        4 + self.0.len()
    }
}

impl Read for Item {
    type Cfg = ();

    fn read_cfg(buffer: &mut impl Buf, (): &()) -> Result<Self, CodecError> {
        if buffer.remaining() < 4 {
            return Err(CodecError::EndOfBuffer);
        }
        let length = buffer.get_u32_le() as usize;
        if length > max_message_size() as usize {
            return Err(CodecError::InvalidLength(length));
        }
        if buffer.remaining() < length {
            return Err(CodecError::EndOfBuffer);
        }
        let mut bytes = vec![0; length];
        buffer.copy_to_slice(&mut bytes);
        Ok(Item(bytes))
    }
}

/// What the log's disk needs of a runtime.
pub(crate) trait Runtime: Clock + Spawner + Storage + Metrics {}

impl<E: Clock + Spawner + Storage + Metrics> Runtime for E {}

/// Why the log cannot be used: the disk fails, or holds what nobody has written.
pub(super) type Failed = String;

/// The log of one member.
pub(super) struct Disk<E: Runtime> {
    context: E,
    prefix: String,
    entries_per_file: NonZeroU64,
    page_cache: CacheRef,
    journal: Option<variable::Journal<E, Item>>,
    states: Option<Metadata<E, U64, Vec<u8>>>,
    pub state: State,
    /// Entries that were flushed since the journal noted where it need not look again when it opens.
    unmarked: usize,
    /// Times that a journal was opened: each needs a name of its own.
    opened: u64,
}

fn failed(what: &str) -> impl Fn(&dyn std::fmt::Display) -> Failed {
    move |error| format!("the Raft log cannot be {what}: {error}")
}

const GONE: &str = "an earlier error has ended the log";

impl<E: Runtime> Disk<E> {
    /// Opens the log of a member, or begins it with `first`.
    pub(super) async fn open(
        context: E,
        (prefix, entries_per_file): (&str, NonZeroU64),
        first: State,
    ) -> Result<Disk<E>, Failed> {
        let opening = failed("opened");
        let config =
            metadata::Config { partition: format!("{prefix}-state"), codec_config: ((0..).into(), ()) };
        let states: Metadata<E, U64, Vec<u8>> =
            Metadata::init(context.child("state"), config).await.map_err(|error| opening(&error))?;
        let known = states.get(&U64::new(0)).map(|bytes| decode_exactly::<State>(bytes));
        let known = known.transpose().map_err(|error| opening(&error))?;
        let is_new = known.is_none();
        let mut disk = Disk {
            prefix: prefix.to_string(),
            entries_per_file,
            page_cache: CacheRef::new(NZU16!(4096), CACHE_PAGES),
            journal: None,
            states: Some(states),
            state: known.unwrap_or(first),
            unmarked: 0,
            opened: 0,
            context,
        };
        if is_new {
            disk.save().await?;
        }
        disk.open_journal().await?;
        disk.remove_forgotten().await?;
        Ok(disk)
    }

    fn config(&mut self) -> (E, variable::Config<()>) {
        self.opened += 1;
        let config = variable::Config {
            partition: format!("{}-log", self.prefix),
            items_per_section: self.entries_per_file,
            compression: None,
            codec_config: (),
            page_cache: self.page_cache.clone(),
            write_buffer: BUFFER,
            replay_buffer: BUFFER,
        };
        (self.context.child("log").with_attribute("opened", self.opened), config)
    }

    /// Opens the journal so that it goes on behind the floor: one that was to begin anew when the node ended does so now.
    async fn open_journal(&mut self) -> Result<(), Failed> {
        let opening = failed("opened");
        let (context, config) = self.config();
        let journal = variable::Journal::init(context, config).await.map_err(|error| opening(&error))?;
        let Floor { index, term, .. } = self.state.floor;
        let bounds = journal.bounds();
        let fits = match bounds.start == index + 1 {
            true => true,
            // What stands there is followed by what stood behind it only if it is the same entry.
            false if bounds.contains(&index) && index > 0 => {
                let item: Item = journal.read(index).await.map_err(|error| opening(&error))?;
                entry(index, &item.0)?.term == term
            }
            false => false,
        };
        self.journal = Some(journal);
        if !fits {
            self.begin_behind(index).await?;
        }
        Ok(())
    }

    async fn begin_behind(&mut self, index: u64) -> Result<(), Failed> {
        drop(self.journal.take());
        let (context, config) = self.config();
        let journal = variable::Journal::init_at_size(context, config, index + 1).await;
        self.journal = Some(journal.map_err(|error| failed("begun anew")(&error))?);
        Ok(())
    }

    fn journal(&self) -> Result<&variable::Journal<E, Item>, Failed> {
        self.journal.as_ref().ok_or_else(|| GONE.to_string())
    }

    /// The index behind the last entry.
    pub(super) fn end(&self) -> Result<u64, Failed> {
        Ok(self.journal()?.size())
    }

    /// An entry that is there.
    pub(super) async fn read(&self, index: u64) -> Result<Entry, Failed> {
        let item = self.journal()?.read(index).await.map_err(|error| failed("read")(&error))?;
        entry(index, &item.0)
    }

    /// The first entry with a block for whose header something holds that then holds for all behind it, or the end of the log.
    /// Entries that are known to be no block do not count; without them heights only grow along the log.
    pub(super) async fn first_where(&self, holds: impl Fn(&BlockHeader) -> bool) -> Result<u64, Failed> {
        let (mut low, mut high) = (self.state.floor.index + 1, self.end()?);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut found = None;
            for index in (low..=middle).rev() {
                let entry = self.read(index).await?;
                if let Some(header) = Offer::header_of(&entry.data)
                    && !self.state.dropped.contains(&index)
                {
                    found = Some((index, holds(&header)));
                    break;
                }
            }
            match found {
                Some((index, true)) => high = index,
                _ => low = middle + 1,
            }
        }
        Ok(low)
    }

    /// Writes entries and flushes them; what stood at their places and behind them is gone.
    pub(super) async fn append(&mut self, entries: &[Entry]) -> Result<(), Failed> {
        let Some(first) = entries.first() else { return Ok(()) };
        let writing = failed("written");
        if first.index < self.journal()?.size() {
            drop(self.journal.take());
            let (context, config) = self.config();
            let cut = variable::Journal::init_at_most(context, config, first.index).await;
            self.journal = Some(cut.map_err(|error| writing(&error))?);
        }
        let journal = self.journal.take().ok_or_else(|| GONE.to_string())?;
        if journal.size() != first.index {
            return Err(format!(
                "the Raft log ends before entry {}, and {} is to be written",
                journal.size(),
                first.index
            ));
        }
        let items: Vec<Item> = entries.iter().map(|entry| Item(encode(&WireEntry::of(entry)))).collect();
        let (journal, _) = journal.append_many(Many::Flat(&items)).await.map_err(|error| writing(&error))?;
        self.unmarked += entries.len();
        let flushed = match self.unmarked >= ENTRIES_UNMARKED {
            true => journal.sync().await,
            false => journal.commit().await,
        };
        if self.unmarked >= ENTRIES_UNMARKED {
            self.unmarked = 0;
        }
        self.journal = Some(flushed.map_err(|error| writing(&error))?);
        Ok(())
    }

    /// Makes the state durable.
    pub(super) async fn save(&mut self) -> Result<(), Failed> {
        let mut states = self.states.take().ok_or_else(|| GONE.to_string())?;
        states.put(U64::new(0), encode(&self.state));
        self.states = Some(states.sync().await.map_err(|error| failed("written")(&error))?);
        Ok(())
    }

    /// The log begins anew behind a block.
    pub(super) async fn restart(&mut self, floor: Floor, voters: Voters) -> Result<(), Failed> {
        let State { term, commit, .. } = &mut self.state;
        (*term, *commit) = ((*term).max(floor.term), floor.index);
        (self.state.voters, self.state.voters_since, self.state.floor) = (voters, floor.index, floor);
        // The state first: a node that ends in between begins the log anew when it starts.
        self.save().await?;
        self.begin_behind(floor.index).await
    }

    /// Forgets the blocks below `height`, whose entries are judged up to `judged`, if that removes a file. Says whether they are
    /// forgotten; where the log has no such block, or it is not judged yet, nothing is.
    pub(super) async fn forget(&mut self, height: u64, judged: u64) -> Result<bool, Failed> {
        // There are at least as many entries as blocks.
        if height < self.state.floor.height + self.entries_per_file.get() {
            return Ok(false);
        }
        let index = self.first_where(|header| header.height >= height).await?;
        if index > judged || index >= self.end()? {
            return Ok(false);
        }
        let kept = Offer::header_of(&self.read(index).await?.data).filter(|header| header.height == height);
        let Some(kept) = kept else { return Ok(false) };
        let term = self.read(index - 1).await?.term;
        self.state.floor = Floor { index: index - 1, term, height: height - 1, block: kept.previous };
        self.state.dropped = self.state.dropped.split_off(&index);
        // The state first: a node that ends in between removes the files when it starts.
        self.save().await?;
        self.remove_forgotten().await?;
        Ok(true)
    }

    /// Removes the files that end before the floor. The floor's own entry stays: it shows that what follows belongs to it.
    async fn remove_forgotten(&mut self) -> Result<(), Failed> {
        let journal = self.journal.take().ok_or_else(|| GONE.to_string())?;
        let pruned = journal.prune(self.state.floor.index).await;
        self.journal = Some(pruned.map_err(|error| failed("shortened")(&error))?.0);
        Ok(())
    }

    /// The newest entries, for the Raft crate.
    pub(super) async fn window(&mut self) -> Result<Window, Failed> {
        let (end, floor) = (self.end()?, self.state.floor);
        let last = end - 1;
        let state = &mut self.state;
        // The journal is flushed on its own: it may know of a later term than was saved.
        state.commit = state.commit.clamp(floor.index, last.max(floor.index));
        let base = state.commit.saturating_sub(ENTRIES_READ).max(floor.index);
        let mut entries = Vec::new();
        for index in base + 1..end {
            entries.push(self.read(index).await?);
        }
        let term = match base == floor.index {
            true => floor.term,
            false => self.read(base).await?.term,
        };
        let newest = entries.last().map_or(term, |entry| entry.term);
        if newest > self.state.term {
            (self.state.term, self.state.vote) = (newest, 0);
        }
        let State { term: current, vote, commit, voters, .. } = &self.state;
        let mut hard = HardState::default();
        (hard.term, hard.vote, hard.commit) = (*current, *vote, *commit);
        let mut window = Window::new(hard, voters.to_state(), Position { index: base, term });
        window.append(&entries);
        Ok(window)
    }
}

fn entry(index: u64, bytes: &[u8]) -> Result<Entry, Failed> {
    let read = decode_exactly::<WireEntry>(bytes).map_err(|error| failed("read")(&error))?;
    match read.into_entry() {
        Some(entry) if entry.index == index => Ok(entry),
        _ => Err(format!("the Raft log holds something else than entry {index} at its place")),
    }
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::cutting::{Parent, assemble};
    use crate::simulation::node_key;
    use commonware_runtime::{Runner as _, Supervisor as _, deterministic};
    use raft::Storage as _;
    use types::Attested;

    fn first() -> State {
        let floor = Floor { index: 0, term: 0, height: 0, block: Digest::ZERO };
        let voters = Voters { voters: vec![1, 2, 3], ..Voters::default() };
        State {
            term: 0,
            vote: 0,
            commit: 0,
            voters,
            voters_since: 0,
            floor,
            follows: false,
            dropped: BTreeSet::new(),
        }
    }

    fn entries(range: std::ops::RangeInclusive<u64>, term: u64) -> Vec<Entry> {
        let entry = |index| {
            let mut entry = Entry::default();
            (entry.index, entry.term) = (index, term);
            entry.data = format!("{index} of term {term}").into_bytes().into();
            entry
        };
        range.map(entry).collect()
    }

    async fn open(
        context: deterministic::Context,
        state: State,
    ) -> Result<Disk<deterministic::Context>, Failed> {
        Disk::open(context, ("one", NZU64!(16)), state).await
    }

    /// A block of a height, behind one that is another at every height.
    fn block_entry(index: u64, height: u64, term: u64) -> Entry {
        let parent = Parent { height: height - 1, ..Parent::charter(Digest([height as u8; 32])) };
        let block = assemble(Digest::ZERO, &parent, 0, 5, Attested::default(), Vec::new());
        let mut entry = Entry::default();
        (entry.index, entry.term) = (index, term);
        entry.data = Offer::sign(block, &node_key(0)).to_bytes().into();
        entry
    }

    /// A log whose every seventh entry is no block.
    fn log(range: std::ops::RangeInclusive<u64>) -> Vec<Entry> {
        let entry = |index: u64| match index % 7 {
            0 => entries(index..=index, 1 + index / 20).remove(0),
            _ => block_entry(index, index - index / 7, 1 + index / 20),
        };
        range.map(entry).collect()
    }

    fn index_of(height: u64) -> u64 {
        (1..).find(|index| index % 7 != 0 && index - index / 7 == height).expect("it is somewhere")
    }

    #[test]
    fn what_is_forgotten_is_gone_with_its_files_and_the_log_goes_on_behind_it() {
        deterministic::Runner::default().start(|context| async move {
            let mut disk = open(context.child("first"), first()).await.expect("a new log");
            disk.append(&log(1..=100)).await.expect("room");
            disk.state.commit = 90;
            disk.state.dropped = BTreeSet::from([7, 14, 77]);
            assert_eq!(disk.forget(10, 100).await, Ok(false), "no file ends before it");
            assert_eq!(disk.forget(60, 40).await, Ok(false), "it is not judged yet");
            assert_eq!(disk.forget(200, 100).await, Ok(false), "it is not there");
            assert_eq!(disk.state.floor, first().floor);
            assert_eq!(disk.forget(60, 100).await, Ok(true));
            let (kept, floor) = (index_of(60), disk.state.floor);
            assert_eq!((floor.index, floor.height, floor.term), (kept - 1, 59, 1 + (kept - 1) / 20));
            assert_eq!(disk.state.dropped, BTreeSet::from([77]));
            let block = Offer::header_of(&log(kept..=kept)[0].data).expect("a block").previous;
            assert_eq!(floor.block, block);
            let files = context.scan("one-log_data").await.expect("a log");
            assert_eq!(files.len() as u64, 100 / 16 - (kept - 1) / 16 + 1);
            drop(disk);
            let mut disk = open(context.child("second"), first()).await.expect("it opens");
            assert_eq!((disk.state.floor, disk.end()), (floor, Ok(101)), "the floor survives");
            assert!(disk.read(1).await.is_err(), "its file is gone");
            assert_eq!(disk.first_where(|header| header.height >= 1).await, Ok(kept));
            assert_eq!(disk.first_where(|header| header.height >= 70).await, Ok(index_of(70)));
            disk.append(&log(101..=120)).await.expect("room");
            let window = disk.window().await.expect("it is there");
            assert_eq!((window.first_index(), window.last_index()), (Ok(kept), Ok(120)));
        });
    }

    /// The node is killed when the floor is durable and no file is removed yet.
    #[test]
    fn a_log_whose_floor_has_risen_before_its_files_went_removes_them_when_it_opens() {
        deterministic::Runner::default().start(|context| async move {
            let mut disk = open(context.child("first"), first()).await.expect("a new log");
            disk.append(&log(1..=100)).await.expect("room");
            let term = disk.read(50).await.expect("an entry").term;
            disk.state.floor = Floor { index: 50, term, height: 43, block: Digest::ZERO };
            disk.save().await.expect("room");
            drop(disk);
            assert_eq!(context.scan("one-log_data").await.expect("a log").len(), 7);
            let disk = open(context.child("second"), first()).await.expect("it opens");
            assert_eq!((disk.end(), disk.read(50).await.is_ok()), (Ok(101), true));
            assert!(disk.read(47).await.is_err());
            assert_eq!(context.scan("one-log_data").await.expect("a log").len(), 4);
        });
    }

    #[test]
    fn entries_behind_a_gap_are_refused() {
        deterministic::Runner::default().start(|context| async move {
            let mut disk = open(context, first()).await.expect("a new log");
            disk.append(&entries(1..=9, 1)).await.expect("room");
            let error = disk.append(&entries(11..=12, 2)).await.expect_err("a gap");
            assert!(error.contains("ends before entry 10"), "{error}");
        });
    }

    #[test]
    fn a_log_opens_with_its_state_and_goes_on_behind_a_floor() {
        deterministic::Runner::default().start(|context| async move {
            let mut disk = open(context.child("first"), first()).await.expect("a new log");
            disk.append(&entries(1..=9, 1)).await.expect("room");
            disk.append(&entries(7..=8, 2)).await.expect("room");
            (disk.state.term, disk.state.vote, disk.state.commit) = (1, 2, 5);
            disk.save().await.expect("room");
            drop(disk);
            let unused = State { term: 99, ..first() };
            let mut disk = open(context.child("second"), unused.clone()).await.expect("it opens");
            assert_eq!((disk.end(), disk.read(6).await), (Ok(9), Ok(entries(6..=6, 1).remove(0))));
            assert_eq!(disk.read(8).await, Ok(entries(8..=8, 2).remove(0)));
            let window = disk.window().await.expect("it is there");
            // The journal knows of a later term: whom this member voted for in it is not known, and it has said nothing.
            assert_eq!((window.hard.term, window.hard.vote, window.hard.commit), (2, 0, 5));
            assert_eq!((window.first_index(), window.last_index()), (Ok(1), Ok(8)));
            let floor = Floor { index: 40, term: 3, height: 30, block: Digest([7; 32]) };
            disk.restart(floor, Voters::default()).await.expect("room");
            disk.append(&entries(41..=43, 3)).await.expect("room");
            drop(disk);
            let mut disk = open(context.child("third"), unused).await.expect("it opens");
            assert_eq!((disk.state.floor, disk.end()), (floor, Ok(44)));
            let window = disk.window().await.expect("it is there");
            assert_eq!((window.first_index(), window.term(40)), (Ok(41), Ok(3)));
            assert!(disk.read(8).await.is_err());
        });
    }
}
