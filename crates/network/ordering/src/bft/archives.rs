//! Where final blocks are stored with what proves them: for ever, or for as long as the node's ledger has their payloads.
//!
//! | [`Archive`] | files | what of it is in memory |
//! | --- | --- | --- |
//! | `Whole` | an index by key and one by height, both on disk; nothing is ever removed | next to nothing |
//! | `Recent` | [`Forgetting::BLOCKS_PER_FILE`] heights share files, which are removed together | 48 bytes at most per block that is kept, as much per finalization, and four open files per [`Forgetting::BLOCKS_PER_FILE`] of them |
//!
//! A finalization goes with its block: without it nobody can be given anything, and the node's ledger has certificates of its
//! own. Marshal keeps the newest one at or below the last block that it has delivered, whatever it is told.
//!
//! # From one to the other
//!
//! A node that starts with the other setting than last time moves what is kept. A note on disk ([`Stored`]) says which of the two
//! counts. It changes once the copy is durable; what does not count is removed at any start. So a node that is killed
//! meanwhile begins the copy anew, or ends the removal. The note also says how many heights share files. A node that keeps
//! everything has no note.

use super::block::{BlockRules, OrderedBlock};
use super::config::memory;
use super::finalization::Floor;
use commonware_codec::{CodecShared, Read};
use commonware_consensus::marshal::store::{Blocks, Certificates};
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_consensus::types::Height;
use commonware_cryptography::{Digestible as _, certificate::Verifier as _, sha256};
use commonware_runtime::buffer::paged::CacheRef;
use commonware_runtime::{Clock, Error as RuntimeError, Handle, Metrics, Storage};
use commonware_storage::archive::{Archive as _, Error, Identifier, immutable, prunable};
use commonware_storage::metadata::{self, Metadata};
use commonware_storage::translator::EightCap;
use commonware_utils::{NZU64, sequence::U64};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

/// What is copied is flushed after so many blocks.
const COPIED_UNSYNCED: u64 = 64;

/// What an archive of this crate needs of a runtime.
pub(super) trait Runtime: Clock + Storage + Metrics {}

impl<E: Clock + Storage + Metrics> Runtime for E {}

/// Blocks or finalizations by height and by the block's digest.
pub(super) enum Archive<E: Runtime, V: CodecShared> {
    Whole(immutable::Archive<E, sha256::Digest, V>),
    Recent(prunable::Archive<EightCap, E, sha256::Digest, V>),
}

/// Blocks as marshal stores them.
pub(super) type BlockArchive<E> = Archive<E, Arc<OrderedBlock>>;
/// What proves them.
pub(super) type FinalizationArchive<E> = Archive<E, Floor>;

/// How a node that prunes stores its blocks, and what it has given up.
pub(crate) struct Forgetting {
    /// It has blocks from this height on.
    pub from: u64,
    /// So many heights share files, always: their files are named for it.
    pub blocks_per_file: NonZeroU64,
    /// Marshal has been told to forget what is below.
    below: AtomicU64,
}

impl Forgetting {
    /// Blocks in files that are removed together. More would keep more than was asked for; fewer would be more files, of which all
    /// are open.
    pub(crate) const BLOCKS_PER_FILE: NonZeroU64 = NZU64!(1024);
    /// So many of the newest blocks stay whatever the ledger says: for members that are a little behind, for a ledger that loses its
    /// tail, and because marshal is told a little later than the node that a block is durable.
    const NEWEST_KEPT: u64 = 64;

    pub(crate) fn new(from: u64, blocks_per_file: NonZeroU64) -> Forgetting {
        Forgetting { from, blocks_per_file, below: AtomicU64::new(0) }
    }

    /// The lowest height that is kept, if blocks below `height` are not needed and those up to `durable` are in the node's ledger.
    fn kept_from(height: u64, durable: u64) -> u64 {
        height.min(durable.saturating_sub(Self::NEWEST_KEPT))
    }

