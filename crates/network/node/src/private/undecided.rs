//! The transactions of a schema that have parts in others, until the ledger decides them.

use super::block::{BlockOfParts, OrderedParts};
use concurrency::parts::{Decided, Decisions, LedgerPosition, Vote};
use crypto::Digest;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{Charter, PartMembers, PartMoves, PartVotes, SchemaCertificate, SchemaOutcome};

/// What one schema waits for.
pub(super) struct Undecided {
    decisions: Decisions<u32>,
    /// Whose votes count on each.
    transactions: BTreeMap<LedgerPosition, Arc<[PartMembers]>>,
    /// Votes count if enough members have signed them; else a test wants to see what happens.
    counts: bool,
    /// What moves between schemas is compared; else a test wants to see what happens.
    compares: bool,
}

impl Undecided {
    /// Nothing waits. `counts`: votes count if enough members have signed them. `compares`: what moves between schemas is compared. Tests
    /// alone switch them off.
    pub(super) fn with((counts, compares): (bool, bool)) -> Undecided {
        Undecided { decisions: Decisions::new(1), transactions: BTreeMap::new(), counts, compares }
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
        charter_at: &dyn Fn(u64) -> Arc<Charter>,
    ) -> Vec<Decided> {
        let height = block.header.height;
        let mut votes = Vec::new();
        for ordered in &block.certificates {
            let counted = self.votes_of(&ordered.certificate);
            if !counted.is_empty() && ordered.is_signed(charter_at, height) {
                votes.extend(counted);
            }
        }
        let crossing: Vec<&OrderedParts> = block
            .transactions
            .iter()
            .filter(|ordered| ordered.is_crossing() && ordered.concerns(schema))
            .collect();
        self.decisions.set_window(charter_at(height).window_blocks.into());
        let new = crossing.iter().map(|ordered| {
            let schemas = ordered.members.iter().map(|members| members.number).collect();
            (ordered.position.index, schemas)
        });
        let decided = self.decisions.block(height, &votes, new).expect("blocks come one after the other");
        for ordered in crossing {
            self.transactions.insert(ordered.position, ordered.members.clone());
        }
        for one in &decided {
            self.transactions.remove(&one.transaction);
        }
        decided
    }

    /// What a certificate says of transactions that wait here, as far as enough members seem to have signed it.
    fn votes_of(&self, certificate: &SchemaCertificate) -> Vec<Vote<u32>> {
        let schema = certificate.statement.schema;
        let vote = |(transaction, yes): (LedgerPosition, bool)| {
            let members = self.members_of(transaction, schema)?;
            let is_enough = certificate.check_count(&members.organisations).is_ok() || !self.counts;
            let of_it =
                |one: &&PartMoves| LedgerPosition { height: one.height, index: one.index } == transaction;
            let moves = certificate.statement.moves.iter().filter(of_it);
            let moves = moves.filter(|_| self.compares).map(|one| (one.with, one.digest)).collect();
            is_enough.then_some(Vote { transaction, schema, yes, moves })
        };
        votes(&certificate.statement).filter_map(vote).collect()
    }

    fn members_of(&self, transaction: LedgerPosition, schema: u32) -> Option<&PartMembers> {
        self.transactions.get(&transaction)?.iter().find(|members| members.number == schema)
    }

