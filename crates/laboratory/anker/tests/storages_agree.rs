//! All systems answer questions as a naive model does at the same moment, whatever is committed before they answer.

mod support;

use anker::{AnkerError, Asked, Engine, Question, System};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, Ordering};
use support::{SHAPES, State, model, questions};

fn engine(system: System, rows: usize) -> (Engine, State) {
    let mut engine = Engine::new(system, &SHAPES, 1).expect("a small engine");
    let facts: Vec<Vec<i64>> = (0..rows as i64).map(|id| vec![id, id % 11, id * 7 % 1_000, 1]).collect();
    let kinds: Vec<Vec<i64>> = [2, 3, 5, 99].map(|kind| vec![kind]).to_vec();
    engine.load(0, facts.iter().map(|row| (row.as_slice(), None))).expect("room");
    engine.load(1, kinds.iter().map(|row| (row.as_slice(), None))).expect("room");
    (engine, [facts, kinds])
}

/// One step of a random run.
#[derive(Clone, Debug)]
enum Step {
    /// Writes columns of rows in one transaction.
    Update(Vec<(usize, usize, i64)>),
    /// Appends rows.
    Insert(usize),
    /// Asks a question, with its columns named or not.
    Ask(usize, bool),
    /// Makes what a question needs that was asked before.
    Materialise(usize),
    /// Answers it.
    Answer(usize),
    /// Forgets it.
    Forget(usize),
    Collect,
}

fn step() -> impl Strategy<Value = Step> {
    let update = (0..5_000_usize, 1..4_usize, -20..1_000_i64);
    prop_oneof![
        6 => prop::collection::vec(update, 1..8).prop_map(Step::Update),
        2 => (1..700_usize).prop_map(Step::Insert),
        4 => (0..7_usize, any::<bool>()).prop_map(|(question, named)| Step::Ask(question, named)),
        1 => any::<prop::sample::Index>().prop_map(|open| Step::Materialise(open.index(64))),
        3 => any::<prop::sample::Index>().prop_map(|open| Step::Answer(open.index(64))),
        1 => any::<prop::sample::Index>().prop_map(|open| Step::Forget(open.index(64))),
        1 => Just(Step::Collect),
    ]
}

/// A question that waits, and the state when it was asked.
type Open<'e> = (Asked<'e>, Question, State);

fn answer((asked, question, state): Open<'_>) {
    let name = format!("{question:?} at {}", asked.at());
    assert_eq!(asked.answer().expect("an answer").groups, model(&question, &state), "{name}");
}

fn run(system: System, steps: &[Step]) {
    let (engine, mut state) = engine(system, 3_000);
    let questions = questions();
    let mut open: Vec<Open<'_>> = Vec::new();
    for step in steps {
        match step {
            Step::Update(writes) => {
                let mut transaction = engine.begin();
                for (row, column, value) in writes {
                    let row = row % state[0].len();
                    transaction.write(0, row as u32, *column, *value).expect("it exists");
                    state[0][row][*column] = *value;
                }
                transaction.commit().expect("nobody else writes");
            }
            Step::Insert(count) => {
                let mut transaction = engine.begin();
                for _ in 0..*count {
                    let row = vec![state[0].len() as i64, 4, 1, 1];
                    transaction.insert(0, row.clone(), None).expect("it fits");
                    state[0].push(row);
                }
                transaction.commit().expect("there is room");
            }
            Step::Ask(number, named) => {
                let question = questions[*number].clone();
                let asked = if *named { engine.ask(&question) } else { engine.ask_without_naming(&question) };
                open.push((asked.expect("it is asked"), question, state.clone()));
            }
            Step::Materialise(at) if !open.is_empty() => {
                let at = at % open.len();
                open[at].0.materialise().expect("memory");
            }
            Step::Answer(at) if !open.is_empty() => answer(open.swap_remove(at % open.len())),
            Step::Forget(at) if !open.is_empty() => drop(open.swap_remove(at % open.len())),
            Step::Collect => engine.collect(),
            _ => {}
        }
    }
    open.into_iter().for_each(answer);
    for (row, values) in state[0].iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            assert_eq!(engine.newest(0, row, column), Ok(*value));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_storage_answers_as_the_model_at_the_moment_of_the_question(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        for system in System::ALL.into_iter().filter(|system| system.name != "see-uncommitted") {
            run(system, &steps);
        }
    }
}

#[test]
fn questions_beside_transfers_find_all_the_money_in_every_storage() {
    for system in System::ALL.into_iter().filter(|system| system.name != "see-uncommitted") {
        let (engine, state) = engine(system, 5_000);
        let money: i64 = state[0].iter().map(|row| row[2]).sum();
        let question = Question::Groups { table: 0, by: None, groups: 1, sums: vec![2], among: None };
        let stops = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (engine, stops) = (&engine, &stops);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed);
                    while !stops.load(Ordering::Relaxed) {
                        let (from, to) = (random.random_range(0..5_000), random.random_range(0..5_000));
                        match transfer(engine, from, to) {
                            Ok(_) | Err(AnkerError::Conflict) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            for round in 0..60 {
                let asked =
                    if round % 2 == 0 { engine.ask(&question) } else { engine.ask_without_naming(&question) };
                let asked = asked.expect("it is asked");
                std::thread::sleep(std::time::Duration::from_micros(300));
                assert_eq!(asked.answer().expect("an answer").groups[0], [5_000, money], "{}", system.name);
                engine.collect();
            }
            stops.store(true, Ordering::Relaxed);
        });
    }
}

fn transfer(engine: &Engine, from: u32, to: u32) -> Result<u64, AnkerError> {
    let mut transaction = engine.begin();
    let balance = transaction.read(0, from, 2)?;
    transaction.write(0, from, 2, balance - 10)?;
    let balance = transaction.read(0, to, 2)?;
    transaction.write(0, to, 2, balance + 10)?;
    transaction.commit()
}

#[test]
fn places_that_do_not_exist_are_named() {
    let (engine, _) = engine(System::ALL[0], 10);
    let said = |result: Result<i64, AnkerError>| result.expect_err("it does not exist").to_string();
    let mut transaction = engine.begin();
    assert_eq!(said(transaction.read(2, 0, 0)), "expected a table from 0 to 1, found 2");
    assert_eq!(said(transaction.read(0, 0, 4)), "expected a column of facts from 0 to 3, found 4");
    assert_eq!(said(transaction.read(0, 10, 0)), "expected a row of facts, which has 10, found 10");
    let key = transaction.write(0, 0, 0, 1).expect_err("a key").to_string();
    assert_eq!(key, "expected a column of facts that may change, found its key id");
    let short = transaction.insert(0, vec![1], None).expect_err("too few").to_string();
    assert_eq!(short, "expected 4 values for a row of facts, found 1");
    assert!(transaction.insert(0, vec![1, 2, 3, 4], Some((1, 0))).is_err());
    let question = Question::Groups { table: 0, by: Some(1), groups: 0, sums: vec![], among: None };
    let none = engine.ask(&question).expect_err("no groups").to_string();
    assert_eq!(none, "expected 1 to 1048576 groups (GROUPS_MAX), found 0");
    assert!(engine.ask(&Question::Whole { table: 9 }).is_err());
    let mut fills = engine.begin();
    (0..SHAPES[0].rows_max).for_each(|_| fills.insert(0, vec![0; 4], None).expect("values fit"));
    let full = fills.commit().expect_err("ten rows are there already").to_string();
    assert_eq!(full, "table facts has all its 40000 rows; expected fewer inserts: run for fewer seconds");
    assert_eq!(engine.rows(0), 10);
}
