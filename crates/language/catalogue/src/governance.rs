//! `entente.proposals`, `entente.charters` and `entente.organisations`: what waits for consent, and who gives it.

use crate::cell::{Cell, NamedRow};
use std::collections::BTreeSet;
use types::{ChangeProposal, Charter, Governance, ProposalState};

/// The rows of one of these relations as seen at a height.
pub(crate) fn rows(relation: &str, governance: &Governance, height: u64) -> Vec<NamedRow> {
    match relation {
        "entente.proposals" => {
            governance.proposals.values().map(|proposal| proposal_row(governance, proposal, height)).collect()
        }
        "entente.charters" => charters(governance),
        _ => organisations(governance),
    }
}

fn number(value: u64) -> Cell {
    Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn proposal_row(governance: &Governance, proposal: &ChangeProposal, height: u64) -> NamedRow {
    let state = proposal.state_at(height);
    let (word, error) = sql::describe_state(state);
    let names = |positions: &BTreeSet<u16>| {
        Cell::Texts(positions.iter().map(|position| governance.name_of(*position).to_string()).collect())
    };
    let missing = (*state == ProposalState::Open).then(|| governance.missing(height, &proposal.approved_by));
    let decided = match state {
        ProposalState::Expired => Some(proposal.expires_at),
        _ => proposal.decided_height,
    };
    vec![
        ("number", number(proposal.number)),
        ("organisation", governance.name_of(proposal.organisation).into()),
        ("statement", sql::describe_change(&proposal.change).into()),
        ("state", word.into()),
        ("approved_by", names(&proposal.approved_by)),
        ("rejected_by", names(&proposal.rejected_by)),
        ("missing", missing.into()),
        ("height", number(proposal.height)),
        ("expires_at", number(proposal.expires_at)),
        ("decided_height", decided.map_or(Cell::Null, number)),
        ("transaction", proposal.transaction.to_string().into()),
        ("sqlstate", error.map(|error| error.state.to_string()).into()),
        ("message", error.map(|error| error.message.clone()).into()),
    ]
}

fn charters(governance: &Governance) -> Vec<NamedRow> {
    let row = |charter: &Charter, effective_height: u64| {
        let members = charter.members().map(|(_, organisation)| organisation.name.clone());
        vec![
            ("number", number(charter.version)),
            ("effective_height", number(effective_height)),
            ("governance", charter.governance.clone().into()),
            ("organisations", Cell::Texts(members.collect())),
            ("charter", charter.to_toml().into()),
        ]
    };
    let founding = governance.founding.iter().map(|charter| row(charter, 0));
    let amended = governance.amendments.iter().map(|one| row(&one.charter, one.effective_height));
    founding.chain(amended).collect()
}

/// The organisations of the newest charter, whether it holds already or not.
fn organisations(governance: &Governance) -> Vec<NamedRow> {
    let all = governance.newest_charter().map_or(&[][..], |charter| charter.organisations.as_slice());
    let row = |(position, organisation): (usize, &types::Organisation)| {
        vec![
            ("number", number(position as u64)),
            ("name", organisation.name.clone().into()),
            ("member", (!organisation.removed).into()),
            ("root_key", organisation.root_key.to_string().into()),
            ("node_key", organisation.node_key.to_string().into()),
            ("node_key_expires", organisation.node_key_expires.map_or(Cell::Null, number)),
            ("address", organisation.address.clone().into()),
            ("gateway", organisation.gateway.clone().into()),
        ]
    };
    all.iter().enumerate().map(row).collect()
}
