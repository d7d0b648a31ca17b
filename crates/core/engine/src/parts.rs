//! Whether a transaction in schemas with members may take its place: enough members of each say that they hold its part.

use crate::{VerifiedEndorsement, VerifiedTransaction};
use types::{Catalog, EndorsementFault, ExecutionVersion, PartCommitment, Payload, limits};

/// What keeps a transaction with parts out, by the members of the block's height: whoever misses a part must find it with
/// somebody honest. Says nothing of any other transaction. `window`: [`types::Charter::window_blocks`]; `version`: the rules of that height.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn judge_parts(
    transaction: &VerifiedTransaction,
    catalog: &Catalog,
    (height, window, version): (u64, u32, ExecutionVersion),
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
    match version >= ExecutionVersion::V5 {
        true => parts.iter().try_for_each(|part| {
            let several = parts.len() > 1;
            if several {
                is_open(part, (u64::MAX, height), (catalog, window))?;
            }
            // An old word does not count; nor does it count against the others: no member keeps a transaction out with its own.
            let least =
                catalog.members_of(&part.schema).filter(|_| several).map_or(0, |members| members.changed);
            are_held(part, &holders(endorsed, least), catalog)
        }),
        false => {
            let holders = holders(endorsed, 0);
            parts.iter().try_for_each(|part| are_held(part, &holders, catalog))?;
            match endorsed {
                Some(VerifiedEndorsement { snapshot, .. }) if parts.len() > 1 => {
                    parts.iter().try_for_each(|part| is_open(part, (*snapshot, height), (catalog, window)))
                }
                _ => Ok(()),
            }
        }
    }
}

/// Who has said at a height or later that he holds the parts.
fn holders(endorsed: Option<&VerifiedEndorsement>, least: u64) -> Vec<u16> {
    let Some(VerifiedEndorsement { endorsers, heights, .. }) = endorsed else { return Vec::new() };
    let said = endorsers.iter().zip(heights.iter());
    said.filter(|(_, height)| **height >= least).map(|(endorser, _)| *endorser).collect()
}

/// Whether a schema takes transactions that have parts in others. It does not for a window after its members have changed: what is
/// undecided then is decided by those of before. And members' words count that are younger than that: who has become a member
/// meanwhile may hold the part of another schema alone. `held_at`: the oldest of them, where all must be.
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

#[cfg(test)]
mod tests {
    //! The wrong variants of the model `schemas.py` that concern admission, each under the variant's name.

    use super::*;
    use crypto::{Digest, SecretKey};
    use std::sync::Arc;
    use types::{Credential, EndorsedEffects, Payload, RequestId, Schema, SchemaMembers, Transaction};

    const WINDOW: u32 = 6;

    /// Schema `a` has three members and `b` four; a fourth came to `b` at height 20.
    fn catalog() -> Catalog {
        let schema = |number, changed, organisations: &[u16]| Schema {
            owner: None,
            members: Some(Arc::new(SchemaMembers {
                number,
                since: 3,
                changed,
                organisations: organisations.to_vec(),
            })),
        };
        let schemas = [("a", schema(1, 3, &[0, 1, 2])), ("b", schema(2, 20, &[0, 3, 4, 5]))];
        Catalog {
            schemas: schemas.map(|(name, schema)| (name.to_string(), schema)).into(),
            ..Catalog::default()
        }
    }

    /// A transaction with parts in these schemas, whose holders have said so at a height.
    fn held(schemas: &[&str], holders: Option<(u64, &[u16])>) -> VerifiedTransaction {
        let key = SecretKey::from_bytes([9; 32]);
        let commitment =
            |schema: &&str| PartCommitment { schema: schema.to_string(), commitment: Digest::ZERO };
        let transaction = Transaction {
            ledger: Digest::ZERO,
            client: key.public_key(),
            request: RequestId([1; 16]),
            expires_at: 99,
            role: String::new(),
            payload: Payload::Parts { parts: schemas.iter().map(commitment).collect() },
        };
        let credential = Credential::issue(&key, 0, &Digest::ZERO, &key.public_key());
        let endorsed = holders.map(|(height, endorsers)| {
            let said = endorsers.iter().map(|endorser| (*endorser, height)).collect();
            VerifiedEndorsement::new(Arc::new(EndorsedEffects::held()), said)
        });
        VerifiedTransaction { endorsed, ..transaction.sign(&key, credential).into() }
    }

