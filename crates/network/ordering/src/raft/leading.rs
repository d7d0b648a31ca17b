//! What a member does that leads: offers blocks, a few ahead of what is judged, and has those vote whom the charter names.

use super::chain::Offer;
use super::config::{OFFERED_BLOCKS, TICK};
use super::disk::Runtime;
use super::member::{Member, Offered, Reign, members_of};
use crate::certificates::Allowed;
use crate::computation::off_the_reactor;
use crate::cutting::{Cut, Parent, assemble, when_to_cut};
use crate::mempool::Survey;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::Sender;
use std::time::Duration;
use tracing::{info, warn};
use types::Place;

impl<E, S> Member<E, S>
where
    E: Runtime,
    S: Sender<PublicKey = PublicKey>,
{
    /// Offers a block if one is due; gives when one will be.
    pub(super) async fn lead(&mut self) -> Duration {
        let shared = self.shared.clone();
        let (now, later) = (shared.now(), shared.now() + TICK);
        let tip = *shared.tip.borrow();
        if self.reign.term != self.group.term() {
            let (term, from) = (self.group.term(), self.group.last_index());
            info!(term, "this node leads the Raft group");
            self.reign = Reign { term, from, idle_since: now, ..Reign::default() };
        }
        if tip.position.index < self.reign.from || self.missing.floor.is_some() {
            return later;
        }
        while let Some(offered) =
            self.reign.offered.front().filter(|offered| offered.position.index <= tip.position.index)
        {
            if tip.parent.height < offered.parent.height {
                // It was dropped, and what builds on it will be.
                warn!(height = offered.parent.height, "a block of this node was dropped");
                let charters = shared.members.epochs.charters();
                let place = Place { charters: &charters, height: tip.parent.height + 1 };
                shared.mempool.forget_refused(&*shared.admission, place, &offered.ids);
                self.reign = Reign {
                    from: self.group.last_index(),
                    term: self.reign.term,
                    idle_since: now,
                    ..Reign::default()
                };
                return later;
            }
            for id in &offered.ids {
                self.reign.ids.remove(id);
            }
            self.reign.offered.pop_front();
        }
        let parent = self.reign.offered.back().map_or(tip.parent, |offered| offered.parent);
        let height = parent.height + 1;
        self.group.have_vote(&members_of(&shared.members.epochs.charter_at(tip.parent.height + 1)));
        let (Some(organisation), true) =
            (shared.members.epochs.own_at(height), self.reign.offered.len() < OFFERED_BLOCKS)
        else {
            return later;
        };
        let charter = shared.members.epochs.charter_at(height);
        let allowed = shared.members.certificates.allow(&parent, &charter);
        let survey = match allowed {
            Allowed::Transactions => shared.mempool.survey(&charter.block, &self.reign.ids),
            Allowed::Empty => Survey::default(),
            Allowed::Nothing => return later,
        };
        match when_to_cut(&survey, &charter.block, self.reign.idle_since, now, false) {
            Cut::At(time) => time,
            Cut::Now => {
                let limits = charter.block;
                let attested = shared.members.certificates.for_child_of(&parent);
                let ordered = self.reign.ids.clone();
                let build = move || {
                    let (ids, transactions) = match allowed {
                        Allowed::Transactions => shared.mempool.take(&*shared.admission, &limits, &ordered),
                        Allowed::Empty | Allowed::Nothing => Default::default(),
                    };
                    let clock_ms = (shared.wall_clock)().as_millis() as u64;
                    let block =
                        assemble(shared.ledger, &parent, organisation, clock_ms, attested, transactions);
                    let parent = Parent::block(&block.header);
                    (ids, parent, Offer::sign(block, &shared.key).to_bytes())
                };
                let (ids, parent, bytes) = off_the_reactor(&self.context, build).await;
                // A leader that is handing over takes nothing.
                let Some(position) = self.group.offer(bytes) else { return later };
                self.reign.ids.extend(&ids);
                self.reign.offered.push_back(Offered { position, parent, ids });
                self.reign.idle_since = now;
                now
            }
        }
    }
}
