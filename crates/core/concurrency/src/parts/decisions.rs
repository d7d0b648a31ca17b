//! Which transactions of several schemas commit: a function of the chain alone, so that no two members can differ.

use super::LedgerPosition;
use crypto::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// What a quorum of a schema's members says of one of its parts. That it is a quorum, whoever hands it over has verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vote<Schema> {
    /// The transaction.
    pub transaction: LedgerPosition,
    /// Whose members say it.
    pub schema: Schema,
    /// Whether its part can commit.
    pub yes: bool,
    /// What stands for all that the transaction moves between this schema and others, by the other schema; none where nothing does.
    pub moves: BTreeMap<Schema, Digest>,
}

/// How a transaction was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Every schema has said yes.
    Commit,
    /// One has said no.
    No,
    /// Some schema has said nothing until its window had passed.
    Window,
    /// Every schema has said yes, but what leaves one of them is not what comes into the other.
    Moves,
}

impl Decision {
    /// Whether its parts take effect.
    pub fn commits(self) -> bool {
        self == Decision::Commit
    }
}

/// A transaction whose decision takes effect in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The transaction.
    pub transaction: LedgerPosition,
    /// How it was decided.
    pub decision: Decision,
}

/// A block that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecisionsError {
    /// Blocks come one after the other.
    #[error("expected a block above height {last}, found height {found}")]
    Height {
        /// The last one.
        last: u64,
        /// The one that came.
        found: u64,
    },
}

/// A transaction that is not decided.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Undecided<Schema> {
    /// The last block in which it can be decided.
    last: u64,
    schemas: BTreeSet<Schema>,
    /// The schemas that have said yes, each with what it moves.
    yes: BTreeMap<Schema, BTreeMap<Schema, Digest>>,
}

impl<Schema: Ord + Copy> Undecided<Schema> {
    /// How it is decided once every schema has said yes.
    fn when_complete(&self) -> Option<Decision> {
        if self.yes.len() < self.schemas.len() {
            return None;
        }
        let is_mirrored = |(schema, moves): (&Schema, &BTreeMap<Schema, Digest>)| {
            moves.iter().all(|(with, digest)| {
                with != schema && self.yes.get(with).and_then(|theirs| theirs.get(schema)) == Some(digest)
            })
        };
        Some(if self.yes.iter().all(is_mirrored) { Decision::Commit } else { Decision::Moves })
    }
}

/// The transactions of several schemas that wait for their decision.
///
/// ```text
/// T of block h is decided in block d, h < d ≤ h + window, by the first of
///   d completes the yes of all its schemas  → commits, if each two say the same of what moves between them
///   d has the no of one of them             → does not
///   d = h + window                          → does not
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decisions<Schema> {
    window: u64,
    last: u64,
    undecided: BTreeMap<LedgerPosition, Undecided<Schema>>,
}

impl<Schema: Ord + Copy> Decisions<Schema> {
    /// Nothing is undecided. `window`: blocks until a transaction is decided at the latest, at least 1.
    pub fn new(window: u64) -> Decisions<Schema> {
        Decisions { window: window.max(1), last: 0, undecided: BTreeMap::new() }
    }

    /// Transactions of the next blocks have this window.
    pub fn set_window(&mut self, window: u64) {
        self.window = window.max(1);
    }

    /// Whether a transaction waits for what this schema's members say.
    pub fn waits_for(&self, transaction: LedgerPosition, schema: Schema) -> bool {
        self.undecided.get(&transaction).is_some_and(|undecided| {
            undecided.schemas.contains(&schema) && !undecided.yes.contains_key(&schema)
        })
    }