    /// By the rules of both versions, which agree.
    fn judged(schemas: &[&str], holders: Option<(u64, &[u16])>, height: u64) -> Result<(), EndorsementFault> {
        let transaction = held(schemas, holders);
        let judge = |version| judge_parts(&transaction, &catalog(), (height, WINDOW, version));
        let judged = judge(ExecutionVersion::V5);
        assert_eq!(judged.is_ok(), judge(ExecutionVersion::V4).is_ok());
        judged
    }

    #[test]
    fn an_old_word_of_a_member_keeps_nobody_else_out_and_does_not_count_itself() {
        let mut transaction = held(&["a", "b"], Some((25, &[0, 1, 3, 4])));
        let with = |transaction: &mut VerifiedTransaction, said: Vec<(u16, u64)>| {
            let held = Arc::new(EndorsedEffects::held());
            transaction.endorsed = Some(VerifiedEndorsement::new(held, said));
        };
        let judge = |transaction: &VerifiedTransaction, version| {
            judge_parts(transaction, &catalog(), (27, WINDOW, version))
        };
        with(&mut transaction, vec![(0, 25), (1, 25), (2, 4), (3, 25), (4, 25), (5, 19)]);
        assert_eq!(judge(&transaction, ExecutionVersion::V5), Ok(()));
        assert!(judge(&transaction, ExecutionVersion::V4).is_err(), "as version 4 has it");
        with(&mut transaction, vec![(0, 25), (1, 25), (3, 25), (4, 19), (5, 19)]);
        let fault = judge(&transaction, ExecutionVersion::V5).expect_err("two of four");
        assert!(fault.to_string().contains("2 of 4 members"), "{fault}");
    }

    #[test]
    fn availability_none_what_nobody_says_to_hold_is_kept_out() {
        assert_eq!(judged(&["a"], Some((40, &[1, 2])), 41), Ok(()));
        for holders in [None, Some((40, &[][..]))] {
            assert!(judged(&["a"], holders, 41).is_err(), "{holders:?}");
        }
        let mut agreed = held(&["a"], Some((40, &[0, 1, 2])));
        if let Some(endorsed) = &mut agreed.endorsed {
            endorsed.effects = Arc::new(EndorsedEffects::default());
        }
        let judged = judge_parts(&agreed, &catalog(), (41, WINDOW, ExecutionVersion::V5));
        assert!(judged.is_err(), "they have signed, but not that they hold it");
    }

    #[test]
    fn availability_one_a_quorum_of_each_schema_s_members_holds_its_part() {
        assert_eq!(
            judged(&["a", "b"], Some((40, &[0, 1, 3, 4])), 41),
            Ok(()),
            "who is in both counts for both"
        );
        let too_few: [&[u16]; 4] = [&[0], &[0, 3, 4, 5], &[0, 1, 3], &[1, 2, 6, 7]];
        for holders in too_few {
            let fault = judged(&["a", "b"], Some((40, holders)), 41).expect_err("a quorum lacks");
            assert!(fault.to_string().contains("are needed"), "{holders:?}: {fault}");
        }
    }

    #[test]
    fn change_at_once_a_schema_is_closed_for_a_window_after_its_members_have_changed() {
        let holders: (u64, &[u16]) = (25, &[0, 1, 3, 4]);
        for height in [20, 21, 26] {
            let fault = judged(&["a", "b"], Some(holders), height).expect_err("it is closed");
            assert!(fault.to_string().contains("up to height 26"), "{height}: {fault}");
        }
        assert_eq!(judged(&["a", "b"], Some(holders), 27), Ok(()));
        judged(&["a", "b"], Some((19, holders.1)), 27).expect_err("before the change");
        assert_eq!(judged(&["b"], Some(holders), 21), Ok(()), "of one schema alone nothing is undecided");
        assert_eq!(judged(&["a"], Some((5, &[0, 1])), 6), Ok(()), "nobody came or left since it was created");
    }
}
