//! Helping others join: handing out the newest certified checkpoint, part by part.

use super::message::{Item, Message, PART_BYTES};
use crypto::Digest;
use ledger::Anchor;
use parking_lot::RwLock;
use state::KeptState;
use std::sync::Arc;
use std::time::Duration;
use types::encode;

/// Parts that a member may have per second; below what the connection's quota lets through, so that nothing is lost there.
pub(crate) const PARTS_PER_SECOND: u32 = 400;
/// Parts that it may have at once after a pause.
const BURST: u32 = 64;
/// An outline is forgotten when nobody has asked for so long.
const OUTLINE_KEPT: Duration = Duration::from_secs(30);

/// A certified checkpoint that can be read in pieces.
pub trait Served: Send + Sync {
    /// What proves it.
    fn anchor(&self) -> &Anchor;

    /// Canonical encoding of its [`state::StateOutline`].
    ///
    /// # Errors
    /// Why it cannot be read.
    fn outline(&self) -> Result<Vec<u8>, String>;

    /// Canonical encoding of the [`state::StatePiece`] with this number; nothing where that is no group.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn piece(&self, number: usize) -> Result<Option<Vec<u8>>, String>;
}

/// A checkpoint as the store keeps it.
pub struct KeptCheckpoint {
    /// What proves it.
    pub anchor: Anchor,
    /// The state.
    pub kept: Arc<KeptState>,
}

impl Served for KeptCheckpoint {
    fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    fn outline(&self) -> Result<Vec<u8>, String> {
        Ok(encode(&self.kept.outline()))
    }

    fn piece(&self, number: usize) -> Result<Option<Vec<u8>>, String> {
        let piece = self.kept.piece(number).map_err(|error| error.to_string())?;
        Ok(piece.map(|piece| encode(&piece)))
    }
}

/// The checkpoint that a node hands out now.
#[derive(Default)]
pub struct Shelf(RwLock<Option<Arc<dyn Served>>>);

impl Shelf {
    /// From now on this one.
    pub fn put(&self, served: Option<Arc<dyn Served>>) {
        *self.0.write() = served;
    }

    /// Height of the checkpoint; nothing where there is none.
    pub fn height(&self) -> Option<u64> {
        self.get().map(|served| served.anchor().height())
    }

    fn get(&self) -> Option<Arc<dyn Served>> {
        self.0.read().clone()
    }
}

/// Answers who asks. Work is bounded by parts per second and member, memory by one outline, one piece and the
/// handovers of one checkpoint.
pub struct Server {
    shelf: Arc<Shelf>,
    budgets: Vec<Budget>,
    outline: Option<Kept>,
    piece: Option<Kept>,
    handovers: Option<Kept>,
}

struct Kept {
    root: Digest,
    item: Item,
    bytes: Vec<u8>,
    used: Duration,
}

#[derive(Clone, Copy)]
struct Budget {
    parts: f64,
    since: Duration,
}

impl Budget {
    fn take(&mut self, now: Duration) -> bool {
        let gained = now.saturating_sub(self.since).as_secs_f64() * f64::from(PARTS_PER_SECOND);
        (self.parts, self.since) = ((self.parts + gained).min(f64::from(BURST)), now);
        let enough = self.parts >= 1.0;
        if enough {
            self.parts -= 1.0;
        }
        enough
    }
}

impl Server {
    /// For so many members.
    pub fn new(shelf: Arc<Shelf>, members: usize) -> Server {
        let full = Budget { parts: f64::from(BURST), since: Duration::ZERO };
        Server { shelf, budgets: vec![full; members], outline: None, piece: None, handovers: None }
    }

    /// There are so many members now; those that have left count.
    pub fn members(&mut self, members: usize) {
        let full = Budget { parts: f64::from(BURST), since: Duration::ZERO };
        self.budgets.resize(members.max(self.budgets.len()), full);
    }

    /// What a member is to be told; nothing where it asks for too much, or for nothing.
    pub fn answer(&mut self, member: u16, message: &Message, now: Duration) -> Option<Message> {
        if !self.budgets.get_mut(usize::from(member))?.take(now) {
            return None;
        }
        match message {
            Message::AskOffer => {
                let served = self.shelf.get();
                Some(Message::Offer(served.map(|served| Box::new(served.anchor().without_handovers()))))
            }
            Message::AskPart { root, item, offset } => self.part(*root, *item, *offset, now),
            _ => None,
        }
    }

    /// Forgets what nobody asks for.
    pub fn tick(&mut self, now: Duration) {
        for kept in [&mut self.outline, &mut self.piece, &mut self.handovers] {
            kept.take_if(|kept| now >= kept.used + OUTLINE_KEPT);
        }
    }

    fn part(&mut self, root: Digest, item: Item, offset: u64, now: Duration) -> Option<Message> {
        let served =
            self.shelf.get().filter(|served| served.anchor().checkpoint.statement.state_root == root);
        let Some(served) = served else { return Some(Message::Gone(root)) };
        let place = match item {
            Item::Outline => &mut self.outline,
            Item::Piece(_) => &mut self.piece,
            Item::Handovers => &mut self.handovers,
        };
        if place.as_ref().is_none_or(|kept| (kept.root, kept.item) != (root, item)) {
            let read = match item {
                Item::Outline => served.outline().map(Some),
                Item::Piece(number) => served.piece(number as usize),
                Item::Handovers => Ok(Some(encode(&served.anchor().handovers))),
            };
            let bytes = match read {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return None,
                Err(error) => {
                    tracing::error!(error, "the checkpoint that others join from cannot be read");
                    self.shelf.put(None);
                    return Some(Message::Gone(root));
                }
            };
            *place = Some(Kept { root, item, bytes, used: now });
        }
        let kept = place.as_mut()?;
        kept.used = now;
        let total = kept.bytes.len() as u64;
        let start = usize::try_from(offset).ok().filter(|start| *start < kept.bytes.len())?;
        let end = kept.bytes.len().min(start + PART_BYTES);
        Some(Message::Part { root, item, offset, total, bytes: kept.bytes[start..end].to_vec() })
    }
}
