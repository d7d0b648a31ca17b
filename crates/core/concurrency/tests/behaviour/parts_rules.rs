//! What goes wrong without each rule of transactions over several schemas: the smallest failures of the wrong variants of `schemas.py`
//! that an executor can show, each under the variant's name. Where the rules are that it cannot show, `docs/guarantees.md` says.

use crate::parts::{
    Case, ModelProgram, Operation, Resume, as_it_is, difference_of, of_rows_alone, with_what_is_undecided,
};
use concurrency::parts::{
    Decided, Decision, Decisions, LedgerPosition, NewPart, PartOutcome, PartsBlock, PartsExecutor, PartsRule,
    Vote,
};
use state::{PlainState, Simulate};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is wrong with a case as the model writes it down.
fn wrong(case: &str, resume: Resume, rule: Option<PartsRule>) -> Option<String> {
    let case: Case = serde_json::from_str(case).expect("a case of the model");
    let executor = PartsExecutor::default();
    let executor = rule.map_or_else(|| executor.clone(), |rule| executor.clone().without(rule));
    difference_of(&case, &case.schemas[0], resume, executor)
}

fn holds(case: &str) {
    assert_eq!(wrong(case, as_it_is, None), None);
}

/// T1 has written row 2 and is not decided; T2 adds to it.
const UNDECIDED_WRITE: &str = r#"{"seed": 0, "blocks": [
    {"height": 1, "decisions": [], "transactions": [
        {"number": 1001, "parts": {"0": [["add", 2, 1]], "1": [["if", 0, 1], ["add", 2, 1]]}}]},
    {"height": 2, "decisions": [], "transactions": [{"number": 1002, "parts": {"1": [["add", 2, -1]]}}]},
    {"height": 7, "decisions": [[1001, true]], "transactions": []}],
  "schemas": [{"schema": 1, "rows": [],
    "results": {"1001": ["committed", [], 7], "1002": ["committed", [], 7]}, "rows_at_the_end": [[2, 0]]}]}"#;

#[test]
fn locks_none_what_is_prepared_keeps_others_from_what_it_wrote() {
    holds(UNDECIDED_WRITE);
    assert!(wrong(UNDECIDED_WRITE, as_it_is, Some(PartsRule::Locks)).is_some());
}

#[test]
fn locks_writes_what_is_prepared_keeps_others_from_what_it_read() {
    // T1 has added up all rows; T2 adds some.
    let undecided_read = r#"{"seed": 0, "blocks": [
        {"height": 5, "decisions": [], "transactions": [
            {"number": 1001, "parts": {"0": [["add", 1, 1]], "1": [["sum"]]}},
            {"number": 1002, "parts": {"1": [["add", 1, 1], ["add", 0, 0], ["add", 0, -2]]}}]},
        {"height": 14, "decisions": [[1001, true]], "transactions": []}],
      "schemas": [{"schema": 1, "rows": [[2, 0]],
        "results": {"1001": ["committed", [0], 14], "1002": ["committed", [], 14]},
        "rows_at_the_end": [[0, -2], [1, 1], [2, 0]]}]}"#;
    holds(undecided_read);
    assert!(wrong(undecided_read, as_it_is, Some(PartsRule::ReadLocks)).is_some());
}

#[test]
fn checkpoint_rows_a_checkpoint_has_what_is_undecided() {
    assert_eq!(wrong(UNDECIDED_WRITE, with_what_is_undecided, None), None);
    assert!(
        wrong(UNDECIDED_WRITE, of_rows_alone, None).is_some(),
        "T1 commits, and nobody knows what it wrote"
    );
}

#[test]
fn fair_no_parts_of_one_schema_do_not_overtake_what_they_meet() {
    // T1 holds row 0; T2 waits for it, and writes row 1; T3 adds to row 1, T4 to row 2.
    let behind_one_that_waits = r#"{"seed": 0, "blocks": [
        {"height": 1, "decisions": [], "transactions": [
            {"number": 1001, "parts": {"0": [["sum"]], "1": [["add", 0, 1]]}},
            {"number": 1002, "parts": {"0": [["sum"]], "1": [["add", 0, 1], ["add", 1, 1]]}}]},
        {"height": 2, "decisions": [], "transactions": [
            {"number": 1003, "parts": {"1": [["add", 1, 5]]}}, {"number": 1004, "parts": {"1": [["add", 2, 1]]}}]},
        {"height": 3, "decisions": [[1001, true]], "transactions": []},
        {"height": 5, "decisions": [[1002, true]], "transactions": []}],
      "schemas": [{"schema": 1, "rows": [],
        "results": {"1001": ["committed", [], 3], "1002": ["committed", [], 5], "1003": ["committed", [], 5],
                    "1004": ["committed", [], 2]},
        "rows_at_the_end": [[0, 2], [1, 6], [2, 1]]}]}"#;
    holds(behind_one_that_waits);
    assert!(wrong(behind_one_that_waits, as_it_is, Some(PartsRule::Fair)).is_some());
}

/// Two schemas with one member each, whose votes stand in the next block.
struct TwoSchemas {
    decisions: Decisions<u8>,
    executors: BTreeMap<u8, (PartsExecutor, PlainState)>,
    votes: Vec<Vote<u8>>,
    height: u64,
    decided: Vec<(u64, Decided)>,
}