    /// What marshal is to forget now that the node's ledger has given up what is below `height`: nothing unless that removes files.
    pub(crate) fn below(&self, height: u64, durable: u64) -> Option<Height> {
        let below = Self::kept_from(height, durable) / self.blocks_per_file * self.blocks_per_file.get();
        (self.below.fetch_max(below, Atomic::AcqRel) < below).then(|| Height::new(below))
    }
}

/// Which archives count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stored {
    Whole,
    /// So many heights share files.
    Recent(NonZeroU64),
}

/// How to open the archives of a member.
pub(super) struct Opening<'a> {
    /// Names of its files begin with it.
    pub prefix: &'a str,
    pub page_cache: &'a CacheRef,
    pub rules: BlockRules,
    /// If the node prunes.
    pub forgetting: Option<&'a Forgetting>,
    /// Everything up to here is durable in the node's ledger.
    pub start: u64,
}

const FINALIZATIONS: &str = "finalizations";
const BLOCKS: &str = "blocks";

impl Opening<'_> {
    /// Opens the archives as the node wants to store blocks from now on, with what they hold as it wanted before.
    pub(super) async fn open<E: Runtime>(
        &self,
        context: &E,
    ) -> Result<(FinalizationArchive<E>, BlockArchive<E>), Error> {
        let wanted = self.forgetting.map_or(Stored::Whole, |kept| Stored::Recent(kept.blocks_per_file));
        let stored = self.stored(context).await?;
        self.remove_others(context, stored).await?;
        if stored.files() == wanted.files() {
            return self.open_as(context, stored).await;
        }
        // Of a new node nothing has to be moved.
        let is_new = !self.has_files(context, stored).await?;
        let (mut finalizations, mut blocks) = self.open_as(context, wanted).await?;
        if !is_new {
            let first = self.forgetting.map_or(0, |kept| Forgetting::kept_from(kept.from, self.start));
            tracing::info!(?wanted, first, "the blocks that ordering stores move to other files");
            let (old_finalizations, old_blocks) = self.open_as(&context.child("moved"), stored).await?;
            // Marshal looks for the newest one at or below the last block that it has delivered.
            let proved = old_finalizations.newest_up_to(first);
            let of_block = |finalization: &Floor| finalization.proposal.payload;
            finalizations = old_finalizations.copy_into(finalizations, proved, of_block).await?;
            blocks = old_blocks.copy_into(blocks, first, |block| block.digest()).await?;
        }
        self.note(context, wanted).await?;
        self.remove_others(context, wanted).await?;
        Ok((finalizations, blocks))
    }

    async fn open_as<E: Runtime>(
        &self,
        context: &E,
        stored: Stored,
    ) -> Result<(FinalizationArchive<E>, BlockArchive<E>), Error> {
        let finalizations = context.child(FINALIZATIONS);
        let codec = Scheme::certificate_codec_config_unbounded();
        let finalizations = self.archive(finalizations, (FINALIZATIONS, stored), codec).await?;
        let blocks = self.archive(context.child(BLOCKS), (BLOCKS, stored), self.rules.clone()).await?;
        Ok((finalizations, blocks))
    }

    async fn archive<E: Runtime, V: CodecShared>(
        &self,
        context: E,
        (name, stored): (&str, Stored),
        codec: <V as Read>::Cfg,
    ) -> Result<Archive<E, V>, Error> {
        Ok(match stored {
            Stored::Whole => {
                Archive::Whole(immutable::Archive::init(context, self.whole(name, codec)).await?)
            }
            Stored::Recent(blocks_per_file) => {
                let config = self.recent((name, blocks_per_file), codec);
                Archive::Recent(prunable::Archive::init(context, config).await?)
            }
        })
    }

    fn whole<C>(&self, name: &str, codec_config: C) -> immutable::Config<C> {
        let [metadata, table, key, value, ordinal] =
            WHOLE_FILES.map(|files| format!("{}-{name}-{files}", self.prefix));
        immutable::Config {
            metadata_partition: metadata,
            freezer_table_partition: table,
            freezer_table_initial_size: 1024,
            freezer_table_resize_frequency: 4,
            freezer_table_resize_chunk_size: 1024,
            freezer_key_partition: key,
            freezer_key_page_cache: self.page_cache.clone(),
            freezer_value_partition: value,
            freezer_value_target_size: memory::ARCHIVE_FILE_BYTES,
            freezer_value_compression: None,
            ordinal_partition: ordinal,
            items_per_section: NZU64!(1024),
            freezer_key_write_buffer: memory::FILE_BUFFER,
            freezer_value_write_buffer: memory::FILE_BUFFER,
            ordinal_write_buffer: memory::FILE_BUFFER,
            replay_buffer: memory::FILE_BUFFER,
            codec_config,
        }
    }

    fn recent<C>(
        &self,
        (name, blocks_per_file): (&str, NonZeroU64),
        codec_config: C,
    ) -> prunable::Config<EightCap, C> {
        let [metadata, key, value] = RECENT_FILES.map(|files| format!("{}-{name}-{files}", self.prefix));
        prunable::Config {
            translator: EightCap,
            metadata_partition: metadata,
            key_partition: key,
            key_page_cache: self.page_cache.clone(),
            value_partition: value,
            compression: None,
            codec_config,
            items_per_section: blocks_per_file,
            key_write_buffer: memory::FILE_BUFFER,
            value_write_buffer: memory::FILE_BUFFER,
            replay_buffer: memory::FILE_BUFFER,
        }
    }

    /// Which archives count: the whole ones unless it is noted otherwise.
    async fn stored<E: Runtime>(&self, context: &E) -> Result<Stored, Error> {
        if !exists(context, &self.note_files()).await? {
            return Ok(Stored::Whole);
        }
        let note = self.open_note(context.child("noted")).await?;
        let blocks_per_file = note.get(&NOTED).and_then(|noted| noted.as_slice().try_into().ok());
        let blocks_per_file = blocks_per_file.and_then(|bytes| NonZeroU64::new(u64::from_le_bytes(bytes)));
        Ok(blocks_per_file.map_or(Stored::Whole, Stored::Recent))
    }

    async fn note<E: Runtime>(&self, context: &E, stored: Stored) -> Result<(), Error> {
        let blocks_per_file = match stored {
            Stored::Whole => 0,
            Stored::Recent(blocks_per_file) => blocks_per_file.get(),
        };
        let mut note = self.open_note(context.child("note")).await?;
        note.put(NOTED, blocks_per_file.to_le_bytes().to_vec());
        note.sync().await?;
        Ok(())
    }

    async fn open_note<E: Runtime>(&self, context: E) -> Result<Metadata<E, U64, Vec<u8>>, Error> {
        let config = metadata::Config { partition: self.note_files(), codec_config: ((0..).into(), ()) };
        Ok(Metadata::init(context, config).await?)
    }

    fn note_files(&self) -> String {
        format!("{}-stored", self.prefix)
    }

    async fn has_files<E: Runtime>(&self, context: &E, stored: Stored) -> Result<bool, Error> {
        for partition in partitions_of(self.prefix, stored.files()) {
            if exists(context, &partition).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes what does not count; where the whole archives do, the note as well, which says nothing that its absence does not.
    async fn remove_others<E: Runtime>(&self, context: &E, stored: Stored) -> Result<(), Error> {
        let others: &[&str] = match stored {
            Stored::Whole => &RECENT_FILES,
            Stored::Recent(_) => &WHOLE_FILES,
        };
        for partition in partitions_of(self.prefix, others) {
            remove(context, &partition).await?;
        }
        match stored {
            Stored::Whole => remove(context, &self.note_files()).await,
            Stored::Recent(_) => Ok(()),
        }
    }
}

const WHOLE_FILES: [&str; 5] = ["metadata", "table", "key", "value", "ordinal"];
const RECENT_FILES: [&str; 3] = ["recent-metadata", "recent-key", "recent-value"];
/// The place of what is noted.
const NOTED: U64 = U64::new(0);

impl Stored {
    fn files(self) -> &'static [&'static str] {
        match self {
            Stored::Whole => &WHOLE_FILES,
            Stored::Recent(_) => &RECENT_FILES,
        }
    }
}

