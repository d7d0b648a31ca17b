//! A charter in sentences, for those who sign it and are no programmers.

use super::missing_line;
use crate::CommandError;
use types::{Charter, Consistency, ExecutionModel, Granularity, OnConflict, faults_tolerated, fingerprint};

/// Everything that a charter says, with the name of each parameter behind its sentence.
pub(super) fn explained(charter: &Charter) -> Result<String, CommandError> {
    let parts = [
        heading(charter),
        members(charter),
        failures(charter),
        consent(charter)?,
        execution(charter)?,
        blocks(charter),
        signatures(charter),
    ];
    Ok(parts.join("\n"))
}

fn heading(charter: &Charter) -> String {
    let state = if charter.missing_signatures().is_empty() { "signed by all" } else { "a draft" };
    let ledger = charter.ledger();
    format!(
        "Charter of the network {}, {state}\n\n\
         ledger {}\n\
         Everything below follows into this number. Compare it over the phone with each of the others before you sign:\n\
         whoever has the same number has the same charter. In full: {ledger}\n\
         A random number tells this network from others with the same members (nonce): {}.\n",
        charter.name,
        fingerprint(&ledger.0),
        charter.nonce
    )
}

fn members(charter: &Charter) -> String {
    let mut text = format!("The {} members, in this order:\n", charter.organisations.len());
    for (position, member) in charter.organisations.iter().enumerate() {
        text += &format!(
            "  {}. {}\n     root key {}, which signs for the organisation\n     node key {}, which signs for its node\n     \
             Other nodes reach its node at {}, HTTP at {}.\n",
            position + 1,
            member.name,
            fingerprint(&member.root_key.0),
            fingerprint(&member.node_key.0),
            member.address,
            if member.gateway.is_empty() { "no address" } else { &member.gateway }
        );
    }
    text
}

/// How many may fail, and what they could do.
fn failures(charter: &Charter) -> String {
    let (members, quorum) = (charter.organisations.len(), charter.outcome_quorum());
    let faults = faults_tolerated(members);
    let order = match charter.ordering.as_str() {
        "raft" => {
            "The order of transactions is believed to the member that leads. The members trust one another with the order, and \
             with nothing else"
                .to_string()
        }
        "kafka" => {
            "The order of transactions is that of a topic of Kafka. The members trust whoever runs its brokers with the order, and \
             with nothing else"
                .to_string()
        }
        "solo" => "One node orders all transactions".to_string(),
        _ => format!(
            "The order of transactions is agreed on by {} of the {members} members, so that {faults} of them may lie about it",
            members - faults
        ),
    };
    format!(
        "What may fail:\n  \
         {faults} of the {members} members may be away, fail or lie. The others go on, and nobody is deceived.\n  \
         {order} (ordering = {}).\n  \
         What a block has come to counts when {quorum} of the members have come to the same ({}).\n  \
         Transactions wait when that is {} blocks behind (outcome_lag_blocks).\n",
        charter.ordering,
        match charter.outcome_quorum {
            Some(_) => "outcome_quorum",
            None => "outcome_quorum is not given, and follows from the number of members",
        },
        charter.outcome_lag_blocks
    )
}

fn consent(charter: &Charter) -> Result<String, CommandError> {
    Ok(format!(
        "Who must agree:\n  \
         A change of tables, contracts, policies, members, keys or of this charter needs {} (governance = {}).\n  \
         How transactions are ordered and executed cannot be changed later.\n",
        charter.governance_policy()?,
        charter.governance
    ))
}

fn execution(charter: &Charter) -> Result<String, CommandError> {
    let model = match charter.execution {
        ExecutionModel::OrderExecute => {
            "Every node executes every transaction, after they are ordered (execution = order-execute).".to_string()
        }
        ExecutionModel::ExecuteOrderValidate => {
            let endorsement = &charter.endorsement;
            format!(
                "Endorsers execute a transaction and sign what it does, before it is ordered (execution = \
                 execute-order-validate).\n  \
                 Each needs the signatures of {} (endorsement.policy). Additions are endorsed as commands: {} \
                 (endorsement.commands). A stale transaction may run again: {} (endorsement.run_again).",
                charter.endorsement_policy()?,
                yes(endorsement.commands),
                yes(endorsement.run_again)
            )
        }
        ExecutionModel::WhateverThenAgree => {
            "Each member's own database executes scripts after they are ordered, and the members agree on what they came to \
             (execution = whatever-then-agree)."
                .to_string()
        }
    };
    Ok(format!(
        "How transactions are executed:\n  {model}\n{}  \
         Version {} of the rules of execution (execution_version).\n  \
         One transaction may take {} steps, and all of a block {} (meter.transaction_steps, meter.block_steps); a step is a \
         statement or a row.\n  \
         A transaction names a height up to which it may be taken, at most {} blocks ahead (expiry_blocks_max).\n",
        conflicts(charter),
        charter.execution_version,
        charter.meter.transaction_steps,
        charter.meter.block_steps,
        charter.expiry_blocks_max
    ))
}