    /// Takes the next block: the votes that it carries, and the transactions of several schemas that stand in it. Gives what is
    /// decided in it, in the order of the ledger. Votes on what is decided, or not in the ledger, or by others than the
    /// transaction's schemas, say nothing.
    ///
    /// # Errors
    /// The block does not follow the last one.
    pub fn block(
        &mut self,
        height: u64,
        votes: &[Vote<Schema>],
        transactions: impl IntoIterator<Item = (u32, BTreeSet<Schema>)>,
    ) -> Result<Vec<Decided>, DecisionsError> {
        if height <= self.last {
            return Err(DecisionsError::Height { last: self.last, found: height });
        }
        self.last = height;
        let mut decided = BTreeMap::new();
        for vote in votes {
            let Some(undecided) = self.undecided.get_mut(&vote.transaction) else { continue };
            if !undecided.schemas.contains(&vote.schema) || decided.contains_key(&vote.transaction) {
                continue;
            }
            if !vote.yes {
                decided.insert(vote.transaction, Decision::No);
                continue;
            }
            // What a schema has said first counts.
            undecided.yes.entry(vote.schema).or_insert_with(|| vote.moves.clone());
            if let Some(decision) = undecided.when_complete() {
                decided.insert(vote.transaction, decision);
            }
        }
        for (transaction, undecided) in &self.undecided {
            if height >= undecided.last {
                decided.entry(*transaction).or_insert(Decision::Window);
            }
        }
        for transaction in decided.keys() {
            self.undecided.remove(transaction);
        }
        for (index, schemas) in transactions {
            if schemas.len() > 1 {
                let last = height + self.window;
                let undecided = Undecided { last, schemas, yes: BTreeMap::new() };
                self.undecided.insert(LedgerPosition { height, index }, undecided);
            }
        }
        Ok(decided.into_iter().map(|(transaction, decision)| Decided { transaction, decision }).collect())
    }

    /// How many transactions wait that have a part of this schema.
    pub fn undecided_of(&self, schema: Schema) -> usize {
        self.undecided.values().filter(|undecided| undecided.schemas.contains(&schema)).count()
    }

