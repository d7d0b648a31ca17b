//! Blocks for a member that its log does not bring: it asks one member after the other, and judges what comes as if it stood in the
//! log. Whoever is asked reads its own.

use super::chain::Offer;
use super::config::{BACKFILL_AGAIN, BACKFILL_BYTES, FED_ENTRIES, TICK};
use super::delivery::Feed;
use super::disk::{Failed, Runtime};
use super::member::{ARRIVALS, Member, Request, members_of};
use super::wire::Backfill;
use crate::Delivery;
use crate::certificate::Certificate;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Recipients, Sender};
use raft::eraftpb::EntryType;
use std::time::Duration;
use tracing::debug;
use types::{decode_exactly, encode};

impl<E, S> Member<E, S>
where
    E: Runtime,
    S: Sender<PublicKey = PublicKey>,
{
    /// From now on the node's ledger may be ahead of its log, until that has caught up.
    pub(super) async fn follow_others(&mut self) -> Result<(), Failed> {
        if self.disk.state.follows {
            return Ok(());
        }
        self.disk.state.follows = true;
        self.save().await
    }

    /// Whether blocks are missing that the log does not bring: they stand before its beginning, or this node is no member of the
    /// group, or is one no more and has not been told.
    fn lacks_blocks(&self) -> bool {
        let height = self.shared.height();
        self.missing.floor.is_some()
            || !self.group.is_voter()
            || self.shared.members.epochs.own_at(height + 1).is_none()
            || self.group.leader().is_none() && self.missing.ahead > height
    }

    /// Asks another member for blocks that the log does not bring; gives when to ask again.
    pub(super) async fn ask_for_blocks(&mut self) -> Result<Duration, Failed> {
        let now = self.shared.now();
        if !self.lacks_blocks() {
            self.shared.lacking.pause(now);
            return Ok(now + TICK);
        }
        let floor = self.missing.floor.map_or(0, |floor| floor.height);
        self.shared.lacking.there(floor.max(self.missing.ahead), now);
        if !self.is_idle() {
            self.shared.lacking.pause(now);
        }
        let due = self.missing.asked.map_or(now, |asked| asked + BACKFILL_AGAIN);
        // What was brought is judged first.
        if now < due || !self.is_idle() {
            return Ok(due.max(now + ARRIVALS));
        }
        // The leader has enough to do, as long as others give any; and who has left may be gone.
        let leader = self.group.leader().filter(|_| self.missing.in_vain <= self.keys.1.len());
        let members = members_of(&self.shared.members.epochs.charters().newest().charter);
        let fit =
            |(id, _): &(&u64, &PublicKey)| **id != self.own && Some(**id) != leader && members.contains(*id);
        let others: Vec<&PublicKey> = self.keys.1.iter().filter(fit).map(|(_, key)| key).collect();
        self.missing.times += 1;
        self.missing.in_vain += 1;
        self.missing.asked = Some(now);
        if let Some(peer) = others.get(self.missing.times % others.len().max(1)) {
            let wanted = Backfill::Wanted { from: self.shared.height() + 1 };
            self.backfill.send(Recipients::One((*peer).clone()), encode(&wanted), false);
        }
        Ok(now + BACKFILL_AGAIN)
    }

    pub(super) async fn hear_backfill(&mut self, peer: &PublicKey, message: &[u8]) -> Result<(), Failed> {
        let Some(member) = self.shared.members.epochs.member(peer) else { return Ok(()) };
        self.shared.hear(member);
        match decode_exactly::<Backfill>(message) {
            Ok(Backfill::Here { height }) => self.missing.ahead = self.missing.ahead.max(height),
            Ok(Backfill::Wanted { from }) => {
                let offered = self.blocks_from(from, FED_ENTRIES).await?;
                if !offered.is_empty() {
                    let blocks = Backfill::Blocks { from, offered };
                    self.backfill.send(Recipients::One(peer.clone()), encode(&blocks), false);
                }
            }
            Ok(Backfill::Blocks { from, offered }) => {
                if self.lacks_blocks() && from == self.shared.height() + 1 && self.is_idle() {
                    self.follow_others().await?;
                    for bytes in offered {
                        if !self.give(Feed::Backfill { bytes: bytes.into() }) {
                            break;
                        }
                    }
                    (self.missing.asked, self.missing.in_vain) = (None, 0);
                }
            }
            Err(_) => debug!(member, "ignored what asks for no blocks and brings none"),
        }
        Ok(())
    }

    /// What stands in the log from a height on, as far as it is judged here.
    async fn blocks_from(&mut self, height: u64, most: usize) -> Result<Vec<Vec<u8>>, Failed> {
        let tip = *self.shared.tip.borrow();
        if height == 0 || height > tip.parent.height || height <= self.disk.state.floor.height {
            return Ok(Vec::new());
        }
        let (mut offered, mut bytes) = (Vec::new(), 0);
        for index in self.disk.first_where(|header| header.height >= height).await?..=tip.position.index {
            if index >= self.disk.end()? {
                break;
            }
            let entry = self.disk.read(index).await?;
            let is_block = entry.get_entry_type() == EntryType::EntryNormal && !entry.data.is_empty();
            if !is_block || self.disk.state.dropped.contains(&index) {
                continue;
            }
            if offered.len() >= most || !offered.is_empty() && bytes + entry.data.len() > BACKFILL_BYTES {
                break;
            }
            bytes += entry.data.len();
            offered.push(entry.data.to_vec());
        }
        Ok(offered)
    }

    pub(super) async fn answer(&mut self, request: Request) -> Result<(), Failed> {
        let Request::Read { height, answer } = request;
        let offered = self.blocks_from(height, 1).await?;
        let offers = offered.into_iter().filter_map(|bytes| Offer::from_bytes(&bytes.into()).ok());
        let mut found =
            offers.filter(|offer| offer.block.header.height == height).map(|Offer { signature, block }| {
                Delivery { block, certificate: Certificate::Raft(signature).to_bytes() }
            });
        // Nobody may wait for it any more.
        let _ = answer.send(found.next());
        Ok(())
    }
}
