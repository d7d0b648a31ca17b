//! Fetching a certified checkpoint from other members: a state machine.
//!
//! ```text
//!  offers ─▶ the highest that verifies ─▶ outline, from one member ─▶ pieces, from all that offer the same ─▶ Fetched
//!    ▲ └▶ handovers, where charters are unknown │ does not verify                 │ do not verify
//!    └─── nobody has that state any more ◀──────┴──▶ that member is asked no more ◀┘
//! ```
//!
//! Nobody is believed: handovers are checked with the founding charter, an offer with the charters that they prove, the
//! outline with the offer, every piece with the outline. Of what a member claims about lengths nothing is reserved; memory
//! grows with what has come, up to a limit per item; handovers come from one member at a time.

mod offers;

use super::Fetched;
use super::message::{Item, Message, PART_BYTES};
use super::serve::PARTS_PER_SECOND;
use super::staging::Staging;
use crypto::Digest;
use ledger::{Anchor, HANDOVERS_BYTES_MAX, handovers_up_to};
use ordering::{CertificateError, CertificateVerifier};
use proofs::state::TreeShape;
use state::{CheckpointHeader, PieceError, StateAssembly, StateOutline, StatePiece, StoreError, Stores};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use types::{Charter, Charters, Handover, decode_exactly, limits};

/// Bytes of an outline that a member may send.
const OUTLINE_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a piece: a group ends with the row that makes it long enough.
const PIECE_BYTES_MAX: u64 =
    (TreeShape::Groups.group_bytes_max() + 2 * (limits::ROW_BYTES_MAX + limits::KEY_BYTES_MAX)) as u64;
/// Items that one member is asked for at the same time.
const TRANSFERS_MAX: usize = 8;
/// Parts of one item that are asked for ahead of what has come.
const WINDOW: u64 = 8 * PART_BYTES as u64;
/// After this time without an answer a part is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// A member that does not answer so often rests.
const TRIES: u32 = 3;
const REST: Duration = Duration::from_secs(5);
/// After this time an offer that has not come is asked for again: the member may not have been connected.
const ASK_OFFER_AGAIN: Duration = Duration::from_millis(200);
/// How often a member that offers something else, or nothing, is asked again.
const OFFERS_AGAIN: Duration = Duration::from_secs(2);
/// How long the answers of others are waited for once somebody has offered something.
const OFFERS_WAIT: Duration = Duration::from_millis(500);
/// After this time without anything new it has failed.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(30);

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FetchProgress {
    /// Height of the checkpoint; 0 before one is chosen.
    pub height: u64,
    /// Pieces of its state.
    pub pieces: usize,
    /// Pieces that are there and checked.
    pub checked: usize,
    /// Of those, pieces that were on the disk from before.
    pub staged: usize,
    /// Bytes of outlines and pieces that came.
    pub bytes: u64,
    /// Members that are asked no more, because what they sent was wrong.
    pub liars: usize,
}

#[derive(Default)]
struct Member {
    offer: Option<Arc<Anchor>>,
    /// An offer under charters that are not known yet.
    unproved: Option<Box<Anchor>>,
    /// An offer was asked for and has not come.
    asked: bool,
    asked_at: Option<Duration>,
    answered: bool,
    liar: bool,
    rests_until: Duration,
    /// It did not have this state any more when it was asked. Before that time it is not asked for it again, also where it
    /// offers it again: otherwise it could keep the last piece for ever.
    gone: Option<(Digest, Duration)>,
    transfers: Vec<Transfer>,
    /// Parts that it may be asked for now, and since when.
    budget: (f64, Duration),
}

impl Member {
    /// Whether it has offered this state.
    fn offers(&self, root: Digest) -> bool {
        let offers = [self.offer.as_deref(), self.unproved.as_deref()];
        offers.into_iter().flatten().any(|offer| root_of(offer) == root)
    }
}

struct Transfer {
    /// Of this state.
    root: Digest,
    item: Item,
    total: Option<u64>,
    bytes: Vec<u8>,
    /// Up to here parts were asked for.
    asked: u64,
    progressed: Duration,
    tries: u32,
}

enum Phase {
    Choosing,
    Outline(Arc<Anchor>),
    Pieces { anchor: Arc<Anchor>, assembly: Box<StateAssembly>, waiting: BTreeSet<usize> },
    Ended,
}