impl TwoSchemas {
    fn new(window: u64, rule: Option<PartsRule>) -> TwoSchemas {
        let executor = || match rule {
            Some(rule) => PartsExecutor::default().without(rule),
            None => PartsExecutor::default(),
        };
        let executors = [1, 2].map(|schema| (schema, (executor(), PlainState::default())));
        let (votes, decided) = Default::default();
        TwoSchemas {
            decisions: Decisions::new(window),
            executors: executors.into(),
            votes,
            height: 0,
            decided,
        }
    }

    /// The next block: of each transaction what it does in each schema. `votes`: those of these schemas arrive.
    fn block(&mut self, transactions: &[[&[Operation]; 2]], arrive: &[u8]) {
        self.height += 1;
        let height = self.height;
        let (carried, later) = self.votes.drain(..).partition(|vote| arrive.contains(&vote.schema));
        self.votes = later;
        let carried: Vec<Vote<u8>> = carried;
        let new = (0..transactions.len() as u32).map(|index| (index, BTreeSet::from([1, 2])));
        let decisions = self.decisions.block(height, &carried, new).expect("the next block");
        self.decided.extend(decisions.iter().map(|decided| (height, *decided)));
        for (schema, (executor, state)) in &mut self.executors {
            let part = |(index, parts): (u32, &[&[Operation]; 2])| {
                let operations = parts[usize::from(*schema) - 1].to_vec();
                let part: Arc<dyn Simulate> = Arc::new(ModelProgram { operations, is_foreseen: false });
                NewPart { position: LedgerPosition { height, index }, part, crossing: true, moved: None }
            };
            let parts = (0..).zip(transactions).map(part).collect();
            let block = PartsBlock { height, decisions: decisions.clone(), parts, steps: u64::MAX };
            let executed = executor.execute(block, state).expect("it goes on");
            executed.changes.iter().for_each(|change| state.apply(change));
            let failed = |(_, outcome): &(_, PartOutcome)| matches!(outcome, PartOutcome::Aborted(_));
            assert!(!executed.outcomes.iter().any(failed));
            let vote =
                |(transaction, yes)| Vote { transaction, schema: *schema, yes, moves: BTreeMap::new() };
            self.votes.extend(executed.votes.into_iter().map(vote));
        }
    }
}

#[test]
fn fifo_no_two_schemas_never_wait_for_one_another() {
    // In schema 1, P holds row 0, and makes it odd: then T writes row 1, too. U writes row 1. In schema 2, T and U write row 5.
    let prepares = [&[Operation::Add(0, 1)][..], &[Operation::Add(9, 1)]];
    let first = [&[Operation::If(0, 1)][..], &[Operation::Add(5, 1)]];
    let second = [&[Operation::Add(1, 1)][..], &[Operation::Add(5, 1)]];
    let decisions = |rule| {
        let mut schemas = TwoSchemas::new(10, rule);
        schemas.block(&[prepares], &[]);
        // P's second vote comes late: T and U come meanwhile.
        schemas.block(&[first, second], &[1]);
        schemas.block(&[], &[2]);
        for _ in 0..12 {
            schemas.block(&[], &[1, 2]);
        }
        let decided = schemas.decided.into_iter();
        decided.map(|(_, decided)| decided.decision).collect::<Vec<_>>()
    };
    assert_eq!(decisions(None), [Decision::Commit; 3]);
    let [_, others @ ..] = &decisions(Some(PartsRule::FirstInFirstOut))[..] else { panic!("P is decided") };
    assert!(
        others.contains(&Decision::Window),
        "T waits for U in schema 1, and U for T in schema 2: {others:?}"
    );
}

#[test]
fn decide_local_members_decide_by_the_chain_however_long_they_take() {
    let at = |index| LedgerPosition { height: 5, index };
    let schemas = BTreeSet::from([1u8, 2]);
    let yes = |index, schema| Vote { transaction: at(index), schema, yes: true, moves: BTreeMap::new() };
    let (mut quick, mut slow) = (Decisions::new(12), Decisions::new(12));
    for member in [&mut quick, &mut slow] {
        let new = [(0, schemas.clone()), (1, schemas.clone())];
        assert_eq!(
            member.block(5, &[yes(0, 1), yes(1, 1)], new),
            Ok(vec![]),
            "votes come behind the transaction"
        );
    }
    let (mut by_quick, mut by_slow) = (Vec::new(), Vec::new());
    let votes = |height| match height {
        9 => vec![yes(0, 1), yes(1, 1)],
        17 => vec![yes(0, 2)],
        _ => vec![],
    };
    for height in 6..=17 {
        let decided = quick.block(height, &votes(height), []).expect("the next block");
        by_quick.extend(decided.into_iter().map(|decided| (height, decided)));
    }
    // It is told of those blocks alone that have something for it, and of each twice as late.
    for height in [9, 17] {
        let decided = slow.block(height, &votes(height), []).expect("a later block");
        by_slow.extend(decided.into_iter().map(|decided| (height, decided)));
    }
    let decided = |index, decision| (17, Decided { transaction: at(index), decision });
    assert_eq!(by_quick, [decided(0, Decision::Commit), decided(1, Decision::Window)]);
    assert_eq!(by_slow, by_quick);
}