fn conflicts(charter: &Charter) -> String {
    let options = &charter.concurrency;
    let sees = match options.consistency {
        Consistency::Strict => "sees what was answered before it was sent (concurrency.consistency = strict)",
        Consistency::Serializable => {
            "may miss what was answered just before it was sent (concurrency.consistency = serializable)"
        }
    };
    let lost = match options.on_conflict {
        OnConflict::Reexecute => "runs again in the same batch (concurrency.on_conflict = reexecute)",
        OnConflict::Requeue => "runs again in the next batch (concurrency.on_conflict = requeue)",
        OnConflict::Abort => "is given up (concurrency.on_conflict = abort)",
    };
    let shares = match options.granularity {
        Granularity::Column => "a column of a row (concurrency.granularity = column)",
        Granularity::Row => "a row (concurrency.granularity = row)",
    };
    let serial = match options.serial_threshold_percent {
        101.. => "never".to_string(),
        percent => format!("when {percent} % of the last batch ran twice"),
    };
    format!(
        "  Conflicts are settled by {} (protocol). Transactions are in conflict that share {shares}. One that cannot keep its \
         place {lost}.\n  A transaction {sees}.\n  \
         Batches overlap: {} (concurrency.inter_block). Updates are put into an order instead of being refused: {} \
         (concurrency.reordering).\n  \
         Commands that wait on a row become one: {} (concurrency.coalescing). A batch runs one by one: {serial} \
         (concurrency.serial_threshold_percent).\n",
        charter.protocol,
        yes(options.inter_block),
        yes(options.reordering),
        yes(options.coalescing)
    )
}

fn blocks(charter: &Charter) -> String {
    let block = &charter.block;
    format!(
        "Blocks and checkpoints:\n  \
         A block has at most {} transactions (block.transactions_max) and {} bytes (block.bytes_max), which are executed in batches \
         of {} (block.batch_transactions). A transaction has at most {} bytes (block.transaction_bytes_max).\n  \
         It waits {} ms to fill (block.fill_ms); without any transaction there is an empty one after {} ms (block.idle_ms).\n  \
         The whole state is signed after {} changed rows (checkpoint_rows), after {} blocks at the latest \
         (checkpoint_blocks).\n  \
         A transaction over several private schemas is decided {} blocks later at the latest (window_blocks).\n",
        block.transactions_max,
        block.bytes_max,
        block.batch_transactions,
        block.transaction_bytes_max,
        block.fill_ms,
        block.idle_ms,
        charter.checkpoint_rows,
        charter.checkpoint_blocks,
        charter.window_blocks
    )
}

fn signatures(charter: &Charter) -> String {
    let given = charter.given_signatures();
    let signed = given.iter().map(|signature| signature.name.as_str()).collect::<Vec<_>>();
    let signed = if signed.is_empty() { "nobody".to_string() } else { signed.join(", ") };
    format!("Signatures:\n  Signed by {signed}; {}.\n", missing_line(charter))
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every parameter of a charter's file stands behind a sentence.
    #[test]
    fn every_parameter_is_explained() {
        let mut charter = Charter::with_defaults("clearing", 7);
        charter.execution = ExecutionModel::ExecuteOrderValidate;
        for number in 1..=4_u8 {
            let key = |kind: u8| crypto::SecretKey::from_bytes([number + kind; 32]).public_key();
            charter.organisations.push(types::Organisation {
                name: format!("bank_{number}"),
                root_key: key(0),
                node_key: key(50),
                address: format!("127.0.0.1:{number}"),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        let text = explained(&charter).expect("a charter that can be");
        // Of these the heading and the list of members speak.
        let elsewhere = ["name", "organisation", "signatures"];
        let (mut fields, mut table) = (BTreeSet::new(), String::new());
        for line in charter.to_toml().lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                table = format!("{name}.");
            } else if let Some((field, _)) = line.split_once(" = ") {
                fields.insert(format!("{table}{field}"));
            }
        }
        fields.retain(|field| !elsewhere.contains(&field.as_str()) && !field.starts_with("[organisation"));
        assert!(fields.len() > 20, "{fields:?}");
        for field in fields {
            assert!(text.contains(&field), "{field} is not explained:\n{text}");
        }
        assert!(text.contains("Signed by nobody; missing signatures: bank_1, bank_2, bank_3, bank_4."));
    }
}