fn partitions_of(prefix: &str, files: &[&str]) -> Vec<String> {
    let of = |name: &'static str| files.iter().map(move |files| format!("{prefix}-{name}-{files}"));
    of(FINALIZATIONS).chain(of(BLOCKS)).collect()
}

/// Names of the folders of all files of blocks and what proves them.
#[cfg(feature = "simulation")]
pub(crate) fn partitions(prefix: &str) -> Vec<String> {
    [&WHOLE_FILES[..], &RECENT_FILES[..]].into_iter().flat_map(|files| partitions_of(prefix, files)).collect()
}

async fn exists<E: Storage>(context: &E, partition: &str) -> Result<bool, Error> {
    match context.scan(partition).await {
        Ok(files) => Ok(!files.is_empty()),
        Err(RuntimeError::PartitionMissing(_)) => Ok(false),
        Err(error) => Err(metadata::Error::Runtime(error).into()),
    }
}

async fn remove<E: Storage>(context: &E, partition: &str) -> Result<(), Error> {
    match context.remove(partition, None).await {
        Ok(()) | Err(RuntimeError::PartitionMissing(_)) => Ok(()),
        Err(error) => Err(metadata::Error::Runtime(error).into()),
    }
}

impl<E: Runtime, V: CodecShared> Archive<E, V> {
    /// Writes what it holds from a height on into another one, durably.
    async fn copy_into(
        self,
        mut other: Archive<E, V>,
        first: u64,
        key: impl Fn(&V) -> sha256::Digest,
    ) -> Result<Archive<E, V>, Error> {
        let ranges: Vec<(u64, u64)> = self.ranges_from(first).collect();
        let mut copied = 0_u64;
        for height in ranges.into_iter().flat_map(|(start, end)| start.max(first)..=end) {
            let Some(value) = self.get(Identifier::Index(height)).await? else { continue };
            other = other.put(height, key(&value), &value).await?;
            copied += 1;
            if copied.is_multiple_of(COPIED_UNSYNCED) {
                other = other.sync().await?;
            }
        }
        other.sync().await
    }

