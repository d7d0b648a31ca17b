//! The transactions of a schema that have parts in others, until the ledger decides them.

use super::block::{BlockOfParts, OrderedParts};
use crate::charters::DecidedCharters;
use concurrency::parts::{Decided, Decisions, LedgerPosition, Vote};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{PartMembers, PartVotes, SchemaCertificate, SchemaOutcome};

/// What one schema waits for.
pub(super) struct Undecided {
    decisions: Decisions<u32>,
    transactions: BTreeMap<LedgerPosition, Waiting>,
}

struct Waiting {
    /// Whose client has signed it: this organisation is a member of all of its schemas.
    organisation: u16,
    members: Arc<[PartMembers]>,
}

impl Waiting {
    fn members_of(&self, schema: u32) -> Option<&PartMembers> {
        self.members.iter().find(|members| members.number == schema)
    }
}

/// Votes that somebody waits for.
pub(super) struct Needed {
    /// The organisations of the clients whose transactions wait.
    pub(super) organisations: Vec<u16>,
    /// Whose votes these are.
    pub(super) members: PartMembers,
}

impl Undecided {
    pub(super) fn new() -> Undecided {
        Undecided { decisions: Decisions::new(1), transactions: BTreeMap::new() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.transactions.len()
    }

    /// Takes the next block, in a schema of this name, and gives what is decided in it.
    pub(super) fn block(
        &mut self,
        block: &BlockOfParts,
        schema: &str,
        charters: &DecidedCharters,
    ) -> Vec<Decided> {
        let height = block.header.height;
        let mut votes = Vec::new();
        for ordered in &block.certificates {
            let counted = self.votes_of(&ordered.certificate);
            if !counted.is_empty() && ordered.is_signed(charters, height) {
                votes.extend(counted);
            }
        }
        let crossing: Vec<&OrderedParts> = block
            .transactions
            .iter()
            .filter(|ordered| ordered.is_crossing() && ordered.concerns(schema))
            .collect();
        self.decisions.set_window(charters.at(height).window_blocks.into());
        let new = crossing.iter().map(|ordered| {
            let schemas = ordered.members.iter().map(|members| members.number).collect();
            (ordered.position.index, schemas)
        });
        let decided = self.decisions.block(height, &votes, new).expect("blocks come one after the other");
        for ordered in crossing {
            let organisation = ordered.transaction.principal.organisation;
            let waiting = Waiting { organisation, members: ordered.members.clone() };
            self.transactions.insert(ordered.position, waiting);
        }
        for one in &decided {
            self.transactions.remove(&one.transaction);
        }
        decided
    }

    /// What a certificate says of transactions that wait here, as far as enough members seem to have signed it.
    fn votes_of(&self, certificate: &SchemaCertificate) -> Vec<Vote<u32>> {
        let schema = certificate.statement.schema;
        let vote = |(transaction, yes)| {
            let members = self.transactions.get(&transaction)?.members_of(schema)?;
            certificate.check_count(members).is_ok().then_some(Vote { transaction, schema, yes })
        };
        votes(&certificate.statement).filter_map(vote).collect()
    }

    /// Whether somebody waits for what these votes say.
    pub(super) fn needs(&self, outcome: &SchemaOutcome) -> Option<Needed> {
        let waits =
            votes(outcome).filter(|(position, _)| self.decisions.waits_for(*position, outcome.schema));
        let waiting: Vec<&Waiting> =
            waits.filter_map(|(position, _)| self.transactions.get(&position)).collect();
        let members = waiting.first()?.members_of(outcome.schema)?.clone();
        let mut organisations: Vec<u16> = waiting.iter().map(|waiting| waiting.organisation).collect();
        organisations.sort_unstable();
        organisations.dedup();
        Some(Needed { organisations, members })
    }
}

/// Votes as a schema's outcome has them.
fn votes(outcome: &SchemaOutcome) -> impl Iterator<Item = (LedgerPosition, bool)> {
    outcome.votes.iter().flat_map(|PartVotes { height, yes, no }| {
        let at = |index: &u32| LedgerPosition { height: *height, index: *index };
        let yes = yes.iter().map(move |index| (at(index), true));
        yes.chain(no.iter().map(move |index| (at(index), false)))
    })
}

/// The votes of a block for its outcome.
pub(super) fn by_height(votes: &[(LedgerPosition, bool)]) -> Vec<PartVotes> {
    let mut heights: BTreeMap<u64, PartVotes> = BTreeMap::new();
    for (LedgerPosition { height, index }, is_yes) in votes {
        let empty = || PartVotes { height: *height, yes: Vec::new(), no: Vec::new() };
        let of_height = heights.entry(*height).or_insert_with(empty);
        match is_yes {
            true => of_height.yes.push(*index),
            false => of_height.no.push(*index),
        }
    }
    heights.into_values().collect()
}
