//! Batches that overlap: what the published Rule 3 would let through, what may stay, and the options that an ablation
//! switches.

use crate::driver::{Driver, Recorded, STEP_BY_STEP};
use crate::program::{A, Operation, Program, add, program, rows, table};
use crate::random_histories::INTER_BLOCK;
use concurrency::{Granularity, OnConflict, ProtocolOptions, TransactionOutcome};
use state::Simulate;
use std::sync::Arc;

const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;
const XYZ: &[(u8, i64, i64)] = &[(X, 10, 10), (Y, 10, 10), (Z, 10, 10)];

fn read(key: u8) -> Operation {
    Operation::Read(key, A)
}

/// Runs batches with conflicts given up, and who that was: batch and number.
fn given_up(options: ProtocolOptions, batches: &[Vec<Program>]) -> Vec<(usize, usize)> {
    let abort = ProtocolOptions { on_conflict: OnConflict::Abort, ..options };
    let run = Recorded::run_with("harmony", abort, &table(XYZ), batches);
    run.check().unwrap();
    let outcomes = run.results().into_iter().enumerate().flat_map(|(batch, result)| {
        let conflicts = result.outcomes.iter().enumerate();
        let conflicts = conflicts.filter(|(_, outcome)| **outcome == TransactionOutcome::Conflict);
        conflicts.map(move |(number, _)| (batch, number)).collect::<Vec<_>>()
    });
    let given_up = outcomes.collect();
    let again = Recorded::run_with("harmony", options, &table(XYZ), batches);
    again.check().unwrap();
    let settled = |outcome: &TransactionOutcome| *outcome != TransactionOutcome::Conflict;
    assert!(again.results().iter().all(|result| result.outcomes.iter().all(settled)));
    given_up
}

// ---- anomalies that the published Rule 3 lets through where it cannot abort what has committed ----

#[test]
fn an_update_that_read_before_a_committed_one_is_not_lost() {
    let increment = || program(&[Operation::Move((X, A), (X, A))]);
    assert_eq!(given_up(INTER_BLOCK, &[vec![increment()], vec![increment()]]), [(1, 0)]);
    let run =
        Recorded::run_with("harmony", INTER_BLOCK, &table(XYZ), &[vec![increment()], vec![increment()]]);
    assert_eq!(rows(&run.state)[0], (X, 12, 10), "both increments have happened");
}

#[test]
fn write_skew_across_batches_is_found() {
    let first = program(&[read(Y), add(X, A, 1)]);
    let second = program(&[read(X), add(Y, A, 1)]);
    assert_eq!(given_up(INTER_BLOCK, &[vec![first], vec![second]]), [(1, 0)]);
}

#[test]
fn a_cycle_through_two_committed_transactions_is_found() {
    // `late → early` within the first batch is no danger alone; the second batch's transaction would have to come
    // before `late`, and, because of Z, after `early`.
    let early = program(&[add(X, A, 1), add(Z, A, 1)]);
    let late = program(&[read(X), add(Y, A, 1)]);
    let third = program(&[read(Y), add(Z, A, 1)]);
    assert_eq!(given_up(INTER_BLOCK, &[vec![early, late], vec![third]]), [(1, 0)]);
}

#[test]
fn a_business_abort_observed_what_later_batches_write() {
    // It saw that X does not suffice, so whoever changes X, having missed what was written before, must not slip in.
    let raise = program(&[read(X), read(Y), Operation::Raise]);
    let writes_y = program(&[add(Y, A, 1)]);
    let third = program(&[read(Y), add(X, A, 1)]);
    assert_eq!(given_up(INTER_BLOCK, &[vec![writes_y, raise], vec![third]]), [(1, 0)]);
}

// ---- what may stay ----

#[test]
fn a_reader_that_missed_a_batch_comes_before_its_writers() {
    assert!(given_up(INTER_BLOCK, &[vec![program(&[add(X, A, 1)])], vec![program(&[read(X)])]]).is_empty());
}

#[test]
fn commands_need_not_have_seen_the_batch_before() {
    let increments = || (0..9).map(|_| program(&[add(X, A, 1)])).collect::<Vec<_>>();
    let batches = [increments(), increments(), increments()];
    assert!(given_up(INTER_BLOCK, &batches).is_empty());
    let run = Recorded::run_with("harmony", INTER_BLOCK, &table(XYZ), &batches);
    assert_eq!(rows(&run.state)[0], (X, 37, 10));
}

#[test]
fn a_batch_that_forgets_sees_everything_before_it() {
    for forget in [false, true] {
        let mut driver = Driver::with("harmony", INTER_BLOCK, table(XYZ));
        let offer = |operations: &[Operation]| vec![Arc::new(program(operations)) as Arc<dyn Simulate>];
        driver.run(offer(&[add(X, A, 1)]));
        let result = driver.run_limited(offer(&[read(X)]), u64::MAX, forget);
        let TransactionOutcome::Committed(results) = &result.outcomes[0] else { panic!("{result:?}") };
        let seen = types::Value::BigInt(if forget { 11 } else { 10 });
        assert_eq!(results[0].rows, [[seen]]);
    }
}

// ---- options ----

#[test]
fn without_reordering_only_the_first_writer_of_a_column_is_accepted() {
    let increments: Vec<Program> = (0..4).map(|_| program(&[add(X, A, 1)])).collect();
    let raw = ProtocolOptions { reordering: false, ..STEP_BY_STEP };
    assert_eq!(given_up(raw, std::slice::from_ref(&increments)), [(0, 1), (0, 2), (0, 3)]);
    assert!(given_up(STEP_BY_STEP, &[increments]).is_empty());
    let columns = vec![program(&[add(X, 0, 1)]), program(&[add(X, 1, 1)])];
    assert_eq!(given_up(raw, &[columns]), [], "another column is another matter");
}

#[test]
fn conflicts_of_rows_are_more_than_conflicts_of_columns() {
    let programs = vec![
        program(&[Operation::Read(X, 0), add(Y, 0, 1)]),
        program(&[Operation::Read(Y, 1), add(X, 1, 1)]),
    ];
    assert!(given_up(STEP_BY_STEP, std::slice::from_ref(&programs)).is_empty());
    let by_row = ProtocolOptions { granularity: Granularity::Row, ..STEP_BY_STEP };
    assert_eq!(given_up(by_row, &[programs]), [(0, 1)]);
}

#[test]
fn coalescing_changes_the_work_and_nothing_else() {
    let programs: Vec<Program> =
        (0..50).map(|number| program(&[add(X, A, number % 7), add(Y, A, 1), read(Z)])).collect();
    let one_by_one = ProtocolOptions { coalescing: false, ..STEP_BY_STEP };
    let runs = [STEP_BY_STEP, one_by_one].map(|options| {
        let run = Recorded::run_with("harmony", options, &table(XYZ), std::slice::from_ref(&programs));
        run.results().into_iter().cloned().collect::<Vec<_>>()
    });
    assert_eq!(runs[0], runs[1]);
}
