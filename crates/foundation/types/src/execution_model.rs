use crate::{Policy, PolicyError, faults_tolerated};
use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

/// When a ledger's transactions are executed, and by whom.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionModel {
    /// By every node, after they have been ordered.
    #[default]
    OrderExecute,
    /// By endorsers, before; every node then validates what they signed.
    ExecuteOrderValidate,
    /// By each organisation's own database, or by its node, after they have been ordered; what they came to is agreed on
    /// (ChainifyDB).
    WhateverThenAgree,
}

/// How a node schedules validation. The outcomes are the same, so every node chooses for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pipeline {
    /// Transactions are judged one after the other.
    #[default]
    Serial,
    /// On a graph of all that wait, by several validators (SmartFabric, section 3).
    Graph,
}

/// How a ledger of execute–order–validate endorses and validates.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EndorsementOptions {
    /// Who must have endorsed a transaction, as an expression over organisations; empty: one more than may be faulty,
    /// so that an honest one is among them.
    pub policy: String,
    /// Additions are endorsed as commands, so that transactions that meet in a hot row do not make one another stale.
    pub commands: bool,
    /// A stale transaction may run again without its endorsers, under a protocol that does that (`xox`).
    pub run_again: bool,
}

impl Default for EndorsementOptions {
    fn default() -> EndorsementOptions {
        EndorsementOptions { policy: String::new(), commands: false, run_again: true }
    }
}

impl EndorsementOptions {
    /// The policy, for these organisations.
    ///
    /// # Errors
    /// What is wrong with the text, or names nobody.
    pub fn policy(&self, members: &[&str]) -> Result<Policy, PolicyError> {
        let text = match self.policy.as_str() {
            "" => {
                let quoted: Vec<String> =
                    members.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
                format!("{} of ({})", faults_tolerated(members.len()) + 1, quoted.join(", "))
            }
            text => text.to_string(),
        };
        let policy = Policy::parse(&text)?;
        policy.check(members)?;
        Ok(policy)
    }
}
