//! What a part moves between its schema and others, and what its members say of that in the ledger.

use concurrency::parts::Moved;
use crypto::Digest;
use sql::Moves;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{ClientId, Move, between_digest};

/// What a part shares with the transaction's other parts.
#[derive(Clone, Debug)]
pub struct Between {
    /// Digest of the charter of the ledger.
    pub ledger: Digest,
    /// The transaction's client.
    pub client: ClientId,
    /// By the names of the other schemas: [`types::SchemaMembers::number`], and what the two parts alone know.
    pub others: BTreeMap<String, (u32, [u8; 32])>,
    /// What stakeholders have signed, if anybody has.
    pub agreement: Option<Digest>,
    /// What the part moves, as it was executed last.
    pub moves: Arc<Moves>,
}

impl Between {
    /// Counts the other schemas of which anything is said.
    pub(crate) fn counted(&self) -> Moved {
        let (moves, all) = (self.moves.clone(), self.agreement.map(|_| self.others.len()));
        Arc::new(move || {
            let others = |found: Vec<Move>| -> usize {
                let ways = found.into_iter().map(|one| (one.from, one.to));
                ways.flat_map(|(from, to)| [from, to]).collect::<BTreeSet<_>>().len().saturating_sub(1)
            };
            all.unwrap_or_else(|| others(moves.found()))
        })
    }

    /// For each other schema with which anything is to be compared: its number, and what stands for that.
    pub(crate) fn digests(&self) -> BTreeMap<u32, Digest> {
        let found = self.moves.found();
        let mut digests = BTreeMap::new();
        for (name, (number, secret)) in &self.others {
            let moves: Vec<&Move> = found.iter().filter(|one| one.from == *name || one.to == *name).collect();
            if !moves.is_empty() || self.agreement.is_some() {
                let of = (&self.ledger, &self.client);
                digests.insert(*number, between_digest(of, secret, self.agreement.as_ref(), moves));
            }
        }
        digests
    }
}
