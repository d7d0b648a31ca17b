//! What members offer: which of it is true, and which is the one to fetch.

use super::{ASK_OFFER_AGAIN, Fetch, FetchProgress, Member, OFFERS_AGAIN, OFFERS_WAIT, Phase, root_of};
use crate::joining::message::{Item, Message};
use ledger::{Anchor, prove_charters};
use std::sync::Arc;
use std::time::Duration;
use types::{Handover, decode_exactly};

impl Fetch {
    /// Whether everybody has said what it has, and that is checked.
    pub(super) fn all_have_answered(&self) -> bool {
        self.asked().all(|(_, member)| member.liar || member.answered && member.unproved.is_none())
    }

    pub(super) fn asked(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter().enumerate().filter(|(position, _)| *position != usize::from(self.me))
    }

    /// The highest checkpoint that is offered and of use.
    pub(super) fn best(&self) -> Option<Arc<Anchor>> {
        let offers = self.asked().filter_map(|(_, member)| member.offer.as_ref());
        let offers = offers.filter(|offer| offer.height() > self.above);
        offers.max_by_key(|offer| offer.height()).cloned()
    }

    pub(super) fn ask_for_offers(&mut self, now: Duration, asked: &mut Vec<(u16, Message)>) {
        let (root, me) = (self.root(), usize::from(self.me));
        for (position, member) in self.members.iter_mut().enumerate() {
            let useful =
                member.offer.as_ref().is_some_and(|offer| root.is_none_or(|root| root_of(offer) == root));
            let useful = useful || member.unproved.is_some();
            let pause = if member.asked { ASK_OFFER_AGAIN } else { OFFERS_AGAIN };
            let due = member.asked_at.is_none_or(|at| now >= at + pause);
            if position != me && !member.liar && !useful && due {
                (member.asked, member.asked_at) = (true, Some(now));
                asked.push((position as u16, Message::AskOffer));
            }
        }
    }

    pub(super) fn choose(&mut self, now: Duration) {
        if let Some(root) = self.root() {
            let offered = |member: &Member| {
                !member.liar && member.offer.as_ref().is_some_and(|offer| root_of(offer) == root)
            };
            if !self.members.iter().any(offered) {
                tracing::info!(height = self.progress.height, "nobody offers this checkpoint any more");
                self.restart();
            }
        }
        if !matches!(self.phase, Phase::Choosing) {
            return;
        }
        let Some(best) = self.best() else { return };
        let first = *self.first_offer.get_or_insert(now);
        if self.all_have_answered() || now >= first + OFFERS_WAIT {
            let height = best.height();
            tracing::info!(height, "joining from this certified checkpoint");
            self.progress = FetchProgress {
                height,
                bytes: self.progress.bytes,
                liars: self.progress.liars,
                ..FetchProgress::default()
            };
            self.phase = Phase::Outline(best);
            for member in &mut self.members {
                // Its state is another one than the chosen.
                if member.unproved.take().is_some() {
                    (member.asked_at, member.answered) = (None, false);
                }
                member.transfers.retain(|transfer| transfer.item != Item::Handovers);
            }
        }
    }

    pub(super) fn restart(&mut self) {
        self.phase = Phase::Choosing;
        self.first_offer = None;
        for member in &mut self.members {
            member.transfers.clear();
            (member.offer, member.unproved, member.answered, member.asked_at) = (None, None, false, None);
        }
    }

    pub(super) fn hear_offer(&mut self, member: u16, offer: Option<Box<Anchor>>) {
        let Some(offer) = offer else {
            self.members[usize::from(member)].offer = None;
            return;
        };
        if !self.charters().knows(&offer.header.charters) {
            let choosing = self.root().is_none();
            let known = &mut self.members[usize::from(member)];
            (known.offer, known.unproved) = (None, choosing.then_some(offer));
            return;
        }
        match self.check(&offer) {
            Ok(()) => {
                let root = self.root();
                let known = &mut self.members[usize::from(member)];
                // One that is behind waits until it gets there.
                if root.is_none() || root == Some(root_of(&offer)) {
                    known.offer = Some(Arc::from(offer));
                } else {
                    known.offer = None;
                }
            }
            Err(error) => self.blame(member, &error),
        }
    }

    /// Whether members of its height have signed what is offered.
    fn check(&self, offer: &Anchor) -> Result<(), String> {
        if !offer.handovers.is_empty() {
            return Err(format!("expected an offer without handovers, found {}", offer.handovers.len()));
        }
        offer.check(self.ledger)?;
        let rules = &self.charters().at(offer.height()).rules;
        rules.check_certificate(&offer.checkpoint).map_err(|error| error.to_string())?;
        let own = self.certificates.verify_own(&offer.header, &offer.certificate);
        own.map(drop).map_err(|error| error.to_string())
    }

    /// Takes what should prove the charters of a member's offer, and judges all offers that wait for that.
    pub(super) fn take_handovers(&mut self, member: u16, bytes: &[u8]) -> Result<(), String> {
        let Some(named) =
            self.members[usize::from(member)].unproved.as_ref().map(|offer| offer.header.charters)
        else {
            return Ok(());
        };
        let handovers: Vec<Handover> = decode_exactly(bytes).map_err(|error| error.to_string())?;
        let charters = prove_charters(self.charters().founding(), &handovers, named)?;
        self.certificates.adopt(&charters).map_err(|error| error.to_string())?;
        if self.handovers.len() < handovers.len() {
            self.handovers = handovers;
        }
        let organisations = charters.newest().charter.organisations.len();
        self.members.resize_with(organisations.max(self.members.len()), Member::default);
        for member in 0..self.members.len() {
            let known = |offer: &mut Box<Anchor>| charters.knows(&offer.header.charters);
            if let Some(offer) = self.members[member].unproved.take_if(known) {
                self.hear_offer(member as u16, Some(offer));
            }
        }
        Ok(())
    }
}
