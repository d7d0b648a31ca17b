//! What a run amends its charter by.

use ordering::simulation::{node_key, organisation, root_key};
use types::{Charter, CharterChange, ProposedChange, accept_membership};

/// One amendment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amendment {
    /// Leaders wait so many milliseconds for more transactions.
    Fill(u32),
    /// This organisation comes in, with the node of its number.
    Join {
        /// As many as there were before.
        member: usize,
    },
    /// This organisation leaves.
    Leave {
        /// Its number.
        member: usize,
    },
    /// Another node, with the folder and another key, takes the place of this organisation's.
    Replace {
        /// The organisation's number.
        member: usize,
        /// The number of the other node.
        node: usize,
    },
}

impl Amendment {
    /// As an organisation decides on it; `charter` is the founding one.
    pub fn statement(&self, charter: &Charter) -> String {
        let name = |member: usize| charter.organisations[member].name.clone();
        let change = match *self {
            Amendment::Fill(fill_ms) => CharterChange::SetParameter {
                parameter: "block.fill_ms".to_string(),
                value: fill_ms.to_string(),
            },
            Amendment::Join { member } => {
                let organisation = organisation(member);
                let acceptance = accept_membership(&charter.ledger(), &organisation, &root_key(member));
                CharterChange::AddOrganisation { organisation, acceptance }
            }
            Amendment::Leave { member } => CharterChange::RemoveOrganisation { name: name(member) },
            Amendment::Replace { member, node } => CharterChange::ReplaceNodeKey {
                name: name(member),
                node_key: node_key(node).public_key(),
                expires: None,
            },
        };
        sql::describe_change(&ProposedChange::Charter(change))
    }

    /// Whether it comes with a node that is no founder's.
    pub fn has_newcomer(&self) -> bool {
        matches!(self, Amendment::Join { .. } | Amendment::Replace { .. })
    }

    /// The node that is no member's afterwards.
    pub fn leaver(&self) -> Option<usize> {
        match *self {
            Amendment::Leave { member } | Amendment::Replace { member, .. } => Some(member),
            Amendment::Fill(_) | Amendment::Join { .. } => None,
        }
    }
}
