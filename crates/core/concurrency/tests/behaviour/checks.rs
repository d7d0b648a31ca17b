//! The checker itself: it finds what is wrong.

use crate::driver::Recorded;
use crate::program::{self, A, B, Operation, Program, column, row, row_id, table};
use concurrency::checker::{
    CheckedBatch, Fate, Position, RecordingTransaction, Violation, check, false_aborts, fixed_edges,
};
use concurrency::{BatchResult, BatchStatistics, History, TransactionOutcome};
use state::{
    AfterImage, Command, CommandKind, Effects, PlainState, Read, RowChange, RowFunction, Simulate, Snapshot,
    StoreError,
};
use std::sync::Arc;
use types::{Catalog, ColumnSet, Row, SqlError};

const X: u8 = 0;
const Y: u8 = 1;

fn add(key: u8, amount: i64) -> Operation {
    program::add(key, A, amount)
}

/// Both run on the state before, and both are called committed, placed in this order.
fn claim(programs: &[Program], placed: &[u32], initial: &PlainState) -> Result<Vec<Position>, Violation> {
    let recorded: Vec<Arc<RecordingTransaction>> =
        programs.iter().map(|one| RecordingTransaction::new(Arc::new(one.clone()))).collect();
    let effects: Vec<Effects> = recorded.iter().map(|one| one.simulate(initial).unwrap()).collect();
    let mut after = initial.clone();
    for number in placed {
        for command in &effects[*number as usize].commands {
            let before = after.get(command.row.table, &command.row.key);
            let value = match command.function.apply(before.as_ref()).unwrap() {
                RowChange::Put(row) => Some(row),
                RowChange::Delete => None,
                RowChange::Unmatched => continue,
            };
            after.apply(&AfterImage { row: command.row.clone(), value });
        }
    }
    let changes = (0..9u8).map(row_id).filter_map(|row| {
        let (was, is) = (initial.get(row.table, &row.key), after.get(row.table, &row.key));
        (was != is).then_some(AfterImage { row, value: is })
    });
    let result = BatchResult {
        height: 1,
        number: 0,
        outcomes: effects.into_iter().map(|one| TransactionOutcome::Committed(one.result.unwrap())).collect(),
        changes: changes.collect(),
        history: History { placed: placed.to_vec(), serial: vec![] },
        steps: 0,
        statistics: BatchStatistics::default(),
    };
    check(initial, &[CheckedBatch { transactions: &recorded, result: &result, unseen: 0, snapshots: None }])
        .map(|verified| verified.order)
}

#[test]
fn a_cycle_is_found_and_named() {
    let programs =
        [Program(vec![Operation::Move((Y, A), (X, A))]), Program(vec![Operation::Move((X, A), (Y, A))])];
    let position = |transaction| Position { batch: 0, transaction };
    let found = claim(&programs, &[0, 1], &table(&[(X, 1, 1), (Y, 5, 5)]));
    assert_eq!(found, Err(Violation::Cycle(vec![position(0), position(1), position(0)])));
    let named = found.unwrap_err().to_string();
    assert!(
        named.ends_with("transaction 0 of batch 0 → transaction 1 of batch 0 → transaction 0 of batch 0"),
        "{named}"
    );
}

#[test]
fn a_phantom_is_found() {
    // Each scans for rows and, having seen none, makes one that the other would have seen.
    let programs = [
        Program(vec![Operation::Scan(1, 0), Operation::Insert(X, 1, 0)]),
        Program(vec![Operation::Scan(1, 0), Operation::Insert(Y, 1, 0)]),
    ];
    assert!(matches!(claim(&programs, &[0, 1], &table(&[])), Err(Violation::Cycle(_))));
}

#[test]
fn readers_come_before_writers_that_they_did_not_see() {
    let programs = [
        Program(vec![add(X, 1)]),
        Program(vec![Operation::Read(X, A)]),
        Program(vec![Operation::Read(X, B)]),
    ];
    let order = claim(&programs, &[0, 1, 2], &table(&[(X, 1, 1)])).unwrap();
    assert_eq!(order.iter().map(|position| position.transaction).collect::<Vec<_>>(), [1, 0, 2]);
}

/// A correct run of a few transactions, to be spoilt.
fn recorded() -> Recorded {
    let initial = table(&[(X, 1, 1), (Y, 5, 5)]);
    let first = vec![
        Program(vec![add(X, 1), Operation::Read(Y, A)]),
        Program(vec![Operation::Insert(X, 1, 1)]),
        Program(vec![Operation::Move((X, B), (Y, B))]),
    ];
    let run =
        Recorded::run("harmony", &initial, &[first, vec![Program(vec![Operation::Scan(0, 0), add(Y, 1)])]]);
    run.check().unwrap();
    run
}

#[test]
fn a_wrong_outcome_is_found() {
    let mut run = recorded();
    let receipt = run.batches[0].1.outcomes[0].clone();
    run.batches[0].1.outcomes[1] = receipt;
    assert!(matches!(run.check(), Err(Violation::Placement { .. })));
}

