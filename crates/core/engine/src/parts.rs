//! Whether a transaction in schemas with members may take its place: enough members of each say that they hold its part.

use crate::VerifiedTransaction;
use types::{Catalog, EndorsementFault, PartCommitment, Payload, limits};

/// What keeps a transaction with parts out, by the members of the block's height: whoever misses a part must find it with
/// somebody honest. Says nothing of any other transaction. `window`: [`types::Charter::window_blocks`].
///
/// # Errors
/// What is wrong with it.
pub(crate) fn judge_parts(
    transaction: &VerifiedTransaction,
    catalog: &Catalog,
    (height, window): (u64, u32),
) -> Result<(), EndorsementFault> {
    let Payload::Parts { parts } = transaction.payload.as_ref() else { return Ok(()) };
    let wrong = |text: String| Err(EndorsementFault::Effects(text));
    if parts.is_empty() || parts.len() > limits::PARTS_MAX {
        let found = parts.len();
        return wrong(format!("expected 1 to {} parts (PARTS_MAX), found {found}", limits::PARTS_MAX));
    }
    if parts.windows(2).any(|pair| pair[0].schema >= pair[1].schema) {
        return wrong("expected parts in the order of their schemas, one for each".to_string());
    }
    let endorsed = transaction.endorsed.as_ref().filter(|endorsed| endorsed.effects.is_held());
    let holders = endorsed.map_or(&[][..], |endorsed| endorsed.endorsers.as_slice());
    parts.iter().try_for_each(|part| are_held(part, holders, catalog))?;
    match endorsed {
        Some(endorsed) if parts.len() > 1 => {
            parts.iter().try_for_each(|part| is_open(part, (endorsed.snapshot, height), (catalog, window)))
        }
        _ => Ok(()),
    }
}

/// Whether a schema takes transactions that have parts in others. It does not for a window after its members have changed: what is
/// undecided then is decided by those of before. And members' words count that are younger than that: who has become a member
/// meanwhile may hold the part of another schema alone.
fn is_open(
    PartCommitment { schema, .. }: &PartCommitment,
    (held_at, height): (u64, u64),
    (catalog, window): (&Catalog, u32),
) -> Result<(), EndorsementFault> {
    let Some(members) = catalog.members_of(schema).filter(|members| members.changed > members.since) else {
        return Ok(());
    };
    let closed_up_to = members.changed + u64::from(window);
    let wrong = match height <= closed_up_to {
        true => format!(
            "schema \"{schema}\" has changed its members at height {}, and takes no transactions with parts in other schemas up to \
             height {closed_up_to}; submit it again behind that",
            members.changed
        ),
        false if held_at < members.changed => format!(
            "schema \"{schema}\" has changed its members at height {}, and they said at height {held_at} that they hold the parts; \
             have them say it again",
            members.changed
        ),
        false => return Ok(()),
    };
    Err(EndorsementFault::Effects(wrong))
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
