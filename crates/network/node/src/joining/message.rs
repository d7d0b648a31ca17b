use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::Digest;
use ledger::Anchor;
use ordering::MESSAGE_BYTES_MAX;
use types::{decode_exactly, encode};

/// Bytes of an outline or piece in one message.
pub(crate) const PART_BYTES: usize = 48 * 1024;

/// What of a state is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub enum Item {
    /// Everything but the rows: [`state::StateOutline`].
    Outline,
    /// The rows of the group with this number: [`state::StatePiece`].
    Piece(u32),
    /// What proves the charters that the checkpoint's block names, a list of [`types::Handover`]; of a ledger whose charter
    /// was amended. Offers are without them, because they may be longer than a message.
    Handovers,
}

/// What a node that joins and one that helps it tell each other.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// Which is your newest certified checkpoint?
    AskOffer,
    /// This one, without its handovers; `None` where there is none.
    Offer(Option<Box<Anchor>>),
    /// Bytes of the canonical encoding of an item of the state with this root, from an offset on.
    AskPart {
        /// The state.
        root: Digest,
        /// What of it.
        item: Item,
        /// From where on.
        offset: u64,
    },
    /// What was asked for.
    Part {
        /// The state.
        root: Digest,
        /// What of it.
        item: Item,
        /// Where the bytes begin.
        offset: u64,
        /// Bytes of the whole item.
        total: u64,
        /// At most 48 KiB of them.
        bytes: Vec<u8>,
    },
    /// The state with this root is not here, or not any more.
    Gone(Digest),
}

impl Message {
    /// `None` where it is longer than a message may be, which no message of a node that follows the rules is.
    pub fn to_bytes(&self) -> Option<Bytes> {
        let bytes = encode(self);
        (bytes.len() <= MESSAGE_BYTES_MAX).then(|| Bytes::from(bytes))
    }

    /// `None` where the bytes are no message.
    pub fn from_bytes(bytes: &[u8]) -> Option<Message> {
        if bytes.len() > MESSAGE_BYTES_MAX { None } else { decode_exactly(bytes).ok() }
    }
}