    /// Whose votes these are, if somebody waits for what they say.
    pub(super) fn needs(&self, outcome: &SchemaOutcome) -> Option<PartMembers> {
        let waits =
            |(position, _): &(LedgerPosition, bool)| self.decisions.waits_for(*position, outcome.schema);
        let (first, _) = votes(outcome).find(waits)?;
        self.members_of(first, outcome.schema).cloned()
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

/// What the transactions move that a block's votes are about, for its outcome.
pub(super) fn moves_by_height(moves: &[(LedgerPosition, BTreeMap<u32, Digest>)]) -> Vec<PartMoves> {
    let of = |(LedgerPosition { height, index }, digests): &(LedgerPosition, BTreeMap<u32, Digest>)| {
        let (height, index) = (*height, *index);
        let digests = digests.clone().into_iter();
        digests.map(move |(with, digest)| PartMoves { height, index, with, digest })
    };
    let mut found: Vec<PartMoves> = moves.iter().flat_map(of).collect();
    found.sort_unstable_by_key(|one| (one.height, one.index, one.with));
    found
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

#[cfg(test)]
mod tests {
    use super::super::block::OrderedCertificate;
    use super::super::four_members::{charter, key};
    use super::*;
    use concurrency::parts::Decision;
    use engine::VerifiedTransaction;
    use types::{
        BlockHeader, PartCommitment, Payload, RequestId, SchemaAttestation, SignedTransaction, Transaction,
    };

    fn members(schema: &str, number: u32, organisations: &[u16]) -> PartMembers {
        PartMembers { schema: schema.into(), number, organisations: organisations.to_vec() }
    }

    fn header(height: u64) -> BlockHeader {
        BlockHeader {
            ledger: charter().ledger(),
            height,
            timestamp_ms: 0,
            previous: Digest::ZERO,
            transactions_root: Digest::ZERO,
            transactions: 0,
            proposer: 0,
            certified_height: 0,
            attested: Digest::ZERO,
            charters: charter().ledger(),
        }
    }

    fn block(height: u64, certificates: Vec<SchemaCertificate>) -> BlockOfParts {
        let ordered = |(number, certificate)| OrderedCertificate::new(certificate, (0, number), None);
        let certificates = certificates.into_iter().enumerate().map(ordered).collect();
        BlockOfParts { header: header(height), transactions: Vec::new(), certificates }
    }

    /// A transaction of organisation 0 in `a` (number 1, organisations 0 to 2) and `b` (number 2, organisations 0 and 3).
    fn ordered(position: LedgerPosition) -> OrderedParts {
        let commitment = |schema: &str| PartCommitment { schema: schema.into(), commitment: Digest::ZERO };
        let transaction = Transaction {
            ledger: charter().ledger(),
            client: key(9).public_key(),
            request: RequestId([1; 16]),
            expires_at: 99,
            role: String::new(),
            payload: Payload::Parts { parts: vec![commitment("a"), commitment("b")] },
        };
        let credential = types::Credential::issue(&key(0), 0, &charter().ledger(), &key(9).public_key());
        let signed: SignedTransaction = transaction.sign(&key(9), credential);
        let members = [members("a", 1, &[0, 1, 2]), members("b", 2, &[0, 3])].into();
        OrderedParts { position, transaction: Arc::new(VerifiedTransaction::from(signed)), members }
    }

    const T: LedgerPosition = LedgerPosition { height: 3, index: 7 };

    fn waiting() -> Undecided {
        let mut undecided = Undecided::with((true, true));
        let block = BlockOfParts { transactions: vec![ordered(T)], ..block(3, vec![]) };
        assert!(undecided.block(&block, "a", &|_| Arc::new(charter())).is_empty());
        assert_eq!(undecided.count(), 1);
        undecided
    }

    fn certificate(schema: u32, yes: bool, who: &[u16]) -> SchemaCertificate {
        let (ledger, outcome) = (charter().ledger(), crypto::sha256(&[b"outcome"]));
        let votes = by_height(&[(T, yes), (LedgerPosition { height: 3, index: 9 }, true)]);
        let statement = SchemaOutcome { ledger, schema, height: 3, outcome, votes, moves: vec![] };
        let sign = |member: &u16| {
            (*member, SchemaAttestation::sign(statement.clone(), *member, &key(*member)).signature)
        };
        SchemaCertificate { signatures: who.iter().map(sign).collect(), statement: statement.clone() }
    }

    fn decided(decision: Decision) -> Vec<Decided> {
        vec![Decided { transaction: T, decision }]
    }

    #[test]
    fn votes_of_quorums_decide() {
        let mut undecided = waiting();
        let needed = undecided.needs(&certificate(1, true, &[]).statement).expect("somebody waits");
        assert_eq!(needed, members("a", 1, &[0, 1, 2]));
        let yes = block(4, vec![certificate(1, true, &[1, 2])]);
        assert!(undecided.block(&yes, "a", &|_| Arc::new(charter())).is_empty());
        assert!(undecided.needs(&certificate(1, true, &[]).statement).is_none(), "once is enough");
        let yes = block(5, vec![certificate(2, true, &[0, 3])]);
        assert_eq!(undecided.block(&yes, "a", &|_| Arc::new(charter())), decided(Decision::Commit));
        assert_eq!(undecided.count(), 0);
        let no = block(4, vec![certificate(1, true, &[0, 1]), certificate(2, false, &[0, 3])]);
        assert_eq!(waiting().block(&no, "a", &|_| Arc::new(charter())), decided(Decision::No));
    }

    #[test]
    fn made_up_votes_say_nothing() {
        let mut altered = certificate(1, true, &[0, 1]);
        altered.statement.votes = by_height(&[(T, false)]);
        let mut from_the_future = certificate(1, false, &[0, 1]);
        from_the_future.statement.height = 90;
        let mut of_another_ledger = certificate(1, false, &[0, 1]);
        of_another_ledger.statement.ledger = crypto::sha256(&[b"other"]);
        let wrong = [
            ("one member alone", certificate(1, false, &[1])),
            ("a stranger beside it", certificate(1, false, &[1, 3])),
            ("one of two", certificate(2, false, &[0])),
            ("one twice", certificate(1, false, &[1, 1])),
            ("other votes than were signed", altered),
            ("of a block that is still to come", from_the_future),
            ("of another ledger", of_another_ledger),
            ("a schema that is none of its", certificate(7, false, &[0, 1, 2])),
        ];
        for (what, certificate) in wrong {
            let mut undecided = waiting();
            assert!(
                undecided.block(&block(4, vec![certificate]), "a", &|_| Arc::new(charter())).is_empty(),
                "{what}"
            );
            assert_eq!(undecided.count(), 1, "{what}");
        }
    }

    #[test]
    fn what_a_quorum_says_of_moves_is_compared() {
        let moving = |schema: u32, with: u32, what: u8| {
            let mut certificate = certificate(schema, true, &[]);
            let other = LedgerPosition { height: 3, index: 9 };
            let digests = |what| BTreeMap::from([(with, Digest([what; 32]))]);
            certificate.statement.moves = moves_by_height(&[(other, digests(99)), (T, digests(what))]);
            let who: &[u16] = if schema == 1 { &[0, 1] } else { &[0, 3] };
            let sign = |member: &u16| {
                let statement = certificate.statement.clone();
                (*member, SchemaAttestation::sign(statement, *member, &key(*member)).signature)
            };
            SchemaCertificate { signatures: who.iter().map(sign).collect(), ..certificate.clone() }
        };
        let ends = |certificates| waiting().block(&block(4, certificates), "a", &|_| Arc::new(charter()));
        assert_eq!(ends(vec![moving(1, 2, 7), moving(2, 1, 7)]), decided(Decision::Commit));
        assert_eq!(ends(vec![moving(1, 2, 7), moving(2, 1, 8)]), decided(Decision::Moves));
        let nothing = certificate(2, true, &[0, 3]);
        assert_eq!(ends(vec![moving(1, 2, 7), nothing]), decided(Decision::Moves));
        let mut altered = moving(2, 1, 8);
        altered.statement.moves = moving(2, 1, 7).statement.moves;
        assert!(ends(vec![moving(1, 2, 7), altered]).is_empty(), "signatures cover what moves");
    }

    /// The variant `votes` of `schemas.py`: a lying member of schema `a` votes against the others, and both ways.
    #[test]
    fn votes_one_a_lying_member_s_votes_are_none_of_its_schema() {
        let mut undecided = waiting();
        let lies = block(4, vec![certificate(1, false, &[2]), certificate(1, true, &[2])]);
        assert!(undecided.block(&lies, "a", &|_| Arc::new(charter())).is_empty());
        let honest = block(5, vec![certificate(1, true, &[0, 1]), certificate(2, true, &[0, 3])]);
        assert_eq!(undecided.block(&honest, "a", &|_| Arc::new(charter())), decided(Decision::Commit));
    }

    #[test]
    fn nobody_waits_beyond_the_window() {
        let mut undecided = waiting();
        for height in 4..8 {
            assert!(undecided.block(&block(height, vec![]), "a", &|_| Arc::new(charter())).is_empty());
        }
        assert_eq!(
            undecided.block(&block(8, vec![]), "a", &|_| Arc::new(charter())),
            decided(Decision::Window)
        );
        assert_eq!(undecided.count(), 0);
    }
}