/// Fetches a checkpoint above a height.
pub struct Fetch {
    ledger: Digest,
    /// With the charters that are proved.
    certificates: CertificateVerifier,
    /// What proves them, from the founding one on.
    handovers: Vec<Handover>,
    me: u16,
    above: u64,
    staging: Staging,
    stores: Arc<dyn Stores>,
    members: Vec<Member>,
    phase: Phase,
    first_offer: Option<Duration>,
    progressed: Duration,
    progress: FetchProgress,
    /// The store that the state was to come into has failed: nobody is to blame for that.
    store_failure: Option<StoreError>,
}

/// What is wrong with what has come; keeps aside that it was the store.
fn refused(error: PieceError, store_failure: &mut Option<StoreError>) -> String {
    if let PieceError::Store(failure) = &error {
        *store_failure = Some(failure.clone());
    }
    error.to_string()
}

impl Fetch {
    /// For member number `me`. Only checkpoints above height `above` are of use. `stores` makes the store that the state comes
    /// into.
    ///
    /// # Errors
    /// The charter has keys that are none.
    pub fn new(
        charter: &Charter,
        me: u16,
        above: u64,
        staging: Staging,
        stores: Arc<dyn Stores>,
        now: Duration,
    ) -> Result<Fetch, CertificateError> {
        Ok(Fetch {
            ledger: charter.ledger(),
            certificates: CertificateVerifier::new(Charters::new(Arc::new(charter.clone())))?,
            handovers: Vec::new(),
            me,
            above,
            staging,
            stores,
            members: charter.organisations.iter().map(|_| Member::default()).collect(),
            phase: Phase::Choosing,
            first_offer: None,
            progressed: now,
            progress: FetchProgress::default(),
            store_failure: None,
        })
    }

    /// How far it is.
    pub fn progress(&self) -> FetchProgress {
        self.progress
    }

    /// The charters that are proved by what has come: the founding one at least.
    pub fn charters(&self) -> &Charters {
        self.certificates.charters()
    }

    /// Why the store that the state was to come into has failed.
    pub fn store_failure(&self) -> Option<&StoreError> {
        self.store_failure.as_ref()
    }

    /// Whether it has failed: its store has, everybody has answered and nobody has a checkpoint, or nothing new has come for 30 seconds.
    pub fn has_failed(&self, now: Duration) -> bool {
        let choosing = matches!(self.phase, Phase::Choosing);
        self.store_failure.is_some()
            || choosing && self.all_have_answered() && self.best().is_none()
            || now >= self.progressed + GIVE_UP
    }

    fn root(&self) -> Option<Digest> {
        match &self.phase {
            Phase::Outline(anchor) | Phase::Pieces { anchor, .. } => Some(root_of(anchor)),
            Phase::Choosing | Phase::Ended => None,
        }
    }

    /// What members are to be asked now.
    pub fn tick(&mut self, now: Duration) -> Vec<(u16, Message)> {
        let mut asked = Vec::new();
        if matches!(self.phase, Phase::Ended) {
            return asked;
        }
        self.ask_for_offers(now, &mut asked);
        self.choose(now);
        self.look_for_silence(now);
        self.assign(now);
        self.ask_for_parts(now, &mut asked);
        asked
    }

    /// Asks again for what does not come, and lets members rest that do not answer.
    fn look_for_silence(&mut self, now: Duration) {
        let mut given_back = Vec::new();
        for member in &mut self.members {
            for transfer in &mut member.transfers {
                if now >= transfer.progressed + ASK_AGAIN {
                    (transfer.asked, transfer.progressed) = (transfer.bytes.len() as u64, now);
                    transfer.tries += 1;
                }
            }
            if member.transfers.iter().any(|transfer| transfer.tries > TRIES) {
                member.rests_until = now + REST;
                given_back.extend(member.transfers.drain(..).map(|transfer| transfer.item));
            }
        }
        self.give_back(given_back);
    }

    fn give_back(&mut self, items: Vec<Item>) {
        if let Phase::Pieces { waiting, .. } = &mut self.phase {
            waiting.extend(items.into_iter().filter_map(|item| match item {
                Item::Piece(number) => Some(number as usize),
                Item::Outline | Item::Handovers => None,
            }));
        }
    }

