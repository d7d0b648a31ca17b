//! Gives up the transactions and receipts of old blocks where `node.toml` says so; headers, certificates and digests stay for ever.
//!
//! ```text
//!  every few seconds: which is the first height that somebody needs?    what node.toml says; requests that may come again;
//!        │                                                              checkpoints that the node may come back at; what is not
//!        │                                                              certified yet; schemas with members
//!        └─▶ the ledger's files in front of it, one after the other ─▶ the history of rows ─▶ ordering forgets its copies
//! ```
//!
//! Nothing of this is agreed: every node decides for itself. Whoever wants a block from a node that has given it up gets it from
//! another, or joins from a checkpoint.

use crate::charters::{self, DecidedCharters};
use crate::metrics::NodeMetrics;
use crate::private::{FolderParts, PrivateSchemas};
use crate::published::Published;
use crate::row_history::KeptRows;
use crate::{NodeConfig, NodeError, NodeFolder};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use ledger::{CheckpointStore, Ledger, LedgerError, Pruned};
use ordering::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use types::Charters;

/// How often it is looked whether there is anything to give up.
const LOOK: Duration = Duration::from_secs(5);
/// The fewest newest blocks whose payloads a node keeps: another one that is less far behind fetches them
/// (`join_behind_blocks`).
pub const PAYLOAD_BLOCKS_MIN: u64 = 1_000;
/// Checkpoints that a node must be able to come back at: should the newest be damaged there is another one.
const CHECKPOINTS_MIN: usize = 2;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// For how long payloads are kept: what either says is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Keeps {
    /// So many of the newest blocks.
    pub(crate) blocks: u64,
    /// Blocks that are not older, in milliseconds of the ledger's time.
    pub(crate) time_ms: u64,
}

impl Keeps {
    /// What `node.toml` says; `None` where payloads are kept for ever.
    pub(crate) fn of(config: &NodeConfig) -> Option<Keeps> {
        if config.payload_blocks.is_none() && config.payload_days.is_none() {
            return None;
        }
        let days = u64::from(config.payload_days.unwrap_or(0));
        Some(Keeps { blocks: config.payload_blocks.unwrap_or(1), time_ms: days.saturating_mul(DAY_MS) })
    }

    /// Says what is wrong with the settings.
    ///
    /// # Errors
    /// What was expected and what came.
    pub(crate) fn check(config: &NodeConfig) -> Result<(), String> {
        if let Some(blocks) = config.payload_blocks.filter(|blocks| *blocks < PAYLOAD_BLOCKS_MIN) {
            return Err(format!(
                "payload_blocks = {blocks}: expected {PAYLOAD_BLOCKS_MIN} at least (PAYLOAD_BLOCKS_MIN), because nodes that are less \
                 far behind fetch blocks from others; leave it out to keep all"
            ));
        }
        match config.payload_days {
            Some(0) => Err("payload_days = 0: expected 1 at least; leave it out to keep all".to_string()),
            _ => Ok(()),
        }
    }

    /// The first height whose payload is to be kept, of a ledger with a block at `tip`.
    pub(crate) fn first(self, ledger: &Ledger, tip: u64) -> Result<u64, LedgerError> {
        let by_blocks = (tip + 1).saturating_sub(self.blocks).max(1);
        if self.time_ms == 0 {
            return Ok(by_blocks);
        }
        let time = |height| time_ms(ledger, height);
        let oldest_ms = time(tip)?.saturating_sub(self.time_ms);
        // Times ascend.
        let (mut low, mut high) = (ledger.first_height(), tip);
        while low < high {
            let middle = low + (high - low) / 2;
            if time(middle)? < oldest_ms { low = middle + 1 } else { high = middle }
        }
        Ok(low.min(by_blocks))
    }

    /// Whether the file that is being written holds a quarter of what is to be kept. It ends then, because files go as a whole.
    fn ends_file(self, ledger: &Ledger) -> Result<bool, LedgerError> {
        let (Some(from), Some((tip, _))) = (ledger.active_file_from(), ledger.tip()) else {
            return Ok(false);
        };
        if from > tip || tip - from + 1 < self.blocks.div_ceil(4) {
            return Ok(false);
        }
        Ok(time_ms(ledger, tip)?.saturating_sub(time_ms(ledger, from)?) >= self.time_ms / 4)
    }
}

/// Time of a block that the ledger has.
fn time_ms(ledger: &Ledger, height: u64) -> Result<u64, LedgerError> {
    Ok(ledger.header(height)?.map_or(u64::MAX, |header| header.timestamp_ms))
}

/// Whether a node gives up old payloads at all.
pub(crate) fn is_wanted(config: &NodeConfig) -> bool {
    Keeps::of(config).is_some()
}

/// What pruning works with.
#[derive(Clone)]
pub(crate) struct Pruning {
    pub(crate) keeps: Keeps,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) checkpoints: Arc<CheckpointStore>,
    pub(crate) charters: Arc<DecidedCharters>,
    /// Whether outcomes are certified at all.
    pub(crate) attests: bool,
    pub(crate) published: Arc<Published>,
    pub(crate) rows: Option<Arc<KeptRows>>,
    pub(crate) private: Option<Arc<PrivateSchemas>>,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) metrics: Arc<NodeMetrics>,
}

