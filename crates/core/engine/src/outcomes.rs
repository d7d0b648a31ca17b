//! How the transactions of a block end: receipts, hashed piece by piece while the rest of the block is executed.

use crate::{BlockStatistics, VerifiedBlock};
use borsh::BorshSerialize;
use crypto::{Digest, Sha256Batch, merkle_root};
use rayon::Scope;
use std::sync::OnceLock;
use types::{Outcome, Receipt};

/// Receipts that one task hashes; a power of two, so that what it finds is a node of the tree.
const PIECE: usize = 128;

/// The outcomes of a block's transactions as they become known. A piece whose outcomes are complete is finished in the
/// background.
pub(crate) struct Outcomes<'a> {
    block: &'a VerifiedBlock,
    finished: &'a [OnceLock<FinishedPiece>],
    open: Vec<OpenPiece>,
}

struct OpenPiece {
    outcomes: Vec<Option<Outcome>>,
    missing: usize,
}

/// A finished piece.
pub(crate) struct FinishedPiece {
    receipts: Vec<Receipt>,
    /// The node of the tree above them.
    root: Digest,
    statistics: BlockStatistics,
}

/// All receipts of a block.
pub(crate) struct Receipts {
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) root: Digest,
    /// How the transactions ended.
    pub(crate) statistics: BlockStatistics,
}

/// Places for the finished pieces of a block.
pub(crate) fn places(block: &VerifiedBlock) -> Vec<OnceLock<FinishedPiece>> {
    (0..block.transactions.len().div_ceil(PIECE)).map(|_| OnceLock::new()).collect()
}

impl<'a> Outcomes<'a> {
    /// Nothing is known. `finished`: from [`places`].
    pub(crate) fn new(block: &'a VerifiedBlock, finished: &'a [OnceLock<FinishedPiece>]) -> Outcomes<'a> {
        let pieces = block.transactions.chunks(PIECE);
        let open = pieces.map(|piece| OpenPiece { outcomes: vec![None; piece.len()], missing: piece.len() });
        Outcomes { block, finished, open: open.collect() }
    }

    /// The transaction at this position has ended so, once and for all.
    pub(crate) fn set(&mut self, position: u32, outcome: Outcome, background: &Scope<'a>) {
        let number = position as usize / PIECE;
        let piece = &mut self.open[number];
        let place = &mut piece.outcomes[position as usize % PIECE];
        debug_assert!(place.is_none(), "a transaction ends once");
        *place = Some(outcome);
        piece.missing -= 1;
        if piece.missing == 0 {
            let (block, finished) = (self.block, &self.finished[number]);
            let outcomes = std::mem::take(&mut piece.outcomes);
            background.spawn(move |_| {
                let piece = finish(block, number * PIECE, outcomes);
                assert!(finished.set(piece).is_ok(), "a piece is finished once");
            });
        }
    }
}

fn finish(block: &VerifiedBlock, first: usize, outcomes: Vec<Option<Outcome>>) -> FinishedPiece {
    let mut statistics = BlockStatistics::default();
    let (mut leaves, mut content) = (Sha256Batch::new(), Vec::new());
    let mut receipts = Vec::with_capacity(outcomes.len());
    for (position, outcome) in (first..).zip(outcomes) {
        let outcome = outcome.expect("a piece is finished when all of its outcomes are known");
        statistics.count(&outcome);
        let transaction = match &block.transactions[position] {
            Ok(transaction) => transaction.id,
            Err((id, _)) => *id,
        };
        let receipt = Receipt { transaction, height: block.header.height, index: position as u32, outcome };
        content.clear();
        receipt.serialize(&mut content).expect("writing to memory cannot fail");
        leaves.push_leaf(&content);
        receipts.push(receipt);
    }
    FinishedPiece { receipts, root: merkle_root(&leaves.finish()), statistics }
}

/// Puts the finished pieces together, when everything in the background is done.
pub(crate) fn collect(finished: Vec<OnceLock<FinishedPiece>>, transactions: usize) -> Receipts {
    let (mut receipts, mut roots) = (Vec::with_capacity(transactions), Vec::with_capacity(finished.len()));
    let mut statistics = BlockStatistics::default();
    for piece in finished {
        let piece = piece.into_inner().expect("every transaction of a block has an outcome");
        receipts.extend(piece.receipts);
        roots.push(piece.root);
        statistics.add(&piece.statistics);
    }
    Receipts { receipts, root: merkle_root(&roots), statistics }
}