    /// The greatest height up to this one that it holds; the height itself where there is none.
    fn newest_up_to(&self, height: u64) -> u64 {
        let below = self.ranges_from(0).take_while(|(start, _)| *start <= height);
        below.last().map_or(height, |(_, end)| end.min(height))
    }

    async fn put(self, height: u64, key: sha256::Digest, value: &V) -> Result<Self, Error> {
        Ok(match self {
            Archive::Whole(archive) => Archive::Whole(archive.put(height, key, value).await?),
            Archive::Recent(archive) => Archive::Recent(archive.put(height, key, value).await?),
        })
    }

    async fn sync(self) -> Result<Self, Error> {
        Ok(match self {
            Archive::Whole(archive) => Archive::Whole(archive.sync().await?),
            Archive::Recent(archive) => Archive::Recent(archive.sync().await?),
        })
    }

    async fn start_sync(self) -> Result<(Self, Handle<()>), Error> {
        Ok(match self {
            Archive::Whole(archive) => {
                let (archive, handle) = archive.start_sync().await?;
                (Archive::Whole(archive), handle)
            }
            Archive::Recent(archive) => {
                let (archive, handle) = archive.start_sync().await?;
                (Archive::Recent(archive), handle)
            }
        })
    }

    async fn get(&self, id: Identifier<'_, sha256::Digest>) -> Result<Option<V>, Error> {
        match self {
            Archive::Whole(archive) => archive.get(id).await,
            Archive::Recent(archive) => archive.get(id).await,
        }
    }

    async fn has(&self, height: u64) -> Result<bool, Error> {
        match self {
            Archive::Whole(archive) => archive.has(Identifier::Index(height)).await,
            Archive::Recent(archive) => archive.has(Identifier::Index(height)).await,
        }
    }

    async fn prune(self, first: u64) -> Result<Self, Error> {
        Ok(match self {
            whole @ Archive::Whole(_) => whole,
            Archive::Recent(archive) => Archive::Recent(archive.prune(first).await?),
        })
    }

