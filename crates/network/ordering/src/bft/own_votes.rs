//! Finds out that another process votes with this node's key: a certificate has a vote of the key that contradicts what this node
//! has voted itself.
//!
//! One process never votes for two proposals of one view, nor for going on without one and for finalizing one: it writes each vote
//! to the disk before it sends it. So nothing that this node does by itself looks like that, whatever comes first. Votes of a
//! copy that are the same as this node's are the same signatures, say nothing, and do no harm.

use commonware_actor::Feedback;
use commonware_consensus::Reporter;
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_consensus::simplex::types::{Activity, Attributable as _};
use commonware_consensus::types::{Participant, Round};
use commonware_cryptography::ed25519::certificate::Certificate;
use commonware_cryptography::sha256::Digest;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Views that are remembered; the consensus crate keeps votes for as many.
const VIEWS_MAX: usize = 256;

/// What the key has signed in one view, as far as this node knows.
#[derive(Default)]
struct Signed {
    notarized: Option<Digest>,
    finalized: Option<Digest>,
    nullified: bool,
}

/// A vote of this node's key, whoever gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Vote {
    Notarize(Digest),
    Finalize(Digest),
    Nullify,
}

/// The votes of this node's key.
pub(crate) struct OwnVotes {
    views: Mutex<BTreeMap<Round, Signed>>,
    /// What contradicts what, once something does.
    found: watch::Sender<Option<String>>,
}

impl Default for OwnVotes {
    fn default() -> OwnVotes {
        OwnVotes { views: Mutex::default(), found: watch::Sender::new(None) }
    }
}

impl OwnVotes {
    /// What shows that somebody else votes with this node's key, if anything does.
    pub(crate) fn contradiction(&self) -> Option<String> {
        self.found.borrow().clone()
    }

    /// Waits until somebody else is seen to vote with this node's key.
    pub(crate) async fn contradicted(&self) -> String {
        let mut found = self.found.subscribe();
        match found.wait_for(Option::is_some).await {
            Ok(text) => text.clone().unwrap_or_default(),
            // Its sender is here.
            Err(_) => std::future::pending().await,
        }
    }

    /// The key, which is `own` in this epoch, has voted so.
    fn see(&self, round: Round, vote: Vote) {
        let mut views = self.views.lock();
        let signed = views.entry(round).or_default();
        let contradiction = signed.contradiction(vote);
        match vote {
            Vote::Notarize(digest) => _ = signed.notarized.get_or_insert(digest),
            Vote::Finalize(digest) => _ = signed.finalized.get_or_insert(digest),
            Vote::Nullify => signed.nullified = true,
        }
        if views.len() > VIEWS_MAX {
            views.pop_first();
        }
        drop(views);
        if let Some(what) = contradiction {
            let (epoch, view) = (round.epoch().get(), round.view().get());
            let text = format!("in view {view} of epoch {epoch} the key has signed {what}");
            self.found.send_if_modified(|found| {
                let is_first = found.is_none();
                found.get_or_insert(text);
                is_first
            });
        }
    }

    fn hear(&self, own: Participant, activity: &Activity<Scheme, Digest>) {
        let has_signed = |certificate: &Certificate| certificate.signers.iter().any(|signer| signer == own);
        let seen = match activity {
            Activity::Notarize(vote) => {
                (vote.signer() == own).then_some((vote.proposal.round, Vote::Notarize(vote.proposal.payload)))
            }
            Activity::Finalize(vote) => {
                (vote.signer() == own).then_some((vote.proposal.round, Vote::Finalize(vote.proposal.payload)))
            }
            Activity::Nullify(vote) => (vote.signer() == own).then_some((vote.round, Vote::Nullify)),
            Activity::Notarization(proof) | Activity::Certification(proof) => has_signed(&proof.certificate)
                .then_some((proof.proposal.round, Vote::Notarize(proof.proposal.payload))),
            Activity::Finalization(proof) => has_signed(&proof.certificate)
                .then_some((proof.proposal.round, Vote::Finalize(proof.proposal.payload))),
            Activity::Nullification(proof) => {
                has_signed(&proof.certificate).then_some((proof.round, Vote::Nullify))
            }
            // Others' faults: the crate itself hears no more of who is at fault.
            Activity::ConflictingNotarize(_)
            | Activity::ConflictingFinalize(_)
            | Activity::NullifyFinalize(_) => None,
        };
        if let Some((round, vote)) = seen {
            self.see(round, vote);
        }
    }
}

impl Signed {
    /// What the vote contradicts.
    fn contradiction(&self, vote: Vote) -> Option<String> {
        let two = |known: Option<Digest>, found: Digest, what: &str| {
            let known = known.filter(|known| *known != found)?;
            Some(format!("two votes {what}, for the blocks {known} and {found}"))
        };
        match vote {
            Vote::Notarize(digest) => two(self.notarized, digest, "to notarize"),
            Vote::Finalize(digest) if self.nullified => {
                Some(format!("a vote to finalize the block {digest}, and one to go on without a block"))
            }
            Vote::Finalize(digest) => two(self.finalized, digest, "to finalize"),
            Vote::Nullify => self
                .finalized
                .map(|digest| format!("a vote to go on without a block, and one to finalize {digest}")),
        }
    }
}

/// Hears what consensus of one epoch reports, and passes it on.
#[derive(Clone)]
pub(super) struct Watched<R> {
    inner: R,
    votes: Arc<OwnVotes>,
    /// This node among the epoch's members, if it is one.
    own: Option<Participant>,
}

impl<R> Watched<R> {
    pub(super) fn new(inner: R, votes: Arc<OwnVotes>, own: Option<Participant>) -> Watched<R> {
        Watched { inner, votes, own }
    }
}