    /// Gives members something to send.
    fn assign(&mut self, now: Duration) {
        let transfer = |root, item| {
            let bytes = Vec::new();
            Transfer { root, item, total: None, bytes, asked: 0, progressed: now, tries: 0 }
        };
        let Some(root) = self.root() else {
            let unproved =
                |member: &&mut Member| member.unproved.is_some() && !member.liar && now >= member.rests_until;
            if self.members.iter().all(|member| member.transfers.is_empty())
                && let Some(member) = self.members.iter_mut().find(unproved)
                && let Some(offer) = &member.unproved
            {
                member.transfers.push(transfer(root_of(offer), Item::Handovers));
            }
            return;
        };
        let able = |member: &Member| {
            let offers = member.offer.as_ref().is_some_and(|offer| root_of(offer) == root);
            let is_gone = member.gone.is_some_and(|(gone, until)| gone == root && now < until);
            offers
                && !is_gone
                && !member.liar
                && now >= member.rests_until
                && member.transfers.len() < TRANSFERS_MAX
        };
        match &mut self.phase {
            Phase::Choosing | Phase::Ended => {}
            Phase::Outline(_) => {
                if self.members.iter().all(|member| member.transfers.is_empty())
                    && let Some(member) = self.members.iter_mut().find(|member| able(member))
                {
                    member.transfers.push(transfer(root, Item::Outline));
                }
            }
            Phase::Pieces { waiting, .. } => {
                // In turn, so that all have the same share.
                while !waiting.is_empty() {
                    let before = waiting.len();
                    for member in self.members.iter_mut().filter(|member| able(member)) {
                        let Some(number) = waiting.pop_first() else { break };
                        member.transfers.push(transfer(root, Item::Piece(number as u32)));
                    }
                    if waiting.len() == before {
                        break;
                    }
                }
            }
        }
    }

    fn ask_for_parts(&mut self, now: Duration, asked: &mut Vec<(u16, Message)>) {
        for (position, member) in self.members.iter_mut().enumerate() {
            let (parts, since) = member.budget;
            // Somewhat slower than is answered, so that nothing that is asked for is lost.
            let rate = f64::from(PARTS_PER_SECOND) * 0.9;
            let gained = now.saturating_sub(since).as_secs_f64() * rate;
            let mut parts = (parts + gained).min(32.0);
            for transfer in &mut member.transfers {
                let end = match transfer.total {
                    None => 1,
                    Some(total) => total.min(transfer.bytes.len() as u64 + WINDOW),
                };
                while transfer.asked < end && parts >= 1.0 {
                    let (root, item, offset) = (transfer.root, transfer.item, transfer.asked);
                    asked.push((position as u16, Message::AskPart { root, item, offset }));
                    transfer.asked += PART_BYTES as u64;
                    parts -= 1.0;
                }
            }
            member.budget = (parts, now);
        }
    }

    /// What a member says. Gives the checkpoint once it is whole.
    pub fn hear(&mut self, member: u16, message: Message, now: Duration) -> Option<Fetched> {
        let known = self.members.get_mut(usize::from(member)).filter(|known| !known.liar)?;
        match message {
            Message::Offer(offer) if std::mem::take(&mut known.asked) => {
                known.answered = true;
                self.hear_offer(member, offer);
            }
            Message::Gone(root) if known.offers(root) => {
                (known.offer, known.unproved, known.asked_at) = (None, None, None);
                known.gone = Some((root, now + REST));
                let items = known.transfers.drain(..).map(|transfer| transfer.item).collect();
                self.give_back(items);
            }
            Message::Part { root, item, offset, total, bytes } => {
                return self.hear_part(member, (root, item), (offset, total), &bytes, now);
            }
            _ => {}
        }
        None
    }

    /// What the member has sent is wrong: it is asked no more.
    fn blame(&mut self, member: u16, what: &str) {
        tracing::warn!(
            member,
            what,
            "a member has sent something wrong to this node, which joins; others are asked"
        );
        let liar = &mut self.members[usize::from(member)];
        (liar.liar, liar.offer, liar.unproved) = (true, None, None);
        let items = liar.transfers.drain(..).map(|transfer| transfer.item).collect();
        self.progress.liars += 1;
        self.give_back(items);
    }