    fn next_gap(&self, height: u64) -> (Option<u64>, Option<u64>) {
        match self {
            Archive::Whole(archive) => archive.next_gap(height),
            Archive::Recent(archive) => archive.next_gap(height),
        }
    }

    fn missing_items(&self, start: u64, most: usize) -> Vec<u64> {
        match self {
            Archive::Whole(archive) => archive.missing_items(start, most),
            Archive::Recent(archive) => archive.missing_items(start, most),
        }
    }

    fn last_index(&self) -> Option<u64> {
        match self {
            Archive::Whole(archive) => archive.last_index(),
            Archive::Recent(archive) => archive.last_index(),
        }
    }

    fn ranges_from(&self, first: u64) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
        match self {
            Archive::Whole(archive) => Box::new(archive.ranges_from(first)),
            Archive::Recent(archive) => Box::new(archive.ranges_from(first)),
        }
    }
}

impl<E: Runtime> Blocks for BlockArchive<E> {
    type Block = Arc<OrderedBlock>;
    type Error = Error;

    async fn put(self, digest: sha256::Digest, block: &Arc<OrderedBlock>) -> Result<Self, Error> {
        Archive::put(self, block.0.header.height, digest, block).await
    }

    async fn sync(self) -> Result<Self, Error> {
        Archive::sync(self).await
    }

    async fn start_sync(self) -> Result<(Self, Handle<()>), Error> {
        Archive::start_sync(self).await
    }

    async fn get(&self, id: Identifier<'_, sha256::Digest>) -> Result<Option<Arc<OrderedBlock>>, Error> {
        Archive::get(self, id).await
    }

    async fn prune(self, first: Height) -> Result<Self, Error> {
        Archive::prune(self, first.get()).await
    }

    fn missing_items(&self, start: Height, most: usize) -> Vec<Height> {
        Archive::missing_items(self, start.get(), most).into_iter().map(Height::new).collect()
    }

    fn next_gap(&self, height: Height) -> (Option<Height>, Option<Height>) {
        let (end, next) = Archive::next_gap(self, height.get());
        (end.map(Height::new), next.map(Height::new))
    }

    fn last_index(&self) -> Option<Height> {
        Archive::last_index(self).map(Height::new)
    }
}

impl<E: Runtime> Certificates for FinalizationArchive<E> {
    type BlockDigest = sha256::Digest;
    type Commitment = sha256::Digest;
    type Scheme = Scheme;
    type Error = Error;

    async fn put(self, height: Height, digest: sha256::Digest, finalization: &Floor) -> Result<Self, Error> {
        Archive::put(self, height.get(), digest, finalization).await
    }

    async fn sync(self) -> Result<Self, Error> {
        Archive::sync(self).await
    }

    async fn start_sync(self) -> Result<(Self, Handle<()>), Error> {
        Archive::start_sync(self).await
    }

    async fn get(&self, id: Identifier<'_, sha256::Digest>) -> Result<Option<Floor>, Error> {
        Archive::get(self, id).await
    }

    async fn has(&self, height: Height) -> Result<bool, Error> {
        Archive::has(self, height.get()).await
    }

    async fn prune(self, first: Height) -> Result<Self, Error> {
        Archive::prune(self, first.get()).await
    }

    fn last_index(&self) -> Option<Height> {
        Archive::last_index(self).map(Height::new)
    }

    fn ranges_from(&self, first: Height) -> impl Iterator<Item = (Height, Height)> {
        Archive::ranges_from(self, first.get()).map(|(start, end)| (Height::new(start), Height::new(end)))
    }
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::bft::block::plain_digest;
    use crate::bft::finalization::{FinalizationSigner, floor};
    use crate::simulation::{charter, node_key};
    use commonware_runtime::deterministic::{self, Context, FaultConfig};
    use commonware_runtime::{Runner as _, Supervisor as _};
    use commonware_utils::{NZU16, NZUsize, Probability};

    const PREFIX: &str = "node";
    /// Height of the ledger whose blocks are stored.
    const TOP: u64 = 100;
    /// What its node keeps that prunes: from its first payload on, and so many of the newest at least.
    const KEPT: u64 = TOP - Forgetting::NEWEST_KEPT;