    /// Whether everything of this schema up to a height is decided: its outcome can be attested there.
    pub fn is_settled(&self, schema: Schema, height: u64) -> bool {
        let up_to = ..=LedgerPosition { height, index: u32::MAX };
        !self.undecided.range(up_to).any(|(_, undecided)| undecided.schemas.contains(&schema))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: LedgerPosition = LedgerPosition { height: 5, index: 2 };

    fn vote(schema: u8, yes: bool) -> Vote<u8> {
        Vote { transaction: T, schema, yes, moves: BTreeMap::new() }
    }

    fn moving(schema: u8, moves: &[(u8, u8)]) -> Vote<u8> {
        let moves = moves.iter().map(|(with, what)| (*with, Digest([*what; 32]))).collect();
        Vote { moves, ..vote(schema, true) }
    }

    fn with_one() -> Decisions<u8> {
        let mut decisions = Decisions::new(12);
        let schemas = BTreeSet::from([1, 2]);
        assert_eq!(decisions.block(5, &[], [(2, schemas), (3, BTreeSet::from([1]))]), Ok(vec![]));
        decisions
    }

    fn decided(decision: Decision) -> Vec<Decided> {
        vec![Decided { transaction: T, decision }]
    }

    #[test]
    fn the_last_yes_commits_and_one_no_is_enough() {
        let mut decisions = with_one();
        assert_eq!(decisions.undecided_of(1), 1, "a transaction of one schema is not waited for");
        assert_eq!(decisions.block(6, &[vote(1, true), vote(1, true), vote(9, true)], []), Ok(vec![]));
        assert!(!decisions.is_settled(1, 5) && decisions.is_settled(1, 4) && decisions.is_settled(3, 9));
        assert_eq!(decisions.block(7, &[vote(2, true), vote(1, false)], []), Ok(decided(Decision::Commit)));
        assert_eq!(decisions.block(8, &[vote(2, false)], []), Ok(vec![]), "decided once");
        let mut decisions = with_one();
        let votes = [vote(1, true), vote(2, false), vote(2, true)];
        assert_eq!(decisions.block(6, &votes, []), Ok(decided(Decision::No)));
        assert!(decisions.is_settled(1, 9) && decisions.undecided_of(2) == 0);
    }

    #[test]
    fn what_leaves_one_schema_comes_into_the_other_or_nothing_happens() {
        let after = |votes: &[Vote<u8>]| {
            let mut decisions = with_one();
            decisions.block(6, votes, []).expect("the next block")
        };
        let moved = [moving(1, &[(2, 7)]), moving(2, &[(1, 7)])];
        assert_eq!(after(&moved), decided(Decision::Commit));
        let wrong = [
            ("another amount", [moving(1, &[(2, 7)]), moving(2, &[(1, 8)])]),
            ("it comes in and has left nowhere", [vote(1, true), moving(2, &[(1, 7)])]),
            ("it leaves and comes in nowhere", [moving(1, &[(2, 7)]), vote(2, true)]),
            ("a schema that is none of its", [moving(1, &[(2, 7), (3, 7)]), moving(2, &[(1, 7)])]),
            ("from itself", [moving(1, &[(1, 7)]), vote(2, true)]),
        ];
        for (what, votes) in wrong {
            assert_eq!(after(&votes), decided(Decision::Moves), "{what}");
        }
        let no = [moving(1, &[(2, 7)]), vote(2, false)];
        assert_eq!(after(&no), decided(Decision::No), "a no is a no, whatever moves");
        let twice = [moving(1, &[(2, 7)]), moving(1, &[(2, 8)]), moving(2, &[(1, 7)])];
        assert_eq!(after(&twice), decided(Decision::Commit), "what is said first counts");
    }

    #[test]
    fn of_three_schemas_each_two_are_compared() {
        let three = BTreeSet::from([1, 2, 3]);
        let after = |votes: &[Vote<u8>]| {
            let mut decisions = Decisions::new(12);
            assert_eq!(decisions.block(5, &[], [(2, three.clone())]), Ok(vec![]));
            decisions.block(6, votes, []).expect("the next block")
        };
        let around =
            [moving(1, &[(2, 4), (3, 6)]), moving(2, &[(1, 4), (3, 5)]), moving(3, &[(2, 5), (1, 6)])];
        assert_eq!(after(&around), decided(Decision::Commit));
        let broken =
            [moving(1, &[(2, 4), (3, 6)]), moving(2, &[(1, 4), (3, 5)]), moving(3, &[(2, 5), (1, 7)])];
        assert_eq!(after(&broken), decided(Decision::Moves));
    }

    #[test]
    fn the_window_ends_what_nobody_votes_on_and_the_last_block_of_it_still_counts() {
        let mut decisions = with_one();
        assert_eq!(decisions.block(16, &[vote(1, true)], []), Ok(vec![]));
        assert_eq!(decisions.block(17, &[], []), Ok(decided(Decision::Window)));
        let mut decisions = with_one();
        assert_eq!(decisions.block(17, &[vote(2, true), vote(1, true)], []), Ok(decided(Decision::Commit)));
        assert_eq!(decisions.block(17, &[], []), Err(DecisionsError::Height { last: 17, found: 17 }));
        let mut decisions = with_one();
        decisions.set_window(20);
        assert_eq!(
            decisions.block(17, &[], []),
            Ok(decided(Decision::Window)),
            "the window of its own block"
        );
    }

    #[test]
    fn it_is_known_whose_votes_are_missing() {
        let mut decisions = with_one();
        assert!(decisions.waits_for(T, 1) && decisions.waits_for(T, 2) && !decisions.waits_for(T, 3));
        assert_eq!(decisions.block(6, &[vote(1, true)], []), Ok(vec![]));
        assert!(!decisions.waits_for(T, 1) && decisions.waits_for(T, 2));
        assert_eq!(decisions.block(7, &[vote(2, false)], []), Ok(decided(Decision::No)));
        assert!(!decisions.waits_for(T, 2));
    }

    #[test]
    fn votes_on_what_is_not_in_the_ledger_say_nothing() {
        let mut decisions = Decisions::new(12);
        assert_eq!(decisions.block(4, &[vote(1, false)], []), Ok(vec![]));
        assert_eq!(decisions.block(5, &[vote(1, false)], [(2, BTreeSet::from([1, 2]))]), Ok(vec![]));
        assert_eq!(decisions.undecided_of(2), 1, "a vote before its transaction, or beside it, is none");
    }
}
