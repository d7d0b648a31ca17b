//! What peers say to one another.

use super::transaction::ContractId;
use crate::parts::LedgerPosition;
use std::collections::BTreeSet;

/// What a peer says of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// One of its parts is invalid, so it is.
    Invalid,
    /// Its parts of these contracts are valid.
    ValidFor(BTreeSet<ContractId>),
    /// All of its parts are valid.
    Valid,
}

/// What peers tell one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Of which transaction.
    pub transaction: LedgerPosition,
    /// What.
    pub said: Said,
}

/// A verdict to be told to the holders of these contracts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The verdict.
    pub verdict: Verdict,
    /// Contracts that its transaction invokes.
    pub contracts: BTreeSet<ContractId>,
}

/// What this peer does not know of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Of which.
    pub transaction: LedgerPosition,
    /// The contracts whose holders know it.
    pub contracts: BTreeSet<ContractId>,
}
