//! What endorsers and members of schemas must have signed.

use crypto::{Digest, PublicKey, Signature};
use types::{EndorsedSimulation, EndorsementFault, HeldParts, Place};

/// What one signature of an endorser says: organisation, the key that it has at the height that it names, root and
/// signature.
pub(super) type EndorserSignature = (u16, PublicKey, Digest, Signature);

/// What its endorsers must have signed, each with the height that it names. `roots`: where their proofs lead.
pub(super) fn endorser_signatures(
    place: Place<'_>,
    simulation: &EndorsedSimulation,
    roots: &[Option<Digest>],
) -> Result<Vec<(EndorserSignature, u64)>, EndorsementFault> {
    let mut found: Vec<(EndorserSignature, u64)> = Vec::with_capacity(simulation.endorsements.len());
    for (endorsement, root) in simulation.endorsements.iter().zip(roots) {
        let (organisation, snapshot) = (endorsement.organisation, endorsement.snapshot);
        let charter = place.charter_before(snapshot);
        let Some(endorser) = charter.organisations.get(usize::from(organisation)) else {
            let last = charter.organisations.len() as u16 - 1;
            return Err(EndorsementFault::Stranger { found: organisation, last });
        };
        if found.iter().any(|((known, ..), _)| *known == organisation) {
            return Err(EndorsementFault::Repeated { organisation });
        }
        let root = root.ok_or(EndorsementFault::Forged { organisation, snapshot })?;
        found.push(((organisation, endorser.node_key, root, endorsement.signature), snapshot));
    }
    Ok(found)
}

/// What members must have signed who hold parts, each with the height that it names.
pub(super) fn holder_signatures(
    place: Place<'_>,
    held: &[HeldParts],
) -> Result<Vec<(EndorserSignature, u64)>, EndorsementFault> {
    let mut found: Vec<(EndorserSignature, u64)> = Vec::new();
    for HeldParts { transactions, holders } in held {
        let before = found.len();
        for holder in holders {
            let (organisation, height) = (holder.organisation, holder.height);
            let charter = place.charter_before(height);
            let Some(member) = charter.organisations.get(usize::from(organisation)) else {
                let last = charter.organisations.len() as u16 - 1;
                return Err(EndorsementFault::Stranger { found: organisation, last });
            };
            if found[before..].iter().any(|((known, ..), _)| *known == organisation) {
                return Err(EndorsementFault::Repeated { organisation });
            }
            let root = HeldParts::root(transactions, height);
            found.push(((organisation, member.node_key, root, holder.signature), height));
        }
    }
    Ok(found)
}