#[test]
fn a_wrong_or_missing_change_is_found() {
    let mut run = recorded();
    run.batches[0].1.changes[0].value = Some(row(7, 7));
    assert!(matches!(run.check(), Err(Violation::Changes { batch: 0, .. })));
    let mut run = recorded();
    run.batches[1].1.changes.clear();
    assert!(matches!(run.check(), Err(Violation::Changes { batch: 1, .. })));
}

#[test]
fn a_transaction_that_took_no_place_is_found() {
    let mut run = recorded();
    run.batches[0].1.history.placed.pop();
    assert!(matches!(run.check(), Err(Violation::History { expected: 1, found: 0, .. })));
    let mut run = recorded();
    run.batches[0].1.outcomes[0] = TransactionOutcome::Conflict;
    assert!(matches!(run.check(), Err(Violation::History { expected: 0, found: 1, .. })));
}

/// Does not say that it reads X.
#[derive(Clone)]
struct Secretive;

impl Simulate for Secretive {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let hidden = Operation::Read(X, A);
        let mut effects = Program(vec![hidden, add(Y, 1)]).simulate(snapshot)?;
        effects.reads.clear();
        Ok(effects)
    }
}

#[test]
fn a_result_that_no_serial_run_gives_is_found() {
    let write: Arc<dyn Simulate> = Arc::new(Program(vec![add(X, 1)]));
    let recorded = [write, Arc::new(Secretive)].map(RecordingTransaction::new);
    let mut driver = crate::driver::Driver::new("harmony", table(&[(X, 1, 1), (Y, 1, 1)]));
    let initial = driver.state.clone();
    let result = driver.run(recorded.iter().map(|one| one.clone() as Arc<dyn Simulate>).collect());
    let found = check(
        &initial,
        &[CheckedBatch { transactions: &recorded, result: &result, unseen: 0, snapshots: None }],
    );
    let position = Position { batch: 0, transaction: 1 };
    assert!(matches!(found, Err(Violation::Outcome { position: at, .. }) if at == position), "{found:?}");
}

struct Nothing;

impl RowFunction for Nothing {
    fn apply(&self, _: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(RowChange::Unmatched)
    }
}

fn effects(reads: &[u8], writes: &[u8]) -> Effects {
    let columns = column(A) | ColumnSet::EXISTS;
    let command = |key: &u8| Command {
        row: row_id(*key),
        function: Arc::new(Nothing),
        kind: CommandKind::Update { known: vec![] },
        uses: ColumnSet::EXISTS,
        writes: column(A),
        guard: None,
        can_fail: false,
        addition: None,
    };
    Effects {
        reads: reads.iter().map(|key| Read { row: row_id(*key), columns }).collect(),
        scans: vec![],
        commands: writes.iter().map(command).collect(),
        result: Ok(vec![]),
        steps: 1,
        catalog: None,
    }
}

#[test]
fn an_abort_without_a_cycle_is_false() {
    use Fate::{Business, Committed, Conflict};
    let catalog = Catalog::default();
    let [one, two, reads_only] = [effects(&[X], &[Y]), effects(&[Y], &[X]), effects(&[X, Y], &[])];
    let count = |block: &[(&Effects, Fate)]| false_aborts(block, &catalog, &[]);
    assert_eq!(count(&[(&one, Committed), (&two, Conflict)]), Vec::<u32>::new(), "a true one");
    assert_eq!(count(&[(&one, Conflict), (&two, Conflict)]), [0, 1], "either of them could have stayed");
    assert_eq!(count(&[(&one, Committed), (&two, Conflict), (&reads_only, Conflict)]), [2]);
    assert_eq!(count(&[(&one, Committed), (&two, Business)]), Vec::<u32>::new(), "the contract's word");
    assert_eq!(count(&[]), Vec::<u32>::new());
}

#[test]
fn fixed_edges_to_the_previous_block_close_cycles() {
    let catalog = Catalog::default();
    let aborted = effects(&[X], &[]);
    let block = [(&aborted, Fate::Conflict)];
    assert_eq!(false_aborts(&block, &catalog, &[(0, 1)]), [0]);
    assert_eq!(false_aborts(&block, &catalog, &[(0, 1), (1, 2), (2, 0)]), Vec::<u32>::new());
}

#[test]
fn the_order_of_the_previous_block_is_fixed_also_where_only_commands_meet() {
    const Z: u8 = 2;
    let initial = table(&[(X, 0, 0), (Y, 0, 0), (Z, 0, 0)]);
    let run = |operations: &[Operation]| program::program(operations).simulate(&initial).unwrap();
    let (late, early) = (run(&[add(Z, 1), add(Y, 1)]), run(&[add(X, 1), add(Z, 1)]));
    // It did not see what the early one wrote, and the late one wrote before it.
    let given_up = run(&[program::read(X, A), program::set(Y, A, 5)]);
    let (block, catalog) = ([(&given_up, Fate::Conflict)], Catalog::default());
    let previous = [(&late, Fate::Committed), (&early, Fate::Committed)];
    let false_with = |placed: &[u32]| {
        let fixed = fixed_edges(&block, &previous, placed, &catalog);
        false_aborts(&block, &catalog, &fixed)
    };
    assert_eq!(false_with(&[1, 0]), Vec::<u32>::new(), "it closes a cycle");
    assert_eq!(false_with(&[0, 1]), [0]);
}