impl<R: Reporter<Activity = Activity<Scheme, Digest>>> Reporter for Watched<R> {
    type Activity = Activity<Scheme, Digest>;

    fn report(&mut self, activity: Self::Activity) -> Feedback {
        if let Some(own) = self.own {
            self.votes.hear(own, &activity);
        }
        self.inner.report(activity)
    }
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::bft::block::consensus_digest;
    use crate::members::committee::{members, namespace, private_key};
    use crate::simulation::{charter, node_key};
    use commonware_consensus::simplex::types::{
        Finalization, Finalize, Notarization, Notarize, Nullification, Nullify, Proposal,
    };
    use commonware_consensus::types::{Epoch, View};
    use commonware_cryptography::certificate::Scheme as _;
    use commonware_parallel::Sequential;
    use commonware_utils::non_empty;

    type Heard = Activity<Scheme, Digest>;

    fn schemes() -> Vec<Scheme> {
        let charter = charter(1, 4);
        let members = members(&charter).expect("good keys");
        let scheme = |member| {
            Scheme::signer(&namespace(&charter), members.clone(), private_key(&node_key(member)))
                .expect("a member")
        };
        (0..4).map(scheme).collect()
    }

    fn proposal(view: u64, block: u8) -> Proposal<Digest> {
        let round = Round::new(Epoch::new(0), View::new(view));
        Proposal::new(round, View::new(view - 1), consensus_digest(&crypto::Digest([block; 32])))
    }

    fn notarization(schemes: &[Scheme], of: &Proposal<Digest>) -> Heard {
        let votes: Vec<_> = schemes.iter().filter_map(|scheme| Notarize::sign(scheme, of.clone())).collect();
        let made = Notarization::from_notarizes(&schemes[0], non_empty![@&votes], &Sequential);
        Activity::Notarization(made.expect("a quorum"))
    }

    fn finalization(schemes: &[Scheme], of: &Proposal<Digest>) -> Heard {
        let votes: Vec<_> = schemes.iter().filter_map(|scheme| Finalize::sign(scheme, of.clone())).collect();
        let made = Finalization::from_finalizes(&schemes[0], non_empty![@&votes], &Sequential);
        Activity::Finalization(made.expect("a quorum"))
    }

    fn nullification(schemes: &[Scheme], round: Round) -> Heard {
        let votes: Vec<_> =
            schemes.iter().filter_map(|scheme| Nullify::sign::<Digest>(scheme, round)).collect();
        let made = Nullification::from_nullifies(&schemes[0], non_empty![@&votes], &Sequential);
        Activity::Nullification(made.expect("a quorum"))
    }

    /// What the first member finds out of all of it.
    fn found(schemes: &[Scheme], heard: &[Heard]) -> Option<String> {
        let votes = OwnVotes::default();
        let own = schemes[0].me().and_then(|membership| membership.signer()).expect("a member");
        heard.iter().for_each(|activity| votes.hear(own, activity));
        votes.contradiction()
    }

    #[test]
    fn a_vote_that_this_node_has_not_given_is_found_whichever_comes_first() {
        let schemes = schemes();
        let (one, other) = (proposal(7, 1), proposal(7, 2));
        let own = Activity::Notarize(Notarize::sign(&schemes[0], one.clone()).expect("a member"));
        let elsewhere = notarization(&schemes[..3], &other);
        for heard in [[own.clone(), elsewhere.clone()], [elsewhere, own.clone()]] {
            let text = found(&schemes, &heard).expect("it did not vote for that");
            assert!(
                text.starts_with("in view 7 of epoch 0 the key has signed two votes to notarize"),
                "{text}"
            );
        }
        let own = Activity::Finalize(Finalize::sign(&schemes[0], one.clone()).expect("a member"));
        let text = found(&schemes, &[own.clone(), finalization(&schemes[..3], &other)]).expect("another");
        assert!(text.contains("two votes to finalize"), "{text}");
        let elsewhere = nullification(&schemes[..3], one.round);
        for heard in [[own.clone(), elsewhere.clone()], [elsewhere, own]] {
            let text = found(&schemes, &heard).expect("both of it no node does");
            assert!(text.contains("go on without a block"), "{text}");
        }
    }

    #[test]
    fn what_one_node_does_is_no_contradiction() {
        let schemes = schemes();
        let (one, other, next) = (proposal(7, 1), proposal(7, 2), proposal(8, 2));
        let notarize = |of: &Proposal<Digest>| {
            Activity::Notarize(Notarize::sign(&schemes[0], of.clone()).expect("a member"))
        };
        let finalize = Activity::Finalize(Finalize::sign(&schemes[0], one.clone()).expect("a member"));
        let usual = [
            notarize(&one),
            notarization(&schemes[..3], &one),
            finalize,
            finalization(&schemes[..3], &one),
            notarize(&next),
            // It gave up waiting, and it was too late for that.
            nullification(&schemes[..3], next.round),
            notarization(&schemes[1..], &next),
            // It comes again after a restart.
            notarize(&one),
        ];
        assert_eq!(found(&schemes, &usual), None);
        let others = [notarize(&one), notarization(&schemes[1..], &other)];
        assert_eq!(found(&schemes, &others), None, "others have voted for another block");
    }

    #[test]
    fn few_views_are_remembered() {
        let votes = OwnVotes::default();
        for view in 1..2_000 {
            votes.see(Round::new(Epoch::new(0), View::new(view)), Vote::Nullify);
        }
        assert_eq!(votes.views.lock().len(), VIEWS_MAX);
    }
}