impl Pruning {
    /// Looks again and again, until it is stopped.
    pub(crate) fn run(&self, stopped: &Receiver<()>) {
        let stops = || !matches!(stopped.try_recv(), Err(crossbeam_channel::TryRecvError::Empty));
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
            if let Err(error) = self.prune(stops) {
                tracing::error!(%error, "old blocks cannot be pruned; this is tried again");
            }
        }
    }

    /// Gives up what nobody needs, file by file, until `stops` says so.
    ///
    /// # Errors
    /// Those of the disk: nothing is lost, and another attempt may succeed.
    pub(crate) fn prune(&self, stops: impl Fn() -> bool) -> Result<Pruned, NodeError> {
        let (mut all, first) = (Pruned::default(), self.first_needed()?);
        if self.keeps.ends_file(&self.ledger)? {
            self.ledger.begin_file()?;
        }
        while !stops()
            && let Some(one) = self.ledger.prune(first)?
        {
            all.add(one);
        }
        if all.files > 0 {
            let from = self.ledger.payloads_from();
            if let Some(rows) = &self.rows {
                rows.forget_below(from)?;
            }
            self.ordering.forget_below(from);
            self.metrics.pruned(all.bytes_before.saturating_sub(all.bytes_now));
            tracing::info!(
                blocks = all.blocks,
                bytes = all.bytes_before.saturating_sub(all.bytes_now),
                from,
                "transactions and receipts of old blocks are pruned"
            );
        }
        Ok(all)
    }

    fn first_needed(&self) -> Result<u64, LedgerError> {
        let certified = if self.attests { self.published.certified().height() } else { u64::MAX - 1 };
        // A schema with members may have to be executed again from its first block on.
        let schemas = self.private.as_ref().and_then(|private| private.since()).unwrap_or(u64::MAX);
        let first = first_needed(&self.ledger, &self.checkpoints, &self.charters.all(), self.keeps)?;
        Ok(first.min(certified + 1).min(schemas))
    }
}

/// The first height whose transactions and receipts a node needs to come back, to answer requests that come again, or because it
/// is told to keep them.
fn first_needed(
    ledger: &Ledger,
    checkpoints: &CheckpointStore,
    charters: &Charters,
    keeps: Keeps,
) -> Result<u64, LedgerError> {
    let Some((tip, _)) = ledger.tip() else { return Ok(1) };
    let checkpoints = checkpoints.newest();
    let oldest = checkpoints.iter().min().filter(|_| checkpoints.len() >= CHECKPOINTS_MIN);
    let Some(oldest) = oldest else { return Ok(1) };
    let expiries = charters.reigns().iter().map(|reign| reign.charter.expiry_blocks_max);
    let answered = (tip + 1).saturating_sub(expiries.max().unwrap_or(0).into());
    Ok(keeps.first(ledger, tip)?.min(oldest + 1).min(answered).max(1))
}

/// What pruning a stopped node's folder has done, or would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrunedFolder {
    /// What it has done, or would do: then of [`Pruned::bytes_now`] nothing is known.
    pub pruned: Pruned,
    /// Height of the first block that has its transactions and receipts.
    pub payloads_from: u64,
    /// Height of the newest block.
    pub height: u64,
    /// Bytes of all files of blocks.
    pub ledger_bytes: u64,
    /// The first height that the node needs, or is to keep.
    pub first_needed: u64,
}

/// Prunes the folder of a stopped node as its `node.toml` says, which the node itself does while it runs. `tries`: says only what
/// would be done.
///
/// # Errors
/// The folder is no node's, or its node runs, or `node.toml` says nothing of pruning; the node holds schemas with members, of
/// which only a running node knows what it needs; the disk.
pub fn prune_folder(path: &Path, tries: bool) -> Result<PrunedFolder, NodeError> {
    let folder = NodeFolder::open(path)?;
    let refused =
        |reason: &str| NodeError::Config { path: path.join("node.toml"), reason: reason.to_string() };
    let keeps = Keeps::of(&folder.config).ok_or_else(|| {
        refused(
            "expected payload_blocks or payload_days, found neither: all transactions and receipts are kept",
        )
    })?;
    if FolderParts::open(path)?.is_some_and(|parts| !parts.schemas().is_empty()) {
        return Err(refused(
            "this node holds schemas with members, and what of their blocks is needed only a running node knows: start it, and \
             it prunes by itself",
        ));
    }
    let charter = Arc::new(folder.charter);
    // While it is open no node starts here.
    let (ledger, _) = Ledger::open(path.join("ledger"), charter.ledger())?;
    let checkpoints = CheckpointStore::open(path.join("checkpoints"), charter.ledger())?;
    let charters = charters::named(&ledger, &charter)?;
    let height = ledger.tip().map_or(0, |(height, _)| height);
    let certified = ledger.header(height)?.map_or(0, |header| header.certified_height);
    let first = first_needed(&ledger, &checkpoints, &charters, keeps)?.min(certified + 1);
    let mut pruned = Pruned::default();
    if tries {
        (pruned.blocks, pruned.bytes_before) = ledger.prunable(first)?;
    } else {
        while let Some(one) = ledger.prune(first)? {
            pruned.add(one);
        }
        ledger.settle_indexes();
        if let Some(rows) = KeptRows::open(path, &charter, height, folder.config.row_history_megabytes)? {
            rows.forget_below(ledger.payloads_from())?;
        }
    }
    let (payloads_from, ledger_bytes) = (ledger.payloads_from(), ledger.bytes()?);
    Ok(PrunedFolder { pruned, payloads_from, height, ledger_bytes, first_needed: first })
}