    fn forgetting() -> Forgetting {
        Forgetting::new(60, NZU64!(16))
    }

    fn block(height: u64) -> Arc<OrderedBlock> {
        let mut block = OrderedBlock::genesis(charter(1, 4).ledger());
        block.0.header.height = height;
        Arc::new(block)
    }

    /// Every third block was finalized by itself.
    fn is_proved(height: u64) -> bool {
        height.is_multiple_of(3)
    }

    fn finalization(height: u64) -> Floor {
        let charter = charter(1, 4);
        let keys: Vec<_> = (0..3).map(node_key).collect();
        let signer = FinalizationSigner::new(&charter, &keys).expect("members' keys");
        let bytes = signer.sign(height, &plain_digest(&block(height).digest()));
        floor(&charter, &bytes).expect("it was made for it")
    }

    async fn open(
        context: &Context,
        forgetting: Option<&Forgetting>,
    ) -> Result<(FinalizationArchive<Context>, BlockArchive<Context>), Error> {
        let page_cache = CacheRef::new(NZU16!(4096), NZUsize!(64));
        let rules = BlockRules::of(charter(1, 4).ledger());
        Opening { prefix: PREFIX, page_cache: &page_cache, rules, forgetting, start: TOP }.open(context).await
    }

    /// What a node has stored that keeps everything.
    async fn fill(context: &Context) {
        let (mut finalizations, mut blocks) = open(context, None).await.expect("new archives");
        for height in 1..=TOP {
            let (block, digest) = (block(height), block(height).digest());
            blocks = Blocks::put(blocks, digest, &block).await.expect("room");
            if is_proved(height) {
                let proof = finalization(height);
                let put = Certificates::put(finalizations, Height::new(height), digest, &proof).await;
                finalizations = put.expect("room");
            }
        }
        Blocks::sync(blocks).await.expect("room");
        Certificates::sync(finalizations).await.expect("room");
    }

    /// Checks that archives have all blocks from a height on, each with its proof if it has one, and none before.
    async fn check(
        (finalizations, blocks): &(FinalizationArchive<Context>, BlockArchive<Context>),
        first: u64,
    ) {
        for height in 1..=TOP {
            let found = Blocks::get(blocks, Identifier::Index(height)).await.expect("it can be read");
            assert_eq!(found, (height >= first).then(|| block(height)), "height {height}");
            let digest = block(height).digest();
            let found = Blocks::get(blocks, Identifier::Key(&digest)).await.expect("it can be read");
            assert_eq!(found.is_some(), height >= first, "height {height} by its digest");
            let proof =
                Certificates::get(finalizations, Identifier::Index(height)).await.expect("it can be read");
            if height >= first {
                assert_eq!(proof.is_some(), is_proved(height), "height {height}");
            }
        }
    }

    async fn count(context: &Context, files: &[&str]) -> usize {
        let mut count = 0;
        for partition in partitions_of(PREFIX, files) {
            count += context.scan(&partition).await.map_or(0, |files| files.len());
        }
        count
    }

    #[test]
    fn what_is_kept_moves_to_other_files_and_back_and_nothing_stays_behind() {
        deterministic::Runner::default().start(|context| async move {
            fill(&context.child("fill")).await;
            assert!(count(&context, &WHOLE_FILES).await >= WHOLE_FILES.len() * 2, "each has files");
            let note = format!("{PREFIX}-stored");
            assert!(!exists(&context, &note).await.expect("it can be looked at"), "it needs none");
            let opened = open(&context.child("recent"), Some(&forgetting())).await.expect("it moves");
            check(&opened, KEPT).await;
            let evidence = KEPT - KEPT % 3;
            assert!(Certificates::has(&opened.0, Height::new(evidence)).await.expect("it can be read"));
            drop(opened);
            assert_eq!(count(&context, &WHOLE_FILES).await, 0);
            assert!(count(&context, &RECENT_FILES).await >= RECENT_FILES.len() * 2, "each has files");
            let opened = open(&context.child("again"), Some(&forgetting())).await.expect("it opens");
            check(&opened, KEPT).await;
            let (finalizations, blocks) = opened;
            let opened = (
                Certificates::prune(finalizations, Height::new(70)).await.expect("files go"),
                Blocks::prune(blocks, Height::new(70)).await.expect("files go"),
            );
            check(&opened, 64).await;
            drop(opened);
            let opened = open(&context.child("whole"), None).await.expect("it moves back");
            check(&opened, 64).await;
            drop(opened);
            assert_eq!(count(&context, &RECENT_FILES).await, 0);
            assert!(!exists(&context, &note).await.expect("it can be looked at"), "no note is left");
            let opened = open(&context.child("whole_again"), None).await.expect("it opens");
            check(&opened, 64).await;
        });
    }

