//! Epochs as the consensus crates ask for them, and as the blocks in this node's archive tell of them.

use super::block::OrderedBlock;
use crate::members::Epochs;
use commonware_consensus::Heightable as _;
use commonware_consensus::marshal::store::Blocks;
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_consensus::types::{Epoch, EpochInfo, Epocher, Height};
use commonware_cryptography::certificate::{Provider, Scoped};
use commonware_storage::archive::Identifier;
use std::sync::Arc;

impl Epochs {
    /// Learns what the final blocks say that are stored, from the first on. Where some are missing, because the node has
    /// joined from a checkpoint behind them, its ledger has told it of the charters that they carry.
    pub(crate) async fn read<B: Blocks<Block = Arc<OrderedBlock>>>(
        &self,
        blocks: &B,
    ) -> Result<(), B::Error> {
        let mut first = Height::new(1);
        loop {
            let (top, next) = blocks.next_gap(first);
            if let Some(top) = top {
                self.read_range(blocks, (first.get(), top.get())).await?;
            }
            let Some(next) = next else { return Ok(()) };
            first = next;
        }
    }

    async fn read_range<B: Blocks<Block = Arc<OrderedBlock>>>(
        &self,
        blocks: &B,
        (first, top): (u64, u64),
    ) -> Result<(), B::Error> {
        let mut known = first - 1;
        loop {
            // What headers name only grows, so the first block that names anything unknown is the one that carries it.
            let (mut low, mut high) = (known + 1, top + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                let block = blocks.get(Identifier::Index(middle)).await?;
                let new = block.is_some_and(|block| !self.knows(&block.0.header.charters));
                if new { high = middle } else { low = middle + 1 }
            }
            let carrying = blocks.get(Identifier::Index(low)).await?;
            let Some(block) = carrying.filter(|_| low <= top) else { return Ok(()) };
            if let Err(error) = self.learn(&block.0.attested) {
                tracing::error!(height = %block.height(), %error, "a final block carries charters that cannot follow");
                return Ok(());
            }
            if !self.knows(&block.0.header.charters) {
                // Those before it are carried by blocks that are missing: who joins anew is told of them.
                tracing::warn!(height = %block.height(), "the charters that a stored block names are not known here");
                return Ok(());
            }
            known = low;
        }
    }
}

impl Provider for Epochs {
    type Scope = Epoch;
    type Scheme = Scheme;

    fn scoped(&self, epoch: Epoch) -> Option<Scoped<Scheme>> {
        self.scheme(epoch.get()).map(Scoped::scheme)
    }
}

impl Epocher for Epochs {
    fn containing(&self, height: Height) -> Option<EpochInfo> {
        let epoch = Epoch::new(self.epoch_at(height.get()));
        Some(EpochInfo::new(epoch, height, self.first(epoch)?, self.last(epoch)?))
    }

    fn first(&self, epoch: Epoch) -> Option<Height> {
        self.first_of(epoch.get()).map(Height::new)
    }

    /// Of an epoch that is not known to end, a height that no block has.
    fn last(&self, epoch: Epoch) -> Option<Height> {
        self.first_of(epoch.get())?;
        Some(Height::new(self.last_of(epoch.get()).unwrap_or(u64::MAX)))
    }
}
