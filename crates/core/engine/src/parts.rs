//! Whether a transaction in schemas with members may take its place: enough members of each say that they hold its part.

use crate::VerifiedTransaction;
use types::{Catalog, EndorsementFault, ExecutionVersion, PartCommitment, Payload, limits};

/// What keeps a transaction with parts out, by the members of the block's height: whoever misses a part must find it with
/// somebody honest. Says nothing of any other transaction.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn judge_parts(
    transaction: &VerifiedTransaction,
    catalog: &Catalog,
    version: ExecutionVersion,
) -> Result<(), EndorsementFault> {
    let Payload::Parts { parts } = transaction.payload.as_ref() else { return Ok(()) };
    let wrong = |text: String| Err(EndorsementFault::Effects(text));
    if version < ExecutionVersion::V4 {
        return wrong(format!(
            "schemas have members from execution version 4 on, and version {version} holds"
        ));
    }
    if parts.is_empty() || parts.len() > limits::PARTS_MAX {
        let found = parts.len();
        return wrong(format!("expected 1 to {} parts (PARTS_MAX), found {found}", limits::PARTS_MAX));
    }
    if parts.windows(2).any(|pair| pair[0].schema >= pair[1].schema) {
        return wrong("expected parts in the order of their schemas, one for each".to_string());
    }
    if parts.len() > 1 {
        return wrong("a transaction in several schemas with members is not supported yet".to_string());
    }
    let endorsed = transaction.endorsed.as_ref().filter(|endorsed| endorsed.effects.is_held());
    let holders = endorsed.map_or(&[][..], |endorsed| endorsed.endorsers.as_slice());
    parts.iter().try_for_each(|part| are_held(part, holders, catalog))
}

fn are_held(part: &PartCommitment, holders: &[u16], catalog: &Catalog) -> Result<(), EndorsementFault> {
    let PartCommitment { schema, .. } = part;
    let Some(members) = catalog.members_of(schema) else {
        return Err(EndorsementFault::Effects(format!("there is no schema \"{schema}\" that has members")));
    };
    let (found, needed) = (holders.iter().filter(|holder| members.has(**holder)).count(), members.quorum());
    if found < needed {
        return Err(EndorsementFault::Effects(format!(
            "{found} of {} members of schema \"{schema}\" say that they hold the part, {needed} are needed; ask the others, too",
            members.organisations.len()
        )));
    }
    Ok(())
}