    fn hear_part(
        &mut self,
        member: u16,
        (root, item): (Digest, Item),
        (offset, total): (u64, u64),
        bytes: &[u8],
        now: Duration,
    ) -> Option<Fetched> {
        let known = &mut self.members[usize::from(member)];
        let asked = |transfer: &Transfer| (transfer.root, transfer.item) == (root, item);
        let position = known.transfers.iter().position(asked)?;
        let transfer = &mut known.transfers[position];
        // What was asked for twice comes twice.
        if offset != transfer.bytes.len() as u64 {
            return None;
        }
        let max = match item {
            Item::Outline => OUTLINE_BYTES_MAX,
            Item::Piece(_) => PIECE_BYTES_MAX,
            Item::Handovers => HANDOVERS_BYTES_MAX as u64,
        };
        let fits = bytes.len() as u64 <= total - offset.min(total) && bytes.len() <= PART_BYTES;
        let whole = bytes.len() == PART_BYTES || offset + bytes.len() as u64 == total;
        let same = transfer.total.is_none_or(|before| before == total);
        if total > max || bytes.is_empty() || !fits || !whole || !same {
            let what = format!("expected up to {max} bytes in parts, found {total} bytes");
            self.blame(member, &what);
            return None;
        }
        transfer.total = Some(total);
        transfer.bytes.extend_from_slice(bytes);
        (transfer.progressed, transfer.tries) = (now, 0);
        self.progress.bytes += bytes.len() as u64;
        self.progressed = now;
        if (transfer.bytes.len() as u64) < total {
            return None;
        }
        let transfer = known.transfers.swap_remove(position);
        let completed = match item {
            Item::Handovers => self.take_handovers(member, &transfer.bytes),
            Item::Outline | Item::Piece(_) => self.complete(item, &transfer.bytes),
        };
        match completed {
            // Also where the item itself was taken: the store may have refused pieces that were on the disk.
            _ if self.store_failure.is_some() => {
                self.phase = Phase::Ended;
                None
            }
            Ok(()) => self.finish_if_whole(),
            Err(what) => {
                self.give_back(vec![item]);
                self.blame(member, &what);
                None
            }
        }
    }

    fn complete(&mut self, item: Item, bytes: &[u8]) -> Result<(), String> {
        match (item, &mut self.phase) {
            (Item::Outline, Phase::Outline(anchor)) => {
                let outline: StateOutline = decode_exactly(bytes).map_err(|error| error.to_string())?;
                let (height, root) = (anchor.height(), root_of(anchor));
                let assembly = StateAssembly::new(outline, height, root, self.stores.as_ref());
                let assembly = assembly.map_err(|error| refused(error, &mut self.store_failure))?;
                let waiting: BTreeSet<usize> = assembly.missing().collect();
                self.progress.pieces = waiting.len();
                let (anchor, assembly) = (anchor.clone(), Box::new(assembly));
                self.phase = Phase::Pieces { anchor, assembly, waiting };
                self.take_staged();
                Ok(())
            }
            (Item::Piece(number), Phase::Pieces { assembly, .. }) => {
                let piece: StatePiece = decode_exactly(bytes).map_err(|error| error.to_string())?;
                let added = assembly.add(number as usize, &piece);
                added.map_err(|error| refused(error, &mut self.store_failure))?;
                self.progress.checked += 1;
                if let Some(leaf) = assembly.leaf(number as usize)
                    && let Err(error) = self.staging.put(leaf, bytes)
                {
                    // It is in memory all the same.
                    tracing::warn!(%error, "a piece is not kept for the case that this node ends before it has all");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes the pieces that are on the disk.
    fn take_staged(&mut self) {
        let Phase::Pieces { assembly, waiting, .. } = &mut self.phase else { return };
        for number in assembly.missing().collect::<Vec<_>>() {
            let Some(leaf) = assembly.leaf(number) else { continue };
            let Some(bytes) = self.staging.get(&leaf) else { continue };
            match decode_exactly::<StatePiece>(&bytes).map(|piece| assembly.add(number, &piece)) {
                Ok(Ok(())) => {
                    waiting.remove(&number);
                    self.progress.checked += 1;
                    self.progress.staged += 1;
                }
                Ok(Err(PieceError::Store(failure))) => {
                    self.store_failure = Some(failure);
                    return;
                }
                _ => self.staging.forget(&leaf),
            }
        }
    }

    fn finish_if_whole(&mut self) -> Option<Fetched> {
        if !matches!(&self.phase, Phase::Pieces { assembly, .. } if assembly.missing().next().is_none()) {
            return None;
        }
        let Phase::Pieces { anchor, assembly, .. } = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return None;
        };
        let header = CheckpointHeader {
            ledger: self.ledger,
            height: anchor.height(),
            state_digest: anchor.outcome.state_digest,
            outcome: anchor.outcome.digest(),
        };
        let finished = assembly.finish(header);
        let checkpoint = finished.map_err(|error| refused(error, &mut self.store_failure)).ok()?;
        let mut anchor = Anchor::clone(&anchor);
        anchor.handovers = handovers_up_to(self.handovers.clone(), self.ledger, anchor.header.charters);
        Some(Fetched { anchor, checkpoint })
    }
}

fn root_of(anchor: &Anchor) -> Digest {
    anchor.checkpoint.statement.state_root
}
