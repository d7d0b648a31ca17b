//! The endorsers of a network: each executes proposals itself and signs what it found with its own key, on a thread of its
//! own. A gateway puts together what they say.
//!
//! ```text
//!            ┌──▶ endorser of org1 (simulate, sign) ──▶┐
//!  clients ──┤                                         ├──▶ gateway (compare) ──▶ waiting
//!            └──▶ endorser of org2 (simulate, sign) ──▶┘
//! ```

use super::network::Endorsed;
use crate::EngineBenchError;
use crypto::{Digest, SecretKey};
use engine::EndorsementBasis;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;
use std::vec::IntoIter;
use types::{
    ClientId, EndorsedEffects, EndorsedSimulation, Endorsement, Principal, SignedTransaction, TransactionId,
    endorse,
};

/// Proposals that an endorser answers with one signature, and when each arrived.
pub(super) type Proposals = Arc<Vec<(SignedTransaction, Instant)>>;

/// What an endorser is asked: to execute proposals on a state.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) basis: EndorsementBasis,
    pub(super) proposals: Proposals,
}

/// What an endorser found that a proposal does, and its word for that.
pub(super) struct Found {
    digest: Digest,
    effects: EndorsedEffects,
    endorsement: Endorsement,
}

/// What an endorser says of each proposal; `None` where its contract refuses it.
pub(super) type Answer = Vec<Option<Found>>;

/// Who endorses in the name of one organisation.
pub(super) struct Endorser {
    /// Its position in the charter.
    pub(super) organisation: u16,
    pub(super) key: SecretKey,
    pub(super) ledger: Digest,
}

impl Endorser {
    /// Executes proposals and signs what they do.
    pub(super) fn answer(&self, Request { basis, proposals }: &Request) -> Answer {
        let simulate = |(signed, _): &(SignedTransaction, Instant)| {
            let (id, payload) = (signed.transaction.id(), Arc::new(signed.transaction.payload.clone()));
            let effects = basis.simulate((id, ClientId::default()), &Principal::default(), &payload).ok()?;
            Some(((id, effects.digest()), effects))
        };
        let simulated: Vec<Option<((TransactionId, Digest), EndorsedEffects)>> =
            proposals.iter().map(simulate).collect();
        let found: Vec<(TransactionId, Digest)> =
            simulated.iter().flatten().map(|(found, _)| *found).collect();
        let endorsements = endorse(&self.key, self.organisation, &self.ledger, basis.height, &found);
        let mut endorsements = endorsements.into_iter();
        let mut with_its_word = |((_, digest), effects)| Found {
            digest,
            effects,
            endorsement: endorsements.next().expect("an endorsement for every simulation"),
        };
        simulated.into_iter().map(|one| one.map(&mut with_its_word)).collect()
    }

    /// Answers until nobody asks any more.
    pub(super) fn serve(&self, requests: &Receiver<Request>, answers: &Sender<Answer>) {
        for request in requests {
            if answers.send(self.answer(&request)).is_err() {
                return;
            }
        }
    }
}

/// Puts together what endorsers say of the same request, by organisation: the proposals that their contract does not refuse,
/// ready to be ordered.
///
/// # Errors
/// Two of them found something else.
pub(super) fn gather(
    request: &Request,
    answers: Vec<(u16, Answer)>,
) -> Result<Vec<Endorsed>, EngineBenchError> {
    let (organisations, mut answers): (Vec<u16>, Vec<IntoIter<Option<Found>>>) =
        answers.into_iter().map(|(organisation, answer)| (organisation, answer.into_iter())).unzip();
    let snapshot = request.basis.height;
    let mut ready = Vec::with_capacity(request.proposals.len());
    for (signed, arrived) in request.proposals.iter() {
        let found: Vec<Option<Found>> =
            answers.iter_mut().map(|answer| answer.next().expect("an answer to every proposal")).collect();
        let digest = |found: &Option<Found>| found.as_ref().map(|found| found.digest);
        if let Some(other) = found.iter().position(|one| digest(one) != digest(&found[0])) {
            return Err(EngineBenchError::Diverging {
                first: organisations[0],
                second: organisations[other],
            });
        }
        let mut endorsements = Vec::with_capacity(found.len());
        let mut agreed = None;
        for Found { effects, endorsement, .. } in found.into_iter().flatten() {
            endorsements.push(endorsement);
            agreed = Some(effects);
        }
        let Some(effects) = agreed else { continue };
        let plain = state::effects_of(&effects, |write| Ok(state::write_command(write)));
        let plain = plain.expect("a write becomes a command whatever it is");
        let mut signed = signed.clone();
        signed.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
        let bytes = signed.to_bytes().into();
        ready.push(Endorsed { bytes, effects: Arc::new(plain), snapshot, arrived: *arrived });
    }
    Ok(ready)
}