    #[test]
    fn a_new_node_that_prunes_has_no_other_files() {
        deterministic::Runner::default().start(|context| async move {
            let (_, blocks) = open(&context.child("new"), Some(&forgetting())).await.expect("new archives");
            let digest = block(7).digest();
            let blocks = Blocks::put(blocks, digest, &block(7)).await.expect("room");
            Blocks::sync(blocks).await.expect("room");
            assert_eq!(count(&context, &WHOLE_FILES).await, 0);
            let (_, blocks) = open(&context.child("again"), Some(&forgetting())).await.expect("it opens");
            assert_eq!(Blocks::last_index(&blocks), Some(Height::new(7)));
        });
    }

    /// The disk fails somewhere, and what was not flushed is lost with the power. Then the node starts with either setting.
    #[test]
    fn a_node_that_ends_while_blocks_move_loses_none_of_those_that_it_keeps() {
        let (mut failures, mut moves) = (0, 0);
        for seed in 0..60 {
            let runner = deterministic::Runner::seeded(seed);
            let ((), ended) = runner.start_and_recover(|context| async move {
                fill(&context.child("fill")).await;
                if seed % 2 == 1 {
                    open(&context.child("recent"), Some(&forgetting())).await.expect("it moves");
                }
            });
            let is_recent = |number: u64| number.is_multiple_of(2);
            let runner = deterministic::Runner::from(ended);
            let (moved, ended) = runner.start_and_recover(|context| async move {
                let rate = Probability::new(1, 10 + seed * 4).expect("a share");
                let faults = FaultConfig::default().open(rate).sync(rate).remove(rate).scan(rate);
                *context.storage_fault_config().write() = faults;
                let kept = forgetting();
                let moved = open(&context.child("moving"), is_recent(seed).then_some(&kept)).await.is_ok();
                *context.storage_fault_config().write() = FaultConfig::default();
                moved
            });
            (failures, moves) = (failures + u32::from(!moved), moves + u32::from(moved));
            deterministic::Runner::from(ended).start(|context| async move {
                let kept = forgetting();
                let recent = is_recent(seed / 2);
                let opened = open(&context.child("after"), recent.then_some(&kept)).await;
                let opened = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                // A move to the archives of what is recent that did not come to its end, and is not wanted any more, is none.
                let first = if is_recent(seed) && !moved && !recent {
                    let all = Archive::has(&opened.1, 1).await.expect("it can be read");
                    if all { 1 } else { KEPT }
                } else {
                    KEPT
                };
                check(&opened, first).await;
                let others: &[&str] = if recent { &WHOLE_FILES } else { &RECENT_FILES };
                assert_eq!(count(&context, others).await, 0, "seed {seed}");
            });
        }
        assert!(failures >= 10 && moves >= 10, "{failures} failures, {moves} moves");
    }

    #[test]
    fn marshal_is_told_once_per_file_and_never_of_the_newest_blocks() {
        let forgetting = Forgetting::new(1, NZU64!(16));
        assert_eq!(forgetting.below(15, 1_000), None, "no file ends before it");
        assert_eq!(forgetting.below(40, 1_000), Some(Height::new(32)));
        assert_eq!(forgetting.below(47, 1_000), None, "it was told");
        assert_eq!(forgetting.below(20, 1_000), None, "never back");
        assert_eq!(forgetting.below(1_000, 1_000), Some(Height::new(928)), "936 in files of 16");
    }
}
